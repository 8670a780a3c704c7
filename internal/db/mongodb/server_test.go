package mongodb

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/cluster/host"
	server "stroppy/internal/cluster/mongodb"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/isolation"
)

func TestMain(m *testing.M) { servers.Main(m) }

// servers are the only members of their replica sets. Their data are in memory, and they have the command that makes
// them fail.
var servers = drivertest.Servers[cluster.Local]{
	Launch: func(ctx context.Context, settings map[string]string) (cluster.Local, error) {
		o := cluster.Alone(settings)
		o.InMemory = true
		o.Params.Set("set.enableTestCommands", "1")
		return server.Start(ctx, o)
	},
	Missing: func(err error) string {
		if missing := new(host.MissingError); errors.As(err, missing) {
			return "skipped engine: mongodb: " + missing.Advice()
		}
		return ""
	},
}

// at returns the URL of a database with parameters added.
func at(t testing.TB, text, database string, params ...string) string {
	t.Helper()
	u, err := url.Parse(text)
	drivertest.Must(t, err)
	u.Path = "/" + database
	u.RawQuery = strings.Join(append(params, u.RawQuery), "&")
	u.RawQuery = strings.Trim(u.RawQuery, "&")
	return u.String()
}

// freshURL returns the address of a database that no other test uses. It is on the server that tests share, or on the
// one that STROPPY_TEST_MONGODB names.
func freshURL(t testing.TB, params ...string) string {
	t.Helper()
	text := os.Getenv("STROPPY_TEST_MONGODB")
	if text == "" {
		text = servers.Shared(t).URL()
	}
	return at(t, text, "stroppy_driver_"+servers.Name(), params...)
}

// accounts are documents with a field of every type and a list.
var accounts = &db.Collection{
	Name: "accounts", ID: db.Text,
	Fields: []db.Field{{Name: "balance", Type: db.Decimal, NonNegative: true}, {Name: "version", Type: db.Integer}, {Name: "note", Type: db.Text}},
	List:   "moves", Items: []db.Field{{Name: "amount", Type: db.Decimal}, {Name: "with", Type: db.Text}},
}

// spend subtracts from the balance if there is enough, and counts; move only adds.
var (
	spend = &db.Update{Collection: accounts, AtLeast: 1, Add: []int{1, 2}, Set: []int{3}}
	move  = &db.Update{Collection: accounts, Add: []int{1, 2}}
)

func num(n int64) db.Value     { return db.Value{Int: n} }
func text(s string) db.Value   { return db.Value{Text: []byte(s)} }
func ids(of string) []db.Value { return []db.Value{text(of)} }

// open opens a database with the accounts a and b, with 10.00 each.
func open(t testing.TB, url string) *Database {
	t.Helper()
	d := drivertest.Open(t, Open, url)
	drivertest.Must(t, d.Drop(t.Context(), accounts))
	drivertest.Must(t, d.Create(t.Context(), accounts))
	drivertest.Must(t, d.Create(t.Context(), accounts)) // it exists
	s := session1(t, d, "")
	drivertest.Must(t, transact(t.Context(), s, func() error {
		return s.Insert(t.Context(), accounts, []db.Value{text("a"), num(1000), num(0), {Null: true}},
			[]db.Value{text("b"), num(1000), num(0), text("x"), num(-5), text("a"), num(7), {Null: true}})
	}))
	return d
}

func session1(t testing.TB, d *Database, isolation string) db.RecordSession {
	t.Helper()
	s, err := d.RecordSession(t.Context(), db.SessionOptions{Isolation: isolation})
	drivertest.Must(t, err)
	drivertest.Close(t, s)
	return s
}

func transact(ctx context.Context, s db.RecordSession, do func() error) error {
	err := s.Begin(ctx, false)
	if err == nil {
		err = do()
	}
	if err == nil {
		err = s.Commit(ctx)
	}
	return err
}

// show formats the values of a document.
func show(d db.Record) string {
	if !d.Found {
		return "-"
	}
	var list []string
	for _, v := range d.Values {
		switch {
		case v.Null:
			list = append(list, "null")
		case v.Text != nil:
			list = append(list, string(v.Text))
		default:
			list = append(list, fmt.Sprint(v.Int))
		}
	}
	return strings.Join(list, " ")
}

// find shows documents in a new transaction.
func find(t testing.TB, s db.RecordSession, names ...string) string {
	t.Helper()
	var keys []db.Value
	for _, n := range names {
		keys = append(keys, text(n))
	}
	out := make([]db.Record, len(keys))
	drivertest.Must(t, s.Begin(t.Context(), true))
	drivertest.Must(t, s.Find(t.Context(), accounts, keys, out))
	var all []string
	for _, d := range out {
		all = append(all, show(d))
	}
	drivertest.Must(t, s.Commit(t.Context()))
	return strings.Join(all, ", ")
}

func want(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func wantError(t testing.TB, what string, err error, class db.Class, code string) {
	t.Helper()
	e, ok := errors.AsType[*db.Error](err)
	if !ok || e.Class != class || e.Code != code {
		t.Errorf("%s: %v (%v), want class %v and code %q", what, err, db.ClassOf(err), class, code)
	}
}

func TestUpdatesRoundTrip(t *testing.T) {
	d := open(t, freshURL(t))
	ctx, s := t.Context(), session1(t, d, "")
	want(t, "find", find(t, s, "b", "nobody", "a"), "b 1000 0 x -5 a 7 null, -, a 1000 0 null")
	var before db.Record
	drivertest.Must(t, transact(ctx, s, func() (err error) {
		before, err = s.FindAndUpdate(ctx, spend, text("a"), []db.Value{num(900), num(-900), num(1), text("spent")})
		if err != nil {
			return err
		}
		want(t, "before", show(before), "a 1000 0 null")
		if before, err = s.FindAndUpdate(ctx, spend, text("a"), []db.Value{num(101), num(-101), num(1), text("no")}); err != nil || before.Found {
			t.Errorf("more was spent than there is: %s, %v", show(before), err)
		}
		found, err := s.Update(ctx, move, []db.Value{text("a"), text("b"), text("c")}, []db.Value{num(1), num(1), num(-1), num(1), num(0), num(0)})
		if found != 2 {
			t.Errorf("%d documents were updated, want 2", found)
		}
		return err
	}))
	want(t, "find", find(t, s, "a", "b"), "a 101 2 spent, b 999 1 x -5 a 7 null")
	for _, tc := range []struct {
		from  db.Value
		limit int
		want  string
	}{{db.Value{Null: true}, 0, "a b"}, {db.Value{Null: true}, 1, "a"}, {text("aa"), 5, "b"}} {
		var got []string
		drivertest.Must(t, s.Scan(ctx, accounts, tc.from, tc.limit, func(v []db.Value) error {
			got = append(got, string(v[db.ID].Text))
			return nil
		}))
		want(t, "scan", strings.Join(got, " "), tc.want)
	}
	drivertest.Must(t, s.Begin(ctx, false))
	_, err := s.Update(ctx, move, ids("a"), []db.Value{num(1), num(1)})
	drivertest.Must(t, errors.Join(err, s.Rollback(ctx)))
	want(t, "after a rollback", find(t, s, "a"), "a 101 2 spent")
	for name, there := range map[string]bool{"accounts": true, "others": false} {
		if got, err := d.Exists(ctx, &db.Collection{Name: name}); err != nil || got != there {
			t.Errorf("Exists(%s) = %v, %v", name, got, err)
		}
	}
	if size, err := d.Footprint(ctx); err != nil || size < 1000 || size > 1<<20 {
		t.Errorf("Footprint = %d, %v", size, err)
	}
}

func TestServerDescriptionHasVersionAndIsolation(t *testing.T) {
	d := open(t, freshURL(t))
	info, err := d.Info(t.Context())
	if err != nil || info.Name != "MongoDB" || info.Version == "" {
		t.Errorf("Info = %+v, %v", info, err)
	}
	t.Logf("%+v", info)
	for name, level := range map[string]isolation.Level{"": isolation.SnapshotIsolation, majority: isolation.ReadCommitted, local: isolation.ReadUncommitted} {
		if c, err := d.Claim(name); err != nil || c.Level != level {
			t.Errorf("Claim(%q) = %+v, %v", name, c, err)
		}
		s := session1(t, d, name)
		want(t, "at "+name, find(t, s, "a"), "a 1000 0 null")
	}
	if _, err := d.RecordSession(t.Context(), db.SessionOptions{Isolation: "serializable"}); err == nil {
		t.Error("there is a session at serializable")
	}
}

// TestCloseEndsAllGoroutines checks that no goroutine of a database continues after its close, even with an open
// session, and none of a refused one.
func TestCloseEndsAllGoroutines(t *testing.T) {
	address := freshURL(t)
	open(t, address)
	before := runtime.NumGoroutine()
	for account, url := range map[string]string{"a": address, "b": address + "&w=7", "": "mongodb://127.0.0.1:1?timeout=500ms"} {
		d, err := Open(t.Context(), url)
		if err != nil {
			continue
		}
		s, err := d.RecordSession(t.Context(), db.SessionOptions{})
		drivertest.Must(t, err)
		drivertest.Must(t, s.Begin(t.Context(), false))
		_, err = s.Update(t.Context(), move, ids(account), []db.Value{num(1), num(1)})
		drivertest.Must(t, err)
		drivertest.Must(t, d.Close())
		wantError(t, "after the database was closed", s.Commit(t.Context()), db.Unknown, "")
		drivertest.Must(t, s.Close())
	}
	drivertest.Must(t, wait.Retry(clustertest.Within(t, 20*time.Second), func() error {
		if now := runtime.NumGoroutine(); now > before {
			return fmt.Errorf("%d goroutines before, and %d now", before, now)
		}
		return nil
	}))
}

// TestTransactionReadsOneSnapshot checks that a transaction reads from one moment, and that it does not overwrite
// later changes.
func TestTransactionReadsOneSnapshot(t *testing.T) {
	d := open(t, freshURL(t))
	ctx, s, other := t.Context(), session1(t, d, ""), session1(t, d, "")
	var out [1]db.Record
	drivertest.Must(t, s.Begin(ctx, false))
	drivertest.Must(t, s.Find(ctx, accounts, ids("a"), out[:]))
	drivertest.Must(t, transact(ctx, other, func() error {
		_, err := other.Update(ctx, move, []db.Value{text("a"), text("b")}, []db.Value{num(-1), num(1), num(1), num(1)})
		return err
	}))
	drivertest.Must(t, s.Find(ctx, accounts, ids("b"), out[:]))
	want(t, "the snapshot", show(out[0]), "b 1000 0 x -5 a 7 null")
	_, err := s.Update(ctx, move, ids("a"), []db.Value{num(1), num(1)})
	wantError(t, "a write over a newer one", err, db.Aborted, "112")
	want(t, "afterwards", find(t, s, "a"), "a 999 1 null")
}

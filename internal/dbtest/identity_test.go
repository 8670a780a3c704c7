package dbtest

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/sqlite"
	"stroppy/internal/history"
	"stroppy/internal/workload"
	"stroppy/internal/workload/appends"
	"stroppy/internal/workload/bank"
	"stroppy/internal/workload/dataset"
	"stroppy/internal/workload/kv"
)

// driven runs a workload as a command. It returns the exit code, the verdict, which can be empty, and the last line of
// standard error.
func driven(t *testing.T, url, workload string, args ...string) (code int, verdict, last string) {
	t.Helper()
	args = append([]string{"--db", url, "--clients", "4", "--count", "200"}, args...)
	code, v, complaints := program(t, workload, args...)
	return code, v.Verdict, lastLine(complaints)
}

// changes holds changes of the data by other programs between two runs. The SQL works on every server. The next run
// either refuses the data with a reason or accepts it.
var changes = []struct {
	workload   string // with its settings
	statements []string
	reason     string
	taken      bool // the next run accepts the data
}{
	{"bank --accounts 200", []string{"UPDATE stroppy_account SET balance = balance + 1"}, "stroppy_account has other contents", false},
	{"bank --accounts 200", []string{ // the sum does not change
		"UPDATE stroppy_account SET balance = balance + 1 WHERE ban = (SELECT MIN(ban) FROM stroppy_account)",
		"UPDATE stroppy_account SET balance = balance - 1 WHERE ban = (SELECT MAX(ban) FROM stroppy_account WHERE balance > 1)",
	}, "stroppy_account has other contents", false},
	{"bank --accounts 200", []string{
		"DELETE FROM stroppy_ledger",
		"DELETE FROM stroppy_account WHERE ban = (SELECT MIN(ban) FROM stroppy_account)",
	}, "stroppy_account had 200 rows and has 199", false},
	{"bank --accounts 200", []string{"DELETE FROM stroppy_ledger"}, "rows and has 0", false},
	{"bank --accounts 200", []string{"DROP TABLE stroppy_ledger"}, "stroppy_ledger cannot be read", false},
	{"bank --accounts 200", []string{
		"CREATE TABLE backup AS SELECT * FROM stroppy_ledger", "DELETE FROM stroppy_ledger", "DROP TABLE backup",
	}, "rows and has 0", false},
	{"kv --records 200", []string{
		"DELETE FROM stroppy_kv WHERE record_key = (SELECT MAX(record_key) FROM stroppy_kv)",
	}, "stroppy_kv had 200 rows and has 199", false},
	{"events", []string{"DELETE FROM stroppy_events"}, "rows and has 0", false},
	{"append", []string{"DELETE FROM stroppy_append"}, "rows and has 0", false},
	{"tpcb --ratio 1:2:20", []string{"DELETE FROM pgbench_history"}, "", true},
	{"tpcb --ratio 1:2:20", []string{"UPDATE pgbench_accounts SET abalance = abalance + 1"}, "", true},
	{"tpcb --ratio 1:2:20", []string{"DELETE FROM pgbench_accounts WHERE aid = 7"},
		"pgbench_accounts had 20 rows and has 19", false},
	{"tpcb --ratio 1:2:20 --versions", []string{"DELETE FROM stroppy_tpcb_history"},
		"stroppy_tpcb_history had 200 rows and has 0", false},
}

// changed makes each change between two runs on a new database and checks the second run.
func changed(t *testing.T, open func(t *testing.T) (db.SQL, string)) {
	for _, c := range changes {
		t.Run(c.workload+" "+c.statements[len(c.statements)-1], func(t *testing.T) {
			database, url := open(t)
			args := strings.Fields(c.workload)
			if code, verdict, last := driven(t, url, args[0], args[1:]...); code != 0 {
				t.Fatalf("the first run: exit code %d, %s: %s", code, verdict, last)
			}
			for _, statement := range c.statements {
				if err := database.Exec(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			code, verdict, last := driven(t, url, args[0], "--no-load")
			switch {
			case c.taken && (code != 0 && code != 4 || verdict == "invalid"):
				t.Errorf("exit code %d, %s: %s", code, verdict, last)
			case !c.taken && (code != 2 || verdict != "" || !strings.Contains(last, c.reason) ||
				!strings.Contains(last, "is not what run 1 left")):
				t.Errorf("exit code %d, verdict %q: %s", code, verdict, last)
			}
		})
	}
}

// TestRunIsRefusedOnChangedData checks the second run after another program has changed the data.
func TestRunIsRefusedOnChangedData(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		changed(t, func(t *testing.T) (db.SQL, string) {
			url := "sqlite:" + filepath.Join(t.TempDir(), "a.db") + "?synchronous=off"
			d, err := sqlite.Open(t.Context(), url)
			return opened(t, d, err), url
		})
	})
	t.Run("postgres", func(t *testing.T) {
		changed(t, func(t *testing.T) (db.SQL, string) { return openPostgres(t) })
	})
	t.Run("mariadb", func(t *testing.T) {
		changed(t, func(t *testing.T) (db.SQL, string) { return openSharedMariaDB(t) })
	})
}

// TestRunAcceptsDataBeyondTheCensus checks the second run on records whose bytes exceed what a census reads.
func TestRunAcceptsDataBeyondTheCensus(t *testing.T) {
	if testing.Short() {
		t.Skip("it loads 80 MB; the full tier runs it")
	}
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "a.db") + "?synchronous=off" },
		"postgres": newPostgresDatabase,
		"mariadb":  func(t *testing.T) string { _, url := openSharedMariaDB(t); return url },
	} {
		t.Run(name, func(t *testing.T) {
			url := open(t)
			if code, verdict, last := driven(t, url, "kv", "--records", "20000", "--value-size", "4000"); code != 0 {
				t.Fatalf("the first run: exit code %d, %s: %s", code, verdict, last)
			}
			if _, verdict, last := driven(t, url, "kv", "--no-load"); verdict == "" || verdict == "invalid" {
				t.Errorf("the second run is %q: %s", verdict, last)
			}
		})
	}
}

// TestTPCBAcceptsTablesRecreatedByPgbench checks that a run describes the current tables, not the tables of an earlier
// run.
func TestTPCBAcceptsTablesRecreatedByPgbench(t *testing.T) {
	t.Parallel()
	url := newPostgresDatabase(t)
	for i, init := range [][]string{{"-i", "-q", "-s", "2"}, {"-i", "-q", "-s", "1"}, {"-i", "-q", "-s", "1"}, nil} {
		if init != nil {
			pgbench(t, append(init, url)...)
		}
		code, verdict, last := driven(t, url, "tpcb", "--no-load")
		if code != 0 || verdict != "valid" {
			t.Errorf("run %d: exit code %d, %s: %s", i+1, code, verdict, last)
		}
	}
}

// models opens each workload with few objects, on databases of any data model.
var models = map[string]func(t *testing.T, d db.Database) workload.Workload{
	"bank":   func(t *testing.T, d db.Database) workload.Workload { return newBank(t, d, nil) },
	"tpcb":   func(t *testing.T, d db.Database) workload.Workload { return newTPCB(t, d, smallTPCB()) },
	"events": func(t *testing.T, d db.Database) workload.Workload { return newEvents(t, d, fewEvents()) },
	"kv": func(t *testing.T, d db.Database) workload.Workload {
		w, err := kv.New(d, kv.Config{
			Records: 300, Seed: 7, KeySize: 32, ValueLow: 64, ValueHigh: 200, Connections: 8, InFlight: 1,
			Mix: kv.Mix{Reads: 0.5, Updates: 0.5, Distribution: kv.Zipfian},
		})
		if err != nil {
			t.Fatal(err)
		}
		return w
	},
	"append": func(t *testing.T, d db.Database) workload.Workload {
		w, err := appends.New(d, appends.Config{Clients: 8, Seed: 7, Length: 32, Operations: 4, Reads: 0.5, Range: 1})
		if err != nil {
			t.Fatal(err)
		}
		return w
	},
}

// driveOnce runs a workload once without checks, with or without a load.
func driveOnce(t *testing.T, d db.Database, w workload.Workload, loads bool) {
	t.Helper()
	r := newTrial(t, d, w, "")
	if loads {
		r.load(t)
	}
	r.attach(t)
	r.drive(t, 100)
	r.download(t)
	r.leave(t)
}

// refusedOnce checks that a workload accepts its data before a change and refuses it afterwards.
func refusedOnce(t *testing.T, d db.Database, open func(t *testing.T, d db.Database) workload.Workload, change func()) {
	t.Helper()
	driveOnce(t, d, open(t, d), true)
	driveOnce(t, d, open(t, d), false)
	change()
	_, err := open(t, d).Attach(t.Context())
	if e := wantError[*dataset.ChangedError](t, err); !strings.Contains(e.Error(), "is not what run 2 left") {
		t.Error(e)
	}
}

// TestAttachRefusesMissingKey removes one key of each range in turn.
func TestAttachRefusesMissingKey(t *testing.T) {
	t.Parallel()
	prefixes := map[string][]string{
		"bank": {"stroppy_account/", "stroppy_ledger/"}, "tpcb": {"stroppy_tpcb_row/", "stroppy_tpcb_history/"},
		"events": {"stroppy_events_stream/", "stroppy_events/"}, "kv": {"kv/"}, "append": {"stroppy_append/"},
	}
	for name, open := range models {
		for _, prefix := range prefixes[name] {
			t.Run(name+" "+prefix, func(t *testing.T) {
				d := openMemory(t, "memory:")
				refusedOnce(t, d, open, func() { removeFirst(t, d, prefix) })
			})
		}
	}
}

// endOf returns the first key after all keys with a prefix.
func endOf(prefix string) []byte { return append([]byte(prefix), 0xff) }

// removeFirst deletes the first key with a prefix.
func removeFirst(t *testing.T, d db.KV, prefix string) {
	t.Helper()
	s, err := d.KVSession(t.Context(), db.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var first []byte
	enough := errors.New("enough")
	err = s.Scan(t.Context(), []byte(prefix), endOf(prefix), func(key, _ []byte) error {
		first = bytes.Clone(key)
		return enough
	})
	if !errors.Is(err, enough) {
		t.Fatalf("no key begins with %s: %v", prefix, err)
	}
	err = s.Begin(t.Context(), false)
	s.Delete(first)
	if err = errors.Join(err, s.Commit(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// TestAttachRefusesMissingCollection removes one collection in turn.
func TestAttachRefusesMissingCollection(t *testing.T) {
	t.Parallel()
	collections := map[string][]string{
		"bank": {"stroppy_account", "stroppy_ledger"}, "tpcb": {"stroppy_tpcb_row", "stroppy_tpcb_history"},
		"events": {"stroppy_events", "stroppy_events_stream"}, "kv": {"stroppy_kv"}, "append": {"stroppy_append"},
	}
	for name, open := range models {
		for _, collection := range collections[name] {
			t.Run(name+" "+collection, func(t *testing.T) {
				d := newDocuments(0)
				refusedOnce(t, d, open, func() {
					if err := d.Drop(t.Context(), &db.Collection{Name: collection}); err != nil {
						t.Fatal(err)
					}
				})
			})
		}
	}
}

// TestAttachDuringRunAndAfterKilledRun checks that a run may attach while another run changes the data. After a run
// that was killed, the data is refused only if it contradicts the workload.
func TestAttachDuringRunAndAfterKilledRun(t *testing.T) {
	t.Parallel()
	for name, open := range models {
		t.Run(name, func(t *testing.T) {
			d := openSQLite(t)
			first := newTrial(t, d, open(t, d), "")
			first.load(t)
			first.attach(t)
			second := newTrial(t, d, open(t, d), "")
			second.attach(t)
			second.drive(t, 100)
			second.download(t)
			second.leave(t) // while the first run continues
			first.drive(t, 100)
			third := newTrial(t, d, open(t, d), "")
			third.attach(t)
		})
	}
	t.Run("killed", func(t *testing.T) {
		d := openSQLite(t)
		r := newTrial(t, d, newBank(t, d, nil), "")
		r.load(t)
		r.attach(t)
		r.drive(t, 200)
		if err := d.Exec(t.Context(), "DELETE FROM stroppy_ledger"); err != nil {
			t.Fatal(err)
		}
		_, err := newBank(t, d, nil).Attach(t.Context())
		wantError[*dataset.ChangedError](t, err)
	})
}

// TestUpdateOfMissingRowIsRejected checks that a transaction is rejected if its row is gone. A mode that notices this
// before the commit must leave no history row.
func TestUpdateOfMissingRowIsRejected(t *testing.T) {
	t.Parallel()
	databases := map[string]func(t *testing.T) db.SQL{
		"sqlite":   func(t *testing.T) db.SQL { return openSQLite(t) },
		"postgres": func(t *testing.T) db.SQL { d, _ := openPostgres(t); return d },
		"mariadb":  func(t *testing.T) db.SQL { d, _ := openSharedMariaDB(t); return d },
	}
	for name, open := range databases {
		for _, mode := range []string{workload.Pipelined, workload.Interactive, workload.Procedure} {
			for _, table := range []string{"pgbench_accounts", "pgbench_tellers", "pgbench_branches"} {
				unseen := name == "mariadb" && mode == workload.Pipelined && table != "pgbench_accounts"
				if unseen || name == "sqlite" && mode == workload.Procedure {
					continue // the driver does not report the number of rows; SQLite has no procedures
				}
				t.Run(strings.Join([]string{name, mode, table}, " "), func(t *testing.T) {
					d, c := open(t), smallTPCB()
					c.Mode = mode
					w := newTPCB(t, d, c)
					tx := attemptWithout(t, d, w, "DELETE FROM "+table)
					if tx.Outcome != history.Rejected || w.Header().Reasons[0].Number != uint8(tx.Reason) {
						t.Errorf("the outcome is %v, the reason %d", tx.Outcome, tx.Reason)
					}
					if mode != workload.Pipelined {
						wantNone(t, d, "pgbench_history")
					}
				})
			}
		}
		for _, access := range []string{appends.Primary, appends.Secondary} {
			t.Run(name+" append "+access, func(t *testing.T) {
				d := open(t)
				w, err := appends.New(d, appends.Config{
					Clients: 1, Seed: 7, Length: 32, Operations: 4, Range: 1, Access: access, Session: workload.Session{Mode: workload.Interactive},
				})
				if err != nil {
					t.Fatal(err)
				}
				tx := attemptWithout(t, d, w, "DELETE FROM stroppy_append", "DELETE FROM stroppy_append_indexed")
				if tx.Outcome != history.Rejected || tx.Reason == 0 {
					t.Errorf("the outcome is %v, the reason %d", tx.Outcome, tx.Reason)
				}
			})
		}
	}
}

// attemptWithout loads a workload and commits one transaction. It then executes the statements and attempts the next
// transaction.
func attemptWithout(t *testing.T, d db.SQL, w workload.Workload, statements ...string) *history.Transaction {
	t.Helper()
	r := newTrial(t, d, w, "")
	r.load(t)
	r.attach(t)
	client, err := w.Client(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	tx := new(history.Transaction)
	client.Next(tx)
	if err := client.Attempt(t.Context(), tx); err != nil || tx.Outcome != history.Committed {
		t.Fatalf("the first transaction: %v, %v", tx.Outcome, err)
	}
	for _, statement := range append(slices.Clone(statements), "DELETE FROM pgbench_history") {
		if err := d.Exec(t.Context(), statement); err != nil && !strings.Contains(statement, "history") {
			t.Fatal(err)
		}
	}
	client.Next(tx)
	if err := client.Attempt(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	return tx
}

// wantNone fails the test if a table has rows.
func wantNone(t *testing.T, d db.SQL, table string) {
	t.Helper()
	s, err := d.Session(t.Context(), db.SessionOptions{Mode: db.Interactive})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n, err := dataset.Count(t.Context(), s, table); n != 0 || err != nil {
		t.Errorf("%s has %d rows, %v", table, n, err)
	}
}

// TestCheckIgnoresTransactionSettings checks that a bank can be checked although it is too small for a payroll of the
// default size.
func TestCheckIgnoresTransactionSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url, out := "sqlite:"+filepath.Join(dir, "small.db"), filepath.Join(dir, "run")
	code, _, why := stroppy("run", bank.Name, "--db", url, "--accounts", "8", "--payroll-legs", "3", "--audits", "0",
		"--count", "100", "--no-check", "--out", out)
	if code != 0 && code != 4 {
		t.Fatal(code, why)
	}
	if code, _, why := stroppy("check", out, "--db", url); code != 0 {
		t.Errorf("exit code %d: %s", code, why)
	}
}

package tpcb

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/noop"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
)

// nothing is a session of either model that answers at once and keeps nothing.
type nothing struct {
	results []db.Result
	found   []byte
}

func (s *nothing) Begin(context.Context, bool) error { return nil }
func (s *nothing) Do(_ context.Context, _ *db.Statement, _ []db.Value) (int, error) {
	return len(s.results) - 1, nil
}
func (s *nothing) Flush(context.Context) error    { return nil }
func (s *nothing) Result(int) *db.Result          { return &s.results[0] }
func (s *nothing) Commit(context.Context) error   { return nil }
func (s *nothing) Rollback(context.Context) error { return nil }
func (s *nothing) Query(context.Context, *db.Statement, []db.Value, func([]db.Value) error) error {
	return nil
}
func (s *nothing) Reset(context.Context) error { return nil }
func (s *nothing) Close() error                { return nil }

// nothingKV is nothing with the key-value model's own methods.
type nothingKV struct{ nothing }

func (s *nothingKV) Read(_ context.Context, keys [][]byte, out []db.Entry) error {
	for i, key := range keys {
		out[i] = db.Entry{}
		if bytes.HasPrefix(key, []byte(tableRow+"/")) || bytes.HasPrefix(key, []byte(tableCounter+"/")) {
			out[i] = db.Entry{Value: s.found, Found: true}
		}
	}
	return nil
}
func (s *nothingKV) Set(_, _ []byte)   {}
func (s *nothingKV) Add([]byte, int64) {}
func (s *nothingKV) Delete([]byte)     {}
func (s *nothingKV) Rollback()         {}
func (s *nothingKV) Scan(context.Context, []byte, []byte, func(key, value []byte) error) error {
	return nil
}

// nothingStore is a key-value store that adds, of sessions that are nothing.
type nothingStore struct {
	db.KV
	found []byte
}

func (nothingStore) Limits() db.Limits { return db.Limits{Writes: 1000} }
func (d nothingStore) AddSession(context.Context, db.SessionOptions) (db.AddSession, error) {
	return &nothingKV{nothing{found: d.found}}, nil
}

// recordClient is a client on a key-value store whose rows have values of so many bytes.
func recordClient(h *chooser, length int, versions bool) load.Client {
	records, _ := db.RecordsOf(nothingStore{found: make([]byte, length)})
	m, err := newRecordModel(records, &Config{History: true, Plain: !versions})
	if err != nil {
		panic(err)
	}
	m.(*recordModel).versions = versions
	client, err := m.client(context.Background(), h)
	if err != nil {
		panic(err)
	}
	return client
}

func dialect() *db.Dialect {
	return &db.Dialect{
		Placeholder: func(int) string { return "?" }, IntegerType: "BIGINT",
		TextType: func(int) string { return "TEXT" }, Returning: true, Procedures: &db.ProcedureDialect{Language: db.PLpgSQL, Call: "SELECT * FROM "},
	}
}

// ways are the clients that a test or a benchmark tries, by name.
func ways() map[string]load.Client {
	s := size{10, 100, 1_000_000}
	d := dialect()
	client := func(h *chooser, columns int, t *texts, keeps bool) *sqlClient {
		s := &nothing{results: []db.Result{{Columns: columns, Values: make([]db.Value, columns)}}}
		return &sqlClient{chooser: h, SQLSession: s, texts: t, keeps: keeps}
	}
	choose := func(zipfian bool) *chooser {
		return newChooser(&Config{Zipfian: zipfian, ZipfExponent: 0.99}, s, 1, 1, 0)
	}
	plain, versioned := newTexts(d, false, true), newTexts(d, true, true)
	calling, procedure := client(choose(false), 1, plain, true), newProcedure(d, true)
	caller := d.NewCaller(calling.SQLSession)
	calling.call = func(ctx context.Context, args []db.Value) (*db.Result, error) {
		return caller.Call(ctx, procedure, args)
	}
	return map[string]load.Client{
		"plain":            client(choose(false), 1, plain, true),
		"bare":             client(choose(false), 1, plain, false),
		"zipfian":          client(choose(true), 1, plain, true),
		"versions":         client(choose(false), 3, versioned, true),
		"procedure":        calling,
		"records":          recordClient(choose(false), 24, true),
		"records and adds": recordClient(choose(false), 8, false),
	}
}

func TestTransactionAllocatesNothing(t *testing.T) {
	for name, client := range ways() {
		tx := history.Transaction{Ops: make([]history.Op, 0, operations)}
		n := testing.AllocsPerRun(1000, func() {
			client.Next(&tx)
			if err := client.Attempt(t.Context(), &tx); err != nil || tx.Outcome != history.Committed {
				t.Fatalf("%s: %v, %v", name, tx.Outcome, err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations a transaction", name, n)
		}
	}
}

func BenchmarkTransaction(b *testing.B) {
	for name, client := range ways() {
		b.Run(name, func(b *testing.B) {
			tx := history.Transaction{Ops: make([]history.Op, 0, operations)}
			b.ReportAllocs()
			for b.Loop() {
				client.Next(&tx)
				if err := client.Attempt(b.Context(), &tx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestChoicesFollowPgbenchRanges checks pgbench's ranges, that each row has its own kind and is chosen equally
// often, and that a seed repeats its choices.
func TestChoicesFollowPgbenchRanges(t *testing.T) {
	s := size{3, 7, 50}
	a, b := newChooser(&Config{}, s, 5, 1, 2), newChooser(&Config{}, s, 5, 1, 2)
	var x, y history.Transaction
	seen, deltas := map[uint64]int{}, map[int64]int{}
	const draws = 60_000
	for i := range draws {
		a.Next(&x)
		b.Next(&y)
		if x.ID != history.NewID(1, 2, uint64(i+1)) || x.Kind != profile || len(x.Ops) != operations {
			t.Fatalf("it made %+v", x)
		}
		for j := range x.Ops {
			if x.Ops[j] != y.Ops[j] {
				t.Fatalf("the same seed made %+v and %+v", x.Ops, y.Ops)
			}
			if x.Ops[j].Amount != x.Ops[0].Amount || !x.Ops[j].Write {
				t.Fatalf("the amounts differ: %+v", x.Ops)
			}
			seen[x.Ops[j].Object]++
		}
		for j, want := range [operations]kind{opAccount: account, opTeller: teller, opBranch: branch} {
			if k, _ := s.place(x.Ops[j].Object); k != want {
				t.Fatalf("operation %d is on %s", j, s.Name(x.Ops[j].Object))
			}
		}
		deltas[x.Ops[0].Amount]++
	}
	for n := range s.rows() {
		count := map[kind]uint64{branch: s[branch], teller: s[teller], account: s[account]}
		k, _ := s.place(n)
		if mean := draws / int(count[k]); seen[n] < mean*8/10 || seen[n] > mean*12/10 {
			t.Errorf("%s was drawn %d times, and the mean is %d", s.Name(n), seen[n], mean)
		}
	}
	for delta := range deltas {
		if delta < -maxDelta || delta > maxDelta {
			t.Errorf("the amount %d was drawn", delta)
		}
	}
	if len(deltas) < 9000 {
		t.Errorf("only %d amounts of 10001 were drawn", len(deltas))
	}
}

func TestRowNameRoundTrip(t *testing.T) {
	s := size{2, 20, 200_000}
	names := &s
	for n, name := range map[uint64]string{0: "branch 1", 1: "branch 2", 2: "teller 1", 21: "teller 20", 22: "account 1", 200_021: "account 200000"} {
		if got := names.Name(n); got != name {
			t.Errorf("row %d is %q, not %q", n, got, name)
		}
		if got, err := names.Number(name); got != n || err != nil {
			t.Errorf("%s is %d, %v", name, got, err)
		}
	}
	if got := names.Name(200_022); !strings.Contains(got, "no load") {
		t.Errorf("a row that is not there is %q", got)
	}
	for _, name := range []string{"account 0", "account 200001", "branch 3", "teller", "till 1", "", "account x"} {
		if _, err := names.Number(name); err == nil {
			t.Errorf("%q is a row", name)
		}
	}
	if scale, ratio := s.ratioOf(); scale != 2 || ratio != [3]uint64{1, 10, 100_000} {
		t.Errorf("scale %d, ratio %v", scale, ratio)
	}
	if r, ok := parseRatio(ratioText([3]uint64{1, 2, 3})); !ok || r != [3]uint64{1, 2, 3} {
		t.Errorf("the ratio came back as %v", r)
	}
	for _, text := range []string{"", "1:2", "1:2:0", "1:2:3:4", "a:b:c"} {
		if _, ok := parseRatio(text); ok {
			t.Errorf("%q is a ratio", text)
		}
	}
}

func TestInvalidConfigurationIsRefused(t *testing.T) {
	good := DefaultConfig()
	good.Clients = 1
	if _, err := New(noop.Open(), good); err != nil {
		t.Fatal(err)
	}
	for name, bend := range map[string]func(c *Config){
		"clients":                     func(c *Config) { c.Clients = 0 },
		"clients ":                    func(c *Config) { c.Clients = 1 << history.ClientBits },
		"--versions":                  func(c *Config) { c.Versions, c.Mode = true, workload.Procedure },
		"versions":                    func(c *Config) { c.Versions, c.History = true, false },
		"ratio":                       func(c *Config) { c.Ratio[1] = 0 },
		"more than 1099511627776":     func(c *Config) { c.Scale = 1 << 30 },
		"more branches or tellers":    func(c *Config) { c.Scale, c.Ratio = 1<<31, [3]uint64{1, 1, 1} },
		"each number must be 1 or mo": func(c *Config) { c.Scale = 0 },
	} {
		c := good
		bend(&c)
		if _, err := New(noop.Open(), c); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFillerStoresTransactionID(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var text [fillerLength]byte
	for range 1000 {
		id := history.NewID(1+random.Uint64N(1<<history.RunBits-1), random.Uint64N(1<<history.ClientBits), random.Uint64N(1<<32))
		putFiller(&text, id)
		if got, ok := parseFiller(append(text[:fillerLength:fillerLength], "     "...)); !ok || got != id {
			t.Fatalf("%v came back as %v", id, got)
		}
	}
	for _, text := range []string{"", " ", "s", "s000000000000000", "s0000000000000000", "x0000000000000001", "s000000000000000G", "sffffffffffffffff", "s00000000000000010"} {
		if id, ok := parseFiller([]byte(text)); ok {
			t.Errorf("%q is the id %v", text, id)
		}
	}
}

func TestRowKeysSortLikeTheirIDs(t *testing.T) {
	var key []byte
	last := ""
	for _, k := range []kind{account, branch, teller} {
		for _, id := range []uint64{1, 9, 10, 99_999, 1 << 31, maxRows} {
			key = appendRowText(key[:0], k, id)
			gotK, gotID, ok := parseRowKey(key)
			if !ok || gotK != k || gotID != int64(id) {
				t.Errorf("%s is %v %d", key, gotK, gotID)
			}
			if string(key) <= last {
				t.Errorf("%s does not follow %s", key, last)
			}
			last = string(key)
		}
	}
	for _, text := range []string{"", "a", "x0000000000001", "a000000000000x", "a00000000000001"} {
		if _, _, ok := parseRowKey([]byte(text)); ok {
			t.Errorf("%q is a row's key", text)
		}
	}
}

package dbtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/workload"
	"stroppy/internal/workload/events"
	"stroppy/internal/workload/kv"
)

// stores opens databases in this process on which correct runs of kv and events must be valid.
func stores(t *testing.T) map[string]func() db.Database {
	return map[string]func() db.Database{
		"memory":                        func() db.Database { return openMemory(t, "memory:") },
		"memory with lost answers":      func() db.Database { return openMemory(t, "memory:?unknown=0.1&abort=0.1") },
		"memory without a reply at all": func() db.Database { return openMemory(t, "memory:?unknown=0.3") },
		"sqlite":                        func() db.Database { return openSQLite(t) },
		"documents":                     func() db.Database { return newDocuments(0) },
		"documents with lost answers":   func() db.Database { return newDocuments(0.1) },
	}
}

// someKV returns a configuration of kv in which clients often conflict.
func someKV(seed uint64, mode string) kv.Config {
	c := kv.Config{
		Records: 40, Seed: seed, KeySize: 32, ValueLow: 64, ValueHigh: 64, Connections: 6, Session: workload.Session{Mode: mode}, ScanLength: 20, ZipfExponent: 0.99,
		Mix: kv.Mix{Reads: 0.3, Updates: 0.2, Inserts: 0.1, Scans: 0.1, Modifies: 0.3, Distribution: kv.Zipfian},
	}
	switch seed % 3 {
	case 1: // values of different lengths
		c.ValueHigh = 900
	case 2:
		c.Distribution = kv.Latest
	}
	return c
}

// someEvents returns a configuration of events in which clients often conflict.
func someEvents(seed uint64, mode string) events.Config {
	c := events.Config{
		Clients: 6, Seed: seed, Streams: []uint64{6, 2, 19}[seed%3], Batch: 1 + int(seed%4),
		Size: events.Size{Low: 40, High: 400}, Fragment: 150, Session: workload.Session{Mode: mode},
	}
	if seed%5 == 0 {
		c.Size.High = c.Size.Low
	}
	return c
}

// TestRunsOnCorrectDatabasesAreValid runs kv and events in all modes on databases without faults.
func TestRunsOnCorrectDatabasesAreValid(t *testing.T) {
	t.Parallel()
	for name, open := range stores(t) {
		for _, mode := range []string{workload.Pipelined, workload.Interactive} {
			for _, seed := range seeds(40) {
				t.Run(fmt.Sprintf("kv/%s/%s/seed=%d", name, mode, seed), func(t *testing.T) {
					d := open()
					w, err := kv.New(d, someKV(uint64(seed), mode))
					if err != nil {
						t.Fatal(err)
					}
					conduct(t, d, w, "", 400).wantAllValid(t)
				})
				t.Run(fmt.Sprintf("events/%s/%s/seed=%d", name, mode, seed), func(t *testing.T) {
					d := open()
					runEvents(t, d, someEvents(uint64(seed), mode), 200).wantAllValid(t)
				})
			}
		}
	}
}

// keptRun is the recording of a run in memory, so that a test can alter it.
type keptRun struct {
	header     history.Header
	txns       []history.Transaction
	objects    []history.Object
	rows       []history.Row
	unexpected []string
}

// keptRunOf reads the recording of a run.
func keptRunOf(t *testing.T, r *trial) *keptRun {
	t.Helper()
	h, err := history.Open(r.history())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	end, err := history.OpenEnd(r.history())
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	all := &keptRun{header: h.Header(), unexpected: end.Unexpected()}
	for rec, err := range h.Transactions() {
		if err != nil {
			t.Fatal(err)
		}
		tx := *rec.Transaction
		tx.Ops, tx.Broken = slices.Clone(tx.Ops), slices.Clone(tx.Broken)
		all.txns = append(all.txns, tx)
	}
	for a, err := range end.Objects() {
		if err != nil {
			t.Fatal(err)
		}
		all.objects = append(all.objects, a)
	}
	for row, err := range end.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		all.rows = append(all.rows, row)
	}
	return all
}

// copy returns a deep copy that a test can alter.
func (r *keptRun) copy() *keptRun {
	c := *r
	c.txns, c.objects, c.rows = slices.Clone(r.txns), slices.Clone(r.objects), slices.Clone(r.rows)
	for i := range c.txns {
		c.txns[i].Ops = slices.Clone(c.txns[i].Ops)
	}
	return &c
}

// check writes the recording into files with correct checksums and checks them.
func (r *keptRun) check(t *testing.T, spec workload.Spec) []check.Result {
	t.Helper()
	dir := t.TempDir()
	folder := filepath.Join(dir, "history")
	w, err := history.Create(folder, r.header, r.header.Clients)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.txns {
		if err := w.Client(int(r.txns[i].ID.Client())).Append(&r.txns[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range r.header.Clients {
		err = errors.Join(err, w.Client(i).Flush())
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	end, err := history.CreateEnd(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range r.objects {
		err = errors.Join(err, end.Object(a))
	}
	for _, row := range r.rows {
		err = errors.Join(err, end.Row(row))
	}
	for _, text := range r.unexpected {
		err = errors.Join(err, end.Unexpected(text))
	}
	if err = errors.Join(err, end.Close()); err != nil {
		t.Fatal(err)
	}
	checked, err := spec.Check(t.Context(), []string{dir}, isolation.StrictSerializable, nil)
	if err != nil {
		t.Fatal(err)
	}
	return checked.Results
}

// alteration is a change of the recording of a correct run, with the expected verdict. alter reports whether it
// changed anything.
type alteration struct {
	name  string
	want  check.Status // expected verdict
	alter func(rng *rand.Rand, r *keptRun) bool
}

// someOp calls do with operations in random order until do reports true. It reports whether do did.
func someOp(rng *rand.Rand, r *keptRun, do func(tx *history.Transaction, op *history.Op) bool) bool {
	for _, i := range rng.Perm(len(r.txns)) {
		for _, j := range rng.Perm(len(r.txns[i].Ops)) {
			if do(&r.txns[i], &r.txns[i].Ops[j]) {
				return true
			}
		}
	}
	return false
}

// someRow calls do with rows in random order until do reports true. It reports whether do did.
func someRow(rng *rand.Rand, r *keptRun, do func(row *history.Row) bool) bool {
	for _, i := range rng.Perm(len(r.rows)) {
		if do(&r.rows[i]) {
			return true
		}
	}
	return false
}

// committed reports whether the transaction is committed.
func committed(tx *history.Transaction) bool { return tx.Outcome == history.Committed }

// dropTransaction removes a transaction that is not the last of its client.
func dropTransaction(rng *rand.Rand, r *keptRun) bool {
	last := map[uint64]uint64{}
	for _, tx := range r.txns {
		last[tx.ID.Client()] = max(last[tx.ID.Client()], tx.ID.Sequence())
	}
	for _, i := range rng.Perm(len(r.txns)) {
		if id := r.txns[i].ID; id.Sequence() < last[id.Client()] {
			r.txns = slices.Delete(r.txns, i, i+1)
			return true
		}
	}
	return false
}

// kvAlterations holds the alterations of recordings of kv.
var kvAlterations = []alteration{
	{"nothing", check.Valid, func(*rand.Rand, *keptRun) bool { return true }},
	{"the length of a value that was read", check.Invalid, func(rng *rand.Rand, r *keptRun) bool {
		return someOp(rng, r, func(tx *history.Transaction, op *history.Op) bool {
			if !committed(tx) || !op.Observed || op.State != history.Whole {
				return false
			}
			op.Value += 1 + rng.Int64N(9)
			return true
		})
	}},
	{"the length of a value in the end state", check.Invalid, func(rng *rand.Rand, r *keptRun) bool {
		r.objects[rng.IntN(len(r.objects))].Value--
		return true
	}},
	{"the length that a transaction wrote", check.Unknown, func(rng *rand.Rand, r *keptRun) bool {
		return someOp(rng, r, func(_ *history.Transaction, op *history.Op) bool {
			if !op.Write {
				return false
			}
			op.Amount += 1 + rng.Int64N(9)
			return true
		})
	}},
	{"whether a read saw something", check.Unknown, func(rng *rand.Rand, r *keptRun) bool {
		return someOp(rng, r, func(tx *history.Transaction, op *history.Op) bool {
			if !committed(tx) || !tx.Kind.ReadOnly() {
				return false
			}
			*op = history.Op{Object: op.Object}
			return true
		})
	}},
	{"the state of a value that was read", check.Invalid, func(rng *rand.Rand, r *keptRun) bool {
		return someOp(rng, r, func(tx *history.Transaction, op *history.Op) bool {
			if !committed(tx) || !tx.Kind.ReadOnly() || op.State != history.Whole {
				return false
			}
			op.State = history.Broken
			return true
		})
	}},
	{"the state of a value in the end state", check.Invalid, func(rng *rand.Rand, r *keptRun) bool {
		r.objects[rng.IntN(len(r.objects))].State = history.Broken
		return true
	}},
	{"a transaction", check.Unknown, dropTransaction},
	{"a transaction twice", check.Unknown, func(rng *rand.Rand, r *keptRun) bool {
		r.txns = append(r.txns, r.txns[rng.IntN(len(r.txns))])
		return true
	}},
	{"a record of the load", check.Invalid, func(rng *rand.Rand, r *keptRun) bool {
		i := slices.IndexFunc(r.objects, func(a history.Object) bool { return a.N < r.header.Objects })
		r.objects = slices.Delete(r.objects, i, i+1)
		return true
	}},
	{"a row that nobody makes", check.Invalid, func(_ *rand.Rand, r *keptRun) bool {
		r.unexpected = []string{"a key \"kv/x\""}
		return true
	}},
}

// eventsAlterations holds the alterations of recordings of events.
var eventsAlterations = []alteration{
	{"nothing", check.Valid, func(*rand.Rand, *keptRun) bool { return true }},
	{"the bytes of an append", check.Unknown, func(rng *rand.Rand, r *keptRun) bool {
		return someOp(rng, r, func(_ *history.Transaction, op *history.Op) bool { op.Amount -= 1 + rng.Int64N(9); return true })
	}},
	{"the place of an append", check.Invalid, func(rng *rand.Rand, r *keptRun) bool {
		return someOp(rng, r, func(tx *history.Transaction, op *history.Op) bool {
			if !committed(tx) {
				return false
			}
			op.Version++
			return true
		})
	}},
	{"the stream of an append", check.Invalid, func(rng *rand.Rand, r *keptRun) bool {
		return someOp(rng, r, func(tx *history.Transaction, op *history.Op) bool {
			if !committed(tx) {
				return false
			}
			op.Object = (op.Object + 1) % r.header.Objects
			return true
		})
	}},
	{"the state of an event of an append of unknown outcome", check.Invalid, func(rng *rand.Rand, r *keptRun) bool {
		return someRow(rng, r, func(row *history.Row) bool {
			if row.Mark != 0 {
				return false
			}
			row.State, row.Amount = history.Broken, 0
			for i := range r.txns {
				if tx := &r.txns[i]; tx.ID == row.Transaction {
					tx.Outcome, tx.LookedUp, tx.Ops[0].Observed, tx.Ops[0].Version = history.Unknown, false, false, 0
				}
			}
			return true
		})
	}},
	{"the length of an event", check.Invalid, func(rng *rand.Rand, r *keptRun) bool {
		return someRow(rng, r, func(row *history.Row) bool {
			if row.Mark != 0 {
				return false
			}
			row.Amount++
			return true
		})
	}},
	{"the state of an event to none", check.Unknown, func(rng *rand.Rand, r *keptRun) bool {
		return someRow(rng, r, func(row *history.Row) bool { row.State = 0; return row.Mark == 0 })
	}},
	{"the writer at a stream's end", check.Invalid, func(rng *rand.Rand, r *keptRun) bool {
		r.objects[rng.IntN(len(r.objects))].Writer++
		return true
	}},
	{"an append", check.Unknown, dropTransaction},
	{"an append twice", check.Unknown, func(rng *rand.Rand, r *keptRun) bool {
		r.txns = append(r.txns, r.txns[rng.IntN(len(r.txns))])
		return true
	}},
	{"whether an append was looked up", check.Invalid, func(rng *rand.Rand, r *keptRun) bool {
		closed := map[history.ID]bool{}
		for _, row := range r.rows {
			closed[row.Transaction] = row.Mark == history.Tombstone
		}
		return someOp(rng, r, func(tx *history.Transaction, _ *history.Op) bool {
			if !closed[tx.ID] || tx.Outcome == history.Unknown {
				return false
			}
			tx.LookedUp = false
			return true
		})
	}},
}

// TestAlteredValuesAreDetected alters one value in the recording of a correct run. The checks can notice this only by
// a comparison with other recorded values.
func TestAlteredValuesAreDetected(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		spec        workload.Spec
		run         func(t *testing.T, seed uint64) *trial
		alterations []alteration
	}{
		"kv": {kv.Spec(), func(t *testing.T, seed uint64) *trial {
			d := openMemory(t, "memory:?unknown=0.05")
			w, err := kv.New(d, someKV(seed, workload.Pipelined))
			if err != nil {
				t.Fatal(err)
			}
			return conduct(t, d, w, "", 400)
		}, kvAlterations},
		"events": {events.Spec(), func(t *testing.T, seed uint64) *trial {
			return runEvents(t, openMemory(t, "memory:?unknown=0.2"), someEvents(seed, workload.Pipelined), 200)
		}, eventsAlterations},
	} {
		for _, seed := range seeds(200) {
			t.Run(fmt.Sprintf("%s/seed=%d", name, seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(seed), 1))
				whole := keptRunOf(t, of.run(t, uint64(seed)))
				for _, a := range of.alterations {
					altered := whole.copy()
					if !a.alter(rng, altered) {
						t.Errorf("%s: there is nothing to alter", a.name)
						continue
					}
					results := altered.check(t, of.spec)
					if v := check.Verdict(results); v != a.want {
						t.Errorf("%s: the verdict is %v, want %v", a.name, v, a.want)
					}
				}
			})
		}
	}
}

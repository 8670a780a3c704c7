package appends

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/text"
	"stroppy/internal/db/memory"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/load"
	"stroppy/internal/workload/recording"
)

// recordedRun is a run as its files have it. It is a check.Source and a check.EndState.
type recordedRun struct {
	header       history.Header
	transactions []history.Transaction
	objects      []history.Object
	rows         []history.Row
	cut          bool
}

func (r *recordedRun) Header() history.Header { return r.header }
func (r *recordedRun) Complete() bool         { return !r.cut }
func (r *recordedRun) Unexpected() []string   { return nil }

func (r *recordedRun) Transactions() iter.Seq2[history.Record, error] {
	return func(yield func(history.Record, error) bool) {
		for i := range r.transactions {
			if !yield(history.Record{Transaction: &r.transactions[i]}, nil) {
				return
			}
		}
	}
}

func (r *recordedRun) Objects() iter.Seq2[history.Object, error] { return all(r.objects) }
func (r *recordedRun) Rows() iter.Seq2[history.Row, error]       { return all(r.rows) }

func all[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
	}
}

func (r *recordedRun) clone() *recordedRun {
	c := *r
	c.transactions = slices.Clone(r.transactions)
	for i := range c.transactions {
		tx := &c.transactions[i]
		tx.Ops, tx.Elements = slices.Clone(tx.Ops), slices.Clone(tx.Elements)
	}
	c.objects, c.rows = slices.Clone(r.objects), slices.Clone(r.rows)
	return &c
}

// check makes the checks of the run. Without an end state none is given.
func (r *recordedRun) check(t *testing.T, end bool) []check.Result {
	t.Helper()
	in := recording.Input{Header: r.header}
	in.Expect, in.History = isolation.StrictSerializable, []check.Source{r}
	if end {
		in.End = r
	}
	results, err := checks(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// runOn records a run on a database in memory.
func runOn(t *testing.T, address string, clients int, count, seed uint64) *recordedRun {
	t.Helper()
	d, err := memory.Open(address)
	if err != nil {
		t.Fatal(err)
	}
	c := testConfig(clients)
	c.Seed, c.Lists, c.Length = seed, 8, 8
	l, err := New(d, *c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o := load.Options{Count: count, Retries: 5, Seed: seed, Start: time.Now(), Kinds: kinds[:]}
	for i := range clients {
		client, err := l.Client(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		o.Clients = append(o.Clients, client)
	}
	if o.History, err = history.Create(dir, l.Header(), clients); err != nil {
		t.Fatal(err)
	}
	if _, err := load.New(o).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := o.History.Close(); err != nil {
		t.Fatal(err)
	}
	end, err := history.CreateEnd(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.EndState(t.Context(), end, nil); err != nil {
		t.Fatal(err)
	}
	if err := end.Close(); err != nil {
		t.Fatal(err)
	}
	return readRun(t, dir)
}

func readRun(t *testing.T, dir string) *recordedRun {
	t.Helper()
	reader, err := history.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	r := &recordedRun{header: reader.Header()}
	for record, err := range reader.Transactions() {
		if err != nil {
			t.Fatal(err)
		}
		tx := *record.Transaction
		tx.Ops, tx.Elements = slices.Clone(tx.Ops), slices.Clone(tx.Elements)
		r.transactions = append(r.transactions, tx)
	}
	end, err := history.OpenEnd(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	for o, err := range end.Objects() {
		if err != nil {
			t.Fatal(err)
		}
		r.objects = append(r.objects, o)
	}
	for row, err := range end.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		r.rows = append(r.rows, row)
	}
	return r
}

// list returns where the rows of a random list with at least so many are.
func (r *recordedRun) list(rng *rand.Rand, least int) (object, from, to int) {
	for {
		object = rng.IntN(len(r.objects))
		from = slices.IndexFunc(r.rows, func(row history.Row) bool { return row.Object == r.objects[object].N })
		to = from + int(r.objects[object].Value)
		if to-from >= least {
			return object, from, to
		}
	}
}

// acknowledged reports whether the writer of a row was committed. The last element of a list may be missing if its
// writer does not know the outcome and nobody read it.
func (r *recordedRun) acknowledged(row int) bool {
	return slices.ContainsFunc(r.transactions, func(tx history.Transaction) bool {
		return tx.ID == r.rows[row].Transaction && tx.Outcome == history.Committed
	})
}

// agree makes the object and the places of a list agree with its rows.
func (r *recordedRun) agree(object, from, to int) {
	for i := from; i < to; i++ {
		r.rows[i].Version = uint64(i-from) + 1
	}
	r.objects[object].Value, r.objects[object].Version = int64(to-from), uint64(to-from)
	r.objects[object].Writer = r.rows[to-1].Transaction
}

// committed returns a random transaction that was committed and that has another one of its
// client behind it.
func (r *recordedRun) committed(rng *rand.Rand, writes bool) int {
	for {
		i := rng.IntN(len(r.transactions))
		tx := &r.transactions[i]
		last := !slices.ContainsFunc(r.transactions[i+1:], func(x history.Transaction) bool { return x.ID.Client() == tx.ID.Client() })
		if tx.Outcome == history.Committed && !last && (!writes || slices.ContainsFunc(tx.Ops, func(op history.Op) bool { return op.Write })) {
			return i
		}
	}
}

// alteration alters a recording. A recording that states what a healthy database cannot have
// done is invalid. If it only contradicts itself, it is unknown.
type alteration struct {
	name  string
	alter func(rng *rand.Rand, r *recordedRun)
	want  check.Status
}

var alterations = []alteration{
	{"an element that nobody appended is behind a list", func(rng *rand.Rand, r *recordedRun) {
		object, from, to := r.list(rng, 1)
		row := r.rows[to-1]
		row.Transaction = history.NewID(row.Transaction.Run(), rng.Uint64N(4), 77777)
		r.rows = slices.Insert(r.rows, to, row)
		r.agree(object, from, to+1)
	}, check.Invalid},
	{"an element that nobody appended is in a list", func(rng *rand.Rand, r *recordedRun) {
		object, from, to := r.list(rng, 2)
		row := r.rows[from]
		row.Number = 40
		r.rows = slices.Insert(r.rows, from+rng.IntN(to-from), row)
		r.agree(object, from, to+1)
	}, check.Invalid},
	{"an element is twice in a list", func(rng *rand.Rand, r *recordedRun) {
		object, from, to := r.list(rng, 1)
		r.rows = slices.Insert(r.rows, to, r.rows[from+rng.IntN(to-from)])
		r.agree(object, from, to+1)
	}, check.Invalid},
	{"an element is in another list", func(rng *rand.Rand, r *recordedRun) {
		object, from, to := r.list(rng, 1)
		row := r.rows[rng.IntN(len(r.rows))]
		for row.Object == r.objects[object].N {
			row = r.rows[rng.IntN(len(r.rows))]
		}
		row.Object = r.objects[object].N
		r.rows = slices.Insert(r.rows, to, row)
		r.agree(object, from, to+1)
	}, check.Invalid},
	{"the last element of a list is missing", func(rng *rand.Rand, r *recordedRun) {
		object, from, to := r.list(rng, 2)
		for !r.acknowledged(to - 1) {
			object, from, to = r.list(rng, 2)
		}
		r.rows = slices.Delete(r.rows, to-1, to)
		r.agree(object, from, to-1)
	}, check.Invalid},
	{"an element of a list is missing", func(rng *rand.Rand, r *recordedRun) {
		object, from, to := r.list(rng, 2)
		at := from + rng.IntN(to-from)
		for !r.acknowledged(at) {
			object, from, to = r.list(rng, 2)
			at = from + rng.IntN(to-from)
		}
		r.rows = slices.Delete(r.rows, at, at+1)
		r.agree(object, from, to-1)
	}, check.Invalid},
	{"two elements are in another order", func(rng *rand.Rand, r *recordedRun) {
		object, from, to := r.list(rng, 2)
		at := from + rng.IntN(to-from-1)
		r.rows[at], r.rows[at+1] = r.rows[at+1], r.rows[at]
		r.agree(object, from, to)
	}, check.Invalid},
	{"a list is missing", func(rng *rand.Rand, r *recordedRun) {
		object, from, to := r.list(rng, 1)
		r.rows = slices.Delete(r.rows, from, to)
		r.objects = slices.Delete(r.objects, object, object+1)
	}, check.Invalid},
	{"an acknowledged append is said to be aborted", func(rng *rand.Rand, r *recordedRun) {
		r.transactions[r.committed(rng, true)].Outcome = history.Aborted
	}, check.Invalid},

	{"a row is twice", func(rng *rand.Rand, r *recordedRun) {
		at := rng.IntN(len(r.rows))
		r.rows = slices.Insert(r.rows, at, r.rows[at])
	}, check.Unknown},
	{"a block of rows is twice", func(rng *rand.Rand, r *recordedRun) {
		from := rng.IntN(len(r.rows))
		to := from + 1 + rng.IntN(len(r.rows)-from)
		r.rows = slices.Insert(r.rows, to, r.rows[from:to]...)
	}, check.Unknown},
	{"the whole end state is twice", func(_ *rand.Rand, r *recordedRun) {
		r.rows, r.objects = slices.Concat(r.rows, r.rows), slices.Concat(r.objects, r.objects)
	}, check.Unknown},
	{"a block of rows is missing", func(rng *rand.Rand, r *recordedRun) {
		from := rng.IntN(len(r.rows))
		r.rows = slices.Delete(r.rows, from, from+1+rng.IntN(len(r.rows)-from))
	}, check.Unknown},
	{"an object has another length", func(rng *rand.Rand, r *recordedRun) {
		r.objects[rng.IntN(len(r.objects))].Value++
	}, check.Unknown},
	{"an object has another version", func(rng *rand.Rand, r *recordedRun) {
		r.objects[rng.IntN(len(r.objects))].Version--
	}, check.Unknown},
	{"an object has another writer", func(rng *rand.Rand, r *recordedRun) {
		r.objects[rng.IntN(len(r.objects))].Writer++
	}, check.Unknown},
	{"an object has another number", func(rng *rand.Rand, r *recordedRun) {
		r.objects[rng.IntN(len(r.objects))].N += 1 << 20
	}, check.Unknown},
	{"the objects are of another run", func(_ *rand.Rand, r *recordedRun) {
		for i := range r.objects {
			r.objects[i].N += newObject(1, 0)
		}
	}, check.Unknown},
	{"objects are missing", func(rng *rand.Rand, r *recordedRun) {
		from := rng.IntN(len(r.objects))
		r.objects = slices.Delete(r.objects, from, from+1+rng.IntN(len(r.objects)-from))
	}, check.Unknown},
	{"a row has a mark", func(rng *rand.Rand, r *recordedRun) {
		r.rows[rng.IntN(len(r.rows))].Mark = history.Tombstone
	}, check.Unknown},
	{"a row is of another run", func(rng *rand.Rand, r *recordedRun) {
		r.rows[rng.IntN(len(r.rows))].Transaction += history.NewID(1, 0, 0)
	}, check.Unknown},
	{"a row has another place", func(rng *rand.Rand, r *recordedRun) {
		r.rows[rng.IntN(len(r.rows))].Version += 1 + rng.Uint64N(1<<40)
	}, check.Unknown},

	{"a transaction is missing", func(rng *rand.Rand, r *recordedRun) {
		i := r.committed(rng, false)
		r.transactions = slices.Delete(r.transactions, i, i+1)
	}, check.Unknown},
	{"a block of transactions is missing", func(rng *rand.Rand, r *recordedRun) {
		client := r.transactions[r.committed(rng, false)].ID.Client()
		first := 1 + rng.Uint64N(10)
		r.transactions = slices.DeleteFunc(r.transactions, func(tx history.Transaction) bool {
			return tx.ID.Client() == client && tx.ID.Sequence() >= first && tx.ID.Sequence() < first+20
		})
	}, check.Unknown},
	{"a transaction is twice", func(rng *rand.Rand, r *recordedRun) {
		i := r.committed(rng, false)
		r.transactions = slices.Insert(r.transactions, i+rng.IntN(len(r.transactions)-i), r.transactions[i])
	}, check.Unknown},
	{"the recording was cut off", func(rng *rand.Rand, r *recordedRun) {
		r.transactions, r.cut = r.transactions[:rng.IntN(len(r.transactions))], true
	}, check.Unknown},
}

func describe(results []check.Result) (lines string) {
	for i := range results {
		lines += fmt.Sprintf("\n%s is %v: %s", results[i].Name, results[i].Status, text.Speaker{Words: Spec().Words}.Detail(&results[i]))
	}
	return lines
}

// TestAlteredRecordingIsNeverValid checks that no altered recording is valid, and that a recording that
// contradicts itself does not accuse a healthy database.
func TestAlteredRecordingIsNeverValid(t *testing.T) {
	seeds := uint64(3)
	if !testing.Short() {
		seeds = 12
	}
	for seed := range seeds {
		for _, address := range []string{"memory:", "memory:?unknown=0.02&abort=0.05", "memory:?mutant=dirty-read&rate=0.02", "memory:?mutant=lost-ack&rate=0.01"} {
			run := runOn(t, address, 5, 600, seed+1)
			healthy := check.Verdict(run.check(t, true))
			if want := address == "memory:" || address == "memory:?unknown=0.02&abort=0.05"; want && healthy != check.Valid {
				t.Fatalf("%s, seed %d: a healthy run is %v: %s", address, seed, healthy, describe(run.check(t, true)))
			}
			if results := run.check(t, false); check.Verdict(results) == check.Valid {
				t.Errorf("%s, seed %d: without an end state: %s", address, seed, describe(results))
			}
			for i, a := range alterations {
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				altered := run.clone()
				a.alter(rng, altered)
				results := altered.check(t, true)
				got := check.Verdict(results)
				if got == check.Valid || healthy == check.Valid && got != a.want {
					t.Errorf("%s, seed %d, %s: %v: %s", address, seed, a.name, got, describe(results))
				}
			}
		}
	}
}

// TestForeignElementIsNamedWithItsList checks that the finding names the element and its list.
func TestForeignElementIsNamedWithItsList(t *testing.T) {
	run := runOn(t, "memory:", 4, 300, 1)
	alterations[0].alter(rand.New(rand.NewPCG(1, 1)), run)
	for _, r := range run.check(t, true) {
		if (r.Name == check.NoGhost) != (r.Status == check.Invalid) {
			t.Fatalf("%s is %v", r.Name, r.Status)
		}
		if r.Name != check.NoGhost {
			continue
		}
		is, ok := r.Findings[0].Instances[0].(fact.ListForeign)
		if !ok || r.Findings[0].Count != 1 || is.Element == "" || is.On == "" || is.End.Length == 0 {
			t.Errorf("found %+v", r.Findings)
		}
	}
}

// TestFindingsCountTheirLostAppends checks that findings count the violations that a lost append takes part in. A
// lost append that was overwritten is a lost update.
func TestFindingsCountTheirLostAppends(t *testing.T) {
	all, ofLost := 0, 0
	for seed := range uint64(4) {
		run := runOn(t, fmt.Sprintf("memory:?mutant=lost-ack&rate=0.005&seed=%d", seed+1), 8, 1500, seed+1)
		for _, r := range run.check(t, true) {
			for _, f := range r.Findings {
				if r.Name == check.Durable {
					continue
				}
				all, ofLost = all+f.Count, ofLost+f.OfLost
				if f.OfLost > f.Count || f.OfLostUpdate > f.Count {
					t.Errorf("seed %d: of %d violations %d are of lost appends and %d of lost updates", seed, f.Count, f.OfLost, f.OfLostUpdate)
				}
			}
		}
	}
	if all == 0 || 2*ofLost < all {
		t.Errorf("of %d violations %d are of lost appends", all, ofLost)
	}
}

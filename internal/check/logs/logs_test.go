package logs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/text"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// diary is an in-memory log of events, with the clients' recordings and the download.
type diary struct {
	streams    uint64
	batch      uint32
	txns       []*history.Transaction
	cut        bool // the recording was cut off
	legs       []history.Row
	ends       []history.Object
	unexpected []string
	endless    bool
	early      []uint64
}

func (d *diary) Header() history.Header { return history.Header{Run: 1} }
func (d *diary) Complete() bool         { return !d.cut }
func (d *diary) Unexpected() []string   { return d.unexpected }

func (d *diary) Transactions() iter.Seq2[history.Record, error] {
	return func(yield func(history.Record, error) bool) {
		for i, tx := range d.txns {
			if !yield(history.Record{Transaction: tx, Ref: history.Ref{File: "history", Record: i}}, nil) {
				return
			}
		}
	}
}

func (d *diary) Rows() iter.Seq2[history.Row, error] { return checktest.Each(d.legs) }

func (d *diary) Objects() iter.Seq2[history.Object, error] { return checktest.Each(d.ends) }

// say writes the sentences of failures.
var say = text.Speaker{Words: check.Words{One: "append", Book: "log", Part: "event"}}

// said returns the text of a result for messages.
func said(r check.Result) string { return say.Detail(&r) }

// eventChecks lists the names of the checks in order.
var eventChecks = []string{check.Durable, check.NoGhost, check.ExactlyOnce, Whole, Order, Continuous}

func lengthOf(id history.ID, member uint32) int64 { return 40 + int64(uint64(id)%7) + int64(member) }

func (d *diary) input() Input {
	in := Input{
		Input:   check.Input{Name: func(n uint64) string { return fmt.Sprintf("stream %d", n) }, History: []check.Source{d}, Early: d.early},
		Words:   check.Words{One: "append", Book: "log", Part: "event", Before: "", Amount: func(n int64) string { return fmt.Sprint(n) }},
		Streams: d.streams, Batch: func(history.ID) uint32 { return d.batch }, Length: lengthOf,
	}

	if !d.endless {
		in.End = d
	}
	return in
}

func (d *diary) check(t *testing.T) map[string]check.Result {
	t.Helper()
	list, err := Check(context.Background(), d.input())
	if err != nil {
		t.Fatal(err)
	}
	results := map[string]check.Result{}
	for _, r := range list {
		if (r.Why == nil) != (r.Status == check.Invalid) || (len(r.Findings) > 0) != (r.Status == check.Invalid) {
			t.Errorf("%s is %v because of %v, and has %d findings", r.Name, r.Status, r.Why, len(r.Findings))
		}
		for i := range r.Findings {
			f := &r.Findings[i]
			if slices.ContainsFunc(f.Instances, func(what fact.Fact) bool { return what.Fact() != f.Kind() }) {
				t.Errorf("%s has one finding of %v", r.Name, f.Instances)
			}
		}
		results[r.Name] = r
	}
	if len(results) != len(eventChecks) {
		t.Fatalf("%d checks were made, and %d are described", len(results), len(eventChecks))
	}
	for i, about := range eventChecks {
		if list[i].Name != about {
			t.Fatalf("check %d is %s, and %s is described", i, list[i].Name, about)
		}
	}
	return results
}

// appended simulates clients that append to streams, with outcomes of every kind.
func appended(rng *rand.Rand, clients, streams, batch, count int) *diary {
	d := &diary{streams: uint64(streams), batch: uint32(batch)}
	places, sequences := make([]uint64, streams), make([]uint64, clients)
	logs := make([][]history.Row, streams)
	free := make([]int64, clients) // when each client becomes free
	clock := int64(0)
	for range count {
		clock += 1 + rng.Int64N(50)
		c := rng.IntN(clients)
		sequences[c]++
		stream := (c + rng.IntN(max(streams/clients, 1))*clients) % streams
		tx := &history.Transaction{
			ID: history.NewID(1, uint64(c), sequences[c]), Kind: kindAppend, Outcome: history.Committed, Attempts: 1,
			Try: max(clock-rng.Int64N(200), free[c]), Ops: []history.Op{{Object: uint64(stream), Write: true}},
		}
		tx.Sent, tx.Due = tx.Try, tx.Try
		for m := range d.batch {
			tx.Ops[0].Amount += lengthOf(tx.ID, m)
		}
		applied, void := true, false
		switch rng.IntN(10) {
		case 0:
			tx.Outcome, applied = history.Aborted, false
		case 1:
			tx.Outcome, applied, void, tx.LookedUp = history.Aborted, false, true, true
		case 2:
			tx.Outcome, applied = history.Unknown, rng.IntN(2) == 0
		}
		// The append is applied at clock; its client learns it a little later.
		tx.End = max(clock, tx.Try) + rng.Int64N(100)
		free[c] = tx.End
		if tx.Outcome == history.Committed {
			tx.Ops[0].Observed, tx.Ops[0].Version = true, places[stream]
		}
		if void {
			places[stream]++
			logs[stream] = append(logs[stream], history.Row{Transaction: tx.ID, Mark: history.Tombstone, Object: uint64(stream), Version: places[stream]})
		}
		for m := uint32(0); applied && m < d.batch; m++ {
			places[stream]++
			logs[stream] = append(logs[stream], history.Row{Transaction: tx.ID, Number: m, Object: uint64(stream), State: history.Whole, Amount: lengthOf(tx.ID, m), Version: places[stream]})
		}
		d.txns = append(d.txns, tx)
		clock = max(clock, tx.Try) // a later application must have a later end
	}
	for n := range d.streams {
		d.legs = append(d.legs, logs[n]...)
		end := history.Object{N: n, Version: places[n]}
		if l := len(logs[n]); l > 0 {
			end.Writer = logs[n][l-1].Transaction
		}
		d.ends = append(d.ends, end)
	}
	return d
}

// someDiary returns a log of random shape.
func someDiary(rng *rand.Rand, count int) *diary {
	clients := 1 + rng.IntN(4)
	return appended(rng, clients, 1+rng.IntN(5), 1+rng.IntN(4), count)
}

func TestCorrectLogIsValid(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		for name, r := range someDiary(rng, 60).check(t) {
			if r.Status != check.Valid || !r.Required {
				t.Errorf("seed %d: %s is %v, required %v: %s", seed, name, r.Status, r.Required, said(r))
			}
		}
	}
}

func TestMutantsAreDetected(t *testing.T) {
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			killed := 0
			for seed := range uint64(50) {
				rng := rand.New(rand.NewPCG(seed, 2))
				d := someDiary(rng, 40)
				if !m.spoil(rng, d) {
					continue
				}
				var reported []check.Violation
				in := d.input()
				in.OnViolation = func(v check.Violation) { reported = append(reported, v) }
				list, err := Check(context.Background(), in)
				if err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(list, func(r check.Result) bool { return r.Name == m.check })
				if r := list[i]; r.Status != check.Invalid {
					t.Fatalf("seed %d: %s is %v: %s", seed, m.check, r.Status, say.Detail(&r))
				}
				if !slices.ContainsFunc(reported, func(v check.Violation) bool { return v.Check == m.check }) {
					t.Errorf("seed %d: no violation of %s was handed over", seed, m.check)
				}
				killed++
			}
			if killed < 20 {
				t.Errorf("it had its effect %d times only", killed)
			}
		})
	}
}

func TestChecksAgainstDefinitions(t *testing.T) {
	all := mutants()
	invalid := map[string]int{}
	for seed := range uint64(4000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		d := someDiary(rng, 3+rng.IntN(20))
		var names []string
		for range rng.IntN(4) {
			if m := all[rng.IntN(len(all))]; len(d.legs) > 0 && m.name != "a stream is gone" && m.spoil(rng, d) {
				names = append(names, m.name)
			}
		}
		if rng.IntN(20) == 0 {
			i := rng.IntN(len(d.ends))
			d.ends = slices.Delete(d.ends, i, i+1)
		}
		want := oracle(d)
		for name, r := range d.check(t) {
			if _, damaged := r.Why.(fact.Unreadable); damaged {
				continue // a download is sorted
			}
			if bad := want[name]; bad != (r.Status == check.Invalid) {
				t.Fatalf("seed %d, %v: %s is %v, and the oracle says that something is wrong: %v\n%s", seed, names, name, r.Status, bad, said(r))
			}
			if r.Status == check.Invalid {
				invalid[name]++
			}
		}
	}
	for _, about := range eventChecks {
		if invalid[about] < 100 {
			t.Errorf("%s was invalid %d times only, so that little was compared", about, invalid[about])
		}
	}
}

// TestHoleAtReadUncommitted checks that a hole is reported but not required at a level that allows appends
// after uncommitted ones.
func TestHoleAtReadUncommitted(t *testing.T) {
	d := appended(rand.New(rand.NewPCG(1, 1)), 2, 1, 1, 20)
	d.shift(len(d.legs)-1, 1)
	d.reported(d.legs[len(d.legs)-1].Transaction, history.Unknown)
	for level, required := range map[isolation.Level]bool{isolation.ReadUncommitted: false, isolation.ReadCommitted: true, isolation.Unknown: true} {
		in := d.input()
		in.Expect = level
		list, err := Check(context.Background(), in)
		if err != nil {
			t.Fatal(err)
		}
		r := list[len(list)-1]
		if r.Name != Continuous || r.Status != check.Invalid || r.Required != required {
			t.Errorf("%v: %s is %v, required %v", level, r.Name, r.Status, r.Required)
		}
		if want := map[bool]check.Status{true: check.Invalid, false: check.Valid}[required]; check.Verdict(list) != want {
			t.Errorf("%v: the verdict is %v", level, check.Verdict(list))
		}
	}
}

func TestWithoutEndStateIsUndecided(t *testing.T) {
	d := appended(rand.New(rand.NewPCG(1, 1)), 2, 2, 2, 20)
	d.endless = true
	for name, r := range d.check(t) {
		if r.Status != check.Unknown || !r.Required || r.Why != (fact.NoEnd{}) {
			t.Errorf("%s is %v, required %v: %s", name, r.Status, r.Required, said(r))
		}
	}
}

// TestCutOffRecording checks that losses are reported, and that an append which may have been sent but not
// recorded is no ghost.
func TestCutOffRecording(t *testing.T) {
	d := appended(rand.New(rand.NewPCG(1, 1)), 1, 1, 2, 40)
	d.cut = true
	d.txns = d.txns[:30]
	for name, r := range d.check(t) {
		if want := map[bool]check.Status{true: check.Unknown, false: check.Valid}[name == check.NoGhost]; r.Status != want {
			t.Errorf("%s is %v: %s", name, r.Status, said(r))
		}
	}
	i, _ := d.pick(rand.New(rand.NewPCG(1, 1)), func(i int) bool { return d.legs[i].Transaction.Sequence() < 20 })
	d.legs = slices.Delete(d.legs, i, i+1)
	if r := d.check(t)[check.Durable]; r.Status != check.Invalid || len(r.Where) == 0 {
		t.Errorf("durable is %v with %d places: %s", r.Status, len(r.Where), said(r))
	}
}

// TestEarlyDownloadAccusesNobody checks an end state that may be older than the run.
func TestEarlyDownloadAccusesNobody(t *testing.T) {
	d := appended(rand.New(rand.NewPCG(1, 1)), 1, 1, 1, 40)
	d.early = []uint64{1}
	for _, tx := range d.txns { // appends that may still come
		there := slices.ContainsFunc(d.legs, func(l history.Row) bool { return l.Transaction == tx.ID })
		if tx.Outcome == history.Unknown && !there {
			tx.Outcome = history.Aborted
		}
	}
	if r := d.check(t)[check.Durable]; r.Status != check.Valid {
		t.Fatalf("durable is %v: %s", r.Status, said(r))
	}
	for d.outcome(d.legs[len(d.legs)-1].Transaction) != history.Committed {
		d.legs = d.legs[:len(d.legs)-1]
	}
	d.legs = d.legs[:len(d.legs)-1]
	for name, r := range d.check(t) {
		if r.Status != check.Unknown || r.Why != (fact.NoEnd{Run: 1}) {
			t.Errorf("%s is %v: %s", name, r.Status, said(r))
		}
	}
}

// TestEntriesOfAnUnknownRun checks that entries of a run without a recording make only the checks unknown
// that they may contradict, and that other violations are reported.
func TestEntriesOfAnUnknownRun(t *testing.T) {
	both := func() *diary {
		d := appended(rand.New(rand.NewPCG(1, 1)), 2, 1, 2, 20)
		d.txns = slices.DeleteFunc(d.txns, func(tx *history.Transaction) bool { return tx.ID.Client() == 0 })
		for j := range d.legs {
			if id := &d.legs[j].Transaction; id.Client() == 0 {
				*id = history.NewID(3, 0, id.Sequence())
			}
		}
		d.rename(0)
		return d
	}
	rests := map[string]bool{check.NoGhost: true, Whole: true, Order: true}
	results := both().check(t)
	for name, r := range results {
		want := map[bool]check.Status{true: check.Unknown, false: check.Valid}[rests[name]]
		others, _ := r.Why.(fact.OtherRuns)
		if r.Status != want || want == check.Unknown && (!slices.Equal(others.Runs, []uint64{3}) || others.More != 0 || others.Count == 0) {
			t.Errorf("%s is %v: %+v", name, r.Status, r.Why)
		}
	}
	for _, m := range mutants() {
		if !rests[m.check] {
			continue
		}
		d := both()
		if !m.spoil(rand.New(rand.NewPCG(1, 2)), d) {
			continue
		}
		if r := d.check(t)[m.check]; r.Status == check.Valid {
			t.Errorf("%s: %s is valid: %s", m.name, m.check, said(r))
		}
	}
}

func TestCancelledCheckReturnsTheCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	cancel(why)
	if _, err := Check(ctx, appended(rand.New(rand.NewPCG(1, 1)), 1, 1, 1, 10).input()); !errors.Is(err, why) {
		t.Errorf("the error is %v", err)
	}
}

// These are the kinds of transactions in the tests.
const (
	kindAppend = 1 * history.Numbered
)

// TestAlteredHistoryIsUnknown checks that an impossible history or download decides nothing.
func TestAlteredHistoryIsUnknown(t *testing.T) {
	committed := func(d *diary) *history.Transaction {
		i := slices.IndexFunc(d.txns, func(tx *history.Transaction) bool { return tx.Outcome == history.Committed })
		return d.txns[i]
	}
	event := func(d *diary) *history.Row {
		i := slices.IndexFunc(d.legs, func(l history.Row) bool { return l.Mark == 0 })
		return &d.legs[i]
	}
	tombstone := func(d *diary) *history.Row {
		i := slices.IndexFunc(d.legs, func(l history.Row) bool { return l.Mark == history.Tombstone })
		return &d.legs[i]
	}
	for name, alter := range map[string]func(d *diary){
		"an append of other bytes than its events":  func(d *diary) { committed(d).Ops[0].Amount++ },
		"an append of no bytes":                     func(d *diary) { committed(d).Ops[0].Amount = 0 },
		"an unknown append of other bytes":          func(d *diary) { tx := committed(d); d.reported(tx.ID, history.Unknown); tx.Ops[0].Amount-- },
		"an append that writes nothing":             func(d *diary) { committed(d).Ops[0].Write = false },
		"an acknowledged append without a place":    func(d *diary) { committed(d).Ops[0].Observed = false },
		"an append to two streams":                  func(d *diary) { tx := committed(d); tx.Ops = append(tx.Ops, tx.Ops[0]) },
		"an append that is missing":                 func(d *diary) { d.txns = slices.Delete(d.txns, 5, 6) },
		"an append that is there twice":             func(d *diary) { d.txns = append(d.txns, d.txns[3]) },
		"an event of no state":                      func(d *diary) { event(d).State = 0 },
		"an event that is absent":                   func(d *diary) { event(d).State = history.Absent },
		"a tombstone with bytes":                    func(d *diary) { tombstone(d).Amount = 7 },
		"an event with the mark of an opening":      func(d *diary) { event(d).Mark = history.Opening },
		"a damaged event and an append of no bytes": func(d *diary) { event(d).State = history.Broken; committed(d).Ops[0].Amount = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			d := appended(rand.New(rand.NewPCG(1, 1)), 2, 2, 2, 60)
			alter(d)
			for name, r := range d.check(t) {
				if _, unreadable := r.Why.(fact.Unreadable); r.Status != check.Unknown || !unreadable || !r.Required {
					t.Errorf("%s is %v, required %v: %s", name, r.Status, r.Required, said(r))
				}
			}
		})
	}
}

// TestPartOfAnAcknowledgedAppend checks that a partly present acknowledged batch breaks durable and whole.
func TestPartOfAnAcknowledgedAppend(t *testing.T) {
	d := appended(rand.New(rand.NewPCG(1, 1)), 1, 1, 3, 20)
	i, _ := d.pick(rand.New(rand.NewPCG(1, 1)), func(i int) bool { return d.legs[i].Number == 2 })
	id := fact.Member{ID: d.legs[i].Transaction}
	d.shift(i, -1)
	d.legs = slices.Delete(d.legs, i, i+1)
	results := d.check(t)
	for name, want := range map[string]fact.Fact{
		check.Durable: fact.LogLostPart{Append: id, Stream: "stream 0", Events: 3, Missing: 1},
		Whole:         fact.LogTorn{Append: id, Stream: "stream 0", Events: 3, Missing: 1},
	} {
		if r := results[name]; len(r.Findings) != 1 || r.Findings[0].Count != 1 || r.Findings[0].Instances[0] != want {
			t.Errorf("%s is %v: %+v", name, r.Status, r.Findings)
		}
	}
}

// TestAppendsAtOnePlaceAreNotBehindEachOther checks appends that were acknowledged one after the other at the same
// place. They overlap, and none of them is behind another one.
func TestAppendsAtOnePlaceAreNotBehindEachOther(t *testing.T) {
	d := appended(rand.New(rand.NewPCG(1, 1)), 1, 1, 1, 0)
	for i, id := range []history.ID{history.NewID(1, 0, 1), history.NewID(1, 1, 1), history.NewID(1, 1, 2)} {
		at := int64(100 - 10*i) // sorted by transaction, the latest comes first
		if id.Sequence() == 2 {
			at = 200
		}
		d.txns = append(d.txns, &history.Transaction{
			ID: id, Kind: kindAppend, Outcome: history.Committed, Attempts: 1, Due: at, Sent: at, Try: at, End: at + 1,
			Ops: []history.Op{{Object: 0, Write: true, Observed: true, Version: 0, Amount: lengthOf(id, 0)}},
		})
	}
	last := d.txns[2]
	d.legs = []history.Row{{Transaction: last.ID, State: history.Whole, Amount: lengthOf(last.ID, 0), Version: 1}}
	d.ends = []history.Object{{Version: 1, Writer: last.ID}}
	r := d.check(t)[Order]
	if r.Status != check.Invalid || len(r.Findings) != 1 || r.Findings[0].Count != 2 {
		t.Fatalf("order is %v: %+v", r.Status, r.Findings)
	}
	if _, ok := r.Findings[0].Instances[0].(fact.LogOverlap); !ok {
		t.Errorf("found %#v, not an overlap", r.Findings[0].Instances[0])
	}
}

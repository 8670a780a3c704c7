package stats

import (
	"iter"
	"reflect"
	"testing"
	"time"

	"stroppy/internal/history"
)

const acknowledgedKind = 1 * history.Numbered

// write returns a client's write with these times.
func write(client, sequence uint64, sent, end time.Duration) *history.Transaction {
	return &history.Transaction{
		ID: history.NewID(1, client, sequence), Kind: acknowledgedKind, Outcome: history.Committed,
		Try: int64(sent), End: int64(end), Ops: []history.Op{{Write: true}},
	}
}

// every adds a write of the client at each interval.
func every(a *Acknowledgements, client uint64, from, to, interval time.Duration, kept func(history.ID) bool) {
	for n := uint64(1); from <= to; n++ {
		a.Add(write(client, uint64(from/time.Millisecond), from-time.Millisecond, from), kept)
		from += interval
	}
}

const ms, s = time.Millisecond, time.Second

// TestAcknowledgedWritesCountForTheirServer checks that a write counts for the server of its client's
// session, and only if the server itself acknowledged it.
func TestAcknowledgedWritesCountForTheirServer(t *testing.T) {
	a := NewAcknowledgements(2, []Move{{0, 0, 0}, {1, 0, 0}, {0, int64(5 * s), 1}, {2, int64(s), -1}, {1 << 40, 0, 0}})
	lost := func(id history.ID) bool { return id.Client() != 1 || id.Sequence() < 3000 }
	every(a, 0, s, 2*s, 50*ms, lost)
	every(a, 0, 5*s, 7*s, 50*ms, lost)
	every(a, 1, s, 4*s, 50*ms, lost)
	every(a, 2, 0, 9*s, s, lost) // with a server that is not known
	for _, change := range []func(*history.Transaction){
		func(tx *history.Transaction) { tx.LookedUp = true },
		func(tx *history.Transaction) { tx.Kind |= history.ReadOnly },
		func(tx *history.Transaction) { tx.Ops[0].Write = false },
		func(tx *history.Transaction) { tx.Outcome = history.Unknown },
	} {
		tx := write(1, 9, 20*s, 20*s)
		change(tx)
		a.Add(tx, nil)
	}
	want := []Acknowledging{
		{Server: 0, From: s, To: 4 * s, LastBegun: 4*s - ms, Acknowledged: 21 + 61, Lost: 21, LostFrom: 3 * s},
		{Server: 1, From: 5 * s, To: 7 * s, LastBegun: 7*s - ms, Acknowledged: 41},
	}
	if got := a.Intervals(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// TestCountDuringIsExact checks that acknowledgements in an overlap are counted to the nanosecond.
func TestCountDuringIsExact(t *testing.T) {
	a := NewAcknowledgements(3, []Move{{0, 0, 0}, {1, 0, 1}, {2, 0, 2}})
	a.CountDuring([]Overlap{{3 * s, 3*s + 100*ms, [2]int{0, 1}}, {5 * s, 6 * s, [2]int{1, 2}}})
	for client := range uint64(2) {
		every(a, client, s, 4*s, 50*ms, func(id history.ID) bool { return id.Client() == 1 })
	}
	want := [][2]Acknowledging{
		{
			{Server: 0, From: 3 * s, To: 3*s + 100*ms, LastBegun: 3*s + 99*ms, Acknowledged: 3, Lost: 3, LostFrom: 3 * s},
			{Server: 1, From: 3 * s, To: 3*s + 100*ms, LastBegun: 3*s + 99*ms, Acknowledged: 3},
		},
		{{Server: 1}, {Server: 2}},
	}
	if got := a.During(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// TestOverlapsNeedEvidence checks that only evidence of two servers that accept writes is an overlap.
func TestOverlapsNeedEvidence(t *testing.T) {
	span := func(server int, from, to time.Duration) Acknowledging {
		return Acknowledging{Server: server, From: from, To: to, LastBegun: to - 10*ms}
	}
	for _, tc := range []struct {
		name      string
		intervals []Acknowledging
		leads     []Move
		want      []Overlap
	}{
		{"one after the other", []Acknowledging{span(0, 0, 5*s), span(1, 5*s+ms, 9*s), span(0, 11*s, 12*s)}, nil, nil},
		{"a late answer", []Acknowledging{span(0, 0, 5*s), span(1, 5*s-9*ms, 9*s)}, nil, nil},
		{"both", []Acknowledging{span(0, 0, 5*s), span(1, 3*s, 9*s)}, nil, []Overlap{{3 * s, 5*s - 10*ms, [2]int{0, 1}}}},
		{"both, as the leader was seen too", []Acknowledging{span(0, 0, 5*s), span(1, 3*s, 9*s)}, []Move{{At: int64(2 * s), Server: 1}}, []Overlap{{2 * s, 5*s - 10*ms, [2]int{0, 1}}}},
		{"no client came to the leader", []Acknowledging{span(0, 0, 5*s)}, []Move{{At: int64(3 * s), Server: 1}}, []Overlap{{3 * s, 5*s - 10*ms, [2]int{0, 1}}}},
		{"the leader was seen late", []Acknowledging{span(0, 0, 5*s), span(1, 6*s, 9*s)}, []Move{{At: int64(7 * s), Server: 1}}, nil},
		{"back, seen late", []Acknowledging{span(0, 0, 2*s), span(1, 3*s, 5*s), span(0, 6*s, 9*s)}, []Move{{At: int64(3 * s), Server: 1}, {At: int64(7 * s), Server: 0}}, nil},
		{"within the delay of who asks", []Acknowledging{span(0, 0, 5*s)}, []Move{{At: int64(4950 * ms), Server: 1}}, nil},
		{"a leader that is no known server", []Acknowledging{span(0, 0, 5*s)}, []Move{{At: int64(s), Server: -1}}, nil},
		{"nothing", nil, []Move{{At: 0, Server: 1}}, nil},
	} {
		if got := Overlaps(tc.intervals, tc.leads); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

func rowsOf(list ...history.Row) iter.Seq2[history.Row, error] {
	return func(yield func(history.Row, error) bool) {
		for _, row := range list {
			if !yield(row, nil) {
				return
			}
		}
	}
}

// TestKeptNeedsRowsOfTheRun checks that a missing transaction is lost only if the ledger has rows of its run.
func TestKeptNeedsRowsOfTheRun(t *testing.T) {
	id := func(run, client, sequence uint64) history.ID { return history.NewID(run, client, sequence) }
	other, own := history.Row{Transaction: id(1, 0, 5)}, history.Row{Transaction: id(2, 70, 129)}
	kept, err := KeptOf(rowsOf(other, own, history.Row{Transaction: id(2, 3, 4), Mark: history.Tombstone}), 2)
	if err != nil || kept == nil || !kept.Has(id(2, 70, 129)) || kept.Has(id(2, 70, 128)) || kept.Has(id(2, 3, 4)) || kept.Has(id(2, 71, 1)) || kept.Has(id(2, 70, 1<<31)) {
		t.Errorf("%+v, %v", kept, err)
	}
	for name, rows := range map[string]iter.Seq2[history.Row, error]{
		"no row": rowsOf(other), "not kept": rowsOf(own, history.Row{Transaction: id(2, 0, 0), Mark: history.Unkept}),
		"too much": rowsOf(own, history.Row{Transaction: id(2, 0, 1<<32-1)}, history.Row{Transaction: id(2, 1, 1<<32-1)}),
	} {
		if kept, err := KeptOf(rows, 2); kept != nil || err != nil {
			t.Errorf("%s: %v, %v", name, kept, err)
		}
	}
}

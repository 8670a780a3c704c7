package registers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/anishathalye/porcupine"

	"stroppy/internal/history"
)

// erratic returns a short history on two records, one of them from the load. Reads return random written
// values, so most are wrong.
func erratic(rng *rand.Rand, count int, honest float64) *store {
	s := newStore(1)
	records := []uint64{0, numberOfInsert(0)}
	type value struct {
		state history.State
		last  history.ID
	}
	past := map[uint64][]value{0: {{history.Whole, 0}}, records[1]: {{history.Absent, 0}}}
	draw := func(n uint64) value {
		list := past[n]
		if rng.Float64() < honest {
			return list[len(list)-1]
		}
		return list[rng.IntN(len(list))]
	}
	for i := range count {
		n := records[rng.IntN(2)]
		kinds := []history.Kind{kindGet, kindGet, kindPut, kindModify}
		if n != 0 && len(past[n]) == 1 {
			kinds = append(kinds, kindInsert)
		}
		at := int64(i*10) + rng.Int64N(25)
		tx := history.Transaction{
			ID: history.NewID(1, uint64(i%3), uint64(i/3+1)), Kind: kinds[rng.IntN(len(kinds))], Outcome: history.Committed,
			Sent: at - rng.Int64N(3), Try: at, End: at + rng.Int64N(40),
		}
		op := history.Op{Object: n}
		if tx.Kind != kindPut {
			v := draw(n)
			if tx.Kind == kindInsert {
				v = past[n][0]
			}
			op.Observed, op.State, op.Writer = true, v.state, v.last
			if v.state == history.Whole {
				op.Value = valueBytes
			}
			if tx.Kind == kindModify && v.state == history.Absent {
				tx.Kind = kindGet // there is nothing to modify
			}
		}
		if tx.Kind != kindGet {
			op.Write, op.Amount = true, valueBytes
			tx.Outcome = []history.Outcome{history.Committed, history.Committed, history.Committed, history.Unknown, history.Aborted}[rng.IntN(5)]
			if tx.Outcome != history.Aborted || rng.IntN(4) == 0 {
				past[n] = append(past[n], value{history.Whole, tx.ID})
			}
		}
		tx.Ops = []history.Op{op}
		s.Txns = append(s.Txns, tx)
	}
	s.ObjectRows = nil
	for _, n := range records {
		if v := draw(n); v.state == history.Whole {
			s.ObjectRows = append(s.ObjectRows, history.Object{N: n, Value: valueBytes, State: history.Whole, Writer: v.last})
		}
	}
	return s
}

// definitions implements the definitions of the checks by pairwise comparison.
type definitions struct{ s *store }

func (o definitions) write(n uint64, id history.ID) *history.Transaction {
	for i := range o.s.Txns {
		if tx := &o.s.Txns[i]; tx.ID == id && tx.Ops[0].Write && tx.Ops[0].Object == n {
			return tx
		}
	}
	return nil
}

// returned reports whether a committed transaction saw the value of an ID in record n. ID 0 stands for the
// initial value.
func (o definitions) returned(tx *history.Transaction, n uint64, id history.ID) bool {
	op := &tx.Ops[0]
	return tx.Outcome == history.Committed && op.Observed && op.Object == n && op.Writer == id
}

// known returns the time at which a value was certainly written, or the greatest number if it never was.
func (o definitions) known(n uint64, id history.ID) int64 {
	if id == 0 {
		return math.MinInt64
	}
	at, w := int64(math.MaxInt64), o.write(n, id)
	if w.Outcome == history.Committed {
		at = w.End
	}
	for i := range o.s.Txns {
		if o.returned(&o.s.Txns[i], n, id) && o.s.Txns[i].End >= w.Try { // otherwise the value is from an earlier try
			at = min(at, o.s.Txns[i].End)
		}
		// An unknown modify had read the value that it replaced.
		tx := &o.s.Txns[i]
		if op := &tx.Ops[0]; tx.Outcome == history.Unknown && op.Object == n && op.Observed && op.Writer == id {
			if seen := o.known(n, tx.ID); seen >= w.Try {
				at = min(at, seen)
			}
		}
	}
	return at
}

// refused reports whether a value was written by a transaction that was reported as not applied.
func (o definitions) refused(n uint64, id history.ID) bool {
	return id != 0 && !o.missing(n, id) && o.write(n, id).Outcome == history.Aborted
}

// missing reports whether the history lacks the writer of a value.
func (o definitions) missing(n uint64, id history.ID) bool { return id != 0 && o.write(n, id) == nil }

// stale counts the reads that a write had overtaken.
func (o definitions) stale() int {
	count := 0
	for i := range o.s.Txns {
		r := &o.s.Txns[i]
		op := &r.Ops[0]
		lost := op.State == history.Absent && o.s.loaded > op.Object
		if r.Outcome != history.Committed || !op.Observed || lost || o.refused(op.Object, op.Writer) || o.missing(op.Object, op.Writer) {
			continue
		}
		if o.overtaken(op.Object, op.Writer, r.Try, false) {
			count++
		}
	}
	return count
}

// overtaken reports whether a later write had certainly been written before a time. That write must have
// begun after the value was certainly written.
func (o definitions) overtaken(n uint64, id history.ID, before int64, acknowledged bool) bool {
	known := o.known(n, id)
	for i := range o.s.Txns {
		w := &o.s.Txns[i]
		if !w.Ops[0].Write || w.Ops[0].Object != n || w.Outcome == history.Aborted || acknowledged && w.Outcome != history.Committed {
			continue
		}
		if o.known(n, w.ID) < before && w.Try > known {
			return true
		}
	}
	return false
}

// vanished reports whether an acknowledged write is wrongly missing from the end state.
func (o definitions) vanished(n uint64) bool {
	a := o.s.at(n)
	switch {
	case a == nil && n < o.s.loaded:
		return true
	case a == nil:
		return o.overtaken(n, 0, math.MaxInt64, true)
	case o.refused(n, a.Writer):
		return false // a ghost
	}
	return o.overtaken(n, a.Writer, math.MaxInt64, true)
}

// operation is the input of porcupine for one transaction.

type operation struct {
	read, write bool
	unknown     bool
	saw, wrote  history.ID
}

var model = porcupine.Model{
	Init: func() any { return history.ID(0) },
	Step: func(state, input, _ any) (bool, any) {
		in := input.(operation)
		switch {
		case in.read && state.(history.ID) != in.saw:
			return in.unknown, state // an unknown write may not have been applied
		case in.write:
			return true, in.wrote
		}
		return true, state
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprint(input) },
}

// linearizable asks porcupine, which tries all orders, whether a record has one. It omits reads that no order
// can explain, because other checks report them.
func (o definitions) linearizable(n uint64) bool {
	var list []porcupine.Operation
	for i := range o.s.Txns {
		tx := &o.s.Txns[i]
		op := &tx.Ops[0]
		if op.Object != n || tx.Outcome == history.Aborted {
			continue
		}
		in := operation{read: op.Observed, write: op.Write, unknown: tx.Outcome == history.Unknown, saw: op.Writer, wrote: tx.ID}
		if in.read && (o.refused(n, op.Writer) || o.missing(n, op.Writer) || op.State == history.Absent && n < o.s.loaded) {
			in.read = false
		}
		end := tx.End
		if in.unknown {
			end = math.MaxInt64
		}
		list = append(list, porcupine.Operation{ClientId: i, Input: in, Call: tx.Try, Return: end})
	}
	return porcupine.CheckOperations(model, list)
}

// TestChecksAgainstDefinitions compares the checks with their definitions and with porcupine, on histories of
// which most are wrong.
func TestChecksAgainstDefinitions(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	counts := map[string]int{}
	for i := range 20_000 {
		s := erratic(rng, 3+rng.IntN(9), rng.Float64())
		o := definitions{s}
		k := newChecker(t.Context(), s.input())
		if err := k.read(); err != nil {
			t.Fatal(err)
		}
		for key := range k.keys {
			n := k.keys[key].n
			want := o.linearizable(n)
			counts[fmt.Sprintf("linearizable %v", want)]++
			if got := !k.keys[key].broken; got != want {
				t.Fatalf("history %d: record %d is linearizable: %v, and porcupine says %v\n%s\n%s", i, n, got, want, k.foundText(disordered), storeText(s))
			}
			lost := o.vanished(n)
			counts[fmt.Sprintf("lost %v", lost)]++
		}
		records := 0
		for _, n := range []uint64{0, numberOfInsert(0)} {
			if o.vanished(n) {
				records++
			}
		}
		if got := k.found[vanished].Count + k.found[endMissing].Count; records != got {
			t.Fatalf("history %d: %d records have lost a write, and by the definition %d: %s\n%s", i, got, records, k.foundText(vanished), storeText(s))
		}
		want := o.stale()
		counts[fmt.Sprintf("stale %v", want > 0)]++
		if k.found[stale].Count != want {
			t.Fatalf("history %d: %d stale reads, and by the definition %d: %s\n%s", i, k.found[stale].Count, want, k.foundText(stale), storeText(s))
		}
	}
	for name, n := range counts {
		t.Logf("%s: %d", name, n)
		if n < 1000 {
			t.Errorf("only %d histories are %s", n, name)
		}
	}
	if len(counts) != 6 {
		t.Errorf("some outcomes never came up: %v", counts)
	}
}

func storeText(s *store) (text string) {
	for _, tx := range s.Txns {
		op := tx.Ops[0]
		text += fmt.Sprintf("%v %v %v [%d, %d] record %d", tx.ID, tx.Kind, tx.Outcome, tx.Try, tx.End, op.Object)
		if op.Observed {
			text += fmt.Sprintf(" saw %d of %v", op.State, op.Writer)
		}
		text += "\n"
	}
	return text + fmt.Sprintf("end %+v\n", s.ObjectRows)
}

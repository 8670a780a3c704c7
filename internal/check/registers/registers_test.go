package registers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/text"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// store runs transactions of kv one after another, 1 µs apart, and records what a correct database would have
// shown. Tests then falsify the record. Records below loaded come from the load; their positions are their
// numbers.
type store struct {
	checktest.History
	checktest.End
	loaded uint64
	now    int64
	next   uint64
}

// kvChecks lists the names of the checks in their order.
var kvChecks = []string{Values, Fresh, NoLostUpdate, Scans, Linearizable, check.Durable, check.NoGhost}

func newStore(loaded uint64) *store {
	s := &store{History: checktest.History{Run: 1}, loaded: loaded}
	for n := range loaded {
		s.ObjectRows = append(s.ObjectRows, history.Object{N: n, Value: valueBytes, State: history.Whole})
	}
	return s
}

func (s *store) input() Input {
	return Input{
		Input: check.Input{
			Expect: isolation.StrictSerializable, Name: func(n uint64) string { return fmt.Sprintf("key %d", n) },
			History: []check.Source{&s.History}, End: &s.End,
		},
		Records: s.loaded, Place: func(n uint64) uint64 { return n }, At: func(place uint64) uint64 { return place },
		Insert: kindInsert, Modify: kindModify, Scan: kindScan, Bytes: valueBytes,
	}
}

// valueBytes is the length of all values in these tests.
const valueBytes = 64

// say writes the sentences of failures.
var say = text.Speaker{Words: check.Words{One: "transaction"}}

// said returns the text of a result for messages.
func said(r check.Result) string { return say.Detail(&r) }

// foundText returns the findings of one kind as text.
func (k *checker) foundText(of kind) string {
	if k.found[of].Count == 0 {
		return "nothing"
	}
	return say.Finding(&k.found[of])
}

func (s *store) at(n uint64) *history.Object {
	i := slices.IndexFunc(s.ObjectRows, func(a history.Object) bool { return a.N == n })
	if i < 0 {
		return nil
	}
	return &s.ObjectRows[i]
}

// do runs one transaction on record n. A scan reads limit records from n on.
func (s *store) do(kind history.Kind, n uint64, limit int) *history.Transaction {
	s.now += 1000
	s.next++
	tx := history.Transaction{
		ID: history.NewID(s.Run, 0, s.next), Kind: kind, Outcome: history.Committed, Attempts: 1,
		Due: s.now, Sent: s.now, Try: s.now, End: s.now + 500,
	}
	see := func(n uint64) history.Op {
		if a := s.at(n); a != nil {
			return history.Op{Object: n, Observed: true, State: a.State, Value: a.Value, Writer: a.Writer}
		}
		return history.Op{Object: n, Observed: true, State: history.Absent}
	}
	op := history.Op{Object: n}
	if kind != kindPut {
		op = see(n)
	}
	switch kind {
	case kindPut, kindModify, kindInsert:
		op.Write, op.Amount = true, valueBytes
		if a := s.at(n); a != nil {
			a.Writer = tx.ID
		} else {
			s.ObjectRows = append(s.ObjectRows, history.Object{N: n, Value: valueBytes, State: history.Whole, Writer: tx.ID})
		}
		tx.Ops = []history.Op{op}
	case kindScan:
		tx.Limit = uint32(limit)
		tx.Ops = []history.Op{op}
		var rest []uint64
		for _, a := range s.ObjectRows {
			if a.N > n {
				rest = append(rest, a.N)
			}
		}
		slices.Sort(rest)
		if op.State == history.Whole {
			limit--
		}
		for _, m := range rest[:min(limit, len(rest))] {
			tx.Ops = append(tx.Ops, see(m))
		}
	default:
		tx.Ops = []history.Op{op}
	}
	s.Txns = append(s.Txns, tx)
	return &s.Txns[len(s.Txns)-1]
}

// busyStore returns a store on which every operation was done once or twice.
func busyStore() *store {
	s := newStore(4)
	insert := numberOfInsert(0)
	for range 2 {
		s.do(kindGet, 0, 0)
		s.do(kindPut, 0, 0)
		s.do(kindGet, 0, 0)
		s.do(kindModify, 1, 0)
		s.do(kindModify, 1, 0)
		s.do(kindGet, insert, 0)
		s.do(kindInsert, insert, 0)
		s.do(kindGet, insert, 0)
		s.do(kindScan, 1, 3)
		s.do(kindScan, 3, 9)
		insert = numberOfInsert(1)
	}
	return s
}

func numberOfInsert(i uint64) uint64 { return 1<<48 | i }

func (s *store) tx(kind history.Kind, nth int) *history.Transaction {
	for i := range s.Txns {
		if s.Txns[i].Kind == kind {
			if nth == 0 {
				return &s.Txns[i]
			}
			nth--
		}
	}
	return nil
}

func checkKV(t *testing.T, in Input) map[string]check.Result {
	t.Helper()
	results, err := Check(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]check.Result{}
	for _, r := range results {
		for i := range r.Findings {
			if wrong := misexplained(&r.Findings[i], len(in.History) == 1); wrong != "" {
				t.Errorf("%s: %s: %+v", r.Name, wrong, r.Findings[i])
			}
		}
		if (r.Status == check.Invalid) != (len(r.Witness) > 0 || r.Status == check.Invalid && r.Name == check.Durable || r.Status == check.Invalid && r.Name == check.NoGhost) {
			t.Errorf("%s is %v with the witnesses %v", r.Name, r.Status, r.Witness)
		}
		if (r.Why == nil) != (r.Status == check.Invalid) || (len(r.Findings) > 0) != (r.Status == check.Invalid) {
			t.Errorf("%s is %v because of %v, and has %d findings", r.Name, r.Status, r.Why, len(r.Findings))
		}
		byName[r.Name] = r
	}
	return byName
}

// misexplained describes the error in a finding, and is empty if there is none. The edges must form a closed
// path or a single read. The transactions must be in the order of time.
func misexplained(f *check.Finding, explained bool) string {
	if explained && f.Anomaly != "" && f.Cycle == nil {
		return "it is not explained"
	}
	for i, e := range f.Cycle {
		if next := f.Cycle[(i+1)%len(f.Cycle)]; len(f.Cycle) > 1 && e.To != next.From || e.Why == nil || e.Kind == 0 {
			return fmt.Sprintf("edge %d does not lead to the next one, or has no reason", i+1)
		}
	}
	if !slices.IsSortedFunc(f.Spans, func(x, y check.Span) int { return cmp.Compare(x.Begin, y.Begin) }) {
		return "its transactions are not in the order of time"
	}
	for _, s := range f.Spans {
		if !slices.ContainsFunc(f.Cycle, func(e check.Edge) bool { return e.From == s.ID || e.To == s.ID }) || len(s.Did) == 0 {
			return fmt.Sprintf("%v is in no edge, or did nothing", s.ID)
		}
	}
	for _, what := range f.Instances {
		if what.Fact() != f.Kind() {
			return fmt.Sprintf("%s and %s are in one finding", what.Fact(), f.Kind())
		}
	}
	return ""
}

func TestCorrectStoreIsValid(t *testing.T) {
	results := checkKV(t, busyStore().input())
	var names []string
	for _, about := range kvChecks {
		names = append(names, about)
		if r := results[about]; r.Status != check.Valid || !r.Required {
			t.Errorf("%s is %v, required %v: %s", r.Name, r.Status, r.Required, said(r))
		}
	}
	if len(results) != len(names) {
		t.Errorf("%d checks were made and %d are described", len(results), len(names))
	}
}

// kvLies holds single false records of a store, and the checks that must detect each. All other checks must
// stay valid.
var kvLies = []struct {
	name    string
	bend    func(s *store)
	invalid []string
}{
	{"a broken value", func(s *store) { s.tx(kindGet, 0).Ops[0].State = history.Broken }, []string{Values}},
	{"a value of another length", func(s *store) { s.tx(kindGet, 0).Ops[0].Value-- }, []string{Values}},
	{"a value of another length than a transaction wrote", func(s *store) { s.tx(kindGet, 1).Ops[0].Value++ }, []string{Values}},
	{"a value of another length in a scan", func(s *store) { s.tx(kindScan, 0).Ops[1].Value = 0 }, []string{Values}},
	{"a value of another length before a write", func(s *store) { s.tx(kindModify, 0).Ops[0].Value *= 2 }, []string{Values}},
	{"a record of the load of another length", func(s *store) { s.at(3).Value-- }, []string{check.Durable}},
	{"a record of another length than a transaction wrote", func(s *store) { s.at(0).Value++ }, []string{check.Durable}},
	{"a value of nobody", func(s *store) { s.tx(kindGet, 0).Ops[0].Writer = history.NewID(1, 9, 9) }, []string{Values}},
	{"a value of another record", func(s *store) { s.tx(kindGet, 0).Ops[0].Writer = s.tx(kindModify, 0).ID }, []string{Values}},
	{"no record of the load", func(s *store) {
		op := &s.tx(kindGet, 0).Ops[0]
		op.State, op.Value = history.Absent, 0
	}, []string{Values}},
	{"a value of the load in an insert's record", func(s *store) {
		op := &s.tx(kindGet, 2).Ops[0]
		op.State, op.Writer = history.Whole, 0
	}, []string{Values}},
	{"a dirty read", func(s *store) {
		// A refused write that another transaction read.
		s.do(kindPut, 2, 0).Outcome = history.Aborted
		s.do(kindGet, 2, 0)
		s.at(2).Writer = 0
	}, []string{Values}},
	{"a read of an earlier try", func(s *store) {
		put := s.do(kindPut, 2, 0)
		get := s.do(kindGet, 2, 0)
		put.Try, put.End = get.End+100, get.End+200
	}, []string{Values, Linearizable}},
	{"a foreign key in a scan", func(s *store) {
		tx := s.tx(kindScan, 1)
		tx.Ops = append(tx.Ops, history.Op{Observed: true, State: history.Foreign})
	}, []string{Values}},
	{"a stale read", func(s *store) { s.tx(kindGet, 1).Ops[0].Writer = 0 }, []string{Fresh, Linearizable}},
	{"an insert that is not seen", func(s *store) {
		op := &s.tx(kindGet, 3).Ops[0]
		op.State, op.Writer, op.Value = history.Absent, 0, 0
	}, []string{Fresh, Linearizable}},
	{"a lost update", func(s *store) { s.tx(kindModify, 1).Ops[0].Writer = 0 }, []string{NoLostUpdate, Fresh, Linearizable}},
	{"a write between a modify's read and its write", func(s *store) {
		a := s.do(kindPut, 2, 0)
		m := s.do(kindModify, 2, 0)
		p := s.do(kindPut, 2, 0)
		g := s.do(kindGet, 2, 0) // sees p; m came after p and had read the value before p
		last := s.do(kindGet, 2, 0)
		last.Ops[0].Writer, s.at(2).Writer = m.ID, m.ID
		m.End = last.End
		_, _, _ = a, p, g
	}, []string{Linearizable}},
	{"a scan without a record of the load", func(s *store) {
		tx := s.tx(kindScan, 0)
		tx.Ops = slices.Delete(tx.Ops, 1, 2)
	}, []string{Scans}},
	{"a scan without its first record", func(s *store) {
		op := &s.tx(kindScan, 0).Ops[0]
		op.State, op.Writer, op.Value = history.Absent, 0, 0
	}, []string{Scans}},
	{"a scan without an insert", func(s *store) {
		tx := s.tx(kindScan, 1)
		tx.Ops = tx.Ops[:1]
	}, []string{Scans}},
	{"a scan out of order", func(s *store) {
		ops := s.tx(kindScan, 0).Ops
		ops[1], ops[2] = ops[2], ops[1]
	}, []string{Scans}},
	{"a scan that brings too many", func(s *store) { s.tx(kindScan, 0).Limit = 2 }, []string{Scans}},
	{"an acknowledged write that is gone", func(s *store) {
		s.do(kindPut, 2, 0)
		s.at(2).Writer = 0
	}, []string{check.Durable}},
	{"an acknowledged write replaced by the one before", func(s *store) { s.at(0).Writer = s.tx(kindPut, 0).ID }, []string{check.Durable}},
	{"an acknowledged insert that is gone", func(s *store) {
		s.ObjectRows = slices.DeleteFunc(s.ObjectRows, func(a history.Object) bool { return a.N == numberOfInsert(0) })
	}, []string{check.Durable}},
	{"a record of the load that is gone", func(s *store) { s.ObjectRows = slices.Delete(s.ObjectRows, 3, 4) }, []string{check.Durable}},
	{"another record twice in its place", func(s *store) { s.ObjectRows[3].N = 2 }, []string{check.Durable}},
	{"a record twice", func(s *store) { s.ObjectRows = append(s.ObjectRows, s.ObjectRows[3]) }, []string{check.Durable}},
	{"a damaged record", func(s *store) { s.at(0).State = history.Broken }, []string{check.Durable}},
	{"an unexpected row", func(s *store) { s.UnexpectedRows = []string{"a key"} }, []string{check.NoGhost}},
	{"a record that nobody inserted", func(s *store) {
		s.ObjectRows = append(s.ObjectRows, history.Object{N: numberOfInsert(7), State: history.Whole, Writer: history.NewID(1, 0, 77)})
	}, []string{check.NoGhost}},
	{"a value that nobody wrote", func(s *store) { s.at(3).Writer = history.NewID(1, 0, 77) }, []string{check.NoGhost}},
	{"a write that was refused and is there", func(s *store) { s.do(kindPut, 2, 0).Outcome = history.Aborted }, []string{check.NoGhost}},
	{"a refused insert that is there", func(s *store) { s.do(kindInsert, numberOfInsert(5), 0).Outcome = history.Aborted }, []string{check.NoGhost}},
}

func TestEachFalseRecordIsDetected(t *testing.T) {
	for _, c := range kvLies {
		t.Run(c.name, func(t *testing.T) {
			s := busyStore()
			c.bend(s)
			reported := map[string]int{}
			in := s.input()
			in.OnViolation = func(v check.Violation) {
				reported[v.Check]++
				if v.Fact == nil || v.Transaction == 0 && v.Account == "" && v.Check != check.Durable && v.Check != check.NoGhost {
					t.Errorf("a violation has no fact: %+v", v)
				}
			}
			for name, r := range checkKV(t, in) {
				if bad := slices.Contains(c.invalid, name); bad != (r.Status == check.Invalid) || !bad && r.Status != check.Valid {
					t.Errorf("%s is %v: %s", name, r.Status, said(r))
				} else if bad && !r.Required {
					t.Errorf("%s does not count at strict serializability", name)
				} else if bad != (reported[name] > 0) {
					t.Errorf("%s is %v and %d violations were reported", name, r.Status, reported[name])
				}
			}
		})
	}
}

// TestAlteredHistoryIsUnknown checks that a history which no client could have recorded decides nothing.
func TestAlteredHistoryIsUnknown(t *testing.T) {
	for name, alter := range map[string]func(s *store){
		"a write of another length":             func(s *store) { s.tx(kindPut, 0).Ops[0].Amount++ },
		"an unknown write of another length":    func(s *store) { s.tx(kindPut, 0).Outcome, s.tx(kindPut, 0).Ops[0].Amount = history.Unknown, 1 },
		"a write that does not write":           func(s *store) { s.tx(kindPut, 0).Ops[0].Write = false },
		"a read that writes":                    func(s *store) { s.tx(kindGet, 0).Ops[0].Write = true },
		"a read that saw nothing":               func(s *store) { s.tx(kindGet, 0).Ops[0].Observed = false },
		"a scan that saw nothing of one":        func(s *store) { s.tx(kindScan, 0).Ops[1].Observed = false },
		"a scan without an operation":           func(s *store) { s.tx(kindScan, 0).Ops = nil },
		"a read of two records":                 func(s *store) { tx := s.tx(kindGet, 0); tx.Ops = append(tx.Ops, tx.Ops[0]) },
		"a write of two records":                func(s *store) { tx := s.tx(kindPut, 0); tx.Ops = append(tx.Ops, tx.Ops[0]) },
		"an insert of a record that was there":  func(s *store) { s.tx(kindInsert, 0).Ops[0].State = history.Whole },
		"an update of a record that was not":    func(s *store) { s.tx(kindModify, 0).Ops[0].State = history.Absent },
		"an update that had read nothing":       func(s *store) { s.tx(kindModify, 0).Ops[0].Observed = false },
		"a rejected write that found a record":  func(s *store) { s.tx(kindModify, 0).Outcome = history.Rejected },
		"a transaction that is missing":         func(s *store) { s.Txns = slices.Delete(s.Txns, 5, 6) },
		"the first transaction is missing":      func(s *store) { s.Txns = s.Txns[1:] },
		"a read that is there twice":            func(s *store) { s.Txns = append(s.Txns, *s.tx(kindGet, 0)) },
		"a write that is there twice":           func(s *store) { s.Txns = append(s.Txns, *s.tx(kindPut, 0)) },
		"a value in place of a missing one":     func(s *store) { s.Txns[5].ID = s.Txns[4].ID },
		"a broken value and a missing write":    func(s *store) { s.tx(kindGet, 0).Ops[0].State = history.Broken; s.Txns = slices.Delete(s.Txns, 5, 6) },
		"a ghost and a write of another length": func(s *store) { s.at(3).Writer = history.NewID(1, 0, 77); s.tx(kindPut, 0).Ops[0].Amount++ },
	} {
		t.Run(name, func(t *testing.T) {
			s := busyStore()
			alter(s)
			for name, r := range checkKV(t, s.input()) {
				if _, unreadable := r.Why.(fact.Unreadable); r.Status != check.Unknown || !unreadable {
					t.Errorf("%s is %v: %s", name, r.Status, said(r))
				}
			}
		})
	}
}

// TestLookedUpUpdateMayHaveReadNothing covers a look-up that finds the value of an earlier try which was
// reported as not applied. The last try then read nothing.
func TestLookedUpUpdateMayHaveReadNothing(t *testing.T) {
	s := busyStore()
	tx := s.do(kindModify, 1, 0)
	tx.LookedUp, tx.Ops[0] = true, history.Op{Object: 1, Write: true, Amount: valueBytes}
	if r := checkKV(t, s.input())[Values]; r.Status != check.Valid {
		t.Errorf("values is %v: %s", r.Status, said(r))
	}
}

// TestLengthsByFormula uses values whose length depends on the record and the writer.
func TestLengthsByFormula(t *testing.T) {
	length := func(n uint64, writer history.ID) int64 { return 64 + int64(n%5) + int64(writer.Sequence()%7) }
	s := busyStore()
	fit := func(op *history.Op) {
		if op.State == history.Whole {
			op.Value = length(op.Object, op.Writer)
		}
	}
	for i := range s.Txns {
		for j := range s.Txns[i].Ops {
			op := &s.Txns[i].Ops[j]
			if fit(op); op.Write {
				op.Amount = length(op.Object, s.Txns[i].ID)
			}
		}
	}
	for i := range s.ObjectRows {
		s.ObjectRows[i].Value = length(s.ObjectRows[i].N, s.ObjectRows[i].Writer)
	}
	in := s.input()
	in.Bytes, in.Length = 0, length
	for name, r := range checkKV(t, in) {
		if r.Status != check.Valid {
			t.Errorf("%s is %v: %s", name, r.Status, said(r))
		}
	}
	s.tx(kindGet, 1).Ops[0].Value++
	s.at(3).Value++
	results := checkKV(t, in)
	for _, name := range []string{Values, check.Durable} {
		if r := results[name]; r.Status != check.Invalid {
			t.Errorf("%s is %v: %s", name, r.Status, said(r))
		}
	}
}

// TestStaleReadHasTheTimeOfItsWrite checks that the finding names, of two missed writes, the one that began
// last, with the time of its acknowledgment.
func TestStaleReadHasTheTimeOfItsWrite(t *testing.T) {
	s := newStore(1)
	put := func(client uint64, try, end int64) {
		s.Txns = append(s.Txns, history.Transaction{
			ID: history.NewID(1, client, 1), Kind: kindPut, Outcome: history.Committed, Sent: try, Try: try, End: end,
			Ops: []history.Op{{Object: 0, Write: true, Amount: valueBytes}},
		})
	}
	put(0, 100, 200)
	put(1, 50, 900)
	s.Txns = append(s.Txns, history.Transaction{
		ID: history.NewID(1, 2, 1), Kind: kindGet, Outcome: history.Committed, Sent: 1000, Try: 1000, End: 1100,
		Ops: []history.Op{{Object: 0, Observed: true, State: history.Whole, Value: valueBytes}},
	})
	s.ObjectRows[0].Writer = history.NewID(1, 1, 1)
	want := fact.RegisterStaleRead{
		Reader: fact.Member{ID: history.NewID(1, 2, 1)}, Object: "key 0", By: fact.Member{ID: history.NewID(1, 0, 1)}, Ago: 800,
	}
	r := checkKV(t, s.input())[Fresh]
	if len(r.Findings) != 1 || r.Findings[0].Instances[0] != want {
		t.Errorf("%+v", r.Findings)
	}
}

// TestValuesReadAreCounted checks that a transaction that finds no record reads no value.
func TestValuesReadAreCounted(t *testing.T) {
	s := newStore(2)
	s.do(kindInsert, numberOfInsert(0), 0)
	s.do(kindGet, numberOfInsert(1), 0)
	results := checkKV(t, s.input())
	if r := results[Values]; r.Status != check.NotApplicable || r.Why != (fact.Nothing{Noun: "value", Verb: "read"}) {
		t.Errorf("values is %v: %+v", r.Status, r.Why)
	}
	if r := results[Fresh]; r.Status != check.Valid {
		t.Errorf("fresh is %v: %+v", r.Status, r.Why)
	}
	s.do(kindGet, 0, 0)
	s.do(kindGet, 1, 0)
	if r := checkKV(t, s.input())[Values]; r.Why != (fact.RegisterValues{Values: 2}) {
		t.Errorf("values: %+v", r.Why)
	}
}

// TestUnusualHistoriesAreAllowed covers unusual records that are not violations.
func TestUnusualHistoriesAreAllowed(t *testing.T) {
	for name, bend := range map[string]func(s *store){
		"an unknown write that never came": func(s *store) {
			last := s.at(2).Writer
			s.do(kindPut, 2, 0).Outcome = history.Unknown
			s.at(2).Writer = last
			s.do(kindGet, 2, 0)
		},
		"an unknown write that comes late": func(s *store) {
			s.do(kindPut, 2, 0).Outcome = history.Unknown
			s.at(2).Writer = 0
			s.do(kindGet, 2, 0)
			s.at(2).Writer = s.tx(kindPut, 2).ID
			s.do(kindGet, 2, 0)
		},
		"an unknown write in place of an acknowledged one": func(s *store) {
			u := s.do(kindPut, 2, 0)
			u.Outcome = history.Unknown
			id := u.ID
			s.do(kindPut, 2, 0)
			s.at(2).Writer = id
		},
		"one of two at the same time": func(s *store) {
			a, id := s.do(kindPut, 2, 0), history.ID(0)
			id = a.ID
			a.End += 5000
			s.do(kindPut, 2, 0)
			s.at(2).Writer = id
		},
		"an unknown insert": func(s *store) {
			s.do(kindInsert, numberOfInsert(5), 0).Outcome = history.Unknown
			s.ObjectRows = s.ObjectRows[:len(s.ObjectRows)-1]
		},
		"a put that finds no record": func(s *store) {
			tx := s.do(kindPut, numberOfInsert(5), 0)
			tx.Outcome, tx.Reason = history.Rejected, noSuchRecord
			tx.Ops[0].Observed, tx.Ops[0].State = true, history.Absent
			s.ObjectRows = s.ObjectRows[:len(s.ObjectRows)-1]
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := busyStore()
			bend(s)
			for name, r := range checkKV(t, s.input()) {
				if r.Status != check.Valid {
					t.Errorf("%s is %v: %s", name, r.Status, said(r))
				}
			}
		})
	}
}

// TestRequiredByClaim checks which violations count for each claim.
func TestRequiredByClaim(t *testing.T) {
	bend := map[string]func(s *store){}
	for _, b := range kvLies {
		bend[b.name] = b.bend
	}
	for _, c := range []struct {
		lie   string
		check string
		from  isolation.Level // the weakest claim at which it counts
	}{
		{"a broken value", Values, isolation.ReadUncommitted},
		{"a dirty read", Values, isolation.ReadCommitted},
		{"a lost update", NoLostUpdate, isolation.SnapshotIsolation},
		{"a stale read", Fresh, isolation.StrictSerializable},
		{"a stale read", Linearizable, isolation.StrictSerializable},
		{"a scan without a record of the load", Scans, isolation.ReadUncommitted},
		{"a scan without an insert", Scans, isolation.StrictSerializable},
		{"an acknowledged write that is gone", check.Durable, isolation.ReadUncommitted},
		{"a write that was refused and is there", check.NoGhost, isolation.ReadUncommitted},
	} {
		for _, level := range isolation.Levels() {
			s := busyStore()
			bend[c.lie](s)
			in := s.input()
			in.Expect = level
			if r := checkKV(t, in)[c.check]; r.Status != check.Invalid || r.Required != level.Includes(c.from) {
				t.Errorf("%s at %v: %s is %v, required %v", c.lie, level, c.check, r.Status, r.Required)
			}
		}
	}
}

// TestMissingInputIsUndecided checks that missing inputs leave the dependent checks undecided.
func TestMissingInputIsUndecided(t *testing.T) {
	ofHistory := []string{Values, Fresh, NoLostUpdate, Scans, Linearizable}
	ofEnd := []string{check.Durable, check.NoGhost}
	all := slices.Concat(ofHistory, ofEnd)
	for _, c := range []struct {
		name    string
		bend    func(s *store, in *Input)
		unknown []string
		why     fact.Fact
	}{
		{"no end state", func(_ *store, in *Input) { in.End = nil }, ofEnd, fact.NoEnd{}},
		{"an early end state", func(_ *store, in *Input) { in.Early = []uint64{1} }, ofEnd, fact.NoEnd{Run: 1}},
		{"no history", func(_ *store, in *Input) { in.History = nil }, all, fact.NoHistory{}},
		{"a cut recording", func(s *store, _ *Input) { s.Incomplete = true }, all, fact.CutOff{}},
		{"a damaged recording", func(s *store, _ *Input) { s.Err = errors.New("damage") }, all, fact.Unreadable{Problem: "the history could not be read: damage"}},
		{"a run that is not given", func(s *store, _ *Input) { s.tx(kindGet, 0).Ops[0].Writer = history.NewID(7, 0, 1) },
			[]string{Values, Fresh, NoLostUpdate, Linearizable, check.Durable, check.NoGhost}, fact.RegisterOtherRuns{Runs: []uint64{7}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := busyStore()
			in := s.input()
			c.bend(s, &in)
			for name, r := range checkKV(t, in) {
				if unknown := slices.Contains(c.unknown, name); unknown != (r.Status == check.Unknown) || !unknown && r.Status != check.Valid {
					t.Errorf("%s is %v: %s", name, r.Status, said(r))
				} else if unknown && !reflect.DeepEqual(r.Why, c.why) {
					t.Errorf("%s is unknown because of %+v, want %+v", name, r.Why, c.why)
				}
			}
		})
	}
}

// TestOverlappingRuns checks two runs that overlapped. Their times are compared if they share a clock, and
// not otherwise.
func TestOverlappingRuns(t *testing.T) {
	for _, c := range []struct {
		name   string
		clocks [2]string
		late   bool // the second run reads a value that the first had replaced long before
		want   map[string]check.Status
	}{
		{"on one clock", [2]string{"a 0 10", "a 0 10"}, false, map[string]check.Status{Values: check.Valid, Fresh: check.Valid, Linearizable: check.Valid, check.Durable: check.Valid}},
		{"on one clock, and late", [2]string{"a 0 10", "a 0 10"}, true, map[string]check.Status{Values: check.Valid, Fresh: check.Invalid, Linearizable: check.Invalid, check.Durable: check.Valid}},
		{"on one clock whose beginnings are not known so well", [2]string{"a 0 100000", "a 0 100000"}, true, map[string]check.Status{Values: check.Valid, Fresh: check.Unknown, Linearizable: check.Unknown}},
		{"on two clocks", [2]string{"a 0 10", "b 0 10"}, true, map[string]check.Status{Values: check.Valid, Fresh: check.Unknown, Linearizable: check.Unknown, check.Durable: check.Valid}},
	} {
		t.Run(c.name, func(t *testing.T) {
			one := newStore(4)
			put := one.do(kindPut, 0, 0).ID
			one.do(kindPut, 1, 0)
			two := &store{History: checktest.History{Run: 2}, End: one.End, loaded: 4, now: one.now + 10_000}
			get := two.do(kindGet, 0, 0)
			if c.late {
				get.Ops[0].Writer = 0
			} else if get.Ops[0].Writer != put {
				t.Fatal("the second run does not see the first")
			}
			two.do(kindModify, 1, 0)
			one.Keys, two.Keys = map[string]string{check.KeyClock: c.clocks[0]}, map[string]string{check.KeyClock: c.clocks[1]}
			in := one.input()
			in.History, in.End = []check.Source{&one.History, &two.History}, &two.End
			results := checkKV(t, in)
			for name, want := range c.want {
				if r := results[name]; r.Status != want {
					t.Errorf("%s is %v, not %v: %s", name, r.Status, want, said(r))
				}
			}
		})
	}
}

// TestCancelledCheckHasNoResults checks that a cancelled check returns no results.
func TestCancelledCheckHasNoResults(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if results, err := Check(ctx, busyStore().input()); !errors.Is(err, why) || results != nil {
		t.Errorf("%v, %v", results, err)
	}
}

// These are the kinds of transactions in the tests.
const (
	kindPut    = 1 * history.Numbered
	kindInsert = 2 * history.Numbered
	kindModify = 3 * history.Numbered
	kindGet    = 1*history.Numbered | history.ReadOnly
	kindScan   = 2*history.Numbered | history.ReadOnly

	noSuchRecord history.Reason = 1
)

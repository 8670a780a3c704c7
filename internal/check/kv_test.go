package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// kvStore runs transactions of kv one after another, 1 µs apart, and records what a
// perfect database would have shown. Tests then bend it. Records below loaded are of
// the load; their places are their numbers.
type kvStore struct {
	recorded
	found
	loaded uint64
	now    int64
	next   uint64
}

func newKVStore(loaded uint64) *kvStore {
	s := &kvStore{recorded: recorded{run: 1}, loaded: loaded}
	for n := range loaded {
		s.accounts = append(s.accounts, history.Account{N: n, Balance: 64, Version: Whole})
	}
	return s
}

func (s *kvStore) input() KVInput {
	return KVInput{
		Expect: isolation.StrictSerializable, Records: s.loaded, Place: func(n uint64) uint64 { return n },
		Name: func(n uint64) string { return fmt.Sprintf("key %d", n) }, History: []Source{&s.recorded}, End: &s.found,
	}
}

func (s *kvStore) at(n uint64) *history.Account {
	i := slices.IndexFunc(s.accounts, func(a history.Account) bool { return a.N == n })
	if i < 0 {
		return nil
	}
	return &s.accounts[i]
}

// do runs one transaction on record n; of a scan, as many records from n on.
func (s *kvStore) do(kind history.Kind, n uint64, limit int) *history.Transaction {
	s.now += 1000
	s.next++
	tx := history.Transaction{
		ID: history.NewID(s.run, 0, s.next), Kind: kind, Outcome: history.Committed, Attempts: 1,
		Due: s.now, Sent: s.now, Try: s.now, End: s.now + 500,
	}
	see := func(n uint64) history.Op {
		if a := s.at(n); a != nil {
			return history.Op{Account: n, Observed: true, Version: a.Version, Balance: a.Balance, Last: a.Last}
		}
		return history.Op{Account: n, Observed: true}
	}
	op := history.Op{Account: n}
	if kind != history.Put {
		op = see(n)
	}
	switch kind {
	case history.Put, history.Modify, history.Insert:
		op.Write, op.Amount = true, 64
		if a := s.at(n); a != nil {
			a.Last = tx.ID
		} else {
			s.accounts = append(s.accounts, history.Account{N: n, Balance: 64, Version: Whole, Last: tx.ID})
		}
		tx.Ops = []history.Op{op}
	case history.Scan:
		op.Amount = int64(limit)
		tx.Ops = []history.Op{op}
		var rest []uint64
		for _, a := range s.accounts {
			if a.N > n {
				rest = append(rest, a.N)
			}
		}
		slices.Sort(rest)
		if op.Version == Whole {
			limit--
		}
		for _, m := range rest[:min(limit, len(rest))] {
			tx.Ops = append(tx.Ops, see(m))
		}
	default:
		tx.Ops = []history.Op{op}
	}
	s.txns = append(s.txns, tx)
	return &s.txns[len(s.txns)-1]
}

// busyStore is a store on which everything was done once or twice.
func busyStore() *kvStore {
	s := newKVStore(4)
	insert := numberOfInsert(0)
	for range 2 {
		s.do(history.Get, 0, 0)
		s.do(history.Put, 0, 0)
		s.do(history.Get, 0, 0)
		s.do(history.Modify, 1, 0)
		s.do(history.Modify, 1, 0)
		s.do(history.Get, insert, 0)
		s.do(history.Insert, insert, 0)
		s.do(history.Get, insert, 0)
		s.do(history.Scan, 1, 3)
		s.do(history.Scan, 3, 9)
		insert = numberOfInsert(1)
	}
	return s
}

func numberOfInsert(i uint64) uint64 { return 1<<48 | i }

func (s *kvStore) tx(kind history.Kind, nth int) *history.Transaction {
	for i := range s.txns {
		if s.txns[i].Kind == kind {
			if nth == 0 {
				return &s.txns[i]
			}
			nth--
		}
	}
	return nil
}

func checkKV(t *testing.T, in KVInput) map[string]Result {
	t.Helper()
	results, err := KV(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]Result{}
	for _, r := range results {
		byName[r.Name] = r
		if (r.Status == Invalid) != (len(r.Witness) > 0 || r.Status == Invalid && r.Name == Durable || r.Status == Invalid && r.Name == NoGhost) {
			t.Errorf("%s is %v with the witnesses %v", r.Name, r.Status, r.Witness)
		}
		if r.Detail == "" {
			t.Errorf("%s tells nothing", r.Name)
		}
	}
	return byName
}

func TestKVOfAPerfectStore(t *testing.T) {
	results := checkKV(t, busyStore().input())
	var names []string
	for _, about := range AboutKV() {
		names = append(names, about[0])
		if r := results[about[0]]; r.Status != Valid || !r.Required {
			t.Errorf("%s is %v, required %v: %s", r.Name, r.Status, r.Required, r.Detail)
		}
	}
	if len(results) != len(names) {
		t.Errorf("%d checks were made and %d are described", len(results), len(names))
	}
}

// kvLies are single lies of a store and the checks that must find them; every check
// that is not named stays valid.
var kvLies = []struct {
	name    string
	bend    func(s *kvStore)
	invalid []string
}{
	{"a broken value", func(s *kvStore) { s.tx(history.Get, 0).Ops[0].Version = Broken }, []string{Values}},
	{"a value of nobody", func(s *kvStore) { s.tx(history.Get, 0).Ops[0].Last = history.NewID(1, 9, 9) }, []string{Values}},
	{"a value of another record", func(s *kvStore) { s.tx(history.Get, 0).Ops[0].Last = s.tx(history.Modify, 0).ID }, []string{Values}},
	{"no record of the load", func(s *kvStore) {
		op := &s.tx(history.Get, 0).Ops[0]
		op.Version, op.Balance = Absent, 0
	}, []string{Values}},
	{"a value of the load in an insert's record", func(s *kvStore) {
		op := &s.tx(history.Get, 2).Ops[0]
		op.Version, op.Last = Whole, 0
	}, []string{Values}},
	{"a dirty read", func(s *kvStore) {
		// A write that was refused, and read by another.
		s.do(history.Put, 2, 0).Outcome = history.Aborted
		s.do(history.Get, 2, 0)
		s.at(2).Last = 0
	}, []string{Values}},
	{"a read of an earlier try", func(s *kvStore) {
		put := s.do(history.Put, 2, 0)
		get := s.do(history.Get, 2, 0)
		put.Try, put.End = get.End+100, get.End+200
	}, []string{Values, Linearizable}},
	{"a foreign key in a scan", func(s *kvStore) {
		tx := s.tx(history.Scan, 1)
		tx.Ops = append(tx.Ops, history.Op{Observed: true, Version: Foreign})
	}, []string{Values}},
	{"a stale read", func(s *kvStore) { s.tx(history.Get, 1).Ops[0].Last = 0 }, []string{Fresh, Linearizable}},
	{"an insert that is not seen", func(s *kvStore) {
		op := &s.tx(history.Get, 3).Ops[0]
		op.Version, op.Last, op.Balance = Absent, 0, 0
	}, []string{Fresh, Linearizable}},
	{"a lost update", func(s *kvStore) { s.tx(history.Modify, 1).Ops[0].Last = 0 }, []string{NoLostUpdate, Fresh, Linearizable}},
	{"a write between a modify's read and its write", func(s *kvStore) {
		a := s.do(history.Put, 2, 0)
		m := s.do(history.Modify, 2, 0)
		p := s.do(history.Put, 2, 0)
		g := s.do(history.Get, 2, 0) // sees p, and m comes after p and had read what was before it
		last := s.do(history.Get, 2, 0)
		last.Ops[0].Last, s.at(2).Last = m.ID, m.ID
		m.End = last.End
		_, _, _ = a, p, g
	}, []string{Linearizable}},
	{"a scan without a record of the load", func(s *kvStore) {
		tx := s.tx(history.Scan, 0)
		tx.Ops = slices.Delete(tx.Ops, 1, 2)
	}, []string{Scans}},
	{"a scan without its first record", func(s *kvStore) {
		op := &s.tx(history.Scan, 0).Ops[0]
		op.Version, op.Last, op.Balance = Absent, 0, 0
	}, []string{Scans}},
	{"a scan without an insert", func(s *kvStore) {
		tx := s.tx(history.Scan, 1)
		tx.Ops = tx.Ops[:1]
	}, []string{Scans}},
	{"a scan out of order", func(s *kvStore) {
		ops := s.tx(history.Scan, 0).Ops
		ops[1], ops[2] = ops[2], ops[1]
	}, []string{Scans}},
	{"a scan that brings too many", func(s *kvStore) { s.tx(history.Scan, 0).Ops[0].Amount = 2 }, []string{Scans}},
	{"an acknowledged write that is gone", func(s *kvStore) {
		s.do(history.Put, 2, 0)
		s.at(2).Last = 0
	}, []string{Durable}},
	{"an acknowledged write replaced by the one before", func(s *kvStore) { s.at(0).Last = s.tx(history.Put, 0).ID }, []string{Durable}},
	{"an acknowledged insert that is gone", func(s *kvStore) {
		s.accounts = slices.DeleteFunc(s.accounts, func(a history.Account) bool { return a.N == numberOfInsert(0) })
	}, []string{Durable}},
	{"a record of the load that is gone", func(s *kvStore) { s.accounts = slices.Delete(s.accounts, 3, 4) }, []string{Durable}},
	{"another record twice in its place", func(s *kvStore) { s.accounts[3].N = 2 }, []string{Durable}},
	{"a record twice", func(s *kvStore) { s.accounts = append(s.accounts, s.accounts[3]) }, []string{Durable}},
	{"a damaged record", func(s *kvStore) { s.at(0).Version = Broken }, []string{Durable}},
	{"a stranger", func(s *kvStore) { s.strangers = []string{"a key"} }, []string{NoGhost}},
	{"a record that nobody inserted", func(s *kvStore) {
		s.accounts = append(s.accounts, history.Account{N: numberOfInsert(7), Version: Whole, Last: history.NewID(1, 0, 77)})
	}, []string{NoGhost}},
	{"a value that nobody wrote", func(s *kvStore) { s.at(3).Last = history.NewID(1, 0, 77) }, []string{NoGhost}},
	{"a write that was refused and is there", func(s *kvStore) { s.do(history.Put, 2, 0).Outcome = history.Aborted }, []string{NoGhost}},
	{"a refused insert that is there", func(s *kvStore) { s.do(history.Insert, numberOfInsert(5), 0).Outcome = history.Aborted }, []string{NoGhost}},
}

func TestKVFindsEachLie(t *testing.T) {
	for _, c := range kvLies {
		t.Run(c.name, func(t *testing.T) {
			s := busyStore()
			c.bend(s)
			told := map[string]int{}
			in := s.input()
			in.Tell = func(v Violation) {
				told[v.Check]++
				if v.What == "" || v.Account == "" {
					t.Errorf("a violation says nothing: %+v", v)
				}
			}
			for name, r := range checkKV(t, in) {
				if bad := slices.Contains(c.invalid, name); bad != (r.Status == Invalid) || !bad && r.Status != Valid {
					t.Errorf("%s is %v: %s", name, r.Status, r.Detail)
				} else if bad && !r.Required {
					t.Errorf("%s does not count at strict serializability", name)
				} else if bad != (told[name] > 0) {
					t.Errorf("%s is %v and %d violations were told", name, r.Status, told[name])
				}
			}
		})
	}
}

// TestKVAllows: what may be so without anybody having lied.
func TestKVAllows(t *testing.T) {
	for name, bend := range map[string]func(s *kvStore){
		"an unknown write that never came": func(s *kvStore) {
			last := s.at(2).Last
			s.do(history.Put, 2, 0).Outcome = history.Unknown
			s.at(2).Last = last
			s.do(history.Get, 2, 0)
		},
		"an unknown write that comes late": func(s *kvStore) {
			s.do(history.Put, 2, 0).Outcome = history.Unknown
			s.at(2).Last = 0
			s.do(history.Get, 2, 0)
			s.at(2).Last = s.tx(history.Put, 2).ID
			s.do(history.Get, 2, 0)
		},
		"an unknown write in place of an acknowledged one": func(s *kvStore) {
			u := s.do(history.Put, 2, 0)
			u.Outcome = history.Unknown
			id := u.ID
			s.do(history.Put, 2, 0)
			s.at(2).Last = id
		},
		"one of two at the same time": func(s *kvStore) {
			a, id := s.do(history.Put, 2, 0), history.ID(0)
			id = a.ID
			a.End += 5000
			s.do(history.Put, 2, 0)
			s.at(2).Last = id
		},
		"an unknown insert": func(s *kvStore) {
			s.do(history.Insert, numberOfInsert(5), 0).Outcome = history.Unknown
			s.accounts = s.accounts[:len(s.accounts)-1]
		},
		"a put that finds no record": func(s *kvStore) {
			tx := s.do(history.Put, numberOfInsert(5), 0)
			tx.Outcome, tx.Reason = history.Rejected, history.NoSuchAccount
			tx.Ops[0].Observed = true
			s.accounts = s.accounts[:len(s.accounts)-1]
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := busyStore()
			bend(s)
			for name, r := range checkKV(t, s.input()) {
				if r.Status != Valid {
					t.Errorf("%s is %v: %s", name, r.Status, r.Detail)
				}
			}
		})
	}
}

// TestKVRequired: which violations count at which claim.
func TestKVRequired(t *testing.T) {
	bend := map[string]func(s *kvStore){}
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
		{"an acknowledged write that is gone", Durable, isolation.ReadUncommitted},
		{"a write that was refused and is there", NoGhost, isolation.ReadUncommitted},
	} {
		for level := isolation.ReadUncommitted; level <= isolation.StrictSerializable; level++ {
			s := busyStore()
			bend[c.lie](s)
			in := s.input()
			in.Expect = level
			if r := checkKV(t, in)[c.check]; r.Status != Invalid || r.Required != (level >= c.from) {
				t.Errorf("%s at %v: %s is %v, required %v", c.lie, level, c.check, r.Status, r.Required)
			}
		}
	}
}

// TestKVUndecided: what is missing leaves undecided what needs it.
func TestKVUndecided(t *testing.T) {
	ofHistory := []string{Values, Fresh, NoLostUpdate, Scans, Linearizable}
	ofEnd := []string{Durable, NoGhost}
	all := slices.Concat(ofHistory, ofEnd)
	for _, c := range []struct {
		name    string
		bend    func(s *kvStore, in *KVInput)
		unknown []string
		why     string
	}{
		{"no end state", func(_ *kvStore, in *KVInput) { in.End = nil }, ofEnd, "--db"},
		{"an early end state", func(_ *kvStore, in *KVInput) { in.Early = []uint64{1} }, ofEnd, "run 1 is not known to have ended"},
		{"no history", func(_ *kvStore, in *KVInput) { in.History = nil }, all, "no history"},
		{"a cut recording", func(s *kvStore, _ *KVInput) { s.incomplete = true }, all, "cut off"},
		{"a damaged recording", func(s *kvStore, _ *KVInput) { s.err = errors.New("damage") }, all, "damage"},
		{"a run that is not given", func(s *kvStore, _ *KVInput) { s.tx(history.Get, 0).Ops[0].Last = history.NewID(7, 0, 1) },
			[]string{Values, Fresh, NoLostUpdate, Linearizable, Durable, NoGhost}, "run 7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := busyStore()
			in := s.input()
			c.bend(s, &in)
			for name, r := range checkKV(t, in) {
				if unknown := slices.Contains(c.unknown, name); unknown != (r.Status == Unknown) || !unknown && r.Status != Valid {
					t.Errorf("%s is %v: %s", name, r.Status, r.Detail)
				} else if unknown && !strings.Contains(r.Detail, c.why) {
					t.Errorf("%s does not say %q: %s", name, c.why, r.Detail)
				}
			}
		})
	}
}

// TestKVOfSeveralRuns: two runs that overlapped are one history; on one clock their
// times compare, on two nothing between them does.
func TestKVOfSeveralRuns(t *testing.T) {
	for _, c := range []struct {
		name   string
		clocks [2]string
		late   bool // the second run reads what the first had replaced long before
		want   map[string]Status
	}{
		{"on one clock", [2]string{"a 0 10", "a 0 10"}, false, map[string]Status{Values: Valid, Fresh: Valid, Linearizable: Valid, Durable: Valid}},
		{"on one clock, and late", [2]string{"a 0 10", "a 0 10"}, true, map[string]Status{Values: Valid, Fresh: Invalid, Linearizable: Invalid, Durable: Valid}},
		{"on one clock whose beginnings are not known so well", [2]string{"a 0 100000", "a 0 100000"}, true, map[string]Status{Values: Valid, Fresh: Valid, Linearizable: Valid}},
		{"on two clocks", [2]string{"a 0 10", "b 0 10"}, true, map[string]Status{Values: Valid, Fresh: Unknown, Linearizable: Unknown, Durable: Valid}},
	} {
		t.Run(c.name, func(t *testing.T) {
			one := newKVStore(4)
			put := one.do(history.Put, 0, 0).ID
			one.do(history.Put, 1, 0)
			two := &kvStore{recorded: recorded{run: 2}, found: one.found, loaded: 4, now: one.now + 10_000}
			get := two.do(history.Get, 0, 0)
			if c.late {
				get.Ops[0].Last = 0
			} else if get.Ops[0].Last != put {
				t.Fatal("the second run does not see the first")
			}
			two.do(history.Modify, 1, 0)
			one.keys, two.keys = map[string]string{KeyClock: c.clocks[0]}, map[string]string{KeyClock: c.clocks[1]}
			in := one.input()
			in.History, in.End = []Source{&one.recorded, &two.recorded}, &two.found
			results := checkKV(t, in)
			for name, want := range c.want {
				if r := results[name]; r.Status != want {
					t.Errorf("%s is %v, not %v: %s", name, r.Status, want, r.Detail)
				}
			}
		})
	}
}

// TestKVEndsWithItsContext: a check that is cut off has no results.
func TestKVEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if results, err := KV(ctx, busyStore().input()); !errors.Is(err, why) || results != nil {
		t.Errorf("%v, %v", results, err)
	}
}

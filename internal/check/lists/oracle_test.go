package lists

import (
	"math/rand/v2"
	"slices"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/check/graph"
	"stroppy/internal/check/text"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// detail returns the text of a result for messages.
func detail(r *check.Result) string {
	return text.Speaker{Words: check.Words{One: "transaction"}}.Detail(r)
}

// each yields the transactions of a slice.
func each(list []Transaction) func(func(*Transaction, error) bool) {
	return func(yield func(*Transaction, error) bool) {
		for i := range list {
			if !yield(&list[i], nil) {
				return
			}
		}
	}
}

// weakHistory returns a small history whose reads return any version. Its clients wait for replies.
func weakHistory(rng *rand.Rand, ranges, deletes bool) []Transaction {
	count, keys := 2+rng.IntN(4), 1+rng.IntN(3)
	list := make([]Transaction, count)
	clients := []int64{}
	now, elements := int64(0), make([]uint64, keys)
	var lists = make([][]uint64, keys)
	for i := range list {
		tx := &list[i]
		now += rng.Int64N(8)
		tx.ID, tx.Outcome = history.NewID(1, 1, uint64(i+1)), history.Committed
		tx.Begin = now
		tx.End = now + 1 + rng.Int64N(20)
		switch rng.IntN(12) {
		case 0:
			tx.Outcome = history.Unknown
		case 1:
			tx.Outcome = history.Aborted
		}
		tx.Client = uint64(len(clients))
		for c, free := range clients {
			if free <= tx.Begin && rng.IntN(2) == 0 {
				tx.Client = uint64(c)
			}
		}
		if int(tx.Client) == len(clients) {
			clients = append(clients, 0)
		}
		clients[tx.Client] = tx.End
		for range 1 + rng.IntN(3) {
			k := rng.IntN(keys)
			op := Op{Kind: Read, Key: uint64(k), Known: tx.Outcome == history.Committed || rng.IntN(2) == 0}
			switch rng.IntN(5) {
			case 0, 1, 2:
				elements[k]++
				op = Op{Kind: Append, Key: uint64(k), Element: elements[k]}
				lists[k] = append(lists[k], elements[k])
			case 3:
				if ranges {
					op = Op{Kind: Range, Key: 0, High: uint64(keys - 1), Known: op.Known}
				}
			}
			tx.Ops = append(tx.Ops, op)
		}
	}
	// The version order is close to the order of the transactions; only a part of it was read.
	visible := make([]int, keys)
	for k, l := range lists {
		if rng.IntN(3) == 0 && len(l) > 1 {
			i := rng.IntN(len(l) - 1)
			l[i], l[i+1] = l[i+1], l[i]
		}
		visible[k] = len(l)
		if len(l) > 0 && rng.IntN(3) == 0 {
			visible[k] -= rng.IntN(len(l)) + 1
		}
	}
	if deletes {
		for k := range lists {
			last := -1
			for i := range list {
				if list[i].Outcome != history.Aborted && slices.ContainsFunc(list[i].Ops, func(op Op) bool { return op.Kind == Append && op.Key == uint64(k) }) {
					last = i
				}
			}
			if last >= 0 && rng.IntN(2) == 0 {
				last += rng.IntN(count - last)
				list[last].Ops = append(list[last].Ops, Op{Kind: Delete, Key: uint64(k)})
			}
		}
	}
	read := func(k int) []uint64 {
		n := rng.IntN(visible[k] + 1)
		if rng.IntN(2) == 0 {
			n = visible[k]
		}
		return lists[k][:n]
	}
	for i := range list {
		for j := range list[i].Ops {
			switch op := &list[i].Ops[j]; op.Kind {
			case Read:
				op.List = read(int(op.Key))
			case Range:
				for k := range keys {
					if l := read(k); len(l) > 0 {
						op.Rows = append(op.Rows, Row{uint64(k), l})
					}
				}
			}
		}
	}
	return list
}

// serialHistory runs transactions one after another on a store, each at a time between its beginning and its
// end. Then it falsifies some reads.
func serialHistory(rng *rand.Rand, ranges, deletes bool, wrong int) []Transaction {
	list := weakHistory(rng, ranges, deletes)
	s := store{}
	for i := range list {
		if list[i].Outcome == history.Aborted {
			continue
		}
		for j := range list[i].Ops {
			s.run(&list[i].Ops[j])
		}
	}
	for range wrong {
		t := &list[rng.IntN(len(list))]
		if op := &t.Ops[rng.IntN(len(t.Ops))]; op.Kind == Read && len(op.List) > 0 {
			op.List = op.List[:rng.IntN(len(op.List))]
		}
	}
	return list
}

// store is a map of lists; a deleted one is nil.
type store map[uint64][]uint64

func (s store) clone() store {
	c := store{}
	for k, l := range s {
		c[k] = slices.Clip(l)
	}
	return c
}

// run executes an operation and records what it reads.
func (s store) run(op *Op) {
	switch op.Kind {
	case Append:
		s[op.Key] = append(s[op.Key], op.Element)
	case Delete:
		s[op.Key] = nil
	case Read:
		op.List = slices.Clone(s[op.Key])
	case Range:
		op.Rows = nil
		for k, l := range s {
			if k >= op.Key && k <= op.High && len(l) > 0 {
				op.Rows = append(op.Rows, Row{k, slices.Clone(l)})
			}
		}
	}
}

// agrees executes an operation, and reports whether its recorded result is correct.
func (s store) agrees(op *Op) bool {
	switch op.Kind {
	case Read:
		return !op.Known || slices.Equal(s[op.Key], op.List)
	case Range:
		if !op.Known {
			return true
		}
		there := 0
		for k, l := range s {
			if k >= op.Key && k <= op.High && len(l) > 0 {
				there++
			}
		}
		for _, r := range op.Rows {
			if !slices.Equal(s[r.Key], r.List) {
				return false
			}
		}
		return there == len(op.Rows)
	}
	l, made := s[op.Key]
	if op.Kind == Append && made && l == nil || op.Kind == Delete && len(l) == 0 {
		return false // no append to a deleted list, and no deletion of an absent one
	}
	s.run(op)
	return true
}

// oracle decides by trying every order.
type oracle struct{ all []Transaction }

// ordered reports whether a must precede b in an order.
func ordered(a, b *Transaction, o graph.Order) bool {
	if o == graph.Plain || a.Outcome != history.Committed {
		return false
	}
	return a.Client == b.Client && a.End <= b.Begin || o == graph.Real && a.End < b.Begin
}

// some reports whether an order of all effective transactions has a property, for some choice of the unknown
// outcomes.
func (or oracle) some(o graph.Order, property func(order []*Transaction) bool) bool {
	var sure, unknown []*Transaction
	for i := range or.all {
		switch t := &or.all[i]; t.Outcome {
		case history.Committed:
			sure = append(sure, t)
		case history.Unknown:
			unknown = append(unknown, t)
		}
	}
	for set := range 1 << len(unknown) {
		list := slices.Clone(sure)
		for i, t := range unknown {
			if set>>i&1 != 0 {
				list = append(list, t)
			}
		}
		if permuted(list, 0, o, property) {
			return true
		}
	}
	return false
}

func permuted(list []*Transaction, done int, o graph.Order, property func([]*Transaction) bool) bool {
	if done == len(list) {
		return property(list)
	}
next:
	for i := done; i < len(list); i++ {
		for j := done; j < len(list); j++ {
			if j != i && ordered(list[j], list[i], o) {
				continue next
			}
		}
		list[done], list[i] = list[i], list[done]
		found := permuted(list, done+1, o, property)
		list[done], list[i] = list[i], list[done]
		if found {
			return true
		}
	}
	return false
}

// serializable is the definition: the transactions run in this order, one at a time.
func serializable(order []*Transaction) bool {
	s := store{}
	for n, t := range order {
		if slices.ContainsFunc(order[:n], func(d *Transaction) bool { return foresees(t, d) }) {
			return false
		}
		for i := range t.Ops {
			if !s.agrees(&t.Ops[i]) {
				return false
			}
		}
	}
	return true
}

// snapshot is the definition: transactions commit in this order. Each reads a state at an earlier position
// plus its own writes, and no other transaction wrote to its lists since then.
func snapshot(o graph.Order) func(order []*Transaction) bool {
	return func(order []*Transaction) bool {
		states := []store{{}}
		for _, t := range order {
			s := states[len(states)-1].clone()
			for i := range t.Ops {
				if op := &t.Ops[i]; op.Kind == Append || op.Kind == Delete {
					s.run(op)
				}
			}
			states = append(states, s)
		}
	next:
		for i, t := range order {
			for from := i; from >= 0; from-- {
				if from < i && (writesBoth(order[from], t) || ordered(order[from], t, o)) {
					return false
				}
				s := states[from].clone()
				if slices.ContainsFunc(order[:from], func(d *Transaction) bool { return foresees(t, d) }) {
					continue
				}
				if !slices.ContainsFunc(t.Ops, func(op Op) bool { return !s.agrees(&op) }) {
					continue next
				}
			}
			return false
		}
		return true
	}
}

// foresees reports whether t read a list as absent that d deleted, although t ended before d began. That is
// impossible.
func foresees(t, d *Transaction) bool {
	if t.Outcome != history.Committed || t.End >= d.Begin {
		return false
	}
	return slices.ContainsFunc(d.Ops, func(x Op) bool {
		return x.Kind == Delete && slices.ContainsFunc(t.Ops, func(y Op) bool {
			switch y.Kind {
			case Read:
				return y.Key == x.Key && len(y.List) == 0
			case Range:
				return y.Key <= x.Key && x.Key <= y.High && !slices.ContainsFunc(y.Rows, func(r Row) bool { return r.Key == x.Key })
			}
			return false
		})
	})
}

func writesBoth(a, b *Transaction) bool {
	return slices.ContainsFunc(a.Ops, func(x Op) bool {
		return (x.Kind == Append || x.Kind == Delete) && slices.ContainsFunc(b.Ops, func(y Op) bool {
			return (y.Kind == Append || y.Kind == Delete) && x.Key == y.Key
		})
	})
}

// committed is PL-2 for histories without deletes: the appends to each list are in this order, and readers
// follow them. Without reads, it is PL-1.
func committed(all []Transaction, reads bool) func(order []*Transaction) bool {
	return func(order []*Transaction) bool {
		version, writer, last := map[uint64][]uint64{}, map[[2]uint64]int{}, map[[2]uint64]bool{}
		for i, t := range order {
			for j, op := range t.Ops {
				if op.Kind == Append {
					version[op.Key] = append(version[op.Key], op.Element)
					writer[[2]uint64{op.Key, op.Element}] = i
					last[[2]uint64{op.Key, op.Element}] = !slices.ContainsFunc(t.Ops[j+1:], func(x Op) bool { return x.Kind == Append && x.Key == op.Key })
				}
			}
		}
		aborted := map[[2]uint64]bool{}
		for _, t := range all {
			for _, op := range t.Ops {
				if op.Kind == Append && t.Outcome == history.Aborted {
					aborted[[2]uint64{op.Key, op.Element}] = true
				}
			}
		}
		for i, t := range order {
			for j, op := range t.Ops {
				if !op.Known {
					continue
				}
				rows := op.Rows
				if op.Kind == Read {
					rows = []Row{{op.Key, op.List}}
				}
				for _, r := range rows {
					l := slices.Clone(r.List)
					if !reads {
						l = slices.DeleteFunc(l, func(e uint64) bool { return aborted[[2]uint64{r.Key, e}] })
					}
					if len(l) > len(version[r.Key]) || !slices.Equal(version[r.Key][:len(l)], l) {
						return false
					}
					if !reads || len(l) == 0 {
						continue
					}
					for _, e := range l {
						if writer[[2]uint64{r.Key, e}] > i {
							return false
						}
					}
					end := [2]uint64{r.Key, l[len(l)-1]}
					if writer[end] != i && !last[end] {
						return false
					}
					if slices.ContainsFunc(t.Ops[j+1:], func(x Op) bool { return x.Kind == Append && x.Key == r.Key && slices.Contains(l, x.Element) }) {
						return false
					}
				}
			}
		}
		return true
	}
}

// TestDecisionsAgainstDefinitions compares every decision with the definition.
func TestDecisionsAgainstDefinitions(t *testing.T) {
	rounds := checktest.Rounds(1500, 40_000)
	type outcome struct{ holds, fails, open int }
	counts := map[isolation.Level]*outcome{}
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(seed, 13))
		ranges, deletes := seed%3 == 1, seed%6 == 4
		list := serialHistory(rng, ranges, deletes, rng.IntN(3))
		if seed%2 == 0 {
			list = weakHistory(rng, ranges, deletes)
		}
		c, report := decided(t, list)
		compare := func(level isolation.Level, o graph.Order, property func([]*Transaction) bool) {
			n := counts[level]
			if n == nil {
				n = &outcome{}
				counts[level] = n
			}
			state := c.keeps(level)
			switch state {
			case graph.Holds:
				n.holds++
			case graph.Fails:
				n.fails++
			default:
				if n.open++; !deletes {
					t.Fatalf("seed %d: %v is open without a deleted list", seed, level)
				}
				return
			}
			if want := (oracle{list}).some(o, property); want != (state == graph.Holds) {
				for _, tx := range list {
					t.Logf("%v client %d %v [%d %d] %+v", tx.ID, tx.Client, tx.Outcome, tx.Begin, tx.End, tx.Ops)
				}
				for _, r := range report.Results {
					t.Logf("%s %v: %s", r.Name, r.Status, detail(&r))
				}
				t.Fatalf("seed %d: %v is said to hold: %v, and the definition says %v", seed, level, state == graph.Holds, want)
			}
		}
		for o := graph.Plain; o < graph.Orders; o++ {
			compare(graph.TestSerializable.Level(o), o, serializable)
			compare(graph.TestSnapshot.Level(o), o, snapshot(o))
			if !deletes {
				compare(graph.TestReadCommitted.Level(o), o, committed(list, true))
				compare(graph.TestReadUncommitted.Level(o), o, committed(list, false))
			}
		}
		c.holdTogether(t, seed, report)
	}
	for level, n := range counts {
		t.Logf("%v: %d hold, %d do not, %d open", level, n.holds, n.fails, n.open)
	}
}

// holdTogether checks the properties that every report must have.
func (c *checker) holdTogether(t *testing.T, seed uint64, r *Report) {
	t.Helper()
	for o := graph.Plain; o < graph.Orders; o++ {
		for test := range graph.Tests {
			l := test.Level(o)
			if l != isolation.Unknown && c.decision.States[o][test] == graph.Fails && !c.shown(l) {
				t.Fatalf("seed %d: %v is broken by a cycle, and none is shown", seed, l)
			}
		}
	}
	for _, k := range c.cycles {
		for i, s := range k.steps {
			if s.To != k.steps[(i+1)%len(k.steps)].From {
				t.Fatalf("seed %d: %s is no cycle: %v", seed, k.name, k.steps)
			}
			if e := c.edge(s); e.Why == nil || e.Object == "" && s.Kind != graph.Rt && s.Kind != graph.Process {
				t.Fatalf("seed %d: an edge of %s is not explained: %v", seed, k.name, s)
			}
		}
		if c.keeps(k.forbidden[0]) != graph.Fails {
			t.Fatalf("seed %d: %s was found, and %v is said to hold", seed, k.name, k.forbidden[0])
		}
	}
}

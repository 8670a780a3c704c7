package lists

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"stroppy/internal/check/checktest"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// decided checks a history of Objects without an end state.
func decided(t *testing.T, list []Transaction) (*checker, *Report) {
	t.Helper()
	return decidedAs(t, list, Objects, nil)
}

// decidedAs checks a history of a storage, with an end state if one is given.
func decidedAs(t *testing.T, list []Transaction, kept Storage, end []Row) (*checker, *Report) {
	t.Helper()
	in := Input{Transactions: each(list), Complete: true, RealTime: true, Expect: isolation.StrictSerializable, Storage: func(uint64) Storage { return kept }}
	if end != nil {
		in.End = func(yield func(Row, error) bool) {
			for _, row := range end {
				if !yield(row, nil) {
					return
				}
			}
		}
	}
	c := newChecker(context.Background(), in)
	if _, err := c.check(); err != nil {
		t.Fatal(err)
	}
	report := c.report()
	compareLean(t, in, report)
	return c, report
}

// compareLean checks that a check that drops the operations has the same result, or asks to be repeated.
func compareLean(t *testing.T, in Input, want *Report) {
	t.Helper()
	c := newChecker(context.Background(), in)
	c.lean = true
	again, err := c.check()
	if err != nil {
		t.Fatal(err)
	}
	if again {
		if slices.Equal(want.Holds, []isolation.Level{isolation.StrictSerializable}) {
			t.Fatalf("a history that keeps every level is to be read again")
		}
		return
	}
	if got := c.report(); !reflect.DeepEqual(got, want) {
		t.Fatalf("without the operations the report is %+v, and with them %+v", got, want)
	}
}

// valueHistory returns a small history of lists that clients write as a whole. Each write overwrites any
// version, committed or not. Some histories have an end state.
func valueHistory(rng *rand.Rand) (list []Transaction, end []Row) {
	list = weakHistory(rng, false, false)
	keys := uint64(0)
	for i := range list {
		var ops []Op
		for _, op := range list[i].Ops {
			keys = max(keys, op.Key+1)
			if op.Kind == Append && !slices.ContainsFunc(ops, func(x Op) bool { return x.Key == op.Key }) {
				ops = append(ops, Op{Kind: Read, Key: op.Key, Known: list[i].Outcome != history.Unknown || rng.IntN(2) == 0})
			}
			ops = append(ops, op)
		}
		list[i].Ops = ops
	}
	for key := range keys {
		order := rng.Perm(len(list))
		if rng.IntN(3) > 0 {
			slices.Sort(order)
		}
		versions := [][]uint64{nil}
		for _, i := range order {
			value := versions[rng.IntN(len(versions))]
			if rng.IntN(4) > 0 {
				value = versions[len(versions)-1]
			}
			wrote := false
			for j := range list[i].Ops {
				switch op := &list[i].Ops[j]; {
				case op.Key != key:
				case op.Kind == Read:
					op.List = slices.Clone(value)
				default:
					value, wrote = append(slices.Clip(value), op.Element), true
				}
			}
			if wrote {
				versions = append(versions, value)
			}
		}
		if last := versions[len(versions)-1]; len(last) > 0 {
			end = append(end, Row{Key: key, List: last})
		}
	}
	ghost := slices.ContainsFunc(end, func(row Row) bool {
		return slices.ContainsFunc(list, func(t Transaction) bool { return t.Outcome == history.Aborted && appendsAny(&t, row.Key, row.List) })
	})
	if ghost || rng.IntN(2) == 0 {
		end = nil
	}
	return list, end
}

// appendsAny reports whether a transaction appended one of several elements to a list.
func appendsAny(t *Transaction, key uint64, elements []uint64) bool {
	return slices.ContainsFunc(t.Ops, func(x Op) bool { return x.Kind == Append && x.Key == key && slices.Contains(elements, x.Element) })
}

// place is the position of an element: the index of the transaction that appended it, and whether it was that
// transaction's last append to the list.
type place struct {
	at   int
	last bool
}

func placesIn(order []*Transaction) map[[2]uint64]place {
	places := map[[2]uint64]place{}
	for i, t := range order {
		for j, op := range t.Ops {
			if op.Kind == Append {
				again := slices.ContainsFunc(t.Ops[j+1:], func(x Op) bool { return x.Kind == Append && x.Key == op.Key })
				places[[2]uint64{op.Key, op.Element}] = place{i, !again}
			}
		}
	}
	return places
}

// committedValues is PL-2 for lists that are written as a whole: a reader of a value follows its writer,
// including a read before a write. The value in the end state was written last.
func committedValues(end []Row) func(order []*Transaction) bool {
	return func(order []*Transaction) bool {
		places := placesIn(order)
		chained := func(key uint64, list []uint64) bool {
			for i, e := range list {
				p, ok := places[[2]uint64{key, e}]
				if !ok || i > 0 && places[[2]uint64{key, list[i-1]}].at > p.at {
					return false
				}
			}
			return true
		}
		for i, t := range order {
			for j, op := range t.Ops {
				if op.Kind != Read || !op.Known || len(op.List) == 0 {
					continue
				}
				p, ok := places[[2]uint64{op.Key, op.List[len(op.List)-1]}]
				switch {
				case !ok || p.at > i || p.at != i && !p.last || !chained(op.Key, op.List):
					return false
				case slices.ContainsFunc(t.Ops[j:], func(x Op) bool { return x.Kind == Append && x.Key == op.Key && slices.Contains(op.List, x.Element) }):
					return false
				}
			}
		}
		return !slices.ContainsFunc(end, func(row Row) bool { return !chained(row.Key, row.List) }) && writtenLast(order, places, end)
	}
}

// writtenLast reports whether the end state holds the values of the last writers.
func writtenLast(order []*Transaction, places map[[2]uint64]place, end []Row) bool {
	for _, row := range end {
		p := places[[2]uint64{row.Key, row.List[len(row.List)-1]}]
		for _, t := range order[p.at+1:] {
			if slices.ContainsFunc(t.Ops, func(x Op) bool { return x.Kind == Append && x.Key == row.Key }) {
				return false
			}
		}
	}
	return true
}

// wholeValues returns a predicate: no transaction saw another one and, in another list that it wrote, an
// earlier value. With all, every read counts; otherwise later reads only.
func wholeValues(all bool) func(order []*Transaction) bool {
	return func(order []*Transaction) bool {
		places := placesIn(order)
		for i, t := range order {
			for j, seen := range t.Ops {
				if seen.Kind != Read || !seen.Known || len(seen.List) == 0 {
					continue
				}
				w := places[[2]uint64{seen.Key, seen.List[len(seen.List)-1]}].at
				for k, read := range t.Ops {
					if w == i || read.Kind != Read || !read.Known || k < j && !all || !writes(order[w], read.Key) {
						continue
					}
					if len(read.List) == 0 || places[[2]uint64{read.Key, read.List[len(read.List)-1]}].at < w {
						return false
					}
				}
			}
		}
		return true
	}
}

func writes(t *Transaction, key uint64) bool {
	return slices.ContainsFunc(t.Ops, func(x Op) bool { return x.Kind == Append && x.Key == key })
}

// comparison counts how often each level was decided, and compares it with its definition.
type comparison struct {
	t      *testing.T
	counts map[isolation.Level]*[3]int
}

func (n *comparison) compare(seed uint64, c *checker, level isolation.Level, want func() bool) {
	n.t.Helper()
	if n.counts[level] == nil {
		n.counts[level] = &[3]int{}
	}
	state := c.keeps(level)
	n.counts[level][state]++
	if state == graph.Open {
		return
	}
	if want() != (state == graph.Holds) {
		for i := range c.count() {
			n.t.Logf("%v client %d %v [%d %d] %+v", c.idOf(i), c.sessionOf(i), history.Outcome(c.state[i]), c.begin[i], c.end[i], c.describe(uint32(i)))
		}
		for _, r := range c.report().Results {
			n.t.Logf("%s %v: %s", r.Name, r.Status, detail(&r))
		}
		n.t.Fatalf("seed %d: %v is said to hold: %v, and the definition says otherwise", seed, level, state == graph.Holds)
	}
}

// log logs how often each level held, and checks that no level always had the same result.
func (n *comparison) log(rounds uint64) {
	for level, counts := range n.counts {
		n.t.Logf("%v: %d hold, %d do not, %d open", level, counts[graph.Holds], counts[graph.Fails], counts[graph.Open])
		if level != isolation.ReadUncommitted && (counts[graph.Holds] < int(rounds)/100 || counts[graph.Fails] < int(rounds)/100) {
			n.t.Errorf("%v was hardly tested: %d hold, %d do not", level, counts[graph.Holds], counts[graph.Fails])
		}
	}
}

// TestValuesAgainstDefinitions compares the decisions about lists that are written as a whole with the
// definitions.
func TestValuesAgainstDefinitions(t *testing.T) {
	rounds := checktest.Rounds(1500, 15_000)
	n := comparison{t, map[isolation.Level]*[3]int{}}
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(seed, 23))
		list, end := valueHistory(rng)
		c, report := decidedAs(t, list, Values, end)
		or := oracle{list}
		for o := graph.Plain; o < graph.Orders; o++ {
			n.compare(seed, c, graph.TestReadCommitted.Level(o), func() bool { return or.some(o, committedValues(end)) })
		}
		if end == nil {
			for o := graph.Plain; o < graph.Orders; o++ {
				n.compare(seed, c, graph.TestSerializable.Level(o), func() bool { return or.some(o, serializable) })
				n.compare(seed, c, graph.TestSnapshot.Level(o), func() bool { return or.some(o, snapshot(o)) })
			}
			n.compare(seed, c, isolation.RepeatableRead, func() bool { return or.some(graph.Plain, repeatable) })
			for level, all := range map[isolation.Level]bool{isolation.MonotonicAtomicView: false, isolation.ReadAtomic: true} {
				n.compare(seed, c, level, func() bool {
					return or.some(graph.Plain, func(order []*Transaction) bool {
						return committedValues(nil)(order) && wholeValues(all)(order)
					})
				})
			}
			n.compare(seed, c, isolation.ReadUncommitted, func() bool { return true })
			c.holdTogether(t, seed, report)
		}
		for kind := range oddities {
			if c.found[kind].count > 0 && slices.Contains([]int{incompatible, garbage, duplicate, disorder, twice}, kind) {
				t.Fatalf("seed %d: %+v", seed, c.fact(kind, c.found[kind].list[0]))
			}
		}
	}
	n.log(rounds)
}

// pieceHistory returns a small history of lists of rows with reads that miss some rows.
func pieceHistory(rng *rand.Rand) []Transaction {
	list := weakHistory(rng, rng.IntN(2) == 0, false)
	if rng.IntN(2) == 0 {
		list = serialHistory(rng, rng.IntN(2) == 0, false, rng.IntN(3))
	}
	thin := func(read []uint64) []uint64 {
		read = slices.Clone(read)
		for i := range len(read) - 1 {
			if rng.IntN(6) == 0 {
				read[i] = Missing
			}
		}
		return read
	}
	for i := range list {
		for j := range list[i].Ops {
			op := &list[i].Ops[j]
			if op.List = thin(op.List); len(op.List) == 0 {
				op.List = nil
			}
			for k := range op.Rows {
				op.Rows[k].List = thin(op.Rows[k].List)
			}
		}
	}
	return list
}

// committedPieces is PL-2 for lists of rows: the reader of a row follows its writer, and the writer of a row
// has read the previous row. If each transaction finds its own rows, it is PL-2.99 too, because rows never
// change.
func committedPieces(own bool) func(order []*Transaction) bool {
	seen := map[uint64][]uint64{}
	each := func(t *Transaction, take func(j int, key uint64, list []uint64) bool) bool {
		for j, op := range t.Ops {
			if op.Known && op.Kind == Read && !take(j, op.Key, op.List) {
				return false
			}
			for _, r := range op.Rows {
				if op.Known && !take(j, r.Key, r.List) {
					return false
				}
			}
		}
		return true
	}
	learn := func(t *Transaction) {
		each(t, func(_ int, key uint64, list []uint64) bool {
			for i, e := range list {
				if i >= len(seen[key]) {
					seen[key] = append(seen[key], Missing)
				}
				if e != Missing {
					seen[key][i] = e
				}
			}
			return true
		})
	}
	return func(order []*Transaction) bool {
		clear(seen)
		for _, t := range order {
			learn(t)
		}
		places := placesIn(order)
		for key, list := range seen {
			for i := 1; i < len(list); i++ {
				p, ok := places[[2]uint64{key, list[i]}]
				before, applied := places[[2]uint64{key, list[i-1]}]
				if ok && (!applied || before.at > p.at) {
					return false
				}
			}
		}
		for i, t := range order {
			if !each(t, func(j int, key uint64, list []uint64) bool { return committedRows(t, i, j, key, list, places, own) }) {
				return false
			}
			if own && !findsOwn(t) {
				return false
			}
			if !inOrder(t, seen) {
				return false
			}
			for _, op := range t.Ops {
				l := seen[op.Key]
				if op.Kind == Append && len(l) > 0 && !slices.Contains(l, op.Element) && places[[2]uint64{op.Key, l[len(l)-1]}].at > i {
					return false // it follows all rows that were read
				}
			}
		}
		return true
	}
}

func committedRows(t *Transaction, i, j int, key uint64, list []uint64, places map[[2]uint64]place, own bool) bool {
	for _, e := range list {
		if p, ok := places[[2]uint64{key, e}]; e != Missing && (!ok || p.at > i) {
			return false
		}
	}
	for k, x := range t.Ops {
		if x.Kind == Append && x.Key == key && (k > j && slices.Contains(list, x.Element) || own && k < j && !slices.Contains(list, x.Element)) {
			return false
		}
	}
	return true
}

// inOrder reports whether a transaction's appends to a list are in order.
func inOrder(t *Transaction, seen map[uint64][]uint64) bool {
	for j, op := range t.Ops {
		for _, later := range t.Ops[j:] {
			if op.Kind != Append || later.Kind != Append || later.Key != op.Key {
				continue
			}
			a, b := slices.Index(seen[op.Key], op.Element), slices.Index(seen[op.Key], later.Element)
			if b >= 0 && (a < 0 || a > b) {
				return false
			}
		}
	}
	return true
}

// findsOwn reports whether no range misses a list to which its transaction had appended.
func findsOwn(t *Transaction) bool {
	for j, op := range t.Ops {
		if op.Kind == Range && op.Known && slices.ContainsFunc(t.Ops[:j], func(x Op) bool {
			return x.Kind == Append && x.Key >= op.Key && x.Key <= op.High && !slices.ContainsFunc(op.Rows, func(r Row) bool { return r.Key == x.Key })
		}) {
			return false
		}
	}
	return true
}

// TestPiecesAgainstDefinitions compares the decisions about lists of rows with the definitions.
func TestPiecesAgainstDefinitions(t *testing.T) {
	rounds := checktest.Rounds(1500, 15_000)
	n := comparison{t, map[isolation.Level]*[3]int{}}
	for seed := range rounds {
		list := pieceHistory(rand.New(rand.NewPCG(seed, 29)))
		c, report := decidedAs(t, list, Pieces, nil)
		or := oracle{list}
		for o := graph.Plain; o < graph.Orders; o++ {
			n.compare(seed, c, graph.TestSerializable.Level(o), func() bool { return or.some(o, serializable) })
			n.compare(seed, c, graph.TestSnapshot.Level(o), func() bool { return or.some(o, snapshot(o)) })
			n.compare(seed, c, graph.TestReadCommitted.Level(o), func() bool { return or.some(o, committedPieces(false)) })
		}
		n.compare(seed, c, isolation.RepeatableRead, func() bool { return or.some(graph.Plain, committedPieces(true)) })
		c.holdTogether(t, seed, report)
	}
	n.log(rounds)
}

// TestRolledBackRowIsReadUncommitted covers read uncommitted: the row of a rolled-back try may be read
// together with the row of the next try. If both remain, the append happened twice.
func TestRolledBackRowIsReadUncommitted(t *testing.T) {
	list := []Transaction{
		{ID: history.NewID(1, 1, 1), Client: 1, Outcome: history.Committed, Begin: 1, End: 9, Ops: []Op{{Kind: Append, Key: 1, Element: 1}}},
		{ID: history.NewID(1, 2, 1), Client: 2, Outcome: history.Committed, Begin: 2, End: 8, Ops: []Op{{Kind: Append, Key: 1, Element: 2}}},
		{ID: history.NewID(1, 3, 1), Client: 3, Outcome: history.Committed, Begin: 4, End: 9, Ops: []Op{{Kind: Read, Known: true, Key: 1, List: []uint64{1, 2, 1}}}},
	}
	for _, c := range []struct {
		end  []uint64
		want graph.State
	}{{[]uint64{Missing, 2, 1}, graph.Holds}, {[]uint64{1, 2, 1}, graph.Fails}} {
		checker, _ := decidedAs(t, list, Pieces, []Row{{Key: 1, List: c.end}})
		if got := checker.keeps(isolation.ReadUncommitted); got != c.want || checker.keeps(isolation.ReadCommitted) != graph.Fails {
			t.Errorf("with %v in the end read uncommitted is %v, and read committed %v", c.end, got, checker.keeps(isolation.ReadCommitted))
		}
	}
}

// TestReadOfARolledBackTry checks that the version to which a transaction appended comes from its own
// recording, not from a read of an earlier try.
func TestReadOfARolledBackTry(t *testing.T) {
	read := func(list ...uint64) Op { return Op{Kind: Read, Known: true, Key: 1, List: list} }
	list := []Transaction{
		{ID: history.NewID(1, 3, 1), Client: 3, Outcome: history.Committed, Begin: 1, End: 3, Ops: []Op{read(1)}},
		{ID: history.NewID(1, 2, 1), Client: 2, Outcome: history.Committed, Begin: 2, End: 5, Ops: []Op{read(), {Kind: Append, Key: 1, Element: 2}}},
		{ID: history.NewID(1, 1, 1), Client: 1, Outcome: history.Committed, Begin: 6, End: 9, Retried: true, Ops: []Op{read(2), {Kind: Append, Key: 1, Element: 1}}},
	}
	for range 6 {
		list = append(list[1:], list[0])
		for _, end := range [][]Row{nil, {{Key: 1, List: []uint64{2, 1}}}} {
			c, report := decidedAs(t, list, Values, end)
			if len(c.cycles) > 0 || len(report.Results[0].Findings) != 1 {
				t.Fatalf("found %+v and %+v", c.cycles, report.Results)
			}
			want := fact.ListOtherBase{
				ListRead: fact.ListRead{Reader: fact.Member{ID: history.NewID(1, 3, 1)}, On: "list 1", Read: fact.Elements{Length: 1, Last: []fact.Element{"1"}}},
				Element:  "1", Writer: fact.Member{ID: history.NewID(1, 1, 1)}, Base: fact.Elements{Length: 1, Last: []fact.Element{"2"}}, Retried: true,
			}
			if got := report.Results[0].Findings[0].Instances[0]; !reflect.DeepEqual(got, want) {
				t.Errorf("found %+v, not %+v", got, want)
			}
		}
	}
}

// TestTransactionOfManyAppends checks that 600 appends of one transaction to two lists keep their elements, which are
// counted in one byte up to 254.
func TestTransactionOfManyAppends(t *testing.T) {
	var ops []Op
	var read [2][]uint64
	for i := range uint64(600) {
		ops = append(ops, Op{Kind: Append, Key: 1 + i%2, Element: 1000 + i})
		read[i%2] = append(read[i%2], 1000+i)
	}
	swapped := slices.Clone(read[1])
	swapped[130], swapped[131] = swapped[131], swapped[130]
	for _, c := range []struct {
		second []uint64
		want   graph.State
	}{{read[1], graph.Holds}, {swapped, graph.Fails}} {
		checker, _ := decided(t, []Transaction{
			{ID: history.NewID(1, 1, 1), Client: 1, Outcome: history.Committed, Begin: 1, End: 2, Ops: ops},
			{ID: history.NewID(1, 2, 1), Client: 2, Outcome: history.Committed, Begin: 3, End: 4, Ops: []Op{
				{Kind: Read, Known: true, Key: 1, List: read[0]}, {Kind: Read, Known: true, Key: 2, List: c.second},
			}},
		})
		if got := checker.keeps(isolation.Serializable); got != c.want {
			t.Errorf("with list 2 read as %d … serializable is %v, not %v", c.second[128:134], got, c.want)
		}
	}
}

package lists

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"stroppy/internal/check"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
)

// An operation is kept in 8 bytes: the number of its list with what it is in the highest
// bits, and one more number.
const (
	opRead   uint32 = iota << 29 // how long the list was
	opRow                        // likewise; of a Range
	opAppend                     // the number of its element
	opDelete                     // nothing
	opKinds  = 7 << 29
	maxLists = 1 << 29
)

// nowhere is no place in a list: of a read, that it is not known what was read, and of an
// append, that nobody has read it.
const nowhere = check.None

// transactions are the transactions in the order of the input, in parallel arrays.
type transactions struct {
	id         []history.ID
	begin, end []int64  // graph.Never and its negative of what has no place in real time
	clock      []uint32 // the number of the clock; nil: all are of one
	client     []uint32
	before     []uint32 // the transaction of the client that it had the answer of; None is none
	state      []uint8  // the outcome, or observed
	row        []uint32 // the operations of transaction t are row[t] to before row[t+1]
}

// observed is an unknown outcome of which somebody has read a write.
const observed uint8 = 128

const (
	committedState = uint8(history.Committed)
	unknownState   = uint8(history.Unknown)
)

// counts says that a transaction took effect.
func (t *transactions) counts(n uint32) bool {
	return t.state[n] == uint8(history.Committed) || t.state[n] == observed
}

// checker is one check.
type checker struct {
	Input
	watch check.Watch

	transactions
	opList  []uint32
	opArg   []uint32
	element []uint64 // of appends
	ranges  []rangeRead
	deletes bool // there is a Delete
	values  bool // there is a list of Values
	pieces  bool // and one of Pieces
	unread  []unread
	clients []clientState
	byName  map[uint64]uint32 // the number of a client
	last    uint32            // the number of the client of the last transaction
	doubt   check.Doubt       // whether real time contradicts the order, where the clocks leave it open

	keys  keyTable
	lists [][]uint64 // by number of the key, the longest that was read; of a tree what each version added
	kept  []Storage  // likewise
	store elementStore
	trees map[uint32]*tree // the lists of Values that fork
	value []uint64         // that a transaction wrote

	partial map[uint32][]uint64 // by operation, the reads of Pieces that went past an element

	versions
	graph      *graph.Graph
	decision   *graph.Decision
	found      [oddities]oddity
	cycles     []cycle
	violations []violation
	final      []uint32            // by list, which version the end state has; nowhere where it has another list
	strange    map[uint32][]uint64 // that other list
	forked     bool                // two transactions overwrote the same value
	open       bool                // and in no order of such values is every transaction seen whole
	unsettled  [graph.Orders]bool  // whether snapshot isolation in an order is open because of appends that nobody has read
	unplaced   bool                // there are appends to Values of which neither is known what they were made of nor who read them
	why        string              // what leaves undecided what seems valid
}

type clientState struct {
	name   uint64
	latest uint32 // its latest transaction of which it had the answer
}

// rangeRead is a Range: its operations are those from first to before last, a row each.
type rangeRead struct {
	t, first, last uint32
	low, high      uint64
}

// unread is what a transaction of unknown outcome has read.
type unread struct {
	t, op uint32 // the operation is None of a value that it wrote
	list  uint32
	read  []uint64
}

func newChecker(ctx context.Context, in Input) *checker {
	c := &checker{Input: in, watch: check.Watch{Ctx: ctx}, byName: map[uint64]uint32{}}
	c.row = []uint32{0}
	if c.List == nil {
		c.List = func(key uint64) string { return fmt.Sprintf("list %d", key) }
	}
	if c.Element == nil {
		c.Element = func(e uint64) string { return strconv.FormatUint(e, 10) }
	}
	if c.Storage == nil {
		c.Storage = func(uint64) Storage { return Objects }
	}
	if c.Who == nil {
		c.Who = func(id history.ID) string { return "transaction " + id.String() }
	}
	return c
}

// read takes the whole history.
func (c *checker) read() error {
	var problem error
	for t := range check.Each(&c.watch, "the history", c.Transactions, &problem) {
		if len(c.opList)+len(t.Ops) > 1<<31 {
			return fmt.Errorf("the history has more than %d operations, which is more than one check takes", uint32(1<<31))
		}
		c.add(t)
		if len(c.keys.key) >= maxLists {
			return fmt.Errorf("the history has more than %d lists, which is more than one check takes", maxLists)
		}
	}
	if c.watch.Err != nil {
		return c.watch.Err
	}
	switch {
	case problem != nil:
		c.undecided(problem.Error())
	case !c.Complete:
		c.undecided("the recording was cut off, so what the last transactions did is not known")
	}
	return nil
}

// undecided notes what is missing for calling anything valid; the first counts.
func (c *checker) undecided(why string) {
	if c.why == "" {
		c.why = why
	}
}

func (c *checker) add(t *Transaction) {
	n := uint32(len(c.id))
	c.id = append(c.id, t.ID)
	c.addTimes(n, t)
	outcome := t.Outcome
	if outcome == history.Rejected {
		outcome = history.Aborted
	}
	c.state = append(c.state, uint8(outcome))
	for i := range t.Ops {
		switch op := &t.Ops[i]; op.Kind {
		case Append:
			c.op(opAppend|c.list(op.Key), uint32(len(c.element)))
			c.element = append(c.element, op.Element)
		case Read:
			c.addRead(opRead, n, outcome, op.Key, op.List, op.Known)
		case Delete:
			c.deletes = true
			c.op(opDelete|c.list(op.Key), 0)
		case Range:
			if !op.Known {
				continue
			}
			first := uint32(len(c.opList))
			for _, r := range op.Rows {
				c.addRead(opRow, n, outcome, r.Key, r.List, true)
			}
			c.ranges = append(c.ranges, rangeRead{n, first, uint32(len(c.opList)), op.Key, op.High})
		}
	}
	c.row = append(c.row, uint32(len(c.opList)))
	if c.values {
		c.written(n, t)
	}
}

// addTimes notes when a transaction was and after which one of its client. An aborted one
// has no place in the order.
func (c *checker) addTimes(n uint32, t *Transaction) {
	if int(c.last) >= len(c.clients) || c.clients[c.last].name != t.Client {
		number, known := c.byName[t.Client]
		if !known {
			number = uint32(len(c.clients))
			c.byName[t.Client] = number
			c.clients = append(c.clients, clientState{t.Client, check.None})
		}
		c.last = number
	}
	of, begin, end, before := &c.clients[c.last], t.Begin, t.End, check.None
	switch t.Outcome {
	case history.Unknown:
		end = graph.Never
	case history.Committed:
	default:
		begin, end = -graph.Never, graph.Never
	}
	if end != graph.Never || t.Outcome == history.Unknown {
		// Of transactions of one client that overlap no order is known.
		if of.latest != check.None && c.end[of.latest] <= begin {
			before = of.latest
		}
	}
	if end != graph.Never {
		of.latest = n
	}
	c.begin, c.end = append(c.begin, begin), append(c.end, end)
	c.client, c.before = append(c.client, c.last), append(c.before, before)
	if c.Errors != nil {
		c.clock = append(c.clock, t.Clock)
	}
}

// times are those of the transactions, of which real time is what is sure.
func (c *checker) times() []graph.Times {
	if c.clock == nil {
		return []graph.Times{{Begin: c.begin, End: c.end}}
	}
	begin, end := slices.Clone(c.begin), slices.Clone(c.end)
	for n, clock := range c.clock {
		if begin[n] != -graph.Never {
			begin[n] -= c.Errors[clock]
		}
		if end[n] != graph.Never {
			end[n] += c.Errors[clock]
		}
	}
	return []graph.Times{{Begin: c.begin, End: c.end, Group: c.clock}, {Begin: begin, End: end}}
}

// apart is how far the times of two transactions may be wrong beside each other, ns.
func (c *checker) apart(a, b uint32) int64 {
	if c.clock == nil || c.clock[a] == c.clock[b] {
		return 0
	}
	return c.Errors[c.clock[a]] + c.Errors[c.clock[b]]
}

// ended says that a transaction had ended before another began, for sure.
func (c *checker) ended(t, began uint32) bool {
	if c.end[t] == graph.Never || c.begin[began] == -graph.Never {
		return c.end[t] < c.begin[began]
	}
	return c.end[t]+c.apart(t, began) < c.begin[began]
}

func (c *checker) op(list, arg uint32) {
	c.opList, c.opArg = append(c.opList, list), append(c.opArg, arg)
}

// list returns the number of a list.
func (c *checker) list(key uint64) uint32 {
	n := c.keys.number(key)
	if int(n) == len(c.lists) {
		c.lists, c.kept = append(c.lists, nil), append(c.kept, c.Storage(key))
		c.values = c.values || c.kept[n] == Values
		c.pieces = c.pieces || c.kept[n] == Pieces
	}
	return n
}

// addRead takes what was read of one list. What an aborted transaction read says nothing; of
// what one of unknown outcome read that is not known yet.
func (c *checker) addRead(kind, t uint32, outcome history.Outcome, key uint64, read []uint64, known bool) {
	list, length, op := c.list(key), nowhere, uint32(len(c.opList))
	if known && outcome == history.Committed {
		length = c.take(op, list, t, read)
	} else if known && outcome == history.Unknown {
		c.unread = append(c.unread, unread{t, op, list, slices.Clone(read)})
	}
	c.op(kind|list, length)
}

// take observes what an operation read.
func (c *checker) take(op, list, t uint32, read []uint64) uint32 {
	length := c.observe(list, t, read)
	if c.kept[list] == Pieces && length != nowhere && slices.Contains(read, Missing) {
		if c.partial == nil {
			c.partial = map[uint32][]uint64{}
		}
		c.partial[op] = slices.Clone(read)
	}
	return length
}

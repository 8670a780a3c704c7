package lists

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
)

// An operation is kept in 5 bytes if lists are short: the number of its list with what it is in
// the highest bits, and a version of the list.
const (
	opRead   uint32 = iota << 29 // the version that it read; nowhere if that is not known
	opRow                        // likewise; of a Range
	opAppend                     // the version that it made, from 1; nowhere if nobody has read it
	opDelete                     // 0
	opKinds  = 7 << 29
	maxLists = 1 << 29
)

// nowhere is no place in a list: of a read, that it is not known what was read, and of an
// append, that nobody has read it.
const nowhere = check.None

// transactions are the transactions in the order of the input, in parallel arrays.
type transactions struct {
	sequence   []uint32 // the lower half of the id; the client has the other one
	begin, end []int64  // the end of one of unknown outcome is graph.Never
	clock      []uint32 // the number of the clock; nil: all are of one
	client     []uint32
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
	opList       []uint32
	arg          column   // the version that an operation read or made
	element      []uint64 // of appends, if no function returns them
	firstElement []uint32 // likewise, by transaction
	ranges       []rangeRead
	deletes      bool // there is a Delete
	values       bool // there is a list of Values
	pieces       bool // and one of Pieces
	unread       []unread
	clients      []client
	byHigh       map[client]uint32
	sessions     []uint64          // the names of the clients
	byName       map[uint64]uint32 // the number of a session
	last         uint32            // the number of the client of the last transaction
	doubt        check.Doubt       // whether real time contradicts the order, where the clocks leave it open

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
	final      []uint32             // by list, which version the end state has; nowhere where it has another list
	strange    map[uint32][]uint64  // that other list
	forked     bool                 // two transactions overwrote the same value
	open       bool                 // and in no order of such values is every transaction seen whole
	unplaced   bool                 // there are appends to Values of which neither is known what they were made of nor who read them
	appended   map[listElement]bool // of such lists, what was appended to them
	lost       bits                 // the transactions of which an acknowledged append is lost
	updates    bits                 // those of which an update is lost, or who did not see it
	retried    bits                 // the transactions that were tried more than once
	lean       bool                 // the operations are forgotten before the graph is decided
	damage     fact.Fact            // why the transactions cannot be trusted; nil: they can
	why        fact.Fact            // what leaves undecided what seems valid; nil: nothing
	unsettled  [graph.Orders]bool   // whether snapshot isolation in an order is open because of appends that nobody has read
}

// client is a client with the upper half of the ids of its transactions. If these have several, it
// stands for so many.
type client struct {
	session uint32
	high    uint32
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
	c := &checker{Input: in, watch: check.Watch{Ctx: ctx}, byName: map[uint64]uint32{}, byHigh: map[client]uint32{}}
	c.row = []uint32{0}
	if c.List == nil {
		c.List = func(key uint64) string { return "list " + strconv.FormatUint(key, 10) }
	}
	if c.Element == nil {
		c.Element = func(_, e uint64) string { return strconv.FormatUint(e, 10) }
	}
	if c.Storage == nil {
		c.Storage = func(uint64) Storage { return Objects }
	}
	c.grow(in.Size)
	return c
}

// grow makes room for so many transactions.
func (c *checker) grow(n int) {
	c.sequence, c.client = slices.Grow(c.sequence, n), slices.Grow(c.client, n)
	c.begin, c.end = slices.Grow(c.begin, n), slices.Grow(c.end, n)
	c.state, c.row = slices.Grow(c.state, n), slices.Grow(c.row, n+1)
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
	if problem != nil {
		c.damage = fact.Unreadable{Problem: problem.Error()}
	} else if c.Damage != nil {
		c.damage = c.Damage()
	}
	if !c.Complete {
		c.undecided(fact.CutOff{})
	}
	return nil
}

// undecided notes what is missing for calling anything valid; the first counts.
func (c *checker) undecided(why fact.Fact) {
	if c.why == nil {
		c.why = why
	}
}

func (c *checker) add(t *Transaction) {
	n := c.count()
	c.addTimes(t)
	if c.Appended == nil {
		c.firstElement = append(c.firstElement, uint32(len(c.element)))
	}
	outcome := t.Outcome
	if outcome == history.Rejected {
		outcome = history.Aborted
	}
	c.state = append(c.state, uint8(outcome))
	if t.Retried {
		c.retried.set(n)
	}
	for i := range t.Ops {
		switch op := &t.Ops[i]; op.Kind {
		case Append:
			c.op(opAppend|c.list(op.Key), nowhere)
			if c.Appended == nil {
				c.element = append(c.element, op.Element)
			}
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

// addTimes notes when a transaction was, and of which client. An aborted one has no edges, so
// that its times say nothing of others.
func (c *checker) addTimes(t *Transaction) {
	high := uint32(t.ID >> 32)
	if int(c.last) >= len(c.clients) || c.clients[c.last].high != high || c.sessions[c.clients[c.last].session] != t.Client {
		c.last = c.clientOf(t.Client, high)
	}
	end := t.End
	if t.Outcome == history.Unknown {
		end = graph.Never
	}
	c.begin, c.end = append(c.begin, t.Begin), append(c.end, end)
	c.client, c.sequence = append(c.client, c.last), append(c.sequence, uint32(t.ID))
	if c.Errors != nil {
		c.clock = append(c.clock, t.Clock)
	}
}

// clientOf returns the number of a client.
func (c *checker) clientOf(name uint64, high uint32) uint32 {
	session, known := c.byName[name]
	if !known {
		session = uint32(len(c.sessions))
		c.byName[name], c.sessions = session, append(c.sessions, name)
	}
	of := client{session, high}
	number, known := c.byHigh[of]
	if !known {
		number = uint32(len(c.clients))
		c.byHigh[of], c.clients = number, append(c.clients, of)
	}
	return number
}

func (t *transactions) count() uint32 { return uint32(len(t.state)) }

// idOf returns the id of a transaction.
func (c *checker) idOf(t uint32) history.ID {
	return history.ID(c.clients[c.client[t]].high)<<32 | history.ID(c.sequence[t])
}

// sessionOf returns the number of the client of a transaction.
func (c *checker) sessionOf(t uint32) uint32 { return c.clients[c.client[t]].session }

// sessionOrder finds of each transaction the one of the same client before it.
type sessionOrder struct {
	*checker
	latest []uint32 // by session, the last transaction of which the client had the answer
}

func (c *checker) newSessionOrder() *sessionOrder {
	s := &sessionOrder{c, make([]uint32, len(c.sessions))}
	for i := range s.latest {
		s.latest[i] = check.None
	}
	return s
}

// before returns the transaction of the same client of which it had the answer before it began
// a transaction; None is none. It is called for all transactions in their order. Of transactions
// of one client that overlap no order is known.
func (s *sessionOrder) before(t uint32) uint32 {
	if s.state[t] == uint8(history.Aborted) {
		return check.None
	}
	latest, before := &s.latest[s.sessionOf(t)], check.None
	if *latest != check.None && s.end[*latest] <= s.begin[t] {
		before = *latest
	}
	if s.state[t] == committedState {
		*latest = t
	}
	return before
}

// times are those of the transactions, of which real time is what is sure.
func (c *checker) times() []graph.Times {
	if c.clock == nil {
		return []graph.Times{{Begin: c.begin, End: c.end}}
	}
	begin, end := slices.Clone(c.begin), slices.Clone(c.end)
	for n, clock := range c.clock {
		begin[n] -= c.Errors[clock]
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
	return c.end[t] != graph.Never && c.end[t]+c.apart(t, began) < c.begin[began]
}

func (c *checker) op(list, arg uint32) {
	c.opList = append(c.opList, list)
	c.arg.add(arg)
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

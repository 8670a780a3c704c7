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

// An operation takes 5 bytes if lists are short: the number of its list with the operation's kind in the
// highest bits, and a version of the list.
const (
	opRead   uint32 = iota << 29 // the version that it read; nowhere: not known
	opRow                        // likewise, for a row of a Range
	opAppend                     // the version that it made, from 1; nowhere: not read
	opDelete                     // 0
	opKinds  = 7 << 29
	maxLists = 1 << 29
)

// nowhere is not a position in a list. For a read it means that the result is not known; for an append, that
// it was not read.
const nowhere = check.None

// transactions holds the transactions in the order of the input, in parallel arrays.
type transactions struct {
	sequence   []uint32 // the lower half of the ID; the client has the upper half
	begin, end []int64  // the end of an unknown outcome is graph.Never
	clock      []uint32 // the number of the clock; nil: there is one clock
	client     []uint32
	state      []uint8  // the outcome, or observed
	row        []uint32 // the operations of transaction t are row[t] to row[t+1]-1
}

// observed is an unknown outcome of a transaction whose write was read.
const observed uint8 = 128

const (
	committedState = uint8(history.Committed)
	unknownState   = uint8(history.Unknown)
)

// counts reports whether a transaction took effect.
func (t *transactions) counts(n uint32) bool {
	return t.state[n] == uint8(history.Committed) || t.state[n] == observed
}

// checker is the state of one check.
type checker struct {
	Input
	watch check.Watch

	transactions
	opList       []uint32
	arg          column   // the version that an operation read or made
	element      []uint64 // by append, unless a function returns the elements
	firstElement []uint32 // by transaction, likewise
	ranges       []rangeRead
	deletes      bool // there is a Delete
	values       bool // there is a list of Values
	pieces       bool // there is a list of Pieces
	unread       []unread
	clients      []client
	byHigh       map[client]uint32
	sessions     []uint64          // the names of the clients
	byName       map[uint64]uint32 // the last client of each session
	last         uint32            // the number of the last transaction's client
	doubt        check.Doubt       // real time may contradict the order within the clock errors

	keys  keyTable
	lists [][]uint64 // by list: the longest version that was read; for a tree, the elements that each version added
	kept  []Storage  // by list
	store elementStore
	trees map[uint32]*tree // the lists of Values that fork
	value []uint64         // the values that a transaction wrote

	partial map[uint32][]uint64 // by operation: reads of Pieces that missed an element

	versions
	graph      *graph.Graph
	decision   *graph.Decision
	found      [oddities]oddity
	cycles     []cycle
	violations []violation
	final      []uint32             // by list: the version in the end state; nowhere: it matches none
	strange    map[uint32][]uint64  // the lists in the end state that match no version
	forked     bool                 // two transactions overwrote the same value
	open       bool                 // no order of such values lets every transaction be seen completely
	unplaced   bool                 // there are appends to Values whose origin and readers are both unknown
	appended   map[listElement]bool // the appends to such lists
	lost       bits                 // the transactions with a lost acknowledged append
	updates    bits                 // the transactions with a lost update, or that missed one
	retried    bits                 // the transactions with more than one try
	lean       bool                 // the operations are dropped before the graph is decided
	damage     fact.Fact            // why the transactions cannot be trusted; nil: they can
	why        fact.Fact            // why nothing can be called valid; nil: no reason
	unsettled  [graph.Orders]bool   // by order: snapshot isolation is undecided because of unread appends
}

// client is a client with the upper half of its transactions' IDs. A client whose IDs have several upper
// halves has several entries.
type client struct {
	session uint32
	high    uint32
}

// rangeRead is a Range. Its operations, one for each row, are first to last-1.
type rangeRead struct {
	t, first, last uint32
	low, high      uint64
}

// unread is a read of a transaction of unknown outcome.
type unread struct {
	t, op uint32 // the operation is None for a value that it wrote
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

// grow allocates space for n transactions.
func (c *checker) grow(n int) {
	c.sequence, c.client = slices.Grow(c.sequence, n), slices.Grow(c.client, n)
	c.begin, c.end = slices.Grow(c.begin, n), slices.Grow(c.end, n)
	c.state, c.row = slices.Grow(c.state, n), slices.Grow(c.row, n+1)
}

// read reads the whole history.
func (c *checker) read() error {
	var problem error
	for t := range check.Each(&c.watch, "the history", c.Transactions, &problem) {
		if len(c.opList)+len(t.Ops) > 1<<31 {
			return fmt.Errorf("the history has more than the limit of %d operations: check a shorter run", uint32(1<<31))
		}
		c.add(t)
		if len(c.keys.key) >= maxLists {
			return fmt.Errorf("the history has more than the limit of %d lists: check a shorter run", maxLists)
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

// undecided records a reason why nothing can be called valid. The first reason counts.
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

// addTimes records the times and the client of a transaction. An aborted transaction has no edges, so its
// times do not matter.
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
	last, known := c.byName[name]
	if known && c.clients[last].high == high {
		return last
	}
	of := client{high: high}
	if known {
		of.session = c.clients[last].session
	} else {
		of.session = uint32(len(c.sessions))
		c.sessions = append(c.sessions, name)
	}
	number, known := c.byHigh[of]
	if !known {
		number = uint32(len(c.clients))
		c.byHigh[of], c.clients = number, append(c.clients, of)
	}
	c.byName[name] = number
	return number
}

func (t *transactions) count() uint32 { return uint32(len(t.state)) }

// idOf returns the ID of a transaction.
func (c *checker) idOf(t uint32) history.ID {
	return history.ID(c.clients[c.client[t]].high)<<32 | history.ID(c.sequence[t])
}

// sessionOf returns the number of a transaction's session.
func (c *checker) sessionOf(t uint32) uint32 { return c.clients[c.client[t]].session }

// sessionOrder finds the previous transaction of each transaction's client.
type sessionOrder struct {
	*checker
	latest []uint32 // by session: the last transaction with a reply
}

func (c *checker) newSessionOrder() *sessionOrder {
	s := &sessionOrder{c, make([]uint32, len(c.sessions))}
	for i := range s.latest {
		s.latest[i] = check.None
	}
	return s
}

// before returns the last transaction of the same client whose reply arrived before t began, or None. It must
// be called for all transactions in order. Overlapping transactions of one client have no known order.
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

// times returns the times of the transactions with their certain bounds.
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

// apart returns the maximal error between the times of two transactions, in ns.
func (c *checker) apart(a, b uint32) int64 {
	if c.clock == nil || c.clock[a] == c.clock[b] {
		return 0
	}
	return c.Errors[c.clock[a]] + c.Errors[c.clock[b]]
}

// ended reports whether a transaction certainly ended before another began.
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

// addRead records a read of one list. Reads of aborted transactions are ignored. Reads of unknown outcomes
// are kept until the outcome is known.
func (c *checker) addRead(kind, t uint32, outcome history.Outcome, key uint64, read []uint64, known bool) {
	list, length, op := c.list(key), nowhere, uint32(len(c.opList))
	if known && outcome == history.Committed {
		length = c.take(op, list, t, read)
	} else if known && outcome == history.Unknown {
		c.unread = append(c.unread, unread{t, op, list, slices.Clone(read)})
	}
	c.op(kind|list, length)
}

// take records the result of an operation's read.
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

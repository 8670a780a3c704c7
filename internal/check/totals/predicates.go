package totals

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
)

// Predicates are what a workload says of accounts that its clients open and close, whose
// numbers are those from AccountsInput.Accounts on, and of reads of all accounts of a
// group.
//
// An account is opened by the first leg on it, and its version 0 is that it is not there.
// The leg that takes all that it holds closes it, which no other does, and it is never
// opened again.
type Predicates struct {
	// Group is the group of an account, and Run the run whose clients have opened one.
	Group, Run func(n uint64) uint64
	// Read says which group's accounts a transaction has read by predicate, all that were
	// there, and its operation on an account of the load that all closings in the group
	// pay into; false of a transaction that has not.
	Read func(tx *history.Transaction) (group uint64, anchor *history.Op, ok bool)
	// Limit is the most that what the clients of one run have opened in one group may
	// hold together, cents.
	Limit int64
}

// has says that an account is one that the load made or that a client may have opened.
func (b *balances) has(n uint64) bool { return n < b.in.Accounts || b.in.Predicates != nil }

// open says that a client has opened the account and that, by the ledger, none has closed it.
func (s *slot) open() bool { return s.legs > 0 && s.sum != 0 }

// predicateFacts are what was read by predicate.
type predicateFacts struct {
	reads  []predicateRead
	groups map[uint64]*openings
	missed map[[2]uint32]uint64 // by reader and opener: the account that the reader missed
	over   []overLimit          // reads of a group that was over its limit
}

// predicateRead is one read of all accounts of a group.
type predicateRead struct {
	t, place uint32 // place is that of the account that t itself opened; check.None if none
	anchor   uint64 // the version of the account that closings pay into, as it was read
	members  []uint64
}

// openings are the accounts of a group that clients have opened, in the order in which
// their openings began.
type openings struct {
	list  []opened
	last  []uint64 // the highest closed of each block of the list
	place map[uint64]uint32
	reads []int // of this group
	least []uint32
}

// opened is one account. Its closing made the version closed of the account that all
// closings of the group pay into; of one that stays open that is infinite.
type opened struct {
	n      uint64
	opener uint32
	closer uint32 // none of one that stays open
	closed uint64
	misses uint32 // the place of the first account that its opener did not find; beyond the list if none
}

// openingsBlock is how many openings are passed over at a time where all were closed
// before.
const openingsBlock = 256

// relatePredicates adds the anti-dependencies of reads by predicate (Adya, Weak
// Consistency, MIT 1999, section 3.1.2): who read all accounts of a group and did not
// find one came before the transaction that opened it, unless it was closed before. That
// shows in the account that the closing has paid into, which was read together with the
// group.
//
// To come before every later opening would be the square of the edges. One is left out
// where a path says the same: the reader comes before the first opening that it missed,
// and a later opening that did not miss that one comes after it.
func (b *balances) relatePredicates() error {
	p := b.in.Predicates
	if p == nil {
		return nil
	}
	f := &b.predicates
	f.groups, f.missed = map[uint64]*openings{}, map[[2]uint32]uint64{}
	b.findOpenings()
	err := b.Each(func(t uint32, tx *history.Transaction) {
		if group, anchor, ok := p.Read(tx); ok && b.Txns.List[t].Counts() {
			b.noteRead(t, tx, group, anchor)
		}
	})
	groups := slices.Sorted(maps.Keys(f.groups))
	for _, group := range groups {
		g := f.groups[group]
		for _, r := range g.reads {
			if read := &f.reads[r]; read.place != check.None {
				g.list[read.place].misses = g.next(read, 0)
			}
		}
		g.suffixes()
	}
	for _, group := range groups {
		g := f.groups[group]
		for _, r := range g.reads {
			if b.Watch.Ended() {
				return err
			}
			b.relateMissed(g, &f.reads[r])
		}
	}
	return err
}

// findOpenings finds the accounts that clients have opened, and who closed them. Those
// whose versions are not a chain say nothing of any order.
func (b *balances) findOpenings() {
	closings := map[uint32]uint64{} // the version of an account of the load that a closing made
	odd := map[uint32]bool{}        // closings of which that is not known
	for i := range b.slots.list {
		s := &b.slots.list[i]
		last := s.base + s.length
		if s.n >= b.in.Accounts && s.length > 0 && b.chain.balance[last] == 0 && b.chain.writer[last] != check.None {
			closings[b.chain.writer[last]] = 0
		}
	}
	for i := range b.slots.list {
		s := &b.slots.list[i]
		for p := s.first() + 1; s.n < b.in.Accounts && p <= s.base+s.length && !b.Watch.Ended(); p++ {
			w := b.chain.writer[p]
			if _, closing := closings[w]; closing && w != check.None {
				closings[w] = uint64(p - s.base)
				odd[w] = s.forked
			}
		}
	}
	for i := range b.slots.list {
		s := &b.slots.list[i]
		if s.n < b.in.Accounts || s.length == 0 || s.low > 0 || s.forked || s.broken {
			continue
		}
		first, last := b.chain.writer[s.base+1], s.base+s.length
		if first == check.None || b.Txns.List[first].Source == check.FromLedger {
			continue
		}
		o := opened{n: s.n, opener: first, closer: check.None, closed: math.MaxUint64}
		if b.chain.balance[last] == 0 {
			o.closer = b.chain.writer[last]
			o.closed = closings[o.closer]
			if o.closed == 0 || odd[o.closer] {
				continue
			}
		}
		group := b.in.Predicates.Group(s.n)
		g := b.predicates.groups[group]
		if g == nil {
			g = &openings{place: map[uint64]uint32{}}
			b.predicates.groups[group] = g
		}
		g.list = append(g.list, o)
	}
	for _, g := range b.predicates.groups {
		slices.SortFunc(g.list, func(a, c opened) int {
			return cmp.Or(cmp.Compare(b.Txns.List[a.opener].Try, b.Txns.List[c.opener].Try), cmp.Compare(a.n, c.n))
		})
		for i := range g.list {
			g.list[i].misses = uint32(len(g.list))
			g.place[g.list[i].n] = uint32(i)
		}
		for block := range slices.Chunk(g.list, openingsBlock) {
			g.last = append(g.last, slices.MaxFunc(block, func(a, b opened) int { return cmp.Compare(a.closed, b.closed) }).closed)
		}
	}
}

// noteRead keeps what a read by predicate found.
func (b *balances) noteRead(t uint32, tx *history.Transaction, group uint64, anchor *history.Op) {
	b.noteLimit(t, tx, group)
	g := b.predicates.groups[group]
	s := b.slots.find(anchor.Object)
	if g == nil || s != nil && s.forked {
		return
	}
	read := predicateRead{t: t, place: check.None, anchor: anchor.Version}
	for i := range tx.Ops {
		op := &tx.Ops[i]
		switch place, ok := g.place[op.Object]; {
		case !ok:
		case g.list[place].opener == t:
			read.place = place
		case op.Observed && op.State != history.Absent:
			read.members = append(read.members, op.Object)
		}
	}
	slices.Sort(read.members)
	g.reads = append(g.reads, len(b.predicates.reads))
	b.predicates.reads = append(b.predicates.reads, read)
}

// next returns the place of the first account from a place on that a read should have
// found unless it came before its opening; beyond the list if there is none.
func (g *openings) next(r *predicateRead, from uint32) uint32 {
	for i := from; i < uint32(len(g.list)); i++ {
		for i%openingsBlock == 0 && i < uint32(len(g.list)) && g.last[i/openingsBlock] <= r.anchor {
			i += openingsBlock
		}
		if i >= uint32(len(g.list)) {
			break
		}
		o := &g.list[i]
		if o.closed <= r.anchor || i == r.place {
			continue
		}
		if _, found := slices.BinarySearch(r.members, o.n); !found {
			return i
		}
	}
	return uint32(len(g.list))
}

// suffixes notes for each place the least misses from there on.
func (g *openings) suffixes() {
	g.least = make([]uint32, len(g.list)+1)
	least := uint32(len(g.list))
	g.least[len(g.list)] = least
	for i := len(g.list) - 1; i >= 0; i-- {
		least = min(least, g.list[i].misses)
		g.least[i] = least
	}
}

// relateMissed lets a read come before the openings of the accounts that it missed.
func (b *balances) relateMissed(g *openings, r *predicateRead) {
	first := g.next(r, 0)
	for i := first; i < uint32(len(g.list)) && (i == first || g.least[i] <= first); i = g.next(r, i+1) {
		o := &g.list[i]
		if i > first && o.misses > first {
			continue
		}
		b.edges.Add(r.t, o.opener, graph.Rw)
		b.predicates.missed[[2]uint32{r.t, o.opener}] = o.n
	}
}

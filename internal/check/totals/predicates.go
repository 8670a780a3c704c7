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
// group, or of those of them that hold less than a balance.
//
// An account is opened by the first leg on it, and its version 0 is that it is not there.
// The leg that takes all that it holds closes it, which no other does, and it is never
// opened again.
type Predicates struct {
	// Group is the group of an account, and Run the run whose clients have opened one.
	Group, Run func(n uint64) uint64
	// Read says what a transaction has read by predicate, and its operation on an account
	// of the load, the group's anchor: what takes an account out of a predicate changes the
	// anchor too. False is a transaction that has not read by predicate.
	Read func(tx *history.Transaction) (p Predicate, anchor *history.Op, ok bool)
	// Limit is the most that what the clients of one run have opened in one group may
	// hold together, cents.
	Limit int64
	// Low is the balance below which an account is low, and Cover the most that the low
	// accounts which clients of one run have opened in one group may lack of it together,
	// cents.
	Low, Cover int64
}

// Predicate is what a read by predicate found all of: the accounts of a group that are
// there, or the low ones of them.
type Predicate struct {
	Group uint64
	Low   bool
}

// takes says that an account of the group with this balance is among what is found.
func (q Predicate) takes(balance, low int64) bool { return balance != 0 && (!q.Low || balance < low) }

// has says that an account is one that the load made or that a client may have opened.
func (b *balances) has(n uint64) bool { return n < b.in.Accounts || b.in.Predicates != nil }

// open says that a client has opened the account and that, by the ledger, none has closed it.
func (s *slot) open() bool { return s.legs > 0 && s.sum != 0 }

// predicateFacts are what was read by predicate.
type predicateFacts struct {
	reads  []predicateRead
	found  map[Predicate]*stays
	missed map[[2]uint32]missed // by reader and who brought in what the reader missed
	over   []overLimit          // reads of a group that was over a limit
}

// missed is an account that a read by predicate did not find.
type missed struct {
	n       uint64
	version uint64 // with which it came in
	low     bool   // the predicate was of low accounts
}

// predicateRead is one read by predicate.
type predicateRead struct {
	t, place uint32 // place is that of the stay that t itself began; check.None if none
	anchor   uint64 // the version of the anchor, as it was read
	members  []member
}

// member is an account that a read by predicate found, and its version.
type member struct{ n, version uint64 }

// stays are the times that accounts spent in a predicate, in the order in which the
// transactions began that brought them in.
type stays struct {
	list  []stay
	last  []uint64          // the highest left of each block of the list
	place map[uint32]uint32 // by who brought the account in
	reads []int             // by this predicate
	least []uint32
}

// stay is the time from the version with which an account came into a predicate to the
// one with which it left it, which made the version left of the anchor. Of one that did
// not leave that is infinite; without an end state, in which case who took it out may not be
// known, it is the version after the last one beside which somebody found the account.
type stay struct {
	n       uint64
	entered uint64
	enterer uint32
	left    uint64
	last    uint64 // the last version that is known to be of this stay; of one that lasts until the account is closed all are
	unsure  uint32 // the place of the first stay that the enterer may not come after; beyond the list if none
}

// staysBlock is how many stays are passed over at a time where all had ended before.
const staysBlock = 256

// relatePredicates adds the anti-dependencies of reads by predicate (Adya, Weak
// Consistency, MIT 1999, section 3.1.2): who read by a predicate and did not find an
// account came before the transaction that brought it into the predicate, unless it had
// left again before. That shows in the version of the anchor, which was read together
// with the others.
//
// To come before all that later came in would be the square of the edges. One is left out
// where a path says the same: the reader comes before the first that it missed, and what
// brought in a later one comes after that if it has seen it, or that it had left.
func (b *balances) relatePredicates() error {
	p := b.in.Predicates
	if p == nil {
		return nil
	}
	f := &b.predicates
	f.found, f.missed = map[Predicate]*stays{}, map[[2]uint32]missed{}
	b.findStays()
	err := b.Each(func(t uint32, tx *history.Transaction) {
		if q, anchor, ok := p.Read(tx); ok && b.Txns.List[t].Counts() {
			b.noteRead(t, tx, q, anchor)
		}
	})
	all := slices.SortedFunc(maps.Keys(f.found), func(a, b Predicate) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), compareBool(a.Low, b.Low))
	})
	for _, q := range all {
		g := f.found[q]
		if b.Input.End == nil {
			g.stayed(f.reads)
		}
		g.findLast()
		for _, r := range g.reads {
			if read := &f.reads[r]; read.place != check.None {
				g.list[read.place].unsure = g.next(read, 0, true)
			}
		}
		g.suffixes()
	}
	for _, q := range all {
		g := f.found[q]
		for _, r := range g.reads {
			if b.Watch.Ended() {
				return err
			}
			b.relateMissed(g, &f.reads[r], q.Low)
		}
	}
	return err
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// findStays finds which accounts that clients have opened were in a predicate, and who
// brought them in and out. Those whose versions are not a chain say nothing of any order.
func (b *balances) findStays() {
	exits := map[uint32]uint64{} // the version of the anchor that was made with an exit
	b.eachStay(func(_ Predicate, _ *slot, _, left uint32) {
		if w := b.chain.writer[left]; left != 0 && w != check.None {
			exits[w] = 0
		}
	})
	odd := map[uint32]bool{} // exits of which the version of the anchor is not known
	for i := range b.slots.list {
		s := &b.slots.list[i]
		for p := s.first() + 1; s.n < b.in.Accounts && p <= s.base+s.length && !b.Watch.Ended(); p++ {
			w := b.chain.writer[p]
			if _, exit := exits[w]; exit && w != check.None {
				exits[w] = uint64(p - s.base)
				odd[w] = s.forked
			}
		}
	}
	b.eachStay(func(q Predicate, s *slot, entered, left uint32) {
		enterer := b.chain.writer[entered]
		if enterer == check.None || b.Txns.List[enterer].Source == check.FromLedger {
			return
		}
		o := stay{n: s.n, entered: uint64(entered - s.base), enterer: enterer, left: math.MaxUint64, last: math.MaxUint64}
		if q.Low {
			o.last = uint64(s.length)
		}
		if left != 0 {
			w := b.chain.writer[left]
			if o.left = exits[w]; w == check.None || o.left == 0 || odd[w] {
				return
			}
		}
		g := b.predicates.found[q]
		if g == nil {
			g = &stays{place: map[uint32]uint32{}}
			b.predicates.found[q] = g
		}
		g.list = append(g.list, o)
	})
	for _, g := range b.predicates.found {
		slices.SortFunc(g.list, func(x, y stay) int {
			return cmp.Or(cmp.Compare(b.Txns.List[x.enterer].Try, b.Txns.List[y.enterer].Try), cmp.Compare(x.n, y.n), cmp.Compare(x.entered, y.entered))
		})
		for i := range g.list {
			g.place[g.list[i].enterer] = uint32(i)
		}
	}
}

// stayed lets the accounts that nobody is known to have taken out stay as long as reads found
// them, and those who brought them in.
func (g *stays) stayed(reads []predicateRead) {
	open := map[uint64]*stay{}
	for i := range g.list {
		if o := &g.list[i]; o.left == math.MaxUint64 {
			o.left = 0
			open[o.n] = o
		}
	}
	for _, r := range g.reads {
		read := &reads[r]
		for _, m := range read.members {
			if o := open[m.n]; o != nil && m.version >= o.entered && m.version <= o.last {
				o.left = max(o.left, read.anchor+1)
			}
		}
		if read.place != check.None {
			if own := &g.list[read.place]; open[own.n] == own {
				own.left = max(own.left, read.anchor+1)
			}
		}
	}
}

// findLast finds the highest left of each block.
func (g *stays) findLast() {
	for block := range slices.Chunk(g.list, staysBlock) {
		g.last = append(g.last, slices.MaxFunc(block, func(x, y stay) int { return cmp.Compare(x.left, y.left) }).left)
	}
}

// eachStay calls f with each stay of an account that clients have opened: the positions of
// the versions with which it came into a predicate and left it, 0 of one that did not.
func (b *balances) eachStay(f func(q Predicate, s *slot, entered, left uint32)) {
	p := b.in.Predicates
	for i := range b.slots.list {
		s := &b.slots.list[i]
		if s.n < b.in.Accounts || s.length == 0 || s.low > 0 || s.forked || s.broken || b.Watch.Ended() {
			continue
		}
		for _, q := range []Predicate{{p.Group(s.n), false}, {p.Group(s.n), true}} {
			entered := uint32(0)
			for at := s.base + 1; at <= s.base+s.length; at++ {
				switch in := q.takes(b.chain.balance[at], p.Low); {
				case in && entered == 0:
					entered = at
				case !in && entered != 0:
					f(q, s, entered, at)
					entered = 0
				}
			}
			if entered != 0 {
				f(q, s, entered, 0)
			}
		}
	}
}

// noteRead keeps what a read by predicate found.
func (b *balances) noteRead(t uint32, tx *history.Transaction, q Predicate, anchor *history.Op) {
	b.noteLimit(t, tx, q)
	g := b.predicates.found[q]
	s := b.slots.find(anchor.Object)
	if g == nil || s != nil && s.forked {
		return
	}
	read := predicateRead{t: t, place: check.None, anchor: anchor.Version}
	if place, ok := g.place[t]; ok {
		read.place = place
	}
	for i := range tx.Ops {
		if op := &tx.Ops[i]; op.Object >= b.in.Accounts && op.Observed && op.State != history.Absent {
			read.members = append(read.members, member{op.Object, op.Version})
		}
	}
	slices.SortFunc(read.members, func(a, b member) int { return cmp.Compare(a.n, b.n) })
	g.reads = append(g.reads, len(b.predicates.reads))
	b.predicates.reads = append(b.predicates.reads, read)
}

// next returns the place of the first stay from a place on whose account a read should
// have found unless it came before it; beyond the list if there is none. With unsure it is
// the first that the read is not known to come after the beginning of: what it found of the
// account may be a version of an earlier stay.
func (g *stays) next(r *predicateRead, from uint32, unsure bool) uint32 {
	for i := from; i < uint32(len(g.list)); i++ {
		for i%staysBlock == 0 && i < uint32(len(g.list)) && g.last[i/staysBlock] <= r.anchor {
			i += staysBlock
		}
		if i >= uint32(len(g.list)) {
			break
		}
		o := &g.list[i]
		if o.left <= r.anchor || i == r.place {
			continue
		}
		at, found := slices.BinarySearchFunc(r.members, o.n, func(m member, n uint64) int { return cmp.Compare(m.n, n) })
		if !found || unsure && r.members[at].version < o.entered {
			return i
		}
	}
	return uint32(len(g.list))
}

// suffixes notes for each place the least unsure from there on.
func (g *stays) suffixes() {
	g.least = make([]uint32, len(g.list)+1)
	least := uint32(len(g.list))
	g.least[len(g.list)] = least
	for i := len(g.list) - 1; i >= 0; i-- {
		least = min(least, g.list[i].unsure)
		g.least[i] = least
	}
}

// relateMissed lets a read come before what brought in the accounts that it missed.
func (b *balances) relateMissed(g *stays, r *predicateRead, low bool) {
	first := g.next(r, 0, false)
	for i := first; i < uint32(len(g.list)) && (i == first || g.least[i] <= first); i = g.next(r, i+1, false) {
		o := &g.list[i]
		if i > first && o.unsure > first {
			continue
		}
		b.edges.Add(r.t, o.enterer, graph.PredicateRw)
		b.predicates.missed[[2]uint32{r.t, o.enterer}] = missed{o.n, o.entered, low}
	}
}

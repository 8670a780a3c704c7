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

// Predicates describes accounts that clients open and close, and reads by predicate. The numbers of such
// accounts start at AccountsInput.Accounts. A read by predicate returns all accounts of a group, or those
// with less than a given balance.
//
// The first leg on an account opens it; in version 0 the account does not exist. Only the leg that takes the
// whole balance closes it. A closed account is never opened again.
type Predicates struct {
	// Group returns the group of an account, and Run the run whose clients opened it.
	Group, Run func(n uint64) uint64
	// Read returns a transaction's read by predicate, and its operation on the anchor of the group. The
	// anchor is an account of the load; a transaction that takes an account out of a predicate also changes
	// the anchor. ok is false if the transaction has no read by predicate.
	Read func(tx *history.Transaction) (p Predicate, anchor *history.Op, ok bool)
	// Limit is the maximal total of the accounts that the clients of one run opened in one group, in cents.
	Limit int64
	// Low is the balance below which an account is low. Cover is the maximal total by which the low accounts
	// that the clients of one run opened in one group may be below Low. Both are in cents.
	Low, Cover int64
}

// Predicate is the condition of a read by predicate: all existing accounts of a group, or the low ones.
type Predicate struct {
	Group uint64
	Low   bool
}

// takes reports whether an account of the group with this balance satisfies the predicate.
func (q Predicate) takes(balance, low int64) bool { return balance != 0 && (!q.Low || balance < low) }

// exists reports whether the load made the account or a client may have opened it.
func (b *balances) exists(n uint64) bool { return n < b.in.Accounts || b.in.Predicates != nil }

// has reports whether an account exists and is examined.
func (b *balances) has(n uint64) bool { return b.exists(n) && b.focus.covers(n) }

// open reports whether a client has opened the account and, according to the ledger, no client has closed it.
func (s *slot) open() bool { return s.legs > 0 && s.sum != 0 }

// predicateFacts holds what was read by predicate.
type predicateFacts struct {
	reads  []predicateRead
	found  map[Predicate]*stays
	missed map[[2]uint32]missed // by reader and by the transaction that brought the account in
	over   []overLimit          // reads of a group beyond its limit
}

// missed is an account that a read by predicate did not return.
type missed struct {
	n       uint64
	version uint64 // the version with which it came in
	low     bool   // the predicate selects low accounts
}

// predicateRead is one read by predicate.
type predicateRead struct {
	t, place uint32 // place is the index of the stay that t began; check.None: none
	anchor   uint64 // the version of the anchor that was read
	members  []member
}

// member is an account that a read by predicate returned, with its version.
type member struct{ n, version uint64 }

// stays holds the periods in which accounts satisfied a predicate, in the order in which the transactions
// that began them began.
type stays struct {
	list  []stay
	last  []uint64          // the highest left in each block of the list
	place map[uint32]uint32 // by the transaction that brought the account in
	reads []int             // the reads by this predicate
	least []uint32
}

// stay is a period in which an account satisfied a predicate: from the version that satisfied it first to the version
// that no longer did. The leaving transaction made version left of the anchor; left is infinite if the account stayed.
//
// Without an end state, the leaving transaction may be unknown. Then left is the version after the last one
// at which a read returned the account.
type stay struct {
	n       uint64
	entered uint64
	enterer uint32
	left    uint64
	last    uint64 // the last version known to belong to this stay
	unsure  uint32 // index of the first stay that the entering transaction may not follow; beyond the list: none
}

// staysBlock is the number of stays that are skipped together if all have ended.
const staysBlock = 256

// relatePredicates adds the anti-dependencies of reads by predicate (Adya, Weak Consistency, MIT 1999,
// section 3.1.2). A read that did not return an account precedes the transaction that brought it into the
// predicate, unless the account had left before. The version of the anchor, read together with the accounts,
// shows that.
//
// All such edges would be quadratic in number. An edge is omitted if a path implies it. The reader precedes the first
// transaction that it missed. A later transaction follows the first if it saw the account, or saw that it had left.
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

// findStays determines when opened accounts satisfied a predicate, and which transactions brought them in and
// out. Accounts whose versions are not a chain are omitted.
func (b *balances) findStays() {
	exits := map[uint32]uint64{} // by exit: the version of the anchor made with it
	b.eachStay(func(_ Predicate, _ *slot, _, left uint32) {
		if w := b.chain.writer[left]; left != 0 && w != check.None {
			exits[w] = 0
		}
	})
	odd := map[uint32]bool{} // exits with an unknown version of the anchor
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

// stayed extends each stay without a known exit to the last read that returned the account or its entering
// transaction.
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

// findLast computes the highest left of each block.
func (g *stays) findLast() {
	for block := range slices.Chunk(g.list, staysBlock) {
		g.last = append(g.last, slices.MaxFunc(block, func(x, y stay) int { return cmp.Compare(x.left, y.left) }).left)
	}
}

// eachStay calls f with each stay of an account that clients opened. entered and left are the positions of
// the versions with which the account came in and left; left is 0 if it stayed.
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

// noteRead records the result of a read by predicate.
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

// next returns the index of the first stay, starting at from, that a read should have returned unless the
// read came before it. It returns the length of the list if there is none. With unsure, it returns the first
// stay that may begin after the read: the version that the read returned may belong to an earlier stay.
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

// suffixes computes for each index the least unsure from there on.
func (g *stays) suffixes() {
	g.least = make([]uint32, len(g.list)+1)
	least := uint32(len(g.list))
	g.least[len(g.list)] = least
	for i := len(g.list) - 1; i >= 0; i-- {
		least = min(least, g.list[i].unsure)
		g.least[i] = least
	}
}

// relateMissed adds the edges from a read to the transactions that brought in the accounts that it missed.
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

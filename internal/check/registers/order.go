package registers

import (
	"cmp"
	"slices"

	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// zone is the time that is taken by one value of a record, or by several that must
// follow each other because each was written in the place of the one before by a
// transaction that had read it: the first end and the last beginning of everything
// that wrote or read them.
type zone struct {
	firstEnd, lastStart int64
	id                  history.ID // of the first value
	late                history.ID // of the value that began last
	several             bool       // it has several values
}

// findDisorder decides for every record whether its reads and writes have an order in
// which each read returns the value written last before it and which agrees with real
// time, as far as group g's clock shows it.
//
// Every value says who wrote it, which makes this easy where it is hard in general
// (Gibbons and Korach, Testing Shared Memories, SIAM J. Comput. 26(4), 1997). What
// belongs to one value stands together in every order; so only the order of the zones
// is to be found. One zone must come before another if something of it ended before
// something of the other began. There is an order unless two zones must each come
// before the other. (Proof: of the zones of a longer cycle take the one whose first
// end is the first of all, and the zone before it: that one's last beginning is after
// some first end, and so after this one's.) Two zones that end before they begin, as
// wide ones do, must not overlap; a narrow one must not lie within a wide one. So
// sorting them is enough.
func (k *checker) findDisorder(f *finder, o *ordering, key *register, g int) {
	if d := o.order(k, key, g); d.why != "" {
		key.broken = true
		f.find(disordered, key.n, func() finding {
			what := fact.RegisterNoOrder{Object: k.Object(key.n), Reason: d.why, First: k.writerAt(key.n, d.a), Several: d.several}
			if d.b != 0 {
				what.Second = k.writerAt(key.n, d.b)
			}
			return shows(what, cmp.Or(d.b, d.a), d.a)
		})
		f.because(disordered, k.isGone(key.n, d.a) || k.isGone(key.n, d.b), key.update)
	}
}

// isGone reports whether the write of an id to a record was acknowledged and is not in the end state.
func (k *checker) isGone(n uint64, id history.ID) bool {
	w := k.writeOn(n, id)
	return w != nil && w.is(gone)
}

// disorder is why a record has no order, as fact.RegisterNoOrder has it.
type disorder struct {
	why     string // empty: it has an order
	a, b    history.ID
	several bool
}

// ordering decides one record after another.
type ordering struct {
	list   []*write // of the record, by rank
	next   []int32  // of each write: the one that had read it and wrote in its place; -1 is none
	headed []bool   // of each write: it is such a one
	wide   []zone
	narrow []zone

	updates []*write
}

// order returns why a record has no order.
func (o *ordering) order(k *checker, key *register, g int) disorder {
	list := o.list
	if a, b, ok := o.link(k, key); !ok {
		return disorder{why: fact.ReplacedTwice, a: a, b: b}
	}
	o.wide, o.narrow = o.wide[:0], o.narrow[:0]
	placed, counted := 0, 0
	for i := range list {
		if list[i].is(early) {
			return disorder{why: fact.ReadBeforeWrite, a: list[i].id}
		}
		if !list[i].applied() {
			continue
		}
		counted++
		if o.headed[i] {
			continue
		}
		z := zone{firstEnd: never, lastStart: always, id: list[i].id, late: list[i].id, several: o.next[i] >= 0}
		for j := int32(i); j >= 0; j = o.next[j] {
			w := list[j]
			placed++
			if !z.take(w, k.timed(w, g)) {
				return disorder{why: fact.ReplacedEarly, a: z.late, b: w.id}
			}
		}
		if z.firstEnd < z.lastStart {
			o.wide = append(o.wide, z)
		} else {
			o.narrow = append(o.narrow, z)
		}
	}
	if placed < counted {
		for i := range list {
			if o.headed[i] && o.next[i] >= 0 {
				return disorder{why: fact.ReplacedCircle, a: list[i].previous, b: list[i].id}
			}
		}
	}
	return o.overlap()
}

// link finds which write follows at once on which. Two that follow on the same are
// returned with false.
func (o *ordering) link(k *checker, key *register) (a, b history.ID, ok bool) {
	list := o.list
	o.next, o.headed = slices.Grow(o.next[:0], len(list))[:len(list)], slices.Grow(o.headed[:0], len(list))[:len(list)]
	some := false
	for i, w := range list {
		o.next[i], o.headed[i] = -1, false
		some = some || w.is(rmw)
	}
	if !some {
		return 0, 0, true
	}
	for i, w := range list {
		w.setRank(i)
	}
	for i, w := range list {
		if !w.is(rmw) || !w.applied() {
			continue
		}
		p := k.writeOn(key.n, w.previous)
		if p == nil || !p.applied() {
			continue // of a run that is not given, or reported by the check values
		}
		at := p.rank()
		if o.next[at] >= 0 {
			return list[o.next[at]].id, w.id, false
		}
		o.next[at], o.headed[i] = int32(i), true
	}
	return 0, 0, true
}

// take adds a write, which follows on all that was taken before, and its reads. It is
// false if they ended before something that must come earlier began. Only the times
// of its own group's clock count.
func (z *zone) take(w *write, timed bool) bool {
	try, end := int64(always), int64(never)
	if timed {
		try, end = w.try, w.end
	}
	if end < z.lastStart || w.readsEnd < z.lastStart { // what read it did not end before it began
		return false
	}
	if start := max(try, w.readsStart); start > z.lastStart {
		z.lastStart, z.late = start, w.id
	}
	z.firstEnd = min(z.firstEnd, end, w.readsEnd)
	return true
}

// overlap looks for two zones each of which must come before the other.
func (o *ordering) overlap() disorder {
	slices.SortFunc(o.wide, func(x, y zone) int { return cmp.Compare(x.firstEnd, y.firstEnd) })
	for i := 1; i < len(o.wide); i++ {
		if o.wide[i].firstEnd < o.wide[i-1].lastStart {
			return bothWays(&o.wide[i-1], &o.wide[i])
		}
	}
	i := 0
	for _, z := range o.narrow {
		i = o.search(i, z.lastStart)
		if i > 0 && z.firstEnd < o.wide[i-1].lastStart {
			return bothWays(&o.wide[i-1], &z)
		}
	}
	return disorder{}
}

func bothWays(a, b *zone) disorder {
	return disorder{why: fact.BeforeAndAfter, a: a.id, b: b.id, several: a.several || b.several}
}

// search returns the first wide zone whose first end is not before a time. It is mostly that
// of the narrow zone before, which begins its search, or is soon behind it.
func (o *ordering) search(from int, at int64) int {
	if from == 0 || o.wide[from-1].firstEnd < at {
		for i := from; i < from+8; i++ {
			if i == len(o.wide) || o.wide[i].firstEnd >= at {
				return i
			}
		}
	}
	i, _ := slices.BinarySearchFunc(o.wide, at, func(x zone, at int64) int { return cmp.Compare(x.firstEnd, at) })
	return i
}

package registers

import (
	"cmp"
	"slices"

	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// zone is the time span of one value of a record. It may also span several values that must follow each other, because
// each was written by a reader of the previous one. It runs from the first end to the last beginning of all their
// writes and reads.
type zone struct {
	firstEnd, lastStart int64
	id                  history.ID // the first value
	late                history.ID // the value that began last
	several             bool       // it has several values
}

// findDisorder decides for every record whether its reads and writes have a linear order: each read returns
// the last value written before it, and the order agrees with real time on the clock of group g.
//
// The general problem is hard (Gibbons and Korach, Testing Shared Memories, SIAM J. Comput. 26(4), 1997), but
// here each value names its writer. All operations on one value are adjacent in every order, so only the
// order of the zones is open. One zone must precede another if an operation of the first ended before an
// operation of the second began.
//
// An order exists unless two zones must each precede the other. Proof: in a longer cycle, take the zone with
// the earliest first end, and the zone before it in the cycle. The last beginning of the latter is after some
// first end, and therefore after the earliest one.
//
// Two zones that end before they begin (wide zones) must not overlap. A narrow zone must not lie within a
// wide zone. So sorting is sufficient.
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

// isGone reports whether the write was acknowledged but is missing from the end state.
func (k *checker) isGone(n uint64, id history.ID) bool {
	w := k.writeOn(n, id)
	return w != nil && w.is(gone)
}

// disorder is the reason why a record has no order, in the terms of fact.RegisterNoOrder.
type disorder struct {
	why     string // empty: the record has an order
	a, b    history.ID
	several bool
}

// ordering decides records one by one.
type ordering struct {
	list   []*write // the writes of the record, by rank
	next   []int32  // by write: the write that read and replaced it; -1: none
	headed []bool   // by write: it replaced a write that it had read
	wide   []zone
	narrow []zone

	updates []*write
}

// order returns the reason why a record has no order.
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

// link determines which write directly follows which. If two writes follow the same one, it returns them
// and false.
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
			continue // from a run that was not given, or reported by the check values
		}
		at := p.rank()
		if o.next[at] >= 0 {
			return list[o.next[at]].id, w.id, false
		}
		o.next[at], o.headed[i] = int32(i), true
	}
	return 0, 0, true
}

// take adds a write that follows all previous ones, and its reads. It returns false if they ended before an
// operation that must precede them began. Only times on the clock of the write's own group count.
func (z *zone) take(w *write, timed bool) bool {
	try, end := int64(always), int64(never)
	if timed {
		try, end = w.try, w.end
	}
	if end < z.lastStart || w.readsEnd < z.lastStart { // a reader of it ended before the zone's last beginning
		return false
	}
	if start := max(try, w.readsStart); start > z.lastStart {
		z.lastStart, z.late = start, w.id
	}
	z.firstEnd = min(z.firstEnd, end, w.readsEnd)
	return true
}

// overlap looks for two zones that must each precede the other.
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

// search returns the first wide zone whose first end is not before a time. The search starts at the result
// for the previous narrow zone, which is usually close.
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

package registers

import (
	"cmp"
	"iter"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// reading is a transaction whose client learned what the database had seen.
type reading struct {
	*history.Transaction
	group        int
	began, ended int64 // on the clock of its group
	judge        bool  // what it saw is to be checked against who wrote it
	timed        bool  // when it saw that is to be noted
}

// readings yields those of group g, and with judge those of all histories, until the
// first error, which it puts into problem.
func (k *checker) readings(g int, judge bool, problem *error) iter.Seq[*reading] {
	return func(yield func(*reading) bool) {
		for number, source := range k.in.History {
			r := reading{group: k.group[number], judge: judge}
			if r.timed = r.group == g; !r.timed && !judge {
				continue
			}
			for rec := range check.Each(&k.Watch, "the history", source.Transactions(), problem) {
				if rec.Outcome != history.Committed && rec.Outcome != history.Rejected {
					continue
				}
				r.Transaction, r.began, r.ended = rec.Transaction, k.start(number, rec.Try), k.stop(number, rec.End)
				if !yield(&r) {
					return
				}
			}
			if *problem != nil {
				return
			}
		}
	}
}

// readGroup goes through what was read: of all histories the first time, when every
// value is checked against its writer, and of those of group g each time, for the times
// at which a value was seen.
func (k *checker) readGroup(g int) (problem error) {
	for i := range k.writes {
		k.writes[i].readsEnd, k.writes[i].readsStart = never, always
	}
	for r := range k.readings(g, g == k.groups[0], &problem) {
		for i := range r.Ops {
			if op := &r.Ops[i]; op.Observed {
				k.observe(r, op)
			}
		}
		if r.Kind == k.in.Scan && r.Outcome == history.Committed {
			k.scan(r)
		}
	}
	return problem
}

// observe checks one value against its writer, and notes when it was seen.
func (k *checker) observe(r *reading, op *history.Op) {
	who, w := k.sourceOf(op)
	if r.judge {
		k.reads++
		k.judge(r, op, who, w)
	}
	if r.timed && w != nil && !w.refused() {
		w.seen(r.began, r.ended, k.timed(w, r.group))
	}
}

// sourceOf says who wrote what an operation saw; the write is nil where it is not known.
func (k *checker) sourceOf(op *history.Op) (who origin, w *write) {
	switch op.State {
	case history.Broken, history.Foreign:
	case history.Absent:
		// No state of the database lacks a record of the load, and one of an insert is
		// not there before.
		if key := k.keyOf(op.Object); key != nil && !k.loaded(op.Object) {
			w = &k.of(key)[0]
		}
	default:
		who, _, w = k.writerOf(op.Object, op.Writer)
	}
	return who, w
}

// seen notes when a value was seen; timed says that this can be compared with the
// write's own times. One that was seen before its write began, which the check values
// reports too, says nothing of when that was applied.
func (w *write) seen(began, ended int64, timed bool) {
	if timed && ended < w.try {
		w.early = true
		return
	}
	w.readsEnd = min(w.readsEnd, ended)
	w.readsStart = max(w.readsStart, began)
}

// proveUnknown notes what an unknown transaction had read that somebody saw: it was
// applied, and so was what it had read, before it was seen.
func (k *checker) proveUnknown(g int) {
	for i := range k.keys {
		list := k.of(&k.keys[i])
		for j := range list {
			for w := &list[j]; w.rmw && w.outcome == history.Unknown && w.readsEnd != never; {
				p := k.writeIn(&k.keys[i], w.previous)
				if p == nil || p.refused() {
					break
				}
				began := int64(always)
				if k.timed(w, g) {
					began = w.try
				}
				before := p.readsEnd
				p.seen(began, w.readsEnd, k.timed(p, g))
				if p.readsEnd == before {
					break
				}
				w = p
			}
		}
		if k.Watch.Ended() {
			return
		}
	}
}

func (k *checker) judge(r *reading, op *history.Op, who origin, w *write) {
	n, by := op.Object, op.Writer
	wrong := func(format string, args ...any) { k.find(wrongRead, n, []history.ID{r.ID}, format, args...) }
	dirty := func(format string) { k.find(dirtyRead, n, []history.ID{r.ID, by}, format, r.ID, by, k.name(n)) }
	switch {
	case op.State == history.Foreign:
		wrong("%v found a key that neither the load nor a transaction makes", r.ID)
	case op.State == history.Broken:
		wrong("%v read a value of %d bytes in %v that is not as anybody wrote it", r.ID, op.Value, k.name(n))
	case op.State == history.Absent:
		if k.loaded(n) && r.Kind != k.in.Scan { // a scan's are the check scans'
			wrong("%v found no record %v, which the load had made", r.ID, k.name(n))
		}
	case who == nobody:
		wrong("%v read a value of %v in %v, which never wrote there", r.ID, writer(by), k.name(n))
	case who != sent:
	case w.refused():
		dirty("%v read the value of %v in %v, which was reported as not applied")
	case k.timed(w, r.group) && r.ended < w.try:
		dirty("%v had read the value of %v in %v before the try of it began that was not refused")
	}
}

// findStale looks, in the records that have no order in group g, for the reads that a
// write had overtaken: it was applied before they began, and began when what they
// returned was applied already. In all other records there is no such read: it would
// have left them without an order.
func (k *checker) findStale(g int) (problem error) {
	overtakers := map[uint64][]overtaker{}
	for i := range k.keys {
		if key := &k.keys[i]; key.broken {
			overtakers[k.writes[key.from].n] = k.overtakersOf(key, g)
		}
	}
	if len(overtakers) == 0 {
		return nil
	}
	for r := range k.readings(g, false, &problem) {
		for i := range r.Ops {
			op := &r.Ops[i]
			if list := overtakers[op.Object]; op.Observed && len(list) > 0 {
				k.judgeAge(r, op, list)
			}
		}
	}
	return problem
}

// overtaker is a write that was applied by a time, and the one that began last of
// those that were applied by then.
type overtaker struct {
	known, try int64
	id         history.ID
}

func (k *checker) overtakersOf(key *register, g int) []overtaker {
	var list []overtaker
	writes := k.of(key)
	for i := range writes {
		if w := &writes[i]; w.id != 0 && w.applied() && k.timed(w, g) {
			list = append(list, overtaker{k.known(w, g), w.try, w.id})
		}
	}
	slices.SortFunc(list, func(a, b overtaker) int { return cmp.Compare(a.known, b.known) })
	for i := 1; i < len(list); i++ {
		if list[i-1].try > list[i].try {
			list[i].try, list[i].id = list[i-1].try, list[i-1].id
		}
	}
	return list
}

// judgeAge says whether a read was of a value that had been overtaken.
func (k *checker) judgeAge(r *reading, op *history.Op, list []overtaker) {
	n := op.Object
	_, w := k.sourceOf(op)
	i, _ := slices.BinarySearchFunc(list, r.began, func(o overtaker, at int64) int { return cmp.Compare(o.known, at) })
	if w == nil || w.refused() || i == 0 {
		return
	}
	if by := list[i-1]; by.try > k.known(w, r.group) {
		what := "that there is no record"
		if op.State == history.Whole {
			what = "the value of " + writer(op.Writer).String()
		}
		k.find(stale, n, []history.ID{r.ID, by.id}, "%v read %s in %v, although %v began after that and was applied %.3g ms before the read began",
			r.ID, what, k.name(n), by.id, float64(r.began-by.known)/1e6)
	}
}

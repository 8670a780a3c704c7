package registers

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// readGroup goes through what was read: of all histories the first time, when every
// value is held against its writer, and of those of group g each time, for the times
// at which a value was seen.
func (k *checker) readGroup(g int, p *places) (problem error) {
	for i := range k.writes {
		k.writes[i].readsEnd, k.writes[i].readsStart = never, always
	}
	for number, source := range k.in.History {
		inGroup := k.clocks[number].group == g
		if g > 0 && !inGroup {
			continue
		}
		for tx := range k.answered(source, &problem) {
			for i := range tx.Ops {
				if op := &tx.Ops[i]; op.Observed {
					k.observe(number, tx, op, g == 0, inGroup)
				}
			}
			if tx.Kind == history.Scan && tx.Outcome == history.Committed {
				p.scan(number, tx, g)
			}
		}
		if problem != nil {
			return problem
		}
	}
	return nil
}

// answered yields the transactions whose clients learned what the database had seen,
// until the first error, which it puts into problem.
func (k *checker) answered(source check.Source, problem *error) iter.Seq[*history.Transaction] {
	return func(yield func(*history.Transaction) bool) {
		for rec := range check.Each(&k.watch, "the history", source.Transactions(), problem) {
			answered := rec.Outcome == history.Committed || rec.Outcome == history.Rejected
			if answered && !yield(rec.Transaction) {
				return
			}
		}
	}
}

// observe holds one value against its writer, and notes when it was seen.
func (k *checker) observe(source int, tx *history.Transaction, op *history.Op, judge, timed bool) {
	if judge {
		k.reads++
	}
	if op.State == history.Broken || op.State == history.Foreign {
		if judge {
			k.broken(tx, op)
		}
		return
	}
	if op.State == history.Absent {
		k.nothing(source, tx, op, judge, timed)
		return
	}
	who, _, w := k.writerOf(op.Object, op.Writer)
	if judge {
		k.judge(source, tx, op, who, w)
	}
	if timed && w != nil && !w.refused() {
		k.seen(w, source, tx)
	}
}

func (k *checker) seen(w *write, source int, tx *history.Transaction) {
	w.seen(k.start(source, tx.Try), k.stop(source, tx.End), k.clocks[source].group == k.clocks[w.source].group)
}

// seen notes when a value was seen; timed says that this can be compared with the
// write's own times. One that was seen before its write began, which the check values
// tells too, says nothing of when that was applied.
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
				if k.clocks[w.source].group == g {
					began = w.try
				}
				before := p.readsEnd
				p.seen(began, w.readsEnd, p.id == 0 || k.clocks[p.source].group == g)
				if p.readsEnd == before {
					break
				}
				w = p
			}
		}
		if k.watch.Ended() {
			return
		}
	}
}

func (k *checker) broken(tx *history.Transaction, op *history.Op) {
	if op.State == history.Foreign {
		k.wrongRead.add(k, Values, "", tx.ID, op.Object, func() string {
			return fmt.Sprintf("%v found a key that neither the load nor a transaction makes", tx.ID)
		})
		return
	}
	id, bytes := tx.ID, op.Value
	k.wrongRead.add(k, Values, "", id, op.Object, func() string {
		return fmt.Sprintf("%v read a value of %d bytes in %s that is not as anybody wrote it", id, bytes, k.in.Name(op.Object))
	})
}

// nothing is a read that found no record: no state of the database lacks one of the
// load, and one of an insert is not there before.
func (k *checker) nothing(source int, tx *history.Transaction, op *history.Op, judge, timed bool) {
	if k.loaded(op.Object) {
		if judge && tx.Kind != history.Scan { // a scan's are the check scans'
			k.wrongRead.add(k, Values, "", tx.ID, op.Object, func() string {
				return fmt.Sprintf("%v found no record %s, which the load had made", tx.ID, k.in.Name(op.Object))
			})
		}
		return
	}
	if key := k.keyOf(op.Object); timed && key != nil {
		k.seen(&k.of(key)[0], source, tx)
	}
}

// judge says what is wrong with a value that is whole.
func (k *checker) judge(source int, tx *history.Transaction, op *history.Op, who origin, w *write) {
	k.lookups[who]++
	id, n, last := tx.ID, op.Object, op.Writer
	switch {
	case who == nobody:
		k.wrongRead.add(k, Values, "", id, n, func() string {
			return fmt.Sprintf("%v read a value of %s in %s, which never wrote there", id, k.writer(last), k.in.Name(n))
		})
	case who != sent:
	case w.refused():
		k.dirtyRead.add(k, Values, "dirty read (G1a)", id, n, func() string {
			return fmt.Sprintf("%v read the value of %v in %s, which was reported as not applied", id, last, k.in.Name(n))
		}, last)
	case k.clocks[source].group == k.clocks[w.source].group && k.stop(source, tx.End) < w.try:
		k.dirtyRead.add(k, Values, "dirty read (G1a)", id, n, func() string {
			return fmt.Sprintf("%v had read the value of %v in %s before the try of it began that was not refused", id, last, k.in.Name(n))
		}, last)
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
	for number, source := range k.in.History {
		if k.clocks[number].group != g {
			continue
		}
		for tx := range k.answered(source, &problem) {
			for i := range tx.Ops {
				op := &tx.Ops[i]
				if list := overtakers[op.Object]; op.Observed && len(list) > 0 {
					k.judgeAge(number, tx, op, list)
				}
			}
		}
		if problem != nil {
			return problem
		}
	}
	return nil
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
		if w := &writes[i]; w.id != 0 && w.applied() && k.clocks[w.source].group == g {
			list = append(list, overtaker{w.known(), w.try, w.id})
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
func (k *checker) judgeAge(source int, tx *history.Transaction, op *history.Op, list []overtaker) {
	var w *write
	switch {
	case op.State == history.Absent && !k.loaded(op.Object):
		w = &k.of(k.keyOf(op.Object))[0]
	case op.State == history.Whole:
		_, _, w = k.writerOf(op.Object, op.Writer)
	}
	if w == nil || w.refused() {
		return
	}
	began := k.start(source, tx.Try)
	i, _ := slices.BinarySearchFunc(list, began, func(o overtaker, at int64) int { return cmp.Compare(o.known, at) })
	if i == 0 {
		return
	}
	known := w.readsEnd
	if k.clocks[w.source].group == k.clocks[source].group || w.id == 0 {
		known = w.known()
	}
	if by := list[i-1]; by.try > known {
		id, n, last, state := tx.ID, op.Object, op.Writer, op.State
		k.stale.add(k, Fresh, "stale read", id, n, func() string {
			what := "the value of " + k.writer(last)
			if state == history.Absent {
				what = "that there is no record"
			}
			return fmt.Sprintf("%v read %s in %s, although %v began after that and was applied %.3g ms before the read began",
				id, what, k.in.Name(n), by.id, float64(began-by.known)/1e6)
		}, by.id)
	}
}

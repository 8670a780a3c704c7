package registers

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// reading is a transaction whose client learned the values that the database had read.
type reading struct {
	*history.Transaction
	group        int
	began, ended int64 // on the clock of its group
	judge        bool  // compare the values with their writers
	timed        bool  // record the times at which the values were seen
}

// viewer holds what one worker has read.
type viewer struct {
	finder
	k        *checker
	observed uint64 // as in checker
	values   uint64
	scans    uint64
	foreign  map[uint64]bool
	reading  reading
	seen     []seen              // not examined yet
	broken   map[brokenAt][]byte // the bytes of broken values in seen
	touched  uint64
}

// seen is a value that a transaction saw in a record, in 64 bytes.
type seen struct {
	n            uint64
	by, writer   history.ID // reader and writer
	began, ended int64      // of by, on the clock of its group
	bytes        int64
	group        int
	kind         history.Kind // of by
	state        history.State
	judge, timed bool // as in reading
}

// seenAtOnce is the number of values that are examined together. The writes are usually not in a cache, so
// their loads from memory overlap.
const seenAtOnce = 128

// eachReading calls see for the readings of group g, from all workers, until the first error. If judge is
// set, it covers all histories.
func (k *checker) eachReading(g int, judge bool, see func(v *viewer, r *reading)) (problem error) {
	viewers := make([]viewer, k.workers)
	finders := make([]*finder, k.workers)
	for i := range viewers {
		viewers[i] = viewer{finder: finder{k: k}, k: k, foreign: map[uint64]bool{}, seen: make([]seen, 0, seenAtOnce)}
		finders[i] = &viewers[i].finder
	}
	for number, source := range k.in.History {
		timed := k.group[number] == g
		if !timed && !judge {
			continue
		}
		problem = check.EachTransaction(k.Watch.Ctx, source, k.workers, func(worker int, block int64, tx *history.Transaction) {
			if tx.Outcome != history.Committed && tx.Outcome != history.Rejected {
				return
			}
			if len(tx.Ops) == 1 && !tx.Ops[0].Observed && tx.Kind != k.in.Scan {
				return
			}
			v := &viewers[worker]
			if v.part != [2]int64{int64(number), block} {
				v.look()
				v.begin(int64(number), block)
			}
			v.reading = reading{tx, k.group[number], k.start(number, tx.Try), k.stop(number, tx.End), judge, timed}
			see(v, &v.reading)
		})
		for i := range viewers {
			viewers[i].look()
		}
		if problem != nil {
			break
		}
	}
	k.settle(finders)
	for i := range viewers {
		v := &viewers[i]
		k.observed += v.observed
		k.values += v.values
		k.scans += v.scans
		maps.Copy(k.foreign, v.foreign)
	}
	return problem
}

// readGroup examines what was read. The first call covers all histories and compares every value with its
// writer. Each call records when the values of group g were seen.
func (k *checker) readGroup(g int) (problem error) {
	first := g == k.groups[0]
	if !first {
		k.forget()
	} else if k.scanned != nil {
		k.scanned = k.newScanned()
	}
	return k.eachReading(g, first, func(v *viewer, r *reading) {
		if first && len(r.Broken) > 0 {
			v.keepBroken(r)
		}
		for i := range r.Ops {
			if op := &r.Ops[i]; op.Observed {
				v.see(r, op)
			}
		}
		if r.Kind == k.in.Scan && r.Outcome == history.Committed {
			v.scan(r)
		}
	})
}

// forget resets the times at which values were read.
func (k *checker) forget() {
	for _, slab := range k.slabs {
		for i := range slab {
			slab[i].readsEnd, slab[i].readsStart = never, always
		}
	}
	for i := range k.keys {
		k.keys[i].before.readsEnd, k.keys[i].before.readsStart = never, always
	}
}

// see queues a value for examination.
func (v *viewer) see(r *reading, op *history.Op) {
	if len(v.seen) == seenAtOnce {
		v.look()
	}
	v.seen = v.seen[:len(v.seen)+1]
	s := &v.seen[len(v.seen)-1]
	s.n, s.by, s.writer, s.began, s.ended, s.bytes = op.Object, r.ID, op.Writer, r.began, r.ended, op.Value
	s.group, s.kind, s.state, s.judge, s.timed = r.group, r.Kind, op.State, r.judge, r.timed
}

// look examines the queued values.
func (v *viewer) look() {
	var writes [seenAtOnce]*write
	for i := range v.seen {
		writes[i] = v.k.nearly(v.seen[i].n, v.seen[i].writer)
	}
	v.touched += touch(writes[:len(v.seen)])
	for i := range v.seen {
		v.observe(&v.seen[i], writes[i])
	}
	v.seen = v.seen[:0]
}

// observe compares a value with its writer, which is probably w, and records when it was seen.
func (v *viewer) observe(s *seen, w *write) {
	k := v.k
	var who origin
	switch {
	case s.state == history.Whole && w != nil && w.n == s.n:
		if s.writer != 0 {
			who = sent
		}
	case s.state == history.Whole && s.writer == 0 && s.n < uint64(len(k.index.loaded)): // and no transaction wrote it
	default:
		who, w = v.sourceOf(s.n, s.state, s.writer)
	}
	if s.judge {
		v.observed++
		if s.state != history.Absent {
			v.values++
		}
		if s.state != history.Whole || who != initial {
			v.judge(s, who, w)
		}
		if s.state == history.Whole && s.bytes != k.in.Bytes && who != nobody {
			v.judgeLength(s, w)
		}
	}
	if s.timed && w != nil && !w.refused() {
		k.noteSeen(w, s.began, s.ended, k.timed(w, s.group))
	}
}

// sourceOf returns the kind of writer of a value seen in record n. The write is nil if it is not known.
func (v *viewer) sourceOf(n uint64, state history.State, by history.ID) (who origin, w *write) {
	switch state {
	case history.Broken, history.Foreign:
	case history.Absent:
		// A record of the load always exists, and an inserted record does not exist initially.
		if !v.k.loaded(n) {
			w = v.k.writeOn(n, 0)
		}
	default:
		who, w = v.k.writerOf(n, by, v.foreign)
	}
	return who, w
}

// seen records the time at which a value was seen. timed reports whether that time is comparable with the
// write's own times. If the value was seen before its write began, which the check values reports, the time
// is ignored. Several workers may call seen concurrently.
func (w *write) seen(began, ended int64, timed bool) {
	if timed && ended < w.try {
		atomic.OrUint32(&w.flags, early)
		return
	}
	w.bound(began, ended)
}

// bound updates the first end and the last beginning of the reads of the value.
func (w *write) bound(began, ended int64) {
	for old := atomic.LoadInt64(&w.readsEnd); ended < old && !atomic.CompareAndSwapInt64(&w.readsEnd, old, ended); {
		old = atomic.LoadInt64(&w.readsEnd)
	}
	for old := atomic.LoadInt64(&w.readsStart); began > old && !atomic.CompareAndSwapInt64(&w.readsStart, old, began); {
		old = atomic.LoadInt64(&w.readsStart)
	}
}

// noteSeen is like seen. If clocks have errors, it uses the following: nobody knows a value before its only try began,
// so no read of it ended earlier.
func (k *checker) noteSeen(w *write, began, ended int64, timed bool) {
	if k.times == perhaps && timed && ended < w.try && !k.retried[w.id] {
		c := k.Clocks[w.source]
		if ended = max(ended, w.try-(c.From-c.To)); ended < w.try {
			w.bound(began, ended)
			return
		}
	}
	w.seen(began, ended, timed)
}

// proveUnknown handles a transaction of unknown outcome whose value was seen: it was applied, and the value
// that it had read was applied before.
func (k *checker) proveUnknown(o *ordering, key *register, g int) {
	if !k.doubtful {
		return
	}
	for _, w := range o.list {
		for w.is(rmw) && w.outcome == history.Unknown && w.readsEnd != never {
			p := k.writeOn(key.n, w.previous)
			if p == nil || p.refused() {
				break
			}
			began := int64(always)
			if k.timed(w, g) {
				began = w.try
			}
			before := p.readsEnd
			k.noteSeen(p, began, w.readsEnd, k.timed(p, g))
			if p.readsEnd == before {
				break
			}
			w = p
		}
	}
}

// judge reports the errors of a value that was seen.
func (v *viewer) judge(s *seen, who origin, w *write) {
	k := v.k
	switch {
	case s.state == history.Foreign:
		v.find(foreignKey, noRecord, func() finding {
			return shows(fact.RegisterForeignKey{Reader: k.reader(s), Bytes: s.bytes}, s.by)
		})
		v.at(foreignKey, s.ended)
	case s.state == history.Broken:
		v.judgeBroken(s)
	case s.state == history.Absent:
		if k.loaded(s.n) && s.kind != k.in.Scan { // the check scans handles scans
			v.find(missing, s.n, func() finding {
				return shows(fact.RegisterMissingRecord{Reader: k.reader(s), Object: k.Object(s.n)}, s.by)
			})
		}
	case who == nobody:
		v.find(unwritten, s.n, func() finding {
			return shows(fact.RegisterUnwrittenValue{
				Reader: k.reader(s), Writer: fact.Member{ID: s.writer}, Object: k.Object(s.n),
			}, s.by)
		})
		v.at(unwritten, s.ended)
	case who != sent:
	case w.refused():
		v.dirty(s, w, 0)
	case k.timed(w, s.group) && s.ended < w.try && (k.times != perhaps || k.retried[w.id]):
		v.dirty(s, w, time.Duration(w.try-s.ended))
	}
}

// dirty reports a read of a refused value. ahead, if not 0, is the time from the end of the read to the
// beginning of the try that was not refused.
func (v *viewer) dirty(s *seen, w *write, ahead time.Duration) {
	v.find(dirtyRead, s.n, func() finding {
		return shows(fact.RegisterDirtyRead{
			Reader: v.k.reader(s), Writer: v.k.writer(w), Object: v.k.Object(s.n), Outcome: w.outcome, Ahead: ahead,
		}, s.by, s.writer)
	})
	v.at(dirtyRead, s.ended)
}

// judgeLength compares the length of a whole value with the length written. The write is nil if it is not
// known.
func (v *viewer) judgeLength(s *seen, w *write) {
	written, known := v.k.lengthOf(s.n, s.writer)
	if !known || written == s.bytes {
		return
	}
	v.find(otherLength, s.n, func() finding {
		writer := fact.Member{ID: s.writer}
		if w != nil {
			writer = v.k.writer(w)
		}
		return shows(fact.RegisterOtherLength{
			Reader: v.k.reader(s), Writer: writer, Object: v.k.Object(s.n), Found: s.bytes, Written: written,
		}, s.by)
	})
	v.at(otherLength, s.ended)
}

// hasLength reports whether a value has the length that its writer gave it. It returns true if that length is
// not known.
func (k *checker) hasLength(n uint64, writer history.ID, bytes int64) bool {
	written, known := k.lengthOf(n, writer)
	return !known || written == bytes
}

// lengthOf returns the length of the value that a transaction, or the load with ID 0, gave to record n. It
// reports false if the length is not known.
func (k *checker) lengthOf(n uint64, writer history.ID) (bytes int64, known bool) {
	switch {
	case k.in.Bytes != 0:
		return k.in.Bytes, true
	case k.in.Length != nil:
		return k.in.Length(n, writer), true
	}
	return 0, false
}

// findStale looks for stale reads in the records without an order in group g. A read is stale if a write was
// applied before it began, and that write began after the returned value was applied. Other records have no
// stale reads, because these would leave them without an order.
func (k *checker) findStale(g int) (problem error) {
	overtakers := map[uint64][]overtaker{}
	for i := range k.keys {
		if key := &k.keys[i]; key.broken {
			overtakers[key.n] = k.overtakersOf(key, g)
		}
	}
	if len(overtakers) == 0 {
		return nil
	}
	return k.eachReading(g, false, func(v *viewer, r *reading) {
		for i := range r.Ops {
			op := &r.Ops[i]
			if list := overtakers[op.Object]; op.Observed && len(list) > 0 {
				v.judgeAge(r, op, list)
			}
		}
	})
}

// overtaker is the write that began last among the writes applied by a given time.
type overtaker struct {
	by    int64 // the time
	write *write
	known int64 // when the write had certainly been applied
}

// overtakersOf returns the overtakers of a record, sorted by time.
func (k *checker) overtakersOf(key *register, g int) []overtaker {
	var list []overtaker
	for _, w := range k.appendWrites(nil, key) {
		if w.id != 0 && w.applied() && k.timed(w, g) {
			known := k.known(w, g)
			list = append(list, overtaker{known, w, known})
		}
	}
	slices.SortFunc(list, func(a, b overtaker) int { return cmp.Compare(a.by, b.by) })
	for i := 1; i < len(list); i++ {
		if before := &list[i-1]; before.write.try > list[i].write.try {
			list[i].write, list[i].known = before.write, before.known
		}
	}
	return list
}

// judgeAge reports a read whose value had been overtaken.
func (v *viewer) judgeAge(r *reading, op *history.Op, list []overtaker) {
	k, n := v.k, op.Object
	_, w := v.sourceOf(op.Object, op.State, op.Writer)
	i, _ := slices.BinarySearchFunc(list, r.began, func(o overtaker, at int64) int { return cmp.Compare(o.by, at) })
	if w == nil || w.refused() || i == 0 {
		return
	}
	if over := list[i-1]; over.write.try > k.known(w, r.group) {
		v.find(stale, n, func() finding {
			return shows(fact.RegisterStaleRead{
				Reader: k.member(r.ID, r.Kind), Object: k.Object(n), Absent: op.State != history.Whole, Writer: k.writer(w),
				By: k.writer(over.write), Seen: over.known < over.write.end,
				Ago: time.Duration(r.began - over.known), AtLeast: k.inexact(),
			}, r.ID, over.write.id)
		})
		v.at(stale, r.ended)
		key := k.keyOf(n)
		v.because(stale, over.write.is(gone), key != nil && key.update)
	}
}

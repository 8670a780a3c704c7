package registers

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// reading is a transaction whose client learned what the database had seen.
type reading struct {
	*history.Transaction // nil among those that are seen
	ID                   history.ID
	Kind                 history.Kind
	group                int
	began, ended         int64 // on the clock of its group
	judge                bool  // what it saw is to be checked against who wrote it
	timed                bool  // when it saw that is to be noted
}

// viewer is what one worker sees of the readings.
type viewer struct {
	finder
	k            *checker
	reads, scans uint64
	foreign      map[uint64]bool
	reading      reading
	seen         []seen // and not looked at yet
	touched      uint64
}

// seen is a value that somebody saw.
type seen struct {
	reading reading
	op      history.Op
}

// seenAtOnce is how many values are looked at together. Where their writes are in memory
// is mostly in no cache; that of one is waited for while those of others are on their way.
const seenAtOnce = 128

// eachReading has all workers see the readings of group g, and with judge those of all
// histories, until the first error. A transaction counts whose client learned what the
// database had seen.
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
			v := &viewers[worker]
			if v.part != [2]int64{int64(number), block} {
				v.look()
				v.begin(int64(number), block)
			}
			v.reading = reading{tx, tx.ID, tx.Kind, k.group[number], k.start(number, tx.Try), k.stop(number, tx.End), judge, timed}
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
		k.reads += v.reads
		k.scans += v.scans
		maps.Copy(k.foreign, v.foreign)
	}
	return problem
}

// readGroup goes through what was read: of all histories the first time, when every
// value is checked against its writer, and of those of group g each time, for the times
// at which a value was seen.
func (k *checker) readGroup(g int) (problem error) {
	first := g == k.groups[0]
	if !first {
		for i := range k.writes {
			k.writes[i].readsEnd, k.writes[i].readsStart = never, always
		}
	} else if k.scanned != nil {
		k.scanned = k.newScanned()
	}
	return k.eachReading(g, first, func(v *viewer, r *reading) {
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

// see has a value looked at, sooner or later.
func (v *viewer) see(r *reading, op *history.Op) {
	if len(v.seen) == seenAtOnce {
		v.look()
	}
	v.seen = v.seen[:len(v.seen)+1]
	s := &v.seen[len(v.seen)-1]
	s.reading, s.op = *r, *op
	s.reading.Transaction = nil
}

// look looks at what was seen.
func (v *viewer) look() {
	var places [seenAtOnce]uint32
	for i := range v.seen {
		op := &v.seen[i].op
		places[i] = v.k.nearly(op.Object, op.Writer)
	}
	v.touched += v.k.touch(places[:len(v.seen)])
	for i := range v.seen {
		v.observe(&v.seen[i].reading, &v.seen[i].op)
	}
	v.seen = v.seen[:0]
}

// nearly returns where the write of an id to a record probably stands.
func (k *checker) nearly(n uint64, id history.ID) uint32 {
	if id != 0 {
		if slot := k.places.slot(id); slot != nil {
			return *slot - 1
		}
	} else if n < uint64(len(k.index.loaded)) {
		return k.index.loaded[n] - 1
	}
	return nowhere
}

// touch reads the writes at some places, of which none waits for another. The sum makes
// that nobody leaves it out.
func (k *checker) touch(places []uint32) (sum uint64) {
	for _, at := range places {
		if at < uint32(len(k.writes)) {
			sum += k.writes[at].n
		}
	}
	return sum
}

// observe checks one value against its writer, and notes when it was seen.
func (v *viewer) observe(r *reading, op *history.Op) {
	who, w := v.sourceOf(op)
	if r.judge {
		v.reads++
		v.judge(r, op, who, w)
	}
	if r.timed && w != nil && !w.refused() {
		w.seen(r.began, r.ended, v.k.timed(w, r.group))
	}
}

// sourceOf says who wrote what an operation saw; the write is nil where it is not known.
func (v *viewer) sourceOf(op *history.Op) (who origin, w *write) {
	switch op.State {
	case history.Broken, history.Foreign:
	case history.Absent:
		// No state of the database lacks a record of the load, and one of an insert is
		// not there before.
		if !v.k.loaded(op.Object) {
			w = v.k.writeOn(op.Object, 0)
		}
	default:
		who, w = v.k.writerOf(op.Object, op.Writer, v.foreign)
	}
	return who, w
}

// seen notes when a value was seen; timed says that this can be compared with the
// write's own times. One that was seen before its write began, which the check values
// reports too, says nothing of when that was applied. Several workers may do so at once.
func (w *write) seen(began, ended int64, timed bool) {
	if timed && ended < w.try {
		atomic.OrUint32(&w.flags, early)
		return
	}
	for old := atomic.LoadInt64(&w.readsEnd); ended < old && !atomic.CompareAndSwapInt64(&w.readsEnd, old, ended); {
		old = atomic.LoadInt64(&w.readsEnd)
	}
	for old := atomic.LoadInt64(&w.readsStart); began > old && !atomic.CompareAndSwapInt64(&w.readsStart, old, began); {
		old = atomic.LoadInt64(&w.readsStart)
	}
}

// proveUnknown notes what an unknown transaction had read that somebody saw: it was
// applied, and so was what it had read, before it was seen.
func (k *checker) proveUnknown(key *register, g int) {
	list := k.of(key)
	for j := range list {
		for w := &list[j]; w.is(rmw) && w.outcome == history.Unknown && w.readsEnd != never; {
			p := k.writeOn(key.n, w.previous)
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
}

func (v *viewer) judge(r *reading, op *history.Op, who origin, w *write) {
	k, n, by := v.k, op.Object, op.Writer
	wrong := func(format string, args ...any) { v.find(wrongRead, n, []history.ID{r.ID}, format, args...) }
	dirty := func(format string) { v.find(dirtyRead, n, []history.ID{r.ID, by}, format, r.ID, by, k.name(n)) }
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
func (v *viewer) judgeAge(r *reading, op *history.Op, list []overtaker) {
	k, n := v.k, op.Object
	_, w := v.sourceOf(op)
	i, _ := slices.BinarySearchFunc(list, r.began, func(o overtaker, at int64) int { return cmp.Compare(o.known, at) })
	if w == nil || w.refused() || i == 0 {
		return
	}
	if by := list[i-1]; by.try > k.known(w, r.group) {
		what := "that there is no record"
		if op.State == history.Whole {
			what = "the value of " + writer(op.Writer).String()
		}
		v.find(stale, n, []history.ID{r.ID, by.id}, "%v read %s in %v, although %v began after that and was applied %.3g ms before the read began",
			r.ID, what, k.name(n), by.id, float64(r.began-by.known)/1e6)
	}
}

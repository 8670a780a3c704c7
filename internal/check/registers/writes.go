package registers

import (
	"cmp"
	"fmt"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// mostWrites is how many writes the checks can number, and as many records beside them.
const mostWrites = 1<<31 - 1

// gatherer is what one worker gathers of the writes.
type gatherer struct {
	pieces  [][]sending // each of one block and of growing ids; the last one grows
	room    []sending   // behind the last piece
	slab    int         // how many writes the memory of room was for
	source  int         // of the last piece
	block   int64
	writers int
	updates uint64
	unknown bool // a rmw whose outcome is not known is among them
	scans   bool
	extents map[uint64]extent // by run and client
	client  uint64            // run and client of extent
	extent  extent            // of the transactions read last, which are of one client
	measure func(tx *history.Transaction)

	committed uint64 // but for those of the background
}

// Memory is taken for so many writes at once, at first and later.
const (
	leastSlab = 256
	mostSlab  = 1 << 14
)

// next returns where the next write is to be put, which is of this block and has this id.
func (g *gatherer) next(source int, block int64, id history.ID) *sending {
	last := len(g.pieces) - 1
	if len(g.room) == 0 {
		g.slab = min(max(2*g.slab, leastSlab), mostSlab)
		g.room = make([]sending, g.slab)
		last = -1
	}
	if last < 0 || g.source != source || g.block != block || g.pieces[last][len(g.pieces[last])-1].id >= id {
		g.pieces = append(g.pieces, g.room[:0])
		g.source, g.block, last = source, block, len(g.pieces)-1
	}
	p := &g.pieces[last]
	*p, g.room = (*p)[:len(*p)+1], g.room[1:]
	g.writers++
	return &(*p)[len(*p)-1]
}

// note notes that there is a transaction of an id.
func (g *gatherer) note(id history.ID) {
	client, sequence := uint64(id)>>history.SequenceBits, id.Sequence()
	if client != g.client || g.extent.count == 0 {
		g.flush()
		g.client, g.extent = client, extent{first: sequence, last: sequence}
	}
	g.extent.first, g.extent.last = min(g.extent.first, sequence), max(g.extent.last, sequence)
	g.extent.count++
}

func (g *gatherer) flush() {
	if g.extent.count > 0 {
		e := g.extents[g.client]
		e.add(g.extent)
		g.extents[g.client] = e
	}
}

// readWrites notes every transaction that writes.
func (k *checker) readWrites() (problem error) {
	gatherers := make([]gatherer, k.workers)
	for i, measure := range k.in.Meter.Workers(k.workers) {
		gatherers[i].extents, gatherers[i].measure = map[uint64]extent{}, measure
	}
	if k.in.Records <= mostLoaded {
		k.index.loaded = make([]uint32, k.in.Records)
	}
	for number, source := range k.in.History {
		problem = check.EachTransaction(k.Watch.Ctx, source, k.workers, func(worker int, block int64, tx *history.Transaction) {
			k.gather(&gatherers[worker], number, block, tx)
		})
		if problem != nil {
			break
		}
	}
	k.in.Meter.End(problem)
	extents := map[uint64]extent{}
	for i := range gatherers {
		g := &gatherers[i]
		g.flush()
		for client, e := range g.extents {
			all := extents[client]
			all.add(e)
			extents[client] = all
		}
		k.committed += g.committed
		k.writers += uint64(g.writers)
		k.updates += g.updates
		k.doubtful = k.doubtful || g.unknown
		if g.scans && k.scanned == nil {
			k.scanned = new(scanned)
		}
	}
	if k.writers > mostWrites {
		k.writers = 0
		return fmt.Errorf("the history has more than %d writes, which is more than one check takes", int64(mostWrites))
	}
	k.damaged = problem != nil
	var pieces [][]sending
	for i := range gatherers {
		pieces = append(pieces, gatherers[i].pieces...)
	}
	k.layOut(pieces, extents)
	return problem
}

// gather notes one transaction.
func (k *checker) gather(g *gatherer, source int, block int64, tx *history.Transaction) {
	g.note(tx.ID)
	if g.measure != nil {
		g.measure(tx)
	}
	if tx.Outcome == history.Committed {
		g.scans = g.scans || tx.Kind == k.in.Scan
		if !tx.Kind.Background() {
			g.committed++
		}
	}
	if len(tx.Ops) == 0 || !tx.Ops[0].Write {
		return
	}
	w := g.next(source, block, tx.ID)
	k.describe(w, source, tx)
	switch {
	case w.outcome == history.Committed && w.kind == k.in.Modify:
		g.updates++
	case w.outcome == history.Unknown && w.is(rmw):
		g.unknown = true
	}
}

// describe fills in what is kept of a transaction that writes.
func (k *checker) describe(w *sending, source int, tx *history.Transaction) {
	op := &tx.Ops[0]
	w.n, w.id, w.source, w.kind, w.outcome = op.Object, tx.ID, uint16(source), tx.Kind, tx.Outcome
	w.try, w.end = k.start(source, tx.Try), never
	switch tx.Outcome {
	case history.Committed:
		w.end = k.stop(source, tx.End)
	case history.Aborted:
		w.try = k.start(source, tx.Sent) // if it was applied after all, nobody knows by which try
	}
	switch {
	case !op.Observed || tx.Outcome == history.Rejected:
	case tx.Kind == k.in.Modify && op.State == history.Whole:
		w.flags, w.previous = rmw, op.Writer
	case tx.Kind == k.in.Insert && op.State == history.Absent:
		w.flags = rmw
	}
}

// layOut puts the writes in order, by records and ids, and numbers the records that were
// written. Of each of these, what was there before the runs comes first.
//
// The pieces are gone through by falling ids, and each record is filled from its end. So
// nothing is compared but the pieces, each write waits for no other, and the places are
// written one after another. Of a damaged history the ids do not fall; its writes are
// sorted afterwards.
func (k *checker) layOut(pieces [][]sending, extents map[uint64]extent) {
	for _, list := range pieces {
		for i := range list {
			k.index.count(list[i].n)
		}
	}
	records := k.index.records()
	k.keys = make([]register, 0, records)
	k.writes = make([]write, uint64(records)+k.writers)
	to := uint32(0)
	k.index.place(func(n uint64, writes uint32) uint32 {
		from := to
		to += writes + 1
		k.writes[from] = write{
			sending{n: n, previous: history.ID(len(k.keys)), try: always, end: always, outcome: history.Committed}, never, always,
		}
		k.keys = append(k.keys, register{n: n, from: from, to: to})
		return to
	})
	k.places = newPlaces(extents)
	slices.SortFunc(pieces, func(a, b []sending) int { return cmp.Compare(b[0].id, a[0].id) })
	last, sorted := ^history.ID(0), true
	for _, list := range pieces {
		for i := len(list) - 1; i >= 0; i-- {
			w := &list[i]
			slot := k.index.slot(w.n)
			*slot--
			k.writes[*slot] = write{*w, never, always}
			k.places.set(w.id, *slot)
			sorted = sorted && w.id < last
			last = w.id
		}
	}
	if !sorted {
		k.sortWrites(extents)
	}
}

// sortWrites sorts the writes of each record, and makes the places anew.
func (k *checker) sortWrites(extents map[uint64]extent) {
	k.eachKey(func(_ *finder, _ *ordering, key *register) {
		list := k.of(key)[1:]
		if !slices.IsSortedFunc(list, byID) {
			slices.SortFunc(list, byID)
		}
	})
	k.places = newPlaces(extents)
	for i := range k.writes {
		if id := k.writes[i].id; id != 0 {
			k.places.set(id, uint32(i))
		}
	}
}

// byID orders the writes of one record.
func byID(a, b write) int {
	return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.try, b.try), cmp.Compare(a.end, b.end))
}

// keyOf returns the key of a record that somebody wrote or tried to; nil if nobody.
func (k *checker) keyOf(n uint64) *register {
	if at, ok := k.index.of(n); ok {
		return &k.keys[k.writes[at].previous]
	}
	return nil
}

// of are the writes of a key, by id; the first is what was there before.
func (k *checker) of(key *register) []write { return k.writes[key.from:key.to] }

// nowhere is the place of no write.
const nowhere = ^uint32(0)

// placeOf returns where the write of an id to a record stands. What was there before the
// runs has the id 0.
func (k *checker) placeOf(n uint64, id history.ID) uint32 {
	switch {
	case id == 0:
		if at, ok := k.index.of(n); ok {
			return at
		}
		return nowhere
	case k.places.twice:
		return k.search(n, id)
	}
	if at, ok := k.places.get(id); ok && k.writes[at].n == n {
		return at
	}
	return nowhere
}

// search is placeOf where an id may have several writes.
func (k *checker) search(n uint64, id history.ID) uint32 {
	key := k.keyOf(n)
	if key == nil {
		return nowhere
	}
	i, ok := slices.BinarySearchFunc(k.of(key), id, func(w write, id history.ID) int { return cmp.Compare(w.id, id) })
	if !ok {
		return nowhere
	}
	return key.from + uint32(i)
}

// writeOn returns the write that placeOf finds; nil if there is none.
func (k *checker) writeOn(n uint64, id history.ID) *write {
	if at := k.placeOf(n, id); at != nowhere {
		return &k.writes[at]
	}
	return nil
}

// loaded says that the load made the record.
func (k *checker) loaded(n uint64) bool { return n < k.in.Records }

// origin are the answers to the question who wrote a value.
type origin uint8

const (
	initial origin = iota // the load; of an insert's record: nobody yet
	sent                  // a transaction of the histories, to this record
	unknown               // a run whose history was not given, or one that the recording may lack
	nobody
)

// writerOf says who wrote a value of record n; the write is nil where it is not known.
// Runs whose histories were not given are noted in foreign.
func (k *checker) writerOf(n uint64, id history.ID, foreign map[uint64]bool) (who origin, w *write) {
	if id == 0 && !k.loaded(n) {
		return nobody, nil // the load wrote no such record
	}
	run := id.Run()
	w = k.writeOn(n, id)
	switch {
	case id == 0:
		return initial, w
	case w != nil:
		return sent, w
	case !k.Txns.Covers(run):
		foreign[run] = true
		return unknown, nil
	case k.damaged || !k.Recorded(run):
		return unknown, nil
	}
	return nobody, nil
}

// findLostUpdates looks for two transactions that both read one value and both wrote
// in its place.
func (k *checker) findLostUpdates(f *finder, o *ordering, key *register) {
	updates := o.updates[:0]
	list := k.of(key)
	for j := range list {
		if w := &list[j]; w.kind == k.in.Modify && w.is(rmw) && w.outcome == history.Committed {
			updates = append(updates, w)
		}
	}
	o.updates = updates
	slices.SortFunc(updates, func(a, b *write) int {
		return cmp.Or(cmp.Compare(a.previous, b.previous), cmp.Compare(a.id, b.id))
	})
	for j := 1; j < len(updates); j++ {
		if a, b := updates[j-1], updates[j]; a.previous == b.previous {
			f.find(lost, b.n, []history.ID{b.id, a.id}, "%v and %v both read the value of %v in %v, and both wrote in its place",
				a.id, b.id, writer(b.previous), k.name(b.n))
		}
	}
}

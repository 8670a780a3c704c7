package registers

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// mostWrites limits the number of writes: a rank must fit into the unused bits of a write's flags.
const mostWrites = 1<<(32-flagBits) - 1

// gatherer collects the writes that one worker reads.
type gatherer struct {
	slabs   [][]write
	pieces  []piece
	source  int // of the last piece
	block   int64
	last    history.ID // of the last piece
	writers int
	updates uint64
	unknown bool // it has an rmw of unknown outcome
	scans   bool
	extents map[uint64]extent // by run and client
	client  uint64            // run and client of extent
	extent  extent            // of the last transactions, which belong to one client
	measure func(tx *history.Transaction)
	altered error // as in checker

	committed uint64 // without background transactions
}

// piece is the range of numbers of a block's consecutive writes with ascending IDs.
type piece struct{ from, to uint32 }

// Writes are stored in slabs. The number of a write encodes the slab and the index in the slab.
const (
	slabBits  = 12
	slabSize  = 1 << slabBits
	firstSlab = 1 << 6 // writes in a worker's first slab
)

// next returns the location for the next write of a block.
func (g *gatherer) next(source int, block int64, id history.ID) *write {
	n := len(g.slabs)
	fresh := n == 0 || len(g.slabs[n-1]) == slabSize
	if fresh {
		room := slabSize
		if n == 0 {
			room = firstSlab
		}
		g.slabs, n = append(g.slabs, make([]write, 0, room)), n+1
	}
	slab := &g.slabs[n-1]
	if len(*slab) == cap(*slab) {
		*slab = slices.Grow(*slab, len(*slab))
	}
	*slab = (*slab)[:len(*slab)+1]
	number := uint32(n-1)<<slabBits + uint32(len(*slab)-1)
	if fresh || g.source != source || g.block != block || g.last >= id {
		g.pieces = append(g.pieces, piece{from: number})
		g.source, g.block = source, block
	}
	g.pieces[len(g.pieces)-1].to = number + 1
	g.last = id
	g.writers++
	return &(*slab)[len(*slab)-1]
}

// note records that the ID has a transaction.
func (g *gatherer) note(id history.ID) {
	client, sequence := uint64(id)>>history.SequenceBits, id.Sequence()
	if client != g.client || g.extent.count == 0 {
		g.flush()
		g.client, g.extent = client, extent{first: sequence, last: sequence}
	}
	g.extent.first, g.extent.last = min(g.extent.first, sequence), max(g.extent.last, sequence)
	g.extent.count++
	g.extent.sum += sequence
}

func (g *gatherer) flush() {
	if g.extent.count > 0 {
		e := g.extents[g.client]
		e.add(g.extent)
		g.extents[g.client] = e
	}
}

// readWrites records every transaction that writes.
func (k *checker) readWrites() (problem error) {
	gatherers := make([]gatherer, k.workers)
	for i, measure := range k.in.Meter.Workers(k.workers) {
		gatherers[i].extents, gatherers[i].measure = map[uint64]extent{}, measure
	}
	if k.in.Records <= mostLoaded && !k.in.Part {
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
		if k.altered == nil {
			k.altered = g.altered
		}
	}
	if k.writers > mostWrites {
		k.writers = 0
		return fmt.Errorf("the history has more than the limit of %d writes: check a shorter run", mostWrites)
	}
	k.damaged = problem != nil
	var pieces []piece
	for i := range gatherers {
		g := &gatherers[i]
		first := uint32(len(k.slabs)) << slabBits
		for _, p := range g.pieces {
			pieces = append(pieces, piece{first + p.from, first + p.to})
		}
		k.slabs = append(k.slabs, g.slabs...)
	}
	k.layOut(pieces, extents)
	if k.altered == nil && problem == nil {
		k.altered = k.misnumbered(extents)
	}
	return problem
}

// gather records one transaction.
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
	if !isPlainRead(tx) {
		if what := k.contradiction(tx); what != "" {
			if g.altered == nil {
				g.altered = fmt.Errorf("the history contradicts itself: transaction %v %s: it was altered or damaged: "+
					"restore it from a copy", tx.ID, what)
			}
			return
		}
		if tx.Ops[0].Write {
			k.addWrite(g, source, block, tx)
		}
	}
}

// isPlainRead reports whether a transaction read a single record, which is the most common kind.
func isPlainRead(tx *history.Transaction) bool {
	return len(tx.Ops) == 1 && tx.Ops[0].Observed && !tx.Ops[0].Write && tx.Kind.ReadOnly()
}

// addWrite records a transaction that writes.
func (k *checker) addWrite(g *gatherer, source int, block int64, tx *history.Transaction) {
	w := g.next(source, block, tx.ID)
	k.describe(w, source, tx)
	switch {
	case w.outcome == history.Committed && w.kind == k.in.Modify:
		g.updates++
	case w.outcome == history.Unknown && w.is(rmw):
		g.unknown = true
	}
}

// contradiction describes what makes a transaction's record impossible. It returns an empty string if the
// record is plausible.
func (k *checker) contradiction(tx *history.Transaction) string {
	scan, reads := tx.Kind == k.in.Scan, tx.Kind.ReadOnly()
	if len(tx.Ops) != 1 && (!scan || len(tx.Ops) == 0) {
		return fmt.Sprintf("has %d operations", len(tx.Ops))
	}
	op := &tx.Ops[0]
	switch {
	case reads:
		for i := range tx.Ops {
			if op := &tx.Ops[i]; op.Write || tx.Outcome == history.Committed && !op.Observed {
				return "only reads, and has an operation that writes or that saw nothing"
			}
		}
		return ""
	case !op.Write:
		return "writes, and has an operation that does not"
	case tx.Outcome == history.Rejected && (!op.Observed || op.State != history.Absent):
		return "was rejected because there was no record, and did not see that"
	case tx.Outcome != history.Committed || tx.LookedUp: // what it saw may be from an earlier try
	case tx.Kind == k.in.Insert && op.Observed && op.State != history.Absent:
		return "inserted a record that it had found"
	case tx.Kind == k.in.Modify && (!op.Observed || op.State == history.Absent):
		return "read a record and wrote it, and had not found it"
	}
	if bytes, known := k.lengthOf(op.Object, tx.ID); known && bytes != op.Amount {
		return fmt.Sprintf("wrote %d bytes, and its value has %d", op.Amount, bytes)
	}
	return ""
}

// misnumbered returns an error if a client's transactions are not numbered consecutively from 1. A recording
// that was cut off may lack some.
func (k *checker) misnumbered(extents map[uint64]extent) error {
	if k.places.twice {
		return errors.New("the history has a transaction twice: it is damaged, or the same history was given twice")
	}
	clients := slices.Sorted(maps.Keys(extents))
	for _, client := range clients {
		e, id := extents[client], history.ID(client<<history.SequenceBits)
		if !k.in.Part && !e.whole() && k.Recorded(id) {
			return fmt.Errorf("the history of run %d does not have each transaction of client %d once: it was altered or "+
				"damaged: restore it from a copy",
				id.Run(), id.Client())
		}
	}
	return nil
}

// describe fills in the record of a transaction that writes.
func (k *checker) describe(w *write, source int, tx *history.Transaction) {
	op := &tx.Ops[0]
	w.n, w.id, w.source, w.kind, w.outcome = op.Object, tx.ID, uint16(source), tx.Kind, tx.Outcome
	w.try, w.end, w.readsEnd, w.readsStart = k.start(source, tx.Try), never, never, always
	switch tx.Outcome {
	case history.Committed:
		w.end = k.stop(source, tx.End)
	case history.Aborted:
		w.try = k.start(source, tx.Sent) // if it was applied, the try that succeeded is not known
	}
	if k.times == perhaps && tx.Sent < tx.Try {
		k.lock.Lock()
		if k.retried == nil {
			k.retried = map[history.ID]bool{}
		}
		k.retried[tx.ID] = true
		k.lock.Unlock()
	}
	switch {
	case !op.Observed || tx.Outcome == history.Rejected:
	case tx.Kind == k.in.Modify && op.State == history.Whole:
		w.flags, w.previous = rmw, op.Writer
	case tx.Kind == k.in.Insert && op.State == history.Absent:
		w.flags = rmw
	}
}

// loaded reports whether the record comes from the load.
func (k *checker) loaded(n uint64) bool { return n < k.in.Records }

// origin is the kind of writer of a value.
type origin uint8

const (
	initial origin = iota // the load; for an inserted record: not written yet
	sent                  // a transaction of the histories, to this record
	unknown               // a run without a history, or a transaction that the recording may lack
	nobody
)

// writerOf returns the kind of writer of a value of record n. The write is nil if it is not known. Runs
// without a history are added to foreign.
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
	case k.damaged || !k.Recorded(id):
		return unknown, nil
	}
	return nobody, nil
}

// findLostUpdates looks for two transactions that both read and replaced one value.
func (k *checker) findLostUpdates(f *finder, o *ordering, key *register) {
	updates := o.updates[:0]
	for _, w := range o.list {
		if w.kind == k.in.Modify && w.is(rmw) && w.outcome == history.Committed {
			updates = append(updates, w)
		}
	}
	o.updates = updates
	slices.SortFunc(updates, func(a, b *write) int {
		return cmp.Or(cmp.Compare(a.previous, b.previous), cmp.Compare(a.id, b.id))
	})
	for j := 1; j < len(updates); j++ {
		if a, b := updates[j-1], updates[j]; a.previous == b.previous {
			key.update = true
			f.find(lost, b.n, func() finding {
				return shows(fact.RegisterLostUpdate{
					First: k.writer(a), Second: k.writer(b), Object: k.Object(b.n), Writer: k.writerAt(b.n, b.previous),
				}, b.id, a.id)
			})
			f.at(lost, b.end)
		}
	}
}

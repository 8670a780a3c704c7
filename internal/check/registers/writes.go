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

// mostWrites is how many writes the checks take: a rank has the bits of a write's flags that are left.
const mostWrites = 1<<(32-flagBits) - 1

// gatherer is what one worker gathers of the writes.
type gatherer struct {
	slabs   [][]write
	pieces  []piece
	source  int // of the last piece
	block   int64
	last    history.ID // of the last piece
	writers int
	updates uint64
	unknown bool // a rmw whose outcome is not known is among them
	scans   bool
	extents map[uint64]extent // by run and client
	client  uint64            // run and client of extent
	extent  extent            // of the transactions read last, which are of one client
	measure func(tx *history.Transaction)
	altered error // as the checker's

	committed uint64 // but for those of the background
}

// piece is the numbers of some writes of one block, whose ids grow.
type piece struct{ from, to uint32 }

// Writes are kept in slabs of so many. The number of a write says which slab, and which of it.
const (
	slabBits  = 12
	slabSize  = 1 << slabBits
	firstSlab = 1 << 6 // writes for which a worker takes memory at first
)

// next returns where the next write is to be put, which is of this block and has this id.
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

// note notes that there is a transaction of an id.
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

// readWrites notes every transaction that writes.
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
		return fmt.Errorf("the history has more than %d writes, which is more than one check takes", mostWrites)
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

// isPlainRead reports whether a transaction read one record, as most do.
func isPlainRead(tx *history.Transaction) bool {
	return len(tx.Ops) == 1 && tx.Ops[0].Observed && !tx.Ops[0].Write && tx.Kind.ReadOnly()
}

// addWrite notes one transaction that writes.
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

// contradiction returns what no client records of a transaction; empty if there is nothing.
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
	case tx.Outcome != history.Committed || tx.LookedUp: // what it saw may be of an earlier try
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

// misnumbered returns an error if the numbers of a client's transactions are not those from 1 on,
// each once. A recording that was cut off may lack some.
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

// describe fills in what is kept of a transaction that writes.
func (k *checker) describe(w *write, source int, tx *history.Transaction) {
	op := &tx.Ops[0]
	w.n, w.id, w.source, w.kind, w.outcome = op.Object, tx.ID, uint16(source), tx.Kind, tx.Outcome
	w.try, w.end, w.readsEnd, w.readsStart = k.start(source, tx.Try), never, never, always
	switch tx.Outcome {
	case history.Committed:
		w.end = k.stop(source, tx.End)
	case history.Aborted:
		w.try = k.start(source, tx.Sent) // if it was applied after all, nobody knows by which try
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
	case k.damaged || !k.Recorded(id):
		return unknown, nil
	}
	return nobody, nil
}

// findLostUpdates looks for two transactions that both read one value and both wrote
// in its place.
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

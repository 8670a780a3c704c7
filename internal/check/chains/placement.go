package chains

import (
	"math/bits"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// object is the last version of a chain, in 32 bytes.
type object struct {
	value   int64
	writer  history.ID // of the version; 0 for the load
	version uint32
	pins    uint32 // number of unplaced readers of this version; it must not be overwritten while there are any
	reads   uint32 // number of placed transactions that read this version and did not overwrite it
	waited  bool   // a transaction waits for this object
}

// state is the progress of a transaction.
type state uint8

const (
	begun  state = iota // its client has sent it
	ended               // its client received the reply: a transaction that did not see it began before
	placed              // it has a place in the order
)

// placement builds the serial order from the beginnings and ends of all transactions, in the order of time.
// In the serial order,
//
//   - the writer of a version precedes its readers (wr) and the next writer (ww);
//   - the readers of a version precede the next writer (rw): an overwriter is placed after its
//     client received the reply, and every reader that could have seen the overwritten version
//     began before that;
//   - a transaction that ended before another began precedes it (real time).
type placement struct {
	in        Input
	objects   []object
	waiters   waiters
	makers    map[version]*transaction // transactions of unknown outcome, by the versions that they make
	ready     []*transaction           // to be tried again
	queue     []*transaction           // ended and possibly not placed, in the order of their ends
	first     int                      // index in queue of the first one that is not placed
	now       int64                    // end of the last transaction that ended
	late      heap[*transaction]       // delayed by real time, by their beginnings
	unsure    []*transaction           // of unknown outcome, and ended
	open      int                      // number of ended transactions that are not placed
	circles   circles                  // placed together because they have no order
	delayed   circles                  // placed together because they have no order that agrees with real time
	tentative bool                     // if this attempt fails, another one with more information follows
	untimed   bool                     // real time is ignored because there is no order without it either
	near      []uint32                 // the objects that warm reads
	touched   uint32                   // keeps the compiler from removing the reads of warm
	err       error

	// If the recordings' times have errors: the error of each recording and, by object, the latest beginnings
	// among the transactions before the last version and among its readers.
	errors           []int64
	writers, readers []check.Latest
	doubt            check.Doubt

	dependencies int
	unknown      int                 // number of applied transactions of unknown outcome
	lookedUp     map[history.ID]bool // not applied
	legs         fingerprint
}

// version identifies one version of an object.
type version struct{ object, number uint32 }

// pinned is the version number under which a transaction waits until an object has no pins. No transaction
// reads this version.
const pinned = ^uint32(0)

func newPlacement(in Input) *placement {
	p := &placement{
		in: in, objects: make([]object, in.Objects),
		makers: map[version]*transaction{},
	}
	for n := range p.objects {
		p.objects[n].value = in.Opening(uint64(n))
	}
	for i, r := range in.History {
		if p.errors == nil && r.Error > 0 && len(in.History) > 1 {
			p.errors = make([]int64, len(in.History))
			p.writers, p.readers = make([]check.Latest, in.Objects), make([]check.Latest, in.Objects)
		}
		if p.errors != nil {
			p.errors[i] = r.Error
		}
	}
	return p
}

func (p *placement) fail(format string, args ...any) {
	if p.err == nil {
		p.err = unproved(format, args...)
	}
}

// failAt is fail at an object.
func (p *placement) failAt(n uint32, format string, args ...any) {
	if p.err == nil {
		p.err = contradiction(uint64(n), format, args...)
	}
}

// warm loads the objects of some events into the processor's cache, all at once. An object that is only read
// is loaded at the beginning of its reader, the others at the end.
func (p *placement) warm(list []event) {
	numbers := p.near[:0]
	for _, e := range list {
		ops := e.t.operations()
		for j := range min(len(ops), 4) {
			if op := &ops[j]; op.write() != e.began() {
				numbers = append(numbers, op.object())
			}
		}
	}
	versions := uint32(0)
	for _, n := range numbers {
		versions += p.objects[n].version
	}
	p.near, p.touched = numbers, p.touched+versions
}

// take processes an event.
func (p *placement) take(e event) {
	if e.began() {
		p.begin(e.t)
	} else {
		p.end(e.t)
	}
}

// begin processes the beginning of a transaction. Versions that it reads and does not overwrite are pinned
// until it is placed.
func (p *placement) begin(t *transaction) {
	ops := t.operations()
	for i := range ops {
		op := &ops[i]
		if op.write() {
			continue
		}
		switch o := &p.objects[op.object()]; {
		case o.version == op.version:
			p.pin(t, op, o)
		case o.version < op.version:
			t.lacking++
			p.wait(t, int32(i), version{op.object(), op.version})
		default:
			p.failAt(op.object(), "%v read version %d of object %d after it was overwritten", t.id, op.version, op.object())
		}
	}
	if len(ops) > manyReads && t.has(reader) && t.lacking == 0 {
		p.postpone(t)
	}
}

// manyReads is the number of reads from which a read-only transaction is placed before its end, so that it
// does not delay many writers.
const manyReads = 64

// end processes the end of a transaction.
func (p *placement) end(t *transaction) {
	p.now = t.end
	if t.state == placed {
		t.batch.done()
		p.settle()
		return
	}
	t.state = ended
	p.open++
	if !t.has(unknown) {
		p.queue = append(p.queue, t)
		p.demandReads(t)
		p.try(t)
		p.settle()
		return
	}
	p.unsure = append(p.unsure, t)
	ops := t.operations()
	for i := range ops {
		if op := &ops[i]; op.write() {
			made := version{op.object(), op.version + 1}
			if p.makers[made] != nil {
				p.failAt(made.object, "%v and %v made version %d of object %d", t.id, p.makers[made].id, made.number, made.object)
			}
			p.makers[made] = t
			for w := range p.waiters.of(made) {
				if w.t.demands() {
					p.demand(t)
				}
			}
		}
	}
	p.settle()
}

// demands reports whether t, and with it everything before it, must be placed as soon as possible. A
// transaction of unknown outcome may have taken effect at any time after its beginning. It is placed when a
// transaction that has ended read its version, because no transaction that missed this version began after
// that.
func (t *transaction) demands() bool {
	return t.state == ended && (!t.has(unknown) || t.has(demanded))
}

// demand makes a transaction of unknown outcome ready to be placed.
func (p *placement) demand(t *transaction) {
	if !t.has(demanded) {
		t.flags |= demanded
		p.ready = append(p.ready, t)
		p.demandReads(t)
	}
}

// demandReads demands the writers of the versions that t waits for.
func (p *placement) demandReads(t *transaction) {
	ops := t.operations()
	for i := range ops {
		if op := &ops[i]; t.lacking > 0 && !op.write() && p.objects[op.object()].version < op.version {
			p.demandMaker(version{op.object(), op.version})
		}
	}
}

func (p *placement) demandMaker(v version) {
	if maker := p.makers[v]; maker != nil {
		p.demand(maker)
	}
}

// finish places the remaining transactions of unknown outcome, and fails if a transaction cannot be placed.
func (p *placement) finish(w *check.Watch) {
	p.breakCircles(w)
	for _, t := range p.unsure {
		if t.state != placed {
			p.demand(t)
			p.settle()
		}
	}
	p.breakCircles(w)
	if p.open > 0 {
		p.failAt(p.stuckAt(), "%d transactions found no place", p.open)
	}
}

// stuckAt returns an object whose version the first transaction without a place lacks.
func (p *placement) stuckAt() uint32 {
	for _, t := range p.queue[p.first:] {
		if t == nil || t.state == placed {
			continue
		}
		ops := t.operations()
		for i := range ops {
			if n := ops[i].object(); p.objects[n].version != ops[i].version {
				return n
			}
		}
	}
	return 0
}

// settle retries transactions until no more can be placed.
func (p *placement) settle() {
	for p.err == nil {
		for len(p.ready) > 0 && p.err == nil {
			t := p.ready[len(p.ready)-1]
			p.ready = p.ready[:len(p.ready)-1]
			if t.state != placed {
				p.try(t)
			}
		}
		p.advance()
		if len(p.late) == 0 || p.held(p.late[0].value) {
			return
		}
		t := p.late.pop()
		if t.flags &^= postponed; t.state != placed {
			p.ready = append(p.ready, t)
		}
		t.batch.done()
	}
}

// postpone delays t until everything that ended before its beginning is placed.
func (p *placement) postpone(t *transaction) {
	if !t.has(postponed) {
		t.flags |= postponed
		t.batch.live++
		p.late.push(t.try, t)
	}
}

// advance moves to the first unplaced transaction in the queue.
func (p *placement) advance() {
	for p.first < len(p.queue) && p.queue[p.first].state == placed {
		p.queue[p.first].batch.done()
		p.queue[p.first] = nil
		p.first++
	}
	if p.first > 1024 && p.first > len(p.queue)/2 {
		p.queue = p.queue[:copy(p.queue, p.queue[p.first:])]
		p.first = 0
	}
}

// try places a transaction if nothing unplaced precedes it. Otherwise the transaction waits for one of its
// predecessors.
func (p *placement) try(t *transaction) {
	switch {
	case t.lacking > 0, t.state != ended && !t.has(reader), t.has(unknown) && !t.has(demanded):
		return
	case p.held(t):
		p.postpone(t)
		return
	}
	ops := t.operations()
	for i := range ops {
		op := &ops[i]
		if !op.write() {
			continue
		}
		switch o := &p.objects[op.object()]; {
		case o.version < op.version:
			p.wait(t, overwriter, version{op.object(), op.version})
			return
		case o.version > op.version:
			p.failAt(op.object(), "%v and %v made version %d of object %d", t.id, o.writer, op.version+1, op.object())
			return
		case o.pins > 0:
			p.wait(t, overwriter, version{op.object(), pinned})
			return
		}
	}
	p.place(t)
}

// held reports whether a transaction that ended before t began is not placed or not known yet.
func (p *placement) held(t *transaction) bool {
	p.advance()
	return t.try > p.now || !p.untimed && p.first < len(p.queue) && p.queue[p.first] != t && p.queue[p.first].end < t.try
}

func (p *placement) place(t *transaction) {
	if t.state == ended {
		p.open--
	}
	t.state = placed
	p.countUnknown(t)
	ops := t.operations()
	if p.errors != nil {
		p.doubted(t, ops)
	}
	for i := range ops {
		op := &ops[i]
		o := &p.objects[op.object()]
		if op.write() {
			p.write(t, op, o)
			continue
		}
		if o.reads++; o.writer != 0 {
			p.dependencies++
		}
		if o.pins--; o.pins == 0 && o.waited {
			p.wake(version{op.object(), pinned})
		}
	}
}

// countUnknown counts a placed transaction of unknown outcome.
func (p *placement) countUnknown(t *transaction) {
	if t.has(unknown) && !t.has(anonymous) {
		p.unknown++
	}
}

// apply makes o the version that t made.
func (op *operation) apply(o *object, t *transaction) {
	if t.has(anonymous) {
		o.value, o.writer = op.value, op.writer
	} else {
		o.value, o.writer = o.value+op.amount, t.id
	}
	o.version++
	o.reads = 0
}

// write adds the next version of an object.
func (p *placement) write(t *transaction, op *operation, o *object) {
	if op.seen() && (op.value != o.value || op.writer != o.writer) {
		p.failAt(op.object(), "%v read something else than version %d of object %d", t.id, op.version, op.object())
		return
	}
	if p.dependencies += int(o.reads); o.writer != 0 {
		p.dependencies++
	}
	op.apply(o, t)
	if o.value < p.in.Floor && p.in.End != nil {
		p.failAt(op.object(), "object %d fell to %d", op.object(), o.value)
	}
	if t.has(unknown) {
		delete(p.makers, version{op.object(), o.version})
	}
	if !o.waited {
		return
	}
	made := version{op.object(), o.version}
	for w := range p.waiters.take(made) {
		if w.op == overwriter {
			p.ready = append(p.ready, w.t)
			continue
		}
		p.pin(w.t, &w.t.operations()[w.op], o)
		if w.t.lacking--; w.t.lacking == 0 {
			p.ready = append(p.ready, w.t)
		}
	}
}

// pin keeps a version from being overwritten until its reader t is placed.
func (p *placement) pin(t *transaction, op *operation, o *object) {
	if op.value != o.value || op.writer != o.writer {
		p.failAt(op.object(), "%v read something else than version %d of object %d", t.id, op.version, op.object())
	}
	o.pins++
}

// wait registers t to be tried again when a version exists.
func (p *placement) wait(t *transaction, op int32, v version) {
	p.objects[v.object].waited = true
	p.waiters.add(v, waiter{t, op})
	if t.demands() {
		p.demandMaker(v)
	}
}

func (p *placement) wake(v version) {
	for w := range p.waiters.take(v) {
		p.ready = append(p.ready, w.t)
	}
}

// agrees compares the ledger with the placed transactions.
func (p *placement) agrees(b *books) error {
	if p.legs != b.legs {
		return unproved("the ledger does not have what was committed, or has something else")
	}
	for _, id := range b.tombstones {
		if !p.lookedUp[id] {
			return unproved("the ledger has a tombstone of %v", id)
		}
	}
	return nil
}

// fingerprint identifies a multiset of legs by the sum of their hashes and the sum of the squares of the
// hashes. Two different multisets collide with a probability of about 2^-64.
type fingerprint struct{ sum, squares uint64 }

// These are odd numbers without a pattern. The second exceeds every object<<32+version, so that no product is
// zero.
const (
	factor1 = 0xa0761d6478bd642f
	factor2 = 0xe7037ed1a0b428db
	factor3 = 0x8ebc6af09c88c6e3
)

// add adds a leg; number is its position within the transaction, from 0. The hash multiplies twice to 128
// bits and folds the result, like wyhash.
func (f *fingerprint) add(id history.ID, number uint32, object uint64, amount int64, version uint64) {
	h := fold(uint64(id)^uint64(number)*factor1^factor3, (object<<32+version)^factor2)
	h = fold(h^uint64(amount), factor1)
	f.sum += h
	f.squares += h * h
}

func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

func (f *fingerprint) join(g fingerprint) { f.sum += g.sum; f.squares += g.squares }

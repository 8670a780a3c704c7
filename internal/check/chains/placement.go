package chains

import (
	"math/bits"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// object is the last version of one chain. It takes 32 bytes.
type object struct {
	value   int64
	writer  history.ID // of the version; 0 for the load
	version uint32
	pins    uint32 // transactions that read this version and are not placed: it is not overwritten before
	reads   uint32 // placed transactions that read this version and did not overwrite it
	waited  bool   // somebody waits at this object
}

// state says how far a transaction is.
type state uint8

const (
	begun  state = iota // its client has sent it
	ended               // its client had the answer: nobody who did not see it began before
	placed              // it has its place in the order
)

// placement makes the serial order. It is given the beginnings and the ends of all
// transactions in the order of time; in it stand
//
//   - the maker of a version before its readers (wr) and before the next maker (ww);
//   - the readers of a version before the next maker (rw): an overwriter is placed when its
//     client had the answer, and every reader that could have seen what it overwrites
//     began before that;
//   - what had ended before what began after that (real time).
type placement struct {
	in        Input
	objects   []object
	waiters   waiters
	makers    map[version]*transaction // of unknown outcome, by what they are to make
	ready     []*transaction           // to be tried again
	queue     []*transaction           // ended and perhaps not placed, in the order of their ends
	first     int                      // of queue, that is not placed
	now       int64                    // when the last of them ended
	late      heap[*transaction]       // held back by real time, by their beginnings
	unsure    []*transaction           // of unknown outcome, and ended
	open      int                      // ended and not placed
	circles   circles                  // placed together, because they have no order
	delayed   circles                  // the same, because they have none that agrees with real time
	tentative bool                     // if it fails, another one follows that knows more
	untimed   bool                     // real time holds nobody back: there is no order without it either
	near      []uint32                 // the objects that warm reads
	touched   uint32                   // keeps what warm does from being left out
	err       error

	// Where the recordings' times have errors: of each recording, and by object the latest
	// beginnings of what stands before the last version, and of who read it.
	errors           []int64
	writers, readers []check.Latest
	doubt            check.Doubt

	dependencies int
	unknown      int                 // applied, of unknown outcome
	lookedUp     map[history.ID]bool // and not applied
	legs         fingerprint
}

// version is one version of an object.
type version struct{ object, number uint32 }

// pinned is the key of who waits for the pins of an object to go: no transaction reads such
// a version number.
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

// warm reads the objects that some events are about, all at once, so that they are in the
// processor's cache when they are needed one by one: those that are only read when their
// reader began, and the others when it ended.
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

// take takes note of an event.
func (p *placement) take(e event) {
	if e.began() {
		p.begin(e.t)
	} else {
		p.end(e.t)
	}
}

// begin takes up a transaction. What it read and does not overwrite stays as it is until
// it is placed.
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
			p.fail("%v read version %d of object %d after it was overwritten", t.id, op.version, op.object())
		}
	}
	if len(ops) > manyReads && t.has(reader) && t.lacking == 0 {
		p.postpone(t)
	}
}

// manyReads is from how many reads on a transaction that only reads is placed before its
// client had the answer, so that it does not hold back so many writers for so long.
const manyReads = 64

// end takes note that the client of a transaction had its answer.
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
				p.fail("%v and %v made version %d of object %d", t.id, p.makers[made].id, made.number, made.object)
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

// demands says that t is to be placed as soon as it can be, and with it what stands before
// it. A transaction of unknown outcome may have had its effect at any time after it began:
// it is placed when somebody whose client had the answer read what it made, because no one
// who did not see its effect began after that.
func (t *transaction) demands() bool {
	return t.state == ended && (!t.has(unknown) || t.has(demanded))
}

// demand has a transaction of unknown outcome placed.
func (p *placement) demand(t *transaction) {
	if !t.has(demanded) {
		t.flags |= demanded
		p.ready = append(p.ready, t)
		p.demandReads(t)
	}
}

// demandReads demands who made the versions that t waits to be there.
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

// finish places those of unknown outcome that nobody has asked for, and says what could not
// be placed.
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
		p.fail("%d transactions found no place", p.open)
	}
}

// settle tries again whatever has become possible, until nothing has.
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

// postpone has t tried again when all that ended before it began is placed.
func (p *placement) postpone(t *transaction) {
	if !t.has(postponed) {
		t.flags |= postponed
		t.batch.live++
		p.late.push(t.try, t)
	}
}

// advance moves on to the first in the queue that is not placed.
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

// try places a transaction if nothing stands before it that is not placed; else it waits
// for one such thing.
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
			p.fail("%v and %v made version %d of object %d", t.id, o.writer, op.version+1, op.object())
			return
		case o.pins > 0:
			p.wait(t, overwriter, version{op.object(), pinned})
			return
		}
	}
	p.place(t)
}

// held says that a transaction had ended before t began, and is not placed or not known yet.
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

// countUnknown counts a transaction that is placed although its outcome was unknown.
func (p *placement) countUnknown(t *transaction) {
	if t.has(unknown) && !t.has(anonymous) {
		p.unknown++
	}
}

// apply makes o the next version of itself, as t makes it.
func (op *operation) apply(o *object, t *transaction) {
	if t.has(anonymous) {
		o.value, o.writer = op.value, op.writer
	} else {
		o.value, o.writer = o.value+op.amount, t.id
	}
	o.version++
	o.reads = 0
}

// write makes the next version of an object.
func (p *placement) write(t *transaction, op *operation, o *object) {
	if op.seen() && (op.value != o.value || op.writer != o.writer) {
		p.fail("%v read something else than version %d of object %d", t.id, op.version, op.object())
		return
	}
	if p.dependencies += int(o.reads); o.writer != 0 {
		p.dependencies++
	}
	op.apply(o, t)
	if o.value < p.in.Floor && p.in.End != nil {
		p.fail("object %d fell to %d", op.object(), o.value)
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

// pin keeps a version from being overwritten before t, which read it, is placed.
func (p *placement) pin(t *transaction, op *operation, o *object) {
	if op.value != o.value || op.writer != o.writer {
		p.fail("%v read something else than version %d of object %d", t.id, op.version, op.object())
	}
	o.pins++
}

// wait has t tried again when a version is there.
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

// agrees compares the ledger with what was placed.
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

// fingerprint is of a set of legs, in which one may be several times: the sum of their
// hashes and the sum of the squares of these. Two different sets have the same one with a
// probability of about 2^-64.
type fingerprint struct{ sum, squares uint64 }

// Odd numbers without a pattern. The second is above every object<<32+version, so that no
// product is zero for it.
const (
	factor1 = 0xa0761d6478bd642f
	factor2 = 0xe7037ed1a0b428db
	factor3 = 0x8ebc6af09c88c6e3
)

// number is that of the leg within its transaction, from 0. The hash multiplies twice to
// 128 bits and folds, as wyhash does.
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

// Package chains proves in one pass that recorded transactions have a serial order, and
// that the end state is what this order leaves.
//
// Each transaction says which version of each object it read and by whom it was made, and
// which it made, so the versions of an object are a chain. A transaction is placed when
// every version that it read is the last one of its chain; then it makes its own ones. The
// sequence of these placements is a serial order that explains every read:
//
//	object 7   load ── v1 (T1) ── v2 (T4)          T4 read v1 of 7 and v3 of 9: it is placed
//	object 9   load ── v1 ── v2 ── v3 (T2)         when v1 and v3 are the last ones
//
// An object takes 32 bytes. Transactions are kept from when their client began them until
// they are placed, so memory does not grow with the length of a history.
//
// What is not placed, a balance that does not follow, a row of the ledger too many: each
// ends the proof without an answer. Who asked must then look at the whole history, which
// takes longer and says what is wrong.
package chains

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// Recording is a closed recording, and when it began on a clock that is one for all of them.
type Recording struct {
	check.Source
	Zero  int64 // ns
	Error int64 // of Zero either way, ns; the times of one recording are exact among themselves
}

// Input is what a proof is about: the recordings of all runs, and the end state that was
// downloaded after them.
type Input struct {
	Objects uint64               // that the load made: their numbers are below it
	Opening func(n uint64) int64 // what the load put into object n; called by several goroutines
	Floor   int64                // no value is ever below it
	History []Recording
	End     check.EndState // nil: there is none, and the versions are what the recordings say of them
	Loose   bool           // without one: a transaction may overwrite a later version than it read

	// Look begins a pass, of which there may be two. What it returns is called for every
	// transaction of the background and every rejected one, by one goroutine at a time and
	// in no order. An error ends the proof without an answer.
	Look func() func(tx *history.Transaction) error

	piece, grouped int // of a test: how many records are a batch, and batches sent together
}

// MostObjects is for how many objects an operation has room for their numbers. They take
// 32 GiB.
const MostObjects = objectBits + 1

// Proof is what the serial order that was found consists of.
type Proof struct {
	Applied      int // transactions that were applied
	Acknowledged int // of them, those that wrote and were acknowledged
	Committed    int // that were recorded as committed, but for those of the background
	// InDoubt are those of which no client learned whether they were applied; the ledger has
	// InDoubtApplied of them.
	InDoubt, InDoubtApplied int
	Dependencies            int       // between two transactions, as the dependency graph counts them
	Sum                     check.Sum // of the values in the end

	// Cyclic are the transactions that have no serial order among themselves. All others
	// have one, before or behind each circle of these, and everything else holds for all.
	// Of many circles some are left out: of each level the smallest ones are here.
	Cyclic []history.ID

	// Delayed are, if there are none of these, the transactions that have no order among
	// themselves that agrees with real time.
	Delayed []history.ID

	// Doubt are the transactions of which the errors of the recordings leave open whether the
	// order agrees with real time. It does by the times as they are given.
	Doubt check.Doubt

	// Legs are the rows of the ledger of some transactions, among them all whose clients did
	// not see which versions they made, or saw others.
	Legs map[history.ID][]history.Row
}

// errOpen is within every error for which a proof was not found. It accuses nobody.
var errOpen = errors.New("not proved")

func unproved(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errOpen, fmt.Sprintf(format, args...))
}

// Open says of an error of Prove that the proof was not found.
func Open(err error) bool { return errors.Is(err, errOpen) }

// Prove looks for a serial order of all transactions that agrees with real time, but for
// those that have none (Proof.Cyclic and Proof.Delayed). An error
// is a cause for which the context ended, or one of which Open is true: a file that cannot
// be read, too.
func Prove(ctx context.Context, in Input) (Proof, error) {
	if in.Objects > MostObjects {
		return Proof{}, unproved("there are %d objects", in.Objects)
	}
	if in.End != nil && len(in.End.Unexpected()) > 0 {
		return Proof{}, unproved("the end state has unexpected rows")
	}
	p := &prover{in: in, watch: check.Watch{Ctx: ctx}, books: new(books)}
	err := p.run()
	if p.watch.Err != nil {
		return Proof{}, p.watch.Err
	}
	return p.proof, err
}

// prover is one proof under way.
type prover struct {
	in    Input
	watch check.Watch
	proof Proof
	books *books
	order *placement
}

func (p *prover) run() error {
	if p.in.End == nil {
		return p.runOpen()
	}
	err := p.place(nil, nil)
	switch {
	case err == nil:
		err = p.books.read(&p.watch, p.in.End)
	case Open(err) && !p.watch.Cancelled():
		// Of some transactions it is the ledger alone that knows which versions they made.
		if err = p.ask(); err == nil {
			err = p.place(p.books.rows, nil)
			p.proof.Legs = p.books.rows
		}
	}
	if err != nil {
		return err
	}
	if err := p.order.agrees(p.books); err != nil {
		return err
	}
	return p.compare()
}

// runOpen is run without an end state.
func (p *prover) runOpen() error {
	l, err := look(&p.watch, p.in)
	if err == nil {
		err = p.place(l.legs, l)
		p.proof.Legs = l.legs
	}
	return err
}

// eventsAtOnce is for how many events the objects are read together: so many loads from
// memory are under way at once, and their lines are still in the nearest cache when they are
// needed.
const eventsAtOnce = 64

// place finds the serial order. legs has the rows of the ledger of transactions whose
// clients did not see what they made; open is what is known without an end state.
func (p *prover) place(legs map[history.ID][]history.Row, open *outlook) error {
	p.order = newPlacement(p.in)
	p.order.tentative = legs == nil && open == nil
	f, err := newFeed(&p.watch, p.in, legs)
	if err != nil {
		return err
	}
	defer f.stop()
	if open != nil {
		open.begin(p.order, f.apart[0])
	}
	m := newMerger(f)
	for n, next := 0, lookEvery; !p.watch.Cancelled(); {
		if n >= next {
			n, next = 0, lookEvery
			if p.order.overdue(m.firstTry()) {
				next = max(next, p.order.breakCircles(&p.watch))
			}
		}
		window, err := m.next()
		if err != nil {
			return err
		}
		if len(window) == 0 {
			break
		}
		n += len(window)
		for list := range slices.Chunk(window, eventsAtOnce) {
			p.order.warm(list)
			for _, e := range list {
				p.order.take(e)
			}
			if p.order.err != nil {
				return p.order.err
			}
		}
	}
	p.proof = f.counted
	p.order.finish(&p.watch)
	p.proof.Dependencies = p.order.dependencies
	p.proof.Applied += p.order.unknown
	p.proof.InDoubtApplied = p.order.unknown
	p.proof.Cyclic, p.proof.Delayed = p.order.circles.ids(), p.order.delayed.ids()
	p.proof.Doubt = p.order.doubt
	p.order.lookedUp, p.order.legs = f.lookedUp, f.sum
	return p.order.err
}

// compare reads the objects of the end state and compares them with the ends of the chains.
func (p *prover) compare() (problem error) {
	var ends [workers]struct {
		count, identity uint64
		sum             check.Sum
		_               [64]byte
	}
	problem = check.EachObject(p.watch.Ctx, p.in.End, workers, func(worker int, list []history.Object) error {
		e := &ends[worker]
		for i := range list {
			a := &list[i]
			if a.N >= p.in.Objects {
				return unproved("the end state has an object %d", a.N)
			}
			o := &p.order.objects[a.N]
			if a.Version != uint64(o.version) || a.Value != o.value || a.Writer != o.writer {
				return unproved("object %d ends at version %d and not at %d", a.N, a.Version, o.version)
			}
			e.count++
			e.identity += check.Mix(a.N + 1)
			e.sum.Add(a.Value)
		}
		return nil
	})
	count, identity := uint64(0), uint64(0)
	for i := range ends {
		count += ends[i].count
		identity += ends[i].identity
		p.proof.Sum.Join(ends[i].sum)
	}
	for n := range p.in.Objects {
		identity -= check.Mix(n + 1)
	}
	if problem = unread(&p.watch, problem); problem == nil && (count != p.in.Objects || identity != 0) {
		return unproved("the end state has %d objects of %d", count, p.in.Objects)
	}
	return problem
}

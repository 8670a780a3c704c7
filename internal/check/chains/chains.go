// Package chains proves in one pass that recorded transactions have a serial order, and that the end state
// follows from this order.
//
// Each transaction names the versions that it read, their writers, and the versions that it made. So the
// versions of an object form a chain. A transaction is placed when every version that it read is the last of
// its chain; then its own versions are added. The sequence of placements is a serial order that explains
// every read:
//
//	object 7   load ── v1 (T1) ── v2 (T4)          T4 read v1 of 7 and v3 of 9: it is placed
//	object 9   load ── v1 ── v2 ── v3 (T2)         when v1 and v3 are the last ones
//
// An object takes 32 bytes. A transaction is kept from its beginning until it is placed, so memory does not
// grow with the length of a history.
//
// The proof ends without an answer if a transaction cannot be placed, a balance does not follow, or the
// ledger has an extra row. The caller must then examine the whole history, which takes longer and finds the
// cause.
package chains

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// Recording is a closed recording and its beginning on a clock that all recordings share.
type Recording struct {
	check.Source
	Zero  int64 // ns
	Error int64 // error of Zero in either direction, ns; times within one recording are exact
}

// Input holds the recordings of all runs and the end state that was downloaded after them.
type Input struct {
	Objects uint64               // number of objects of the load; their numbers are below it
	Opening func(n uint64) int64 // opening value of object n; called by several goroutines
	Floor   int64                // lower bound of all values
	History []Recording
	End     check.EndState // nil: none; the versions are then taken from the recordings
	Loose   bool           // without an end state: a transaction may overwrite a later version than it read

	// Look starts a pass; there may be two. The returned function is called for every background or rejected
	// transaction, by one goroutine at a time and in no particular order. An error ends the proof without an
	// answer.
	Look func() func(tx *history.Transaction) error

	piece, grouped int // for tests: number of records in a batch, and number of batches sent together
}

// MostObjects is the largest number of objects that an operation can address. They take 32 GiB.
const MostObjects = objectBits + 1

// Proof describes the serial order that was found.
type Proof struct {
	Applied      int // number of applied transactions
	Acknowledged int // number of applied transactions that wrote and were acknowledged
	Committed    int // number recorded as committed, without background transactions
	// InDoubt counts the transactions whose outcome no client learned. InDoubtApplied counts those that the
	// ledger holds.
	InDoubt, InDoubtApplied int
	Dependencies            int       // between two transactions, counted as in the dependency graph
	Sum                     check.Sum // sum of the final values

	// Cyclic lists the transactions that have no serial order among themselves. All other transactions have
	// one, before or behind each circle, and all other properties hold for all transactions. If there are
	// many circles, only the smallest of each level are listed.
	Cyclic []history.ID

	// Delayed lists, if Cyclic is empty, the transactions without an order among themselves that agrees with
	// real time.
	Delayed []history.ID

	// Doubt counts the transactions for which the clock errors leave open whether the order agrees with real
	// time. By the given times, the order agrees.
	Doubt check.Doubt

	// Legs holds the ledger rows of some transactions. These include all transactions whose clients did not
	// see which versions they made, or saw others.
	Legs map[history.ID][]history.Row
}

// errOpen is wrapped by every error that ends a proof without an answer. It accuses no party.
var errOpen = errors.New("not proved")

func unproved(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errOpen, fmt.Sprintf(format, args...))
}

// Contradiction is an error of Prove that names an object at which no serial order goes on.
type Contradiction struct {
	Object uint64
	err    error
}

func contradiction(object uint64, format string, args ...any) error {
	return &Contradiction{Object: object, err: unproved(format, args...)}
}

func (c *Contradiction) Error() string { return c.err.Error() }

// Unwrap returns an error of which Open is true.
func (c *Contradiction) Unwrap() error { return c.err }

// Open reports whether an error of Prove means that no proof was found.
func Open(err error) bool { return errors.Is(err, errOpen) }

// Prove looks for a serial order of all transactions that agrees with real time, except for those in
// Proof.Cyclic and Proof.Delayed. An error is the cause of the context's end, or Open reports true for it,
// such as for an unreadable file.
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

// prover is the state of a proof.
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
		// Only the ledger knows which versions some of the transactions made.
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

// runOpen is like run, without an end state.
func (p *prover) runOpen() error {
	l, err := look(&p.watch, p.in)
	if err == nil {
		err = p.place(l.legs, l)
		p.proof.Legs = l.legs
	}
	return err
}

// eventsAtOnce is the number of events whose objects are loaded together. So many loads from memory can be in
// progress, and their cache lines remain in the nearest cache until they are used.
const eventsAtOnce = 64

// place finds the serial order. legs holds the ledger rows of transactions whose clients did not see what
// they made. open is used if there is no end state.
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

// compare compares the objects of the end state with the ends of the chains.
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

package chains

import (
	"runtime"
	"slices"
	"sync"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// Into how many parts the transactions are divided by their ids, to find those of which the
// ledger has something else than their clients saw: fewParts of a source without blocks,
// and manyParts of a file.
const (
	fewParts  = 1 << 8
	manyParts = 1 << 16
)

// mostDiffering is the share of the parts that may differ, as a divisor: where more do,
// something is wrong everywhere.
const mostDiffering = 8

// parted are the fingerprints of all parts.
type parted []fingerprint

// part is that of an id among so many.
func part(id history.ID, of int) uint64 { return check.Mix(uint64(id)) % uint64(of) }

func (p parted) add(id history.ID, number uint32, object uint64, amount int64, version uint64) {
	p[part(id, len(p))].add(id, number, object, amount, version)
}

// join adds up what several workers have; one that has none did nothing.
func join(all []parted, size int) parted {
	sum := make(parted, size)
	for _, p := range all {
		for i := range p {
			sum[i].join(p[i])
		}
	}
	return sum
}

// ask reads the ledger, and of it the rows of all transactions of which it may know other
// versions than their clients: they did not see what they made, or read a version that
// somebody overwrote before they did, as READ COMMITTED lets them.
func (p *prover) ask() error {
	size := fewParts
	if p.in.files() != nil {
		size = manyParts
	}
	rows := map[history.ID][]history.Row{}
	seen, err := p.differing(rows, nil, size)
	if err != nil {
		return err
	}
	p.books = &books{rows: rows, parts: make([]parted, workers), size: size}
	if err := p.books.read(&p.watch, p.in.End); err != nil {
		return err
	}
	differ, count := make([]bool, size), 0
	for i, f := range join(p.books.parts, size) {
		if differ[i] = f != seen[i]; differ[i] {
			count++
		}
	}
	switch {
	case count > size/mostDiffering:
		return unproved("the ledger has something else than was seen, in %d of %d parts", count, size)
	case count == 0:
		return nil
	}
	clear(rows)
	if _, err := p.differing(rows, differ, size); err != nil {
		return err
	}
	p.books = &books{rows: rows, size: size}
	return p.books.read(&p.watch, p.in.End)
}

// differing puts the ids of all transactions into rows whose legs the ledger is to be asked
// for: those that did not see them and those of the parts that differ. It returns the
// fingerprints of all others that were committed.
func (p *prover) differing(rows map[history.ID][]history.Row, differ []bool, size int) (parted, error) {
	var mutex sync.Mutex // of rows
	parts := make([]parted, runtime.GOMAXPROCS(0))
	look := func(worker int, _ int64, tx *history.Transaction) {
		if blind(tx) || tx.Outcome == history.Committed && differ != nil && differ[part(tx.ID, size)] && writes(tx) {
			mutex.Lock()
			rows[tx.ID] = nil
			mutex.Unlock()
			return
		}
		if tx.Outcome != history.Committed {
			return
		}
		if parts[worker] == nil {
			parts[worker] = make(parted, size)
		}
		legs := uint32(0)
		for i := range tx.Ops {
			if op := &tx.Ops[i]; op.Write {
				parts[worker].add(tx.ID, legs, op.Object, op.Amount, op.Version+1)
				legs++
			}
		}
	}
	for _, r := range p.in.History {
		if err := check.EachTransaction(p.watch.Ctx, r.Source, len(parts), look); err != nil {
			return nil, unread(&p.watch, err)
		}
	}
	return join(parts, size), nil
}

// writes reports whether a transaction was to write an object.
func writes(tx *history.Transaction) bool {
	return slices.ContainsFunc(tx.Ops, func(op history.Op) bool { return op.Write })
}

// blind says that a transaction may have been applied, and that its client did not see
// every version that it made.
func blind(tx *history.Transaction) bool {
	switch tx.Outcome {
	case history.Unknown:
		return writes(tx)
	case history.Committed:
		return slices.ContainsFunc(tx.Ops, func(op history.Op) bool { return op.Write && !op.Observed })
	}
	return false
}

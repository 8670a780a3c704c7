package chains

import (
	"runtime"
	"slices"
	"sync"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// These constants are numbers of parts. The proof divides the transactions by ID to find those for which the
// ledger differs from what their clients saw. It uses fewParts for a source without blocks and manyParts for
// a file.
const (
	fewParts  = 1 << 8
	manyParts = 1 << 16
)

// mostDiffering is the divisor of the share of parts that may differ. If more differ, something is wrong
// everywhere and the proof ends.
const mostDiffering = 8

// parted holds one fingerprint for each part.
type parted []fingerprint

// part returns the part of an ID.
func part(id history.ID, of int) uint64 { return check.Mix(uint64(id)) % uint64(of) }

func (p parted) add(id history.ID, number uint32, object uint64, amount int64, version uint64) {
	p[part(id, len(p))].add(id, number, object, amount, version)
}

// join adds the parts of several workers. An empty element belongs to a worker that had nothing to do.
func join(all []parted, size int) parted {
	sum := make(parted, size)
	for _, p := range all {
		for i := range p {
			sum[i].join(p[i])
		}
	}
	return sum
}

// ask reads the ledger rows of all transactions whose versions may differ from what their clients saw. Such a client
// did not see the versions that it made. Or its version was overwritten between its read and its write, which READ
// COMMITTED allows.
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

// differing adds an entry to rows for each transaction that must be looked up in the ledger: its client did
// not see the versions, or its part differs. It returns the fingerprints of all other committed transactions.
func (p *prover) differing(rows map[history.ID][]history.Row, differ []bool, size int) (parted, error) {
	var mutex sync.Mutex // guards rows
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

// writes reports whether the transaction writes an object.
func writes(tx *history.Transaction) bool {
	return slices.ContainsFunc(tx.Ops, func(op history.Op) bool { return op.Write })
}

// blind reports whether the transaction may have been applied although its client did not see every version
// that it made.
func blind(tx *history.Transaction) bool {
	switch tx.Outcome {
	case history.Unknown:
		return writes(tx)
	case history.Committed:
		return slices.ContainsFunc(tx.Ops, func(op history.Op) bool { return op.Write && !op.Observed })
	}
	return false
}

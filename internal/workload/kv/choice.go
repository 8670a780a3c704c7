package kv

import (
	"math/rand/v2"

	"stroppy/internal/history"
	"stroppy/internal/workload/sampling"
)

// chooser makes the transactions of one client. They depend on the seed, the run, the client's number and the number
// of calls alone. The chooser allocates nothing once the slice of operations has its size.
//
// The distributions uniform and zipfian choose keys of the load. Latest chooses keys that this client inserted, the
// latest first, and then keys of the load, the last first. The inserts of other clients are not considered: a client
// would have to wait for them, and its transactions would depend on the timing.
type chooser struct {
	formula *formula
	source  *rand.Rand
	choice  sampling.Choice
	ranks   *sampling.Zipf // nil where not latest

	mix        [5]float64 // the sum of the shares up to each of the kinds
	scanLength uint64

	run, client, clients, sequence, inserted uint64

	_ [128]byte // nothing of another client on a cache line, nor on the one prefetched with it
}

// newChooser needs what was attached to.
func newChooser(c *Config, f *formula, run, client uint64) *chooser {
	h := &chooser{
		formula: f, source: sampling.NewSource(f.seed, run, client), scanLength: c.ScanLength,
		run: run, client: client, clients: uint64(c.Clients()),
	}
	sum, last := 0.0, 0
	for i, share := range [...]float64{c.Reads, c.Updates, c.Inserts, c.Scans, c.Modifies} {
		if sum += share; share > 0 {
			last = i
		}
		h.mix[i] = sum
	}
	h.mix[last] = 1 // it takes what rounding leaves
	h.choice = sampling.NewChoice(f.records, c.Distribution == Zipfian, c.ZipfExponent, f.seed)
	if f.records > 1 && c.Distribution == Latest {
		h.ranks = sampling.NewZipf(f.records, c.ZipfExponent)
	}
	return h
}

// Next fills in the client's next transaction.
func (h *chooser) Next(tx *history.Transaction) {
	h.sequence++
	*tx = history.Transaction{ID: history.NewID(h.run, h.client, h.sequence), Ops: tx.Ops[:0]}
	kind, drawn := 0, h.source.Float64()
	for drawn >= h.mix[kind] {
		kind++
	}
	tx.Kind = history.Kind(kinds[kind].Number)
	op := history.Op{Write: !tx.Kind.ReadOnly()}
	if tx.Kind == insert { // each client has every so-manieth
		op.Object = h.ofInsert(h.inserted)
		h.inserted++
	} else {
		op.Object = h.record()
	}
	switch {
	case op.Write:
		op.Amount = int64(h.formula.size(op.Object, tx.ID))
	case tx.Kind == scan:
		tx.Limit = 1 + uint32(h.source.Uint64N(h.scanLength))
	}
	tx.Ops = append(tx.Ops, op)
}

// ofInsert returns the number of the client's insert i.
func (h *chooser) ofInsert(i uint64) uint64 {
	return numberOf(h.run, (i*h.clients+h.client)&(MaxRecords-1))
}

func (h *chooser) record() uint64 {
	if h.ranks == nil {
		return h.choice.Draw(h.source)
	}
	back := h.ranks.Rank(h.source) - 1
	if back < h.inserted {
		return h.ofInsert(h.inserted - 1 - back)
	}
	return h.formula.records - 1 - (back - h.inserted)
}

package kv

import (
	"stroppy/internal/history"
	"stroppy/internal/workload/sampling"
)

// chooser makes the transactions of one client. What it makes depends on the seed,
// the run, the client's number and how often it was asked, on nothing else. It
// allocates nothing once the slice of operations has its size.
//
// Of the keys, uniform and zipfian choose among those of the load. Latest chooses
// among those that this client inserted, the latest first, and then those of the
// load, its last first: to know of what others have inserted it would have to wait
// for them, and then what one client does would depend on when another was answered.
type chooser struct {
	formula *formula
	records uint64 // of the load
	source  sampling.Source
	choice  sampling.Choice
	ranks   *sampling.Zipf // nil where not latest

	read, update, insert, scan float64 // cumulative shares
	scanLength                 uint64

	run, client, clients, sequence, inserted uint64
}

// newChooser needs what was attached to.
func newChooser(c *Config, f *formula, records, run, client uint64) *chooser {
	h := &chooser{
		formula: f, records: records, source: sampling.NewSource(f.seed, run, client), scanLength: c.ScanLength,
		run: run, client: client, clients: uint64(c.Clients()),
	}
	h.read = c.Reads
	h.update = h.read + c.Updates
	h.insert = h.update + c.Inserts
	h.scan = h.insert + c.Scans
	if c.Modifies == 0 { // the shares may add up to a little less than 1
		switch {
		case c.Scans > 0:
			h.scan = 1
		case c.Inserts > 0:
			h.insert = 1
		case c.Updates > 0:
			h.update = 1
		default:
			h.read = 1
		}
	}
	h.choice = sampling.NewChoice(records, c.Distribution == Zipfian, c.ZipfExponent, f.seed)
	if records > 1 && c.Distribution == Latest {
		ranks := sampling.NewZipf(records, c.ZipfExponent)
		h.ranks = &ranks
	}
	return h
}

// Next fills in the client's next transaction.
func (h *chooser) Next(tx *history.Transaction) {
	h.sequence++
	*tx = history.Transaction{ID: history.NewID(h.run, h.client, h.sequence), Ops: tx.Ops[:0]}
	op := history.Op{}
	switch u := h.source.Unit(); {
	case u < h.read:
		tx.Kind = history.Get
	case u < h.update:
		tx.Kind, op.Write = history.Put, true
	case u < h.insert:
		tx.Kind, op.Write = history.Insert, true
	case u < h.scan:
		tx.Kind = history.Scan
	default:
		tx.Kind, op.Write = history.Modify, true
	}
	if tx.Kind == history.Insert {
		op.Object = h.nextInsert()
	} else {
		op.Object = h.record()
	}
	switch {
	case op.Write:
		op.Amount = int64(h.formula.size(op.Object, tx.ID))
	case tx.Kind == history.Scan:
		op.Amount = 1 + int64(h.source.Below(h.scanLength))
	}
	tx.Ops = append(tx.Ops, op)
}

// nextInsert returns the number of the record that the client inserts next: each
// client has every so-manieth.
func (h *chooser) nextInsert() uint64 {
	n := h.ofInsert(h.inserted)
	h.inserted++
	return n
}

// ofInsert returns the number of the client's insert i.
func (h *chooser) ofInsert(i uint64) uint64 {
	return numberOf(h.run, (i*h.clients+h.client)&(MaxRecords-1))
}

// record chooses a record.
func (h *chooser) record() uint64 {
	if h.ranks == nil {
		return h.choice.Draw(&h.source)
	}
	back := h.ranks.Rank(&h.source) - 1
	if back < h.inserted {
		return h.ofInsert(h.inserted - 1 - back)
	}
	return h.records - 1 - (back - h.inserted)
}

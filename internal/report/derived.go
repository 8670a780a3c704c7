package report

import (
	"math"

	"stroppy/internal/history"
)

// derive brings those measurements into line that are made of others: the client's largest
// memory, and what the footprint is divided by.
func (r *Result) derive() {
	if c := r.Client; c != nil && r.SampledRSS > 0 && (c.MaxRSSBytes == nil || *c.MaxRSSBytes < r.SampledRSS) {
		most := r.SampledRSS
		c.MaxRSSBytes = &most
	}
	if r.FootprintTransfers == nil {
		r.FootprintTransfers = r.stored()
	}
	r.FootprintPerTransfer = nil
	if n := r.FootprintTransfers; n != nil && *n > 0 && r.FootprintBytes != nil {
		each := float64(*r.FootprintBytes) / float64(*n)
		r.FootprintPerTransfer = &each
	}
}

// stored counts what FootprintTransfers is of, as far as the other measurements say; nil
// where they do not: those by kind leave out the warm-up. Where nothing but what wrote
// was committed after it, the footprint over all that was committed gives the number.
func (r *Result) stored() *uint64 {
	d := r.Drive
	if d == nil || r.FootprintBytes == nil {
		return nil
	}
	n := transferred(d)
	if d.WarmupSeconds > 0 {
		each := r.FootprintPerTransfer
		if each == nil || !(*each > 0) || n == 0 || n != d.Committed {
			return nil
		}
		n = uint64(math.Round(float64(*r.FootprintBytes) / *each))
	}
	return &n
}

// transferred counts what was committed after the warm-up and wrote: of the bank, what
// moved money.
func transferred(d *Drive) (n uint64) {
	for kind, count := range d.Kinds {
		if !history.KindReadOnly(kind) {
			n += count
		}
	}
	return n
}

// writer is what a workload calls a transaction that writes.
func writer(workload string) string {
	switch workload {
	case bank, "":
		return "transfer"
	case "events":
		return "append"
	case "kv":
		return "write"
	}
	return "transaction"
}

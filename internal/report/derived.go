package report

import "stroppy/internal/history"

// derive brings those measurements into line that are made of others: the client's largest
// memory, and the footprint for each transaction that wrote.
func (r *Result) derive() {
	if c := r.Client; c != nil && r.SampledRSS > 0 && (c.MaxRSSBytes == nil || *c.MaxRSSBytes < r.SampledRSS) {
		c.MaxRSSBytes = new(r.SampledRSS)
	}
	r.FootprintPerTransfer = nil
	if n := r.FootprintTransfers; n != nil && *n > 0 && r.FootprintBytes != nil {
		r.FootprintPerTransfer = new(float64(*r.FootprintBytes) / float64(*n))
	}
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

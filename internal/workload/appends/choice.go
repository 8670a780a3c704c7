package appends

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"

	"stroppy/internal/history"
	"stroppy/internal/workload"
	"stroppy/internal/workload/sampling"
)

// chooser makes the transactions of one client. Their operations, and their distance into the window of live lists,
// depend on the seed, the run, the client's number and the number of calls. The start of the window depends on what
// the client has read. The chooser allocates nothing once the slices of a transaction have their sizes.
type chooser struct {
	config *Config
	source *rand.Rand
	ranks  *sampling.Zipf // nil: all live lists alike
	live   uint64

	run, client, sequence uint64
	first                 uint64 // the window begins with this list
	appends               uint64 // that were made

	_ [128]byte // nothing of another client on a cache line, nor on the one prefetched with it
}

func newChooser(c *Config, seed, run, client uint64) *chooser {
	h := &chooser{config: c, source: sampling.NewSource(seed, run, client), live: c.live(), run: run, client: client}
	if c.ZipfExponent > 0 && h.live > 1 {
		h.ranks = sampling.NewZipf(h.live, c.ZipfExponent)
	}
	return h
}

// Next implements load.Client. A client alone fills the lists by itself, whether it reads
// them or not.
func (h *chooser) Next(tx *history.Transaction) {
	h.sequence++
	*tx = history.Transaction{ID: history.NewID(h.run, h.client, h.sequence), Ops: tx.Ops[:0], Elements: tx.Elements[:0]}
	h.first = max(h.first, h.appends/h.config.Length)
	onlyRead := h.source.Float64() < h.config.ReadOnly
	reads, appends := false, false
	for range 1 + h.source.Uint64N(h.config.Operations) {
		object := newObject(h.run, h.first+h.offset())
		if onlyRead || h.source.Float64() < h.config.Reads {
			reads = true
			for i := range h.width() {
				tx.Ops = append(tx.Ops, history.Op{Object: object + i})
			}
			continue
		}
		appends = true
		h.appends++
		tx.Ops = append(tx.Ops, history.Op{Object: object, Write: true})
	}
	// In one order of lists transactions that lock what they append to meet in no circle.
	slices.SortStableFunc(tx.Ops, func(a, b history.Op) int { return cmp.Compare(a.Object, b.Object) })
	switch {
	case !appends:
		tx.Kind = onlyReads
	case reads:
		tx.Kind = mixed
	default:
		tx.Kind = onlyAppends
	}
}

// offset draws a live list. The first is the most popular one, which is also the one that
// is nearest to being full.
func (h *chooser) offset() uint64 {
	if h.ranks == nil {
		return h.source.Uint64N(h.live)
	}
	return h.ranks.Rank(h.source) - 1
}

// width returns the number of neighboring lists in a read.
func (h *chooser) width() uint64 {
	if h.config.Access != Predicate || h.config.Range <= 1 {
		return 1
	}
	return 1 + h.source.Uint64N(h.config.Range)
}

// learn moves the window behind the lists that a transaction has read as full.
func (h *chooser) learn(tx *history.Transaction) {
	for i := range tx.Ops {
		if op := &tx.Ops[i]; !op.Write && op.Observed && op.Value >= int64(h.config.Length) {
			h.first = max(h.first, keyOf(op.Object)+1)
		}
	}
}

// ResolveUnknown implements load.Client, as the package's comment says.
func (*chooser) ResolveUnknown(_ context.Context, tx *history.Transaction) error {
	workload.ResolvedWithoutLookUp(tx)
	return nil
}

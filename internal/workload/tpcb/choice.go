package tpcb

import (
	"math/rand/v2"

	"stroppy/internal/history"
	"stroppy/internal/workload/sampling"
)

// maxDelta: amounts are drawn uniformly from -maxDelta to maxDelta, as pgbench does.
const maxDelta = 5000

// chooser makes the transactions of one client. They depend on the seed, the run, the client's number and the number
// of calls alone. The chooser allocates nothing once the slice of operations has its size.
type chooser struct {
	size                  size
	source                *rand.Rand
	accounts              sampling.Choice
	run, client, sequence uint64
	_                     [128]byte // nothing of another client on a cache line, nor on the one prefetched with it
}

// The operations of a transaction in their order.
const (
	opAccount = iota
	opTeller
	opBranch
	operations
)

// kindOf is the kind of the row of an operation.
func kindOf(op int) kind { return account - kind(op) }

func newChooser(c *Config, s size, seed, run, client uint64) *chooser {
	return &chooser{
		size: s, run: run, client: client, source: sampling.NewSource(seed, run, client),
		accounts: sampling.NewChoice(s[account], c.Zipfian, c.ZipfExponent, seed),
	}
}

// Next fills in the client's next transaction: account, teller and branch are
// drawn each by itself, as pgbench does, so that a teller serves every branch.
func (h *chooser) Next(tx *history.Transaction) {
	h.sequence++
	*tx = history.Transaction{ID: history.NewID(h.run, h.client, h.sequence), Kind: profile, Ops: tx.Ops[:0]}
	a := h.accounts.Draw(h.source)
	b := h.source.Uint64N(h.size[branch])
	t := h.source.Uint64N(h.size[teller])
	delta := int64(h.source.Uint64N(2*maxDelta+1)) - maxDelta
	tx.Ops = append(tx.Ops,
		history.Op{Object: h.size[branch] + h.size[teller] + a, Write: true, Amount: delta},
		history.Op{Object: h.size[branch] + t, Write: true, Amount: delta},
		history.Op{Object: b, Write: true, Amount: delta},
	)
}

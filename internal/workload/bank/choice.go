package bank

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"stroppy/internal/history"
	"stroppy/internal/workload/sampling"
)

// chooser makes the transactions of one client. They depend on the seed, the run, the client's number and the number
// of calls alone. The chooser allocates nothing once the slice of operations has its size.
type chooser struct {
	config   *Config
	formula  formula
	accounts uint64
	source   *rand.Rand
	choice   sampling.Choice // of the accounts
	byKey    func(a, b history.Op) int
	guarded  bool // the database refuses a balance below zero by itself

	run, client, sequence uint64
	opener                opener
	payer, payee          uint64    // of the previous transfer
	transferred           bool      // there was one
	_                     [128]byte // nothing of another client on a cache line, nor on the one prefetched with it
}

// newChooser needs an attached bank's formula and number of accounts.
func newChooser(c *Config, f formula, accounts, run, client uint64) *chooser {
	h := &chooser{
		config: c, formula: f, accounts: accounts, run: run, client: client,
		source: sampling.NewSource(f.seed, run, client),
		choice: sampling.NewChoice(accounts, c.Zipfian, c.ZipfExponent, f.seed),
	}
	h.byKey = func(a, b history.Op) int {
		return cmp.Compare(h.formula.key(a.Object), h.formula.key(b.Object))
	}
	return h
}

// Next fills in the client's next transaction.
func (h *chooser) Next(tx *history.Transaction) {
	h.sequence++
	*tx = history.Transaction{ID: history.NewID(h.run, h.client, h.sequence), Ops: tx.Ops[:0]}
	c := h.config
	u := h.source.Float64()
	below := func(share float64) bool {
		u -= share
		return u < 0
	}
	switch {
	case below(c.PayrollShare):
		h.preparePayroll(tx)
	case below(c.JointShare):
		h.prepareTransfer(tx, joint)
	case below(c.InquiryShare):
		h.prepareInquiry(tx)
	case below(c.OpeningShare):
		h.prepareOpening(tx)
	case below(c.PredicateShare):
		h.preparePredicate(tx)
	case below(c.LowShare):
		h.prepareLow(tx)
	default:
		h.prepareTransfer(tx, transfer)
	}
	h.order(tx.Ops)
}

// prepareTransfer moves an amount. A joint transfer is allowed only if its payer and the
// payer's sibling together keep the floor. The payee is neither of them.
func (h *chooser) prepareTransfer(tx *history.Transaction, kind history.Kind) {
	payer := h.account()
	tx.Kind, tx.Ops = kind, append(tx.Ops, history.Op{Object: payer})
	if kind == joint {
		tx.Ops = append(tx.Ops, history.Op{Object: sibling(payer)})
	}
	payee := h.accountBut(payer, tx.Ops[len(tx.Ops)-1].Object)
	amount := h.amount(payer)
	tx.Ops[0] = leg(payer, -amount)
	tx.Ops = append(tx.Ops, leg(payee, amount))
	h.payer, h.payee, h.transferred = payer, payee, true
}

func (h *chooser) preparePayroll(tx *history.Transaction) {
	payer := h.account()
	payer -= payer % corporateEvery
	tx.Kind = payroll
	tx.Ops = append(tx.Ops, leg(payer, 0))
	var sum int64
	for range h.config.PayrollLegs {
		payee := h.account()
		for slices.ContainsFunc(tx.Ops, func(op history.Op) bool { return op.Object == payee }) {
			if payee++; payee == h.accounts {
				payee = 0
			}
		}
		amount := h.small(payee)
		sum += amount
		tx.Ops = append(tx.Ops, leg(payee, amount))
	}
	tx.Ops[0].Amount = -sum
}

// prepareInquiry reads a pair, or both ends of the client's previous transfer,
// which shows whether a client sees what was reported to it.
func (h *chooser) prepareInquiry(tx *history.Transaction) {
	tx.Kind = inquiry
	a, b := h.payer, h.payee
	if !h.transferred || h.source.Uint64N(2) == 0 {
		a = h.account()
		b = sibling(a)
	}
	tx.Ops = append(tx.Ops, history.Op{Object: a}, history.Op{Object: b})
}

func leg(account uint64, amount int64) history.Op {
	return history.Op{Object: account, Write: true, Amount: amount}
}

// amount returns what a payer is asked for: mostly little, now and then once to
// twice what it opened with, which it may not have.
func (h *chooser) amount(payer uint64) int64 {
	if large := h.config.LargeShare; large > 0 && h.source.Float64() < large {
		opening := h.formula.opening(payer)
		return opening + int64(h.source.Uint64N(uint64(opening)+1))
	}
	return h.small(payer)
}

// small returns 0.01 to a tenth of what the account opens with, taken as a
// personal one.
func (h *chooser) small(n uint64) int64 {
	return 1 + int64(h.source.Uint64N(uint64(h.formula.personal(n)/10)))
}

func (h *chooser) account() uint64 { return h.choice.Draw(h.source) }

// redraws is the number of repetitions of a skewed choice before a uniform one replaces it. With a large exponent
// nearly every draw is the same account.
const redraws = 8

// accountBut draws an account that is neither a nor b, which may be the same.
func (h *chooser) accountBut(a, b uint64) uint64 {
	for range redraws {
		if n := h.account(); n != a && n != b {
			return n
		}
	}
	for {
		if n := h.source.Uint64N(h.accounts); n != a && n != b {
			return n
		}
	}
}

// order sorts operations by key, so that two transactions that lock as they go cannot deadlock. In random order they
// can.
func (h *chooser) order(ops []history.Op) {
	if h.config.LockOrder == RandomOrder {
		h.source.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
	} else {
		slices.SortFunc(ops, h.byKey)
	}
}

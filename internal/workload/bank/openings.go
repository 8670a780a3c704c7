package bank

import (
	"slices"

	"stroppy/internal/check/totals"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/sampling"
)

// Clients open and close accounts in a few bank codes, take them under a balance and top them up again. They read by
// predicate all accounts of one of these codes, or the accounts under that balance.
//
// The number of an opened account begins at firstOpened and contains the run, so that no run uses a number of another
// run. Within the run each of n clients has every n-th number. The key follows from the number, as for any account. A
// client takes its next number whose key has one of these codes.
//
//	bit 47: 1 | bits 46-33: the run | bits 32-0: a count of the run
const (
	countBits   = 33
	firstOpened = 1 << (keyBits - 1)

	openedLowest  = 10_00    // cents that an account is opened with, at least
	openedHighest = 1_000_00 // and at most

	// codeLimit is a rule over a predicate: the limit, in cents, of all accounts that the clients of one run opened
	// in one bank code. An opening reads these accounts, and is refused if the new one would exceed the limit.
	codeLimit = 5_000_00

	// lowBalance is the balance that an opened account should hold. lowCover is the rule over accounts that hold
	// less: the limit, in cents, of what the accounts of one run in one bank code may lack together. A withdrawal
	// that takes an account under lowBalance reads these accounts, and is refused if the sum would exceed the limit.
	// Berenson and others describe such a rule over a predicate: hours of tasks that together must not exceed 8 (A
	// Critique of ANSI SQL Isolation Levels, 1995, section 4.2).
	lowBalance = openedLowest
	lowCover   = 30_00
)

// runOf returns the run whose clients have opened account n.
func runOf(n uint64) uint64 { return n >> countBits & (1<<history.RunBits - 1) }

// openingIfLoaded returns the opening balance of account n, and 0 for an account that a client opens.
func (f *formula) openingIfLoaded(n uint64) int64 {
	if n >= firstOpened {
		return 0
	}
	return f.opening(n)
}

// bankCode returns the number of the bank of account n.
func (f *formula) bankCode(n uint64) uint64 { return f.key(n) >> banBits }

// codes holds the bank codes of the first accounts of the load. Clients open accounts and read by predicate in these
// codes.
type codes struct {
	anchors int
	anchor  [1 << bankBits]int32 // by the code: the first account that has it, -1 if none of these has
}

func newCodes(f *formula, anchors int) *codes {
	c := &codes{anchors: anchors}
	for i := range c.anchor {
		c.anchor[i] = -1
	}
	for n := anchors - 1; n >= 0; n-- {
		c.anchor[f.bankCode(uint64(n))] = int32(n)
	}
	return c
}

// of returns the account that closings pay into in the bank code of account n; false
// where no accounts are opened in it.
func (c *codes) of(f *formula, n uint64) (anchor uint64, ok bool) {
	a := c.anchor[f.bankCode(n)]
	return uint64(a), a >= 0
}

// opener holds what a client needs to open and to close accounts.
type opener struct {
	codes *codes
	next  uint64 // count of the next number to try
	step  uint64 // between two counts of one client
	open  []holding
}

// holding is an account that the client has opened and not yet tried to close.
type holding struct {
	n   uint64
	low bool // it was taken under the balance
}

// number returns the client's next number whose key has one of the codes. ok is false after all numbers of the run
// were used.
func (h *chooser) number() (n uint64, ok bool) {
	for o := &h.opener; o.next < 1<<countBits; {
		n = firstOpened | h.run<<countBits | o.next
		o.next += o.step
		if _, ok := o.codes.of(&h.formula, n); ok {
			return n, true
		}
	}
	return 0, false
}

// prepareOpening opens an account, or closes one that the client has opened before.
func (h *chooser) prepareOpening(tx *history.Transaction) {
	o := &h.opener
	if len(o.open) > 0 && h.source.Uint64N(2) == 0 {
		i := int(h.source.Uint64N(uint64(len(o.open))))
		n := o.open[i].n
		o.open = slices.Delete(o.open, i, i+1)
		anchor, _ := o.codes.of(&h.formula, n)
		tx.Kind = closing
		tx.Ops = append(tx.Ops, leg(n, 0), leg(anchor, 0)) // what it holds is read
		return
	}
	n, ok := h.number()
	if !ok {
		h.prepareTransfer(tx, transfer)
		return
	}
	anchor, _ := o.codes.of(&h.formula, n)
	payer := h.accountBut(anchor, anchor)
	amount := openedLowest + int64(h.source.Uint64N(openedHighest-openedLowest+1))
	tx.Kind = opening
	tx.Ops = append(tx.Ops, leg(payer, -amount), leg(n, amount))
}

// prepareLow takes one of the client's opened accounts under the balance. It may also top up an account under it,
// from the account that closings pay into.
func (h *chooser) prepareLow(tx *history.Transaction) {
	o := &h.opener
	if len(o.open) == 0 {
		h.prepareOpening(tx)
		return
	}
	a := o.open[h.source.Uint64N(uint64(len(o.open)))]
	anchor, _ := o.codes.of(&h.formula, a.n)
	if a.low {
		amount := lowBalance + int64(h.source.Uint64N(lowBalance))
		tx.Kind = topUp
		tx.Ops = append(tx.Ops, leg(anchor, -amount), leg(a.n, amount))
		return
	}
	tx.Kind = withdrawal
	payee := h.accountBut(anchor, anchor)
	tx.Ops = append(tx.Ops, leg(a.n, 0), leg(payee, 0), history.Op{Object: anchor}) // what it holds is read
}

// preparePredicate reads all accounts of a code, or those under the balance.
func (h *chooser) preparePredicate(tx *history.Transaction) {
	n := h.source.Uint64N(uint64(h.opener.codes.anchors))
	anchor, _ := h.opener.codes.of(&h.formula, n)
	tx.Kind = byPredicate
	if h.config.LowShare > 0 && h.source.Uint64N(2) == 0 {
		tx.Kind = byBalance
	}
	tx.Ops = append(tx.Ops, history.Op{Object: anchor})
}

// planned returns the number of operations that a transaction had before it read by predicate.
func planned(tx *history.Transaction) int {
	switch tx.Kind {
	case opening, topUp:
		return 2
	case withdrawal:
		return 3
	case byPredicate, byBalance:
		return 1
	}
	return len(tx.Ops)
}

// opened returns the operation on the opened account that a transaction changes.
func opened(tx *history.Transaction) *history.Op {
	for i := range tx.Ops {
		if op := &tx.Ops[i]; op.Write && op.Object >= firstOpened {
			return op
		}
	}
	return nil
}

// member records an account that a read by predicate found. If the transaction has planned an operation on it, that
// operation observes the account.
func (h *chooser) member(tx *history.Transaction, key uint64, s workload.State) {
	n := h.formula.number(key)
	if n >= h.accounts && n < firstOpened {
		return // the end state shows it
	}
	for i := range planned(tx) {
		if op := &tx.Ops[i]; op.Object == n {
			if !op.Write { // else it is observed as it is written
				workload.Observe(op, s.Balance, s.Version, s.Last)
			}
			return
		}
	}
	tx.Ops = append(tx.Ops, history.Op{Object: n})
	workload.Observe(&tx.Ops[len(tx.Ops)-1], s.Balance, s.Version, s.Last)
}

// others calls f with each account that clients of this run opened, and that a
// transaction has found by predicate beside its own.
func (h *chooser) others(tx *history.Transaction, f func(op *history.Op)) {
	for i := planned(tx); i < len(tx.Ops); i++ {
		if op := &tx.Ops[i]; op.Object >= firstOpened && runOf(op.Object) == h.run {
			f(op)
		}
	}
}

// overLimit applies the rule over all accounts of a code that clients have opened.
func (h *chooser) overLimit(tx *history.Transaction) history.Reason {
	own := opened(tx)
	sum := own.Value + own.Amount
	h.others(tx, func(op *history.Op) { sum += op.Value })
	if sum > codeLimit {
		return limitReached
	}
	return 0
}

// withdraw sets the amount of a withdrawal after the account was read, and applies the rule over the accounts under
// the balance. The remaining cents follow from the transaction's id, so that each try leaves the same.
func (h *chooser) withdraw(tx *history.Transaction) history.Reason {
	own := opened(tx)
	stays := 1 + int64(sampling.Mix(uint64(tx.ID))%(lowBalance-1))
	if own.Value < lowBalance {
		return insufficientFunds
	}
	for i := range planned(tx) {
		if op := &tx.Ops[i]; op.Write {
			op.Amount = own.Value - stays
		}
	}
	own.Amount = -own.Amount
	lacks := lowBalance - stays
	h.others(tx, func(op *history.Op) { lacks += lowBalance - op.Value })
	if lacks > lowCover {
		return coverReached
	}
	return 0
}

// decide applies the rule of a transaction on an opened account once all was read, and
// makes of it what it moves.
func (h *chooser) decide(tx *history.Transaction) history.Reason {
	switch tx.Kind {
	case opening, topUp:
		return h.overLimit(tx)
	case withdrawal:
		return h.withdraw(tx)
	}
	closed := opened(tx)
	for i := range tx.Ops { // a closing takes all that the account holds
		tx.Ops[i].Amount = closed.Value
	}
	closed.Amount = -closed.Value
	return 0
}

// absent records that the opened account did not exist before.
func absent(op *history.Op) {
	workload.Observe(op, 0, 0, 0)
	op.State = history.Absent
}

// special reports whether a transaction of this kind changes an opened account, or reads by predicate.
func special(k history.Kind) bool {
	return k >= opening && k <= topUp || k == byPredicate || k == byBalance
}

// settle records the state of an opened account after a try or a look-up that ended with err.
func (h *chooser) settle(tx *history.Transaction, err error) {
	applied := err == nil && tx.Outcome == history.Committed || err == load.ErrAlreadyApplied
	if !applied || tx.Kind != opening && tx.Kind != withdrawal && tx.Kind != topUp {
		return
	}
	n := opened(tx).Object
	at := slices.IndexFunc(h.opener.open, func(a holding) bool { return a.n == n })
	switch {
	case at >= 0:
		h.opener.open[at].low = tx.Kind == withdrawal
	case tx.Kind == opening:
		h.opener.open = append(h.opener.open, holding{n: n})
	}
}

// predicates returns what the checks need to know of accounts that clients open.
func (f *formula) predicates(accounts uint64, anchors int) *totals.Predicates {
	c := newCodes(f, min(anchors, int(min(accounts, 1<<bankBits))))
	return &totals.Predicates{
		Group: f.bankCode, Run: runOf, Limit: codeLimit, Low: lowBalance, Cover: lowCover,
		Read: func(tx *history.Transaction) (q totals.Predicate, anchor *history.Op, ok bool) {
			of := predicateOf(tx)
			if of == nil {
				return q, nil, false
			}
			n, known := c.of(f, of.Object)
			for i := range tx.Ops {
				if op := &tx.Ops[i]; known && op.Object == n && op.Observed {
					return totals.Predicate{Group: f.bankCode(of.Object), Low: tx.Kind == withdrawal || tx.Kind == byBalance}, op, true
				}
			}
			return q, nil, false
		},
	}
}

// predicateOf returns an operation in the bank code whose accounts a transaction has read
// by predicate; nil if it has not read so.
func predicateOf(tx *history.Transaction) *history.Op {
	switch tx.Kind {
	case opening, withdrawal, topUp:
		return opened(tx)
	case byPredicate, byBalance:
		if len(tx.Ops) > 0 {
			return &tx.Ops[0]
		}
	}
	return nil
}

package totals

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/chains"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// The examination of everything takes about 270 bytes for each transaction, and 90 bytes for each account that
// an audit read. So a long history without a proof is examined in parts. A part is some accounts, and every transaction that touches one of them. A violation
// that these transactions show is a violation of the whole history. The parts are examined one after another
// until one shows a violation that the claim forbids. The first part has the accounts with something wrong:
//
//   - no serial order goes on at the account (chains.Contradiction);
//   - the final balance or version does not follow from the ledger;
//   - the legs in the ledger are not those that clients sent and saw committed.
const (
	mostExamined = 6 << 20 // transactions of a history that is examined as a whole
	mostFocused  = 3 << 20 // transactions of a part
	mostParts    = 16

	// auditReads is the number of reads of audits that take as much memory as a transaction.
	auditReads = 3
)

// focus is the part of a history that is examined.
type focus struct {
	accounts map[uint64]bool
	also     map[history.ID]bool // transactions that others name as the makers of versions of the accounts
	partial  bool                // something is wrong with further accounts
	done     map[uint64]bool     // accounts of all parts until now
	seen     int                 // transactions of all parts until now

	legs map[history.ID][]history.Row // without an end state: as of balances.legs
	books
}

// books are the sums of a pass over everything.
type books struct {
	transactions, committed, examined int
	reads                             int // of audits
	accounts                          []sums
	inDoubt                           map[history.ID]bool // of unknown outcome; true: the ledger has it
	clients                           map[history.ID]*sequence
}

// sequence holds the number of a client's recorded transactions and the bounds of their sequence numbers.
type sequence struct{ count, first, last uint64 }

// gapless reports whether no transaction of a client is missing or is there twice.
func (q *sequence) gapless() bool { return q.first <= 1 && q.last-q.first+1 == q.count }

// sums holds the data that one pass keeps of an account: 48 bytes.
type sums struct {
	difference uint64 // between the legs that clients saw committed and those in the ledger; 0: none
	balance    int64  // of the legs in the ledger, cents
	last       history.ID
	version    uint64 // which last made, the highest in the ledger
	legs       uint32
	touched    uint32 // transactions, without audits
	audits     uint32
	wrong      bool
}

// cost returns how much memory the examination of an account takes, in transactions.
func (a *sums) cost() int { return int(a.touched) + int(a.audits)/auditReads }

// keeps reports whether a transaction is examined.
func (f *focus) keeps(tx *history.Transaction) bool {
	return f.also[tx.ID] || slices.ContainsFunc(tx.Ops, func(op history.Op) bool { return f.accounts[op.Object] })
}

// covers reports whether the versions of an account are examined.
func (f *focus) covers(account uint64) bool { return f == nil || f.accounts[account] }

// examineLong examines a long history in parts. It returns nil if the history is short, or of a kind that
// cannot be examined in parts.
func examineLong(ctx context.Context, in AccountsInput, suspects []uint64) (results []check.Result, err error) {
	short := len(in.Audited) == 0 && check.CountTransactions(in.History) <= in.wholeUpTo()
	if short || in.Predicates != nil || in.Part || len(in.Early) > 0 {
		return nil, nil
	}
	w := check.Watch{Ctx: ctx}
	f := &focus{done: map[uint64]bool{}}
	err = f.books.read(&w, in)
	if err == nil && f.transactions+f.reads/auditReads <= in.wholeUpTo() {
		return nil, w.Err
	}
	if err == nil && in.End == nil {
		f.legs, err = displacedLegs(&w, in, !overwritesRead(in.Expect))
	}
	for part := 0; err == nil && w.Err == nil && part < mostParts && f.choose(suspects, in.focusOn()); part++ {
		if err = f.addMakers(&w, in); err != nil || w.Err != nil {
			break
		}
		one, err := f.examine(ctx, in)
		if err != nil {
			return nil, err
		}
		if results == nil || violates(one) {
			results = one
		}
		if violates(one) {
			return results, nil
		}
		suspects = nil
	}
	switch {
	case w.Err != nil:
		return nil, w.Err
	case err != nil: // what cannot be read makes the checks unknown, as in a short history
		return examine(ctx, in)
	}
	f.explain(results)
	return results, nil
}

// violates reports whether a required check is invalid.
func violates(results []check.Result) bool {
	return slices.ContainsFunc(results, func(r check.Result) bool { return r.Required && r.Status == check.Invalid })
}

// wholeUpTo returns how many transactions are examined whole.
func (in *AccountsInput) wholeUpTo() int { return cmp.Or(in.whole, mostExamined) }

// focusOn returns how many transactions of a longer history are examined.
func (in *AccountsInput) focusOn() int { return cmp.Or(in.part, mostFocused) }

// read makes the sums of all files.
func (s *books) read(w *check.Watch, in AccountsInput) (problem error) {
	s.accounts, s.inDoubt, s.clients = make([]sums, in.Accounts), map[history.ID]bool{}, map[history.ID]*sequence{}
	for _, source := range in.History {
		for rec := range check.Each(w, "the history", source.Transactions(), &problem) {
			s.addTransaction(rec.Transaction)
		}
		if problem != nil {
			return problem
		}
	}
	for id, q := range s.clients {
		if !q.gapless() {
			return fmt.Errorf("client %d of run %d: a transaction is missing or recorded twice", id.Client(), id.Run())
		}
	}
	if in.End == nil {
		return nil
	}
	for leg := range check.Each(w, "the ledger", in.End.Rows(), &problem) {
		s.addLeg(&leg)
	}
	if problem != nil {
		return problem
	}
	for o := range check.Each(w, "the accounts", in.End.Objects(), &problem) {
		if o.N < in.Accounts {
			a := &s.accounts[o.N]
			a.wrong = a.difference != 0 || o.Value < 0 || o.Value != in.Opening(o.N)+a.balance ||
				o.Version != uint64(a.legs) || o.Version != a.version || o.Writer != a.last
		}
	}
	return problem
}

func (s *books) addTransaction(tx *history.Transaction) {
	s.transactions++
	number := tx.ID.Sequence()
	client := tx.ID - history.ID(number)
	q := s.clients[client]
	if q == nil {
		q = &sequence{first: number}
		s.clients[client] = q
	}
	q.count, q.first, q.last = q.count+1, min(q.first, number), max(q.last, number)
	background := tx.Kind.Background()
	if tx.Outcome == history.Committed && !background {
		s.committed++
	}
	legs := uint32(0)
	for i := range tx.Ops {
		op := &tx.Ops[i]
		switch {
		case op.Object >= uint64(len(s.accounts)):
		case background:
			s.accounts[op.Object].audits++
			s.reads++
		default:
			s.accounts[op.Object].touched++
		}
		if !op.Write {
			continue
		}
		if op.Object < uint64(len(s.accounts)) && tx.Outcome == history.Committed {
			s.accounts[op.Object].difference += legHash(tx.ID, legs, op.Object, op.Amount)
		}
		legs++
	}
	if tx.Outcome == history.Unknown && legs > 0 {
		s.inDoubt[tx.ID] = false
	}
}

func (s *books) addLeg(leg *history.Row) {
	if leg.Mark == history.Tombstone || leg.Object >= uint64(len(s.accounts)) {
		return
	}
	a := &s.accounts[leg.Object]
	if _, inDoubt := s.inDoubt[leg.Transaction]; inDoubt {
		s.inDoubt[leg.Transaction] = true
	} else {
		a.difference -= legHash(leg.Transaction, leg.Number, leg.Object, leg.Amount)
	}
	a.legs++
	if a.balance += leg.Amount; leg.Version > a.version {
		a.version, a.last = leg.Version, leg.Transaction
	}
}

func legHash(id history.ID, number uint32, object uint64, amount int64) uint64 {
	return check.Mix(uint64(id)) * (check.Hash(number, object, amount) | 1)
}

// resolved returns what the ledger says of the transactions in doubt.
func (s *books) resolved(by string) check.Resolved {
	r := check.Resolved{Unknown: uint64(len(s.inDoubt)), By: by}
	for _, applied := range s.inDoubt {
		if applied {
			r.Applied++
		}
	}
	return r
}

// choose takes further accounts up to a cost: the suspects, then those with wrong books, then any. It reports
// whether there was one.
func (f *focus) choose(suspects []uint64, most int) bool {
	f.accounts, f.partial, f.examined = map[uint64]bool{}, false, 0
	take := func(n uint64) bool {
		if n >= uint64(len(f.books.accounts)) || f.done[n] {
			return true
		}
		cost := f.books.accounts[n].cost()
		if len(f.accounts) > 0 && f.examined+cost > most {
			return false
		}
		f.accounts[n], f.done[n] = true, true
		f.examined += cost
		return true
	}
	for _, n := range suspects {
		take(n)
	}
	for n := range f.books.accounts {
		if f.books.accounts[n].wrong && !take(uint64(n)) {
			f.partial = true
		}
	}
	for n := range f.books.accounts {
		if !take(uint64(n)) {
			break
		}
	}
	return len(f.accounts) > 0
}

// addMakers adds the makers of the accounts' versions, as the ledger or a reader names them, if their own records do
// not touch the account.
func (f *focus) addMakers(w *check.Watch, in AccountsInput) (problem error) {
	kept, makers := map[history.ID]bool{}, map[history.ID]bool{}
	for _, source := range in.History {
		for rec := range check.Each(w, "the history", source.Transactions(), &problem) {
			if !f.keeps(rec.Transaction) {
				continue
			}
			kept[rec.ID] = true
			for i := range rec.Ops {
				if op := &rec.Ops[i]; op.Observed && f.accounts[op.Object] && op.Writer != 0 && !kept[op.Writer] {
					makers[op.Writer] = true
				}
			}
		}
		if problem != nil {
			return problem
		}
	}
	if in.End != nil {
		for leg := range check.Each(w, "the ledger", in.End.Rows(), &problem) {
			if f.accounts[leg.Object] && !kept[leg.Transaction] {
				makers[leg.Transaction] = true
			}
		}
	}
	for n := range f.accounts {
		if last := f.books.accounts[n].last; last != 0 {
			makers[last] = true
		}
	}
	for id := range makers {
		if kept[id] {
			delete(makers, id)
		}
	}
	f.also = makers
	return problem
}

// examine makes the checks from the part. None of them is valid, except total.
func (f *focus) examine(ctx context.Context, in AccountsInput) ([]check.Result, error) {
	sources := in.History
	in.History = nil
	for _, source := range sources {
		in.History = append(in.History, &focused{source, f})
	}
	b := newAccounts(ctx, in, 0)
	b.focus = f
	results := b.results()
	if b.Watch.Cancelled() {
		return nil, b.Watch.Err
	}
	b.Input.SetCommitted(uint64(f.committed))
	if in.End != nil {
		b.Input.SetResolved(f.resolved(b.Words.Book))
	}
	f.seen += len(b.Txns.List)
	for i := range results {
		if r := &results[i]; r.Name != check.Total {
			for k := range r.Findings {
				r.Findings[k].AtLeast = true
			}
		}
	}
	f.explain(results)
	b.Settle(results, nil)
	return results, nil
}

// explain makes the valid results of a part unknown, with how much was examined until now.
func (f *focus) explain(results []check.Result) {
	why := fact.Part{Accounts: len(f.done), Transactions: min(f.seen, f.transactions), Of: f.transactions}
	for i := range results {
		r := &results[i]
		_, part := r.Why.(fact.Part)
		if r.Name != check.Total && (r.Status == check.Valid || part) {
			r.Status, r.Why = check.Unknown, why
		}
	}
}

// focused is a source of the transactions that are examined.
type focused struct {
	check.Source
	focus *focus
}

func (s *focused) Transactions() iter.Seq2[history.Record, error] {
	return func(yield func(history.Record, error) bool) {
		for rec, err := range s.Source.Transactions() {
			if (err != nil || s.focus.keeps(rec.Transaction)) && !yield(rec, err) {
				return
			}
		}
	}
}

// Has reports whether the source has all that a client sent, as far as it is examined.
func (s *focused) Has(client uint64) bool {
	part, ok := s.Source.(interface{ Has(client uint64) bool })
	return !ok || part.Has(client)
}

// suspectOf returns the object that an error of a proof names.
func suspectOf(err error) []uint64 {
	var c *chains.Contradiction
	if errors.As(err, &c) {
		return []uint64{c.Object}
	}
	return nil
}

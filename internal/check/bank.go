package check

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/money"
)

// Source is one recorded history; *history.Reader is one.
type Source interface {
	Header() history.Header
	Complete() bool // it was closed: no transaction that was sent is missing
	Transactions() iter.Seq2[history.Record, error]
}

// EndState is what the database held in the end; *history.End is one.
type EndState interface {
	Accounts() iter.Seq2[history.Account, error]
	Legs() iter.Seq2[history.Leg, error]
	Strangers() []string // rows that no formula makes, as people read them
}

// Input is all that the checks of the bank look at.
type Input struct {
	Expect   isolation.Level       // the claim that the verdict is about
	Accounts uint64                // accounts that the load made
	Total    int64                 // the canonical total, cents
	Opening  func(n uint64) int64  // the opening balance of account n, cents
	Name     func(n uint64) string // account n as people know it
	Audited  []uint64              // the runs in which audits were asked for
	History  []Source              // of distinct runs; none: the checks that need one are unknown
	End      EndState              // nil: it was not downloaded

	// Early are the runs of which nobody knows that they had ended when the end
	// state was downloaded. It is used only if it shows itself that they had.
	Early []uint64

	// Tell is handed every transaction that shows a violation, in no order. What
	// it is handed of a check that is not invalid in the end is to be thrown away.
	// Nil: nobody asks.
	Tell func(Violation)
}

// The names of the checks, in the order in which they are told.
const (
	Total        = "total"
	NonNegative  = "non-negative"
	Ledger       = "ledger"
	Durable      = "durable"
	NoGhost      = "no-ghost"
	ExactlyOnce  = "exactly-once"
	Serializable = "serializable"
	Strict       = "strict"
	Audits       = "audits"
)

// About says in one line what each check holds, in the order of the names.
func About() [][2]string {
	return [][2]string{
		{Total, "the end balances, downloaded and summed, equal the canonical total"},
		{NonNegative, "no balance is below zero"},
		{Ledger, "opening balance + ledger legs = end balance, and version = number of legs, for every account"},
		{Durable, "every committed transfer is in the ledger"},
		{NoGhost, "nothing rejected or aborted is in the ledger, and nothing there was never sent"},
		{ExactlyOnce, "no transfer was applied twice"},
		{Serializable, "the dependency graph has no cycle"},
		{Strict, "the dependency graph with real-time order added has no cycle"},
		{Audits, "every audit saw exactly the total, and a consistent cut"},
	}
}

// Bank makes all checks of the bank. It takes time and memory linear in the
// history and the ledger. An error in reading either makes every check unknown
// that could not be decided without it; it is told in the check's detail. The
// only error that Bank returns wraps the cause for which the context ended.
func Bank(ctx context.Context, in Input) ([]Result, error) {
	b := &bank{in: in, words: bankWords, watch: watch{ctx: ctx}}
	results := b.results()
	if !b.watch.ask() && b.early != 0 {
		in.End = nil
		b = &bank{in: in, words: bankWords, watch: watch{ctx: ctx}, early: b.early}
		results = b.results()
	}
	if b.watch.ask() {
		return nil, fmt.Errorf("check the history: %w", b.watch.err)
	}
	return results, nil
}

// results makes the checks; they are worth nothing once the watch has ended.
func (b *bank) results() []Result {
	problem := b.read()
	if b.watch.ask() || b.in.End != nil && b.early != 0 {
		return nil
	}
	results := []Result{
		b.total(), b.nonNegative(), b.ledger(), b.durable(), b.noGhost(), b.exactlyOnce(),
	}
	order := b.order()
	results = append(results, order.serializable(b.in.Expect), order.strict(b.in.Expect), b.audits(order))
	b.settle(results, problem)
	locate(b.in.History, &b.watch, results)
	return results
}

// settle leaves undecided what a problem in reading does not let be valid.
func (b *bank) settle(results []Result, problem error) {
	for i := range results {
		r := &results[i]
		r.Witness = once(r.Witness)
		if problem != nil && r.Status == Valid {
			r.Status = Unknown
			r.Detail = ""
		}
		if problem != nil && r.Status == Unknown && r.Detail == "" {
			r.Detail = fmt.Sprintf("Not decided: %v.", problem)
		}
		if r.Status == Unknown && r.Name != Strict && r.Name != Audits {
			r.Required = true
		}
	}
}

// once takes repetitions out of a short list, and what is no transaction.
func once(ids []history.ID) []history.ID {
	var list []history.ID
	for _, id := range ids {
		if id != 0 && !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list
}

// bank is the material of all checks, gathered in two passes over the files.
type bank struct {
	in      Input
	words   words
	txns    transactions
	slots   slots
	chain   chain
	end     endFacts
	audit   auditFacts
	absent  []history.ID // the first few that were refused because an account of the load was not found
	absents int
	reads   readFacts
	edges   edges
	damage  error  // the history or the end state could not be read to its end
	early   uint64 // a run that may have gone on after the end state was downloaded; 0 is none
	watch   watch
	clocks  []Clock // of the histories; one that has none of its own has a number as its ID
}

// auditFacts are what the audits saw.
type auditFacts struct {
	whole, sampled int
	runs           map[uint64]bool // that completed an audit
	wrong          []uint32        // whole audits whose sum is not the total
	wrongSum       int64           // what the first of them saw, cents
	missing        []uint32        // audits that did not find an account
}

func (b *bank) read() error {
	steps := []func() error{b.readTransactions, b.readLedger, b.layOut, b.placeLedger, b.placeUnledgered, b.readAccounts, b.relate}
	for _, step := range steps {
		if err := step(); err != nil {
			b.damage = err
			return err
		}
		if b.early != 0 && b.in.End != nil || b.watch.ask() {
			return nil
		}
	}
	return nil
}

// whyEndless says why there is no end state to check, where there is none.
func (b *bank) whyEndless() string {
	if b.early != 0 {
		return fmt.Sprintf("run %d is not known to have ended before the end state was downloaded; give --db to download it now", b.early)
	}
	return "the end state was not downloaded; give --db"
}

// findEarly looks for a run that may have gone on after the end state was
// downloaded: the ledger lacks one of its transfers that was applied, or may have
// been. Where it has them all, it was downloaded after the last of them.
func (b *bank) findEarly() {
	if len(b.in.Early) == 0 {
		return
	}
	for i := range b.txns.list {
		t := &b.txns.list[i]
		if b.watch.ended() {
			return
		}
		applied := t.outcome == history.Committed || t.outcome == history.Unknown && t.flags&voided == 0
		if t.source != fromLedger && t.want > t.seen && applied && slices.Contains(b.in.Early, t.id.Run()) {
			b.early = t.id.Run()
			return
		}
	}
}

// complete says that every history was closed, so that what is not in it was
// never sent.
func (b *bank) complete() bool {
	for _, s := range b.in.History {
		if !s.Complete() {
			return false
		}
	}
	return len(b.in.History) > 0
}

// recorded says that all that a run sent is in the histories given.
func (b *bank) recorded(run uint64) bool {
	for i, r := range b.txns.runs {
		if r == run && b.in.History[i].Complete() {
			return true
		}
	}
	return false
}

func (b *bank) readTransactions() error {
	b.slots.init(b.in.Accounts)
	for number, source := range b.in.History {
		b.txns.runs = append(b.txns.runs, source.Header().Run)
		clock, ok := clockOf(source.Header())
		if !ok {
			clock = Clock{ID: strconv.Itoa(number)}
		}
		b.clocks = append(b.clocks, clock)
		for rec, err := range source.Transactions() {
			if err != nil {
				return fmt.Errorf("the history could not be read: %w", err)
			}
			if b.watch.ended() {
				return b.watch.err
			}
			if err := b.txns.add(rec.Transaction, number); err != nil {
				return err
			}
			b.noteWrites(rec.Transaction)
			if rec.Kind == history.Audit && rec.Outcome == history.Committed {
				b.noteAudit(rec.Transaction)
			}
			if rec.Outcome == history.Rejected && rec.Reason == history.NoSuchAccount {
				b.noteAbsence(rec.Transaction)
			}
		}
	}
	return nil
}

// noteWrites lets the account's chain be long enough for what clients saw.
func (b *bank) noteWrites(tx *history.Transaction) {
	if tx.Outcome != history.Committed {
		return
	}
	for i := range tx.Ops {
		if op := &tx.Ops[i]; op.Write && op.Account < b.in.Accounts {
			s := b.slots.touch(op.Account)
			s.writes++
			if op.Observed {
				s.highest = max(s.highest, op.Version+1)
			}
		}
	}
}

// noteAbsence keeps a refusal for the reason that an account is not there, where
// the load had made them all.
func (b *bank) noteAbsence(tx *history.Transaction) {
	for i := range tx.Ops {
		if tx.Ops[i].Account >= b.in.Accounts {
			return
		}
	}
	b.witness(Durable, "", tx.ID, "", "did not find an account that the load had made")
	if b.absents++; len(b.absent) < some {
		b.absent = append(b.absent, tx.ID)
	}
}

// noteAudit keeps what an audit saw. One that saw an account twice has more
// operations than there are accounts.
func (b *bank) noteAudit(tx *history.Transaction) {
	if slices.ContainsFunc(tx.Ops, func(op history.Op) bool { return !op.Observed && op.Account < b.in.Accounts }) {
		b.audit.missing = append(b.audit.missing, uint32(len(b.txns.list)-1))
	}
	if b.audit.runs == nil {
		b.audit.runs = map[uint64]bool{}
	}
	b.audit.runs[tx.ID.Run()] = true
	if uint64(len(tx.Ops)) < b.in.Accounts {
		b.audit.sampled++
		return
	}
	b.audit.whole++
	var sum total
	for i := range tx.Ops {
		sum.add(tx.Ops[i].Balance)
	}
	if !sum.equals(b.in.Total) {
		b.witness(Audits, "", tx.ID, "", fmt.Sprintf("saw %s in place of %s", money.Format(sum.low()), money.Format(b.in.Total)))
		if len(b.audit.wrong) == 0 {
			b.audit.wrongSum = sum.low()
		}
		b.audit.wrong = append(b.audit.wrong, uint32(len(b.txns.list)-1))
	}
}

// locate says where in the recorded history the witnesses stand. It reads the
// history once more, and only when there is something to find.
func locate(sources []Source, w *watch, results []Result) {
	wanted := map[history.ID]history.Ref{}
	for _, r := range results {
		for _, id := range r.Witness {
			wanted[id] = history.Ref{}
		}
	}
	missing := len(wanted)
	for _, source := range sources {
		if missing == 0 {
			break
		}
		for rec, err := range source.Transactions() {
			if err != nil || w.ended() {
				break
			}
			if _, ok := wanted[rec.ID]; ok {
				wanted[rec.ID] = rec.Ref
				if missing--; missing == 0 {
					break
				}
			}
		}
	}
	for i := range results {
		for _, id := range results[i].Witness {
			if ref := wanted[id]; ref.File != "" && !slices.Contains(results[i].Where, ref) {
				results[i].Where = append(results[i].Where, ref)
			}
		}
	}
}

package check

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// Input is what all checkers are given, whatever they decide.
type Input struct {
	Expect  isolation.Level       // the claim that the verdict is about
	Name    func(n uint64) string // object n as people know it
	History []Source              // of distinct runs; none: the checks that need one are unknown
	End     EndState              // nil: it was not downloaded

	// Part says that the history is a part of one that still grows. The checks then stay on
	// the caller's thread, and take a few megabytes at most that grow with the data.
	Part bool

	// Early are the runs of which nobody knows that they had ended when the end
	// state was downloaded. It is used only if it shows itself that they had.
	Early []uint64

	Meter *Meter // nil: nothing is measured

	// OnViolation is called for every transaction that shows a violation, in no order.
	// What it is given of a check that is not invalid in the end does not count. It may
	// be nil.
	OnViolation func(Violation)

	// Committed, where it is not nil, is set to how many transactions of the histories were
	// committed, those of the background left out.
	Committed *uint64

	// Resolved, if it is not nil, is set to what the end state says of transactions in doubt.
	Resolved *Resolved
}

// Resolved counts the transactions of which no client learned whether they were applied. The zero
// value is that of none, or of no end state.
type Resolved struct {
	Unknown, Applied uint64
	By               string // what decided it, such as ledger
}

// SetResolved sets what Resolved points to.
func (in *Input) SetResolved(r Resolved) {
	if in.Resolved != nil && r.Unknown > 0 {
		*in.Resolved = r
	}
}

// SetCommitted sets what Committed points to.
func (in *Input) SetCommitted(n uint64) {
	if in.Committed != nil {
		*in.Committed = n
	}
}

// Words are what a workload calls a transaction that leaves something, what keeps it and
// a part of it there, what stands before an object's name, and how a value is written.
type Words struct {
	One, Book, Part, Before string
	Amount                  func(int64) string
	Kind                    func(history.Kind) string // nil: One is the name of every kind
	// Rules says what a kind of transaction, by its name, checks before it writes, such as "checked
	// that … covers …, then took from one of them". A kind without a rule is not in it.
	Rules map[string]string
}

// Evidence is what several checkers work on: the files of the runs, and the table of
// all transactions with what the end state says of each.
type Evidence struct {
	Input   Input
	Words   Words
	Txns    Transactions
	Damage  error  // the history or the end state could not be read to its end
	Unended uint64 // a run that may have gone on after the end state was downloaded; 0 is none
	Watch   Watch
	Clocks  []Clock // of the histories; one that has none of its own has a number as its ID
}

// AddSource begins with the next history.
func (e *Evidence) AddSource(number int, source Source) {
	e.Txns.Runs = append(e.Txns.Runs, source.Header().Run)
	clock, ok := ClockOf(source.Header())
	if !ok {
		clock = Clock{ID: strconv.Itoa(number)}
	}
	e.Clocks = append(e.Clocks, clock)
}

// Settle leaves undecided what a problem in reading does not let be valid.
func (e *Evidence) Settle(results []Result, problem error) {
	for i := range results {
		r := &results[i]
		r.Witness = Distinct(r.Witness)
		if problem != nil && (r.Status == Valid || r.Status == NotApplicable || r.Status == Unknown && r.Why == nil) {
			r.Status, r.Why = Unknown, Unreadable(problem)
		}
		if r.Status == Unknown && r.Name != Strict && r.Name != Audits {
			r.Required = true
		}
	}
}

// NoEnd returns the reason for which there is no end state to check.
func (e *Evidence) NoEnd() fact.Fact { return fact.NoEnd{Run: e.Unended} }

// Unreadable returns the reason for which an input cannot be used.
func Unreadable(err error) fact.Fact { return fact.Unreadable{Problem: err.Error()} }

// OtherRuns returns the transactions in the end state of runs whose recordings were not given;
// nil if there are none.
func (e *Evidence) OtherRuns() fact.Fact {
	f, runs := fact.OtherRuns{}, map[uint64]bool{}
	for i := range e.Txns.List {
		if t := &e.Txns.List[i]; t.Source == FromLedger && !e.Txns.Covers(t.ID.Run()) {
			f.Count++
			runs[t.ID.Run()] = true
		}
	}
	if f.Count == 0 {
		return nil
	}
	f.Runs = slices.Sorted(maps.Keys(runs))
	f.More = max(len(f.Runs)-Shown, 0)
	f.Runs = f.Runs[:min(len(f.Runs), Shown)]
	return f
}

// Uncertain returns that real time could contradict n things of a kind; nil for none.
func (e *Evidence) Uncertain(n int, noun string) fact.Fact {
	if n == 0 {
		return nil
	}
	return fact.Clocks{Count: fact.Count{N: n, Noun: noun}, Within: e.Uncertainty()}
}

// Show hands over a violation of a check to who asks for violations. Object is empty for none.
func (e *Evidence) Show(check, anomaly string, id history.ID, on fact.Object, what fact.Fact) {
	if e.Input.OnViolation != nil {
		e.Input.OnViolation(Violation{Check: check, Anomaly: anomaly, Transaction: id, Account: string(on), Fact: what})
	}
}

// Object names an object in a fact.
func (e *Evidence) Object(n uint64) fact.Object { return fact.Object(e.Input.Name(n)) }

// RequireEnd returns the result of a check that needs the end state, and whether it is undecided
// because there is no end state or an input is damaged.
func (e *Evidence) RequireEnd(name string) (r Result, undecided bool) {
	r = Result{Name: name, Required: true}
	switch {
	case e.Input.End == nil:
		r.Why = e.NoEnd()
	case e.Damage != nil:
		r.Why = Unreadable(e.Damage)
	}
	return r, r.Why != nil
}

// RequireEndAlone is RequireEnd for a check that the end state alone decides.
func (e *Evidence) RequireEndAlone(name string) (r Result, undecided bool) {
	r, undecided = e.RequireEnd(name)
	r.StateAlone = true
	return r, undecided
}

// Complete says that every history was closed, so that what is not in it was
// never sent.
func (e *Evidence) Complete() bool {
	list := e.Input.History
	return len(list) > 0 && !slices.ContainsFunc(list, func(s Source) bool { return !s.Complete() })
}

// Recorded says that all that the client of a transaction sent is in the histories given.
func (e *Evidence) Recorded(id history.ID) bool {
	for i, run := range e.Txns.Runs {
		source := e.Input.History[i]
		if part, ok := source.(interface{ Has(client uint64) bool }); run == id.Run() && source.Complete() && (!ok || part.Has(id.Client())) {
			return true
		}
	}
	return false
}

// CountClocks counts the clocks of the histories that have a place in the order.
func (e *Evidence) CountClocks() int {
	seen, clocks := make([]bool, len(e.Input.History)), map[string]bool{}
	for i := range e.Txns.List {
		if t := &e.Txns.List[i]; t.Source != FromLedger && t.Counts() && !seen[t.Source] {
			seen[t.Source] = true
			clocks[e.Clocks[t.Source].ID] = true
		}
	}
	return len(clocks)
}

// Each goes through the whole history again, in the order of the first time.
func (e *Evidence) Each(do func(t uint32, tx *history.Transaction)) (problem error) {
	for _, source := range e.Input.History {
		for rec := range Each(&e.Watch, "the history", source.Transactions(), &problem) {
			t, ok := e.Txns.Find(rec.ID)
			if !ok {
				return fmt.Errorf("the history changed while it was being checked")
			}
			do(t, rec.Transaction)
		}
		if problem != nil {
			return problem
		}
	}
	return nil
}

// IDOf returns the id of a transaction of the table; 0 of none.
func (e *Evidence) IDOf(t uint32) history.ID {
	if t == None {
		return 0
	}
	return e.Txns.List[t].ID
}

// NameToReport names an object where somebody asks for violations.
func (e *Evidence) NameToReport(n uint64) string {
	if e.Input.OnViolation == nil {
		return ""
	}
	return e.Input.Name(n)
}

// NameInSentence names what is written as it stands in a sentence.
func (e *Evidence) NameInSentence(n uint64) string { return e.Words.Before + e.Input.Name(n) }

// Capital is a word as a sentence begins with it.
func Capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// Between returns how long after the end of a transaction another began, in
// nanoseconds and at least that; 0 where they overlap or that is not known.
func (e *Evidence) Between(ended, began uint32) int64 {
	t, u := &e.Txns.List[ended], &e.Txns.List[began]
	switch {
	case t.Source == FromLedger || u.Source == FromLedger:
		return 0
	case t.Source == u.Source:
		return max(0, u.Try-t.End)
	case e.Clocks[t.Source].ID == e.Clocks[u.Source].ID:
		return max(0, u.Try+e.Clocks[u.Source].From-t.End-e.Clocks[t.Source].To)
	}
	return 0
}

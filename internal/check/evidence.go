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

// Input holds the data and options that every checker receives.
type Input struct {
	Expect  isolation.Level       // the claim that the verdict is about
	Name    func(n uint64) string // display name of object n
	History []Source              // of distinct runs; if empty, the checks that need a history are unknown
	End     EndState              // nil: the end state was not downloaded

	// Part reports whether the history is a part of a growing one. The checks then run on the caller's
	// goroutine, and the memory that grows with the data stays within a few megabytes.
	Part bool

	// Early lists the runs that may have continued after the end state was downloaded. The end state is used
	// only if the data proves that these runs had ended.
	Early []uint64

	Meter *Meter // nil: nothing is measured

	// OnViolation, if not nil, is called for every transaction that shows a violation, in no particular
	// order. Calls for a check whose result is not invalid must be ignored.
	OnViolation func(Violation)

	// Committed, if not nil, receives the number of committed transactions of the histories, without
	// background transactions.
	Committed *uint64

	// Resolved, if not nil, receives the outcomes that the end state shows for transactions without a known
	// outcome.
	Resolved *Resolved
}

// Resolved counts the transactions whose outcome no client learned. The zero value means that there are none,
// or that there is no end state.
type Resolved struct {
	Unknown, Applied uint64
	By               string // the evidence that decided the outcomes, such as ledger
}

// SetResolved stores r in *Resolved, if Resolved is not nil.
func (in *Input) SetResolved(r Resolved) {
	if in.Resolved != nil && r.Unknown > 0 {
		*in.Resolved = r
	}
}

// SetCommitted stores n in *Committed, if Committed is not nil.
func (in *Input) SetCommitted(n uint64) {
	if in.Committed != nil {
		*in.Committed = n
	}
}

// Words holds a workload's nouns: for a transaction that writes, for the place that stores its writes, and
// for one part of the transaction there. It also holds the prefix of object names and the format of values.
type Words struct {
	One, Book, Part, Before string
	Amount                  func(int64) string
	Kind                    func(history.Kind) string // nil: every kind is called One
	// Rules maps the name of a kind of transaction to the condition that it checks before it writes: "checked that …
	// covers …, then took from one of them". A kind without a condition is absent.
	Rules map[string]string
}

// Evidence is the input that several checkers share: the files of the runs, and the table of all transactions
// with their outcomes in the end state.
type Evidence struct {
	Input   Input
	Words   Words
	Txns    Transactions
	Damage  error  // set if the history or the end state could not be read completely
	Unended uint64 // a run that may have continued after the end state was downloaded; 0: none
	Watch   Watch
	Clocks  []Clock // one for each history; a history without a known clock has its number as the clock's ID
}

// AddSource registers the next history.
func (e *Evidence) AddSource(number int, source Source) {
	e.Txns.Runs = append(e.Txns.Runs, source.Header().Run)
	clock, ok := ClockOf(source.Header())
	if !ok {
		clock = Clock{ID: strconv.Itoa(number)}
	}
	e.Clocks = append(e.Clocks, clock)
}

// Settle makes results undecided if a problem in reading leaves no ground to call them valid.
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

// NoEnd returns the reason why there is no end state to check.
func (e *Evidence) NoEnd() fact.Fact { return fact.NoEnd{Run: e.Unended} }

// Unreadable returns the reason why an input cannot be used.
func Unreadable(err error) fact.Fact { return fact.Unreadable{Problem: err.Error()} }

// OtherRuns returns a fact about transactions in the end state whose recordings were not given. It returns
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

// Uncertain returns a fact that real time may contradict n things of a kind. It returns nil if n is 0.
func (e *Evidence) Uncertain(n int, noun string) fact.Fact {
	if n == 0 {
		return nil
	}
	return fact.Clocks{Count: fact.Count{N: n, Noun: noun}, Within: e.Uncertainty()}
}

// Show passes a violation to OnViolation. On is empty if the violation concerns no object.
func (e *Evidence) Show(check, anomaly string, id history.ID, on fact.Object, what fact.Fact) {
	if e.Input.OnViolation != nil {
		e.Input.OnViolation(Violation{Check: check, Anomaly: anomaly, Transaction: id, Account: string(on), Fact: what})
	}
}

// Object returns the name of object n for use in a fact.
func (e *Evidence) Object(n uint64) fact.Object { return fact.Object(e.Input.Name(n)) }

// RequireEnd returns the result of a check that needs the end state. The result is undecided if there is no
// end state or if an input is damaged.
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

// RequireEndAlone is like RequireEnd, for a check that needs only the end state.
func (e *Evidence) RequireEndAlone(name string) (r Result, undecided bool) {
	r, undecided = e.RequireEnd(name)
	r.StateAlone = true
	return r, undecided
}

// Complete reports whether every history was closed. A transaction that is absent from a closed history was
// never sent.
func (e *Evidence) Complete() bool {
	list := e.Input.History
	return len(list) > 0 && !slices.ContainsFunc(list, func(s Source) bool { return !s.Complete() })
}

// Recorded reports whether the histories hold everything that the transaction's client sent.
func (e *Evidence) Recorded(id history.ID) bool {
	for i, run := range e.Txns.Runs {
		source := e.Input.History[i]
		if part, ok := source.(interface{ Has(client uint64) bool }); run == id.Run() && source.Complete() && (!ok || part.Has(id.Client())) {
			return true
		}
	}
	return false
}

// CountClocks returns the number of clocks among the histories whose transactions are ordered.
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

// Each reads the whole history again, in the order of the first reading.
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

// IDOf returns the ID of a transaction of the table, and 0 for None.
func (e *Evidence) IDOf(t uint32) history.ID {
	if t == None {
		return 0
	}
	return e.Txns.List[t].ID
}

// NameToReport returns the name of an object if OnViolation is set, and an empty string otherwise.
func (e *Evidence) NameToReport(n uint64) string {
	if e.Input.OnViolation == nil {
		return ""
	}
	return e.Input.Name(n)
}

// NameInSentence returns the name of an object with the workload's prefix, for use in a sentence.
func (e *Evidence) NameInSentence(n uint64) string { return e.Words.Before + e.Input.Name(n) }

// Capital returns word with an upper-case first letter.
func Capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// Between returns the minimal time in nanoseconds from the end of one transaction to the beginning of
// another. It returns 0 if they overlap or if the order is not known.
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

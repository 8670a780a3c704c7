// Package fact declares the statements that checks make about a recording, as values.
// A statement has no text of its own: package check/text has the sentence of each.
package fact

import (
	"time"

	"stroppy/internal/history"
)

// Fact is one statement. Each kind of statement is a type, with a field for each of its arguments.
type Fact interface {
	// Fact returns the name of the kind, such as "lost-update". Files keep it, so it never changes.
	Fact() string
}

// Member is a transaction that takes part in what a fact states.
type Member struct {
	ID      history.ID `json:"id"`             // 0: the transaction is not recorded
	Name    string     `json:"name,omitempty"` // in the history of another tool, whose ids are not ours
	Kind    string     `json:"kind,omitempty"` // as the workload names it; empty: its general noun
	Refused bool       `json:"refused,omitempty"`
}

// Object is an object as people know it, such as the key of an account. The zero value is none.
type Object string

// Count is how many things of a kind there are.
type Count struct {
	N    int    `json:"count"`
	Noun string `json:"noun"` // in the singular
}

// The reasons for which a check is not decided or has nothing to check, whatever it checks.

// NoEnd states that there is no end state. Run, if it is not 0, may have gone on after the end
// state was downloaded.
type NoEnd struct {
	Run uint64 `json:"run,omitempty"`
}

// NoHistory states that no history was given of what clients did.
type NoHistory struct{}

// CutOff states that a recording was cut off: what its clients sent last is not known.
type CutOff struct{}

// Unreadable states that an input of the check could not be read or failed its verification.
type Unreadable struct {
	Problem string `json:"problem"` // the error, which names the file
}

// OtherRuns states that the end state has transactions of runs whose recordings were not given.
type OtherRuns struct {
	Runs  []uint64 `json:"runs"` // the first few
	More  int      `json:"more,omitempty"`
	Count int      `json:"count"` // transactions
}

// Clocks states that nothing contradicts real time for certain, because the clocks of several
// clients are known only to within a bound.
type Clocks struct {
	Count
	Within time.Duration `json:"within_ns"`
}

// ClocksApart states that clients have clocks that were not compared with each other.
type ClocksApart struct {
	Clocks int `json:"clocks"`
}

// Nothing states that there was nothing to check: no thing of the kind was there.
type Nothing struct {
	Noun string `json:"noun"` // in the singular
	Verb string `json:"verb"` // what did not happen to it, such as "acknowledged"
}

func (NoEnd) Fact() string       { return "no-end-state" }
func (NoHistory) Fact() string   { return "no-history" }
func (CutOff) Fact() string      { return "cut-off" }
func (Unreadable) Fact() string  { return "unreadable" }
func (OtherRuns) Fact() string   { return "other-runs" }
func (Clocks) Fact() string      { return "clocks-uncertain" }
func (ClocksApart) Fact() string { return "clocks-apart" }
func (Nothing) Fact() string     { return "nothing-to-check" }

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

// Object is the display name of an object, such as the key of an account. The zero value means no object.
type Object string

// Count is a number of things of one kind.
type Count struct {
	N    int    `json:"count"`
	Noun string `json:"noun"` // in the singular
}

// These facts explain why a check is undecided or has nothing to check. Any check can use them.

// NoEnd states that there is no end state. Run, if not 0, may have continued after the end state was
// downloaded.
type NoEnd struct {
	Run uint64 `json:"run,omitempty"`
}

// NoHistory states that no history of the clients was given.
type NoHistory struct{}

// CutOff states that a recording was cut off, so the last requests of its clients are not known.
type CutOff struct{}

// Part states that a long history was examined in part and that the part shows no violation.
type Part struct {
	Accounts     int `json:"accounts"`     // whose versions were examined
	Transactions int `json:"transactions"` // that were examined
	Of           int `json:"of"`           // transactions
}

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

// Clocks states that real time certainly contradicts nothing: the clocks of several clients are known only
// within a bound.
type Clocks struct {
	Count
	Within time.Duration `json:"within_ns"`
}

// ClocksApart states that clients have clocks that were not compared with each other.
type ClocksApart struct {
	Clocks int `json:"clocks"`
}

// Nothing states that there was nothing to check, because no thing of the kind exists.
type Nothing struct {
	Noun string `json:"noun"` // in the singular
	Verb string `json:"verb"` // what would have happened to it, such as "acknowledged"
}

func (NoEnd) Fact() string       { return "no-end-state" }
func (NoHistory) Fact() string   { return "no-history" }
func (CutOff) Fact() string      { return "cut-off" }
func (Part) Fact() string        { return "part" }
func (Unreadable) Fact() string  { return "unreadable" }
func (OtherRuns) Fact() string   { return "other-runs" }
func (Clocks) Fact() string      { return "clocks-uncertain" }
func (ClocksApart) Fact() string { return "clocks-apart" }
func (Nothing) Fact() string     { return "nothing-to-check" }

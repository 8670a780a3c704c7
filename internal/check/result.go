// Package check decides, from the recorded history and the end state alone,
// whether a run kept what the workload and the claimed isolation promise. Its
// functions are pure: they read no clock, no network and no database.
package check

import (
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// Status is the answer of one check. The zero value is Unknown.
type Status uint8

const (
	Unknown Status = iota // it could not be decided
	Valid
	Invalid
	NotApplicable // there was nothing to check: it says neither that something holds nor that it does not
)

var statusNames = [...]string{"unknown", "valid", "invalid", "not applicable"}

func (s Status) String() string { return statusNames[s] }

// MarshalText carries a status through JSON by name.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// The names of the checks, in the order in which they are reported.
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
	Limit        = "limit"
)

// Result is what one check found.
type Result struct {
	Name   string // as DESIGN names it: total, ledger, serializable …
	Status Status
	// Required says that the verdict counts it. A check of a level stronger than
	// the claim is made and shown for information, whether it holds or not; it is required
	// only where it found what the claim forbids, or may have.
	Required bool
	// StateAlone says that the end state alone decides it, without any history.
	StateAlone bool
	Findings   []Finding     // what makes it invalid, the gravest first
	Why        fact.Fact     // of a valid result what was checked, of others the reason; nil: see Findings
	Witness    []history.ID  // the transactions that show it
	Where      []history.Ref // where in the recorded history the witnesses stand
}

// Checked is what the checks of recorded runs came to.
type Checked struct {
	Results   []Result
	Committed uint64 // transactions that were committed, those of the background left out
	Resolved  Resolved
	Tables    []Table // of one run, where its transactions were measured as they were read; else nil
}

// Table is what a workload adds to the report: measurements of its own, as people read
// them. They are a function of what was recorded.
type Table struct {
	Title   string     `json:"title"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
	Notes   []string   `json:"notes,omitempty"` // what a measurement is divided by, above all
}

// Violation is one transaction that shows a violation. Of some there is no
// transaction, but an account alone.
type Violation struct {
	Check       string
	Anomaly     string     // of serializable and strict
	Transaction history.ID // 0: none
	Account     string     // as people know it; empty: none
	Fact        fact.Fact  // what it shows
	Pieces      []Piece    // of a value that nobody wrote and whose bytes were kept
}

// BrokenValue is a value that a transaction read and that nobody wrote like this.
type BrokenValue struct {
	Transaction history.ID
	Object      string  // as people know it
	Bytes       int     // its length
	Pieces      []Piece // in their order; together they are the whole value
}

// Piece is some bytes of a value and who wrote them there.
type Piece = fact.Piece

// Verdict is the worst of the results that are Required: invalid before unknown
// before valid. What is not applicable does not count. Where nothing counts, the
// verdict is unknown.
func Verdict(results []Result) Status {
	required, unknown := 0, 0
	for _, r := range results {
		if !r.Required || r.Status == NotApplicable {
			continue
		}
		required++
		switch r.Status {
		case Invalid:
			return Invalid
		case Unknown:
			unknown++
		}
	}
	if required == 0 || unknown > 0 {
		return Unknown
	}
	return Valid
}

// Package check decides whether a run kept the promises of the workload and of the claimed isolation level.
// Its functions are pure: they use only the recorded history and the end state, and no clock, network or
// database.
package check

import (
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// Status is the outcome of one check. The zero value is Unknown.
type Status uint8

const (
	Unknown Status = iota // the check could not be decided
	Valid
	Invalid
	NotApplicable // there was nothing to check, so the check proves nothing
)

var statusNames = [...]string{"unknown", "valid", "invalid", "not applicable"}

func (s Status) String() string { return statusNames[s] }

// MarshalText returns the name of the status.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// These constants name the checks, in the order of the reports.
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
	Invariants   = "invariants"
)

// Result is the outcome of one check with its reasons.
type Result struct {
	Name   string // the name in the documentation: total, ledger, serializable …
	Status Status
	// Required reports whether the verdict counts the check. A check of a level stronger than the claim is
	// informational. It becomes required only if it found, or may have found, a violation that the claim
	// forbids.
	Required bool
	// StateAlone reports whether the end state decides the check without any history.
	StateAlone bool
	Findings   []Finding     // the violations, the gravest first
	Why        fact.Fact     // what was checked if the result is valid, otherwise the reason; nil: see Findings
	Witness    []history.ID  // the transactions that show the violation
	Where      []history.Ref // the positions of the witnesses in the recorded history
}

// Checked holds the results of checking recorded runs.
type Checked struct {
	Results   []Result
	Committed uint64 // committed transactions, without background transactions
	Resolved  Resolved
	Tables    []Table // of one run, if its transactions were measured while they were read; otherwise nil
}

// Table is a measurement that a workload adds to the report. Its content depends only on the recording.
type Table struct {
	Title   string     `json:"title"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
	Notes   []string   `json:"notes,omitempty"` // explanations, such as the unit or the divisor of a measurement
}

// Violation is one transaction that shows a violation. Some violations have only an account and no
// transaction.
type Violation struct {
	Check       string
	Anomaly     string     // for the checks serializable and strict
	Transaction history.ID // 0: none
	Account     string     // display name; empty: none
	Fact        fact.Fact  // the violation
	Pieces      []Piece    // the pieces of a value that no transaction wrote, if its bytes were kept
}

// BrokenValue is a value that a transaction read and that no transaction wrote in this form.
type BrokenValue struct {
	Transaction history.ID
	Object      string  // display name
	Bytes       int     // the length of the value
	Pieces      []Piece // the whole value, in order
}

// Piece is a range of bytes of a value and the transaction that wrote these bytes.
type Piece = fact.Piece

// Verdict returns the worst status of the required results: invalid, then unknown, then valid. Results that
// are not applicable are ignored. If no result counts, the verdict is Unknown.
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

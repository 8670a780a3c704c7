// Package check decides, from the recorded history and the end state alone,
// whether a run kept what the workload and the claimed isolation promise. Its
// functions are pure: they read no clock, no network and no database.
package check

import (
	"fmt"
	"strings"

	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
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
	Detail     string        // the sentences of a checker that has no findings as values yet
	Witness    []history.ID  // the transactions that show it
	Anomalies  []Anomaly     // all distinct kinds found, the strongest evidence first; of serializable and strict
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

// Anomaly is one way in which the order of transactions went wrong.
type Anomaly struct {
	Name      string          // Adya's or the field's term: lost update, read skew, write skew, long fork …
	Forbidden isolation.Level // the weakest level that forbids it
	Count     int             // how often it was found, as far as the search went
	Detail    string          // one instance in words
	Witness   []history.ID
	Cycle     []Edge // of the instance: the last edge leads back to the first; nil where it is no cycle
	Spans     []Span // of the instance: who takes part, in the order of their beginnings
}

// Violation is one transaction that shows a violation. Of some there is no
// transaction, but an account alone.
type Violation struct {
	Check       string
	Anomaly     string     // of serializable and strict
	Transaction history.ID // 0: none
	Account     string     // as people know it; empty: none
	Fact        fact.Fact  // what it shows; nil: see What
	What        string     // in words
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

// Findings are the violations of one kind: how often it was found, and the first few.
type Findings struct {
	Check       string          // the check that they make invalid
	Anomaly     string          // what the field calls them; empty: nothing
	Forbidden   isolation.Level // the weakest level that forbids the anomaly
	Noun, Title string          // what each is, and all together with the counted noun in it; empty: Texts are sentences

	Count int
	Texts []string
	IDs   []history.ID
}

// Full says that no more texts are kept.
func (f *Findings) Full() bool { return len(f.Texts) == Shown }

// Add counts one violation, and keeps it while they are few: its words and the
// transactions that show it.
func (f *Findings) Add(what string, ids ...history.ID) {
	if f.Count++; !f.Full() {
		f.Texts = append(f.Texts, what)
		f.IDs = append(f.IDs, ids...)
	}
}

// String is what was found, in one sentence: how many there are, and the first.
func (f *Findings) String() string {
	text := f.Texts[0] + "."
	switch {
	case f.Title != "" && f.Count > 1:
		return fmt.Sprintf(f.Title, Plural(f.Count, f.Noun)) + ", first: " + text
	case f.Title != "":
		return fmt.Sprintf(f.Title, Plural(f.Count, f.Noun)) + ": " + text
	case f.Count > 1:
		text = fmt.Sprintf("%s times, first: %s", Group(f.Count), text)
	}
	if f.Anomaly != "" {
		text = f.Anomaly + ": " + text
	}
	return Capital(text)
}

// Decide returns r as decided by what was found of its check: invalid, and else not
// decided for the reason why, and without one valid with those words.
func (r Result) Decide(found []Findings, why, valid string) Result {
	var lines []string
	for i := range found {
		f := &found[i]
		if f.Check != r.Name || f.Count == 0 {
			continue
		}
		lines = append(lines, f.String())
		r.Witness = append(r.Witness, f.IDs...)
		if f.Anomaly != "" {
			r.Anomalies = append(r.Anomalies, Anomaly{Name: f.Anomaly, Forbidden: f.Forbidden, Count: f.Count, Detail: f.String(), Witness: Distinct(f.IDs)})
		}
	}
	switch {
	case len(lines) > 0:
		r.Status, r.Detail = Invalid, strings.Join(lines, "\n")
	case why != "":
		r.Detail = "Not decided: " + why + "."
	default:
		r.Status, r.Detail = Valid, valid
	}
	return r
}

// Nothing returns r as not applicable for the reason why, which is a sentence, where it
// is valid only because there was nothing to check; an empty reason changes nothing.
func (r Result) Nothing(why string) Result {
	if why != "" && r.Status == Valid {
		r.Status, r.Detail = NotApplicable, why
	}
	return r
}

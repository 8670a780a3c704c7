package check

import (
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// Finding is what a check found of one kind of violation. It holds values alone: package
// check/text makes its sentence.
type Finding struct {
	Check     string          // the check that it makes invalid
	Anomaly   string          // the field's term, such as "lost update (P4)"; empty: none
	Forbidden isolation.Level // the weakest level of the literature that forbids the anomaly; Unknown: none
	Count     int             // how many violations of this kind there are
	AtLeast   bool            // the search ended at Count
	// Amount is by how much the sum of the objects is wrong, in the units of the workload; a net
	// sum of all violations of this kind. 0: nothing, or not known.
	Amount int64

	// First and Last are when the first and the last violation happened that are known in time, in
	// nanoseconds since the run's start: the ends of the transactions that show them. 0: not known.
	First, Last int64

	// OfLost is in how many of them a transaction takes part that was acknowledged and is lost, and
	// OfLostUpdate in how many an object or a transaction does of which an update was lost.
	OfLost, OfLostUpdate int

	Instances    []fact.Fact  // the first violations, at most Shown
	Transactions []history.ID // that show them, the first of them first
	Objects      []fact.Object
	Cycle        []Edge // of the first instance: the last edge leads back to the first; nil: no cycle
	Spans        []Span // who takes part in the first instance, in the order of their beginnings
	// Broken are the values that instances are about and that nobody wrote, if their bytes were kept.
	Broken []BrokenValue
}

// Kind returns the name of the first instance's fact.
func (f *Finding) Kind() string {
	if len(f.Instances) == 0 {
		return ""
	}
	return f.Instances[0].Fact()
}

// Full reports whether no more instances are kept.
func (f *Finding) Full() bool { return len(f.Instances) == Shown }

// Add counts one violation, and keeps it, its object and the transactions that show it while
// they are few. An object that is empty is none.
func (f *Finding) Add(what fact.Fact, on fact.Object, by ...history.ID) {
	if f.Count++; f.Full() {
		return
	}
	f.Instances = append(f.Instances, what)
	f.Transactions = append(f.Transactions, by...)
	if on != "" {
		f.Objects = append(f.Objects, on)
	}
}

// At notes that a violation happened at a time, in nanoseconds since the run's start.
func (f *Finding) At(end int64) {
	if end <= 0 {
		return
	}
	if f.First == 0 || end < f.First {
		f.First = end
	}
	f.Last = max(f.Last, end)
}

// Judge returns r as the findings of its check decide it. Without a finding it is unknown for
// the reason undecided, and if that is nil, it is valid because of holds.
func (r Result) Judge(findings []Finding, undecided, holds fact.Fact) Result {
	for i := range findings {
		if f := &findings[i]; f.Check == r.Name && f.Count > 0 {
			r.Findings = append(r.Findings, *f)
			r.Witness = append(r.Witness, f.Transactions...)
		}
	}
	r.Witness = Distinct(r.Witness)
	switch {
	case len(r.Findings) > 0:
		r.Status = Invalid
	case undecided != nil:
		r.Status, r.Why = Unknown, undecided
	default:
		r.Status, r.Why = Valid, holds
	}
	return r
}

// Without returns r as not applicable for the reason why, if it is valid only because there was
// nothing to check. A nil reason changes nothing.
func (r Result) Without(why fact.Fact) Result {
	if why != nil && r.Status == Valid {
		r.Status, r.Why = NotApplicable, why
	}
	return r
}

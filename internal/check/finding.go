package check

import (
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// Finding describes all violations of one kind that a check found. It holds values only; package check/text
// writes the sentences.
type Finding struct {
	Check     string          // the check that the finding makes invalid
	Anomaly   string          // the field's term, such as "lost update (P4)"; empty: none
	Forbidden isolation.Level // the weakest level that forbids the anomaly; Unknown: none
	Count     int             // number of violations of this kind
	AtLeast   bool            // the search stopped at Count
	// Amount is the net error of the sum of the objects over all violations of this kind, in the units of the
	// workload. 0 means no error, or an unknown one.
	Amount int64

	// First and Last are the times of the first and the last violation whose times are known, in nanoseconds
	// since the run's start. Each is the end of the transaction that shows the violation. 0 is unknown.
	First, Last int64

	// OfLost counts the violations that involve an acknowledged transaction that was lost. OfLostUpdate
	// counts the violations that involve an object or a transaction with a lost update.
	OfLost, OfLostUpdate int

	Instances    []fact.Fact  // the first violations, at most Shown
	Transactions []history.ID // the transactions of Instances, in the order of the instances
	Objects      []fact.Object
	Cycle        []Edge // of the first instance: the last edge leads back to the first transaction; nil: no cycle
	Spans        []Span // the transactions of the first instance, in the order of their beginnings
	// Broken holds the values in the instances that no transaction wrote, if their bytes were kept.
	Broken []BrokenValue
}

// Kind returns the name of the first instance's fact.
func (f *Finding) Kind() string {
	if len(f.Instances) == 0 {
		return ""
	}
	return f.Instances[0].Fact()
}

// Full reports whether Instances has reached its limit.
func (f *Finding) Full() bool { return len(f.Instances) == Shown }

// Add counts one violation. While there is room, it also keeps the violation, its object and its
// transactions. An empty object means none.
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

// At records the time of a violation, in nanoseconds since the run's start.
func (f *Finding) At(end int64) {
	if end <= 0 {
		return
	}
	if f.First == 0 || end < f.First {
		f.First = end
	}
	f.Last = max(f.Last, end)
}

// Judge returns r with the status that follows from the findings of its check. Without findings, the result
// is unknown if undecided is not nil; otherwise it is valid with the reason holds.
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

// Without returns r as not applicable for the reason why, if r is valid only because there was nothing to
// check. A nil reason changes nothing.
func (r Result) Without(why fact.Fact) Result {
	if why != nil && r.Status == Valid {
		r.Status, r.Why = NotApplicable, why
	}
	return r
}

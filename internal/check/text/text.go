// Package text writes the sentences about the findings of checks. All other packages use the fields of
// check.Result, check.Finding and the facts.
package text

import (
	"cmp"
	"fmt"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// Speaker writes sentences with the nouns of one workload. Sentences begin with a capital letter and end with
// a full stop; clauses do neither.
type Speaker struct{ Words check.Words }

// Detail returns the text of a result, one line for each finding.
func (s Speaker) Detail(r *check.Result) string {
	var lines []string
	for i := range r.Findings {
		lines = append(lines, s.Finding(&r.Findings[i]))
	}
	if r.Why != nil {
		lines = append(lines, s.Why(r))
	}
	return strings.Join(lines, "\n")
}

// Why returns the reason of a result that is not invalid: what it was checked against, or why it is
// undecided.
func (s Speaker) Why(r *check.Result) string {
	clause := s.Clause(r.Why)
	if r.Status == check.Unknown {
		return "Not decided: " + clause + "."
	}
	return check.Capital(clause) + "."
}

// Finding returns the text of a finding: its name, its count, and the first instance.
func (s Speaker) Finding(f *check.Finding) string {
	first := s.Clause(f.Instances[0])
	count := check.Group(f.Count)
	if f.AtLeast {
		count = "at least " + count
	}
	title, listed := s.title(f)
	switch {
	case listed:
		return title + ": " + joined(check.Texts(f.Transactions), f.Count) + "."
	case title != "" && f.Count > 1:
		return title + ", first: " + first + "."
	case title != "":
		return title + ": " + first + "."
	case f.Count > 1:
		first = count + " times, first: " + first
	}
	if f.Amount != 0 && f.Anomaly != "" {
		first = s.net(f.Amount) + "; " + first
	}
	if f.Anomaly != "" {
		first = f.Anomaly + ": " + first
	}
	return check.Capital(first) + "."
}

// title returns the heading of a finding, with the count, if findings of this kind have one. If listed is
// true, the IDs of the transactions follow the heading, and no instance does.
func (s Speaker) title(f *check.Finding) (title string, listed bool) {
	if title := s.say(listings(), f.Instances[0], f.Count); title != "" {
		return title, true
	}
	return s.say(headings(), f.Instances[0], f.Count), false
}

// Clause returns a fact as a part of a sentence.
func (s Speaker) Clause(f fact.Fact) string {
	for _, clause := range []func(fact.Fact) string{s.common, s.totals, s.order, s.run, s.registers, s.logs, s.replicas, s.lists, s.sessions, s.invariants, s.rows} {
		if text := clause(f); text != "" {
			return text
		}
	}
	if text := s.say(clauses(), f, 0); text != "" {
		return text
	}
	panic(fmt.Sprintf("check/text has no sentence for %T", f))
}

var commonClauses = []wording{
	{fact.NoEnd{}, "run {Run!} may have gone on after the end state was downloaded; give --db to download it now"},
	{fact.NoEnd{}, "the end state was not downloaded; give --db"},
	{fact.NoHistory{}, "there is no history of what the clients did; give the run's directory"},
	{fact.CutOff{}, "the recording was cut off, so what was sent last is not known"},
	{fact.Part{}, "{Of one} are too many to examine each of them; the {Transactions ,} that touch {Accounts account} " +
		"show no violation"},
	{fact.Unreadable{}, "{Problem}"},
	{fact.Clocks{}, "nothing surely contradicts real time, but the clients' clocks are known only to within {Within} " +
		"of each other, which is too coarse for {N Noun}"},
	{fact.ClocksApart{},
		"within each clock the order agrees with real time, but the {Clocks} clocks of the clients were not compared"},
	{fact.Nothing{}, "no {Noun} was {Verb}"},
}

// common returns the clause of a fact of any check that needs more than a wording; empty for others.
func (s Speaker) common(f fact.Fact) string {
	switch f := f.(type) {
	case fact.OtherRuns:
		return s.fill("the {book} has {Count one} of ", f) + otherRuns(f.Runs, f.More)
	case fact.RegisterOtherRuns:
		return "values were read of " + otherRuns(f.Runs, f.More)
	}
	return ""
}

// otherRuns names runs without a recording, of which more are not listed.
func otherRuns(runs []uint64, more int) string {
	if len(runs) == 1 && more == 0 {
		return fmt.Sprintf("run %d, whose recording was not given: give its directory too", runs[0])
	}
	return fmt.Sprintf("the runs %s, whose recordings were not given: give their directories too",
		joined(check.Texts(runs), len(runs)+more))
}

// id formats a transaction with the workload's general noun.
func (s Speaker) id(id history.ID) string { return s.Member(fact.Member{ID: id}) }

// one returns the noun for a transaction.
func (s Speaker) one() string { return cmp.Or(s.Words.One, "transaction") }

// book returns the noun for the place where transactions are stored. A workload without one has only its end
// state.
func (s Speaker) book() string { return cmp.Or(s.Words.Book, "end state") }

// part returns the noun for a part of a transaction in the book.
func (s Speaker) part() string { return cmp.Or(s.Words.Part, "part") }

// Member returns the kind and the ID of a transaction.
func (s Speaker) Member(m fact.Member) string {
	kind := m.Kind
	if kind == "" {
		kind = s.one()
	}
	switch {
	case m.Name != "":
		return m.Name
	case m.ID == 0:
		return "a " + kind + " that is not recorded"
	case m.Refused:
		kind = "refused " + kind
	}
	return fmt.Sprintf("%s %v", kind, m.ID)
}

// On formats an object within a sentence.
func (s Speaker) On(o fact.Object) string { return s.Words.Before + string(o) }

// net formats the error of a sum.
func (s Speaker) net(n int64) string {
	if n < 0 {
		return s.Amount(-n) + " net lost"
	}
	return s.Amount(n) + " net appeared from nowhere"
}

// Instance returns the first instance of a finding as a clause.
func (s Speaker) Instance(f *check.Finding) string { return s.Clause(f.Instances[0]) }

// Amount formats an amount in the units of the workload.
func (s Speaker) Amount(n int64) string {
	if s.Words.Amount == nil {
		return check.Group(int(n))
	}
	return s.Words.Amount(n)
}

// joined formats list with commas; all is the total number of items.
func joined(list []string, all int) string {
	text := strings.Join(list, ", ")
	if more := all - len(list); more > 0 {
		text += fmt.Sprintf(" and %s more", check.Group(more))
	}
	return text
}

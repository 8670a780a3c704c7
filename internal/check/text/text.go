// Package text writes the sentences about the findings of checks. All other packages use the fields of
// check.Result, check.Finding and the facts.
package text

import (
	"cmp"
	"fmt"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
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
	for _, of := range []func(*check.Finding) (string, bool){s.titleOfTotals, s.titleOfRegisters, s.titleOfLogs, s.titleOfLists} {
		if title, listed := of(f); title != "" {
			return title, listed
		}
	}
	return "", false
}

// Clause returns a fact as a part of a sentence.
func (s Speaker) Clause(f fact.Fact) string {
	for _, clause := range []func(fact.Fact) string{s.common, s.books, s.presence, s.groups, s.order, s.run, s.registers, s.logs, s.replicas, s.lists, s.sessions} {
		if text := clause(f); text != "" {
			return text
		}
	}
	panic(fmt.Sprintf("check/text has no sentence for %T", f))
}

// common returns the clause of a fact that any check may state; empty for others.
func (s Speaker) common(f fact.Fact) string {
	switch f := f.(type) {
	case fact.NoEnd:
		if f.Run != 0 {
			return fmt.Sprintf("run %d may have gone on after the end state was downloaded; give --db to download it now", f.Run)
		}
		return "the end state was not downloaded; give --db"
	case fact.NoHistory:
		return "there is no history of what the clients did; give the run's directory"
	case fact.CutOff:
		return "the recording was cut off, so what was sent last is not known"
	case fact.Part:
		return fmt.Sprintf("%s are too many to examine each of them; the %s that touch %s show no violation",
			check.Plural(f.Of, s.one()), check.Group(f.Transactions), check.Plural(f.Accounts, "account"))
	case fact.Unreadable:
		return f.Problem
	case fact.OtherRuns:
		return s.otherRuns(f)
	case fact.Clocks:
		return fmt.Sprintf("nothing surely contradicts real time, but the clients' clocks are known only to within %s of each other, which is too coarse for %s",
			check.Lasted(f.Within), check.Plural(f.N, f.Noun))
	case fact.ClocksApart:
		return fmt.Sprintf("within each clock the order agrees with real time, but the %d clocks of the clients were not compared", f.Clocks)
	case fact.Nothing:
		return "no " + f.Noun + " was " + f.Verb
	}
	return ""
}

func (s Speaker) otherRuns(f fact.OtherRuns) string {
	has := fmt.Sprintf("the %s has %s of", s.book(), check.Plural(f.Count, s.one()))
	if len(f.Runs) == 1 && f.More == 0 {
		return fmt.Sprintf("%s run %d, whose recording was not given: give its directory too", has, f.Runs[0])
	}
	runs := joined(check.Texts(f.Runs), len(f.Runs)+f.More)
	return has + " the runs " + runs + ", whose recordings were not given: give their directories too"
}

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

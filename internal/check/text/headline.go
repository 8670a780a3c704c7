package text

import (
	"fmt"
	"strings"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/cause"
	"stroppy/internal/check/fact"
	"stroppy/internal/isolation"
)

// Headline holds the data of a report's first line: the cause of a violation, its size, its time, and the
// fault in progress. Times are relative to the run's start.
type Headline struct {
	Found    *cause.Found
	From, To time.Duration // from the first violation to the last; both 0: not known
	Seen     time.Duration // the first violation of another finding; 0: not known, or From and To are known
	Fault    *Fault        // in progress at that time; nil: none
	Nodes    []Node        // the nodes that acknowledged the lost writes, the first one first
	Leaders  []Leader      // nodes that became leader at that time or shortly after
}

// Fault is a fault of the script.
type Fault struct {
	Text     string // as written in the script
	Target   string // the affected nodes
	From, To time.Duration
}

// Node counts what one node acknowledged and then lost.
type Node struct {
	Name     string
	From, To time.Duration
	Lost     uint64
}

// Leader is a node that became leader.
type Leader struct {
	Name string
	At   time.Duration
}

// Headline returns the cause of a verdict in one sentence.
func (s Speaker) Headline(h Headline) string {
	text := check.Capital(s.what(h.Found))
	var after []string
	switch {
	case len(h.Nodes) > 0:
		for _, n := range h.Nodes {
			after = append(after, fmt.Sprintf("%s acknowledged %s of them between %s and %s", n.Name, check.Group(n.Lost), at(n.From), at(n.To)))
		}
		if len(h.Nodes) == 1 && h.Nodes[0].Lost == uint64(h.Found.Count) {
			after = []string{fmt.Sprintf("%s acknowledged them between %s and %s", h.Nodes[0].Name, at(h.Nodes[0].From), at(h.Nodes[0].To))}
		}
	case h.To > 0 && h.To-h.From < 100*time.Millisecond:
		after = append(after, "at "+at(h.From))
	case h.To > 0:
		after = append(after, fmt.Sprintf("between %s and %s", at(h.From), at(h.To)))
	case h.Seen > 0:
		text += "; the run's first violation with a known time was seen at " + at(h.Seen)
	}
	if h.Fault != nil {
		during := fmt.Sprintf("during the fault `%s`", h.Fault.Text)
		if h.Fault.Target != "" && !strings.Contains(h.Fault.Text, h.Fault.Target) {
			during += fmt.Sprintf(" (on %s)", h.Fault.Target)
		}
		during += fmt.Sprintf(" from %s to %s", at(h.Fault.From), at(h.Fault.To))
		if len(after) > 0 {
			after[len(after)-1] += ", " + during
		} else {
			after = append(after, during)
		}
	}
	for _, l := range h.Leaders {
		after = append(after, fmt.Sprintf("%s became the leader at %s", l.Name, at(l.At)))
	}
	switch {
	case len(after) == 0:
		return text + "."
	case len(h.Nodes) > 0:
		return text + ": " + strings.Join(after, "; ") + "."
	}
	return text + " " + strings.Join(after, "; ") + "."
}

// at formats a time since the run's start.
func at(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// what returns the cause and its size, as a clause.
func (s Speaker) what(f *cause.Found) string {
	count := check.Group(f.Count)
	if f.AtLeast {
		count = "at least " + count
	}
	counted := func(noun string) string {
		return strings.Replace(check.Plural(f.Count, noun), check.Group(f.Count), count, 1)
	}
	switch f.Kind {
	case cause.LostWrites:
		if _, ok := f.Instances[0].(fact.Lost); ok {
			return counted("acknowledged "+s.one()) + " lost"
		}
	case cause.LostUpdates:
		text := counted("lost update")
		if f.Amount != 0 {
			text += " (" + s.net(f.Amount) + ")"
		}
		return text
	case cause.BrokenOrder:
		if f.Anomaly != "" {
			noun, rest := anomalyWords(f.Anomaly)
			return counted(noun) + rest
		}
	}
	if title, _ := s.title(f.Finding); title != "" {
		return title
	}
	text := s.Instance(f.Finding)
	if f.Count > 1 {
		text += fmt.Sprintf(" (the first of %s)", count)
	}
	return text
}

// Consequence returns one line about a finding that is not the cause.
func (s Speaker) Consequence(f *cause.Found) string {
	text := f.Check + ": " + s.what(f)
	if f.Of != nil {
		return text + ", explained by the above"
	}
	return text
}

// anomalyWords splits the name of an anomaly behind its noun, which takes the plural: "dirty read (G1a)" becomes
// "dirty read" and " (G1a)". A name without such a noun is reworded.
func anomalyWords(name string) (noun, rest string) {
	for clause, phrase := range map[string][2]string{
		"observed transaction vanishes": {"transaction", " whose effects were seen and then not"},
		"appends out of order":          {"pair", " of appends out of order"},
		"no order of the writes":        {"object", " without an order of the writes"},
		"cycle that is":                 {"cycle", ","},
	} {
		if after, ok := strings.CutPrefix(name, clause); ok {
			return phrase[0], phrase[1] + after
		}
	}
	at := len(name)
	for _, mark := range []string{" (", " of ", " in "} {
		if i := strings.Index(name, mark); i >= 0 {
			at = min(at, i)
		}
	}
	return name[:at], name[at:]
}

// Culprit returns a sentence that states whose fault a violation is, with the evidence.
func (s Speaker) Culprit(p cause.Promise, j cause.Judgement) string {
	name := p.Database
	if name == "" {
		name = "the database"
	}
	at := name
	if p.Isolation != "" {
		at += " at " + strings.ToUpper(p.Isolation)
	}
	switch j.Culprit {
	case cause.Database:
		if j.Durable {
			return fmt.Sprintf("The database broke its promise: %s promises to keep what it acknowledged%s.", name, source(j.Source))
		}
		return fmt.Sprintf("The database broke its promise: %s claims %s%s, which forbids this.", at, j.Claim, source(j.Source))
	case cause.Configuration:
		if j.Asked {
			return fmt.Sprintf("This configuration does not promise it: %s claims %s, and --expect %s was asked for.", at, j.Claim, p.Expect)
		}
		var list []string
		for _, c := range j.Caveats {
			list = append(list, fmt.Sprintf("%s: \"%s\"%s", c.Setting, strings.TrimSuffix(c.Quote, "."), source(c.Source)))
		}
		return "This configuration does not promise it: " + strings.Join(list, "; ") + "."
	case cause.Application:
		style := ""
		if j.Update != "" {
			style = " (--update " + j.Update + ")"
		}
		return fmt.Sprintf("The application's way of writing is not safe at this level: %s claims %s, which allows this. A transaction that reads, computes and writes the result%s needs locks or a stronger level.",
			at, j.Claim, style)
	}
	if j.Scripts {
		return "Not decided between the scripts, the database, its configuration and other programs that write to it."
	}
	return "Not decided between the database, its configuration and other programs that write to it: no transaction of the run and no known promise explains it."
}

// source formats a source in parentheses. It returns an empty string for an empty name.
func source(name string) string {
	if name == "" {
		return ""
	}
	return " (" + name + ")"
}

// Cure returns a sentence with the recommended action.
func (s Speaker) Cure(j cause.Judgement) string {
	var list []string
	switch j.Culprit {
	case cause.Database:
		return "Report it to the makers of the database with this run's directory; the command in the report repeats the run."
	case cause.Configuration:
		for _, c := range j.Caveats {
			if c.Cure != "" {
				list = append(list, c.Cure)
			}
		}
		switch {
		case j.Asked && len(j.Isolations) > 0:
			return "Use " + listed(isolations(j), "or") + "."
		case len(list) > 0:
			return "Set " + listed(list, "and") + "."
		}
		return "Choose a database or an isolation that promises it, or expect less."
	case cause.Application:
		if j.Safe != "" {
			list = append(list, "--update "+j.Safe)
		}
		list = append(list, isolations(j)...)
		if len(list) == 0 {
			return "Lock what the transaction reads, or let the database compute the new value."
		}
		return "Use " + listed(list, "or") + "."
	}
	if j.Scripts && len(j.Isolations) > 0 {
		return "Repeat the run with " + listed(isolations(j), "or") +
			". If the invariant then holds, the scripts are not safe at the weaker level. " +
			"Otherwise find out who else writes to the database."
	}
	if j.Scripts {
		return "Read the scripts for a transaction that breaks the invariant by itself, " +
			"and find out who else writes to the database."
	}
	return "Look at the transactions of the report with `stroppy history`, and find out who else writes to the database."
}

// isolations returns the isolations that forbid the violation, with their requirements.
func isolations(j cause.Judgement) (list []string) {
	for _, name := range j.Isolations {
		list = append(list, "--isolation '"+name+"' with retries")
	}
	return list
}

// Reason returns the reason of a verdict that is not invalid. It names the required checks that could not be
// decided.
func (s Speaker) Reason(results []check.Result, verdict check.Status, committed uint64, expect isolation.Level) string {
	var names []string
	var first *check.Result
	several := false
	for i := range results {
		r := &results[i]
		if !r.Required || r.Status != verdict {
			continue
		}
		names = append(names, r.Name)
		if first == nil {
			first = r
		} else if s.Detail(r) != s.Detail(first) {
			several = true
		}
	}
	if len(names) == 0 {
		return "No check was made."
	}
	if verdict == check.Valid {
		hold := "The one required check, " + names[0] + ", found no violation"
		if len(names) > 1 {
			hold = fmt.Sprintf("None of the %d required checks found a violation", len(names))
		}
		return fmt.Sprintf("%s in %s (claim: %s)%s.", hold, check.Plural(committed, "committed transaction"), expect, beyond(results))
	}
	which := "The check " + names[0]
	if len(names) > 1 {
		which = "The checks " + listed(names, "and")
	}
	why := ""
	if !several && first.Why != nil {
		why = ": " + s.Clause(first.Why)
	}
	return fmt.Sprintf("%s could not be decided (claim: %s)%s.", which, expect, why)
}

// beyond describes the violations that the claim does not forbid. It returns an empty string if there are
// none.
func beyond(results []check.Result) string {
	var serializable, strict bool
	var others []string
	for _, r := range results {
		switch {
		case r.Required || r.Status != check.Invalid:
		case r.Name == check.Serializable:
			serializable = true
		case r.Name == check.Strict:
			strict = true
		default:
			others = append(others, "failed the check "+r.Name)
		}
	}
	switch {
	case serializable:
		others = append([]string{"was not serializable"}, others...)
	case strict:
		others = append([]string{"was not strictly serializable"}, others...)
	}
	if len(others) == 0 {
		return ""
	}
	return "; the history " + strings.Join(others, " and ") + ", which the claim does not forbid"
}

// Story returns the first instance of a finding as an introduction to its edges. It returns an empty string
// if the finding has no edges.
func (s Speaker) Story(f *check.Finding) string {
	if len(f.Cycle) == 0 {
		return ""
	}
	return check.Capital(s.Instance(f)) + "."
}

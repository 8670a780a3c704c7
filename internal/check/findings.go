package check

import (
	"fmt"
	"strings"

	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

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

// String is what was found, in words.
func (f *Findings) String() string {
	text := strings.Join(f.Texts, "; ")
	if more := f.Count - len(f.Texts); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	if f.Title == "" {
		return Capital(text) + "."
	}
	return fmt.Sprintf(f.Title, Plural(f.Count, f.Noun)) + ": " + text + "."
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

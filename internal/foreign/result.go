package foreign

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/text"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// Schema is the version of the result's JSON. Within a schema, keys may be added but never changed.
const Schema = 1

// Result is the JSON result of checking a history.
type Result struct {
	Schema       int     `json:"schema"`
	Verdict      string  `json:"verdict"` // valid, invalid or unknown
	Reason       string  `json:"reason"`  // the verdict's, in one sentence
	Format       string  `json:"format"`
	File         string  `json:"file"`
	Expect       string  `json:"expect"`    // the level that the verdict is about
	Strongest    *string `json:"strongest"` // the strongest level that was seen to hold; null where none was
	Sessions     int     `json:"sessions"`
	Transactions int     `json:"transactions"`
	Operations   int     `json:"operations"`
	Objects      int     `json:"objects"`
	Aborted      int     `json:"aborted_operations"`
	Checks       []Check `json:"checks"`
	Stroppy      string  `json:"stroppy_version"`
}

// Check is the result for one level.
type Check struct {
	Name      string    `json:"name"`
	Status    string    `json:"status"` // valid, invalid or unknown
	Required  bool      `json:"required"`
	Detail    string    `json:"detail"`
	Witness   []string  `json:"witness"` // transactions as the file calls them
	Anomalies []Anomaly `json:"anomalies"`
	Findings  []Finding `json:"findings"` // empty if the check is not invalid
}

// Finding describes the violations of one kind.
type Finding struct {
	Kind         string    `json:"kind"` // the kind of the first violation; the names never change
	Anomaly      string    `json:"anomaly,omitempty"`
	Forbidden    string    `json:"forbidden_from,omitempty"` // the weakest level that forbids it
	Count        int       `json:"count"`
	Objects      []string  `json:"objects,omitempty"` // the first few
	Transactions []string  `json:"transactions"`      // the first few, as the file calls them
	First        fact.Fact `json:"first"`             // the first violation; its fields depend on kind
	Text         string    `json:"text"`
}

// Anomaly is one way in which a level is broken.
type Anomaly struct {
	Name      string   `json:"name"`
	Forbidden string   `json:"forbidden_from"` // the weakest level that forbids it
	Count     int      `json:"count"`
	Detail    string   `json:"detail"`
	Witness   []string `json:"witness"`
	Cycle     []Edge   `json:"cycle"` // empty where it is no cycle
}

// Edge is one edge of a cycle.
type Edge struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Kind   string `json:"kind"` // ww, wr, rw, process or real time
	Object string `json:"object"`
	Text   string `json:"text"`
}

// NewResult returns the result of checking a file against a level.
func NewResult(f *Format, path string, expect isolation.Level, c *Checked, version string) *Result {
	expect = cmp.Or(expect, f.Default)
	r := &Result{
		Schema: Schema, Format: f.Name, File: path, Expect: expect.String(), Stroppy: version,
		Sessions: c.Sessions, Transactions: c.Transactions, Operations: c.Operations, Objects: c.Objects, Aborted: c.Aborted,
		Verdict: check.Verdict(c.Results).String(), Checks: []Check{},
	}
	held := true
	for i := range c.Results {
		one := newCheck(&c.Results[i], c.Name)
		r.Checks = append(r.Checks, one)
		if held = held && c.Results[i].Status == check.Valid; held {
			r.Strongest = &one.Name
		}
	}
	if c.Strongest != nil {
		names := strings.Join(c.Strongest, ", ")
		r.Strongest = &names
	}
	r.Reason = reason(c.Results, expect)
	return r
}

// speaker writes the sentences about a history.
var speaker = text.Speaker{Words: check.Words{One: "transaction"}}

// reason returns the verdict in one sentence: the violation of the weakest broken level, or why the weakest
// undecided level is undecided.
func reason(results []check.Result, expect isolation.Level) string {
	verdict := check.Verdict(results)
	for i := range results {
		r := &results[i]
		switch {
		case verdict == check.Valid || !r.Required || r.Status != verdict:
		case len(r.Findings) > 0:
			return r.Name + ": " + speaker.Finding(&r.Findings[0])
		default:
			return r.Name + ": " + speaker.Why(r)
		}
	}
	return fmt.Sprintf("The history satisfies %v.", expect)
}

func newCheck(r *check.Result, name func(history.ID) string) Check {
	c := Check{
		Name: r.Name, Status: r.Status.String(), Required: r.Required, Detail: speaker.Detail(r),
		Witness: named(r.Witness, name), Anomalies: []Anomaly{}, Findings: []Finding{},
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		one := Finding{
			Kind: f.Kind(), Anomaly: f.Anomaly, Count: f.Count, Transactions: named(f.Transactions, name),
			First: f.Instances[0], Text: speaker.Finding(f),
		}
		if f.Forbidden != isolation.Unknown {
			one.Forbidden = f.Forbidden.String()
		}
		for _, o := range f.Objects {
			one.Objects = append(one.Objects, string(o))
		}
		c.Findings = append(c.Findings, one)
	}
	for _, a := range speaker.Anomalies(r) {
		one := Anomaly{
			Name: a.Name, Forbidden: a.Forbidden.String(), Count: a.Count, Detail: a.Detail,
			Witness: named(a.Witness, name), Cycle: []Edge{},
		}
		for _, e := range a.Cycle {
			one.Cycle = append(one.Cycle, Edge{name(e.From), name(e.To), e.Kind.String(), e.Object, e.Text})
		}
		c.Anomalies = append(c.Anomalies, one)
	}
	return c
}

func named(ids []history.ID, name func(history.ID) string) []string {
	list := []string{}
	for _, id := range ids {
		list = append(list, name(id))
	}
	return list
}

// WriteJSON writes the result as JSON.
func (r *Result) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// WriteText writes the result as text: the verdict first, then each level with its reason and the edges of
// cycles.
func (r *Result) WriteText(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s  %s at %s\n", strings.ToUpper(r.Verdict), r.File, r.Expect)
	hang(&out, "  ", r.Reason)
	fmt.Fprintf(&out, "\nHistory\n  %s, %s, %s, %s\n", check.Plural(r.Sessions, "session"), check.Plural(r.Transactions, "transaction"), check.Plural(r.Operations, "operation"), check.Plural(r.Objects, "object"))
	if r.Aborted > 0 {
		fmt.Fprintf(&out, "  and %s of transactions that were aborted\n", check.Plural(r.Aborted, "operation"))
	}
	out.WriteString("\nChecks\n")
	longest := 17
	for i := range r.Checks {
		longest = max(longest, len(r.Checks[i].Name))
	}
	for i := range r.Checks {
		r.Checks[i].writeText(&out, longest)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// writeText writes a check. room is the width of the name.
func (c *Check) writeText(out *strings.Builder, room int) {
	column := 2 + room + 1 + 8 + 1
	hang(out, fmt.Sprintf("  %-*s %-8s ", room, c.Name, c.Status), c.Detail)
	for _, a := range c.Anomalies {
		for i, e := range a.Cycle {
			hang(out, fmt.Sprintf("%*s%d. %-9s ", column, "", i+1, e.Kind), e.Text)
		}
	}
}

// Text is wrapped at this width.
const width = 100

// hang writes text after lead, with a hanging indent.
func hang(out *strings.Builder, lead, text string) {
	room := max(width-len(lead), 40)
	for line := range strings.SplitSeq(text, "\n") {
		for line != "" {
			end := len(line)
			if end > room {
				if end = strings.LastIndexByte(line[:room+1], ' '); end <= 0 {
					if end = strings.IndexByte(line, ' '); end <= 0 {
						end = len(line)
					}
				}
			}
			out.WriteString(lead + line[:end] + "\n")
			lead, line = strings.Repeat(" ", len(lead)), strings.TrimPrefix(line[end:], " ")
		}
	}
}

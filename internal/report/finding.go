package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	checktext "stroppy/internal/check/text"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// Finding is one kind of violation that a check found.
type Finding struct {
	Kind         string   `json:"kind"`              // what was found, such as lost-update; the names never change
	Anomaly      string   `json:"anomaly,omitempty"` // the field's term
	Forbidden    string   `json:"forbidden_from,omitempty"`
	Count        int      `json:"count"`
	AtLeast      bool     `json:"at_least,omitempty"` // the search ended at count
	Amount       *int64   `json:"amount,omitempty"`   // by how much the sum of the objects is wrong, net, in the workload's units
	Objects      []string `json:"objects,omitempty"`  // the first few
	Transactions []string `json:"transactions"`       // the first few that show it
	First        Instance `json:"first"`              // the first violation; its fields depend on kind
	Text         string   `json:"text"`
}

// Instance is one violation as JSON: a fact that was found now, or what a file holds of one.
type Instance struct {
	fact fact.Fact
	kept json.RawMessage
}

// MarshalJSON writes the fact, or what was read of it.
func (i Instance) MarshalJSON() ([]byte, error) {
	if i.fact == nil {
		return i.kept.MarshalJSON()
	}
	return json.Marshal(i.fact)
}

// UnmarshalJSON keeps what a file holds.
func (i *Instance) UnmarshalJSON(data []byte) error {
	i.kept = slices.Clone(data)
	return nil
}

// add appends a finding to a check, and to its anomalies if it has the name of one.
func (c *Check) add(f *check.Finding, say checktext.Speaker, taken map[string]bool) {
	one := Finding{
		Kind: f.Kind(), Anomaly: f.Anomaly, Count: f.Count, AtLeast: f.AtLeast,
		Transactions: names(f.Transactions), First: Instance{f.Instances[0], nil}, Text: say.Finding(f),
	}
	for _, v := range f.Broken {
		c.Broken = append(c.Broken, BrokenValue{v.Transaction.String(), v.Object, v.Bytes, Pieces(v.Pieces)})
	}
	if f.Forbidden != isolation.Unknown {
		one.Forbidden = f.Forbidden.String()
	}
	if f.Amount != 0 {
		one.Amount = new(f.Amount)
	}
	one.Objects = Texts(f.Objects, func(o fact.Object) string { return string(o) })
	c.Findings = append(c.Findings, one)
	if f.Anomaly == "" {
		return
	}
	a := anomalyOf(say.Anomaly(f))
	if len(a.Edges) > 0 && len(a.Transactions) > 0 {
		a.Drawing = drawingName(a.Name, c.Name, taken)
	}
	c.Anomalies = append(c.Anomalies, a)
}

// Cause explains an invalid verdict: the cause, who is responsible, and the remedy.
type Cause struct {
	Kind    string `json:"kind"` // lost-writes, altered-writes, double-writes, ghost-writes, foreign-data, lost-updates, broken-order, wrong-values, wrong-sums, broken-invariants or divergence
	Check   string `json:"check"`
	Finding string `json:"finding"`           // the kind of the check's finding
	Anomaly string `json:"anomaly,omitempty"` // the field's term
	Count   int    `json:"count"`
	Amount  *int64 `json:"amount,omitempty"` // by how much the sum of the objects is wrong, net, in the workload's units

	FromSeconds *float64 `json:"from_s"` // the first and the last violation, since the run's start; null: not known
	ToSeconds   *float64 `json:"to_s"`
	SeenSeconds *float64 `json:"seen_s,omitempty"` // the first violation of another finding, if from_s and to_s are not known
	Fault       string   `json:"fault,omitempty"`  // that was under way

	Culprit string `json:"culprit"` // database, configuration, application or undecided

	Text        string `json:"text"`
	CulpritText string `json:"culprit_text"`
	Cure        string `json:"cure"` // what to do
	Story       string `json:"story,omitempty"`

	Explains []Consequence `json:"explains"` // the other findings: those that the cause does not explain come first
}

// Consequence is a finding beside the cause.
type Consequence struct {
	Check     string `json:"check"`
	Kind      string `json:"kind"`
	Anomaly   string `json:"anomaly,omitempty"`
	Count     int    `json:"count"`
	Explained bool   `json:"explained"` // by the cause
	Text      string `json:"text"`
}

// Caveat is a setting in effect under which a database does not promise to keep what it acknowledged.
type Caveat struct {
	Setting string `json:"setting"`
	Quote   string `json:"quote"` // of the documentation
	Source  string `json:"source"`
	Cure    string `json:"cure"` // the setting to choose
}

// IsolationLevel is an isolation of a database and the level that it claims there.
type IsolationLevel struct {
	Isolation string `json:"isolation"`
	Level     string `json:"level"`
}

// Explanation explains an invalid verdict in a document: who is responsible, the remedy, the evidence, and the
// other findings.
type Explanation struct {
	Culprit string     `json:"culprit"` // database, configuration, application or undecided
	Whose   string     `json:"whose"`   // in a sentence
	Cure    string     `json:"cure"`
	Finding *Evidence  `json:"finding"` // null if the evidence is not known
	Others  []Evidence `json:"others"`  // their evidence is shown on demand
}

func (r *Result) explanation() *Explanation {
	k := r.Cause
	if k == nil {
		return nil
	}
	p := &Explanation{Culprit: k.Culprit, Whose: k.CulpritText, Cure: k.Cure, Others: []Evidence{}}
	seen := map[[3]string]int{} // a check may have several findings of a kind, in the order of the explanation
	next := func(check, kind, anomaly string) *Evidence {
		key := [3]string{check, kind, anomaly}
		seen[key]++
		return r.evidence(check, kind, anomaly, seen[key])
	}
	p.Finding = next(k.Check, k.Finding, k.Anomaly)
	for _, o := range k.Explains {
		one := *cmp.Or(next(o.Check, o.Kind, o.Anomaly), &Evidence{Edges: []string{}})
		one.Title, one.Explained = o.Text, o.Explained
		p.Others = append(p.Others, one)
	}
	return p
}

// evidence returns the n-th finding of a check of that kind, from 1, or the last one; nil if there is none.
func (r *Result) evidence(check, kind, anomaly string, n int) *Evidence {
	at := slices.IndexFunc(r.Checks, func(c Check) bool { return c.Name == check })
	if at < 0 {
		return nil
	}
	c := &r.Checks[at]
	i := -1
	for k := range c.Findings {
		if f := &c.Findings[k]; n > 0 && f.Kind == kind && f.Anomaly == anomaly {
			i, n = k, n-1
		}
	}
	if i < 0 {
		return nil
	}
	f := c.pageFinding(&c.Findings[i])
	return &f
}

// Anomaly is one way in which the order of transactions went wrong.
type Anomaly struct {
	Name      string   `json:"name"`
	Forbidden string   `json:"forbidden_from"` // the weakest level that forbids it
	Count     int      `json:"count"`
	Detail    string   `json:"detail"` // one instance in a sentence
	Witness   []string `json:"witness"`

	// Edges are the instance as a path. Each begins at the end of the edge before it. The last one leads
	// back to the first transaction, unless a single read shows the anomaly.
	Edges        []Edge `json:"edges,omitempty"`
	Transactions []Span `json:"transactions,omitempty"` // of the instance, by their beginnings
	Drawing      string `json:"drawing,omitempty"`      // the file in the run's directory that shows the instance
}

// Edge is one reason for which a transaction comes before another.
type Edge struct {
	From        string `json:"from"`
	To          string `json:"to"`
	Kind        string `json:"kind"` // ww, wr, rw, process or real time
	Object      string `json:"object,omitempty"`
	FromVersion string `json:"from_version,omitempty"` // what From read or made of the object
	ToVersion   string `json:"to_version,omitempty"`
	Text        string `json:"text"` // the edge in words
}

// Span is a transaction as a drawing shows it. Times are nanoseconds since the start of its
// run.
type Span struct {
	ID      string   `json:"id"`
	Client  uint64   `json:"client"`
	Kind    string   `json:"kind"`
	Outcome string   `json:"outcome"`
	Begin   int64    `json:"begin_ns"`
	End     *int64   `json:"end_ns"` // null: nobody knows it
	Ops     []string `json:"operations"`
}

// DrawingsDir is the folder of the drawings in a run's directory.
const DrawingsDir = "violations"

// Checks converts the results of checks to their form in result.json.
func Checks(results []check.Result, say checktext.Speaker) []Check {
	list, taken := make([]Check, 0, len(results)), map[string]bool{}
	for _, r := range results {
		c := Check{
			Name: r.Name, Status: r.Status.String(), Detail: say.Detail(&r), Required: r.Required,
			Witness: names(r.Witness), Anomalies: []Anomaly{}, Where: append([]history.Ref{}, r.Where...),
		}
		for i := range r.Findings {
			c.add(&r.Findings[i], say, taken)
		}
		list = append(list, c)
	}
	return list
}

func anomalyOf(a checktext.Anomaly) Anomaly {
	one := Anomaly{Name: a.Name, Forbidden: a.Forbidden.String(), Count: a.Count, Detail: a.Detail, Witness: names(a.Witness)}
	for _, e := range a.Cycle {
		one.Edges = append(one.Edges, Edge{
			From: e.From.String(), To: e.To.String(), Kind: e.Kind.String(), Object: e.Object,
			FromVersion: e.FromVersion, ToVersion: e.ToVersion, Text: e.Text,
		})
	}
	for _, s := range a.Spans {
		span := Span{
			ID: s.ID.String(), Client: s.ID.Client(), Kind: s.Kind, Outcome: s.Outcome.String(),
			Begin: s.Begin, Ops: append([]string{}, s.Ops...),
		}
		if s.End != 0 {
			span.End = new(s.End)
		}
		one.Transactions = append(one.Transactions, span)
	}
	return one
}

// drawingName returns the file of an anomaly's drawing. It is the name without parentheses, after the name of
// the check if the file exists.
func drawingName(anomaly, check string, taken map[string]bool) string {
	short, _, _ := strings.Cut(anomaly, "(")
	name := fileName(short)
	if taken[name] {
		name = fileName(check + " " + anomaly)
	}
	taken[name] = true
	return path.Join(DrawingsDir, name+".svg")
}

// fileName returns a name of lower-case letters, digits and hyphens.
func fileName(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return strings.Join(words, "-")
}

func names(ids []history.ID) []string { return Texts(ids, history.ID.String) }

// BrokenValue is a value that a transaction read and that nobody wrote like this.
type BrokenValue struct {
	Transaction string  `json:"transaction"`
	Object      string  `json:"object"`
	Bytes       int     `json:"bytes"` // its length
	Pieces      []Piece `json:"pieces"`
}

// Piece is a range of bytes of a value, both ends counted from 0 and included. Writer is the transaction that
// wrote them there, "load" for the load, and null for nobody.
type Piece struct {
	From   int     `json:"from"`
	To     int     `json:"to"`
	Writer *string `json:"writer"`
}

// MostPieces bounds the pieces that are kept of one value.
const MostPieces = 64

// loadWriter is the writer of data from before the first transaction.
const loadWriter = "load"

// Pieces converts the first pieces of a value to their form in result.json.
func Pieces(pieces []check.Piece) []Piece {
	var list []Piece
	for _, p := range pieces[:min(len(pieces), MostPieces)] {
		one := Piece{From: p.From, To: p.To}
		switch {
		case p.Known && p.Writer == 0:
			one.Writer = new(loadWriter)
		case p.Known:
			one.Writer = new(p.Writer.String())
		}
		list = append(list, one)
	}
	return list
}

// mostStrips is how many pieces a drawing of a value shows.
const mostStrips = 12

// drawing shows a value as a strip of its pieces, and below it who wrote each.
func (v *BrokenValue) drawing() string {
	const height, swatch = 16, 8
	classes := map[string]string{} // of the writers
	d := &sketch{y: 4}
	at := func(b int) float64 {
		return float64(nodesAt) + float64(textEnd-nodesAt)*float64(b)/float64(max(v.Bytes, 1))
	}
	class := func(p Piece) string {
		if p.Writer == nil {
			return "piece nobodys"
		}
		if classes[*p.Writer] == "" {
			classes[*p.Writer] = fmt.Sprintf("piece writer-%d", len(classes)%5)
		}
		return classes[*p.Writer]
	}
	for _, p := range v.Pieces {
		d.add(`<rect class="%s" fill="#7d8792" x="%.1f" y="%d" width="%.1f" height="%d"/>`, class(p), at(p.From), d.y, max(at(p.To+1)-at(p.From), 1), height)
	}
	d.y += height
	for _, p := range v.Pieces[:min(len(v.Pieces), mostStrips)] {
		d.add(`<rect class="%s" fill="#7d8792" x="%d" y="%d" width="%d" height="%d"/>`, class(p), nodesAt, d.y+drawnLine-swatch, swatch, swatch)
		who := "nobody"
		if p.Writer != nil {
			who = *p.Writer
		}
		d.text("did", fmt.Sprintf("bytes %d to %d: %s", p.From, p.To, who))
	}
	if more := len(v.Pieces) - mostStrips; more > 0 {
		d.text("soft", fmt.Sprintf("and %d more", more))
	}
	d.y += 6
	title := fmt.Sprintf("Bytes that %s read in %s", v.Transaction, v.Object)
	return svgOf(d, title, title, "")
}

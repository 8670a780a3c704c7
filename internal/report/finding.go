package report

import (
	"cmp"
	"encoding/json"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	checktext "stroppy/internal/check/text"
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
	for _, o := range f.Objects {
		one.Objects = append(one.Objects, string(o))
	}
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
	Kind    string `json:"kind"` // lost-writes, altered-writes, double-writes, ghost-writes, foreign-data, lost-updates, broken-order, wrong-values, wrong-sums or divergence
	Check   string `json:"check"`
	Finding string `json:"finding"`           // the kind of the check's finding
	Anomaly string `json:"anomaly,omitempty"` // the field's term
	Count   int    `json:"count"`
	Amount  *int64 `json:"amount,omitempty"` // by how much the sum of the objects is wrong, net, in the workload's units

	FromSeconds *float64 `json:"from_s"` // the first and the last violation, since the run's start; null: not known
	ToSeconds   *float64 `json:"to_s"`
	Fault       string   `json:"fault,omitempty"` // that was under way

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
	p.Finding = r.evidence(k.Check, k.Finding, k.Anomaly)
	for _, o := range k.Explains {
		one := *cmp.Or(r.evidence(o.Check, o.Kind, o.Anomaly), &Evidence{Edges: []string{}})
		one.Title, one.Explained = o.Text, o.Explained
		p.Others = append(p.Others, one)
	}
	return p
}

// evidence returns a finding of a check; nil if there is none of that kind.
func (r *Result) evidence(check, kind, anomaly string) *Evidence {
	at := slices.IndexFunc(r.Checks, func(c Check) bool { return c.Name == check })
	if at < 0 {
		return nil
	}
	c := &r.Checks[at]
	i := slices.IndexFunc(c.Findings, func(f Finding) bool { return f.Kind == kind && f.Anomaly == anomaly })
	if i < 0 {
		return nil
	}
	f := c.pageFinding(&c.Findings[i])
	return &f
}

package report

import (
	"encoding/json"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	checktext "stroppy/internal/check/text"
	"stroppy/internal/isolation"
)

// Finding is what a check found of one kind of violation.
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
	c.Broken = append(c.Broken, brokenValues(f.Broken)...)
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

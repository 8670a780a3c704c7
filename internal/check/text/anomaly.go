package text

import (
	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// Anomaly is a finding that has the name of an anomaly, with its texts.
type Anomaly struct {
	Name      string          // Adya's or the field's term: lost update, read skew, write skew, long fork …
	Forbidden isolation.Level // the weakest level that forbids it
	Count     int             // number found, as far as the search went
	Detail    string          // the first instance, as a clause
	Witness   []history.ID
	Cycle     []Edge // of the instance: the last edge leads back to the first; nil: no cycle
	Spans     []Span // of the instance: its transactions in the order of their beginnings
}

// Edge is an edge with its clause.
type Edge struct {
	check.Edge
	Text string
}

// Span is a transaction with a clause for each of its operations.
type Span struct {
	check.Span
	Ops []string
}

// Anomaly returns a finding that has the name of an anomaly, with its texts.
func (s Speaker) Anomaly(f *check.Finding) Anomaly {
	a := Anomaly{Name: f.Anomaly, Forbidden: f.Forbidden, Count: f.Count, Detail: s.Instance(f), Witness: f.Transactions}
	for _, e := range f.Cycle {
		a.Cycle = append(a.Cycle, Edge{e, s.Clause(e.Why)})
	}
	for _, one := range f.Spans {
		span := Span{Span: one}
		for _, did := range one.Did {
			span.Ops = append(span.Ops, s.Clause(did))
		}
		a.Spans = append(a.Spans, span)
	}
	return a
}

// Anomalies returns the findings of a result that have the name of an anomaly, with their texts.
func (s Speaker) Anomalies(r *check.Result) (list []Anomaly) {
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Anomaly != "" {
			list = append(list, s.Anomaly(f))
		}
	}
	return list
}

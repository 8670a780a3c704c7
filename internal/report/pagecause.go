package report

import "slices"

// PageCause is what a page shows of the cause of a violation: whose fault it is, what to do, the
// evidence, and the other findings, a line each.
type PageCause struct {
	Culprit string       `json:"culprit"` // database, configuration, application or undecided
	Whose   string       `json:"whose"`   // in a sentence
	Cure    string       `json:"cure"`
	Finding *PageFinding `json:"finding"` // null where the evidence is not known
	Others  []PageOther  `json:"others"`
}

// PageOther is a finding beside the cause. Its evidence is shown on demand.
type PageOther struct {
	Text      string      `json:"text"`
	Explained bool        `json:"explained"`
	Finding   PageFinding `json:"finding"`
}

func (r *Result) pageCause() *PageCause {
	k := r.Cause
	if k == nil {
		return nil
	}
	p := &PageCause{Culprit: k.Culprit, Whose: k.CulpritText, Cure: k.Cure, Others: []PageOther{}}
	p.Finding = r.evidence(k.Check, k.Finding, k.Anomaly)
	for _, o := range k.Explains {
		one := PageOther{Text: o.Text, Explained: o.Explained, Finding: PageFinding{Edges: []string{}}}
		if f := r.evidence(o.Check, o.Kind, o.Anomaly); f != nil {
			one.Finding = *f
		}
		p.Others = append(p.Others, one)
	}
	return p
}

// evidence returns a finding of a check; nil if there is none of that kind.
func (r *Result) evidence(check, kind, anomaly string) *PageFinding {
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

package report

import (
	"cmp"
	"slices"
	"time"

	"stroppy/internal/stats"
)

// The bounds of what a page draws around faults.
const (
	mostAround    = 100_000           // steps in all
	aroundBefore  = 5 * time.Second   // an injection
	aroundLongest = 120 * time.Second // after it
)

// PageAround is the throughput in small steps around each fault.
type PageAround struct {
	Step   float64       `json:"step_s"`
	Faults []AroundFault `json:"faults"` // by their number
	First  int           `json:"first"`  // which of them to show first: that with the longest outage
	Note   string        `json:"note"`
}

// AroundFault is the time around one fault.
type AroundFault struct {
	Number    int     `json:"number"`
	Label     string  `json:"label"`
	From      float64 `json:"from_s"`    // of the first step
	Committed []num   `json:"committed"` // in each step
	Cut       bool    `json:"cut"`       // it lasts longer
}

// pageAround is null where nothing is known.
func pageAround(in Input) *PageAround {
	rows := in.Plots.Around
	if len(rows) == 0 {
		return nil
	}
	p := &PageAround{Step: stats.FineStep.Seconds(), Faults: []AroundFault{}}
	var drawn []Fault
	for _, f := range in.Result.Faults {
		if f.OutageSeconds != nil {
			drawn = append(drawn, f)
		}
	}
	worstFirst := func(a, b Fault) int { return cmp.Compare(*b.OutageSeconds, *a.OutageSeconds) }
	slices.SortStableFunc(drawn, worstFirst)
	steps := 0
	for i := range drawn {
		a, ok := aroundFault(&drawn[i], rows)
		if !ok {
			continue
		}
		if steps += len(a.Committed); steps > mostAround {
			p.Note = "Of the faults those with the longest outages; " + aroundFile + " has all."
			break
		}
		p.Faults = append(p.Faults, a)
	}
	if len(p.Faults) == 0 {
		return nil
	}
	worst := p.Faults[0].Number
	slices.SortFunc(p.Faults, func(a, b AroundFault) int { return cmp.Compare(a.Number, b.Number) })
	p.First = slices.IndexFunc(p.Faults, func(a AroundFault) bool { return a.Number == worst })
	return p
}

// aroundFault takes the steps around one fault: from some seconds before it to some seconds
// after its heal and the end of its effects.
func aroundFault(f *Fault, rows []AroundRow) (a AroundFault, ok bool) {
	second := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	from, over := second(f.AtSeconds)-aroundBefore, f.AtSeconds
	for _, t := range []*float64{f.HealedSeconds, f.OutageAtSeconds} {
		if t != nil {
			over = max(over, *t)
		}
	}
	if f.RecoveredSeconds != nil {
		over = max(over, f.AtSeconds+*f.RecoveredSeconds)
	}
	if f.OutageAtSeconds != nil {
		over = max(over, *f.OutageAtSeconds+*f.OutageSeconds)
	}
	to := second(over) + aroundBefore
	a = AroundFault{Number: f.Number, Label: f.Fault, Committed: []num{}}
	if most := second(f.AtSeconds) + aroundLongest; to > most {
		to, a.Cut = most, true
	}
	first, _ := slices.BinarySearchFunc(rows, from, func(r AroundRow, t time.Duration) int { return cmp.Compare(r.At, t) })
	for i := first; i < len(rows) && rows[i].At < to; i++ {
		if i > first && rows[i].At > rows[i-1].At+stats.FineStep*3/2 { // the next stretch
			break
		}
		a.Committed = append(a.Committed, num(rows[i].Committed))
	}
	if len(a.Committed) == 0 {
		return a, false
	}
	a.From = rows[first].At.Seconds()
	return a, true
}

package run

import (
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/cause"
	"stroppy/internal/check/text"
	"stroppy/internal/db"
	"stroppy/internal/isolation"
	"stroppy/internal/report"
)

// explain writes the cause of a violation, the responsible part and the cure into the result.
func (c *conductor) explain(results []check.Result) {
	ranking := cause.Rank(results)
	first := ranking.First
	if first == nil {
		c.result.Reason = "A required check found a violation."
		return
	}
	say := c.speaker()
	promise, style := c.promise(), c.style()
	judgement := cause.Judge(first, promise, style)
	head := c.headline(first)
	if head.To == 0 {
		head.Seen = firstTime(ranking.Then)
	}
	k := &report.Cause{
		Kind: first.Kind.String(), Check: first.Check, Finding: first.Finding.Kind(), Anomaly: first.Anomaly, Count: first.Count,
		Culprit: judgement.Culprit.String(), Text: say.Headline(head), CulpritText: say.Culprit(promise, judgement), Cure: say.Cure(judgement),
		Explains: []report.Consequence{}, Story: say.Story(first.Finding),
	}
	if first.Amount != 0 {
		k.Amount = new(first.Amount)
	}
	if head.To > 0 {
		k.FromSeconds, k.ToSeconds = new(head.From.Seconds()), new(head.To.Seconds())
	}
	if head.Seen > 0 {
		k.SeenSeconds = new(head.Seen.Seconds())
	}
	if head.Fault != nil {
		k.Fault = head.Fault.Text
	}
	for i := range ranking.Then {
		f := &ranking.Then[i]
		k.Explains = append(k.Explains, report.Consequence{
			Check: f.Check, Kind: f.Finding.Kind(), Anomaly: f.Anomaly, Count: f.Count, Explained: f.Of != nil, Text: say.Consequence(f),
		})
	}
	c.result.Cause, c.result.Reason = k, k.Text
}

// firstTime returns the time of the first violation whose time is known, and 0 if there is none.
func firstTime(list []cause.Found) time.Duration {
	var first int64
	for i := range list {
		if at := list[i].First; at > 0 && (first == 0 || at < first) {
			first = at
		}
	}
	return time.Duration(first)
}

// explainAgain explains a violation once more, when it is known which node acknowledged what.
func (c *conductor) explainAgain() {
	if c.result.Cause == nil {
		return
	}
	c.explain(c.results)
	c.result.Reason = c.qualify(c.result.Reason)
}

// promise returns what the database promises in the configuration of the run.
func (c *conductor) promise() cause.Promise {
	p := cause.Promise{Database: c.result.Database, Expect: c.expect}
	claim := c.result.Claim
	if claim == nil {
		return p
	}
	p.Isolation, p.Source, p.Durable = claim.Isolation, claim.Source, claim.Durable
	p.Level, _ = isolation.Parse(claim.Level)
	for _, l := range claim.Isolations {
		level, _ := isolation.Parse(l.Level)
		p.Levels = append(p.Levels, cause.IsolationLevel{Isolation: l.Isolation, Level: level})
	}
	for _, v := range claim.Caveats {
		p.Caveats = append(p.Caveats, cause.Caveat(v))
	}
	return p
}

// style returns how the transactions of the run write.
func (c *conductor) style() cause.Style {
	unsafe := c.o.Spec.Unsafe
	if unsafe == nil || c.result.Drive == nil {
		return cause.Style{}
	}
	update := c.result.Drive.Style[unsafe.Setting]
	return cause.Style{Update: update, Unsafe: update == unsafe.Value, Safe: unsafe.Safe}
}

// headline returns the time of a finding and the events at that time.
func (c *conductor) headline(f *cause.Found) text.Headline {
	h := text.Headline{Found: f, From: time.Duration(f.First), To: time.Duration(f.Last)}
	if f.Kind == cause.LostWrites && c.result.Acknowledgements != nil {
		for _, a := range c.result.Acknowledgements.Intervals {
			if a.LostFromSeconds != nil && a.Lost != nil && *a.Lost > 0 {
				h.Nodes = append(h.Nodes, text.Node{Name: a.Server, From: seconds(*a.LostFromSeconds), To: seconds(a.ToSeconds), Lost: *a.Lost})
			}
		}
		h.Nodes = h.Nodes[:min(len(h.Nodes), mostNodes)]
		if len(h.Nodes) > 0 {
			h.From, h.To = h.Nodes[0].From, h.Nodes[0].To
		}
	}
	if h.To == 0 {
		return h
	}
	h.Fault = c.faultDuring(h.From, h.To)
	if f.Kind == cause.LostWrites {
		for _, e := range c.result.ClusterEvents {
			if at := seconds(e.AtSeconds); e.Leader != "" && at > h.From-leaderWithin && at < h.To+leaderWithin {
				h.Leaders = append(h.Leaders, text.Leader{Name: e.Leader, At: at})
			}
		}
		h.Leaders = h.Leaders[:min(len(h.Leaders), mostNodes)]
	}
	return h
}

// mostNodes bounds the nodes and leaders that a headline names.
const mostNodes = 2

// leaderWithin is the largest distance in time from the violations to a change of the leader that is named with them.
const leaderWithin = 30 * time.Second

// faultDuring returns the latest fault that was active at the first violation. Without one, it returns the first
// fault that began before the last violation, or nil.
func (c *conductor) faultDuring(from, to time.Duration) *text.Fault {
	var found *text.Fault
	for _, f := range c.result.Faults {
		begin, end := time.Duration(f.At), to
		if f.Healed != nil {
			end = time.Duration(*f.Healed)
		}
		if !f.Done() || begin > to || end < from {
			continue
		}
		if found == nil || begin <= from {
			found = &text.Fault{Text: f.Fault, Target: f.Target, From: begin, To: end}
		}
	}
	return found
}

// isolations returns the isolation levels of the database, with its claim at each.
func (c *conductor) isolations() (list []report.IsolationLevel) {
	listed, ok := c.o.Database.(db.Isolated)
	if !ok {
		return nil
	}
	for _, name := range listed.IsolationNames() {
		if claim, err := c.o.Database.Claim(name); err == nil {
			list = append(list, report.IsolationLevel{Isolation: claim.Isolation, Level: claim.Level.String()})
		}
	}
	return list
}

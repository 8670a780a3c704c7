package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/fault"
	"stroppy/internal/stats"
)

// pacingLimit is the pacing error, in milliseconds, from which on a reader must know it.
const pacingLimit = 1

// notes returns the facts that a reader must know before the measurements, warnings first.
func notes(r *Result, live bool) []Note {
	n := &Notes{}
	if !r.Finished && !live {
		n.Warn("The run was cut off before its end: these are the measurements until then.")
	}
	if r.ScaledDownBy > 0 {
		n.Warn("Scaled down by %g, so these are not the measurements of the scenario as it was written%s.", r.ScaledDownBy, strings.Join(labelled(": ", clean(r.ScaledDown)), ""))
	}
	for _, w := range r.DatabaseWarnings {
		n.Warn("%s", clean(w))
	}
	n.typed(r)
	late := func(w Warning) bool { return w.LateMS > 0 }
	explained := r.Client.bottleneck() != "" || slices.ContainsFunc(r.Warnings, late)
	switch d := r.Drive; {
	case d != nil:
		if d.Unmeasured() && !live {
			n.Warn("Nothing was measured: all transactions ended within the warm-up, which no measurement includes.")
		}
		n.loadPhase(d, r.follower(), r.Resolved)
		if p := d.Pacing; p != nil && p.P99 > pacingLimit && !explained {
			n.Warn("Transactions left late: of those whose client was free, 1 %% left more than %s ms after their intended start time. The latencies include that time.", LatencyText(p.P99))
		}
	case !live:
		n.Note("There was no load phase, so there are no measurements.")
	}
	for _, f := range r.Faults {
		for _, trouble := range labelled("not injected: ", f.Error, "not healed: ", f.HealError) {
			n.Warn("The fault %s at %s was %s", f.Fault, spanText(f.At), withPeriod(trouble))
		}
	}
	for _, e := range r.ClusterEvents {
		if e.Repair {
			n.Warn("The cluster did not heal by itself. At %s: %s.", atText(e.AtSeconds), clean(e.Text))
		}
	}
	if a := r.Acknowledgements; a != nil {
		for _, o := range a.Overlaps {
			n.Warn("%s", o.text())
		}
		for _, i := range a.Intervals {
			if i.LostFromSeconds != nil {
				n.Warn("%s", i.lostText())
			}
		}
	}
	if d := r.Degradation; d != nil && d.Loss() > 0 {
		n.Note("The throughput was %.1f %% less after the last heal than before the first fault: %s against %s per second.",
			100*d.Loss(), RateText(d.LastTPS), RateText(d.FirstTPS))
	}
	return n.All()
}

// typed adds the warnings of a result. A result of an early version has only the sentence about its client.
func (n *Notes) typed(r *Result) {
	said := false
	for i := range r.Warnings {
		w := &r.Warnings[i]
		said = said || w.ofClient()
		if w.severe() {
			n.Warn("%s", w.Text())
		} else {
			n.Note("%s", w.Text())
		}
	}
	if text := r.Client.bottleneck(); text != "" && !said {
		n.Warn("The client was the bottleneck, so the measurements may be its own rather than the database's: %s", withPeriod(text))
	}
}

func (n *Notes) loadPhase(d *Drive, follower string, resolved *Resolved) {
	if d.Interrupted {
		n.Warn("The user ended the run early.")
	}
	if d.StoppedOnViolation {
		n.Warn("A violation that showed ended the load phase early.")
	}
	if l := d.LiveCheck; l != nil && l.Skipped > 0 {
		n.Note("The check during the load phase did not keep up: it left out %s of %s, which were checked after the run alone.",
			Group(l.Skipped), Counted(l.Checked+l.Skipped, "transaction"))
	}
	if d.Rebuilt {
		n.Warn("The run ended before it wrote its measurements; these are from the recorded transactions. Errors, conflicts, reconnects, what was never sent, and the cost of the load phase are not known.")
	}
	switch s := d.Steady; {
	case s == nil || s.State == stats.Steady:
	case s.State == stats.Unsteady:
		depends := "the mean throughput depends"
		if s.Of == stats.OfLatency {
			depends = "the percentiles depend"
		}
		n.Warn("%s So %s on when the run ended.", Sentence(cmp.Or(s.Detail, "there is no steady state")), depends)
	case s.Detail != "" && d.Seconds >= stats.LeastSteady:
		n.Note("%s", Sentence(s.Detail))
	}
	if d.Backlog > 0 || d.Shed > 0 {
		add := n.Note
		if d.behind() {
			add = n.Warn
		}
		add("%s The latencies of committed transactions leave them out.", d.backlogText(follower))
	}
	switch {
	case resolved != nil:
		n.Note("%s.", Capital(resolved.text()))
	case d.Unknown > 0:
		n.Note("%s ended in doubt: the database may or may not have applied the work.", Counted(d.Unknown, "transaction"))
	}
	if d.Retries > 0 && d.Outcomes["retried"] == nil {
		n.Note("Some transactions were tried again. The latencies of committed transactions include their time; by itself it is not known.")
	}
	if d.Clipped > 0 {
		n.Note("%s longer than an hour, which the percentiles take for an hour; mean and max have the true time.", wereCount(d.Clipped))
	}
}

// figures returns the few numbers in large type. A throughput that the rate fixed is no measurement and
// stands last. Values for which a run is too short are left out, and values that a live run does not know
// yet.
func figures(r *Result, live bool) []Figure {
	d := r.Drive
	if d == nil {
		return []Figure{}
	}
	outcomes := NewFigure("Committed", Group(d.Committed), "", Group(d.Rejected.total())+" rejected", Group(d.Aborted)+" aborted", Group(d.Unknown)+" in doubt")
	list := []Figure{throughputFigure(d, live), latencyFigure(d), outcomes}
	if open(d) && !d.behind() && (!live || d.throughput().Mean != nil) {
		rate := NewFigure("Rate", RateText(d.Rate), "/s", "as asked") // the rate fixed the throughput
		if mean := d.throughput().Mean; mean != nil {
			rate.Below = append(rate.Below, "committed "+RateText(*mean)+"/s")
		}
		list = []Figure{latencyFigure(d), outcomes, rate}
	}
	gap := "" // the longest
	if o := d.Outage; o != nil {
		gap = "longest gap without a commit " + seconds(o.Seconds)
	}
	if s := d.Steady; s != nil && s.State != stats.SteadyUnknown { // else a note says why
		steadiness := NewFigure("Steadiness", string(s.State), "")
		if s.State == stats.Steady {
			steadiness.Below = append(steadiness.Below, fmt.Sprintf("from second %d of the run", s.From))
		}
		steadiness.Below = append(steadiness.Below, labelled("", gap)...)
		list = append(list, steadiness)
	} else {
		list[0].Below = append(list[0].Below, labelled("", gap)...)
	}
	list = append(list, outageFigure(r.Faults)...)
	return slices.DeleteFunc(list, func(f Figure) bool { return live && f.Value == NotKnown })
}

func throughputFigure(d *Drive, live bool) Figure {
	f := NewFigure("Throughput, mean", Perhaps(d.throughput().Mean, RateText), "/s")
	if t := d.throughput(); t.Median != nil && t.Max != nil {
		f.Below = append(f.Below, "median "+RateText(*t.Median), "best second "+RateText(*t.Max))
	}
	var interval string
	if d.Seconds >= stats.LeastInterval && !live {
		interval = "confidence interval " + NotKnown
	}
	if i := d.Interval; i != nil {
		interval = fmt.Sprintf("%.4g %% interval %s to %s", 100*i.Confidence, RateText(i.Low), RateText(i.High))
	}
	f.Below = append(f.Below, labelled("", interval)...)
	return f
}

// latencyFigure shows the latency, and beside it the time that the percentiles of a closed loop hide.
func latencyFigure(d *Drive) Figure {
	l := d.Latency
	if l == nil {
		return NewFigure("Latency, 99 %", NotKnown, "")
	}
	f := NewFigure("Latency, 99 %", LatencyText(l.P99), "ms")
	if s := d.silent(); s != nil && !open(d) {
		f.Below = append(f.Below, s.text())
	}
	f.Below = append(f.Below, "median "+LatencyText(l.P50), "99.9 % "+LatencyText(l.P999), "max "+LatencyText(l.Max))
	if open(d) {
		f.Below = append(f.Below, "from the intended start time")
	}
	return f
}

// outageFigure returns the worst outage by a fault, if one was measured.
func outageFigure(faults []fault.Record) []Figure {
	faults = slices.DeleteFunc(slices.Clone(faults), func(f fault.Record) bool { return f.Outage == nil })
	if len(faults) == 0 {
		return nil
	}
	worst := slices.MaxFunc(faults, func(a, b fault.Record) int { return cmp.Compare(*a.Outage, *b.Outage) })
	back := "throughput not back before the next fault or the end"
	switch {
	case worst.Uncompared != "":
		back = "when throughput was back is not known"
	case worst.Recovered != nil && *worst.Recovered == 0:
		back = "throughput did not fall"
	case worst.Recovered != nil:
		back = "throughput back after " + spanText(*worst.Recovered)
	}
	return []Figure{NewFigure("Worst outage", outageText(*worst.Outage), "", worst.Fault+" at "+spanText(worst.At), back)}
}

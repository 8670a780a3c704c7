package report

import (
	"cmp"
	"fmt"
	"strings"
)

// behindShare is how much of a second's arrivals may be left when a load phase ends
// before the database counts as slower than the rate: a pause of so long happens
// to any.
const behindShare = 0.1

// What the measurements must not be read without.
const (
	unmeasuredText = "Nothing was measured: all transactions ended within the warm-up, which no measurement includes."
	rebuiltText    = "The run ended before it wrote its measurements; these are from the recorded transactions. Errors, conflicts, reconnects, what was never sent, and the cost of the load phase are not known."
	cutOffText     = "The run was cut off before its end: this is what was recorded until then."
)

// Unmeasured says that the load phase has had a warm-up and nothing after it.
func (d *Drive) Unmeasured() bool { return d.Seconds <= 0 && d.WarmupSeconds > 0 }

// phaseText reports how many clients ran for how long, and how they were paced.
func (d *Drive) phaseText() string {
	early := ""
	if d.Interrupted {
		early = "ended early by the user"
	}
	return joined(d.lengthText(), d.loopText(), early)
}

func (d *Drive) lengthText() string {
	text := Counted(uint64(max(d.Clients, 0)), "client")
	switch {
	case d.Unmeasured():
		return text + " for " + seconds(d.WarmupSeconds) + " of warm-up, and nothing measured"
	case d.WarmupSeconds > 0:
		return text + " for " + seconds(d.Seconds) + " after " + seconds(d.WarmupSeconds) + " of warm-up"
	}
	return text + " for " + seconds(d.Seconds)
}

func (d *Drive) loopText() string {
	text, poisson := "open loop at "+RateText(d.Rate)+"/s", ", Poisson arrivals"
	switch {
	case !open(d) && d.ThinkSeconds <= 0:
		return "closed loop: each client sends when the last answer is there"
	case !open(d):
		text, poisson = "closed loop, "+seconds(d.ThinkSeconds)+" between two transactions of a client", " in the mean"
	case d.staged():
		text = "open loop at " + clean(d.RatePlan) + " per second"
	}
	if d.Arrival == "poisson" {
		text += poisson
	}
	return text
}

// open says whether work was due at a rate, whatever became of the work before.
func open(d *Drive) bool { return d.Rate > 0 || d.RatePlan != "" }

// staged says that the rate was not one all the time.
func (d *Drive) staged() bool { return strings.Contains(d.RatePlan, " for ") }

// behind reports whether the load phase did not follow the rate that was asked for: more
// was left at its end than a short pause leaves and than the clients were about to
// send, or some was shed.
func (d *Drive) behind() bool {
	return d.Shed > 0 || float64(d.Backlog) > max(behindShare*d.Rate, float64(d.Clients))
}

// backlogText says what the backlog means. c, which may be nil, says whether the client
// itself was too slow.
func (d *Drive) backlogText(c *Client) string {
	if !d.behind() {
		return wereCount(d.Backlog) + " due, but not started when the load phase ended."
	}
	asked, follower := RateText(d.Rate)+"/s", "The database"
	if d.staged() {
		asked = clean(d.RatePlan)
	}
	if c.bottleneck() != "" {
		follower = "This client"
	}
	text := fmt.Sprintf("%s could not follow the rate of %s: %s due and not started when the load phase ended", follower, asked, wereCount(d.Backlog))
	if d.MaxBacklog > d.Backlog {
		text += fmt.Sprintf(", up to %s waited at once", group(d.MaxBacklog))
	}
	if d.Shed > 0 {
		text += fmt.Sprintf(", and %s never sent because the queue was full", wereCount(d.Shed))
	}
	return text + "."
}

func (d *Degradation) text() string {
	less := "no"
	if d.Loss() > 0 {
		less = fmt.Sprintf("%.1f %%", 100*d.Loss())
	}
	return fmt.Sprintf("the throughput was %s less after the last heal than before the first fault: %s against %s per second", less, RateText(d.LastTPS), RateText(d.FirstTPS))
}

// bottleneck is why the client was it; empty where nothing says so.
func (c *Client) bottleneck() string { return cmp.Or(c, &Client{}).Bottleneck }

func wereCount(n uint64) string {
	if n == 1 {
		return "1 was"
	}
	return group(n) + " were"
}

// clippedText warns of times that the percentiles do not have as they are.
func (d *Drive) clippedText() string {
	if d.Clipped == 0 {
		return ""
	}
	return wereCount(d.Clipped) + " longer than an hour, which the percentiles take for an hour; mean and max have the true time"
}

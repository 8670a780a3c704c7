package report

import (
	"fmt"
	"strings"
)

// behindShare is how much of a second's arrivals may be left when a load phase ends
// before the database counts as slower than the rate: a pause of so long happens
// to any.
const behindShare = 0.1

// unmeasuredText is what the measurements of an Unmeasured load phase must not be read without.
const unmeasuredText = "Nothing was measured: all transactions ended within the warm-up, which no measurement includes."

// rebuiltText says what is not known of a load phase that was rebuilt.
const rebuiltText = "The run ended before it wrote its measurements; these are from the recorded transactions. Errors, conflicts, reconnects, what was never sent, and the cost of the load phase are not known."

// Unmeasured says that the load phase has had a warm-up and nothing after it.
func (d *Drive) Unmeasured() bool { return d.Seconds <= 0 && d.WarmupSeconds > 0 }

// lengthText reports how many clients ran for how long; write writes seconds.
func (d *Drive) lengthText(write func(float64) string) string {
	text := Counted(uint64(max(d.Clients, 0)), "client")
	switch {
	case d.Unmeasured():
		return text + " for " + write(d.WarmupSeconds) + " of warm-up, and nothing measured"
	case d.WarmupSeconds > 0:
		return text + " for " + write(d.Seconds) + " after " + write(d.WarmupSeconds) + " of warm-up"
	}
	return text + " for " + write(d.Seconds)
}

// loopText reports how the load phase was paced.
func (d *Drive) loopText() string {
	text, poisson := "open loop at "+RateText(d.Rate)+"/s", ", Poisson arrivals"
	switch {
	case !open(d) && d.ThinkSeconds <= 0:
		return "closed loop"
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

// staged says that the rate was not one all the time.
func (d *Drive) staged() bool { return strings.Contains(d.RatePlan, " for ") }

// behind reports whether the load phase did not follow the rate that was asked for: more
// was left at its end than a short pause leaves and than the clients were about to
// send, or some was shed.
func (d *Drive) behind() bool {
	return d.Shed > 0 || float64(d.Backlog) > max(behindShare*d.Rate, float64(d.Clients))
}

// follower names who was too slow where a load phase is behind. c, which may be nil,
// says whether that was the client itself.
func follower(c *Client) string {
	if c.bottleneck() != "" {
		return "This client"
	}
	return "The database"
}

// bottleneck is why the client was it; empty where nothing says so.
func (c *Client) bottleneck() string {
	if c == nil {
		return ""
	}
	return c.Bottleneck
}

// backlogText says what the backlog means.
func (d *Drive) backlogText(c *Client) string {
	if !d.behind() {
		return "due, but not started when the load phase ended"
	}
	asked := RateText(d.Rate) + "/s"
	if d.staged() {
		asked = clean(d.RatePlan)
	}
	text := fmt.Sprintf("%s could not follow the rate of %s: %s due and not started when the load phase ended", follower(c), asked, wereCount(d.Backlog))
	if d.MaxBacklog > d.Backlog {
		text += fmt.Sprintf(", up to %s waited at once", group(d.MaxBacklog))
	}
	if d.Shed > 0 {
		text += fmt.Sprintf(", and %s never sent because the queue was full", wereCount(d.Shed))
	}
	return text + "."
}

func wereCount(n uint64) string { return group(n) + " " + were(n) }

// pacingText reports how precisely transactions were sent when they were due.
func (d *Drive) pacingText() string {
	if d.Pacing == nil {
		return ""
	}
	return fmt.Sprintf("the tool's own delay from due to sent: p50 %s ms, p99 %s ms, max %s ms", LatencyText(d.Pacing.P50), LatencyText(d.Pacing.P99), LatencyText(d.Pacing.Max))
}

// clippedText warns of times that the percentiles do not have as they are.
func (d *Drive) clippedText() string {
	if d.Clipped == 0 {
		return ""
	}
	return wereCount(d.Clipped) + " longer than an hour, which the percentiles take for an hour; mean and max have the true time"
}

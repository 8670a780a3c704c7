package report

import (
	"cmp"
	"fmt"
	"strings"
)

// behindShare is the share of a second's arrivals that may be left at the end of a load phase. With more the
// database counts as slower than the rate. Every database has pauses of this length.
const behindShare = 0.1

// Unmeasured reports whether the load phase had a warm-up and nothing after it.
func (d *Drive) Unmeasured() bool { return d.Seconds <= 0 && d.WarmupSeconds > 0 }

// phaseText reports how many clients ran for how long, and how they were paced.
func (d *Drive) phaseText() string {
	length, early := seconds(d.Seconds), ""
	switch {
	case d.Unmeasured():
		length = seconds(d.WarmupSeconds) + " of warm-up, and nothing measured"
	case d.WarmupSeconds > 0:
		length += " after " + seconds(d.WarmupSeconds) + " of warm-up"
	}
	if d.Interrupted {
		early = "ended early by the user"
	}
	if d.StoppedOnViolation {
		early = "ended early by a violation"
	}
	clients := Counted(uint64(max(d.Clients, 0)), "client")
	if d.Workers > 0 {
		clients += " of " + Counted(uint64(d.Workers), "worker")
		if d.WorkersLost > 0 {
			clients += fmt.Sprintf(", %d of them lost", d.WorkersLost)
		}
	}
	return joined(clients+" for "+length, d.loopText(), early)
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

// open reports whether work was due at a rate, independent of the progress of earlier work.
func open(d *Drive) bool { return d.Rate > 0 || d.RatePlan != "" }

// staged reports whether the rate changed.
func (d *Drive) staged() bool { return strings.Contains(d.RatePlan, " for ") }

// behind reports whether the load phase did not follow the requested rate. Then work was shed, or the end
// left more than a short pause does and more than one transaction per client.
func (d *Drive) behind() bool {
	return d.Shed > 0 || float64(d.Backlog) > max(behindShare*d.Rate, float64(d.Clients))
}

// follower names who could not follow a rate: the database, unless the client or its machine was too slow.
func (r *Result) follower() string {
	switch {
	case r.Client.bottleneck() != "":
		return "This client"
	case r.Starved():
		return "This starved host"
	}
	return "The database"
}

// backlogText describes the backlog, and names who could not follow the rate.
func (d *Drive) backlogText(follower string) string {
	if !d.behind() {
		return wereCount(d.Backlog) + " due, but not started when the load phase ended."
	}
	asked := RateText(d.Rate) + "/s"
	if d.staged() {
		asked = clean(d.RatePlan)
	}
	text := fmt.Sprintf("%s could not follow the rate of %s: %s due and not started when the load phase ended", follower, asked, wereCount(d.Backlog))
	if d.MaxBacklog > d.Backlog {
		text += fmt.Sprintf(", up to %s waited at once", Group(d.MaxBacklog))
	}
	if d.Shed > 0 {
		text += fmt.Sprintf(", and %s never sent because the queue was full", wereCount(d.Shed))
	}
	return text + "."
}

// bottleneck returns why the client was the bottleneck, or nothing.
func (c *Client) bottleneck() string { return cmp.Or(c, &Client{}).Bottleneck }

func wereCount(n uint64) string {
	if n == 1 {
		return "1 was"
	}
	return Group(n) + " were"
}

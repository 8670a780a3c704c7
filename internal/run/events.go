package run

import (
	"time"

	"stroppy/internal/report"
)

// Event is something that a cluster's supervisor did by itself, such as a
// fail-over.
type Event struct {
	Time time.Time
	Text string
}

// clusterEvents puts what the cluster's supervisor did since the drive began into the
// result and into the log: an outage ends when it has acted, and a fail-over that
// nobody asked for must not go unseen.
func (c *conductor) clusterEvents() {
	if c.o.Events == nil {
		return
	}
	c.result.ClusterEvents = []report.Event{}
	for _, e := range c.o.Events() {
		at := e.Time.Sub(c.zero)
		if at < 0 {
			continue // while the cluster came up
		}
		c.result.ClusterEvents = append(c.result.ClusterEvents, report.Event{AtSeconds: at.Seconds(), Text: e.Text})
		c.log.Info("the cluster", "at", at.Round(time.Millisecond), "event", e.Text)
	}
}

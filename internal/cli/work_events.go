package cli

import (
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/scenario"
	"stroppy/internal/workload"
	"stroppy/internal/workload/events"
)

// defaultEvents is how many events are appended where nobody says how many, or how
// long: as many as in the study that the workload repeats.
const defaultEvents = 4096

// eventsWork is the workload events.
func eventsWork() kindOfWork {
	return kindOfWork{
		name: scenario.Events, about: "events at the ends of streams, in batches and in pieces; every one is read back",
		bind: func(database db.Database, c *config, loads bool) (workload.Workload, error) {
			c.limitEvents()
			return events.New(database, c.eventsConfig(loads))
		},
		check:  events.CheckDirs,
		checks: events.Checks,
		tables: events.Tables,
		names:  func(h history.Header) naming { return events.NamesOf(h) },
		words:  eventWording,
	}
}

// limitEvents says how much is appended, where nobody has.
func (c *config) limitEvents() {
	_, bounded := c.Rate.Length()
	if c.named["count"] || c.named["duration"] || bounded || c.Count > 0 {
		return
	}
	batch := uint64(max(c.Events.Batch, 1))
	c.Duration, c.Count = 0, (defaultEvents+batch-1)/batch
}

// eventsConfig is the log that the scenario describes. Seed and streams that nobody
// named are left to what the database holds, unless this call loads.
func (c *config) eventsConfig(loads bool) events.Config {
	e := events.Config{
		Clients: c.Clients, Batch: c.Events.Batch, Size: events.Size(c.ValueSize), Fragment: c.Events.Fragment,
		Isolation: c.Isolation, Mode: c.Mode,
	}
	if loads || c.named["seed"] {
		e.Seed = c.Seed
	}
	if e.Streams = c.Events.Streams; e.Streams == 0 && loads {
		e.Streams = uint64(c.Clients)
	}
	return e
}

package dbtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/logs"
	"stroppy/internal/check/text"
	"stroppy/internal/db"
	"stroppy/internal/db/noop"
	"stroppy/internal/history"
	"stroppy/internal/workload"
	"stroppy/internal/workload/events"
)

// fewEvents returns the configuration of a small log in which each client has its own stream.
func fewEvents() events.Config {
	return events.Config{Clients: 8, Seed: 7, Streams: 8, Batch: 3, Size: events.Size{Low: 40, High: 900}, Fragment: 200}
}

// eventsWays returns changes to the configuration of a log, by name. Every database runs events with each of them.
func eventsWays() map[string]func(c *events.Config) {
	return map[string]func(c *events.Config){
		"own streams":      func(*events.Config) {},
		"interactive":      func(c *events.Config) { c.Mode = workload.Interactive },
		"shared streams":   func(c *events.Config) { c.Streams = 2 },
		"more streams":     func(c *events.Config) { c.Streams = 19 },
		"one at a time":    func(c *events.Config) { c.Batch, c.Fragment, c.Size = 1, 0, events.Size{Low: 1024, High: 1024} },
		"the smallest one": func(c *events.Config) { c.Batch, c.Fragment, c.Size = 1, 0, events.Size{Low: 32, High: 32} },
	}
}

// eventsText returns the detail of a check of a log, for failure messages.
func eventsText(r *check.Result) string { return text.Speaker{Words: events.Spec().Words}.Detail(r) }

func newEvents(t *testing.T, database db.Database, c events.Config) *events.Log {
	t.Helper()
	e, err := events.New(database, c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// runEvents runs events once and checks the run.
func runEvents(t *testing.T, database db.Database, c events.Config, count uint64) *trial {
	t.Helper()
	return conduct(t, database, newEvents(t, database, c), c.Isolation, count)
}

// wantForeign fails the test unless three checks are unknown and all others are valid. The three depend on the appends
// of an earlier run whose recording is not given.
func (r *trial) wantForeign(t *testing.T) {
	t.Helper()
	for _, result := range r.results {
		want := check.Valid
		switch result.Name {
		case check.NoGhost, logs.Whole, logs.Order:
			want = check.Unknown
		}
		if result.Status != want {
			t.Errorf("%s is %v: %s", result.Name, result.Status, eventsText(&result.Result))
		}
	}
}

// TestEventsOnNoopAreNotValid checks that a run on a database which stores nothing is not valid.
func TestEventsOnNoopAreNotValid(t *testing.T) {
	t.Parallel()
	for name, change := range eventsWays() {
		t.Run(name, func(t *testing.T) {
			c := fewEvents()
			change(&c)
			r := runEvents(t, noop.Open(), c, 1000)
			if v := checktest.Verdict(r.results); v == check.Valid {
				t.Error("a log that was not stored is valid")
			}
			if n := r.driven.Measurements.Latency.Count; n != 1000 {
				t.Errorf("%d appends were committed", n)
			}
		})
	}
}

// TestEventsResolveLostAnswers checks that look-ups resolve every outcome if a third of the answers is lost or
// refused.
func TestEventsResolveLostAnswers(t *testing.T) {
	t.Parallel()
	for _, streams := range []uint64{2, 8} {
		c := fewEvents()
		c.Streams = streams
		r := runEvents(t, openMemory(t, "memory:?unknown=0.2&abort=0.2"), c, 1500)
		r.wantAllValid(t)
		voids, looked := 0, 0
		r.each(t, func(tx *history.Transaction) {
			switch {
			case tx.Outcome == history.Unknown:
				t.Errorf("%v is unknown", tx.ID)
			case tx.LookedUp:
				looked++
			}
		})
		end, err := history.OpenEnd(r.history())
		if err != nil {
			t.Fatal(err)
		}
		defer end.Close()
		for leg, err := range end.Rows() {
			if err != nil {
				t.Fatal(err)
			}
			if leg.Mark == history.Tombstone {
				voids++
			}
		}
		if voids == 0 || looked == 0 {
			t.Errorf("%d tombstones after %d look-ups, the test needs at least one of each", voids, looked)
		}
	}
}

// eventsMutants maps each planted bug to the check that finds it in a log. The other planted bugs change reads or
// amounts, which a log does not have.
var eventsMutants = map[string]string{
	"lost-update": check.Durable, "lost-ack": check.Durable, "torn": check.Durable, "false-ack-on-crash": check.Durable,
	"ghost": check.NoGhost, "double-apply": logs.Continuous, "phantom-money": logs.Continuous,
}

// TestEventsFindPlantedBugs checks that each planted bug is found by its own check.
func TestEventsFindPlantedBugs(t *testing.T) {
	t.Parallel()
	for _, name := range cases(slices.Sorted(maps.Keys(eventsMutants))...) {
		finder := eventsMutants[name]
		for _, streams := range []uint64{2, 8} {
			t.Run(fmt.Sprintf("%s %d streams", name, streams), func(t *testing.T) {
				c := fewEvents()
				c.Streams = streams
				d := openMemory(t, "memory:?mutant="+name+"&rate=0.01&seed=3")
				r := runEvents(t, d, c, 1000)
				if d.Fired() == 0 {
					t.Fatal("the planted bug never took effect")
				}
				if result := r.status(finder); result.Status != check.Invalid || len(result.Witness) == 0 {
					t.Errorf("%s is %v: %s", finder, result.Status, eventsText(&result.Result))
				}
				if v := checktest.Verdict(r.results); v != check.Invalid {
					t.Errorf("the verdict is %v", v)
				}
			})
		}
	}
}

// TestEventsSecondRunContinuesLog checks a second run with other batches and sizes, alone and together with the first
// run.
func TestEventsSecondRunContinuesLog(t *testing.T) {
	t.Parallel()
	for _, open := range []func(t *testing.T) db.Database{
		func(t *testing.T) db.Database { return openSQLite(t) },
		func(t *testing.T) db.Database { return openMemory(t, "memory:") },
	} {
		database, c := open(t), fewEvents()
		first := runEvents(t, database, c, 100)
		first.wantAllValid(t)
		c.Batch, c.Size, c.Clients, c.Streams, c.Seed = 1, events.Size{Low: 100, High: 100}, 3, 0, 0
		second := newTrial(t, database, newEvents(t, database, c), "")
		second.attach(t)
		second.drive(t, 100)
		second.download(t)
		second.check(t)
		second.wantForeign(t)
		second.checkWith(t, first.dir)
		second.wantAllValid(t)
		if why := second.results[0].Why; why != (fact.LogAppends{Acknowledged: 200}) {
			t.Errorf("together: %+v", why)
		}
	}
}

// TestEventsSplitOrRefuseLargeValues checks that values beyond a limit of the database are split, or refused before
// the load.
func TestEventsSplitOrRefuseLargeValues(t *testing.T) {
	t.Parallel()
	c := fewEvents()
	c.Fragment, c.Batch, c.Size, c.Clients, c.Streams = 0, 1, events.Size{Low: 200_000, High: 300_000}, 2, 2
	t.Run("MariaDB splits", func(t *testing.T) {
		d, _ := openSharedMariaDB(t)
		r := runEvents(t, d, c, 20)
		r.wantAllValid(t)
	})
	t.Run("PostgreSQL holds", func(t *testing.T) {
		d, _ := openPostgres(t)
		r := runEvents(t, d, c, 20)
		r.wantAllValid(t)
	})
	t.Run("etcd", func(t *testing.T) {
		useEtcd(t)
		d := openEtcd(t)
		r := runEvents(t, d, c, 20)
		r.wantAllValid(t)
		wide := c
		wide.Size.High = 1_499_000
		r = runEvents(t, d, wide, 4)
		r.wantAllValid(t)
		for want, change := range map[string]func(c *events.Config){
			"takes at most 1500000:":           func(c *events.Config) { c.Batch = 6 },
			"allows 100 per transaction":       func(c *events.Config) { c.Batch, c.Fragment = 4, 10_000 },
			"holds at most":                    func(c *events.Config) { c.Fragment = 2_000_000 },
			"take pipelined or interactive":    func(c *events.Config) { c.Mode = workload.Procedure },
			"commits of more than 268435456 b": func(c *events.Config) { c.Batch, c.Size.High = 1000, 1<<24 },
		} {
			refused := c
			change(&refused)
			if _, err := events.New(d, refused); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, without %q", err, want)
			}
		}
	})
}

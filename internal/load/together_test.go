package load

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"stroppy/internal/history"
)

// TestPartsOfOneLoadPhase checks that clients in several processes do the same at the same times as in one
// process.
func TestPartsOfOneLoadPhase(t *testing.T) {
	const clients = 7
	for _, o := range []Options{
		{Count: 1003}, {Count: 5}, {Plan: constant(200), Duration: 3 * time.Second}, {Plan: constant(90), Count: 100, MaxBacklog: 7},
	} {
		due := func(cuts ...int) map[history.ID]int64 {
			all, mu := map[history.ID]int64{}, sync.Mutex{}
			first := 0
			for _, end := range append(cuts, clients) {
				synctest.Test(t, func(t *testing.T) {
					part := o
					part.First, part.All = first, clients
					var some []*standIn
					for range end - first {
						some = append(some, &standIn{})
					}
					d := newDrill(t, part, some...)
					for i, c := range some {
						c.number = uint64(first + i)
					}
					err := d.options.History.Close()
					if err != nil {
						t.Fatal(err)
					}
					if d.options.History, err = history.Create(d.dir+"/part", history.Header{Run: 1}, clients); err != nil {
						t.Fatal(err)
					}
					d.dir += "/part"
					d.driver = New(d.options)
					d.driver.precise = false
					_, list, err := d.run(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					mu.Lock()
					defer mu.Unlock()
					for _, tx := range list {
						all[tx.ID] = tx.Due - d.driver.begin
						if o.Plan.Closed() {
							all[tx.ID] = 0 // as fast as answers come
						}
					}
				})
				first = end
			}
			return all
		}
		whole := due()
		for _, cuts := range [][]int{{3}, {1, 6}, {1, 2, 3, 4, 5, 6}} {
			if parts := due(cuts...); !reflect.DeepEqual(parts, whole) {
				t.Errorf("%d transactions at the rate %q: cut at %v there are %d, or at other times", len(whole), o.Plan.String(), cuts, len(parts))
			}
		}
		if o.Count > 0 && len(whole) != int(o.Count) {
			t.Errorf("%d transactions were asked for, and %d done", o.Count, len(whole))
		}
	}
}

// TestPartsMustFitTheLoadPhase checks that the number of clients cannot exceed the load phase's.
func TestPartsMustFitTheLoadPhase(t *testing.T) {
	for _, wrong := range []Options{{First: -1, All: 3}, {First: 2, All: 3}, {First: 1}} {
		wrong.Count = 1
		d := newDrill(t, wrong, &standIn{}, &standIn{})
		if _, _, err := d.run(t.Context()); err == nil {
			t.Errorf("two clients from %d on of %d are taken", wrong.First, wrong.All)
		}
	}
}

// TestResultsOfProcessesAddUp checks that the results and snapshots of several processes add up.
func TestResultsOfProcessesAddUp(t *testing.T) {
	run := func(clients int) (*Result, Snapshot) {
		var some []*standIn
		for i := range clients {
			c := &standIn{}
			if i%2 == 1 {
				c.attempt = script(history.Rejected, errAborted, errAborted, errUnknown)
			}
			some = append(some, c)
		}
		d := newDrill(t, Options{Count: uint64(100 * clients), Retries: 5, Kinds: []history.Declared{history.Kind(kindTransfer).Named("transfer")}}, some...)
		r, _, err := d.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r, d.driver.Snapshot()
	}
	one, first := run(2)
	two, second := run(4)
	var all Result
	var both Snapshot
	for _, part := range []*Result{one, two} {
		all.Join(part)
	}
	for _, part := range []*Snapshot{&first, &second} {
		both.Join(part)
	}
	if all.Measurements.Latency.Count != one.Measurements.Latency.Count+two.Measurements.Latency.Count ||
		all.Conflicts != 6 || all.Retries != one.Retries+two.Retries || all.Elapsed != max(one.Elapsed, two.Elapsed) ||
		all.Unsent[0] != one.Unsent[0]+two.Unsent[0] {
		t.Errorf("joined they are %+v", all)
	}
	if got := fmt.Sprint(len(all.Errors), all.Errors[0].Count, all.Errors[1].Count); got != "2 6 3" {
		t.Errorf("of the errors there are %s: %+v", got, all.Errors)
	}
	c := both.Counters
	if c.Done != 600 || c.Committed+c.Rejected != 600 || len(both.Latencies) != 1 || both.Latencies["transfer"].Count() != c.Committed || both.Errors["aborted"] != 6 ||
		len(both.Kinds) != 1 || both.Kinds[0].Committed != c.Committed || both.Kinds[0].Rejected != c.Rejected {
		t.Errorf("the snapshots are %+v", both)
	}
}

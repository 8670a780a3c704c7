package load

import (
	"sync"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/stats"
)

// view is the state of a running load phase for observers. It reads the clients' counters directly, so that a
// hanging client hides nothing.
type view struct {
	mu      sync.Mutex
	started bool
	stopped int64     // clock from which nothing arrives any more
	arrived []arrived // by client of an open loop

	Timeline
}

// arrived counts the arrivals of one client.
type arrived struct {
	source
	n, room uint64
}

func (v *view) begin(d *Driver) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.started, v.stopped = true, never
	if d.options.Plan.Closed() {
		return
	}
	for i := range d.options.Clients {
		v.arrived = append(v.arrived, arrived{source: newSource(&d.options, d.workers[i].number, d.begin, d.end), room: uint64(d.options.room(d.workers[i].number))})
	}
}

// stop must be called when nothing new is started.
func (v *view) stop(at int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stopped = min(v.stopped, at)
}

// queued returns the numbers of waiting and of shed transactions, including those that a hanging client has
// not seen yet.
func (v *view) queued(d *Driver) (backlog, shed uint64) {
	now := min(d.clock(), v.stopped)
	for i := range v.arrived {
		// Arrivals are read last, so that their number is never less than the number sent.
		c := &d.workers[i].counters
		lost, sent := c.shed.Load(), c.sent.Load()
		a := &v.arrived[i]
		a.n += a.skip(now)
		waiting := max(a.n, lost+sent) - lost - sent
		backlog, shed = backlog+min(waiting, a.room), shed+lost+max(waiting, a.room)-a.room
	}
	return backlog, shed
}

// Live returns the counters of a load phase. Any goroutine may call it at any time.
func (d *Driver) Live() Counters {
	d.view.mu.Lock()
	defer d.view.mu.Unlock()
	return d.counters()
}

func (d *Driver) counters() (c Counters) {
	for _, w := range d.workers[:len(d.options.Clients)] {
		n := &w.counters
		c.Committed += n.outcomes[history.Committed].Load()
		c.Rejected += n.outcomes[history.Rejected].Load()
		c.Aborted += n.outcomes[history.Aborted].Load()
		c.Unknown += n.outcomes[history.Unknown].Load()
		c.Conflicts += n.conflicts.Load()
		c.Retries += n.retries.Load()
		c.Reconnects += n.reconnects.Load()
		if n.downSince.Load() > 0 {
			c.Reconnecting++
		}
	}
	c.Done = c.Committed + c.Rejected + c.Aborted + c.Unknown
	if d.view.started {
		c.Backlog, c.Shed = d.view.queued(d)
	}
	return c
}

// KindCount counts the transactions of one kind by outcome.
type KindCount struct {
	Kind                                  string // empty: of no declared kind
	Committed, Rejected, Aborted, Unknown uint64
}

// Kinds returns the counts so far by kind, including the warm-up. Declared foreground kinds are present even
// if their counts are 0. Any goroutine may call it at any time.
func (d *Driver) Kinds() []KindCount {
	list := make([]KindCount, len(d.options.Kinds)+1)
	for i, declared := range d.options.Kinds {
		list[i+1].Kind = declared.Name
	}
	for _, w := range d.workers[:len(d.options.Clients)] {
		for i := range list {
			n, of := &w.counters.kinds[i], &list[i]
			of.Committed += n[history.Committed].Load()
			of.Rejected += n[history.Rejected].Load()
			of.Aborted += n[history.Aborted].Load()
			of.Unknown += n[history.Unknown].Load()
		}
	}
	shown := list[:0]
	for i, of := range list {
		if declared := i > 0 && !d.options.Kinds[i-1].Background; declared || of != (KindCount{Kind: of.Kind}) {
			shown = append(shown, of)
		}
	}
	return shown
}

// Errors returns the number of errors so far by class name, including background clients. Any goroutine may
// call it at any time.
func (d *Driver) Errors() map[string]uint64 {
	all := map[string]uint64{}
	for _, w := range d.workers {
		for class := range w.counters.classes {
			all[db.Class(class).String()] += w.counters.classes[class].Load()
		}
	}
	return all
}

// Latencies returns the latencies from the intended start time of all transactions committed so far,
// including the warm-up. Any goroutine may call it at any time.
func (d *Driver) Latencies() *stats.Reading {
	return stats.Joined(d.KindLatencies())
}

// KindLatencies returns the latencies by kind, for kinds with commits. The empty kind stands for undeclared
// kinds.
func (d *Driver) KindLatencies() map[string]*stats.Reading {
	by := map[string]*stats.Reading{}
	for i := range len(d.options.Kinds) + 1 {
		r, kind := new(stats.Reading), ""
		for _, w := range d.workers[:len(d.options.Clients)] {
			r.Read(&w.live[i])
		}
		if i > 0 {
			kind = d.options.Kinds[i-1].Name
		}
		if r.Count() > 0 {
			by[kind] = r
		}
	}
	return by
}

// Seconds returns the whole seconds of the load phase that have passed, counted from Options.Start, from the
// given one on. Each holds what the clients did, including the warm-up, and the number of transactions that
// waited at its end. Only the last hour is kept. Any goroutine may call it at any time.
//
// The values are read from the running clients after each second, some milliseconds late on a busy machine,
// and have two digits. The series of the history is exact.
func (d *Driver) Seconds(from int) []stats.Second {
	d.view.mu.Lock()
	defer d.view.mu.Unlock()
	return d.view.Since(from)
}

// Second returns the last whole second, like Seconds. It reports false before the first second has passed.
func (d *Driver) Second() (s stats.Second, passed bool) {
	d.view.mu.Lock()
	defer d.view.mu.Unlock()
	return d.view.Last()
}

// takeSecond adds the second that has just passed. If the machine stood still, everything done meanwhile
// counts in this second.
func (d *Driver) takeSecond(second int) {
	d.view.mu.Lock()
	defer d.view.mu.Unlock()
	d.view.Add(second, d.counters(), d.Latencies)
}

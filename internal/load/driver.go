package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/stats"
)

const (
	// grace is the time in which running transactions may learn their outcome after no new ones are started
	// and Options.Ended has returned. Then they are cancelled.
	grace        = 10 * time.Second
	resolveLimit = 30 * time.Second       // of the look-up of one transaction
	watchEvery   = 100 * time.Millisecond // for the health of the history and the clients
)

// ErrUnreachable ends a load phase whose database was unreachable for longer than Options.GiveUp.
var ErrUnreachable = errors.New("no client could reach the database")

// Driver runs the clients once.
type Driver struct {
	options Options
	workers []*worker // the clients, then those in the background
	precise bool      // pace with an alarm where there is one

	begin int64 // clock when Run began
	end   int64 // clock from which no transaction is started
	poll  time.Duration
	view  view

	threads int // see Result.Threads

	// These contexts end the load phase in three ways. After stopping, clients begin no transaction, retry
	// nothing and wait for no server. stoppingBackground does the same for background clients. aborting
	// cancels every call.
	stopping, stoppingBackground, aborting context.Context
	stop, stopBackground, abort            context.CancelFunc

	timers struct{ end, grace *time.Timer } // for the end of the load phase, and of the grace
	ended  chan struct{}                    // closed when Options.Ended has returned; nil before it is called

	abortAsked   context.Context // done once Abort was called
	requestAbort context.CancelFunc

	sheds sheds

	slots [256]uint8 // by history.Kind: where counters.kinds and worker.live have it; 0 of one that is not declared

	mu        sync.Mutex
	failure   error // the first
	stoppedAt int64 // clock when stopping was done; math.MaxInt64 before
}

// New returns a driver for one Run. Run reports invalid options.
func New(options Options) *Driver {
	d := &Driver{options: options, precise: true, stoppedAt: math.MaxInt64, poll: watchEvery}
	d.abortAsked, d.requestAbort = context.WithCancel(context.Background())
	for i, kind := range options.Kinds {
		d.slots[kind.Number] = uint8(i + 1)
	}
	for i, c := range options.Clients {
		d.workers = append(d.workers, newWorker(d, options.First+i, c, 0))
	}
	for i, b := range options.Background {
		d.workers = append(d.workers, newWorker(d, options.all()+i, b.Client, b.Every))
		own := d.workers[len(d.workers)-1]
		own.after, own.wake = b.After, b.Wake
	}
	return d
}

// Run runs the clients until the duration or the count is reached, ctx is cancelled, or an error occurs that
// no retry can resolve. Running transactions finish, everything is recorded, and the clients stay open.
//
// A cancelled ctx is not an error; see Result.Interrupted. With an error, the result holds the measurements
// until then; it is nil only for invalid options.
func (d *Driver) Run(ctx context.Context) (*Result, error) {
	if err := d.options.validate(); err != nil {
		return nil, err
	}
	d.aborting, d.abort = context.WithCancel(context.WithoutCancel(ctx))
	d.stopping, d.stop = context.WithCancel(ctx)
	d.stoppingBackground, d.stopBackground = context.WithCancel(d.stopping)
	defer d.abort()
	defer d.stop()
	defer d.stopBackground()
	if g := d.options.GiveUp; g > 0 {
		d.poll = max(min(d.poll, g/10), time.Millisecond)
	}

	defer SaveMemory(len(d.options.Clients))()
	cpu, _ := Usage()
	d.begin = d.clock()
	d.end = math.MaxInt64
	if d.options.Duration > 0 {
		d.end = d.begin + int64(d.options.Duration)
	}
	finish := d.runWorkers()
	return d.result(ctx, cpu, finish)
}

// Abort ends the load phase immediately, or as soon as Run begins. Running transactions are recorded as
// unknown. Any goroutine may call it at any time.
func (d *Driver) Abort() { d.requestAbort() }

// warm returns the clock from which measurements count.
func (d *Driver) warm() int64 { return d.begin + int64(d.options.Warmup) }

func (d *Driver) clock() int64 { return int64(time.Since(d.options.Start)) }

// runWorkers runs all workers and returns the clock at which the last client ended.
func (d *Driver) runWorkers() (finish int64) {
	clients := len(d.options.Clients)
	d.timers.end, d.timers.grace = time.NewTimer(time.Duration(d.end-d.clock())), time.NewTimer(math.MaxInt64)
	defer d.timers.end.Stop()
	defer d.timers.grace.Stop()
	d.view.begin(d)
	endSampling := EachSecond(d.options.Start, d.takeSecond)
	defer endSampling()
	if d.options.Alone {
		ticker := time.NewTicker(adaptEvery)
		defer ticker.Stop()
		restore := chooseThreads(threadsWindow(&d.options), ticker.C, sampleUsage)
		defer func() { d.threads = restore() }()
	}
	background := start(d.workers[clients:])
	d.watch(start(d.workers[:clients]))
	finish = d.clock()
	d.view.stop(finish)
	if d.stopping.Err() != nil {
		d.markStopped()
	}
	d.over()
	d.stopBackground()
	d.watch(background)
	<-d.ended
	return finish
}

// over calls Options.Ended once, after nothing new is started.
func (d *Driver) over() {
	if d.ended != nil {
		return
	}
	d.ended = make(chan struct{})
	go func() {
		defer close(d.ended)
		if f := d.options.Ended; f != nil {
			f()
		}
	}()
}

// start runs the workers and closes the channel when all have ended.
func start(workers []*worker) <-chan struct{} {
	var group sync.WaitGroup
	for _, w := range workers {
		group.Go(w.run)
	}
	ended := make(chan struct{})
	go func() {
		group.Wait()
		close(ended)
	}()
	return ended
}

// watch waits for the workers, and stops them when the load phase must end.
func (d *Driver) watch(workers <-chan struct{}) {
	ticker := time.NewTicker(d.poll)
	defer ticker.Stop()
	stopping, abortAsked, ended := d.stopping.Done(), d.abortAsked.Done(), d.ended
	contact := contact{at: d.clock()}
	for {
		select {
		case <-workers:
			return
		case <-stopping:
			stopping = nil
			d.markStopped()
			d.over()
			ended = d.ended
		case <-d.timers.end.C:
			d.over()
			ended = d.ended
		case <-ended:
			ended = nil
			d.timers.grace.Reset(grace)
		case <-abortAsked:
			abortAsked = nil
			d.stop()
			d.abort()
		case <-d.timers.grace.C:
			d.stop()
			d.abort()
		case <-ticker.C:
			d.checkHealth(&contact)
		}
	}
}

// markStopped records when stopping was done.
func (d *Driver) markStopped() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stoppedAt == math.MaxInt64 {
		d.stoppedAt = d.clock()
		d.view.stop(d.stoppedAt)
	}
}

// fail ends the load phase with err, unless it has ended already.
func (d *Driver) fail(err error) {
	d.mu.Lock()
	if d.failure == nil {
		d.failure = err
	}
	d.mu.Unlock()
	d.stop()
}

// failNow is like fail, but does not let transactions finish.
func (d *Driver) failNow(err error) {
	d.fail(err)
	d.abort()
}

// contact records when the database last answered any client.
type contact struct {
	answers uint64
	at      int64
}

func (d *Driver) checkHealth(c *contact) {
	switch err := d.options.History.Err(); {
	case err != nil:
		d.failNow(err)
		return
	case d.options.GiveUp == 0 || d.ended != nil: // after the load phase's end nothing is waited for but the grace
		return
	}
	now := d.clock()
	var answers uint64
	lost := int64(math.MaxInt64) // since when the first of those that wait has waited
	for _, w := range d.workers[:len(d.options.Clients)] {
		n := &w.counters
		answers += n.outcomes[history.Committed].Load() + n.outcomes[history.Rejected].Load() + n.conflicts.Load()
		if since := n.downSince.Load(); since > 0 {
			lost = min(lost, since)
		}
	}
	if answers != c.answers || lost == math.MaxInt64 {
		*c = contact{answers, now}
		return
	}
	if away := time.Duration(now - max(c.at, lost)); away >= d.options.GiveUp {
		d.failNow(fmt.Errorf("generate load: %w for %v: see whether its servers run and can be reached from here, or give it longer",
			ErrUnreachable, away.Round(time.Millisecond)))
	}
}

// result collects the counts of the workers, which must have ended.
func (d *Driver) result(ctx context.Context, cpu float64, finish int64) (*Result, error) {
	if err := d.options.History.Err(); err != nil {
		d.fail(err)
	}
	r := &Result{Errors: mergeErrors(d.workers)}
	now, rss := Usage()
	r.CPUSeconds, r.MaxRSSBytes, r.Threads = now-cpu, rss, d.threads

	stopped := min(d.end, d.stoppedAt, finish)
	r.Unsent = make([]uint64, max(stopped-1, 0)/int64(time.Second)+1)
	known, cut := stopped, false
	var recorders []*stats.Recorder
	c := d.Live()
	r.Conflicts, r.Retries, r.Reconnects, r.Unresolved = c.Conflicts, c.Retries, c.Reconnects, c.Unknown
	for _, w := range d.workers[:len(d.options.Clients)] {
		if w.queue != nil {
			w.last = stopped - 1
			w.admit()
			left, early := w.queue.unsent(d.warm(), stopped, r)
			shed := w.counters.shed.Load()
			if !w.warm {
				w.early = shed
			}
			r.Backlog, r.Shed, r.WarmupUnsent = r.Backlog+left, r.Shed+shed-w.early, r.WarmupUnsent+early+w.early
			r.Skipped += w.skipped
		}
		known, cut = max(known, w.known), cut || w.cut
		recorders = append(recorders, w.recorder)
	}
	for second, n := range d.sheds.bySecond { // they were due before its end, and would have waited since at least
		r.Never.Add(time.Duration(stopped-int64(second+1)*int64(time.Second)), n)
	}
	r.Measurements = stats.Merge(recorders...)
	r.Elapsed = max(0, time.Duration(known-d.begin)-d.options.Warmup)
	r.Interrupted = cut && d.failure == nil && ctx.Err() != nil
	return r, d.failure
}

package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"stroppy/internal/load"
	"stroppy/internal/report"
	"stroppy/internal/stats"
)

const (
	// startIn is the time between the order to start and the beginning of the load phase. It is long enough
	// for every worker to receive the order.
	startIn = 5 * time.Millisecond
	// abortLimit limits the time for workers to end after an abort.
	abortLimit = 30 * time.Second
)

// phase is the load phase of all workers until everything was collected.
type phase struct {
	*Coordinator
	load    load.Options
	abort   context.Context
	cancel  context.CancelFunc
	left    map[*member]bool // workers that are not lost
	busy    map[*member]bool // workers that may still start something
	ended   chan struct{}    // closed when Options.Ended has returned; nil before it is called
	stopped bool             // the workers have the order to stop
	lost    int              // workers
	failure error            // the first

	mu       sync.Mutex
	timeline load.Timeline
}

// Prepare sets the options of the connected workers' load phase, which Run runs. It uses Start, History, Ended and
// Connected.
func (c *Coordinator) Prepare(o load.Options) {
	c.phase = &phase{Coordinator: c, load: o, left: map[*member]bool{}, busy: map[*member]bool{}}
	c.phase.abort, c.phase.cancel = context.WithCancel(context.Background())
	for _, w := range c.members {
		c.phase.left[w], c.phase.busy[w] = true, true
	}
}

// Abort is like load.Driver.Abort.
func (c *Coordinator) Abort() { c.phase.cancel() }

// Run runs the load phase and returns when all workers have ended it. A lost worker ends it with an error.
// Collect must be called in any case.
func (c *Coordinator) Run(ctx context.Context) (*load.Result, error) {
	p := c.phase
	defer p.cancel()
	cpu, _ := load.Usage()
	for _, w := range c.members {
		w.zero = c.zeroOf(w, p.load.Start)
	}
	in := time.Since(p.load.Start) + startIn
	for _, w := range c.members {
		begin := start{w.zero, in}
		if err := w.channel.send(&message{Start: &begin}); err != nil {
			p.lose(w, w.lost(err))
		}
	}
	endSampling := load.EachSecond(p.load.Start, p.takeSecond)
	p.watch(ctx)
	endSampling()
	p.over()
	<-p.ended
	var result *load.Result
	for _, w := range c.members {
		if w.result != nil {
			if result == nil {
				result = new(load.Result)
			}
			result.Join(w.result)
		}
	}
	if now, rss := load.Usage(); result != nil {
		result.CPUSeconds += now - cpu
		result.MaxRSSBytes += rss
	}
	return result, p.failure
}

// Collect copies the recordings of all workers to Options.History, which stays incomplete if one of them is,
// and then ends the workers. Call it after Run.
func (c *Coordinator) Collect() error {
	p := c.phase
	if p == nil { // Prepare was not called
		return nil
	}
	p.order(&message{Collect: true})
	began := time.Now()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for slices.ContainsFunc(c.members, func(w *member) bool { return p.left[w] && !w.upload.is().Whole }) {
		select {
		case e := <-c.events:
			p.take(&e)
		case <-ticker.C:
			p.loseIdle(began)
		}
	}
	var lacking error
	for _, w := range c.members {
		from := filepath.Dir(w.upload.path)
		if !w.upload.is().Whole && w.process != nil { // what a lost one has left on this machine
			from = filepath.Join(c.folder(w.number), OwnFolder)
		}
		if err := c.copyTo(p.load.History, w, from, p.load.Start); err != nil && !w.cut {
			lacking = cmp.Or(lacking, p.failure, fmt.Errorf("collect the recording of %v: %w", w, err))
		}
	}
	if lacking != nil {
		p.load.History.Fail(lacking)
	}
	c.whole = true
	p.order(&message{Done: true})
	return lacking
}

// loseIdle gives up workers whose uploads make no progress.
func (p *phase) loseIdle(since time.Time) {
	for w := range p.left {
		if !w.upload.is().Whole && w.upload.stoodStill(since) > p.resume {
			p.lose(w, fmt.Errorf("collect the recording of %v: nothing of it has come for %v, after %d bytes", w, p.resume, w.upload.is().Offset))
		}
	}
}

// waiting reports whether a worker has not reported its result yet.
func (p *phase) waiting() bool {
	for w := range p.left {
		if w.result == nil {
			return true
		}
	}
	return false
}

// watch handles the workers' messages until each has ended the load phase.
func (p *phase) watch(ctx context.Context) {
	stop, abort := ctx.Done(), p.abort.Done()
	var limit <-chan time.Time
	var ended <-chan struct{}
	for p.waiting() {
		if len(p.busy) == 0 && p.ended == nil {
			p.over()
			ended = p.ended
		}
		select {
		case <-stop:
			stop = nil
			p.stop()
		case <-abort:
			abort, limit = nil, time.After(abortLimit)
			p.order(&message{Abort: true})
		case <-limit:
			for w := range p.left {
				p.lose(w, fmt.Errorf("%v did not end within %v after the load phase", w, abortLimit))
			}
		case <-ended:
			ended = nil
			p.order(&message{Release: true})
		case e := <-p.events:
			p.take(&e)
		}
	}
}

// take handles one message of a worker.
func (p *phase) take(e *event) {
	w := e.from
	if e.lost != nil {
		// A worker that joined by itself may continue its upload on another connection, unless it has sent
		// something invalid.
		if w.process != nil || w.result == nil || errors.Is(e.lost, errPiece) {
			p.lose(w, e.lost)
		}
		return
	}
	switch m := &e.message; {
	case m.Moved != nil:
		if p.load.Connected != nil {
			p.load.Connected(m.Moved.Client, p.onAxis(w, m.Moved.At, p.load.Start), m.Moved.Server)
		}
	case m.Over:
		delete(p.busy, w)
	case m.Result != nil:
		delete(p.busy, w)
		w.result = m.Result
		if m.Failed != "" {
			p.fail(fmt.Errorf("%v: %s", w, m.Failed))
		}
	case m.Failed != "":
		p.lose(w, fmt.Errorf("%v: %s", w, m.Failed))
	}
}

// lose gives a worker up. The load phase ends if too many are lost.
func (p *phase) lose(w *member, err error) {
	if !p.left[w] {
		return
	}
	delete(p.left, w)
	delete(p.busy, w)
	_ = w.channel.Close()
	o := &p.options
	if p.lost++; p.lost > o.Lost || len(p.left) == 0 {
		p.fail(err)
		return
	}
	w.cut = true
	if o.OnLost != nil {
		o.OnLost(err)
	}
}

// fail ends the load phase with an error.
func (p *phase) fail(err error) {
	if p.failure == nil {
		p.failure = err
	}
	p.stop()
}

func (p *phase) stop() {
	if !p.stopped {
		p.stopped = true
		p.order(&message{Stop: true})
	}
}

// order sends a message to all remaining workers. If one does not accept it, its listener reports the loss.
func (p *phase) order(m *message) {
	for w := range p.left {
		_ = w.channel.send(m)
	}
}

// over calls Options.Ended once.
func (p *phase) over() {
	if p.ended != nil {
		return
	}
	p.ended = make(chan struct{})
	go func() {
		defer close(p.ended)
		if f := p.load.Ended; f != nil {
			f()
		}
	}()
}

// takeSecond records a whole second that has passed.
func (p *phase) takeSecond(second int) {
	all := p.snapshot()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timeline.Add(second, all.Counters, func() *stats.Reading { return stats.Joined(all.Latencies) })
}

// snapshot returns the sum of what the workers have reported.
func (c *Coordinator) snapshot() *load.Snapshot {
	all := &load.Snapshot{Errors: map[string]uint64{}, Latencies: map[string]*stats.Reading{}}
	for _, w := range c.members {
		w.mu.Lock()
		all.Join(&w.status)
		w.mu.Unlock()
	}
	return all
}

// Live, Kinds, Errors, KindLatencies, Seconds and Second have the meaning of load.Driver's methods. They use the
// workers' last reports, which are at most about a tenth of a second old.
func (c *Coordinator) Live() load.Counters { return c.snapshot().Counters }

func (c *Coordinator) Kinds() []load.KindCount { return c.snapshot().Kinds }

func (c *Coordinator) Errors() map[string]uint64 { return c.snapshot().Errors }

func (c *Coordinator) KindLatencies() map[string]*stats.Reading { return c.snapshot().Latencies }

func (c *Coordinator) Seconds(from int) []stats.Second {
	c.phase.mu.Lock()
	defer c.phase.mu.Unlock()
	return c.phase.timeline.Since(from)
}

func (c *Coordinator) Second() (stats.Second, bool) {
	c.phase.mu.Lock()
	defer c.phase.mu.Unlock()
	return c.phase.timeline.Last()
}

// Shares returns the cost of each worker whose result has arrived. Call it after Run.
func (c *Coordinator) Shares() (list []report.Worker) {
	for _, w := range c.members {
		r := w.result
		if r == nil {
			continue
		}
		share := report.Worker{Clients: w.clients}
		if r.CPUSeconds > 0 {
			share.CPUSeconds = &r.CPUSeconds
		}
		if r.MaxRSSBytes > 0 {
			share.MaxRSSBytes = &r.MaxRSSBytes
		}
		if r.Threads > 0 {
			share.Threads = new(float64(r.Threads))
		}
		list = append(list, share)
	}
	return list
}

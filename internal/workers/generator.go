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
	"stroppy/internal/stats"
)

const (
	// startIn is the time between the order to start and the beginning of the load phase. It is long enough
	// for every worker to receive the order.
	startIn = 5 * time.Millisecond
	// abortLimit limits the time for workers to end after an abort.
	abortLimit = 30 * time.Second
)

// Generator runs the load phase of all workers, like load.Driver for one process.
type Generator struct {
	coordinator *Coordinator
	options     load.Options
	abort       context.Context
	cancel      context.CancelFunc
	phase       *phase // once Run has begun

	mu       sync.Mutex
	timeline load.Timeline
}

// Generator returns the load phase of the connected workers. It uses Start, History, Ended and Connected of
// the options.
func (c *Coordinator) Generator(o load.Options) *Generator {
	g := &Generator{coordinator: c, options: o}
	g.abort, g.cancel = context.WithCancel(context.Background())
	return g
}

// Abort is like load.Driver.Abort.
func (g *Generator) Abort() { g.cancel() }

// phase is the state of the load phase until everything was collected.
type phase struct {
	g       *Generator
	left    map[*member]bool // workers that are not lost
	busy    map[*member]bool // workers that may still start something
	ended   chan struct{}    // closed when Options.Ended has returned; nil before it is called
	stopped bool             // the workers have the order to stop
	lost    int              // workers
	failure error            // the first
}

// Run runs the load phase and returns when all workers have ended it. A lost worker ends it with an error.
// Collect must be called in any case.
func (g *Generator) Run(ctx context.Context) (*load.Result, error) {
	defer g.cancel()
	cpu, _ := load.Usage()
	p := &phase{g: g, left: map[*member]bool{}, busy: map[*member]bool{}}
	g.phase = p
	for _, w := range g.coordinator.members {
		p.left[w], p.busy[w] = true, true
		w.zero = g.coordinator.zeroOf(w, g.options.Start)
	}
	in := time.Since(g.options.Start) + startIn
	for _, w := range g.coordinator.members {
		begin := start{w.zero, in}
		if err := w.channel.send(&message{Start: &begin}); err != nil {
			p.lose(w, w.lost(err))
		}
	}
	endSampling := load.EachSecond(g.options.Start, g.takeSecond)
	p.watch(ctx)
	endSampling()
	p.over()
	<-p.ended
	var result *load.Result
	for _, w := range g.coordinator.members {
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
func (g *Generator) Collect() error {
	p := g.phase
	if p == nil { // Run was not called
		return nil
	}
	p.order(&message{Collect: true})
	began := time.Now()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for slices.ContainsFunc(g.coordinator.members, func(w *member) bool { return p.left[w] && !w.upload.is().Whole }) {
		select {
		case e := <-g.coordinator.events:
			p.take(&e)
		case <-ticker.C:
			p.loseIdle(began)
		}
	}
	var lacking error
	for _, w := range g.coordinator.members {
		from := filepath.Dir(w.upload.path)
		if !w.upload.is().Whole && w.process != nil { // what a lost one has left on this machine
			from = filepath.Join(g.coordinator.folder(w.number), OwnFolder)
		}
		if err := g.coordinator.copyTo(g.options.History, w, from, g.options.Start); err != nil && !w.cut {
			lacking = cmp.Or(lacking, p.failure, fmt.Errorf("collect the recording of %v: %w", w, err))
		}
	}
	if lacking != nil {
		g.options.History.Fail(lacking)
	}
	g.coordinator.whole = true
	p.order(&message{Done: true})
	return lacking
}

// loseIdle gives up workers whose uploads make no progress.
func (p *phase) loseIdle(since time.Time) {
	for w := range p.left {
		if !w.upload.is().Whole && w.upload.stoodStill(since) > p.g.coordinator.resume {
			p.lose(w, fmt.Errorf("collect the recording of %v: nothing of it has come for %v, after %d bytes", w, p.g.coordinator.resume, w.upload.is().Offset))
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
	stop, abort := ctx.Done(), p.g.abort.Done()
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
		case e := <-p.g.coordinator.events:
			p.take(&e)
		}
	}
}

// take handles one message of a worker.
func (p *phase) take(e *event) {
	w := e.from
	if e.lost != nil {
		// A worker that joined by itself may continue its upload on another connection.
		if w.process != nil || w.result == nil || !w.resumes(e.lost) {
			p.lose(w, e.lost)
		}
		return
	}
	switch m := &e.message; {
	case m.Moved != nil:
		if p.g.options.Connected != nil {
			p.g.options.Connected(m.Moved.Client, p.g.coordinator.onAxis(w, m.Moved.At, p.g.options.Start), m.Moved.Server)
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

// resumes reports whether a worker whose connection ended may join again: it had sent nothing invalid.
func (w *member) resumes(lost error) bool { return !errors.Is(lost, errPiece) }

// lose gives a worker up. The load phase ends if too many are lost.
func (p *phase) lose(w *member, err error) {
	if !p.left[w] {
		return
	}
	delete(p.left, w)
	delete(p.busy, w)
	_ = w.channel.Close()
	o := &p.g.coordinator.options
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
		if f := p.g.options.Ended; f != nil {
			f()
		}
	}()
}

// takeSecond records a whole second that has passed.
func (g *Generator) takeSecond(second int) {
	all := g.snapshot()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.timeline.Add(second, all.Counters, func() *stats.Reading { return stats.Joined(all.Latencies) })
}

// snapshot returns the sum of what the workers have reported.
func (g *Generator) snapshot() *load.Snapshot {
	all := &load.Snapshot{Errors: map[string]uint64{}, Latencies: map[string]*stats.Reading{}}
	for _, w := range g.coordinator.members {
		w.mu.Lock()
		all.Join(&w.status)
		w.mu.Unlock()
	}
	return all
}

// Live, Kinds, Errors, KindLatencies, Seconds and Second have the meaning of load.Driver's methods. They use the
// workers' last reports, which are at most about a tenth of a second old.
func (g *Generator) Live() load.Counters { return g.snapshot().Counters }

func (g *Generator) Kinds() []load.KindCount { return g.snapshot().Kinds }

func (g *Generator) Errors() map[string]uint64 { return g.snapshot().Errors }

func (g *Generator) KindLatencies() map[string]*stats.Reading { return g.snapshot().Latencies }

func (g *Generator) Seconds(from int) []stats.Second {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.timeline.Since(from)
}

func (g *Generator) Second() (stats.Second, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.timeline.Last()
}

// Member is one worker of a load phase.
type Member struct {
	PID, Clients, Threads int
	CPUSeconds            float64 // during the load phase
	MaxRSSBytes           int64
}

// Members returns the workers whose results have arrived. Call it after Run.
func (g *Generator) Members() (list []Member) {
	for _, w := range g.coordinator.members {
		if r := w.result; r != nil {
			list = append(list, Member{w.pid, w.clients, r.Threads, r.CPUSeconds, r.MaxRSSBytes})
		}
	}
	return list
}

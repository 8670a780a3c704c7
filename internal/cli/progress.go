package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"stroppy/internal/report"
	"stroppy/internal/run"
)

// How often progress is shown: redrawn on a terminal, a line each elsewhere.
const (
	redrawEvery = 250 * time.Millisecond
	lineEvery   = 10 * time.Second
)

// progress shows a person how far a run is. On a terminal it redraws one line.
type progress struct {
	out      io.Writer
	terminal bool

	mu     sync.Mutex
	phase  string
	began  time.Time // of the phase
	state  run.State
	last   sample // at the last line
	drawn  bool   // a line stands on the terminal, unfinished
	ended  chan struct{}
	ending sync.WaitGroup
}

type sample struct {
	at   time.Time
	done uint64
}

func newProgress(out io.Writer, terminal bool) *progress {
	p := &progress{out: out, terminal: terminal, ended: make(chan struct{})}
	every := lineEvery
	if terminal {
		every = redrawEvery
	}
	p.ending.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-p.ended:
				return
			case now := <-ticker.C:
				p.draw(now)
			}
		}
	})
	return p
}

// Begin names the phase that begins.
func (p *progress) Begin(phase string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.phase, p.began, p.state, p.last = phase, now, run.State{}, sample{at: now}
}

// Show keeps the state for the next line.
func (p *progress) Show(s run.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = s
}

// Fault tells a fault that was injected, and again when it was healed.
func (p *progress) Fault(f report.Fault) {
	switch {
	case f.Error != "":
		p.note("fault %d at %.1f s: %s was not injected: %s", f.Number, f.AtSeconds, f.Fault, f.Error)
	case f.Skipped != "":
		p.note("fault %d at %.1f s: %s was skipped: %s", f.Number, f.AtSeconds, f.Fault, f.Skipped)
	case f.HealError != "":
		p.note("fault %d: %s on %s was not healed: %s", f.Number, f.Fault, f.Target, f.HealError)
	case f.HealedSeconds != nil:
		p.note("fault %d at %.1f s: healed", f.Number, *f.HealedSeconds)
	default:
		p.note("fault %d at %.1f s: %s: %s", f.Number, f.AtSeconds, f.Fault, f.Target)
	}
}

// current returns the phase.
func (p *progress) current() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.phase
}

// note writes a line of its own.
func (p *progress) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// close ends the drawing and leaves a clean line.
func (p *progress) close() {
	close(p.ended)
	p.ending.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
}

func (p *progress) erase() {
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.drawn = false
	}
}

func (p *progress) draw(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.phase == "" {
		return
	}
	line := p.line(now)
	p.last = sample{now, p.state.Done}
	if !p.terminal {
		fmt.Fprintln(p.out, line)
		return
	}
	fmt.Fprint(p.out, "\r"+line+"\x1b[K")
	p.drawn = true
}

// line tells phase, rate, done of total, time left and clients without a server.
func (p *progress) line(now time.Time) string {
	s := p.state
	parts := []string{}
	rate := 0.0
	if took := now.Sub(p.last.at).Seconds(); took > 0 && s.Done >= p.last.done {
		rate = float64(s.Done-p.last.done) / took
	}
	switch {
	case s.Total > 0:
		parts = append(parts, fmt.Sprintf("%d of %d", s.Done, s.Total))
	case s.Done > 0:
		parts = append(parts, fmt.Sprintf("%d done", s.Done))
	default:
		parts = append(parts, now.Sub(p.began).Round(time.Second/10).String())
	}
	if s.Done > 0 || s.Transactional {
		parts = append(parts, fmt.Sprintf("%.0f/s", rate))
	}
	if left, known := left(s, now.Sub(p.began)); known {
		parts = append(parts, left.Round(time.Second).String()+" left")
	}
	if s.Reconnecting > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d clients reconnecting", s.Reconnecting, s.Clients))
	}
	return fmt.Sprintf("%-9s %s", p.phase, strings.Join(parts, " · "))
}

// left is the time until the phase ends: what is left of its duration, or of its
// work at the pace so far.
func left(s run.State, elapsed time.Duration) (time.Duration, bool) {
	switch {
	case s.Of > 0:
		return max(0, s.Of-s.Elapsed), true
	case s.Total > 0 && s.Done > 0:
		rest := float64(s.Total-min(s.Done, s.Total)) / float64(s.Done)
		return time.Duration(min(rest*float64(elapsed), float64(365*24*time.Hour))), true
	}
	return 0, false
}

package cli

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/term"

	"stroppy/internal/live"
	"stroppy/internal/report"
	"stroppy/internal/run"
)

// How often progress is shown: redrawn on a terminal, a line each elsewhere.
const (
	redrawEvery = 250 * time.Millisecond
	lineEvery   = 10 * time.Second
)

// usualWidth is that of a terminal that does not report its own.
const usualWidth = 80

// progress shows a person how far a run is. On a terminal it redraws one line,
// which is never longer than the terminal is wide.
type progress struct {
	out      io.Writer
	terminal bool
	width    func() int // of the terminal, in characters
	end      func()     // ends the drawing

	mu     sync.Mutex
	phase  string
	began  time.Time // of the phase
	state  run.State
	last   sample         // at the last line
	faults []report.Fault // that are in effect, in the order in which they were injected
	drawn  string         // the line that stands on the terminal, unfinished
}

type sample struct {
	at   time.Time
	done uint64
}

func newProgress(out io.Writer, terminal bool) *progress {
	p := &progress{out: out, terminal: terminal, width: func() int { return widthOf(out) }}
	every := lineEvery
	if terminal {
		every = redrawEvery
	}
	p.end = run.Every(every, func() { p.draw(time.Now()) })
	return p
}

// widthOf is how many characters a line of the terminal holds now.
func widthOf(out io.Writer) int {
	if file, ok := out.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return usualWidth
}

// Begin names the phase that begins.
func (p *progress) Begin(phase string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.phase, p.began, p.state, p.last = phase, now, run.State{}, sample{at: now}
	if phase == "drive" {
		p.faults = nil
	}
}

// Show keeps the state for the next line.
func (p *progress) Show(s run.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = s
}

// Fault shows a fault that was injected or healed, and keeps which are in effect.
func (p *progress) Fault(f report.Fault) {
	p.mu.Lock()
	p.faults = slices.DeleteFunc(p.faults, func(other report.Fault) bool { return other.Number == f.Number })
	if live.Active(f) {
		p.faults = append(p.faults, f)
	}
	p.mu.Unlock()
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

// Known has nothing to show.
func (p *progress) Known(*report.Result) {}

// current returns the phase.
func (p *progress) current() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.phase
}

// note writes a line of its own, above the one that is redrawn.
func (p *progress) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf(format, args...) + "\n"
	if p.drawn != "" {
		text = clearLine + text + p.drawn
	}
	fmt.Fprint(p.out, text) // at once, so that nothing flickers
}

// close ends the drawing and leaves a clean line.
func (p *progress) close() {
	p.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
}

// clearLine goes to the beginning of a terminal's line and empties it.
const clearLine = "\r\x1b[K"

func (p *progress) erase() {
	if p.drawn != "" {
		fmt.Fprint(p.out, clearLine)
		p.drawn = ""
	}
}

// draw shows the line. On a terminal it is written over the one that stands
// there, whose rest is cleared after that, so that there is always one to read.
func (p *progress) draw(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.phase == "" {
		return
	}
	width := math.MaxInt
	if p.terminal {
		width = p.width() - 1 // a full last column would make some terminals go on to the next line
	}
	line := p.line(now, width)
	p.last = sample{now, counted(p.state)}
	switch {
	case !p.terminal:
		fmt.Fprintln(p.out, line)
	case line != p.drawn:
		fmt.Fprint(p.out, "\r"+line+"\x1b[K")
		p.drawn = line
	}
}

// line is what is known of the phase, in at most so many characters.
func (p *progress) line(now time.Time, width int) string {
	s, elapsed := p.state, now.Sub(p.began)
	lead := fmt.Sprintf("%-9s", p.phase)
	if width <= usualWidth {
		lead = p.phase
	}
	rate := 0.0
	if took := now.Sub(p.last.at).Seconds(); took > 0 && counted(s) >= p.last.done {
		rate = float64(counted(s)-p.last.done) / took
	}
	if s.Drive != nil {
		if s.Second != nil && p.terminal { // between two plain lines there were several
			rate = float64(s.Second.Committed)
		}
		return fit(lead, driveParts(s, rate, p.faults, elapsed), width)
	}
	done := elapsed.Round(time.Second / 10).String()
	switch {
	case s.Total > 0:
		done = fmt.Sprintf("%d of %d", s.Done, s.Total)
	case s.Done > 0:
		done = fmt.Sprintf("%d done", s.Done)
	}
	parts := []part{{done, done, 3}}
	if s.Done > 0 {
		text := fmt.Sprintf("%.0f/s", rate)
		parts = append(parts, part{text, text, 1})
	}
	if left, known := left(s, elapsed); known {
		text := left.Round(time.Second).String() + " left"
		parts = append(parts, part{text, text, 2})
	}
	return fit(lead, parts, width)
}

// counted is what the rate of a phase is of: in a load phase, what was committed.
func counted(s run.State) uint64 {
	if s.Drive != nil {
		return s.Counters.Committed
	}
	return s.Done
}

// left is what is left of the phase's duration, or of its work at the pace so far.
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

package session

import (
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"stroppy/internal/live"
	"stroppy/internal/report"
	"stroppy/internal/run"
)

// The intervals of the progress line: redrawn on a terminal, or a new line elsewhere.
const (
	redrawEvery = 250 * time.Millisecond
	lineEvery   = 10 * time.Second
)

// usualWidth is the assumed width of a terminal that does not report its width.
const usualWidth = 80

// progress shows the progress of a run. On a terminal it redraws one line, which is never longer than the terminal is
// wide.
type progress struct {
	out      io.Writer
	terminal bool
	now      func() live.Snapshot
	width    func() int // of the terminal, in characters
	end      func()     // ends the drawing

	mu    sync.Mutex
	last  sample // at the last line
	drawn string // the line that stands on the terminal, unfinished
}

// sample is the work that a phase had done at one time.
type sample struct {
	phase, at time.Time // the phase by its beginning
	done      uint64
}

func newProgress(out io.Writer, terminal bool, now func() live.Snapshot) *progress {
	p := &progress{out: out, terminal: terminal, now: now, width: func() int { return WidthOf(out) }}
	every := lineEvery
	if terminal {
		every = redrawEvery
	}
	p.end = run.Every(every, func() { p.draw(time.Now()) })
	return p
}

// WidthOf returns the current width of the terminal in characters.
func WidthOf(out io.Writer) int {
	if file, ok := out.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return usualWidth
}

// Note writes a line above the progress line.
func (p *progress) Note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf(format, args...) + "\n"
	if p.drawn != "" {
		text = clearLine + text + p.drawn
	}
	fmt.Fprint(p.out, text) // at once, so that nothing flickers
}

// close stops the drawing and erases the progress line.
func (p *progress) close() {
	p.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
}

// clearLine is the control sequence that erases a line of a terminal.
const clearLine = "\r\x1b[K"

func (p *progress) erase() {
	if p.drawn != "" {
		fmt.Fprint(p.out, clearLine)
		p.drawn = ""
	}
}

// draw shows the progress line. On a terminal it overwrites the previous line and then erases the rest, which avoids
// flicker.
func (p *progress) draw(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.now()
	if s.Phase == "" {
		return
	}
	width := math.MaxInt
	if p.terminal {
		width = p.width() - 1 // a full last column would make some terminals go on to the next line
	}
	line := p.line(&s, now, width)
	switch {
	case !p.terminal:
		fmt.Fprintln(p.out, line)
	case line != p.drawn:
		fmt.Fprint(p.out, "\r"+line+"\x1b[K")
		p.drawn = line
	}
}

// line returns the text for a phase, in at most width characters. Its rate covers the time since
// the previous line.
func (p *progress) line(of *live.Snapshot, now time.Time, width int) string {
	s, elapsed := of.Latest, now.Sub(of.Since)
	lead := fmt.Sprintf("%-9s", of.Phase)
	if width <= usualWidth {
		lead = of.Phase
	}
	if !p.last.phase.Equal(of.Since) {
		p.last = sample{phase: of.Since, at: of.Since}
	}
	counted := s.Done
	if s.Drive != nil {
		counted = s.Counters.Committed
	}
	rate := 0.0
	if took := now.Sub(p.last.at).Seconds(); took > 0 && counted >= p.last.done {
		rate = float64(counted-p.last.done) / took
	}
	p.last.at, p.last.done = now, counted
	if s.Drive != nil {
		if s.Second != nil && p.terminal { // between two plain lines there were several
			rate = float64(s.Second.Committed)
		}
		return fit(lead, driveParts(s, rate, of.Faults, elapsed), width)
	}
	done := elapsed.Round(time.Second / 10).String()
	switch {
	case s.Total > 0:
		done = report.Group(s.Done) + " of " + report.Group(s.Total)
	case s.Done > 0:
		done = report.Group(s.Done) + " done"
	}
	parts := []part{{done, done, 3}}
	if s.Done > 0 {
		text := report.Group(uint64(math.Round(rate))) + "/s"
		parts = append(parts, part{text, text, 1})
	}
	if left, known := left(s, elapsed); known {
		text := left.Round(time.Second).String() + " left"
		parts = append(parts, part{text, text, 2})
	}
	return fit(lead, parts, width)
}

// left returns the rest of the phase's duration, or of its work at the pace so far.
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

// notes returns the writer for progress and notes.
func (a *App) notes() io.Writer {
	if a.Quiet {
		return io.Discard
	}
	return a.Stderr
}

package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"stroppy/internal/live"
	"stroppy/internal/output"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/setting"
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
	now      func() live.Snapshot
	width    func() int // of the terminal, in characters
	end      func()     // ends the drawing

	mu    sync.Mutex
	last  sample // at the last line
	drawn string // the line that stands on the terminal, unfinished
}

// sample is what a phase had done at one time.
type sample struct {
	phase, at time.Time // the phase by its beginning
	done      uint64
}

func newProgress(out io.Writer, terminal bool, now func() live.Snapshot) *progress {
	p := &progress{out: out, terminal: terminal, now: now, width: func() int { return widthOf(out) }}
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

// line is what is known of the phase, in at most so many characters. Its rate is what
// was done since the line before.
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

// outputFlags lets a command say how much it shows.
func (a *app) outputFlags(c *cobra.Command) {
	c.Flags().BoolVarP(&a.quiet, "quiet", "q", false, "show no progress, and of the report the verdict alone")
	c.Flags().BoolVarP(&a.verbose, "verbose", "v", false, "show all of the report, not only what fits one screen")
	given := func(name string) bool { return c.Flags().Changed(name) }
	c.PreRunE = func(*cobra.Command, []string) error {
		if given("quiet") && given("verbose") {
			return usagef("--quiet shows less and --verbose more: give one of them")
		}
		return nil
	}
}

// outputFormat lets a command print its report in the form of another program.
func outputFormat(c *cobra.Command) *string {
	return c.Flags().String("format", output.Text, "the report's `FORM`: "+setting.Or(output.Names()))
}

// knownFormat refuses a form that does not exist; asJSON stands for json.
func knownFormat(c *cobra.Command, format *string, asJSON bool) error {
	switch {
	case asJSON && c.Flags().Changed("format") && *format != "json":
		return usagef("--json and --format %s are two forms: give one of them", *format)
	case asJSON:
		*format = "json"
	case !output.Known(*format):
		return usagef("--format is %q: it must be %s", *format, setting.Or(output.Names()))
	}
	return nil
}

// textOptions say how the report of the run in dir is shown here.
func (a *app) textOptions(dir string) report.Options {
	o := report.Options{Color: a.colors(a.stdout), Dir: dir, Quoted: scenario.Quote(dir)}
	if a.terminal(a.stdout) {
		o.Width = widthOf(a.stdout)
	}
	switch {
	case a.quiet:
		o.Detail = report.Verdict
	case a.verbose:
		o.Detail = report.Full
	}
	return o
}

// notes is where a person is shown how far a call is.
func (a *app) notes() io.Writer {
	if a.quiet {
		return io.Discard
	}
	return a.stderr
}

// unmade is the error of a page that `stroppy report` could not make. Where nobody may write, as
// beside a recording that is kept, it is a note, unless the page is to be opened.
func (a *app) unmade(err error, open bool) error {
	if err == nil || open || !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return err
	}
	fmt.Fprintln(a.stderr, a.scrub(err.Error())+": the report was shown, and its page not made again")
	return nil
}

// openPage shows a page in the person's browser, by the command that the system has for that.
func openPage(path string) error {
	name, args := "xdg-open", []string{path}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", path}
	}
	command := exec.Command(name, args...)
	err := command.Start()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("open %s: this machine has no %s, which opens a browser: open the file by hand", path, name)
	case err != nil:
		return fmt.Errorf("open %s: %w", path, err)
	}
	return command.Process.Release()
}

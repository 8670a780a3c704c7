// Package campaign carries out lists of runs: a sweep, scenarios, a comparison, and the load of an
// isolation matrix. All of them have planned runs, a locked directory, a book of the results, and a
// dry run. A campaign continues where an earlier call stopped.
package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"stroppy/internal/cluster/system"
	"stroppy/internal/exit"
	"stroppy/internal/registry"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/session"
	"stroppy/internal/sweep"
)

// Campaign is a list of runs in one directory.
type Campaign struct {
	Dir  string // empty: named by the time
	Book *sweep.Book
	// Print shows what the runs came to; partial is set if the campaign was cut off.
	Print func(partial bool) error

	app    *session.App
	config session.Config // asks for a live page
	list   list
	name   string // ends the name of the directory; empty: nothing is kept without Dir
	asked  bool   // for a verdict

	attached bool // no run loads data, so that all have the seed of the data
}

// list holds the differences between the kinds of campaigns. Campaign implements all but next.
type list interface {
	// admit returns an error before anything is made if no run could begin.
	admit(s *session.Session) error
	// begin prepares the runs that are left, after the book is read.
	begin(s *session.Session) error
	// next returns the next run; nil if there is none.
	next() (*planned, error)
	// took enters into the book what a run came to. Without a result, err is why there is no
	// run, and an error that took returns ends the campaign.
	took(s *session.Session, p *planned, r *report.Result, dir string, err error) error
	// keep puts the book and its page in place.
	keep() error
	// finish completes the campaign when all runs were tried.
	finish() error
	// verdict returns the error of the runs so far, which ended with err.
	verdict(err error) error
}

// planned is a run that is next.
type planned struct {
	title   string // in the notes
	folder  string // in the directory of the campaign
	config  session.Config
	refused error   // why it cannot be run; nil: it can
	index   int     // of its scenario, side or level
	value   float64 // of the axis of a sweep
}

// newCampaign returns a campaign with an empty book.
func newCampaign(app *session.App, kind sweep.Kind, dir, name string) Campaign {
	return Campaign{Dir: dir, app: app, name: name, Book: &sweep.Book{
		Kind: kind, Stroppy: registry.Version(), StartedAt: time.Now().UTC().Format(time.RFC3339),
	}}
}

func (c *Campaign) admit(*session.Session) error { return nil }
func (c *Campaign) begin(*session.Session) error { return nil }
func (c *Campaign) finish() error                { return nil }

func (c *Campaign) took(_ *session.Session, p *planned, r *report.Result, dir string, err error) error {
	if r != nil {
		c.Book.Points = append(c.Book.Points, sweep.NewPoint(p.value, filepath.Base(dir), r))
	}
	return err
}

func (c *Campaign) keep() error {
	if c.Dir == "" {
		return nil
	}
	return c.Book.Save(c.Dir)
}

// Run carries out the runs that are left.
func (c *Campaign) Run() error {
	servers, err := c.app.OpenLive(&c.config)
	if err != nil {
		return err
	}
	defer servers.Close()
	s := c.app.Begin(servers.Feed)
	servers.Open(s.Note)
	defer s.Stop()
	if err := c.list.admit(s); err != nil {
		return err
	}
	unlock, err := c.open(s)
	if err != nil {
		return err
	}
	defer unlock()
	if err = c.list.begin(s); err == nil {
		err = c.carryOut(s)
	}
	if err != nil {
		servers.Fail(c.app.Reasons(err)[0])
		s.Stop()
		if c.left() {
			fmt.Fprintln(c.app.Stderr, session.ToPaste("go on", Onwards(c.Book, c.Dir)))
		}
		return c.list.verdict(errors.Join(err, c.Print(true)))
	}
	if n := len(c.Book.Points); n > 0 {
		last := filepath.Join(c.Dir, c.Book.Points[n-1].Dir)
		defer servers.End(last, fmt.Sprintf("This is the last step of the %s in %s.", c.Book.Kind, c.Dir))
	}
	c.Book.Finished = true
	err = c.list.finish()
	s.Stop()
	if failed := errors.Join(c.list.keep(), c.Print(false)); failed != nil {
		err = failed
	}
	return c.list.verdict(err)
}

// carryOut carries out all runs that are left, and keeps the book after each.
func (c *Campaign) carryOut(s *session.Session) error {
	for {
		p, err := c.list.next()
		if p == nil || err != nil {
			return err
		}
		s.Note("%s", p.title)
		var result *report.Result
		dir := ""
		if err = p.refused; err == nil {
			p.config.JSON, p.config.Out = false, run.Unused(filepath.Join(c.Dir, p.folder)) // a run that was cut off stays beside
			result, dir, err = c.app.Next(s, &p.config)
		}
		if result == nil && (errors.Is(err, session.ErrInterrupted) || context.Cause(s.Context) != nil) {
			return err
		}
		err = c.list.took(s, p, result, dir, err)
		if result != nil || err == nil {
			err = errors.Join(err, c.list.keep())
		}
		if err != nil {
			return err
		}
	}
}

// open makes the directory or continues the campaign in it, and saves the book. It keeps others out
// of the directory until unlock is called.
func (c *Campaign) open(s *session.Session) (unlock func(), err error) {
	if c.Dir == "" && c.name == "" {
		return func() {}, nil
	}
	if c.Dir == "" {
		c.Dir = run.Unused(filepath.Join(session.RunsRoot, time.Now().Format("20060102-150405")+"-"+c.name))
	}
	if err := c.usable(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.Dir, 0o777); err != nil {
		return nil, Unusable(c.Book.Kind, run.Unusable(c.Dir, err))
	}
	if unlock, err = lock(c.Dir); err != nil {
		return nil, err
	}
	if err = c.resume(); err == nil {
		err = c.list.keep()
	}
	if err != nil {
		unlock()
		return nil, err
	}
	s.Note("%s directory %s", c.Book.Kind, c.Dir)
	if !c.attached {
		s.Note("seed %d", c.Book.Seed)
	}
	if n := len(c.Book.Points) - len(c.Book.Missing()); n > 0 {
		s.Note("done before: %s", report.Counted(uint64(n), "run"))
	}
	return unlock, nil
}

// lock keeps other calls of stroppy out of a directory until unlock is called, or this process ends.
// It does nothing on systems without such locks.
func lock(path string) (unlock func(), err error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	err = system.TryLock(dir)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = exit.Usagef("another stroppy works in %s: wait for its end, or take another directory", path)
	case err == nil || system.Supported() != nil:
		return func() { dir.Close() }, nil
	default:
		err = fmt.Errorf("lock the directory %s: %w", path, err)
	}
	return nil, errors.Join(err, dir.Close())
}

// resume reads the book of an earlier call, and draws the seed if there is none.
func (c *Campaign) resume() error {
	b, err := c.Book.Resume(c.Dir)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	c.Book = b
	return c.drawSeed()
}

func (c *Campaign) drawSeed() error {
	drawn := session.Config{}
	drawn.Seed = c.Book.Seed
	err := c.app.DrawSeed(&drawn)
	c.Book.Seed = drawn.Seed
	return err
}

// usable returns an error if the directory holds something else than such a campaign.
func (c *Campaign) usable() error {
	if c.Dir == "" || sweep.KindOf(c.Dir) == c.Book.Kind {
		return nil
	}
	return Unusable(c.Book.Kind, run.Vacant(c.Dir))
}

// Unusable makes the error of a directory, which may be nil, name the kind of a campaign.
func Unusable(kind sweep.Kind, err error) error {
	if unusable, ok := errors.AsType[*run.UnusableError](err); ok {
		unusable.Of = kind.String()
	}
	return err
}

// left removes the directory if it holds nothing but a book without runs, and reports whether the
// campaign can continue in it.
func (c *Campaign) left() bool {
	entries, _ := os.ReadDir(c.Dir)
	if c.Dir == "" || len(entries) > 1 || len(c.Book.Points) > 0 {
		return c.Dir != ""
	}
	_ = os.Remove(filepath.Join(c.Dir, string(c.Book.Kind)))
	return os.Remove(c.Dir) != nil
}

// unmade reports that a page could not be made. The book stands without it.
func (c *Campaign) unmade(err error) {
	if err != nil {
		fmt.Fprintln(c.app.Stderr, c.app.Scrub(err.Error())+session.Again)
	}
}

// Onwards returns the command that repeats the campaign in dir, or continues it; empty if its book
// does not have the command.
func Onwards(b *sweep.Book, dir string) string {
	if b.Command == "" || b.Finished {
		return b.Command
	}
	return b.Command + " --out " + scenario.Quote(dir)
}

// verdict returns the error of the runs so far, which ended with err. A violation outweighs err.
// If nobody asked for a verdict, an unknown one is none.
func (c *Campaign) verdict(err error) error {
	var invalid, unknown, missed []string
	for _, p := range c.Book.Points {
		if p.Objectives == report.ObjectiveMissed {
			missed = append(missed, p.Dir)
		}
		switch {
		case p.Problem != "":
		case p.Verdict == "invalid":
			invalid = append(invalid, p.Dir)
		case p.Verdict != "valid", p.Objectives == report.ObjectiveUnknown:
			unknown = append(unknown, p.Dir)
		}
	}
	switch {
	case len(invalid) > 0:
		return errors.Join(exit.With(exit.Invalid, fmt.Errorf("invalid: a check found a violation in %s",
			strings.Join(invalid, ", "))), err)
	case err == nil && c.asked && len(unknown) > 0:
		return exit.With(exit.Unknown, fmt.Errorf("unknown: a check or an objective could not be decided in %s",
			strings.Join(unknown, ", ")))
	case err == nil && len(missed) > 0:
		return exit.With(exit.Missed, fmt.Errorf("objectives missed in %s", strings.Join(missed, ", ")))
	}
	return err
}

// Outline is a part of the plan of a campaign.
type Outline struct {
	Head string
	Rows [][2]string // name and value
}

// shownDir returns the directory as a plan shows it.
func (c *Campaign) shownDir() string {
	if c.Dir != "" || c.name == "" {
		return c.Dir
	}
	return filepath.Join(session.RunsRoot, "TIME-"+c.name)
}

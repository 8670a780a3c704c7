// Package campaign carries out lists of runs: a sweep, scenarios, a comparison, and the load of an
// isolation matrix. They are one mechanism. It has planned runs, a locked directory, a book of the
// results, and a dry run. A sweep goes on where an earlier call stopped.
package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"stroppy/internal/exit"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/session"
)

// Campaign is a list of runs in one directory.
type Campaign struct {
	Dir string
	// Print shows what the runs came to; partial is set if the campaign was cut off.
	Print func(partial bool) error

	app   *session.App
	list  list
	asked bool // for a verdict
}

// list holds the differences between the kinds of campaigns.
type list interface {
	// next returns the next run; nil if there is none.
	next() (*planned, error)
	// took enters into the book what a run came to. Without a result, err is why there is no
	// run, and an error that took returns ends the campaign.
	took(s *session.Session, p *planned, r *report.Result, dir string, err error) error
	// keep puts the book and its page in place.
	keep() error
	// each calls judge for every run so far.
	each(judge func(dir, verdict, objectives string))
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

// cutOff returns the error of a campaign that err has ended, and shows how it goes on.
func (c *Campaign) cutOff(s *session.Session, err error, again string) error {
	s.Stop()
	fmt.Fprintln(c.app.Stderr, session.ToPaste("go on", again))
	return c.verdict(errors.Join(err, c.Print(true)))
}

// complete keeps and shows a campaign whose runs are all done. err names the runs that are
// missing.
func (c *Campaign) complete(s *session.Session, err error) error {
	s.Stop()
	if failed := errors.Join(c.list.keep(), c.Print(false)); failed != nil {
		return failed
	}
	return c.verdict(err)
}

// take makes the directory if it does not exist, and saves the book. It keeps others out of the
// directory until unlock is called.
func (c *Campaign) take() (unlock func(), err error) {
	if err := os.MkdirAll(c.Dir, 0o777); err != nil {
		return nil, run.Unusable(c.Dir, err)
	}
	if unlock, err = session.LockDirectory(c.Dir); err != nil {
		return nil, err
	}
	if err := c.list.keep(); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// unmade reports that a page could not be made. The book stands without it.
func (c *Campaign) unmade(err error) {
	if err != nil {
		fmt.Fprintln(c.app.Stderr, c.app.Scrub(err.Error())+session.Again)
	}
}

// onwards returns the command that repeats a campaign in dir, or goes on with it.
func onwards(command, dir string, finished bool) string {
	if command == "" || finished {
		return command
	}
	return command + " --out " + scenario.Quote(dir)
}

// verdict returns the error of the runs so far, which ended with err. A violation outweighs err.
// If nobody asked for a verdict, an unknown one is none.
func (c *Campaign) verdict(err error) error {
	var invalid, unknown, missed []string
	c.list.each(func(dir, verdict, objectives string) {
		if objectives == report.ObjectiveMissed {
			missed = append(missed, dir)
		}
		switch {
		case verdict == "invalid":
			invalid = append(invalid, dir)
		case verdict != "valid", objectives == report.ObjectiveUnknown:
			unknown = append(unknown, dir)
		}
	})
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

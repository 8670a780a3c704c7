package cli

import (
	"errors"
	"fmt"

	"stroppy/internal/report"
	"stroppy/internal/run"
)

// again says how to make a page that could not be made.
const again = ": `stroppy report` makes it again"

// page makes report.html in a run's directory, below its text report. A page that
// could not be made is reported and changes no verdict.
func (a *app) page(dir string, asJSON bool) {
	if err := a.pageAgain(dir, asJSON); err != nil {
		fmt.Fprintln(a.stderr, a.scrub(err.Error())+again)
	}
}

// pageAgain is page for the command that was asked for it: a page that could not be
// made is its error.
func (a *app) pageAgain(dir string, asJSON bool) error {
	path, err := run.WritePage(dir)
	var damaged *report.FileError
	switch {
	case errors.As(err, &damaged):
		return fmt.Errorf("%w: move %s away, and the page is made without it", err, damaged.Name)
	case err != nil:
		return err
	case !asJSON:
		fmt.Fprintf(a.stdout, "  %-16s%s\n", "page", path)
	}
	return nil
}

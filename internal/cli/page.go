package cli

import (
	"fmt"

	"stroppy/internal/run"
)

// page makes report.html in a run's directory, below its text report. A page that
// could not be made is told and changes no verdict: `stroppy report` makes it
// again.
func (a *app) page(dir string, asJSON bool) {
	path, err := run.WritePage(dir)
	switch {
	case err != nil:
		fmt.Fprintln(a.stderr, a.scrub(err.Error())+": `stroppy report` makes it again")
	case !asJSON:
		fmt.Fprintf(a.stdout, "  %-16s%s\n", "page", path)
	}
}

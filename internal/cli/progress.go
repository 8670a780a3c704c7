package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"stroppy/internal/exit"
	"stroppy/internal/output"
	"stroppy/internal/report"
	"stroppy/internal/scenario"
	"stroppy/internal/session"
	"stroppy/internal/setting"
)

// outputFlags adds the flags for the amount of output.
func (a *app) outputFlags(c *cobra.Command) {
	c.Flags().BoolVarP(&a.Quiet, "quiet", "q", false, "show no progress, and of the report the verdict alone")
	c.Flags().BoolVarP(&a.Verbose, "verbose", "v", false, "show all of the report, not only what fits one screen")
	given := func(name string) bool { return c.Flags().Changed(name) }
	c.PreRunE = func(*cobra.Command, []string) error {
		if given("quiet") && given("verbose") {
			return exit.Usagef("--quiet shows less and --verbose more: give one of them")
		}
		return nil
	}
}

// outputFormat adds the flag for the form of the report.
func outputFormat(c *cobra.Command) *string {
	return c.Flags().String("format", output.Text, "the report's `FORM`: "+setting.Or(output.Names()))
}

// knownFormat returns an error for an unknown form. With asJSON it sets the form to json.
func knownFormat(c *cobra.Command, format *string, asJSON bool) error {
	switch {
	case asJSON && c.Flags().Changed("format") && *format != "json":
		return exit.Usagef("--json and --format %s are two forms: give one of them", *format)
	case asJSON:
		*format = "json"
	case !output.Known(*format):
		return exit.Usagef("--format is %q: it must be %s", *format, setting.Or(output.Names()))
	}
	return nil
}

// textOptions returns the options for the text report of the run in dir.
func (a *app) textOptions(dir string) report.Options {
	o := report.Options{Color: a.Colors(a.Stdout), Dir: dir, Quoted: scenario.Quote(dir)}
	if a.Terminal(a.Stdout) {
		o.Width = session.WidthOf(a.Stdout)
	}
	switch {
	case a.Quiet:
		o.Detail = report.Verdict
	case a.Verbose:
		o.Detail = report.Full
	}
	return o
}

// unmade returns the error of a page that could not be made. In a read-only directory it prints a note instead, unless
// the page must be opened.
func (a *app) unmade(err error, open bool) error {
	if err == nil || open || !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return err
	}
	fmt.Fprintln(a.Stderr, a.Scrub(err.Error())+": the report was shown, and its page not made again")
	return nil
}

// openPage opens a page in the user's browser with the command of the operating system.
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

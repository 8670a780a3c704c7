package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"stroppy/internal/check"
	"stroppy/internal/exit"
	"stroppy/internal/foreign"
	"stroppy/internal/history"
	"stroppy/internal/live"
	"stroppy/internal/registry"
	"stroppy/internal/run"
	"stroppy/internal/session"
)

// formatFlag adds the flag for the form of another program's history.
func formatFlag(c *cobra.Command) *string {
	return c.Flags().String("format", "", "check a history of another program, whose FILE has this `FORM`; 'stroppy list formats' shows the forms")
}

// checkFormat checks a history of another program. Only the flags determine the level, so that the verdict is the same
// on every machine.
func (a *app) checkFormat(c *cobra.Command, name string, args []string) error {
	form, err := registry.Formats().Find(name)
	switch {
	case err != nil:
		return exit.With(exit.Usage, err)
	case form.Check == nil:
		return exit.Usagef("the form %s is written and not read", name)
	case len(args) != 1:
		return exit.Usagef("`%s --format %s` checks one file, and was given %d", c.CommandPath(), name, len(args))
	}
	for _, other := range []string{"db", "isolation", "out", "scenario"} {
		if c.Flags().Changed(other) {
			return exit.Usagef("--%s is for runs that stroppy recorded: leave it out with --format", other)
		}
	}
	expect, err := form.Level(c.Flags().Lookup("expect").Value.String())
	if err != nil {
		return exit.Usagef("--expect: %w", err)
	}
	asJSON, err := strconv.ParseBool(c.Flags().Lookup("json").Value.String())
	if err != nil {
		return exit.Usagef("--json is %q: it must be true or false", c.Flags().Lookup("json").Value)
	}
	path := args[0]
	if err := mustBeFile(path); err != nil {
		return err
	}
	s := a.Begin(live.NewFeed())
	defer s.Stop()
	checked, err := form.Check(s.Context, path, expect)
	s.Stop()
	if err != nil {
		return s.Cause(inFile("check", path, err), session.NothingLeft)
	}
	result := foreign.NewResult(form, path, expect, checked, registry.Version())
	write := result.WriteText
	if asJSON {
		write = result.WriteJSON
	}
	if err := write(a.Stdout); err != nil {
		return err
	}
	return exit.Judged(result.Verdict, result.Reason)
}

// inFile adds the action and the file to an error. An error in the content of the file is a usage error.
func inFile(what, path string, err error) error {
	err = fmt.Errorf("%s %s: %w", what, path, err)
	if errors.As(err, new(*foreign.InputError)) {
		return exit.With(exit.Usage, err)
	}
	return err
}

// mustBeFile returns an error unless path is a file.
func mustBeFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exit.Usagef("%s does not exist: name the file of a history", path)
	case err != nil:
		return fmt.Errorf("open the history: %w", err)
	case info.IsDir():
		return exit.Usagef("%s is a directory: name the file of a history", path)
	}
	return nil
}

func (a *app) exportCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "export --format FORM RUN_DIR", Short: "Write a recorded run's history in a form that other programs check",
		Long: "The recorded run is written as a history in one of the forms that programs for checking histories\n" +
			"share. A run that the form cannot express is refused, or parts are left out with a note.",
		Args: takes(1, 1, "writes the history of one run: name its directory"),
	}
	name := c.Flags().String("format", "", "the `FORM`; 'stroppy list formats' shows them")
	out := c.Flags().StringP("out", "o", "", "write into this new `FILE`; to standard output if not given")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if *name == "" {
			return exit.Usagef("`%s` needs a form: give --format FORM; 'stroppy list formats' shows them", c.CommandPath())
		}
		form, err := registry.Formats().Find(*name)
		switch {
		case err != nil:
			return exit.With(exit.Usage, err)
		case form.Export == nil:
			return exit.Usagef("the form %s is read and not written", *name)
		}
		return a.export(form, args[0], *out)
	}
	return c
}

// export writes the history of the run in dir.
func (a *app) export(form *foreign.Format, dir, out string) (err error) {
	if err := mustBeDirectory(dir); err != nil {
		return err
	}
	recorded, err := history.Open((&run.Directory{Path: dir}).History())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return noHistory(dir)
	case err != nil:
		return err
	}
	defer recorded.Close()
	header := recorded.Header()
	if spec, err := registry.Workloads().Find(header.Workload); err != nil {
		return err
	} else if form.Registers && !spec.Registers {
		return exit.Usagef("the form %s holds reads and writes of registers only, and the workload %s has other operations", form.Name, spec.Name)
	}
	to, written := a.Stdout, foreign.Written{}
	if out != "" {
		file, err := os.OpenFile(out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if errors.Is(err, fs.ErrExist) {
			return exit.Usagef("%s exists already: remove it, or name another file with --out", out)
		}
		if err != nil {
			return err
		}
		defer func() {
			if err = errors.Join(err, file.Close()); err != nil {
				_ = os.Remove(out) // half a history is worth nothing
			}
		}()
		to = file
	}
	buffered := bufio.NewWriterSize(to, 1<<16)
	if written, err = form.Export(recorded, buffered); err == nil {
		err = buffered.Flush()
	}
	if err != nil {
		return inFile("export", dir, err)
	}
	for _, left := range written.Left {
		fmt.Fprintln(a.Stderr, left)
	}
	switch uncertain := header.Uncertainty(); {
	case uncertain == history.Unbounded:
		fmt.Fprintln(a.Stderr, "the clients had several clocks, which were not compared: their times say nothing of each other, and no check of real time may be made of them")
	case uncertain > 0:
		fmt.Fprintf(a.Stderr, "the clients had several clocks, whose times are known to within %v of each other: what another checker says of real time below that is not sure\n", time.Duration(uncertain))
	}
	if !recorded.Complete() {
		fmt.Fprintln(a.Stderr, "the run was cut off: what its clients did last is not recorded")
	}
	fmt.Fprintf(a.Stderr, "%s of %s in %s\n", check.Plural(written.Operations, "operation"), check.Plural(written.Transactions, "transaction"), check.Plural(written.Sessions, "session"))
	return nil
}

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"stroppy/internal/history"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/workload/bank"
)

func (a *app) checkCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "check [RUN_DIR]", Short: "Check a recorded run, or what a database holds",
		Long: "With a run's directory, the recorded run is checked again.\n" +
			"With --db as well, the end state is downloaded from the database first, as after pay.\n" +
			"Without a directory, only what the database holds is checked.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("`%s` checks one run and was given %d directories", c.CommandPath(), len(args))
			}
			return nil
		},
	}
	read := a.settings(c, "db", "isolation", "expect", "out", "json")
	c.RunE = func(_ *cobra.Command, args []string) error {
		config, err := read(nil)
		if err != nil {
			return err
		}
		if len(args) == 1 {
			return a.checkRun(&config, args[0])
		}
		return a.checkDatabase(&config)
	}
	return c
}

// checkRun checks the run in path, with the end state of the database if one is
// named.
func (a *app) checkRun(config *config, path string) error {
	if config.Out != "" {
		return usagef("--out is for a check without a run's directory; the verdict on %s goes into it", path)
	}
	if err := mustBeDirectory(path); err != nil {
		return err
	}
	header, err := run.Header(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return usagef("%s is no run's directory: there is no history in it", path)
	case err != nil:
		return err
	}
	dir, err := run.OpenDirectory(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return a.check(config, run.CheckOptions{Dir: dir}, header)
}

// mustBeDirectory refuses what no run can have left.
func mustBeDirectory(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return usagef("%s is no run's directory: it does not exist", path)
	case err != nil:
		return fmt.Errorf("open the run's directory: %w", err)
	case !info.IsDir():
		return usagef("%s is no run's directory: it is a file", path)
	}
	return nil
}

// checkDatabase checks what a database holds, without any history.
func (a *app) checkDatabase(config *config) error {
	config.DB = config.stepDatabase()
	if err := mustExist(config.DB); err != nil {
		return err
	}
	d, err := driverOf(config.DB)
	if err != nil {
		return err
	}
	path := config.Out
	if path == "" {
		path = run.Unused(run.DefaultPath(runsRoot, time.Now(), "check", d.scheme))
	}
	if err := run.Vacant(path); err != nil {
		return &exitError{exitUsage, err}
	}
	return a.check(config, run.CheckOptions{Dir: &run.Directory{Path: path}, Fresh: true}, history.Header{})
}

// check opens the database if one is named, and checks.
func (a *app) check(config *config, o run.CheckOptions, recorded history.Header) error {
	s := a.begin()
	defer s.stop()
	if config.DB != "" {
		if err := mustExist(config.DB); err != nil {
			return err
		}
		database, err := openDatabase(s.ctx, config.DB)
		if err != nil {
			return s.cause(err)
		}
		defer database.Close()
		b := config.bankConfig(false)
		b.Seed, b.Accounts = recorded.Seed, recorded.Accounts // the database must hold this run's bank
		workload, err := bank.New(database, b)
		if err != nil {
			return &exitError{exitUsage, err}
		}
		o.Workload, o.Database = workload, database
	}
	if o.Fresh {
		dir, err := run.NewDirectory(o.Dir.Path)
		if err != nil {
			return err
		}
		defer dir.Close()
		o.Dir = dir
	}
	o.Expect, o.Isolation, o.DatabaseURL = config.Expect, config.Isolation, scenario.Redact(config.DB)
	o.Check, o.Progress, o.Scrub, o.Stroppy = bank.CheckDir, s.progress, a.scrub, version()
	result, err := run.Check(s.ctx, o)
	s.stop()
	var unsaved *run.UnsavedError
	switch {
	case errors.As(err, &unsaved): // the verdict stands all the same
		s.note("%s", a.scrub(err.Error()))
	case err != nil && o.Fresh:
		return errors.Join(s.cause(err), discard(o.Dir))
	case err != nil:
		return s.cause(err)
	}
	return a.finish(result, o.Dir.Path, config.JSON, false)
}

func (a *app) listCommand() *cobra.Command {
	kinds := []string{"workloads", "databases", "clusters", "faults", "checks"}
	return &cobra.Command{
		Use: "list workloads|databases|clusters|faults|checks", Short: "List what this build knows", ValidArgs: kinds,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("`%s` takes one of workloads, databases, clusters, faults and checks", c.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			lines, err := list(args[0], kinds)
			for _, line := range lines {
				if _, err := fmt.Fprintln(a.stdout, line); err != nil {
					return err
				}
			}
			return err
		},
	}
}

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stroppy/internal/check"
	"stroppy/internal/exit"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/live"
	"stroppy/internal/registry"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/session"
)

func (a *app) checkCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "check [RUN_DIR…]", Short: "Check recorded runs, or what a database holds",
		Long: "With a run's directory, the recorded run is checked again, from the directory alone.\n" +
			"With --db as well, as after drive, the end state is downloaded into it first.\n" +
			"With several directories, runs against one load are checked together. The end state is the\n" +
			"last one in them, or with --db the one of now. The verdict goes into a directory of its own.\n" +
			"Without a directory, only what the database holds is checked.\n" +
			"With --format, a history that another program recorded is checked.\n\n" +
			"With a directory, --db and --out are the flags alone: no variable and no file stands for them.",
	}
	read := a.settings(c, keys("db", "isolation", "expect", "out", "json"))
	a.outputFlags(c)
	format := formatFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		if c.Flags().Changed("format") {
			return a.checkFormat(c, *format, args)
		}
		config, err := read(nil)
		if err != nil {
			return err
		}
		if len(args) == 0 {
			return a.checkDatabase(&config)
		}
		// The verdict on a recording must not depend on the environment.
		if !c.Flags().Changed("db") {
			config.DB = ""
		}
		if !c.Flags().Changed("out") {
			config.Out = ""
		}
		alone := len(args) == 1 && (config.Out == "" || config.DB == "")
		if alone && config.Out != "" {
			return exit.Usagef("--out is for a check of several runs or of a database: the verdict on one run goes into its own directory")
		}
		headers, err := headersOf(args)
		switch {
		case err != nil:
			return err
		case alone:
			return a.checkRun(&config, args[0], headers[0])
		}
		return a.checkRuns(&config, args, headers)
	}
	return c
}

// headersOf reads the headers of the histories in these directories.
func headersOf(paths []string) ([]history.Header, error) {
	var headers []history.Header
	for _, path := range paths {
		if err := mustBeDirectory(path); err != nil {
			return nil, err
		}
		header, err := run.Header(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, noHistory(path)
		case err != nil:
			return nil, err
		}
		headers = append(headers, header)
	}
	return headers, nil
}

// checkRun checks the run in path. With a database it downloads the end state into the directory. It refuses that if
// the directory has an end state, which is better evidence than today's data.
func (a *app) checkRun(config *session.Config, path string, header history.Header) error {
	if len(check.Ended(header)) > 0 {
		return exit.Usagef("%s holds the end state of runs that were checked together: name the directories of these runs too", path)
	}
	dir, err := run.OpenDirectory(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if config.DB != "" {
		if end, err := history.OpenEnd(dir.History()); err == nil {
			_ = end.Close()
			return exit.Usagef("%s has its end state already: leave out --db to check it, or add --out DIR to check the run against today's data", path)
		}
	}
	return a.check(config, run.Options{Dir: dir}, header)
}

// checkRuns checks several runs together and writes the verdict into a new directory.
func (a *app) checkRuns(config *session.Config, paths []string, headers []history.Header) error {
	if err := check.SameData(paths, headers); err != nil {
		return exit.With(exit.Usage, err)
	}
	driven := slices.DeleteFunc(slices.Clone(headers), func(h history.Header) bool { return !check.Driven(h) })
	if len(driven) == 0 {
		return exit.Usagef("%s: these directories hold no run, only end states", strings.Join(paths, ", "))
	}
	one := driven[0]
	for _, h := range driven {
		if config.Expect == isolation.Unknown && run.Promised(h) != run.Promised(one) {
			return exit.Usagef("run %d was promised %s and run %d %s: give one level for both with --expect", one.Run, run.Promised(one), h.Run, run.Promised(h))
		}
	}
	path := config.NewPath(time.Now(), "check", "runs")
	if err := run.Vacant(path); err != nil {
		return err
	}
	command := "stroppy check" + session.Quoted(paths)
	if config.DB != "" { // whose end state is there then
		command += session.Quoted([]string{path})
	}
	if config.Expect != isolation.Unknown {
		command += " --expect " + config.Expect.String()
	}
	return a.check(config, run.Options{Dir: &run.Directory{Path: path}, Runs: paths, Command: command}, one)
}

// mustBeDirectory returns an error unless path is a directory.
func mustBeDirectory(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exit.Usagef("%s is no run's directory: it does not exist", path)
	case err != nil:
		return fmt.Errorf("open the run's directory: %w", err)
	case !info.IsDir():
		return exit.Usagef("%s is no run's directory: it is a file", path)
	}
	return nil
}

// checkDatabase checks the data of a database without a history.
func (a *app) checkDatabase(config *session.Config) error {
	config.DB = config.RunDatabase("")
	if err := config.MustExist(config.DB); err != nil {
		return err
	}
	kind, err := registry.Find(config.DB)
	if err != nil {
		return err
	}
	path := config.NewPath(time.Now(), "check", kind.Schemes[0])
	if err := run.Vacant(path); err != nil {
		return err
	}
	return a.check(config, run.Options{Dir: &run.Directory{Path: path}, Fresh: true}, history.Header{})
}

// check opens the database, if one is named, and checks.
func (a *app) check(config *session.Config, o run.Options, recorded history.Header) error {
	config.Workload = cmp.Or(recorded.Workload, config.Workload)
	spec, err := registry.Workloads().Find(config.Workload)
	if err != nil {
		return err
	}
	s := a.Begin(live.NewFeed())
	defer s.Stop()
	made, left := o.Fresh || len(o.Runs) > 0, session.RecordsLeft
	if made {
		left = session.NothingLeft
	}
	if config.DB != "" {
		if err := config.MustExist(config.DB); err != nil {
			return err
		}
		database, err := registry.Open(s.Context, config.DB)
		if err != nil {
			return s.Cause(err, left)
		}
		defer database.Close()
		if o.Workload, err = config.Recorded(database, recorded); err != nil {
			return exit.With(exit.Usage, err)
		}
		o.Database = database
	}
	if made {
		dir, err := run.NewDirectory(o.Dir.Path)
		if err != nil {
			return err
		}
		defer dir.Close()
		o.Dir = dir
	}
	o.Plan, o.DatabaseURL = config.Plan, scenario.Redact(config.DB)
	o.Spec, o.Progress, o.Scrub, o.Stroppy = spec, s, a.Scrub, registry.Version()
	o.Where = run.Environment{Build: registry.Build(), Servers: session.WhereServers(registry.Embedded(config.DB), config.DB)}
	before, _ := report.Read(o.Dir.Path) // without one there is nothing to replace
	result, err := run.Check(s.Context, o)
	s.Stop()
	if errors.As(err, new(*run.ReloadedError)) {
		err = exit.With(exit.Usage, err)
	}
	switch {
	case errors.As(err, new(*run.UnsavedError)): // the verdict stands
		s.Note("%s", a.Scrub(err.Error()))
	case err != nil && made:
		_, failed := session.Discard(o.Dir)
		return errors.Join(s.Cause(err, left), failed)
	case err != nil:
		return s.Cause(err, left)
	}
	if was, now := judged(before), judged(result); !made && err == nil && was != "" && was != now {
		s.Note("%s was %s, and is %s from this check on", o.Dir.Path, was, now)
	}
	return a.finish(result, o.Dir.Path, config.JSON, false)
}

// judged returns the verdict of a result and its level; empty if it has none.
func judged(r *report.Result) string {
	if r == nil || r.Verdict == "" || r.Claim == nil {
		return ""
	}
	return fmt.Sprintf("%v at %v", r.Verdict, r.Claim.Expect)
}

package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stroppy/internal/db"
	"stroppy/internal/live"
	"stroppy/internal/output"
	"stroppy/internal/report"
	"stroppy/internal/resource"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/sweep/rounds"
	"stroppy/internal/sweep/study"
	"stroppy/internal/workload/dataset"
)

// root of the directories that runs make by default.
const runsRoot = "stroppy-runs"

func (a *app) runCommand() *cobra.Command {
	c := &cobra.Command{Use: "run [WORKLOAD]", Short: "Load data, generate load, check and report", Args: oneWorkload}
	read := a.settings(c, func(k scenario.Key) bool { return k.Name != "workload" })
	a.outputFlags(c)
	dry := dryRunFlag(c)
	groupedHelp(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		config, err := read(args)
		if err != nil {
			return err
		}
		if config.keep = config.Keep; config.keep {
			if err := keepable(config.Cluster); err != nil {
				return err
			}
		}
		steps := run.Steps{Load: !config.NoLoad, Check: !config.NoCheck}
		if *dry {
			return a.dryRun("run", &config, steps)
		}
		return a.drive("run", &config, steps)
	}
	return c
}

// payCommand is the second step of the bank test, by one of its names.
func (a *app) payCommand(name string) *cobra.Command {
	c := &cobra.Command{Use: name, Short: "Drive a bank that pop has loaded, and record it for check", Args: noArguments}
	if name != "pay" {
		c.Short, c.Annotations = "The same as pay", map[string]string{sameAs: "pay"}
	}
	absent := keys("workload", "cluster", "kubernetes", "node-resources", "keep", "nemesis", "max-outage", "max-degradation", "no-load", "no-check")
	read := a.settings(c, func(k scenario.Key) bool { return inSteps(k) && !absent(k) })
	a.outputFlags(c)
	dry := dryRunFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		config, err := read(nil)
		if err == nil {
			err = config.inSteps("pay")
		}
		if err == nil {
			config.DB = config.runDatabase("")
			err = config.mustExist(config.DB)
		}
		if err != nil && *dry {
			return &exitError{exitUsage, err}
		}
		if err != nil {
			return err
		}
		if *dry {
			return a.dryRun("pay", &config, run.Steps{})
		}
		return a.drive("pay", &config, run.Steps{})
	}
	return c
}

// drive carries out run and pay.
func (a *app) drive(command string, config *config, steps run.Steps) error {
	if err := a.drawSeed(config, steps.Load); err != nil {
		return err
	}
	servers, err := a.openLive(config)
	if err != nil {
		return err
	}
	s := a.begin(servers.feed)
	servers.open(s.note)
	defer s.stop()
	result, dir, err := a.conduct(s, command, config, steps)
	s.stop()
	if result == nil {
		if config.DB != "" {
			a.loadAgain(config, command, err)
		}
		servers.fail(a.reasons(err)[0])
		return err
	}
	err = errors.Join(a.finish(result, dir, config.JSON, !steps.Check), err)
	servers.end(dir)
	return err
}

// conduct carries out one run, shown by the session. Without a result the error says why;
// with one it says what could not be kept.
func (a *app) conduct(s *session, command string, config *config, steps run.Steps) (result *report.Result, path string, err error) {
	started := time.Now()
	s.Fresh()
	own := *config
	config = &own
	defer func(before context.Context) { s.ctx = before }(s.ctx)
	if s.ctx, err = config.connectFrom(s.ctx); err != nil {
		return nil, "", err
	}
	cluster, err := a.openCluster(s, config)
	if err != nil {
		return nil, "", s.cause(err, nothingLeft)
	}
	defer func() { err = errors.Join(err, cluster.stop(s.note)) }()
	dir, database, err := a.place(s.ctx, config, started)
	if err != nil {
		return nil, "", s.cause(err, nothingLeft)
	}
	defer dir.Close()
	defer database.Close()
	if err := config.admit(s.ctx, database, atMostClients); err != nil {
		return nil, "", s.abandon(err, dir, database, config.ownFiles())
	}
	workload, err := config.bind(database, steps.Load)
	if err != nil {
		return nil, "", &exitError{exitUsage, s.abandon(err, dir, database, config.ownFiles())}
	}
	s.reportOverwrite(workload, config.DB)
	s.named(dir.Path)
	if config.Seed != 0 {
		s.note("seed %d", config.Seed)
	}
	if by := config.scaled(); by != "" {
		s.note("scaled down %s", by)
	}
	if note := config.unlimited(); note != "" {
		s.note("%s", note)
	}
	if note := run.MemoryWarning(&config.Plan, workload, resource.Free()); note != "" && steps.Check {
		s.note("%s", note)
	}
	url := config.runDatabase(dir.Path)
	options := run.Options{
		Spec: config.spec(), Workload: workload, Database: database, Dir: dir, Steps: steps,
		Plan: config.Plan, DatabaseURL: scenario.Redact(url), Embedded: embedded(url),
		Stroppy: version(), Command: command, Unchecked: "Nothing was checked, as asked.",
		Progress: s, Interrupt: s.interrupt, Scrub: a.scrub, Where: run.Environment{Build: build()},
	}
	if command == "pay" {
		options.Unchecked = "The run is recorded and not checked yet: `stroppy check` does that."
	}
	cluster.complete(&options, config, workload)
	workers, err := a.startWorkers(s, config, cluster, url, dir.Path)
	if err != nil {
		return nil, "", s.abandon(err, dir, database, config.ownFiles())
	}
	if workers != nil {
		options.Workers = workers
		defer func() { err = errors.Join(err, workers.Close()) }()
	}
	result, err = run.Run(s.ctx, options)
	if err != nil && !errors.As(err, new(*run.UnsavedError)) {
		s.stop()
		return nil, dir.Path, s.checkable(s.abandon(err, dir, database, config.ownFiles()), config, dir.Path)
	}
	if command == "pay" {
		s.note("%s", toPaste("check it", fmt.Sprintf("stroppy check %s --db %s", scenario.Quote(dir.Path), config.Address())))
	}
	return result, dir.Path, err
}

// abandon gives up a run that could not be carried out, with its own database where
// it has one, if nothing was recorded. It returns the error to report.
func (s *session) abandon(err error, dir *run.Directory, database db.Database, own []string) error {
	_ = database.Close() // nothing is written into the directory any more
	removed, failed := discard(dir, own...)
	if !removed {
		return errors.Join(s.cause(err, recordsLeft), failed)
	}
	s.unnamed(dir.Path)
	var stopped *dataset.StoppedError
	if len(own) > 0 && errors.As(err, &stopped) {
		err = fmt.Errorf("load the run's own database, which is removed again: %w", stopped.Err)
	}
	return errors.Join(s.cause(err, nothingLeft), failed)
}

// loadAgain reports how to go on with a load that stopped: its seed may have been drawn.
func (a *app) loadAgain(config *config, command string, err error) {
	if errors.As(err, new(*dataset.StoppedError)) {
		fmt.Fprintln(a.stderr, toPaste("repeat", config.Command(command)))
	}
}

// discard removes a run's directory in which nothing was recorded, and the one
// above it if stroppy chose that and nothing else is in it.
func discard(dir *run.Directory, worthless ...string) (removed bool, err error) {
	removed, err = dir.Discard(worthless...)
	if filepath.Dir(dir.Path) == runsRoot {
		_ = os.Remove(runsRoot) // one that holds something stays
	}
	return removed, err
}

// place makes the run's directory, where SQLite's default file is, and opens the
// database. Where one of them cannot be had, nothing is left of the other.
func (a *app) place(ctx context.Context, config *config, started time.Time) (*run.Directory, db.Database, error) {
	_, unknown := databaseOf(config.runDatabase(""))
	if err := cmp.Or(unknown, config.loadedElsewhere(), config.oneProcess()); err != nil {
		return nil, nil, err
	}
	scheme, _, _ := strings.Cut(config.runDatabase(""), ":")
	dir, err := run.NewDirectory(config.newPath(started, config.Workload, scheme))
	if err != nil {
		return nil, nil, err
	}
	var database db.Database
	open := func() (err error) {
		database, err = config.openToRun(ctx, dir.Path)
		return err
	}
	if config.Cluster == "" {
		err = open()
	} else { // it was well a moment ago
		err = run.Reach(ctx, open)
	}
	if err != nil {
		_, failed := discard(dir, config.ownFiles()...)
		return nil, nil, errors.Join(err, failed, dir.Close())
	}
	return dir, database, nil
}

// loadedElsewhere refuses a run without a load where nothing can have been loaded.
func (c *config) loadedElsewhere() error {
	switch {
	case !c.NoLoad:
		return nil
	case len(c.ownFiles()) > 0:
		return usagef("--no-load drives what is loaded, and the default database is a new one: name one with --db")
	}
	return c.mustExist(c.DB)
}

// newPath is the path of the new directory that the configuration names, or of one
// named after its start, what is done and the database.
func (c *config) newPath(started time.Time, what, database string) string {
	return cmp.Or(c.Out, run.Unused(run.DefaultPath(runsRoot, started, what, database)))
}

// drawSeed draws the seed where the load needs one and none was given. It fits a
// number of any language that reads the result.
func (a *app) drawSeed(config *config, loads bool) error {
	if config.Seed != 0 || !loads {
		return nil
	}
	drawn, err := rand.Int(rand.Reader, big.NewInt(999_999_999))
	if err != nil {
		return fmt.Errorf("draw a seed: %w", err)
	}
	config.Seed = drawn.Uint64() + 1
	return nil
}

// finish prints the result of a run or a check and turns the verdict into the
// exit code. unasked says that nobody wanted a verdict.
func (a *app) finish(result *report.Result, dir string, asJSON, unasked bool) error {
	unshown := a.print(result, dir, asJSON) // as on a terminal that was closed: the page is made all the same
	a.page(dir, asJSON)
	err := judgement(result, unasked)
	if unshown != nil {
		return errors.Join(err, unshown)
	}
	if err != nil && a.quiet { // its report does not name it
		fmt.Fprintln(a.stderr, "run directory", dir)
	}
	if err != nil && result.Command != "" {
		fmt.Fprintln(a.stderr, toPaste("repeat", result.Command))
	}
	return err
}

// judgement is the error of a verdict, and below it of the objectives; nil where all that was
// asked for holds. unasked says that nobody wanted a verdict.
func judgement(result *report.Result, unasked bool) error {
	objectives := result.ObjectivesStatus()
	switch {
	case result.Verdict == "invalid":
		return &exitError{exitInvalid, fmt.Errorf("invalid: %s", result.Reason)}
	case result.Verdict != "valid" && !unasked:
		return &exitError{exitUnknown, fmt.Errorf("unknown: %s", result.Reason)}
	case objectives == report.ObjectiveMissed:
		return &exitError{exitMissed, errors.New(result.ObjectivesText())}
	case objectives == report.ObjectiveUnknown:
		return &exitError{exitUnknown, errors.New(result.ObjectivesText())}
	}
	return nil
}

func (a *app) print(result *report.Result, dir string, asJSON bool) error {
	if !asJSON {
		return report.Text(a.stdout, result, a.textOptions(dir))
	}
	data, err := result.JSON()
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(data)
	return err
}

func (a *app) printJSON(value any) error {
	encoder := json.NewEncoder(a.stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// popCommand is the first step of the bank test, by one of its names.
func (a *app) popCommand(name string) *cobra.Command {
	c := &cobra.Command{Use: name, Short: "Load a bank for pay", Args: noArguments}
	if name != "pop" {
		c.Short, c.Annotations = "The same as pop", map[string]string{sameAs: "pop"}
	}
	always := keys("db", "seed", "json")
	read := a.settings(c, func(k scenario.Key) bool { return always(k) || inSteps(k) && k.Data })
	c.RunE = func(*cobra.Command, []string) error {
		config, err := read(nil)
		if err == nil {
			err = config.inSteps("pop")
		}
		if err == nil {
			err = a.drawSeed(&config, true)
		}
		if err != nil {
			return err
		}
		config.DB = config.runDatabase("")
		return a.pop(&config)
	}
	return c
}

func (a *app) pop(config *config) error {
	s := a.begin(live.NewFeed())
	defer s.stop()
	var err error
	if s.ctx, err = config.connectFrom(s.ctx); err != nil {
		return err
	}
	database, err := openDatabase(s.ctx, config.DB)
	if err != nil {
		return s.cause(err, nothingLeft)
	}
	defer database.Close()
	o := config.options(true)
	o.Undriven = true
	workload, err := config.Config.New(database, o)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	workload.OnOverwrite(func(what string) { s.note("%s", what) })
	s.Begin("load")
	s.note("seed %d", config.Seed)
	loaded, err := workload.Load(s.ctx, func(done, total uint64) { s.Show(run.State{Done: done, Total: total}) })
	if err != nil {
		s.stop()
		a.loadAgain(config, "pop", err)
		return s.cause(err, halfLeft)
	}
	result := run.Loaded(loaded)
	if config.JSON {
		return a.printJSON(map[string]any{"schema": report.Schema, "workload": config.Workload, "seed": config.Seed, "load": result})
	}
	_, err = fmt.Fprintf(a.stdout, "loaded %s holding %s in %.3g s into %s; seed %d\n",
		report.Counted(result.Accounts, "account"), result.Total, loaded.Took.Seconds(), scenario.Redact(config.DB), config.Seed)
	return err
}

func (a *app) reportCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "report DIR…", Short: "Show the report of a run, a sweep or a comparison again, and make its page again; compare several runs",
		Args: takes(1, math.MaxInt, "shows a run, a sweep or a comparison, or compares several runs: name their directories"),
	}
	asJSON := c.Flags().Bool("json", false, "print JSON instead, as --format json does: of a run its result.json")
	a.outputFlags(c)
	format := outputFormat(c)
	open := c.Flags().Bool("open", false, "open the page in a browser, too")
	out := c.Flags().StringP("out", "o", "", "of several runs: put a page of their comparison into this `DIR`, which must not hold anything yet")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if err := noneEmpty(c); err != nil {
			return err
		}
		if err := knownFormat(c, format, *asJSON); err != nil {
			return err
		}
		switch {
		case len(args) == 1 && *out != "":
			return usagef("--out is where the page of a comparison goes, and one run was named: its page is made in its own directory")
		case len(args) > 1 && *open && *out == "":
			return usagef("--open opens a page, and several runs have none without --out DIR")
		case len(args) > 1:
			err := a.compareRuns(args, *out, *format)
			if err == nil && *open {
				err = openPage(filepath.Join(*out, report.ComparisonPageName))
			}
			return err
		}
		page, err := a.report(args[0], *format, *open)
		if err == nil && *open {
			err = openPage(page)
		}
		return err
	}
	return c
}

// report shows a run, a sweep or a comparison again, and beside text or to open it makes its page
// again, whose path it returns.
func (a *app) report(dir, format string, open bool) (page string, err error) {
	if err := mustBeDirectory(dir); err != nil {
		return "", err
	}
	switch {
	case study.Holds(dir):
		return a.reportScenarios(dir, format, open)
	case holdsBook(dir):
		return a.reportSweep(dir, format, open)
	case rounds.Holds(dir):
		return a.reportComparison(dir, format, open)
	}
	result, err := run.ReadResult(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", noResult(dir)
	case err != nil:
		return "", err
	}
	if _, err := run.Recompute(dir, result); err != nil {
		fmt.Fprintln(a.stderr, a.scrub(err.Error()))
	}
	if format == output.Text {
		err = a.print(result, dir, false)
	} else {
		err = a.printSet(output.OfRun(dir, result), format)
	}
	if err == nil && (format == output.Text || open) {
		err = a.unmade(a.pageAgain(dir, format != output.Text), open)
	}
	return filepath.Join(dir, report.PageName), err
}

// again says how to make a page that could not be made.
const again = ": `stroppy report` makes it again"

// page makes report.html in a run's directory, below its text report. A page that
// could not be made is reported and changes no verdict.
func (a *app) page(dir string, asJSON bool) {
	if err := a.pageAgain(dir, asJSON); err != nil {
		fmt.Fprintln(a.stderr, a.scrub(err.Error())+again)
	}
}

// pageAgain is page for the command that was asked for it, whose error it returns.
func (a *app) pageAgain(dir string, asJSON bool) error {
	path, err := run.WritePage(dir)
	var damaged *report.FileError
	switch {
	case errors.As(err, &damaged):
		return fmt.Errorf("%w: move %s away, and the page is made without it", err, damaged.Name)
	case err != nil:
		return err
	case !asJSON && !a.quiet:
		fmt.Fprintf(a.stdout, "  %-18s%s\n", "page", path)
	}
	return nil
}

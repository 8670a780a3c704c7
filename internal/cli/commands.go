package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"

	"github.com/spf13/cobra"

	"stroppy/internal/campaign"
	"stroppy/internal/exit"
	"stroppy/internal/live"
	"stroppy/internal/output"
	"stroppy/internal/registry"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/session"
	"stroppy/internal/sweep"
	"stroppy/internal/sweep/study"
)

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
		if config.Stays = config.Keep; config.Stays {
			if err := session.Keepable(config.Cluster); err != nil {
				return err
			}
		}
		return a.drive("run", &config, *dry)
	}
	return c
}

// driveCommand returns the second step of the bank test under one of its names.
func (a *app) driveCommand(name string) *cobra.Command {
	c := &cobra.Command{Use: "drive", Short: "Drive a bank that load has loaded, and record it for check", Args: noArguments}
	asNamed(c, name)
	absent := []string{"workload", "cluster", "kubernetes", "node-resources", "keep", "nemesis", "probe", "yes", "max-outage", "max-degradation", "no-load", "no-check"}
	unknown := keys(absent...)
	read := a.settings(c, func(k scenario.Key) bool { return inSteps(k) && !unknown(k) })
	a.outputFlags(c)
	dry := dryRunFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		config, err := oneStep(read, c.Name())
		if err == nil {
			err = config.MustExist(config.DB)
		}
		switch {
		case err != nil && *dry:
			return exit.With(exit.Usage, err)
		case err != nil:
			return err
		}
		config.NoLoad, config.NoCheck = true, true
		for _, name := range absent {
			delete(config.Named, name) // the command that repeats the call cannot name them
		}
		return a.drive("drive", &config, *dry)
	}
	return c
}

// asNamed gives a command its other name, if that is asked for. The help leaves it out.
func asNamed(c *cobra.Command, name string) {
	if same := c.Use; same != name {
		c.Use, c.Short, c.Annotations, c.Hidden = name, "The same as "+same, map[string]string{sameAs: same}, true
	}
}

// oneStep reads the configuration of a single step. It returns an error if the workload does not support single steps.
func oneStep(read func(args []string, idle ...string) (session.Config, error), command string) (session.Config, error) {
	c, err := read(nil)
	if err == nil && !c.WorkloadSpec().Steps {
		err = exit.Usagef("`stroppy %s` is a step of the bank test, and the workload is %s: `stroppy run %s` loads, drives and checks it", command, c.Workload, c.Workload)
	}
	c.DB = c.RunDatabase("")
	return c, err
}

// drive carries out run and drive, or prints their plan.
func (a *app) drive(command string, config *session.Config, dry bool) error {
	if dry {
		rows, err := a.Outline(command, config)
		return a.printPlan([]campaign.Outline{{Head: "Plan of `stroppy " + command + "`; nothing was started.", Rows: rows}}, err)
	}
	if err := a.DrawSeed(config); err != nil {
		return err
	}
	servers, err := a.OpenLive(config)
	if err != nil {
		return err
	}
	s := a.Begin(servers.Feed)
	servers.Open(s.Note)
	defer s.Stop()
	result, dir, err := a.Conduct(s, command, config)
	s.Stop()
	if result == nil {
		if config.DB != "" {
			a.LoadAgain(config, command, err)
		}
		servers.Fail(a.Reasons(err)[0])
		return err
	}
	err = errors.Join(a.finish(result, dir, config.JSON, config.NoCheck), err)
	servers.End(dir)
	return err
}

// finish prints the result of a run or a check, and returns the error of the verdict. With unasked, an unknown verdict is
// no error.
func (a *app) finish(result *report.Result, dir string, asJSON, unasked bool) error {
	unshown := a.print(result, dir, asJSON) // the page is made even if the terminal was closed
	a.Page(dir, asJSON)
	err := judgement(result, unasked || result.Measured)
	if unshown != nil {
		return errors.Join(err, unshown)
	}
	if err != nil && a.Quiet { // its report does not name it
		fmt.Fprintln(a.Stderr, "run directory", dir)
	}
	if err != nil && result.Command != "" {
		fmt.Fprintln(a.Stderr, session.ToPaste("repeat", result.Command))
	}
	return err
}

// judgement returns the error of a verdict or, if that is good, of the objectives. With unasked, an unknown verdict is
// no error.
func judgement(result *report.Result, unasked bool) error {
	objectives := result.ObjectivesStatus()
	switch {
	case result.Verdict == "invalid", result.Verdict != "valid" && !unasked:
		return exit.Judged(result.Verdict, result.Reason)
	case objectives == report.ObjectiveMissed:
		return exit.With(exit.Missed, errors.New(result.ObjectivesText()))
	case objectives == report.ObjectiveUnknown:
		return exit.With(exit.Unknown, errors.New(result.ObjectivesText()))
	}
	return nil
}

func (a *app) print(result *report.Result, dir string, asJSON bool) error {
	if !asJSON {
		return report.Text(a.Stdout, result, a.textOptions(dir))
	}
	data, err := result.JSON()
	if err != nil {
		return err
	}
	_, err = a.Stdout.Write(data)
	return err
}

func (a *app) printJSON(value any) error {
	encoder := json.NewEncoder(a.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// loadCommand returns the first step of the bank test under one of its names.
func (a *app) loadCommand(name string) *cobra.Command {
	c := &cobra.Command{Use: "load", Short: "Load a bank for drive", Args: noArguments}
	asNamed(c, name)
	always := keys("db", "seed", "json")
	read := a.settings(c, func(k scenario.Key) bool { return always(k) || inSteps(k) && k.Data })
	c.RunE = func(*cobra.Command, []string) error {
		config, err := oneStep(read, c.Name())
		if config.NoLoad = false; err == nil {
			err = a.DrawSeed(&config)
		}
		if err != nil {
			return err
		}
		return a.load(&config)
	}
	return c
}

func (a *app) load(config *session.Config) error {
	s := a.Begin(live.NewFeed())
	defer s.Stop()
	var err error
	if s.Context, err = config.ConnectFrom(s.Context); err != nil {
		return err
	}
	database, err := registry.Open(s.Context, config.DB)
	if err != nil {
		return s.Cause(err, session.NothingLeft)
	}
	defer database.Close()
	o := config.Options(true)
	o.Undriven = true
	workload, err := config.Config.New(database, o)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	workload.OnOverwrite(func(what string) { s.Note("%s", what) })
	s.Begin("load")
	s.Note("seed %d", config.Seed)
	loaded, err := workload.Load(s.Context, func(done, total uint64) { s.Show(run.State{Done: done, Total: total}) })
	if err != nil {
		s.Stop()
		a.LoadAgain(config, "load", err)
		return s.Cause(err, session.HalfLeft)
	}
	result := run.Loaded(loaded)
	if config.JSON {
		return a.printJSON(map[string]any{"schema": report.Schema, "workload": config.Workload, "seed": config.Seed, "load": result})
	}
	_, err = fmt.Fprintf(a.Stdout, "loaded %s holding %s in %.3g s into %s; seed %d\n",
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
		if err := knownFormat(c, format, *asJSON); err != nil {
			return err
		}
		switch {
		case len(args) == 1 && *out != "":
			return exit.Usagef("--out is for the page of a comparison: the page of one run is made in its own directory")
		case len(args) > 1 && *open && *out == "":
			return exit.Usagef("several runs have no page without --out DIR: add --out, or leave --open out")
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

// reportSweep prints a sweep and makes its page. It returns the path of the page.
func (a *app) reportSweep(kind sweep.Kind, dir, format string, open bool) (page string, err error) {
	b, err := kind.Read(dir)
	if err != nil {
		return "", err
	}
	published, err := campaign.Published()
	if err != nil {
		return "", err
	}
	var set *output.Set
	switch {
	case format == output.Text:
		err = a.printSweep(b, published, dir, false)
	case kind == sweep.Scenarios:
		set, err = output.OfScenarios(b, published, dir, run.ReadResult)
	default:
		set, err = output.OfSweep(b, dir, run.ReadResult)
	}
	if err == nil && set != nil {
		err = a.printSet(set, format)
	}
	again := campaign.Onwards(b, dir)
	save := func() error { return sweep.SavePage(b, a.textOptions(dir), again) }
	if page = filepath.Join(dir, sweep.PageName); kind == sweep.Scenarios {
		page = filepath.Join(dir, study.PageName)
		save = func() error { return study.SavePage(b, dir, published, again) }
	}
	if err == nil && (format == output.Text || open) {
		err = a.unmade(save(), open)
	}
	return page, err
}

// printSweep prints a sweep in a directory as text or as JSON.
func (a *app) printSweep(b *sweep.Book, published []study.Published, dir string, asJSON bool) error {
	switch {
	case asJSON:
		return a.printJSON(b)
	case b.Kind == sweep.Scenarios:
		return study.Text(a.Stdout, b, dir, published)
	}
	return sweep.Text(a.Stdout, b, a.textOptions(dir))
}

// report prints a run, a sweep or a comparison again. For text, or with open, it makes the page again. It returns the
// path of the page.
func (a *app) report(dir, format string, open bool) (page string, err error) {
	if err := mustBeDirectory(dir); err != nil {
		return "", err
	}
	switch kind := sweep.KindOf(dir); kind {
	case sweep.Scenarios, sweep.Steps:
		return a.reportSweep(kind, dir, format, open)
	case sweep.Comparison:
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
		fmt.Fprintln(a.Stderr, a.Scrub(err.Error()))
	}
	if format == output.Text {
		err = a.print(result, dir, false)
	} else {
		err = a.printSet(output.OfRun(dir, result), format)
	}
	if err == nil && (format == output.Text || open) {
		err = a.unmade(a.PageAgain(dir, format != output.Text), open)
	}
	return filepath.Join(dir, report.PageName), err
}

package cli

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stroppy/internal/exit"
	"stroppy/internal/live"
	"stroppy/internal/output"
	"stroppy/internal/registry"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/session"
	"stroppy/internal/sweep/study"
	"stroppy/scenarios"
)

// overScenarios begins the --over of a sweep over scenarios, and studied are those that it
// takes where none are named.
const (
	overScenarios = "scenarios"
	studied       = "study/*"
)

// published are the tables of the studies.
func published() (list []study.Published, err error) {
	files := scenarios.Published()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		p, err := study.Parse(name, files[name])
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// listOf returns the scenarios that the text of --over names, each once; false: it is over
// something else.
func listOf(over string) (names []string, ok bool, err error) {
	axis, list, given := strings.Cut(over, "=")
	if strings.TrimSpace(axis) != overScenarios {
		return nil, false, nil
	}
	if !given {
		list = studied
	}
	for one := range strings.SplitSeq(list, ",") {
		found, err := named(strings.TrimSpace(one))
		if err != nil {
			return nil, true, err
		}
		for _, name := range found {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, true, nil
}

// named are the scenarios of a name or a pattern: those in this program, or files.
func named(pattern string) (names []string, err error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, exit.Usagef("sweep over the scenarios %q: it is no pattern of names: a bracket in it is not closed", pattern)
	}
	for _, s := range scenarios.All() {
		if ok, _ := path.Match(pattern, s.Name); ok {
			names = append(names, s.Name)
		}
	}
	if len(names) > 0 {
		return names, nil
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			names = append(names, file)
		}
	}
	if len(names) == 0 {
		return nil, exit.Usagef("sweep over the scenarios %q: there is no such file, and none of this name in `stroppy list scenarios`%s", pattern, session.NearScenario(pattern))
	}
	return names, nil
}

// scenarioSweep runs scenarios one after the other.
type scenarioSweep struct {
	app       *app
	names     []string
	configs   []session.Config // of each, as far as it has none of refused
	refused   []error          // why a scenario has no plan
	published []study.Published
	book      *study.Book
	dir       string
	json      bool
	asked     bool // for a verdict, by a scenario
}

// sweepScenarios carries out `stroppy sweep --over scenarios`. The flags count for each scenario.
func (a *app) sweepScenarios(c *cobra.Command, args, names []string, over string, dry bool) error {
	w := &scenarioSweep{app: a, names: names}
	for _, flag := range []string{"repeat", "arrival", "scenario"} {
		if c.Flags().Changed(flag) {
			return exit.Usagef("--%s is of other sweeps than one over scenarios, which runs each as it is: leave it out", flag)
		}
	}
	if len(args) > 0 {
		return exit.Usagef("each scenario names its workload: leave %s out", args[0])
	}
	given, own := flagsOf(c)
	w.dir, w.json = own["out"], own["json"] == "true"
	if err := w.plan(given); err != nil {
		return err
	}
	tables, err := published()
	if err != nil {
		return err
	}
	w.published = tables
	fresh := &study.Book{Over: names, StartedAt: time.Now().UTC().Format(time.RFC3339), Command: sweepCommandOf(over, given), Stroppy: registry.Version()}
	for _, s := range given {
		if s.Key == "seed" {
			fresh.Seed = w.seedOf()
		}
	}
	if dry {
		return w.dryRun(fresh)
	}
	return w.run(fresh)
}

// flagsOf are the settings that were given as flags: those of each run, and those of the sweep.
func flagsOf(c *cobra.Command) (given []scenario.Setting, own map[string]string) {
	own = map[string]string{}
	c.Flags().Visit(func(f *pflag.Flag) {
		k, ok := f.Value.(*keyFlag)
		switch {
		case !ok:
		case k.key.Name == "out", k.key.Name == "json":
			own[k.key.Name] = k.text
		default:
			given = append(given, scenario.Setting{Key: k.key.Name, Value: k.text, Source: "--" + k.key.Name})
		}
	})
	return given, own
}

// sweepCommandOf is the command that repeats the sweep, without secrets.
func sweepCommandOf(over string, given []scenario.Setting) string {
	command := "stroppy sweep --over " + scenario.Quote(over)
	for _, s := range given {
		value := shown(s)
		if s.Key == "nemesis" {
			value, _ = scenario.RedactScript(value)
		}
		for line := range strings.SplitSeq(value, "\n") {
			command += " --" + s.Key + "=" + scenario.Quote(line)
		}
	}
	return command
}

// plan resolves each scenario. One that is refused is a row without a run; where all are, the
// sweep is.
func (w *scenarioSweep) plan(given []scenario.Setting) error {
	refused := 0
	for _, name := range w.names {
		config, err := w.app.Configure(given, name)
		switch {
		case err == nil && config.NoLoad:
			err = exit.Usagef("it drives what is loaded, and each run of a sweep loads its own: leave no-load out")
		case err == nil && (config.Serve != "" || config.Metrics != ""):
			return exit.Usagef("serve and metrics show one run, and a sweep over scenarios shows nothing live: leave them out")
		}
		if err != nil {
			refused++
		}
		config.JSON, config.Out = false, ""
		w.asked = w.asked || err == nil && !config.NoCheck
		w.configs, w.refused = append(w.configs, config), append(w.refused, err)
	}
	if refused == len(w.names) {
		return w.refused[0]
	}
	return nil
}

// seedOf is the seed that was given for all.
func (w *scenarioSweep) seedOf() uint64 {
	for i := range w.configs {
		if w.refused[i] == nil {
			return w.configs[i].Seed
		}
	}
	return 0
}

func (w *scenarioSweep) dryRun(b *study.Book) error {
	for i, name := range w.names {
		head := "Plan of " + name
		config := w.configs[i]
		err := w.refused[i]
		var rows [][2]string
		if err == nil {
			rows, err = w.app.Outline("run", &config, run.Steps{Load: true, Check: !config.NoCheck})
		}
		if err != nil {
			rows = [][2]string{{"could not run", w.app.Reasons(err)[0]}}
		} else {
			rows = rows[:len(rows)-2] // directory and command are the sweep's
		}
		if err := w.app.printOutline(head, rows); err != nil {
			return err
		}
	}
	return w.app.printOutline("Plan of `stroppy sweep`, each of whose scenarios is a run; nothing was started.", [][2]string{
		{"order", strings.Join(w.names, ", ")}, {"command", b.Command},
	})
}

// run carries the scenarios out that have not been yet. What could not be had once is tried
// again.
func (w *scenarioSweep) run(fresh *study.Book) error {
	a := w.app
	unlock, err := w.open(fresh)
	if err != nil {
		return err
	}
	defer unlock()
	s := a.Begin(live.NewFeed())
	defer s.Stop()
	s.Note("sweep directory %s", w.dir)
	s.Note("seed %d", w.book.Seed)
	for i, name := range w.names {
		if row := w.book.Row(name); row != nil && row.Problem == "" {
			s.Note("%s was run before", name)
			continue
		}
		s.Note("scenario %d of %d: %s", i+1, len(w.names), name)
		if err := w.step(s, i); err != nil {
			s.Stop()
			fmt.Fprintln(a.Stderr, session.ToPaste("go on", w.onwards()))
			if !w.json {
				err = errors.Join(err, w.print(w.json))
			}
			return w.verdicts(err)
		}
	}
	s.Stop()
	w.book.Finished = true
	if err := errors.Join(w.keep(), w.print(w.json)); err != nil {
		return err
	}
	if missing := w.book.Missing(); len(missing) > 0 {
		err = fmt.Errorf("%d of %d scenarios could not be run: %s", len(missing), len(w.names), strings.Join(missing, ", "))
	}
	return w.verdicts(err)
}

// open makes the sweep's directory or goes on with it, and keeps others out of it.
func (w *scenarioSweep) open(fresh *study.Book) (unlock func(), err error) {
	if w.dir == "" {
		w.dir = run.Unused(filepath.Join(session.RunsRoot, time.Now().Format("20060102-150405")+"-scenarios"))
	}
	if !study.Holds(w.dir) {
		if err := run.Vacant(w.dir); err != nil {
			return nil, err
		}
	}
	if w.book, err = fresh.Resume(w.dir); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	for i, name := range w.names {
		row := w.book.Row(name)
		if row != nil && row.Problem == "" && (w.refused[i] != nil || row.Settings != w.settings(i)) {
			return nil, exit.Usagef("go on with the sweep in %s: %s was run there with other settings: take another directory", w.dir, name)
		}
	}
	if w.book.Seed == 0 {
		drawn := session.Config{}
		if err := w.app.DrawSeed(&drawn, true); err != nil {
			return nil, err
		}
		w.book.Seed = drawn.Seed
	}
	w.book.Finished, w.book.Stroppy, w.book.Command = false, fresh.Stroppy, fresh.Command
	return takeDirectory(w.dir, w.keep)
}

// settings are those of a scenario without the seed, which the sweep gives it.
func (w *scenarioSweep) settings(i int) string {
	c := w.configs[i]
	c.Seed = 0
	return string(c.YAML())
}

// step runs a scenario and keeps what it came to, or why it could not be run. The error ends
// the sweep.
func (w *scenarioSweep) step(s *session.Session, i int) error {
	row := study.Row{Scenario: w.names[i]}
	err := w.refused[i]
	if err == nil {
		c := w.configs[i]
		row.Settings = w.settings(i)
		if c.Seed == 0 {
			c.Seed = w.book.Seed
		}
		c.Out = run.Unused(filepath.Join(w.dir, fmt.Sprintf("%02d-%s", i+1, strings.ReplaceAll(strings.TrimSuffix(filepath.ToSlash(w.names[i]), ".yaml"), "/", "-"))))
		var result *report.Result
		var dir string
		result, dir, err = w.app.Next(s, &c)
		switch {
		case result != nil:
			row = study.NewRow(w.names[i], row.Settings, filepath.Base(dir), result)
			w.book.Machine = result.Machine
			w.book.Put(row)
			return errors.Join(err, w.keep())
		case errors.Is(err, session.ErrInterrupted) || s.Context.Err() != nil:
			return err
		}
	}
	row.Problem = strings.Join(w.app.Reasons(err), "; ")
	s.Note("could not run %s: %s", w.names[i], row.Problem)
	w.book.Put(row)
	return w.keep()
}

// keep puts the book and its page in place. Without a page the book stands.
func (w *scenarioSweep) keep() error {
	if err := w.book.Save(w.dir, w.published); err != nil {
		return err
	}
	if err := study.SavePage(w.book, w.dir, w.published, w.onwards()); err != nil {
		fmt.Fprintln(w.app.Stderr, w.app.Scrub(err.Error())+session.Again)
	}
	return nil
}

// onwards is the command that repeats the sweep, or goes on with one that is not finished.
func (w *scenarioSweep) onwards() string {
	if w.book.Finished {
		return w.book.Command
	}
	return w.book.Command + " --out " + scenario.Quote(w.dir)
}

func (w *scenarioSweep) print(asJSON bool) error {
	if asJSON {
		return w.app.printJSON(w.book)
	}
	return study.Text(w.app.Stdout, w.book, w.dir, w.published)
}

// verdicts is the error of the runs, and of what could not be run.
func (w *scenarioSweep) verdicts(err error) error {
	var v verdicts
	for _, row := range w.book.Rows {
		if row.Problem == "" {
			v.add(row.Dir, row.Verdict, row.Objectives)
		}
	}
	return v.with(err, w.asked)
}

// reportScenarios shows a sweep over scenarios again and makes its page again, whose path it
// returns.
func (a *app) reportScenarios(dir, format string, open bool) (page string, err error) {
	w := &scenarioSweep{app: a, dir: dir}
	if w.book, err = study.Read(dir); err != nil {
		return "", err
	}
	if w.published, err = published(); err != nil {
		return "", err
	}
	if format == output.Text {
		err = w.print(false)
	} else {
		var set *output.Set
		if set, err = output.OfScenarios(w.book, w.published, dir, run.ReadResult); err == nil {
			err = a.printSet(set, format)
		}
	}
	if err == nil && (format == output.Text || open) {
		err = a.unmade(study.SavePage(w.book, dir, w.published, w.onwards()), open)
	}
	return filepath.Join(dir, study.PageName), err
}

package campaign

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stroppy/internal/exit"
	"stroppy/internal/live"
	"stroppy/internal/registry"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/session"
	"stroppy/internal/sweep/study"
	"stroppy/scenarios"
)

// The axis of a sweep over scenarios, and the scenarios that it takes if none are named.
const (
	overScenarios = "scenarios"
	studied       = "study/*"
)

// Published returns the tables of the studies.
func Published() (list []study.Published, err error) {
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

// ScenariosOf returns the scenarios that the text of --over names, each once. ok is false if the
// sweep is over something else.
func ScenariosOf(over string) (names []string, ok bool, err error) {
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

// named returns the scenarios of a name or a pattern: scenarios of this program, or files.
func named(pattern string) (names []string, err error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, exit.Usagef("sweep over the scenarios %q: it is no pattern of names: a bracket in it is not closed",
			pattern)
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
		return nil, exit.Usagef("sweep over the scenarios %q: there is no such file, and none of this name "+
			"in `stroppy list scenarios`%s", pattern, session.NearScenario(pattern))
	}
	return names, nil
}

// Scenarios is a campaign of scenarios, one after the other. One that cannot be run is reported,
// and the others go on.
type Scenarios struct {
	Campaign
	Book      *study.Book
	Published []study.Published

	plans []planned
	at    int // the next of them
}

// NewScenarios returns the campaign of the scenarios with these names. The settings count for
// each of them. It returns an error if none of them can be run.
func NewScenarios(app *session.App, dir, over string, names []string, given []scenario.Setting) (*Scenarios, error) {
	w := &Scenarios{Campaign: Campaign{app: app, Dir: dir}}
	w.list = w
	if err := w.plan(names, given); err != nil {
		return nil, err
	}
	w.Book = &study.Book{
		Over: names, StartedAt: time.Now().UTC().Format(time.RFC3339), Command: scenariosCommand(over, given), Stroppy: registry.Version(),
	}
	if slices.ContainsFunc(given, func(s scenario.Setting) bool { return s.Key == "seed" }) {
		for _, p := range w.plans {
			w.Book.Seed = max(w.Book.Seed, p.config.Seed)
		}
	}
	var err error
	w.Published, err = Published()
	return w, err
}

// scenariosCommand returns the command that repeats the campaign, without secrets.
func scenariosCommand(over string, given []scenario.Setting) string {
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

// plan resolves each scenario. One that is refused becomes a row without a run.
func (w *Scenarios) plan(names []string, given []scenario.Setting) error {
	refused := 0
	for i, name := range names {
		config, err := w.app.Configure(given, name)
		switch {
		case err == nil && config.NoLoad:
			err = exit.Usagef("it drives what is loaded, and each run of a sweep loads its own: leave no-load out")
		case err == nil && (config.Serve != "" || config.Metrics != ""):
			return exit.Usagef("serve and metrics show one run, and a sweep over scenarios shows nothing live: leave them out")
		}
		if err != nil {
			refused++
			config.Seed = 0
		}
		config.JSON, config.Out = false, ""
		w.asked = w.asked || err == nil && !config.NoCheck
		folder := strings.ReplaceAll(strings.TrimSuffix(filepath.ToSlash(name), ".yaml"), "/", "-")
		w.plans = append(w.plans, planned{
			title:  fmt.Sprintf("scenario %d of %d: %s", i+1, len(names), name),
			folder: fmt.Sprintf("%02d-%s", i+1, folder), config: config, refused: err, index: i,
		})
	}
	if refused == len(names) {
		return w.plans[0].refused
	}
	return nil
}

// Plan returns what the campaign would do.
func (w *Scenarios) Plan() (list []Outline, err error) {
	for i, p := range w.plans {
		err := p.refused
		var rows [][2]string
		if err == nil {
			rows, err = w.app.Outline("run", &p.config, run.Steps{Load: true, Check: !p.config.NoCheck})
		}
		if err != nil {
			rows = [][2]string{{"could not run", w.app.Reasons(err)[0]}}
		} else {
			rows = rows[:len(rows)-2] // the campaign has its own directory and command
		}
		list = append(list, Outline{"Plan of " + w.Book.Over[i], rows})
	}
	return append(list, Outline{"Plan of `stroppy sweep`, each of whose scenarios is a run; nothing was started.", [][2]string{
		{"order", strings.Join(w.Book.Over, ", ")}, {"command", w.Book.Command},
	}}), nil
}

// Run carries out the scenarios that are left. One that could not be run is tried again.
func (w *Scenarios) Run() error {
	unlock, err := w.open()
	if err != nil {
		return err
	}
	defer unlock()
	s := w.app.Begin(live.NewFeed())
	defer s.Stop()
	s.Note("sweep directory %s", w.Dir)
	s.Note("seed %d", w.Book.Seed)
	for _, name := range w.Book.Over {
		if w.done(name) {
			s.Note("%s was run before", name)
		}
	}
	if err := w.carryOut(s); err != nil {
		return w.cutOff(s, err, w.Onwards())
	}
	w.Book.Finished = true
	var missing error
	if names := w.Book.Missing(); len(names) > 0 {
		missing = fmt.Errorf("%d of %d scenarios could not be run: %s", len(names), len(w.plans), strings.Join(names, ", "))
	}
	return w.complete(s, missing)
}

// done reports whether the book has a run of a scenario.
func (w *Scenarios) done(name string) bool {
	row := w.Book.Row(name)
	return row != nil && row.Problem == ""
}

// open makes the directory or goes on with it, and keeps others out of it.
func (w *Scenarios) open() (unlock func(), err error) {
	if w.Dir == "" {
		w.Dir = run.Unused(filepath.Join(session.RunsRoot, time.Now().Format("20060102-150405")+"-scenarios"))
	}
	if !study.Holds(w.Dir) {
		if err := run.Vacant(w.Dir); err != nil {
			return nil, err
		}
	}
	fresh := w.Book
	if w.Book, err = fresh.Resume(w.Dir); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	for i, name := range w.Book.Over {
		if w.done(name) && (w.plans[i].refused != nil || w.Book.Row(name).Settings != w.settings(i)) {
			return nil, exit.Usagef("go on with the sweep in %s: %s was run there with other settings: take another directory",
				w.Dir, name)
		}
	}
	if w.Book.Seed == 0 {
		drawn := session.Config{}
		if err := w.app.DrawSeed(&drawn, true); err != nil {
			return nil, err
		}
		w.Book.Seed = drawn.Seed
	}
	w.Book.Finished, w.Book.Stroppy, w.Book.Command = false, fresh.Stroppy, fresh.Command
	return w.take()
}

// settings returns the settings of a scenario without the seed, which the campaign gives it.
func (w *Scenarios) settings(i int) string {
	c := w.plans[i].config
	c.Seed = 0
	return string(c.YAML())
}

// next implements list.
func (w *Scenarios) next() (*planned, error) {
	for w.at < len(w.plans) {
		p := w.plans[w.at]
		w.at++
		if w.done(w.Book.Over[p.index]) {
			continue
		}
		if p.config.Seed == 0 {
			p.config.Seed = w.Book.Seed
		}
		return &p, nil
	}
	return nil, nil
}

// took implements list.
func (w *Scenarios) took(s *session.Session, p *planned, r *report.Result, dir string, err error) error {
	name := w.Book.Over[p.index]
	if r != nil {
		w.Book.Machine = r.Machine
		w.Book.Put(study.NewRow(name, w.settings(p.index), filepath.Base(dir), r))
		return err
	}
	row := study.Row{Scenario: name, Problem: strings.Join(w.app.Reasons(err), "; ")}
	if p.refused == nil {
		row.Settings = w.settings(p.index)
	}
	s.Note("could not run %s: %s", name, row.Problem)
	w.Book.Put(row)
	return nil
}

// keep implements list.
func (w *Scenarios) keep() error {
	if err := w.Book.Save(w.Dir, w.Published); err != nil {
		return err
	}
	w.unmade(study.SavePage(w.Book, w.Dir, w.Published, w.Onwards()))
	return nil
}

// each implements list.
func (w *Scenarios) each(judge func(dir, verdict, objectives string)) {
	for _, row := range w.Book.Rows {
		if row.Problem == "" {
			judge(row.Dir, row.Verdict, row.Objectives)
		}
	}
}

// Onwards returns the command that repeats the campaign, or goes on with it.
func (w *Scenarios) Onwards() string { return onwards(w.Book.Command, w.Dir, w.Book.Finished) }

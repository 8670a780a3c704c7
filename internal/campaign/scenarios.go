package campaign

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"stroppy/internal/exit"
	"stroppy/internal/report"
	"stroppy/internal/scenario"
	"stroppy/internal/session"
	"stroppy/internal/sweep"
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
		return nil, exit.Usagef("sweep over the scenarios %q: no such file, and no scenario of this name "+
			"in `stroppy list scenarios`%s", pattern, session.NearScenario(pattern))
	}
	return names, nil
}

// Scenarios is a campaign of scenarios, one after the other. One that cannot be run is reported,
// and the others go on.
type Scenarios struct {
	Campaign
	Published []study.Published

	plans []planned
	at    int // the next of them
}

// NewScenarios returns the campaign of the scenarios with these names. The settings count for
// each of them. It returns an error if none of them can be run.
func NewScenarios(app *session.App, dir, over string, names []string, given []scenario.Setting) (*Scenarios, error) {
	w := &Scenarios{Campaign: newCampaign(app, sweep.Scenarios, dir, "scenarios")}
	w.list = w
	if err := w.plan(names, given); err != nil {
		return nil, err
	}
	w.Book.Names, w.Book.Command = names, scenariosCommand(over, given)
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
		for line := range strings.SplitSeq(s.Shown(), "\n") {
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
			rows, err = w.app.Outline("run", &p.config)
		}
		if err != nil {
			rows = [][2]string{{"could not run", w.app.Reasons(err)[0]}}
		} else {
			rows = rows[:len(rows)-2] // the campaign has its own directory and command
		}
		list = append(list, Outline{"Plan of " + w.Book.Names[i], rows})
	}
	return append(list, Outline{"Plan of `stroppy sweep`, each of whose scenarios is a run; nothing was started.", [][2]string{
		{"order", strings.Join(w.Book.Names, ", ")}, {"command", w.Book.Command},
	}}), nil
}

func (w *Scenarios) begin(s *session.Session) error {
	for i, name := range w.Book.Names {
		if !w.Book.Done(name) {
			continue
		}
		if w.plans[i].refused != nil || w.Book.Point(name).Settings != w.settings(i) {
			return exit.Usagef("go on with the sweep in %s: %s was run there with other settings: take another directory",
				w.Dir, name)
		}
		s.Note("%s was run before", name)
	}
	return nil
}

func (w *Scenarios) finish() error {
	if names := w.Book.Missing(); len(names) > 0 {
		return fmt.Errorf("%d of %d scenarios could not be run: %s", len(names), len(w.plans), strings.Join(names, ", "))
	}
	return nil
}

// settings returns the settings of a scenario without the seed, which the campaign gives it.
func (w *Scenarios) settings(i int) string {
	c := w.plans[i].config
	c.Seed = 0
	return string(c.YAML())
}

// next skips the scenarios that were run. One that could not be run is tried again.
func (w *Scenarios) next() (*planned, error) {
	for w.at < len(w.plans) {
		p := w.plans[w.at]
		w.at++
		if w.Book.Done(w.Book.Names[p.index]) {
			continue
		}
		if p.config.Seed == 0 && !p.config.NoLoad {
			p.config.Seed = w.Book.Seed
		}
		return &p, nil
	}
	return nil, nil
}

func (w *Scenarios) took(s *session.Session, p *planned, r *report.Result, dir string, err error) error {
	name := w.Book.Names[p.index]
	if r != nil {
		w.Book.Machine = r.Machine
		point := sweep.NewPoint(0, filepath.Base(dir), r)
		point.Scenario, point.Settings = name, w.settings(p.index)
		w.Book.Put(point)
		return err
	}
	point := sweep.Point{Scenario: name, Problem: strings.Join(w.app.Reasons(err), "; ")}
	if p.refused == nil {
		point.Settings = w.settings(p.index)
	}
	s.Note("could not run %s: %s", name, point.Problem)
	w.Book.Put(point)
	return nil
}

func (w *Scenarios) keep() error {
	if err := study.Save(w.Book, w.Dir, w.Published); err != nil {
		return err
	}
	w.unmade(study.SavePage(w.Book, w.Dir, w.Published, Onwards(w.Book, w.Dir)))
	return nil
}

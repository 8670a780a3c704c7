package campaign

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"stroppy/internal/exit"
	"stroppy/internal/live"
	"stroppy/internal/registry"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/session"
	"stroppy/internal/sweep/rounds"
)

// Comparison is a campaign whose runs alternate between sides: A B A B.
type Comparison struct {
	Campaign
	Book  rounds.Book
	Sides []report.Side // with their runs so far

	configs []session.Config
	made    int // runs
}

// NewComparison returns the comparison of scenarios, in so many rounds. If databases are given,
// each scenario runs on each of them. dir is empty or does not hold anything.
func NewComparison(app *session.App, dir string, files []string, databases []scenario.Setting, times int) (*Comparison, error) {
	c := &Comparison{Campaign: Campaign{app: app, Dir: dir, asked: true}, Book: rounds.Book{Stroppy: registry.Version(), Rounds: times}}
	c.list = c
	c.Book.Command = fmt.Sprintf("stroppy compare --repeat %d", times)
	for _, d := range databases {
		c.Book.Command += " --" + d.Key + session.Quoted([]string{shown(d)})
	}
	c.Book.Command += session.Quoted(files)
	for _, file := range files {
		sides := [][]scenario.Setting{nil}
		if len(databases) > 0 {
			sides = nil
		}
		for _, d := range databases {
			sides = append(sides, []scenario.Setting{d})
		}
		for _, database := range sides {
			if err := c.add(file, database); err != nil {
				return nil, err
			}
		}
	}
	if dir == "" {
		c.Dir = run.Unused(filepath.Join(session.RunsRoot, time.Now().Format("20060102-150405")+"-compare"))
	}
	return c, OfComparison(run.Vacant(c.Dir))
}

// shown is the database of a flag as it may be shown.
func shown(database scenario.Setting) string {
	if database.Key == "db" {
		return scenario.Redact(database.Value)
	}
	return database.Value
}

// add takes a scenario, on the database that is named if one is.
func (c *Comparison) add(file string, database []scenario.Setting) error {
	config, err := c.app.Configure(database, file)
	switch {
	case err != nil:
		return err
	case len(c.configs) > 0 && config.Workload != c.configs[0].Workload:
		return exit.Usagef("compare the runs: %s runs %s and %s runs %s, whose measurements mean different things",
			c.Sides[0].Name, c.configs[0].Workload, file, config.Workload)
	case config.NoLoad:
		return exit.Usagef("%s drives what is loaded, and what one run leaves is not what the other began "+
			"with: take no-load out", file)
	case config.Serve != "" || config.Metrics != "":
		return exit.Usagef("%s, or a variable, asks for serve or metrics, and a comparison shows nothing "+
			"live: leave them out", file)
	}
	if err := c.app.DrawSeed(&config, true); err != nil {
		return err
	}
	config.JSON = false
	c.asked = c.asked && !config.NoCheck
	name := file
	for _, d := range database {
		name += " on " + shown(d)
	}
	c.configs, c.Sides = append(c.configs, config), append(c.Sides, report.Side{Name: name})
	c.Book.Sides = append(c.Book.Sides, rounds.Side{Name: name, Runs: []string{}})
	return nil
}

// Plan returns what the comparison would do.
func (c *Comparison) Plan() ([]Outline, error) {
	var names []string
	sides := make([]Outline, len(c.configs))
	for i, config := range c.configs {
		side := config
		side.Out, side.Seed = "", c.configs[0].Seed // as in the first round
		rows, err := c.app.Outline("run", &side, run.Steps{Load: true, Check: !side.NoCheck})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Sides[i].Name, err)
		}
		names = append(names, string('A'+rune(i)))
		sides[i] = Outline{fmt.Sprintf("%s: %s", names[i], c.Sides[i].Name), rows[:len(rows)-2]}
	}
	often := "once"
	if c.Book.Rounds > 1 {
		often = fmt.Sprintf("%d times", c.Book.Rounds)
	}
	return append([]Outline{{"Plan of `stroppy compare`; nothing was started.", [][2]string{
		{"order", strings.Join(names, " ") + ", " + often},
		{"seeds", fmt.Sprintf("%d, and one more each round", c.configs[0].Seed)},
		{"directory", c.Dir}, {"command", c.Book.Command},
	}}}, sides...), nil
}

// Run carries out the comparison.
func (c *Comparison) Run() error {
	if err := os.MkdirAll(c.Dir, 0o777); err != nil {
		return OfComparison(run.Unusable(c.Dir, err))
	}
	defer os.Remove(c.Dir) // one that holds something stays
	err := c.carryOutAll()
	if err == nil {
		err = c.Print(false)
	}
	return c.verdict(err)
}

func (c *Comparison) carryOutAll() error {
	s := c.app.Begin(live.NewFeed())
	defer s.Stop()
	for i := range c.configs {
		fewer := func(most int) string { return fmt.Sprintf("set clients to at most %d in %s", most, c.Sides[i].Name) }
		if err := c.configs[i].AdmitFirst(s, fewer); err != nil {
			return err
		}
	}
	s.Note("directory of the comparison %s", c.Dir)
	return c.carryOut(s)
}

// next implements list.
func (c *Comparison) next() (*planned, error) {
	round, side := c.made/len(c.configs), c.made%len(c.configs)
	if round == c.Book.Rounds {
		return nil, nil
	}
	c.made++
	p := &planned{
		title:  fmt.Sprintf("round %d of %d: %s", round+1, c.Book.Rounds, c.Sides[side].Name),
		folder: fmt.Sprintf("%02d-%c", round+1, 'a'+rune(side)), config: c.configs[side], index: side,
	}
	p.config.Seed = c.configs[0].Seed + uint64(round)
	return p, nil
}

// took implements list.
func (c *Comparison) took(_ *session.Session, p *planned, r *report.Result, dir string, err error) error {
	if r == nil {
		return err
	}
	recorded, unread := report.ReadRecorded(dir)
	if unread != nil {
		return errors.Join(err, unread)
	}
	side, kept := &c.Sides[p.index], &c.Book.Sides[p.index]
	side.Runs, kept.Runs = append(side.Runs, recorded), append(kept.Runs, filepath.Base(dir))
	return err
}

// keep implements list.
func (c *Comparison) keep() error { return c.Book.Save(c.Dir) }

// each implements list.
func (c *Comparison) each(judge func(dir, verdict, objectives string)) {
	for _, side := range c.Sides {
		for _, r := range side.Runs {
			judge(r.Dir, r.Result.Verdict, r.Result.ObjectivesStatus())
		}
	}
}

// OfComparison makes the error of a directory, which may be nil, name a comparison.
func OfComparison(err error) error {
	if unusable, ok := errors.AsType[*run.UnusableError](err); ok {
		unusable.Of = "comparison"
	}
	return err
}

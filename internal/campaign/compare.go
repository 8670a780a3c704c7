package campaign

import (
	"fmt"
	"strings"

	"stroppy/internal/exit"
	"stroppy/internal/scenario"
	"stroppy/internal/session"
	"stroppy/internal/sweep"
)

// Compared is a campaign whose runs alternate between sides: A B A B.
type Compared struct {
	Campaign
	sides []session.Config
}

// NewCompared returns the comparison of scenarios, in so many rounds. If databases are given,
// each scenario runs on each of them.
func NewCompared(app *session.App, dir string, files []string, databases []scenario.Setting, rounds int) (*Compared, error) {
	c := &Compared{Campaign: newCampaign(app, sweep.Comparison, dir, "compare")}
	c.list, c.asked, c.Book.Repeat = c, true, rounds
	c.Book.Command = fmt.Sprintf("stroppy compare --repeat %d", rounds)
	for _, d := range databases {
		c.Book.Command += " --" + d.Key + session.Quoted([]string{d.Shown()})
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
	c.Book.Seed = c.sides[0].Seed
	return c, c.usable()
}

// add takes a scenario, on the database that is named if one is.
func (c *Compared) add(file string, database []scenario.Setting) error {
	config, err := c.app.Configure(database, file)
	switch {
	case err != nil:
		return err
	case len(c.sides) > 0 && config.Workload != c.sides[0].Workload:
		return exit.Usagef("compare the runs: %s runs %s and %s runs %s; their measurements mean different things",
			c.Book.Names[0], c.sides[0].Workload, file, config.Workload)
	case config.NoLoad:
		return exit.Usagef("%s uses existing data, and each run changes the data that the next one begins "+
			"with: take no-load out", file)
	case config.Serve != "" || config.Metrics != "":
		return exit.Usagef("%s, or a variable, asks for serve or metrics, and a comparison shows nothing "+
			"live: leave them out", file)
	}
	config.JSON, config.Out = false, ""
	c.asked = c.asked && !config.NoCheck
	name := file
	for _, d := range database {
		name += " on " + d.Shown()
	}
	c.sides, c.Book.Names = append(c.sides, config), append(c.Book.Names, name)
	config.Seed = 0
	c.Book.Scenario += string(config.YAML())
	return nil
}

// Plan returns what the comparison would do.
func (c *Compared) Plan() ([]Outline, error) {
	if err := c.drawSeed(); err != nil {
		return nil, err
	}
	var names []string
	sides := make([]Outline, len(c.sides))
	for i, side := range c.sides {
		side.Seed = c.Book.Seed // as in the first round
		rows, err := c.app.Outline("run", &side)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Book.Names[i], err)
		}
		names = append(names, string('A'+rune(i)))
		sides[i] = Outline{fmt.Sprintf("%s: %s", names[i], c.Book.Names[i]), rows[:len(rows)-2]}
	}
	often := "once"
	if c.Book.Repeat > 1 {
		often = fmt.Sprintf("%d times", c.Book.Repeat)
	}
	return append([]Outline{{"Plan of `stroppy compare`; nothing was started.", [][2]string{
		{"order", strings.Join(names, " ") + ", " + often},
		{"seeds", fmt.Sprintf("%d, and one more each round", c.Book.Seed)},
		{"directory", c.shownDir()}, {"command", c.Book.Command},
	}}}, sides...), nil
}

func (c *Compared) admit(s *session.Session) error {
	for i := range c.sides {
		fewer := func(most int) string { return fmt.Sprintf("set clients to at most %d in %s", most, c.Book.Names[i]) }
		if err := c.sides[i].AdmitFirst(s, fewer); err != nil {
			return err
		}
	}
	return nil
}

func (c *Compared) next() (*planned, error) {
	made := len(c.Book.Points)
	round, side := made/len(c.sides), made%len(c.sides)
	if round == c.Book.Repeat {
		return nil, nil
	}
	p := &planned{
		title:  fmt.Sprintf("round %d of %d: %s", round+1, c.Book.Repeat, c.Book.Names[side]),
		folder: fmt.Sprintf("%02d-%c", round+1, 'a'+rune(side)), config: c.sides[side],
	}
	p.config.Seed = c.Book.Seed + uint64(round)
	return p, nil
}

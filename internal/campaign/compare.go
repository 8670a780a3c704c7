package campaign

import (
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/exit"
	"stroppy/internal/session"
	"stroppy/internal/sweep"
)

// Compared is a campaign whose runs alternate between sides: A B A B.
type Compared struct {
	Campaign
	sides []session.Config
}

// NewCompared returns the comparison of sides, in so many rounds. It returns an error if one of them could not be run.
func NewCompared(app *session.App, dir string, sides Sides, rounds int) (*Compared, error) {
	if err := sides.check(); err != nil {
		return nil, err
	}
	c := &Compared{Campaign: newCampaign(app, sweep.Comparison, dir, "compare")}
	c.list, c.asked, c.Book.Repeat = c, true, rounds
	c.Book.Command = sides.command(rounds)
	for _, one := range sides.all() {
		config, err := c.configure(&sides, one)
		if err == nil {
			err = c.add(config, sides.name(one))
		}
		if err != nil {
			return nil, err
		}
	}
	c.Book.Seed, c.attached = c.sides[0].Seed, !slices.ContainsFunc(c.sides, func(s session.Config) bool { return !s.NoLoad })
	return c, c.usable()
}

// add adds a side under its name.
func (c *Compared) add(config session.Config, name string) error {
	switch {
	case len(c.sides) > 0 && config.Workload != c.sides[0].Workload:
		return exit.Usagef("compare the runs: %s runs %s and %s runs %s; their measurements mean different things",
			c.Book.Names[0], c.sides[0].Workload, name, config.Workload)
	case config.Serve != "" || config.Metrics != "":
		return exit.Usagef("%s, or a variable, asks for serve or metrics, and a comparison shows nothing "+
			"live: leave them out", name)
	}
	config.JSON, config.Out = false, ""
	c.asked = c.asked && !config.NoCheck
	c.sides, c.Book.Names = append(c.sides, config), append(c.Book.Names, name)
	tried := config
	if _, err := c.app.Outline("run", &tried); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
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
		if !side.NoLoad {
			side.Seed = c.Book.Seed // as in the first round
		}
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
	seeds := fmt.Sprintf("%d, and one more each round", c.Book.Seed)
	if c.attached {
		seeds = "the seed of the loaded data"
	}
	return append([]Outline{{"Plan of `stroppy compare`; nothing was started.", [][2]string{
		{"order", strings.Join(names, " ") + ", " + often},
		{"seeds", seeds},
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
	if !p.config.NoLoad {
		p.config.Seed = c.Book.Seed + uint64(round)
	}
	return p, nil
}

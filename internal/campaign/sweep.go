package campaign

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"stroppy/internal/exit"
	"stroppy/internal/pace"
	"stroppy/internal/registry"
	"stroppy/internal/report"
	"stroppy/internal/scenario"
	"stroppy/internal/session"
	"stroppy/internal/sweep"
)

// Sweep is a campaign whose runs differ in one thing: the rate, the clients or the nodes.
type Sweep struct {
	Campaign
	spec     sweep.Spec
	fallback []float64 // steps of an axis that was given none
	arrival  string    // within a rate
}

// NewSweep returns the sweep of a configuration. It returns an error for settings that the sweep
// changes itself, and for steps that no run could take.
func NewSweep(app *session.App, config *session.Config, spec sweep.Spec, arrival string) (*Sweep, error) {
	database, _, _ := clusterNodes(config.Cluster)
	if database == "" {
		database, _, _ = strings.Cut(config.RunDatabase(""), ":")
	}
	w := &Sweep{
		Campaign: newCampaign(app, sweep.Steps, config.Out, config.Workload+"-sweep-"+database), spec: spec, arrival: arrival,
	}
	w.list, w.config, w.asked, w.attached = w, *config, !config.NoCheck, config.NoLoad
	if err := w.allowed(); err != nil {
		return nil, err
	}
	b := w.Book
	b.Workload, b.Over, b.Scenario, b.Repeat, b.Seed = config.Workload, spec.String(), w.shared(), spec.Repeat, config.Seed
	return w, nil
}

// allowed refuses what the sweep changes itself, and steps that no run could take.
func (w *Sweep) allowed() error {
	if err := w.axis(); err != nil {
		return err
	}
	for _, value := range w.values() {
		step, err := w.with(value)
		if err == nil && w.spec.Axis == sweep.Nodes {
			_, _, err = step.WhereRun(w.app.Environ)
		}
		if err != nil {
			return err
		}
	}
	return cmp.Or(w.config.LoadedElsewhere(), w.config.OneProcess())
}

// values are the steps, as far as they are known before the first.
func (w *Sweep) values() []float64 {
	if len(w.spec.Values) > 0 {
		return w.spec.Values
	}
	return w.fallback
}

// axis returns an error if a setting conflicts with the axis of the sweep.
func (w *Sweep) axis() error {
	c := &w.config
	switch w.spec.Axis {
	case sweep.Rate:
		if !c.Rate.Closed() {
			return exit.Usagef("the sweep changes the rate: leave --rate out")
		}
		if c.Think > 0 {
			return exit.Usagef("think-time is of a closed loop, and a sweep over the rate drives an open one: leave it out")
		}
		if _, err := w.with(1); err != nil { // what goes with any rate
			return err
		}
	case sweep.Clients:
		if c.Named["clients"] {
			return exit.Usagef("the sweep changes the number of clients: leave --clients out")
		}
		w.fallback = []float64{1, 2, 4, 8, 16, 32, 64}
	case sweep.Nodes:
		kind, nodes, _ := clusterNodes(c.Cluster)
		if kind == "" {
			return exit.Usagef("a sweep over nodes starts a cluster of each size: name its kind with --cluster; `stroppy list clusters` shows all")
		}
		for n := range nodes {
			w.fallback = append(w.fallback, float64(n+1))
		}
	}
	return nil
}

// clusterNodes returns the parts of a cluster's text, ?params with its question mark.
func clusterNodes(text string) (kind string, nodes int, params string) {
	if at := strings.Index(text, "?"); at >= 0 {
		text, params = text[:at], text[at:]
	}
	kind, count, _ := strings.Cut(text, ":")
	nodes, _ = strconv.Atoi(count)
	return kind, max(1, nodes), params
}

func (w *Sweep) admit(s *session.Session) error {
	if w.spec.Axis != sweep.Clients {
		return nil // its first step has as many as all others
	}
	largest, err := w.with(slices.Max(w.values()))
	if err != nil {
		return err
	}
	return largest.AdmitFirst(s, func(most int) string {
		return fmt.Sprintf("leave out the steps with more than %d clients", most)
	})
}

func (w *Sweep) keep() error {
	w.spec.Repeat = w.Book.Repeat
	if !w.attached {
		w.config.Seed = w.Book.Seed
	}
	w.Book.Command = w.again()
	if err := w.Campaign.keep(); err != nil {
		return err
	}
	w.unmade(sweep.SavePage(w.Book, report.Options{Dir: w.Dir, Quoted: scenario.Quote(w.Dir)}, Onwards(w.Book, w.Dir)))
	return nil
}

// shared returns the scenario of every step, without the settings that the sweep changes.
func (w *Sweep) shared() string {
	c := w.config
	c.Seed, c.Out, c.JSON, c.Arrival = 0, "", false, w.arrival
	switch w.spec.Axis {
	case sweep.Clients:
		c.Clients = 1
	case sweep.Nodes:
		c.Cluster = resized(c.Cluster, 1)
	}
	return string(c.YAML())
}

func resized(text string, nodes int) string {
	kind, _, params := clusterNodes(text)
	return kind + ":" + strconv.Itoa(nodes) + params
}

// with returns the configuration at a value of the axis.
func (w *Sweep) with(value float64) (session.Config, error) {
	c := w.config
	c.Named = maps.Clone(c.Named) // what a step changes repeats it
	c.Named[string(w.spec.Axis)] = w.spec.Axis != sweep.Nodes
	switch w.spec.Axis {
	case sweep.Rate:
		if value == 0 {
			c.MaxBacklog = registry.Workloads().Default().MaxBacklog // nothing reads it
			break
		}
		c.Arrival, c.Named["arrival"] = w.arrival, true
		plan, err := pace.Constant(value)
		if err != nil {
			return c, err
		}
		c.Rate = plan
		if c.Duration > 0 {
			c.Duration = c.Warmup + sweep.Lengthened(value, c.Duration-c.Warmup)
		}
	case sweep.Clients:
		c.Clients = int(value)
	case sweep.Nodes:
		c.Cluster = resized(c.Cluster, int(value))
	}
	if err := c.Validate(); err != nil {
		return c, exit.With(exit.Usage, err)
	}
	return c, nil
}

func (w *Sweep) label(value float64) string {
	if w.spec.Axis == sweep.Rate && value == 0 {
		return "full"
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

func (w *Sweep) next() (*planned, error) {
	value, more := w.spec.Next(w.Book.Points, w.fallback)
	if !more {
		return nil, nil
	}
	config, err := w.with(value)
	number, label := len(w.Book.Points)+1, w.label(value)
	return &planned{
		title:  fmt.Sprintf("step %d: %s %s", number, w.spec.Axis, label),
		folder: fmt.Sprintf("%02d-%s-%s", number, w.spec.Axis, label),
		value:  value, config: config,
	}, err
}

func (w *Sweep) took(s *session.Session, p *planned, r *report.Result, dir string, err error) error {
	if r == nil {
		return err
	}
	b := w.Book
	database := strings.TrimSpace(r.Database + " " + r.DatabaseVersion)
	if len(b.Points) > 0 && (b.Database != database || b.Machine != r.Machine) {
		return exit.Usagef("the steps before were made with %s on %s, and this one with %s on %s: take another directory",
			b.Database, b.Machine, database, r.Machine)
	}
	b.Database, b.Machine = database, r.Machine
	if b.Environment == nil {
		b.Environment = r.Environment
	}
	return w.Campaign.took(s, p, r, dir, err)
}

// again returns the command that repeats the sweep; with --out it goes on.
func (w *Sweep) again() string {
	command := w.config.Command("sweep") + " --over " + scenario.Quote(w.spec.String())
	if w.spec.Axis == sweep.Rate && w.config.Named["max-backlog"] {
		command += fmt.Sprintf(" --max-backlog %d", w.config.MaxBacklog)
	}
	if w.spec.Repeat > 1 {
		command += fmt.Sprintf(" --repeat %d", w.spec.Repeat)
	}
	if w.arrival != "" {
		command += " --arrival " + w.arrival
	}
	return command
}

// Plan returns what the sweep would do.
func (w *Sweep) Plan() ([]Outline, error) {
	if err := w.usable(); err != nil {
		return nil, err
	}
	step := w.config
	step.Out = ""
	rows, err := w.app.Outline("sweep", &step)
	if err != nil {
		return nil, err
	}
	w.config.Seed = step.Seed
	var steps []string
	for _, value := range w.values() {
		steps = append(steps, w.label(value))
	}
	text := strings.Join(steps, ", ")
	if len(steps) == 0 {
		text = "the first as fast as it goes; the others follow from what it measures"
	}
	if w.spec.Repeat > 1 {
		text += fmt.Sprintf("; each %d times", w.spec.Repeat)
	}
	for i := range rows {
		switch value := &rows[i][1]; {
		case rows[i][0] == "clients" && w.spec.Axis == sweep.Clients:
			*value = "as the steps say, " + step.Pace()
		case rows[i][0] == "clients" && w.spec.Axis == sweep.Rate:
			*value = fmt.Sprintf("%d, at the rates of the steps", step.Clients)
		case rows[i][0] == "database" && w.spec.Axis == sweep.Nodes:
			_, how, _ := strings.Cut(*value, ", ")
			kind, _, _ := clusterNodes(step.Cluster)
			*value = "a cluster " + kind + " of as many nodes as the steps say, " + how
		case rows[i][0] == "directory":
			*value = w.shownDir()
		case rows[i][0] == "command":
			*value = w.again()
		}
	}
	rows = append([][2]string{{"steps", fmt.Sprintf("%s: %s", w.spec.Axis, text)}}, rows...)
	return []Outline{{"Plan of `stroppy sweep`, each step of which is a run; nothing was started.", rows}}, nil
}

package campaign

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/exit"
	"stroppy/internal/pace"
	"stroppy/internal/registry"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/session"
	"stroppy/internal/stats"
	"stroppy/internal/sweep"
)

// Sweep is a campaign whose runs differ in one thing: the rate, the clients or the nodes.
type Sweep struct {
	Campaign
	Book *sweep.Book

	config   *session.Config
	spec     sweep.Spec
	fallback []float64 // steps of an axis that was given none
	arrival  string    // within a rate
}

// NewSweep returns the sweep of a configuration. It returns an error for settings that the sweep
// changes itself, and for steps that no run could take.
func NewSweep(app *session.App, config *session.Config, spec sweep.Spec, arrival string) (*Sweep, error) {
	w := &Sweep{Campaign: Campaign{app: app, asked: !config.NoCheck}, config: config, spec: spec, arrival: arrival}
	w.list = w
	return w, w.allowed()
}

// Run carries out the steps that are left.
func (w *Sweep) Run() error {
	servers, err := w.app.OpenLive(w.config)
	if err != nil {
		return err
	}
	defer servers.Close()
	s := w.app.Begin(servers.Feed)
	servers.Open(s.Note)
	defer s.Stop()
	if err := w.admit(s); err != nil {
		return err
	}
	unlock, err := w.open()
	if err != nil {
		return err
	}
	defer unlock()
	s.Note("sweep directory %s", w.Dir)
	s.Note("seed %d", w.config.Seed)
	if n := len(w.Book.Points); n > 0 {
		were := "were"
		if n == 1 {
			were = "was"
		}
		s.Note("%s %s done before", report.Counted(uint64(n), "step"), were)
	}
	if err := w.carryOut(s); err != nil {
		servers.Fail(w.app.Reasons(err)[0])
		return w.cutOff(s, err, Onwards(w.Book, w.Dir))
	}
	if n := len(w.Book.Points); n > 0 {
		last := filepath.Join(w.Dir, w.Book.Points[n-1].Dir)
		defer servers.End(last, fmt.Sprintf("This is the last step of the sweep in %s.", w.Dir))
	}
	w.Book.Finished = true
	return w.complete(s, nil)
}

// Onwards returns the command that repeats a sweep in dir, or goes on with it; empty if its book
// does not have the command.
func Onwards(b *sweep.Book, dir string) string { return onwards(b.Command, dir, b.Finished) }

// allowed refuses what the sweep changes itself, and steps that no run could take.
func (w *Sweep) allowed() error {
	if w.config.NoLoad {
		return exit.Usagef("every step of a sweep loads its own accounts: leave no-load out")
	}
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
	return w.config.OneProcess()
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
	c := w.config
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

// admit refuses a sweep over clients of which the largest step has too many.
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

// sweepable returns an error if a directory holds something else than a sweep.
func sweepable(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return run.Unusable(dir, err)
	case len(entries) > 0 && !sweep.Holds(dir):
		return exit.Usagef("make the sweep's directory: %s is not empty and holds no sweep: name another with --out", dir)
	}
	return nil
}

// open makes the sweep's directory or goes on with it, and keeps others out of it.
func (w *Sweep) open() (unlock func(), err error) {
	c, now := w.config, time.Now()
	if w.Dir = c.Out; w.Dir == "" {
		database, _, _ := clusterNodes(c.Cluster)
		if database == "" {
			database, _, _ = strings.Cut(c.RunDatabase(""), ":")
		}
		w.Dir = run.Unused(run.DefaultPath(session.RunsRoot, now, c.Workload+"-sweep", database))
	}
	if err := sweepable(w.Dir); err != nil {
		return nil, err
	}
	fresh := &sweep.Book{
		Workload: c.Workload, Over: w.spec.String(), Scenario: w.shared(), StartedAt: now.UTC().Format(time.RFC3339),
	}
	if w.Book, err = fresh.Resume(w.Dir); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	switch b := w.Book; {
	case w.spec.Repeat > 0 && w.spec.Repeat < b.Repeat:
		return nil, exit.Usagef("go on with the sweep in %s: its steps are measured %d times each, which "+
			"--repeat %d would make fewer: leave --repeat out", w.Dir, b.Repeat, w.spec.Repeat)
	case c.Seed != 0 && b.Seed != 0 && c.Seed != b.Seed:
		return nil, exit.Usagef("go on with the sweep in %s: its seed is %d and not %d", w.Dir, b.Seed, c.Seed)
	case len(b.Points) > 0 && b.Stroppy != registry.Version():
		return nil, exit.Usagef("go on with the sweep in %s: its steps were made by stroppy %s and this is "+
			"%s: take another directory", w.Dir, b.Stroppy, registry.Version())
	}
	c.Seed = max(c.Seed, w.Book.Seed)
	w.spec.Repeat = max(w.spec.Repeat, w.Book.Repeat)
	if w.spec.Repeat > 1 {
		w.Book.Repeat = w.spec.Repeat
	}
	if err := w.app.DrawSeed(c, true); err != nil {
		return nil, err
	}
	w.Book.Seed, w.Book.Finished = c.Seed, false
	w.Book.Command, w.Book.Stroppy = w.again(), registry.Version()
	return w.take()
}

// keep implements list.
func (w *Sweep) keep() error {
	if err := w.Book.Save(w.Dir); err != nil {
		return err
	}
	w.unmade(sweep.SavePage(w.Book, report.Options{Dir: w.Dir, Quoted: scenario.Quote(w.Dir)}, Onwards(w.Book, w.Dir)))
	return nil
}

// each implements list.
func (w *Sweep) each(judge func(dir, verdict, objectives string)) {
	for _, p := range w.Book.Points {
		judge(p.Dir, p.Verdict, p.Objectives)
	}
}

// shared returns the scenario of every step, without the settings that the sweep changes.
func (w *Sweep) shared() string {
	c := *w.config
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
	c := *w.config
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

// next implements list.
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

// took implements list.
func (w *Sweep) took(_ *session.Session, p *planned, r *report.Result, dir string, err error) error {
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
	b.Points = append(b.Points, point(p.value, filepath.Base(dir), r))
	return err
}

// witnesses is how many transactions of a violation the book of a sweep has.
const witnesses = 5

// point returns the result of a run as a step.
func point(value float64, dir string, r *report.Result) sweep.Point {
	d := r.Drive
	p := sweep.Point{Value: value, Dir: dir, Verdict: r.Verdict, Objectives: r.ObjectivesStatus(), ObjectivesText: r.ObjectivesText(), Violations: r.Findings(witnesses), Backlog: d.Backlog + d.Shed}
	if due := value * (d.WarmupSeconds + d.Seconds); due > 0 {
		p.Left = min(1, float64(p.Backlog)/due)
	}
	if t := d.TPS; t != nil {
		p.TPS, p.Median, p.Best = t.Mean, t.Median, t.Max
	}
	if i := d.Interval; i != nil {
		p.Low, p.High = &i.Low, &i.High
	}
	if l := d.Latency; l != nil {
		p.MeanMS, p.P50MS, p.P99MS, p.P999MS, p.MaxMS = &l.Mean, &l.P50, &l.P99, &l.P999, &l.Max
		p.Samples = d.Committed
	}
	for _, x := range []**float64{&p.TPS, &p.Low, &p.High, &p.Median, &p.Best, &p.MeanMS, &p.P50MS, &p.P99MS, &p.P999MS, &p.MaxMS} {
		if *x != nil {
			*x = new(report.Rounded(**x, 6))
		}
	}
	p.Starved = r.Starved()
	p.Unsteady = d.Steady != nil && d.Steady.State == stats.Unsteady
	return p
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
	dir := w.config.Out
	if dir != "" {
		if err := sweepable(dir); err != nil {
			return nil, err
		}
	}
	step := *w.config
	step.Out = ""
	rows, err := w.app.Outline("sweep", &step, run.Steps{Load: true, Check: !step.NoCheck})
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
			*value = cmp.Or(dir, strings.Replace(*value, "TIME-"+step.Workload, "TIME-"+step.Workload+"-sweep", 1))
		case rows[i][0] == "command":
			*value = w.again()
		}
	}
	rows = append([][2]string{{"steps", fmt.Sprintf("%s: %s", w.spec.Axis, text)}}, rows...)
	return []Outline{{"Plan of `stroppy sweep`, each step of which is a run; nothing was started.", rows}}, nil
}

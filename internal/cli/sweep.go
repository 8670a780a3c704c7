package cli

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stroppy/internal/exit"
	"stroppy/internal/output"
	"stroppy/internal/pace"
	"stroppy/internal/registry"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/session"
	"stroppy/internal/stats"
	"stroppy/internal/sweep"
)

func (a *app) sweepCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "sweep [WORKLOAD] --over AXIS[=VALUES]", Short: "Repeat a run at several rates, or with several numbers of clients or nodes; or run several scenarios",
		Long: "Every step is a whole run with a verdict of its own, in a folder of the sweep's directory.\n" +
			"A sweep that was interrupted goes on where it stopped when it is called again with --out.\n\n" +
			"  --over rate                   finds the maximum rate, steps down by tenths, below 70 % by half,\n" +
			"                                refines near the knee and measures its two sides three times;\n" +
			"                                a step lasts until its 99 % latency has samples enough, a minute at most\n" +
			"  --over clients=1,2,4,8        these; clients=1..64 doubles; clients=10..50 by 10 adds\n" +
			"  --over nodes=1,3,5            with --cluster, which is started anew for each\n" +
			"  --over scenarios='study/*'    scenarios by name, pattern or file, one after the other; those of the\n" +
			"                                studies if none is named. One that cannot be run is reported, and the\n" +
			"                                others go on. The tables that the studies published have ours beside",
		Args: oneWorkload,
	}
	absent := keys("workload", "keep", "no-load", "arrival")
	read := a.settings(c, func(k scenario.Key) bool { return !absent(k) })
	arrival := c.Flags().String("arrival", "", "over rate: how transactions lie within it, uniform or poisson, by `NAME`")
	repeat := c.Flags().String("repeat", "1", "measure each step `TIMES`")
	dry := dryRunFlag(c)
	over := c.Flags().String("over", "", "what the steps differ in: `AXIS[=VALUES]`")
	groupedHelp(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		if err := noneEmpty(c); err != nil {
			return err
		}
		if *over == "" {
			return exit.Usagef("`%s` needs --over: rate, clients, nodes or scenarios, such as --over clients=1,2,4,8", c.CommandPath())
		}
		if names, ok, err := listOf(*over); err != nil {
			return err
		} else if ok {
			return a.sweepScenarios(c, args, names, *over, *dry)
		}
		spec, err := sweep.Parse(*over)
		if err != nil {
			return exit.With(exit.Usage, err)
		}
		times, err := strconv.Atoi(*repeat)
		if err != nil || times < 1 || times > mostRepeats {
			return exit.Usagef("--repeat %q is no number of times from 1 to %d", *repeat, mostRepeats)
		}
		if c.Flags().Changed("repeat") {
			spec.Repeat = times
		}
		var later []string // read by the steps alone
		if spec.Axis == sweep.Rate {
			later = []string{"max-backlog"}
		}
		config, err := read(args, later...)
		if err != nil {
			return err
		}
		if *arrival != "" && spec.Axis != sweep.Rate {
			return exit.Usagef("--arrival is of a rate, and this sweep goes over %s: leave it out", spec.Axis)
		}
		w := &sweeping{app: a, config: &config, spec: spec, arrival: *arrival}
		if err := w.allowed(); err != nil {
			return err
		}
		if *dry {
			return w.dryRun()
		}
		return a.sweep(w)
	}
	return c
}

type sweeping struct {
	app      *app
	config   *session.Config
	spec     sweep.Spec
	fallback []float64 // steps of an axis that was given none
	dir      string
	book     *sweep.Book
	arrival  string // within a rate
}

func (a *app) sweep(w *sweeping) error {
	config := w.config
	servers, err := a.OpenLive(config)
	if err != nil {
		return err
	}
	defer servers.Close()
	s := a.Begin(servers.Feed)
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
	s.Note("sweep directory %s", w.dir)
	s.Note("seed %d", config.Seed)
	if n := len(w.book.Points); n > 0 {
		were := "were"
		if n == 1 {
			were = "was"
		}
		s.Note("%s %s done before", report.Counted(uint64(n), "step"), were)
	}
	for value, more := w.spec.Next(w.book.Points, w.fallback); more; value, more = w.spec.Next(w.book.Points, w.fallback) {
		if err := w.step(s, value); err != nil {
			s.Stop()
			fmt.Fprintln(a.Stderr, session.ToPaste("go on", onwards(w.book, w.dir)))
			servers.Fail(a.Reasons(err)[0])
			if len(w.book.Points) > 0 && !config.JSON {
				err = errors.Join(err, a.printSweep(w.book, w.dir, false))
			}
			return w.verdicts(err, true)
		}
	}
	s.Stop()
	if n := len(w.book.Points); n > 0 {
		defer servers.End(filepath.Join(w.dir, w.book.Points[n-1].Dir), fmt.Sprintf("This is the last step of the sweep in %s.", w.dir))
	}
	w.book.Finished = true
	if err := w.keep(); err != nil {
		return err
	}
	if err := a.printSweep(w.book, w.dir, config.JSON); err != nil {
		return err
	}
	return w.verdicts(nil, !config.NoCheck)
}

// verdicts is the error of the steps that ended with err.
func (w *sweeping) verdicts(err error, asked bool) error {
	var v verdicts
	for _, p := range w.book.Points {
		v.add(p.Dir, p.Verdict, p.Objectives)
	}
	return v.with(err, asked)
}

// allowed refuses what the sweep changes itself, and steps that no run could take.
func (w *sweeping) allowed() error {
	if w.config.NoLoad {
		return exit.Usagef("every step of a sweep loads its own accounts: leave no-load out")
	}
	if err := w.axis(); err != nil {
		return err
	}
	values := w.spec.Values
	if len(values) == 0 {
		values = w.fallback
	}
	for _, value := range values {
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

// axis refuses what does not go with the axis.
func (w *sweeping) axis() error {
	c := w.config
	switch w.spec.Axis {
	case sweep.Rate:
		if !c.Rate.Closed() {
			return exit.Usagef("the rate is what the sweep changes: leave --rate out")
		}
		if c.Think > 0 {
			return exit.Usagef("think-time is of a closed loop, and a sweep over the rate drives an open one: leave it out")
		}
		if _, err := w.with(1); err != nil { // what goes with any rate
			return err
		}
	case sweep.Clients:
		if c.Named["clients"] {
			return exit.Usagef("the number of clients is what the sweep changes: leave --clients out")
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

// sweepable refuses a directory that holds something else than a sweep.
func sweepable(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return run.Unusable(dir, err)
	case len(entries) > 0 && !holdsBook(dir):
		return exit.Usagef("make the sweep's directory: %s is not empty and holds no sweep: name another with --out", dir)
	}
	return nil
}

// open makes the sweep's directory or goes on with it, and keeps others out of it.
func (w *sweeping) open() (unlock func(), err error) {
	c, now := w.config, time.Now()
	if w.dir = c.Out; w.dir == "" {
		database, _, _ := clusterNodes(c.Cluster)
		if database == "" {
			database, _, _ = strings.Cut(c.RunDatabase(""), ":")
		}
		w.dir = run.Unused(run.DefaultPath(session.RunsRoot, now, c.Workload+"-sweep", database))
	}
	if err := sweepable(w.dir); err != nil {
		return nil, err
	}
	fresh := &sweep.Book{
		Workload: c.Workload, Over: w.spec.String(), Scenario: w.shared(), StartedAt: now.UTC().Format(time.RFC3339),
	}
	if w.book, err = fresh.Resume(w.dir); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	switch b := w.book; {
	case w.spec.Repeat > 0 && w.spec.Repeat < b.Repeat:
		return nil, exit.Usagef("go on with the sweep in %s: its steps are measured %d times each, which --repeat %d would make fewer: leave --repeat out", w.dir, b.Repeat, w.spec.Repeat)
	case c.Seed != 0 && b.Seed != 0 && c.Seed != b.Seed:
		return nil, exit.Usagef("go on with the sweep in %s: its seed is %d and not %d", w.dir, b.Seed, c.Seed)
	case len(b.Points) > 0 && b.Stroppy != registry.Version():
		return nil, exit.Usagef("go on with the sweep in %s: its steps were made by stroppy %s and this is %s: take another directory", w.dir, b.Stroppy, registry.Version())
	}
	c.Seed = max(c.Seed, w.book.Seed)
	w.spec.Repeat = max(w.spec.Repeat, w.book.Repeat)
	if w.spec.Repeat > 1 {
		w.book.Repeat = w.spec.Repeat
	}
	if err := w.app.DrawSeed(c, true); err != nil {
		return nil, err
	}
	w.book.Seed, w.book.Finished = c.Seed, false
	w.book.Command, w.book.Stroppy = w.again(), registry.Version()
	return takeDirectory(w.dir, w.keep)
}

// takeDirectory makes a directory unless it is there, keeps others out of it until unlock is
// called, and puts in place what is kept there.
func takeDirectory(dir string, keep func() error) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, run.Unusable(dir, err)
	}
	if unlock, err = session.LockDirectory(dir); err != nil {
		return nil, err
	}
	if err := keep(); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// keep puts the book and its page in place. Without a page the verdict stands.
func (w *sweeping) keep() error {
	if err := w.book.Save(w.dir); err != nil {
		return err
	}
	if err := sweep.SavePage(w.book, w.app.textOptions(w.dir), onwards(w.book, w.dir)); err != nil {
		fmt.Fprintln(w.app.Stderr, w.app.Scrub(err.Error())+session.Again)
	}
	return nil
}

// onwards is the command that repeats a sweep, or goes on with one that is not
// finished; empty where its book does not have it.
func onwards(b *sweep.Book, dir string) string {
	if b.Command == "" || b.Finished {
		return b.Command
	}
	return b.Command + " --out " + scenario.Quote(dir)
}

// reportSweep shows a sweep and makes its page again, whose path it returns.
func (a *app) reportSweep(dir, format string, open bool) (page string, err error) {
	book, err := sweep.Read(dir)
	if err != nil {
		return "", err
	}
	if format == output.Text {
		err = a.printSweep(book, dir, false)
	} else {
		var set *output.Set
		if set, err = output.OfSweep(book, dir, run.ReadResult); err == nil {
			err = a.printSet(set, format)
		}
	}
	if err == nil && (format == output.Text || open) {
		err = a.unmade(sweep.SavePage(book, a.textOptions(dir), onwards(book, dir)), open)
	}
	return filepath.Join(dir, sweep.PageName), err
}

func (a *app) printSweep(b *sweep.Book, dir string, asJSON bool) error {
	if !asJSON {
		return sweep.Text(a.Stdout, b, a.textOptions(dir))
	}
	return a.printJSON(b)
}

func holdsBook(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, sweep.FileName))
	return err == nil
}

// shared is the scenario of every step, without what the sweep changes.
func (w *sweeping) shared() string {
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

// with is the configuration at a value of the axis.
func (w *sweeping) with(value float64) (session.Config, error) {
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

func (w *sweeping) label(value float64) string {
	if w.spec.Axis == sweep.Rate && value == 0 {
		return "full"
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

// step carries out one run and keeps what it came to.
func (w *sweeping) step(s *session.Session, value float64) error {
	c, err := w.with(value)
	if err != nil {
		return err
	}
	b, number := w.book, len(w.book.Points)+1
	name := fmt.Sprintf("%02d-%s-%s", number, w.spec.Axis, w.label(value))
	c.Out, c.JSON = run.Unused(filepath.Join(w.dir, name)), false // a step that was cut off stays beside
	s.Note("step %d: %s %s", number, w.spec.Axis, w.label(value))
	result, dir, err := w.app.Next(s, &c)
	if result == nil {
		return err
	}
	database := strings.TrimSpace(result.Database + " " + result.DatabaseVersion)
	if number > 1 && (b.Database != database || b.Machine != result.Machine) {
		return exit.Usagef("the steps before were made with %s on %s, and this one with %s on %s: take another directory",
			b.Database, b.Machine, database, result.Machine)
	}
	b.Database, b.Machine = database, result.Machine
	if b.Environment == nil {
		b.Environment = result.Environment
	}
	b.Points = append(b.Points, point(value, filepath.Base(dir), result))
	return errors.Join(err, w.keep())
}

// witnesses is how many transactions of a violation the book of a sweep has.
const witnesses = 5

// point is what a run came to as a step.
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

// again is the command that repeats the sweep; with --out it goes on.
func (w *sweeping) again() string {
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

// Package run conducts a run: load, drive, check, report. It owns the run's
// directory and sees contracts only: it knows neither databases nor workloads.
package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/db"
	"stroppy/internal/fault"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/load"
	"stroppy/internal/report"
	"stroppy/internal/resource"
	"stroppy/internal/scenario"
	"stroppy/internal/stats"
	"stroppy/internal/workload"
)

// Options describes one run, or the check of recorded runs. A check with a Workload and a Database downloads the end
// state.
type Options struct {
	Spec     workload.Spec
	Workload workload.Workload
	Database db.Database
	Dir      *Directory

	Plan        scenario.Plan
	DatabaseURL string // as it may be shown
	Stroppy     string // the version of this program

	// Command is the name of the command that carries out Plan. For a check of Runs it is the whole command that
	// repeats it.
	Command string
	// Runs holds the directories of runs against one data set, and of its end states, which are checked together into
	// the new Dir. Without Runs the run in Dir is checked.
	Runs []string
	// Fresh says of a check that Dir is new and there is no history.
	Fresh bool
	// Unchecked is the verdict's reason if no check is requested.
	Unchecked string

	// Nemesis injects the plan's faults; nil: there is none.
	Nemesis Nemesis
	// Nodes returns the nodes of the cluster, once it is whole. If Nodes is nil, the database is not read node by
	// node. It is called after Attach.
	Nodes func() []Node
	// MayLag is set if the user named the servers, one of which may follow late. A server that never caught up leaves
	// the check open. The servers are compared without a Nemesis.
	MayLag bool
	// Events returns what the cluster's supervisor did since a time, such as a fail-over, the oldest event first;
	// nil: there is no supervisor.
	Events func(since time.Time) []report.Event
	// Names returns a node by the HOST:PORT of its server, or an empty string. If Names is nil, the address is the
	// name.
	Names func(server string) string
	// OnePrimary is set if only one server should take writes at any time.
	OnePrimary bool
	// Settings are shown beside the settings of the database, such as the supervisor.
	Settings []report.Setting
	// Servers holds the database's own processes on this machine.
	Servers []resource.Group
	// The place of the run.
	Where Environment
	// Embedded is set if the database works in this process and has no servers.
	Embedded bool

	// Workers generate the load in processes of their own; nil: this process does.
	Workers Workers

	Progress Progress
	// Note shows a sentence; nil: nobody reads it.
	Note func(text string)
	// Interrupt, once closed, ends the load phase early. It may be nil.
	Interrupt <-chan struct{}
	// Scrub removes secrets from a text that may hold some, such as an error.
	Scrub func(string) string
}

// Progress receives the progress of a run or a check. Several goroutines may call it at once.
type Progress interface {
	Begin(phase string)
	Show(State)
	Fault(fault.Record)          // injected, and later healed
	Violation(name, what string) // shown by a check while the load phase goes on
	// Known receives the result so far, at the beginning of each phase and after the last one. Nobody changes r any
	// more. During the load phase r.Drive has the requested load without counts; State has the counts.
	Known(r *report.Result)
}

// State is the progress of one phase. A zero field is not known.
type State struct {
	Done, Total uint64
	Elapsed, Of time.Duration

	// In the load phase Drive is set and Done counts transactions.
	Drive    Drive
	Clients  int
	Counters load.Counters
	Second   *stats.Second // the last whole one; nil before it
	Target   float64       // transactions per second that are asked for now; 0: as many as can be
	// LiveCheck holds the findings of the check beside the clients; nil: there is none.
	LiveCheck *LiveCheck
}

// Run carries the run out. With an error the result holds what was known until then, and the directory what was
// recorded. With an *UnsavedError the result is complete.
func Run(ctx context.Context, o Options) (*report.Result, error) {
	c := newConductor(o)
	c.result.Workload = o.Spec.Name
	c.log.Info("run begins", "workload", o.Spec.Name, "database", o.DatabaseURL, "seed", o.Plan.Seed, "stroppy", o.Stroppy)
	err := c.conduct(ctx)
	if err != nil {
		err = c.scrubbed(err)
		c.log.Error("run failed", "error", err)
		first, _, _ := strings.Cut(err.Error(), "\n") // what follows came of it
		c.result.Reason = "The run could not be carried out: " + first
		if c.started {
			err = errors.Join(err, c.save())
		}
		c.publish(nil)
		return c.result, err
	}
	c.result.Finished = true
	c.publish(nil)
	c.log.Info("run ends", "verdict", c.result.Verdict, "reason", c.result.Reason)
	if err := errors.Join(c.unkept, c.save()); err != nil {
		return c.result, &UnsavedError{err}
	}
	return c.result, nil
}

// UnsavedError reports that the verdict could not be written into result.json.
type UnsavedError struct{ Err error }

func (e *UnsavedError) Error() string {
	return fmt.Sprintf("the verdict could not be kept: %v: `stroppy check` finds it again", e.Err)
}

func (e *UnsavedError) Unwrap() error { return e.Err }

// conductor carries one run through its phases.
type conductor struct {
	o       Options
	log     *slog.Logger
	result  *report.Result
	expect  isolation.Level // unknown until the promise is read from the database or the recording
	started bool            // the drive has begun, so that there is something to report
	begin   time.Time       // of the phase
	phase   string
	untimed bool // the current work is no part of the run itself

	zero        time.Time      // of the clock of the drive
	timeline    []stats.Second // of the drive
	plots       report.Plots   // of the drive
	measured    []check.Table  // what the checks have made of the workload's own tables; nil: nothing
	faultCount  int            // that were noted
	faultLines  int            // that were written of them
	unwhole     string         // why the database did not become whole after the last heal
	unkept      error          // why the violations could not be written
	opened      string         // the fingerprint of the state at the start; empty: it was not kept
	judging     bool           // the run itself is judged, not a recording of it
	facts       facts          // of the run that is checked
	checks      []check.Result // on its faults and its nodes, where it is one of several
	results     []check.Result // of all checks, once they are made
	qualify     func(reason string) string
	violated    chan struct{}     // closed when the load phase is to end for a violation
	host        *hostWatch        // samples of the machine; nil before the load phase
	checkedLive *report.LiveCheck // nil: nothing was checked during the load phase
	foundLive   atomic.Pointer[LiveCheck]
}

func newConductor(o Options) *conductor {
	if o.Scrub == nil {
		o.Scrub = func(s string) string { return s }
	}
	return &conductor{
		o: o, expect: o.Plan.Expect,
		log: o.Dir.Logger(o.Scrub),
		result: &report.Result{
			Schema: report.Schema, Verdict: "unknown", Reason: "The run was cut off before its end.",
			DatabaseURL: o.DatabaseURL, Embedded: o.Embedded, Seed: o.Plan.Seed, Study: o.Spec.Study,
			StartedAt: time.Now().UTC().Format(time.RFC3339),
			Checks:    []report.Check{}, Faults: []fault.Record{}, Settings: []report.Setting{}, Phases: []report.Phase{}, Servers: []report.Server{},
			Scenario: []report.Setting{}, Stroppy: o.Stroppy,
			Machine: fmt.Sprintf("%s/%s, %d processors", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
		},
	}
}

func (c *conductor) conduct(ctx context.Context) error {
	err := c.describe(ctx)
	if err == nil && !c.o.Plan.NoLoad {
		err = c.load(ctx)
	}
	if err == nil {
		err = c.attach(ctx)
	}
	if err == nil {
		err = c.opening(ctx)
	}
	if err != nil {
		return err
	}
	if err := c.drive(ctx); err != nil {
		return errors.Join(c.replaced(ctx), err)
	}
	err = c.heal(ctx)
	c.clusterEvents()
	if err == nil {
		err = c.replaced(ctx)
	}
	if err != nil {
		return err
	}
	c.footprint(ctx)
	err = c.judge(ctx)
	if err == nil {
		c.depart(ctx)
	}
	c.acknowledgements()
	c.explainAgain()
	c.tables(ctx)
	if m, ok := c.o.Workload.(workload.Measured); ok {
		for _, t := range m.Measured() {
			c.result.Tables = append(c.result.Tables, report.Table(t))
		}
	}
	return errors.Join(err, c.judgeObjectives(objectiveKeys(&c.o.Plan)))
}

// enter begins a phase and closes the one before.
func (c *conductor) enter(phase string) {
	c.leave()
	c.phase, c.begin = phase, time.Now()
	c.o.Progress.Begin(phase)
	c.publish(nil)
	c.log.Info("phase begins", "phase", phase)
}

func (c *conductor) leave() {
	if c.phase == "" {
		return
	}
	took := time.Since(c.begin)
	if !c.untimed {
		c.result.Phases = append(c.result.Phases, report.Phase{Name: c.phase, Seconds: took.Seconds()})
	}
	c.log.Info("phase ends", "phase", c.phase, "seconds", took.Seconds())
	c.phase = ""
}

// describe asks the database for its version, its settings and its claim.
func (c *conductor) describe(ctx context.Context) error {
	info, err := c.o.Database.Info(ctx)
	if err != nil {
		return err
	}
	claim, r := c.o.Workload.Claim(), c.result
	r.Database, r.DatabaseVersion = info.Name, info.Version
	for _, s := range info.Settings {
		r.Settings = append(r.Settings, report.Setting(s))
	}
	r.Settings, r.DatabaseWarnings = append(r.Settings, c.o.Settings...), info.Warnings
	if c.expect == isolation.Unknown {
		c.expect = claim.Level
	}
	r.Claim = &report.Claim{
		Isolation: claim.Isolation, Level: claim.Level.String(), Source: claim.Source, Expect: c.expect.String(), Durable: info.Durable,
	}
	for _, v := range info.Caveats {
		r.Claim.Caveats = append(r.Claim.Caveats, report.Caveat(v))
	}
	r.Claim.Isolations = c.isolations()
	c.log.Info("database", "name", info.Name, "version", info.Version, "isolation", claim.Isolation, "claims", claim.Level, "expect", c.expect)
	r.Environment = c.o.Where.fingerprint(c.o.Dir.Path)
	return c.o.Dir.Write(FaultsFile, nil)
}

func (c *conductor) load(ctx context.Context) error {
	c.enter("load")
	defer c.leave()
	loaded, err := c.o.Workload.Load(ctx, func(done, total uint64) {
		c.o.Progress.Show(State{Done: done, Total: total, Elapsed: time.Since(c.begin)})
	})
	if err != nil {
		return err
	}
	c.result.Load = Loaded(loaded)
	c.log.Info("loaded", "accounts", loaded.Size, "total", loaded.Total, "resumed", loaded.Resumed)
	return nil
}

// Loaded returns a load in the form of the result.
func Loaded(l workload.Loaded) *report.Load {
	r := &report.Load{Accounts: l.Size, Things: l.Things, Total: l.Total, Resumed: l.Resumed}
	if s := l.Took.Seconds(); s > 0 {
		perSecond := float64(l.Size-min(l.Resumed, l.Size)) / s
		r.Seconds, r.RowsPerSecond = &s, &perSecond
	}
	return r
}

func (c *conductor) attach(ctx context.Context) error {
	c.enter("attach")
	defer c.leave()
	var loaded workload.Loaded
	err := Reach(ctx, func() (err error) {
		loaded, err = c.o.Workload.Attach(ctx)
		return err
	})
	if err != nil {
		return err
	}
	r, header := c.result, c.o.Workload.Header()
	if r.Load == nil {
		r.Load = Loaded(loaded)
	}
	plan, err := c.o.Plan.Attached(c.o.Spec, header)
	if err != nil {
		return err
	}
	r.Seed, r.LoadID, r.Command = header.Seed, header.LoadID, plan.Command(c.o.Command)
	plan = plan.InEffect(c.chosen(header.Keys))
	r.ScaledDownBy, r.ScaledDown = plan.Scale.By, plan.Scale.Changes
	for _, s := range plan.Shown() {
		r.Scenario = append(r.Scenario, report.Setting{Name: s[0], Value: s[1]})
	}
	return c.o.Dir.Write(ScenarioFile, plan.YAML())
}

// chosen returns the values of settings that nobody gave, by name: the workload's style, the database's default and
// its claim.
func (c *conductor) chosen(keys map[string]string) map[string]string {
	chosen := maps.Clone(keys)
	if chosen == nil {
		chosen = map[string]string{}
	}
	if c.result.Claim != nil {
		name := c.result.Claim.Isolation
		if claim, err := c.o.Database.Claim(name); err == nil && claim.Isolation == name {
			chosen["isolation"] = name
		}
		chosen["expect"] = c.expect.String()
	}
	return chosen
}

// replacedWait bounds how long a database is asked whether it holds the data of the run.
const replacedWait = 5 * time.Second

// departTime bounds the time to describe the data for the next run.
const departTime = 20 * time.Second

func (c *conductor) footprint(ctx context.Context) {
	if f, ok := c.o.Database.(db.Footprinter); ok {
		bytes, err := f.Footprint(ctx)
		if err != nil {
			c.log.Warn("the footprint could not be read", "error", err)
			return
		}
		c.result.FootprintBytes = &bytes
	} else {
		c.result.NoFootprint = true
	}
}

// tables has a workload add its tables, without which the verdict stands. The history is
// read for them only where the checks have not made them.
func (c *conductor) tables(ctx context.Context) {
	if c.o.Spec.Tables == nil {
		return
	}
	list := c.measured
	if list == nil {
		recorded, err := history.Open(c.o.Dir.History())
		if err == nil {
			defer recorded.Close()
			list, err = c.o.Spec.Tables(ctx, recorded)
		}
		if err != nil {
			c.log.Warn("the workload's own tables could not be made", "error", err)
			return
		}
	}
	c.result.Tables = nil
	for _, t := range list {
		c.result.Tables = append(c.result.Tables, report.Table(t))
	}
}

func (c *conductor) save() (err error) {
	if c.result.Files, err = digestsOf(c.o.Dir.Path, c.result); err != nil {
		return err
	}
	data, err := c.result.JSON()
	if err != nil {
		return err
	}
	return c.o.Dir.Write(report.FileName, data)
}

// scrubbed returns err without secrets; its wrapped error stays reachable.
func (c *conductor) scrubbed(err error) error { return &scrubbedError{c.o.Scrub(err.Error()), err} }

type scrubbedError struct {
	text string
	err  error
}

func (e *scrubbedError) Error() string { return e.text }
func (e *scrubbedError) Unwrap() error { return e.err }

// Drive is a running or finished load phase (load.Driver), for any goroutine.
type Drive interface {
	Seconds(from int) []stats.Second
	KindLatencies() map[string]*stats.Reading
	Kinds() []KindCount
	Errors() map[string]uint64
}

// Generator is a load phase before, during and after its run: load.Driver, or the one of Workers.
type Generator interface {
	Drive
	Run(ctx context.Context) (*load.Result, error)
	Abort()
	Live() load.Counters
	Second() (stats.Second, bool)
}

// Workers are processes that each have a part of the clients.
type Workers interface {
	// Generator is their load phase, after Prepare with its options. It uses their Start, History, Ended and
	// Connected.
	Generator
	Prepare(o load.Options)
	// Connect has each open its clients on the data and for the run that the header
	// describes, and returns the clients' servers (HOST:PORT; empty: not known).
	Connect(ctx context.Context, header history.Header) (servers []string, err error)
	// Collect writes their recordings into the History of the load phase, after it and in any case.
	Collect() error
	// PIDs returns the processes of the workers on this machine.
	PIDs() []int
	// Shares returns the cost of each worker, after the load phase.
	Shares() []report.Worker
	// Clocks returns the clocks of the clients after Connect, with their errors after Collect. It is empty if all
	// clients have the clock of this process.
	Clocks() []history.ClockError
}

// KindCount counts the transactions of one kind.
type KindCount = load.KindCount

// publish publishes the result so far; driven is the load phase in progress.
func (c *conductor) publish(driven *report.Drive) {
	// The result as its readers will have it, and nothing of it shared.
	data, err := c.result.JSON()
	var known *report.Result
	if err == nil {
		known, err = report.Parse(data)
	}
	if err != nil {
		c.log.Warn("what is known could not be shown", "error", err)
		return
	}
	if driven != nil {
		known.Drive = driven
	}
	c.o.Progress.Known(known)
}

// asked returns the load phase before its begin.
func (c *conductor) asked(options *load.Options) *report.Drive {
	d := &report.Drive{
		Clients: c.o.Workload.Header().Clients, WarmupSeconds: options.Warmup.Seconds(), Style: c.o.Workload.Header().Keys,
		TPS: &report.Throughput{}, Kinds: map[string]uint64{}, Errors: []report.ErrorCount{},
	}
	pacing(d, options, &load.Result{Measurements: new(stats.Measurements)})
	return d
}

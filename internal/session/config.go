package session

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"stroppy/internal/db"
	"stroppy/internal/exit"
	"stroppy/internal/history"
	"stroppy/internal/registry"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/setting"
	"stroppy/internal/spelling"
	"stroppy/internal/workload"
	"stroppy/scenarios"
)

// Recorded makes the workload of a recording on a database: whatever it holds is
// checked against the recording. One that keeps nothing holds what was recorded.
func (c *Config) Recorded(database db.Database, h history.Header) (w workload.Workload, err error) {
	spec := c.WorkloadSpec()
	held := Config{Plan: scenario.Plan{Scenario: c.Scenario}}
	held.Config = spec.Config()
	if registry.IsVolatile(database) {
		if held.Plan, err = held.Attached(spec, h); err != nil {
			return nil, err
		}
	}
	o := held.Options(registry.IsVolatile(database))
	o.Undriven = true
	return held.Config.New(database, o)
}

// Config is the configuration of one call and where it came from.
type Config struct {
	scenario.Plan
	Live  string // the URL of the cluster that was started for this run
	Stays bool   // leave that cluster
}

// Configure merges file, variables and flags. Nothing may be left unread but idle.
func (a *App) Configure(flags []scenario.Setting, file string, idle ...string) (c Config, err error) {
	defer func() {
		if err != nil {
			err = exit.With(exit.Usage, err)
		}
	}()
	variables, named, err := registry.Workloads().Environment(registry.SettingsOf(a.Environ))
	if err != nil {
		return c, err
	}
	var written []scenario.Setting
	if file = cmp.Or(file, named); file != "" {
		if written, err = readScenario(file); err != nil {
			return c, err
		}
	}
	var database scenario.Setting // that counts: of the strongest layer
	for _, s := range slices.Concat(written, variables, flags) {
		switch s.Key {
		case "db":
			a.keepSecret(s.Value)
			database = s
		case "nemesis":
			a.Hide(scenario.CommandScrubber(s.Value))
		}
	}
	merged, given, err := registry.Workloads().Merge(written, variables, flags)
	if err == nil {
		err = registry.Workloads().Idle(&merged, idle, written, variables, flags)
	}
	if err == nil {
		c.Plan, err = merged.Plan(given)
	}
	if err == nil {
		err = c.measurable()
	}
	if err == nil && scenario.RedactedURL(c.DB) {
		err = fmt.Errorf("%s is %s, with xxxxx where a password was taken out: put it back", database.Source, scenario.Redact(c.DB))
	}
	if err == nil && c.DB != "" {
		err = registry.CheckURL(c.DB)
	}
	c.FromVariable = database.Source == scenario.DatabaseVariable
	return c, err
}

// measurable refuses thresholds that are none, and those on what a run without faults never has.
func (c *Config) measurable() error {
	thresholds, err := report.ParseThresholds(c.Thresholds)
	for _, t := range thresholds {
		if t.OfFaults() && c.Nemesis == "" {
			return fmt.Errorf("the threshold %q is a limit on what faults do, and there is none: give some with nemesis", t)
		}
	}
	return err
}

// unlimited returns a note if the nodes do not get the resources that the configuration names;
// else it is empty.
func (c *Config) unlimited() string {
	if c.Resources == "" || c.Cluster == "" {
		return ""
	}
	return c.Resources + " per node need Kubernetes (--kubernetes): here the nodes share this machine without limits"
}

// scaled returns the divisor of the scenario's sizes, and what became of each; empty if they were
// not divided.
func (c *Config) scaled() string {
	switch s := c.Scale; {
	case s.By == 0:
		return ""
	case s.Changes == "":
		return "by " + setting.Number(s.By)
	default:
		return fmt.Sprintf("by %s: %s", setting.Number(s.By), s.Changes)
	}
}

// ToPaste writes a command for a person to paste, behind what it is for.
func ToPaste(what, command string) string {
	if scenario.Masked(command) {
		what = "once xxxxx is the secret again, " + what
	}
	return what + " with: " + command
}

// keepSecret takes the URL's secrets out of everything that is shown from now on.
func (a *App) keepSecret(url string) { a.Hide(scenario.Scrubber(url, a.Getenv("PGPASSWORD"))) }

// Hide has a function change everything that is shown from now on.
func (a *App) Hide(more func(string) string) {
	before := a.Scrub
	a.Scrub = func(text string) string { return more(before(text)) }
}

// readScenario reads a file, or the scenario of that name that is in this program: a file of
// the same name goes before it.
func readScenario(path string) ([]scenario.Setting, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		for _, s := range scenarios.All() {
			if s.Name == path {
				return registry.Workloads().File(path, s.Data)
			}
		}
		return nil, fmt.Errorf("read the scenario %s: there is no such file, and none of this name in `stroppy list scenarios`%s", path, NearScenario(path))
	}
	var data []byte
	if err == nil {
		defer file.Close()
		data, err = io.ReadAll(io.LimitReader(file, scenario.MaxFile+1))
	}
	if errors.Is(err, syscall.EISDIR) {
		return nil, fmt.Errorf("read the scenario %s: it is a directory: name a file in it, such as %s of a run", path, run.ScenarioFile)
	}
	if err != nil {
		return nil, fmt.Errorf("read the scenario: %w", err)
	}
	return registry.Workloads().File(path, data)
}

// NearScenario names the scenario of this program that may be meant, to end a sentence; empty
// where none is near.
func NearScenario(name string) string {
	if near, found := spelling.Near(strings.TrimSuffix(name, ".yaml"), ScenarioNames()); found {
		return "; the nearest is " + near
	}
	return ""
}

func ScenarioNames() (names []string) {
	for _, s := range scenarios.All() {
		names = append(names, s.Name)
	}
	return names
}

// bind makes the configuration's workload on a database. Unless this call loads, what
// nobody named is left to what the database holds.
func (c *Config) bind(database db.Database, loads bool) (workload.Workload, error) {
	return c.Config.New(database, c.Options(loads || registry.IsVolatile(database)))
}

// Options returns the options that the configuration gives to its workload.
func (c *Config) Options(loads bool) workload.Options {
	o := workload.Options{Session: workload.Session{Isolation: c.Isolation, Mode: c.Mode}, Clients: c.Clients}
	o.Given = func(name string) bool { return loads || c.Named[name] }
	if o.Given("seed") {
		o.Seed = c.Seed
	}
	return o
}

// WorkloadSpec returns the configuration's workload, which was checked with its settings.
func (c *Config) WorkloadSpec() workload.Spec {
	spec, _ := registry.Workloads().Find(c.Workload)
	return spec
}

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

// Recorded returns the workload of a recording, bound to a database. A volatile database counts as holding the
// recorded data.
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

// Config is the configuration of one call.
type Config struct {
	scenario.Plan
	Live  string // the URL of the cluster that was started for this run
	Stays bool   // leave that cluster
}

// Configure merges file, variables and flags. It returns an error for a setting that has no effect, unless idle names
// it.
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
	var database scenario.Setting // of the strongest layer
	for _, s := range slices.Concat(written, variables, flags) {
		switch s.Key {
		case "db":
			a.keepSecret(s.Value)
			database = s
		case "nemesis":
			a.Hide(scenario.CommandScrubber(s.Value))
		case "probe":
			a.Hide(scenario.CommandScrubber(strings.ReplaceAll(s.Value, "'", "''")))
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
		err = fmt.Errorf("%s is %s, where xxxxx stands for a password: put the password back", database.Source, scenario.Redact(c.DB))
	}
	if err == nil && c.DB != "" {
		err = registry.CheckURL(c.DB)
	}
	if err == nil && c.DB != "" && c.Nemesis != "" && registry.Embedded(c.DB) {
		err = errors.New("nemesis needs servers to hurt, and this database has none: name one with servers, or a cluster, such as --cluster KIND:3")
	}
	c.FromVariable = database.Source == scenario.DatabaseVariable
	return c, err
}

// measurable returns an error for an invalid threshold, and for a threshold on faults in a run without faults.
func (c *Config) measurable() error {
	thresholds, err := report.ParseThresholds(c.Thresholds)
	for _, t := range thresholds {
		if t.OfFaults() && c.Nemesis == "" {
			return fmt.Errorf("the threshold %q limits the effect of faults, and the run has no faults: add some with nemesis", t)
		}
	}
	return err
}

// unlimited returns a note if the nodes do not get the configured resources, and otherwise an empty string.
func (c *Config) unlimited() string {
	if c.Resources == "" || c.Cluster == "" {
		return ""
	}
	return c.Resources + " per node need Kubernetes (--kubernetes): here the nodes share this machine without limits"
}

// scaled describes how the sizes of the scenario were divided; empty: they were not.
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

// ToPaste returns a sentence with a command to paste, after the purpose of the command.
func ToPaste(what, command string) string {
	if scenario.Masked(command) {
		what = "once xxxxx is the secret again, " + what
	}
	return what + " with: " + command
}

// keepSecret removes the secrets of a URL from everything that is shown from now on.
func (a *App) keepSecret(url string) { a.Hide(scenario.Scrubber(url, a.Getenv("PGPASSWORD"))) }

// Hide applies a function to everything that is shown from now on.
func (a *App) Hide(more func(string) string) {
	before := a.Scrub
	a.Scrub = func(text string) string { return more(before(text)) }
}

// readScenario reads a scenario from a file or, if there is no such file, the built-in scenario of that name.
func readScenario(path string) ([]scenario.Setting, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		for _, s := range scenarios.All() {
			if s.Name == path {
				return registry.Workloads().File(path, s.Data)
			}
		}
		return nil, fmt.Errorf("read the scenario %s: no such file, and no scenario of this name in `stroppy list scenarios`%s", path, NearScenario(path))
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

// NearScenario returns the end of a sentence that suggests a built-in scenario; empty: no name is similar.
func NearScenario(name string) string {
	if near, found := spelling.Near(strings.TrimSuffix(name, ".yaml"), ScenarioNames()); found {
		return "; the nearest is " + near
	}
	return ""
}

// ScenarioNames returns the names of the built-in scenarios.
func ScenarioNames() []string {
	return setting.Names(scenarios.All(), func(s scenarios.Scenario) string { return s.Name })
}

// bind binds the configured workload to a database. Unless this call loads, the loaded data decide the settings that
// nobody named.
func (c *Config) bind(database db.Database) (workload.Workload, error) {
	if _, ok := database.(db.SQL); c.Connect && !ok {
		return nil, errors.New("connect asks for a new connection for each transaction, which databases with SQL have: leave it out (--connect, -C)")
	}
	return c.Config.New(database, c.Options(!c.NoLoad || registry.IsVolatile(database)))
}

// Options returns the options of the workload.
func (c *Config) Options(loads bool) workload.Options {
	o := workload.Options{Session: workload.Session{Isolation: c.Isolation, Mode: c.Mode}, Clients: c.Clients}
	o.Given = func(name string) bool { return loads || c.Named[name] }
	if o.Given("seed") {
		o.Seed = c.Seed
	}
	return o
}

// WorkloadSpec returns the configured workload.
func (c *Config) WorkloadSpec() workload.Spec {
	spec, _ := registry.Workloads().Find(c.Workload)
	return spec
}

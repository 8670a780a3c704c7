package cli

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

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/setting"
	"stroppy/internal/spelling"
	"stroppy/scenarios"
)

// config is the configuration of one call and where it came from.
type config struct {
	scenario.Plan
	live string // the URL of the cluster that was started for this run
	keep bool   // leave that cluster
}

// keyFlag is a key as a flag: it keeps the text for scenario to read.
type keyFlag struct {
	key   scenario.Key
	text  string
	given bool
	empty bool // so it was given, or one of its lines
}

func (f *keyFlag) String() string { return f.text }

func (f *keyFlag) Set(text string) error {
	if f.key.Lines {
		f.empty = f.empty || strings.TrimSpace(text) == ""
		if f.given {
			text = f.text + "\n" + text
		}
	} else {
		f.empty = text == ""
	}
	f.text, f.given = text, true
	return nil
}

func (f *keyFlag) Type() string {
	if f.key.Switch() {
		return "bool"
	}
	return f.key.Value
}

// settings adds flags for the keys that a command has, and returns what reads the
// configuration once they are parsed. A workload as argument counts as a flag. The
// keys in idle may be given though nothing reads them yet.
func (a *app) settings(c *cobra.Command, has func(scenario.Key) bool) func(args []string, idle ...string) (config, error) {
	var flags []*keyFlag
	for _, key := range workloads().Keys() {
		if has(key) {
			flags = append(flags, addFlag(c.Flags(), key, key.Help))
		}
	}
	for _, f := range flags {
		flag := c.Flags().Lookup(f.key.Name)
		flag.Usage += alsoTaken(c.Flags(), f.key)
		flag.Hidden = f.key.Alias != nil && f.key.Alias.Help == ""
	}
	file := c.Flags().StringP("scenario", "f", "", "read settings from a YAML `FILE`, such as scenario.yaml of an earlier run, or a name that 'stroppy list scenarios' shows")
	c.Flags().SortFlags = false
	return func(args []string, idle ...string) (config, error) {
		if err := noneEmpty(c); err != nil {
			return config{}, err
		}
		var given []scenario.Setting
		if len(args) > 0 {
			given = append(given, scenario.Setting{Key: "workload", Value: args[0], Source: "the workload"})
		}
		for _, f := range flags {
			if f.given {
				given = append(given, scenario.Setting{Key: f.key.Name, Value: f.text, Source: "--" + f.key.Name})
			}
		}
		return a.configure(given, *file, idle...)
	}
}

// alsoTaken names the further flags of a setting, for its help, where they have none of their own.
func alsoTaken(flags *pflag.FlagSet, key scenario.Key) string {
	var names []string
	for _, alias := range key.Aliases {
		if ofSetting(flags.Lookup(alias.Name)) && alias.Help == "" && key.Alias == nil {
			names = append(names, "--"+alias.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; also " + strings.Join(names, ", ")
}

// ofSetting says whether a flag, which may be nil, is one of settings.
func ofSetting(f *pflag.Flag) bool {
	if f == nil {
		return false
	}
	_, ok := f.Value.(*keyFlag)
	return ok
}

func addFlag(flags *pflag.FlagSet, key scenario.Key, help string) *keyFlag {
	f, letter := &keyFlag{key: key}, ""
	if key.Alias == nil {
		f.text, letter = key.Get(), key.Letter
	}
	flag := flags.VarPF(f, key.Name, letter, help)
	if key.Switch() {
		flag.NoOptDefVal = "true"
	}
	return f
}

// keys returns what says of a key that it is one of these.
func keys(names ...string) func(scenario.Key) bool {
	return func(k scenario.Key) bool { return slices.Contains(names, k.Name) }
}

// noneEmpty refuses a flag that was given nothing, as from a variable of a script
// that is not set. An empty db is refused by the scenario, wherever it comes from.
func noneEmpty(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		empty := f.Value.String() == ""
		if k, ok := f.Value.(*keyFlag); ok {
			empty = k.empty
		}
		if empty && err == nil && f.Name != "db" {
			value, _ := pflag.UnquoteUsage(f)
			err = usagef("--%s is empty: give its %s, or leave it out", f.Name, value)
		}
	})
	return err
}

// configure merges file, variables and flags. Nothing may be left unread but idle.
func (a *app) configure(flags []scenario.Setting, file string, idle ...string) (c config, err error) {
	defer func() {
		if err != nil {
			err = &exitError{exitUsage, err}
		}
	}()
	variables, named, err := workloads().Environment(settingsOf(a.environ))
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
			a.hide(scenario.CommandScrubber(s.Value))
		}
	}
	merged, given, err := workloads().Merge(written, variables, flags)
	if err == nil {
		err = workloads().Idle(&merged, idle, written, variables, flags)
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
		err = checkURL(c.DB)
	}
	c.FromVariable = database.Source == scenario.DatabaseVariable
	return c, err
}

// measurable refuses thresholds that are none, and those on what a run without faults never has.
func (c *config) measurable() error {
	thresholds, err := report.ParseThresholds(c.Thresholds)
	for _, t := range thresholds {
		if t.OfFaults() && c.Nemesis == "" {
			return fmt.Errorf("the threshold %q is a limit on what faults do, and there is none: give some with nemesis", t)
		}
	}
	return err
}

// unlimited says that the nodes of the cluster do not get the resources that the configuration
// names; empty where they do, or where it names none.
func (c *config) unlimited() string {
	if c.Resources == "" || c.Cluster == "" {
		return ""
	}
	return c.Resources + " is what a node gets in Kubernetes (--kubernetes): here the nodes share this machine without limits"
}

// scaled says by what the scenario's sizes were divided, and what became of each; empty if
// by nothing.
func (c *config) scaled() string {
	switch s := c.Scale; {
	case s.By == 0:
		return ""
	case s.Changes == "":
		return "by " + setting.Number(s.By)
	default:
		return fmt.Sprintf("by %s: %s", setting.Number(s.By), s.Changes)
	}
}

// toPaste writes a command for a person to paste, behind what it is for.
func toPaste(what, command string) string {
	if scenario.Masked(command) {
		what = "once xxxxx is the secret again, " + what
	}
	return what + " with: " + command
}

// keepSecret takes the URL's secrets out of everything that is shown from now on.
func (a *app) keepSecret(url string) { a.hide(scenario.Scrubber(url, a.getenv("PGPASSWORD"))) }

// hide has a function change everything that is shown from now on.
func (a *app) hide(more func(string) string) {
	before := a.scrub
	a.scrub = func(text string) string { return more(before(text)) }
}

// readScenario reads a file, or the scenario of that name that is in this program: a file of
// the same name goes before it.
func readScenario(path string) ([]scenario.Setting, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		for _, s := range scenarios.All() {
			if s.Name == path {
				return workloads().File(path, s.Data)
			}
		}
		return nil, fmt.Errorf("read the scenario %s: there is no such file, and none of this name in `stroppy list scenarios`%s", path, nearScenario(path))
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
	return workloads().File(path, data)
}

// nearScenario names the scenario of this program that may be meant, to end a sentence; empty
// where none is near.
func nearScenario(name string) string {
	if near, found := spelling.Near(strings.TrimSuffix(name, ".yaml"), scenarioNames()); found {
		return "; the nearest is " + near
	}
	return ""
}

package cli

import (
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stroppy/internal/exit"
	"stroppy/internal/registry"
	"stroppy/internal/scenario"
	"stroppy/internal/session"
)

// keyFlag is the flag of a setting. It keeps the text, which scenario parses.
type keyFlag struct {
	key   scenario.Key
	text  string
	given bool
	empty bool // the given value, or one of its lines, is empty
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

// settings adds flags for the keys of a command. It returns a function that reads the configuration after the flags were
// parsed. A workload as argument counts as a flag. The keys in idle may be given without effect.
func (a *app) settings(c *cobra.Command, has func(scenario.Key) bool) func(args []string, idle ...string) (session.Config, error) {
	given := givenBy(c, has)
	return func(args []string, idle ...string) (session.Config, error) {
		file, list, err := given(args)
		if err != nil {
			return session.Config{}, err
		}
		return a.Configure(list, file, idle...)
	}
}

// allKeys returns the keys of all settings. They are made once, because most commands have flags for some.
var allKeys = sync.OnceValue(func() []scenario.Key { return registry.Workloads().Keys() })

// givenBy adds flags for the keys of a command. It returns a function that returns the scenario file and the given
// settings after the flags were parsed. A workload as argument counts as a flag.
func givenBy(c *cobra.Command, has func(scenario.Key) bool) func(args []string) (file string, given []scenario.Setting, err error) {
	var flags []*keyFlag
	for _, key := range allKeys() {
		if has(key) {
			flags = append(flags, addFlag(c.Flags(), key, key.Help))
		}
	}
	for _, f := range flags {
		flag := c.Flags().Lookup(f.key.Name)
		flag.Usage += alsoTaken(c.Flags(), f.key)
		flag.Hidden = f.key.Alias != nil && f.key.Alias.Help == ""
	}
	files := c.Flags().StringArrayP("scenario", "f", nil, "read settings from a YAML `FILE`, such as scenario.yaml of an earlier run, or a name that 'stroppy list scenarios' shows")
	c.Flags().SortFlags = false
	return func(args []string) (file string, given []scenario.Setting, err error) {
		if len(args) > 0 {
			given = append(given, scenario.Setting{Key: "workload", Value: args[0], Source: "the workload"})
		}
		for _, f := range flags {
			if f.given {
				given = append(given, scenario.Setting{Key: f.key.Name, Value: f.text, Source: "--" + f.key.Name})
			}
		}
		return sortFiles(*files, given)
	}
}

// sortFiles sorts the values of --scenario. It returns the only scenario, and adds the other files to the given settings
// that take files with their suffix. Such a file may have a weight, as in FILE@8.
func sortFiles(files []string, given []scenario.Setting) (string, []scenario.Setting, error) {
	var scenarios []string
	for _, file := range files {
		name, _, _ := strings.Cut(file, "@")
		key := slices.IndexFunc(allKeys(), func(k scenario.Key) bool { return k.Files != "" && strings.HasSuffix(name, k.Files) })
		if key < 0 {
			scenarios = append(scenarios, file)
			continue
		}
		own := allKeys()[key].Name
		if i := slices.IndexFunc(given, func(s scenario.Setting) bool { return s.Key == own }); i >= 0 {
			given[i].Value += "\n" + file
			continue
		}
		given = append(given, scenario.Setting{Key: own, Value: file, Source: "-f"})
	}
	if len(scenarios) > 1 {
		return "", nil, exit.Usagef("--scenario takes one file, and was given %s and %s", scenarios[0], scenarios[1])
	}
	return strings.Join(scenarios, ""), given, nil
}

// alsoTaken lists for the help of a setting its other flags that have no help of their own.
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

// ofSetting reports whether a flag, which may be nil, belongs to a setting.
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

// keys returns a function that reports whether a key has one of these names.
func keys(names ...string) func(scenario.Key) bool {
	return func(k scenario.Key) bool { return slices.Contains(names, k.Name) }
}

// noneEmpty returns an error if a flag has an empty value, for example from an unset variable of a script. The scenario
// itself refuses an empty db.
func noneEmpty(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		empty := f.Value.String() == ""
		switch v := f.Value.(type) {
		case *keyFlag:
			empty = v.empty
		case pflag.SliceValue:
			empty = slices.Contains(v.GetSlice(), "")
		}
		if empty && err == nil && f.Name != "db" {
			value, _ := pflag.UnquoteUsage(f)
			err = exit.Usagef("--%s is empty: give its %s, or leave it out", f.Name, value)
		}
	})
	return err
}

package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Prefix begins the name of every environment variable that sets a key.
const Prefix = "STROPPY_"

// testPrefix begins the variables that name servers to the project's own tests;
// they are no keys.
const testPrefix = Prefix + "TEST_"

// FileVariable names the scenario file, as --scenario does.
const FileVariable = Prefix + "SCENARIO"

// Setting is one key with its value as text, and where it was said.
type Setting struct {
	Key, Value string
	Source     string // for errors, such as "--count" or "bank.yaml line 3: count"
}

// Set is the keys that some layer named; the others have their defaults.
type Set map[string]bool

// Merge builds a checked scenario from layers of settings, the weakest first.
// A layer that names count takes back a duration of a weaker layer, and the
// other way round; where none names either, a rate whose stages all have their
// times says how long the drive is. It also returns which keys were named at all.
func Merge(layers ...[]Setting) (Scenario, Set, error) {
	s, named := Default(), Set{}
	keys := Keys()
	var database string // who named it
	var chosen choice
	sources := map[string]string{}
	for _, layer := range layers {
		seen := Set{}
		for _, setting := range presetFirst(layer) {
			i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == setting.Key })
			if i < 0 {
				return s, named, Unknown(setting.Source, setting.Key)
			}
			if err := keys[i].set(&s, setting.Value); err != nil {
				return s, named, fmt.Errorf("%s is %s: %w", setting.Source, shown(setting), err)
			}
			seen[setting.Key], named[setting.Key] = true, true
			sources[setting.Key] = setting.Source
			if setting.Key == "db" {
				database = setting.Source
			}
		}
		switch {
		case seen["count"] && !seen["duration"]:
			s.Duration = 0
		case seen["duration"] && !seen["count"]:
			s.Count = 0
		}
		chosen.take(layer)
	}
	if length, bounded := s.Rate.Length(); bounded && !named["count"] && !named["duration"] {
		s.Duration = length
	}
	if named["db"] && s.DB == "" { // as from a variable of a script that is not set
		return s, named, fmt.Errorf("%s is empty: give the database's URL, or leave it out for the embedded default", database)
	}
	if s.Workload == KV {
		if err := chosen.apply(&s, named); err != nil {
			return s, named, err
		}
	}
	if err := s.Validate(); err != nil {
		return s, named, err
	}
	for i := range keys {
		if named[keys[i].Name] {
			if err := keys[i].fits(sources[keys[i].Name], s.Workload); err != nil {
				return s, named, err
			}
		}
	}
	return s, named, nil
}

// choice is who of several layers says how kv chooses its keys: zipfian, which all
// workloads but events have and which is short for a distribution, or distribution or
// a preset, which are kv's own. The last layer that names one of them decides, and in
// it zipfian over a preset.
type choice struct {
	distribution string // that zipfian is short for; empty: zipfian does not decide
	clash        error  // one layer says two things
}

func (c *choice) take(layer []Setting) {
	given := map[string]Setting{}
	for _, s := range layer {
		given[s.Key] = s
	}
	zipfian, distribution := given["zipfian"], given["distribution"]
	if zipfian.Key == "" && distribution.Key == "" && given["preset"].Key == "" {
		return
	}
	*c = choice{}
	switch {
	case zipfian.Key == "":
	case zipfian.Value == "true":
		c.distribution = Zipfian
	case distribution.Key == "" || !zipfian.filed(): // as an earlier version wrote both of every run
		c.distribution = Uniform
	}
	if c.distribution != "" && distribution.Key != "" && distribution.Value != c.distribution {
		c.clash = fmt.Errorf("%s is %s and %s is %s: each says which keys are chosen, so give one of them",
			clip(zipfian.Source), zipfian.Value, clip(distribution.Source), shown(distribution))
	}
}

// apply makes zipfian the distribution that it is short for.
func (c *choice) apply(s *Scenario, named Set) error {
	if c.clash != nil {
		return c.clash
	}
	if c.distribution != "" {
		s.KV.Distribution, named["distribution"] = c.distribution, true
	}
	s.Zipfian = s.KV.Distribution == Zipfian
	return nil
}

// filed says that a file named the setting, and neither a flag nor a variable.
func (s *Setting) filed() bool {
	return !strings.HasPrefix(s.Source, "--") && !strings.HasPrefix(s.Source, Prefix)
}

// Idle returns an error if a setting of these layers, the weakest first, is one that
// nothing in s would read. A file may hold it with its default, as scenario.yaml of
// an earlier run does. What is in except is not asked about.
func Idle(s *Scenario, except []string, layers ...[]Setting) error {
	sources := map[string]string{}
	inFile := map[string]bool{}
	for _, layer := range layers {
		for _, set := range layer {
			sources[set.Key] = set.Source
			inFile[set.Key] = set.filed()
		}
	}
	usual := Default()
	for _, k := range Keys() {
		source, given := sources[k.Name]
		why := k.Idle(s)
		if !given || why == "" || slices.Contains(except, k.Name) || inFile[k.Name] && k.Get(s) == k.Get(&usual) {
			continue
		}
		return fmt.Errorf("%s is %s and %s, or leave it out", clip(source), k.Get(s), why)
	}
	return nil
}

// presetFirst puts a preset before the settings that change it.
func presetFirst(layer []Setting) []Setting {
	layer = slices.Clone(layer)
	slices.SortStableFunc(layer, func(a, b Setting) int {
		first := func(s Setting) int {
			if s.Key == "preset" {
				return 0
			}
			return 1
		}
		return first(a) - first(b)
	})
	return layer
}

func shown(s Setting) string {
	if s.Key == "db" {
		return Redact(s.Value)
	}
	if len(s.Value) > 60 {
		return fmt.Sprintf("%q…", s.Value[:60])
	}
	return fmt.Sprintf("%q", s.Value)
}

// Unknown returns the error for a key that does not exist, with the nearest one
// that does. source is what the person wrote, key the name in it.
func Unknown(source, key string) error {
	var names []string
	for _, k := range Keys() {
		names = append(names, k.Name)
	}
	near := Nearest(key, names)
	switch {
	case strings.HasPrefix(source, Prefix):
		near = Prefix + strings.ToUpper(strings.ReplaceAll(near, "-", "_"))
	case strings.HasPrefix(source, "--"):
		near = "--" + near
	}
	return fmt.Errorf("%s is no setting of stroppy; the nearest is %s", clip(source), near)
}

// Nearest returns the name with the smallest edit distance to name; the first
// of several.
func Nearest(name string, names []string) string {
	return slices.MinFunc(names, func(a, b string) int {
		return levenshtein.ComputeDistance(clip(name), a) - levenshtein.ComputeDistance(clip(name), b)
	})
}

func clip(s string) string {
	if runes := []rune(s); len(runes) > 100 {
		return string(runes[:100]) + "…"
	}
	return s
}

// Environment reads the settings in environ, entries of the form NAME=value.
// file is the scenario file that STROPPY_SCENARIO names.
func Environment(environ []string) (settings []Setting, file string, err error) {
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case !strings.HasPrefix(name, Prefix), strings.HasPrefix(name, testPrefix):
		case name == FileVariable:
			file = value
		default:
			key := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, Prefix), "_", "-"))
			if !slices.ContainsFunc(Keys(), func(k Key) bool { return k.Variable() == name }) {
				return nil, "", Unknown(name, key)
			}
			settings = append(settings, Setting{Key: key, Value: value, Source: name})
		}
	}
	return settings, file, nil
}

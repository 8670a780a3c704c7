package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/setting"
	"stroppy/internal/spelling"
	"stroppy/internal/workload"
)

// Prefix begins the name of every environment variable that sets a key.
const Prefix = "STROPPY_"

// FileVariable names the scenario file, as --scenario does.
const FileVariable = Prefix + "SCENARIO"

// TokenVariable names the variable with the workers' token. It is no setting: no file and no flag has it.
const TokenVariable = Prefix + "WORKER_TOKEN"

// Setting is one key with its value as text, and its source.
type Setting struct {
	Key, Value string
	Source     string // for errors, such as "--count" or "night.yaml line 3: count"
}

// filed reports whether a file named the setting, and neither a flag nor a variable.
func (s *Setting) filed() bool {
	return !strings.HasPrefix(s.Source, "--") && !strings.HasPrefix(s.Source, Prefix)
}

// Set holds the keys that some layer named; the others have their defaults.
type Set map[string]bool

// Merge builds a checked scenario from layers of settings, the weakest first. It also returns which settings were
// named.
//
// A layer that names count removes a duration of a weaker layer, and the reverse. If no layer names either, a rate of
// finite stages or the workload decides the length of the run.
func (w Workloads) Merge(layers ...[]Setting) (Scenario, Set, error) {
	m, err := w.begin(layers)
	for _, layer := range layers {
		if err == nil {
			err = m.take(layer)
		}
	}
	s := &m.s
	if err != nil {
		return *s, m.named, err
	}
	if !m.named["count"] && !m.named["duration"] {
		s.lastLong()
	}
	if err := s.inKubernetes(); err != nil {
		return *s, m.named, err
	}
	if source := m.sources["node-resources"]; s.Resources != "" && !(&Setting{Source: source}).filed() {
		return *s, m.named, fmt.Errorf("%s sets the resources of nodes in Kubernetes, and the run has no cluster there: name one with --cluster %sKIND:N, or add --kubernetes", source, InKubernetes)
	}
	if err := m.scaleDown(); err != nil {
		return *s, m.named, err
	}
	if m.named["db"] && s.DB == "" { // as from a variable of a script that is not set
		return *s, m.named, fmt.Errorf("%s is empty: give the database's URL, or leave it out for the embedded default", m.sources["db"])
	}
	if s.DB != "" && s.Cluster != "" {
		return *s, m.named, twoDatabases(m.sources["db"], m.sources["cluster"])
	}
	for _, clash := range m.clashes {
		return *s, m.named, clash
	}
	return *s, m.named, s.Validate()
}

// twoDatabases returns the error for a run with a database's URL and a cluster, which these sources name.
func twoDatabases(url, cluster string) error {
	for _, source := range []string{url, cluster} {
		if strings.HasPrefix(source, Prefix) {
			return fmt.Errorf("%s and %s each name a database: unset %s, or leave the other out", clip(url), clip(cluster), source)
		}
	}
	return fmt.Errorf("%s and %s each name a database: give one of them", clip(url), clip(cluster))
}

// lastLong sets the length of a run if no layer does: by its rate, by the workload's number of transactions (unless
// faults need time), or by default.
func (s *Scenario) lastLong() {
	length, bounded := s.Rate.Length()
	counted, ok := s.Config.(workload.Counted)
	switch {
	case bounded:
		s.Duration = length
	case ok && counted.DefaultCount() > 0 && s.Nemesis == "":
		s.Duration, s.Count = 0, counted.DefaultCount()
	}
}

// merging is a scenario while layers are applied.
type merging struct {
	workloads Workloads
	keys      []Key
	s         Scenario
	settings  []setting.Setting // bound to s
	named     Set
	sources   map[string]string
	clashes   map[string]error // a layer says two things about a setting
}

// begin begins with the defaults of the workload that the strongest layer names.
func (w Workloads) begin(layers [][]Setting) (*merging, error) {
	m := &merging{workloads: w, keys: w.Keys(), s: w.Default(), named: Set{}, sources: map[string]string{}, clashes: map[string]error{}}
	name := m.s.Workload
	for _, one := range slices.Concat(layers...) {
		if one.Key == "workload" {
			name = one.Value
		}
	}
	spec, err := w.Find(name)
	if err != nil {
		return m, fmt.Errorf("workload is %q: it must be %s", name, setting.Or(w.Names()))
	}
	m.s = w.of(spec)
	m.settings = m.s.Settings()
	return m, nil
}

// take applies a layer.
func (m *merging) take(layer []Setting) error {
	seen := Set{}
	layer, err := m.resolve(layer)
	if err != nil {
		return err
	}
	for _, given := range layer {
		one, _ := find(m.settings, given.Key)
		if err := one.Set(given.Value); err != nil {
			return fmt.Errorf("%s is %s: %w", given.Source, quoteSetting(given), err)
		}
		seen[given.Key], m.named[given.Key] = true, true
		m.sources[given.Key] = given.Source
	}
	switch {
	case seen["count"] && !seen["duration"]:
		m.s.Duration = 0
	case seen["duration"] && !seen["count"]:
		m.s.Count = 0
	}
	return nil
}

// resolve replaces a layer's aliases by their settings, and puts settings that change others first. It refuses keys
// that the workload does not have.
func (m *merging) resolve(layer []Setting) ([]Setting, error) {
	var first, list []Setting
	for _, given := range layer {
		i := slices.IndexFunc(m.keys, func(k Key) bool { return k.Name == given.Key })
		if i < 0 {
			return nil, m.workloads.Unknown(given.Source, given.Key)
		}
		if key := &m.keys[i]; !key.AppliesTo(m.s.Workload) {
			return nil, fmt.Errorf("%s is a setting of %s, and the workload is %s: leave it out", clip(given.Source), setting.Or(key.Workloads), m.s.Workload)
		}
		one, alias := find(m.settings, given.Key)
		kept := true
		switch {
		case alias != nil:
			var err error
			if given, kept, err = m.translate(given, one.Name, alias, layer); err != nil {
				return nil, err
			}
		case !slices.ContainsFunc(one.Aliases, func(a setting.Alias) bool { return named(layer, a.Name) >= 0 }):
			delete(m.clashes, given.Key)
		}
		switch {
		case kept && one.First:
			first = append(first, given)
		case kept:
			list = append(list, given)
		}
	}
	return append(first, list...), nil
}

// named returns the position of a key in a layer, or -1.
func named(layer []Setting, key string) int {
	return slices.IndexFunc(layer, func(s Setting) bool { return s.Key == key })
}

// translate turns an alias into the setting that it stands for. A switch that is off
// in a file says nothing where the setting stands there too.
func (m *merging) translate(given Setting, name string, alias *setting.Alias, layer []Setting) (translated Setting, kept bool, err error) {
	translated = Setting{Key: name, Source: given.Source}
	if translated.Value, err = alias.Translate(given.Value); err != nil {
		return given, false, fmt.Errorf("%s is %s: %w", given.Source, quoteSetting(given), err)
	}
	delete(m.clashes, name)
	i := named(layer, name)
	switch {
	case i < 0 || layer[i].Value == translated.Value:
		return translated, true, nil
	case given.filed() && given.Value == "false":
		return translated, false, nil
	}
	value := given.Value
	if alias.Values == nil {
		value = quoteSetting(given)
	}
	m.clashes[name] = fmt.Errorf("%s is %s and %s is %s: each says %s, so give one of them",
		clip(given.Source), value, clip(layer[i].Source), quoteSetting(layer[i]), cmp.Or(alias.Says, "the same"))
	return translated, true, nil
}

// find returns the setting of a name, and its alias if the name is one.
func find(list []setting.Setting, name string) (*setting.Setting, *setting.Alias) {
	for i := range list {
		one := &list[i]
		if one.Name == name {
			return one, nil
		}
		for j := range one.Aliases {
			if one.Aliases[j].Name == name {
				return one, &one.Aliases[j]
			}
		}
	}
	return nil, nil
}

// Idle returns an error if nothing in s would read a setting of these layers, the weakest first. A file may hold the
// setting with its default, as scenario.yaml of an earlier run does. Settings in except are not checked.
func (w Workloads) Idle(s *Scenario, except []string, layers ...[]Setting) error {
	sources := map[string]*Setting{}
	for _, given := range slices.Concat(layers...) {
		sources[given.Key] = &given
	}
	spec, err := w.Find(s.Workload)
	if err != nil {
		return err
	}
	usual := w.of(spec)
	for _, one := range s.Settings() {
		source := sources[one.Name]
		if source == nil || one.Idle == nil || slices.Contains(except, one.Name) {
			continue
		}
		if why := one.Idle(); why != "" && !(source.filed() && one.Get() == usual.Get(one.Name)) {
			return fmt.Errorf("%s is %s and %s, or leave it out", clip(source.Source), one.Get(), why)
		}
	}
	return nil
}

// quoteSetting returns a value in a form for a sentence.
func quoteSetting(s Setting) string {
	switch {
	case s.Key == "db":
		return Redact(s.Value)
	case len(s.Value) > 60:
		return fmt.Sprintf("%q…", s.Value[:60])
	}
	return fmt.Sprintf("%q", s.Value)
}

// Unknown returns the error for a key that does not exist, with the nearest one that does. source is the user's text,
// and key the name in it.
func (w Workloads) Unknown(source, key string) error {
	near, found := spelling.Near(key, setting.Names(w.Keys(), func(k Key) string { return k.Name }))
	if !found {
		return fmt.Errorf("%s is no setting of stroppy: `stroppy run WORKLOAD --help` lists the settings of each workload", clip(source))
	}
	switch {
	case strings.HasPrefix(source, Prefix):
		near = setting.Variable(Prefix, near)
	case strings.HasPrefix(source, "--"):
		near = "--" + near
	}
	return fmt.Errorf("%s is no setting of stroppy; the nearest is %s", clip(source), near)
}

// clip returns a text in a form for a sentence.
func clip(s string) string {
	if runes := []rune(s); len(runes) > 100 {
		return string(runes[:100]) + "…"
	}
	return s
}

// Environment reads the settings in environ, entries of the form NAME=value.
// file is the scenario file that STROPPY_SCENARIO names.
func (w Workloads) Environment(environ []string) (settings []Setting, file string, err error) {
	keys := w.Keys()
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case !strings.HasPrefix(name, Prefix), strings.HasPrefix(name, Prefix+"TEST_"): // of the project's own tests
		case name == TokenVariable:
		case name == FileVariable:
			file = value
		default:
			key := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, Prefix), "_", "-"))
			if !slices.ContainsFunc(keys, func(k Key) bool { return k.Variable() == name }) {
				return nil, "", w.Unknown(name, key)
			}
			settings = append(settings, Setting{Key: key, Value: value, Source: name})
		}
	}
	return settings, file, nil
}

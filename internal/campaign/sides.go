package campaign

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"stroppy/internal/exit"
	"stroppy/internal/registry"
	"stroppy/internal/scenario"
	"stroppy/internal/session"
)

// Sides describes the sides of a comparison: each scenario on each database, with each combination of varied values.
type Sides struct {
	Files      []string           // scenarios; none: the only one is Base
	Base       string             // the scenario of all sides; empty: Given are all settings
	Given      []scenario.Setting // settings of all sides
	Databases  []scenario.Setting // each a db or a cluster; none: the scenarios name them
	Variations []Variation
}

// mostSides is the largest number of sides. They are named by letters.
const mostSides = 26

// Variation is a name with the values that sides differ in. The name is a setting, or a parameter of the cluster or of
// the database's URL.
type Variation struct {
	Name   string
	Values []string
}

// fixed maps settings that cannot be varied to advice.
var fixed = map[string]string{
	"workload": "measurements of different workloads mean different things",
	"db":       "give --db once for each database",
	"cluster":  "give --cluster once for each cluster",
	"seed":     "the runs of one round share a seed",
	"no-load":  "give --no-load alone, and all runs use the data that are there",
	"no-check": "give --no-check alone",
}

// ParseVariations reads the values of --vary.
func ParseVariations(texts []string) (list []Variation, err error) {
	for _, text := range texts {
		name, values, _ := strings.Cut(text, "=")
		v := Variation{Name: strings.TrimSpace(name)}
		for value := range strings.SplitSeq(values, ",") {
			if value = strings.TrimSpace(value); slices.Contains(v.Values, value) {
				return nil, exit.Usagef("--vary %s: the value %s is there twice", text, value)
			}
			v.Values = append(v.Values, value)
		}
		advice := fixed[v.Name]
		if k, ok := keyOf(v.Name); ok && k.Local && advice == "" {
			advice = "it does not change a run"
		}
		switch {
		case v.Name == "" || slices.Contains(v.Values, ""):
			return nil, exit.Usagef("--vary %q must be a name and its values, such as clients=8,16", text)
		case advice != "":
			return nil, exit.Usagef("--vary %s: a comparison cannot vary %s: %s", text, v.Name, advice)
		case len(v.Values) == 1:
			return nil, exit.Usagef("--vary %s has one value: give two or more, such as clients=8,16", text)
		case slices.ContainsFunc(list, func(other Variation) bool { return other.Name == v.Name }):
			return nil, exit.Usagef("--vary %s: %s is varied already: name all its values at once", text, v.Name)
		}
		list = append(list, v)
	}
	return list, nil
}

// keyOf returns the setting of a name; false: the name is a parameter, or unknown.
func keyOf(name string) (scenario.Key, bool) {
	keys := registry.Workloads().Keys()
	if i := slices.IndexFunc(keys, func(k scenario.Key) bool { return k.Name == name }); i >= 0 {
		return keys[i], true
	}
	return scenario.Key{}, false
}

// side is one side of a comparison.
type side struct {
	file     string
	database *scenario.Setting // nil: the scenario names it
	values   []scenario.Setting
}

// all returns the sides in their order.
func (s *Sides) all() (list []side) {
	for _, file := range s.scenarios() {
		for i := range max(1, len(s.Databases)) {
			one := side{file: file}
			if len(s.Databases) > 0 {
				one.database = &s.Databases[i]
			}
			list = append(list, one)
		}
	}
	for _, v := range s.Variations {
		var longer []side
		for _, one := range list {
			for _, value := range v.Values {
				with := one
				with.values = append(slices.Clone(one.values), scenario.Setting{Key: v.Name, Value: value, Source: "--vary " + v.Name})
				longer = append(longer, with)
			}
		}
		list = longer
	}
	return list
}

func (s *Sides) scenarios() []string {
	if len(s.Files) > 0 {
		return s.Files
	}
	return []string{s.Base}
}

// check returns an error if the number of sides is wrong, or a setting is given and varied.
func (s *Sides) check() error {
	sides := len(s.scenarios()) * max(1, len(s.Databases))
	for _, v := range s.Variations {
		if sides *= len(v.Values); sides > mostSides {
			break
		}
		if slices.ContainsFunc(s.Given, func(given scenario.Setting) bool { return given.Key == v.Name }) {
			return exit.Usagef("--%s and --vary %s both set %s: leave --%s out", v.Name, v.Name, v.Name, v.Name)
		}
	}
	switch {
	case sides < 2:
		return exit.Usagef("`stroppy compare` compares two or more scenarios or set-ups and was given %d: name the YAML files "+
			"of two scenarios, or one file and two databases by --db or --cluster, or two values by --vary clients=8,16",
			sides)
	case sides > mostSides:
		return exit.Usagef("`stroppy compare` compares %d sides at most and was given %d or more", mostSides, sides)
	}
	return nil
}

// command returns the command that repeats the comparison, without secrets.
func (s *Sides) command(rounds int) string {
	words, rest := "stroppy compare", fmt.Sprintf(" --repeat %d", rounds)
	for _, d := range s.Databases {
		rest += " --" + d.Key + session.Quoted([]string{d.Shown()})
	}
	for _, v := range s.Variations {
		rest += " --vary" + session.Quoted([]string{v.Name + "=" + strings.Join(v.Values, ",")})
	}
	for _, given := range s.Given {
		if given.Key == "workload" {
			words += " " + given.Value
			continue
		}
		for line := range strings.SplitSeq(given.Shown(), "\n") {
			rest += " --" + given.Key + "=" + scenario.Quote(line)
		}
	}
	if s.Base != "" {
		rest += " --scenario" + session.Quoted([]string{s.Base})
	}
	return words + rest + session.Quoted(s.Files)
}

// name returns what distinguishes a side, without secrets.
func (s *Sides) name(one side) string {
	var parts []string
	file := one.file
	if len(s.Files) == 0 {
		file = ""
	}
	switch database := one.database; {
	case database != nil && file != "":
		parts = append(parts, file+" on "+database.Shown())
	case database != nil && len(s.Databases) > 1:
		parts = append(parts, database.Shown())
	case file != "":
		parts = append(parts, file)
	}
	for _, v := range one.values {
		parts = append(parts, v.Key+" "+v.Shown())
	}
	return strings.Join(parts, ", ")
}

// configure returns the configuration of a side. Varied names that are no settings become parameters of the cluster, or
// of the database's URL.
func (c *Compared) configure(s *Sides, one side) (session.Config, error) {
	given := slices.Clone(s.Given)
	if one.database != nil {
		given = append(given, *one.database)
	}
	var params []scenario.Setting
	for _, v := range one.values {
		if _, ok := keyOf(v.Key); ok {
			given = append(given, v)
		} else {
			params = append(params, v)
		}
	}
	config, err := c.app.Configure(given, one.file)
	if err != nil || len(params) == 0 {
		return config, err
	}
	where := scenario.Setting{Key: "cluster", Value: config.Cluster}
	if config.Cluster == "" {
		where = scenario.Setting{Key: "db", Value: config.DB}
	}
	for _, p := range params {
		if where.Value == "" {
			return config, exit.With(exit.Usage, registry.Workloads().Unknown(p.Source, p.Key))
		}
		if err := withParam(&where, p); err != nil {
			return config, err
		}
	}
	given = slices.DeleteFunc(given, func(g scenario.Setting) bool { return g.Key == where.Key })
	return c.app.Configure(append(given, where), one.file)
}

// withParam adds a parameter to a cluster or to a database's URL.
func withParam(where *scenario.Setting, p scenario.Setting) error {
	_, query, asked := strings.Cut(where.Value, "?")
	if given, err := url.ParseQuery(query); err == nil && given.Has(p.Key) {
		return exit.Usagef("%s: %s has %s already: leave it out there", p.Source, where.Shown(), p.Key)
	}
	text := url.QueryEscape(p.Key) + "=" + url.QueryEscape(p.Value)
	if _, secret := scenario.WithoutSecrets("db://host/?" + text); secret {
		return exit.Usagef("%s: a comparison cannot vary a secret: give --db once for each", p.Source)
	}
	mark := "?"
	if asked {
		mark = "&"
	}
	where.Value, where.Source = where.Value+mark+text, p.Source
	return nil
}

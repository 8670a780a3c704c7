package scenario

import (
	"reflect"
	"strings"
	"testing"

	"stroppy/internal/workload/bank"
	"stroppy/internal/workload/events"
	"stroppy/internal/workload/kv"
	"stroppy/internal/workload/tpcb"
)

// all are the workloads of the tests.
func all() Workloads { return Workloads{bank.Spec(), tpcb.Spec(), events.Spec(), kv.Spec()} }

// layer is "key=value key=value" from a source: a flag, a variable or a file.
func layer(kind, text string) []Setting {
	var list []Setting
	for pair := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(pair, "=")
		source := map[string]string{"flag": "--" + key, "variable": Prefix + strings.ToUpper(key), "file": "a.yaml line 1: " + key}[kind]
		list = append(list, Setting{key, value, source})
	}
	return list
}

// repeated are the flags of the settings that were named, with which a run is repeated.
func repeated(s *Scenario, named Set) []Setting {
	var list []Setting
	for _, k := range s.Settings() {
		if value := k.Get(); named[k.Name] && value != "" {
			list = append(list, Setting{k.Name, value, "--" + k.Name})
		}
	}
	return list
}

// TestStrongestLayerChoosesKeyDistribution checks that the strongest layer decides how kv chooses keys, and that
// the scenario reports it once.
func TestStrongestLayerChoosesKeyDistribution(t *testing.T) {
	for _, c := range []struct{ file, flags, want string }{
		{"", "", kv.Uniform},
		{"", "zipfian=true", kv.Zipfian},
		{"", "zipfian=false", kv.Uniform},
		{"", "zipfian=true distribution=zipfian", kv.Zipfian},
		{"", "zipfian=true preset=ycsb-d", kv.Zipfian},
		{"", "preset=ycsb-d", kv.Latest},
		{"", "preset=ycsb-a", kv.Zipfian},
		{"", "preset=ycsb-a zipfian=false", kv.Uniform},
		{"", "zipfian=false preset=ycsb-d", kv.Uniform},
		{"", "zipfian=false distribution=uniform preset=ycsb-a", kv.Uniform},
		{"preset=ycsb-a", "zipfian=false", kv.Uniform},
		{"preset=ycsb-a zipfian=false", "", kv.Uniform},
		{"preset=ycsb-a zipfian=false", "preset=ycsb-b", kv.Zipfian},
		{"preset=ycsb-a distribution=zipfian", "zipfian=false", kv.Uniform}, // scenario.yaml of a run
		{"zipfian=false", "preset=ycsb-a", kv.Zipfian},
		{"zipfian=true", "distribution=uniform", kv.Uniform},
		{"zipfian=true", "preset=ycsb-d", kv.Latest},
		{"zipfian=true", "zipfian=false", kv.Uniform},
		{"distribution=latest", "zipfian=true", kv.Zipfian},
		{"zipfian=true distribution=uniform", "distribution=latest", kv.Latest}, // as an earlier version wrote it
		{"zipfian=false distribution=zipfian", "", kv.Zipfian},
	} {
		s, named, err := all().Merge(layer("file", "workload=kv "+c.file), layer("flag", c.flags))
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if got := s.Get("distribution"); got != c.want {
			t.Errorf("%+v: distribution %s", c, got)
		}
		if again, _, err := all().Merge(repeated(&s, named)); err != nil || again.Get("distribution") != c.want {
			t.Errorf("%+v: what repeats it has the distribution %s, %v", c, again.Get("distribution"), err)
		}
		if text := string(s.YAML()); strings.Contains(text, "zipfian:") || !strings.Contains(text, "distribution: "+c.want+"\n") {
			t.Errorf("%+v: the scenario says\n%s", c, text)
		}
		if got := reread(t, &s); !reflect.DeepEqual(got, s) {
			t.Errorf("%+v: got %+v, want %+v", c, got, s)
		}
	}
	for _, c := range []struct{ file, flags, want string }{
		{"", "zipfian=true distribution=uniform", `--zipfian is true and --distribution is "uniform": each says which keys are chosen, so give one of them`},
		{"", "preset=ycsb-a zipfian=true distribution=latest", "give one of them"},
		{"", "zipfian=false distribution=zipfian", `--zipfian is false and --distribution is "zipfian": each says which keys are chosen, so give one of them`},
		{"zipfian=true distribution=uniform", "count=5", "a.yaml line 1: zipfian is true and a.yaml line 1: distribution is"},
	} {
		if _, _, err := all().Merge(layer("file", "workload=kv "+c.file), layer("flag", c.flags)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestUnusedSettingIsRefused checks that settings without an effect are refused, except for the settings that
// scenario.yaml always holds.
func TestUnusedSettingIsRefused(t *testing.T) {
	for _, c := range []struct{ file, variables, flags, want string }{
		{"", "", "zipf-exponent=1.2", "--zipf-exponent is 1.2 and zipfian is false, which chooses all accounts alike: give --zipfian, or leave it out"},
		{"", "", "zipf-exponent=0.99", "zipf-exponent is 0.99 and zipfian is false"},
		{"", "", "zipf-exponent=1.2 workload=tpcb", "zipfian is false"},
		{"", "", "zipf-exponent=1.2 workload=kv", "distribution is uniform"},
		{"", "", "zipf-exponent=1.2 workload=kv zipfian=true", ""},
		{"", "", "zipf-exponent=1.2 workload=kv distribution=latest", ""},
		{"", "", "zipf-exponent=1.2 workload=kv preset=ycsb-a", ""},
		{"", "", "zipf-exponent=1.2 zipfian=true", ""},
		{"zipfian=true zipf-exponent=1.2", "", "zipfian=false", "a.yaml line 1: zipf-exponent is 1.2 and zipfian is false"},
		{"zipf-exponent=0.99", "", "", ""},
		{"zipf-exponent=1.2", "", "", "zipf-exponent is 1.2"},
		{"zipf-exponent=1.2", "", "zipfian=true", ""},
		{"", "", "max-backlog=5000", "--max-backlog is 5000 and rate is 0, which leaves nothing waiting: give a rate, such as --rate 1000, or leave it out"},
		{"", "", "max-backlog=5000 rate=10", ""},
		{"", "max-backlog=5000", "", "STROPPY_MAX-BACKLOG is 5000"},
		{"", "max-backlog=5000", "rate=5", ""},
		{"max-backlog=5000 rate=10", "", "", ""},
		{"max-backlog=1000000", "", "", ""},
		{"", "", "workload=kv scan-length=50", "--scan-length is 50 and scan-share is 0, so that nothing scans"},
		{"", "", "workload=kv scan-length=100", "scan-share is 0"},
		{"", "", "workload=kv scan-length=50 preset=ycsb-e", ""},
		{"workload=kv scan-length=100", "", "", ""},
	} {
		layers := [][]Setting{layer("file", c.file), layer("variable", c.variables), layer("flag", c.flags)}
		s, _, err := all().Merge(layers...)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		err = all().Idle(&s, nil, layers...)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c, err)
		}
		if err := all().Idle(&s, []string{"zipf-exponent", "max-backlog", "scan-length"}, layers...); err != nil {
			t.Errorf("%+v, but all are excepted: %v", c, err)
		}
		written, err := all().File("scenario.yaml", s.YAML())
		if err != nil {
			t.Fatal(err)
		}
		if err := all().Idle(&s, nil, written); err != nil && c.want == "" {
			t.Errorf("%+v: its own scenario is refused: %v", c, err)
		}
	}
}

// TestOldSettingNamesStillWork checks that every source accepts the old name of a setting, and that scenario.yaml
// has the new name.
func TestOldSettingNamesStillWork(t *testing.T) {
	for old, c := range map[string]struct{ name, value string }{
		"joint-share":   {"two-account-share", "0.25"},
		"inquiry-share": {"read-only-share", "0.25"},
		"large-share":   {"overdraft-share", "0.25"},
		"give-up":       {"unreachable-timeout", "7s"},
		"think":         {"think-time", "3s"},
	} {
		for _, kind := range []string{"flag", "variable", "file"} {
			s, _, err := all().Merge(layer(kind, old+"="+c.value))
			if err != nil {
				t.Errorf("%s by %s: %v", old, kind, err)
				continue
			}
			if text := string(s.YAML()); s.Get(c.name) != c.value || !strings.Contains(text, c.name+": "+c.value+"\n") || strings.Contains(text, "\n"+old+":") {
				t.Errorf("%s by %s: %s is %s, and the scenario says\n%s", old, kind, c.name, s.Get(c.name), text)
			}
		}
		if _, _, err := all().Merge(layer("flag", old+"=1 "+c.name+"="+c.value)); err == nil {
			t.Errorf("%s and %s together are no error", old, c.name)
		}
	}
}

package scenario

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"stroppy/internal/isolation"
	"stroppy/internal/pace"
	"stroppy/internal/setting"
)

func TestDefaultScenarioIsValid(t *testing.T) {
	s := all().Default()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestFlagsOverrideEnvironmentAndFile(t *testing.T) {
	file := []Setting{{"clients", "1", "file"}, {"accounts", "100", "file"}, {"duration", "5s", "file"}, {"seed", "7", "file"}}
	env := []Setting{{"clients", "2", "env"}, {"accounts", "200", "env"}}
	flags := []Setting{{"clients", "3", "flag"}, {"count", "9", "flag"}}
	s, named, err := all().Merge(file, env, flags)
	if err != nil {
		t.Fatal(err)
	}
	if s.Clients != 3 || s.Get("accounts") != "200" || s.Seed != 7 || s.Count != 9 || s.Duration != 0 {
		t.Errorf("got %+v", s)
	}
	if !named["seed"] || named["rate"] {
		t.Errorf("named: %v", named)
	}
}

func TestInvalidSettingsAreRefused(t *testing.T) {
	owner := map[string]string{"ratio": "tpcb", "value-size": "events"}
	for _, c := range []struct{ key, value, want string }{
		{"count", "-5", `--count is "-5": it cannot be negative`},
		{"count", "0", `--count is "0": it must be 1 or more`},
		{"count", "many", `--count is "many": it must be a whole number, such as 1000`},
		{"count", "99999999999999999999", "it may be at most 9223372036854775807"},
		{"clients", "0", "clients is 0: it must be from 1 to 131070"},
		{"clients", "99999999999", "it must be from 1 to 131070"},
		{"duration", "10", "a time with its unit, such as 10s"},
		{"duration", "-1s", "cannot be negative"},
		{"duration", "0s", "the run has no end"},
		{"payroll-share", "1.5", "payroll-share is 1.5: it must be from 0 to 1"},
		{"payroll-share", "-0.1", "from 0 to 1"},
		{"two-account-share", "0.99", "at most 1"},
		{"rate", "NaN", "it must be transactions per second, such as 1000"},
		{"rate", "-1", `--rate is "-1": a rate cannot be negative`},
		{"accounts", "1", "accounts is 1: it must be from 4"},
		{"zipfian", "yes", "must be true or false"},
		{"expect", "repeatable", "snapshot-isolation, serializable, causal"},
		{"update", "magic", `update is "magic": it must be atomic, locked or rmw`},
		{"mode", "magic", "pipelined, interactive or procedure"},
		{"lock-order", "magic", "key or random"},
		{"workload", "banc", `workload is "banc": it must be bank`},
		{"unreachable-timeout", "0s", "longer than 0"},
		{"local-address", "127.0.0.2,localhost", `local-address has "localhost", which is no IP address`},
		{"local-address", "127.0.0.2", "name it with db, or leave local-address out"},
		{"warmup", "10s", "nothing would be left"},
		{"ratio", "99999999999:1:1", `it must be three numbers from 1 to 2147483647, such as 1:10:100000`},
		{"ratio", "0:1:1", "three numbers from 1 to"},
		{"value-size", "200..100", `--value-size is "200..100": the range goes down: name the smaller number first, as in 100..200`},
		{"value-size", "200..x", "it must be a number of bytes"},
		{"value-size", "1..5", "value-size is 1: it must be from 32 to 16777216"},
		{"clinets", "3", "the nearest is --clients"},
	} {
		_, _, err := all().Merge([]Setting{{c.key, c.value, "--" + c.key}}, layer("flag", owned(owner[c.key])))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: %v, want %q", c.key, c.value, err, c.want)
		}
	}
	_, _, err := all().Merge([]Setting{{"count", "5", "--count"}, {"duration", "5s", "--duration"}})
	if err == nil || !strings.Contains(err.Error(), "give one of them") {
		t.Errorf("count and duration: %v", err)
	}
	_, _, err = all().Merge([]Setting{{"db", "postgres://me:hunter2@h", "x"}, {"count", "-1", "x"}})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("secret: %v", err)
	}
}

func TestEnvironmentVariablesBecomeSettings(t *testing.T) {
	settings, file, err := all().Environment([]string{"PATH=/bin", "STROPPY_PAYROLL_SHARE=0.5", "STROPPY_TEST_POSTGRES=x", "STROPPY_SCENARIO=a.yaml"})
	if err != nil || file != "a.yaml" || len(settings) != 1 {
		t.Fatal(settings, file, err)
	}
	if got := settings[0]; got != (Setting{"payroll-share", "0.5", "STROPPY_PAYROLL_SHARE"}) {
		t.Errorf("got %+v", got)
	}
	for name, near := range map[string]string{"STROPPY_CLIENT": "STROPPY_CLIENTS", "STROPPY_PAYROL_SHARE": "STROPPY_PAYROLL_SHARE", "STROPPY_clients": "STROPPY_CLIENTS"} {
		if _, _, err := all().Environment([]string{name + "=1"}); err == nil || !strings.HasSuffix(err.Error(), "the nearest is "+near) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"STROPPY_", "STROPPY_NOTHING_OF_THE_KIND"} {
		if _, _, err := all().Environment([]string{name + "=1"}); err == nil || strings.Contains(err.Error(), "nearest") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInvalidScenarioFilesAreRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"clients: 1\nclients: 2\n", "line 2: clients stands twice: line 1 has it already"},
		{"clinets: 1\n", "run.yaml line 1: clinets is no setting of stroppy; the nearest is clients"},
		{"clients: {a: 1}\n", "one plain value"},
		{"clients: [1]\n", "one plain value"},
		{"clients:\n", "one plain value"},
		{"a: &x 1\nclients: *x\n", "no setting"},
		{"seed: &x 1\nclients: *x\n", "one plain value"},
		{"<<: {a: 1}\n", "no setting"},
		{"? [a]\n: 1\n", "plain name"},
		{"- a\n", "key: value"},
		{"just text\n", "key: value"},
		{"a: b: c\n", "not YAML"},
		{"clients: 1\n---\nclients: 2\n", "more than one YAML document"},
		{strings.Repeat("#\n", MaxFile), "larger than"},
	} {
		_, err := all().File("run.yaml", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %v, want %q", c.text, err, c.want)
		}
	}
	for _, empty := range []string{"", "# nothing\n", "null\n", "---\n"} {
		if list, err := all().File("run.yaml", []byte(empty)); err != nil || len(list) > 0 {
			t.Errorf("%q: %v %v", empty, list, err)
		}
	}
}

func TestWrittenYAMLParsesToSameScenario(t *testing.T) {
	s := all().Default()
	s.DB = "sqlite:/tmp/a #b: 'c'.db?synchronous=normal"
	s.Seed, s.Count, s.Duration = 42, 500, 0
	s.Isolation, s.Expect = "read committed", isolation.ReadCommitted
	s.Rate, s.Arrival, s.MaxBacklog = plan(t, "0.5..20000 for 1m30s, 5000"), "poisson", 70
	s.Warmup = 1500 * time.Millisecond
	s, err := s.With(map[string]string{"zipfian": "true", "payroll-share": "0.125"})
	if err != nil {
		t.Fatal(err)
	}
	got := reread(t, &s)
	if diff := cmp.Diff(s, got, unexported); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestYAMLHasNoPassword(t *testing.T) {
	s := all().Default()
	s.DB, s.Out, s.JSON = "postgres://me:hunter2@h/db", "there", true
	text := string(s.YAML())
	if strings.Contains(text, "hunter2") || !strings.Contains(text, "PGPASSWORD") {
		t.Error(text)
	}
	got := reread(t, &s)
	if got.DB != "postgres://me@h/db" || got.Out != "" || got.JSON {
		t.Errorf("got %+v", got)
	}
}

// owned is the workload of a setting as a layer names it.
func owned(workload string) string {
	if workload == "" {
		return ""
	}
	return "workload=" + workload
}

func plan(t *testing.T, text string) pace.Plan {
	t.Helper()
	p, err := pace.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestContradictoryPaceSettingsAreRefused(t *testing.T) {
	for _, c := range []struct{ settings, want string }{
		{"rate=-5", "a rate cannot be negative"},
		{"rate=0 arrival=poisson", "arrival is poisson and rate is 0, which sends as fast as answers come: give a rate"},
		{"arrival=uniform", "arrival is uniform and rate is 0"},
		{"arrival=sometimes rate=5", `arrival is "sometimes": it must be uniform or poisson`},
		{"think-time=1s rate=5", "rate is 5 and think-time is 1s"},
		{"think=-1s", "cannot be negative"},
		{"max-backlog=0 rate=5", "max-backlog is 0: it must be from 1"},
		{"max-backlog=3 rate=5", "max-backlog is 3 and there are 16 clients"},
		{"max-backlog=many", "whole number"},
		{"rate=1000..2000", "needs a time"},
		{"rate=5_for_20s duration=30s", "rate is 5 for 20s, which ends after 20s, and duration is 30s: nothing would be sent after that"},
		{"rate=5_for_20s count=100", "leave out the time of the last stage"},
		{"rate=5_for_20s warmup=20s", "nothing would be left"},
	} {
		var list []Setting
		for pair := range strings.FieldsSeq(c.settings) {
			key, value, _ := strings.Cut(pair, "=")
			list = append(list, Setting{key, strings.ReplaceAll(value, "_", " "), "--" + key})
		}
		if _, _, err := all().Merge(list); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", c.settings, err, c.want)
		}
	}
}

// TestTimedRateStagesNeedNoDuration checks that no duration is needed if every stage of the rate has a length.
func TestTimedRateStagesNeedNoDuration(t *testing.T) {
	stages := Setting{"rate", "5 for 20s, 10..20 for 1m", "--rate"}
	for _, more := range [][]Setting{nil, {{"duration", "1m20s", "--duration"}}, {{"arrival", "poisson", "--arrival"}}} {
		s, _, err := all().Merge(append(more, stages))
		if err != nil || s.Duration != 80*time.Second {
			t.Errorf("%v: %v, %v", more, s.Duration, err)
		}
	}
	if s, _, err := all().Merge([]Setting{stages}, []Setting{{"duration", "1s", "--duration"}}); err != nil || s.Duration != time.Second {
		t.Errorf("%v, %v", s.Duration, err)
	}
	s, _, err := all().Merge([]Setting{{"rate", "5 for 20s, 10", "--rate"}, {"think-time", "0s", "--think-time"}})
	if err != nil || s.Duration != all().Default().Duration {
		t.Errorf("%v, %v", s.Duration, err)
	}
	if diff := cmp.Diff(s, reread(t, &s), unexported); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func reread(t *testing.T, s *Scenario) Scenario {
	t.Helper()
	settings, err := all().File("scenario.yaml", s.YAML())
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := all().Merge(settings)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// FuzzFile checks that no file makes the parser panic, and that an accepted file is written back to the same
// scenario.
func FuzzFile(f *testing.F) {
	s := all().Default()
	f.Add(s.YAML())
	for _, text := range []string{"clients: 1\nclients: 2", "a: *b", "&a [*a]", "{clients: 3}", "? x\n: y", "isolation: \"a\\nb\"", "db: |\n a\n b\n", "isolation: ' x '", "isolation: \"\\x7f\"", "!!binary a: b"} {
		f.Add([]byte(text))
	}
	f.Add([]byte("rate: 0..5 for 1m, 7\narrival: poisson\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		settings, err := all().File("f", data)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("more than one line: %q", err)
			}
			return
		}
		s, _, err := all().Merge(settings)
		if err != nil {
			return
		}
		bare, _ := WithoutSecrets(s.DB)
		s.DB, s.Out, s.JSON = bare, "", false
		again, err := all().File("again", s.YAML())
		if err != nil {
			t.Fatalf("%v\n%s", err, s.YAML())
		}
		if got, _, err := all().Merge(again); err != nil || !reflect.DeepEqual(got, s) {
			t.Fatalf("%v\ngot  %+v\nwant %+v\n%s", err, got, s, s.YAML())
		}
	})
}

func TestTwoDatabasesAreNamedWithTheirSources(t *testing.T) {
	db, cluster := Setting{Key: "db", Value: "postgres://me:hunter2@h"}, Setting{Key: "cluster", Value: "etcd:1"}
	for want, sources := range map[string][2]string{
		"STROPPY_DB and --cluster each name a database: unset STROPPY_DB, or leave the other out":      {"STROPPY_DB", "--cluster"},
		"--db and STROPPY_CLUSTER each name a database: unset STROPPY_CLUSTER, or leave the other out": {"--db", "STROPPY_CLUSTER"},
		"night.yaml line 3: db and --cluster each name a database: give one of them":                   {"night.yaml line 3: db", "--cluster"},
	} {
		db.Source, cluster.Source = sources[0], sources[1]
		if _, _, err := all().Merge([]Setting{db}, []Setting{cluster}); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestItemsOfAListKeepTheirText checks that an item with fields is read back as it was written, and that plain lines of
// text stand line by line.
func TestItemsOfAListKeepTheirText(t *testing.T) {
	one := setting.Setting{
		Lines: true,
		Item:  func(fields map[string]string) (string, error) { return fields["name"] + "=" + fields["sql"], nil },
		Fields: func(line string) []setting.Field {
			name, text, there := strings.Cut(line, "=")
			if !there {
				return nil
			}
			return []setting.Field{{Name: "name", Value: name}, {Name: "sql", Value: text}}
		},
	}
	for _, line := range []string{
		"file.sql", "a=SELECT 1;", "a b=BEGIN;\nSELECT 1;\nEND;\n", "a=x\n\n  y\n", "a=  x\ny", "a=x\ny\n\n\n", "a=x \ny\t\n", "a=x\r\ny",
		"a=\n", "a=\nx\n", "a=x\x01\ny", "a=# x\n: y\n- z\n", "a=\\set x 1\n'\"\n",
		"a=\u00e4\u2028\nb", "a=\ufeff\nb", "a: b=x\ny",
	} {
		var out bytes.Buffer
		out.WriteString("list:\n")
		writeItem(&out, &one, line)
		var document yaml.Node
		if err := yaml.Unmarshal(out.Bytes(), &document); err != nil {
			t.Fatalf("%q: %v\n%s", line, err, &out)
		}
		if got, err := plain(document.Content[0].Content[1], &one); err != nil || got != line {
			t.Errorf("%q is read as %q (%v):\n%s", line, got, err, &out)
		}
	}
	var out bytes.Buffer
	writeItem(&out, &one, "transfer=BEGIN;\nEND;\n")
	if want := "  - name: transfer\n    sql: |\n        BEGIN;\n        END;\n"; out.String() != want {
		t.Errorf("it is\n%s\nwant\n%s", &out, want)
	}
}

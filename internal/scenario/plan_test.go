package scenario

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stroppy/internal/history"
)

// TestDefaultDurationCoversAllFaults checks that a run without a given length is long enough for its faults. This
// holds for workloads that end by a number of transactions too.
func TestDefaultDurationCoversAllFaults(t *testing.T) {
	for _, c := range []struct {
		settings string
		duration time.Duration
		count    bool
		extended bool
	}{
		{"workload=events", 0, true, false},
		{"workload=events cluster=etcd:1 nemesis=kill_n0_at_8s_for_2s", 20 * time.Second, false, true},
		{"cluster=etcd:1 nemesis=kill_n0_at_8s_for_2s", 20 * time.Second, false, true},
		{"workload=events cluster=etcd:1 nemesis=kill_n0_at_8s_for_2s count=5", 0, true, false},
		{"cluster=etcd:1 nemesis=kill_n0_every_20s_for_2s", 72 * time.Second, false, true}, // three times, then 10 s
		{"cluster=etcd:1 nemesis=kill_n0_at_8s_for_2s duration=9s", 9 * time.Second, false, false},
		{"", 10 * time.Second, false, false},
	} {
		p, err := planOf(t, c.settings)
		if err != nil || p.Duration != c.duration || p.Count > 0 != c.count || p.Extended != c.extended {
			t.Errorf("%s: %v, %d, extended %v, %v", c.settings, p.Duration, p.Count, p.Extended, err)
		}
	}
	for settings, want := range map[string]string{
		"cluster=etcd:1 nemesis=kill_n0_at_8s duration=5s": "comes first after 8s, and the run ends after 5s",
		"cluster=etcd:1 nemesis=kil_n0_at_8s":              "kil",
	} {
		if _, err := planOf(t, settings); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", settings, err)
		}
	}
}

// unexported lets cmp.Diff compare the fields that only this package sees.
var unexported = cmp.Exporter(func(reflect.Type) bool { return true })

// TestAttachedDataLeavePlanUnchanged checks that attaching to loaded data makes another plan and does not change
// the first.
func TestAttachedDataLeavePlanUnchanged(t *testing.T) {
	p, err := planOf(t, "seed=5 accounts=100")
	if err != nil {
		t.Fatal(err)
	}
	before, _ := planOf(t, "seed=5 accounts=100")
	spec, err := all().Find(p.Workload)
	if err != nil {
		t.Fatal(err)
	}
	attached, err := p.Attached(spec, history.Header{Seed: 7, Objects: 200})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, p, unexported); diff != "" {
		t.Errorf("the plan changed (-before +after):\n%s", diff)
	}
	if got, want := attached.Command("run"), "stroppy run bank --seed 7 --accounts 200"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// planOf is the plan of "key=value key=value", with _ for a space in a value.
func planOf(t *testing.T, settings string) (Plan, error) {
	t.Helper()
	list := layer("flag", settings)
	for i := range list {
		list[i].Value = strings.ReplaceAll(list[i].Value, "_", " ")
	}
	s, named, err := all().Merge(list)
	if err != nil {
		t.Fatal(err)
	}
	return s.Plan(named)
}

// TestSavedScenarioRepeatsThePlan checks that the file has the values chosen by database and workload, and that a
// run of the file has the same plan.
func TestSavedScenarioRepeatsThePlan(t *testing.T) {
	chosen := map[string]string{"isolation": "read committed", "mode": "pipelined", "update": "atomic", "expect": "read-committed", "audits": "7", "accounts": "5", "nonsense": "x"}
	given := map[string]string{"mode": "interactive", "rate": "100"}
	var layer []Setting
	for name, value := range given {
		layer = append(layer, Setting{name, value, "--" + name})
	}
	s, named, err := all().Merge(layer)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Plan(named)
	if err != nil {
		t.Fatal(err)
	}
	effective := p.InEffect(chosen)
	for name, want := range map[string]string{
		"isolation": "read committed", "mode": "interactive", "update": "atomic", "expect": "read-committed", "arrival": "uniform",
		"audits": s.Get("audits"), "accounts": s.Get("accounts"),
	} {
		if got := effective.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if p.Get("update") != "" || p.Get("isolation") != "" {
		t.Error("the plan itself was changed")
	}
	text := string(effective.YAML())
	if !strings.Contains(text, "# Without a value in this run: db, cluster, node-resources, local-address, nemesis, probe, threshold, scale-down, workers-on, count.\n") {
		t.Errorf("it does not say what has no value:\n%s", text)
	}
	for _, one := range effective.Settings() {
		if _, there := strings.CutPrefix(text, one.Name+":"); !one.Local && !there && !strings.Contains(text, "\n"+one.Name+":") && one.Get() != "" {
			t.Errorf("%s is not there:\n%s", one.Name, text)
		}
	}
	again := reread(t, &effective.Scenario)
	if got := again.YAML(); string(got) != text {
		t.Errorf("read again it is\n%s\nand was\n%s", got, text)
	}
	closed := all().Default()
	p, err = closed.Plan(nil)
	if err != nil {
		t.Fatal(err)
	}
	if refused := p.InEffect(map[string]string{"update": "sideways", "mode": "telepathy"}); refused.Get("update") != "" || refused.Get("mode") != "" || refused.Get("arrival") != "" {
		t.Errorf("it took what is no value: %+v", refused)
	}
}

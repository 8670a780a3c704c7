package kubernetes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster/kubernetes/kubetest"
	"stroppy/internal/fault"
)

// chosen returns a cluster whose pods need not run.
func chosen(t *testing.T, a *API, run string) *Cluster {
	t.Helper()
	k := plain()
	c := &Cluster{kind: k, api: a, run: run, spec: &Spec{Name: run, Nodes: 3, Operator: &k.Operators[0]}, pods: &podWatch{}}
	for i := range 3 {
		c.nodes = append(c.nodes, &node{cluster: c, number: i, pod: fmt.Sprintf("%s-%d", run, i)})
	}
	c.network = &network{cluster: c}
	var err error
	c.owner, err = a.own(t.Context(), run, made{})
	must(t, err)
	t.Cleanup(func() { must(t, c.owner.giveUp()) })
	return c
}

// injectWithin is how long to wait for an injection that must fail. A busy machine applies the object in less time.
const injectWithin = 8 * time.Second

// testChaos checks that the schemas of Chaos Mesh accept the objects of each fault. A fault that Chaos Mesh does not
// inject must be an error and leave nothing behind.
func testChaos(t *testing.T, c *kubetest.ControlPlane) {
	x := chosen(t, connect(t, c), "stroppy-chaos")
	if why := x.LinkFaults(fault.BetweenNodes); why != nil {
		t.Errorf("links can have no faults: %s", why)
	}
	api := x.api
	x.api = nil // later calls do not ask the API server
	if why := x.LinkFaults(fault.BetweenNodes); why != nil {
		t.Errorf("links can have no faults any more: %s", why)
	}
	x.api = api
	says(t, x.LinkFaults(fault.ToClient), "cannot be cut")
	if why := x.LinkFaults(fault.Bandwidth); why != nil {
		t.Errorf("links can have no limit: %s", why)
	}
	says(t, x.nodes[0].Steered(), "this kind of server cannot be asked for its time")
	says(t, x.nodes[0].DiskFaults(), "this kind of server cannot be made to write")
	x.database = writers{}
	if why := x.nodes[0].DiskFaults(); why != nil {
		t.Errorf("disks can have no faults: %s", why)
	}
	x.unmetered = "this account may not get it"
	says(t, x.nodes[0].Stressable(), "the processor use of its pod is not known", "this account may not get it")
	x.meter, x.unmetered = &meter{}, ""
	if why := x.nodes[0].Stressable(); why != nil {
		t.Errorf("processors cannot be taken up: %s", why)
	}
	x.database = clocks{}
	if why := x.nodes[0].Steered(); why != nil {
		t.Errorf("clocks cannot be put: %s", why)
	}
	for name, made := range map[string]struct {
		kind  string
		specs []map[string]any
	}{
		"network": {"NetworkChaos", []map[string]any{
			partitionSpec(x.network, direction{[]int{0}, []int{1, 2}}),
			degradeSpec(x.network, []int{0}, fault.Link{Delay: 100 * time.Millisecond, Jitter: 10 * time.Millisecond}),
			degradeSpec(x.network, []int{0, 1}, fault.Link{Loss: 0.25}),
			degradeSpec(x.network, []int{0, 2}, fault.Link{Bandwidth: 50e6}), degradeSpec(x.network, []int{1}, fault.Link{Bandwidth: 4000}),
		}},
		"disks":      {ioChaos, []map[string]any{volumeSpec(x, 0, "plain", "/data", fullDisk()), volumeSpec(x, 1, "plain", "/data", slowDisk(50*time.Millisecond))}},
		"processors": {stressChaos, []map[string]any{stressSpec(x, 0, "plain", 1), stressSpec(x, 2, "plain", 256)}},
		"clocks":     {timeChaos, []map[string]any{clockSpec(x, 0, 90*time.Second), clockSpec(x, 2, -time.Hour)}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), injectWithin)
			defer cancel()
			_, err := x.inject(ctx, made.kind, made.specs...)
			says(t, err, "is not injected", "chosen no pod")
			if n := strings.Count(err.Error(), x.run+"-"); n < len(made.specs) { // others only report the time-out
				t.Errorf("of %d objects that are not injected %d are named: %v", len(made.specs), n, err)
			}
			faultsLeft(t, x.api)
		})
	}
	_, err := x.inject(t.Context(), "NetworkChaos", map[string]any{"action": "no such action", "mode": "all", "selector": map[string]any{}})
	says(t, err, "apply networkchaos", "no such action")
	_, err = x.inject(t.Context(), "NetworkChaos", map[string]any{"action": "bandwidth", "mode": "all", "selector": map[string]any{}, "bandwidth": map[string]any{"rate": "1bps", "limit": int64(0)}})
	says(t, err, "apply networkchaos", "bandwidth.limit", "bandwidth.buffer")
	faultsLeft(t, x.api)
	for wrong, spec := range map[string]map[string]any{
		"action": {"action": "full"}, "volumePath": {"action": "latency", "mode": "all", "selector": map[string]any{}}, "errno": {"action": "fault", "errno": "ENOSPC"},
	} {
		_, err = x.inject(t.Context(), ioChaos, spec)
		says(t, err, "apply iochaos", wrong)
	}
	faultsLeft(t, x.api)
	_, err = x.Partition(t.Context(), []fault.Cut{{From: fault.Client, To: 0}})
	says(t, err, "cannot be cut")
}

// faultsLeft fails if a namespace has an object of Chaos Mesh.
func faultsLeft(t *testing.T, a *API) {
	t.Helper()
	for _, kind := range []string{"NetworkChaos", "PodChaos", "IOChaos", "TimeChaos", "StressChaos"} {
		list, err := a.list(t.Context(), chaosKind(kind), "")
		must(t, err)
		for i := range list {
			t.Errorf("it is left: %s", describe(&list[i]))
		}
	}
}

// testChaosFile checks that the objects of a file are made, with names of this run, and that objects of others are
// refused.
func testChaosFile(t *testing.T, c *kubetest.ControlPlane) {
	a := connect(t, c)
	x := chosen(t, a, "stroppy-file")
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "chaos.yaml")
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const kill = "apiVersion: chaos-mesh.org/v1alpha1\nkind: PodChaos\nmetadata: {name: theirs, namespace: elsewhere}\nspec: {action: pod-failure, mode: one, selector: {labelSelectors: {app: plain}}}\n"
	for name, refused := range map[string]struct {
		text, says string
		late       bool // only Chaos Mesh detects it
	}{
		"nothing":     {"", "there is none", false},
		"no yaml":     {"a: b: c", "read the Chaos Mesh objects", false},
		"other":       {kill + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: x}\n", "does not belong to Chaos Mesh", false},
		"schedule":    {"apiVersion: chaos-mesh.org/v1alpha1\nkind: Schedule\n", "`every` in the script", false},
		"no kind":     {strings.Replace(kill, "PodChaos", "PodOrder", 1), "has no PodOrder", false},
		"no action":   {strings.Replace(kill, "pod-failure", "nothing", 1), "nothing", true},
		"no such pod": {kill, "chosen no pod", true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), injectWithin)
			defer cancel()
			file := write(refused.text)
			if err := x.ChaosFile(file); refused.late {
				must(t, err)
			} else {
				says(t, err, refused.says)
			}
			if _, err := x.Chaos(ctx, file); refused.late {
				says(t, err, refused.says)
			} else if err == nil {
				t.Error("it was injected")
			}
			faultsLeft(t, a)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go standInOf(ctx, a, "PodChaos", "")
	e, err := x.Chaos(t.Context(), write("---\n"+kill+"---\n"+kill))
	must(t, err)
	list, err := a.list(t.Context(), chaosKind("PodChaos"), RunLabel+"=stroppy-file")
	must(t, err)
	if len(list) != 2 || !strings.HasPrefix(list[0].GetName(), "stroppy-file-") {
		t.Errorf("there are %d objects, such as %v", len(list), list)
	}
	if seen, err := e.Heal(t.Context()); err != nil || seen == "" {
		t.Errorf("healed: %q, %v", seen, err)
	}
	faultsLeft(t, a)
}

// testStuckChaos checks that an object that Chaos Mesh does not release is released by its annotation, and that this
// heal is an error. A stand-in for Chaos Mesh injects, and releases only by force.
func testStuckChaos(t *testing.T, c *kubetest.ControlPlane) {
	a := connect(t, c)
	x := chosen(t, a, "stroppy-stuck")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go standInOf(ctx, a, "NetworkChaos", "chaos-mesh/records")
	fault, err := x.inject(t.Context(), "NetworkChaos", partitionSpec(x.network, direction{[]int{0}, []int{1}}))
	must(t, err)
	says(t, fault.heal(t.Context()), "was not healed by Chaos Mesh", cleanAnnotation)
	faultsLeft(t, a)
}

// standInOf stands in for Chaos Mesh. It reports each object of a kind as injected. If a finalizer is named, it holds
// the object by the finalizer until it is forced.
func standInOf(ctx context.Context, a *API, kind, finalizer string) {
	for ctx.Err() == nil {
		all, _ := a.list(ctx, chaosKind(kind), ManagedByLabel+"="+manager)
		for i := range all {
			o := &all[i]
			finalizers := []any{finalizer}
			if finalizer == "" || o.GetAnnotations()[cleanAnnotation] == "forced" {
				finalizers = []any{}
			}
			if o.GetDeletionTimestamp() == nil || len(finalizers) == 0 {
				_ = a.Patch(ctx, o.GroupVersionKind(), o.GetName(), map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
			}
			_ = a.Patch(ctx, o.GroupVersionKind(), o.GetName(), map[string]any{"status": map[string]any{
				"experiment": map[string]any{"desiredPhase": "Run", "containerRecords": []any{}},
				"conditions": []any{map[string]any{"type": "Selected", "status": "True"}, map[string]any{"type": "AllInjected", "status": "True"}}}})
		}
		time.Sleep(50 * time.Millisecond)
	}
}

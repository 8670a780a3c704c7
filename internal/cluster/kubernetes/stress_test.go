package kubernetes

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"stroppy/internal/cluster/kubernetes/kubetest"
	"stroppy/internal/cluster/wait"
	usage "stroppy/internal/resource"
)

// TestContainerLimitBoundsProcessors checks how many processors a container may use.
func TestContainerLimitBoundsProcessors(t *testing.T) {
	for limit, want := range map[string]float64{"": 4, "500m": 0.5, "2": 2, "16": 4} {
		c := corev1.Container{}
		if limit != "" {
			c.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(limit)}
		}
		if got := bounded(&c, 4); got != want {
			t.Errorf("of 4 processors with a limit of %q: %v, want %v", limit, got, want)
		}
	}
}

// TestParseNumberOfProcessors checks that the number of processors is read from a machine's metrics.
func TestParseNumberOfProcessors(t *testing.T) {
	const metrics = "# TYPE machine_cpu_cores gauge\nmachine_cpu_physical_cores{a=\"b\"} 1\n"
	for text, want := range map[string]float64{
		metrics + "machine_cpu_cores{boot_id=\"x y\",machine_id=\"\"} 2\n": 2,
		metrics + "machine_cpu_cores{boot_id=\"x\"} 96 1732790000000\n":    96,
		metrics:                                0,
		"machine_cpu_cores{boot_id=\"x\"} 0\n": 0,
		"":                                     0,
	} {
		got, err := coresOf([]byte(text), "m")
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// looks makes a meter's kubelet measure a pod every ten seconds. used returns the processor use in turn, the last one
// for ever.
func looks(ctx context.Context, m *meter, pod types.UID, used func() float64) {
	u := usage.Reading{Of: string(pod), At: time.Now()}
	for ctx.Err() == nil {
		m.mu.Lock()
		if last, is := m.latest[pod]; is {
			m.earlier[pod] = last
		}
		m.latest[pod] = u
		m.mu.Unlock()
		_ = wait.Sleep(ctx, 10*time.Second)
		u.At, u.CPU = time.Now(), u.CPU+10*used()
	}
}

// TestStressIsRecognized checks when processors count as stressed, and when they no longer do.
func TestStressIsRecognized(t *testing.T) {
	for name, c := range map[string]struct {
		with, after []float64 // processor use of the pod between measurements in turn, the last one for ever
		pod         *corev1.Pod
		says, heals string
		seen        string
	}{
		"they are":           {[]float64{1.8}, []float64{0.3}, withDisk("x", "a"), "", "", "its pod uses 0.30 processors"},
		"by and by":          {[]float64{0.2, 0.4, 0.9}, []float64{0.9, 0.6, 0.2}, withDisk("x", "a"), "", "", "its pod uses 0.20 processors"},
		"they are not":       {[]float64{0.69}, nil, withDisk("x", "a"), "was not seen: it was not seen within 1m0s; at last: its pod used 0.69 processors, and 0.20 before", "", ""},
		"not healed":         {[]float64{1.8}, []float64{1.1}, withDisk("x", "a"), "", "as ended, but this was not seen", ""},
		"in another server":  {[]float64{1.8}, []float64{1.8}, withDisk("x", "b"), "", "", "the processes have gone with the server"},
		"in none any longer": {[]float64{1.8}, []float64{1.8}, nil, "", "", "the processes have gone with the server"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := faulty(c.pod, logged{}, nil)
				m := &meter{cluster: v.node.cluster, latest: map[types.UID]usage.Reading{}, earlier: map[types.UID]usage.Reading{}}
				v.node.cluster.meter = m
				s := &stressed{server: v.server, before: 0.2, rise: 0.5}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				take := c.with
				go looks(ctx, m, s.pod, func() float64 {
					used := take[0]
					take = take[min(1, len(take)-1):]
					return used
				})
				e, err := s.effect(ctx)
				if c.says != "" {
					says(t, err, c.says)
					return
				}
				if err != nil || !strings.HasSuffix(e.Seen, " and 0.20 before, by Chaos Mesh") {
					t.Fatalf("%q, %v", e.Seen, err)
				}
				if same := c.pod != nil && serverOf(c.pod).ContainerID == "a"; (e.Still(ctx) == nil) != same {
					t.Errorf("still there: %v", e.Still(ctx))
				}
				take = c.after
				seen, err := e.Heal(ctx)
				if c.heals != "" {
					says(t, err, c.heals)
				} else if err != nil || seen != c.seen {
					t.Errorf("%q, %v", seen, err)
				}
			})
		})
	}
}

// TestUsageBeforeLoadIsNoBaseline checks that the time before the load does not count as the time before the fault.
func TestUsageBeforeLoadIsNoBaseline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &meter{latest: map[types.UID]usage.Reading{}, earlier: map[types.UID]usage.Reading{}}
		s := &stressed{server: server{node: &node{cluster: &Cluster{meter: m}}, pod: "1"}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		go looks(ctx, m, s.pod, func() float64 { // idle until the second minute
			if time.Since(began) < time.Minute {
				return 0.1
			}
			return 0.6
		})
		if err := wait.Sleep(ctx, 65*time.Second); err != nil {
			t.Fatal(err)
		}
		if err := s.look(ctx); err != nil || math.Abs(s.before-0.6) > 1e-9 {
			t.Errorf("it used %.2f before, %v", s.before, err)
		}
		if waited := time.Since(began) - 65*time.Second; waited > 21*time.Second {
			t.Errorf("two looks took %v", waited)
		}
	})
}

// TestStressMustRaiseProcessorUse checks by how much the use of a pod must rise.
func TestStressMustRaiseProcessorUse(t *testing.T) {
	for _, c := range []struct {
		before, taken, most, want float64
		says                      string
	}{
		{0.2, 2, 2, 0.5, ""},
		{0.2, 1, 4, 0.25, ""},
		{1.7, 2, 2, 0.15, ""},
		{1.81, 2, 2, 0, "its pod uses 1.81 of its 2.00 processors"},
	} {
		got, err := riseOf(c.before, c.taken, c.most)
		if math.Abs(got-c.want) > 1e-9 || (err != nil) != (c.says != "") {
			t.Errorf("%+v: %v, %v", c, got, err)
		} else if c.says != "" {
			says(t, err, c.says)
		}
	}
}

// TestUsageNeedsTwoMeasurements checks that the use is unknown before two measurements.
func TestUsageNeedsTwoMeasurements(t *testing.T) {
	m := &meter{latest: map[types.UID]usage.Reading{"1": {}}, earlier: map[types.UID]usage.Reading{}}
	_, _, err := m.rate("1")
	says(t, err, "has not measured its pod twice")
	api := &API{config: &rest.Config{Host: "http://kubernetes"}, plain: &http.Client{Transport: logged{text: "nothing"}}}
	m.cluster = &Cluster{api: api}
	_, err = m.processors(t.Context(), "m1")
	says(t, err, "read how many processors m1 has")
}

// testProcessors checks that stress is injected and healed by objects of Chaos Mesh. Chaos Mesh and the kubelet are
// stand-ins: a pod uses as many processors as the existing objects demand.
func testProcessors(t *testing.T, c *kubetest.ControlPlane) {
	x := chosen(t, connect(t, c), "stroppy-stress")
	n := x.nodes[1]
	x.meter = &meter{cluster: x, latest: map[types.UID]usage.Reading{}, earlier: map[types.UID]usage.Reading{}}
	_, err := n.Stress(t.Context(), 0)
	says(t, err, "stress the processors of n1: its server is not running")
	x.pods = watched(withDisk(n.pod, "a"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go standInOf(ctx, x.api, stressChaos, "")
	look := func() error {
		list, err := x.api.list(ctx, chaosKind(stressChaos), RunLabel+"="+x.run)
		used := 0.1
		for i := range list {
			workers, _, _ := unstructured.NestedInt64(list[i].Object, "spec", "stressors", "cpu", "workers")
			used += float64(workers)
		}
		x.meter.mu.Lock()
		defer x.meter.mu.Unlock()
		last := x.meter.latest["1"]
		x.meter.earlier["1"] = last
		x.meter.latest["1"] = usage.Reading{Of: "1", At: last.At.Add(10 * time.Second), CPU: last.CPU + 10*used}
		return err
	}
	must(t, look())
	must(t, look())
	go func() {
		for wait.Sleep(ctx, 300*time.Millisecond) == nil {
			_ = look()
		}
	}()
	s := &stressed{server: server{node: n, pod: "1", id: "a"}, rise: 0.5}
	s.before, _, err = x.meter.rate("1")
	must(t, err)
	s.fault, err = x.inject(t.Context(), stressChaos, stressSpec(x, 1, "db", 2))
	must(t, err)
	e, err := s.effect(t.Context())
	if err != nil || e.Seen != "its pod used 2.10 processors, and 0.10 before, by Chaos Mesh" {
		t.Fatalf("%q, %v", e.Seen, err)
	}
	if seen, err := e.Heal(t.Context()); err != nil || seen != fmt.Sprintf("its pod uses %.2f processors", 0.1) {
		t.Errorf("%q, %v", seen, err)
	}
	faultsLeft(t, x.api)
}

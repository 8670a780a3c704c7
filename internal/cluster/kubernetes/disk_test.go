package kubernetes

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"stroppy/internal/cluster/kubernetes/kubetest"
	"stroppy/internal/fault"
)

// writers is a database whose servers can be made to write, if a write function is given.
type writers struct {
	Database
	write func(context.Context) error
}

func (writers) Volume() string { return "/data" }

func (w writers) Write(ctx context.Context, _ int) error {
	if w.write == nil {
		return errors.New("nobody has a disk")
	}
	return w.write(ctx)
}

// TestVolumeFaultNeedsWritableMount checks at which mounts Chaos Mesh can inject disk faults, and that the error
// names the cause elsewhere.
func TestVolumeFaultNeedsWritableMount(t *testing.T) {
	yes := true
	readOnly := &corev1.SecurityContext{ReadOnlyRootFilesystem: &yes}
	mount := func(paths ...string) (mounts []corev1.VolumeMount) {
		for _, at := range paths {
			mounts = append(mounts, corev1.VolumeMount{Name: "data", MountPath: at})
		}
		return mounts
	}
	for name, c := range map[string]struct {
		mounts  []corev1.VolumeMount
		context *corev1.SecurityContext
		says    string
	}{
		"none":                {mount("/var/lib"), nil, "no volume at /var/lib/db"},
		"one":                 {mount("/var/lib/db/"), nil, ""},
		"read-only root":      {mount("/var/lib/db"), readOnly, "cannot write to /var/lib"},
		"in another volume":   {mount("/var/lib", "/var/lib/db"), readOnly, ""},
		"below another one":   {mount("/var", "/var/lib/db"), readOnly, ""},
		"another name beside": {mount("/var/li", "/var/lib/db"), readOnly, "cannot write to /var/lib"},
		"read-only beside":    {append(mount("/var/lib/db"), corev1.VolumeMount{Name: "x", MountPath: "/var/lib", ReadOnly: true}), nil, "cannot write to /var/lib"},
	} {
		err := reached(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "db", VolumeMounts: c.mounts, SecurityContext: c.context}}}}, "/var/lib/db")
		if c.says != "" {
			says(t, err, c.says)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// withDisk returns the pod of a server, in a container with an identifier, with a volume.
func withDisk(name, id string) *corev1.Pod {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pod := &corev1.Pod{
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "db", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "agent", ContainerID: "other", State: running}, {Name: "db", ContainerID: id, State: running}}},
	}
	pod.Name, pod.UID = name, "1"
	return pod
}

// logged answers every request with one log or with an error.
type logged struct {
	text string
	err  error
}

func (l logged) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(strings.NewReader(l.text))}, l.err
}

// watched returns a podWatch that knows a pod, unless it is nil.
func watched(pod *corev1.Pod) *podWatch {
	w := &podWatch{store: cache.NewStore(cache.MetaNamespaceKeyFunc)}
	if pod != nil {
		_ = w.store.Add(pod)
	}
	return w
}

// faulty returns a volume with a fault that was injected into the server's container "a". now is the node's present
// pod, or nil.
func faulty(now *corev1.Pod, log logged, write func(context.Context) error) *volume {
	w := watched(now)
	api := &API{Namespace: "default", config: &rest.Config{Host: "http://kubernetes"}, plain: &http.Client{Transport: log}}
	c := &Cluster{pods: w, api: api, database: writers{write: write}}
	has := server{node: &node{cluster: c, pod: "x"}, pod: "1", id: "a", fault: &chaos{cluster: c}}
	return &volume{server: has, within: seenWithin, before: 20 * time.Millisecond}
}

// TestDiskFaultEndsWithItsServer checks that a fault ends with the server that had it.
func TestDiskFaultEndsWithItsServer(t *testing.T) {
	pod := withDisk("x", "a")
	v := faulty(pod, logged{}, nil)
	if err := v.still(t.Context()); err != nil {
		t.Error(err)
	}
	if end := v.ended(t.Context()); end != nil {
		t.Errorf("a server that runs has ended: %v", end)
	}
	pod.Status = withDisk("x", "b").Status
	says(t, v.still(t.Context()), "was restarted")
	pod.Status, pod.UID = withDisk("x", "a").Status, "2"
	says(t, v.still(t.Context()), "was restarted")
}

const noSpaceLeft = "write /data/x: No space left on device"

// TestFullVolumeIsRecognized checks when a volume counts as full.
func TestFullVolumeIsRecognized(t *testing.T) {
	for name, c := range map[string]struct {
		write      error
		end        *ending
		seen, says string
	}{
		"a write":               {errors.New(noSpaceLeft), nil, "a write found no space", ""},
		"an end":                {nil, &ending{log: "open | " + noSpaceLeft + " | bye"}, "its server ended", ""},
		"an end, and a write":   {errors.New("connection refused"), &ending{log: noSpaceLeft}, "its server ended", ""},
		"space":                 {nil, nil, "", "found space"},
		"another error":         {errors.New("connection refused"), nil, "", "for another reason than a full disk: connection refused"},
		"another end":           {nil, &ending{log: "a panic"}, "", "its log ends with a panic"},
		"an end nobody knows":   {errors.New(noSpaceLeft), &ending{unread: errors.New("its pod has gone")}, "", "for another reason than a full disk: its pod has gone"},
		"no space for the log":  {nil, &ending{unread: errors.New(noSpaceLeft)}, "", "for another reason than a full disk"},
		"another end, no space": {errors.New(noSpaceLeft), &ending{log: "a panic"}, "", "a panic"},
	} {
		seen, err := noRoom(c.write, c.end)
		switch {
		case c.says != "":
			says(t, err, c.says)
		case err != nil || !strings.Contains(seen, c.seen):
			t.Errorf("%s: %q, %v", name, seen, err)
		}
	}
}

// TestSlowDiskIsRecognized checks when a disk counts as slow, and when it no longer does.
func TestSlowDiskIsRecognized(t *testing.T) {
	const before, perCall = 20 * time.Millisecond, 50 * time.Millisecond
	for name, c := range map[string]struct {
		times      [writesSeen]int64 // milliseconds
		slow, fast bool
	}{
		"all":           {[...]int64{300, 250, 270}, true, false},
		"just":          {[...]int64{70, 70, 70}, true, false},
		"not quite":     {[...]int64{69, 69, 69}, false, true},
		"one late":      {[...]int64{20, 300, 20}, false, false},
		"one not late":  {[...]int64{300, 20, 300}, false, false},
		"late at first": {[...]int64{300, 300, 20}, false, false},
		"none":          {[...]int64{20, 15, 18}, false, true},
	} {
		var times []time.Duration
		for _, ms := range c.times {
			times = append(times, time.Duration(ms)*time.Millisecond)
		}
		_, errSlow := slowed(times, before, perCall)
		_, errFast := fast(times, before+perCall)
		if (errSlow == nil) != c.slow || (errFast == nil) != c.fast {
			t.Errorf("%s: slow: %v; fast: %v", name, errSlow, errFast)
		}
	}
}

// TestFullVolumeLastsUntilHeal checks the effect of a full volume. If a write shows it, it lasts until the heal,
// which is verified. If the server ends, the effect ends by itself.
func TestFullVolumeLastsUntilHeal(t *testing.T) {
	ended := func() *corev1.Pod {
		pod := withDisk("x", "a")
		pod.Status.ContainerStatuses[1].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		return pod
	}
	full := errors.New(noSpaceLeft)
	for name, c := range map[string]struct {
		pod        *corev1.Pod
		log        logged
		write      error
		says       string // part of the error if the effect is not seen
		endsItself bool
	}{
		"a write":             {withDisk("x", "a"), logged{text: noSpaceLeft}, full, "", false},
		"an end":              {ended(), logged{text: "open\n" + noSpaceLeft}, errors.New("connection refused"), "", true},
		"an end, up again":    {withDisk("x", "b"), logged{text: noSpaceLeft}, nil, "", true},
		"space":               {withDisk("x", "a"), logged{text: noSpaceLeft}, nil, "a write found space", false},
		"another end":         {ended(), logged{text: "a panic"}, nil, "its log ends with a panic", false},
		"a log nobody reads":  {ended(), logged{err: full}, nil, "its log could not be read", false},
		"another pod":         {nil, logged{text: noSpaceLeft}, full, "kubectl get events", false},
		"a write that failed": {withDisk("x", "a"), logged{}, errors.New("no leader"), "no leader", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				write := c.write
				e, err := faulty(c.pod, c.log, func(context.Context) error { return write }).full(t.Context())
				if e.EndsItself != c.endsItself || (e.Still == nil) != c.endsItself || e.Heal == nil {
					t.Errorf("the effect is %+v", e)
				}
				if c.says != "" {
					says(t, err, "was not seen", c.says)
					return
				}
				if err != nil || e.Seen == "" {
					t.Fatalf("%q, %v", e.Seen, err)
				}
				if c.endsItself {
					return
				}
				_, err = e.Heal(t.Context())
				says(t, err, "as healed, but this was not seen", noSpaceLeft)
				write = nil
				if seen, err := e.Heal(t.Context()); err != nil || seen != "a write found space" {
					t.Errorf("%q, %v", seen, err)
				}
			})
		})
	}
}

// TestSlowVolumeIsSeenAndHealed checks that successive writes show a slow volume and its heal.
func TestSlowVolumeIsSeenAndHealed(t *testing.T) {
	const slow, ok = 250 * time.Millisecond, 20 * time.Millisecond
	for name, c := range map[string]struct {
		with, after []time.Duration // durations of the writes in turn
		says, heals string
	}{
		"it is":            {[]time.Duration{slow}, []time.Duration{ok}, "", ""},
		"a late one":       {[]time.Duration{ok, slow}, nil, "was not seen", ""},
		"two late ones":    {[]time.Duration{slow, slow, ok}, nil, "was not seen", ""},
		"it is not":        {[]time.Duration{ok}, nil, "was not seen", ""},
		"it is in the end": {[]time.Duration{ok, ok, ok, ok, slow, slow, slow, slow, slow}, []time.Duration{ok}, "", ""},
		"not healed":       {[]time.Duration{slow}, []time.Duration{slow}, "", "still takes 250ms"},
		"healed by halves": {[]time.Duration{slow}, []time.Duration{slow, ok}, "", "still takes 250ms"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				take, i := c.with, 0
				e, err := faulty(withDisk("x", "a"), logged{}, func(context.Context) error {
					time.Sleep(take[i%len(take)])
					i++
					return nil
				}).slow(t.Context(), 50*time.Millisecond)
				if c.says != "" {
					says(t, err, c.says)
					return
				}
				if err != nil || !strings.Contains(e.Seen, "took at least 250ms, and at most 20ms before") {
					t.Fatalf("%q, %v", e.Seen, err)
				}
				take = c.after
				seen, err := e.Heal(t.Context())
				if c.heals != "" {
					says(t, err, c.heals)
				} else if err != nil || !strings.Contains(seen, "none of 3 successive writes took longer than 20ms") {
					t.Errorf("%q, %v", seen, err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // a server that ends does not have a slow disk
		_, err := faulty(withDisk("x", "b"), logged{text: "a panic"}, func(context.Context) error { time.Sleep(slow); return nil }).slow(t.Context(), 50*time.Millisecond)
		says(t, err, "its server has ended", "a panic")
	})
}

// testDisks checks that faults of a disk are injected and healed by objects of Chaos Mesh, and seen by writes. Chaos
// Mesh and the server are stand-ins: a write behaves as the existing objects demand.
func testDisks(t *testing.T, c *kubetest.ControlPlane) {
	x := chosen(t, connect(t, c), "stroppy-disks")
	x.database = writers{write: func(ctx context.Context) error {
		list, err := x.api.list(ctx, chaosKind(ioChaos), RunLabel+"="+x.run)
		must(t, err)
		for i := range list {
			if action, _, _ := unstructured.NestedString(list[i].Object, "spec", "action"); action != "latency" {
				return errors.New(noSpaceLeft)
			}
			text, _, _ := unstructured.NestedString(list[i].Object, "spec", "delay")
			delay, err := time.ParseDuration(text)
			must(t, err)
			time.Sleep(5 * delay)
		}
		return nil
	}}
	n := x.nodes[1]
	_, err := n.FillDisk(t.Context())
	says(t, err, "its server is not running")
	x.pods = watched(withDisk(n.pod, "a"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go standInOf(ctx, x.api, ioChaos, "")
	for name, inject := range map[string]func() (fault.Effect, error){
		"full": func() (fault.Effect, error) { return n.FillDisk(t.Context()) },
		"slow": func() (fault.Effect, error) { return n.SlowDisk(t.Context(), 200*time.Millisecond) },
	} {
		e, err := inject()
		if err != nil || !strings.HasSuffix(e.Seen, ", by Chaos Mesh") || e.EndsItself || e.Still(t.Context()) != nil {
			t.Fatalf("%s: %+v, %v", name, e, err)
		}
		if seen, err := e.Heal(t.Context()); err != nil || seen == "" {
			t.Errorf("%s: %q, %v", name, seen, err)
		}
		faultsLeft(t, x.api)
	}
}

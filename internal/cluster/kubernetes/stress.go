package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"stroppy/internal/fault"
)

// stressChaos runs computing processes in a container's control group (StressChaosSpec).
const stressChaos = "StressChaos"

// stressSeen bounds the time until the processor use of a pod is seen. It needs two successive measurements by the
// kubelet.
const stressSeen = time.Minute

// Stressable returns why the processors of the node's server cannot be stressed, or nil if they can.
func (n *node) Stressable() error {
	if n.cluster.unmetered != "" {
		return fmt.Errorf("the processor use of its pod is not known, so the fault could not be verified: %s", n.cluster.unmetered)
	}
	return n.cluster.chaosAllowed([]schema.GroupVersionKind{chaosKind(stressChaos)}, nil)
}

// Stress runs computing processes in the container of the node's server; 0 means one per processor that it may use.
func (n *node) Stress(ctx context.Context, processes int) (fault.Effect, error) {
	fail := func(err error) (fault.Effect, error) {
		return fault.Effect{}, fmt.Errorf("stress the processors of %s: %w", n.Name(), err)
	}
	server, pod, err := n.server()
	if err != nil {
		return fail(err)
	}
	all, err := n.cluster.meter.processors(ctx, pod.Spec.NodeName)
	if err != nil {
		return fail(err)
	}
	most := bounded(&pod.Spec.Containers[0], all)
	if processes == 0 {
		processes = int(math.Ceil(most))
	}
	s := &stressed{server: server}
	if err := s.look(ctx); err != nil {
		return fail(err)
	}
	if s.rise, err = riseOf(s.before, min(float64(processes), most), most); err != nil {
		return fail(err)
	}
	if s.fault, err = n.cluster.inject(ctx, stressChaos, stressSpec(n.cluster, n.number, pod.Spec.Containers[0].Name, processes)); err != nil {
		return fail(err)
	}
	return s.effect(ctx)
}

// riseOf returns by how many processors the use of a pod must rise. before is its use before, taken the number that
// the fault takes, and most its limit. A quarter of taken is left on a busy machine, and is more than the load of a
// server varies. Half of the remaining processors is within reach of the fault.
func riseOf(before, taken, most float64) (float64, error) {
	left := most - before
	if left < most/10 {
		return 0, fmt.Errorf("its pod uses %.2f of its %.2f processors, so the fault could not be verified", before, most)
	}
	return min(taken/4, left/2), nil
}

// look measures the use of the pod before the fault. The kubelet must measure twice from now on. An earlier
// measurement may be from before the load, and the rise by the load would count as the fault.
func (s *stressed) look(ctx context.Context) error {
	_, err := s.observing(2, func(used float64) (string, error) {
		s.before = used
		return "", nil
	})(ctx)
	return err
}

// stressSpec returns a StressChaos for one container.
func stressSpec(c *Cluster, node int, container string, processes int) map[string]any {
	return map[string]any{"mode": "all", "selector": c.selects(node), "containerNames": []any{container},
		"stressors": map[string]any{"cpu": map[string]any{"workers": int64(processes), "load": int64(100)}}}
}

// bounded returns how many processors a container may use, of all on its machine.
func bounded(c *corev1.Container, all float64) float64 {
	if limit := c.Resources.Limits.Cpu(); !limit.IsZero() {
		return min(limit.AsApproximateFloat64(), all)
	}
	return all
}

// stressed is a node under stress.
type stressed struct {
	server

	before float64 // processors that its pod used before
	rise   float64 // required rise of its use
}

// effect verifies that the pod uses more, and after the heal that it does not.
func (s *stressed) effect(ctx context.Context) (fault.Effect, error) {
	least := s.before + s.rise // of the use, if the fault is there
	e, err := s.fault.effect(ctx, sight{
		into: "the container of " + s.node.Name(), healed: "the stress of " + s.node.Name() + " as ended",
		seen: s.observing(1, func(used float64) (string, error) {
			text := fmt.Sprintf("its pod used %.2f processors, and %.2f before", used, s.before)
			if used < least {
				return "", errors.New(text)
			}
			least = (s.before + used) / 2
			return text, nil
		}),
		gone: func() string {
			if s.here() && s.node.Running() {
				return ""
			}
			return "the processes have gone with the server"
		},
		ended: s.observing(1, func(used float64) (string, error) {
			text := fmt.Sprintf("its pod uses %.2f processors", used)
			if used >= least {
				return "", errors.New(text)
			}
			return text, nil
		}),
	})
	e.Still = s.still
	return e, err
}

// observing returns a function that calls see with the processor use of the pod until it succeeds. It begins when the
// kubelet has measured the pod looks times since the call.
func (s *stressed) observing(looks int, see func(used float64) (string, error)) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		left := looks
		_, last, _ := s.node.cluster.meter.rate(s.pod) // an error means that it was not measured yet
		return observe(ctx, stressSeen, func(context.Context) (string, error) {
			used, at, err := s.node.cluster.meter.rate(s.pod)
			if err != nil {
				return "", err
			}
			if at.After(last) {
				last = at
				left--
			}
			if left > 0 {
				return "", errors.New("its kubelet has not measured its pod since")
			}
			return see(used)
		})
	}
}

// rate returns how many processors a pod used between the last two measurements of its kubelet. It also returns the
// kubelet's time of the last one.
func (m *meter) rate(pod types.UID) (processors float64, at time.Time, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, known := m.latest[pod]
	then, before := m.earlier[pod]
	if !known || !before {
		return 0, at, errors.New("its kubelet has not measured its pod twice")
	}
	return (now.CPU - then.CPU) / now.At.Sub(then.At).Seconds(), now.At, nil
}

// processors returns the number of processors of a machine, from its kubelet's cAdvisor metrics.
func (m *meter) processors(ctx context.Context, machine string) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, usageLimit)
	defer cancel()
	text, err := m.cluster.api.get(ctx, "/api/v1/nodes/"+machine+"/proxy/metrics/cadvisor")
	if err != nil {
		return 0, fmt.Errorf("read how many processors %s has: %w", machine, err)
	}
	return coresOf(text, machine)
}

func coresOf(text []byte, machine string) (float64, error) {
	for line := range bytes.Lines(text) {
		rest, is := strings.CutPrefix(string(line), "machine_cpu_cores")
		if !is {
			continue
		}
		_, values, _ := strings.Cut(rest, "}")
		if fields := strings.Fields(values); len(fields) > 0 {
			if cores, err := strconv.ParseFloat(fields[0], 64); err == nil && cores > 0 {
				return cores, nil
			}
		}
	}
	return 0, fmt.Errorf("read how many processors %s has: the metrics of its kubelet lack machine_cpu_cores", machine)
}

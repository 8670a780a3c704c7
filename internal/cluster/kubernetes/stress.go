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

	"stroppy/internal/cluster"
)

// stressChaos has processes in a container's control group that do nothing but compute
// (StressChaosSpec).
const stressChaos = "StressChaos"

// stressSeen bounds how long it may take until the processors of a pod are seen in use, by two looks
// of its kubelet one after the other.
const stressSeen = time.Minute

// Stressable says why the processors of the node's server cannot be taken up, nil if they can.
func (n *node) Stressable() error {
	if n.cluster.meter == nil && !n.cluster.planned {
		return fmt.Errorf("what its pod uses is not known, so nobody could see what takes up its processors: %s", n.cluster.unmetered)
	}
	return n.cluster.chaosAllowed([]schema.GroupVersionKind{chaosKind(stressChaos)}, nil)
}

// Stress has so many processes compute in the container of the node's server, 0: as many as it may
// have processors.
func (n *node) Stress(ctx context.Context, processes int) (cluster.Effect, error) {
	fail := func(err error) (cluster.Effect, error) {
		return cluster.Effect{}, fmt.Errorf("take up the processors of %s: %w", n.Name(), err)
	}
	pod := n.current()
	if pod == nil || !n.Running() {
		return fail(errors.New("its server is not running"))
	}
	all, err := n.cluster.meter.processors(ctx, pod.Spec.NodeName)
	if err != nil {
		return fail(err)
	}
	most := bounded(&pod.Spec.Containers[0], all)
	if processes == 0 {
		processes = int(math.Ceil(most))
	}
	s := &stressed{node: n, pod: pod.UID, server: serverOf(pod).ContainerID}
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

// riseOf is by how much more processors a pod has to use that used some before, when so many are taken
// up of the most that it may: a quarter is what a busy machine leaves of them, and more than a server's
// load varies by; half of what it has left is in its reach.
func riseOf(before, taken, most float64) (float64, error) {
	left := most - before
	if left < most/10 {
		return 0, fmt.Errorf("its pod uses %.2f of the %.2f processors that it may, so that nobody could see what takes up the rest", before, most)
	}
	return min(taken/4, left/2), nil
}

// look finds out what the pod uses before. Its kubelet has to look twice from now on: the time before
// its last look may be from before the load, whose own rise would be taken for the fault.
func (s *stressed) look(ctx context.Context) error {
	_, err := s.observe(ctx, 2, func(used float64) (string, error) {
		s.before = used
		return "", nil
	})
	return err
}

// stressSpec is a StressChaos of one container.
func stressSpec(c *Cluster, node int, container string, processes int) map[string]any {
	return map[string]any{"mode": "all", "selector": c.selects(node), "containerNames": []any{container},
		"stressors": map[string]any{"cpu": map[string]any{"workers": int64(processes), "load": int64(100)}}}
}

// bounded is how many processors a container may use, of all that its machine has.
func bounded(c *corev1.Container, all float64) float64 {
	if limit := c.Resources.Limits.Cpu(); !limit.IsZero() {
		return min(limit.AsApproximateFloat64(), all)
	}
	return all
}

// stressed is a node whose processors are taken up.
type stressed struct {
	node   *node
	pod    types.UID
	server string // the container's identifier
	fault  *chaos

	before float64 // processors that its pod used
	rise   float64 // by which it has to use more
	with   float64 // that it uses now
}

// effect sees that the pod uses more, and after the heal that it does not.
func (s *stressed) effect(ctx context.Context) (e cluster.Effect, err error) {
	e = cluster.Effect{Still: s.still, Heal: s.heal}
	e.Seen, err = s.observe(ctx, 1, func(used float64) (string, error) {
		text := fmt.Sprintf("its pod used %.2f processors, and %.2f before", used, s.before)
		if used < s.before+s.rise {
			return "", errors.New(text)
		}
		s.with = used
		return text + ", by Chaos Mesh", nil
	})
	if err != nil {
		err = fmt.Errorf("what Chaos Mesh says that it has injected into the container of %s was not seen: %w", s.node.Name(), err)
	}
	return e, err
}

// observe shows see, again and again, how many processors the pod uses, once its kubelet has looked at
// it so many times from now on.
func (s *stressed) observe(ctx context.Context, looks int, see func(used float64) (string, error)) (string, error) {
	_, last, _ := s.node.cluster.meter.rate(s.pod) // unknown: its first looks come yet
	return observeWithin(ctx, stressSeen, func(context.Context) (string, error) {
		used, at, err := s.node.cluster.meter.rate(s.pod)
		if err != nil {
			return "", err
		}
		if at.After(last) {
			last = at
			looks--
		}
		if looks > 0 {
			return "", errors.New("its kubelet has not looked at its pod since")
		}
		return see(used)
	})
}

// here says whether the server is the one whose processors were taken up.
func (s *stressed) here() bool {
	pod := s.node.current()
	return pod != nil && pod.UID == s.pod && serverOf(pod).ContainerID == s.server
}

// still says why the processors are not taken up any more although nobody has healed it.
func (s *stressed) still(context.Context) error {
	if !s.here() {
		return fmt.Errorf("the server of %s was started again meanwhile, without the processes that take up its processors", s.node.Name())
	}
	return nil
}

// heal ends the processes, and sees that the pod uses less by half of what they made it use.
func (s *stressed) heal(ctx context.Context) (string, error) {
	if err := s.fault.heal(ctx); err != nil {
		return "", err
	}
	if !s.here() || !s.node.Running() {
		return "the processes have gone with the server", nil
	}
	least := s.before + s.rise
	if s.with != 0 { // they were seen to compute
		least = (s.before + s.with) / 2
	}
	text, err := s.observe(ctx, 1, func(used float64) (string, error) {
		text := fmt.Sprintf("its pod uses %.2f processors", used)
		if used >= least {
			return "", errors.New(text)
		}
		return text, nil
	})
	if err != nil {
		return "", fmt.Errorf("the processes in the container of %s were not seen to end although Chaos Mesh says so: %w", s.node.Name(), err)
	}
	return text, nil
}

// rate is how many processors a pod used between the last two looks of its kubelet, and when the
// second one was, by the clock there.
func (m *meter) rate(pod types.UID) (processors float64, at time.Time, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, known := m.latest[pod]
	then, before := m.earlier[pod]
	if !known || !before {
		return 0, at, errors.New("its kubelet has not looked at its pod twice")
	}
	return (now.CPUSeconds - then.CPUSeconds) / now.At.Sub(then.At).Seconds(), now.At, nil
}

// processors is how many a machine has, as its kubelet says among the metrics of cAdvisor.
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
	return 0, fmt.Errorf("read how many processors %s has: the metrics of its kubelet do not say it", machine)
}

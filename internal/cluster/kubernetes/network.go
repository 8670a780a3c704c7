package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/fault"
)

// network is the links of the pods, which Chaos Mesh cuts and slows down. A pod of its own, the probe, sees the
// effect. Each cut includes the probe on the receiving side.
type network struct {
	cluster *Cluster
	mu      sync.Mutex
	probe   *probe // nil until a fault needs it
}

var errClientCut = errors.New("the connection of this program to the pods cannot be cut: cut the pods off from each other")

// LinkFaults returns why links cannot have faults, or nil if they can.
func (n *network) LinkFaults(kind fault.LinkFault) error {
	if kind == fault.ToClient {
		return errClientCut
	}
	return n.cluster.chaosAllowed([]schema.GroupVersionKind{chaosKind("NetworkChaos")}, []Right{{Resource: "pods", Verbs: []string{"create"}}})
}

// Partition drops all packets in the given directions.
func (n *network) Partition(ctx context.Context, cuts []fault.Cut) (fault.Effect, error) {
	for _, c := range cuts {
		if c.From == fault.Client || c.To == fault.Client {
			return fault.Effect{}, errClientCut
		}
	}
	seen, err := n.observer(ctx)
	if err != nil {
		return fault.Effect{}, err
	}
	var specs []map[string]any
	for _, d := range directions(cuts) {
		specs = append(specs, partitionSpec(n, d))
	}
	from := senders(cuts)
	return n.effect(ctx, specs, from, func(ctx context.Context) (string, error) {
		return fault.Ways(len(cuts)) + " cut: no packet of " + n.names(from) + " reaches a probe on the other side", Each(from, func(_, i int) error { return seen.silent(ctx, i) })
	}, func(ctx context.Context) (string, error) {
		return n.names(from) + " reach the probe again", Each(from, func(_, i int) error { return seen.answers(ctx, i) })
	})
}

// partitionSpec returns a NetworkChaos that drops all packets from one set of pods to another set and to the probe.
func partitionSpec(n *network, d direction) map[string]any {
	return map[string]any{
		"action": "partition", "mode": "all", "direction": "to",
		"selector": n.cluster.selects(d.from...), "target": map[string]any{"mode": "all", "selector": n.cluster.selects(slices.Concat(d.to, []int{probeNumber})...)},
	}
}

// direction is a set of pods whose packets do not reach another set.
type direction struct{ from, to []int }

// directions combines cuts into few directions: pods that are cut off from the same pods are together.
func directions(cuts []fault.Cut) (list []direction) {
	to := map[int][]int{}
	for _, c := range cuts {
		to[c.From] = append(to[c.From], c.To)
	}
	for _, from := range slices.Sorted(maps.Keys(to)) {
		slices.Sort(to[from])
		same := slices.IndexFunc(list, func(d direction) bool { return slices.Equal(d.to, to[from]) })
		if same >= 0 {
			list[same].from = append(list[same].from, from)
			continue
		}
		list = append(list, direction{[]int{from}, to[from]})
	}
	return list
}

func senders(cuts []fault.Cut) (list []int) {
	for _, c := range cuts {
		list = append(list, c.From)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Degrade makes the outgoing links of the nodes slow, lossy or limited.
func (n *network) Degrade(ctx context.Context, nodes []int, link fault.Link) (fault.Effect, error) {
	seen, err := n.observer(ctx)
	if err != nil {
		return fault.Effect{}, err
	}
	before := make([]measured, len(nodes))
	_, err = observe(ctx, seenWithin, func(ctx context.Context) (string, error) {
		return "", Each(nodes, func(i, node int) (err error) {
			if before[i], err = seen.measure(ctx, node, link); err == nil && link.Bandwidth > 0 {
				err = before[i].wide(link.Bandwidth)
			}
			return err
		})
	})
	if err != nil {
		return fault.Effect{}, fmt.Errorf("measure the links of %s before the fault: %w", n.names(nodes), err)
	}
	return n.effect(ctx, []map[string]any{degradeSpec(n, nodes, link)}, nodes, func(ctx context.Context) (string, error) {
		now := make([]string, len(nodes))
		err := Each(nodes, func(i, node int) error {
			m, err := seen.measure(ctx, node, link)
			if err != nil {
				return err
			}
			now[i] = fmt.Sprintf("n%d: %s, before: %s", node, m, before[i])
			return m.worse(before[i], link)
		})
		slices.Sort(now)
		return "from the probe, " + strings.Join(now, ", "), err
	}, func(ctx context.Context) (string, error) {
		return n.names(nodes) + " answer the probe as before", Each(nodes, func(i, node int) error {
			m, err := seen.measure(ctx, node, link)
			switch {
			case err != nil:
				return err
			case link.Bandwidth > 0:
				return m.wide(link.Bandwidth)
			case m.worse(before[i], link) == nil:
				return fmt.Errorf("the link of n%d is not healed: %s", node, m)
			}
			return nil
		})
	})
}

// degradeSpec returns a NetworkChaos that delays, drops or limits packets of pods.
func degradeSpec(n *network, nodes []int, link fault.Link) map[string]any {
	spec := map[string]any{"mode": "all", "direction": "to", "selector": n.cluster.selects(nodes...)}
	switch {
	case link.Bandwidth > 0:
		spec["action"], spec["bandwidth"] = "bandwidth", limitSpec(link.Bandwidth)
	case link.Loss > 0:
		spec["action"], spec["loss"] = "loss", map[string]any{"loss": fmt.Sprintf("%g", 100*link.Loss)}
	default:
		spec["action"], spec["delay"] = "delay", map[string]any{"latency": link.Delay.String(), "jitter": link.Jitter.String()}
	}
	return spec
}

// effect injects faults of the network, verifies them through seen, and verifies their end through ended.
func (n *network) effect(ctx context.Context, specs []map[string]any, nodes []int, seen, ended func(context.Context) (string, error)) (fault.Effect, error) {
	x, err := n.cluster.inject(ctx, "NetworkChaos", specs...)
	if err != nil {
		return fault.Effect{}, err
	}
	of := n.names(nodes)
	return x.effect(ctx, sight{
		into: of, healed: "the network of " + of + " as healed", seen: observing(seenWithin, seen), ended: observing(seenWithin, ended),
	})
}

// selects returns a Chaos Mesh selector of nodes' pods by name.
func (c *Cluster) selects(nodes ...int) map[string]any {
	var pods []any
	for _, i := range nodes {
		if i == probeNumber {
			pods = append(pods, c.probeName())
			continue
		}
		pods = append(pods, c.nodes[i].pod)
	}
	return map[string]any{"pods": map[string]any{c.api.Namespace: pods}}
}

func (n *network) names(nodes []int) string {
	var list []string
	for _, i := range nodes {
		list = append(list, n.cluster.nodes[i].Name())
	}
	return strings.Join(list, ", ")
}

// observer returns the probe, which is made at the first call.
func (n *network) observer(ctx context.Context) (*probe, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.probe != nil {
		return n.probe, nil
	}
	p, err := n.cluster.startProbe(ctx)
	if err != nil {
		return nil, fmt.Errorf("start the pod of the probe: %w", err)
	}
	n.probe = p
	return p, nil
}

func (n *network) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.probe != nil {
		n.probe.stop()
	}
}

// measured is a link as measured by the probe.
type measured struct {
	sent, lost int
	median     time.Duration // time to connect, of the connections that succeeded

	asked, came int64 // offered bytes per second, if any, and returned bytes per second
	echoes      int64 // number of returned echoes
}

func (m measured) String() string {
	if m.asked > 0 {
		return fmt.Sprintf("%d B/s of %d B/s offered", m.came, m.asked)
	}
	return fmt.Sprintf("%d of %d lost, %v a round trip", m.lost, m.sent, m.median.Round(time.Microsecond))
}

// worse returns an error unless a link is worse than before by the amount of the fault.
func (m measured) worse(before measured, link fault.Link) error {
	if link.Bandwidth > 0 {
		return m.narrow(link.Bandwidth)
	}
	if link.Loss > 0 {
		if m.lost <= before.lost {
			return fmt.Errorf("%d of %d packets were lost, but %d before", m.lost, m.sent, before.lost)
		}
		return nil
	}
	least := max(link.Delay-link.Jitter, link.Delay/2)
	if m.median-before.median < least {
		return fmt.Errorf("a round trip takes %v, and took %v before", m.median, before.median)
	}
	return nil
}

// medianOf returns the median, or 0 if there are no times.
func medianOf(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.SortFunc(times, cmp.Compare)
	return times[len(times)/2]
}

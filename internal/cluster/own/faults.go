package own

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/fault"
)

// needs returns the commands that a fault needs; known is false if no command can make it.
func needs(fault string) (list []string, known bool) {
	words := strings.Fields(fault)
	switch words[0] {
	case "exec":
		return nil, true
	case kill, stop, "rolling-restart":
		if words[0] != kill {
			return []string{stop}, true
		}
		return []string{kill}, true
	case pause:
		return []string{pause}, true
	case replace:
		return []string{replace}, true
	case "move":
		return []string{promote}, true
	case "partition":
		return []string{isolate}, !slices.ContainsFunc(words, func(w string) bool {
			return slices.Contains([]string{"one-way", "client", "ring", "bridge"}, w)
		})
	case "clock":
		return []string{setClock}, !slices.Contains(words, "rate")
	}
	return nil, false
}

// Can returns an error if the owner gave no command for a fault.
func (c *Cluster) Can(text string) error {
	list, known := needs(text)
	word, _, _ := strings.Cut(text, " ")
	const instead = "write it as exec 'COMMAND' 'HEAL COMMAND'"
	switch {
	case word == "exec":
		return nil
	case !c.Listed() && word == "chaos":
		return errors.New("the objects are in Kubernetes: write exec 'kubectl apply -f FILE' 'kubectl delete -f FILE'")
	case !c.Listed():
		return fmt.Errorf("stroppy did not start the servers of --db: %s, or describe them with --cluster own:FILE", instead)
	case !known:
		return fmt.Errorf("no command of %s can do it: %s", c.file, instead)
	}
	if word == "partition" && c.apart(strings.Fields(text)) {
		return fmt.Errorf("%w; name one node, the leader or its followers", errApart)
	}
	for _, n := range c.nodes {
		for _, action := range list {
			if n.commands[action] == nil {
				return fmt.Errorf("%s has no command %s for %s: add it, or %s", c.file, action, n.title(), instead)
			}
		}
	}
	return nil
}

// errApart is the error of a partition that the command isolate cannot make.
var errApart = errors.New("the command isolate cuts one node off from all others, and here groups of nodes are apart")

// apart reports whether a partition leaves several nodes on both sides.
func (c *Cluster) apart(words []string) bool {
	smaller := 1
	switch {
	case slices.Contains(words, "halves"):
		smaller = len(c.nodes) / 2
	case slices.Contains(words, "majority") || slices.Contains(words, "minority"):
		smaller = (len(c.nodes) - 1) / 2
	}
	return smaller > 1
}

// MoveLeader runs the command promote of a node. The nemesis waits until the node leads.
func (c *Cluster) MoveLeader(ctx context.Context, to int) error {
	n := c.nodes[to]
	values := n.values()
	if leader, err := c.Leader(ctx); err == nil {
		values["leader"] = c.nodes[leader].values()["name"]
	}
	_, err := c.runWith(ctx, n.commands[promote], n, values, false)
	return err
}

var _ cluster.Mover = (*Cluster)(nil)

// LinkFaults returns an error unless nodes can be cut off from each other.
func (c *Cluster) LinkFaults(kind fault.LinkFault) error {
	if kind != fault.BetweenNodes {
		return fmt.Errorf("no command of %s can do it", cmp.Or(c.file, "--db"))
	}
	return nil
}

// Degrade returns an error.
func (c *Cluster) Degrade(context.Context, []int, fault.Link) (fault.Effect, error) {
	return fault.Effect{}, errors.New("no command of an inventory makes links slow or lossy")
}

// Partition isolates the nodes that are cut off from all others. It returns an error if this does not make all cuts.
func (c *Cluster) Partition(ctx context.Context, cuts []fault.Cut) (fault.Effect, error) {
	nodes := c.alone(cuts)
	if nodes == nil {
		return fault.Effect{}, errApart
	}
	e := fault.Effect{Heal: func(ctx context.Context) (seen string, err error) {
		for _, n := range nodes {
			err = errors.Join(err, n.rejoin(ctx))
			seen += n.Name() + " joined; "
		}
		return strings.TrimSuffix(seen, "; "), err
	}}
	for _, n := range nodes {
		err := n.promising(join, func() error { return n.do(ctx, isolate) })
		if err == nil {
			err = wait.Until(ctx, seenLimit, func() error { return n.do(ctx, isolated) })
		}
		if err != nil {
			return e, err
		}
		e.Seen += n.Name() + " isolated; "
	}
	e.Seen = strings.TrimSuffix(e.Seen, "; ")
	return e, nil
}

// rejoin ends the isolation of a node and waits until it is seen to have ended.
func (n *node) rejoin(ctx context.Context) error {
	if err := n.do(ctx, join); err != nil {
		return err
	}
	err := wait.Until(ctx, seenLimit, func() error {
		if n.do(ctx, isolated) == nil {
			return fmt.Errorf("%s is still isolated after its command %s", n.title(), join)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return n.healed(join)
}

// alone returns the nodes whose isolation makes exactly these cuts; nil: there are none. The first node of the first
// cut comes first, because the fault is about it.
func (c *Cluster) alone(cuts []fault.Cut) (chosen []*node) {
	left := map[fault.Cut]bool{}
	for _, cut := range cuts {
		left[cut] = true
	}
	order := slices.Clone(c.nodes)
	slices.SortStableFunc(order, func(a, b *node) int {
		return cmp.Compare(btoi(b.number == cuts[0].From), btoi(a.number == cuts[0].From))
	})
	whole := func(n *node) bool {
		return !slices.ContainsFunc(c.nodes, func(other *node) bool {
			return other != n && (!slices.Contains(cuts, fault.Cut{From: n.number, To: other.number}) || !slices.Contains(cuts, fault.Cut{From: other.number, To: n.number}))
		})
	}
	for _, n := range order {
		if len(left) == 0 || !whole(n) {
			continue
		}
		chosen = append(chosen, n)
		for cut := range left {
			if cut.From == n.number || cut.To == n.number {
				delete(left, cut)
			}
		}
	}
	if len(left) > 0 {
		return nil
	}
	return chosen
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

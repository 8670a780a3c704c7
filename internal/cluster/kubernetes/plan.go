package kubernetes

import "stroppy/internal/cluster"

// plan is the cluster as a dry run has it, which is not connected to anything. lacks is why it could
// not be started here, nil if it could.
func (k *Kind) plan(a *asked, lacks error) *cluster.PlannedError {
	kind := *k
	c := &Cluster{kind: &kind, spec: &a.Spec, run: drawName(), planned: true, database: k.Unconnected(&a.Spec)}
	c.network = &network{cluster: c}
	there := a.selector != ""
	if there {
		kind.StatefulSet = false // as for adopt
	} else {
		c.spec.Name = c.run
	}
	for number := range c.spec.Nodes {
		c.nodes = append(c.nodes, &node{cluster: c, number: number})
	}
	return &cluster.PlannedError{Cluster: c.capable(), Uncounted: there, Lacks: lacks}
}

// capable is the cluster with what can be done to it.
func (c *Cluster) capable() cluster.Cluster {
	if mover, ok := c.database.(Mover); ok {
		return &movable{c, mover}
	}
	return c
}

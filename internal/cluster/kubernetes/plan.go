package kubernetes

import "stroppy/internal/cluster"

// plan returns the unconnected cluster of a dry run. lacks is the reason why it could not be started here, or nil.
func (k *Kind) plan(a *asked, lacks error) *cluster.PlannedError {
	kind := *k
	c := &Cluster{kind: &kind, spec: &a.Spec, run: drawName(), database: k.Unconnected(&a.Spec)}
	c.network = &network{cluster: c}
	there := a.selector != ""
	if there {
		kind.StatefulSet = false // as in adopt
	} else {
		c.spec.Name = c.run
	}
	for number := range c.spec.Nodes {
		c.nodes = append(c.nodes, &node{cluster: c, number: number})
	}
	return &cluster.PlannedError{Cluster: c.capable(), Uncounted: there, Lacks: lacks}
}

// capable returns the cluster with its capabilities.
func (c *Cluster) capable() cluster.Cluster {
	if mover, ok := c.database.(Mover); ok {
		return &movable{c, mover}
	}
	return c
}

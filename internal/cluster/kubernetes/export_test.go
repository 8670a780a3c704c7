package kubernetes

import (
	"context"

	"stroppy/internal/cluster"
)

// Allowed returns a database of three nodes that exists only for the API server. It shows which faults are allowed on
// its nodes; their pods do not exist.
func Allowed(ctx context.Context, k *Kind, where Access) (cluster.Cluster, error) {
	api, err := Connect(ctx, where)
	if err != nil {
		return nil, err
	}
	spec := &Spec{Name: "stroppy-allowed", Nodes: 3, Params: map[string]string{}}
	c := &Cluster{kind: k, api: api, run: spec.Name, spec: spec, pods: &podWatch{}, meter: &meter{}, database: k.Unconnected(spec)}
	c.network = &network{cluster: c}
	for number := range spec.Nodes {
		c.nodes = append(c.nodes, &node{cluster: c, number: number})
	}
	return c.capable(), nil
}

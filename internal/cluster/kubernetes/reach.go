package kubernetes

import (
	"context"
	"fmt"
	"os"
)

// reach opens a relay to each pod and connects to the database. The relays use the API server if forward is set, or
// if the pods do not answer at their own addresses.
func (c *Cluster) reach(ctx context.Context, forward bool) (err error) {
	if c.kind.Direct {
		c.database, err = c.kind.Connect(ctx, c.api, c.spec, nil)
		return err
	}
	direct := !forward && reachable(ctx, c.nodes[0].current(), c.kind.Port)
	var addresses []string
	for _, n := range c.nodes {
		if n.relay, err = c.api.newRelay(c.kind.Port, direct, n.current); err != nil {
			return err
		}
		addresses = append(addresses, n.relay.address())
	}
	c.database, err = c.kind.Connect(ctx, c.api, c.spec, addresses)
	return err
}

// address returns the address of a node's pod, or "".
func (c *Cluster) address(node int) string {
	if pod := c.nodes[node].current(); pod != nil {
		return pod.Status.PodIP
	}
	return ""
}

// folder makes a folder on this machine that is removed with the cluster.
func (c *Cluster) folder() (string, error) {
	if c.record != nil {
		return c.record.TempFolder(os.TempDir())
	}
	path, err := os.MkdirTemp("", namePrefix)
	if err != nil {
		return "", fmt.Errorf("make a temporary folder: %w", err)
	}
	c.folders = append(c.folders, path)
	return path, nil
}

package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// NodesFile holds the data of every node of a cluster after the last heal.
const NodesFile = "nodes.json"

// Node is one node of the cluster, which is read alone at the end.
type Node struct {
	Name string
	// EndState downloads the data of this node alone.
	EndState func(ctx context.Context, end *history.EndWriter) error
}

// nodesRecord is nodes.json.
type nodesRecord struct {
	Identity   *history.Identity `json:"identity"`
	Faults     int               `json:"faults"`      // their number, with those left out
	FaultLines int               `json:"fault_lines"` // of faults.jsonl
	Error      string            `json:"error"`       // why the database did not become whole; empty if it did
	Whole      check.Digest      `json:"whole"`       // the end state of the whole cluster
	Nodes      []check.Replica   `json:"nodes"`
}

// readNodes returns nil of a run without a cluster.
func readNodes(dir string) (*nodesRecord, error) {
	path := filepath.Join(dir, NodesFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	n := new(nodesRecord)
	if err == nil {
		err = json.Unmarshal(data, n)
	}
	if err != nil {
		return nil, fmt.Errorf("read what the nodes held: %s: %w", path, err)
	}
	return n, nil
}

// The number of readings of nodes that differ, and the pause between them.
const (
	compareTries = 3
	compareAgain = time.Second
)

// lateWait is the time for which nodes that the user named are waited for if they may only be late.
const lateWait = 30 * time.Second

// comparesNodes reports whether every node must be read alone at the end.
func (c *conductor) comparesNodes() bool {
	return c.o.Nodes != nil && (c.o.Nemesis != nil || c.o.MayLag && !c.o.Plan.NoCheck)
}

// compareNodes downloads the end state from every node and keeps how it differs
// from the one that was downloaded from the cluster.
func (c *conductor) compareNodes(ctx context.Context) error {
	switch {
	case c.o.Nemesis == nil && !c.comparesNodes():
		return nil
	case c.o.Nodes == nil:
		return c.keepNodes(new(nodesRecord))
	}
	began, differed := time.Now(), 0
	for pause := compareAgain; ; pause *= 2 {
		record, err := c.readEveryNode(ctx)
		if err != nil {
			return err
		}
		late := slices.ContainsFunc(record.Nodes, func(r check.Replica) bool { return r.Behind })
		different := check.SameReplicas(record.Whole, record.Nodes).Status == check.Invalid
		if different {
			differed++
		}
		// An abandoned transfer may commit between two of the downloads, so only a lasting difference counts.
		if (!different || differed == compareTries) && (!late || different || time.Since(began) >= lateWait) {
			return c.keepNodes(record)
		}
		if different {
			pause = compareAgain
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for nodes that differ: %w", context.Cause(ctx))
		case <-time.After(pause):
		}
		if err := c.download(ctx); err != nil {
			return err
		}
	}
}

func (c *conductor) keepNodes(record *nodesRecord) error {
	record.Identity, record.Faults, record.FaultLines, record.Error = c.result.Identity, c.faultCount, c.faultLines, c.unwhole
	return c.o.Dir.writeJSON(NodesFile, record)
}

// allNodes returns the nodes of the record. Recorded names without a node, and nodes without a recorded name, are
// returned as not read.
func (n *nodesRecord) allNodes(names []string) []check.Replica {
	all := slices.Clone(n.Nodes)
	for i := range all {
		if !slices.Contains(names, all[i].Node) {
			all[i].Error = "it is no node of the cluster as it was recorded"
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(n.Nodes, func(r check.Replica) bool { return r.Node == name }) {
			all = append(all, check.Replica{Node: name, Error: "it is missing from " + NodesFile})
		}
	}
	return all
}

func (c *conductor) readEveryNode(ctx context.Context) (record *nodesRecord, err error) {
	c.enter("nodes")
	defer c.leave()
	whole, err := history.OpenEnd(c.o.Dir.History())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, whole.Close()) }()
	record = new(nodesRecord)
	if record.Whole, err = check.DigestOf(whole); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(c.o.Dir.Path, "nodes-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, node := range c.o.Nodes() {
		replica := check.Replica{Node: node.Name}
		if replica.Digest, err = c.readNode(ctx, node, nodeDir(dir, len(record.Nodes))); err != nil {
			if ctx.Err() != nil {
				return nil, fmt.Errorf("read %s: %w", node.Name, context.Cause(ctx))
			}
			replica.Error = c.o.Scrub(err.Error())
		}
		record.Nodes = append(record.Nodes, replica)
	}
	for i := range record.Nodes {
		if r := &record.Nodes[i]; r.Error == "" && r.Digest != record.Whole {
			objects := c.o.Spec.Objects(c.o.Workload.Header())
			if err := compareNode(whole, nodeDir(dir, i), objects.Name, r); err != nil {
				return nil, fmt.Errorf("compare %s with the cluster: %w", r.Node, err)
			}
			r.Behind = r.Behind && c.o.MayLag
		}
	}
	return record, nil
}

// nodeDir returns the directory of the i-th node's end state until all are compared.
func nodeDir(dir string, i int) string { return filepath.Join(dir, fmt.Sprint(i)) }

// readNode downloads the data of a node into a new directory. The node of a whole database exists, so it is asked
// again, as in Reach.
func (c *conductor) readNode(ctx context.Context, node Node, dir string) (digest check.Digest, err error) {
	if c.unwhole != "" {
		return downloadNode(ctx, node, dir)
	}
	err = Reach(ctx, func() (err error) {
		digest, err = downloadNode(ctx, node, dir)
		return err
	})
	return digest, err
}

// downloadNode downloads the data of a node into a new directory.
func downloadNode(ctx context.Context, node Node, dir string) (digest check.Digest, err error) {
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o777)); err != nil {
		return digest, err
	}
	if err := keepEnd(dir, func(end *history.EndWriter) error { return node.EndState(ctx, end) }); err != nil {
		return digest, err
	}
	end, err := history.OpenEnd(dir)
	if err != nil {
		return digest, err
	}
	defer func() { err = errors.Join(err, end.Close()) }()
	return check.DigestOf(end)
}

func compareNode(whole *history.End, dir string, object func(n uint64) string, r *check.Replica) error {
	end, err := history.OpenEnd(dir)
	if err != nil {
		return err
	}
	d, err := check.Compare(whole, end, object)
	r.Differences, r.More, r.Behind = d.First, d.Count-len(d.First), d.Behind
	return errors.Join(err, end.Close())
}

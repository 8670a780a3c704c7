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

// NodesFile keeps what every node of a cluster held after the last heal.
const NodesFile = "nodes.json"

// Node is one node of the cluster that is driven, to be read by itself at the end.
type Node struct {
	Name string
	// EndState downloads what this node alone holds.
	EndState func(ctx context.Context, end *history.EndWriter) error
}

// nodesRecord is nodes.json.
type nodesRecord struct {
	Identity   *history.Identity `json:"identity"`
	Faults     int               `json:"faults"`      // how many there were, those included that were left out
	FaultLines int               `json:"fault_lines"` // of faults.jsonl
	Error      string            `json:"error"`       // why the database did not become whole; empty if it did
	Whole      check.Digest      `json:"whole"`       // what was downloaded from the cluster as one
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

// How often, and how long after each other, nodes that differ are read again.
const (
	compareTries = 3
	compareAgain = time.Second
)

// compareNodes downloads the end state from every node and keeps how it differs
// from the one that was downloaded from the cluster.
func (c *conductor) compareNodes(ctx context.Context) error {
	switch {
	case c.o.Nemesis == nil:
		return nil
	case c.o.Nodes == nil:
		return c.keepNodes(new(nodesRecord))
	}
	for try := 1; ; try++ {
		record, err := c.readEveryNode(ctx)
		if err != nil {
			return err
		}
		// A transfer that its client had given up may commit between two of the
		// downloads: only what stays different is different.
		if try == compareTries || check.SameReplicas(record.Whole, record.Nodes).Status != check.Invalid {
			return c.keepNodes(record)
		}
		time.Sleep(compareAgain)
		if err := c.download(ctx); err != nil {
			return err
		}
	}
}

func (c *conductor) keepNodes(record *nodesRecord) error {
	record.Identity, record.Faults, record.FaultLines, record.Error = c.result.Identity, c.faultCount, c.faultLines, c.unwhole
	return c.o.Dir.writeJSON(NodesFile, record)
}

// allNodes are the nodes of the record, and as not read those of the recorded names
// that are missing there, and those that are there and not among the names.
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
	for _, node := range c.o.Nodes() {
		replica := check.Replica{Node: node.Name}
		if err := c.compareNode(ctx, node, whole, record.Whole, &replica); err != nil {
			if ctx.Err() != nil {
				return nil, fmt.Errorf("read %s: %w", node.Name, context.Cause(ctx))
			}
			replica.Error = c.o.Scrub(err.Error())
		}
		record.Nodes = append(record.Nodes, replica)
	}
	return record, nil
}

func (c *conductor) compareNode(ctx context.Context, node Node, whole *history.End, digest check.Digest, replica *check.Replica) (err error) {
	dir, err := os.MkdirTemp(c.o.Dir.Path, "node-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := keepEnd(dir, func(end *history.EndWriter) error { return node.EndState(ctx, end) }); err != nil {
		return err
	}
	end, err := history.OpenEnd(dir)
	if err != nil {
		return err
	}
	defer end.Close()
	if replica.Digest, err = check.DigestOf(end); err != nil || replica.Digest == digest {
		return err
	}
	replica.Difference, err = check.Difference(whole, end, c.o.Spec.Objects(c.o.Workload.Header()).Name)
	return err
}

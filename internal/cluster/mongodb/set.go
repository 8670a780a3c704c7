package mongodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/wait"
)

// heartbeats is the number of heartbeats of a member in an election time-out, as in MongoDB's defaults of 2 s and 10
// s. All members lose their source of the log when the primary moves. With fewer than one heartbeat, such a member
// does not hear of the new primary in time and stands for election itself
// (src/mongo/db/repl/topology_coordinator.cpp, 4.2).
const heartbeats = 5

// set is a replica set of some of the servers.
type set struct {
	servers *servers
	name    string
	role    string      // additional option of its servers: --shardsvr or --configsvr
	formed  atomic.Bool // it was initiated
}

// nodes returns the nodes of the set.
func (s *set) nodes() []*node {
	return slices.DeleteFunc(s.servers.List(), func(n *node) bool { return n.set != s })
}

// members names the set and its nodes, in the notation of config servers and mongos.
func (s *set) members() string {
	return s.name + "/" + cluster.Join(s.nodes(), func(n *node) string { return n.address.String() })
}

// start starts the nodes and forms the replica set.
func (s *set) start(ctx context.Context) error {
	if err := cluster.RestartAll(ctx, s.nodes()); err != nil {
		return err
	}
	return s.initiate(ctx)
}

// initiate makes the running nodes a replica set and returns when it is healthy.
func (s *set) initiate(ctx context.Context) error {
	members := bson.A{}
	for i, n := range s.nodes() {
		members = append(members, bson.D{{Key: "_id", Value: i}, {Key: "host", Value: n.address.String()}})
	}
	config := bson.D{
		{Key: "_id", Value: s.name}, {Key: "protocolVersion", Value: 1}, {Key: "members", Value: members},
		{Key: "settings", Value: bson.D{
			{Key: "electionTimeoutMillis", Value: s.servers.params.electionTimeout.Milliseconds()},
			{Key: "heartbeatIntervalMillis", Value: (s.servers.params.electionTimeout / heartbeats).Milliseconds()},
		}},
	}
	if s.role == configServer {
		config = append(config, bson.E{Key: "configsvr", Value: true})
	}
	_, err := s.nodes()[0].server().run(ctx, changeTimeout, bson.D{{Key: "replSetInitiate", Value: config}})
	if err != nil {
		return fmt.Errorf("initiate the replica set %s: %w", s.name, err)
	}
	s.formed.Store(true)
	if err := wait.Retry(ctx, func() error { return s.checkHealthy(ctx) }); err != nil {
		return fmt.Errorf("wait until the replica set %s is healthy: %w", s.name, err)
	}
	return nil
}

// primary waits until there is a primary.
func (s *set) primary(ctx context.Context) (primary *node, err error) {
	err = wait.Retry(ctx, func() (err error) {
		primary, err = s.named(ctx)
		return err
	})
	return primary, err
}

// named returns the running node that a majority of the voting nodes names as the primary of one term.
func (s *set) named(ctx context.Context) (*node, error) {
	type lead struct {
		host string
		term int64
	}
	voters := slices.DeleteFunc(s.nodes(), func(n *node) bool { return n.mute.Load() })
	return cluster.Named(ctx, voters, func(ctx context.Context, n *node) lead {
		status, err := n.server().status(ctx)
		if host := status.primary(); err == nil && host != "" {
			return lead{host, status.Term}
		}
		return lead{}
	}, func(n *node, l lead) bool { return n.address.String() == l.host && n.Awake() })
}

// writes returns the primary that named returns, if it accepts writes.
func (s *set) writes(ctx context.Context) (*node, error) {
	primary, err := s.named(ctx)
	if err != nil {
		return nil, err
	}
	if writable, err := primary.server().serves(ctx, true); err != nil || !writable {
		return nil, errors.Join(fmt.Errorf("%s does not accept writes yet", primary.Name()), err)
	}
	return primary, nil
}

// join starts a new node and lets it copy all data before it gets a vote.
func (s *set) join(ctx context.Context, n *node) error {
	err := n.vote(ctx, 0)
	if err == nil {
		err = n.Server.Restart(ctx)
	}
	if err == nil {
		err = n.vote(ctx, 1)
	}
	return err
}

// leave removes a node from the set; a primary steps down first.
func (s *set) leave(ctx context.Context, n *node) error {
	return wait.Retry(ctx, func() error {
		primary, err := s.named(ctx)
		switch {
		case err != nil:
			return err
		case primary == n:
			_, err := n.server().run(ctx, changeTimeout, bson.D{{Key: "replSetStepDown", Value: 60}})
			return errors.Join(fmt.Errorf("%s is primary", n.Name()), err)
		}
		return primary.server().reconfigure(ctx, func(c *config) bool { return c.expel(n) })
	})
}

// checkHealthy returns nil if all nodes are Healthy.
func (s *set) checkHealthy(ctx context.Context) error { return Healthy(ctx, s.asked()) }

// asked returns the nodes as Servers.
func (s *set) asked() (list []Server) {
	for _, n := range s.nodes() {
		list = append(list, n.server())
	}
	return list
}

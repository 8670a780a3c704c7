package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/wait"
)

// named returns the running node that a majority of the nodes names as the leader of one term.
func (c *Cluster) named(ctx context.Context) (*node, error) {
	type lead struct{ member, term uint64 }
	return cluster.Named(ctx, c.List(), func(ctx context.Context, n *node) lead {
		s, err := n.status(ctx)
		if err != nil || s.Leader == 0 {
			return lead{}
		}
		return lead{s.Leader, s.RaftTerm}
	}, func(n *node, l lead) bool { return n.id.Load() == l.member && n.Awake() })
}

// MoveLeader moves leadership to a node, unless it leads already.
func (c *Cluster) MoveLeader(ctx context.Context, to int) error {
	return c.HandOver(ctx, to, c.named, func(ctx context.Context, leader, target *node) error {
		_, err := ask(ctx, leader, ChangeTimeout, func(ctx context.Context, c *clientv3.Client) (*clientv3.MoveLeaderResponse, error) {
			return c.MoveLeader(ctx, target.id.Load())
		})
		return errors.Join(fmt.Errorf("%s leads", leader.Name()), err)
	})
}

// checkHealthy returns nil if exactly the nodes are members, name the same leader and have no alarm. Each must answer
// a linearizable read, and have applied all that any of them knew as committed at the beginning.
func (c *Cluster) checkHealthy(ctx context.Context) error {
	nodes := c.List()
	var committed, leader uint64
	for _, n := range nodes {
		s, err := n.status(ctx)
		if err != nil {
			return fmt.Errorf("ask %s for its status: %w", n.Name(), err)
		}
		committed, leader = max(committed, s.RaftIndex), s.Leader
	}
	for _, n := range nodes {
		if err := n.read(ctx); err != nil {
			return fmt.Errorf("read from %s: %w", n.Name(), err)
		}
		s, err := n.status(ctx)
		if err != nil {
			return fmt.Errorf("ask %s for its status: %w", n.Name(), err)
		}
		members, err := n.members(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("ask %s for the members: %w", n.Name(), err)
		case len(s.Errors) > 0:
			return fmt.Errorf("%s reports %q", n.Name(), s.Errors)
		case s.Leader != leader || leader == 0:
			return fmt.Errorf("%s names the leader %x and the last node %x", n.Name(), s.Leader, leader)
		case s.RaftAppliedIndex < committed:
			return fmt.Errorf("%s has applied %d of %d entries", n.Name(), s.RaftAppliedIndex, committed)
		case !areMembers(members.Members, nodes):
			return fmt.Errorf("%s lists the members %+v", n.Name(), members.Members)
		}
	}
	return nil
}

// areMembers reports whether the members are the nodes, each started and with a vote.
func areMembers(members []*etcdserverpb.Member, nodes []*node) bool {
	return len(members) == len(nodes) && !slices.ContainsFunc(nodes, func(n *node) bool {
		return !slices.ContainsFunc(members, func(m *etcdserverpb.Member) bool {
			return m.Name == n.Name() && m.ID == n.id.Load() && !m.IsLearner
		})
	})
}

// Add makes one more host with a node that joins the cluster.
func (c *Cluster) Add(ctx context.Context) (int, error) {
	return c.AddNode(ctx, func(ctx context.Context, n *node) error { return n.Server.Restart(ctx) }, c.leave)
}

// Remove removes a node from the cluster, ends it and deletes its data. It removes the membership first, because a
// node without membership would disturb elections.
func (c *Cluster) Remove(ctx context.Context, number int) error {
	return c.RemoveNode(ctx, number, c.leave)
}

func (c *Cluster) leave(ctx context.Context, n *node) error {
	return n.change(ctx, func(via *node) error { return n.expel(ctx, via) })
}

// join makes the node, whose folder must be empty, a new member.
func (n *node) join(ctx context.Context) error {
	err := n.change(ctx, func(via *node) error {
		if err := n.expel(ctx, via); err != nil {
			return err
		}
		_, err := ask(ctx, via, ChangeTimeout, func(ctx context.Context, c *clientv3.Client) (*clientv3.MemberAddResponse, error) {
			return c.MemberAdd(ctx, []string{"http://" + n.peer.String()})
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("join the etcd cluster: %w", err)
	}
	n.joined.Store(true)
	return nil
}

// change calls do for the node through another node that answers a linearizable read, until it succeeds. With the
// default --strict-reconfig-check, etcd refuses changes until a node has been connected to the others for 5 s.
func (n *node) change(ctx context.Context, do func(via *node) error) error {
	return wait.Retry(ctx, func() error {
		err := errors.New("no other node runs")
		for _, via := range n.cluster.List() {
			if via == n || !via.Awake() {
				continue
			}
			if err = via.read(ctx); err == nil {
				err = do(via)
			}
			if err == nil {
				return nil
			}
		}
		return err
	})
}

// expel removes every member with the node's name or address. The list may lack a member whose request's answer was
// lost. Then the next step is refused and repeated with a newer list.
func (n *node) expel(ctx context.Context, via *node) error {
	members, err := via.members(ctx)
	if err != nil {
		return err
	}
	for _, m := range members.Members {
		if m.Name != n.Name() && !slices.Contains(m.PeerURLs, "http://"+n.peer.String()) {
			continue
		}
		_, err := ask(ctx, via, ChangeTimeout, func(ctx context.Context, c *clientv3.Client) (*clientv3.MemberRemoveResponse, error) {
			return c.MemberRemove(ctx, m.ID)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

package mysql

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"stroppy/internal/cluster"
)

// Group is a running group of MySQL servers with Group Replication. Its supervisor acts like an operator. It lets
// members that are outside join the group, and makes a group of the member with the newest data if none is left. For
// this all members must answer, because any of them may have the only copy of an acknowledged transaction. So after
// all members were killed, restart them at the same time.
type Group struct {
	*cluster.NodeSet[*member]
	cluster.EventLog
	params   params
	programs programs
	name     string // group_replication_group_name, a UUID

	consistency string // group_replication_consistency of the members

	joining sync.Map // *member: it is joining
	leader  *member  // the last noted leader; used only by the supervisor
}

// PrimaryGroup is a group with one primary.
type PrimaryGroup struct{ *Group }

var (
	_ cluster.Mover     = PrimaryGroup{}
	_ cluster.LocalNode = (*member)(nil)
)

func startGroup(ctx context.Context, o cluster.Options) (cluster.Local, error) {
	params, programs, lacks, err := mySQLGroup.prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	describe := func() *Group {
		g := &Group{params: params, programs: programs, name: newUUID()}
		g.NodeSet = cluster.NewNodeSet(fmt.Sprintf("%s:%d", mySQLGroup.name, o.Nodes), g.newMember, g.checkHealthy)
		return g
	}
	kind := mySQLGroup.launched(lacks)
	if params.group.multiPrimary {
		return cluster.AsLocal(cluster.Launch(ctx, kind, o, describe, (*Group).start))
	}
	return cluster.AsLocal(cluster.Launch(ctx, kind, o, func() PrimaryGroup {
		g := describe()
		g.LedBy("the primary of the group", g.primary)
		return PrimaryGroup{g}
	}, PrimaryGroup.start))
}

func (g *Group) start(ctx context.Context) error {
	if err := g.Each(func(m *member) error { return m.initialize(ctx) }); err != nil {
		return err
	}
	g.Tasks.Go(g.supervise)
	if err := g.Each(func(m *member) error { return m.Restart(ctx) }); err != nil {
		return err
	}
	return g.List()[0].ask(ctx, "SELECT @@GLOBAL.group_replication_consistency", &g.consistency)
}

// newUUID returns a random UUID of version 4 (RFC 9562).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Description describes the failover and its settings.
func (g *Group) Description() string {
	mode := "with one primary"
	if g.params.group.multiPrimary {
		mode = "with all members as primaries"
	}
	return fmt.Sprintf("by Group Replication %s (group_replication_consistency %s, member_expel_timeout %v, unreachable_majority_timeout %v); "+
		"members that have left are let in again by stroppy", mode, g.consistency, g.params.group.expel, majorityTimeout)
}

// URL returns the address of all members, of which a client uses one that accepts writes. With several primaries its
// sessions start with different ones.
func (g *Group) URL() string {
	u := urlOf(g.Addresses(func(m *member) string { return m.address.String() }))
	if g.params.group.multiPrimary {
		u.RawQuery = url.Values{"spread": {"true"}}.Encode()
	}
	return u.String()
}

// moveLimit bounds one move of leadership, in which the old primary lets its transactions end.
const moveLimit = 20 * time.Second

// MoveLeader makes a member the primary by group_replication_set_as_primary, unless it is the primary already.
func (g PrimaryGroup) MoveLeader(ctx context.Context, to int) error {
	return g.HandOver(ctx, to, g.primary, func(ctx context.Context, _, target *member) error {
		began := time.Now()
		err := target.do(ctx, moveLimit, "SELECT group_replication_set_as_primary(@@server_uuid)")
		if err == nil {
			err = g.AwaitLead(ctx, target)
		}
		if err == nil {
			g.Note("%s is primary, %v after group_replication_set_as_primary was called", target.Name(), time.Since(began).Round(time.Millisecond))
		}
		return err
	})
}

// seeds returns the addresses at which members accept messages of the group.
func (g *Group) seeds() string {
	return g.Addresses(func(m *member) string { return m.group.String() })
}

// hosts returns the members' hosts, each once.
func (g *Group) hosts() string {
	var all []string
	for _, m := range g.List() {
		if host := m.address.Addr().String(); len(all) == 0 || all[len(all)-1] != host {
			all = append(all, host)
		}
	}
	return strings.Join(all, ",")
}

package clustertest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/fault"
)

// Kind describes a kind of cluster to its tests.
type Kind struct {
	Engine string // as in "skipped engine: redis"
	Launch func(ctx context.Context, o cluster.Options) (cluster.Local, error)
	Params map[string][]string // default parameters of its clusters

	// Prepare makes the table of the payments; nil if none is needed.
	Prepare func(ctx context.Context, c cluster.Local) error
	// Teller makes client i. try grows with each new teller of the client, so that it can choose another node.
	Teller func(ctx context.Context, c cluster.Local, i, try int) (Teller, error)
	// Holds returns the contents of a node: a value for each number of a payment.
	Holds func(ctx context.Context, c cluster.Local, node int) (map[string]string, error)
	// Sound checks all contents of a node; nil if the payments show everything.
	Sound func(held map[string]string) error

	// Mend does an operator's repair if a node does not return by itself after a heal; nil if all nodes do.
	Mend func(ctx context.Context, c cluster.Local) error
	// Loses names the injections that may lose acknowledged payments.
	Loses []string
	// LeaderOnly is set if clients need the leader. A leader that only the other nodes reach then serves nobody.
	LeaderOnly bool
	// Address returns the HOST:PORT of the first node; nil: it is in the node's URL.
	Address func(c cluster.Local) string
	// Supervised is set if leadership moves only when the leader is lost or hands it over.
	Supervised bool
}

// scene is one injection into a cluster while clients pay.
type scene struct {
	testing.TB
	c      cluster.Local
	p      *Payments
	leader cluster.LocalNode
	others []cluster.LocalNode
	ctx    context.Context
}

// injection is one fault of a cluster, during which clients pay, and its heal.
type injection struct {
	name  string
	moves bool // leadership moves
	do    func(*scene)
}

var injections = []injection{
	{"kill the leader", true, func(s *scene) {
		Must(s, s.leader.Kill(s.ctx))
		Must(s, s.leader.Kill(s.ctx)) // the node is dead already
		s.goOn()
		s.down(s.leader)
		Must(s, s.leader.Restart(s.ctx))
	}},
	{"pause the leader", true, func(s *scene) {
		Must(s, s.leader.Pause(s.ctx))
		s.goOn()
		Must(s, s.leader.Resume(s.ctx))
		if !s.leader.Running() {
			s.Error("a node that was resumed is down")
		}
	}},
	{"pause the leader for a moment", false, func(s *scene) {
		Must(s, s.leader.Pause(s.ctx))
		Must(s, wait.Sleep(s.ctx, 300*time.Millisecond))
		Must(s, s.leader.Resume(s.ctx))
	}},
	{"stop the leader", true, func(s *scene) {
		Must(s, s.leader.Terminate(s.ctx))
		s.goOn()
		s.down(s.leader)
		Must(s, s.leader.Restart(s.ctx))
	}},
	{"kill a follower", false, func(s *scene) {
		Must(s, s.others[0].Kill(s.ctx))
		s.p.GoOn(20)
		s.down(s.others[0])
		Must(s, s.others[0].Restart(s.ctx))
	}},
	{"pause a follower", false, func(s *scene) {
		Must(s, s.others[0].Pause(s.ctx))
		s.p.GoOn(20)
		Must(s, s.others[0].Resume(s.ctx))
	}},
	{"move the lead", true, (*scene).moveLead},
	{"replace a follower", false, func(s *scene) { s.replace(s.others[0]) }},
	{"replace the leader", true, func(s *scene) { s.replace(s.leader) }},
	{"kill all and restart", false, func(s *scene) {
		s.all(func(n cluster.LocalNode) error { return n.Kill(s.ctx) })
		s.all(func(n cluster.LocalNode) error { return n.Restart(s.ctx) })
	}},
	{"stop all and restart", false, func(s *scene) {
		s.all(func(n cluster.LocalNode) error { return n.Terminate(s.ctx) })
		s.all(func(n cluster.LocalNode) error { return n.Restart(s.ctx) })
	}},
	{"cut a follower off", false, func(s *scene) { s.cut(s.others[0].Number(), s.without(s.others[0])...) }},
	{"cut the leader off", false, func(s *scene) { s.cut(s.leader.Number(), s.without(s.leader)...) }},
	{cutClients, true, func(s *scene) { s.cut(fault.Client, s.leader.Number()) }},
}

const cutClients = "cut the clients off the leader"

// Hurt runs all injections on one cluster, each with clients that pay. If all nodes are equal, injections into the
// first node count for a follower too.
func (k Kind) Hurt(t *testing.T, c cluster.Local) {
	_, err := c.Leader(Within(t, WaitLimit))
	equal := errors.Is(err, cluster.ErrNoLeader)
	for _, i := range injections {
		if equal && (strings.Contains(i.name, "a follower") || i.name == "move the lead") || k.LeaderOnly && i.name == cutClients {
			continue
		}
		if !t.Run(i.name, func(t *testing.T) {
			s := &scene{TB: t, c: c, p: k.Pay(t, c), ctx: Within(t, WaitLimit)}
			s.leader, s.others = Leader(t, c)
			i.do(s)
			s.p.GoOn(20)
			if lost := s.p.End(i.name); lost > 0 && !slices.Contains(k.Loses, i.name) {
				t.Errorf("%d acknowledged payments are lost", lost)
			}
			if now, _ := Leader(t, c); k.Supervised && (now != s.leader) != i.moves {
				t.Errorf("%s leads, and %s did before", now.Name(), s.leader.Name())
			}
		}) {
			t.FailNow() // the cluster is not ready for the next injection
		}
	}
}

// down checks that a node is dead and reported as dead.
func (s *scene) down(n cluster.LocalNode) {
	s.Helper()
	if n.Running() || len(n.PIDs()) > 0 {
		s.Errorf("%s runs", n.Name())
	}
	if n.Pause(s.ctx) == nil {
		s.Errorf("%s, which is dead, was paused", n.Name())
	}
	if a, ok := n.(interface {
		Absent() error
		Log() string
	}); ok {
		want := n.Name() + " is down"
		if log, err := os.ReadFile(a.Log()); err == nil && len(log) > 0 {
			want += "; its log ends: "
		}
		if got := a.Absent(); got == nil || !strings.Contains(got.Error(), want) {
			s.Errorf("why %s, which is dead, does not answer: %v, want %s", n.Name(), got, want)
		}
	}
	// A busy machine may take some time to check this node.
	for limit := 100 * time.Millisecond; ; limit *= 5 {
		short, cancel := context.WithTimeout(s.ctx, limit)
		err := s.c.WaitHealthy(short)
		cancel()
		if err != nil && strings.Contains(err.Error(), n.Name()) {
			return
		}
		if err == nil || s.ctx.Err() != nil {
			s.Errorf("with %s dead the cluster is whole: %v", n.Name(), err)
			return
		}
	}
}

// goOn checks that another node leads and that payments continue.
func (s *scene) goOn() {
	s.Helper()
	Succeeds(s, s.c, s.leader)
	s.p.GoOn(20)
}

func (s *scene) moveLead() {
	mover := s.c.(cluster.Mover)
	for range 2 { // the second move changes nothing
		Must(s, mover.MoveLeader(s.ctx, s.others[0].Number()))
		s.p.GoOn(20)
		if now, _ := Leader(s, s.c); now != s.others[0] {
			s.Errorf("%s leads, not %s", now.Name(), s.others[0].Name())
		}
	}
	if err := mover.MoveLeader(s.ctx, 99); err == nil {
		s.Error("leadership moved to a node that does not exist")
	}
}

// replace checks that a node loses its data when it is replaced.
func (s *scene) replace(n cluster.LocalNode) {
	mark := filepath.Join(n.Dir(), "mark")
	Must(s, os.WriteFile(mark, nil, 0o600))
	Must(s, n.Replace(s.ctx))
	if _, err := os.Stat(mark); err == nil {
		s.Error("the old data still exist")
	}
}

func (s *scene) all(do func(cluster.LocalNode) error) {
	s.Helper()
	nodes := cluster.LocalNodes(s.c)
	errs := make(chan error, len(nodes))
	for _, n := range nodes {
		go func() { errs <- do(n) }()
	}
	var err error
	for range nodes {
		err = errors.Join(err, <-errs)
	}
	Must(s, err)
}

// cut cuts a place off from others and checks that payments continue.
func (s *scene) cut(place int, others ...int) {
	heal := Cut(s, s.c, place, others...)
	s.p.GoOn(50)
	heal()
}

func (s *scene) without(n cluster.LocalNode) (others []int) {
	for _, m := range cluster.LocalNodes(s.c) {
		if m != n {
			others = append(others, m.Number())
		}
	}
	return others
}

// Resize adds and removes nodes while clients pay. The node that came last must be a member. If all nodes are equal,
// none leads.
func (k Kind) Resize(t *testing.T, c cluster.Local) {
	r := c.(cluster.Resizer)
	ctx := Within(t, WaitLimit)
	p := k.Pay(t, c)
	before := cluster.LocalNodes(c)
	count := len(before)
	number, err := r.Add(ctx)
	Must(t, err)
	nodes := cluster.LocalNodes(c)
	if number != before[count-1].Number()+1 || len(nodes) != count+1 || nodes[count].Number() != number {
		t.Fatalf("the new node has the number %d after %s; there are %d", number, before[count-1].Name(), len(nodes))
	}
	added := nodes[count]
	if c.NodeURL(number) == "" || !strings.Contains(c.URL(), ",") {
		t.Errorf("after Add: %s, %s", c.URL(), c.NodeURL(number))
	}
	Must(t, c.WaitHealthy(ctx))
	mover, leads := c.(cluster.Mover)
	if leads {
		Must(t, mover.MoveLeader(ctx, number))
	}
	p.GoOn(20)
	_, others := Leader(t, c)
	Must(t, r.Remove(ctx, others[0].Number()))
	Must(t, r.Remove(ctx, number)) // the leader
	p.GoOn(20)
	if now, _ := Leader(t, c); leads && now == added || len(cluster.LocalNodes(c)) != count-1 || c.NodeURL(number) != "" {
		t.Errorf("%s leads %d nodes; the one that was removed is at %q", now.Name(), len(cluster.LocalNodes(c)), c.NodeURL(number))
	}
	if _, err := os.Stat(added.Dir()); err == nil || added.Running() {
		t.Error("the removed node still exists")
	}
	if err := added.Restart(ctx); !errors.Is(err, cluster.ErrRemoved) {
		t.Errorf("a removed node was restarted: %v", err)
	}
	if r.Remove(ctx, number) == nil {
		t.Error("a node was removed twice")
	}
	if again, err := r.Add(ctx); err != nil || again != number+1 {
		t.Errorf("the next node has the number %d: %v", again, err)
	}
	p.EndWell("add, move the lead, remove")
}

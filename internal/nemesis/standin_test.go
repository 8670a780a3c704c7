package nemesis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"stroppy/internal/cluster"
)

// standIn is a node whose only process sleeps: it can be killed and stopped like
// any, and has no time of its own, so that a fake clock can drive it.
type standIn struct {
	cluster *standIns
	number  int
	dir     string

	mu  sync.Mutex
	cmd *exec.Cmd

	// What goes wrong with it.
	immortal, awake, asleep, keepsData bool
	restartErr                         error
}

func (s *standIn) Number() int         { return s.number }
func (s *standIn) Name() string        { return nodeName(s.number) }
func (s *standIn) Host() *cluster.Host { return nil }
func (s *standIn) Dir() string         { return s.dir }
func (s *standIn) Running() bool       { return len(s.PIDs()) > 0 }

func (s *standIn) PIDs() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return nil
	}
	return []int{s.cmd.Process.Pid}
}

func (s *standIn) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		return nil
	}
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd = cmd
	return nil
}

func (s *standIn) end(what string) error {
	s.cluster.happened("%s %s", what, s.Name())
	if s.immortal {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return nil
	}
	err := s.cmd.Process.Kill()
	_ = s.cmd.Wait() // that it was killed is what it says
	s.cmd = nil
	return err
}

func (s *standIn) Kill() error                     { return s.end("kill") }
func (s *standIn) Terminate(context.Context) error { return s.end("stop") }

// Restart returns, like that of a node of a quorum, when a majority runs.
func (s *standIn) Restart(ctx context.Context) error {
	s.cluster.happened("restart %s", s.Name())
	if s.restartErr != nil {
		return s.restartErr
	}
	if err := s.start(); err != nil {
		return err
	}
	for {
		up := 0
		for _, n := range s.cluster.Nodes() {
			if n.Running() {
				up++
			}
		}
		if up > len(s.cluster.nodes)/2 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("restart %s: %w", s.Name(), ctx.Err())
		case <-time.After(time.Second):
		}
	}
}

func (s *standIn) Pause() error {
	s.cluster.happened("pause %s", s.Name())
	if s.awake {
		return nil
	}
	return s.signal(syscall.SIGSTOP, "T")
}

func (s *standIn) Resume() error {
	s.cluster.happened("resume %s", s.Name())
	if s.asleep {
		return nil
	}
	return s.signal(syscall.SIGCONT, "SR")
}

// signal returns when the process is in one of the states.
func (s *standIn) signal(signal syscall.Signal, states string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return nil
	}
	if err := s.cmd.Process.Signal(signal); err != nil {
		return err
	}
	for {
		if _, state := look(s.cmd.Process.Pid); strings.ContainsRune(states, rune(state)) {
			return nil
		}
	}
}

func (s *standIn) Replace(ctx context.Context) error {
	s.cluster.happened("replace %s", s.Name())
	if s.keepsData {
		return s.start()
	}
	entries, err := os.ReadDir(s.dir)
	for _, e := range entries {
		err = errors.Join(err, os.Remove(filepath.Join(s.dir, e.Name())))
	}
	return errors.Join(err, s.start())
}

// standIns is a cluster of them, with a network of which it is only noted who is
// cut off from whom.
type standIns struct {
	t       *testing.T
	nodes   []*standIn
	leader  int
	equals  bool
	asking  time.Duration // a question for the leader takes so long
	began   time.Time
	mu      sync.Mutex
	log     []string
	cuts    map[cluster.Cut]int
	links   map[int]cluster.Link
	loop    string // why there are no links
	leaky   bool   // what is cut stays open
	stuck   bool   // what is healed stays cut
	numb    bool   // what is shaped stays as it was
	cutErr  error
	moveErr error
}

func newStandIns(t *testing.T, count int) *standIns {
	c := &standIns{t: t, began: time.Now(), cuts: map[cluster.Cut]int{}, links: map[int]cluster.Link{}}
	for range count {
		if _, err := c.Add(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			n.immortal = false
			if err := n.end("clean up"); err != nil {
				t.Error(err)
			}
		}
	})
	c.log = nil
	return c
}

func (c *standIns) happened(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, fmt.Sprintf("%s ", time.Since(c.began).Round(100*time.Millisecond))+fmt.Sprintf(format, args...))
}

func (c *standIns) URL() string               { return "" }
func (c *standIns) NodeURL(int) string        { return "" }
func (c *standIns) Network() *cluster.Network { return nil }
func (c *standIns) Stop() error               { return nil }

func (c *standIns) WaitHealthy(context.Context) error {
	for _, n := range c.Nodes() {
		if !n.Running() {
			return fmt.Errorf("%s is down", n.Name())
		}
	}
	return nil
}

func (c *standIns) Nodes() []cluster.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]cluster.Node, len(c.nodes))
	for i, n := range c.nodes {
		list[i] = n
	}
	return list
}

func (c *standIns) Leader(ctx context.Context) (int, error) {
	if c.equals {
		return 0, cluster.ErrNoLeader
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(c.asking):
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leader, nil
}

func (c *standIns) Add(context.Context) (int, error) {
	c.mu.Lock()
	number := 0
	if len(c.nodes) > 0 {
		number = c.nodes[len(c.nodes)-1].number + 1
	}
	n := &standIn{cluster: c, number: number, dir: c.t.TempDir()}
	c.nodes = append(c.nodes, n)
	c.mu.Unlock()
	c.happened("add %s", n.Name())
	return number, n.start()
}

func (c *standIns) Remove(_ context.Context, node int) error {
	c.mu.Lock()
	i := slices.IndexFunc(c.nodes, func(n *standIn) bool { return n.number == node })
	n := c.nodes[i]
	c.nodes = slices.Delete(slices.Clone(c.nodes), i, i+1)
	c.mu.Unlock()
	return n.end("remove")
}

func (c *standIns) MoveLeader(_ context.Context, to int) error {
	c.happened("move the lead to %s", nodeName(to))
	if c.moveErr == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.leader = to
	}
	return c.moveErr
}

func (c *standIns) Loopback() string { return c.loop }

func (c *standIns) Cut(_ context.Context, cuts []cluster.Cut) (func() error, error) {
	c.happened("cut %v", cuts)
	if c.cutErr != nil {
		return nil, c.cutErr
	}
	c.count(cuts, 1)
	return func() error {
		c.happened("mend %v", cuts)
		c.count(cuts, -1)
		return nil
	}, nil
}

func (c *standIns) count(cuts []cluster.Cut, by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cut := range cuts {
		c.cuts[cut] += by
	}
}

func (c *standIns) Reaches(_ context.Context, from, to int) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cut := c.cuts[cluster.Cut{From: from, To: to}] > 0
	return c.leaky || !cut && !c.stuck, nil
}

func (c *standIns) Shape(_ context.Context, host int, link cluster.Link) (func() error, error) {
	c.happened("shape %s", nodeName(host))
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.numb {
		c.links[host] = link
	}
	return func() error {
		c.happened("unshape %s", nodeName(host))
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.stuck {
			delete(c.links, host)
		}
		return nil
	}, nil
}

func (c *standIns) link(host int) cluster.Link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.links)[host]
}

func (c *standIns) RoundTrip(_ context.Context, _, to int) (time.Duration, error) {
	return 2*c.link(to).Delay + 50*time.Microsecond, nil
}

func (c *standIns) Loss(_ context.Context, _, to, _ int) (float64, error) {
	return c.link(to).Loss, nil
}

func (c *standIns) Throughput(_ context.Context, _, to int, _ time.Duration) (int64, error) {
	if b := c.link(to).Bandwidth; b > 0 {
		return b, nil
	}
	return 1e9, nil
}

// begin starts the clock of a run.
func (c *standIns) begin() (clock func() int64) {
	began := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began = began
	return func() int64 { return int64(time.Since(began)) }
}

// nemesis makes the nemesis of a cluster of stand-ins.
func (c *standIns) nemesis(seed uint64, lines ...string) *Nemesis {
	c.t.Helper()
	n, err := newNemesis(c, c, script(c.t, lines...), seed)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// drive runs a script for so long on a fake clock and returns what it noted of
// injections that are over, in that order.
func (c *standIns) drive(duration time.Duration, seed uint64, lines ...string) (over []Injection) {
	c.t.Helper()
	n := c.nemesis(seed, lines...)
	clock := c.begin()
	ctx, cancel := context.WithTimeout(c.t.Context(), duration)
	defer cancel()
	begun := map[string]bool{}
	n.Run(ctx, clock, func(i Injection) {
		id := fmt.Sprint(i.Line, i.Scheduled)
		if !i.Over && (begun[id] || i.InEffect == 0 || i.Healing != 0) {
			c.t.Errorf("noted before it is over: %+v", i)
		}
		begun[id] = true
		if i.Over {
			over = append(over, i)
		}
	})
	return over
}

// bubble runs a test on a fake clock.
func bubble(t *testing.T, count int, test func(t *testing.T, c *standIns)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newStandIns(t, count)) })
}

// near tells whether a time of an injection is at most so much after another.
func near(t *testing.T, what string, got int64, want, slack time.Duration) {
	t.Helper()
	if d := time.Duration(got) - want; d < 0 || d > slack {
		t.Errorf("%s: at %v, want %v", what, time.Duration(got), want)
	}
}

// well holds that an injection succeeded in all.
func well(t *testing.T, i Injection) {
	t.Helper()
	if i.Failed() || i.Skipped != "" || i.Verified == "" || i.Target == "" || i.Injected == 0 || i.InEffect < i.Injected {
		t.Errorf("not injected and healed: %+v", i)
	}
}

// continued runs a nemesis for so long and returns the injections that are over.
func (c *standIns) continued(n *Nemesis, duration time.Duration) (over []Injection) {
	clock := c.begin()
	ctx, cancel := context.WithTimeout(c.t.Context(), duration)
	defer cancel()
	n.Run(ctx, clock, func(i Injection) {
		if i.Over {
			over = append(over, i)
		}
	})
	return over
}

package nemesis

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
)

// standIn is a node that only remembers what was done to it.
type standIn struct {
	cluster *standIns
	number  int

	mu         sync.Mutex
	up, paused bool
	resumed    bool // somebody let it go on since it was paused

	// These fields make the stand-in fail.
	immortal, awake, asleep bool
	restartErr, replaceErr  error
}

func (c *standIns) Witnesses() []int { return c.voters }

func (s *standIn) Number() int  { return s.number }
func (s *standIn) Name() string { return nodeName(s.number) }

func (s *standIn) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.up
}

func (s *standIn) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up = true
	return nil
}

func (s *standIn) end(what string) error {
	s.cluster.happened("%s %s", what, s.Name())
	if s.immortal {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up, s.paused = false, false
	return nil
}

func (s *standIn) Kill(context.Context) error      { return s.end("kill") }
func (s *standIn) Terminate(context.Context) error { return s.end("stop") }

// Restart returns when a majority runs, as for a node of a quorum.
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

func (s *standIn) Pause(context.Context) error {
	s.cluster.happened("pause %s", s.Name())
	if s.awake {
		return fmt.Errorf("a process of %s goes on", s.Name())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused, s.resumed = s.up, false
	return nil
}

func (s *standIn) StillPaused(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.up && s.resumed {
		return fmt.Errorf("something else let it go on: %s", s.Name())
	}
	return nil
}

func (s *standIn) Resume(context.Context) error {
	s.cluster.happened("resume %s", s.Name())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asleep && s.paused {
		return fmt.Errorf("%s is stopped yet", s.Name())
	}
	s.paused, s.resumed = false, true
	return nil
}

func (s *standIn) Replace(context.Context) error {
	s.cluster.happened("replace %s", s.Name())
	if s.replaceErr != nil {
		return s.replaceErr
	}
	return s.start()
}

// standIns is a cluster of them, with a network of which it is only noted who is
// cut off from whom.
type standIns struct {
	t      *testing.T
	nodes  []*standIn
	leader int
	equals bool
	asking time.Duration // a question for the leader takes so long
	began  time.Time
	mu     sync.Mutex
	log    []string
	links  []fault.Link // that were asked for
	loop   string       // why there are no links
	voters []int        // hosts that have a vote and no data

	cutErr, moveErr  error
	seenErr, healErr error // of what is done to links
}

func newStandIns(t *testing.T, count int) *standIns {
	c := &standIns{t: t, began: time.Now()}
	for range count {
		if _, err := c.Add(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c.log = nil
	return c
}

func (c *standIns) happened(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, fmt.Sprintf("%s ", time.Since(c.began).Round(100*time.Millisecond))+fmt.Sprintf(format, args...))
}

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
	n := &standIn{cluster: c, number: number}
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

func (c *standIns) LinkFaults(kind fault.LinkFault) error {
	if c.loop == "" {
		return nil
	}
	return fmt.Errorf("%s, so not %d", c.loop, kind)
}

// Partition and Degrade are as good as their word, unless they have to fail.
func (c *standIns) Partition(_ context.Context, cuts []fault.Cut) (fault.Effect, error) {
	c.happened("cut %v", cuts)
	if c.cutErr != nil {
		return fault.Effect{}, c.cutErr
	}
	return c.effect(fmt.Sprintf("mend %v", cuts))
}

func (c *standIns) Degrade(_ context.Context, nodes []int, link fault.Link) (fault.Effect, error) {
	c.happened("degrade %v", nodes)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.links = append(c.links, link)
	return c.effect(fmt.Sprintf("undo %v", nodes))
}

func (c *standIns) effect(heal string) (fault.Effect, error) {
	e := fault.Effect{Seen: "measured", Heal: func(context.Context) (string, error) {
		c.happened("%s", heal)
		return "measured again", c.healErr
	}}
	return e, c.seenErr
}

// begin starts the clock of a run.
func (c *standIns) begin() (clock func() time.Duration) {
	began := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began = began
	return func() time.Duration { return time.Since(began) }
}

// nemesis makes the nemesis of a cluster of stand-ins.
func (c *standIns) nemesis(seed uint64, lines ...string) *Nemesis {
	c.t.Helper()
	n, err := New(c, c, script(c.t, lines...), seed)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// drive runs a script for so long on a fake clock and returns what it noted of
// injections that are over, in that order.
func (c *standIns) drive(duration time.Duration, seed uint64, lines ...string) (over []fault.Injection) {
	c.t.Helper()
	n := c.nemesis(seed, lines...)
	clock := c.begin()
	ctx, cancel := context.WithTimeout(c.t.Context(), duration)
	defer cancel()
	begun := map[string]bool{}
	n.Run(ctx, clock, func(i fault.Injection) {
		id := fmt.Sprint(i.Line, i.Scheduled)
		if !i.Over && (begun[id] || i.InEffect == nil || i.Healing != nil) {
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

// near reports whether a time of an injection is at most so much after another.
func near(t *testing.T, what string, got *fault.Seconds, want, slack time.Duration) {
	t.Helper()
	at := time.Duration(0)
	if got != nil {
		at = time.Duration(*got)
	}
	if d := at - want; d < 0 || d > slack {
		t.Errorf("%s: at %v, want %v", what, at, want)
	}
}

// well holds that an injection succeeded in all.
func well(t *testing.T, i fault.Injection) {
	t.Helper()
	if i.Failed() || i.Skipped != "" || i.Verified == "" || i.Target == "" || i.At == 0 || i.InEffect == nil || *i.InEffect < i.At {
		t.Errorf("not injected and healed: %+v", i)
	}
}

// continued runs a nemesis for so long and returns the injections that are over.
func (c *standIns) continued(n *Nemesis, duration time.Duration) (over []fault.Injection) {
	clock := c.begin()
	ctx, cancel := context.WithTimeout(c.t.Context(), duration)
	defer cancel()
	n.Run(ctx, clock, func(i fault.Injection) {
		if i.Over {
			over = append(over, i)
		}
	})
	return over
}

// TestLinkFaultsHaveRequestedValues checks that link faults request the delay, loss or bandwidth of their text.
func TestLinkFaultsHaveRequestedValues(t *testing.T) {
	for line, want := range map[string]fault.Link{
		"slow n0 by 50ms varying 5ms for 1s": {Delay: 50 * time.Millisecond, Jitter: 5 * time.Millisecond},
		"lossy n0 by 5% for 1s":              {Loss: 0.05},
		"limit n0 to 1MB/s for 1s":           {Bandwidth: 1e6},
	} {
		bubble(t, 3, func(t *testing.T, c *standIns) {
			well(t, c.drive(10*time.Second, 1, line)[0])
			c.links[0].Seed = 0
			if len(c.links) != 1 || c.links[0] != want {
				t.Errorf("%s asked for %+v, want %+v", line, c.links, want)
			}
			if want := []string{"5s degrade [0]", "6s undo [0]"}; !slices.Equal(c.log, want) {
				t.Errorf("%s did %q, want %q", line, c.log, want)
			}
		})
	}
}

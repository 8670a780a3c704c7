package nemesis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
)

// steered is a stand-in that has a clock and a disk, whose effects are as good as
// their word unless they have to fail.
type steered struct {
	*standIn
	static, bare     error // why it cannot be steered or has no layer
	shared           error // why nobody can share its processors
	seenErr, healErr error
	lossErr          error
	dies             bool // it ends by itself where there is no space
}

func (s *steered) Steered() error    { return s.static }
func (s *steered) DiskFaults() error { return s.bare }

func (s *steered) effect(format string, args ...any) (fault.Effect, error) {
	what := fmt.Sprintf(format, args...)
	s.cluster.happened("%s %s", what, s.Name())
	return fault.Effect{Seen: what, Heal: func(context.Context) (string, error) {
		s.cluster.happened("heal %s %s", what, s.Name())
		return what + " healed", s.healErr
	}}, s.seenErr
}

func (s *steered) JumpClock(_ context.Context, by time.Duration) (fault.Effect, error) {
	return s.effect("jump by %v", by)
}

func (s *steered) DriftClock(_ context.Context, rate float64) (fault.Effect, error) {
	return s.effect("drift at %v", rate)
}

func (s *steered) FillDisk(ctx context.Context) (fault.Effect, error) {
	if s.dies {
		_ = s.Kill(ctx)
	}
	return s.effect("fill")
}

func (s *steered) SlowDisk(_ context.Context, perCall time.Duration) (fault.Effect, error) {
	return s.effect("slow by %v", perCall)
}

func (s *steered) Stressable() error { return s.shared }

func (s *steered) Stress(_ context.Context, processes int) (fault.Effect, error) {
	return s.effect("stress by %d", processes)
}

func (s *steered) Sync() error {
	s.cluster.happened("sync %s", s.Name())
	return nil
}

func (s *steered) LoseUnsynced() error {
	if s.Running() {
		return errors.New("it is running")
	}
	s.cluster.happened("lose %s", s.Name())
	return s.lossErr
}

// steeredOnes is a cluster of them.
type steeredOnes struct {
	*standIns
	nodes []*steered
}

func (c steeredOnes) Nodes() []cluster.Node {
	list := make([]cluster.Node, len(c.nodes))
	for i, n := range c.nodes {
		list[i] = n
	}
	return list
}

// TestUnseenClockOrDiskEffectIsReported checks that clock and disk faults request what their text names. An effect
// that is not seen, or does not end, is reported.
func TestUnseenClockOrDiskEffectIsReported(t *testing.T) {
	for _, c := range []struct {
		line      string
		broken    func(*steered)
		err, heal string
		how       string
		log       string
	}{
		{"clock n0 by 10s at 5s for 5s", nil, "", "", "jump by 10s; jump by 10s healed", "5s jump by 10s n0|10s heal jump by 10s n0"},
		{"clock n0 by -1h at 5s for 5s", nil, "", "", "jump by -1h0m0s", "5s jump by -1h0m0s n0|10s heal jump by -1h0m0s n0"},
		{"clock n0 at rate 1.05 at 5s for 5s", nil, "", "", "drift at 1.05", "5s drift at 1.05 n0|10s heal drift at 1.05 n0"},
		{"clock n0 by 10s at 5s for 5s", func(s *steered) { s.seenErr = errors.New("moved by 0s") }, "moved by 0s", "", "", "5s jump by 10s n0|5s heal jump by 10s n0"},
		{"clock n0 by 10s at 5s for 5s", func(s *steered) { s.healErr = errors.New("wrong by 10s") }, "", "wrong by 10s", "", "5s jump by 10s n0|10s heal jump by 10s n0"},
		{"disk-full n0 at 5s for 5s", nil, "", "", "fill; fill healed", "0s sync n0|0s sync n1|0s sync n2|5s fill n0|10s heal fill n0"},
		{"disk-full n0 at 5s for 5s", func(s *steered) { s.dies = true }, "", "", "fill; fill healed; n0 up again", "0s sync n0|0s sync n1|0s sync n2|5s kill n0|5s fill n0|10s heal fill n0|10s restart n0"},
		{"disk-full n0 at 5s for 5s", func(s *steered) { s.seenErr = errors.New("found space") }, "found space", "", "", "0s sync n0|0s sync n1|0s sync n2|5s fill n0|5s heal fill n0"},
		{"slow-disk n0 at 5s for 5s", nil, "", "", "slow by 100ms", "0s sync n0|0s sync n1|0s sync n2|5s slow by 100ms n0|10s heal slow by 100ms n0"},
		{"stress n0 at 5s for 5s", nil, "", "", "stress by 0; stress by 0 healed", "5s stress by 0 n0|10s heal stress by 0 n0"},
		{"stress n0 by 4 at 5s for 5s", nil, "", "", "stress by 4", "5s stress by 4 n0|10s heal stress by 4 n0"},
		{"stress n0 at 5s for 5s", func(s *steered) { s.seenErr = errors.New("had no processor") }, "had no processor", "", "", "5s stress by 0 n0|5s heal stress by 0 n0"},
		{"stress n0 at 5s for 5s", func(s *steered) { s.healErr = errors.New("not put back") }, "", "not put back", "", "5s stress by 0 n0|10s heal stress by 0 n0"},
		{"lose-unsynced n0 at 5s for 5s", nil, "", "", "n0 down, an unsynced file lost; n0 up again", "0s sync n0|0s sync n1|0s sync n2|5s kill n0|5s lose n0|10s restart n0"},
		{"lose-unsynced n0 at 5s for 5s", func(s *steered) { s.lossErr = errors.New("is there yet") }, "is there yet", "", "", "0s sync n0|0s sync n1|0s sync n2|5s kill n0|5s lose n0|5s restart n0"},
	} {
		t.Run(c.line, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, plain *standIns) {
				ones := steered3(plain)
				if c.broken != nil {
					c.broken(ones.nodes[0])
				}
				n, err := New(ones, plain, script(t, c.line), 1)
				if err != nil {
					t.Fatal(err)
				}
				over := plain.continued(n, time.Minute)
				if len(over) != 1 {
					t.Fatalf("%d injections, want 1: %+v", len(over), over)
				}
				i := over[0]
				if !strings.Contains(i.Error, c.err) || (c.err == "") != (i.Error == "") ||
					!strings.Contains(i.HealError, c.heal) || (c.heal == "") != (i.HealError == "") || !strings.Contains(i.Verified, c.how) {
					t.Errorf("%+v, want %q, %q, %q in it", i, c.err, c.heal, c.how)
				}
				if (i.Healed == nil) != i.Failed() {
					t.Errorf("healed: %+v", i)
				}
				if log := strings.Join(plain.log, "|"); log != c.log {
					t.Errorf("%s did %q, want %q", c.line, log, c.log)
				}
				if err := n.Whole(t.Context()); err != nil {
					t.Errorf("the cluster afterwards: %v", err)
				}
			})
		})
	}
}

func steered3(plain *standIns) steeredOnes {
	ones := steeredOnes{standIns: plain}
	for _, n := range plain.nodes {
		ones.nodes = append(ones.nodes, &steered{standIn: n})
	}
	return ones
}

// put is a node whose clock can be put forward or back, and not made to run at another rate.
type put struct{ *standIn }

func (put) Steered() error { return nil }

func (p put) JumpClock(ctx context.Context, by time.Duration) (fault.Effect, error) {
	return (&steered{standIn: p.standIn}).JumpClock(ctx, by)
}

// puts is a cluster of such nodes.
type puts struct{ *standIns }

func (p puts) Nodes() (list []cluster.Node) {
	for _, n := range p.standIns.Nodes() {
		list = append(list, put{n.(*standIn)})
	}
	return list
}

// TestClockWithoutRateOnlyJumps checks that a clock that cannot change its rate rejects a rate at once, and can
// still jump.
func TestClockWithoutRateOnlyJumps(t *testing.T) {
	bubble(t, 3, func(t *testing.T, plain *standIns) {
		ones := puts{standIns: plain}
		if _, err := New(ones, plain, script(t, "clock n0 at rate 2"), 1); err == nil || !strings.Contains(err.Error(), "not made to run at another rate") {
			t.Errorf("at a rate: %v", err)
		}
		if _, err := New(ones, plain, script(t, "clock n0 by 1s"), 1); err != nil {
			t.Errorf("by a time: %v", err)
		}
	})
}

// TestUnsteerableNodeIsRejectedWithReason checks that a node without a disk layer or a steerable clock is rejected
// at once with its own reason.
func TestUnsteerableNodeIsRejectedWithReason(t *testing.T) {
	bubble(t, 3, func(t *testing.T, plain *standIns) {
		ones := steered3(plain)
		ones.nodes[1].static = errors.New("its program is linked statically")
		ones.nodes[2].bare = errors.New("it was started without one")
		ones.nodes[2].shared = errors.New("it needs root")
		for line, want := range map[string]string{
			"clock n0 by 1s": "the clock of n1 cannot be steered: its program is linked statically",
			"stress n0 by 4": "the processors of n2 cannot be taken up: it needs root",
			"disk-full n0":   "the disk of n2 cannot have faults: it was started without one",
		} {
			if _, err := New(ones, plain, script(t, line), 1); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q in it", line, err, want)
			}
		}
	})
}

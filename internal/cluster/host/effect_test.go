package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stroppy/internal/fault"
)

// falseNode is a node whose clock and disk can have faults, or only pretend to.
type falseNode struct {
	dir       string
	deviation deviation
	numb      bool // a change does nothing
	stuck     bool // a heal does nothing
	down      bool
}

func (n *falseNode) Name() string { return "n0" }
func (n *falseNode) Awake() bool  { return !n.down }

func (n *falseNode) steer(d deviation) Put {
	return func(context.Context) (func(context.Context) error, error) {
		if !n.numb {
			n.deviation = d
		}
		return func(context.Context) error {
			if !n.stuck {
				n.deviation = deviation{}
			}
			return nil
		}, nil
	}
}

func (n *falseNode) drift(ctx context.Context, rate float64) (fault.Effect, error) {
	return driftClock(ctx, n, rate, n.steer(driftOf(rate)))
}

func (n *falseNode) Now(context.Context) (time.Time, error) {
	if n.down {
		return time.Time{}, errors.New("nobody answers")
	}
	time.Sleep(2 * time.Millisecond) // a question takes time
	now, d := time.Now(), n.deviation
	return now.Add(d.ahead + time.Duration(d.drift*float64(now.Sub(d.from)))), nil
}

// fill replaces one file of the folder by a device that is always full. The probe removes it.
func (n *falseNode) fill() (fault.Effect, error) {
	var err error
	if !n.numb {
		err = os.Symlink("/dev/full", filepath.Join(n.dir, probeName))
	}
	return diskEffect("n0", n.dir, noHeal, err, seenFull)
}

func jump(ctx context.Context, n *falseNode, by time.Duration) (fault.Effect, error) {
	return JumpClock(ctx, n, by, n.steer(deviation{ahead: by, from: time.Now()}))
}

func noHeal() error { return nil }

// effects returns the faults of a false node by name.
func (n *falseNode) effects() map[string]func(context.Context) (fault.Effect, error) {
	return map[string]func(context.Context) (fault.Effect, error){
		"jump":      func(ctx context.Context) (fault.Effect, error) { return jump(ctx, n, 10*time.Second) },
		"jump back": func(ctx context.Context) (fault.Effect, error) { return jump(ctx, n, -time.Hour) },
		"fast":      func(ctx context.Context) (fault.Effect, error) { return n.drift(ctx, 1.05) },
		"half":      func(ctx context.Context) (fault.Effect, error) { return n.drift(ctx, 0.5) },
		"nearly":    func(ctx context.Context) (fault.Effect, error) { return n.drift(ctx, 0.98) },
		"double":    func(ctx context.Context) (fault.Effect, error) { return n.drift(ctx, 2) },
		"fill":      func(context.Context) (fault.Effect, error) { return n.fill() },
		"slow": func(context.Context) (fault.Effect, error) {
			return diskEffect("n0", n.dir, noHeal, nil, seenSlow(100*time.Millisecond))
		},
	}
}

// TestNodeFaultWithoutEffectIsAnError checks that clock and disk faults and their heals are verified: a fault or a
// heal without an effect is an error.
func TestNodeFaultWithoutEffectIsAnError(t *testing.T) {
	for _, c := range []struct {
		do               string
		broken           func(*falseNode)
		err, healErr     string
		seen, seenHealed string
	}{
		{do: "jump", seen: "clock moved by 10s", seenHealed: "clock right to 0s"},
		{do: "jump back", seen: "clock moved by -1h0m0s", seenHealed: "clock right to 0s"},
		{do: "fast", seen: "clock drifted by 5", seenHealed: "clock right to 0s"},
		{do: "half", seen: "clock drifted by -5", seenHealed: "clock right to"},
		{do: "nearly", seen: "clock drifted by -", seenHealed: "clock right to"},
		{do: "jump", broken: func(n *falseNode) { n.numb = true }, err: "moved by 0s instead of 10s", seenHealed: "clock right"},
		{do: "double", broken: func(n *falseNode) { n.numb = true }, err: "does not run at rate 2: clock drifted by 0s", seenHealed: "clock right"},
		{do: "jump", broken: func(n *falseNode) { n.stuck = true }, seen: "moved", healErr: "is wrong by 10s after its heal"},
		{do: "double", broken: func(n *falseNode) { n.stuck = true }, seen: "drifted", healErr: "is wrong by"},
		{do: "fill", seen: "a write found no space", seenHealed: "a write found space"},
		{do: "fill", broken: func(n *falseNode) { n.numb = true }, err: "the disk of n0: a write found space", seenHealed: "a write found space"},
		{do: "slow", err: "the disk of n0: a file took", seenHealed: "a file took"},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := &falseNode{dir: t.TempDir()}
			if c.broken != nil {
				c.broken(n)
			}
			e, err := n.effects()[c.do](t.Context())
			if err == nil && c.err != "" || err != nil && (c.err == "" || !strings.Contains(err.Error(), c.err)) || !strings.Contains(e.Seen, c.seen) {
				t.Errorf("%s: seen %q, %v, want %q, %q", c.do, e.Seen, err, c.seen, c.err)
			}
			seen, err := e.Heal(t.Context())
			if err == nil && c.healErr != "" || err != nil && (c.healErr == "" || !strings.Contains(err.Error(), c.healErr)) || !strings.Contains(seen, c.seenHealed) {
				t.Errorf("%s: healed %q, %v, want %q, %q", c.do, seen, err, c.seenHealed, c.healErr)
			}
		})
	}
}

// TestClockOfEndedServerHealsWithoutQuery checks that the clock of a server that has ended is healed without a query.
func TestClockOfEndedServerHealsWithoutQuery(t *testing.T) {
	n := new(falseNode)
	e, err := jump(t.Context(), n, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	n.down = true
	if seen, err := e.Heal(t.Context()); err != nil || n.deviation != (deviation{}) || !strings.Contains(seen, "continues with a right clock") {
		t.Errorf("%q, %v, %+v", seen, err, n.deviation)
	}
}

// TestLoseUnsyncedFailsIfDataRemain checks that LoseUnsynced fails if the data still exist.
func TestLoseUnsyncedFailsIfDataRemain(t *testing.T) {
	dir := t.TempDir()
	if err := losing("n0", dir, func() error { return os.Remove(filepath.Join(dir, probeName)) }); err != nil {
		t.Error(err)
	}
	if err := losing("n0", dir, func() error { return nil }); err == nil || !strings.Contains(err.Error(), "was not lost") {
		t.Errorf("nothing was lost: %v", err)
	}
	if err := losing("n0", dir, func() error { return errors.New("no such disk") }); err == nil || !strings.Contains(err.Error(), "no such disk") {
		t.Errorf("a loss that fails: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

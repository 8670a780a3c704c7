package nemesis

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
)

// steered is a stand-in whose clock can be steered and whose disk can be hurt.
// Its disk lets one file of the folder be a device that is always full, and loses
// files that nobody synced.
type steered struct {
	*standIn
	static, bare error // why it cannot be steered or has no layer

	jumped  time.Duration
	rate    float64
	since   time.Time // of the rate
	numb    bool      // a change does nothing
	stuck   bool      // a heal does nothing
	durable bool      // it loses nothing
}

func (s *steered) Steered() error { return s.static }
func (s *steered) Layered() error { return s.bare }

func (s *steered) Jump(_ context.Context, by time.Duration) (func() error, error) {
	if !s.numb {
		s.jumped += by
	}
	return func() error {
		if !s.stuck {
			s.jumped = 0
		}
		return nil
	}, nil
}

func (s *steered) Rate(_ context.Context, factor float64) (func() error, error) {
	if !s.numb {
		s.rate, s.since = factor, time.Now()
	}
	return func() error {
		if !s.stuck {
			s.rate = 0
		}
		return nil
	}, nil
}

func (s *steered) Now(context.Context) (time.Time, error) {
	time.Sleep(2 * time.Millisecond) // a question takes time
	now := time.Now().Add(s.jumped)
	if s.rate != 0 {
		now = now.Add(time.Duration((s.rate - 1) * float64(time.Since(s.since))))
	}
	return now, nil
}

func (s *steered) Fill(context.Context) (func() error, error) {
	path := filepath.Join(s.dir, probeName)
	if s.numb {
		return func() error { return nil }, nil
	}
	return func() error {
		if s.stuck {
			return os.Symlink("/dev/full", path)
		}
		return nil
	}, os.Symlink("/dev/full", path)
}

func (s *steered) Slow(context.Context, time.Duration) (func() error, error) {
	return func() error { return nil }, nil
}

func (s *steered) Sync() error { return nil }

func (s *steered) LoseUnsynced() error {
	if s.durable {
		return nil
	}
	return os.Remove(filepath.Join(s.dir, probeName))
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

// TestClocksAndDisks holds the faults of clocks and disks where the nodes offer
// them, and that those which do nothing are told.
func TestClocksAndDisks(t *testing.T) {
	for _, c := range []struct {
		line      string
		broken    func(*steered)
		err, heal string
		how       string
	}{
		{"clock n0 by 10s at 5s for 5s", nil, "", "", "clock moved by 10s; clock right to 0s"},
		{"clock n0 by -1h at 5s for 5s", nil, "", "", "clock moved by -1h0m0s; clock right to 0s"},
		{"clock n0 at rate 1.05 at 5s for 5s", nil, "", "", "clock drifted by 5"},
		{"clock n0 at rate 0.5 at 5s for 5s", nil, "", "", "clock drifted by -5"},
		{"clock n0 at rate 0.98 at 5s", nil, "", "", "clock drifted by -"},
		{"clock n0 by 10s at 5s for 5s", func(s *steered) { s.numb = true }, "was to jump by 10s and moved by 0s", "", ""},
		{"clock n0 at rate 2 at 5s for 5s", func(s *steered) { s.numb = true }, "was to run at rate 2; clock drifted by 0s", "", ""},
		{"clock n0 by 10s at 5s for 5s", func(s *steered) { s.stuck = true }, "", "is wrong by 10s after its heal", ""},
		{"disk-full n0 at 5s for 5s", nil, "", "", "a write found no space; a write found space"},
		{"disk-full n0 at 5s for 5s", func(s *steered) { s.numb = true }, "a write found space", "", ""},
		{"slow-disk n0 at 5s for 5s", nil, "the disk of n0: a file took", "", ""},
		{"lose-unsynced n0 at 5s for 5s", nil, "", "", "1 process gone, an unsynced file lost; n0 up again"},
		{"lose-unsynced n0 at 5s for 5s", func(s *steered) { s.durable = true }, "that was not synced is there yet", "", ""},
	} {
		t.Run(c.line, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, plain *standIns) {
				ones := steered3(plain)
				if c.broken != nil {
					c.broken(ones.nodes[0])
				}
				n, err := newNemesis(ones, plain, script(t, c.line), 1)
				if err != nil {
					t.Fatal(err)
				}
				over := plain.continued(n, time.Minute)
				if len(over) != 1 {
					t.Fatalf("%d injections, want 1: %+v", len(over), over)
				}
				i := over[0]
				if !strings.Contains(i.Err, c.err) || (c.err == "") != (i.Err == "") ||
					!strings.Contains(i.HealErr, c.heal) || (c.heal == "") != (i.HealErr == "") || !strings.Contains(i.Verified, c.how) {
					t.Errorf("%+v, want %q, %q, %q in it", i, c.err, c.heal, c.how)
				}
				if (i.Healed == 0) != (c.heal != "") {
					t.Errorf("healed at %d: %+v", i.Healed, i)
				}
				if err := n.Heal(t.Context()); err != nil {
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

// TestSteeredPossible holds that a node which has no layer, or whose clock cannot
// be steered, is refused at once with its own reason.
func TestSteeredPossible(t *testing.T) {
	bubble(t, 3, func(t *testing.T, plain *standIns) {
		ones := steered3(plain)
		ones.nodes[1].static = errors.New("its program is linked statically")
		ones.nodes[2].bare = errors.New("it was started without one")
		for line, want := range map[string]string{
			"clock n0 by 1s": "the clock of n1 cannot be steered: its program is linked statically",
			"disk-full n0":   "the data of n2 have no file system of ours under them: it was started without one",
		} {
			if _, err := newNemesis(ones, plain, script(t, line), 1); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q in it", line, err, want)
			}
		}
	})
}

// TestInjectionJSON holds the line of faults.jsonl.
func TestInjectionJSON(t *testing.T) {
	for want, i := range map[string]Injection{
		`{"line":1,"fault":"kill leader","target":"n1 (leader)","scheduled_s":20,"at_s":20.000312,"in_effect_s":20.01,"healing_s":30,"healed_s":31.5,"verified":"3 processes gone; n1 up again"}`: {
			Line: 1, Fault: "kill leader", Target: "n1 (leader)", Scheduled: 20e9, Injected: 20_000_312_000, InEffect: 20_010_000_000, Healing: 30e9, Healed: 31_500_000_000,
			Verified: "3 processes gone; n1 up again", Over: true},
		`{"line":2,"fault":"kill random","scheduled_s":5,"skipped":"why"}`: {Line: 2, Fault: "kill random", Scheduled: 5e9, Skipped: "why", Over: true},
		`{"line":2,"fault":"kill n0","target":"n0","scheduled_s":5,"at_s":5,"healing_s":6,"error":"a","heal_error":"b"}`: {
			Line: 2, Fault: "kill n0", Target: "n0", Scheduled: 5e9, Injected: 5e9, Healing: 6e9, Err: "a", HealErr: "b", Over: true},
	} {
		text, err := json.Marshal(i)
		if err != nil || string(text) != want {
			t.Errorf("written as %s, %v, want %s", text, err, want)
		}
		var again Injection
		if err := json.Unmarshal(text, &again); err != nil || again != i {
			t.Errorf("read as %+v, %v, want %+v", again, err, i)
		}
	}
}

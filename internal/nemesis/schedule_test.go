package nemesis

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
)

// TestSeedDeterminesPlannedFaults checks that the due faults follow from the seed before anything runs.
func TestSeedDeterminesPlannedFaults(t *testing.T) {
	const s = time.Second
	faults := script(t, "kill n0 every 20s for 5s", "pause leader at 30s", "mix every 10s jitter 2s: kill random | pause leader")
	list := faults.Due(3, 50*s, 10)
	if again := faults.Due(3, 50*s, 10); !slices.Equal(list, again) {
		t.Errorf("one seed gives %v and %v", list, again)
	}
	if other := faults.Due(4, 50*s, 10); slices.Equal(list, other) {
		t.Errorf("two seeds give the same: %v", list)
	}
	for _, want := range []Due{{20 * s, 25 * s, "kill n0"}, {40 * s, 45 * s, "kill n0"}, {30 * s, 0, "pause leader"}} {
		if !slices.Contains(list, want) {
			t.Errorf("%v is not among %v", want, list)
		}
	}
	for i, d := range list {
		if i > 0 && d.At < list[i-1].At || d.At >= 50*s {
			t.Errorf("%v is out of order or too late in %v", d, list)
		}
	}
	if few := faults.Due(3, 50*s, 1); len(few) != 3 {
		t.Errorf("one of each line are %v", few)
	}
}

// TestInjectionAndHealTimes checks when faults are injected and healed.
func TestInjectionAndHealTimes(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		text   string
		inject []time.Duration
		heal   []time.Duration // zero: not healed
	}{
		{"kill n0 at 10s for 5s", []time.Duration{10 * s}, []time.Duration{15 * s}},
		{"kill n0 at 10s", []time.Duration{10 * s}, []time.Duration{59 * s}},
		{"kill n0 at 57s for 10s", []time.Duration{57 * s}, []time.Duration{59 * s}},
		{"stop n0 at 10s for 5s", []time.Duration{10 * s}, []time.Duration{15 * s}},
		{"pause leader", []time.Duration{5 * s}, []time.Duration{59 * s}},
		{"pause leader for 1s", []time.Duration{5 * s}, []time.Duration{6 * s}},
		{"pause leader every 20s", []time.Duration{20 * s, 40 * s}, []time.Duration{30 * s, 50 * s}},
		{"pause leader every 25s for 20s", []time.Duration{25 * s, 50 * s}, []time.Duration{45 * s, 59 * s}},
		{"replace n1 at 10s", []time.Duration{10 * s}, []time.Duration{10 * s}},
		{"replace n1 every 50s", []time.Duration{50 * s}, []time.Duration{50 * s}},
		{"replace n1 at 10s for 3s", []time.Duration{10 * s}, []time.Duration{13 * s}},
		{"partition halves at 10s for 5s", []time.Duration{10 * s}, []time.Duration{15 * s}},
		{"slow n0 by 50ms at 10s for 5s", []time.Duration{10 * s}, []time.Duration{15 * s}},
		{"lossy n0 by 5% at 10s for 5s", []time.Duration{10 * s}, []time.Duration{15 * s}},
		{"limit n0 to 1MB/s at 10s for 5s", []time.Duration{10 * s}, []time.Duration{15 * s}},
		{"move leader at 10s", []time.Duration{10 * s}, []time.Duration{0}},
		{"add node at 10s", []time.Duration{10 * s}, []time.Duration{0}},
		{"add node at 10s for 5s", []time.Duration{10 * s}, []time.Duration{15 * s}},
		{"remove follower at 10s", []time.Duration{10 * s}, []time.Duration{0}},
		{"remove follower at 10s for 5s", []time.Duration{10 * s}, []time.Duration{15 * s}},
		{"rolling-restart at 10s", []time.Duration{10 * s}, []time.Duration{0}},
	} {
		t.Run(c.text, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, cluster *standIns) {
				over := cluster.drive(59*s, 1, c.text)
				if len(over) != len(c.inject) {
					t.Fatalf("%d injections, want %d: %+v", len(over), len(c.inject), over)
				}
				for k, i := range over {
					well(t, i)
					near(t, "scheduled", &i.Scheduled, c.inject[k], 0)
					near(t, "injected", &i.At, c.inject[k], 0)
					near(t, "healed", i.Healed, cmp.Or(c.heal[k], c.inject[k]), 20*time.Millisecond)
					if (i.Healing == nil) != (c.heal[k] == 0) {
						t.Errorf("healing at %v, want %v", i.Healing, c.heal[k])
					}
				}
				if err := cluster.nemesis(1).Whole(t.Context()); err != nil {
					t.Errorf("the cluster is not whole afterwards: %v", err)
				}
			})
		})
	}
}

// selfRestarting is a cluster whose nodes something else starts again.
type selfRestarting struct{ *standIns }

type selfRestartingNode struct{ *standIn }

func (selfRestartingNode) RestartsItself() {}

func (c selfRestarting) Nodes() (list []cluster.Node) {
	for _, n := range c.standIns.Nodes() {
		list = append(list, selfRestartingNode{n.(*standIn)})
	}
	return list
}

// TestKillEndsWithRestartOfNode checks that the kill of a node that restarts by itself is over when the node is
// back, and not at the end.
func TestKillEndsWithRestartOfNode(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *standIns) {
		n, err := New(selfRestarting{c}, c, script(t, "kill n0 at 10s", "stop random at 20s", "kill n1 at 30s for 5s"), 1)
		if err != nil {
			t.Fatal(err)
		}
		over := c.continued(n, 50*time.Second)
		if len(over) != 3 {
			t.Fatalf("%d are over: %+v", len(over), over)
		}
		for k, at := range []time.Duration{10 * time.Second, 20 * time.Second, 35 * time.Second} {
			well(t, over[k])
			near(t, over[k].Fault+" healed", over[k].Healed, at, 20*time.Millisecond)
		}
	})
}

// TestRepeatedKillEndsWithEachRestart checks that each repetition of a kill is over when the node is back. The
// planned heal would be half way to the next kill.
func TestRepeatedKillEndsWithEachRestart(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *standIns) {
		n, err := New(selfRestarting{c}, c, script(t, "kill n0 every 20s"), 1)
		if err != nil {
			t.Fatal(err)
		}
		over := c.continued(n, 50*time.Second)
		if len(over) != 2 {
			t.Fatalf("%d are over: %+v", len(over), over)
		}
		for k, at := range []time.Duration{20 * time.Second, 40 * time.Second} {
			well(t, over[k])
			near(t, over[k].Fault+" healed", over[k].Healed, at, 20*time.Millisecond)
		}
	})
}

// TestFaultThatNeverCameDueIsAnError checks that a line for which there was no time is an error.
func TestFaultThatNeverCameDueIsAnError(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *standIns) {
		over := c.drive(10*time.Second, 1, "kill n0 at 20s", "pause n1 every 1m", "pause n2 at 9900ms")
		if len(over) != 3 {
			t.Fatalf("%d injections, want 3: %+v", len(over), over)
		}
		for _, i := range over {
			if i.Line == 3 {
				well(t, i)
			} else if !i.Failed() || !strings.Contains(i.Error, "the drive ended at 10s, before its time") || i.Target != "" {
				t.Errorf("what was never due: %+v", i)
			}
		}
	})
}

// TestSlowElectionDelaysInjection checks that the cluster is asked early enough for its leader, and that an
// election delays an injection instead of preventing it.
func TestSlowElectionDelaysInjection(t *testing.T) {
	for asking, late := range map[time.Duration]time.Duration{
		0: 0, 20 * time.Millisecond: 20 * time.Millisecond, // it asks again when it is due
		300 * time.Millisecond: 80 * time.Millisecond, 450 * time.Millisecond: 80 * time.Millisecond, // and not for long
		2 * time.Second: 1580 * time.Millisecond,
	} {
		bubble(t, 3, func(t *testing.T, c *standIns) {
			c.asking = asking
			i := c.drive(60*time.Second, 1, "kill leader at 10s for 5s")[0]
			well(t, i)
			near(t, fmt.Sprintf("injected when a question takes %v", asking), &i.At, 10*time.Second+late, 0)
			near(t, "healed", i.Healed, 15*time.Second+late, 20*time.Millisecond)
			if reported := strings.Contains(i.Late, "until a node led"); reported != (late > time.Second) {
				t.Errorf("%v late, which is reported as %q", late, i.Late)
			}
			if sure := i.Target == "n0 (leader)"; sure != (asking < 80*time.Millisecond) || !sure && !strings.Contains(i.Target, "n0 (led ") {
				t.Errorf("a question takes %v, and it came to %s", asking, i.Target)
			}
		})
	}
	bubble(t, 3, func(t *testing.T, c *standIns) {
		n := c.nemesis(1, "kill leader at 10s for 5s", "pause n1 at 10s for 1s")
		c.asking = time.Hour
		over := c.continued(n, time.Minute)
		if len(over) != 2 || over[0].Line != 2 || !strings.Contains(over[1].Error, "no node led when it was due") {
			t.Errorf("without a leader: %+v", over)
		}
		well(t, over[0]) // which waits for no leader
	})
}

// TestLateFaultAsksForTheLeader checks that a fault asks for the leader even if it begins long after its time.
func TestLateFaultAsksForTheLeader(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *standIns) {
		n, clock := c.nemesis(1, "kill leader at 5s for 1s"), c.begin()
		n.late, c.asking = time.Hour, 2*time.Second
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		n.Run(ctx, func() time.Duration { return clock() + time.Minute }, func(i fault.Injection) {
			if i.Over {
				well(t, i)
			}
		})
	})
}

// TestFaultHitsPresentLeader checks that a fault hits the leader of the moment, and not an earlier leader.
func TestFaultHitsPresentLeader(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *standIns) {
		time.AfterFunc(9999*time.Millisecond, func() { _ = c.MoveLeader(t.Context(), 2) })
		i := c.drive(20*time.Second, 1, "kill leader at 10s")[0]
		if i.Target != "n2 (leader)" {
			t.Errorf("%s was hurt, n2 led: %+v", i.Target, i)
		}
	})
}

// plan returns the injections of a script for a seed, as text.
func (c *standIns) plan(seed uint64, lines ...string) string {
	over := c.drive(599*time.Second, seed, lines...)
	slices.SortFunc(over, func(a, b fault.Injection) int { return int(a.Scheduled - b.Scheduled) })
	text := ""
	for _, i := range over {
		text += fmt.Sprintf("%d %v %s: %s%s\n", i.Line, time.Duration(i.Scheduled), i.Fault, i.Target, i.Skipped)
	}
	return text
}

// TestSeedDecidesRandomChoices checks that the seed alone decides all random choices.
func TestSeedDecidesRandomChoices(t *testing.T) {
	lines := []string{
		"mix every 20s for 5s jitter 3s: kill random | pause random | partition halves | partition minority | slow follower by 5ms",
		"partition bridge every 33s for 2s jitter 1s",
	}
	plans := map[string]uint64{}
	for _, seed := range []uint64{1, 2, 1, 3, 2, 1 << 63} {
		bubble(t, 5, func(t *testing.T, c *standIns) {
			plan := c.plan(seed, lines...)
			if other, known := plans[plan]; known && other != seed {
				t.Errorf("the seeds %d and %d do the same", seed, other)
			}
			plans[plan] = seed
		})
	}
	if len(plans) != 4 {
		t.Errorf("4 seeds made %d different plans", len(plans))
	}
	bubble(t, 5, func(t *testing.T, c *standIns) {
		alone := strings.Split(c.plan(1, "mix every 20s for 5s: pause random | pause follower"), "\n")
		beside := c.plan(1, "mix every 20s for 5s: pause random | pause follower", "slow leader by 1s at 1s for 1s", "move leader to n0 at 3s")
		for _, i := range alone {
			if !strings.Contains(beside, i) {
				t.Errorf("another line changed %q", i)
			}
		}
	})
}

// TestMixPicksRandomlyAndCycleInOrder checks that mix takes each of its faults, and that cycle takes one after the
// other.
func TestMixPicksRandomlyAndCycleInOrder(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *standIns) {
		seen := map[string]int{}
		for _, i := range c.drive(1000*time.Second, 7, "mix every 10s for 1s: kill n0 | pause n1 | partition n2 | move leader") {
			if i.Skipped == "" {
				well(t, i)
			}
			seen[i.Fault]++
		}
		for _, fault := range []string{"kill n0", "pause n1", "partition n2", "move leader"} {
			if seen[fault] < 10 {
				t.Errorf("of 99 injections %d were %s", seen[fault], fault)
			}
		}
	})
	bubble(t, 3, func(t *testing.T, c *standIns) {
		var faults []string
		for _, i := range c.drive(49*time.Second, 7, "cycle every 10s for 1s: kill n0 | pause n1 | partition n2") {
			well(t, i)
			faults = append(faults, i.Fault)
		}
		if want := []string{"kill n0", "pause n1", "partition n2", "kill n0"}; !slices.Equal(faults, want) {
			t.Errorf("cycle did %q, want %q", faults, want)
		}
	})
}

// TestJitterSpreadsInjectionTimes checks that the times are spread over the jitter and keep apart.
func TestJitterSpreadsInjectionTimes(t *testing.T) {
	s := must(t, "pause n0 every 10s for 5s jitter 4s")
	rng := rand.New(rand.NewPCG(1, 2))
	least, most := time.Hour, time.Duration(0)
	for k := range 1000 {
		due, _ := s.due(k, rng)
		late := due - time.Duration(k+1)*10*time.Second
		least, most = min(least, late), max(most, late)
	}
	if least < 0 || least > 100*time.Millisecond || most >= 4*time.Second || most < 3900*time.Millisecond {
		t.Errorf("the times are late by %v to %v, want 0 to 4s", least, most)
	}
	if d := must(t, "pause n0 every 10s jitter 4s").when.duration(); d != 3*time.Second {
		t.Errorf("half way to the next at the earliest is %v", d)
	}
}

func TestFirstAndLastTimesOfRepeatedFault(t *testing.T) {
	for text, want := range map[string][2]time.Duration{
		"kill leader":                               {5 * time.Second, 5 * time.Second},
		"kill leader for 2s":                        {5 * time.Second, 7 * time.Second},
		"kill leader at 9s for 2s":                  {9 * time.Second, 11 * time.Second},
		"kill leader every 20s":                     {20 * time.Second, time.Minute},
		"kill leader every 20s for 5s jitter 2s":    {20 * time.Second, 67 * time.Second},
		"cycle every 7s for 3s: kill n0 | pause n1": {7 * time.Second, 24 * time.Second},
	} {
		f, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if first, done := f.First(), f.Done(3); first != want[0] || done != want[1] {
			t.Errorf("%q comes first at %v and has come three times at %v, want %v", text, first, done, want)
		}
	}
}

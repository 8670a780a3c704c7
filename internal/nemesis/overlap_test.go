package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"stroppy/internal/fault"
)

// TestOverlappingFaultsOnOneNodeHaveExpectedOutcome checks the reported outcome of faults that overlap. Each want
// is the beginning of the outcome of a line: "ok", or "skipped" or "error" with the reason.
func TestOverlappingFaultsOnOneNodeHaveExpectedOutcome(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes int
		lines []string
		want  []string
	}{
		{"kill a paused node", 3, []string{"pause n0 at 5s for 10s", "kill n0 at 8s for 3s"}, []string{"ok", "ok"}},
		{"kill a paused node to the end", 3, []string{"pause n0 at 5s for 10s", "kill n0 at 8s"}, []string{"ok", "ok"}},
		{"stop a paused node", 3, []string{"pause n0 at 5s for 10s", "stop n0 at 8s for 3s"}, []string{"ok", "ok"}},
		{"replace a paused node", 3, []string{"pause n0 at 5s", "replace n0 at 8s"}, []string{"ok", "ok"}},
		{"pause a dead node", 3, []string{"kill n0 at 5s for 10s", "pause n0 at 8s for 3s"}, []string{"ok", "skipped it is down already"}},
		{"pause a paused node", 3, []string{"pause n0 at 5s for 10s", "pause n0 at 8s for 3s"}, []string{"ok", "skipped it is down already"}},
		{"kill a dead node", 3, []string{"kill n0 at 5s for 10s", "kill n0 at 8s for 3s"}, []string{"ok", "skipped it is down already"}},
		{"replace a dead node", 3, []string{"kill n0 at 5s for 10s", "replace n0 at 8s"}, []string{"ok", "skipped it is down already"}},
		{"remove a dead node", 3, []string{"kill n0 at 5s for 10s", "remove n0 at 8s"}, []string{"ok", "skipped it is down already"}},
		{"kill all when one is dead", 3, []string{"kill n0 at 5s for 10s", "kill all at 8s for 3s"}, []string{"ok", "ok n1, n2"}},
		{"kill what was cut off", 3, []string{"partition n0 at 5s for 10s", "kill n0 at 8s for 3s"}, []string{"ok", "ok"}},
		{"cut twice", 3, []string{"partition n0 at 5s for 10s", "partition halves at 8s for 3s"}, []string{"ok", "ok"}},
		{"shape twice", 3, []string{"slow n0 by 1s at 5s for 10s", "lossy n0 by 5% at 8s for 3s"}, []string{"ok", "skipped another fault of the same sort"}},
		{"rolling restart with a dead node", 3, []string{"kill n0 at 5s for 10s", "rolling-restart at 8s"}, []string{"ok", "skipped n0 is not up"}},
		{"two changes of the members", 3, []string{"add node at 5s for 10s", "remove n0 at 8s"}, []string{"ok", "skipped another change"}},
		{"a node that comes and goes", 3, []string{"add node at 2s for 2s"}, []string{"ok n3 joined [n3] left [n3]"}},
		{"a node that goes and another that comes", 3, []string{"remove n0 at 8s for 5s"}, []string{"ok n0 (leader) joined [n3] left [n0]"}},
		{"hurt what was removed", 3, []string{"remove n0 at 5s", "kill n0 at 8s"}, []string{"ok", "error the cluster has no node n0 any more; it has n1, n2"}},
		{"hurt what was added", 3, []string{"add node at 5s", "kill n3 at 8s"}, []string{"ok", "ok n3"}},

		{"a second random kill of three", 3, []string{"kill random at 5s for 10s", "kill random at 8s for 3s"}, []string{"ok", "skipped with the nodes that are lost"}},
		{"a random pause of three after a kill", 3, []string{"kill n1 at 5s for 10s", "pause random at 8s for 3s"}, []string{"ok", "skipped with the nodes that are lost"}},
		{"a follower after a cut", 3, []string{"partition leader at 5s for 10s", "kill follower at 8s for 3s"}, []string{"ok", "skipped with the nodes that are lost"}},
		{"a second random kill of five", 5, []string{"kill random at 5s for 10s", "kill random at 8s for 3s", "kill random at 9s"}, []string{"ok", "ok", "skipped with the nodes that are lost"}},
		{"a minority after a kill", 5, []string{"kill n1 at 5s for 10s", "kill minority at 8s for 3s"}, []string{"ok", "skipped with the nodes that are lost"}},
		{"after the heal", 3, []string{"kill random at 5s for 2s", "kill random at 8s for 3s"}, []string{"ok", "ok"}},
		{"a number asks for it", 3, []string{"kill n1 at 5s for 10s", "kill n2 at 8s for 10s"}, []string{"ok", "ok"}},
		{"the leader asks for it", 3, []string{"pause follower at 5s for 10s", "kill leader at 8s for 3s"}, []string{"ok", "ok"}},
		{"all of two", 2, []string{"pause follower at 5s for 10s", "kill leader at 8s for 3s"}, []string{"ok n1", "ok n0 (leader)"}},
		{"one of one", 1, []string{"kill random at 5s for 10s"}, []string{"ok"}},
		{"slowing takes no majority", 3, []string{"kill random at 5s for 10s", "slow random by 1s at 8s for 3s"}, []string{"ok", "ok"}},
		{"nobody is left", 2, []string{"slow all by 1s at 5s for 10s", "kill random at 8s for 3s"}, []string{"ok", "skipped every node that it may choose has a fault"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, c.nodes, func(t *testing.T, cluster *standIns) {
				over := cluster.drive(time.Minute, 3, c.lines...)
				slices.SortFunc(over, func(a, b fault.Injection) int { return a.Line - b.Line })
				if len(over) != len(c.want) {
					t.Fatalf("%d injections, want %d: %+v", len(over), len(c.want), over)
				}
				for k, i := range over {
					got := "ok " + i.Target
					if len(i.Joined)+len(i.Left) > 0 {
						got += fmt.Sprintf(" joined %v left %v", i.Joined, i.Left)
					}
					switch {
					case i.Failed():
						got = "error " + i.Error + i.HealError
					case i.Skipped != "":
						got = "skipped " + i.Skipped
					}
					if !strings.HasPrefix(got, c.want[k]) {
						t.Errorf("%s: %s, want %s", c.lines[k], got, c.want[k])
					}
				}
				if err := cluster.WaitHealthy(t.Context()); err != nil {
					t.Errorf("when all is over: %v", err)
				}
			})
		})
	}
}

// TestNodeWithFailedAgentIsNotDown checks that a node that is left out because of its agent is not reported as
// down.
func TestNodeWithFailedAgentIsNotDown(t *testing.T) {
	for text, want := range map[string]string{
		"kill-agent n0":  "its agent is not back yet from another fault of the script, kill-agent n0",
		"pause-agent n0": "its agent is not back yet from another fault of the script, pause-agent n0",
		"kill n0":        errDown.Error(),
	} {
		bubble(t, 3, func(t *testing.T, c *standIns) {
			s := &state{cluster: c, injections: []*injection{{claims: []claim{{0, partLife}}, agent: strings.Contains(text, "agent"), record: fault.Injection{Fault: text}}}}
			if _, err := s.available("n0", situation{}, partLife, partPause); err == nil || err.Error() != want {
				t.Errorf("after %s: %v, want %s", text, err, want)
			}
			if nodes, err := s.available("n1", situation{}, partLife); err != nil || len(nodes) != 1 {
				t.Errorf("after %s another node: %v, %v", text, nodes, err)
			}
		})
	}
}

// TestRepetitionIsSkippedWhileEarlierFaultLasts checks that a repetition is skipped while the fault before it is
// not over, also at the end of the load phase.
func TestRepetitionIsSkippedWhileEarlierFaultLasts(t *testing.T) {
	for _, c := range []struct {
		drive    time.Duration
		says     string
		reported []string
	}{
		{49 * time.Second, "was not over until 3", []string{"1 10s false", "1 20s true", "1 30s true", "1 40s false", "2 9s false", "3 9s false"}},
		{32 * time.Second, "was not over when the load phase ended", []string{"1 10s false", "1 20s true", "1 30s true", "2 9s false", "3 9s false"}},
	} {
		bubble(t, 3, func(t *testing.T, cluster *standIns) {
			// n0 answers only when another is back as well, which takes until 34s.
			over := cluster.drive(c.drive, 1, "kill n0 every 10s for 5s", "kill n1 at 9s for 25s", "kill n2 at 9s for 30s")
			var reported []string
			for _, i := range over {
				reported = append(reported, fmt.Sprintf("%d %v %v", i.Line, time.Duration(i.Scheduled), i.Skipped != ""))
				if i.Failed() || i.Skipped != "" && !strings.Contains(i.Skipped, c.says) {
					t.Errorf("%+v", i)
				}
			}
			slices.Sort(reported)
			if !slices.Equal(reported, c.reported) {
				t.Errorf("reported of %q", reported)
			}
		})
	}
}

// TestHealsAtEndRunInOrder checks that the last heals undo links in reverse order, then dead and paused nodes
// together, and then changes of the members.
func TestHealsAtEndRunInOrder(t *testing.T) {
	bubble(t, 5, func(t *testing.T, c *standIns) {
		over := c.drive(10*time.Second, 1, "add node at 1s for 1h", "partition n4 at 2s", "kill n0 at 3s", "kill n1 at 4s",
			"kill n2 at 5s", "pause n3 at 6s", "slow n4 by 1s at 7s", "kill n3 at 8s")
		if len(over) != 8 {
			t.Fatalf("%d are over: %+v", len(over), over)
		}
		for _, i := range over {
			well(t, i)
			near(t, i.Fault+" healed", i.Healed, 10*time.Second, 1100*time.Millisecond)
		}
		var log []string
		for _, event := range c.log {
			if strings.HasPrefix(event, "10s") && !strings.Contains(event, "re") {
				log = append(log, strings.Fields(event)[1]+" "+strings.Fields(event)[2])
			}
		}
		if want := []string{"undo [4]", "mend [{4"}; !slices.Equal(log, want) {
			t.Errorf("healed in the order %q, want %q", log, want)
		}
		restarts := slices.IndexFunc(c.log, func(s string) bool { return strings.Contains(s, "restart") })
		if mended := slices.IndexFunc(c.log, func(s string) bool { return strings.Contains(s, "mend") }); restarts < mended {
			t.Errorf("a node was started before the cut was healed: %q", c.log)
		}
		if last := c.log[len(c.log)-1]; !strings.HasSuffix(last, "remove n5") {
			t.Errorf("the last heal was %q, want that of add node", last)
		}
		for _, event := range []string{"restart n0", "restart n1", "restart n2", "restart n3", "resume n3"} {
			if n := times(c.log, event); n != 1 {
				t.Errorf("%s: %d times", event, n)
			}
		}
	})
}

func times(log []string, event string) (n int) {
	for _, e := range log {
		if strings.HasSuffix(e, event) {
			n++
		}
	}
	return n
}

// TestFailedInjectionIsReportedAndHealed checks that a failed injection or heal is reported with its cause, and
// that the fault is healed nevertheless.
func TestFailedInjectionIsReportedAndHealed(t *testing.T) {
	for _, c := range []struct {
		name, line string
		broken     func(*standIns)
		err, heal  string // in the record
		whole      bool   // the cluster is well afterwards
	}{
		{"a kill without effect", "kill n0 at 5s for 5s", func(c *standIns) { c.nodes[0].immortal = true }, "n0 was ended and is running yet", "", true},
		{"a pause without effect", "pause n0 at 5s for 5s", func(c *standIns) { c.nodes[0].awake = true }, "a process of n0 goes on", "", true},
		{"a resume without effect", "pause n0 at 5s for 5s", func(c *standIns) { c.nodes[0].asleep = true }, "", "is stopped yet", true},
		{"a restart that fails", "kill n0 at 5s for 5s", func(c *standIns) { c.nodes[0].restartErr = errors.New("no such data") }, "", "no such data", false},
		{"a restart that never ends", "kill all at 5s for 5s", func(c *standIns) { c.nodes[0].restartErr, c.nodes[1].restartErr = errors.New("a"), errors.New("b") }, "", "restart n2: context deadline exceeded", false},
		{"a node that comes back by itself", "kill n0 at 5s for 5s", func(c *standIns) { time.AfterFunc(7*time.Second, func() { _ = c.nodes[0].start() }) }, "n0 did not stay down", "", true},
		{"a node that goes on by itself", "pause n0 at 5s for 5s", func(c *standIns) {
			time.AfterFunc(7*time.Second, func() { _ = c.nodes[0].Resume(context.Background()) })
		}, "something else let it go on", "", true},
		{"a replace that keeps the data", "replace n0 at 5s for 5s", func(c *standIns) { c.nodes[0].replaceErr = errors.New("1 files are left") }, "", "1 files are left", false},
		{"a cut that cannot be made", "partition n0 at 5s for 5s", func(c *standIns) { c.cutErr = errors.New("no nftables") }, "no nftables", "", true},
		{"a cut that leaks", "partition n0 at 5s for 5s", func(c *standIns) { c.seenErr = errors.New("packets get through") }, "packets get through", "", true},
		{"a cut that stays", "partition client from n0 at 5s for 5s", func(c *standIns) { c.healErr = errors.New("no packet gets through") }, "", "no packet gets through", true},
		{"a link that is not slowed", "slow n0 by 1s at 5s for 5s", func(c *standIns) { c.seenErr = errors.New("round trip 50µs") }, "round trip 50µs", "", true},
		{"a link that stays slow", "slow n0 by 1s at 5s for 5s", func(c *standIns) { c.healErr = errors.New("as bad as before") }, "", "as bad as before", true},
		{"a lead that stays", "move leader to n1 at 5s", func(c *standIns) { c.moveErr = errors.New("n1 lags") }, "n1 lags", "", true},
		{"a command that fails", "exec 'echo oops; exit 3' 'true' at 5s for 5s", func(*standIns) {}, "oops", "", true},
		{"a rolling restart that breaks off", "rolling-restart at 5s", func(c *standIns) { c.nodes[1].restartErr = errors.New("no such data") }, "no such data", "no such data", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, cluster *standIns) {
				n := cluster.nemesis(1, c.line)
				c.broken(cluster)
				over := cluster.continued(n, time.Minute)
				if len(over) != 1 {
					t.Fatalf("%d injections, want 1: %+v", len(over), over)
				}
				i := over[0]
				if !i.Failed() || !strings.Contains(i.Error, c.err) || (c.err == "") != (i.Error == "") {
					t.Errorf("the error is %q, want %q in it", i.Error, c.err)
				}
				if !strings.Contains(i.HealError, c.heal) || (c.heal == "") != (i.HealError == "") {
					t.Errorf("the error of the heal is %q, want %q in it", i.HealError, c.heal)
				}
				if i.Healed != nil {
					t.Errorf("a fault that failed is recorded as healed: %+v", i)
				}
				if err := n.Whole(t.Context()); (err == nil) != c.whole {
					t.Errorf("the cluster afterwards: %v", err)
				}
			})
		})
	}
}

// TestNodeThatDiedByItselfIsSkipped checks that faults leave out a node that no fault ended, and still reach the
// other nodes.
func TestNodeThatDiedByItselfIsSkipped(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *standIns) {
		n := c.nemesis(1, "kill n0 at 5s for 5s", "pause all at 15s for 5s", "kill random at 25s for 5s")
		time.AfterFunc(3*time.Second, func() { _ = c.nodes[0].Kill(context.Background()) })
		over := c.continued(n, time.Minute)
		if !strings.Contains(over[0].Skipped, "n0 is not running, and it was no fault of the script") {
			t.Errorf("a kill of a node that is dead: %+v", over[0])
		}
		well(t, over[1])
		if over[1].Target != "n1, n2" {
			t.Errorf("paused were %s", over[1].Target)
		}
		if over[2].Skipped != string(errMajority) {
			t.Errorf("a random kill with a dead node of three: %+v", over[2])
		}
		if err := n.Whole(t.Context()); err == nil {
			t.Error("the cluster is whole with a dead node")
		}
	})
}

// TestFailedInjectionIsHealedAtOnce checks that a failed injection is healed at once, and that random spares a
// node whose heal failed.
func TestFailedInjectionIsHealedAtOnce(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *standIns) {
		n := c.nemesis(1, "partition n0 at 5s for 20s", "kill n1 at 10s for 5s", "kill random every 30s for 1s")
		c.seenErr = errors.New("packets get through")
		c.nodes[1].restartErr = errors.New("its disk is gone")
		over := c.continued(n, 200*time.Second)
		near(t, "the heal of the cut", over[0].Healing, 5*time.Second, 0)
		for _, i := range over[2:] {
			if i.Skipped == "" || i.Failed() {
				t.Errorf("with one node of three lost for good: %+v", i)
			}
		}
		if len(over) != 8 {
			t.Errorf("%d injections, want 8", len(over))
		}
	})
}

// TestImpossibleFaultsAreRejectedAtStart checks that faults that a cluster cannot have are rejected at once with
// the reason.
func TestImpossibleFaultsAreRejectedAtStart(t *testing.T) {
	for _, c := range []struct {
		nodes int
		line  string
		cause func(*standIns)
		says  string
	}{
		{3, "kill n3", nil, "no node n3; it has n0, n1, n2"},
		{3, "kill leader", func(c *standIns) { c.equals = true }, "none of them leads"},
		{3, "mix: kill n0 | pause standby", func(c *standIns) { c.equals = true }, "none of them leads"},
		{3, "move leader", func(c *standIns) { c.equals = true }, "none of them leads"},
		{3, "kill leader", func(c *standIns) { c.asking = time.Hour }, "the cluster does not say"},
		{1, "kill follower", nil, "two nodes at least"},
		{2, "kill minority", nil, "three nodes at least"},
		{1, "replace n0", nil, "nobody to take the data from"},
		{3, "partition halves", func(c *standIns) { c.loop = "namespaces need root" }, fmt.Sprintf("namespaces need root, so not %d", fault.BetweenNodes)},
		{3, "slow n0 by 1s", func(c *standIns) { c.loop = "namespaces need root" }, fmt.Sprintf("namespaces need root, so not %d", fault.BetweenNodes)},
		{3, "partition client from n0", func(c *standIns) { c.loop = "namespaces need root" }, fmt.Sprintf("namespaces need root, so not %d", fault.ToClient)},
		{3, "limit n0 to 1MB/s", func(c *standIns) { c.loop = "namespaces need root" }, fmt.Sprintf("namespaces need root, so not %d", fault.Bandwidth)},
		{1, "partition n0", nil, "no link to cut"},
		{2, "partition bridge", nil, "three nodes at least"},
		{3, "partition ring", nil, "four nodes at least"},
		{3, "clock random by 1s", nil, "nothing can steer the clocks"},
		{3, "disk-full random", nil, "cannot have faults of its disk"},
		{3, "stress random", nil, "nothing can take part in the share of the processors"},
		{1, "remove n0", nil, "the only node"},
		{1, "move leader", nil, "nobody to hand the lead to"},
	} {
		bubble(t, c.nodes, func(t *testing.T, cluster *standIns) {
			if c.cause != nil {
				c.cause(cluster)
			}
			_, err := New(cluster, cluster, script(t, c.line), 1)
			if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "cannot have a", "no"), c.says) {
				t.Errorf("%s on %d nodes: %v, want %q in it", c.line, c.nodes, err, c.says)
			}
		})
	}
	bubble(t, 1, func(t *testing.T, c *standIns) {
		if _, err := New(c, c, Script{{}}, 1); err == nil {
			t.Error("an empty fault was taken")
		}
		fixed := struct{ Cluster }{c}
		for _, line := range []string{"add node", "remove n0", "move leader"} {
			if _, err := New(fixed, c, script(t, line), 1); err == nil || !strings.Contains(err.Error(), "this kind of cluster cannot") {
				t.Errorf("%s where it cannot be: %v", line, err)
			}
		}
		if _, err := New(c, c, script(t, "partition client from n0", "kill random", "add node", "partition halves"), 1); err != nil {
			t.Errorf("what can be done is refused: %v", err)
		}
	})
}

// TestPartitionsCutExpectedNodesOnAnySize checks which nodes reach each other in each shape of partition, on clusters
// of many sizes.
func TestPartitionsCutExpectedNodesOnAnySize(t *testing.T) {
	for _, size := range []int{2, 3, 4, 5, 6, 7, 8, 9} {
		bubble(t, size, func(t *testing.T, c *standIns) {
			c.leader = size - 1
			n := c.nemesis(1)
			for seed := range uint64(20) {
				for _, text := range []string{"partition leader", "partition follower", "partition majority", "partition minority", "partition all", "partition halves", "partition ring", "partition bridge"} {
					s := must(t, text).effects[0]
					if s.possible(n.state) != nil {
						continue
					}
					got, err := s.split(n.state, situation{rng: rand.New(rand.NewPCG(seed, 1)), leader: c.leader, drive: context.Background()})
					if err != nil {
						t.Fatalf("%s of %d: %v", text, size, err)
					}
					c.checkSides(s, got)
				}
			}
		})
	}
}

// checkSides holds what each shape promises, by the sizes of what a node reaches
// in one step, itself included.
func (c *standIns) checkSides(s effect, got sides) {
	size, cuts := len(c.nodes), got.cuts()
	reach := make([][]int, size)
	for a := range size {
		for b := range size {
			if !slices.Contains(cuts, fault.Cut{From: a, To: b}) {
				reach[a] = append(reach[a], b)
			}
		}
	}
	sees := func(node, least, most int) {
		c.t.Helper()
		if r := len(reach[node]); r < least || r > most {
			c.t.Errorf("%s of %d nodes: n%d reaches %v, want %d to %d of them (%s)", s, size, node, reach[node], least, most, got.title())
		}
	}
	quorum := size/2 + 1
	whole := 0
	for node := range size {
		switch s.arg.(cutting).shape + string(s.target) {
		case leader:
			if node == c.leader {
				sees(node, 1, 1)
			} else {
				sees(node, size-1, size-1)
			}
		case majority:
			if node == c.leader {
				sees(node, 1, max(1, size-quorum))
			}
		case minority:
			if node == c.leader {
				sees(node, quorum, size)
			}
		case all:
			sees(node, 1, 1)
		case halves:
			sees(node, size/2, (size+1)/2)
		case ring:
			sees(node, quorum, size-1)
		case bridge:
			if len(reach[node]) == size {
				whole++
			} else {
				sees(node, size/2, (size+1)/2+1)
			}
		}
		for _, other := range reach[node] {
			if !slices.Contains(reach[other], node) {
				c.t.Errorf("%s: n%d reaches n%d and not back", s, node, other)
			}
		}
	}
	if s.arg.(cutting).shape == bridge && whole != 1 {
		c.t.Errorf("%d nodes reach both sides of the bridge of %d", whole, size)
	}
	if s.arg.(cutting).shape == ring {
		for a := range reach {
			for b := range a {
				if slices.Equal(reach[a], reach[b]) {
					c.t.Errorf("on the ring of %d n%d and n%d see the same", size, a, b)
				}
			}
		}
	}
}

// TestOneWayPartitionsCutOneDirection checks the directions that one-way partitions cut, and their titles.
func TestOneWayPartitionsCutOneDirection(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *standIns) {
		n := c.nemesis(1)
		for text, want := range map[string]string{
			"partition n0":                         "n0 (leader) | n1, n2 [{0 1} {1 0} {0 2} {2 0}]",
			"partition n0 one-way":                 "n0 (leader) ← n1, n2 [{0 1} {0 2}]",
			"partition n0 one-way in":              "n0 (leader) → n1, n2 [{1 0} {2 0}]",
			"partition client from n1":             "client | n1 [{-1 1} {1 -1}]",
			"partition client from n1 one-way":     "client → n1 [{1 -1}]",
			"partition client from n1 one-way in":  "client ← n1 [{-1 1}]",
			"partition client from all one-way in": "client ← n0 (leader), n1, n2 [{-1 0} {-1 1} {-1 2}]",
		} {
			got, err := must(t, text).effects[0].split(n.state, situation{rng: rand.New(rand.NewPCG(1, 1)), leader: 0})
			if is := fmt.Sprint(got.title(), " ", got.cuts()); err != nil || is != want {
				t.Errorf("%s: %s, %v, want %s", text, is, err, want)
			}
		}
	})
}

// TestPartitionsIncludeWitnesses checks that a voter without data is cut off together with the nodes.
func TestPartitionsIncludeWitnesses(t *testing.T) {
	bubble(t, 2, func(t *testing.T, c *standIns) {
		c.voters = []int{2}
		n := c.nemesis(1)
		for text, want := range map[string]string{
			"partition n0":             "n0 (leader) | n1 [{0 1} {1 0} {0 2} {2 0}]",
			"partition n1 one-way":     "n1 ← n0 (leader) [{1 0} {1 2}]",
			"partition client from n0": "client | n0 (leader) [{-1 0} {0 -1}]",
			"partition all":            "n0 | n1 | witness n2 [{0 1} {1 0} {0 2} {2 0} {1 2} {2 1}]",
		} {
			got, err := must(t, text).effects[0].split(n.state, situation{rng: rand.New(rand.NewPCG(1, 1)), leader: 0})
			if is := fmt.Sprint(got.title(), " ", got.cuts()); err != nil || is != want {
				t.Errorf("%s: %s, %v, want %s", text, is, err, want)
			}
		}
	})
}

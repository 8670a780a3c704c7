package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
)

// TestStorm does everything to three nodes at random, several things at a time,
// while clients pay. STROPPY_TEST_STORM is its time in seconds and its seed, as
// in 60,7.
func TestStorm(t *testing.T) {
	length, seed := 8*time.Second, uint64(time.Now().UnixNano())
	if text := os.Getenv("STROPPY_TEST_STORM"); text != "" {
		var seconds int
		if _, err := fmt.Sscanf(text, "%d,%d", &seconds, &seed); err != nil {
			t.Fatal(err)
		}
		length = time.Duration(seconds) * time.Second
	}
	t.Logf("STROPPY_TEST_STORM=%d,%d", length/time.Second, seed)
	c := startCluster(t, 3, "")
	p := kind().Pay(t, c)
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	var (
		storms sync.WaitGroup
		end    = time.Now().Add(length)
		mu     sync.Mutex
		taken  = map[int]bool{} // nodes that somebody hurts
	)
	for i := range 2 {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		storms.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				n := c.List()[rng.IntN(3)]
				if rng.IntN(2) == 0 {
					_ = cluster.Sleep(ctx, time.Second) // so that a standby has time to be registered
					n = c.Leading()
				}
				mu.Lock()
				free := !taken[n.Number()]
				taken[n.Number()] = true
				mu.Unlock()
				if !free {
					continue
				}
				what, err := hurt(ctx, c, n, rng)
				c.Note("storm: %s %s", what, n.Name())
				if err != nil {
					t.Errorf("%s %s: %v", what, n.Name(), err)
				}
				mu.Lock()
				taken[n.Number()] = false
				mu.Unlock()
			}
		})
	}
	storms.Wait()
	p.GoOn(20)
	p.EndWell("storm of " + strconv.Itoa(int(length.Seconds())) + " s")
}

// hurt does one thing to a node and undoes it.
func hurt(ctx context.Context, c *Cluster, n *node, rng *rand.Rand) (what string, err error) {
	wait := func() { _ = cluster.Sleep(ctx, time.Duration(rng.IntN(1500))*time.Millisecond) }
	do := func(inject func() error, heal func() error) error {
		if err := inject(); err != nil {
			return err
		}
		wait()
		return heal()
	}
	c.Note("storm: next %s", n.Name())
	switch rng.IntN(7) {
	case 0, 1:
		return "kill", do(func() error { return n.Kill(ctx) }, func() error { return n.Restart(ctx) })
	case 2:
		return "stop", do(func() error { return n.Terminate(ctx) }, func() error { return n.Restart(ctx) })
	case 3:
		if n.Pause(ctx) != nil {
			return "nothing to pause", nil // it is down, fenced by the supervisor
		}
		wait()
		return "pause", n.Resume(ctx)
	case 4:
		_ = n.Replace(ctx) // is refused while nobody else has its data
		return "replace", n.Restart(ctx)
	case 5:
		limited, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		_ = c.MoveLeader(limited, n.Number()) // the other storm may be at work
		return "move the lead to", nil
	default:
		if c.Network().Loopback() != "" {
			return "nothing to cut", nil
		}
		other := rng.IntN(4) - 1
		if other == n.Number() {
			other = cluster.Client
		}
		heal, err := c.Network().Cut(ctx, []cluster.Cut{{From: n.Number(), To: other}, {From: other, To: n.Number()}})
		if err != nil {
			return "cut", err
		}
		wait()
		return fmt.Sprintf("cut off from %d", other), heal()
	}
}

package netem

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stroppy/internal/fault"
)

// falseWires records its calls, or ignores them.
type falseWires struct {
	cuts  []fault.Cut
	links map[int]fault.Link
	leaky bool // cuts have no effect
	stuck bool // heals have no effect
	numb  bool // shapes have no effect
	other []fault.Cut
}

func (w *falseWires) Cut(_ context.Context, cuts []fault.Cut) (func() error, error) {
	w.cuts = cuts
	return func() error {
		if !w.stuck {
			w.cuts = nil
		}
		return nil
	}, nil
}

func (w *falseWires) open(cuts []fault.Cut) []fault.Cut {
	return slices.DeleteFunc(slices.Clone(cuts), func(c fault.Cut) bool { return slices.Contains(w.other, c) })
}

func (w *falseWires) Reaches(_ context.Context, from, to int) (bool, error) {
	return w.leaky || !slices.Contains(slices.Concat(w.cuts, w.other), fault.Cut{From: from, To: to}), nil
}

func (w *falseWires) Shape(_ context.Context, host int, link fault.Link) (func() error, error) {
	if host > 1 {
		return nil, fmt.Errorf("there is no n%d", host)
	}
	if !w.numb {
		w.links[host] = link
	}
	return func() error {
		if !w.stuck {
			delete(w.links, host)
		}
		return nil
	}, nil
}

func (w *falseWires) RoundTrip(_ context.Context, _, to int) (time.Duration, error) {
	return 2*w.links[to].Delay + 50*time.Microsecond, nil
}

func (w *falseWires) Loss(_ context.Context, _, to, _ int) (float64, error) {
	return w.links[to].Loss, nil
}

func (w *falseWires) Throughput(_ context.Context, _, to int, _ time.Duration) (int64, error) {
	if b := w.links[to].Bandwidth; b > 0 {
		return b, nil
	}
	return 1e9, nil
}

// TestLinkFaultWithoutEffectIsAnError checks that link faults and their heals are verified: a fault or a heal
// without an effect is an error.
func TestLinkFaultWithoutEffectIsAnError(t *testing.T) {
	cuts := []fault.Cut{{From: 0, To: 1}, {From: 1, To: fault.Client}}
	slow, lossy, narrow := fault.Link{Delay: time.Second}, fault.Link{Loss: 0.05}, fault.Link{Bandwidth: 1e6}
	for _, c := range []struct {
		name             string
		link             fault.Link // zero: test the cuts
		hosts            []int
		wires            falseWires
		err, healErr     string
		seen, seenHealed string
	}{
		{name: "cut", seen: "2 ways cut: no packet came through", seenHealed: "2 ways open again"},
		{name: "cut twice", wires: falseWires{other: cuts[:1]}, seen: "2 ways cut", seenHealed: "1 way open again"},
		{name: "cut as another", wires: falseWires{other: cuts}, seen: "2 ways cut", seenHealed: "its ways are still cut by another fault"},
		{name: "leak", wires: falseWires{leaky: true}, err: "packets get from n0 to n1 although the way is cut", seenHealed: "open again"},
		{name: "stuck", wires: falseWires{stuck: true}, seen: "cut", healErr: "no packet gets from n1 to the client although"},
		{name: "slow", link: slow, hosts: []int{0, 1}, seen: "round trip 2.00005s, round trip 2.00005s", seenHealed: "round trip 50µs, round trip 50µs"},
		{name: "lossy", link: lossy, hosts: []int{0}, seen: "loss 5%", seenHealed: "loss 0%"},
		{name: "narrow", link: narrow, hosts: []int{0}, seen: "throughput 1000000B/s", seenHealed: "throughput 1000000000B/s"},
		{name: "not slow", link: slow, hosts: []int{0}, wires: falseWires{numb: true}, err: "the fault does not show on the link of n0: round trip 50µs", seenHealed: "50µs"},
		{name: "not lossy", link: lossy, hosts: []int{0}, wires: falseWires{numb: true}, err: "the fault does not show on the link of n0: loss 0%", seenHealed: "loss 0%"},
		{name: "not narrow", link: narrow, hosts: []int{0}, wires: falseWires{numb: true}, err: "the fault does not show on the link of n0: throughput", seenHealed: "throughput"},
		{name: "slow for ever", link: slow, hosts: []int{0}, wires: falseWires{stuck: true}, seen: "round trip 2.00005s", healErr: "as bad as before its heal"},
		{name: "one of two", link: slow, hosts: []int{0, 2}, err: "there is no n2"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &c.wires
			w.links = map[int]fault.Link{}
			do := func() (fault.Effect, error) { return degrade(t.Context(), w, c.hosts, c.link) }
			if c.hosts == nil {
				do = func() (fault.Effect, error) { return partition(t.Context(), w, cuts) }
			}
			e, err := do()
			if err == nil && c.err != "" || err != nil && (c.err == "" || !strings.Contains(err.Error(), c.err)) || !strings.Contains(e.Seen, c.seen) {
				t.Errorf("%s: seen %q, %v, want %q, %q", c.name, e.Seen, err, c.seen, c.err)
			}
			seen, err := e.Heal(t.Context())
			if c.name != "one of two" && (err == nil && c.healErr != "" || err != nil && (c.healErr == "" || !strings.Contains(err.Error(), c.healErr)) || !strings.Contains(seen, c.seenHealed)) {
				t.Errorf("%s: healed %q, %v, want %q, %q", c.name, seen, err, c.seenHealed, c.healErr)
			}
			if !w.stuck && len(w.links)+len(w.cuts) > 0 {
				t.Errorf("%s: left are %v and %v", c.name, w.links, w.cuts)
			}
		})
	}
}

package netem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"stroppy/internal/cluster/wait"
	"stroppy/internal/cluster/wrap"
	"stroppy/internal/fault"
)

// linkFault is a fault that is not healed: cuts, or a shape of a host's link.
type linkFault struct {
	cuts []fault.Cut
	host int
	link *fault.Link // nil for cuts
}

// Cut drops all packets in the directions of cuts, without notice to the sender. Established connections are cut too.
// A direction that several faults cut stays cut until the last of them is healed. If heal fails, it must be called
// again.
func (n *Network) Cut(ctx context.Context, cuts []fault.Cut) (heal func() error, err error) {
	var places []int
	for _, c := range cuts {
		places = append(places, c.From, c.To)
		if c.From == c.To {
			err = fmt.Errorf("%s cannot be cut off from itself", endpointName(c.From))
		}
	}
	return n.inject(ctx, err, "the network", "cut", &linkFault{cuts: slices.Clone(cuts)}, places...)
}

// Shape makes the link of a host slow, lossy or narrow in both directions. Faults on one link combine: delays and
// jitters add up, losses are independent, and the smallest bandwidth counts. If heal fails, it must be called again.
func (n *Network) Shape(ctx context.Context, host int, l fault.Link) (heal func() error, err error) {
	err = l.Check()
	if host == fault.Client {
		err = errors.New("the client has no link of its own: shape the links of the hosts")
	}
	return n.inject(ctx, err, "the link of "+endpointName(host), "shape", &linkFault{host: host, link: &l}, host)
}

// inject applies one more fault to the backend, unless wrong is set or a place does not exist.
func (n *Network) inject(ctx context.Context, wrong error, what, verb string, fault *linkFault, places ...int) (heal func() error, err error) {
	defer wrap.Error(&err, "%s %s", verb, what)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.backend == nil {
		return nil, fmt.Errorf("the nodes share 127.0.0.1, so their links cannot be cut or slowed: %s", n.loopback)
	}
	if err := cmp.Or(errors.Join(ctx.Err(), wrong), n.known(places...)); err != nil {
		return nil, err
	}
	remove := func() { n.faults = slices.DeleteFunc(n.faults, func(f *linkFault) bool { return f == fault }) }
	n.faults = append(n.faults, fault)
	if err := n.apply(fault); err != nil {
		remove()
		return nil, errors.Join(err, n.apply(fault))
	}
	return func() (err error) {
		defer wrap.Error(&err, "heal %s", what)
		n.mu.Lock()
		defer n.mu.Unlock()
		if !slices.Contains(n.faults, fault) {
			return nil // healed, or the network is closed
		}
		remove()
		if err = n.apply(fault); err != nil {
			n.faults = append(n.faults, fault)
		}
		return err
	}, nil
}

// apply updates the backend after a fault was added or removed.
func (n *Network) apply(changed *linkFault) error {
	if changed.link != nil {
		return n.backend.shape(changed.host, n.effective()[changed.host])
	}
	cuts := map[fault.Cut]bool{}
	for _, f := range n.faults {
		for _, c := range f.cuts {
			cuts[c] = true
		}
	}
	return n.backend.filter(slices.SortedFunc(maps.Keys(cuts), func(a, b fault.Cut) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	}))
}

// effective returns the shapes of the links under all faults together.
func (n *Network) effective() map[int]fault.Link {
	links := map[int]fault.Link{}
	for _, f := range n.faults {
		if f.link == nil {
			continue
		}
		l, shaped := links[f.host]
		if !shaped {
			l.Seed = f.link.Seed
		}
		l.Delay += f.link.Delay
		l.Jitter += f.link.Jitter
		l.Loss = 1 - (1-l.Loss)*(1-f.link.Loss)
		if b := f.link.Bandwidth; b > 0 && (l.Bandwidth == 0 || b < l.Bandwidth) {
			l.Bandwidth = b
		}
		links[f.host] = l
	}
	return links
}

// open returns the directions that no fault cuts.
func (n *Network) open(cuts []fault.Cut) []fault.Cut {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(cuts), func(c fault.Cut) bool {
		return slices.ContainsFunc(n.faults, func(f *linkFault) bool { return slices.Contains(f.cuts, c) })
	})
}

// wires makes and measures link faults.
type wires interface {
	Cut(ctx context.Context, cuts []fault.Cut) (heal func() error, err error)
	open(cuts []fault.Cut) []fault.Cut // the cuts that no fault makes
	Reaches(ctx context.Context, from, to int) (bool, error)
	Shape(ctx context.Context, host int, link fault.Link) (heal func() error, err error)
	RoundTrip(ctx context.Context, from, to int) (time.Duration, error)
	Loss(ctx context.Context, from, to, datagrams int) (float64, error)
	Throughput(ctx context.Context, from, to int, period time.Duration) (int64, error)
}

const (
	measureRate = 300 * time.Millisecond
	lossesSeen  = 60 // number of lost packets to expect in a measurement, to distinguish a loss from chance
	rateSlack   = 1.5
	linkWithin  = 5 * time.Second // until a busy machine shows a healed link
)

// Partition is like Cut. It verifies with packets of its own that nothing passes, and after the heal that everything
// passes that no other fault cuts.
func (n *Network) Partition(ctx context.Context, cuts []fault.Cut) (fault.Effect, error) {
	return partition(ctx, n, cuts)
}

// Degrade is like Shape for several hosts. It measures each link from this program, one after the other, before and
// after the heal. The link sets one of Delay, Loss and Bandwidth. Effect.Seen names the mechanism.
func (n *Network) Degrade(ctx context.Context, hosts []int, link fault.Link) (fault.Effect, error) {
	e, err := degrade(ctx, n, hosts, link)
	if err == nil && len(hosts) > 0 {
		n.mu.Lock()
		defer n.mu.Unlock()
		e.Seen += ", by " + n.backend.shapedBy(hosts[0])
	}
	return e, err
}

func partition(ctx context.Context, w wires, cuts []fault.Cut) (fault.Effect, error) {
	mend, err := w.Cut(ctx, cuts)
	if err != nil {
		return fault.Effect{}, err
	}
	e := fault.Effect{Seen: fault.Ways(len(cuts)) + " cut: no packet came through"}
	e.Heal = wait.Healing(wait.SeenWithin, mend, func(ctx context.Context) (string, error) {
		open := w.open(cuts)
		if len(open) == 0 {
			return "its ways are still cut by another fault", nil
		}
		return fault.Ways(len(open)) + " open again", reaches(ctx, w, open, " although the cut is healed")
	})
	return e, reaches(ctx, w, cuts, "")
}

// reaches verifies that all directions are open. unless ends the error of a closed direction; if it is empty, reaches
// verifies that all directions are cut.
func reaches(ctx context.Context, w wires, cuts []fault.Cut, unless string) error {
	errs := make([]error, len(cuts))
	var group sync.WaitGroup
	for i, c := range cuts {
		group.Go(func() {
			through, err := w.Reaches(ctx, c.From, c.To)
			switch {
			case err != nil:
				errs[i] = err
			case through && unless == "":
				errs[i] = fmt.Errorf("packets get from %s to %s although the way is cut", endpointName(c.From), endpointName(c.To))
			case !through && unless != "":
				errs[i] = fmt.Errorf("no packet gets from %s to %s%s", endpointName(c.From), endpointName(c.To), unless)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func degrade(ctx context.Context, w wires, hosts []int, link fault.Link) (fault.Effect, error) {
	var heals []func() error
	var err error
	for _, host := range hosts {
		heal, errOne := w.Shape(ctx, host, link)
		if errOne == nil {
			heals = append(heals, heal)
		}
		err = errors.Join(err, errOne)
	}
	mend := func() (err error) {
		for _, heal := range heals {
			err = errors.Join(err, heal())
		}
		return err
	}
	e := fault.Effect{Heal: wait.Healing(linkWithin, mend, func(ctx context.Context) (string, error) { return measure(ctx, w, hosts, link, false) })}
	if err == nil {
		e.Seen, err = measure(ctx, w, hosts, link, true)
	}
	return e, err
}

// measure verifies from this program that all links are degraded, or that none is.
func measure(ctx context.Context, w wires, hosts []int, link fault.Link, degraded bool) (string, error) {
	var texts []string
	for _, host := range hosts { // one at a time, because measurements disturb each other
		is, text, err := seen(ctx, w, host, link)
		switch {
		case err != nil:
			return "", err
		case degraded && !is:
			return "", fmt.Errorf("the fault does not show on the link of %s: %s", endpointName(host), text)
		case !degraded && is:
			return "", fmt.Errorf("the link of %s is as bad as before its heal: %s", endpointName(host), text)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", "), nil
}

// seen reports whether a host's link is at least as bad as l, and returns the measurement as text.
func seen(ctx context.Context, w wires, host int, l fault.Link) (bool, string, error) {
	switch {
	case l.Delay > 0:
		took, err := w.RoundTrip(ctx, fault.Client, host)
		return took >= 2*(l.Delay-l.Jitter), fmt.Sprintf("round trip %v", took.Round(10*time.Microsecond)), err
	case l.Loss > 0:
		loss, err := w.Loss(ctx, fault.Client, host, int(math.Ceil(lossesSeen/l.Loss)))
		return loss >= l.Loss/2, fmt.Sprintf("loss %v%%", math.Round(loss*1e4)/100), err
	default:
		rate, err := w.Throughput(ctx, fault.Client, host, measureRate)
		return float64(rate) <= rateSlack*float64(l.Bandwidth), fmt.Sprintf("throughput %dB/s", rate), err
	}
}

package nemesis

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
)

// Bounds of link faults that can be observed.
const (
	mostDelay = fault.MaxDelay
	leastLoss = 0.1 // percent
	mostLoss  = 99.0
	leastRate = 4000       // bytes a second
	mostRate  = 50_000_000 // above it one machine's own speed would be the limit
)

// links returns what a network needs for a kind of fault of links.
func links(fault fault.LinkFault) able {
	return func(_ effect, s *state, _ []cluster.Node) error {
		if s.net == nil {
			return errors.New("the network of its nodes cannot be cut, slowed or made lossy")
		}
		return s.net.LinkFaults(fault)
	}
}

// link is the argument of a fault of links: one property of fault.Link. Loss is in percent.
type link fault.Link

func (l link) String() string {
	switch {
	case l.Loss != 0:
		return "by " + decimal(l.Loss) + "%"
	case l.Bandwidth != 0:
		return "to " + rateText(l.Bandwidth)
	case l.Jitter != 0:
		return "by " + short(l.Delay) + " varying " + short(l.Jitter)
	}
	return "by " + short(l.Delay)
}

// linkKinds lists the faults of a node's link.
func linkKinds() []kind {
	return []kind{{
		word: "slow", usage: "slow TARGET by T [varying T]", also: []string{"delay", "latency"},
		about: "delay every packet to and from the node by T, so a round trip takes 2 T longer; in Kubernetes only packets from the pod",
		read:  readDelay, able: links(fault.BetweenNodes), claims: partLink,
	}, {
		word: "lossy", usage: "lossy TARGET by P%", also: []string{"loss", "drop"},
		about: "lose so many of the packets of the node, by chance",
		read:  readLoss, able: links(fault.BetweenNodes), claims: partLink,
	}, {
		word: "limit", usage: "limit TARGET to N[k|M|G]B/s", also: []string{"bandwidth", "throttle"},
		about: "let no more bytes a second through to and from the node; in Kubernetes only of what the pod sends",
		read:  readRate, able: links(fault.Bandwidth), claims: partLink,
	}}
}

func readDelay(e *effect, r *reader) (err error) {
	var d link
	if err = r.must("slow TARGET by 50ms", "by"); err != nil {
		return err
	}
	if d.Delay, err = r.span("by", time.Millisecond); err != nil {
		return err
	}
	if r.word("varying") {
		if d.Jitter, err = r.span("varying", time.Microsecond); err != nil {
			return err
		}
	}
	switch {
	case d.Delay+d.Jitter > mostDelay:
		return fmt.Errorf("a link can be delayed by at most %s, including the jitter", short(mostDelay))
	case d.Jitter > d.Delay/2:
		return fmt.Errorf("a delay of %s may vary by half of that at most, not by %s", short(d.Delay), short(d.Jitter))
	}
	e.arg = d
	return nil
}

func readLoss(e *effect, r *reader) error {
	if err := r.must("lossy TARGET by 5%", "by"); err != nil {
		return err
	}
	t := r.take()
	percent, ok := number(t, "%")
	if !ok {
		return fmt.Errorf("%q is no share of packets: write it as 5%%", clip(t))
	}
	if percent < leastLoss || percent > mostLoss {
		return fmt.Errorf("a loss of %s%% is out of bounds: it must be between %s%% and %s%%; for all packets take partition", decimal(percent), decimal(leastLoss), decimal(mostLoss))
	}
	e.arg = link{Loss: percent}
	return nil
}

// units of a bandwidth, the largest first.
var units = []struct {
	name  string
	bytes int64
}{{"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}, {"B/s", 1}}

func rateText(rate int64) string {
	for _, u := range units {
		if rate%u.bytes == 0 {
			return strconv.FormatInt(rate/u.bytes, 10) + u.name
		}
	}
	return ""
}

func readRate(e *effect, r *reader) error {
	if err := r.must("limit TARGET to 1MB/s", "to"); err != nil {
		return err
	}
	t := r.take()
	for _, u := range units {
		n, ok := number(t, u.name)
		if !ok {
			continue
		}
		bytes := math.Round(n * float64(u.bytes))
		if bytes < leastRate || bytes > mostRate {
			return fmt.Errorf("a limit of %s is out of bounds: it must be between %s and %s", clip(t), rateText(leastRate), rateText(mostRate))
		}
		e.arg = link{Bandwidth: int64(bytes)}
		return nil
	}
	return fmt.Errorf("%q is no bandwidth: write it as 500kB/s or 1MB/s", clip(t))
}

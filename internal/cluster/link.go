package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Link is what a host's link to all others is like, the same for what goes in
// and what goes out. What is zero is not touched.
type Link struct {
	// Delay is added to each packet, so a round trip takes twice as much longer.
	// The delay of one packet is uniform between Delay-Jitter and Delay+Jitter,
	// never less than zero, and packets keep their order.
	Delay, Jitter time.Duration
	Loss          float64 // the share of packets that get lost, from 0 to 1
	Bandwidth     int64   // bytes a second in each direction
	Seed          uint64  // makes the jitter repeatable
}

func (l Link) check() error {
	switch {
	case l.Delay < 0 || l.Jitter < 0:
		return fmt.Errorf("a delay of %v with a jitter of %v cannot be: neither may be negative", l.Delay, l.Jitter)
	case l.Delay+l.Jitter > maxDelay:
		return fmt.Errorf("a delay of %v with a jitter of %v is more than the %v that a link can hold back", l.Delay, l.Jitter, maxDelay)
	case !(l.Loss >= 0 && l.Loss <= 1):
		return fmt.Errorf("a loss of %v cannot be: it is a share from 0 to 1", l.Loss)
	case l.Bandwidth < 0:
		return fmt.Errorf("a bandwidth of %d bytes a second cannot be: it must not be negative", l.Bandwidth)
	case l.Bandwidth > 0 && l.Bandwidth < minBandwidth:
		return fmt.Errorf("a bandwidth of %d bytes a second is too little for one packet a second: give at least %d", l.Bandwidth, minBandwidth)
	}
	return nil
}

const (
	// maxDelay keeps what a link holds back in memory bounded.
	maxDelay = 30 * time.Second
	// minBandwidth lets a packet of 1500 bytes and its frame pass in a second.
	minBandwidth = 2048
)

// shaped is a fault on one host's link.
type shaped struct {
	id   *Link // distinguishes equal faults
	host int
	link Link
}

// Shape makes the link of a host slow, lossy or narrow, in both directions.
// Faults on one link add up: delays and jitters add, losses are independent of
// each other, the least bandwidth counts. heal may be called again, and needs to
// be when it fails.
func (n *Network) Shape(ctx context.Context, host int, l Link) (heal func() error, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	err = errors.Join(ctx.Err(), l.check())
	if err == nil {
		err = n.usable(host)
	}
	if err == nil && host == Client {
		err = errors.New("the client has no link of its own: shape the links of the hosts")
	}
	if err != nil {
		return nil, fmt.Errorf("shape the link of %s: %w", endpointName(host), err)
	}
	fault := shaped{id: &l, host: host, link: l}
	n.links = append(n.links, fault)
	if err := n.reshape(host); err != nil {
		n.unlink(fault)
		return nil, fmt.Errorf("shape the link of %s: %w", endpointName(host), errors.Join(err, n.reshape(host)))
	}
	healed := false
	return func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		if healed || n.closed {
			return nil
		}
		n.unlink(fault)
		if err := n.reshape(host); err != nil {
			n.links = append(n.links, fault)
			return fmt.Errorf("heal the link of %s: %w", endpointName(host), err)
		}
		healed = true
		return nil
	}, nil
}

func (n *Network) unlink(fault shaped) {
	n.links = slices.DeleteFunc(n.links, func(s shaped) bool { return s.id == fault.id })
}

// reshape brings one link to what all faults together ask for.
func (n *Network) reshape(host int) error {
	if err := n.filter(); err != nil {
		return err
	}
	return n.backend.shape(host, n.effective()[host])
}

// effective is what the links are like under all faults together.
func (n *Network) effective() map[int]Link {
	links := map[int]Link{}
	for _, s := range n.links {
		l, shaped := links[s.host]
		if !shaped {
			l.Seed = s.link.Seed
		}
		l.Delay += s.link.Delay
		l.Jitter += s.link.Jitter
		l.Loss = 1 - (1-l.Loss)*(1-s.link.Loss)
		if b := s.link.Bandwidth; b > 0 && (l.Bandwidth == 0 || b < l.Bandwidth) {
			l.Bandwidth = b
		}
		links[s.host] = l
	}
	return links
}

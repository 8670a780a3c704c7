package fault

import (
	"fmt"
	"time"
)

// Link describes a host's link to all others, the same in both directions. A zero field changes nothing.
type Link struct {
	// Delay is added to each packet, so a round trip takes twice as much longer. The delay of a packet is uniform
	// between Delay-Jitter and Delay+Jitter and never negative. Packets keep their order.
	Delay, Jitter time.Duration
	Loss          float64 // share of lost packets, from 0 to 1
	Bandwidth     int64   // bytes per second in each direction
	Seed          uint64  // makes the jitter repeatable
}

// LinkFault is a kind of link faults.
type LinkFault int

// The kinds of link faults, any of which a network may lack.
const (
	BetweenNodes LinkFault = iota // any fault not listed below
	ToClient                      // a cut between this program and a node
	Bandwidth                     // a limit of the throughput of a link
)

// Check returns an error if no link can be like l.
func (l Link) Check() error {
	switch {
	case l.Delay < 0 || l.Jitter < 0:
		return fmt.Errorf("a delay of %v with a jitter of %v is impossible: neither may be negative", l.Delay, l.Jitter)
	case l.Delay+l.Jitter > MaxDelay:
		return fmt.Errorf("a delay of %v with a jitter of %v is more than the maximum of %v", l.Delay, l.Jitter, MaxDelay)
	case !(l.Loss >= 0 && l.Loss <= 1):
		return fmt.Errorf("a loss of %v is impossible: it must be a share from 0 to 1", l.Loss)
	case l.Bandwidth < 0:
		return fmt.Errorf("a bandwidth of %d bytes a second is impossible: it must not be negative", l.Bandwidth)
	case l.Bandwidth > 0 && l.Bandwidth < MinBandwidth:
		return fmt.Errorf("a bandwidth of %d bytes a second is too little for one packet a second: give at least %d", l.Bandwidth, MinBandwidth)
	}
	return nil
}

const (
	// MaxDelay keeps what a link holds back in memory bounded.
	MaxDelay = 30 * time.Second
	// MinBandwidth lets a packet of 1500 bytes and its frame pass in a second.
	MinBandwidth = 2048
)

// Cut is a direction in which no packet passes from host From to host To. Either may be Client.
type Cut struct{ From, To int }

// Between returns the two directions between two places.
func Between(a, b int) []Cut { return []Cut{{a, b}, {b, a}} }

// Client stands for this program among the hosts' numbers.
const Client = -1

// Ways returns the number of directions as text.
func Ways(n int) string {
	if n == 1 {
		return "1 way"
	}
	return fmt.Sprintf("%d ways", n)
}

package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"stroppy/internal/cluster"
)

// The faults of links.
const (
	slow  = "slow"
	lossy = "lossy"
	limit = "limit"
)

// What a link can be made, so that it can be seen.
const (
	mostDelay = 30 * time.Second
	leastLoss = 0.1 // percent
	mostLoss  = 99.0
	leastRate = 4000       // bytes a second
	mostRate  = 50_000_000 // above it one machine's own speed would be the limit
)

// linkFault is a fault of the links of nodes.
type linkFault struct {
	word          string
	target        target
	delay, varies time.Duration
	percent       float64 // of packets that get lost
	rate          int64   // bytes a second
}

func parseLinkFault(word string, params func(*linkFault, *reader) error) func(*reader) (effect, error) {
	return func(r *reader) (effect, error) {
		f := linkFault{word: word}
		var err error
		if f.target, err = r.target(); err == nil {
			err = params(&f, r)
		}
		return f, err
	}
}
func readDelay(f *linkFault, r *reader) (err error) {
	if err = r.must("by", "slow TARGET by 50ms"); err != nil {
		return err
	}
	if f.delay, err = r.span("by", time.Millisecond); err != nil {
		return err
	}
	if r.word("varying") {
		if f.varies, err = r.span("varying", time.Microsecond); err != nil {
			return err
		}
	}
	switch {
	case f.delay+f.varies > mostDelay:
		return fmt.Errorf("a link can be slowed by %s at most, what it varies by included", short(mostDelay))
	case f.varies > f.delay/2:
		return fmt.Errorf("a delay of %s may vary by half of that at most, not by %s", short(f.delay), short(f.varies))
	}
	return nil
}

func readLoss(f *linkFault, r *reader) error {
	if err := r.must("by", "lossy TARGET by 5%"); err != nil {
		return err
	}
	t := r.take()
	var ok bool
	if f.percent, ok = number(t.text, "%"); !ok || t.quoted {
		return fmt.Errorf("%q is no share of packets: write it as 5%%", clip(t.text))
	}
	if f.percent < leastLoss || f.percent > mostLoss {
		return fmt.Errorf("a loss of %s%% is out of bounds: it must be between %s%% and %s%%; for all packets take partition", decimal(f.percent), decimal(leastLoss), decimal(mostLoss))
	}
	return nil
}

// units of a bandwidth, the largest first.
var units = []struct {
	name  string
	bytes int64
}{{"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}, {"B/s", 1}}

func readRate(f *linkFault, r *reader) error {
	if err := r.must("to", "limit TARGET to 1MB/s"); err != nil {
		return err
	}
	t := r.take()
	for _, u := range units {
		n, ok := number(t.text, u.name)
		if !ok || t.quoted {
			continue
		}
		bytes := math.Round(n * float64(u.bytes))
		if bytes < leastRate || bytes > mostRate {
			return fmt.Errorf("a limit of %s is out of bounds: it must be between %s and %s", clip(t.text), rateText(leastRate), rateText(mostRate))
		}
		f.rate = int64(bytes)
		return nil
	}
	return fmt.Errorf("%q is no bandwidth: write it as 500kB/s or 1MB/s", clip(t.text))
}

func rateText(rate int64) string {
	for _, u := range units {
		if rate%u.bytes == 0 {
			return strconv.FormatInt(rate/u.bytes, 10) + u.name
		}
	}
	return ""
}

func (f linkFault) String() string {
	text := f.word + " " + f.target.String()
	switch f.word {
	case slow:
		text += " by " + short(f.delay)
		if f.varies > 0 {
			text += " varying " + short(f.varies)
		}
	case lossy:
		text += " by " + decimal(f.percent) + "%"
	case limit:
		text += " to " + rateText(f.rate)
	}
	return text
}

func (linkFault) heals() healing { return healAlways }

func (f linkFault) needsLeader() bool { return f.target.needsLeader() }

func (f linkFault) possible(s *state) error {
	if err := s.hasLinks(); err != nil {
		return err
	}
	return f.target.possible(s)
}

// hasLinks says why the links of this cluster cannot have faults.
func (s *state) hasLinks() error {
	if s.net == nil {
		return errors.New("nothing can cut, slow or lose what its nodes send")
	}
	if why := s.net.Loopback(); why != "" {
		return fmt.Errorf("its nodes have no addresses of their own, so nothing between them can be cut, slowed or lost: %s; run as root, without asking for loopback", why)
	}
	return nil
}

func (f linkFault) plan(s *state, c situation) (*injection, error) {
	nodes, err := f.target.choose(s, c)
	if err != nil {
		return nil, err
	}
	// One link can have several faults, but what each of them does could not be
	// told apart.
	if nodes, err = s.unclaimed(nodes, errSamePart, partLink); err != nil {
		return nil, err
	}
	link := cluster.Link{Delay: f.delay, Jitter: f.varies, Loss: f.percent / 100, Bandwidth: f.rate, Seed: c.rng.Uint64()}
	return &injection{
		target: c.titles(nodes), claims: claimEach(nodes, partLink), stage: stageRelease,
		inject: func(ctx context.Context) (cluster.Effect, error) { return s.net.Degrade(ctx, numbers(nodes), link) },
	}, nil
}

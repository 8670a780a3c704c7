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

func readDelay(f *nodeFault, r *reader) (err error) {
	if err = r.must("by", "slow TARGET by 50ms"); err != nil {
		return err
	}
	if f.by, err = r.span("by", time.Millisecond); err != nil {
		return err
	}
	if r.word("varying") {
		if f.varies, err = r.span("varying", time.Microsecond); err != nil {
			return err
		}
	}
	switch {
	case f.by+f.varies > mostDelay:
		return fmt.Errorf("a link can be slowed by %s at most, what it varies by included", short(mostDelay))
	case f.varies > f.by/2:
		return fmt.Errorf("a delay of %s may vary by half of that at most, not by %s", short(f.by), short(f.varies))
	}
	return nil
}

func readLoss(f *nodeFault, r *reader) error {
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

func readRate(f *nodeFault, r *reader) error {
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
		f.bytes = int64(bytes)
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

// injectLink degrades the links of all nodes together.
func injectLink(ctx context.Context, f nodeFault, s *state, nodes []cluster.Node, seed uint64) (cluster.Effect, error) {
	link := cluster.Link{Delay: f.by, Jitter: f.varies, Loss: f.percent / 100, Bandwidth: f.bytes, Seed: seed}
	return s.net.Degrade(ctx, numbers(nodes), link)
}

package nemesis

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/cluster"
)

// The faults of links.
const (
	slow  = "slow"
	lossy = "lossy"
	limit = "limit"
)

// What a link can be made, and what can be seen of it.
const (
	mostDelay   = 30 * time.Second
	leastLoss   = 0.1 // percent
	mostLoss    = 99.0
	leastRate   = 4000       // bytes a second
	mostRate    = 50_000_000 // above it one machine's own speed would be the limit
	measureRate = 300 * time.Millisecond
	lossesSeen  = 60 // so many lost packets are waited for to tell a loss from chance
	rateSlack   = 1.5
	linkLook    = 5 * time.Second // for a busy machine to show a healed link
)

// shaping is a fault of the links of nodes.
type shaping struct {
	word          string
	target        target
	delay, varies time.Duration
	percent       float64 // of packets that get lost
	rate          int64   // bytes a second
}

func parseLink(word string) func(*reader) (effect, error) {
	return func(r *reader) (effect, error) {
		s := shaping{word: word}
		var err error
		if s.target, err = r.target(); err != nil {
			return nil, err
		}
		switch word {
		case slow:
			err = s.parseDelay(r)
		case lossy:
			err = s.parseLoss(r)
		case limit:
			err = s.parseRate(r)
		}
		return s, err
	}
}

func (s *shaping) parseDelay(r *reader) (err error) {
	if err = r.must("by", "slow TARGET by 50ms"); err != nil {
		return err
	}
	if s.delay, err = r.span("by", time.Millisecond); err != nil {
		return err
	}
	if r.word("varying") {
		if s.varies, err = r.span("varying", time.Microsecond); err != nil {
			return err
		}
	}
	switch {
	case s.delay+s.varies > mostDelay:
		return fmt.Errorf("a link can be slowed by %s at most, what it varies by included", short(mostDelay))
	case s.varies > s.delay/2:
		return fmt.Errorf("a delay of %s may vary by half of that at most, not by %s", short(s.delay), short(s.varies))
	}
	return nil
}

func (s *shaping) parseLoss(r *reader) error {
	if err := r.must("by", "lossy TARGET by 5%"); err != nil {
		return err
	}
	t := r.take()
	var ok bool
	if s.percent, ok = number(t.text, "%"); !ok || t.quoted {
		return fmt.Errorf("%q is no share of packets: write it as 5%%", clip(t.text))
	}
	if s.percent < leastLoss || s.percent > mostLoss {
		return fmt.Errorf("a loss of %s%% is out of bounds: it must be between %s%% and %s%%; for all packets take partition", decimal(s.percent), decimal(leastLoss), decimal(mostLoss))
	}
	return nil
}

// units of a bandwidth, the largest first.
var units = []struct {
	name  string
	bytes int64
}{{"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}, {"B/s", 1}}

func (s *shaping) parseRate(r *reader) error {
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
		s.rate = int64(bytes)
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

func (s shaping) String() string {
	text := s.word + " " + s.target.String()
	switch s.word {
	case slow:
		text += " by " + short(s.delay)
		if s.varies > 0 {
			text += " varying " + short(s.varies)
		}
	case lossy:
		text += " by " + decimal(s.percent) + "%"
	case limit:
		text += " to " + rateText(s.rate)
	}
	return text
}

func (s shaping) heals() healing { return healAlways }

func (s shaping) possible(g *ground) error {
	if err := hasLinks(g); err != nil {
		return err
	}
	return s.target.possible(g)
}

func (s shaping) plan(g *ground, m moment) (*wound, error) {
	nodes, err := s.target.choose(g, m)
	if err != nil {
		return nil, err
	}
	// One link can bear several faults, but what each of them does could not be
	// told apart.
	if nodes, err = g.free(nodes, errSamePart, partLink); err != nil {
		return nil, err
	}
	link := cluster.Link{Delay: s.delay, Jitter: s.varies, Loss: s.percent / 100, Bandwidth: s.rate, Seed: m.rng.Uint64()}
	w := &wound{target: m.titles(nodes), holds: takeHold(nodes, partLink), stage: stageRelease}
	w.each(nodes, func(ctx context.Context, n cluster.Node) (func() error, error) {
		return g.net.Shape(ctx, n.Number(), link)
	})
	measured := func(ctx context.Context, hurt bool) (string, error) {
		return s.measure(ctx, g, nodes, hurt)
	}
	w.verify = func(ctx context.Context) (string, error) { return measured(ctx, true) }
	w.healed = func(ctx context.Context) (how string, err error) {
		err = until(ctx, linkLook, func() (err error) { how, err = measured(ctx, false); return err })
		return how, err
	}
	return w, nil
}

// measure sees from this program whether the links of the nodes are hurt, or
// whether they are not.
func (s shaping) measure(ctx context.Context, g *ground, nodes []cluster.Node, hurt bool) (string, error) {
	var texts []string
	for _, n := range nodes { // one after the other: they would be in each other's way
		seen, text, err := s.seen(ctx, g.net, n.Number())
		switch {
		case err != nil:
			return "", err
		case hurt && !seen:
			return "", fmt.Errorf("the link of %s is not as asked: %s", n.Name(), text)
		case !hurt && seen:
			return "", fmt.Errorf("the link of %s is as bad as before its heal: %s", n.Name(), text)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", "), nil
}

// seen tells whether a link is as the fault makes it, and what was measured.
func (s shaping) seen(ctx context.Context, net network, node int) (bool, string, error) {
	switch s.word {
	case slow:
		took, err := net.RoundTrip(ctx, cluster.Client, node)
		least := 2 * (s.delay - s.varies)
		return took >= least, "round trip " + short(took.Round(10*time.Microsecond)), err
	case lossy:
		share := s.percent / 100
		loss, err := net.Loss(ctx, cluster.Client, node, int(math.Ceil(lossesSeen/share)))
		return loss >= share/2, "loss " + decimal(math.Round(loss*1e4)/100) + "%", err
	default:
		rate, err := net.Throughput(ctx, cluster.Client, node, measureRate)
		return float64(rate) <= rateSlack*float64(s.rate), "throughput " + strconv.FormatInt(rate, 10) + "B/s", err
	}
}

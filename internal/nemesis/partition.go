package nemesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"stroppy/internal/cluster"
)

// partition cuts the ways between nodes, or between nodes and this program.
const partition = "partition"

// The shapes of a partition that name no target.
const (
	halves = "halves"
	ring   = "ring"
	bridge = "bridge"
	client = "client"
)

// The directions of a partition.
const (
	bothWays = ""
	outbound = " one-way"    // what the target sends is lost
	inbound  = " one-way in" // what is sent to the target is lost
)

// splitting is a partition.
type splitting struct {
	shape  string // halves, ring, bridge, client; empty: the target from the other nodes
	target target // of client and the empty shape
	way    string
}

func parsePartition(r *reader) (effect, error) {
	var s splitting
	for _, shape := range []string{halves, ring, bridge, client} {
		if r.word(shape) {
			s.shape = shape
			break
		}
	}
	if s.shape == client {
		r.word("from")
	}
	if s.shape == client || s.shape == "" {
		var err error
		if s.target, err = r.target(halves, ring, bridge, client); err != nil {
			return nil, err
		}
	}
	if r.word("one-way") {
		s.way = outbound
		switch {
		case r.word("in"):
			s.way = inbound
		case r.word("out"):
		}
	}
	switch {
	case s.way == bothWays:
	case s.shape == ring, s.shape == bridge, s.shape == "" && s.target.word == all:
		return nil, errors.New("it cannot be one-way: every node is on both sides")
	case s.shape == halves && s.way == inbound:
		return nil, errors.New("halves take one-way without in: which half hears the other is left to chance")
	}
	return s, nil
}

func (s splitting) String() string {
	switch s.shape {
	case "":
		return partition + " " + s.target.String() + s.way
	case client:
		return partition + " client from " + s.target.String() + s.way
	}
	return partition + " " + s.shape + s.way
}

func (s splitting) heals() healing { return healAlways }

func (s splitting) possible(g *ground) error {
	if err := hasLinks(g); err != nil {
		return err
	}
	nodes := len(g.cluster.Nodes())
	switch {
	case g.grows:
	case s.shape != client && nodes < 2:
		return errors.New("a cluster of one node has no link to cut; partition client from it instead")
	case s.shape == bridge && nodes < 3:
		return errors.New("a bridge needs three nodes at least")
	case s.shape == ring && nodes < 4:
		return errors.New("a ring needs four nodes at least: of three each is the neighbour of each")
	}
	if s.shape == client || s.shape == "" {
		return s.target.possible(g)
	}
	return nil
}

// hasLinks says why the links of this cluster cannot be hurt.
func hasLinks(g *ground) error {
	if why := g.net.Loopback(); why != "" {
		return fmt.Errorf("its nodes have no addresses of their own, so nothing between them can be cut, slowed or lost: %s; run as root, without asking for loopback", why)
	}
	return nil
}

func (s splitting) plan(g *ground, m moment) (*wound, error) {
	sides, err := s.sides(g, m)
	if err != nil {
		return nil, err
	}
	if err := g.spare(s.target, sides.lost); err != nil {
		return nil, err
	}
	w := &wound{target: sides.title, lost: sides.lost, stage: stageRelease}
	for _, n := range sides.hurt {
		w.holds = append(w.holds, hold{n, partSide})
	}
	var mend func() error
	w.inject = func(ctx context.Context) (err error) {
		mend, err = g.net.Cut(ctx, sides.cuts)
		return err
	}
	w.verify = func(ctx context.Context) (string, error) {
		err := reaches(ctx, g.net, sides.cuts, false)
		return count(len(sides.cuts), "way", "ways") + " cut: no packet came through", err
	}
	w.heal = func(ctx context.Context) error {
		if mend == nil {
			return nil
		}
		return until(ctx, lookFor, mend)
	}
	w.cuts = sides.cuts
	w.healed = func(ctx context.Context) (string, error) {
		open := g.uncut(w)
		if len(open) == 0 {
			return "its ways are cut by another fault yet", nil
		}
		err := until(ctx, lookFor, func() error { return reaches(ctx, g.net, open, true) })
		return count(len(open), "way", "ways") + " open again", err
	}
	return w, nil
}

// uncut returns the cuts of a wound that no other wound has too.
func (g *ground) uncut(w *wound) []cluster.Cut {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.cuts), func(c cluster.Cut) bool {
		return slices.ContainsFunc(g.wounds, func(other *wound) bool {
			return other != w && !other.over && slices.Contains(other.cuts, c)
		})
	})
}

// reaches sees that all ways are open, or that all are cut.
func reaches(ctx context.Context, net network, ways []cluster.Cut, open bool) error {
	errs := make([]error, len(ways))
	var group sync.WaitGroup
	for i, c := range ways {
		group.Go(func() {
			through, err := net.Reaches(ctx, c.From, c.To)
			switch {
			case err != nil:
				errs[i] = err
			case through && !open:
				errs[i] = fmt.Errorf("packets get from %s to %s although the way is cut", placeName(c.From), placeName(c.To))
			case !through && open:
				errs[i] = fmt.Errorf("no packet gets from %s to %s although the cut is healed", placeName(c.From), placeName(c.To))
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func placeName(place int) string {
	if place == cluster.Client {
		return "the client"
	}
	return nodeName(place)
}

// sides are who is cut off from whom.
type sides struct {
	title string
	cuts  []cluster.Cut
	hurt  []int // on these the fault has hold
	lost  []int // these do not reach a majority
}

func (s splitting) sides(g *ground, m moment) (sides, error) {
	nodes := g.cluster.Nodes()
	order := m.rng.Perm(len(nodes))
	shuffled := make([]cluster.Node, len(nodes))
	for i, j := range order {
		shuffled[i] = nodes[j]
	}
	switch s.shape {
	case halves:
		half := pick(m.rng, nodes, len(nodes)/2)
		return s.groups(m, half, others(nodes, half)), nil
	case ring:
		if len(nodes) < 4 {
			return sides{}, errAllHurt
		}
		return circle(shuffled), nil
	case bridge:
		if len(nodes) < 3 {
			return sides{}, errAllHurt
		}
		return bridged(m, nodes, shuffled), nil
	case client:
		chosen, err := s.target.choose(g, m)
		if err != nil {
			return sides{}, err
		}
		cut := sides{title: "client" + s.arrow() + m.titles(chosen), hurt: numbers(chosen)}
		cut.cuts = ways(numbers(chosen), []int{cluster.Client}, s.way)
		return cut, nil
	}
	if s.target.word == all {
		return apart(nodes), nil
	}
	group, err := s.group(g, m, nodes)
	if err != nil {
		return sides{}, err
	}
	return s.groups(m, group, others(nodes, group)), nil
}

// group chooses the nodes to be cut off together. The majority leaves the leader
// where it loses its lead, the minority where it keeps it.
func (s splitting) group(g *ground, m moment, nodes []cluster.Node) ([]cluster.Node, error) {
	led := slices.IndexFunc(nodes, func(n cluster.Node) bool { return n.Number() == m.leader })
	switch s.target.word {
	case majority:
		return pick(m.rng, without(nodes, led), len(nodes)/2+1), nil
	case minority:
		candidates := g.unhurt(without(nodes, led))
		if len(candidates) < (len(nodes)-1)/2 {
			return nil, errAllHurt
		}
		return pick(m.rng, candidates, (len(nodes)-1)/2), nil
	}
	return s.target.choose(g, m)
}

// groups cuts one group off from another.
func (s splitting) groups(m moment, a, b []cluster.Node) sides {
	lost := numbers(slices.Concat(a, b))
	switch most := (len(a) + len(b)) / 2; {
	case len(b) > most:
		lost = numbers(a)
	case len(a) > most:
		lost = numbers(b)
	}
	slices.Sort(lost)
	cut := sides{title: m.titles(a) + s.arrow() + m.titles(b), lost: lost, hurt: lost}
	cut.cuts = ways(numbers(a), numbers(b), s.way)
	return cut
}

// arrow stands between two sides; it points the way that stays open.
func (s splitting) arrow() string {
	open := s.way
	if s.shape == client { // whose title names the target last
		switch s.way {
		case outbound:
			open = inbound
		case inbound:
			open = outbound
		}
	}
	switch open {
	case outbound:
		return " ← "
	case inbound:
		return " → "
	}
	return " | "
}

// ways are the directions from the nodes a to b, and back.
func ways(a, b []int, way string) (cuts []cluster.Cut) {
	for _, from := range a {
		for _, to := range b {
			if way != inbound {
				cuts = append(cuts, cluster.Cut{From: from, To: to})
			}
			if way != outbound {
				cuts = append(cuts, cluster.Cut{From: to, To: from})
			}
		}
	}
	return cuts
}

// circle lets every node reach only so many neighbours on a ring that with them
// it is a majority: no two nodes see the same one.
func circle(nodes []cluster.Node) sides {
	count := len(nodes)
	reach := (count/2 + 1) / 2 // neighbours on each side: 2·reach+1 ≥ count/2+1
	list := numbers(nodes)
	cut := sides{hurt: slices.Sorted(slices.Values(list))}
	for i, a := range list {
		for j, b := range list[:i] {
			if apart := i - j; min(apart, count-apart) > reach {
				cut.cuts = append(cut.cuts, ways([]int{a}, []int{b}, bothWays)...)
			}
		}
	}
	for i, n := range nodes {
		if i > 0 {
			cut.title += " – "
		}
		cut.title += n.Name()
	}
	cut.title += " – " + nodes[0].Name()
	return cut
}

// bridged cuts two groups off from each other; the first of the shuffled nodes
// reaches both.
func bridged(m moment, nodes, shuffled []cluster.Node) sides {
	middle := shuffled[0]
	rest := others(nodes, shuffled[:1])
	a := pick(m.rng, rest, len(rest)/2)
	b := others(rest, a)
	return sides{
		title: m.titles(a) + " – " + middle.Name() + " – " + m.titles(b),
		cuts:  ways(numbers(a), numbers(b), bothWays),
		hurt:  numbers(nodes),
	}
}

// apart leaves every node alone.
func apart(nodes []cluster.Node) sides {
	cut := sides{hurt: numbers(nodes), lost: numbers(nodes)}
	titles := make([]string, len(nodes))
	for i, n := range nodes {
		titles[i] = n.Name()
		cut.cuts = append(cut.cuts, ways([]int{n.Number()}, numbers(nodes[:i]), bothWays)...)
	}
	cut.title = strings.Join(titles, " | ")
	return cut
}

// others returns the nodes that are not in the group.
func others(nodes, group []cluster.Node) []cluster.Node {
	in := numbers(group)
	return slices.DeleteFunc(slices.Clone(nodes), func(n cluster.Node) bool { return slices.Contains(in, n.Number()) })
}

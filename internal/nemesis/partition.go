package nemesis

import (
	"context"
	"errors"
	"slices"
	"strings"

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
	var p splitting
	for _, shape := range []string{halves, ring, bridge, client} {
		if r.word(shape) {
			p.shape = shape
			break
		}
	}
	if p.shape == client {
		r.word("from")
	}
	if p.shape == client || p.shape == "" {
		var err error
		if p.target, err = r.target(halves, ring, bridge, client); err != nil {
			return nil, err
		}
	}
	if r.word("one-way") {
		p.way = outbound
		switch {
		case r.word("in"):
			p.way = inbound
		case r.word("out"):
		}
	}
	switch {
	case p.way == bothWays:
	case p.shape == ring, p.shape == bridge, p.shape == "" && p.target.word == all:
		return nil, errors.New("it cannot be one-way: every node is on both sides")
	case p.shape == halves && p.way == inbound:
		return nil, errors.New("halves take one-way without in: which half hears the other is left to chance")
	}
	return p, nil
}

func (p splitting) String() string {
	switch p.shape {
	case "":
		return partition + " " + p.target.String() + p.way
	case client:
		return partition + " client from " + p.target.String() + p.way
	}
	return partition + " " + p.shape + p.way
}

func (splitting) heals() healing { return healAlways }

func (p splitting) needsLeader() bool {
	switch p.shape {
	case "":
		return p.target.needsLeader() || p.target.word == majority || p.target.word == minority
	case client:
		return p.target.needsLeader()
	}
	return false
}

func (p splitting) possible(s *state) error {
	if err := s.hasLinks(); err != nil {
		return err
	}
	nodes := len(s.cluster.Nodes())
	switch {
	case s.grows:
	case p.shape != client && nodes < 2:
		return errors.New("a cluster of one node has no link to cut; partition client from it instead")
	case p.shape == bridge && nodes < 3:
		return errors.New("a bridge needs three nodes at least")
	case p.shape == ring && nodes < 4:
		return errors.New("a ring needs four nodes at least: of three each is the neighbour of each")
	}
	if p.shape == client || p.shape == "" {
		return p.target.possible(s)
	}
	return nil
}

func (p splitting) plan(s *state, c situation) (*injection, error) {
	sides, err := p.sides(s, c)
	if err != nil {
		return nil, err
	}
	if err := s.keepMajority(p.target, sides.lost); err != nil {
		return nil, err
	}
	i := &injection{target: sides.title, lost: sides.lost, stage: stageRelease}
	for _, n := range sides.touched {
		i.claims = append(i.claims, claim{n, partSide})
	}
	i.inject = func(ctx context.Context) (cluster.Effect, error) { return s.net.Partition(ctx, sides.cuts) }
	return i, nil
}

// sides are who is cut off from whom.
type sides struct {
	title   string
	cuts    []cluster.Cut
	touched []int // the nodes that the fault claims
	lost    []int // these do not reach a majority
}

func (p splitting) sides(s *state, c situation) (sides, error) {
	nodes := s.cluster.Nodes()
	order := c.rng.Perm(len(nodes))
	shuffled := make([]cluster.Node, len(nodes))
	for i, j := range order {
		shuffled[i] = nodes[j]
	}
	switch p.shape {
	case halves:
		half := pick(c.rng, nodes, len(nodes)/2)
		return p.groups(c, half, others(nodes, half)), nil
	case ring:
		if len(nodes) < 4 {
			return sides{}, errAllHurt
		}
		return circle(shuffled), nil
	case bridge:
		if len(nodes) < 3 {
			return sides{}, errAllHurt
		}
		return bridged(c, nodes, shuffled), nil
	case client:
		chosen, err := p.target.choose(s, c)
		if err != nil {
			return sides{}, err
		}
		cut := sides{title: "client" + p.arrow() + c.titles(chosen), touched: numbers(chosen)}
		cut.cuts = ways(numbers(chosen), []int{cluster.Client}, p.way)
		return cut, nil
	}
	if p.target.word == all {
		return apart(nodes), nil
	}
	group, err := p.group(s, c, nodes)
	if err != nil {
		return sides{}, err
	}
	return p.groups(c, group, others(nodes, group)), nil
}

// group chooses the nodes to be cut off together. The majority leaves the leader
// where it loses its lead, the minority where it keeps it.
func (p splitting) group(s *state, c situation, nodes []cluster.Node) ([]cluster.Node, error) {
	led := slices.IndexFunc(nodes, func(n cluster.Node) bool { return n.Number() == c.leader })
	switch p.target.word {
	case majority:
		return pick(c.rng, without(nodes, led), len(nodes)/2+1), nil
	case minority:
		candidates := s.untouched(without(nodes, led))
		if len(candidates) < (len(nodes)-1)/2 {
			return nil, errAllHurt
		}
		return pick(c.rng, candidates, (len(nodes)-1)/2), nil
	}
	return p.target.choose(s, c)
}

// groups cuts one group off from another.
func (p splitting) groups(c situation, a, b []cluster.Node) sides {
	lost := numbers(slices.Concat(a, b))
	switch most := (len(a) + len(b)) / 2; {
	case len(b) > most:
		lost = numbers(a)
	case len(a) > most:
		lost = numbers(b)
	}
	slices.Sort(lost)
	cut := sides{title: c.titles(a) + p.arrow() + c.titles(b), lost: lost, touched: lost}
	cut.cuts = ways(numbers(a), numbers(b), p.way)
	return cut
}

// arrow stands between two sides; it points the way that stays open.
func (p splitting) arrow() string {
	open := p.way
	if p.shape == client { // whose title names the target last
		switch p.way {
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
	cut := sides{touched: slices.Sorted(slices.Values(list))}
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
func bridged(c situation, nodes, shuffled []cluster.Node) sides {
	middle := shuffled[0]
	rest := others(nodes, shuffled[:1])
	a := pick(c.rng, rest, len(rest)/2)
	b := others(rest, a)
	return sides{
		title:   c.titles(a) + " – " + middle.Name() + " – " + c.titles(b),
		cuts:    ways(numbers(a), numbers(b), bothWays),
		touched: numbers(nodes),
	}
}

// apart leaves every node alone.
func apart(nodes []cluster.Node) sides {
	cut := sides{touched: numbers(nodes), lost: numbers(nodes)}
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

package nemesis

import (
	"context"
	"errors"
	"slices"
	"strings"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
)

// The shapes of a partition. Empty: the target is cut off from the other nodes.
const (
	halves = "halves"
	ring   = "ring"
	bridge = "bridge"
	client = "client" // from the target
)

// The directions of a partition.
const (
	bothWays = ""
	outbound = "one-way"    // what the target sends is lost
	inbound  = "one-way in" // what is sent to the target is lost
)

// cutting is the argument of partition: its shape and its direction.
type cutting struct{ shape, way string }

func (c cutting) String() string { return phrase(c.shape, c.way) }

func partitionKinds() []kind {
	return []kind{{
		word: "partition", usage: "partition TARGET [one-way [in]]", also: []string{"isolate", "disconnect", "split"},
		about: "no packet between the target and the other nodes, clients reach all; one-way: what the target sends is lost, one-way in: what is sent to it; majority leaves the leader on the smaller side, minority on the larger; all: each node alone",
		further: [][2]string{
			{"partition halves [one-way] | ring | bridge", "halves: two groups by chance; ring: each node reaches only its neighbours, a majority; bridge: two groups that only one node reaches both of"},
			{"partition client from TARGET [one-way [in]]", "no packet between this program and the target; the nodes reach each other"},
		},
		read: readPartition, plan: planPartition,
		text: func(e effect) string {
			c := e.arg.(cutting)
			from := ""
			if c.shape == client {
				from = "from"
			}
			return phrase("partition", c.shape, from, string(e.target), c.way)
		},
		able: func(e effect, s *state, nodes []cluster.Node) error {
			if e.arg.(cutting).shape == client {
				return links(fault.ToClient)(e, s, nodes)
			}
			return links(fault.BetweenNodes)(e, s, nodes)
		},
		few: func(e effect) (int, string) {
			switch e.arg.(cutting).shape {
			case client:
				return 1, ""
			case bridge:
				return 3, "a bridge needs three nodes at least"
			case ring:
				return 4, "a ring needs four nodes at least: of three each is the neighbour of each"
			}
			return 2, "a cluster of one node has no link to cut; partition client from it instead"
		},
		led: func(e effect) bool {
			return e.arg.(cutting).shape == "" && (e.target == majority || e.target == minority)
		},
	}}
}

func readPartition(e *effect, r *reader) (err error) {
	var c cutting
	shapes := []string{halves, ring, bridge, client}
	if slices.Contains(shapes, r.peek()) {
		c.shape = r.take()
	}
	if c.shape == client {
		r.word("from")
	}
	if c.shape == client || c.shape == "" {
		if e.target, err = r.target(shapes...); err != nil {
			return err
		}
	}
	if r.word("one-way") {
		if c.way = outbound; r.word("in") {
			c.way = inbound
		} else {
			r.word("out")
		}
	}
	e.arg = c
	switch {
	case c.way == bothWays:
	case c.shape == ring, c.shape == bridge, c.shape == "" && e.target == all:
		return errors.New("it cannot be one-way: every node is on both sides")
	case c.shape == halves && c.way == inbound:
		return errors.New("halves take one-way without in: which half hears the other is left to chance")
	}
	return nil
}

func planPartition(e effect, s *state, c situation) (*injection, error) {
	p, err := e.split(s, c)
	if err != nil {
		return nil, err
	}
	cuts := p.cuts()
	return &injection{
		target: p.title(), lost: p.lost, claims: claimEach(p.touched, partSide), stage: stageRelease,
		inject: func(ctx context.Context) (fault.Effect, error) { return s.net.Partition(ctx, cuts) },
	}, s.keepMajority(e.target, p.lost)
}

// side is a group of nodes that reach each other in a partition.
type side struct {
	title string
	nodes []int
}

// sides are the groups of a partition and the directions that are cut between them.
type sides struct {
	all     []side
	way     string              // that is cut, of the first side to the second
	linked  func(i, j int) bool // reports whether two sides, i after j, reach each other; nil: none do
	touched []int               // the nodes that the fault claims
	lost    []int               // these do not reach a majority
}

// title names the sides. An arrow points the way that stays open.
func (s sides) title() string {
	between := map[string]string{bothWays: " | ", outbound: " ← ", inbound: " → "}[s.way]
	if s.linked != nil {
		between = " – "
	}
	titles := make([]string, len(s.all))
	for i, side := range s.all {
		titles[i] = side.title
	}
	return strings.Join(titles, between)
}

// cuts returns the directions that are cut.
func (s sides) cuts() (cuts []fault.Cut) {
	for i, second := range s.all {
		for j, first := range s.all[:i] {
			if s.linked != nil && s.linked(i, j) {
				continue
			}
			for _, a := range first.nodes {
				for _, b := range second.nodes {
					if s.way != inbound {
						cuts = append(cuts, fault.Cut{From: a, To: b})
					}
					if s.way != outbound {
						cuts = append(cuts, fault.Cut{From: b, To: a})
					}
				}
			}
		}
	}
	return cuts
}

func (e effect) split(s *state, c situation) (sides, error) {
	cut := e.arg.(cutting)
	nodes := s.cluster.Nodes()
	count := len(nodes)
	shuffled := make([]cluster.Node, count)
	for i, j := range c.rng.Perm(count) {
		shuffled[i] = nodes[j]
	}
	alone := func(n cluster.Node) side { return side{n.Name(), []int{n.Number()}} }
	group := func(nodes []cluster.Node) side { return side{c.titles(nodes), numbers(nodes)} }
	switch {
	case cut.shape == ring && count < 4, cut.shape == bridge && count < 3:
		return sides{}, errAllHurt
	case cut.shape == ring:
		// Every node and the neighbors that it reaches are just a majority, and no two nodes see
		// the same majority. The first node comes last as well, to close the ring.
		reach := (count/2 + 1) / 2 // on each side: 2·reach+1 ≥ count/2+1
		around := append(list(shuffled, alone), side{title: shuffled[0].Name()})
		return sides{all: around, touched: numbers(nodes), linked: func(i, j int) bool { return min(i-j, count-i+j) <= reach }}, nil
	case cut.shape == bridge:
		rest := others(nodes, shuffled[:1])
		a := pick(c.rng, rest, len(rest)/2)
		ends := []side{group(a), alone(shuffled[0]), group(others(rest, a))}
		return sides{all: ends, touched: numbers(nodes), linked: func(i, j int) bool { return i-j == 1 }}, nil
	case cut.shape == "" && e.target == all:
		all := list(nodes, alone)
		for _, number := range s.witnesses() {
			all = append(all, side{"witness " + nodeName(number), []int{number}})
		}
		return sides{all: all, touched: numbers(nodes), lost: numbers(nodes)}, nil
	}
	chosen, err := e.chooseSide(s, c, nodes)
	if err != nil {
		return sides{}, err
	}
	if cut.shape == client {
		theirs := map[string]string{outbound: inbound, inbound: outbound}[cut.way] // the way as the client has it
		return sides{all: []side{{client, []int{fault.Client}}, group(chosen)}, way: theirs, touched: numbers(chosen)}, nil
	}
	rest := others(nodes, chosen)
	lost := numbers(without(nodes, func(n cluster.Node) bool {
		return len(chosen) > count/2 && slices.Contains(chosen, n) || len(rest) > count/2 && slices.Contains(rest, n)
	}))
	second := group(rest)
	second.nodes = append(second.nodes, s.witnesses()...)
	return sides{all: []side{group(chosen), second}, way: cut.way, touched: lost, lost: lost}, nil
}

// witnesses returns the hosts of the cluster that vote and have no data. They stay with the nodes
// that the target is cut off from.
func (s *state) witnesses() []int {
	if c, ok := s.cluster.(Witnessed); ok {
		return c.Witnesses()
	}
	return nil
}

// chooseSide chooses the nodes to cut off together. With the target majority the leader loses its
// lead, and with minority it keeps the lead.
func (e effect) chooseSide(s *state, c situation, nodes []cluster.Node) ([]cluster.Node, error) {
	_, rest := c.divide(nodes)
	shape := e.arg.(cutting).shape
	switch {
	case shape == halves:
		return pick(c.rng, nodes, len(nodes)/2), nil
	case shape == "" && e.target == majority:
		return pick(c.rng, rest, len(nodes)/2+1), nil
	case shape == "" && e.target == minority:
		return s.spare(c, nodes, rest)
	}
	return e.target.choose(s, c)
}

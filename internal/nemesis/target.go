package nemesis

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/cluster"
)

// target says which nodes a fault is done to: one of the words below, or the
// node of a number.
type target struct {
	word string // empty: the node of this number
	node int
}

// The words for targets. Databases name the roles differently, and a fault
// prints the word that it was given.
const (
	random    = "random"    // one node that has no fault now
	leader    = "leader"    // the node that takes the writes
	primary   = "primary"   // the same
	follower  = "follower"  // one node at random that does not lead and that has no fault now
	standby   = "standby"   // the same
	followers = "followers" // all nodes that do not lead
	standbys  = "standbys"  // the same
	majority  = "majority"  // more than half of the nodes, by chance
	minority  = "minority"  // as many nodes as can be lost, by chance, of those that has no fault now
	all       = "all"       // every node
)

func targetWords() []string {
	return []string{random, leader, primary, follower, standby, followers, standbys, majority, minority, all}
}

func (t target) String() string {
	if t.word == "" {
		return nodeName(t.node)
	}
	return t.word
}

func nodeName(number int) string { return "n" + strconv.Itoa(number) }

// parseNode reads n0 or 0.
func parseNode(word string) (number int, ok bool) {
	n, err := strconv.ParseUint(strings.TrimPrefix(word, "n"), 10, 16)
	return int(n), err == nil
}

// needsLeader tells whether the nodes cannot be chosen without knowing who
// leads.
func (t target) needsLeader() bool {
	switch t.word {
	case leader, primary, follower, standby, followers, standbys:
		return true
	}
	return false
}

// byChance tells whether it is chance, and not the script, that names the nodes.
// Then a choice must not add to earlier faults so that the majority is lost.
func (t target) byChance() bool {
	switch t.word {
	case random, follower, standby, minority:
		return true
	}
	return false
}

var (
	errEquals    = errors.New("the nodes of this cluster are equal: none of them leads; name a node or take random")
	errTwo       = errors.New("it needs a cluster of two nodes at least")
	errThree     = errors.New("it needs a cluster of three nodes at least: of fewer none can be spared")
	errAllHurt   = skipError("every node that it may choose has a fault already")
	errMajority  = skipError("with the nodes that are lost already it would take away the majority")
	errDown      = skipError("it is down already by another fault of the script")
	errSamePart  = skipError("another fault of the same sort is on it already")
	errReshaping = skipError("another change of the cluster's nodes is under way")
)

// skipError says why an injection was left out although nothing is broken.
type skipError string

func (e skipError) Error() string { return string(e) }

// possible says why the target can never be found in this cluster.
func (t target) possible(s *state) error {
	nodes := s.cluster.Nodes()
	if t.needsLeader() && !s.leads {
		return errEquals
	}
	switch t.word {
	case "":
		if !s.grows && s.node(t.node) == nil {
			return fmt.Errorf("the cluster has no node %s; it has %s", t, names(nodes))
		}
	case follower, standby, followers, standbys:
		if len(nodes) < 2 {
			return errTwo
		}
	case minority:
		if len(nodes) < 3 {
			return errThree
		}
	}
	return nil
}

// choose names the nodes, in order of their numbers.
func (t target) choose(s *state, c situation) ([]cluster.Node, error) {
	nodes := s.cluster.Nodes()
	led := slices.IndexFunc(nodes, func(n cluster.Node) bool { return n.Number() == c.leader })
	var chosen []cluster.Node
	switch t.word {
	case "":
		n := s.node(t.node)
		if n == nil {
			return nil, fmt.Errorf("the cluster has no node %s any more; it has %s", t, names(nodes))
		}
		chosen = []cluster.Node{n}
	case random:
		chosen = pick(c.rng, s.untouched(nodes), 1)
	case leader, primary:
		if led < 0 {
			return nil, fmt.Errorf("the cluster named %s as its leader, which is none of its nodes %s", nodeName(c.leader), names(nodes))
		}
		chosen = nodes[led : led+1]
	case follower, standby:
		chosen = pick(c.rng, s.untouched(without(nodes, led)), 1)
	case followers, standbys:
		chosen = without(nodes, led)
	case majority:
		chosen = pick(c.rng, nodes, len(nodes)/2+1)
	case minority:
		if candidates := s.untouched(nodes); len(candidates) >= (len(nodes)-1)/2 {
			chosen = pick(c.rng, candidates, (len(nodes)-1)/2)
		}
	case all:
		chosen = slices.Clone(nodes)
	}
	if len(chosen) == 0 {
		return nil, errAllHurt
	}
	return chosen, nil
}

// pick takes so many of the nodes at random and returns them in their order; all
// if there are fewer.
func pick(rng *rand.Rand, nodes []cluster.Node, count int) []cluster.Node {
	order := rng.Perm(len(nodes))
	order = order[:min(count, len(order))]
	slices.Sort(order)
	var picked []cluster.Node
	for _, i := range order {
		picked = append(picked, nodes[i])
	}
	return picked
}

// without returns the nodes but the one at an index, which may be -1.
func without(nodes []cluster.Node, index int) []cluster.Node {
	if index < 0 {
		return slices.Clone(nodes)
	}
	return slices.Delete(slices.Clone(nodes), index, index+1)
}

func numbers(nodes []cluster.Node) []int {
	list := make([]int, len(nodes))
	for i, n := range nodes {
		list[i] = n.Number()
	}
	return list
}

func names(nodes []cluster.Node) string {
	list := make([]string, len(nodes))
	for i, n := range nodes {
		list[i] = n.Name()
	}
	return strings.Join(list, ", ")
}

// titles names the nodes, and says which of them leads where that is known.
func (c situation) titles(nodes []cluster.Node) string {
	list := make([]string, len(nodes))
	for i, n := range nodes {
		list[i] = n.Name()
		if n.Number() == c.leader {
			list[i] += c.leads()
		}
	}
	return strings.Join(list, ", ")
}

// leads says of the node that leads that it does, and since when that is not sure.
func (c situation) leads() string {
	if c.age > 0 {
		return fmt.Sprintf(" (led %s before)", c.age.Round(time.Millisecond))
	}
	return " (leader)"
}

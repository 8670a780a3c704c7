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

// target names the nodes of a fault: one of the words below, or the name of a node. It is empty if
// the fault names no node.
type target string

// The words for targets. Databases name the roles differently. A fault prints the word of its text.
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

// Continuations returns the texts that may continue a fault: with a kind of fault, then its target,
// then the words of a schedule. The last word of text may be incomplete.
func Continuations(text string) (list []string) {
	words := strings.Fields(text)
	if len(words) > 0 && !strings.HasSuffix(text, " ") {
		words = words[:len(words)-1]
	}
	before := strings.Join(words, " ")
	if before != "" {
		before += " "
	}
	add := func(next ...string) {
		for _, word := range next {
			list = append(list, before+word)
		}
	}
	if len(words) == 0 {
		for _, k := range kinds() {
			add(k.word)
		}
		return list
	}
	for _, k := range kinds() {
		switch usage := strings.Fields(k.usage); {
		case k.word != words[0] || strings.Contains(k.usage, "'"): // a quoted text follows
		case len(words) < len(usage) && usage[len(words)] == "TARGET":
			add(targetWords()...)
		case len(words) < len(usage) && usage[len(words)] != "[one-way":
			add(strings.Trim(usage[len(words)], "[]"))
		default:
			add("at", "every", "for")
		}
	}
	return list
}

// role returns the target without synonyms.
func (t target) role() target {
	switch t {
	case primary:
		return leader
	case standby:
		return follower
	case standbys:
		return followers
	}
	return t
}

func nodeName(number int) string { return "n" + strconv.Itoa(number) }

// needsLeader reports whether the nodes cannot be chosen without knowing who
// leads.
func (t target) needsLeader() bool {
	return slices.Contains([]target{leader, follower, followers}, t.role())
}

// byChance reports whether the nodes are chosen by chance. Such a choice must not, together with
// earlier faults, take away the majority.
func (t target) byChance() bool {
	return slices.Contains([]target{random, follower, minority}, t.role())
}

var (
	errEquals    = errors.New("the nodes of this cluster are equal: none of them leads; name a node or take random")
	errAllHurt   = skipError("every node that it may choose has a fault already")
	errMajority  = skipError("with the nodes that are lost already it would take away the majority")
	errDown      = skipError("it is down already by another fault of the script")
	errSamePart  = skipError("another fault of the same sort is on it already")
	errReshaping = skipError("another change of the cluster's nodes is under way")
)

// skipError is the reason why an injection was left out although nothing is broken.
type skipError string

func (e skipError) Error() string { return string(e) }

// fits returns an error if the target can never be found among these nodes.
func (t target) fits(nodes []string, grows bool) error {
	switch t.role() {
	case "", random, leader, majority, all:
	case follower, followers:
		if len(nodes) < 2 {
			return errors.New("it needs a cluster of two nodes at least")
		}
	case minority:
		if len(nodes) < 3 {
			return errors.New("it needs a cluster of three nodes at least: of fewer none can be spared")
		}
	default:
		if !grows && !slices.Contains(nodes, string(t)) {
			return fmt.Errorf("the cluster has no node %s; it has %s", t, joined(nodes))
		}
	}
	return nil
}

// choose returns the nodes in the order of their numbers.
func (t target) choose(s *state, c situation) (chosen []cluster.Node, err error) {
	nodes := s.cluster.Nodes()
	led, rest := c.divide(nodes)
	switch t.role() {
	case random:
		chosen = pick(c.rng, s.untouched(nodes), 1)
	case leader:
		if len(led) == 0 {
			return nil, fmt.Errorf("the cluster named %s as its leader, which is none of its nodes %s", nodeName(c.leader), joined(names(nodes)))
		}
		chosen = led
	case follower:
		chosen = pick(c.rng, s.untouched(rest), 1)
	case followers:
		chosen = rest
	case majority:
		chosen = pick(c.rng, nodes, len(nodes)/2+1)
	case minority:
		return s.spare(c, nodes, nodes)
	case all:
		chosen = nodes
	default:
		chosen = without(nodes, func(n cluster.Node) bool { return n.Name() != string(t) })
		if len(chosen) == 0 {
			return nil, fmt.Errorf("the cluster has no node %s any more; it has %s", t, joined(names(nodes)))
		}
	}
	if len(chosen) == 0 {
		return nil, errAllHurt
	}
	return chosen, nil
}

// spare picks a minority of all nodes from some of them.
func (s *state) spare(c situation, all, some []cluster.Node) ([]cluster.Node, error) {
	count, candidates := (len(all)-1)/2, s.untouched(some)
	if count == 0 || len(candidates) < count {
		return nil, errAllHurt
	}
	return pick(c.rng, candidates, count), nil
}

// pick returns count of the nodes by chance, in their order, or all if there are fewer.
func pick(rng *rand.Rand, nodes []cluster.Node, count int) (picked []cluster.Node) {
	order := rng.Perm(len(nodes))
	order = order[:min(count, len(order))]
	slices.Sort(order)
	for _, i := range order {
		picked = append(picked, nodes[i])
	}
	return picked
}

// divide returns the leader, if it is known, and the other nodes.
func (c situation) divide(nodes []cluster.Node) (led, rest []cluster.Node) {
	leads := func(n cluster.Node) bool { return n.Number() == c.leader }
	return without(nodes, func(n cluster.Node) bool { return !leads(n) }), without(nodes, leads)
}

// without returns the nodes for which so is false.
func without(nodes []cluster.Node, so func(cluster.Node) bool) []cluster.Node {
	return slices.DeleteFunc(slices.Clone(nodes), so)
}

func others(nodes, group []cluster.Node) []cluster.Node {
	return without(nodes, func(n cluster.Node) bool { return slices.Contains(numbers(group), n.Number()) })
}

// list calls of for each node.
func list[N, T any](nodes []N, of func(N) T) []T {
	all := make([]T, len(nodes))
	for i, n := range nodes {
		all[i] = of(n)
	}
	return all
}

func numbers(nodes []cluster.Node) []int  { return list(nodes, cluster.Node.Number) }
func names(nodes []cluster.Node) []string { return list(nodes, cluster.Node.Name) }
func joined(texts []string) string        { return strings.Join(texts, ", ") }

// titles returns the names of the nodes and marks the leader if it is known.
func (c situation) titles(nodes []cluster.Node) string {
	return joined(list(nodes, func(n cluster.Node) string {
		if n.Number() == c.leader {
			return n.Name() + c.leads()
		}
		return n.Name()
	}))
}

// leads returns the mark of the leader, with the age of that knowledge if it is not fresh.
func (c situation) leads() string {
	if c.age > 0 {
		return fmt.Sprintf(" (led %s before)", c.age.Round(time.Millisecond))
	}
	return " (leader)"
}

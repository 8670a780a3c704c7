// Package graph decides whether transactions can be ordered in agreement with their dependencies. If they
// cannot, it decides which isolation level forbids that.
package graph

import (
	"fmt"
	"math"
	"slices"

	"stroppy/internal/check"
)

// These are the kinds of edges of the dependency graph.
const (
	Ww          uint8 = iota // the second transaction overwrote the version that the first made
	Wr                       // the second transaction read a version that the first made
	Rw                       // the first transaction read a version that the second overwrote
	PredicateRw              // the second transaction changed the set of rows that the first read by a predicate
	Pass                     // from a hub, a node that is not a transaction: leads on to the targets of the hub
	Process                  // one client received the reply to the first before it began the second
	GuessWr                  // Wr, if a read with two explanations is explained correctly
	GuessRw                  // PredicateRw, with the same condition
	Rt                       // the first ended before the second began; occurs in cycles only, never stored in a graph
	kinds
)

// Mask is a set of kinds of edges.
type Mask uint16

// These masks select the graphs that define isolation levels.
const (
	Writes  Mask = 1<<Ww | 1<<Pass
	Reads   Mask = Writes | 1<<Wr | 1<<GuessWr
	Items   Mask = Reads | 1<<Rw
	All     Mask = Items | 1<<PredicateRw | 1<<GuessRw
	Guesses Mask = 1<<GuessWr | 1<<GuessRw
	Clients Mask = 1 << Process
)

// Without returns the kinds of m that are not in n.
func (m Mask) Without(n Mask) Mask { return m &^ n }

func (m Mask) has(kind uint32) bool { return m>>kind&1 != 0 }

const (
	kindBits = 4
	kindMask = 1<<kindBits - 1
	maxNodes = 1 << (32 - kindBits)
)

// Step is one edge of a path.
type Step struct {
	From, To uint32
	Kind     uint8
}

// Anti reports whether the edge is an anti-dependency.
func (s Step) Anti() bool { return s.Kind == Rw || s.Kind == PredicateRw || s.Kind == GuessRw }

// Graph is a compact dependency graph: 4 bytes for each edge and each node, plus the times. The edges of node
// n are arc[row[n]:row[n+1]]; each holds the target and, in the lowest bits, the kind. Real time is not
// stored as edges: a transaction that ended before another began precedes it.
type Graph struct {
	row, arc     []uint32
	transactions int // number of transactions, which are the first nodes; the rest are hubs
	times        []Times
	lines        [][]line     // by index of times and by group, created on first use
	w            *check.Watch // after it has ended, no result of the graph is valid
}

// Builder receives the edges of a graph.
type Builder struct {
	row, arc []uint32
	total    uint64
	w        *check.Watch
}

// New builds a graph. The first nodes are the transactions, followed by the hubs. New calls edges twice,
// first to count the edges and then to store them.
func New(transactions, hubs int, times []Times, w *check.Watch, edges func(b *Builder)) *Graph {
	nodes := transactions + hubs
	g := &Graph{transactions: transactions, times: times, w: w}
	b := &Builder{row: make([]uint32, nodes+2), w: w}
	if nodes > maxNodes {
		w.Fail(fmt.Errorf("the history has more than the limit of %d transactions: check a shorter run", maxNodes))
	} else if !w.Cancelled() {
		edges(b)
	}
	if b.total >= math.MaxUint32 {
		w.Fail(fmt.Errorf("the history has %d dependencies, which is above the limit: check a shorter run", b.total))
	}
	if w.Err != nil {
		g.row = make([]uint32, nodes+1)
		return g
	}
	for n := 2; n < len(b.row); n++ {
		b.row[n] += b.row[n-1]
	}
	b.arc = make([]uint32, b.total)
	edges(b)
	g.row, g.arc = b.row[:nodes+1], b.arc
	return g
}

// Add adds an edge. It ignores an edge from a transaction to itself, and edges from or to None.
func (b *Builder) Add(from, to uint32, kind uint8) {
	if from == to || from == check.None || to == check.None {
		return
	}
	if b.arc == nil {
		b.row[from+2]++
		b.total++
		return
	}
	at := &b.row[from+1]
	b.arc[*at] = to<<kindBits | uint32(kind)
	*at++
}

// Edges collects edges before the graph is built, in 8 bytes each.
type Edges []struct{ from, arc uint32 }

// Add adds an edge like Builder.Add.
func (e *Edges) Add(from, to uint32, kind uint8) {
	if from != to && from != check.None && to != check.None {
		*e = append(*e, struct{ from, arc uint32 }{from, to<<kindBits | uint32(kind)})
	}
}

// AddTo adds all edges to a builder.
func (e Edges) AddTo(b *Builder) {
	for _, one := range e {
		if b.w.Ended() {
			return
		}
		b.Add(one.from, one.arc>>kindBits, uint8(one.arc&kindMask))
	}
}

// Nodes returns the number of nodes, including hubs.
func (g *Graph) Nodes() int { return len(g.row) - 1 }
func (g *Graph) Edges() int { return len(g.arc) }

// Each yields all edges until the watch ends.
func (g *Graph) Each(yield func(Step) bool) {
	for n := range uint32(g.Nodes()) {
		for _, a := range g.arc[g.row[n]:g.row[n+1]] {
			if g.w.Ended() || !yield(Step{n, a >> kindBits, uint8(a & kindMask)}) {
				return
			}
		}
	}
}

// has reports whether the graph has an edge of the mask.
func (g *Graph) has(mask Mask) bool {
	return slices.ContainsFunc(g.arc, func(a uint32) bool { return mask.has(a & kindMask) })
}

// Only returns the graph of the edges for which keep returns true.
func (g *Graph) Only(keep func(s Step) bool) *Graph {
	return New(g.transactions, g.Nodes()-g.transactions, g.times, g.w, func(b *Builder) {
		for s := range g.Each {
			if keep(s) {
				b.Add(s.From, s.To, s.Kind)
			}
		}
	})
}

// parts builds subgraphs of one graph.
type parts struct {
	*Graph
	local []uint32 // the index of each node within the part
}

func (g *Graph) parts() *parts {
	p := &parts{g, make([]uint32, g.Nodes())}
	for i := range p.local {
		p.local[i] = check.None
	}
	return p
}

// of returns the subgraph of the given nodes, which must be sorted. The nodes are renumbered by their
// position.
func (p *parts) of(nodes []uint32) *Graph {
	s := &Graph{row: make([]uint32, 1, len(nodes)+1), w: p.w}
	for i, n := range nodes {
		p.local[n] = uint32(i)
		if int(n) < p.transactions {
			s.transactions++
		}
	}
	for _, t := range p.times {
		s.times = append(s.times, t.of(nodes[:s.transactions]))
	}
	for _, n := range nodes {
		for _, a := range p.arc[p.row[n]:p.row[n+1]] {
			if to := p.local[a>>kindBits]; to != check.None {
				s.arc = append(s.arc, to<<kindBits|a&kindMask)
			}
		}
		s.row = append(s.row, uint32(len(s.arc)))
	}
	for _, n := range nodes {
		p.local[n] = check.None
	}
	return s
}

// reversed returns the graph with the direction of edges and of time reversed.
func (g *Graph) reversed() *Graph {
	r := &Graph{row: make([]uint32, g.Nodes()+2), arc: make([]uint32, len(g.arc)), transactions: g.transactions, w: g.w}
	for _, a := range g.arc {
		r.row[a>>kindBits+2]++
	}
	for n := 2; n < len(r.row); n++ {
		r.row[n] += r.row[n-1]
	}
	for n := range g.Nodes() {
		for _, a := range g.arc[g.row[n]:g.row[n+1]] {
			at := &r.row[a>>kindBits+1]
			r.arc[*at] = uint32(n)<<kindBits | a&kindMask
			*at++
		}
	}
	r.row = r.row[:len(r.row)-1]
	for _, t := range g.times {
		r.times = append(r.times, t.reversed())
	}
	return r
}

// Spaced returns a graph whose cycles are the cycles of g without two consecutive anti-dependencies. Node n
// becomes node 2n and, after an anti-dependency, node 2n+1. Node 2n+1 begins at any time, because real time
// before it belongs to the path to 2n.
//
// Snapshot isolation allows a history exactly if (WW ∪ WR) ; RW? has no cycle (Cerone and Gotsman, Analysing
// Snapshot Isolation, 2016, theorem 9), which is equivalent to this graph having none.
func (g *Graph) Spaced() *Graph {
	var times []Times
	for _, t := range g.times {
		times = append(times, t.spaced())
	}
	return New(2*g.transactions, 2*(g.Nodes()-g.transactions), times, g.w, func(b *Builder) {
		for s := range g.Each {
			switch from, to := 2*s.From, 2*s.To; {
			case s.Anti():
				b.Add(from, to+1, s.Kind)
			case s.Kind == Pass:
				b.Add(from, to, s.Kind)
				b.Add(from+1, to+1, s.Kind)
			default:
				b.Add(from, to, s.Kind)
				b.Add(from+1, to, s.Kind)
			}
		}
	})
}

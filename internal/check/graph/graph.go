// Package graph decides from the dependencies between transactions whether they have an order,
// and which isolation level forbids it where they have none.
package graph

import (
	"fmt"
	"math"
	"slices"

	"stroppy/internal/check"
)

// The kinds of edges of the dependency graph.
const (
	Ww          uint8 = iota // the second overwrote the version that the first made
	Wr                       // the second read a version that the first made
	Rw                       // the first read a version that the second overwrote
	PredicateRw              // the second changed what the predicate matched that the first read by
	Pass                     // from a node that is no transaction: its edges go on to whatever it leads to
	Process                  // one client had the answer of the first before it began the second
	GuessWr                  // Wr, if a read that has two explanations is explained right
	GuessRw                  // PredicateRw, likewise
	Rt                       // the first ended before the second began; of cycles alone, because no graph has such edges
	kinds
)

// Mask is a set of kinds.
type Mask uint16

// The masks of the graphs that isolation levels are defined by.
const (
	Writes  Mask = 1<<Ww | 1<<Pass
	Reads   Mask = Writes | 1<<Wr | 1<<GuessWr
	Items   Mask = Reads | 1<<Rw
	All     Mask = Items | 1<<PredicateRw | 1<<GuessRw
	Guesses Mask = 1<<GuessWr | 1<<GuessRw
	Clients Mask = 1 << Process
)

// Without returns what of m is not in n.
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

// Anti says that an edge is an anti-dependency.
func (s Step) Anti() bool { return s.Kind == Rw || s.Kind == PredicateRw || s.Kind == GuessRw }

// Graph is a graph of 4 bytes an edge and as many a node, beside the times: the edges of node
// n are arc[row[n]:row[n+1]], each the other node and in the lowest bits the kind. Real time is
// no edge in it: a transaction that ended before another began comes before it.
type Graph struct {
	row, arc     []uint32
	transactions int // the first nodes; the others are none
	times        []Times
	lines        [][]line     // of each of the times and each group, once that was asked for
	w            *check.Watch // once it has ended, all that a graph says is worth nothing
}

// Builder takes the edges of a graph.
type Builder struct {
	row, arc []uint32
	total    uint64
	w        *check.Watch
}

// New builds a graph. Its first nodes are the transactions, and hubs are those that are none.
// edges adds all edges, and is called twice: first they are counted.
func New(transactions, hubs int, times []Times, w *check.Watch, edges func(b *Builder)) *Graph {
	nodes := transactions + hubs
	g := &Graph{transactions: transactions, times: times, w: w}
	b := &Builder{row: make([]uint32, nodes+2), w: w}
	if nodes > maxNodes {
		w.Fail(fmt.Errorf("the history has more than %d transactions, which is more than one check takes", maxNodes))
	} else if !w.Cancelled() {
		edges(b)
	}
	if b.total >= math.MaxUint32 {
		w.Fail(fmt.Errorf("the history has %d dependencies, which is more than one check takes", b.total))
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

// Add adds an edge. One from a transaction to itself, or to or from none, is left out.
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

// Edges are edges that were found one by one, before the graph is built: 8 bytes each.
type Edges []struct{ from, arc uint32 }

// Add adds an edge as Builder.Add does.
func (e *Edges) Add(from, to uint32, kind uint8) {
	if from != to && from != check.None && to != check.None {
		*e = append(*e, struct{ from, arc uint32 }{from, to<<kindBits | uint32(kind)})
	}
}

// AddTo adds them to a graph.
func (e Edges) AddTo(b *Builder) {
	for _, one := range e {
		if b.w.Ended() {
			return
		}
		b.Add(one.from, one.arc>>kindBits, uint8(one.arc&kindMask))
	}
}

// Nodes and Edges count them.
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

// has says that a graph has an edge of the mask.
func (g *Graph) has(mask Mask) bool {
	return slices.ContainsFunc(g.arc, func(a uint32) bool { return mask.has(a & kindMask) })
}

// Only returns the graph of some of the edges.
func (g *Graph) Only(keep func(s Step) bool) *Graph {
	return New(g.transactions, g.Nodes()-g.transactions, g.times, g.w, func(b *Builder) {
		for s := range g.Each {
			if keep(s) {
				b.Add(s.From, s.To, s.Kind)
			}
		}
	})
}

// parts makes the graphs of the edges between some nodes of one graph.
type parts struct {
	*Graph
	local []uint32 // of each node: its place among those of the part
}

func (g *Graph) parts() *parts {
	p := &parts{g, make([]uint32, g.Nodes())}
	for i := range p.local {
		p.local[i] = check.None
	}
	return p
}

// of returns the graph of the edges between nodes, which are in order and are numbered by
// their places there.
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

// reversed returns the graph with its edges and its time turned round.
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

// Spaced returns the graph whose cycles are those of g in which no two anti-dependencies
// follow each other. Node n becomes 2n and, reached by an anti-dependency, 2n+1, which begins
// at any time: real time before it is on the way to 2n.
//
// Snapshot isolation allows a history exactly when (WW ∪ WR) ; RW? has no cycle (Cerone and
// Gotsman, Analysing Snapshot Isolation, 2016, theorem 9), which is when this graph has none.
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

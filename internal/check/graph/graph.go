// Package graph decides from the dependencies between transactions whether they have an order,
// and which isolation level forbids it where they have none.
package graph

import (
	"cmp"
	"slices"

	"stroppy/internal/check"
)

// The kinds of edges of the dependency graph, and of real time.
const (
	Ww uint8 = iota // the second overwrote the version that the first made
	Wr              // the second read a version that the first made
	Rw              // the first read a version that the second overwrote
	Rt              // the first ended before the second began
)

// Edges are the dependencies found, as three parallel arrays.
type Edges struct {
	From, To []uint32
	Kind     []uint8
}

func (e *Edges) Add(from, to uint32, kind uint8) {
	if from == to || from == check.None || to == check.None {
		return
	}
	e.From = append(e.From, from)
	e.To = append(e.To, to)
	e.Kind = append(e.Kind, kind)
}

// Step is one edge of a path.
type Step struct {
	From, To uint32
	Kind     uint8
}

// Graph is a directed graph in compressed rows: the edges of node n are
// to[row[n]:row[n+1]], with their kinds in the same places.
type Graph struct {
	row  []uint32
	to   []uint32
	kind []uint8
	w    *check.Watch // once it has ended, all that a graph says is worth nothing
}

func (g *Graph) nodes() int { return len(g.row) - 1 }

// edges yields all edges until the watch ends.
func (g *Graph) edges(yield func(Step) bool) {
	for n := range g.nodes() {
		for i := g.row[n]; i < g.row[n+1]; i++ {
			if g.w.Ended() || !yield(Step{uint32(n), g.to[i], g.kind[i]}) {
				return
			}
		}
	}
}

// New builds the rows by a counting sort: linear in nodes and edges.
func New(nodes int, e Edges, w *check.Watch) *Graph {
	g := &Graph{row: make([]uint32, nodes+1), w: w}
	if w.Cancelled() {
		return g
	}
	g.to, g.kind = make([]uint32, len(e.To)), make([]uint8, len(e.To))
	for _, n := range e.From {
		g.row[n+1]++
	}
	for n := range nodes {
		g.row[n+1] += g.row[n]
	}
	next := append([]uint32(nil), g.row[:nodes]...)
	for i, from := range e.From {
		if w.Ended() {
			return g // its rows are right, and what it lacks are edges to node 0
		}
		g.to[next[from]] = e.To[i]
		g.kind[next[from]] = e.Kind[i]
		next[from]++
	}
	return g
}

// Acyclic decides by taking away nodes that nothing leads to until none is left
// (Kahn, 1962).
func (g *Graph) Acyclic() bool {
	incoming := make([]uint32, g.nodes())
	for _, to := range g.to {
		incoming[to]++
	}
	ready := make([]uint32, 0, 1024)
	for n, count := range incoming {
		if count == 0 {
			ready = append(ready, uint32(n))
		}
	}
	taken := 0
	for len(ready) > 0 && !g.w.Ended() {
		n := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		taken++
		for _, to := range g.to[g.row[n]:g.row[n+1]] {
			if incoming[to]--; incoming[to] == 0 {
				ready = append(ready, to)
			}
		}
	}
	return taken == g.nodes()
}

// Components returns the strongly connected components with more than one node, the
// smallest first, each in order: those that hold every cycle (Tarjan, 1972, without
// recursion).
func (g *Graph) Components() [][]uint32 {
	t := tarjan{
		g: g, index: make([]uint32, g.nodes()), low: make([]uint32, g.nodes()), on: make([]bool, g.nodes()),
	}
	for n := range g.nodes() {
		if g.w.Ended() {
			break
		}
		if t.index[n] == 0 {
			t.visit(uint32(n))
		}
	}
	slices.SortFunc(t.found, func(a, b []uint32) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a[0], b[0])) })
	return t.found
}

type tarjan struct {
	g     *Graph
	index []uint32 // order of discovery, from 1
	low   []uint32
	on    []bool // on the stack
	count uint32
	stack []uint32
	calls []call
	found [][]uint32
}

// call is one frame of the depth-first search: a node and its next edge.
type call struct{ node, edge uint32 }

func (t *tarjan) enter(n uint32) {
	t.count++
	t.index[n], t.low[n], t.on[n] = t.count, t.count, true
	t.stack = append(t.stack, n)
	t.calls = append(t.calls, call{n, t.g.row[n]})
}

func (t *tarjan) visit(root uint32) {
	t.enter(root)
	for len(t.calls) > 0 && !t.g.w.Ended() {
		c := &t.calls[len(t.calls)-1]
		n := c.node
		if c.edge < t.g.row[n+1] {
			to := t.g.to[c.edge]
			c.edge++
			if t.index[to] == 0 {
				t.enter(to)
			} else if t.on[to] {
				t.low[n] = min(t.low[n], t.index[to])
			}
			continue
		}
		t.calls = t.calls[:len(t.calls)-1]
		if len(t.calls) > 0 {
			parent := t.calls[len(t.calls)-1].node
			t.low[parent] = min(t.low[parent], t.low[n])
		}
		if t.low[n] == t.index[n] {
			t.leave(n)
		}
	}
}

// leave takes the component whose first node is n from the stack.
func (t *tarjan) leave(n uint32) {
	first := len(t.stack) - 1
	for t.stack[first] != n {
		first--
	}
	for _, m := range t.stack[first:] {
		t.on[m] = false
	}
	if len(t.stack)-first > 1 {
		component := slices.Clone(t.stack[first:])
		slices.Sort(component)
		t.found = append(t.found, component)
	}
	t.stack = t.stack[:first]
}

// only returns the graph of the edges whose kind is at most the given one.
func (g *Graph) only(kind uint8) *Graph {
	var e Edges
	for s := range g.edges {
		if s.Kind <= kind {
			e.Add(s.From, s.To, s.Kind)
		}
	}
	return New(g.nodes(), e, g.w)
}

// spaced returns the graph whose cycles are those cycles of g in which no two
// anti-dependencies (rw) follow each other. Node n of g becomes 2n, reached by
// another edge, and 2n+1, reached by rw.
//
// Snapshot isolation allows a history exactly when (WW ∪ WR) ; RW? has no cycle
// (Cerone and Gotsman, Analysing Snapshot Isolation, 2016, theorem 9), which is
// when this graph has none.
func (g *Graph) spaced() *Graph {
	var e Edges
	for s := range g.edges {
		if s.Kind == Rw {
			e.Add(2*s.From, 2*s.To+1, Rw)
			continue
		}
		e.Add(2*s.From, 2*s.To, s.Kind)
		e.Add(2*s.From+1, 2*s.To, s.Kind)
	}
	return New(2*g.nodes(), e, g.w)
}

// restrict returns the graph of the edges within one component, over the nodes
// 0 … len(component)-1, which stand for the component's.
func (g *Graph) restrict(component []uint32) *Graph {
	local := make(map[uint32]uint32, len(component))
	for i, n := range component {
		local[n] = uint32(i)
	}
	var e Edges
	for i, n := range component {
		for j := g.row[n]; j < g.row[n+1] && !g.w.Ended(); j++ {
			if to, ok := local[g.to[j]]; ok {
				e.Add(uint32(i), to, g.kind[j])
			}
		}
	}
	return New(len(component), e, g.w)
}

// path finds a shortest path from one node to another over edges of at most the
// given kind, by breadth. The nodes visited, whose number it returns too, are
// bounded; nil is none found.
func (g *Graph) path(from, to uint32, kind uint8, bound int) (steps []Step, visited int) {
	came := map[uint32]Step{}
	queue := []uint32{from}
	for len(queue) > 0 && len(came) < bound && !g.w.Ended() {
		n := queue[0]
		queue = queue[1:]
		for i := g.row[n]; i < g.row[n+1]; i++ {
			m := g.to[i]
			if _, ok := came[m]; ok || g.kind[i] > kind {
				continue
			}
			came[m] = Step{n, m, g.kind[i]}
			queue = append(queue, m)
		}
		if _, ok := came[to]; ok {
			for n := to; len(steps) == 0 || n != from; n = came[n].From {
				steps = append(steps, came[n])
			}
			slices.Reverse(steps)
			break
		}
	}
	return steps, len(came)
}

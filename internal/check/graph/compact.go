package graph

import (
	"fmt"
	"math"

	"stroppy/internal/check"
)

// More kinds of edges, of graphs that are built by a Builder.
const (
	PredicateRw uint8 = 4 + iota // the second changed what the predicate matched that the first read by
	Pass                         // from a node that is no transaction: its edges go on to whatever it leads to
	Process                      // one client had the answer of the first before it began the second
	GuessWr                      // Wr, if a read that has two explanations is explained right
	GuessRw                      // PredicateRw, likewise
	kinds
)

// Mask is a set of kinds.
type Mask uint16

// Of makes a mask.
func Of(list ...uint8) (m Mask) {
	for _, k := range list {
		m |= 1 << k
	}
	return m
}

// Without returns what of m is not in n.
func (m Mask) Without(n Mask) Mask { return m &^ n }

func (m Mask) has(kind uint32) bool { return m>>kind&1 != 0 }

// The masks of the graphs that isolation levels are defined by.
const (
	Writes  Mask = 1<<Ww | 1<<Pass
	Reads   Mask = Writes | 1<<Wr | 1<<GuessWr
	Items   Mask = Reads | 1<<Rw
	All     Mask = Items | 1<<PredicateRw | 1<<GuessRw
	Guesses Mask = 1<<GuessWr | 1<<GuessRw
	Clients Mask = 1 << Process
)

const (
	kindBits = 4
	maxNodes = 1 << (32 - kindBits)
)

// Never is the end of a transaction that nobody knows to have ended, and its negative the
// beginning of one that nobody knows.
const Never int64 = math.MaxInt64

// Builder builds a Compact in two passes, in both of which the same edges are added in the
// same order: the first counts them.
type Builder struct {
	row, arc []uint32
	total    uint64
}

// NewBuilder begins the first pass over a graph of so many nodes.
func NewBuilder(nodes int) (*Builder, error) {
	if nodes > maxNodes {
		return nil, fmt.Errorf("the history has more than %d transactions, which is more than one check takes", maxNodes)
	}
	return &Builder{row: make([]uint32, nodes+2)}, nil
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

// Fill begins the second pass.
func (b *Builder) Fill() error {
	if b.total >= math.MaxUint32 {
		return fmt.Errorf("the history has %d dependencies, which is more than one check takes", b.total)
	}
	for n := 2; n < len(b.row); n++ {
		b.row[n] += b.row[n-1]
	}
	b.arc = make([]uint32, b.total)
	return nil
}

// Graph ends the second pass. Begin and end are the times of the first nodes in nanoseconds
// of one clock; the nodes after them are no transactions, and have none.
func (b *Builder) Graph(begin, end []int64, w *check.Watch) *Compact {
	return &Compact{row: b.row[:len(b.row)-1], arc: b.arc, begin: begin, end: end, w: w}
}

// Compact is a graph of 4 bytes an edge and 20 a node: the edges of node n are
// arc[row[n]:row[n+1]], each the other node and in the lowest bits the kind. Real time is no
// edge in it: a transaction that ended before another began comes before it.
type Compact struct {
	row, arc   []uint32
	begin, end []int64
	byBegin    []uint32 // the nodes in the order of their beginnings, once that was asked for
	byEnd      []uint32
	w          *check.Watch
}

// Nodes and Edges count them.
func (g *Compact) Nodes() int { return len(g.row) - 1 }
func (g *Compact) Edges() int { return len(g.arc) }

// before says that one transaction had ended before another began. Ended at the very
// instant at which the other began is at the same time.
func (g *Compact) before(a, b uint32) bool {
	return int(a) < len(g.end) && int(b) < len(g.begin) && g.end[a] < g.begin[b]
}

// Unordered returns the nodes that have no place in an order that agrees with the edges of
// the mask and, where it counts, with real time: those of all cycles, and those behind one.
// None is left exactly where there is an order.
//
// It takes away what nothing leads to until nothing is left (Kahn, 1962). Of real time it
// knows the earliest end of what is left: who began later has to wait. So time takes no
// edges, and the whole is linear once beginnings and ends are sorted.
func (g *Compact) Unordered(mask Mask, real bool) []uint32 {
	k := kahn{Compact: g, mask: mask, waiting: make([]uint32, g.Nodes()), minimum: Never}
	for _, a := range g.arc {
		if mask.has(a & (1<<kindBits - 1)) {
			k.waiting[a>>kindBits]++
		}
	}
	if real {
		g.sortTimes()
		for n := range g.begin {
			k.waiting[n]++ // until time lets it go
		}
	}
	for n, count := range k.waiting {
		if count == 0 {
			k.ready = append(k.ready, uint32(n))
		}
	}
	if real {
		k.advance()
	}
	k.take()
	if k.placed == g.Nodes() || g.w.Err != nil {
		return nil
	}
	left := make([]uint32, 0, g.Nodes()-k.placed)
	for n, count := range k.waiting {
		if count != done {
			left = append(left, uint32(n))
		}
	}
	return left
}

// done is how many predecessors a node waits for that has its place.
const done = math.MaxUint32

type kahn struct {
	*Compact
	mask       Mask
	waiting    []uint32
	ready      []uint32
	placed     int
	begun      int   // how many of byBegin time has let go
	ended      int   // how many of byEnd have their places, from the first on
	minimum    int64 // the earliest end of those without a place
	inRealTime bool
}

func (k *kahn) take() {
	for len(k.ready) > 0 && !k.w.Ended() {
		n := k.ready[len(k.ready)-1]
		k.ready = k.ready[:len(k.ready)-1]
		k.placed++
		k.waiting[n] = done
		for _, a := range k.arc[k.row[n]:k.row[n+1]] {
			if k.mask.has(a & (1<<kindBits - 1)) {
				k.free(a >> kindBits)
			}
		}
		if k.inRealTime && k.ended < len(k.byEnd) && k.byEnd[k.ended] == n {
			k.advance()
		}
	}
}

func (k *kahn) free(n uint32) {
	if k.waiting[n]--; k.waiting[n] == 0 {
		k.ready = append(k.ready, n)
	}
}

// advance lets go who began not after the earliest end of those that have no place.
func (k *kahn) advance() {
	k.inRealTime = true
	for k.ended < len(k.byEnd) && k.waiting[k.byEnd[k.ended]] == done {
		k.ended++
	}
	k.minimum = Never
	if k.ended < len(k.byEnd) {
		k.minimum = k.end[k.byEnd[k.ended]]
	}
	for k.begun < len(k.byBegin) && k.begin[k.byBegin[k.begun]] <= k.minimum {
		k.free(k.byBegin[k.begun])
		k.begun++
	}
}

// Core returns the graph of the nodes on a cycle and between two cycles, and which nodes of g
// they are. It is given what Unordered returned.
func (g *Compact) Core(unordered []uint32, mask Mask, real bool) (*Compact, []uint32) {
	half := g.induced(unordered)
	left := half.reversed().Unordered(mask, real)
	core := half.induced(left)
	for i, n := range left {
		left[i] = unordered[n]
	}
	return core, left
}

// induced returns the graph of the edges between some nodes, which are in order and are
// numbered by their place there.
func (g *Compact) induced(nodes []uint32) *Compact {
	local := make([]uint32, g.Nodes())
	for i := range local {
		local[i] = check.None
	}
	timed := 0
	for i, n := range nodes {
		local[n] = uint32(i)
		if int(n) < len(g.begin) {
			timed++
		}
	}
	s := &Compact{row: make([]uint32, 1, len(nodes)+1), begin: make([]int64, timed), end: make([]int64, timed), w: g.w}
	for i, n := range nodes {
		if i < timed {
			s.begin[i], s.end[i] = g.begin[n], g.end[n]
		}
		for _, a := range g.arc[g.row[n]:g.row[n+1]] {
			if to := local[a>>kindBits]; to != check.None {
				s.arc = append(s.arc, to<<kindBits|a&(1<<kindBits-1))
			}
		}
		s.row = append(s.row, uint32(len(s.arc)))
	}
	return s
}

// reversed returns the graph with its edges and its time turned round.
func (g *Compact) reversed() *Compact {
	r := &Compact{row: make([]uint32, g.Nodes()+2), arc: make([]uint32, len(g.arc)), w: g.w}
	for _, a := range g.arc {
		r.row[a>>kindBits+2]++
	}
	for n := 2; n < len(r.row); n++ {
		r.row[n] += r.row[n-1]
	}
	for n := range g.Nodes() {
		for _, a := range g.arc[g.row[n]:g.row[n+1]] {
			at := &r.row[a>>kindBits+1]
			r.arc[*at] = uint32(n)<<kindBits | a&(1<<kindBits-1)
			*at++
		}
	}
	r.row = r.row[:len(r.row)-1]
	r.begin, r.end = make([]int64, len(g.begin)), make([]int64, len(g.end))
	for n := range g.begin {
		r.begin[n], r.end[n] = -g.end[n], -g.begin[n]
	}
	return r
}

// Spaced returns the graph whose cycles are those of g in which no two anti-dependencies
// follow each other, as Graph.spaced does. Node n becomes 2n and, reached by an
// anti-dependency, 2n+1, which begins at any time: real time before it is on the way to 2n.
func (g *Compact) Spaced() (*Compact, error) {
	b, err := NewBuilder(2 * g.Nodes())
	if err != nil {
		return nil, err
	}
	for pass := range 2 {
		if pass == 1 {
			if err := b.Fill(); err != nil {
				return nil, err
			}
		}
		for n := range uint32(g.Nodes()) {
			for _, a := range g.arc[g.row[n]:g.row[n+1]] {
				to, kind := a>>kindBits, uint8(a&(1<<kindBits-1))
				switch kind {
				case Rw, PredicateRw, GuessRw:
					b.Add(2*n, 2*to+1, kind)
				case Pass:
					b.Add(2*n, 2*to, kind)
					b.Add(2*n+1, 2*to+1, kind)
				default:
					b.Add(2*n, 2*to, kind)
					b.Add(2*n+1, 2*to, kind)
				}
			}
		}
	}
	begin, end := make([]int64, 2*len(g.begin)), make([]int64, 2*len(g.end))
	for n := range g.begin {
		begin[2*n], begin[2*n+1] = g.begin[n], -Never
		end[2*n], end[2*n+1] = g.end[n], g.end[n]
	}
	return b.Graph(begin, end, g.w), nil
}

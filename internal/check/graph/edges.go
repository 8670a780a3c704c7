package graph

import "stroppy/internal/check"

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

package graph

import "stroppy/internal/check"

// Uncertain holds times of several groups. Times within a group are exact relative to each other. Times of
// two groups are known within the sum of both errors.
type Uncertain struct {
	Begin, End []int64  // as in Times
	Group      []uint32 // the group of each transaction
	Error      []int64  // the error of each group in ns
}

// Doubt counts the transactions that may have ended before one of their predecessors began. Real time
// contradicts the edges, within the bounds of the errors, if and only if there is such a pair: a cycle needs
// at most one edge of real time on one clock (see oneTime). If the graph has a cycle, it has no order, and
// Doubt returns the zero value.
//
// Only the latest beginnings of two groups matter among the predecessors of a transaction, so the algorithm
// is linear.
func (g *Graph) Doubt(t Uncertain) (d check.Doubt) {
	order := g.Ordered(All|Clients, false)
	latest := make([]check.Latest, len(order))
	for _, n := range order {
		if g.w.Ended() {
			return check.Doubt{}
		}
		l := &latest[n]
		if int(n) < g.transactions {
			group := t.Group[n]
			if at, ok := l.Beside(group); ok && t.End[n] != Never && at > t.End[n]-t.Error[group] {
				d.Note(at - t.End[n] + t.Error[group])
			}
			if t.Begin[n] != -Never {
				l.Add(t.Begin[n]+t.Error[group], group)
			}
		}
		for _, a := range g.arc[g.row[n]:g.row[n+1]] {
			latest[a>>kindBits].Join(l)
		}
	}
	return d
}

package graph

import "stroppy/internal/check"

// Uncertain are times of which those of one group are exact among themselves, and those of two
// are known within the errors of both.
type Uncertain struct {
	Begin, End []int64  // as of Times
	Group      []uint32 // of the transactions
	Error      []int64  // of the groups, ns
}

// Doubt counts the transactions that may have ended before one began that comes before them by
// the edges. Real time contradicts the edges, whatever the errors are within their bounds, if
// and only if it does for such a pair: of two steps of real time on one clock a cycle needs one
// (oneTime). There is no order at all where the graph has a cycle, and then no doubt either.
//
// Of what comes before a transaction only the latest beginnings have to be known, of two
// groups. So it is linear.
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

package graph

import "sort"

// nodes returns the nodes of base that occur in the pairs' edges, and the index of each.
func (s *settling) nodes(pairs []Pair) (nodes []uint32, number map[uint32]int) {
	number = map[uint32]int{}
	add := func(t uint32) {
		for n := t * s.each; n < (t+1)*s.each; n++ {
			if _, ok := number[n]; !ok {
				number[n] = len(nodes)
				nodes = append(nodes, n)
			}
		}
	}
	for _, p := range pairs {
		one, other := s.runs(p)
		for _, r := range []*Run{one, other} {
			add(r.First)
			add(r.Last)
			for _, t := range r.Readers {
				add(t)
			}
		}
	}
	return nodes, number
}

// closure returns for each node the set of its predecessors.
func (s *settling) closure(nodes []uint32, number map[uint32]int) []bits {
	before := make([]bits, len(nodes))
	for i := range before {
		before[i] = newBits(len(nodes))
	}
	words := max(1, min(16, mostSet/s.base.Nodes()))
	for from := 0; from < len(nodes); from += 64 * words {
		s.reached(nodes, from, words, before)
	}
	for i, n := range nodes {
		before[i].clear(i)
		if s.each == 2 && n%2 == 1 { // a transaction that ends has begun
			before[i].set(number[n-1])
			before[i].add(before[number[n-1]])
		}
	}
	return before
}

// reached computes the predecessors of each node, for the given range of words of the sets. It visits the
// nodes of base in order and passes on the set of each.
func (s *settling) reached(nodes []uint32, from, words int, before []bits) {
	g := s.base
	set := make([]uint64, words*g.Nodes())
	of := func(n uint32) bits { return bits(set[int(n)*words : (int(n)+1)*words]) }
	for i := from; i < min(len(nodes), from+64*words); i++ {
		of(nodes[i]).set(i - from)
	}
	var ended [][]*past
	if s.timed {
		for i, lines := range g.timelines() {
			var list []*past
			for j := range lines {
				list = append(list, &past{line: &lines[j], ends: g.times[i].End, words: words, of: of})
			}
			ended = append(ended, list)
		}
	}
	for _, n := range s.list {
		if g.w.Ended() {
			return
		}
		if int(n) < g.transactions {
			for i := range ended {
				t := &g.times[i]
				of(n).add(ended[i][t.group(n)].until(t.Begin[n]))
			}
		}
		for _, a := range g.arc[g.row[n]:g.row[n+1]] {
			if s.mask.has(a & kindMask) {
				of(a >> kindBits).add(of(n))
			}
		}
	}
	for i, n := range nodes {
		copy(before[i][from/64:], of(n)[:min(words, len(before[i])-from/64)])
	}
}

// past holds, for each end on a line, the set of predecessors of all transactions that had ended by then.
type past struct {
	*line
	ends  []int64
	words int
	of    func(n uint32) bits
	known []uint64
	count int // number of known ends
}

// until returns the predecessors of all transactions that ended before a time. All of these must have been
// visited.
func (p *past) until(begin int64) bits {
	n := sort.Search(len(p.byEnd), func(i int) bool { return p.ends[p.byEnd[i]] >= begin })
	if n == 0 {
		return nil
	}
	for ; p.count < n; p.count++ {
		first := len(p.known)
		p.known = append(p.known, p.of(p.byEnd[p.count])...)
		if p.count > 0 {
			bits(p.known[first:]).add(p.known[first-p.words : first])
		}
	}
	return p.known[(n-1)*p.words : n*p.words]
}

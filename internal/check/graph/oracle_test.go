package graph

import (
	"math/rand/v2"
	"slices"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/isolation"
)

// small is a graph of few transactions as an edge list. Hubs are replaced by the edges that they stand for.
type small struct {
	transactions int
	edges        []Step
	times        []Times
}

// draw returns a random graph and the same graph as an edge list.
func draw(t *testing.T, rng *rand.Rand) (*Graph, small) {
	s := small{transactions: 2 + rng.IntN(5)}
	hubs := rng.IntN(3)
	to := make([][]uint32, hubs) // the targets of each hub
	var all []Step
	for h := range hubs {
		for range 1 + rng.IntN(3) {
			to[h] = append(to[h], uint32(rng.IntN(s.transactions)))
			all = append(all, Step{uint32(s.transactions + h), to[h][len(to[h])-1], Pass})
		}
	}
	kinds := []uint8{Ww, Wr, Rw, PredicateRw}[rng.IntN(3):]
	for range rng.IntN(3 * s.transactions) {
		from, kind := uint32(rng.IntN(s.transactions)), kinds[rng.IntN(len(kinds))]
		if n := uint32(rng.IntN(s.transactions + hubs)); int(n) < s.transactions {
			all = append(all, Step{from, n, kind})
			s.edges = append(s.edges, Step{from, n, kind})
		} else if own := to[int(n)-s.transactions]; !slices.Contains(own, from) {
			// Otherwise the transaction would precede itself.
			all = append(all, Step{from, n, kind})
			for _, m := range own {
				s.edges = append(s.edges, Step{from, m, kind})
			}
		}
	}
	s.edges = slices.DeleteFunc(s.edges, func(e Step) bool { return e.From == e.To })
	for range rng.IntN(3) {
		times := Times{Begin: make([]int64, s.transactions), End: make([]int64, s.transactions)}
		for n := range s.transactions {
			times.Begin[n] = rng.Int64N(40)
			times.End[n] = times.Begin[n] + rng.Int64N(20)
			switch rng.IntN(8) {
			case 0:
				times.Begin[n] = -Never
			case 1:
				times.End[n] = Never
			}
		}
		if rng.IntN(2) == 0 {
			for range s.transactions {
				times.Group = append(times.Group, uint32(rng.IntN(2)))
			}
		}
		s.times = append(s.times, times)
	}
	g := New(s.transactions, hubs, s.times, &check.Watch{Ctx: t.Context()}, func(b *Builder) {
		for _, e := range all {
			b.Add(e.From, e.To, e.Kind)
		}
	})
	return g, s
}

// before reports whether a precedes b in real time.
func (s small) before(a, b uint32) bool {
	return slices.ContainsFunc(s.times, func(t Times) bool {
		return (t.Group == nil || t.Group[a] == t.Group[b]) && t.End[a] < t.Begin[b]
	})
}

// steps returns the edges of a mask, with the edges of real time if real is true.
func (s small) steps(mask Mask, real bool) (list []Step) {
	for _, e := range s.edges {
		if mask.has(uint32(e.Kind)) {
			list = append(list, e)
		}
	}
	for a := range uint32(s.transactions) {
		for b := range uint32(s.transactions) {
			if real && s.before(a, b) {
				list = append(list, Step{a, b, Rt})
			}
		}
	}
	return list
}

// reach returns for each transaction which others are reachable over edges.
func (s small) reach(edges []Step) [][]bool {
	reach := make([][]bool, s.transactions)
	for n := range reach {
		reach[n] = make([]bool, s.transactions)
	}
	for _, e := range edges {
		reach[e.From][e.To] = true
	}
	for k := range reach {
		for a := range reach {
			for b := range reach {
				reach[a][b] = reach[a][b] || reach[a][k] && reach[k][b]
			}
		}
	}
	return reach
}

func (s small) cyclic(edges []Step) bool {
	for n, row := range s.reach(edges) {
		if row[n] {
			return true
		}
	}
	return false
}

// fails reports whether a test fails among some transactions, by the definition of the level.
func (s small) fails(t Test, real bool, among []uint32) bool {
	edges := slices.DeleteFunc(s.steps(t.mask(Plain), real), func(e Step) bool {
		return !slices.Contains(among, e.From) || !slices.Contains(among, e.To)
	})
	if t != TestSnapshot {
		return s.cyclic(edges)
	}
	var pairs []Step // (WW ∪ WR) ; RW?
	for _, e := range edges {
		if e.Anti() {
			continue
		}
		pairs = append(pairs, e)
		for _, then := range edges {
			if then.Anti() && then.From == e.To {
				pairs = append(pairs, Step{e.From, then.To, e.Kind})
			}
		}
	}
	return s.cyclic(pairs)
}

// shortest returns the length of the shortest cycle of a phenomenon with the given number of real-time edges.
// It tries all cycles. 0 means that there is none.
func (s small) shortest(p Phenomenon, real int) (least int) {
	edges := s.steps(All, real > 0)
	var path []Step
	var extend func()
	extend = func() {
		for _, e := range edges {
			last := path[len(path)-1]
			if e.From != last.To || slices.ContainsFunc(path[1:], func(s Step) bool { return s.From == e.To }) || least > 0 && len(path)+1 >= least {
				continue
			}
			path = append(path, e)
			if e.To != path[0].From {
				extend()
			} else if got, _, _ := PhenomenonOf(path); got == p && count(path) == real {
				least = len(path)
			}
			path = path[:len(path)-1]
		}
	}
	for _, e := range edges {
		path = []Step{e}
		extend()
	}
	return least
}

func count(path []Step) (real int) {
	for _, s := range path {
		if s.Kind == Rt {
			real++
		}
	}
	return real
}

// isCycle reports whether steps are edges that form a cycle without repeated transactions.
func (s small) isCycle(steps []Step) bool {
	for i, e := range steps {
		next := steps[(i+1)%len(steps)]
		again := slices.ContainsFunc(steps[:i], func(s Step) bool { return s.From == e.From })
		if again || e.To != next.From || !slices.Contains(s.steps(All, true), e) {
			return false
		}
	}
	return len(steps) > 1
}

// counts holds how often each case occurred, which shows that the comparison was meaningful.
type counts struct{ picked, met, missed [Phenomena]int }

// TestGraphDecisionsAgainstDefinitions compares orders, components, decisions and cycles with their definitions.
func TestGraphDecisionsAgainstDefinitions(t *testing.T) {
	rounds := checktest.Rounds(4000, 60_000)
	var c counts
	for seed := range rounds {
		g, s := draw(t, rand.New(rand.NewPCG(seed, 1)))
		for _, o := range []Order{Plain, Real} {
			edges := s.steps(All, o == Real)
			if cyclic := g.Unordered(All, o == Real) != nil; cyclic != s.cyclic(edges) {
				t.Fatalf("seed %d: there is an order: %v, of %+v", seed, !cyclic, s)
			}
			s.compareComponents(t, seed, g, o, &c)
			for p := range Phenomena {
				s.compareShortest(t, seed, g, p, o, &c)
			}
		}
		for _, late := range []bool{false, true} {
			list := g.Ordered(All, late)
			if (list == nil) != s.cyclic(s.steps(All, false)) || list != nil && slices.ContainsFunc(s.edges, func(e Step) bool {
				return slices.Index(list, e.From) > slices.Index(list, e.To)
			}) {
				t.Fatalf("seed %d: the order %v of %+v", seed, list, s)
			}
		}
	}
	for p := range Phenomena {
		if c.picked[p] < int(rounds)/1000 || c.met[p] < 30*c.missed[p] {
			t.Errorf("%s was picked in %d of %d graphs, and the shortest was found %d times and %d times not", p.Name(Plain, true), c.picked[p], rounds, c.met[p], c.missed[p])
		}
	}
}

// compareComponents compares the components, and the cycle that is picked for each.
func (s small) compareComponents(t *testing.T, seed uint64, g *Graph, o Order, c *counts) {
	reach := s.reach(s.steps(All, o == Real))
	cycles := g.Cycles(o, func(isolation.Level, []uint32) { t.Fatal("there are few components") })
	for n := range uint32(s.transactions) {
		var component []uint32
		for m := range uint32(s.transactions) {
			if reach[n][m] && reach[m][n] {
				component = append(component, m)
			}
		}
		if len(component) == 0 || component[0] != n {
			continue
		}
		in := func(c []Step) bool { return slices.Contains(component, c[0].From) }
		at := slices.IndexFunc(cycles, in)
		if at < 0 || !s.isCycle(cycles[at]) {
			t.Fatalf("seed %d: no cycle of %v in %v, of %+v", seed, component, cycles, s)
		}
		weakest := TestReadUncommitted
		for weakest == TestRepeatableRead || weakest < TestSerializable && !s.fails(weakest, o == Real, component) {
			weakest++
		}
		p, _, _ := PhenomenonOf(cycles[at])
		c.picked[p]++
		if p.Test() != weakest {
			t.Fatalf("seed %d: %v breaks another level than %v, of %+v", seed, cycles[at], weakest.Level(o), s)
		}
		if cycles = slices.Delete(cycles, at, at+1); slices.ContainsFunc(cycles, in) {
			t.Fatalf("seed %d: two cycles of %v, of %+v", seed, component, s)
		}
	}
	if len(cycles) > 0 {
		t.Fatalf("seed %d: %v are in no component of %+v", seed, cycles, s)
	}
}

// compareShortest compares the shortest cycle of a phenomenon. A shortest path with an order or several
// anti-dependencies may visit a transaction twice. Then the search finds a longer cycle or none.
func (s small) compareShortest(t *testing.T, seed uint64, g *Graph, p Phenomenon, o Order, c *counts) {
	real := 0
	if o == Real {
		real = 1
	}
	got, least := NewSearch(g, o, nil).Shortest(p, func([]Step) bool { return false }), s.shortest(p, real)
	exact := o == Plain && p <= GSingle
	switch {
	case least > 0 && len(got.Cycle) == least:
		c.met[p]++
	case least > 0:
		c.missed[p]++
	}
	switch {
	case got.Cycle == nil && (least == 0 || !exact):
	case !s.isCycle(got.Cycle) || count(got.Cycle) != real || len(got.Cycle) < least || exact && len(got.Cycle) != least:
		t.Fatalf("seed %d: the shortest %s is %v, and there is one of %d in %+v", seed, p.Name(o, true), got.Cycle, least, s)
	}
}

package graph

import "slices"

// State says whether a level forbids what was found.
type State uint8

const (
	Holds State = iota
	Open        // it depends on how reads that have two explanations are explained
	Fails
)

// Test is a graph whose cycles a level forbids.
type Test uint8

// The tests, the weakest level's first.
const (
	TestReadUncommitted Test = iota // writes over writes
	TestReadCommitted               // and reads of writes
	TestRepeatableRead              // and anti-dependencies of items
	TestSnapshot                    // all, without two anti-dependencies in a row
	TestSerializable                // all
	Tests
)

func (t Test) mask() Mask { return [Tests]Mask{Writes, Reads, Items, All, All}[t] }

// Decision is what a graph decides, in each order.
type Decision struct {
	States [Orders][Tests]State
	Cores  [Orders]*Compact // what all cycles are in; nil where there is none
	Nodes  [Orders][]uint32 // which nodes of the graph the core's are
}

// Decide decides exactly, for each order, which tests have a cycle. The edges of clients have
// to be in the graph. Where a history has no times, real time is left out.
func (g *Compact) Decide(real bool) (*Decision, error) {
	d := &Decision{}
	outer, nodes := g, []uint32(nil)
	for o := Real; ; o-- {
		timed, mask := o == Real && real, All|Clients
		if o == Plain {
			mask = All
		}
		left := outer.Unordered(mask, timed)
		if left == nil {
			break
		}
		core, places := outer.Core(left, mask, timed)
		if nodes != nil {
			for i, n := range places {
				places[i] = nodes[n]
			}
		}
		d.Cores[o], d.Nodes[o] = core, places
		if o == Plain {
			break
		}
		outer, nodes = core, places
	}
	for o := Plain; o < Orders && g.w.Err == nil; o++ {
		if d.Cores[o] == nil {
			continue
		}
		if err := d.decide(o, real && o == Real); err != nil {
			return d, err
		}
	}
	return d, g.w.Err
}

// decide decides the tests of an order, the strongest first. What fails in a weaker order
// fails in this one, and where a test has no cycle, those whose edges it has have none either.
func (d *Decision) decide(o Order, timed bool) error {
	core, states := d.Cores[o], &d.States[o]
	clients := Clients
	if o == Plain {
		clients = 0
	}
	for _, t := range []Test{TestSerializable, TestSnapshot, TestRepeatableRead, TestReadCommitted, TestReadUncommitted} {
		if o > Plain && d.States[o-1][t] == Fails {
			states[t] = Fails
			continue
		}
		if t <= TestReadCommitted && (states[TestSnapshot] == Holds || states[TestReadCommitted] == Holds && t < TestReadCommitted) {
			continue
		}
		of := core
		if t == TestSnapshot {
			spaced, err := core.Spaced()
			if err != nil {
				return err
			}
			of = spaced
		}
		states[t] = of.state(t.mask()|clients, timed)
	}
	return nil
}

// state says whether a graph has a cycle of edges of the mask.
func (g *Compact) state(mask Mask, timed bool) State {
	switch {
	case g.Unordered(mask, timed) == nil:
		return Holds
	case mask&Guesses != 0 && g.has(mask&Guesses) && g.Unordered(mask.Without(Guesses), timed) == nil:
		return Open
	}
	return Fails
}

// has says that a graph has an edge of the mask.
func (g *Compact) has(mask Mask) bool {
	return slices.ContainsFunc(g.arc, func(a uint32) bool { return mask.has(a & (1<<kindBits - 1)) })
}

// Any finds a cycle that makes a test fail, of which nothing is promised but that it has real
// time once at most. It is for where the search for the shortest has come to its bounds.
func (d *Decision) Any(t Test, o Order, real bool) []Step {
	g := d.Cores[o]
	mask := t.mask().Without(Guesses)
	if o != Plain {
		mask |= Clients
	}
	real = real && o == Real
	spaced := t == TestSnapshot
	if spaced {
		s, err := g.Spaced()
		if err != nil {
			return nil
		}
		g = s
	}
	left := g.Unordered(mask, real)
	if left == nil {
		return nil
	}
	steps := g.induced(left).backwards(mask)
	for i := range steps {
		steps[i].From, steps[i].To = left[steps[i].From], left[steps[i].To]
	}
	steps = g.oneTime(steps)
	transactions := len(g.begin)
	if first := slices.IndexFunc(steps, func(s Step) bool { return int(s.From) < transactions }); first > 0 {
		steps = slices.Concat(steps[first:], steps[:first])
	}
	steps = passThrough(steps, transactions)
	if spaced {
		for i := range steps {
			steps[i].From, steps[i].To = steps[i].From/2, steps[i].To/2
		}
		steps = unfold(steps)
	}
	return steps
}

// backwards goes from node to node along what each has to wait for until one comes again.
// Every node of g waits for another.
func (g *Compact) backwards(mask Mask) []Step {
	r := g.reversed()
	var earliest uint32
	for n := range g.end {
		if g.end[n] < g.end[earliest] {
			earliest = uint32(n)
		}
	}
	at := map[uint32]int{}
	var steps []Step // each leads to the one before
	for n := uint32(0); ; {
		if first, again := at[n]; again {
			steps = steps[first:]
			break
		}
		at[n] = len(steps)
		s := Step{earliest, n, Rt}
		for _, a := range r.arc[r.row[n]:r.row[n+1]] {
			if mask.has(a & (1<<kindBits - 1)) {
				s = Step{a >> kindBits, n, uint8(a & (1<<kindBits - 1))}
				break
			}
		}
		steps = append(steps, s)
		n = s.From
	}
	slices.Reverse(steps)
	return steps
}

// oneTime leaves one edge of real time in a cycle that has several. Of two, a → b and c → d, a
// ended before d began or c before b: else d had begun before a ended, a before b began, b
// before c ended and c before d began.
func (g *Compact) oneTime(steps []Step) []Step {
	for {
		i := slices.IndexFunc(steps, func(s Step) bool { return s.Kind == Rt })
		if i < 0 {
			return steps
		}
		steps = slices.Concat(steps[i:], steps[:i])
		j := 1 + slices.IndexFunc(steps[1:], func(s Step) bool { return s.Kind == Rt })
		if j == 0 {
			return steps
		}
		first, second := steps[0], steps[j]
		if g.before(first.From, second.To) {
			steps = append([]Step{{first.From, second.To, Rt}}, steps[j+1:]...)
		} else {
			steps = append([]Step{{second.From, first.To, Rt}}, steps[1:j]...)
		}
	}
}

// unfold returns the part of a closed path without two anti-dependencies in a row that passes
// no transaction twice and has none either.
func unfold(steps []Step) []Step {
	for {
		i, j := repeated(steps)
		if j == 0 {
			return steps
		}
		inner, outer := steps[i:j], slices.Concat(steps[:i], steps[j:])
		if p, _, _ := PhenomenonOf(inner); p <= GNonadjacent && !(len(inner) == 1 && isAnti(inner[0].Kind)) {
			steps = slices.Clone(inner)
		} else {
			steps = outer
		}
	}
}

// repeated finds the first transaction that a closed path leaves twice.
func repeated(steps []Step) (i, j int) {
	at := map[uint32]int{}
	for j, s := range steps {
		if i, again := at[s.From]; again {
			return i, j
		}
		at[s.From] = j
	}
	return 0, 0
}

package chains

import (
	"cmp"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/graph"
)

// Transactions that wait for each other in a circle have no serial order. A weaker isolation level may allow
// that, for example as read skew. The rest of the history must still be proved:
//
//   - The transactions that have ended and are not placed are the nodes of a small graph. Its
//     edges are their dependencies.
//   - A strongly connected component is closed if no edge leads into it, and if its reads and
//     writes fit the last versions (see fits). No later transaction can join it: one that began
//     earlier and reads one of these versions keeps it open, and one that begins later ended
//     after all of it.
//   - A closed component is placed as a whole, with all its writes in the order of their versions,
//     and recorded as a circle. So a circle occupies memory while it is open, and then its IDs.
//   - After the first circle, real time is ignored: a history without a serial order has none that
//     agrees with real time.
//   - Before the first circle, real time is an edge too. A component that is closed only by real
//     time is placed the same way, but recorded separately.

// These constants limit the number of waiting transactions that no later transaction can help. If more find no place,
// the proof ends. One limit is for all waiting transactions, and one for waiting transactions with many operations. The
// third is the time in which the ledger may still be asked for the maker of a version.
const (
	mostWaiting   = 1 << 20
	mostLarge     = 1 << 6
	mostTentative = 1 << 14
)

// lookEvery is the minimal number of beginnings and ends between two searches for circles. The distance also
// grows with the number of transactions that still wait after a search. So a transaction that waits for a
// write that was not recorded costs at most one search.
const lookEvery = 1024

// overdue reports whether a transaction is not placed although everything that began before its end has
// ended. No later transaction can help it. began is the earliest beginning among the unfinished transactions.
func (p *placement) overdue(began int64) bool {
	p.advance()
	return p.first < len(p.queue) && p.queue[p.first].end < began
}

// breakCircles places closed components until none is left. It returns the number of transactions that wait
// for something else.
func (p *placement) breakCircles(w *check.Watch) (left int) {
	for broken := true; broken && p.err == nil; {
		waiting := p.waiting()
		left = len(waiting)
		g := p.dependenciesOf(waiting, w)
		components := g.Components(graph.All, false)
		broken = p.placeClosed(g, waiting, components, graph.Plain)
		switch {
		case broken || p.untimed:
		case len(components) > 0: // its dependency may wait for its end
			p.untimed, broken = true, true
		case p.errors == nil:
			broken = p.placeClosed(g, waiting, g.Components(graph.All, true), graph.Real)
		}
		p.settle()
	}
	p.boundWaiting()
	return left
}

// boundWaiting ends the proof if too many transactions wait.
func (p *placement) boundWaiting() {
	count, large := 0, 0
	for _, t := range p.queue[p.first:] {
		if t.state != placed {
			count++
			if len(t.more) >= manyOperations {
				large++
			}
		}
	}
	if count > mostWaiting || large > mostLarge || p.tentative && count > mostTentative {
		p.fail("%d transactions found no place", count)
	}
}

// placeClosed places the closed components among the waiting transactions. It reports whether there was one.
func (p *placement) placeClosed(g *graph.Graph, waiting []*transaction, components [][]uint32, o graph.Order) (broken bool) {
	for _, component := range sources(g, components, o == graph.Real) {
		var members []*transaction
		for _, n := range component {
			members = append(members, waiting[n])
		}
		if !p.fits(members) {
			continue
		}
		broken = true
		if o == graph.Real {
			p.delayed.add(members, g.Weakest(component, o))
		} else {
			p.untimed = true
			p.circles.add(members, g.Weakest(component, o))
		}
		p.placeTogether(members)
	}
	return broken
}

// waiting returns the transactions that have ended and are not placed.
func (p *placement) waiting() (list []*transaction) {
	for _, t := range p.queue[p.first:] {
		if t.state != placed {
			list = append(list, t)
		}
	}
	for _, t := range p.unsure {
		if t.state != placed && t.has(demanded) {
			list = append(list, t)
		}
	}
	return list
}

// dependenciesOf returns the graph of the edges between the transactions of a list. The nodes are numbered by
// their position.
func (p *placement) dependenciesOf(list []*transaction, w *check.Watch) *graph.Graph {
	makers, readers := map[version][]uint32{}, map[version][]uint32{}
	for n, t := range list {
		for _, op := range t.operations() {
			read := version{op.object(), op.version}
			readers[read] = append(readers[read], uint32(n))
			if op.write() {
				made := version{op.object(), op.version + 1}
				makers[made] = append(makers[made], uint32(n))
			}
		}
	}
	var e graph.Edges
	for v, all := range readers {
		for _, reader := range all {
			for _, maker := range makers[v] {
				e.Add(maker, reader, graph.Wr)
			}
			for _, next := range makers[version{v.object, v.number + 1}] {
				e.Add(reader, next, graph.Rw)
			}
		}
	}
	times := graph.Times{Begin: make([]int64, len(list)), End: make([]int64, len(list))}
	for n, t := range list {
		if times.Begin[n], times.End[n] = t.try, t.end; t.has(unknown) {
			times.End[n] = graph.Never
		}
	}
	return graph.New(len(list), 0, []graph.Times{times}, w, e.AddTo)
}

// sources returns the components without an incoming edge. If real is set, edges of real time count too.
func sources(g *graph.Graph, components [][]uint32, real bool) (found [][]uint32) {
	of := make([]int, g.Nodes())
	for i, component := range components {
		for _, n := range component {
			of[n] = i + 1
		}
	}
	entered := make([]bool, len(components)+1)
	for s := range g.Each {
		if c := of[s.To]; of[s.From] != c {
			entered[c] = true
		}
	}
	for i, component := range components {
		if !entered[i+1] && !(real && enteredByTime(g, component, of)) {
			found = append(found, component)
		}
	}
	return found
}

// enteredByTime reports whether a node outside a component ended before a member of the component began.
func enteredByTime(g *graph.Graph, component []uint32, of []int) bool {
	latest := -graph.Never
	for _, n := range component {
		latest = max(latest, g.Begin(n))
	}
	for n := range of {
		if of[n] != of[component[0]] && g.End(uint32(n)) < latest {
			return true
		}
	}
	return false
}

// fits reports whether a circle can be placed now. On each object, its writes must follow the last version
// and each other. Its reads must match one of these versions. No other transaction may need a version that
// would be overwritten.
func (p *placement) fits(members []*transaction) bool {
	made := map[uint32][]object{} // the versions of each object, from the last placed one
	pins := map[uint32]uint32{}
	for _, op := range writesOf(members) {
		n := op.object()
		if made[n] == nil {
			made[n] = []object{p.objects[n]}
		}
		last := made[n][len(made[n])-1]
		if last.version != op.version || op.seen() && (last.value != op.value || last.writer != op.writer) {
			return false
		}
		op.apply(&last, op.t)
		made[n] = append(made[n], last)
	}
	for _, t := range members {
		for _, op := range t.operations() {
			if op.write() {
				continue
			}
			n := op.object()
			versions := made[n]
			if versions == nil {
				versions = []object{p.objects[n]}
			}
			i := int64(op.version) - int64(versions[0].version)
			if i < 0 || i >= int64(len(versions)) || versions[i].value != op.value || versions[i].writer != op.writer {
				return false
			}
			if i == 0 {
				pins[n]++
			}
		}
	}
	for n := range made {
		if p.objects[n].pins != pins[n] {
			return false
		}
	}
	return true
}

// written is a write with its transaction.
type written struct {
	*operation
	t *transaction
}

// writesOf returns the writes of several transactions. The writes of each object are in the order of their
// versions.
func writesOf(members []*transaction) (list []written) {
	for _, t := range members {
		ops := t.operations()
		for i := range ops {
			if ops[i].write() {
				list = append(list, written{&ops[i], t})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b written) int {
		return cmp.Or(cmp.Compare(a.object(), b.object()), cmp.Compare(a.version, b.version))
	})
	return list
}

// placeTogether places the members of a circle that fits.
func (p *placement) placeTogether(members []*transaction) {
	before := map[uint32]uint32{} // the previous last version of each object
	reads := map[version]uint32{}
	for _, t := range members {
		for _, op := range t.operations() {
			before[op.object()] = p.objects[op.object()].version
			if !op.write() {
				reads[version{op.object(), op.version}]++
			}
		}
	}
	for _, t := range members {
		p.forget(t)
		t.state = placed
		p.open--
		p.countUnknown(t)
	}
	for v, n := range reads {
		if v.number == before[v.object] {
			p.objects[v.object].pins -= n
		}
	}
	read := func(v version) {
		o := &p.objects[v.object]
		if o.reads += reads[v]; o.writer != 0 {
			p.dependencies += int(reads[v])
		}
		delete(reads, v)
	}
	for _, op := range writesOf(members) {
		o := &p.objects[op.object()]
		if o.pins > 0 {
			p.fail("somebody read a version of object %d in the midst of a circle", op.object())
		}
		read(version{op.object(), op.version})
		p.write(op.t, op.operation, o)
	}
	for v := range reads {
		read(v)
	}
	for n, number := range before {
		if o := &p.objects[n]; o.version == number && o.pins == 0 && o.waited {
			p.wake(version{n, pinned})
		}
	}
}

// forget removes a transaction from the waiting ones.
func (p *placement) forget(t *transaction) {
	for _, op := range t.operations() {
		for _, v := range [...]version{{op.object(), op.version}, {op.object(), pinned}} {
			p.waiters.remove(v, t)
		}
	}
}

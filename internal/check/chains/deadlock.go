package chains

import (
	"cmp"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
)

// Transactions that wait for each other in a circle have no serial order. Where that is no
// more than one of a database's weaker levels allows, as a read skew, the rest of the
// history is still to be proved: the circle is placed as one, all its writes in the order
// of their versions, and is reported. From then on real time holds nobody back, because a
// history without a serial order has none that agrees with real time.

// mostWaiting bounds the transactions that wait: a history of which so many found no place
// is not proved. mostCyclic bounds those that are reported.
const (
	mostWaiting = 1 << 20
	mostCyclic  = 1 << 18
)

// lookEvery is how many beginnings and ends lie between two looks for circles, at least. As many
// as wait after a look come before the next one, so that those who wait for ever, because a write
// on their way was not recorded, cost no more than one look each.
const lookEvery = 1024

// overdue says that a transaction is not placed, and that all that began before it ended
// has ended too: nothing that comes can help it. began is when the first of those began
// that have not ended.
func (p *placement) overdue(began int64) bool {
	p.advance()
	return p.first < len(p.queue) && p.queue[p.first].end < began
}

// breakCircles places circles of transactions of which each waits for the next, and for
// nothing else, until there are no more, and returns how many wait for something else.
func (p *placement) breakCircles(w *check.Watch) (left int) {
	if len(p.queue)-p.first > mostWaiting {
		p.fail("more than %d transactions found no place", mostWaiting)
	}
	for broken := true; broken && p.err == nil; {
		broken = false
		waiting := p.waiting()
		left = len(waiting)
		for _, circle := range sources(p.dependenciesOf(waiting, w)) {
			var members []*transaction
			for _, n := range circle {
				members = append(members, waiting[n])
			}
			if p.fits(members) {
				p.placeTogether(members)
				broken = true
			}
		}
		p.settle()
	}
	return left
}

// waiting are the transactions that have ended and are not placed.
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

// dependenciesOf is the graph of the edges between some transactions, by their places in the
// list.
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
	return graph.New(len(list), 0, nil, w, e.AddTo)
}

// sources are the components that no edge leads into from another node.
func sources(g *graph.Graph) (found [][]uint32) {
	components := g.Components(graph.All, false)
	of := map[uint32]int{}
	for i, component := range components {
		for _, n := range component {
			of[n] = i + 1
		}
	}
	entered := map[int]bool{}
	for s := range g.Each {
		if c := of[s.To]; c != 0 && of[s.From] != c {
			entered[c] = true
		}
	}
	for i, component := range components {
		if !entered[i+1] {
			found = append(found, component)
		}
	}
	return found
}

// fits says that a circle can be placed now: on each object its writes follow the last
// version and each other, its reads are of one of these versions, as they are there, and
// nobody else's place is before a version that would be overwritten.
func (p *placement) fits(members []*transaction) bool {
	made := map[uint32][]object{} // the versions of each object, from the last one on
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
		made[n] = append(made[n], object{value: last.value + op.amount, writer: op.by, version: last.version + 1})
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

// written is a write and whose it is.
type written struct {
	*operation
	t  *transaction
	by history.ID
}

// writesOf are the writes of several transactions, those of each object in the order of
// their versions.
func writesOf(members []*transaction) (list []written) {
	for _, t := range members {
		ops := t.operations()
		for i := range ops {
			if ops[i].write() {
				list = append(list, written{&ops[i], t, t.id})
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
	if len(p.cyclic)+len(members) > mostCyclic {
		p.fail("more than %d transactions have no order", mostCyclic)
		return
	}
	first := map[uint32]uint32{} // of each object, the version that was its last one
	for _, t := range members {
		for _, op := range t.operations() {
			first[op.object()] = p.objects[op.object()].version
		}
	}
	for _, t := range members {
		p.cyclic = append(p.cyclic, t.id)
		p.forget(t)
		for _, op := range t.operations() {
			if o := &p.objects[op.object()]; !op.write() && op.version == first[op.object()] {
				o.pins--
			}
		}
		t.state = placed
		p.open--
		if t.has(unknown) {
			p.unknown++
		}
	}
	for _, op := range writesOf(members) {
		o := &p.objects[op.object()]
		if o.pins > 0 {
			p.fail("somebody read a version of object %d in the midst of a circle", op.object())
		}
		p.write(op.t, op.operation, o)
	}
	for n, before := range first {
		if o := &p.objects[n]; o.version == before && o.pins == 0 && o.waited {
			p.wake(version{n, pinned})
		}
	}
}

// forget takes a transaction from among those that wait.
func (p *placement) forget(t *transaction) {
	for _, op := range t.operations() {
		for _, v := range [...]version{{op.object(), op.version}, {op.object(), pinned}} {
			p.waiters.remove(v, t)
		}
	}
}

package graph

import (
	"cmp"
	"container/heap"
)

// rows holds a list of runs for each node.
type rows struct{ row, item []uint32 }

func rowsOf(nodes int, each func(add func(node, run uint32))) rows {
	r := rows{row: make([]uint32, nodes+2)}
	each(func(node, _ uint32) { r.row[node+2]++ })
	for n := 2; n < len(r.row); n++ {
		r.row[n] += r.row[n-1]
	}
	r.item = make([]uint32, r.row[nodes+1])
	each(func(node, run uint32) {
		at := &r.row[node+1]
		r.item[*at] = run
		*at++
	})
	return r
}

func (r *rows) of(node uint32) []uint32 { return r.item[r.row[node]:r.row[node+1]] }

// locks records which runs each node begins, and which runs it ends together with others. A run ends when its
// last version exists and all its readers have read it. Until then, no other run of the group should begin.
type locks struct {
	begins, ends rows
	group        []uint32 // by run, over all groups
	left         []int32  // by run: number of nodes that end it
}

func (s *settling) newLocks() *locks {
	l := &locks{}
	for i, group := range s.groups {
		for j := range group {
			l.group = append(l.group, uint32(i))
			l.left = append(l.left, int32(1+len(group[j].Readers)))
		}
	}
	each := func(do func(run uint32, r *Run)) {
		run := uint32(0)
		for _, group := range s.groups {
			for j := range group {
				do(run, &group[j])
				run++
			}
		}
	}
	l.begins = rowsOf(s.base.Nodes(), func(add func(node, run uint32)) {
		each(func(run uint32, r *Run) { add(r.First*s.each, run) })
	})
	l.ends = rowsOf(s.base.Nodes(), func(add func(node, run uint32)) {
		each(func(run uint32, r *Run) {
			add(r.Last*s.each+s.each-1, run)
			for _, t := range r.Readers {
				add(t*s.each, run)
			}
		})
	})
	return l
}

// queue orders the nodes of a graph. If possible, no run begins before the current run of its group has
// ended.
type queue struct {
	*kahn
	*locks
	open   []uint32   // by group: the run that has begun, from 1
	left   []int32    // like locks.left, for the nodes that are not placed yet
	parked [][]uint32 // by group: nodes that wait for the end of its run
	waits  []bool     // by node: it is parked
	fifo   []uint32   // all parked nodes, the oldest first
	heap   *nodeHeap  // nil: nodes leave in the order in which they became available
	at     int
	list   []uint32
}

// queue returns a queue over the nodes of a graph. Among the nodes that can come next, it takes the one with
// the earliest hint. Without hints it takes the one that became available first.
func (s *settling) queue(g *Graph, hints []int64) *queue {
	if s.locks == nil {
		s.locks = s.newLocks()
	}
	q := &queue{
		kahn: g.kahn(s.mask, s.timed), locks: s.locks,
		open: make([]uint32, len(s.groups)), left: append([]int32(nil), s.locks.left...),
		parked: make([][]uint32, len(s.groups)), waits: make([]bool, g.Nodes()), list: make([]uint32, 0, g.Nodes()),
	}
	if hints == nil {
		return q
	}
	hint := func(n uint32) int64 {
		if at := n / s.each; int(at) < len(hints) {
			return hints[at]
		}
		return -Never // not a transaction
	}
	q.heap = &nodeHeap{less: func(a, b uint32) bool {
		return cmp.Or(cmp.Compare(hint(a), hint(b)), cmp.Compare(a, b)) < 0
	}}
	return q
}

// order returns the order, or nil if the graph has none.
func (q *queue) order() []uint32 {
	for !q.w.Ended() {
		n, forced, ok := q.pop()
		if !ok {
			break
		}
		if !forced && q.park(n) {
			continue
		}
		q.list = append(q.list, n)
		for _, run := range q.begins.of(n) {
			q.open[q.group[run]] = run + 1
		}
		for _, run := range q.ends.of(n) {
			if q.left[run]--; q.left[run] == 0 && q.open[q.group[run]] == run+1 {
				q.release(q.group[run])
			}
		}
		q.place(n)
	}
	if len(q.list) < q.Nodes() {
		return nil
	}
	return q.list
}

// pop returns the next node. If all available nodes wait for runs to end, it releases one of them and reports
// forced.
func (q *queue) pop() (n uint32, forced, ok bool) {
	if q.heap != nil {
		for ; q.at < len(q.ready); q.at++ {
			heap.Push(q.heap, q.ready[q.at])
		}
		if q.ready, q.at = q.ready[:0], 0; len(q.heap.nodes) > 0 {
			return heap.Pop(q.heap).(uint32), false, true
		}
	} else if q.at < len(q.ready) {
		q.at++
		return q.ready[q.at-1], false, true
	}
	for ; len(q.fifo) > 0; q.fifo = q.fifo[1:] {
		if n := q.fifo[0]; q.waits[n] {
			q.waits[n] = false
			return n, true, true
		}
	}
	return 0, false, false
}

// park reports whether a node must wait for the end of a run.
func (q *queue) park(n uint32) bool {
	for _, run := range q.begins.of(n) {
		if group := q.group[run]; q.open[group] != 0 {
			q.parked[group] = append(q.parked[group], n)
			q.fifo = append(q.fifo, n)
			q.waits[n] = true
			return true
		}
	}
	return false
}

// release makes the nodes available that waited for the run of a group.
func (q *queue) release(group uint32) {
	q.open[group] = 0
	for _, n := range q.parked[group] {
		if q.waits[n] {
			q.waits[n] = false
			q.ready = append(q.ready, n)
		}
	}
	q.parked[group] = q.parked[group][:0]
}

// nodeHeap is a heap of nodes ordered by hint.
type nodeHeap struct {
	nodes []uint32
	less  func(a, b uint32) bool
}

func (h *nodeHeap) Len() int           { return len(h.nodes) }
func (h *nodeHeap) Less(i, j int) bool { return h.less(h.nodes[i], h.nodes[j]) }
func (h *nodeHeap) Swap(i, j int)      { h.nodes[i], h.nodes[j] = h.nodes[j], h.nodes[i] }
func (h *nodeHeap) Push(n any)         { h.nodes = append(h.nodes, n.(uint32)) }
func (h *nodeHeap) Pop() any {
	n := h.nodes[len(h.nodes)-1]
	h.nodes = h.nodes[:len(h.nodes)-1]
	return n
}

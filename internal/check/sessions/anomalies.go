package sessions

import (
	"fmt"

	"stroppy/internal/check"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// id is what results call transaction t.
func (r *resolved) id(t uint32) history.ID {
	if t == initial {
		return 0
	}
	s := r.session[t]
	return ID(int(s), int(t-r.first[s]))
}

// name is how sentences call transaction t.
func (r *resolved) name(t uint32) string { return r.Name(r.id(t)) }

// readWords say what a wrong read is called, after Adya where he has a name, and the
// weakest level that forbids it.
var readWords = [...]struct {
	name  string
	level isolation.Level
}{
	thinAir:      {"thin-air read", isolation.ReadUncommitted},
	aborted:      {"aborted read (G1a)", isolation.ReadCommitted},
	intermediate: {"intermediate read (G1b)", isolation.ReadCommitted},
	future:       {"future read", isolation.ReadCommitted},
	notOwn:       {"own write not read", isolation.ReadCommitted},
}

// wrongReads are the anomalies of single reads, by their kinds.
func (r *resolved) wrongReads() []check.Anomaly {
	var list []check.Anomaly
	for kind := range readWords {
		a := check.Anomaly{Name: readWords[kind].name, Forbidden: readWords[kind].level}
		for i := range r.wrong {
			w := &r.wrong[i]
			if int(w.kind) != kind {
				continue
			}
			if a.Count++; a.Count == 1 {
				a.Detail = check.Capital(a.Name) + ": " + r.readText(w)
			}
			if len(a.Witness) < check.Shown {
				a.Witness = append(a.Witness, r.id(w.t))
				if w.kind == intermediate {
					a.Witness = append(a.Witness, r.id(w.writer))
				}
			}
		}
		if a.Count > 0 {
			a.Detail += check.Times(a.Count)
			a.Witness = check.Distinct(a.Witness)
			list = append(list, a)
		}
	}
	return list
}

// readText is a wrong read in words.
func (r *resolved) readText(w *wrongRead) string {
	op := &r.Ops[w.op]
	text := fmt.Sprintf("%s read %s from %s", r.name(w.t), r.value(op.Value), r.object(op))
	switch w.kind {
	case thinAir:
		return text + ", which nobody wrote"
	case aborted:
		return text + ", which only a transaction wrote that was aborted"
	case intermediate:
		return text + fmt.Sprintf(", which %s had overwritten itself before it committed", r.name(w.writer))
	case future:
		return text + ", which it wrote only afterwards itself"
	default:
		return text + fmt.Sprintf(" after it had written %s to it itself", r.value(w.own))
	}
}

// circular is the anomaly of a history in which so and wr have a cycle.
func (r *resolved) circular(o graph.Order) check.Anomaly {
	steps, groups := r.cycle(o, &edges{})
	a := r.ofCycle(steps, groups)
	if len(steps) == 0 { // the watch has ended
		return a
	}
	_, of, _ := graph.PhenomenonOf(kinds(steps))
	a.Name, a.Forbidden = graph.G1c.Name(of, true), graph.TestReadCommitted.Level(of)
	by := [graph.Orders]string{"", " and by the order of sessions", " and by real time"}[of]
	who := check.Capital(r.name(steps[0].to))
	a.Detail = fmt.Sprintf("%s comes before itself by what was read%s", who, by) + check.Times(groups)
	return a
}

// kinds are the steps as a graph has them.
func kinds(steps []step) (list []graph.Step) {
	for _, s := range steps {
		kind := [...]uint8{
			first: graph.Ww, sessionStep: graph.Process, timeStep: graph.Rt, readStep: graph.Wr, inferStep: graph.Ww,
		}[s.kind]
		list = append(list, graph.Step{From: s.from, To: s.to, Kind: kind})
	}
	return list
}

// anomaly is that of a level whose inferred edges have a cycle with wr and an order.
func (r *resolved) anomaly(l isolation.Level, o graph.Order, inferred *edges) check.Anomaly {
	steps, groups := r.cycle(o, inferred)
	a := r.ofCycle(steps, groups)
	if len(steps) == 0 { // the watch has ended
		return a
	}
	a.Forbidden = l
	a.Name = r.nameOf(l, steps)
	var why step
	for _, s := range steps {
		if s.kind == inferStep {
			why = s
			break
		}
	}
	a.Detail = fmt.Sprintf("%s: %s", check.Capital(a.Name), r.missText(why))
	if len(steps) > 2 {
		a.Detail += fmt.Sprintf("; with what follows from it %d transactions come before themselves", len(steps))
	}
	a.Detail += check.Times(groups)
	return a
}

// nameOf is what the field calls the anomaly.
func (r *resolved) nameOf(l isolation.Level, steps []step) string {
	readers, keys := map[uint32]bool{}, map[uint32]bool{}
	for _, s := range steps {
		if s.kind == inferStep {
			readers[r.reader(s.read)], keys[r.readKey[s.read]] = true, true
		}
	}
	switch {
	case len(readers) == 1 && len(keys) == 1 && len(steps) == 2 && steps[0].kind == inferStep && steps[1].kind == inferStep:
		return "non-repeatable read"
	case l == isolation.ReadCommitted || l == isolation.MonotonicAtomicView:
		return "non-monotonic read"
	case l == isolation.ReadAtomic:
		return "fractured read"
	}
	return "causality violation"
}

// ofCycle is an anomaly with its witness.
func (r *resolved) ofCycle(steps []step, groups int) check.Anomaly {
	a := check.Anomaly{Count: groups}
	for _, s := range steps {
		e := check.Edge{From: r.id(s.from), To: r.id(s.to), Text: r.stepText(s)}
		a.Witness = append(a.Witness, e.From)
		switch s.kind {
		case sessionStep:
			e.Kind = check.ProcessOrder
		case timeStep:
			e.Kind = check.RealTime
		case first:
			e.Kind = check.WriteWrite
		case readStep:
			op := r.readAt(s.read)
			e.Kind, e.Object, e.FromVersion, e.ToVersion = check.WriteRead, r.object(op), r.value(op.Value), r.value(op.Value)
		case inferStep:
			op := r.readAt(s.read)
			e.Kind, e.Object, e.ToVersion = check.WriteWrite, r.object(op), r.value(op.Value)
			if value, ok := r.wroteLast(s.from, r.readKey[s.read]); ok {
				e.FromVersion = r.value(value)
			}
			a.Witness = append(a.Witness, r.id(r.reader(s.read)))
		}
		a.Cycle = append(a.Cycle, e)
	}
	a.Witness = check.Distinct(a.Witness)
	return a
}

// readAt is the operation of a resolved read.
func (r *resolved) readAt(read uint32) *Op { return &r.Ops[r.readOp[read]] }

// reader is the transaction of a resolved read.
func (r *resolved) reader(read uint32) uint32 {
	low, high := uint32(1), r.transactions()+1 // readRow[low] <= read < readRow[high]
	for high-low > 1 {
		if middle := low + (high-low)/2; r.readRow[middle] <= read {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// wroteLast is the value that t left at a key.
func (r *resolved) wroteLast(t, key uint32) (value int64, ok bool) {
	if t == initial {
		return 0, true
	}
	from, to := r.opsOf(t)
	for i := from; i < to; i++ {
		if op := &r.Ops[i]; op.Write && r.ids[i] == key {
			value, ok = op.Value, true
		}
	}
	return value, ok
}

// stepText is an edge in words.
func (r *resolved) stepText(s step) string {
	text := fmt.Sprintf("%s before %s: ", r.name(s.from), r.name(s.to))
	switch s.kind {
	case first:
		return text + "it is before all"
	case sessionStep:
		return text + r.timeText(graph.Sessions, s.from, s.to)
	case timeStep:
		return text + r.timeText(graph.Real, s.from, s.to)
	case readStep:
		op := r.readAt(s.read)
		return text + fmt.Sprintf("whose %s it read from %s", r.value(op.Value), r.object(op))
	}
	return text + r.missText(s)
}

// missText says from which read an edge was inferred.
func (r *resolved) missText(s step) string {
	op, reader := r.readAt(s.read), r.reader(s.read)
	missed, _ := r.wroteLast(s.from, r.readKey[s.read])
	by := "written by " + r.name(s.to)
	if s.to == initial {
		by = "which nobody wrote"
	}
	return fmt.Sprintf("%s read %s from %s (%s) and missed %s (written by %s), although %s",
		r.name(reader), r.value(op.Value), r.object(op), by, r.value(missed), r.name(s.from), r.afterText(s.from, reader))
}

// afterText says why a reader comes after t.
func (r *resolved) afterText(t, reader uint32) string {
	text := fmt.Sprintf("%s comes before %s", r.name(t), r.name(reader))
	if r.session[t] == r.session[reader] && t < reader {
		return text + " in their session"
	}
	for i := r.readRow[reader]; i < r.readRow[reader+1]; i++ {
		if r.readFrom[i] == t {
			op := r.readAt(i)
			return fmt.Sprintf("it also read %s of %s from %s", r.value(op.Value), r.name(t), r.object(op))
		}
	}
	return text + " through what was read in between"
}

package sessions

import (
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// id returns the ID of transaction t in results.
func (r *resolved) id(t uint32) history.ID {
	if t == initial {
		return 0
	}
	s := r.session[t]
	return ID(int(s), int(t-r.first[s]))
}

// readWords holds the name of each kind of wrong read, after Adya if he names it, and the weakest level that
// forbids it.
var readWords = [...]struct {
	name  string
	level isolation.Level
	wrong fact.WrongRead
}{
	thinAir:      {"thin-air read", isolation.ReadUncommitted, fact.ThinAir},
	aborted:      {"aborted read (G1a)", isolation.ReadCommitted, fact.OfAborted},
	intermediate: {"intermediate read (G1b)", isolation.ReadCommitted, fact.Intermediate},
	future:       {"future read", isolation.ReadCommitted, fact.FutureOwn},
	notOwn:       {"own write not read", isolation.ReadCommitted, fact.OwnMissed},
}

// member returns transaction t for use in a fact.
func (r *resolved) member(t uint32) fact.Member {
	return fact.Member{ID: r.id(t), Name: r.Name(r.id(t))}
}

// on returns the key of an operation for use in a fact.
func (r *resolved) on(op *Op) fact.Object { return fact.Object(r.object(op)) }

// wrongReads returns the findings about single reads, grouped by kind.
func (r *resolved) wrongReads() []check.Finding {
	var list []check.Finding
	for kind := range readWords {
		f := check.Finding{Anomaly: readWords[kind].name, Forbidden: readWords[kind].level}
		for i := range r.wrong {
			w := &r.wrong[i]
			switch {
			case int(w.kind) != kind:
			case f.Full():
				f.Count++
			case w.kind == intermediate:
				f.Add(r.readFact(w), r.on(&r.Ops[w.op]), r.id(w.t), r.id(w.writer))
			default:
				f.Add(r.readFact(w), r.on(&r.Ops[w.op]), r.id(w.t))
			}
		}
		if f.Count > 0 {
			f.Transactions = check.Distinct(f.Transactions)
			list = append(list, f)
		}
	}
	return list
}

// readFact returns a wrong read as a fact.
func (r *resolved) readFact(w *wrongRead) fact.Fact {
	op := &r.Ops[w.op]
	f := fact.SessionRead{
		Reader: r.member(w.t), Object: r.on(op), Value: r.value(op.Value), Wrong: readWords[w.kind].wrong,
	}
	switch w.kind {
	case intermediate:
		f.Writer = new(r.member(w.writer))
	case notOwn:
		f.Own = r.value(w.own)
	}
	return f
}

// timeOrder returns the name of an order in facts.
func timeOrder(o graph.Order) fact.TimeOrder {
	return [graph.Orders]fact.TimeOrder{fact.NoTime, fact.OfSessions, fact.OfRealTime}[o]
}

// circular returns the finding for a history in which so and wr have a cycle.
func (r *resolved) circular(o graph.Order) check.Finding {
	steps, groups := r.cycle(o, &edges{})
	f := r.ofCycle(steps, groups)
	if len(steps) == 0 { // the watch has ended
		return f
	}
	var plain []graph.Step
	for _, s := range steps {
		plain = append(plain, s.Step)
	}
	_, of, _ := graph.PhenomenonOf(plain)
	f.Anomaly, f.Forbidden = graph.G1c.Name(of, true), graph.TestReadCommitted.Level(of)
	f.Instances = []fact.Fact{fact.SessionCircle{By: r.member(steps[0].To), Order: timeOrder(of)}}
	return f
}

// anomaly returns the finding for a level whose inferred edges have a cycle with wr and an order.
func (r *resolved) anomaly(l isolation.Level, o graph.Order, inferred *edges) check.Finding {
	steps, groups := r.cycle(o, inferred)
	f := r.ofCycle(steps, groups)
	if len(steps) == 0 { // the watch has ended
		return f
	}
	f.Anomaly, f.Forbidden = r.nameOf(l, steps), l
	at := slices.IndexFunc(steps, func(s step) bool { return s.Kind == graph.Rw })
	why := r.missed(steps[at])
	why.Length = len(steps)
	f.Instances = []fact.Fact{why}
	return f
}

// nameOf returns the common name of the anomaly.
func (r *resolved) nameOf(l isolation.Level, steps []step) string {
	readers, keys := map[uint32]bool{}, map[uint32]bool{}
	for _, s := range steps {
		if s.Kind == graph.Rw {
			readers[r.reader(s.read)], keys[r.readKey[s.read]] = true, true
		}
	}
	switch {
	case len(readers) == 1 && len(keys) == 1 && len(steps) == 2 && steps[0].Kind == graph.Rw && steps[1].Kind == graph.Rw:
		return "non-repeatable read"
	case l == isolation.ReadCommitted || l == isolation.MonotonicAtomicView:
		return "non-monotonic read"
	case l == isolation.ReadAtomic:
		return "fractured read"
	}
	return "causality violation"
}

// ofCycle returns a finding with the edges of a cycle, without an instance.
func (r *resolved) ofCycle(steps []step, groups int) check.Finding {
	f := check.Finding{Count: groups}
	for _, s := range steps {
		e := r.edge(s.Step)
		f.Transactions = append(f.Transactions, e.From)
		switch s.Kind {
		case graph.Ww:
			e.Kind, e.Why = check.WriteWrite, fact.SessionInitial{Second: r.member(s.To)}
		case graph.Rw:
			op := r.readAt(s.read)
			e.Kind, e.Object, e.ToVersion = check.WriteWrite, r.object(op), r.value(op.Value)
			if value, ok := r.wroteLast(s.From, r.readKey[s.read]); ok {
				e.FromVersion = r.value(value)
			}
			e.Why = r.missed(s)
			f.Transactions = append(f.Transactions, r.id(r.reader(s.read)))
		}
		f.Cycle = append(f.Cycle, e)
		if e.Object != "" {
			f.Objects = append(f.Objects, fact.Object(e.Object))
		}
	}
	f.Transactions, f.Objects = check.Distinct(f.Transactions), distinct(f.Objects)
	return f
}

// edge returns an edge with its reason, if it is a read or an order of transactions.
func (r *resolved) edge(s graph.Step) check.Edge {
	e := check.Edge{From: r.id(s.From), To: r.id(s.To)}
	switch s.Kind {
	case graph.Process:
		e.Kind, e.Why = check.ProcessOrder, r.timeFact(graph.Sessions, s.From, s.To)
	case graph.Rt:
		e.Kind, e.Why = check.RealTime, r.timeFact(graph.Real, s.From, s.To)
	case graph.Wr:
		first := r.readRow[s.To]
		op := r.readAt(first + uint32(slices.Index(r.readFrom[first:], s.From)))
		value := r.value(op.Value)
		e.Kind, e.Object, e.FromVersion, e.ToVersion = check.WriteRead, r.object(op), value, value
		e.Why = fact.SessionReadOf{Writer: r.member(s.From), Reader: r.member(s.To), Object: r.on(op), Value: value}
	}
	return e
}

// distinct returns a short list without duplicates.
func distinct(list []fact.Object) (once []fact.Object) {
	for _, o := range list {
		if !slices.Contains(once, o) {
			once = append(once, o)
		}
	}
	return once
}

// readAt returns the operation of a resolved read.
func (r *resolved) readAt(read uint32) *Op { return &r.Ops[r.readOp[read]] }

// reader returns the transaction of a resolved read.
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

// wroteLast returns the last value that t wrote to a key.
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

// missed returns the read that an inferred edge is based on.
func (r *resolved) missed(s step) fact.SessionMissed {
	op, reader := r.readAt(s.read), r.reader(s.read)
	value, _ := r.wroteLast(s.From, r.readKey[s.read])
	f := fact.SessionMissed{
		Reader: r.member(reader), Object: r.on(op), Value: r.value(op.Value), Missed: r.value(value), By: r.member(s.From),
	}
	if s.To != initial {
		f.Writer = new(r.member(s.To))
	}
	if r.session[s.From] == r.session[reader] && s.From < reader {
		f.Session = true
		return f
	}
	for i := r.readRow[reader]; i < r.readRow[reader+1]; i++ {
		if r.readFrom[i] == s.From {
			also := r.readAt(i)
			f.AlsoObject, f.AlsoValue = r.on(also), r.value(also.Value)
			break
		}
	}
	return f
}

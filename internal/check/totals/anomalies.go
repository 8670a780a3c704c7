package totals

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// explainAll converts the detected anomalies to findings.
func (o *order) explainAll() {
	o.fetch()
	o.lostUpdates()
	reads := &o.b.reads
	o.oddReads(dirtyRead, reads.dirty, o.oddRead)
	o.oddReads(garbageRead, reads.garbage, func(r oddRead) fact.Fact {
		return fact.GarbageRead{
			Reader: o.b.member(r.reader), Object: o.b.Object(r.account), Version: r.version, Balance: r.balance, Want: r.want,
			Ended: o.b.Input.End != nil,
		}
	})
	o.oddReads(nobodysRead, reads.unknown, o.oddRead)
	// The shortest cycle of each kind is described.
	slices.SortStableFunc(o.cycles, func(a, b []graph.Step) int { return len(a) - len(b) })
	for _, steps := range o.cycles {
		o.addCycle(steps)
	}
	slices.SortStableFunc(o.anomalies, func(a, b check.Finding) int {
		tolerated := func(f check.Finding) bool { return !isolation.SnapshotIsolation.Includes(f.Forbidden) }
		return cmp.Or(compareBool(tolerated(a), tolerated(b)), cmp.Compare(a.Forbidden, b.Forbidden))
	})
	slices.SortStableFunc(o.realtime, func(a, b check.Finding) int {
		return cmp.Or(cmp.Compare(a.Forbidden, b.Forbidden), cmp.Compare(a.Anomaly, b.Anomaly))
	})
}

// addCycle adds a cycle to the finding of its anomaly. The first cycle of a kind is described.
func (o *order) addCycle(steps []graph.Step) {
	p, order, item := graph.PhenomenonOf(steps)
	name := p.Name(order, item)
	broken, list := check.Serializable, &o.anomalies
	if order == graph.Real {
		broken, list = check.Strict, &o.realtime
	}
	o.showCycle(broken, name, steps)
	lost := slices.ContainsFunc(steps, func(s graph.Step) bool { return o.b.lost(s.From) })
	at := slices.IndexFunc(*list, func(f check.Finding) bool { return f.Anomaly == name })
	if at < 0 {
		at = len(*list)
		f := check.Finding{Check: broken, Anomaly: name, Forbidden: o.forbidden(steps, p.Forbidden(order, item)[0])}
		o.path(&f, steps)
		*list = append(*list, f)
	}
	f := &(*list)[at]
	f.Count++
	f.AtLeast = f.AtLeast || o.more[p.Test().Level(order)]
	for _, s := range steps {
		o.b.when(f, s.From)
	}
	if lost {
		f.OfLost++
	}
}

// lost reports whether a transaction was acknowledged but is missing in the ledger.
func (b *balances) lost(t uint32) bool {
	if t == check.None || b.Input.End == nil {
		return false
	}
	n := &b.Txns.List[t]
	return n.Source != check.FromLedger && n.Outcome == history.Committed && n.Want > 0 && n.Seen == 0
}

// forbidden returns the weakest level that forbids a cycle, given the level of its phenomenon. Without an end
// state, overwroteRead determines the order of two writes; if that assumption fails, snapshot isolation is
// broken.
func (o *order) forbidden(steps []graph.Step, level isolation.Level) isolation.Level {
	guessed := o.b.Input.End == nil && !o.b.byLedger() && slices.ContainsFunc(steps, func(s graph.Step) bool { return s.Kind == graph.Ww })
	for _, least := range []isolation.Level{isolation.SnapshotIsolation, isolation.StrongSnapshotIsolation} {
		if guessed && least.Includes(level) {
			return least
		}
	}
	return level
}

// mostWitnesses limits the witnesses of a long cycle.
const mostWitnesses = 4 * check.Shown

// fetch reads the transactions of the anomalies from the history again, because their operations were not
// kept.
func (o *order) fetch() {
	o.records = map[uint32]*history.Transaction{}
	for _, steps := range o.cycles {
		for _, s := range steps[:min(len(steps), mostWitnesses)] {
			o.records[s.From] = nil
		}
	}
	if forks := o.b.chain.forks; len(forks) > 0 {
		o.records[forks[0].first], o.records[forks[0].second] = nil, nil
	}
	for _, odd := range [][]oddRead{o.b.reads.dirty, o.b.reads.garbage, o.b.reads.unknown} {
		for _, r := range odd[:min(1, len(odd))] {
			o.records[r.reader] = nil
			if last, ok := o.b.Txns.Find(r.last); ok {
				o.records[last] = nil
			}
		}
	}
	if len(o.records) == 0 {
		return
	}
	// The first pass has reported a reading error; missing records only shorten the text.
	_ = o.b.Each(func(t uint32, tx *history.Transaction) {
		if _, wanted := o.records[t]; wanted {
			record := *tx
			record.Ops = slices.Clone(tx.Ops)
			o.records[t] = &record
		}
	})
}

// lostUpdateName is the name of the anomaly of a version that two transfers made.
const lostUpdateName = "lost update (P4)"

// lostUpdates reports the versions that two transfers made.
func (o *order) lostUpdates() {
	forks := o.b.chain.forks
	if len(forks) == 0 {
		return
	}
	o.b.showForks(check.Serializable, lostUpdateName)
	f := check.Finding{Check: check.Serializable, Anomaly: lostUpdateName, Forbidden: isolation.SnapshotIsolation, Amount: o.b.netLoss()}
	for _, one := range forks {
		o.b.when(&f, one.second)
		if f.Full() {
			f.Count++
			continue
		}
		what := o.lostUpdate(one)
		f.Add(what, what.Object, what.First.ID, what.Second.ID)
	}
	first := forks[0]
	s, version := o.b.slotAt(first.pos)
	for _, pair := range [][2]uint32{{first.first, first.second}, {first.second, first.first}} {
		f.Cycle = append(f.Cycle, check.Edge{
			From: o.b.IDOf(pair[0]), To: o.b.IDOf(pair[1]), Kind: check.ReadWrite, Object: o.b.NameInSentence(s.n),
			FromVersion: versionText(uint64(version) - 1), ToVersion: versionText(uint64(version)),
			Why: fact.Dependency{
				From: o.b.member(pair[0]), To: o.b.member(pair[1]), Kind: check.ReadWrite.String(), Object: o.b.Object(s.n), Version: uint64(version) - 1,
			},
		})
	}
	f.Spans = o.spans([]uint32{first.first, first.second}, []uint64{s.n})
	o.anomalies = append(o.anomalies, f)
}

func (o *order) lostUpdate(f fork) fact.LostUpdate {
	s, version := o.b.slotAt(f.pos)
	return fact.LostUpdate{First: o.b.member(f.first), Second: o.b.member(f.second), Object: o.b.Object(s.n), Version: uint64(version)}
}

// netLoss returns the difference between the final balances and the load's total, and 0 if one of them is not
// known.
func (b *balances) netLoss() int64 {
	difference := b.end.sum
	difference.Add(-b.in.Total)
	if b.Input.End == nil || b.in.Total == 0 || !difference.Fits() {
		return 0
	}
	return difference.Low()
}

// oddReads adds a finding for reads that no order explains.
func (o *order) oddReads(name string, list []oddRead, what func(oddRead) fact.Fact) {
	if len(list) == 0 {
		return
	}
	f := check.Finding{Check: check.Serializable, Anomaly: name, Forbidden: isolation.ReadCommitted, AtLeast: len(list) == mostOdd}
	for _, r := range list {
		by := []history.ID{o.b.IDOf(r.reader)}
		o.b.when(&f, r.reader)
		writer, known := o.b.Txns.Find(r.last)
		if known && o.b.lost(writer) {
			f.OfLost++
		}
		if r.last != 0 {
			by = append(by, r.last)
		}
		if f.Full() {
			f.Count++
			continue
		}
		f.Add(what(r), o.b.Object(r.account), by...)
	}
	first := list[0]
	if last, ok := o.b.Txns.Find(first.last); ok && name == dirtyRead {
		f.Cycle = []check.Edge{{
			From: first.last, To: o.b.IDOf(first.reader), Kind: check.WriteRead, Object: o.b.NameInSentence(first.account),
			FromVersion: versionText(first.version), ToVersion: versionText(first.version), Why: o.oddRead(first),
		}}
		f.Spans = o.spans([]uint32{last, first.reader}, []uint64{first.account})
	}
	o.anomalies = append(o.anomalies, f)
}

// oddRead returns the fact that a read names a maker which did not make the version.
func (o *order) oddRead(r oddRead) fact.Fact {
	f := fact.OddRead{
		Reader: o.b.member(r.reader), Writer: fact.Member{ID: r.last}, Object: o.b.Object(r.account), Version: r.version, Balance: r.balance,
		Ended: o.b.Input.End != nil,
	}
	t, ok := o.b.Txns.Find(r.last)
	if !ok {
		return f
	}
	n := &o.b.Txns.List[t]
	f.Writer, f.Outcome = o.b.member(t), n.Outcome
	switch s := o.b.slots.find(r.account); {
	case !n.Applied():
		f.Fate = fact.NotApplied
	case o.b.lost(t):
		f.Fate = fact.Vanished
	case s == nil || o.b.versionOf(s, t) == 0:
		f.Fate = fact.MadeNot
	default:
		f.As = uint64(o.b.versionOf(s, t))
		f.Aborted = n.Outcome == history.Aborted || n.Outcome == history.Rejected
		f.Fate = fact.AppliedLater
		if f.Aborted || f.As < r.version {
			f.Fate = fact.AppliedAs
		}
	}
	return f
}

// dependency returns one step of a cycle as a fact.
func (o *order) dependency(s graph.Step) fact.Dependency {
	f := fact.Dependency{From: o.b.member(s.From), To: o.b.member(s.To), Kind: edgeKinds[s.Kind].String()}
	if s.Kind == graph.Rt {
		f.Apart = time.Duration(o.b.Between(s.From, s.To))
		return f
	}
	if where, version, ok := o.meeting(s); ok {
		f.Object, f.Version = o.b.Object(where), version
	}
	if s.Kind == graph.PredicateRw {
		f.Kind = "predicate"
		if o.b.predicates.missed[[2]uint32{s.From, s.To}].low {
			f.Low = o.b.in.Predicates.Low
		}
	}
	return f
}

// edgeKinds maps the kinds of the graph's edges to the kinds in results.
var edgeKinds = [...]check.EdgeKind{graph.Ww: check.WriteWrite, graph.Wr: check.WriteRead, graph.Rw: check.ReadWrite, graph.PredicateRw: check.ReadWrite, graph.Rt: check.RealTime}

// path adds the edges of a cycle, its transactions and the witnesses to a finding.
func (o *order) path(f *check.Finding, steps []graph.Step) {
	what := fact.Cycle{All: len(steps)}
	var members []uint32
	var accounts []uint64
	for _, s := range steps[:min(len(steps), mostWitnesses)] {
		step := o.dependency(s)
		what.Steps = append(what.Steps, step)
		e := check.Edge{From: o.b.IDOf(s.From), To: o.b.IDOf(s.To), Kind: edgeKinds[s.Kind], Why: step}
		if n, version, ok := o.meeting(s); ok && s.Kind != graph.Rt {
			accounts = append(accounts, n)
			e.Object, e.FromVersion, e.ToVersion = o.b.NameInSentence(n), versionText(version), versionText(version+1)
			if s.Kind == graph.Wr {
				e.ToVersion = e.FromVersion
			}
			if object := o.b.Object(n); !slices.Contains(f.Objects, object) {
				f.Objects = append(f.Objects, object)
			}
		}
		f.Cycle = append(f.Cycle, e)
		f.Transactions = append(f.Transactions, e.From)
		members = append(members, s.From)
	}
	f.Instances = []fact.Fact{what}
	f.Spans = o.spans(members, accounts)
}

func versionText(n uint64) string { return fmt.Sprintf("version %d", n) }

// spans returns the recorded transactions of an instance, with their operations on the accounts of the
// instance. Times of several runs are relative to the start of the first.
func (o *order) spans(members []uint32, accounts []uint64) []check.Span {
	var list []check.Span
	for _, t := range members {
		r, n := o.records[t], &o.b.Txns.List[t]
		if r == nil {
			continue
		}
		later := int64(0)
		if clock, first := o.b.Clocks[n.Source], o.b.Clocks[0]; clock.ID == first.ID {
			later = clock.From - first.From
		}
		kind := o.b.Words.One
		if o.b.Words.Kind != nil {
			kind = o.b.Words.Kind(n.Kind)
		}
		s := check.Span{ID: n.ID, Kind: kind, Outcome: n.Outcome, Begin: r.Try + later, End: r.End + later}
		if n.Outcome == history.Unknown {
			s.End = 0
		}
		for i := range r.Ops {
			if op := &r.Ops[i]; slices.Contains(accounts, op.Object) {
				s.Did = append(s.Did, o.did(t, op, slices.Min(accounts) != slices.Max(accounts)))
			}
		}
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b check.Span) int { return cmp.Compare(a.Begin, b.Begin) })
	return list
}

// did returns a transaction's operation on an account as a fact. If several is set, the fact names the
// account.
func (o *order) did(t uint32, op *history.Op, several bool) fact.Fact {
	f := fact.Operation{Read: op.Observed, Version: op.Version, Balance: op.Value, Wrote: op.Write, Amount: op.Amount}
	if several {
		f.Object = o.b.Object(op.Object)
	}
	if op.Write {
		f.Made = op.Version + 1
		if s := o.b.slots.find(op.Object); s != nil {
			f.Made = cmp.Or(uint64(o.b.versionOf(s, t)), f.Made)
		}
	}
	return f
}

// meeting finds the account and the version through which two transactions depend on each other.
func (o *order) meeting(s graph.Step) (account, version uint64, ok bool) {
	if s.Kind == graph.PredicateRw {
		m := o.b.predicates.missed[[2]uint32{s.From, s.To}]
		return m.n, m.version - 1, true
	}
	reader, writer := s.To, s.From
	if s.Kind == graph.Rw {
		reader, writer = s.From, s.To
	}
	r := o.records[reader]
	if r == nil {
		return 0, 0, false
	}
	if s.Kind == graph.Ww {
		return o.overwrote(r, writer, reader)
	}
	for i := range r.Ops {
		op := &r.Ops[i]
		sl := o.b.slots.find(op.Object)
		if sl == nil || !op.Observed || op.Version > uint64(sl.length) {
			continue
		}
		if s.Kind == graph.Rw && o.overwritten(sl, op, writer) || s.Kind != graph.Rw && op.Version > 0 && o.madeRead(sl, op, writer) {
			return op.Object, op.Version, true
		}
	}
	return 0, 0, false
}

// overwritten reports whether a transaction overwrote the version that op read. If two transactions made that
// version, both must have read the same one.
func (o *order) overwritten(sl *slot, op *history.Op, by uint32) bool {
	if !sl.forked {
		return o.b.next(sl, sl.base+uint32(op.Version)) == by
	}
	r := o.records[by]
	return r != nil && slices.ContainsFunc(r.Ops, func(other history.Op) bool {
		return other.Object == op.Object && other.Write && other.Observed && other.Version == op.Version && other.Writer == op.Writer
	})
}

// madeRead reports whether a transaction made the version that op read, according to the maker recorded by
// op.
func (o *order) madeRead(sl *slot, op *history.Op, by uint32) bool {
	p := sl.base + uint32(op.Version)
	if op.Writer != o.b.IDOf(by) {
		return false
	}
	return o.b.chain.writer[p] == by || o.b.forked(p, op.Writer)
}

// overwrote finds the account of which a transaction, recorded in r, made the version after an earlier
// transaction's version. It returns that version.
func (o *order) overwrote(r *history.Transaction, earlier, later uint32) (account, version uint64, ok bool) {
	for i := range r.Ops {
		sl := o.b.slots.find(r.Ops[i].Object)
		if sl == nil || !r.Ops[i].Write {
			continue
		}
		if v := o.b.versionOf(sl, earlier); v != 0 && v < sl.length && o.b.chain.writer[sl.base+v+1] == later {
			return sl.n, uint64(v), true
		}
	}
	return 0, 0, false
}

package totals

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// explainAll turns what was found into anomalies with their sentences.
func (o *order) explainAll() {
	o.fetch()
	o.lostUpdates()
	reads, w := &o.b.reads, &o.b.Words
	version := func(r oddRead) string {
		return fmt.Sprintf("version %d of %s", r.version, o.b.NameInSentence(r.account))
	}
	o.oddReads(dirtyRead, reads.dirty, func(r oddRead) string {
		return fmt.Sprintf("%s as made by %v, which %s", version(r), r.last, o.fate(r))
	})
	o.oddReads(garbageRead, reads.garbage, func(r oddRead) string {
		return fmt.Sprintf("balance %s at %s, where opening balance and %s make %s: no transaction ever wrote that",
			w.Amount(r.balance), version(r), w.Book, w.Amount(r.want))
	})
	o.oddReads(nobodysRead, reads.unknown, func(r oddRead) string {
		return fmt.Sprintf("%s as made by %v, a %s that no client sent", version(r), r.last, w.One)
	})
	for _, steps := range o.cycles {
		if o.isLostUpdate(steps) {
			continue // reported already, with all its kind
		}
		name, forbidden := graph.Classify(steps)
		a := check.Anomaly{Name: name, Forbidden: forbidden, Count: 1, Detail: o.describe(steps)}
		for _, s := range steps[:min(len(steps), mostWitnesses)] {
			a.Witness = append(a.Witness, o.b.IDOf(s.From))
		}
		broken, list := check.Serializable, &o.anomalies
		if forbidden == isolation.StrictSerializable {
			broken, list = check.Strict, &o.realtime
		}
		o.reportCycle(broken, name, steps)
		if same := slices.IndexFunc(*list, func(b check.Anomaly) bool { return b.Name == name }); same >= 0 {
			(*list)[same].Count++ // the first one, which is the shortest, is reported
		} else {
			*list = append(*list, a)
		}
	}
	slices.SortStableFunc(o.anomalies, func(a, b check.Anomaly) int { return int(a.Forbidden) - int(b.Forbidden) })
}

// mostWitnesses bounds what is said of one long cycle.
const mostWitnesses = 4 * check.Shown

// fetch reads the transactions of the cycles from the history again, because
// what they did to which account is not kept.
func (o *order) fetch() {
	o.records = map[uint32]*history.Transaction{}
	for _, steps := range o.cycles {
		for _, s := range steps[:min(len(steps), mostWitnesses)] {
			o.records[s.From] = nil
		}
	}
	if len(o.records) == 0 {
		return
	}
	// A reading error was reported by the first pass; what is missing here is
	// reported in fewer words.
	_ = o.b.Each(func(t uint32, tx *history.Transaction) {
		if _, wanted := o.records[t]; wanted {
			o.records[t] = &history.Transaction{Ops: slices.Clone(tx.Ops)}
		}
	})
}

// lostUpdateName is the anomaly of a version that two transfers both made.
const lostUpdateName = "lost update (P4)"

// lostUpdates reports the versions that two transfers both made.
func (o *order) lostUpdates() {
	forks := o.b.chain.forks
	if len(forks) == 0 {
		return
	}
	o.b.reportForks(check.Serializable, lostUpdateName)
	f := forks[0]
	s, version := o.b.slotAt(f.pos)
	a := check.Anomaly{
		Name: lostUpdateName, Forbidden: isolation.SnapshotIsolation, Count: len(forks),
		Detail: fmt.Sprintf("%s and %s both read version %d of %s and both made version %d of it, so that the effect of one is gone",
			o.who(f.first), o.who(f.second), version-1, o.b.NameInSentence(s.n), version),
	}
	for _, f := range forks[:min(len(forks), check.Shown)] {
		a.Witness = append(a.Witness, o.b.IDOf(f.first), o.b.IDOf(f.second))
	}
	a.Detail += check.Times(len(forks))
	o.anomalies = append(o.anomalies, a)
}

// isLostUpdate says that a cycle is two transfers that made the same version.
func (o *order) isLostUpdate(steps []graph.Step) bool {
	return len(steps) == 2 && slices.ContainsFunc(o.b.chain.forks, func(f fork) bool {
		return f.first == steps[0].From && f.second == steps[0].To || f.second == steps[0].From && f.first == steps[0].To
	})
}

// oddReads adds an anomaly for reads that no order explains; what says of one what it read.
func (o *order) oddReads(name string, list []oddRead, what func(oddRead) string) {
	if len(list) == 0 {
		return
	}
	first := list[0]
	detail := fmt.Sprintf("%s read %s", o.who(first.reader), what(first))
	times := check.Times(len(list))
	if len(list) == mostOdd {
		times = fmt.Sprintf(". There are at least %d more of this kind.", mostOdd-1)
	}
	a := check.Anomaly{Name: name, Forbidden: isolation.ReadCommitted, Count: len(list), Detail: detail + times}
	for _, r := range list[:min(len(list), check.Shown)] {
		if a.Witness = append(a.Witness, o.b.IDOf(r.reader)); r.last != 0 {
			a.Witness = append(a.Witness, r.last)
		}
	}
	o.anomalies = append(o.anomalies, a)
}

// fate says why what was read should not have been there.
func (o *order) fate(r oddRead) string {
	t, ok := o.b.Txns.Find(r.last)
	if !ok {
		return "no client sent"
	}
	n := &o.b.Txns.List[t]
	switch {
	case !n.Applied() && n.Outcome == history.Unknown:
		return "is of unknown outcome and not in the " + o.b.Words.Book
	case !n.Applied() && o.b.Input.End == nil:
		return "was " + n.Outcome.String()
	case !n.Applied():
		return "was " + n.Outcome.String() + " and is not in the " + o.b.Words.Book
	case n.Seen == 0 && n.Want > 0 && o.b.Input.End != nil:
		return "was acknowledged and then vanished"
	}
	if s := o.b.slots.find(r.account); s != nil {
		if v := o.b.versionOf(s, t); v != 0 {
			return fmt.Sprintf("was applied there only later, as version %d", v)
		}
	}
	return "did not make that version"
}

// who names a transaction with its kind.
func (o *order) who(t uint32) string {
	if t == check.None {
		return "a " + o.b.Words.One + " that is not recorded"
	}
	n := &o.b.Txns.List[t]
	if n.Source == check.FromLedger || o.b.Words.Kind == nil {
		return fmt.Sprintf("%s %v", o.b.Words.One, n.ID)
	}
	if n.Outcome == history.Rejected && !n.Applied() {
		return fmt.Sprintf("refused %s %v", o.b.Words.Kind(n.Kind), n.ID)
	}
	return fmt.Sprintf("%s %v", o.b.Words.Kind(n.Kind), n.ID)
}

// describe says a cycle in words, a clause each step.
func (o *order) describe(steps []graph.Step) string {
	clauses := make([]string, 0, len(steps))
	for i, s := range steps {
		if i == 12 {
			clauses = append(clauses, fmt.Sprintf("and %d steps more", len(steps)-i))
			break
		}
		clauses = append(clauses, o.clause(s))
	}
	return strings.Join(clauses, "; ") + fmt.Sprintf(". So %s must come before itself.", o.who(steps[0].From))
}

func (o *order) clause(s graph.Step) string {
	from, to := o.who(s.From), o.who(s.To)
	later, earlier, did, had := to, from, "read", "had made"
	switch s.Kind {
	case graph.Rt:
		return fmt.Sprintf("%s had ended %v before %s began", from, time.Duration(o.b.Between(s.From, s.To)), to)
	case graph.Rw:
		later, earlier, had = from, to, "overwrote"
	case graph.Ww:
		did = "overwrote"
	}
	where, version, ok := o.meeting(s)
	if !ok {
		return fmt.Sprintf("%s %s what %s %s", later, did, earlier, strings.Replace(had, "made", "written", 1))
	}
	return fmt.Sprintf("%s %s version %d of %s, which %s %s", later, did, version, o.b.NameInSentence(where), earlier, had)
}

// meeting finds the account at which two transactions depend on each other, and
// the version that the dependency is about.
func (o *order) meeting(s graph.Step) (account, version uint64, ok bool) {
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
		p := sl.base + uint32(op.Version)
		if s.Kind == graph.Rw {
			if o.b.next(sl, p) == writer || o.b.forked(p+1, o.b.IDOf(writer)) {
				return op.Object, op.Version, true
			}
		} else if op.Version > 0 && (o.b.chain.writer[p] == writer || o.b.forked(p, o.b.IDOf(writer))) {
			return op.Object, op.Version, true
		}
	}
	return 0, 0, false
}

// overwrote finds the account of which a transaction, recorded in r, made the
// version after the one that an earlier transaction made, and that version.
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

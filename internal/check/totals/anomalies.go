package totals

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/money"
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
		if r.last == 0 {
			return version(r) + " as made by the load, which made version 0 alone"
		}
		if _, sent := o.b.Txns.Find(r.last); sent {
			return fmt.Sprintf("%s as made by %v, which %s", version(r), r.last, o.fate(r))
		}
		return fmt.Sprintf("%s as made by %v, a %s that no client sent", version(r), r.last, w.One)
	})
	// Of each kind the shortest is described.
	slices.SortStableFunc(o.cycles, func(a, b []graph.Step) int { return len(a) - len(b) })
	for _, steps := range o.cycles {
		p, order, item := graph.PhenomenonOf(steps)
		name := p.Name(order, item)
		broken, list := check.Serializable, &o.anomalies
		if order == graph.Real {
			broken, list = check.Strict, &o.realtime
		}
		o.reportCycle(broken, name, steps)
		if same := slices.IndexFunc(*list, func(b check.Anomaly) bool { return b.Name == name }); same >= 0 {
			(*list)[same].Count++
			continue
		}
		a := check.Anomaly{Name: name, Forbidden: o.forbidden(steps, p.Forbidden(order, item)[0]), Count: 1, Detail: o.describe(steps)}
		o.path(&a, steps)
		*list = append(*list, a)
	}
	for _, list := range [][]check.Anomaly{o.anomalies, o.realtime} {
		for i := range list {
			list[i].Detail = o.sentence(&list[i])
		}
	}
	slices.SortStableFunc(o.anomalies, func(a, b check.Anomaly) int {
		tolerated := func(a check.Anomaly) bool { return !isolation.SnapshotIsolation.Includes(a.Forbidden) }
		return cmp.Or(compareBool(tolerated(a), tolerated(b)), cmp.Compare(a.Forbidden, b.Forbidden))
	})
}

// forbidden is the weakest level that forbids a cycle of which the phenomenon is forbidden at
// one. Without an end state the order of two writes is what overwroteRead says of them, and
// where that does not hold it is snapshot isolation that is broken.
func (o *order) forbidden(steps []graph.Step, level isolation.Level) isolation.Level {
	guessed := o.b.Input.End == nil && !o.b.trusted && slices.ContainsFunc(steps, func(s graph.Step) bool { return s.Kind == graph.Ww })
	for _, least := range []isolation.Level{isolation.SnapshotIsolation, isolation.StrongSnapshotIsolation} {
		if guessed && least.Includes(level) {
			return least
		}
	}
	return level
}

// sentence is what an anomaly came to, in one sentence: the money, how often, and the
// instance that Detail describes.
func (o *order) sentence(a *check.Anomaly) string {
	text := a.Detail + "."
	switch {
	case a.Count == mostOdd && a.Name != lostUpdateName:
		text = fmt.Sprintf("at least %s times, first: %s", check.Group(a.Count), text)
	case a.Count > 1:
		text = fmt.Sprintf("%s times, first: %s", check.Group(a.Count), text)
	}
	if missing := o.b.missingMoney(); missing != "" && a.Name == lostUpdateName {
		text = missing + "; " + text
	}
	return text
}

// missingMoney says by how much the end balances differ from the total of the load; empty
// where they do not, or where one of the two is not known.
func (b *balances) missingMoney() string {
	difference := b.end.sum
	difference.Add(-b.in.Total)
	switch cents := difference.Low(); {
	case b.Input.End == nil || b.in.Total == 0 || !difference.Fits() || cents == 0:
		return ""
	case cents < 0:
		return money.Text(-cents) + " lost"
	default:
		return money.Text(cents) + " made"
	}
}

// mostWitnesses bounds what is said of one long cycle.
const mostWitnesses = 4 * check.Shown

// fetch reads the transactions of the anomalies from the history again, because
// what they did to which account is not kept.
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
	// A reading error was reported by the first pass; what is missing here is
	// reported in fewer words.
	_ = o.b.Each(func(t uint32, tx *history.Transaction) {
		if _, wanted := o.records[t]; wanted {
			record := *tx
			record.Ops = slices.Clone(tx.Ops)
			o.records[t] = &record
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
	name := o.b.NameInSentence(s.n)
	a := check.Anomaly{
		Name: lostUpdateName, Forbidden: isolation.SnapshotIsolation, Count: len(forks),
		Detail: fmt.Sprintf("%s and %s both read version %d of %s and both made version %d of it, so that the effect of one is gone",
			o.who(f.first), o.who(f.second), version-1, name, version),
	}
	for _, f := range forks[:min(len(forks), check.Shown)] {
		a.Witness = append(a.Witness, o.b.IDOf(f.first), o.b.IDOf(f.second))
	}
	for _, pair := range [][2]uint32{{f.first, f.second}, {f.second, f.first}} {
		a.Cycle = append(a.Cycle, check.Edge{
			From: o.b.IDOf(pair[0]), To: o.b.IDOf(pair[1]), Kind: check.ReadWrite, Object: name,
			FromVersion: versionText(uint64(version) - 1), ToVersion: versionText(uint64(version)),
			Text: fmt.Sprintf("%s read version %d of %s, which %s overwrote", o.who(pair[0]), version-1, name, o.who(pair[1])),
		})
	}
	a.Spans = o.spans([]uint32{f.first, f.second}, []uint64{s.n})
	o.anomalies = append(o.anomalies, a)
}

// oddReads adds an anomaly for reads that no order explains; what says of one what it read.
func (o *order) oddReads(name string, list []oddRead, what func(oddRead) string) {
	if len(list) == 0 {
		return
	}
	first := list[0]
	a := check.Anomaly{
		Name: name, Forbidden: isolation.ReadCommitted, Count: len(list),
		Detail: fmt.Sprintf("%s read %s", o.who(first.reader), what(first)),
	}
	for _, r := range list[:min(len(list), check.Shown)] {
		if a.Witness = append(a.Witness, o.b.IDOf(r.reader)); r.last != 0 {
			a.Witness = append(a.Witness, r.last)
		}
	}
	if last, ok := o.b.Txns.Find(first.last); ok && name == dirtyRead {
		object := o.b.NameInSentence(first.account)
		a.Cycle = []check.Edge{{
			From: first.last, To: o.b.IDOf(first.reader), Kind: check.WriteRead, Object: object, FromVersion: versionText(first.version), ToVersion: versionText(first.version),
			Text: fmt.Sprintf("%s read version %d of %s as made by %s, which %s", o.who(first.reader), first.version, object, o.who(last), o.fate(first)),
		}}
		a.Spans = o.spans([]uint32{last, first.reader}, []uint64{first.account})
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
		v := o.b.versionOf(s, t)
		switch {
		case v == 0:
		case n.Outcome == history.Aborted || n.Outcome == history.Rejected:
			return fmt.Sprintf("was %v, and is in the %s as the maker of version %d", n.Outcome, o.b.Words.Book, v)
		case uint64(v) < r.version:
			return fmt.Sprintf("made version %d of it by the %s", v, o.b.Words.Book)
		default:
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

// describe says in one sentence what a cycle came to.
func (o *order) describe(steps []graph.Step) string {
	first := o.clause(steps[0])
	anti := slices.IndexFunc(steps, graph.Step.Anti)
	real := slices.IndexFunc(steps, func(s graph.Step) bool { return s.Kind == graph.Rt })
	rest := ""
	if n := len(steps) - 2; n > 0 {
		rest = fmt.Sprintf(", by way of %s", check.Plural(n, "other transaction"))
	}
	switch {
	case len(steps) == 2 && real >= 0:
		return fmt.Sprintf("%s, although %s", o.clause(steps[1-real]), o.clause(steps[real]))
	case len(steps) == 2 && anti >= 0 && steps[1-anti].Kind == graph.Wr:
		return fmt.Sprintf("%s saw one part of %s without the other: %s, and %s",
			o.who(steps[anti].From), o.who(steps[anti].To), o.clause(steps[1-anti]), o.clause(steps[anti]))
	case len(steps) == 2 && steps[0].Anti() && steps[1].Anti():
		return fmt.Sprintf("%s, and %s", first, o.clause(steps[1]))
	case len(steps) == 4 && anti >= 0 && steps[(anti+2)%4].Anti() && steps[(anti+1)%4].Kind == graph.Wr && steps[(anti+3)%4].Kind == graph.Wr:
		one, other := steps[anti], steps[(anti+2)%4]
		return fmt.Sprintf("%s saw %s without %s, and %s saw %s without %s",
			o.who(one.From), o.who(other.To), o.who(one.To), o.who(other.From), o.who(one.To), o.who(other.To))
	case anti >= 0 && real < 0 && !slices.ContainsFunc(steps[anti+1:], graph.Step.Anti):
		return fmt.Sprintf("%s, and yet %s saw what comes after %s%s", o.clause(steps[anti]), o.who(steps[anti].From), o.who(steps[anti].To), rest)
	}
	return fmt.Sprintf("%s, and %s comes before %s all the same%s", first, o.who(steps[0].To), o.who(steps[0].From), rest)
}

// clause says one step in words, beginning with the transaction that comes first.
func (o *order) clause(s graph.Step) string {
	from, to := o.who(s.From), o.who(s.To)
	did, had := "made", "read"
	switch s.Kind {
	case graph.PredicateRw:
		return o.missedText(from, to, o.b.predicates.missed[[2]uint32{s.From, s.To}])
	case graph.Rt:
		return fmt.Sprintf("%s had ended %s before %s began", from, check.Lasted(time.Duration(o.b.Between(s.From, s.To))), to)
	case graph.Rw:
		did, had = "read", "overwrote"
	case graph.Ww:
		had = "overwrote"
	}
	where, version, ok := o.meeting(s)
	if !ok {
		return fmt.Sprintf("%s %s what %s %s", from, did, to, had)
	}
	return fmt.Sprintf("%s %s version %d of %s, which %s %s", from, did, version, o.b.NameInSentence(where), to, had)
}

// edgeKinds are the kinds of the graph's steps as results name them.
var edgeKinds = [...]check.EdgeKind{graph.Ww: check.WriteWrite, graph.Wr: check.WriteRead, graph.Rw: check.ReadWrite, graph.PredicateRw: check.ReadWrite, graph.Rt: check.RealTime}

// path gives an anomaly the edges of a cycle, the transactions that take part, and the
// witnesses.
func (o *order) path(a *check.Anomaly, steps []graph.Step) {
	var members []uint32
	var accounts []uint64
	for _, s := range steps[:min(len(steps), mostWitnesses)] {
		e := check.Edge{From: o.b.IDOf(s.From), To: o.b.IDOf(s.To), Kind: edgeKinds[s.Kind], Text: o.clause(s)}
		if n, version, ok := o.meeting(s); ok && s.Kind != graph.Rt {
			accounts = append(accounts, n)
			e.Object, e.FromVersion, e.ToVersion = o.b.NameInSentence(n), versionText(version), versionText(version+1)
			if s.Kind == graph.Wr {
				e.ToVersion = e.FromVersion
			}
		}
		a.Cycle = append(a.Cycle, e)
		a.Witness = append(a.Witness, e.From)
		members = append(members, s.From)
	}
	a.Spans = o.spans(members, accounts)
}

func versionText(n uint64) string { return fmt.Sprintf("version %d", n) }

// spans are the transactions of an instance that are recorded, with what they did to the
// accounts that it is about. Times of several runs are from the start of the first.
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
				s.Ops = append(s.Ops, o.did(t, op, slices.Min(accounts) != slices.Max(accounts)))
			}
		}
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b check.Span) int { return cmp.Compare(a.Begin, b.Begin) })
	return list
}

// did says what a transaction saw of an account, which is named where there are several,
// and made of it.
func (o *order) did(t uint32, op *history.Op, several bool) string {
	amount := o.b.Words.Amount
	text := ""
	if several {
		text = o.b.Input.Name(op.Object) + ": "
	}
	made := op.Version + 1
	if s := o.b.slots.find(op.Object); s != nil && op.Write {
		made = cmp.Or(uint64(o.b.versionOf(s, t)), made)
	}
	switch {
	case op.Observed && op.Write && made != op.Version+1: // it was overwritten between
		return text + fmt.Sprintf("read version %d, %s; made version %d, %s more", op.Version, amount(op.Value), made, amount(op.Amount))
	case op.Observed && op.Write:
		return text + fmt.Sprintf("read version %d, %s; made version %d, %s",
			op.Version, amount(op.Value), op.Version+1, amount(op.Value+op.Amount))
	case op.Observed:
		return text + fmt.Sprintf("read version %d, %s", op.Version, amount(op.Value))
	case op.Write:
		return text + "changed it by " + amount(op.Amount) + ", and what it saw is not known"
	}
	return text + "what it saw is not known"
}

// meeting finds the account at which two transactions depend on each other, and
// the version that the dependency is about.
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

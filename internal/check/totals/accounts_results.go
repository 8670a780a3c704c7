package totals

import (
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// few holds the number of items and the first few of them.
type few[T any] struct {
	first []T
	count int
}

func (f *few[T]) add(v T) {
	if f.count++; len(f.first) < check.Shown {
		f.first = append(f.first, v)
	}
}

// findings collects the findings of one check, one for each kind of fact.
type findings struct {
	check string
	list  []check.Finding
}

// add counts a violation and returns its finding.
func (f *findings) add(what fact.Fact, on fact.Object, by ...history.ID) *check.Finding {
	at := slices.IndexFunc(f.list, func(one check.Finding) bool { return one.Kind() == what.Fact() })
	if at < 0 {
		at = len(f.list)
		f.list = append(f.list, check.Finding{Check: f.check})
	}
	f.list[at].Add(what, on, by...)
	return &f.list[at]
}

// more counts further violations of the kind that was added last. Their times are not known, so neither are the
// first and the last.
func (f *findings) more(n int) {
	if n > 0 {
		last := &f.list[len(f.list)-1]
		last.Count += n
		last.First, last.Last = 0, 0
	}
}

// judge returns the result that follows from the findings.
func (f *findings) judge(r check.Result, undecided, holds fact.Fact) check.Result {
	return r.Judge(f.list, undecided, holds)
}

// show adds a violation of one transaction and passes it on.
func (b *balances) show(f *findings, id history.ID, what fact.Fact) {
	b.timed(f.add(what, "", id), id)
	b.Show(f.check, "", id, "", what)
}

// timed records that a transaction shows a violation, if the recording has it.
func (b *balances) timed(f *check.Finding, id history.ID) {
	if t, known := b.Txns.Find(id); known {
		b.when(f, t)
	}
}

// when records that a transaction shows a violation at its end. Times of several recordings are not compared.
func (b *balances) when(f *check.Finding, t uint32) {
	if n := &b.Txns.List[t]; n.Source != check.FromLedger && len(b.Input.History) == 1 {
		f.At(n.End)
	}
}

// objectToShow returns the name of an object for a fact if OnViolation is set, and an empty name otherwise.
func (b *balances) objectToShow(n uint64) fact.Object { return fact.Object(b.NameToReport(n)) }

// member returns a transaction of the table for use in a fact.
func (b *balances) member(t uint32) fact.Member {
	if t == check.None {
		return fact.Member{}
	}
	n := &b.Txns.List[t]
	m := fact.Member{ID: n.ID}
	if n.Source != check.FromLedger && b.Words.Kind != nil {
		m.Kind = b.Words.Kind(n.Kind)
		m.Refused = n.Outcome == history.Rejected && !n.Applied()
	}
	return m
}

// missingObjects returns a fact if the end state has the wrong set of objects, and nil otherwise.
func (b *balances) missingObjects(noun string) fact.Fact {
	var identity uint64
	for n := range b.in.Accounts {
		if b.Watch.Ended() {
			return nil
		}
		identity += check.Mix(n + 1)
	}
	if b.end.accounts != b.in.Accounts || b.end.identity != identity {
		return fact.Objects{Noun: noun, Found: b.end.accounts, Made: b.in.Accounts}
	}
	return nil
}

func (b *balances) total(r check.Result) check.Result {
	found := findings{check: r.Name}
	if missing := b.missingObjects("account"); missing != nil {
		found.add(missing, "")
	}
	difference := b.end.sum
	difference.Add(-b.in.Total)
	sum := fact.Sum{End: b.end.sum.Low(), Load: b.in.Total, Accounts: b.end.accounts, Overflow: !b.end.sum.Fits() || !difference.Fits()}
	if !b.end.sum.Equals(b.in.Total) {
		found.add(sum, "")
		last := &found.list[len(found.list)-1]
		if !sum.Overflow {
			last.Amount = sum.End - sum.Load
		}
		if b.lostUpdatesExplainBooks() {
			last.OfLostUpdate = 1
		}
	}
	return found.judge(r, nil, sum)
}

func (b *balances) nonNegative(r check.Result) check.Result {
	found := findings{check: r.Name}
	for _, a := range b.end.negative.first {
		what := fact.Negative{Object: b.Object(a.N), By: a.Writer, Balance: a.Value, Version: a.Version, Ended: true}
		b.timed(found.add(what, what.Object, a.Writer), a.Writer)
	}
	for _, p := range b.chain.overdrawn.first {
		s, version := b.slotAt(p)
		what := fact.Negative{Object: b.Object(s.n), By: b.IDOf(b.chain.writer[p]), Balance: b.chain.balance[p], Version: uint64(version)}
		b.timed(found.add(what, what.Object, what.By), what.By)
	}
	found.more(b.end.negative.count - len(b.end.negative.first) + b.chain.overdrawn.count - len(b.chain.overdrawn.first))
	return found.judge(r, nil, fact.NeverNegative{})
}

// addForeignRows adds the rows that neither the load nor a client made.
func (b *balances) addForeignRows(found *findings, end check.EndState) {
	for _, row := range end.Unexpected() {
		found.add(fact.ForeignRow{Row: row}, "")
		b.Show(check.Ledger, "", 0, "", fact.ForeignRow{Row: row})
	}
}

func (b *balances) ledger(r check.Result) check.Result {
	found := findings{check: r.Name}
	b.addForeignRows(&found, b.Input.End)
	b.showForks(check.Ledger, "")
	for _, leg := range b.end.strange.first {
		found.add(leg, leg.Object, leg.By)
	}
	found.more(b.end.strange.count - len(b.end.strange.first))
	for _, wrong := range b.end.wrong.first {
		found.add(b.wrongBooks(wrong), b.Object(wrong.account.N), wrong.account.Writer)
	}
	found.more(b.end.wrong.count - len(b.end.wrong.first))
	for i, f := range b.chain.forks {
		if i == check.Shown {
			found.more(len(b.chain.forks) - i)
			break
		}
		what := b.sameVersion(f)
		found.add(what, what.Object, what.First.ID, what.Second.ID)
	}
	b.markLostUpdates(found.list)
	b.addDoubled(&found)
	b.addOddBooks(&found)
	b.addOpened(&found)
	return found.judge(r, nil, fact.BooksClose{Accounts: b.end.accounts})
}

func (b *balances) sameVersion(f fork) fact.SameVersion {
	s, version := b.slotAt(f.pos)
	return fact.SameVersion{First: b.idMember(f.first), Second: b.idMember(f.second), Object: b.Object(s.n), Version: uint64(version)}
}

// forkedAccounts returns the number of accounts with a lost update. None of them agrees with the ledger.
func (b *balances) forkedAccounts() int {
	accounts := map[uint64]bool{}
	for _, f := range b.chain.forks {
		s, _ := b.slotAt(f.pos)
		accounts[s.n] = true
	}
	return len(accounts)
}

// lostUpdatesExplainBooks reports whether every account that disagrees with the ledger has a lost update.
func (b *balances) lostUpdatesExplainBooks() bool {
	covered := b.focus == nil || !b.focus.partial
	return covered && len(b.chain.forks) > 0 && b.forkedAccounts() == b.end.wrong.count
}

// markLostUpdates marks the findings of the ledger about accounts with a lost update.
func (b *balances) markLostUpdates(list []check.Finding) {
	for i := range list {
		switch f := &list[i]; f.Instances[0].(type) {
		case fact.Books:
			f.OfLostUpdate = min(b.forkedAccounts(), f.Count)
		case fact.SameVersion:
			f.OfLostUpdate = f.Count
		}
	}
}

// idMember returns a member that has only the ID of a transaction.
func (b *balances) idMember(t uint32) fact.Member { return fact.Member{ID: b.IDOf(t)} }

// addDoubled adds the versions that two transactions made according to the ledger, although no update was
// lost.
func (b *balances) addDoubled(found *findings) {
	for _, f := range b.chain.doubled {
		what := b.sameVersion(f)
		s, _ := b.slotAt(f.pos)
		what.Ledger, what.Closes = true, s.closes
		for _, id := range []history.ID{what.First.ID, what.Second.ID} {
			b.Show(check.Ledger, "", id, what.Object, what)
		}
		found.add(what, what.Object, what.First.ID, what.Second.ID)
	}
}

// addOddBooks adds further contradictions between accounts and ledger: an account whose last transfer is not
// the ledger's, and intermediate balances that were read.
func (b *balances) addOddBooks(found *findings) {
	for _, a := range b.end.odd {
		what := fact.NoSuchLeg{Object: b.Object(a.N), By: a.Writer, Version: a.Version}
		b.Show(check.Ledger, "", a.Writer, what.Object, what)
		found.add(what, what.Object, a.Writer)
	}
	for _, a := range b.end.beyond.first {
		what := b.laterLeg(a)
		found.add(what, what.Object, a.Writer)
	}
	found.more(b.end.beyond.count - len(b.end.beyond.first))
	for _, t := range b.chain.outside {
		b.show(found, b.IDOf(t), fact.ImpossibleVersion{By: b.IDOf(t)})
	}
	for _, o := range b.reads.balance {
		what := fact.UnexplainedBalance{By: b.IDOf(o.reader), Object: b.Object(o.account), Balance: o.balance, Version: o.version}
		b.when(found.add(what, what.Object, what.By), o.reader)
	}
}

// laterLeg returns the fact that the ledger has a later version than the account.
func (b *balances) laterLeg(a history.Object) fact.LaterLeg {
	return fact.LaterLeg{Object: b.Object(a.N), Version: a.Version}
}

func (b *balances) wrongBooks(w wrongAccount) fact.Books {
	return fact.Books{Object: b.Object(w.account.N), Balance: w.account.Value, Want: w.want, Version: w.account.Version, Legs: int(w.legs)}
}

func (b *balances) durable(r check.Result) check.Result {
	found := findings{check: r.Name}
	var unknown findings // findings of the same check with a different heading
	unknown.check = r.Name
	committed := 0
	for i := range b.Txns.List {
		t := &b.Txns.List[i]
		switch {
		case t.Outcome == history.Unknown && t.Source != check.FromLedger && t.Seen > 0:
			if t.Seen != t.Want || t.Found != t.Sent {
				b.show(&unknown, t.ID, fact.Altered{By: t.ID, Unknown: true})
			}
			continue
		case t.Outcome != history.Committed || t.Want == 0:
			continue
		case t.Seen == 0:
			b.show(&found, t.ID, fact.Lost{By: t.ID})
		case t.Seen < t.Want || t.Flags&check.Repeated == 0 && t.Found != t.Sent:
			b.show(&found, t.ID, fact.Altered{By: t.ID})
		}
		committed++
	}
	if b.proof != nil {
		committed = b.proof.Acknowledged
	}
	found.list = append(found.list, unknown.list...)
	for _, id := range b.absent.first {
		found.add(fact.NotFound{By: id}, "", id)
	}
	found.more(b.absent.count - len(b.absent.first))
	r = found.judge(r, b.noHistory(), fact.AllThere{Count: committed})
	if committed == 0 {
		r = r.Without(fact.Nothing{Noun: b.Words.One, Verb: "acknowledged"})
	}
	return r
}

func (b *balances) noGhost(r check.Result) check.Result {
	complete := b.Complete()
	found, closed, unsent := findings{check: r.Name}, findings{check: r.Name}, findings{check: r.Name}
	if complete {
		for _, id := range b.end.closed {
			b.show(&unsent, id, fact.NeverSent{By: id, Tombstone: true})
		}
	}
	for i := range b.Txns.List {
		t := &b.Txns.List[i]
		switch {
		case t.Seen == 0:
		case t.Source == check.FromLedger && !b.Txns.Covers(t.ID.Run()):
		case t.Source == check.FromLedger && complete:
			b.show(&found, t.ID, fact.NeverSent{By: t.ID})
		case t.Source == check.FromLedger: // it is not known whether it was sent
		case t.Flags&check.Tombstone != 0:
			b.show(&closed, t.ID, fact.ClosedGhost{By: t.ID})
		case t.Outcome == history.Aborted || t.Outcome == history.Rejected:
			b.show(&found, t.ID, fact.Ghost{By: t.ID, Outcome: t.Outcome})
		}
	}
	found.list = slices.Concat(found.list, closed.list, unsent.list)
	why := b.noHistory()
	if why == nil {
		why = b.OtherRuns()
	}
	if why == nil && !complete {
		why = fact.CutOff{}
	}
	return found.judge(r, why, fact.NoGhosts{})
}

// noHistory returns the fact that no history was given, or nil if there is one.
func (b *balances) noHistory() fact.Fact {
	if len(b.Input.History) > 0 {
		return nil
	}
	return fact.NoHistory{}
}

func (b *balances) exactlyOnce(r check.Result) check.Result {
	found := findings{check: r.Name}
	for _, t := range b.end.twice {
		b.show(&found, b.IDOf(t), fact.Twice{By: b.IDOf(t)})
	}
	seen := map[history.ID]bool{}
	for _, c := range b.reads.twice {
		if !seen[c.last] {
			seen[c.last] = true
			what := b.twoVersions(c)
			b.Show(check.ExactlyOnce, "", c.last, what.Object, what)
			b.timed(found.add(what, what.Object, c.last), c.last)
		}
	}
	why := b.noHistory()
	if u := b.reads.unsure; why == nil && len(u) > 0 {
		open := b.twoVersions(u[0])
		open.Open = true
		why = open
	}
	return found.judge(r, why, fact.NoneTwice{})
}

func (b *balances) twoVersions(c seenAgain) fact.TwoVersions {
	return fact.TwoVersions{By: c.last, Object: b.Object(c.account), Made: uint64(c.made), Seen: c.version}
}

func (b *balances) audits(o *order) check.Result {
	r := check.Result{Name: check.Audits, Required: len(b.in.Audited) > 0}
	a := &b.audit
	found := findings{check: r.Name}
	for _, wrong := range a.wrong {
		found.add(wrong, "", wrong.By)
	}
	for _, id := range o.torn {
		b.show(&found, id, fact.AuditTorn{By: id})
	}
	if len(o.torn) > 0 {
		found.list[len(found.list)-1].OfLost = o.tornOfLost
	}
	for _, id := range a.missing {
		b.show(&found, id, fact.NotFound{By: id})
	}
	if len(a.wrong) > 0 && b.lostUpdatesExplainBooks() {
		found.list[0].OfLostUpdate = found.list[0].Count
	}
	var why fact.Fact
	switch {
	case b.Damage != nil:
		why = check.Unreadable(b.Damage)
	case !r.Required && len(found.list) == 0:
		r.Status, r.Why = check.NotApplicable, fact.NoAudits{}
		return r
	case slices.ContainsFunc(b.in.Audited, func(run uint64) bool { return !a.runs[run] }):
		why = fact.NoAudit{Several: len(b.in.Audited) > 1}
	}
	return found.judge(r, why, fact.AuditsAgree{Whole: a.whole, Sampled: a.sampled})
}

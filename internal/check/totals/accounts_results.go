package totals

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/money"
)

// few is the first few of many.
type few[T any] struct {
	first []T
	count int
}

func (f *few[T]) add(v T) {
	if f.count++; len(f.first) < check.Shown {
		f.first = append(f.first, v)
	}
}

// list writes them in a sentence.
func (f *few[T]) list(text func(T) string) string {
	var list []string
	for _, v := range f.first {
		list = append(list, text(v))
	}
	return check.Joined(list, f.count)
}

// verdict is what is said of the violations of one check, and the transactions that show
// them.
type verdict struct {
	lines   []string
	witness []history.ID
}

func (v *verdict) add(line string, witness ...history.ID) {
	v.lines, v.witness = append(v.lines, line), append(v.witness, witness...)
}

// more says how many others there are than those that were added.
func (v *verdict) more(n int, one, many string) {
	if n > 0 {
		v.add(check.Others(n, one, many))
	}
}

// decide returns a result that the violations make invalid; without any it is not
// decided for the reason why, and without one valid with those words.
func (v *verdict) decide(r check.Result, why, valid string) check.Result {
	switch {
	case len(v.lines) > 0:
		r.Status, r.Detail, r.Witness = check.Invalid, strings.Join(v.lines, "\n"), v.witness
	case why != "":
		r.Detail = "Not decided: " + why + "."
	default:
		r.Status, r.Detail = check.Valid, valid
	}
	return r
}

// finding is the transactions that show one kind of violation of a check.
type finding struct {
	check, said string // said of them, after their number
	ids         []history.ID
}

// show notes that a transaction shows a violation, which what says of it.
func (b *balances) show(f *finding, id history.ID, what string) {
	f.ids = append(f.ids, id)
	b.Report(f.check, "", id, "", what)
}

func (b *balances) addFindings(v *verdict, findings ...*finding) {
	for _, f := range findings {
		if n := len(f.ids); n > 0 {
			v.add(fmt.Sprintf("%s %s: %s.", check.Plural(n, b.Words.One), f.said, check.Several(f.ids)), check.First(f.ids)...)
		}
	}
}

// missingObjects says what is wrong with the set of objects of the end state; empty if
// nothing.
func (b *balances) missingObjects(noun string) string {
	var identity uint64
	for n := range b.in.Accounts {
		if b.Watch.Ended() {
			return ""
		}
		identity += check.Mix(n + 1)
	}
	switch {
	case b.end.accounts != b.in.Accounts:
		return fmt.Sprintf("The load made %s, and the end state has %d.", check.Plural(b.in.Accounts, noun), b.end.accounts)
	case b.end.identity != identity:
		return fmt.Sprintf("The end state has %s, as many as the load made, but not the same ones.", check.Plural(b.end.accounts, noun))
	}
	return ""
}

func (b *balances) total(r check.Result) check.Result {
	var said []string
	if missing := b.missingObjects("account"); missing != "" {
		said = append(said, missing)
	}
	canonical, difference := money.Text(b.in.Total), b.end.sum
	difference.Add(-b.in.Total)
	switch cents := difference.Low(); {
	case b.end.sum.Equals(b.in.Total):
	case !b.end.sum.Fits() || !difference.Fits():
		said = append(said, fmt.Sprintf("The balances add up to more cents than 64 bits hold, and at the load to %s.", canonical))
	default:
		verb := "made"
		if cents < 0 {
			verb, cents = "lost", -cents
		}
		said = append(said, fmt.Sprintf("The balances add up to %s, and at the load to %s: %s was %s.",
			money.Text(b.end.sum.Low()), canonical, money.Text(cents), verb))
	}
	if len(said) > 0 {
		r.Status, r.Detail = check.Invalid, strings.Join(said, " ")
		return r
	}
	r.Status = check.Valid
	r.Detail = fmt.Sprintf("The balances of %s add up to %s, as at the load.", check.Plural(b.end.accounts, "account"), canonical)
	return r
}

func (b *balances) nonNegative(r check.Result) check.Result {
	var found verdict
	if ended := &b.end.negative; ended.count > 0 {
		found.add(fmt.Sprintf("%s below zero in the end: %s.", check.Plural(ended.count, "balance"), ended.list(func(a history.Object) string {
			found.witness = append(found.witness, a.Writer)
			return fmt.Sprintf("account %s holds %s after transfer %v", b.Input.Name(a.N), money.Text(a.Value), a.Writer)
		})))
	}
	if before := &b.chain.overdrawn; before.count > 0 {
		list := before.list(func(p uint32) string {
			s, version := b.slotAt(p)
			id := b.IDOf(b.chain.writer[p])
			found.witness = append(found.witness, id)
			return fmt.Sprintf("account %s held %s at version %d, made by transfer %v", b.Input.Name(s.n), money.Text(b.chain.balance[p]), version, id)
		})
		found.add(fmt.Sprintf("%s below zero for a time, by opening balance and ledger: %s.", check.Plural(before.count, "balance"), list))
	}
	return found.decide(r, "", "No balance is below zero, and by the ledger none ever was.")
}

// addUnexpected reports the rows that nobody made, and says which they are.
func (b *balances) addUnexpected(v *verdict, end check.EndState) {
	rows := end.Unexpected()
	for _, row := range rows {
		b.Report(check.Ledger, "", 0, "", row)
	}
	if n := len(rows); n > 0 {
		v.add(fmt.Sprintf("%s that no load and no client made: %s.", check.Plural(n, "row"), check.Joined(rows[:min(check.Shown, n)], n)))
	}
}

func (b *balances) ledger(r check.Result) check.Result {
	w := b.Words
	var found verdict
	b.addUnexpected(&found, b.Input.End)
	b.reportForks(check.Ledger, "")
	if b.end.strange > 0 {
		found.add(fmt.Sprintf("%s on accounts that no load made.", check.Plural(b.end.strange, w.Book+" "+w.Part)))
	}
	for _, wrong := range b.end.wrong.first {
		found.add(b.wrongAccount(wrong), wrong.account.Writer)
	}
	found.more(b.end.wrong.count-len(b.end.wrong.first), "account has books that do not close.", "accounts have books that do not close.")
	for _, f := range b.chain.forks[:min(len(b.chain.forks), check.Shown)] {
		s, version := b.slotAt(f.pos)
		first, second := b.IDOf(f.first), b.IDOf(f.second)
		found.add(fmt.Sprintf("Lost update: %ss %v and %v both made version %d of %s.", w.One, first, second, version, b.NameInSentence(s.n)), first, second)
	}
	found.more(len(b.chain.forks)-check.Shown, "version was made by two "+w.One+"s.", "versions were made by two "+w.One+"s.")
	b.addDoubled(&found)
	b.addOddBooks(&found)
	b.addOpened(&found)
	return found.decide(r, "", fmt.Sprintf("The books of %s were checked against the %s, and all close.", check.Plural(b.end.accounts, "account"), w.Book))
}

// addDoubled adds the versions that two transactions made by the ledger, although no update
// was lost.
func (b *balances) addDoubled(found *verdict) {
	w := b.Words
	for i, f := range b.chain.doubled {
		s, version := b.slotAt(f.pos)
		first, second := b.IDOf(f.first), b.IDOf(f.second)
		what := fmt.Sprintf("in the %s as the maker of version %d of %s", w.Book, version, b.NameInSentence(s.n))
		for _, id := range []history.ID{first, second} {
			b.Report(check.Ledger, "", id, b.NameToReport(s.n), fmt.Sprintf("is %s, and so is another %s", what, w.One))
		}
		if i == 0 {
			if s.closes {
				what += ", which holds the amounts of both"
			}
			found.add(fmt.Sprintf("%ss %v and %v are both %s%s", check.Capital(w.One), first, second, what, check.Times(len(b.chain.doubled))), first, second)
		}
	}
}

// addOddBooks adds what else does not fit between accounts and ledger: an account
// whose last transfer is not the one that the ledger has, and balances that were
// read on the way.
func (b *balances) addOddBooks(found *verdict) {
	w := b.Words
	noSuchLeg := func(version uint64) string {
		return fmt.Sprintf("as the one that made its last version, %d, and the %s has no such %s", version, w.Book, w.Part)
	}
	for i, a := range b.end.odd {
		b.Report(check.Ledger, "", a.Writer, b.NameToReport(a.N), "is named "+noSuchLeg(a.Version))
		if i == 0 {
			found.add(fmt.Sprintf("%s names %s %v %s%s", check.Capital(b.NameInSentence(a.N)), w.One, a.Writer, noSuchLeg(a.Version), check.Times(len(b.end.odd))), a.Writer)
		}
	}
	if n := b.end.beyond.count; n > 0 {
		a := b.end.beyond.first[0]
		found.add(fmt.Sprintf("%s ended at version %d, and the %s has a %s that made a later version of it%s",
			check.Capital(b.NameInSentence(a.N)), a.Version, w.Book, w.Part, check.Times(n)), a.Writer)
	}
	const outside = "with a version that its account cannot have had"
	for i, t := range b.chain.outside {
		id, has := b.IDOf(t), "has a "+w.Book+" "+w.Part+" "+outside
		b.Report(check.Ledger, "", id, "", has)
		if i == 0 {
			found.add(fmt.Sprintf("%s %v %s%s", check.Capital(w.One), id, has, check.Times(len(b.chain.outside))), id)
		}
	}
	if len(b.reads.balance) > 0 {
		o := b.reads.balance[0]
		found.add(fmt.Sprintf("It showed before the end: transaction %v read balance %s at version %d of %s, which the %s does not explain.",
			b.IDOf(o.reader), w.Amount(o.balance), o.version, b.NameInSentence(o.account), w.Book), b.IDOf(o.reader))
	}
}

func (b *balances) wrongAccount(w wrongAccount) string {
	amount, name, legs := b.Words.Amount, check.Capital(b.NameInSentence(w.account.N)), check.Plural(w.legs, b.Words.Book+" "+b.Words.Part)
	if w.account.Value == w.want {
		return fmt.Sprintf("%s has version %d but %s.", name, w.account.Version, legs)
	}
	text := fmt.Sprintf("%s holds %s, but opening balance and %s make %s (%s off)",
		name, amount(w.account.Value), b.Words.Book, amount(w.want), amount(w.account.Value-w.want))
	if w.account.Version != uint64(w.legs) {
		return fmt.Sprintf("%s; it has version %d and %s.", text, w.account.Version, legs)
	}
	return text + "."
}

func (b *balances) durable(r check.Result) check.Result {
	w := b.Words
	legs := w.Part + "s in the " + w.Book + " are not those that were "
	missing := &finding{check: check.Durable, said: "acknowledged and lost"}
	partly := &finding{check: check.Durable, said: "whose " + legs + "acknowledged"}
	other := &finding{check: check.Durable, said: "of unknown outcome whose " + legs + "sent"}
	committed := 0
	for i := range b.Txns.List {
		t := &b.Txns.List[i]
		switch {
		case t.Outcome == history.Unknown && t.Source != check.FromLedger && t.Seen > 0:
			if t.Seen != t.Want || t.Found != t.Sent {
				b.show(other, t.ID, "is of unknown outcome, and its "+legs+"sent")
			}
			continue
		case t.Outcome != history.Committed || t.Want == 0:
			continue
		case t.Seen == 0:
			b.show(missing, t.ID, "was acknowledged and is not in the "+w.Book)
		case t.Seen < t.Want || t.Flags&check.Repeated == 0 && t.Found != t.Sent:
			b.show(partly, t.ID, "was acknowledged, and its "+legs+"sent")
		}
		committed++
	}
	if b.proof != nil {
		committed = b.proof.Acknowledged
	}
	var found verdict
	b.addFindings(&found, missing, partly, other)
	if absent := &b.absent; absent.count > 0 {
		found.add(fmt.Sprintf("%s did not find an account that the load had made: %s.",
			check.Plural(absent.count, "transaction"), absent.list(history.ID.String)), absent.first...)
	}
	nothing := ""
	if committed == 0 {
		nothing = "No " + w.One + " was acknowledged."
	}
	return found.decide(r, b.noHistory("acknowledged"),
		fmt.Sprintf("%s acknowledged, all in the %s with the %ss that were sent.", check.Plural(committed, w.One), w.Book, w.Part)).Nothing(nothing)
}

func (b *balances) noGhost(r check.Result) check.Result {
	in, complete := "in the "+b.Words.Book, b.Complete()
	ghosts := &finding{check: check.NoGhost, said: "reported as not applied, yet " + in}
	closed := &finding{check: check.NoGhost, said: "closed by a look-up that found nothing, yet applied later"}
	never := &finding{check: check.NoGhost, said: in + " that no client ever sent"}
	const nobody = "a tombstone, and no client ever sent it"
	unsent := &finding{check: check.NoGhost, said: in + " with " + nobody}
	if complete {
		for _, id := range b.end.closed {
			b.show(unsent, id, "has "+in+" "+nobody)
		}
	}
	var unsure []history.ID // whether it was sent is not known
	for i := range b.Txns.List {
		t := &b.Txns.List[i]
		switch {
		case t.Seen == 0:
		case t.Source == check.FromLedger && !b.Txns.Covers(t.ID.Run()):
		case t.Source == check.FromLedger && complete:
			b.show(never, t.ID, "is "+in+", and no client ever sent it")
		case t.Source == check.FromLedger:
			unsure = append(unsure, t.ID)
		case t.Flags&check.Tombstone != 0:
			b.show(closed, t.ID, "was closed by a look-up that found nothing, and was applied later")
		case t.Outcome == history.Aborted || t.Outcome == history.Rejected:
			b.show(ghosts, t.ID, "was "+t.Outcome.String()+", and is "+in)
		}
	}
	var found verdict
	b.addFindings(&found, ghosts, closed, never, unsent)
	found.witness = append(found.witness, check.First(unsure)...)
	why := cmp.Or(b.noHistory("sent"), b.Foreign())
	if why == "" && !complete {
		why = "the recording was cut off, so what was sent last is not known"
	}
	return found.decide(r, why, "Nothing rejected or aborted is "+in+", and all that is there was sent.")
}

// noHistory says that nothing is known of what clients did; empty if there is a history.
func (b *balances) noHistory(did string) string {
	if len(b.Input.History) > 0 {
		return ""
	}
	return "there is no history of what was " + did + "; give the run directory of pay"
}

func (b *balances) exactlyOnce(r check.Result) check.Result {
	w := b.Words
	in := "a " + w.Part + " twice in the " + w.Book
	twice := &finding{check: check.ExactlyOnce, said: "with " + in}
	for _, t := range b.end.twice {
		b.show(twice, b.IDOf(t), "has "+in)
	}
	var found verdict
	b.addFindings(&found, twice)
	seen := map[history.ID]bool{}
	for _, c := range b.reads.twice {
		if seen[c.last] {
			continue
		}
		seen[c.last] = true
		b.Report(check.ExactlyOnce, "", c.last, b.NameToReport(c.account), "was applied twice")
		if len(seen) <= check.Shown {
			found.add(fmt.Sprintf("%s %v made version %d of %s, and was seen as the maker of version %d too: it was applied twice.",
				check.Capital(w.One), c.last, c.made, b.NameInSentence(c.account), c.version), c.last)
		}
	}
	found.more(len(seen)-check.Shown, w.One+" was applied twice.", w.One+"s were applied twice.")
	why := b.noHistory("sent")
	if u := b.reads.unsure; why == "" && len(u) > 0 {
		why = fmt.Sprintf("%s %v was seen as the maker of two versions of %s, whose books do not close, so that they do not say how often it was applied",
			w.One, u[0].last, b.NameInSentence(u[0].account))
	}
	return found.decide(r, why, "No "+w.One+" was applied twice.")
}

func (b *balances) audits(o *order) check.Result {
	r := check.Result{Name: check.Audits, Required: len(b.in.Audited) > 0}
	a := &b.audit
	var found verdict
	if n := len(a.wrong); n > 0 {
		found.add(fmt.Sprintf("%d of %s saw another total; the first, %v, saw %s in place of %s.",
			n, check.Plural(a.whole, "whole audit"), a.wrong[0], money.Text(a.wrongSum), money.Text(b.in.Total)), a.wrong...)
	}
	for _, audits := range []struct {
		what string
		ids  []history.ID
	}{{"saw no consistent cut", o.torn}, {"did not find an account that the load had made", a.missing}} {
		for _, id := range audits.ids {
			b.Report(check.Audits, "", id, "", audits.what)
		}
		if n := len(audits.ids); n > 0 {
			found.add(fmt.Sprintf("%s %s; the first is %v.", check.Plural(n, "audit"), audits.what, audits.ids[0]), audits.ids...)
		}
	}
	found.witness = found.witness[:min(check.Shown, len(found.witness))]
	why := ""
	switch {
	case b.Damage != nil:
		why = b.Damage.Error()
	case !r.Required && len(found.lines) == 0:
		r.Status, r.Detail = check.NotApplicable, "No audits were asked for."
		return r
	case slices.ContainsFunc(b.in.Audited, func(run uint64) bool { return !a.runs[run] }):
		why = "no audit was completed"
		if len(b.in.Audited) > 1 {
			why = "in one of the runs no audit was completed"
		}
	}
	return found.decide(r, why, a.String())
}

// String says what audits saw that all saw what they should have.
func (a *auditFacts) String() string {
	switch {
	case a.sampled == 0:
		return fmt.Sprintf("%s saw exactly the total, and a consistent cut.", check.Plural(a.whole, "whole audit"))
	case a.whole == 0:
		return fmt.Sprintf("%s saw a consistent cut.", check.Plural(a.sampled, "sampled audit"))
	}
	return fmt.Sprintf("%s saw exactly the total, and with %s a consistent cut.", check.Plural(a.whole, "whole audit"), check.Plural(a.sampled, "sampled one"))
}

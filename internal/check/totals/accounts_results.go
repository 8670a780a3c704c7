package totals

import (
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/money"
)

// finding is the transactions that show one kind of violation.
type finding struct {
	said string // of them, after their number
	ids  []history.ID
}

// find notes that a transaction shows a violation of a check.
func (b *balances) find(f *finding, check string, id history.ID, what string) {
	f.ids = append(f.ids, id)
	b.Report(check, "", id, "", what)
}

// judge makes a result invalid by findings, and by what is told besides with the
// witnesses that the result has; false if there is neither.
func (b *balances) judge(r *check.Result, told []string, findings ...*finding) bool {
	var lines []string
	var witness []history.ID
	for _, f := range findings {
		if len(f.ids) > 0 {
			lines = append(lines, fmt.Sprintf("%s %s: %s.", check.Plural(len(f.ids), b.Words.One), f.said, check.Several(f.ids)))
			witness = append(witness, check.First(f.ids)...)
		}
	}
	if len(lines)+len(told) == 0 {
		return false
	}
	r.Status, r.Detail = check.Invalid, strings.Join(append(lines, told...), "\n")
	r.Witness = append(witness, r.Witness...)
	return true
}

// wholeIdentity is the identity of all objects that the load made; false if the watch
// has ended.
func (b *balances) wholeIdentity() (identity uint64, known bool) {
	for n := range b.accounts {
		if b.Watch.Ended() {
			return 0, false
		}
		identity += check.Mix(n + 1)
	}
	return identity, true
}

// accountsMissing says what is wrong with the set of accounts; empty if nothing.
func (b *balances) accountsMissing() string {
	identity, known := b.wholeIdentity()
	if !known || b.end.accounts == b.accounts && b.end.identity == identity {
		return ""
	}
	if b.end.accounts == b.accounts {
		return fmt.Sprintf("The end state has %s, as many as the load made, but not the same ones. ", check.Plural(b.end.accounts, "account"))
	}
	return fmt.Sprintf("The load made %s, and the end state has %d. ", check.Plural(b.accounts, "account"), b.end.accounts)
}

func (b *balances) total() check.Result {
	r, stop := b.NeedEndAlone(check.Total)
	if stop {
		return r
	}
	missing := b.accountsMissing()
	if b.end.sum.Equals(b.canonical) && missing == "" {
		r.Status = check.Valid
		r.Detail = fmt.Sprintf("The balances of %s add up to %s, as at the load.", check.Plural(b.end.accounts, "account"), money.Format(b.canonical))
		return r
	}
	r.Status = check.Invalid
	r.Detail = missing
	if !b.end.sum.Equals(b.canonical) {
		difference := b.end.sum
		difference.Add(-b.canonical)
		if b.end.sum.Fits() && difference.Fits() {
			verb := "made"
			cents := difference.Low()
			if cents < 0 {
				verb, cents = "lost", -cents
			}
			r.Detail += fmt.Sprintf("The balances add up to %s, and at the load to %s: %s was %s.",
				money.Format(b.end.sum.Low()), money.Format(b.canonical), money.Format(cents), verb)
		} else {
			r.Detail += fmt.Sprintf("The balances add up to more cents than 64 bits hold, and at the load to %s.", money.Format(b.canonical))
		}
	}
	return r
}

func (b *balances) nonNegative() check.Result {
	r, stop := b.NeedEndAlone(check.NonNegative)
	if stop {
		return r
	}
	if b.end.negatives+b.chain.overdrafts == 0 {
		r.Status = check.Valid
		r.Detail = "No balance is below zero, and by the ledger none ever was."
		return r
	}
	r.Status = check.Invalid
	var told, list []string
	for _, a := range b.end.negative {
		list = append(list, fmt.Sprintf("account %s holds %s after transfer %v", b.Input.Name(a.N), money.Format(a.Value), a.Writer))
		r.Witness = append(r.Witness, a.Writer)
	}
	if len(list) > 0 {
		told = append(told, fmt.Sprintf("%s below zero in the end: %s.", check.Plural(b.end.negatives, "balance"), check.Joined(list, b.end.negatives)))
	}
	list = nil
	for _, p := range b.chain.overdrawn {
		s, version := b.slotAt(p)
		id := b.IDOf(b.chain.writer[p])
		list = append(list, fmt.Sprintf("account %s held %s at version %d, made by transfer %v", b.Input.Name(s.n), money.Format(b.chain.balance[p]), version, id))
		r.Witness = append(r.Witness, id)
	}
	if len(list) > 0 {
		told = append(told, fmt.Sprintf("%s below zero for a time, as opening balance and ledger tell: %s.",
			check.Plural(b.chain.overdrafts, "balance"), check.Joined(list, b.chain.overdrafts)))
	}
	r.Detail = strings.Join(told, "\n")
	return r
}

// unexpected reports the rows that nobody made, and says which they are.
func (b *balances) unexpected(end check.EndState) (told []string) {
	rows := end.Unexpected()
	for _, row := range rows {
		b.Report(check.Ledger, "", 0, "", row)
	}
	if n := len(rows); n > 0 {
		told = append(told, fmt.Sprintf("%s that no load and no client made: %s.", check.Plural(n, "row"), check.Joined(rows[:min(check.Shown, n)], n)))
	}
	return told
}

func (b *balances) ledger() check.Result {
	w := b.Words
	r, stop := b.NeedEndAlone(check.Ledger)
	if stop {
		return r
	}
	told := b.unexpected(b.Input.End)
	b.reportForks(check.Ledger, "")
	if b.end.strange > 0 {
		told = append(told, fmt.Sprintf("%s on accounts that no load made.", check.Plural(b.end.strange, w.Book+" "+w.Part)))
	}
	for _, wrong := range b.end.wrong {
		told = append(told, b.wrongAccount(wrong))
		if wrong.account.Writer != 0 {
			r.Witness = append(r.Witness, wrong.account.Writer)
		}
	}
	if more := b.end.wrongs - len(b.end.wrong); more > 0 {
		told = append(told, check.Others(more, "account has books that do not close.", "accounts have books that do not close."))
	}
	for _, f := range b.chain.forks[:min(len(b.chain.forks), check.Shown)] {
		s, version := b.slotAt(f.pos)
		told = append(told, fmt.Sprintf("Lost update: %ss %v and %v both made version %d of %s.",
			w.One, b.IDOf(f.first), b.IDOf(f.second), version, b.NameInSentence(s.n)))
		r.Witness = append(r.Witness, b.IDOf(f.first), b.IDOf(f.second))
	}
	if more := len(b.chain.forks) - check.Shown; more > 0 {
		told = append(told, check.Others(more, "version was made by two "+w.One+"s.", "versions were made by two "+w.One+"s."))
	}
	if b.judge(&r, append(told, b.oddBooks(&r)...)) {
		return r
	}
	r.Status = check.Valid
	r.Detail = fmt.Sprintf("The books of %s were held against the %s, and all close.", check.Plural(b.end.accounts, "account"), w.Book)
	return r
}

// oddBooks tells what else does not fit between accounts and ledger: an account
// whose last transfer is not the one that the ledger has, and balances that were
// read on the way.
func (b *balances) oddBooks(r *check.Result) (told []string) {
	w := b.Words
	for _, a := range b.end.odd {
		b.Report(check.Ledger, "", a.Writer, b.NameToReport(a.N), fmt.Sprintf("is named as the one that made its last version, %d, and the %s has no such %s", a.Version, w.Book, w.Part))
	}
	if n := len(b.end.odd); n > 0 {
		a := b.end.odd[0]
		told = append(told, fmt.Sprintf("%s names %s %v as the one that made its last version, %d, and the %s has no such %s%s",
			check.Capital(b.NameInSentence(a.N)), w.One, a.Writer, a.Version, w.Book, w.Part, check.Times(n)))
		r.Witness = append(r.Witness, a.Writer)
	}
	if n := b.end.beyonds; n > 0 {
		a := b.end.beyond
		told = append(told, fmt.Sprintf("%s ended at version %d, and the %s has a %s that made a later version of it%s",
			check.Capital(b.NameInSentence(a.N)), a.Version, w.Book, w.Part, check.Times(n)))
		r.Witness = append(r.Witness, a.Writer)
	}
	for _, t := range b.chain.outside {
		b.Report(check.Ledger, "", b.IDOf(t), "", "has a "+w.Book+" "+w.Part+" with a version that its account cannot have had")
	}
	if n := len(b.chain.outside); n > 0 {
		told = append(told, fmt.Sprintf("%s %v has a %s %s with a version that its account cannot have had%s",
			check.Capital(w.One), b.IDOf(b.chain.outside[0]), w.Book, w.Part, check.Times(n)))
		r.Witness = append(r.Witness, b.IDOf(b.chain.outside[0]))
	}
	if n := len(b.reads.balance); n > 0 {
		o := b.reads.balance[0]
		told = append(told, fmt.Sprintf("It showed before the end: transaction %v read balance %s at version %d of %s, which the %s does not explain.",
			b.IDOf(o.reader), w.Amount(o.balance), o.version, b.NameInSentence(o.account), w.Book))
		r.Witness = append(r.Witness, b.IDOf(o.reader))
	}
	return told
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

func (b *balances) durable() check.Result {
	w := b.Words
	r, stop := b.NeedEnd(check.Durable)
	if stop {
		return r
	}
	if len(b.Input.History) == 0 {
		r.Detail = "Not decided: there is no history of what was acknowledged; give the run directory of pay."
		return r
	}
	committed := 0
	missing := &finding{said: "acknowledged and lost"}
	partly := &finding{said: "whose " + w.Part + "s in the " + w.Book + " are not those that were acknowledged"}
	other := &finding{said: "of unknown outcome whose " + w.Part + "s in the " + w.Book + " are not those that were sent"}
	for i := range b.Txns.List {
		t := &b.Txns.List[i]
		if t.Outcome == history.Unknown && t.Source != check.FromLedger && t.Seen > 0 {
			if t.Seen != t.Want || t.Found != t.Sent {
				b.find(other, check.Durable, t.ID, "is of unknown outcome, and its "+w.Part+"s in the "+w.Book+" are not those that were sent")
			}
			continue
		}
		if t.Outcome != history.Committed || t.Want == 0 {
			continue
		}
		committed++
		switch {
		case t.Seen == 0:
			b.find(missing, check.Durable, t.ID, "was acknowledged and is not in the "+w.Book)
		case t.Seen < t.Want || t.Flags&check.Repeated == 0 && t.Found != t.Sent:
			b.find(partly, check.Durable, t.ID, "was acknowledged, and its "+w.Part+"s in the "+w.Book+" are not those that were sent")
		}
	}
	var told []string
	if b.absents > 0 {
		told = append(told, fmt.Sprintf("%s did not find an account that the load had made: %s.", check.Plural(b.absents, "transaction"), check.Joined(check.Texts(b.absent), b.absents)))
		r.Witness = b.absent
	}
	if b.judge(&r, told, missing, partly, other) {
		return r
	}
	r.Status = check.Valid
	r.Detail = fmt.Sprintf("%s acknowledged, all in the %s with the %ss that were sent.", check.Plural(committed, w.One), w.Book, w.Part)
	if committed == 0 {
		r.Detail = "No " + w.One + " was acknowledged, so that none can be missing."
	}
	return r
}

func (b *balances) noGhost() check.Result {
	w := b.Words
	r, stop := b.NeedEnd(check.NoGhost)
	if stop {
		return r
	}
	ghosts := &finding{said: "reported as not applied, yet in the " + w.Book}
	voids := &finding{said: "closed by a look-up that found nothing, yet applied later"}
	never := &finding{said: "in the " + w.Book + " that no client ever sent"}
	foreign, complete := b.Foreign(), b.Complete()
	for i := range b.Txns.List {
		t := &b.Txns.List[i]
		switch {
		case t.Seen == 0:
		case t.Source == check.FromLedger && !b.Txns.Covers(t.ID.Run()):
		case t.Source == check.FromLedger:
			if complete {
				b.find(never, check.NoGhost, t.ID, "is in the "+w.Book+", and no client ever sent it")
			} else { // whether it was sent is not known
				r.Witness = append(r.Witness, t.ID)
			}
		case t.Flags&check.Tombstone != 0:
			b.find(voids, check.NoGhost, t.ID, "was closed by a look-up that found nothing, and was applied later")
		case t.Outcome == history.Aborted || t.Outcome == history.Rejected:
			b.find(ghosts, check.NoGhost, t.ID, "was "+t.Outcome.String()+", and is in the "+w.Book)
		}
	}
	r.Witness = check.First(r.Witness)
	if b.judge(&r, nil, ghosts, voids, never) {
		return r
	}
	r.Witness = nil
	switch {
	case len(b.Input.History) == 0:
		r.Detail = nothingSent
	case foreign != "":
		r.Detail = "Not decided: " + foreign + "."
	case !complete:
		r.Detail = "Not decided: the recording was cut off, so what was sent last is not known."
	default:
		r.Status = check.Valid
		r.Detail = "Nothing rejected or aborted is in the " + w.Book + ", and all that is there was sent."
	}
	return r
}

const nothingSent = "Not decided: there is no history of what was sent; give the run directory of pay."

func (b *balances) exactlyOnce() check.Result {
	w := b.Words
	r, stop := b.NeedEnd(check.ExactlyOnce)
	if stop {
		return r
	}
	twice := &finding{said: "with a " + w.Part + " twice in the " + w.Book}
	for _, t := range b.end.twice {
		b.find(twice, check.ExactlyOnce, b.IDOf(t), "has a "+w.Part+" twice in the "+w.Book)
	}
	var told []string
	seen := map[history.ID]uint64{} // on which account
	tell := func(account, version uint64, last history.ID) {
		t, ok := b.Txns.Find(last)
		s := b.slots.find(account)
		if _, told := seen[last]; !ok || s == nil || told {
			return
		}
		if made := b.versionOf(s, t); made != 0 && uint64(made) < version {
			seen[last] = account
			if len(seen) <= check.Shown {
				told = append(told, fmt.Sprintf("%s %v made version %d of %s, and was seen as the maker of version %d too: it was applied twice.",
					check.Capital(w.One), last, made, b.NameInSentence(account), version))
				r.Witness = append(r.Witness, last)
			}
		}
	}
	for _, o := range b.reads.twice {
		tell(o.account, o.version, o.last)
	}
	for _, a := range b.end.odd {
		tell(a.N, a.Version, a.Writer)
	}
	for last, at := range seen {
		b.Report(check.ExactlyOnce, "", last, b.NameToReport(at), "was applied twice")
	}
	if more := len(seen) - check.Shown; more > 0 {
		told = append(told, check.Others(more, w.One+" was applied twice.", w.One+"s were applied twice."))
	}
	switch {
	case b.judge(&r, told, twice):
	case len(b.Input.History) == 0:
		r.Detail = nothingSent
	default:
		r.Status = check.Valid
		r.Detail = "No " + w.One + " was applied twice."
	}
	return r
}

func (b *balances) audits(o *order) check.Result {
	r := check.Result{Name: check.Audits, Required: len(b.audited) > 0}
	a, torn := &b.audit, o.torn
	var told []string
	if len(a.wrong) > 0 {
		told = append(told, fmt.Sprintf("%d of %s saw another total; the first, %v, saw %s in place of %s.",
			len(a.wrong), check.Plural(a.whole, "whole audit"), b.IDOf(a.wrong[0]), money.Format(a.wrongSum), money.Format(b.canonical)))
	}
	if len(torn) > 0 {
		told = append(told, fmt.Sprintf("%s saw no consistent cut; the first is %v.", check.Plural(len(torn), "audit"), b.IDOf(torn[0])))
	}
	if len(a.missing) > 0 {
		told = append(told, fmt.Sprintf("%s did not find an account that the load had made; the first is %v.", check.Plural(len(a.missing), "audit"), b.IDOf(a.missing[0])))
	}
	for _, t := range torn {
		b.Report(check.Audits, "", b.IDOf(t), "", "saw no consistent cut")
	}
	for _, t := range a.missing {
		b.Report(check.Audits, "", b.IDOf(t), "", "did not find an account that the load had made")
	}
	for _, t := range slices.Concat(a.wrong, torn, a.missing) {
		if len(r.Witness) < check.Shown {
			r.Witness = append(r.Witness, b.IDOf(t))
		}
	}
	switch {
	case b.judge(&r, told):
	case b.Damage != nil:
		r.Detail = fmt.Sprintf("Not decided: %v.", b.Damage)
	case !r.Required:
		r.Detail = "No audits were asked for."
	case slices.ContainsFunc(b.audited, func(run uint64) bool { return !a.runs[run] }):
		r.Detail = "Not decided: no audit was completed."
		if len(b.audited) > 1 {
			r.Detail = "Not decided: in one of the runs no audit was completed."
		}
	default:
		r.Status = check.Valid
		r.Detail = a.told()
	}
	return r
}

// told says what audits saw that all saw what they should have.
func (a *auditFacts) told() string {
	switch {
	case a.sampled == 0:
		return fmt.Sprintf("%s saw exactly the total, and a consistent cut.", check.Plural(a.whole, "whole audit"))
	case a.whole == 0:
		return fmt.Sprintf("%s saw a consistent cut.", check.Plural(a.sampled, "sampled audit"))
	}
	return fmt.Sprintf("%s saw exactly the total, and with %s a consistent cut.", check.Plural(a.whole, "whole audit"), check.Plural(a.sampled, "sampled one"))
}

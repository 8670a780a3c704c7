package check

import (
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/history"
	"stroppy/internal/money"
)

// endless is the result of a check that needs the end state where there is none.
func (b *bank) endless(name string) (Result, bool) {
	r := Result{Name: name, Required: true}
	switch {
	case b.in.End == nil:
		r.Detail = "Not decided: " + b.whyEndless() + "."
		return r, true
	case b.damage != nil:
		r.Detail = fmt.Sprintf("Not decided: %v.", b.damage)
		return r, true
	}
	return r, false
}

// accountsMissing says what is wrong with the set of accounts; empty if nothing.
func (b *bank) accountsMissing() string {
	var identity uint64
	for n := range b.in.Accounts {
		if b.watch.ended() {
			return ""
		}
		identity += mix(n + 1)
	}
	if b.end.accounts == b.in.Accounts && b.end.identity == identity {
		return ""
	}
	if b.end.accounts == b.in.Accounts {
		return fmt.Sprintf("The end state has %s, as many as the load made, but not the same ones. ", plural(b.end.accounts, "account"))
	}
	return fmt.Sprintf("The load made %s, and the end state has %d. ", plural(b.in.Accounts, "account"), b.end.accounts)
}

func (b *bank) total() Result {
	r, stop := b.endless(Total)
	if stop {
		return r
	}
	missing := b.accountsMissing()
	if b.end.sum.equals(b.in.Total) && missing == "" {
		r.Status = Valid
		r.Detail = fmt.Sprintf("The balances of %s add up to %s, as at the load.", plural(b.end.accounts, "account"), money.Format(b.in.Total))
		return r
	}
	r.Status = Invalid
	r.Detail = missing
	if !b.end.sum.equals(b.in.Total) {
		difference := b.end.sum
		difference.add(-b.in.Total)
		if b.end.sum.fits() && difference.fits() {
			verb := "made"
			cents := difference.low()
			if cents < 0 {
				verb, cents = "lost", -cents
			}
			r.Detail += fmt.Sprintf("The balances add up to %s, and at the load to %s: %s was %s.",
				money.Format(b.end.sum.low()), money.Format(b.in.Total), money.Format(cents), verb)
		} else {
			r.Detail += fmt.Sprintf("The balances add up to more cents than 64 bits hold, and at the load to %s.", money.Format(b.in.Total))
		}
	}
	return r
}

func (b *bank) nonNegative() Result {
	r, stop := b.endless(NonNegative)
	if stop {
		return r
	}
	if b.end.negatives+b.chain.overdrafts == 0 {
		r.Status = Valid
		r.Detail = "No balance is below zero, and by the ledger none ever was."
		return r
	}
	r.Status = Invalid
	var told, list []string
	for _, a := range b.end.negative {
		list = append(list, fmt.Sprintf("account %s holds %s after transfer %v", b.in.Name(a.N), money.Format(a.Balance), a.Last))
		r.Witness = append(r.Witness, a.Last)
	}
	if len(list) > 0 {
		told = append(told, fmt.Sprintf("%s below zero in the end: %s.", plural(b.end.negatives, "balance"), joined(list, b.end.negatives)))
	}
	list = nil
	for _, p := range b.chain.overdrawn {
		s, version := b.slotAt(p)
		id := b.idOf(b.chain.writer[p])
		list = append(list, fmt.Sprintf("account %s held %s at version %d, made by transfer %v", b.in.Name(s.n), money.Format(b.chain.balance[p]), version, id))
		r.Witness = append(r.Witness, id)
	}
	if len(list) > 0 {
		told = append(told, fmt.Sprintf("%s below zero for a time, as opening balance and ledger tell: %s.",
			plural(b.chain.overdrafts, "balance"), joined(list, b.chain.overdrafts)))
	}
	r.Detail = strings.Join(told, "\n")
	return r
}

func (b *bank) ledger() Result {
	w := b.words
	r, stop := b.endless(Ledger)
	if stop {
		return r
	}
	var told []string
	if strangers := b.in.End.Strangers(); len(strangers) > 0 {
		told = append(told, fmt.Sprintf("%s that no load and no client made: %s.", plural(len(strangers), "row"),
			joined(strangers[:min(some, len(strangers))], len(strangers))))
	}
	for _, row := range b.in.End.Strangers() {
		b.witness(Ledger, "", 0, "", row)
	}
	b.tellForks(Ledger, "")
	if b.end.strange > 0 {
		told = append(told, fmt.Sprintf("%s on accounts that no load made.", plural(b.end.strange, w.book+" "+w.part)))
	}
	for _, wrong := range b.end.wrong {
		told = append(told, b.wrongAccount(wrong))
		if wrong.account.Last != 0 {
			r.Witness = append(r.Witness, wrong.account.Last)
		}
	}
	if more := b.end.wrongs - len(b.end.wrong); more > 0 {
		told = append(told, others(more, "account has books that do not close.", "accounts have books that do not close."))
	}
	for _, f := range b.chain.forks[:min(len(b.chain.forks), some)] {
		s, version := b.slotAt(f.pos)
		told = append(told, fmt.Sprintf("Lost update: %ss %v and %v both made version %d of %s.",
			w.one, b.idOf(f.first), b.idOf(f.second), version, b.rowName(s.n)))
		r.Witness = append(r.Witness, b.idOf(f.first), b.idOf(f.second))
	}
	if more := len(b.chain.forks) - some; more > 0 {
		told = append(told, others(more, "version was made by two "+w.one+"s.", "versions were made by two "+w.one+"s."))
	}
	if odd := b.oddBooks(&r); odd != "" {
		told = append(told, odd)
	}
	if len(told) > 0 {
		r.Status = Invalid
		r.Detail = strings.Join(told, "\n")
		return r
	}
	r.Status = Valid
	r.Detail = fmt.Sprintf("The books of %s were held against the %s, and all close.", plural(b.end.accounts, "account"), w.book)
	return r
}

// oddBooks tells what else does not fit between accounts and ledger: an account
// whose last transfer is not the one that the ledger has, and balances that were
// read on the way.
func (b *bank) oddBooks(r *Result) string {
	w := b.words
	var told []string
	for _, a := range b.end.odd {
		b.witness(Ledger, "", a.Last, b.named(a.N), fmt.Sprintf("is named as the one that made its last version, %d, and the %s has no such %s", a.Version, w.book, w.part))
	}
	if n := len(b.end.odd); n > 0 {
		a := b.end.odd[0]
		told = append(told, fmt.Sprintf("%s names %s %v as the one that made its last version, %d, and the %s has no such %s%s",
			capital(b.rowName(a.N)), w.one, a.Last, a.Version, w.book, w.part, times(n)))
		r.Witness = append(r.Witness, a.Last)
	}
	if n := b.end.beyonds; n > 0 {
		a := b.end.beyond
		told = append(told, fmt.Sprintf("%s ended at version %d, and the %s has a %s that made a later version of it%s",
			capital(b.rowName(a.N)), a.Version, w.book, w.part, times(n)))
		r.Witness = append(r.Witness, a.Last)
	}
	for _, t := range b.chain.outside {
		b.witness(Ledger, "", b.idOf(t), "", "has a "+w.book+" "+w.part+" with a version that its account cannot have had")
	}
	if n := len(b.chain.outside); n > 0 {
		told = append(told, fmt.Sprintf("%s %v has a %s %s with a version that its account cannot have had%s",
			capital(w.one), b.idOf(b.chain.outside[0]), w.book, w.part, times(n)))
		r.Witness = append(r.Witness, b.idOf(b.chain.outside[0]))
	}
	if n := len(b.reads.balance); n > 0 {
		o := b.reads.balance[0]
		told = append(told, fmt.Sprintf("It showed before the end: transaction %v read balance %s at version %d of %s, which the %s does not explain.",
			b.idOf(o.reader), w.amount(o.balance), o.version, b.rowName(o.account), w.book))
		r.Witness = append(r.Witness, b.idOf(o.reader))
	}
	return strings.Join(told, "\n")
}

func (b *bank) wrongAccount(w wrongAccount) string {
	amount, name, legs := b.words.amount, capital(b.rowName(w.account.N)), plural(w.legs, b.words.book+" "+b.words.part)
	if w.account.Balance == w.want {
		return fmt.Sprintf("%s has version %d but %s.", name, w.account.Version, legs)
	}
	text := fmt.Sprintf("%s holds %s, but opening balance and %s make %s (%s off)",
		name, amount(w.account.Balance), b.words.book, amount(w.want), amount(w.account.Balance-w.want))
	if w.account.Version != uint64(w.legs) {
		return fmt.Sprintf("%s; it has version %d and %s.", text, w.account.Version, legs)
	}
	return text + "."
}

func (b *bank) durable() Result {
	w := b.words
	r, stop := b.endless(Durable)
	if stop {
		return r
	}
	if len(b.in.History) == 0 {
		r.Detail = "Not decided: there is no history of what was acknowledged; give the run directory of pay."
		return r
	}
	committed := 0
	var missing, partly, other []history.ID
	for i := range b.txns.list {
		t := &b.txns.list[i]
		if t.outcome == history.Unknown && t.source != fromLedger && t.seen > 0 {
			if t.seen != t.want || t.ledger != t.legs {
				other = append(other, t.id)
				b.witness(Durable, "", t.id, "", "is of unknown outcome, and its "+w.part+"s in the "+w.book+" are not those that were sent")
			}
			continue
		}
		if t.outcome != history.Committed || t.want == 0 {
			continue
		}
		committed++
		switch {
		case t.seen == 0:
			missing = append(missing, t.id)
			b.witness(Durable, "", t.id, "", "was acknowledged and is not in the "+w.book)
		case t.seen < t.want || t.flags&repeated == 0 && t.ledger != t.legs:
			partly = append(partly, t.id)
			b.witness(Durable, "", t.id, "", "was acknowledged, and its "+w.part+"s in the "+w.book+" are not those that were sent")
		}
	}
	if len(missing)+len(partly)+len(other)+b.absents == 0 {
		r.Status = Valid
		r.Detail = fmt.Sprintf("%s acknowledged, all in the %s with the %ss that were sent.", plural(committed, w.one), w.book, w.part)
		if committed == 0 {
			r.Detail = "No " + w.one + " was acknowledged, so that none can be missing."
		}
		return r
	}
	r.Status = Invalid
	var told []string
	if len(missing) > 0 {
		told = append(told, fmt.Sprintf("%s acknowledged and lost: %s.", plural(len(missing), w.one), ids(missing)))
	}
	if len(partly) > 0 {
		told = append(told, fmt.Sprintf("%s whose %ss in the %s are not those that were acknowledged: %s.", plural(len(partly), w.one), w.part, w.book, ids(partly)))
	}
	if len(other) > 0 {
		told = append(told, fmt.Sprintf("%s of unknown outcome whose %ss in the %s are not those that were sent: %s.", plural(len(other), w.one), w.part, w.book, ids(other)))
	}
	if b.absents > 0 {
		told = append(told, fmt.Sprintf("%s did not find an account that the load had made: %s.", plural(b.absents, "transaction"), joined(text(b.absent), b.absents)))
	}
	r.Detail = strings.Join(told, "\n")
	r.Witness = slices.Concat(first(missing), first(partly), first(other), b.absent)
	return r
}

func (b *bank) noGhost() Result {
	w := b.words
	r, stop := b.endless(NoGhost)
	if stop {
		return r
	}
	var ghosts, never, voids []history.ID
	foreign := b.foreign()
	for i := range b.txns.list {
		t := &b.txns.list[i]
		switch {
		case t.seen == 0:
		case t.source == fromLedger && !b.txns.covers(t.id.Run()):
		case t.source == fromLedger:
			never = append(never, t.id)
			if b.complete() {
				b.witness(NoGhost, "", t.id, "", "is in the "+w.book+", and no client ever sent it")
			}
		case t.flags&voided != 0:
			voids = append(voids, t.id)
			b.witness(NoGhost, "", t.id, "", "was closed by a look-up that found nothing, and was applied later")
		case t.outcome == history.Aborted || t.outcome == history.Rejected:
			ghosts = append(ghosts, t.id)
			b.witness(NoGhost, "", t.id, "", "was "+t.outcome.String()+", and is in the "+w.book)
		}
	}
	var told []string
	if len(ghosts) > 0 {
		told = append(told, fmt.Sprintf("%s reported as not applied, yet in the %s: %s.", plural(len(ghosts), w.one), w.book, ids(ghosts)))
	}
	if len(voids) > 0 {
		told = append(told, fmt.Sprintf("%s closed by a look-up that found nothing, yet applied later: %s.", plural(len(voids), w.one), ids(voids)))
	}
	if len(never) > 0 && b.complete() {
		told = append(told, fmt.Sprintf("%s in the %s that no client ever sent: %s.", plural(len(never), w.one), w.book, ids(never)))
	}
	r.Witness = append(append(first(ghosts), first(voids)...), first(never)...)
	switch {
	case len(told) > 0:
		r.Status = Invalid
		r.Detail = strings.Join(told, "\n")
	case len(b.in.History) == 0:
		r.Detail = "Not decided: there is no history of what was sent; give the run directory of pay."
	case foreign != "":
		r.Detail = "Not decided: " + foreign + "."
	case !b.complete():
		r.Detail = "Not decided: the recording was cut off, so what was sent last is not known."
	default:
		r.Status = Valid
		r.Detail = "Nothing rejected or aborted is in the " + w.book + ", and all that is there was sent."
	}
	if r.Status != Invalid {
		r.Witness = nil
	}
	return r
}

func (b *bank) exactlyOnce() Result {
	w := b.words
	r, stop := b.endless(ExactlyOnce)
	if stop {
		return r
	}
	var told []string
	if len(b.end.twice) > 0 {
		var twice []history.ID
		for _, t := range b.end.twice {
			twice = append(twice, b.idOf(t))
			b.witness(ExactlyOnce, "", b.idOf(t), "", "has a "+w.part+" twice in the "+w.book)
		}
		told = append(told, fmt.Sprintf("%s with a %s twice in the %s: %s.", plural(len(twice), w.one), w.part, w.book, ids(twice)))
		r.Witness = append(r.Witness, first(twice)...)
	}
	seen := map[history.ID]uint64{} // on which account
	tell := func(account, version uint64, last history.ID) {
		t, ok := b.txns.find(last)
		s := b.slots.find(account)
		if _, told := seen[last]; !ok || s == nil || told {
			return
		}
		if made := b.versionOf(s, t); made != 0 && uint64(made) < version {
			seen[last] = account
			if len(seen) <= some {
				told = append(told, fmt.Sprintf("%s %v made version %d of %s, and was seen as the maker of version %d too: it was applied twice.",
					capital(w.one), last, made, b.rowName(account), version))
				r.Witness = append(r.Witness, last)
			}
		}
	}
	for _, o := range b.reads.twice {
		tell(o.account, o.version, o.last)
	}
	for _, a := range b.end.odd {
		tell(a.N, a.Version, a.Last)
	}
	for last, at := range seen {
		b.witness(ExactlyOnce, "", last, b.named(at), "was applied twice")
	}
	if more := len(seen) - some; more > 0 {
		told = append(told, others(more, w.one+" was applied twice.", w.one+"s were applied twice."))
	}
	switch {
	case len(told) > 0:
		r.Status = Invalid
		r.Detail = strings.Join(told, "\n")
	case len(b.in.History) == 0:
		r.Detail = "Not decided: there is no history of what was sent; give the run directory of pay."
	default:
		r.Status = Valid
		r.Detail = "No " + w.one + " was applied twice."
	}
	return r
}

func (b *bank) audits(o *order) Result {
	r := Result{Name: Audits, Required: len(b.in.Audited) > 0}
	a, torn := &b.audit, o.torn
	var told []string
	if len(a.wrong) > 0 {
		told = append(told, fmt.Sprintf("%d of %s saw another total; the first, %v, saw %s in place of %s.",
			len(a.wrong), plural(a.whole, "whole audit"), b.idOf(a.wrong[0]), money.Format(a.wrongSum), money.Format(b.in.Total)))
	}
	if len(torn) > 0 {
		told = append(told, fmt.Sprintf("%s saw no consistent cut; the first is %v.", plural(len(torn), "audit"), b.idOf(torn[0])))
	}
	if len(a.missing) > 0 {
		told = append(told, fmt.Sprintf("%s did not find an account that the load had made; the first is %v.", plural(len(a.missing), "audit"), b.idOf(a.missing[0])))
	}
	for _, t := range torn {
		b.witness(Audits, "", b.idOf(t), "", "saw no consistent cut")
	}
	for _, t := range a.missing {
		b.witness(Audits, "", b.idOf(t), "", "did not find an account that the load had made")
	}
	for _, t := range slices.Concat(a.wrong, torn, a.missing) {
		if len(r.Witness) < some {
			r.Witness = append(r.Witness, b.idOf(t))
		}
	}
	switch {
	case len(told) > 0:
		r.Status = Invalid
		r.Detail = strings.Join(told, "\n")
	case b.damage != nil:
		r.Detail = fmt.Sprintf("Not decided: %v.", b.damage)
	case !r.Required:
		r.Detail = "No audits were asked for."
	case slices.ContainsFunc(b.in.Audited, func(run uint64) bool { return !a.runs[run] }):
		r.Detail = "Not decided: no audit was completed."
		if len(b.in.Audited) > 1 {
			r.Detail = "Not decided: in one of the runs no audit was completed."
		}
	default:
		r.Status = Valid
		r.Detail = a.told()
	}
	return r
}

// told says what audits saw that all saw what they should have.
func (a *auditFacts) told() string {
	switch {
	case a.sampled == 0:
		return fmt.Sprintf("%s saw exactly the total, and a consistent cut.", plural(a.whole, "whole audit"))
	case a.whole == 0:
		return fmt.Sprintf("%s saw a consistent cut.", plural(a.sampled, "sampled audit"))
	}
	return fmt.Sprintf("%s saw exactly the total, and with %s a consistent cut.", plural(a.whole, "whole audit"), plural(a.sampled, "sampled one"))
}

// others tells of what else there is of a kind that was told before.
func others(n int, one, many string) string {
	if n == 1 {
		return "1 more " + one
	}
	return fmt.Sprintf("%d more %s", n, many)
}

// ids lists the first few of many transactions.
func ids(all []history.ID) string { return joined(text(first(all)), len(all)) }

func text(ids []history.ID) []string {
	var list []string
	for _, id := range ids {
		list = append(list, id.String())
	}
	return list
}

func first(all []history.ID) []history.ID {
	return append([]history.ID(nil), all[:min(some, len(all))]...)
}

// joined lists some of all.
func joined(list []string, all int) string {
	text := strings.Join(list, ", ")
	if more := all - len(list); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

package text

import (
	"fmt"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// books returns the clause of a fact about balances and ledgers; empty for others.
func (s Speaker) books(f fact.Fact) string {
	switch f := f.(type) {
	case fact.Objects:
		if f.Found != f.Made {
			return fmt.Sprintf("the load made %s, and the end state has %s", check.Plural(f.Made, f.Noun), check.Group(f.Found))
		}
		same := "the same ones"
		if f.Found == 1 {
			same = "the same one"
		}
		return fmt.Sprintf("the end state has %s, as many as the load made, but not %s", check.Plural(f.Found, f.Noun), same)
	case fact.Sum:
		return s.sum(f)
	case fact.Negative:
		return s.negative(f)
	case fact.NeverNegative:
		return "no balance is below zero, and by the " + s.book() + " none ever was"
	case fact.ForeignRow:
		return "the end state has a row that neither the load nor a client made: " + f.Row
	case fact.ForeignLeg:
		on := "an object that no load made"
		if f.Object != "" {
			on = s.On(f.Object) + ", which no load made"
		}
		if f.By == 0 {
			return fmt.Sprintf("the %s has a %s on %s", s.book(), s.part(), on)
		}
		return fmt.Sprintf("%s has a %s in the %s on %s", s.id(f.By), s.part(), s.book(), on)
	case fact.Books:
		return s.wrongBooks(f)
	case fact.BooksClose:
		return fmt.Sprintf("the books of %s were compared with the %s, and all close", check.Plural(f.Accounts, "account"), s.book())
	case fact.SameVersion:
		return s.sameVersion(f)
	case fact.NoSuchLeg:
		if f.By == 0 {
			return fmt.Sprintf("%s has version %d and names no %s as its maker", s.On(f.Object), f.Version, s.one())
		}
		return fmt.Sprintf("%s names %s as the maker of its last version, %d, and the %s has no such %s", s.On(f.Object), s.id(f.By), f.Version, s.book(), s.part())
	case fact.LaterLeg:
		return fmt.Sprintf("%s ends at version %d, and the %s has a %s of a later version", s.On(f.Object), f.Version, s.book(), s.part())
	case fact.ImpossibleVersion:
		return fmt.Sprintf("%s has a %s in the %s with a version that its account cannot have had", s.id(f.By), s.part(), s.book())
	case fact.UnexplainedBalance:
		return fmt.Sprintf("before the end, transaction %v read %s at version %d of %s, which the %s does not explain", f.By, s.Amount(f.Balance), f.Version, s.On(f.Object), s.book())
	case fact.Presence:
		if f.There {
			return fmt.Sprintf("the end state has %s, which the %s shows as closed", s.On(f.Object), s.book())
		}
		return fmt.Sprintf("the end state does not have %s, which the %s shows as opened and never closed", s.On(f.Object), s.book())
	case fact.OverLimit:
		return s.overLimit(f)
	case fact.UnderLimit:
		return s.underLimit(f)
	}
	return ""
}

// id formats a transaction with the workload's general noun.
func (s Speaker) id(id history.ID) string { return s.Member(fact.Member{ID: id}) }

func (s Speaker) sum(f fact.Sum) string {
	switch {
	case f.Overflow:
		return fmt.Sprintf("the sum of the balances, or its difference from %s at the load, is more than 64 bits hold", s.Amount(f.Load))
	case f.End == f.Load:
		return fmt.Sprintf("the balances of %s add up to %s, as at the load", check.Plural(f.Accounts, "account"), s.Amount(f.Load))
	}
	return fmt.Sprintf("%s: the balances add up to %s in the end, and added up to %s at the load", s.net(f.End-f.Load), s.Amount(f.End), s.Amount(f.Load))
}

func (s Speaker) negative(f fact.Negative) string {
	if !f.Ended {
		return fmt.Sprintf("%s left %s at %s at version %d, by opening balance and %s", s.id(f.By), s.On(f.Object), s.Amount(f.Balance), f.Version, s.book())
	}
	text := fmt.Sprintf("%s holds %s in the end", s.On(f.Object), s.Amount(f.Balance))
	if f.By != 0 {
		text += "; " + s.id(f.By) + " wrote it last"
	}
	return text
}

func (s Speaker) wrongBooks(f fact.Books) string {
	legs := check.Plural(f.Legs, s.book()+" "+s.part())
	if f.Balance == f.Want {
		return fmt.Sprintf("%s has version %d but %s", s.On(f.Object), f.Version, legs)
	}
	text := fmt.Sprintf("%s holds %s, but opening balance and %s make %s (%s off)",
		s.On(f.Object), s.Amount(f.Balance), s.book(), s.Amount(f.Want), s.Amount(f.Balance-f.Want))
	if f.Version != uint64(f.Legs) {
		text += fmt.Sprintf("; it has version %d and %s", f.Version, legs)
	}
	return text
}

func (s Speaker) sameVersion(f fact.SameVersion) string {
	if !f.Ledger {
		return fmt.Sprintf("%s and %s both made version %d of %s", s.Member(f.First), s.Member(f.Second), f.Version, s.On(f.Object))
	}
	text := fmt.Sprintf("%s and %s are both in the %s as the maker of version %d of %s", s.Member(f.First), s.Member(f.Second), s.book(), f.Version, s.On(f.Object))
	if f.Closes {
		text += ", which holds the amounts of both"
	}
	return text
}

func (s Speaker) overLimit(f fact.OverLimit) string {
	group := "opened in the group of " + s.On(f.Object)
	than := fmt.Sprintf("%s, which is %s more than the allowed %s", s.Amount(f.Sum), s.Amount(f.Sum-f.Most), s.Amount(f.Most))
	what := fmt.Sprintf("the accounts %s together hold %s", group, than)
	if f.Low != 0 {
		what = fmt.Sprintf("the accounts under %s %s together lack %s", s.Amount(f.Low), group, than)
	}
	if f.By == 0 {
		return "in the end " + what
	}
	return fmt.Sprintf("%s saw that %s", s.id(f.By), what)
}

func (s Speaker) underLimit(f fact.UnderLimit) string {
	low := ""
	if f.Low != 0 {
		low = fmt.Sprintf(", or those under %s lack more than %s", s.Amount(f.Low), s.Amount(f.Cover))
	}
	return fmt.Sprintf("no transaction saw the accounts opened in one group hold more than %s%s; the end state does not show it either",
		s.Amount(f.Limit), low)
}

// presence returns the clause of a fact about missing or unexpected data; empty for others.
func (s Speaker) presence(f fact.Fact) string {
	switch f := f.(type) {
	case fact.Lost:
		return fmt.Sprintf("%s was acknowledged and is not in the %s", s.id(f.By), s.book())
	case fact.Altered:
		if f.Unknown {
			return fmt.Sprintf("%s is of unknown outcome, and its %ss in the %s are not those that were sent", s.id(f.By), s.part(), s.book())
		}
		return fmt.Sprintf("%s was acknowledged, and its %ss in the %s are not those that were sent", s.id(f.By), s.part(), s.book())
	case fact.NotFound:
		return fmt.Sprintf("transaction %v did not find an account that the load had made", f.By)
	case fact.AllThere:
		return s.allThere(f)
	case fact.Ghost:
		return fmt.Sprintf("%s was %v, and is in the %s", s.id(f.By), f.Outcome, s.book())
	case fact.ClosedGhost:
		return fmt.Sprintf("a look-up closed %s as not applied, and it was applied later", s.id(f.By))
	case fact.NeverSent:
		if f.Tombstone {
			return fmt.Sprintf("the %s has a tombstone of %s, which no client sent", s.book(), s.id(f.By))
		}
		return fmt.Sprintf("%s is in the %s, and no client sent it", s.id(f.By), s.book())
	case fact.NoGhosts:
		return fmt.Sprintf("every %s in the %s was sent, and none of them was rejected or aborted", s.one(), s.book())
	case fact.UnsentReads:
		reads := "their reads are"
		if f.Count == 1 {
			reads = "what it read is"
		}
		return fmt.Sprintf("the %s has %s that no client sent, so %s not known", s.book(), check.Plural(f.Count, s.one()), reads)
	case fact.Twice:
		return fmt.Sprintf("%s has a %s in the %s twice", s.id(f.By), s.part(), s.book())
	case fact.TwoVersions:
		if f.Open {
			return fmt.Sprintf("%s was seen as the maker of two versions of %s, whose books do not close and do not show how often it was applied", s.id(f.By), s.On(f.Object))
		}
		return fmt.Sprintf("%s made version %d of %s and was seen as the maker of version %d: it was applied twice", s.id(f.By), f.Made, s.On(f.Object), f.Seen)
	case fact.NoneTwice:
		return "no " + s.one() + " was applied twice"
	case fact.AuditSum:
		return fmt.Sprintf("audit %v saw %s in place of %s", f.By, s.Amount(f.Saw), s.Amount(f.Total))
	case fact.AuditTorn:
		return fmt.Sprintf("audit %v saw no consistent cut", f.By)
	case fact.AuditsAgree:
		return auditsAgree(f)
	case fact.NoAudit:
		if f.Several {
			return "no audit was completed in one of the runs"
		}
		return "no audit was completed"
	case fact.NoAudits:
		return "no audits were asked for"
	}
	return ""
}

func (s Speaker) allThere(f fact.AllThere) string {
	if f.Count == 1 {
		return fmt.Sprintf("1 %s acknowledged, and it is in the %s with the %ss that were sent", s.one(), s.book(), s.part())
	}
	return fmt.Sprintf("%s acknowledged, all in the %s with the %ss that were sent", check.Plural(f.Count, s.one()), s.book(), s.part())
}

func auditsAgree(f fact.AuditsAgree) string {
	switch {
	case f.Sampled == 0 && f.Whole == 0:
		return "no audit was completed"
	case f.Sampled == 0:
		return fmt.Sprintf("%s saw exactly the total and a consistent cut", check.Plural(f.Whole, "whole audit"))
	case f.Whole == 0:
		return fmt.Sprintf("%s saw a consistent cut", check.Plural(f.Sampled, "sampled audit"))
	}
	return fmt.Sprintf("%s saw exactly the total and a consistent cut, and %s saw a consistent cut",
		check.Plural(f.Whole, "whole audit"), check.Plural(f.Sampled, "sampled audit"))
}

// groups returns the clause of a fact about rows without versions; empty for others.
func (s Speaker) groups(f fact.Fact) string {
	switch f := f.(type) {
	case fact.Growth:
		return s.growth(f)
	case fact.RowBooks:
		return fmt.Sprintf("%s holds %s, but its opening balance and the added amounts make %s (%s off)",
			s.On(f.Object), s.Amount(f.Balance), s.Amount(f.Want), s.Amount(f.Balance-f.Want))
	case fact.RowsFit:
		return rowsFit(f)
	case fact.ForeignAmounts:
		return "the history has amounts on " + strings.Join(f.Groups, " or ") + " that no load made"
	case fact.Loose:
		they := "they were"
		if f.Count == 1 {
			they = "it was"
		}
		return fmt.Sprintf("%s of unknown outcome left nothing that shows whether %s applied: %s",
			check.Plural(f.Count, "transaction"), they, joined(check.Texts(f.First), f.Count))
	case fact.Emptied:
		return fmt.Sprintf("the history no longer has %s that another program had written before the first run", check.Plural(f.Rows, "row"))
	case fact.Shared:
		return fmt.Sprintf("another program has written to the tables since the first run: the history has %s that no run wrote", check.Plural(f.Rows, "more row"))
	case fact.BareRun:
		if f.CutOff {
			return fmt.Sprintf("run %d kept no history, and its recording was cut off", f.Run)
		}
		return fmt.Sprintf("run %d kept no history, and its recording was not given: give its directory too", f.Run)
	case fact.Reasons:
		var list []string
		for _, one := range f.List {
			list = append(list, s.Clause(one))
		}
		return strings.Join(list, "; ")
	case fact.NoPath:
		return fmt.Sprintf("%s read the balance %s of %s and added %s, and no order of that account's transactions explains it",
			s.id(f.By), s.Amount(f.Balance), s.On(f.Object), s.Amount(f.Amount))
	case fact.NoTimelyPath:
		return fmt.Sprintf("no order of the transactions on %s explains what they read and agrees with real time", s.On(f.Object))
	case fact.Paths:
		return fmt.Sprintf("an order of %s explains every balance that was read", check.Plural(f.Transactions, "committed transaction"))
	case fact.UnsurePaths:
		if f.RealTime {
			return fmt.Sprintf("what was read does not show the order on %s; --versions records it", check.Plural(f.Accounts, "account"))
		}
		return fmt.Sprintf("it is not known which transactions were applied to %s, or there are too many orders to try", check.Plural(f.Accounts, "account"))
	}
	return ""
}

func (s Speaker) growth(f fact.Growth) string {
	of := "the amounts of the history"
	if f.Driven {
		of = "the amounts of all committed transactions"
	}
	var names, grew []string
	same := true
	for _, g := range f.Groups {
		names = append(names, g.Name)
		grew = append(grew, fmt.Sprintf("the balances of the %s grew by %s", g.Name, s.Amount(g.Grew)))
		same = same && g.Grew == f.Added
	}
	if same {
		return fmt.Sprintf("the balances of %s each grew by %s, the sum of %s", listed(names), s.Amount(f.Added), of)
	}
	return fmt.Sprintf("%s add up to %s, and %s", of, s.Amount(f.Added), listed(grew))
}

// listed joins names with commas and a last "and".
func listed(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func rowsFit(f fact.RowsFit) string {
	against := "the history"
	switch {
	case f.Bare:
		against = "what was acknowledged (no history was kept, which would distinguish a lost, a doubled and a foreign transaction)"
	case f.Partly:
		against = "the history, and with what was acknowledged by runs that kept none"
	}
	text := fmt.Sprintf("the balances of %s were compared with %s, and all fit", check.Plural(f.Rows, "row"), against)
	if f.Rows == 1 {
		text = fmt.Sprintf("the balance of 1 row was compared with %s, and it fits", against)
	}
	if f.Foreign > 0 {
		text += fmt.Sprintf("; the amounts include %s of another program", check.Plural(uint64(f.Foreign), "row"))
	}
	return text
}

// titleOfTotals is like title, for findings about accounts, ledgers and audits.
func (s Speaker) titleOfTotals(f *check.Finding) (title string, listed bool) {
	n := func(noun string) string { return check.Plural(f.Count, noun) }
	transfers := n(s.one())
	switch first := f.Instances[0].(type) {
	case fact.Lost:
		return transfers + " acknowledged and lost", true
	case fact.Altered:
		if first.Unknown {
			return fmt.Sprintf("%s of unknown outcome whose %ss in the %s are not those that were sent", transfers, s.part(), s.book()), true
		}
		return fmt.Sprintf("%s whose %ss in the %s are not those that were acknowledged", transfers, s.part(), s.book()), true
	case fact.NotFound:
		return n("transaction") + " did not find an account that the load had made", true
	case fact.Ghost:
		return fmt.Sprintf("%s reported as not applied, yet in the %s", transfers, s.book()), true
	case fact.ClosedGhost:
		return transfers + " closed by a look-up as not applied, yet applied later", true
	case fact.NeverSent:
		if first.Tombstone {
			return fmt.Sprintf("%s with a tombstone in the %s that no client sent", transfers, s.book()), true
		}
		return fmt.Sprintf("%s in the %s that no client sent", transfers, s.book()), true
	case fact.Twice:
		return fmt.Sprintf("%s with a %s twice in the %s", transfers, s.part(), s.book()), true
	case fact.Books:
		return n("account") + " with books that do not close", false
	case fact.SameVersion:
		if !first.Ledger {
			return fmt.Sprintf("%s made by two %ss", n("version"), s.one()), false
		}
	case fact.ForeignRow:
		return n("unexpected row"), false
	case fact.Negative:
		return n("balance") + " below zero", false
	case fact.TwoVersions:
		return transfers + " applied twice", false
	case fact.AuditSum:
		return n("audit") + " saw another total", false
	case fact.AuditTorn:
		return n("audit") + " saw no consistent cut", true
	}
	return "", false
}

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
	w := s.Words
	switch f := f.(type) {
	case fact.Objects:
		if f.Found != f.Made {
			return fmt.Sprintf("the load made %s, and the end state has %s", check.Plural(f.Made, f.Noun), check.Group(f.Found))
		}
		return fmt.Sprintf("the end state has %s, as many as the load made, but not the same ones", check.Plural(f.Found, f.Noun))
	case fact.Sum:
		return s.sum(f)
	case fact.Negative:
		when := "at the end"
		if !f.Ended {
			when = fmt.Sprintf("at version %d, by opening balance and %s", f.Version, w.Book)
		}
		return fmt.Sprintf("%s left %s at %s %s", s.id(f.By), s.On(f.Object), s.Amount(f.Balance), when)
	case fact.NeverNegative:
		return "no balance is below zero, and by the " + w.Book + " none ever was"
	case fact.ForeignRow:
		return "the end state has a row that neither the load nor a client made: " + f.Row
	case fact.ForeignLeg:
		return fmt.Sprintf("%s has a %s in the %s on an object that no load made", s.id(f.By), w.Part, w.Book)
	case fact.Books:
		return s.wrongBooks(f)
	case fact.BooksClose:
		return fmt.Sprintf("the books of %s were compared with the %s, and all close", check.Plural(f.Accounts, "account"), w.Book)
	case fact.SameVersion:
		return s.sameVersion(f)
	case fact.NoSuchLeg:
		return fmt.Sprintf("%s names %s as the maker of its last version, %d, and the %s has no such %s", s.On(f.Object), s.id(f.By), f.Version, w.Book, w.Part)
	case fact.LaterLeg:
		return fmt.Sprintf("%s ends at version %d, and the %s has a %s of a later version", s.On(f.Object), f.Version, w.Book, w.Part)
	case fact.ImpossibleVersion:
		return fmt.Sprintf("%s has a %s in the %s with a version that its account cannot have had", s.id(f.By), w.Part, w.Book)
	case fact.UnexplainedBalance:
		return fmt.Sprintf("before the end, transaction %v read %s at version %d of %s, which the %s does not explain", f.By, s.Amount(f.Balance), f.Version, s.On(f.Object), w.Book)
	case fact.Presence:
		if f.There {
			return fmt.Sprintf("%s was closed by the %s and is there in the end", s.On(f.Object), w.Book)
		}
		return fmt.Sprintf("%s was opened by the %s and never closed, and is not there in the end", s.On(f.Object), w.Book)
	case fact.OverLimit:
		return s.overLimit(f)
	case fact.UnderLimit:
		return fmt.Sprintf("no transaction saw the accounts opened in one group hold more than %s, or those under %s lack more than %s; the end state does not show it either",
			s.Amount(f.Limit), s.Amount(f.Low), s.Amount(f.Cover))
	}
	return ""
}

// id names a transaction by the general noun of the workload.
func (s Speaker) id(id history.ID) string { return s.Who(fact.Member{ID: id}) }

func (s Speaker) sum(f fact.Sum) string {
	switch {
	case f.Overflow:
		return fmt.Sprintf("the balances add up to more than 64 bits hold, and at the load to %s", s.Amount(f.Load))
	case f.End == f.Load:
		return fmt.Sprintf("the balances of %s add up to %s, as at the load", check.Plural(f.Accounts, "account"), s.Amount(f.Load))
	case f.End < f.Load:
		return fmt.Sprintf("%s: the balances add up to %s, and at the load to %s", s.net(f.End-f.Load), s.Amount(f.End), s.Amount(f.Load))
	}
	return fmt.Sprintf("%s: the balances add up to %s, and at the load to %s", s.net(f.End-f.Load), s.Amount(f.End), s.Amount(f.Load))
}

func (s Speaker) wrongBooks(f fact.Books) string {
	legs := check.Plural(f.Legs, s.Words.Book+" "+s.Words.Part)
	if f.Balance == f.Want {
		return fmt.Sprintf("%s has version %d but %s", s.On(f.Object), f.Version, legs)
	}
	text := fmt.Sprintf("%s holds %s, but opening balance and %s make %s (%s off)",
		s.On(f.Object), s.Amount(f.Balance), s.Words.Book, s.Amount(f.Want), s.Amount(f.Balance-f.Want))
	if f.Version != uint64(f.Legs) {
		text += fmt.Sprintf("; it has version %d and %s", f.Version, legs)
	}
	return text
}

func (s Speaker) sameVersion(f fact.SameVersion) string {
	if !f.Ledger {
		return fmt.Sprintf("%s and %s both made version %d of %s", s.Who(f.First), s.Who(f.Second), f.Version, s.On(f.Object))
	}
	text := fmt.Sprintf("%s and %s are both in the %s as the maker of version %d of %s", s.Who(f.First), s.Who(f.Second), s.Words.Book, f.Version, s.On(f.Object))
	if f.Closes {
		text += ", which holds the amounts of both"
	}
	return text
}

func (s Speaker) overLimit(f fact.OverLimit) string {
	accounts, over := "the accounts opened beside "+string(f.Object), s.Amount(f.Sum-f.Most)
	what := fmt.Sprintf("%s hold %s, which is %s more than %s", accounts, s.Amount(f.Sum), over, s.Amount(f.Most))
	if f.Low != 0 {
		what = fmt.Sprintf("%s and under %s lack %s of it together, which is %s more than %s", accounts, s.Amount(f.Low), s.Amount(f.Sum), over, s.Amount(f.Most))
	}
	if f.By == 0 {
		return "in the end " + what
	}
	return fmt.Sprintf("%s saw that %s", s.id(f.By), what)
}

// presence returns the clause of a fact about what should be there; empty for others.
func (s Speaker) presence(f fact.Fact) string {
	w := s.Words
	switch f := f.(type) {
	case fact.Lost:
		return fmt.Sprintf("%s was acknowledged and is not in the %s", s.id(f.By), w.Book)
	case fact.Altered:
		if f.Unknown {
			return fmt.Sprintf("%s is of unknown outcome, and its %ss in the %s are not those that were sent", s.id(f.By), w.Part, w.Book)
		}
		return fmt.Sprintf("%s was acknowledged, and its %ss in the %s are not those that were sent", s.id(f.By), w.Part, w.Book)
	case fact.NotFound:
		return fmt.Sprintf("transaction %v did not find an account that the load had made", f.By)
	case fact.AllThere:
		return fmt.Sprintf("%s acknowledged, all in the %s with the %ss that were sent", check.Plural(f.Count, w.One), w.Book, w.Part)
	case fact.Ghost:
		return fmt.Sprintf("%s was %v, and is in the %s", s.id(f.By), f.Outcome, w.Book)
	case fact.ClosedGhost:
		return fmt.Sprintf("a look-up closed %s as not applied, and it was applied later", s.id(f.By))
	case fact.NeverSent:
		if f.Tombstone {
			return fmt.Sprintf("the %s has a tombstone of %s, which no client ever sent", w.Book, s.id(f.By))
		}
		return fmt.Sprintf("%s is in the %s, and no client ever sent it", s.id(f.By), w.Book)
	case fact.NoGhosts:
		return fmt.Sprintf("nothing in the %s was rejected or aborted, and everything there was sent", w.Book)
	case fact.UnsentReads:
		return fmt.Sprintf("the %s has %s that no client sent, so their reads are not known", w.Book, check.Plural(f.Count, w.One))
	case fact.Twice:
		return fmt.Sprintf("%s has a %s in the %s twice", s.id(f.By), w.Part, w.Book)
	case fact.TwoVersions:
		if f.Open {
			return fmt.Sprintf("%s was seen as the maker of two versions of %s, whose books do not close, so they do not show how often it was applied", s.id(f.By), s.On(f.Object))
		}
		return fmt.Sprintf("%s made version %d of %s and was seen as the maker of version %d: it was applied twice", s.id(f.By), f.Made, s.On(f.Object), f.Seen)
	case fact.NoneTwice:
		return "no " + w.One + " was applied twice"
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

func auditsAgree(f fact.AuditsAgree) string {
	switch {
	case f.Sampled == 0:
		return fmt.Sprintf("%s saw exactly the total and a consistent cut", check.Plural(f.Whole, "whole audit"))
	case f.Whole == 0:
		return fmt.Sprintf("%s saw a consistent cut", check.Plural(f.Sampled, "sampled audit"))
	}
	return fmt.Sprintf("%s saw exactly the total and a consistent cut, and %s a consistent cut",
		check.Plural(f.Whole, "whole audit"), check.Plural(f.Sampled, "sampled audit"))
}

// groups returns the clause of a fact about rows without versions; empty for others.
func (s Speaker) groups(f fact.Fact) string {
	switch f := f.(type) {
	case fact.Growth:
		return growth(f)
	case fact.RowBooks:
		return fmt.Sprintf("%s holds %d, but its opening and the added amounts make %d (%+d off)", f.Object, f.Balance, f.Want, f.Balance-f.Want)
	case fact.RowsFit:
		return rowsFit(f)
	case fact.ForeignAmounts:
		return "the history has amounts on " + strings.Join(f.Groups, " or ") + " that no load made"
	case fact.Loose:
		return fmt.Sprintf("%s of unknown outcome left nothing that shows whether they were applied: %s",
			check.Plural(f.Count, "transaction"), check.Joined(check.Texts(f.First), f.Count))
	case fact.Emptied:
		return fmt.Sprintf("the history lacks %s of somebody else that were there when the tables were first driven: somebody has emptied it", check.Plural(f.Rows, "row"))
	case fact.Shared:
		return fmt.Sprintf("the history has %s of somebody else, who has worked on the tables since they were first driven", check.Plural(f.Rows, "row"))
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
		return fmt.Sprintf("%s read the balance %d of %s and added %d, and no order of that account's transactions explains it", s.id(f.By), f.Balance, f.Object, f.Amount)
	case fact.NoTimelyPath:
		return fmt.Sprintf("no order of the transactions on %s explains what they read and agrees with real time", f.Object)
	case fact.Paths:
		return fmt.Sprintf("an order of %s explains every balance that was read", check.Plural(f.Transactions, "committed transaction"))
	case fact.UnsurePaths:
		if f.RealTime {
			return fmt.Sprintf("what was read does not show the order on %s; --versions records it", check.Plural(f.Accounts, "account"))
		}
		return fmt.Sprintf("it is not known which transactions were applied to %s, or they have too many orders to try them all", check.Plural(f.Accounts, "account"))
	}
	return ""
}

func growth(f fact.Growth) string {
	of := "the amounts of the history"
	if f.Driven {
		of = "the amounts of all committed transactions"
	}
	var names, grew []string
	same := true
	for _, g := range f.Groups {
		names = append(names, g.Name)
		grew = append(grew, fmt.Sprintf("the balances of the %s grew by %d", g.Name, g.Grew))
		same = same && g.Grew == f.Added
	}
	if same {
		return fmt.Sprintf("the balances of %s each grew by %d, the sum of %s", listed(names), f.Added, of)
	}
	return fmt.Sprintf("%s add up to %d, and %s", of, f.Added, strings.Join(grew, ", "))
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
	if f.Foreign > 0 {
		text += fmt.Sprintf("; among the amounts are those of %s of somebody else", check.Plural(uint64(f.Foreign), "row"))
	}
	return text
}

// titleOfTotals returns the heading of findings about accounts, ledgers and audits.
func (s Speaker) titleOfTotals(f *check.Finding) (title string, all bool) {
	w, n := s.Words, func(noun string) string { return check.Plural(f.Count, noun) }
	switch first := f.Instances[0].(type) {
	case fact.Lost:
		return fmt.Sprintf("%s acknowledged and lost: %s", n(w.One), s.some(f)), true
	case fact.Altered:
		if first.Unknown {
			return fmt.Sprintf("%s of unknown outcome whose %ss in the %s are not those that were sent: %s", n(w.One), w.Part, w.Book, s.some(f)), true
		}
		return fmt.Sprintf("%s whose %ss in the %s are not those that were acknowledged: %s", n(w.One), w.Part, w.Book, s.some(f)), true
	case fact.NotFound:
		return fmt.Sprintf("%s did not find an account that the load had made: %s", n("transaction"), s.some(f)), true
	case fact.Ghost:
		return fmt.Sprintf("%s reported as not applied, yet in the %s: %s", n(w.One), w.Book, s.some(f)), true
	case fact.ClosedGhost:
		return fmt.Sprintf("%s closed by a look-up as not applied, yet applied later: %s", n(w.One), s.some(f)), true
	case fact.NeverSent:
		if first.Tombstone {
			return fmt.Sprintf("%s with a tombstone in the %s that no client ever sent: %s", n(w.One), w.Book, s.some(f)), true
		}
		return fmt.Sprintf("%s in the %s that no client ever sent: %s", n(w.One), w.Book, s.some(f)), true
	case fact.Twice:
		return fmt.Sprintf("%s with a %s twice in the %s: %s", n(w.One), w.Part, w.Book, s.some(f)), true
	case fact.Books:
		return n("account") + " with books that do not close", false
	case fact.SameVersion:
		if !first.Ledger {
			return n("version") + " made by two " + w.One + "s", false
		}
	case fact.ForeignRow:
		return n("row") + " that neither the load nor a client made", false
	case fact.Negative:
		return n("balance") + " below zero", false
	case fact.TwoVersions:
		return n(w.One) + " applied twice", false
	case fact.AuditSum:
		return n("audit") + " saw another total", false
	case fact.AuditTorn:
		return n("audit") + " saw no consistent cut", false
	}
	return "", false
}

// some lists the transactions of a finding, and how many more there are.
func (s Speaker) some(f *check.Finding) string {
	return check.Joined(check.Texts(f.Transactions), f.Count)
}

package text

import (
	"fmt"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
)

var totalHeadings = []wording{
	{fact.Books{}, "{# account} with books that do not close"},
	{fact.SameVersion{Ledger: true}, ""},
	{fact.SameVersion{}, "{# version} made by two {one}s"},
	{fact.ForeignRow{}, "{# unexpected row}"},
	{fact.Negative{}, "{# balance} below zero"},
	{fact.TwoVersions{}, "{# one} applied twice"},
	{fact.AuditSum{}, "{# audit} saw another total"},
}

// totalListings are headings that are followed by the transactions.
var totalListings = []wording{
	{fact.Lost{}, "{# one} acknowledged and lost"},
	{fact.Altered{Unknown: true},
		"{# one} of unknown outcome whose {part}s in the {book} are not those that were sent"},
	{fact.Altered{}, "{# one} whose {part}s in the {book} are not those that were acknowledged"},
	{fact.NotFound{}, "{# transaction} did not find an account that the load had made"},
	{fact.Ghost{}, "{# one} reported as not applied, yet in the {book}"},
	{fact.ClosedGhost{}, "{# one} closed by a look-up as not applied, yet applied later"},
	{fact.NeverSent{Tombstone: true}, "{# one} with a tombstone in the {book} that no client sent"},
	{fact.NeverSent{}, "{# one} in the {book} that no client sent"},
	{fact.Twice{}, "{# one} with a {part} twice in the {book}"},
	{fact.AuditTorn{}, "{# audit} saw no consistent cut"},
}

// bookClauses are about balances and ledgers.
var bookClauses = []wording{
	{fact.NeverNegative{}, "no balance is below zero, and by the {book} none ever was"},
	{fact.Negative{Ended: true}, "{Object} holds {Balance} in the end; {By!} wrote it last"},
	{fact.Negative{Ended: true}, "{Object} holds {Balance} in the end"},
	{fact.Negative{}, "{By} left {Object} at {Balance} at version {Version}, by opening balance and {book}"},
	{fact.ForeignRow{}, "the end state has a row that neither the load nor a client made: {Row}"},
	{fact.BooksClose{}, "the books of {Accounts account} were compared with the {book}, and all close"},
	{fact.SameVersion{Ledger: true, Closes: true}, "{First} and {Second} are both in the {book} as the maker of " +
		"version {Version} of {Object}, which holds the amounts of both"},
	{fact.SameVersion{Ledger: true},
		"{First} and {Second} are both in the {book} as the maker of version {Version} of {Object}"},
	{fact.SameVersion{}, "{First} and {Second} both made version {Version} of {Object}"},
	{fact.NoSuchLeg{}, "{Object} names {By!} as the maker of its last version, {Version}, " +
		"and the {book} has no such {part}"},
	{fact.NoSuchLeg{}, "{Object} has version {Version} and names no {one} as its maker"},
	{fact.LaterLeg{}, "{Object} ends at version {Version}, and the {book} has a {part} of a later version"},
	{fact.ImpossibleVersion{}, "{By} has a {part} in the {book} with a version that its account cannot have had"},
	{fact.UnexplainedBalance{}, "before the end, transaction {By id} read {Balance} at version {Version} of {Object}, " +
		"which the {book} does not explain"},
	{fact.Presence{There: true}, "the end state has {Object}, which the {book} shows as closed"},
	{fact.Presence{}, "the end state does not have {Object}, which the {book} shows as opened and never closed"},
	{fact.UnderLimit{}, "no transaction saw the accounts opened in one group hold more than {Limit}, " +
		"or those under {Low!} lack more than {Cover}; the end state does not show it either"},
	{fact.UnderLimit{}, "no transaction saw the accounts opened in one group hold more than {Limit}; " +
		"the end state does not show it either"},
}

// presenceClauses are about missing or unexpected data.
var presenceClauses = []wording{
	{fact.Lost{}, "{By} was acknowledged and is not in the {book}"},
	{fact.Altered{Unknown: true},
		"{By} is of unknown outcome, and its {part}s in the {book} are not those that were sent"},
	{fact.Altered{}, "{By} was acknowledged, and its {part}s in the {book} are not those that were sent"},
	{fact.NotFound{}, "transaction {By id} did not find an account that the load had made"},
	{fact.AllThere{Count: 1}, "1 {one} acknowledged, and it is in the {book} with the {part}s that were sent"},
	{fact.AllThere{}, "{Count one} acknowledged, all in the {book} with the {part}s that were sent"},
	{fact.Ghost{}, "{By} was {Outcome}, and is in the {book}"},
	{fact.ClosedGhost{}, "a look-up closed {By} as not applied, and it was applied later"},
	{fact.NeverSent{Tombstone: true}, "the {book} has a tombstone of {By}, which no client sent"},
	{fact.NeverSent{}, "{By} is in the {book}, and no client sent it"},
	{fact.NoGhosts{}, "every {one} in the {book} was sent, and none of them was rejected or aborted"},
	{fact.UnsentReads{Count: 1},
		"the {book} has {Count one} that no client sent, so what it read is not known"},
	{fact.UnsentReads{}, "the {book} has {Count one} that no client sent, so their reads are not known"},
	{fact.Twice{}, "{By} has a {part} in the {book} twice"},
	{fact.TwoVersions{Open: true}, "{By} was seen as the maker of two versions of {Object}, " +
		"whose books do not close and do not show how often it was applied"},
	{fact.TwoVersions{}, "{By} made version {Made} of {Object} and was seen as the maker of version {Seen}: " +
		"it was applied twice"},
	{fact.NoneTwice{}, "no {one} was applied twice"},
	{fact.AuditSum{}, "audit {By id} saw {Saw} in place of {Total}"},
	{fact.AuditTorn{}, "audit {By id} saw no consistent cut"},
	{fact.AuditsAgree{}, "{Whole! whole audit} saw exactly the total and a consistent cut, " +
		"and {Sampled! sampled audit} saw a consistent cut"},
	{fact.AuditsAgree{}, "{Whole! whole audit} saw exactly the total and a consistent cut"},
	{fact.AuditsAgree{}, "{Sampled! sampled audit} saw a consistent cut"},
	{fact.AuditsAgree{}, "no audit was completed"},
	{fact.NoAudit{Several: true}, "no audit was completed in one of the runs"},
	{fact.NoAudit{}, "no audit was completed"},
	{fact.NoAudits{}, "no audits were asked for"},
}

// groupClauses are about rows without versions.
var groupClauses = []wording{
	{fact.Emptied{}, "the history no longer has {Rows row} that another program had written before the first run"},
	{fact.Shared{}, "another program has written to the tables since the first run: " +
		"the history has {Rows more row} that no run wrote"},
	{fact.BareRun{CutOff: true}, "run {Run} kept no history, and its recording was cut off"},
	{fact.BareRun{}, "run {Run} kept no history, and its recording was not given: give its directory too"},
	{fact.NoPath{}, "{By} read the balance {Balance} of {Object} and added {Amount}, " +
		"and no order of that account's transactions explains it"},
	{fact.NoTimelyPath{},
		"no order of the transactions on {Object} explains what they read and agrees with real time"},
	{fact.Paths{}, "an order of {Transactions committed transaction} explains every balance that was read"},
	{fact.UnsurePaths{RealTime: true},
		"what was read does not show the order on {Accounts account}; --versions records it"},
	{fact.UnsurePaths{}, "it is not known which transactions were applied to {Accounts account}, " +
		"or there are too many orders to try"},
}

// totals returns the clause of a fact about accounts and ledgers that needs more than a wording; empty for others.
func (s Speaker) totals(f fact.Fact) string {
	switch f := f.(type) {
	case fact.Objects:
		switch f.Found {
		case f.Made:
			same := "one"
			if f.Found != 1 {
				same = "ones"
			}
			return s.fill("the end state has {Found Noun}, as many as the load made, but not the same ", f) + same
		}
		return s.fill("the load made {Made Noun}, and the end state has {Found ,}", f)
	case fact.Sum:
		return s.sum(f)
	case fact.ForeignLeg:
		text := "the {book} has a {part} on "
		if f.By != 0 {
			text = "{By} has a {part} in the {book} on "
		}
		if f.Object == "" {
			return s.fill(text+"an object that no load made", f)
		}
		return s.fill(text+"{Object}, which no load made", f)
	case fact.Books:
		return s.wrongBooks(f)
	case fact.OverLimit:
		return s.overLimit(f)
	case fact.Growth:
		return s.growth(f)
	case fact.RowBooks:
		return s.fill("{Object} holds {Balance}, but its opening balance and the added amounts make {Want}", f) +
			s.off(f.Balance-f.Want)
	case fact.RowsFit:
		return s.rowsFit(f)
	case fact.ForeignAmounts:
		return "the history has amounts on " + strings.Join(f.Groups, " or ") + " that no load made"
	case fact.Loose:
		they := "they were"
		if f.Count == 1 {
			they = "it was"
		}
		return s.fill("{Count transaction} of unknown outcome left nothing that shows whether "+they+" applied: ", f) +
			joined(check.Texts(f.First), f.Count)
	case fact.Reasons:
		return s.all(f.List)
	}
	return ""
}

// off formats the error of a balance.
func (s Speaker) off(n int64) string { return " (" + s.Amount(n) + " off)" }

func (s Speaker) sum(f fact.Sum) string {
	switch {
	case f.Overflow:
		return s.fill("the sum of the balances, or its difference from {Load} at the load, is more than 64 bits hold", f)
	case f.End == f.Load:
		return s.fill("the balances of {Accounts account} add up to {Load}, as at the load", f)
	}
	return s.net(f.End-f.Load) +
		s.fill(": the balances add up to {End} in the end, and added up to {Load} at the load", f)
}

func (s Speaker) wrongBooks(f fact.Books) string {
	if f.Balance == f.Want {
		return s.fill("{Object} has version {Version} but {Legs book part}", f)
	}
	text := s.fill("{Object} holds {Balance}, but opening balance and {book} make {Want}", f) + s.off(f.Balance-f.Want)
	if f.Version != uint64(f.Legs) {
		text += s.fill("; it has version {Version} and {Legs book part}", f)
	}
	return text
}

func (s Speaker) overLimit(f fact.OverLimit) string {
	text := "in the end "
	if f.By != 0 {
		text = "{By} saw that "
	}
	if f.Low != 0 {
		text += "the accounts under {Low} opened in the group of {Object} together lack "
	} else {
		text += "the accounts opened in the group of {Object} together hold "
	}
	return s.fill(text+"{Sum}, which is ", f) + s.Amount(f.Sum-f.Most) + s.fill(" more than the allowed {Most}", f)
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
		return fmt.Sprintf("the balances of %s each grew by %s, the sum of %s", listed(names, "and"), s.Amount(f.Added), of)
	}
	return fmt.Sprintf("%s add up to %s, and %s", of, s.Amount(f.Added), listed(grew, "and"))
}

// listed joins names with commas and a last conjunction.
func listed(names []string, conjunction string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " " + conjunction + " " + names[last]
}

func (s Speaker) rowsFit(f fact.RowsFit) string {
	against := "the history"
	switch {
	case f.Bare:
		against = "what was acknowledged (no history was kept, which would distinguish a lost, a doubled and a foreign transaction)"
	case f.Partly:
		against = "the history, and with what was acknowledged by runs that kept none"
	}
	text := "the balances of {Rows row} were compared with " + against + ", and all fit"
	if f.Rows == 1 {
		text = "the balance of 1 row was compared with " + against + ", and it fits"
	}
	if f.Foreign > 0 {
		text += "; the amounts include {Foreign row} of another program"
	}
	return s.fill(text, f)
}

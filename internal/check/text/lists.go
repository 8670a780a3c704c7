package text

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
)

// lists returns the clause of a fact of the checker of lists; empty for others.
func (s Speaker) lists(f fact.Fact) string {
	of := []func(fact.Fact) string{s.listElements, s.listReads, s.listEnd, s.listOrder, s.listSteps, s.listReasons}
	for _, clause := range of {
		if text := clause(f); text != "" {
			return text
		}
	}
	return ""
}

// titleOfLists returns the heading of findings about the end state of lists.
func (s Speaker) titleOfLists(f *check.Finding) (title string, all bool) {
	switch f.Instances[0].(type) {
	case fact.ListLost:
		return check.Plural(f.Count, "acknowledged append") + " lost", false
	case fact.ListGhost:
		return check.Plural(f.Count, "append") + " in the end state of transactions that were not committed", false
	case fact.ListForeign:
		return check.Plural(f.Count, "element") + " in the end state that no transaction appended", false
	}
	return "", false
}

// listElements returns the clause of a fact about the elements of a list.
func (s Speaker) listElements(f fact.Fact) string {
	switch f := f.(type) {
	case fact.ListGarbage:
		return fmt.Sprintf("%s, and no transaction appended %s", s.listRead(f.ListRead), s.listElement(f.Element))
	case fact.ListDuplicate:
		text := fmt.Sprintf("%s contains %s twice: %s", s.On(f.On), s.listElement(f.Element), s.listOf(f.Known))
		if f.TakenBack {
			text += "; one of the two is not there in the end, so it is of a try that was rolled back"
		}
		return text
	case fact.ListDisorder:
		return fmt.Sprintf("%s appended %s to %s after another element, which is not before it there: %s",
			s.Member(f.By), s.listElement(f.Element), s.On(f.On), s.listOf(f.Known))
	case fact.ListContradiction:
		return fmt.Sprintf("%s, but other reads of the list have %s: neither is the beginning of the other",
			s.listRead(f.ListRead), s.listOf(f.Other))
	case fact.ListOtherRow:
		return fmt.Sprintf("%s with %s at place %d, but another read has %s there",
			s.listReadShort(f.ListRead), s.listElement(f.Found), f.Place, s.listElement(f.Other))
	case fact.ListOtherBase:
		text := fmt.Sprintf("%s, but %s had read %s before it appended %s",
			s.listRead(f.ListRead), s.Member(f.Writer), s.listOf(f.Base), s.listElement(f.Element))
		if f.Retried {
			text += "; it was tried more than once, so a try that was rolled back may have been read"
		}
		return text
	case fact.ListAppendedTwice:
		return fmt.Sprintf("%s and %s both appended %s to %s",
			s.Member(f.First), s.Member(f.Second), s.listElement(f.Element), s.On(f.On))
	}
	return ""
}

// listReads returns the clause of a fact about what a transaction read or missed.
func (s Speaker) listReads(f fact.Fact) string {
	switch f := f.(type) {
	case fact.ListAborted:
		return fmt.Sprintf("%s, and %s, which appended %s, was aborted",
			s.listRead(f.ListRead), s.Member(f.Writer), s.listElement(f.Element))
	case fact.ListDirtyAppend:
		text := fmt.Sprintf("%s appended %s to %s, which had the element %s of %s",
			s.Member(f.By), s.listElement(f.Element), s.On(f.On), f.Behind, s.Member(f.Writer))
		if f.Elsewhere {
			return text + ", which appended it behind other elements"
		}
		return text + ", which was aborted"
	case fact.ListHole:
		return fmt.Sprintf("%s appended %s to %s at place %d, and there is no element at the place before it in the end",
			s.Member(f.By), s.listElement(f.Element), s.On(f.On), f.Place)
	case fact.ListHalfway:
		return fmt.Sprintf("%s, and %s, which appended the last element, appended more to the list before it committed",
			s.listRead(f.ListRead), s.Member(f.Writer))
	case fact.ListFuture:
		return fmt.Sprintf("%s before it appended %s itself", s.listRead(f.ListRead), s.listElement(f.Element))
	case fact.ListOwnMissing:
		if f.Range {
			return fmt.Sprintf("%s appended %s to %s, then read a range and did not find the list",
				s.Member(f.Reader), s.listElement(f.Element), s.On(f.On))
		}
		return fmt.Sprintf("%s appended %s to %s, then read the list as %s",
			s.Member(f.Reader), s.listElement(f.Element), s.On(f.On), s.listOf(f.Read))
	case fact.ListPartSeen:
		return s.listPartSeen(f)
	}
	return ""
}

func (s Speaker) listPartSeen(f fact.ListPartSeen) string {
	seen := fmt.Sprintf("read %s as %s, with an element of %s", s.On(f.SeenOn), s.listOf(f.Seen), s.Member(f.Writer))
	missed := fmt.Sprintf("read %s as %s, without %s of the same transaction",
		s.On(f.On), s.listOf(f.Read), s.listElement(f.Missing))
	if f.Later {
		return fmt.Sprintf("%s %s, and later %s", s.Member(f.Reader), seen, missed)
	}
	missed = fmt.Sprintf("read %s as %s, without %s of %s",
		s.On(f.On), s.listOf(f.Read), s.listElement(f.Missing), s.Member(f.Writer))
	if f.On == f.SeenOn {
		return fmt.Sprintf("%s %s, and later as %s, with an element of that transaction",
			s.Member(f.Reader), missed, s.listOf(f.Seen))
	}
	return fmt.Sprintf("%s %s, and later %s as %s, with an element of that transaction",
		s.Member(f.Reader), missed, s.On(f.SeenOn), s.listOf(f.Seen))
}

// listEnd returns the clause of a fact about the end state.
func (s Speaker) listEnd(f fact.Fact) string {
	switch f := f.(type) {
	case fact.ListForeign:
		return fmt.Sprintf("%s has %s in the end, and no transaction appended it: %s",
			s.On(f.On), s.listElement(f.Element), s.listOf(f.End))
	case fact.ListUnexpected:
		return f.Found
	case fact.ListLost:
		return fmt.Sprintf("%s appended %s to %s and was acknowledged, and the list is %s in the end",
			s.Member(f.By), s.listElement(f.Element), s.On(f.On), s.listOf(f.End))
	case fact.ListGhost:
		return fmt.Sprintf("%s has %s in the end, and %s, which appended it, was %s",
			s.On(f.On), s.listElement(f.Element), s.Member(f.By), f.Outcome)
	}
	return ""
}

// listOrder returns the clause of a fact about the order of transactions.
func (s Speaker) listOrder(f fact.Fact) string {
	switch f := f.(type) {
	case fact.ListLostUpdate:
		return fmt.Sprintf("%s and %s both read %s as %s and both appended to it, so one of them did not see the other",
			s.Member(f.First), s.Member(f.Second), s.On(f.On), s.listOf(f.Read))
	case fact.ListCycle:
		return s.listCycle(f)
	case fact.ListBefore:
		return fmt.Sprintf("%s comes before %s", s.Member(f.First), s.Member(f.Second))
	case fact.ListEnded:
		if f.By == 0 {
			return fmt.Sprintf("%s ended before %s began", s.Member(f.First), s.Member(f.Second))
		}
		return fmt.Sprintf("%s ended %s before %s began", s.Member(f.First), check.Lasted(f.By), s.Member(f.Second))
	case fact.ListEither:
		return fmt.Sprintf("%s and %s both appended to %s what no transaction read, so one of them came first: if it was %s",
			s.Member(f.First), s.Member(f.Second), s.On(f.On), s.Member(f.First))
	case fact.ListSession:
		return fmt.Sprintf("%s and then %s are of one client, which had the answer to the first before it began the second",
			s.Member(f.First), s.Member(f.Second))
	case fact.ListSaw:
		return fmt.Sprintf("%s read %s as %s, with %s of %s",
			s.Member(f.Second), s.On(f.On), s.listOf(f.Read), s.listElement(f.Element), s.Member(f.First))
	case fact.ListBehind:
		return fmt.Sprintf("%s appended %s to %s behind %s of %s",
			s.Member(f.Second), s.listElement(f.Next), s.On(f.On), s.listElement(f.Element), s.Member(f.First))
	case fact.ListMissed:
		return fmt.Sprintf("%s read %s as %s, without %s, which %s appended",
			s.Member(f.First), s.On(f.On), s.listOf(f.Read), s.listElement(f.Element), s.Member(f.Second))
	case fact.ListRangeMissed:
		return fmt.Sprintf("%s read a range without %s, which %s made", s.Member(f.First), s.On(f.On), s.Member(f.Second))
	case fact.ListDeleted:
		if f.Wrote != "" {
			return fmt.Sprintf("%s appended %s to %s, and %s deleted the list",
				s.Member(f.First), s.listElement(f.Wrote), s.On(f.On), s.Member(f.Second))
		}
		return fmt.Sprintf("%s read %s as %s, and %s deleted the list",
			s.Member(f.First), s.On(f.On), s.listOf(f.Read), s.Member(f.Second))
	case fact.ListOverwritten:
		return fmt.Sprintf("%s appended %s to %s, and %s wrote what is there in the end: %s",
			s.Member(f.First), s.listElement(f.Element), s.On(f.On), s.Member(f.Second), s.listOf(f.End))
	}
	return ""
}

// mostOfCycle limits the number of transactions of a cycle in a sentence.
const mostOfCycle = 4

func (s Speaker) listCycle(f fact.ListCycle) string {
	if len(f.Why) == 2 {
		return s.Clause(f.Why[0]) + "; " + s.Clause(f.Why[1]) + ". So each must come before the other"
	}
	if f.Length > mostOfCycle || len(f.Members) < f.Length {
		return fmt.Sprintf("%s, beginning with %s, must each come before the next, and the last before the first",
			check.Plural(f.Length, s.Words.One), s.Member(f.Members[0]))
	}
	var parts []string
	for i, m := range f.Members {
		parts = append(parts, fmt.Sprintf("%s must come before %s", s.Member(m), s.Member(f.Members[(i+1)%len(f.Members)])))
	}
	return strings.Join(parts, ", ")
}

// listSteps returns the clause of an operation of a transaction.
func (s Speaker) listSteps(f fact.Fact) string {
	switch f := f.(type) {
	case fact.ListAppended:
		return fmt.Sprintf("append %s to %s", f.Element, s.On(f.On))
	case fact.ListOwnRead:
		if !f.Known {
			return "read " + s.On(f.On)
		}
		return fmt.Sprintf("read %s: %s", s.On(f.On), s.listOf(f.Read))
	case fact.ListDelete:
		return "delete " + s.On(f.On)
	case fact.ListRange:
		return fmt.Sprintf("read all from %s to %s: found %s", s.On(f.Low), s.On(f.High), check.Plural(f.Found, "list"))
	case fact.ListMore:
		return fmt.Sprintf("and %s more", check.Group(f.Operations))
	}
	return ""
}

// listReasons returns the clause of a fact that decides a result or leaves it undecided.
func (s Speaker) listReasons(f fact.Fact) string {
	switch f := f.(type) {
	case fact.ListsAgree:
		if f.Prefixes {
			return "each read of a list is a beginning of the same list, and each element was appended"
		}
		return "no two reads of a list contradict each other, and each element was appended"
	case fact.ListsDurable:
		if f.Overwritten {
			return "the end state has each acknowledged append that no transaction overwrote after it had read the list without it"
		}
		return "the end state has each acknowledged append"
	case fact.ListsNoGhost:
		return "the end state has no element of an aborted transaction, and none that no transaction appended"
	case fact.ListsOrdered:
		return s.listsOrdered(f)
	case fact.ListLevelHolds:
		return "it holds"
	case fact.ListBroken:
		if f.Anomaly == "" {
			return "not " + f.At + ", because a weaker level is broken: see the checks before"
		}
		return fmt.Sprintf("broken by the %s at %s", f.Anomaly, f.At)
	case fact.ListNotRecorded:
		if f.Reader == (fact.Member{}) {
			return fmt.Sprintf("%s has %s in the end, and no append of it was recorded, but the recording is not complete",
				s.On(f.On), s.listElement(f.Element))
		}
		return fmt.Sprintf("%s read %s in %s, and no append of it was recorded, but the recording is not complete",
			s.Member(f.Reader), s.listElement(f.Element), s.On(f.On))
	case fact.ListMakers:
		if f.Unknown {
			return fmt.Sprintf("%s was deleted, and it is not known which transaction of unknown outcome had made it",
				s.On(f.On))
		}
		return fmt.Sprintf("%s was deleted, and no transaction made it", s.On(f.On))
	case fact.ListDeletedTwice:
		return fmt.Sprintf("%s and %s both deleted %s, and a list can be deleted only once",
			s.Member(f.First), s.Member(f.Second), s.On(f.On))
	}
	return s.listOpen(f)
}

// listOpen returns the clause of a reason why a level is undecided.
func (s Speaker) listOpen(f fact.Fact) string {
	switch f := f.(type) {
	case fact.ListUnreadRow:
		return fmt.Sprintf("no transaction read what is at place %d of %s, and other elements are behind it",
			f.Place, s.On(f.On))
	case fact.ListPerhapsOverwritten:
		return fmt.Sprintf("%s has no %s in the end, and it is not known whether it was overwritten or lost",
			s.On(f.On), s.listElement(f.Element))
	case fact.ListNoTimes:
		return "the history has no times of one clock"
	case fact.ListCausalOpen:
		return "causal consistency of lists is decided only if a weaker level is broken or a stronger one holds"
	case fact.ListClocks:
		return fmt.Sprintf("nothing surely contradicts real time, but the clients' clocks are known only to within %s of each other",
			check.Lasted(f.Within))
	case fact.ListSameVersion:
		return "transactions wrote over the same version of a list, and it is not known which of them was first"
	case fact.ListBaseUnknown:
		return "it is not recorded what a transaction had read of a list before it wrote the list"
	case fact.ListUnreadAppends:
		return "several transactions appended to one list what nobody read, and the search for their order came to its bound"
	case fact.ListAbsent:
		return "a list was read as absent, and the read may be from before it was made or from after it was deleted"
	case fact.ListHistoryLacks:
		return fmt.Sprintf("the history lacks %s %v and has later ones of its client: it is altered or damaged: restore it from a copy",
			s.Words.One, f.Transaction)
	case fact.ListHistoryRepeats:
		return fmt.Sprintf("the history has %s %v twice, or behind a later one of its client: it is altered or damaged: restore it from a copy",
			s.Words.One, f.Transaction)
	}
	return ""
}

func (s Speaker) listsOrdered(f fact.ListsOrdered) string {
	switch {
	case f.RealTime:
		return "the order of all transactions agrees with real time"
	case f.Sessions:
		return "the order of all transactions agrees with the order of each client"
	}
	return fmt.Sprintf("%s, %s, no cycle",
		check.Plural(f.Transactions, "committed "+s.Words.One), check.Plural(f.Dependencies, "dependency"))
}

// listRead returns a clause with the reader and the result of a read. Without a reader, the end state is the
// reader.
func (s Speaker) listRead(r fact.ListRead) string {
	if r.Reader == (fact.Member{}) {
		return fmt.Sprintf("%s is %s in the end", s.On(r.On), s.listOf(r.Read))
	}
	return fmt.Sprintf("%s as %s", s.listReadShort(r), s.listOf(r.Read))
}

func (s Speaker) listReadShort(r fact.ListRead) string {
	if r.Reader == (fact.Member{}) {
		return "the end state has " + s.On(r.On)
	}
	return fmt.Sprintf("%s read %s", s.Member(r.Reader), s.On(r.On))
}

func (s Speaker) listElement(e fact.Element) string {
	if e == "" {
		return "nothing"
	}
	return "element " + string(e)
}

// mostListLetters limits the letters of a list's elements in a sentence; at least one element is written.
const mostListLetters = 160

// listOf formats the last elements of a list and the number of elements before them.
func (s Speaker) listOf(list fact.Elements) string {
	at, letters := len(list.Last), 0
	for ; at > 0; at-- {
		letters += utf8.RuneCountInString(string(list.Last[at-1]))
		if letters > mostListLetters && at < len(list.Last) {
			break
		}
	}
	var texts []string
	if left := list.Length - len(list.Last) + at; left > 0 {
		texts = append(texts, "… "+check.Group(left)+" more")
	}
	for _, e := range list.Last[at:] {
		if e == "" {
			e = "nothing"
		}
		texts = append(texts, string(e))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

package text

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
)

var listHeadings = []wording{
	{fact.ListLost{}, "{# acknowledged append} lost"},
	{fact.ListGhost{}, "{# append} in the end state of transactions that were not committed"},
	{fact.ListForeign{}, "{# element} in the end state that no transaction appended"},
}

var listClauses = []wording{
	// the elements of a list
	{fact.ListGarbage{}, "{ListRead}, and no transaction appended {Element}"},
	{fact.ListDuplicate{TakenBack: true}, "{On} contains {Element} twice: {Known}; one of the two is not there in the end, " +
		"so it is of a try that was rolled back"},
	{fact.ListDuplicate{}, "{On} contains {Element} twice: {Known}"},
	{fact.ListDisorder{},
		"{By} appended {Element} to {On} after another element, which is not before it there: {Known}"},
	{fact.ListContradiction{},
		"{ListRead}, but other reads of the list have {Other}: neither is the beginning of the other"},
	{fact.ListOtherRow{}, "{ListRead short} with {Found} at place {Place}, but another read has {Other} there"},
	{fact.ListOtherBase{Retried: true}, "{ListRead}, but {Writer} had read {Base} before it appended {Element}; " +
		"it was tried more than once, so a try that was rolled back may have been read"},
	{fact.ListOtherBase{}, "{ListRead}, but {Writer} had read {Base} before it appended {Element}"},
	{fact.ListAppendedTwice{}, "{First} and {Second} both appended {Element} to {On}"},

	// what a transaction read or missed
	{fact.ListAborted{}, "{ListRead}, and {Writer}, which appended {Element}, was aborted"},
	{fact.ListDirtyAppend{Elsewhere: true}, "{By} appended {Element} to {On}, which had the {Behind} of {Writer}, " +
		"which appended it behind other elements"},
	{fact.ListDirtyAppend{},
		"{By} appended {Element} to {On}, which had the {Behind} of {Writer}, which was aborted"},
	{fact.ListHole{},
		"{By} appended {Element} to {On} at place {Place}, and there is no element at the place before it in the end"},
	{fact.ListHalfway{},
		"{ListRead}, and {Writer}, which appended the last element, appended more to the list before it committed"},
	{fact.ListFuture{}, "{ListRead} before it appended {Element} itself"},
	{fact.ListOwnMissing{Range: true},
		"{Reader} appended {Element} to {On}, then read a range and did not find the list"},
	{fact.ListOwnMissing{}, "{Reader} appended {Element} to {On}, then read the list as {Read}"},
	{fact.ListPartSeen{Later: true}, "{Reader} read {SeenOn} as {Seen}, with an element of {Writer}, " +
		"and later read {On} as {Read}, without {Missing} of the same transaction"},
	{fact.ListPartSeen{}, "{Reader} read {On} as {Read}, without {Missing} of {Writer}, " +
		"and later {SeenOn} as {Seen}, with an element of that transaction"},

	// the end state
	{fact.ListForeign{}, "{On} has {Element} in the end, and no transaction appended it: {End}"},
	{fact.ListUnexpected{}, "{Found}"},
	{fact.ListLost{}, "{By} appended {Element} to {On} and was acknowledged, and the list is {End} in the end"},
	{fact.ListGhost{}, "{On} has {Element} in the end, and {By}, which appended it, was {Outcome}"},

	// the order of transactions
	{fact.ListLostUpdate{},
		"{First} and {Second} both read {On} as {Read} and both appended to it, so one of them did not see the other"},
	{fact.ListBefore{}, "{First} comes before {Second}"},
	{fact.ListEnded{}, "{First} ended {By!} before {Second} began"},
	{fact.ListEnded{}, "{First} ended before {Second} began"},
	{fact.ListDeleted{}, "{First} appended {Wrote!} to {On}, and {Second} deleted the list"},
	{fact.ListDeleted{}, "{First} read {On} as {Read}, and {Second} deleted the list"},
	{fact.ListEither{}, "{First} and {Second} both appended to {On} what no transaction read, " +
		"so one of them came first: if it was {First}"},
	{fact.ListSession{},
		"{First} and then {Second} are of one client, which had the answer to the first before it began the second"},
	{fact.ListSaw{}, "{Second} read {On} as {Read}, with {Element} of {First}"},
	{fact.ListBehind{}, "{Second} appended {Next} to {On} behind {Element} of {First}"},
	{fact.ListMissed{}, "{First} read {On} as {Read}, without {Element}, which {Second} appended"},
	{fact.ListRangeMissed{}, "{First} read a range without {On}, which {Second} made"},
	{fact.ListOverwritten{},
		"{First} appended {Element} to {On}, and {Second} wrote what is there in the end: {End}"},

	// the operations of a transaction
	{fact.ListAppended{}, "append {Element id} to {On}"},
	{fact.ListOwnRead{Known: true}, "read {On}: {Read}"},
	{fact.ListOwnRead{}, "read {On}"},
	{fact.ListDelete{}, "delete {On}"},
	{fact.ListRange{}, "read all from {Low} to {High}: found {Found list}"},
	{fact.ListMore{}, "and {Operations ,} more"},

	// how a result is decided, or why it is not
	{fact.ListsAgree{Prefixes: true},
		"each read of a list is a beginning of the same list, and each element was appended"},
	{fact.ListsAgree{}, "no two reads of a list contradict each other, and each element was appended"},
	{fact.ListsDurable{Overwritten: true}, "the end state has each acknowledged append that no transaction overwrote " +
		"after it had read the list without it"},
	{fact.ListsDurable{}, "the end state has each acknowledged append"},
	{fact.ListsNoGhost{},
		"the end state has no element of an aborted transaction, and none that no transaction appended"},
	{fact.ListsOrdered{RealTime: true}, "the order of all transactions agrees with real time"},
	{fact.ListsOrdered{Sessions: true}, "the order of all transactions agrees with the order of each client"},
	{fact.ListsOrdered{}, "{Transactions committed one}, {Dependencies dependency}, no cycle"},
	{fact.ListLevelHolds{}, "it holds"},
	{fact.ListBroken{}, "broken by the {Anomaly!} at {At}"},
	{fact.ListBroken{}, "not {At}, because a weaker level is broken: see the checks before"},
	{fact.ListNotRecorded{}, "{Reader!} read {Element} in {On}, and no append of it was recorded, " +
		"but the recording is not complete"},
	{fact.ListNotRecorded{},
		"{On} has {Element} in the end, and no append of it was recorded, but the recording is not complete"},
	{fact.ListMakers{Unknown: true},
		"{On} was deleted, and it is not known which transaction of unknown outcome had made it"},
	{fact.ListMakers{}, "{On} was deleted, and no transaction made it"},
	{fact.ListDeletedTwice{}, "{First} and {Second} both deleted {On}, and a list can be deleted only once"},
	{fact.ListUnreadRow{}, "no transaction read what is at place {Place} of {On}, and other elements are behind it"},
	{fact.ListPerhapsOverwritten{},
		"{On} has no {Element} in the end, and it is not known whether it was overwritten or lost"},
	{fact.ListNoTimes{}, "the history has no times of one clock"},
	{fact.ListCausalOpen{},
		"causal consistency of lists is decided only if a weaker level is broken or a stronger one holds"},
	{fact.ListClocks{}, "nothing surely contradicts real time, " +
		"but the clients' clocks are known only to within {Within} of each other"},
	{fact.ListSameVersion{},
		"transactions wrote over the same version of a list, and it is not known which of them was first"},
	{fact.ListBaseUnknown{}, "it is not recorded what a transaction had read of a list before it wrote the list"},
	{fact.ListUnreadAppends{}, "several transactions appended to one list what nobody read, " +
		"and the search for their order came to its bound"},
	{fact.ListAbsent{},
		"a list was read as absent, and the read may be from before it was made or from after it was deleted"},
	{fact.ListHistoryLacks{}, "the history lacks {one} {Transaction id} and has later ones of its client: " +
		"it is altered or damaged: restore it from a copy"},
	{fact.ListHistoryRepeats{}, "the history has {one} {Transaction id} twice, or behind a later one of its client: " +
		"it is altered or damaged: restore it from a copy"},
}

// lists returns the clause of a fact of the checker of lists that needs more than a wording; empty for others.
func (s Speaker) lists(f fact.Fact) string {
	switch f := f.(type) {
	case fact.ListPartSeen:
		if f.On == f.SeenOn && !f.Later {
			return s.fill("{Reader} read {On} as {Read}, without {Missing} of {Writer}, and later as {Seen}, "+
				"with an element of that transaction", f)
		}
	case fact.ListCycle:
		return s.listCycle(f)
	}
	return ""
}

// mostOfCycle limits the number of transactions of a cycle in a sentence.
const mostOfCycle = 4

func (s Speaker) listCycle(f fact.ListCycle) string {
	if len(f.Why) == 2 {
		return s.bothBefore(f.Why)
	}
	if f.Length > mostOfCycle || len(f.Members) < f.Length {
		return fmt.Sprintf("%s, beginning with %s, must each come before the next, and the last before the first",
			check.Plural(f.Length, s.one()), s.Member(f.Members[0]))
	}
	var parts []string
	for i, m := range f.Members {
		parts = append(parts, fmt.Sprintf("%s must come before %s", s.Member(m), s.Member(f.Members[(i+1)%len(f.Members)])))
	}
	return strings.Join(parts, ", ")
}

// bothBefore describes a cycle of two transactions by its two dependencies.
func (s Speaker) bothBefore(why []fact.Fact) string {
	return s.Clause(why[0]) + "; " + s.Clause(why[1]) + ". So each must come before the other"
}

// listRead returns a clause with the reader and the result of a read. The short form leaves the result out. Without a
// reader, the end state is the reader.
func (s Speaker) listRead(r fact.ListRead, short bool) string {
	switch ended := r.Reader == (fact.Member{}); {
	case ended && short:
		return "the end state has " + s.On(r.On)
	case ended:
		return fmt.Sprintf("%s is %s in the end", s.On(r.On), s.listOf(r.Read))
	case short:
		return fmt.Sprintf("%s read %s", s.Member(r.Reader), s.On(r.On))
	}
	return fmt.Sprintf("%s read %s as %s", s.Member(r.Reader), s.On(r.On), s.listOf(r.Read))
}

func listElement(e fact.Element) string {
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
		texts = append(texts, cmp.Or(string(e), "nothing"))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

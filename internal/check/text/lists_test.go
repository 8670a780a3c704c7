package text

import (
	"os"
	"reflect"
	"regexp"
	"testing"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// listFacts returns every fact of the checker of lists in all its variants.
func listFacts() []fact.Fact {
	one, two := fact.Member{ID: history.NewID(1, 2, 3)}, fact.Member{ID: history.NewID(1, 4, 5)}
	list := func(length int, last ...fact.Element) fact.Elements { return fact.Elements{Length: length, Last: last} }
	read := fact.ListRead{Reader: one, On: "list 1-7", Read: list(3, "1-1-1.0", "1-4-5.0", "1-2-2.1")}
	end := fact.ListRead{On: "list 1-7", Read: list(0)}
	pair := fact.ListPair{First: one, Second: two}
	long := list(40, "1-1-1.0", "")
	return []fact.Fact{
		fact.ListGarbage{ListRead: read, Element: "1-4-5.0"},
		fact.ListForeign{On: "list 1-7", End: list(1, "1-9-9.0"), Element: "1-9-9.0"},
		fact.ListUnexpected{Found: "list 1-7 with a text of 9 bytes, which no transaction writes"},
		fact.ListDuplicate{On: "list 1-7", Element: "1-1-1.0", Known: long},
		fact.ListDuplicate{On: "list 1-7", Element: "1-1-1.0", Known: long, TakenBack: true},
		fact.ListDisorder{By: one, On: "list 1-7", Element: "1-1-1.1", Known: long},
		fact.ListContradiction{ListRead: read, Other: long},
		fact.ListContradiction{ListRead: end, Other: long},
		fact.ListOtherRow{ListRead: read, Place: 2, Found: "1-4-5.0", Other: "1-4-6.0"},
		fact.ListOtherRow{ListRead: end, Place: 2, Found: "1-4-5.0", Other: "1-4-6.0"},
		fact.ListOtherBase{ListRead: read, Element: "1-4-5.0", Writer: two, Base: long},
		fact.ListOtherBase{ListRead: read, Element: "1-4-5.0", Writer: two, Base: long, Retried: true},
		fact.ListAppendedTwice{First: one, Second: two, On: "list 1-7", Element: "5"},
		fact.ListAborted{ListRead: read, Writer: two, Element: "1-4-5.0"},
		fact.ListDirtyAppend{By: one, On: "list 1-7", Element: "1-2-3.0", Writer: two, Behind: "1-4-5.0"},
		fact.ListDirtyAppend{By: one, On: "list 1-7", Element: "1-2-3.0", Writer: two, Behind: "1-4-5.0", Elsewhere: true},
		fact.ListHole{By: one, On: "list 1-7", Element: "1-2-3.0", Place: 4},
		fact.ListHalfway{ListRead: read, Writer: two},
		fact.ListFuture{ListRead: read, Element: "1-2-3.0"},
		fact.ListOwnMissing{ListRead: read, Element: "1-2-3.0"},
		fact.ListOwnMissing{ListRead: read, Element: "1-2-3.0", Range: true},
		fact.ListPartSeen{ListRead: read, Missing: "1-4-5.1", Writer: two, SeenOn: "list 1-8", Seen: long},
		fact.ListPartSeen{ListRead: read, Missing: "1-4-5.1", Writer: two, SeenOn: "list 1-7", Seen: long},
		fact.ListPartSeen{ListRead: read, Missing: "1-4-5.1", Writer: two, SeenOn: "list 1-8", Seen: long, Later: true},
		fact.ListLost{By: one, On: "list 1-7", Element: "1-2-3.0", End: list(0)},
		fact.ListGhost{By: one, Outcome: history.Aborted, On: "list 1-7", Element: "1-2-3.0"},
		fact.ListLostUpdate{First: one, Second: two, On: "list 1-7", Read: long},
		fact.ListCycle{Length: 2, Members: []fact.Member{one, two}, Why: []fact.Fact{fact.ListBefore{ListPair: pair}, fact.ListSession{ListPair: fact.ListPair{First: two, Second: one}}}},
		fact.ListCycle{Length: 3, Members: []fact.Member{one, two, {Name: "T9"}}},
		fact.ListCycle{Length: 9, Members: []fact.Member{one}},
		fact.ListBefore{ListPair: pair},
		fact.ListEnded{ListPair: pair, By: 3 * time.Millisecond},
		fact.ListEnded{ListPair: pair},
		fact.ListEither{ListPair: pair, On: "list 1-7"},
		fact.ListSession{ListPair: pair},
		fact.ListSaw{ListPair: pair, On: "list 1-7", Read: long, Element: "1-1-1.0"},
		fact.ListBehind{ListPair: pair, On: "list 1-7", Element: "1-2-3.0", Next: "1-4-5.0"},
		fact.ListMissed{ListPair: pair, On: "list 1-7", Read: long, Element: "1-4-5.0"},
		fact.ListRangeMissed{ListPair: pair, On: "list 1-7"},
		fact.ListDeleted{ListPair: pair, On: "list 1-7", Read: long},
		fact.ListDeleted{ListPair: pair, On: "list 1-7", Wrote: "1-2-3.0"},
		fact.ListOverwritten{ListPair: pair, On: "list 1-7", Element: "1-2-3.0", End: long},
		fact.ListAppended{On: "list 1-7", Element: "1-2-3.0"},
		fact.ListOwnRead{On: "list 1-7"},
		fact.ListOwnRead{On: "list 1-7", Known: true, Read: list(0)},
		fact.ListDelete{On: "list 1-7"},
		fact.ListRange{Low: "list 1-7", High: "list 1-9", Found: 2},
		fact.ListMore{Operations: 1200},
		fact.ListsAgree{Prefixes: true},
		fact.ListsAgree{},
		fact.ListsDurable{},
		fact.ListsDurable{Overwritten: true},
		fact.ListsNoGhost{},
		fact.ListsOrdered{Transactions: 1, Dependencies: 1200},
		fact.ListsOrdered{Sessions: true},
		fact.ListsOrdered{RealTime: true},
		fact.ListLevelHolds{},
		fact.ListBroken{Anomaly: "lost update (P4)", At: "snapshot-isolation"},
		fact.ListBroken{At: "strict-serializable"},
		fact.ListNotRecorded{Reader: one, On: "list 1-7", Element: "1-4-5.0"},
		fact.ListNotRecorded{On: "list 1-7", Element: "1-4-5.0"},
		fact.ListMakers{On: "list 1-7"},
		fact.ListMakers{On: "list 1-7", Unknown: true},
		fact.ListDeletedTwice{ListPair: pair, On: "list 1-7"},
		fact.ListUnreadRow{On: "list 1-7", Place: 3},
		fact.ListPerhapsOverwritten{On: "list 1-7", Element: "1-4-5.0"},
		fact.ListCausalOpen{},
		fact.ListNoTimes{},
		fact.ListClocks{Within: time.Millisecond},
		fact.ListSameVersion{},
		fact.ListBaseUnknown{},
		fact.ListUnreadAppends{},
		fact.ListAbsent{},
		fact.ListHistoryLacks{Transaction: one.ID},
		fact.ListHistoryRepeats{Transaction: one.ID},
	}
}

// listSentences holds the clauses of listFacts, in the same order.
var listSentences = []string{
	"transaction 1-2-3 read list 1-7 as [1-1-1.0, 1-4-5.0, 1-2-2.1], and no transaction appended element 1-4-5.0",
	"list 1-7 has element 1-9-9.0 in the end, and no transaction appended it: [1-9-9.0]",
	"list 1-7 with a text of 9 bytes, which no transaction writes",
	"list 1-7 contains element 1-1-1.0 twice: [… 38 more, 1-1-1.0, nothing]",
	"list 1-7 contains element 1-1-1.0 twice: [… 38 more, 1-1-1.0, nothing]; one of the two is not there in the end, so it is of a try that was rolled back",
	"transaction 1-2-3 appended element 1-1-1.1 to list 1-7 after another element, which is not before it there: [… 38 more, 1-1-1.0, nothing]",
	"transaction 1-2-3 read list 1-7 as [1-1-1.0, 1-4-5.0, 1-2-2.1], but other reads of the list have [… 38 more, 1-1-1.0, nothing]: neither is the beginning of the other",
	"list 1-7 is [] in the end, but other reads of the list have [… 38 more, 1-1-1.0, nothing]: neither is the beginning of the other",
	"transaction 1-2-3 read list 1-7 with element 1-4-5.0 at place 2, but another read has element 1-4-6.0 there",
	"the end state has list 1-7 with element 1-4-5.0 at place 2, but another read has element 1-4-6.0 there",
	"transaction 1-2-3 read list 1-7 as [1-1-1.0, 1-4-5.0, 1-2-2.1], but transaction 1-4-5 had read [… 38 more, 1-1-1.0, nothing] before it appended element 1-4-5.0",
	"transaction 1-2-3 read list 1-7 as [1-1-1.0, 1-4-5.0, 1-2-2.1], but transaction 1-4-5 had read [… 38 more, 1-1-1.0, nothing] before it appended element 1-4-5.0; it was tried more than once, so a try that was rolled back may have been read",
	"transaction 1-2-3 and transaction 1-4-5 both appended element 5 to list 1-7",
	"transaction 1-2-3 read list 1-7 as [1-1-1.0, 1-4-5.0, 1-2-2.1], and transaction 1-4-5, which appended element 1-4-5.0, was aborted",
	"transaction 1-2-3 appended element 1-2-3.0 to list 1-7, which had the element 1-4-5.0 of transaction 1-4-5, which was aborted",
	"transaction 1-2-3 appended element 1-2-3.0 to list 1-7, which had the element 1-4-5.0 of transaction 1-4-5, which appended it behind other elements",
	"transaction 1-2-3 appended element 1-2-3.0 to list 1-7 at place 4, and there is no element at the place before it in the end",
	"transaction 1-2-3 read list 1-7 as [1-1-1.0, 1-4-5.0, 1-2-2.1], and transaction 1-4-5, which appended the last element, appended more to the list before it committed",
	"transaction 1-2-3 read list 1-7 as [1-1-1.0, 1-4-5.0, 1-2-2.1] before it appended element 1-2-3.0 itself",
	"transaction 1-2-3 appended element 1-2-3.0 to list 1-7, then read the list as [1-1-1.0, 1-4-5.0, 1-2-2.1]",
	"transaction 1-2-3 appended element 1-2-3.0 to list 1-7, then read a range and did not find the list",
	"transaction 1-2-3 read list 1-7 as [1-1-1.0, 1-4-5.0, 1-2-2.1], without element 1-4-5.1 of transaction 1-4-5, and later list 1-8 as [… 38 more, 1-1-1.0, nothing], with an element of that transaction",
	"transaction 1-2-3 read list 1-7 as [1-1-1.0, 1-4-5.0, 1-2-2.1], without element 1-4-5.1 of transaction 1-4-5, and later as [… 38 more, 1-1-1.0, nothing], with an element of that transaction",
	"transaction 1-2-3 read list 1-8 as [… 38 more, 1-1-1.0, nothing], with an element of transaction 1-4-5, and later read list 1-7 as [1-1-1.0, 1-4-5.0, 1-2-2.1], without element 1-4-5.1 of the same transaction",
	"transaction 1-2-3 appended element 1-2-3.0 to list 1-7 and was acknowledged, and the list is [] in the end",
	"list 1-7 has element 1-2-3.0 in the end, and transaction 1-2-3, which appended it, was aborted",
	"transaction 1-2-3 and transaction 1-4-5 both read list 1-7 as [… 38 more, 1-1-1.0, nothing] and both appended to it, so one of them did not see the other",
	"transaction 1-2-3 comes before transaction 1-4-5; transaction 1-4-5 and then transaction 1-2-3 are of one client, which had the answer to the first before it began the second. So each must come before the other",
	"transaction 1-2-3 must come before transaction 1-4-5, transaction 1-4-5 must come before T9, T9 must come before transaction 1-2-3",
	"9 transactions, beginning with transaction 1-2-3, must each come before the next, and the last before the first",
	"transaction 1-2-3 comes before transaction 1-4-5",
	"transaction 1-2-3 ended 3 ms before transaction 1-4-5 began",
	"transaction 1-2-3 ended before transaction 1-4-5 began",
	"transaction 1-2-3 and transaction 1-4-5 both appended to list 1-7 what no transaction read, so one of them came first: if it was transaction 1-2-3",
	"transaction 1-2-3 and then transaction 1-4-5 are of one client, which had the answer to the first before it began the second",
	"transaction 1-4-5 read list 1-7 as [… 38 more, 1-1-1.0, nothing], with element 1-1-1.0 of transaction 1-2-3",
	"transaction 1-4-5 appended element 1-4-5.0 to list 1-7 behind element 1-2-3.0 of transaction 1-2-3",
	"transaction 1-2-3 read list 1-7 as [… 38 more, 1-1-1.0, nothing], without element 1-4-5.0, which transaction 1-4-5 appended",
	"transaction 1-2-3 read a range without list 1-7, which transaction 1-4-5 made",
	"transaction 1-2-3 read list 1-7 as [… 38 more, 1-1-1.0, nothing], and transaction 1-4-5 deleted the list",
	"transaction 1-2-3 appended element 1-2-3.0 to list 1-7, and transaction 1-4-5 deleted the list",
	"transaction 1-2-3 appended element 1-2-3.0 to list 1-7, and transaction 1-4-5 wrote what is there in the end: [… 38 more, 1-1-1.0, nothing]",
	"append 1-2-3.0 to list 1-7",
	"read list 1-7",
	"read list 1-7: []",
	"delete list 1-7",
	"read all from list 1-7 to list 1-9: found 2 lists",
	"and 1,200 more",
	"each read of a list is a beginning of the same list, and each element was appended",
	"no two reads of a list contradict each other, and each element was appended",
	"the end state has each acknowledged append",
	"the end state has each acknowledged append that no transaction overwrote after it had read the list without it",
	"the end state has no element of an aborted transaction, and none that no transaction appended",
	"1 committed transaction, 1,200 dependencies, no cycle",
	"the order of all transactions agrees with the order of each client",
	"the order of all transactions agrees with real time",
	"it holds",
	"broken by the lost update (P4) at snapshot-isolation",
	"not strict-serializable, because a weaker level is broken: see the checks before",
	"transaction 1-2-3 read element 1-4-5.0 in list 1-7, and no append of it was recorded, but the recording is not complete",
	"list 1-7 has element 1-4-5.0 in the end, and no append of it was recorded, but the recording is not complete",
	"list 1-7 was deleted, and no transaction made it",
	"list 1-7 was deleted, and it is not known which transaction of unknown outcome had made it",
	"transaction 1-2-3 and transaction 1-4-5 both deleted list 1-7, and a list can be deleted only once",
	"no transaction read what is at place 3 of list 1-7, and other elements are behind it",
	"list 1-7 has no element 1-4-5.0 in the end, and it is not known whether it was overwritten or lost",
	"causal consistency of lists is decided only if a weaker level is broken or a stronger one holds",
	"the history has no times of one clock",
	"nothing surely contradicts real time, but the clients' clocks are known only to within 1 ms of each other",
	"transactions wrote over the same version of a list, and it is not known which of them was first",
	"it is not recorded what a transaction had read of a list before it wrote the list",
	"several transactions appended to one list what nobody read, and the search for their order came to its bound",
	"a list was read as absent, and the read may be from before it was made or from after it was deleted",
	"the history lacks transaction 1-2-3 and has later ones of its client: it is altered or damaged: restore it from a copy",
	"the history has transaction 1-2-3 twice, or behind a later one of its client: it is altered or damaged: restore it from a copy",
}

// TestListClauses checks the clause of each fact of the checker of lists.
func TestListClauses(t *testing.T) {
	s := Speaker{check.Words{One: "transaction"}}
	facts := listFacts()
	if len(facts) != len(listSentences) {
		t.Fatalf("%d facts and %d clauses", len(facts), len(listSentences))
	}
	tested := map[string]bool{}
	for i, f := range facts {
		tested[reflect.TypeOf(f).Name()] = true
		if got := s.Clause(f); got != listSentences[i] {
			t.Errorf("%T: got %q, want %q", f, got, listSentences[i])
		}
	}
	wantTested(t, "lists.go", tested)
}

// wantTested compares the facts that a file declares with the facts whose clauses are tested.
func wantTested(t *testing.T, file string, tested map[string]bool) {
	t.Helper()
	source, err := os.ReadFile("../fact/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range regexp.MustCompile(`func \((\w+)\) Fact`).FindAllSubmatch(source, -1) {
		if !tested[string(kind[1])] {
			t.Errorf("no clause of fact.%s is tested", kind[1])
		}
	}
}

// TestListFindings checks the sentences of findings with a heading and with an anomaly.
func TestListFindings(t *testing.T) {
	s := Speaker{check.Words{One: "transaction"}}
	finding := func(anomaly string, is fact.Fact, count int) *check.Finding {
		return &check.Finding{Anomaly: anomaly, Forbidden: isolation.ReadCommitted, Count: count, Instances: []fact.Fact{is}}
	}
	by := fact.Member{ID: history.NewID(1, 2, 3)}
	for _, tc := range []struct {
		found *check.Finding
		want  string
	}{
		{finding("", fact.ListLost{By: by, On: "list 1-7", Element: "1-2-3.0"}, 2),
			"2 acknowledged appends lost, first: transaction 1-2-3 appended element 1-2-3.0 to list 1-7 and was acknowledged, and the list is [] in the end."},
		{finding("", fact.ListGhost{By: by, Outcome: history.Aborted, On: "list 1-7", Element: "1-2-3.0"}, 1),
			"1 append in the end state of transactions that were not committed: list 1-7 has element 1-2-3.0 in the end, and transaction 1-2-3, which appended it, was aborted."},
		{finding("", fact.ListForeign{On: "list 1-7", Element: "1-9-9.0"}, 3),
			"3 elements in the end state that no transaction appended, first: list 1-7 has element 1-9-9.0 in the end, and no transaction appended it: []."},
		{finding("aborted read (G1a)", fact.ListAborted{ListRead: fact.ListRead{Reader: by, On: "list 1-7"}, Writer: by, Element: "1-2-3.0"}, 2),
			"Aborted read (G1a): 2 times, first: transaction 1-2-3 read list 1-7 as [], and transaction 1-2-3, which appended element 1-2-3.0, was aborted."},
	} {
		if got := s.Finding(tc.found); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

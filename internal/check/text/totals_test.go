package text

import (
	"errors"
	"testing"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/money"
)

// bank has the nouns of a workload with a ledger, plain the nouns of a workload without one.
var (
	bank  = Speaker{check.Words{One: "transfer", Book: "ledger", Part: "leg", Before: "account ", Amount: money.Text}}
	plain = Speaker{check.Words{One: "transaction"}}
)

func id(n uint64) history.ID { return history.NewID(1, 0, n) }

func transfer(n uint64) fact.Member { return fact.Member{ID: id(n)} }

// sentence is a fact with its exact clause.
type sentence struct {
	say  Speaker
	fact fact.Fact
	want string
}

func testSentences(t *testing.T, list []sentence) {
	t.Helper()
	for _, tc := range list {
		if got := tc.say.Clause(tc.fact); got != tc.want {
			t.Errorf("%+v\n got %q\nwant %q", tc.fact, got, tc.want)
		}
	}
}

// commonSentences holds the facts that any check may state, with their clauses.
var commonSentences = []sentence{
	{bank, fact.NoEnd{},
		"the end state was not downloaded; give --db"},
	{bank, fact.NoEnd{Run: 3},
		"run 3 may have gone on after the end state was downloaded; give --db to download it now"},
	{bank, fact.NoHistory{},
		"there is no history of what the clients did; give the run's directory"},
	{bank, fact.Part{Accounts: 1, Transactions: 3000000, Of: 38000000},
		"38,000,000 transfers are too many to examine each of them; the 3,000,000 that touch 1 account show no violation"},
	{bank, fact.CutOff{},
		"the recording was cut off, so what was sent last is not known"},
	{bank, check.Unreadable(errors.New("history/end-objects.bin: checksum of block 3")),
		"history/end-objects.bin: checksum of block 3"},
	{bank, fact.OtherRuns{Runs: []uint64{2}, Count: 1},
		"the ledger has 1 transfer of run 2, whose recording was not given: give its directory too"},
	{bank, fact.OtherRuns{Runs: []uint64{2, 5}, More: 3, Count: 9},
		"the ledger has 9 transfers of the runs 2, 5 and 3 more, whose recordings were not given: give their directories too"},
	{plain, fact.OtherRuns{Runs: []uint64{2}, Count: 2},
		"the end state has 2 transactions of run 2, whose recording was not given: give its directory too"},
	{bank, fact.Clocks{Count: fact.Count{N: 1, Noun: "transfer"}, Within: 3 * time.Millisecond},
		"nothing surely contradicts real time, but the clients' clocks are known only to within 3 ms of each other, which is too coarse for 1 transfer"},
	{bank, fact.Clocks{Count: fact.Count{N: 2, Noun: "record"}, Within: 3 * time.Millisecond},
		"nothing surely contradicts real time, but the clients' clocks are known only to within 3 ms of each other, which is too coarse for 2 records"},
	{bank, fact.ClocksApart{Clocks: 2},
		"within each clock the order agrees with real time, but the 2 clocks of the clients were not compared"},
	{bank, fact.Nothing{Noun: "transfer", Verb: "acknowledged"},
		"no transfer was acknowledged"},
}

// runSentences holds the facts about a run as a whole, with their clauses.
var runSentences = []sentence{
	{bank, fact.FaultTrouble{Fault: "kill n1", AtSeconds: 2, State: fact.NotInjected, Error: "no such node"},
		"kill n1 at 2 s was not injected: no such node"},
	{bank, fact.FaultTrouble{Fault: "kill n1", AtSeconds: 2.5, State: fact.NotHealed},
		"kill n1 at 2.5 s was not healed"},
	{bank, fact.FaultTrouble{Fault: "kill n1", AtSeconds: 2, State: fact.HealUnknown},
		"kill n1 at 2 s is not known to have been healed"},
	{bank, fact.FaultTrouble{Fault: "kill n1", AtSeconds: 2, State: fact.NotObserved},
		"kill n1 at 2 s was injected, but its effect was not observed"},
	{bank, fact.FaultsDone{Done: 1},
		"1 fault was injected, seen by its effect, and healed"},
	{bank, fact.FaultsDone{Done: 3, Skipped: 1},
		"3 faults were injected, seen by their effect, and healed; 1 was skipped, as the script allows"},
	{bank, fact.NoFaultDone{},
		"no fault of the script was injected"},
	{bank, fact.NoFaultDone{Skipped: 2},
		"no fault of the script was injected; 2 were skipped, as the script allows"},
	{bank, fact.HealsUnknown{},
		"the run was cut off, so it is not known what was healed"},
	{bank, fact.EarlierLost{Rows: 1}, "the ledger had 1 row of earlier runs when the run began, and lacks them now"},
	{bank, fact.OfRun{Run: "first", What: fact.HealsUnknown{}},
		"run first: the run was cut off, so it is not known what was healed"},
}

// bookSentences holds the facts about balances and ledgers, with their clauses.
var bookSentences = []sentence{
	{bank, fact.Objects{Noun: "account", Found: 0, Made: 200},
		"the load made 200 accounts, and the end state has 0"},
	{bank, fact.Objects{Noun: "account", Found: 2, Made: 1},
		"the load made 1 account, and the end state has 2"},
	{bank, fact.Objects{Noun: "account", Found: 2, Made: 2},
		"the end state has 2 accounts, as many as the load made, but not the same ones"},
	{bank, fact.Objects{Noun: "account", Found: 1, Made: 1},
		"the end state has 1 account, as many as the load made, but not the same one"},
	{bank, fact.Sum{End: 500_00, Load: 500_00, Accounts: 200},
		"the balances of 200 accounts add up to 500.00, as at the load"},
	{bank, fact.Sum{End: 400_00, Load: 500_00, Accounts: 200},
		"100.00 net lost: the balances add up to 400.00 in the end, and added up to 500.00 at the load"},
	{bank, fact.Sum{End: 600_00, Load: 500_00, Accounts: 200},
		"100.00 net appeared from nowhere: the balances add up to 600.00 in the end, and added up to 500.00 at the load"},
	{bank, fact.Sum{Load: 500_00, Overflow: true},
		"the sum of the balances, or its difference from 500.00 at the load, is more than 64 bits hold"},
	{bank, fact.Negative{Object: "A", By: id(7), Balance: -5_00, Version: 3, Ended: true},
		"account A holds -5.00 in the end; transfer 1-0-7 wrote it last"},
	{bank, fact.Negative{Object: "A", Balance: -5_00, Ended: true},
		"account A holds -5.00 in the end"},
	{bank, fact.Negative{Object: "A", By: id(7), Balance: -5_00, Version: 3},
		"transfer 1-0-7 left account A at -5.00 at version 3, by opening balance and ledger"},
	{bank, fact.NeverNegative{},
		"no balance is below zero, and by the ledger none ever was"},
	{bank, fact.ForeignRow{Row: "stroppy_account (1, 2)"},
		"the end state has a row that neither the load nor a client made: stroppy_account (1, 2)"},
	{bank, fact.ForeignLeg{By: id(7)},
		"transfer 1-0-7 has a leg in the ledger on an object that no load made"},
	{bank, fact.ForeignLeg{By: id(7), Object: "A"},
		"transfer 1-0-7 has a leg in the ledger on account A, which no load made"},
	{bank, fact.ForeignLeg{},
		"the ledger has a leg on an object that no load made"},
	{bank, fact.Books{Object: "A", Balance: 600, Want: 500, Version: 3, Legs: 3},
		"account A holds 6.00, but opening balance and ledger make 5.00 (1.00 off)"},
	{bank, fact.Books{Object: "A", Balance: 500, Want: 600, Version: 3, Legs: 1},
		"account A holds 5.00, but opening balance and ledger make 6.00 (-1.00 off); it has version 3 and 1 ledger leg"},
	{bank, fact.Books{Object: "A", Balance: 500, Want: 500, Version: 3, Legs: 4},
		"account A has version 3 but 4 ledger legs"},
	{bank, fact.BooksClose{Accounts: 200},
		"the books of 200 accounts were compared with the ledger, and all close"},
	{bank, fact.SameVersion{First: transfer(1), Second: transfer(2), Object: "A", Version: 3},
		"transfer 1-0-1 and transfer 1-0-2 both made version 3 of account A"},
	{bank, fact.SameVersion{First: transfer(1), Second: transfer(2), Object: "A", Version: 3, Ledger: true},
		"transfer 1-0-1 and transfer 1-0-2 are both in the ledger as the maker of version 3 of account A"},
	{bank, fact.SameVersion{First: transfer(1), Second: transfer(2), Object: "A", Version: 3, Ledger: true, Closes: true},
		"transfer 1-0-1 and transfer 1-0-2 are both in the ledger as the maker of version 3 of account A, which holds the amounts of both"},
	{bank, fact.NoSuchLeg{Object: "A", By: id(7), Version: 3},
		"account A names transfer 1-0-7 as the maker of its last version, 3, and the ledger has no such leg"},
	{bank, fact.NoSuchLeg{Object: "A", Version: 3},
		"account A has version 3 and names no transfer as its maker"},
	{bank, fact.LaterLeg{Object: "A", Version: 3},
		"account A ends at version 3, and the ledger has a leg of a later version"},
	{bank, fact.ImpossibleVersion{By: id(7)},
		"transfer 1-0-7 has a leg in the ledger with a version that its account cannot have had"},
	{bank, fact.UnexplainedBalance{By: id(7), Object: "A", Balance: 500, Version: 3},
		"before the end, transaction 1-0-7 read 5.00 at version 3 of account A, which the ledger does not explain"},
	{bank, fact.Presence{Object: "A", There: true},
		"the end state has account A, which the ledger shows as closed"},
	{bank, fact.Presence{Object: "A"},
		"the end state does not have account A, which the ledger shows as opened and never closed"},
	{bank, fact.OverLimit{By: id(7), Object: "A", Sum: 600, Most: 500},
		"transfer 1-0-7 saw that the accounts opened in the group of account A together hold 6.00, which is 1.00 more than the allowed 5.00"},
	{bank, fact.OverLimit{Object: "A", Sum: 600, Most: 500},
		"in the end the accounts opened in the group of account A together hold 6.00, which is 1.00 more than the allowed 5.00"},
	{bank, fact.OverLimit{By: id(7), Object: "A", Low: 1000, Sum: 600, Most: 500},
		"transfer 1-0-7 saw that the accounts under 10.00 opened in the group of account A together lack 6.00, which is 1.00 more than the allowed 5.00"},
	{bank, fact.UnderLimit{Limit: 500},
		"no transaction saw the accounts opened in one group hold more than 5.00; the end state does not show it either"},
	{bank, fact.UnderLimit{Limit: 500, Low: 1000, Cover: 700},
		"no transaction saw the accounts opened in one group hold more than 5.00, or those under 10.00 lack more than 7.00; the end state does not show it either"},
}

// presenceSentences holds the facts about missing or unexpected data, with their clauses.
var presenceSentences = []sentence{
	{bank, fact.Lost{By: id(7)},
		"transfer 1-0-7 was acknowledged and is not in the ledger"},
	{plain, fact.Lost{By: id(7)},
		"transaction 1-0-7 was acknowledged and is not in the end state"},
	{bank, fact.Altered{By: id(7)},
		"transfer 1-0-7 was acknowledged, and its legs in the ledger are not those that were sent"},
	{bank, fact.Altered{By: id(7), Unknown: true},
		"transfer 1-0-7 is of unknown outcome, and its legs in the ledger are not those that were sent"},
	{plain, fact.Altered{By: id(7)},
		"transaction 1-0-7 was acknowledged, and its parts in the end state are not those that were sent"},
	{bank, fact.NotFound{By: id(7)},
		"transaction 1-0-7 did not find an account that the load had made"},
	{bank, fact.AllThere{Count: 1},
		"1 transfer acknowledged, and it is in the ledger with the legs that were sent"},
	{bank, fact.AllThere{Count: 1200},
		"1,200 transfers acknowledged, all in the ledger with the legs that were sent"},
	{bank, fact.Ghost{By: id(7), Outcome: history.Aborted},
		"transfer 1-0-7 was aborted, and is in the ledger"},
	{bank, fact.ClosedGhost{By: id(7)},
		"a look-up closed transfer 1-0-7 as not applied, and it was applied later"},
	{bank, fact.NeverSent{By: id(7)},
		"transfer 1-0-7 is in the ledger, and no client sent it"},
	{bank, fact.NeverSent{By: id(7), Tombstone: true},
		"the ledger has a tombstone of transfer 1-0-7, which no client sent"},
	{bank, fact.NoGhosts{},
		"every transfer in the ledger was sent, and none of them was rejected or aborted"},
	{bank, fact.UnsentReads{Count: 1},
		"the ledger has 1 transfer that no client sent, so what it read is not known"},
	{bank, fact.UnsentReads{Count: 2},
		"the ledger has 2 transfers that no client sent, so their reads are not known"},
	{bank, fact.Twice{By: id(7)},
		"transfer 1-0-7 has a leg in the ledger twice"},
	{bank, fact.TwoVersions{By: id(7), Object: "A", Made: 3, Seen: 5},
		"transfer 1-0-7 made version 3 of account A and was seen as the maker of version 5: it was applied twice"},
	{bank, fact.TwoVersions{By: id(7), Object: "A", Made: 3, Seen: 5, Open: true},
		"transfer 1-0-7 was seen as the maker of two versions of account A, whose books do not close and do not show how often it was applied"},
	{bank, fact.NoneTwice{},
		"no transfer was applied twice"},
	{bank, fact.AuditSum{By: id(7), Saw: 400, Total: 500},
		"audit 1-0-7 saw 4.00 in place of 5.00"},
	{bank, fact.AuditTorn{By: id(7)},
		"audit 1-0-7 saw no consistent cut"},
	{bank, fact.AuditsAgree{},
		"no audit was completed"},
	{bank, fact.AuditsAgree{Whole: 1},
		"1 whole audit saw exactly the total and a consistent cut"},
	{bank, fact.AuditsAgree{Sampled: 2},
		"2 sampled audits saw a consistent cut"},
	{bank, fact.AuditsAgree{Whole: 2, Sampled: 1},
		"2 whole audits saw exactly the total and a consistent cut, and 1 sampled audit saw a consistent cut"},
	{bank, fact.NoAudit{},
		"no audit was completed"},
	{bank, fact.NoAudit{Several: true},
		"no audit was completed in one of the runs"},
	{bank, fact.NoAudits{},
		"no audits were asked for"},
}

// rowSentences holds the facts about rows without versions, with their clauses.
var rowSentences = []sentence{
	{rows, fact.Growth{Groups: []fact.Group{{Name: "accounts", Grew: 5}, {Name: "tellers", Grew: 5}, {Name: "branches", Grew: 5}}, Added: 5},
		"the balances of accounts, tellers and branches each grew by 5, the sum of the amounts of the history"},
	{rows, fact.Growth{Groups: []fact.Group{{Name: "accounts", Grew: 5}, {Name: "tellers", Grew: -4}}, Added: 5, Driven: true},
		"the amounts of all committed transactions add up to 5, and the balances of the accounts grew by 5 and the balances of the tellers grew by -4"},
	{rows, fact.RowBooks{Object: "teller 3", Balance: 7, Want: 5},
		"teller 3 holds 7, but its opening balance and the added amounts make 5 (2 off)"},
	{rows, fact.RowsFit{Rows: 1},
		"the balance of 1 row was compared with the history, and it fits"},
	{rows, fact.RowsFit{Rows: 1100, Bare: true},
		"the balances of 1,100 rows were compared with what was acknowledged (no history was kept, which would distinguish a lost, a doubled and a foreign transaction), and all fit"},
	{rows, fact.RowsFit{Rows: 1100, Partly: true, Foreign: 1},
		"the balances of 1,100 rows were compared with the history, and with what was acknowledged by runs that kept none, and all fit; the amounts include 1 row of another program"},
	{rows, fact.ForeignAmounts{Groups: []string{"accounts", "tellers"}},
		"the history has amounts on accounts or tellers that no load made"},
	{rows, fact.Loose{First: []history.ID{id(1)}, Count: 1},
		"1 transaction of unknown outcome left nothing that shows whether it was applied: 1-0-1"},
	{rows, fact.Loose{First: []history.ID{id(1), id(2)}, Count: 5},
		"5 transactions of unknown outcome left nothing that shows whether they were applied: 1-0-1, 1-0-2 and 3 more"},
	{rows, fact.Emptied{Rows: 1},
		"the history no longer has 1 row that another program had written before the first run"},
	{rows, fact.Emptied{Rows: 3},
		"the history no longer has 3 rows that another program had written before the first run"},
	{rows, fact.Shared{Rows: 1},
		"another program has written to the tables since the first run: the history has 1 more row that no run wrote"},
	{rows, fact.Shared{Rows: 3},
		"another program has written to the tables since the first run: the history has 3 more rows that no run wrote"},
	{rows, fact.BareRun{Run: 3},
		"run 3 kept no history, and its recording was not given: give its directory too"},
	{rows, fact.BareRun{Run: 3, CutOff: true},
		"run 3 kept no history, and its recording was cut off"},
	{rows, fact.Reasons{List: []fact.Fact{fact.CutOff{}, fact.BareRun{Run: 3}}},
		"the recording was cut off, so what was sent last is not known; run 3 kept no history, and its recording was not given: give its directory too"},
	{rows, fact.NoPath{By: id(7), Object: "account 3", Balance: 5, Amount: -2},
		"transaction 1-0-7 read the balance 5 of account 3 and added -2, and no order of that account's transactions explains it"},
	{rows, fact.NoTimelyPath{By: id(7), Object: "account 3"},
		"no order of the transactions on account 3 explains what they read and agrees with real time"},
	{rows, fact.Paths{Transactions: 1},
		"an order of 1 committed transaction explains every balance that was read"},
	{rows, fact.UnsurePaths{Accounts: 1},
		"it is not known which transactions were applied to 1 account, or there are too many orders to try"},
	{rows, fact.UnsurePaths{Accounts: 2, RealTime: true},
		"what was read does not show the order on 2 accounts; --versions records it"},
}

var rows = Speaker{check.Words{One: "transaction", Book: "history", Part: "row"}}

// TestSentences checks the exact clause of every fact in the tables of this file.
func TestSentences(t *testing.T) {
	for _, list := range [][]sentence{commonSentences, runSentences, bookSentences, presenceSentences, rowSentences} {
		testSentences(t, list)
	}
}

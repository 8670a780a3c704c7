package text

import (
	"testing"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/cause"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// of returns a finding of n violations with one instance.
func of(n int, anomaly string, what fact.Fact) check.Finding {
	f := check.Finding{Check: check.Ledger, Anomaly: anomaly, Count: n, Instances: []fact.Fact{what}}
	for i := range min(n, 2) {
		f.Transactions = append(f.Transactions, id(uint64(7+i)))
	}
	return f
}

// TestFindingSentences checks the sentence of a finding: its heading or the name of its anomaly, its count,
// and the first instance or the transactions.
func TestFindingSentences(t *testing.T) {
	version := fact.SameVersion{First: transfer(1), Second: transfer(2), Object: "A", Version: 3}
	ledger := version
	ledger.Ledger = true
	skew := of(3, "lost update (P4)", fact.LostUpdate{First: transfer(1), Second: transfer(2), Object: "A", Version: 3})
	skew.Amount, skew.AtLeast = -7_00, true
	for _, tc := range []struct {
		say     Speaker
		finding check.Finding
		want    string
	}{
		{bank, of(1, "", fact.Lost{By: id(7)}),
			"1 transfer acknowledged and lost: 1-0-7."},
		{bank, of(1200, "", fact.Lost{By: id(7)}),
			"1,200 transfers acknowledged and lost: 1-0-7, 1-0-8 and 1,198 more."},
		{bank, of(1, "", fact.Altered{By: id(7)}),
			"1 transfer whose legs in the ledger are not those that were acknowledged: 1-0-7."},
		{bank, of(2, "", fact.Altered{By: id(7), Unknown: true}),
			"2 transfers of unknown outcome whose legs in the ledger are not those that were sent: 1-0-7, 1-0-8."},
		{plain, of(2, "", fact.Altered{By: id(7)}),
			"2 transactions whose parts in the end state are not those that were acknowledged: 1-0-7, 1-0-8."},
		{bank, of(1, "", fact.NotFound{By: id(7)}),
			"1 transaction did not find an account that the load had made: 1-0-7."},
		{bank, of(2, "", fact.NotFound{By: id(7)}),
			"2 transactions did not find an account that the load had made: 1-0-7, 1-0-8."},
		{bank, of(2, "", fact.Ghost{By: id(7), Outcome: history.Aborted}),
			"2 transfers reported as not applied, yet in the ledger: 1-0-7, 1-0-8."},
		{bank, of(1, "", fact.ClosedGhost{By: id(7)}),
			"1 transfer closed by a look-up as not applied, yet applied later: 1-0-7."},
		{bank, of(2, "", fact.NeverSent{By: id(7)}),
			"2 transfers in the ledger that no client sent: 1-0-7, 1-0-8."},
		{bank, of(1, "", fact.NeverSent{By: id(7), Tombstone: true}),
			"1 transfer with a tombstone in the ledger that no client sent: 1-0-7."},
		{bank, of(1, "", fact.Twice{By: id(7)}),
			"1 transfer with a leg twice in the ledger: 1-0-7."},
		{bank, of(1, "", fact.Books{Object: "A", Balance: 600, Want: 500, Version: 3, Legs: 3}),
			"1 account with books that do not close: account A holds 6.00, but opening balance and ledger make 5.00 (1.00 off)."},
		{bank, of(2, "", fact.Books{Object: "A", Balance: 600, Want: 500, Version: 3, Legs: 3}),
			"2 accounts with books that do not close, first: account A holds 6.00, but opening balance and ledger make 5.00 (1.00 off)."},
		{bank, of(1, "", version),
			"1 version made by two transfers: transfer 1-0-1 and transfer 1-0-2 both made version 3 of account A."},
		{bank, of(2, "", version),
			"2 versions made by two transfers, first: transfer 1-0-1 and transfer 1-0-2 both made version 3 of account A."},
		{bank, of(2, "", ledger),
			"2 times, first: transfer 1-0-1 and transfer 1-0-2 are both in the ledger as the maker of version 3 of account A."},
		{bank, of(1, "", fact.ForeignRow{Row: "stroppy_account (1, 2)"}),
			"1 unexpected row: the end state has a row that neither the load nor a client made: stroppy_account (1, 2)."},
		{bank, of(2, "", fact.Negative{Object: "A", By: id(7), Balance: -500, Ended: true}),
			"2 balances below zero, first: account A holds -5.00 in the end; transfer 1-0-7 wrote it last."},
		{bank, of(2, "", fact.TwoVersions{By: id(7), Object: "A", Made: 3, Seen: 5}),
			"2 transfers applied twice, first: transfer 1-0-7 made version 3 of account A and was seen as the maker of version 5: it was applied twice."},
		{bank, of(1, "", fact.AuditSum{By: id(7), Saw: 400, Total: 500}),
			"1 audit saw another total: audit 1-0-7 saw 4.00 in place of 5.00."},
		{bank, of(2, "", fact.AuditTorn{By: id(7)}),
			"2 audits saw no consistent cut: 1-0-7, 1-0-8."},
		{bank, of(1, "", fact.LaterLeg{Object: "A", Version: 3}),
			"Account A ends at version 3, and the ledger has a leg of a later version."},
		{bank, of(2, "", fact.LaterLeg{Object: "A", Version: 3}),
			"2 times, first: account A ends at version 3, and the ledger has a leg of a later version."},
		{bank, of(1, "dirty read (G1a)", odd(fact.NotApplied, history.Aborted, true)),
			"Dirty read (G1a): transfer 1-0-1 read version 3 of account A as made by transfer 1-0-2, which was aborted and is not in the ledger."},
		{bank, skew,
			"Lost update (P4): 7.00 net lost; at least 3 times, first: transfer 1-0-1 and transfer 1-0-2 both read version 2 of account A and both made version 3, so the effect of one of them is gone."},
	} {
		if got := tc.say.Finding(&tc.finding); got != tc.want {
			t.Errorf("%+v\n got %q\nwant %q", tc.finding.Instances[0], got, tc.want)
		}
	}
}

// TestHeadlineOfEachCause checks the headline for each kind of cause: its size, time, fault, nodes and
// leaders.
func TestHeadlineOfEachCause(t *testing.T) {
	found := func(kind cause.Kind, f check.Finding) *cause.Found { return &cause.Found{Finding: &f, Kind: kind} }
	lost := found(cause.LostWrites, of(7, "", fact.Lost{By: id(7)}))
	net := of(1, "lost update (P4)", fact.LostUpdate{First: transfer(1), Second: transfer(2), Object: "A", Version: 3})
	net.Amount = 7_00
	atLeast := of(9, "dirty read (G1a)", odd(fact.NotApplied, history.Aborted, true))
	atLeast.AtLeast = true
	kill := &Fault{Text: "kill primary every 2s", Target: "n1", From: 2 * time.Second, To: 4 * time.Second}
	one := &Fault{Text: "kill n1", Target: "n1", From: 2 * time.Second, To: 4 * time.Second}
	n1 := Node{Name: "n1", From: 3 * time.Second, To: 4 * time.Second, Lost: 7}
	less := Node{Name: "n1", From: 3 * time.Second, To: 4 * time.Second, Lost: 6}
	n2 := []Leader{{Name: "n2", At: 5 * time.Second}}
	for _, tc := range []struct {
		head Headline
		want string
	}{
		{Headline{Found: lost},
			"7 acknowledged transfers lost."},
		{Headline{Found: found(cause.LostWrites, of(1, "", fact.Lost{By: id(7)})), From: time.Second, To: time.Second},
			"1 acknowledged transfer lost at 1.0 s."},
		{Headline{Found: lost, From: time.Second, To: 3 * time.Second, Fault: kill},
			"7 acknowledged transfers lost between 1.0 s and 3.0 s, during the fault `kill primary every 2s` (on n1) from 2.0 s to 4.0 s."},
		{Headline{Found: lost, From: 3 * time.Second, To: 4 * time.Second, Fault: one, Nodes: []Node{n1}, Leaders: n2},
			"7 acknowledged transfers lost: n1 acknowledged them between 3.0 s and 4.0 s, during the fault `kill n1` from 2.0 s to 4.0 s; n2 became the leader at 5.0 s."},
		{Headline{Found: lost, From: 3 * time.Second, To: 4 * time.Second, Nodes: []Node{less}},
			"7 acknowledged transfers lost: n1 acknowledged 6 of them between 3.0 s and 4.0 s."},
		{Headline{Found: lost, Fault: one},
			"7 acknowledged transfers lost during the fault `kill n1` from 2.0 s to 4.0 s."},
		{Headline{Found: lost, Seen: 1300 * time.Millisecond},
			"7 acknowledged transfers lost; the run's first violation with a known time was seen at 1.3 s."},
		{Headline{Found: found(cause.LostWrites, of(2, "", fact.NotFound{By: id(7)}))},
			"2 transactions did not find an account that the load had made."},
		{Headline{Found: found(cause.AlteredWrites, of(2, "", fact.Altered{By: id(7)}))},
			"2 transfers whose legs in the ledger are not those that were acknowledged."},
		{Headline{Found: found(cause.DoubleWrites, of(1, "", fact.TwoVersions{By: id(7), Object: "A", Made: 3, Seen: 5}))},
			"1 transfer applied twice."},
		{Headline{Found: found(cause.GhostWrites, of(2, "", fact.Ghost{By: id(7), Outcome: history.Aborted}))},
			"2 transfers reported as not applied, yet in the ledger."},
		{Headline{Found: found(cause.ForeignData, of(2, "", fact.NeverSent{By: id(7)}))},
			"2 transfers in the ledger that no client sent."},
		{Headline{Found: found(cause.ForeignData, of(2, "", fact.ForeignLeg{By: id(7)}))},
			"Transfer 1-0-7 has a leg in the ledger on an object that no load made (the first of 2)."},
		{Headline{Found: found(cause.LostUpdates, net), From: time.Second, To: time.Second},
			"1 lost update (7.00 net appeared from nowhere) at 1.0 s."},
		{Headline{Found: found(cause.BrokenOrder, of(2, "read of a version that nobody made", odd(fact.MadeNot, history.Committed, true)))},
			"2 reads of a version that nobody made."},
		{Headline{Found: found(cause.BrokenOrder, of(1, "write skew (G2-item)", circle("rw", "rw")))},
			"1 write skew (G2-item)."},
		{Headline{Found: found(cause.BrokenOrder, of(1, "", fact.NotSerializable{}))},
			"The history is not serializable, so it is not strictly serializable either: see the check serializable."},
		{Headline{Found: found(cause.BrokenOrder, of(28, "observed transaction vanishes (OTV)", circle("rw", "rw")))},
			"28 transactions whose effects were seen and then not (OTV)."},
		{Headline{Found: found(cause.BrokenOrder, of(3, "appends out of order", circle("rw", "rw")))},
			"3 pairs of appends out of order."},
		{Headline{Found: found(cause.BrokenOrder, of(2, "cycle that is forbidden by PL-3", circle("rw", "rw")))},
			"2 cycles, forbidden by PL-3."},
		{Headline{Found: found(cause.BrokenOrder, atLeast)},
			"At least 9 dirty reads (G1a)."},
		{Headline{Found: found(cause.WrongValues, of(3, "", fact.ImpossibleVersion{By: id(7)}))},
			"Transfer 1-0-7 has a leg in the ledger with a version that its account cannot have had (the first of 3)."},
		{Headline{Found: found(cause.WrongSums, of(1, "", fact.Sum{End: 40000, Load: 50000, Accounts: 200}))},
			"100.00 net lost: the balances add up to 400.00 in the end, and added up to 500.00 at the load."},
		{Headline{Found: found(cause.WrongSums, of(2, "", fact.AuditSum{By: id(7), Saw: 400, Total: 500}))},
			"2 audits saw another total."},
		{Headline{Found: found(cause.Divergence, of(1, "", fact.Objects{Noun: "account", Found: 1, Made: 2}))},
			"The load made 2 accounts, and the end state has 1."},
	} {
		if got := bank.Headline(tc.head); got != tc.want {
			t.Errorf("%v: %+v\n got %q\nwant %q", tc.head.Found.Kind, tc.head.Found.Instances[0], got, tc.want)
		}
	}
}

func TestConsequenceLines(t *testing.T) {
	f := of(3, "", fact.Books{Object: "A", Balance: 600, Want: 500, Version: 3, Legs: 3})
	named := of(9, "", fact.Dependency{From: fact.Member{Name: "T7"}, To: fact.Member{Name: "T8"}, Kind: "wr"})
	named.AtLeast = true
	for _, tc := range []struct {
		found cause.Found
		want  string
	}{
		{cause.Found{Finding: &f, Kind: cause.WrongSums},
			"ledger: 3 accounts with books that do not close"},
		{cause.Found{Finding: &f, Kind: cause.WrongSums, Of: &cause.Found{}},
			"ledger: 3 accounts with books that do not close, explained by the above"},
		{cause.Found{Finding: &named, Kind: cause.WrongValues},
			"ledger: T7 made a version that T8 read (the first of at least 9)"},
	} {
		if got := bank.Consequence(&tc.found); got != tc.want {
			t.Errorf(" got %q\nwant %q", got, tc.want)
		}
	}
}

func TestCulpritAndCureSentences(t *testing.T) {
	promise := cause.Promise{Database: "PostgreSQL", Isolation: "read committed", Level: isolation.ReadCommitted, Expect: isolation.Serializable}
	async := cause.Caveat{Setting: "synchronous_commit=off", Quote: "Recent commits may be lost.", Source: "the manual, 20.5", Cure: "synchronous_commit=on"}
	for _, tc := range []struct {
		promise     cause.Promise
		judgement   cause.Judgement
		whose, cure string
	}{
		{promise, cause.Judgement{Culprit: cause.Database, Durable: true, Source: "the manual, 30.3"},
			"The database broke its promise: PostgreSQL promises to keep what it acknowledged (the manual, 30.3).",
			"Report it to the makers of the database with this run's directory; the command in the report repeats the run."},
		{cause.Promise{}, cause.Judgement{Culprit: cause.Database, Durable: true},
			"The database broke its promise: the database promises to keep what it acknowledged.",
			"Report it to the makers of the database with this run's directory; the command in the report repeats the run."},
		{promise, cause.Judgement{Culprit: cause.Database, Claim: isolation.ReadCommitted, Source: "the manual, 13.2"},
			"The database broke its promise: PostgreSQL at READ COMMITTED claims read-committed (the manual, 13.2), which forbids this.",
			"Report it to the makers of the database with this run's directory; the command in the report repeats the run."},
		{promise, cause.Judgement{Culprit: cause.Configuration, Caveats: []cause.Caveat{async}},
			"This configuration does not promise it: synchronous_commit=off: \"Recent commits may be lost\" (the manual, 20.5).",
			"Set synchronous_commit=on."},
		{promise, cause.Judgement{Culprit: cause.Configuration, Caveats: []cause.Caveat{async, {Setting: "fsync=off", Quote: "Data may be lost.", Cure: "fsync=on"}}},
			"This configuration does not promise it: synchronous_commit=off: \"Recent commits may be lost\" (the manual, 20.5); fsync=off: \"Data may be lost\".",
			"Set synchronous_commit=on and fsync=on."},
		{promise, cause.Judgement{Culprit: cause.Configuration, Caveats: []cause.Caveat{{Setting: "w=1", Quote: "One node."}}},
			"This configuration does not promise it: w=1: \"One node\".",
			"Choose a database or an isolation that promises it, or expect less."},
		{promise, cause.Judgement{Culprit: cause.Configuration, Asked: true, Claim: isolation.ReadCommitted, Isolations: []string{"serializable"}},
			"This configuration does not promise it: PostgreSQL at READ COMMITTED claims read-committed, and --expect serializable was asked for.",
			"Use --isolation 'serializable' with retries."},
		{promise, cause.Judgement{Culprit: cause.Configuration, Asked: true, Claim: isolation.ReadCommitted, Isolations: []string{"repeatable read", "serializable"}},
			"This configuration does not promise it: PostgreSQL at READ COMMITTED claims read-committed, and --expect serializable was asked for.",
			"Use --isolation 'repeatable read' with retries or --isolation 'serializable' with retries."},
		{promise, cause.Judgement{Culprit: cause.Configuration, Asked: true, Claim: isolation.ReadCommitted},
			"This configuration does not promise it: PostgreSQL at READ COMMITTED claims read-committed, and --expect serializable was asked for.",
			"Choose a database or an isolation that promises it, or expect less."},
		{promise, cause.Judgement{Culprit: cause.Application, Claim: isolation.ReadCommitted, Update: "rmw", Safe: "locked", Isolations: []string{"repeatable read", "serializable"}},
			"The application's way of writing is not safe at this level: PostgreSQL at READ COMMITTED claims read-committed, which allows this. A transaction that reads, computes and writes the result (--update rmw) needs locks or a stronger level.",
			"Use --update locked, --isolation 'repeatable read' with retries or --isolation 'serializable' with retries."},
		{promise, cause.Judgement{Culprit: cause.Application, Claim: isolation.ReadCommitted, Update: "rmw"},
			"The application's way of writing is not safe at this level: PostgreSQL at READ COMMITTED claims read-committed, which allows this. A transaction that reads, computes and writes the result (--update rmw) needs locks or a stronger level.",
			"Lock what the transaction reads, or let the database compute the new value."},
		{promise, cause.Judgement{},
			"Not decided between the database, its configuration and other programs that write to it: no transaction of the run and no known promise explains it.",
			"Look at the transactions of the report with `stroppy history`, and find out who else writes to the database."},
	} {
		if got := bank.Culprit(tc.promise, tc.judgement); got != tc.whose {
			t.Errorf("%+v\n got %q\nwant %q", tc.judgement, got, tc.whose)
		}
		if got := bank.Cure(tc.judgement); got != tc.cure {
			t.Errorf("%+v\n got %q\nwant %q", tc.judgement, got, tc.cure)
		}
	}
}

package text

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

func step(from, to uint64, kind string) fact.Dependency {
	d := fact.Dependency{From: transfer(from), To: transfer(to), Kind: kind}
	if kind == "real time" {
		d.Apart = 3 * time.Millisecond
		return d
	}
	d.Object, d.Version = "A", from
	return d
}

func circle(kinds ...string) fact.Cycle {
	c := fact.Cycle{All: len(kinds)}
	for i, kind := range kinds {
		c.Steps = append(c.Steps, step(uint64(i+1), uint64((i+1)%len(kinds)+1), kind))
	}
	return c
}

func odd(fate fact.Fate, outcome history.Outcome, ended bool) fact.OddRead {
	f := fact.OddRead{Reader: transfer(1), Writer: transfer(2), Object: "A", Version: 3, Balance: 500, Fate: fate, Outcome: outcome, Ended: ended}
	if fate == fact.AppliedAs || fate == fact.AppliedLater {
		f.As = 5
	}
	return f
}

// orderSentences holds the facts about the order of transactions with their clauses.
var orderSentences = []sentence{
	{bank, fact.LostUpdate{First: transfer(1), Second: fact.Member{ID: id(2), Kind: "joint transfer"}, Object: "A", Version: 3},
		"transfer 1-0-1 and joint transfer 1-0-2 both read version 2 of account A and both made version 3, so the effect of one of them is gone"},
	{bank, odd(fact.NeverRecorded, history.Unknown, true),
		"transfer 1-0-1 read version 3 of account A as made by transfer 1-0-2, which no client sent"},
	{bank, fact.OddRead{Reader: transfer(1), Object: "A", Version: 3, Ended: true},
		"transfer 1-0-1 read version 3 of account A as made by the load, which made only version 0"},
	{bank, odd(fact.NotApplied, history.Unknown, true),
		"transfer 1-0-1 read version 3 of account A as made by transfer 1-0-2, which is of unknown outcome and is not in the ledger"},
	{bank, odd(fact.NotApplied, history.Unknown, false),
		"transfer 1-0-1 read version 3 of account A as made by transfer 1-0-2, which is of unknown outcome"},
	{bank, odd(fact.NotApplied, history.Aborted, true),
		"transfer 1-0-1 read version 3 of account A as made by transfer 1-0-2, which was aborted and is not in the ledger"},
	{bank, odd(fact.NotApplied, history.Rejected, false),
		"transfer 1-0-1 read version 3 of account A as made by transfer 1-0-2, which was rejected"},
	{bank, odd(fact.Vanished, history.Committed, true),
		"transfer 1-0-1 read version 3 of account A as made by transfer 1-0-2, which was acknowledged and is not in the ledger"},
	{bank, odd(fact.AppliedAs, history.Committed, true),
		"transfer 1-0-1 read version 3 of account A as made by transfer 1-0-2, which made version 5 of it by the ledger"},
	{bank, odd(fact.AppliedAs, history.Committed, false),
		"transfer 1-0-1 read version 3 of account A as made by transfer 1-0-2, which made version 5 of it"},
	{bank, fact.OddRead{Reader: transfer(1), Writer: transfer(2), Object: "A", Version: 3, Fate: fact.AppliedAs, Outcome: history.Aborted, As: 1, Ended: true, Aborted: true},
		"transfer 1-0-1 read version 3 of account A as made by transfer 1-0-2, which was aborted, and is in the ledger as the maker of version 1"},
	{bank, odd(fact.AppliedLater, history.Committed, true),
		"transfer 1-0-1 read version 3 of account A as made by transfer 1-0-2, which was applied there only later, as version 5"},
	{bank, odd(fact.MadeNot, history.Committed, true),
		"transfer 1-0-1 read version 3 of account A as made by transfer 1-0-2, which did not make that version"},
	{plain, odd(fact.Vanished, history.Committed, true),
		"transaction 1-0-1 read version 3 of A as made by transaction 1-0-2, which was acknowledged and is not in the end state"},
	{bank, fact.ReadAs{Reader: id(1), Writer: id(2), Object: "A", Version: 3, Balance: 500},
		"transaction 1-0-1 read version 3 of account A with the balance 5.00, as made by transfer 1-0-2"},
	{bank, fact.ReadAs{Reader: id(1), Object: "A", Balance: 500},
		"transaction 1-0-1 read version 0 of account A with the balance 5.00, as made by the load"},
	{bank, fact.GarbageRead{Reader: transfer(1), Object: "A", Version: 3, Balance: 500, Want: 600, Ended: true},
		"transfer 1-0-1 read balance 5.00 at version 3 of account A, where opening balance and ledger make 6.00: no transaction wrote that"},
	{bank, fact.GarbageRead{Reader: transfer(1), Object: "A", Version: 3, Balance: 500, Want: 600},
		"transfer 1-0-1 read balance 5.00 at version 3 of account A, where opening balance and recorded changes make 6.00: no transaction wrote that"},
	{bank, fact.GarbageRead{Reader: transfer(1), Object: "A", Balance: 500, Want: 600},
		"transfer 1-0-1 read balance 5.00 at version 0 of account A, whose opening balance is 6.00"},
	{bank, step(1, 2, "ww"),
		"transfer 1-0-1 made version 1 of account A, which transfer 1-0-2 overwrote"},
	{bank, step(1, 2, "wr"),
		"transfer 1-0-1 made version 1 of account A, which transfer 1-0-2 read"},
	{bank, step(1, 2, "rw"),
		"transfer 1-0-1 read version 1 of account A, which transfer 1-0-2 overwrote"},
	{bank, step(1, 2, "predicate"),
		"transfer 1-0-1 read by predicate and did not find account A, which transfer 1-0-2 opened"},
	{bank, fact.Dependency{From: transfer(1), To: transfer(2), Kind: "predicate", Object: "A", Low: 1000},
		"transfer 1-0-1 read by predicate and did not find account A among the accounts under 10.00, which transfer 1-0-2 brought under it"},
	{bank, step(1, 2, "real time"),
		"transfer 1-0-1 had ended 3 ms before transfer 1-0-2 began"},
	{bank, fact.Dependency{From: transfer(1), To: transfer(2), Kind: "ww"},
		"transfer 1-0-1 made a version that transfer 1-0-2 overwrote"},
	{bank, fact.Dependency{From: transfer(1), To: fact.Member{ID: id(2), Kind: "audit", Refused: true}, Kind: "rw"},
		"transfer 1-0-1 read a version that refused audit 1-0-2 overwrote"},
	{bank, fact.Dependency{From: fact.Member{Name: "T7"}, To: fact.Member{}, Kind: "wr"},
		"T7 made a version that a transfer that is not recorded read"},
	{bank, circle("rw", "real time"),
		"transfer 1-0-1 read version 1 of account A, which transfer 1-0-2 overwrote, although transfer 1-0-2 had ended 3 ms before transfer 1-0-1 began"},
	{bank, circle("rw", "wr"),
		"transfer 1-0-1 saw one part of transfer 1-0-2 without the other: transfer 1-0-2 made version 2 of account A, which transfer 1-0-1 read, and transfer 1-0-1 read version 1 of account A, which transfer 1-0-2 overwrote"},
	{bank, circle("rw", "rw"),
		"neither of two transactions saw what the other one wrote: transfer 1-0-1 read version 1 of account A, which transfer 1-0-2 overwrote, and transfer 1-0-2 read version 2 of account A, which transfer 1-0-1 overwrote"},
	{bank, circle("predicate", "rw"),
		"neither of two transactions saw what the other one wrote: transfer 1-0-1 read by predicate and did not find account A, which transfer 1-0-2 opened, and transfer 1-0-2 read version 2 of account A, which transfer 1-0-1 overwrote"},
	{bank, circle("ww", "rw"),
		"transfer 1-0-1 made version 1 of account A, which transfer 1-0-2 overwrote, and transfer 1-0-2 read version 2 of account A, which transfer 1-0-1 overwrote"},
	{bank, circle("ww", "ww"),
		"transfer 1-0-1 made version 1 of account A, which transfer 1-0-2 overwrote, and transfer 1-0-2 made version 2 of account A, which transfer 1-0-1 overwrote"},
	{bank, circle("rw", "wr", "rw", "wr"),
		"transfer 1-0-1 saw transfer 1-0-4 without transfer 1-0-2, and transfer 1-0-3 saw transfer 1-0-2 without transfer 1-0-4"},
	{bank, circle("ww", "wr", "rw"),
		"transfer 1-0-3 read version 3 of account A, which transfer 1-0-1 overwrote, and yet transfer 1-0-3 depends on transfer 1-0-1, by way of 1 other transaction"},
	{bank, circle("ww", "wr", "ww"),
		"transfer 1-0-1 made version 1 of account A, which transfer 1-0-2 overwrote, and yet transfer 1-0-2 must come before transfer 1-0-1, by way of 1 other transaction"},
	{bank, circle("rw", "wr", "real time", "wr"),
		"transfer 1-0-1 read version 1 of account A, which transfer 1-0-2 overwrote, and yet transfer 1-0-2 must come before transfer 1-0-1, by way of 2 other transactions"},
	{bank, fact.Component{By: id(1), All: 1200},
		"transfer 1-0-1 is one of 1,200 transactions, each of which must come before all the others"},
	{bank, fact.Operation{Read: true, Version: 3, Balance: 500},
		"read version 3, 5.00"},
	{bank, fact.Operation{Object: "A", Read: true, Version: 3, Balance: 500, Wrote: true, Made: 4, Amount: -100},
		"A: read version 3, 5.00; made version 4, 4.00"},
	{bank, fact.Operation{Read: true, Version: 3, Balance: 500, Wrote: true, Made: 6, Amount: 100},
		"read version 3, 5.00; made version 6, changed by 1.00"},
	{bank, fact.Operation{Wrote: true, Amount: 100},
		"changed it by 1.00, and what it read is not known"},
	{bank, fact.Operation{},
		"what it read is not known"},
	{bank, fact.Serial{Transactions: 1, Dependencies: 1},
		"1 committed transaction, 1 dependency, no cycle"},
	{bank, fact.Serial{Transactions: 1200, Dependencies: 2300},
		"1,200 committed transactions, 2,300 dependencies, no cycle"},
	{bank, fact.WithRealTime{},
		"the order of all transactions agrees with real time"},
	{bank, fact.NotSerializable{},
		"the history is not serializable, so it is not strictly serializable either: see the check serializable"},
	{bank, fact.NoOrder{},
		"no transaction was applied, so there is no order"},
}

// TestSentencesOfOrder checks the exact clause of every fact about the order of transactions.
func TestSentencesOfOrder(t *testing.T) { testSentences(t, orderSentences) }

// TestEveryFactIsTested checks that each kind of fact in these files has a row in a table above.
func TestEveryFactIsTested(t *testing.T) {
	held := map[string]bool{}
	for _, list := range [][]sentence{commonSentences, runSentences, bookSentences, presenceSentences, rowSentences, orderSentences} {
		for _, tc := range list {
			held[reflect.TypeOf(tc.fact).Name()] = true
		}
	}
	for _, name := range []string{"fact.go", "run.go", "totals.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../fact", name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "Fact" {
				continue
			}
			if kind := f.Recv.List[0].Type.(*ast.Ident).Name; !held[kind] {
				t.Errorf("no table has fact.%s", kind)
			}
		}
	}
}

package totals

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/money"
)

// world runs transactions one after another on accounts of 100.00 each, and records what a correct database
// would have shown. Tests then falsify the record.
type world struct {
	checktest.History
	checktest.End
	now  int64
	next uint64
}

const opening = 10000

var testWords = check.Words{One: "transfer", Book: "ledger", Part: "leg", Before: "account ", Amount: money.Format, Kind: testKinds.KindName}

var testKinds = &history.Header{Kinds: []history.Declared{
	kindTransfer.Named("transfer"), kindJoint.Named("joint transfer"), kindProfile.Named("TPC-B"), kindInquiry.Named("inquiry"), kindAudit.Named("audit"),
}}

// accountChecks lists the names of the checks in order.
var accountChecks = []string{check.Total, check.NonNegative, check.Ledger, check.Durable, check.NoGhost, check.ExactlyOnce, check.Serializable, check.Strict, check.Audits}

func newWorld(accounts int) *world {
	w := &world{History: checktest.History{Run: 1}}
	for n := range accounts {
		w.ObjectRows = append(w.ObjectRows, history.Object{N: uint64(n), Value: opening})
	}
	return w
}

func (w *world) begin(kind history.Kind) *history.Transaction {
	w.now += 1000
	w.Txns = append(w.Txns, history.Transaction{
		ID: history.NewID(1, 0, w.next), Kind: kind, Outcome: history.Committed, Attempts: 1,
		Due: w.now, Sent: w.now, Try: w.now, End: w.now + 500,
	})
	w.next++
	return &w.Txns[len(w.Txns)-1]
}

func (w *world) see(tx *history.Transaction, account uint64) *history.Op {
	a := w.ObjectRows[account]
	tx.Ops = append(tx.Ops, history.Op{Object: account, Observed: true, Version: a.Version, Value: a.Value, Writer: a.Writer})
	return &tx.Ops[len(tx.Ops)-1]
}

func (w *world) leg(tx *history.Transaction, account uint64, amount int64) {
	number := uint32(0)
	for i := range tx.Ops {
		if tx.Ops[i].Write {
			number++
		}
	}
	op := w.see(tx, account)
	op.Write, op.Amount = true, amount
	a := &w.ObjectRows[account]
	a.Value += amount
	a.Version++
	a.Writer = tx.ID
	w.LedgerRows = append(w.LedgerRows, history.Row{
		Transaction: tx.ID, Number: number, Object: account, Amount: amount, Version: a.Version,
	})
}

// transfer moves amount and returns the transaction's index.
func (w *world) transfer(from, to uint64, amount int64) int {
	tx := w.begin(kindTransfer)
	w.leg(tx, from, -amount)
	w.leg(tx, to, amount)
	return len(w.Txns) - 1
}

func (w *world) inquiry(accounts ...uint64) int {
	tx := w.begin(kindInquiry)
	for _, n := range accounts {
		w.see(tx, n)
	}
	return len(w.Txns) - 1
}

func (w *world) input(expect isolation.Level) AccountsInput {
	return AccountsInput{
		Input: check.Input{
			Expect: expect, Name: func(n uint64) string { return fmt.Sprintf("#%d", n) }, History: []check.Source{&w.History}, End: &w.End,
		},
		Words:    testWords,
		Accounts: uint64(len(w.ObjectRows)), Total: opening * int64(len(w.ObjectRows)), Opening: func(uint64) int64 { return opening },
		Missing: noAccount,
	}

}

// checked runs the checks with a context that never ends.
func checked(in AccountsInput) []checktest.Reported {
	results, err := Accounts(context.Background(), in)
	if err != nil {
		panic(err)
	}
	worded := checktest.Worded(results, in.Words)
	if wrong := checktest.Misexplained(worded); wrong != "" {
		panic(wrong)
	}
	return worded
}

// TestCorrectDatabaseIsValid checks that a correct history is valid at every level.
func TestCorrectDatabaseIsValid(t *testing.T) {
	for seed := range uint64(50) {
		w := busy(seed, 12, 300)
		in := w.input(isolation.StrictSerializable)
		in.Audited = []uint64{1}
		results := checked(in)
		for _, r := range results {
			if r.Status != check.Valid || !r.Required {
				t.Fatalf("seed %d: %s is %v (required %v): %s", seed, r.Name, r.Status, r.Required, r.Detail)
			}
		}
		if checktest.Verdict(results) != check.Valid {
			t.Fatalf("seed %d: verdict %v", seed, checktest.Verdict(results))
		}
	}
}

// busy returns a random correct run with every kind of transaction.
func busy(seed uint64, accounts, count int) *world {
	w := newWorld(accounts)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range count {
		a := rng.Uint64N(uint64(accounts))
		b := (a + 1 + rng.Uint64N(uint64(accounts-1))) % uint64(accounts)
		switch rng.IntN(10) {
		case 0:
			w.inquiry(a, b)
		case 1:
			tx := w.begin(kindAudit)
			for n := range accounts {
				w.see(tx, uint64(n))
			}
		case 2:
			tx := w.begin(kindJoint)
			w.see(tx, a^1%uint64(accounts))
			if a^1 == b || a == b {
				continue
			}
			w.leg(tx, a, -1)
			w.leg(tx, b, 1)
		case 3: // rejected
			tx := w.begin(kindTransfer)
			tx.Outcome, tx.Reason = history.Rejected, noFunds
			tx.Ops = []history.Op{{Object: a, Write: true, Amount: -1e6}, {Object: b, Write: true, Amount: 1e6}}
		case 4: // unknown, applied, never settled
			i := w.transfer(a, b, 2)
			tx := &w.Txns[i]
			tx.Outcome = history.Unknown
			for j := range tx.Ops {
				tx.Ops[j] = history.Op{Object: tx.Ops[j].Object, Write: true, Amount: tx.Ops[j].Amount}
			}
		case 5: // settled as not applied
			tx := w.begin(kindTransfer)
			tx.Outcome, tx.LookedUp = history.Aborted, true
			tx.Ops = []history.Op{{Object: a, Write: true, Amount: -1}, {Object: b, Write: true, Amount: 1}}
			w.LedgerRows = append(w.LedgerRows, history.Row{Transaction: tx.ID, Mark: history.Tombstone})
		default:
			w.transfer(a, b, 1+rng.Int64N(50))
		}
	}
	return w
}

func TestEachViolationIsFound(t *testing.T) {
	for _, tc := range violations {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(8)
			tc.make(w)
			expect := tc.expect
			if expect == isolation.Unknown {
				expect = isolation.StrictSerializable
			}
			in := w.input(expect)
			if tc.audited {
				in.Audited = []uint64{1}
			}
			results := checked(in)
			r := checktest.ByName(results)[tc.check]
			if r.Status != check.Invalid {
				t.Fatalf("%s is %v: %s", tc.check, r.Status, r.Detail)
			}
			if !slices.ContainsFunc(r.Findings, tc.finds) {
				t.Errorf("%s has no such finding: %s", tc.check, r.Detail)
			}
			if len(r.Witness) == 0 && tc.check != check.Total {
				t.Errorf("%s has no witness", tc.check)
			}
			if want := map[bool]check.Status{true: check.Valid, false: check.Invalid}[tc.tolerated]; checktest.Verdict(results) != want {
				t.Errorf("verdict %v, want %v; %+v", checktest.Verdict(results), want, results)
			}
			for name, other := range checktest.ByName(results) {
				if other.Status == check.Invalid && name != tc.check && !strings.Contains(tc.also, name) {
					t.Errorf("%s is invalid too: %s", name, other.Detail)
				}
			}
		})
	}
}

// TestVanishedAccusesNobodyOfOverdrafts checks that versions made again after a fail-over, and the lost ones,
// are not added up to an overdraft.
func TestVanishedAccusesNobodyOfOverdrafts(t *testing.T) {
	w := newWorld(4)
	w.transfer(1, 0, 9000)          // account 0 is rich at version 1
	lost := w.transfer(0, 2, 15000) // version 2, lost in the fail-over
	gone := w.Txns[lost].ID
	w.LedgerRows = slices.DeleteFunc(w.LedgerRows, func(l history.Row) bool { return l.Transaction == gone || l.Transaction == w.Txns[0].ID })
	for n := range w.ObjectRows {
		w.ObjectRows[n] = history.Object{N: uint64(n), Value: opening}
	}
	w.transfer(0, 3, 1000) // makes version 1 of account 0 again
	r := checktest.ByName(checked(w.input(isolation.StrictSerializable)))
	if r[check.Durable].Status != check.Invalid || r[check.NonNegative].Status == check.Invalid || r[check.Ledger].Status == check.Invalid || r[check.Total].Status != check.Valid {
		t.Errorf("durable %v, non-negative %v (%s), ledger %v (%s), total %v",
			r[check.Durable].Status, r[check.NonNegative].Status, r[check.NonNegative].Detail, r[check.Ledger].Status, r[check.Ledger].Detail, r[check.Total].Status)
	}
}

// These are the kinds of transactions in the tests, and the reasons of their rejections.
const (
	kindTransfer = 1 * history.Numbered
	kindJoint    = 2 * history.Numbered
	kindProfile  = 3 * history.Numbered
	kindInquiry  = 1*history.Numbered | history.ReadOnly
	kindAudit    = 1*history.Numbered | history.ReadOnly | history.Background

	noFunds   history.Reason = 1
	noAccount history.Reason = 2
)

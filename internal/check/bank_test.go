package check

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// recorded is a history made by hand.
type recorded struct {
	txns       []history.Transaction
	incomplete bool
	run        uint64
	keys       map[string]string
	err        error
}

func (r *recorded) Header() history.Header { return history.Header{Run: r.run, Keys: r.keys} }
func (r *recorded) Complete() bool         { return !r.incomplete }
func (r *recorded) Transactions() iter.Seq2[history.Record, error] {
	return func(yield func(history.Record, error) bool) {
		for i := range r.txns {
			if !yield(history.Record{Transaction: &r.txns[i], Ref: history.Ref{File: "h", Record: i}}, nil) {
				return
			}
		}
		if r.err != nil {
			yield(history.Record{}, r.err)
		}
	}
}

// found is an end state made by hand.
type found struct {
	accounts  []history.Account
	legs      []history.Leg
	strangers []string
}

func (f *found) Accounts() iter.Seq2[history.Account, error] {
	return func(yield func(history.Account, error) bool) {
		for _, a := range f.accounts {
			if !yield(a, nil) {
				return
			}
		}
	}
}

func (f *found) Legs() iter.Seq2[history.Leg, error] {
	return func(yield func(history.Leg, error) bool) {
		for _, l := range f.legs {
			if !yield(l, nil) {
				return
			}
		}
	}
}

func (f *found) Strangers() []string { return f.strangers }

// world runs transactions one after another on accounts of 100.00 each, and
// records what a perfect database would have shown. Tests then bend it.
type world struct {
	recorded
	found
	now  int64
	next uint64
}

const opening = 10000

func newWorld(accounts int) *world {
	w := &world{recorded: recorded{run: 1}}
	for n := range accounts {
		w.accounts = append(w.accounts, history.Account{N: uint64(n), Balance: opening})
	}
	return w
}

func (w *world) begin(kind history.Kind) *history.Transaction {
	w.now += 1000
	w.txns = append(w.txns, history.Transaction{
		ID: history.NewID(1, 0, w.next), Kind: kind, Outcome: history.Committed, Attempts: 1,
		Due: w.now, Sent: w.now, Try: w.now, End: w.now + 500,
	})
	w.next++
	return &w.txns[len(w.txns)-1]
}

func (w *world) see(tx *history.Transaction, account uint64) *history.Op {
	a := w.accounts[account]
	tx.Ops = append(tx.Ops, history.Op{Account: account, Observed: true, Version: a.Version, Balance: a.Balance, Last: a.Last})
	return &tx.Ops[len(tx.Ops)-1]
}

func (w *world) leg(tx *history.Transaction, account uint64, amount int64) {
	op := w.see(tx, account)
	op.Write, op.Amount = true, amount
	a := &w.accounts[account]
	a.Balance += amount
	a.Version++
	a.Last = tx.ID
	w.legs = append(w.legs, history.Leg{
		Transfer: tx.ID, Number: uint32(len(tx.Ops) - 1), Account: account, Amount: amount, Version: a.Version,
	})
}

// transfer moves amount and returns the transaction's index.
func (w *world) transfer(from, to uint64, amount int64) int {
	tx := w.begin(history.Transfer)
	w.leg(tx, from, -amount)
	w.leg(tx, to, amount)
	return len(w.txns) - 1
}

func (w *world) inquiry(accounts ...uint64) int {
	tx := w.begin(history.Inquiry)
	for _, n := range accounts {
		w.see(tx, n)
	}
	return len(w.txns) - 1
}

func (w *world) input(expect isolation.Level) Input {
	return Input{
		Expect: expect, Accounts: uint64(len(w.accounts)), Total: opening * int64(len(w.accounts)),
		Opening: func(uint64) int64 { return opening },
		Name:    func(n uint64) string { return fmt.Sprintf("#%d", n) },
		History: []Source{&w.recorded}, End: &w.found,
	}
}

// checked makes the checks with a context that never ends.
func checked(in Input) []Result {
	results, err := Bank(context.Background(), in)
	if err != nil {
		panic(err)
	}
	return results
}

func byName(results []Result) map[string]Result {
	m := map[string]Result{}
	for _, r := range results {
		m[r.Name] = r
	}
	return m
}

// TestHealthy: what a perfect database shows is valid at every level.
func TestHealthy(t *testing.T) {
	for seed := range uint64(50) {
		w := busy(seed, 12, 300)
		in := w.input(isolation.StrictSerializable)
		in.Audited = []uint64{1}
		results := checked(in)
		for _, r := range results {
			if r.Status != Valid || !r.Required {
				t.Fatalf("seed %d: %s is %v (required %v): %s", seed, r.Name, r.Status, r.Required, r.Detail)
			}
		}
		if Verdict(results) != Valid {
			t.Fatalf("seed %d: verdict %v", seed, Verdict(results))
		}
	}
}

// busy makes a random healthy run with every kind of transaction.
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
			tx := w.begin(history.Audit)
			for n := range accounts {
				w.see(tx, uint64(n))
			}
		case 2:
			tx := w.begin(history.Joint)
			w.see(tx, a^1%uint64(accounts))
			if a^1 == b || a == b {
				continue
			}
			w.leg(tx, a, -1)
			w.leg(tx, b, 1)
		case 3: // rejected
			tx := w.begin(history.Transfer)
			tx.Outcome, tx.Reason = history.Rejected, history.InsufficientFunds
			tx.Ops = []history.Op{{Account: a, Write: true, Amount: -1e6}, {Account: b, Write: true, Amount: 1e6}}
		case 4: // unknown, applied, never settled
			i := w.transfer(a, b, 2)
			tx := &w.txns[i]
			tx.Outcome = history.Unknown
			for j := range tx.Ops {
				tx.Ops[j] = history.Op{Account: tx.Ops[j].Account, Write: true, Amount: tx.Ops[j].Amount}
			}
		case 5: // settled as not applied
			tx := w.begin(history.Transfer)
			tx.Outcome, tx.LookedUp = history.Aborted, true
			tx.Ops = []history.Op{{Account: a, Write: true, Amount: -1}, {Account: b, Write: true, Amount: 1}}
			w.legs = append(w.legs, history.Leg{Transfer: tx.ID, Void: true})
		default:
			w.transfer(a, b, 1+rng.Int64N(50))
		}
	}
	return w
}

func TestViolations(t *testing.T) {
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
			r := byName(results)[tc.check]
			if r.Status != Invalid {
				t.Fatalf("%s is %v: %s", tc.check, r.Status, r.Detail)
			}
			if !strings.Contains(strings.ToLower(r.Detail), strings.ToLower(tc.says)) {
				t.Errorf("%s says %q, want %q in it", tc.check, r.Detail, tc.says)
			}
			if len(r.Witness) == 0 && tc.check != Total {
				t.Errorf("%s has no witness", tc.check)
			}
			if want := map[bool]Status{true: Valid, false: Invalid}[tc.tolerated]; Verdict(results) != want {
				t.Errorf("verdict %v, want %v; %+v", Verdict(results), want, results)
			}
			for name, other := range byName(results) {
				if other.Status == Invalid && name != tc.check && !strings.Contains(tc.also, name) {
					t.Errorf("%s is invalid too: %s", name, other.Detail)
				}
			}
		})
	}
}

// TestVanishedAccusesNobodyOfOverdrafts: where a fail-over has lost transfers, the
// versions that were made again and those that are gone add up to nothing.
func TestVanishedAccusesNobodyOfOverdrafts(t *testing.T) {
	w := newWorld(4)
	w.transfer(1, 0, 9000)          // account 0 is rich at version 1
	lost := w.transfer(0, 2, 15000) // version 2, gone after the fail-over
	gone := w.txns[lost].ID
	w.legs = slices.DeleteFunc(w.legs, func(l history.Leg) bool { return l.Transfer == gone || l.Transfer == w.txns[0].ID })
	for n := range w.accounts {
		w.accounts[n] = history.Account{N: uint64(n), Balance: opening}
	}
	w.transfer(0, 3, 1000) // makes version 1 of account 0 again
	r := byName(checked(w.input(isolation.StrictSerializable)))
	if r[Durable].Status != Invalid || r[NonNegative].Status == Invalid || r[Ledger].Status == Invalid || r[Total].Status != Valid {
		t.Errorf("durable %v, non-negative %v (%s), ledger %v (%s), total %v",
			r[Durable].Status, r[NonNegative].Status, r[NonNegative].Detail, r[Ledger].Status, r[Ledger].Detail, r[Total].Status)
	}
}

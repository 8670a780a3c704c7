package dbtest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/bank"
)

// eachWay runs a test on a loaded bank of every data model, update style and mode.
func eachWay(t *testing.T, test func(t *testing.T, b *bank.Bank, c load.Client)) {
	run := func(name, update, mode string, open func(t *testing.T) db.Database) {
		t.Run(name+" "+update+" "+mode, func(t *testing.T) {
			b := newBank(t, open(t), func(c *bank.Config) { c.Update, c.Mode = update, mode })
			mustLoad(t, b)
			if _, err := b.Attach(t.Context()); err != nil {
				t.Fatal(err)
			}
			client, err := b.Client(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			test(t, b, client)
		})
	}
	run("memory", "", "", func(t *testing.T) db.Database { return openMemory(t, "memory:") })
	for _, way := range ways {
		run("sqlite", way.update, way.mode, func(t *testing.T) db.Database { return openSQLite(t) })
		run("postgres", way.update, way.mode, func(t *testing.T) db.Database { d, _ := openPostgres(t); return d })
	}
	for _, update := range []string{bank.Atomic, bank.Locked, bank.RMW} {
		run("postgres", update, workload.Procedure, func(t *testing.T) db.Database { d, _ := openPostgres(t); return d })
	}
}

// The kinds of transactions and the reasons of rejections, as the bank declares them.
const (
	kindTransfer = 1 * history.Numbered
	kindPayroll  = 2 * history.Numbered
	kindJoint    = 3 * history.Numbered
	kindInquiry  = 1*history.Numbered | history.ReadOnly
	kindAudit    = 1*history.Numbered | history.ReadOnly | history.Background

	noFunds   history.Reason = 1
	noAccount history.Reason = 2
)

// TestBankHeaderNamesKindsAndReasons checks the names of all kinds and reasons in the header.
func TestBankHeaderNamesKindsAndReasons(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *bank.Bank, _ load.Client) {
		h := b.Header()
		got := []string{
			h.KindName(kindTransfer), h.KindName(kindPayroll), h.KindName(kindJoint), h.KindName(kindInquiry), h.KindName(kindAudit),
			h.ReasonName(noFunds), h.ReasonName(noAccount),
		}
		want := []string{"transfer", "payroll", "joint transfer", "inquiry", "audit", "insufficient funds", "no such account"}
		if !slices.Equal(got, want) {
			t.Errorf("the kinds and reasons are named %q, want %q", got, want)
		}
	})
}

// next prepares transactions until one has the given kind. It skips transactions of 100.00 or more, except payrolls.
func next(t *testing.T, c load.Client, kind history.Kind) *history.Transaction {
	t.Helper()
	tx := new(history.Transaction)
	for range 10_000 {
		if c.Next(tx); tx.Kind == kind && (kind == kindPayroll || total(tx) < 100_00) {
			return tx
		}
	}
	t.Fatalf("no %v was prepared", kind)
	return nil
}

// total returns the amount that the payer pays, in cents.
func total(tx *history.Transaction) (cents int64) {
	for _, op := range tx.Ops {
		cents += max(op.Amount, 0)
	}
	return cents
}

// attempt makes one attempt of a transaction and ends the test if it fails.
func attempt(t *testing.T, c load.Client, tx *history.Transaction) {
	t.Helper()
	if err := c.Attempt(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
}

// wantOutcome ends the test unless the transaction has the given outcome and reason.
func wantOutcome(t *testing.T, tx *history.Transaction, outcome history.Outcome, reason history.Reason) {
	t.Helper()
	if tx.Outcome != outcome || tx.Reason != reason {
		t.Fatalf("the outcome of the %v is %v, %v, want %v, %v", tx.Kind, tx.Outcome, tx.Reason, outcome, reason)
	}
}

// TestTransactionsObservePrecedingState checks that each transaction observes the balances, versions and writers that
// the transactions before it left.
func TestTransactionsObservePrecedingState(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *bank.Bank, c load.Client) {
		type state struct {
			balance int64
			version uint64
			last    history.ID
		}
		known := map[uint64]state{}
		for range 200 {
			tx := new(history.Transaction)
			c.Next(tx)
			attempt(t, c, tx)
			for _, op := range tx.Ops {
				if !op.Observed {
					if tx.Outcome == history.Committed {
						t.Fatalf("a committed %v did not observe account %d", tx.Kind, op.Object)
					}
					continue
				}
				now := state{op.Value, op.Version, op.Writer}
				if before, ok := known[op.Object]; ok && before != now || !ok && (now.version != 0 || now.last != 0) {
					t.Fatalf("%v %v saw %+v at account %d, which was %+v", tx.Kind, tx.ID, now, op.Object, before)
				}
				if op.Write && tx.Outcome == history.Committed {
					now = state{op.Value + op.Amount, op.Version + 1, tx.ID}
				}
				known[op.Object] = now
			}
		}
	})
}

// TestResolveUnknownPreventsLaterCommit checks that resolving an unknown outcome reports it, and that the transaction
// cannot be applied afterwards.
func TestResolveUnknownPreventsLaterCommit(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *bank.Bank, c load.Client) {
		for _, kind := range []history.Kind{kindTransfer, kindPayroll, kindJoint} {
			done := next(t, c, kind)
			attempt(t, c, done)
			wantOutcome(t, done, history.Committed, 0)
			for range 2 {
				done.Outcome = history.Unknown
				if err := c.ResolveUnknown(t.Context(), done); err != nil {
					t.Fatal(err)
				}
				wantOutcome(t, done, history.Committed, 0)
			}
			if err := c.Attempt(t.Context(), done); !errors.Is(err, load.ErrAlreadyApplied) {
				t.Fatalf("a second attempt of the same %v ended with %v", kind, err)
			}
			lost := next(t, c, kind)
			for range 2 {
				if err := c.ResolveUnknown(t.Context(), lost); err != nil {
					t.Fatal(err)
				}
				wantOutcome(t, lost, history.Aborted, 0)
			}
			err := c.Attempt(t.Context(), lost)
			if !errors.Is(err, load.ErrAlreadyApplied) && db.ClassOf(err) != db.Aborted {
				t.Fatalf("the attempt of a %v that was resolved as aborted ended with %v", kind, err)
			}
			if err := c.ResolveUnknown(t.Context(), lost); err != nil {
				t.Fatal(err)
			}
			wantOutcome(t, lost, history.Aborted, 0)
		}
	})
}

// TestBankRejectsOverdraftsAndUnknownAccounts checks that rejected transactions have the right reason and change no
// balance.
func TestBankRejectsOverdraftsAndUnknownAccounts(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *bank.Bank, c load.Client) {
		for _, kind := range []history.Kind{kindTransfer, kindPayroll, kindJoint} {
			poor := next(t, c, kind)
			for i := range poor.Ops {
				poor.Ops[i].Amount *= 1_000_000_000
			}
			attempt(t, c, poor)
			wantOutcome(t, poor, history.Rejected, noFunds)

			nobody := next(t, c, kind)
			for i := range nobody.Ops {
				if nobody.Ops[i].Amount > 0 {
					nobody.Ops[i].Object = 1_000_000
				}
			}
			attempt(t, c, nobody)
			wantOutcome(t, nobody, history.Rejected, noAccount)
		}
		inquiry := next(t, c, kindInquiry)
		attempt(t, c, inquiry)
		wantOutcome(t, inquiry, history.Committed, 0)
		inquiry.Ops[0].Object = 1_000_000
		attempt(t, c, inquiry)
		wantOutcome(t, inquiry, history.Rejected, noAccount)
		wantOpeningBalances(t, b, 200)
	})
}

// richJoint commits a joint transfer out of account 0, a company's account with nearly all money of its pair. It
// returns the transfer and the largest amount that one more transfer may pay.
func richJoint(t *testing.T, c load.Client) (tx *history.Transaction, most int64) {
	t.Helper()
	tx = next(t, c, kindJoint)
	tx.Ops = append(tx.Ops[:0],
		history.Op{Object: 0, Write: true, Amount: -1}, history.Op{Object: 1}, history.Op{Object: 2, Write: true, Amount: 1})
	attempt(t, c, tx)
	wantOutcome(t, tx, history.Committed, 0)
	opening := int64(0)
	for _, op := range tx.Ops {
		if op.Version != 0 {
			t.Fatalf("account %d was at version %d before its first transfer", op.Object, op.Version)
		}
		if op.Object < 2 {
			opening += op.Value
		}
	}
	return tx, opening - 1 - opening/10
}

// TestJointTransferKeepsMinimumBalance checks the largest amount that is paid and the smallest that is rejected.
func TestJointTransferKeepsMinimumBalance(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *bank.Bank, c load.Client) {
		tx, most := richJoint(t, c)
		pay := func(amount int64) *history.Transaction {
			again := next(t, c, kindJoint)
			again.Ops = append(again.Ops[:0], tx.Ops...)
			for i := range again.Ops {
				switch op := &again.Ops[i]; {
				case op.Amount < 0:
					op.Amount = -amount
				case op.Amount > 0:
					op.Amount = amount
				}
			}
			attempt(t, c, again)
			return again
		}
		wantOutcome(t, pay(most+1), history.Rejected, noFunds)
		wantOutcome(t, pay(most), history.Committed, 0)
	})
}

// TestCancelledAttemptReturnsError checks that an attempt with a cancelled context returns an error and does not
// commit.
func TestCancelledAttemptReturnsError(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *bank.Bank, c load.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		tx := next(t, c, kindTransfer)
		if err := c.Attempt(ctx, tx); err == nil || tx.Outcome == history.Committed {
			t.Fatalf("a cancelled attempt ended with %v, %v", err, tx.Outcome)
		}
	})
}

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

// eachWay runs a test on a loaded bank of every data model, style and mode.
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

// The kinds and reasons of the bank.
const (
	kindTransfer = 1 * history.Numbered
	kindPayroll  = 2 * history.Numbered
	kindJoint    = 3 * history.Numbered
	kindInquiry  = 1*history.Numbered | history.ReadOnly
	kindAudit    = 1*history.Numbered | history.ReadOnly | history.Background

	noFunds   history.Reason = 1
	noAccount history.Reason = 2
)

// TestDeclared: the header names every kind and reason.
func TestDeclared(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *bank.Bank, _ load.Client) {
		h := b.Header()
		got := []string{
			h.KindName(kindTransfer), h.KindName(kindPayroll), h.KindName(kindJoint), h.KindName(kindInquiry), h.KindName(kindAudit),
			h.ReasonName(noFunds), h.ReasonName(noAccount),
		}
		want := []string{"transfer", "payroll", "joint transfer", "inquiry", "audit", "insufficient funds", "no such account"}
		if !slices.Equal(got, want) {
			t.Errorf("the kinds and reasons are called %q, not %q", got, want)
		}
	})
}

// next prepares transactions until there is one of the kind that asks for little.
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

// total is what the payer pays.
func total(tx *history.Transaction) (cents int64) {
	for _, op := range tx.Ops {
		cents += max(op.Amount, 0)
	}
	return cents
}

func attempt(t *testing.T, c load.Client, tx *history.Transaction) {
	t.Helper()
	if err := c.Attempt(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
}

func wantOutcome(t *testing.T, tx *history.Transaction, outcome history.Outcome, reason history.Reason) {
	t.Helper()
	if tx.Outcome != outcome || tx.Reason != reason {
		t.Fatalf("the %v is %v, %v, want %v, %v", tx.Kind, tx.Outcome, tx.Reason, outcome, reason)
	}
}

func TestEachKindObservesWhatWasBefore(t *testing.T) {
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

func TestSettleReportsAndCloses(t *testing.T) {
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
				t.Fatalf("a second attempt of the same %v gives %v", kind, err)
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
				t.Fatalf("a closed %v is attempted with %v", kind, err)
			}
			if err := c.ResolveUnknown(t.Context(), lost); err != nil {
				t.Fatal(err)
			}
			wantOutcome(t, lost, history.Aborted, 0)
		}
	})
}

func TestRulesOfTheBank(t *testing.T) {
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

// richJoint commits a joint transfer out of account 0, which is a company's and
// holds nearly all of its pair's money, and returns it with what may still be
// paid in one more.
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

func TestJointTransferKeepsTheFloor(t *testing.T) {
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

func TestCancelledAttemptIsNoSuccess(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *bank.Bank, c load.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		tx := next(t, c, kindTransfer)
		if err := c.Attempt(ctx, tx); err == nil || tx.Outcome == history.Committed {
			t.Fatalf("a cancelled attempt gives %v, %v", err, tx.Outcome)
		}
	})
}

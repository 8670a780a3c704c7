// Package dbtest runs every workload with every setting on every database, and checks the verdicts.
package dbtest

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/check/fact"
	"stroppy/internal/db"
	"stroppy/internal/db/memory"
	"stroppy/internal/db/sqlite"
	"stroppy/internal/history"
	"stroppy/internal/workload"
	"stroppy/internal/workload/bank"
)

// small returns the configuration of a bank with few accounts, so that transactions conflict.
func small() bank.Config {
	c := bank.DefaultConfig()
	c.Accounts, c.Seed, c.Clients = 200, 7, 8
	c.PayrollShare, c.JointShare, c.InquiryShare, c.LargeShare = 0.1, 0.2, 0.1, 0.05
	c.PayrollLegs = 5
	c.Audits = 50
	return c
}

// runBank runs a bank without faults. It fails the test unless each kind of transaction is committed and at least one
// is rejected.
func runBank(t *testing.T, database db.Database, c bank.Config, count uint64) *trial {
	t.Helper()
	b, err := bank.New(database, c)
	if err != nil {
		t.Fatal(err)
	}
	r := conduct(t, database, b, c.Isolation, count)
	if r.driven.Unresolved > 0 {
		t.Errorf("%d transactions are unresolved on a healthy database", r.driven.Unresolved)
	}
	kinds := map[history.Kind]int{}
	r.each(t, func(tx *history.Transaction) {
		switch tx.Outcome {
		case history.Committed:
			kinds[tx.Kind]++
			for _, op := range tx.Ops {
				if !op.Observed {
					t.Fatalf("%v %v is committed and did not observe account %d", tx.Kind, tx.ID, op.Object)
				}
			}
		case history.Rejected:
			if tx.Reason != noFunds {
				t.Errorf("%v %v is rejected: %v", tx.Kind, tx.ID, tx.Reason)
			}
		case history.Unknown:
			t.Errorf("%v %v is unknown on a healthy database", tx.Kind, tx.ID)
		}
	})
	for _, kind := range []history.Kind{kindTransfer, kindPayroll, kindJoint, kindInquiry, kindAudit} {
		if kinds[kind] == 0 {
			t.Errorf("no %v was committed", kind)
		}
	}
	if r.outcomes(t)[history.Rejected] == 0 {
		t.Error("no transaction was rejected, so the test did not reach the rules of the bank")
	}
	return r
}

// runLosingUpdates runs the bank where updates may be lost, with one seed after another until an update is lost. The
// checks must find and name the lost update.
func runLosingUpdates(t *testing.T, database db.Database, c bank.Config) {
	t.Helper()
	c.Accounts = 20 // so that transactions conflict
	const tries = 10
	for range tries {
		r := runBank(t, database, c, 400)
		switch v, named := checktest.Verdict(r.results), r.namesLostUpdate(); {
		case v == check.Invalid && named:
			return
		case v != check.Valid || named:
			t.Fatalf("the verdict is %v, a lost update is named: %t: %+v", v, named, r.results)
		}
		c.Seed++
	}
	t.Errorf("no update was lost in %d runs", tries)
}

// namesLostUpdate reports whether a check names a lost update.
func (r *trial) namesLostUpdate() bool {
	return slices.ContainsFunc(r.results, func(result checktest.Reported) bool {
		return slices.ContainsFunc(result.Findings, func(f check.Finding) bool {
			return f.Kind() == fact.LostUpdate{}.Fact() || f.Kind() == fact.SameVersion{}.Fact()
		})
	})
}

// openMemory opens the in-memory reference database.
func openMemory(t *testing.T, url string) *memory.Database {
	t.Helper()
	d, err := memory.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// openSQLite opens a new SQLite database in a temporary folder.
func openSQLite(t *testing.T) *sqlite.Database {
	t.Helper()
	d, err := sqlite.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "bank.db")+"?synchronous=off")
	return opened(t, d, err)
}

// wantError ends the test unless err is of the type T.
func wantError[T error](t *testing.T, err error) T {
	t.Helper()
	e, ok := errors.AsType[T](err)
	if !ok {
		t.Fatalf("the error is %v, want an error of type %T", err, e)
	}
	return e
}

// ways lists the combinations of update style and mode in SQL.
var ways = []struct{ update, mode string }{
	{bank.Atomic, workload.Pipelined}, {bank.Atomic, workload.Interactive},
	{bank.Locked, workload.Pipelined}, {bank.Locked, workload.Interactive},
	{bank.RMW, workload.Pipelined}, {bank.RMW, workload.Interactive},
}

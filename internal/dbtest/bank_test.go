// Package dbtest holds every database to what the workloads need of it: each
// workload in each of its ways, on each real database.
package dbtest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/db"
	"stroppy/internal/db/memory"
	"stroppy/internal/db/sqlite"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload/bank"
)

// limit bounds one run of a test, so that what hangs is told and not waited for.
const limit = 5 * time.Minute

// small is a bank that a test runs: few accounts, so that transactions meet.
func small() bank.Config {
	c := bank.DefaultConfig()
	c.Accounts, c.Seed, c.Clients = 200, 7, 8
	c.PayrollShare, c.JointShare, c.InquiryShare, c.LargeShare = 0.1, 0.2, 0.1, 0.05
	c.PayrollLegs = 5
	c.Audits = 50
	return c
}

// outcome is what a run of the bank came to.
type outcome struct {
	dir       string
	loaded    string // the total
	committed uint64
	rejected  uint64
	results   []check.Result
}

// runBank loads, drives, downloads and checks one bank.
func runBank(t *testing.T, database db.Database, c bank.Config, count uint64) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	b, err := bank.New(database, c)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := b.Load(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Attach(ctx); err != nil {
		t.Fatal(err)
	}
	return driveBank(t, ctx, database, b, c, count, loaded.Total)
}

func driveBank(t *testing.T, ctx context.Context, database db.Database, b *bank.Bank, c bank.Config, count uint64, total string) outcome {
	t.Helper()
	o := outcome{dir: t.TempDir(), loaded: total}
	o.drive(t, ctx, b, c, count)
	end, err := history.CreateEnd(filepath.Join(o.dir, "history"))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.EndState(ctx, end, nil); err != nil {
		t.Fatal(err)
	}
	if err := end.Close(); err != nil {
		t.Fatal(err)
	}
	claim, err := database.Claim(c.Isolation)
	if err != nil {
		t.Fatal(err)
	}
	if o.results, err = b.Check(ctx, o.dir, claim.Level, nil); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *outcome) drive(t *testing.T, ctx context.Context, b *bank.Bank, c bank.Config, count uint64) {
	t.Helper()
	options := load.Options{Count: count, Retries: 100, Seed: 1, Start: time.Now()}
	var err error
	for i := range c.Clients {
		client, err := b.Client(ctx, i)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		}()
		options.Clients = append(options.Clients, client)
	}
	if options.Background, err = b.Background(ctx); err != nil {
		t.Fatal(err)
	}
	for _, background := range options.Background {
		defer background.Client.Close()
	}
	writer, err := history.Create(filepath.Join(o.dir, "history"), b.Header(), c.Clients+len(options.Background))
	if err != nil {
		t.Fatal(err)
	}
	options.History = writer
	result, err := load.New(options).Run(ctx)
	if e := writer.Close(); err == nil {
		err = e
	}
	if err != nil {
		t.Fatal(err)
	}
	if result.Unresolved > 0 {
		t.Errorf("%d transactions are unresolved on a healthy database", result.Unresolved)
	}
	o.count(t)
}

// count reads the history back and counts outcomes of each kind.
func (o *outcome) count(t *testing.T) {
	t.Helper()
	r, err := history.Open(filepath.Join(o.dir, "history"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	kinds := map[history.Kind]int{}
	for rec, err := range r.Transactions() {
		if err != nil {
			t.Fatal(err)
		}
		switch rec.Outcome {
		case history.Committed:
			o.committed++
			kinds[rec.Kind]++
			for _, op := range rec.Ops {
				if !op.Observed {
					t.Fatalf("%v %v is committed and did not observe account %d", rec.Kind, rec.ID, op.Account)
				}
			}
		case history.Rejected:
			o.rejected++
			if rec.Reason != history.InsufficientFunds {
				t.Errorf("%v %v is rejected: %v", rec.Kind, rec.ID, rec.Reason)
			}
		case history.Unknown:
			t.Errorf("%v %v is unknown on a healthy database", rec.Kind, rec.ID)
		}
	}
	for _, kind := range []history.Kind{history.Transfer, history.Payroll, history.Joint, history.Inquiry, history.Audit} {
		if kinds[kind] == 0 {
			t.Errorf("no %v was committed", kind)
		}
	}
}

// wantValid fails the test unless every required check is valid.
func (o *outcome) wantValid(t *testing.T) {
	t.Helper()
	for _, r := range o.results {
		if r.Required && r.Status != check.Valid {
			t.Errorf("%s is %v: %s", r.Name, r.Status, r.Detail)
		}
	}
	if v := check.Verdict(o.results); v != check.Valid {
		t.Errorf("the verdict is %v", v)
	}
	if o.rejected == 0 {
		t.Error("no transaction was rejected, so the rules of the bank were not exercised")
	}
}

// wantLostUpdates fails the test unless the run is found to have lost updates.
func (o *outcome) wantLostUpdates(t *testing.T) {
	t.Helper()
	if v := check.Verdict(o.results); v != check.Invalid {
		t.Errorf("the verdict is %v although updates were lost", v)
	}
	for _, r := range o.results {
		for _, a := range r.Anomalies {
			if strings.HasPrefix(strings.ToLower(a.Name), "lost update") {
				return
			}
		}
	}
	t.Error("no check names a lost update")
}

func openMemory(t *testing.T, url string) *memory.Database {
	t.Helper()
	d, err := memory.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func openSQLite(t *testing.T) *sqlite.Database {
	t.Helper()
	d, err := sqlite.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "bank.db")+"?synchronous=off")
	return opened(t, d, err)
}

// wantError fails the test unless err is of the type T.
func wantError[T error](t *testing.T, err error) T {
	t.Helper()
	e, ok := errors.AsType[T](err)
	if !ok {
		t.Fatalf("the error is %v, of another type than %T", err, e)
	}
	return e
}

var ways = []struct{ update, mode string }{
	{bank.Atomic, bank.Pipelined}, {bank.Atomic, bank.Interactive},
	{bank.Locked, bank.Pipelined}, {bank.Locked, bank.Interactive},
	{bank.RMW, bank.Pipelined}, {bank.RMW, bank.Interactive},
}

func TestBankOnSQLite(t *testing.T) {
	for _, way := range ways {
		t.Run(way.update+" "+way.mode, func(t *testing.T) {
			c := small()
			c.Update, c.Mode = way.update, way.mode
			o := runBank(t, openSQLite(t), c, 1500)
			o.wantValid(t)
		})
	}
}

func TestBankOnMemory(t *testing.T) {
	for _, url := range []string{"memory:", "memory:?unknown=0.02&abort=0.02"} {
		for _, sample := range []uint64{0, 50} {
			t.Run(fmt.Sprintf("%s sample %d", url, sample), func(t *testing.T) {
				c := small()
				c.AuditSample = sample
				o := runBank(t, openMemory(t, url), c, 3000)
				o.wantValid(t)
			})
		}
	}
}

package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/sqlite"
)

const benchAccounts = 10_000

// BenchmarkTransfer measures a transfer of two legs: two guarded updates and two rows of the ledger in one
// transaction. It also reports transfers/s and the 99th percentile of the time of a transfer.
func BenchmarkTransfer(b *testing.B) {
	for _, parameters := range []string{"synchronous=full", "synchronous=normal", "synchronous=off", "synchronous=full&journal=delete"} {
		for _, sessions := range []int{1, 16} {
			for _, mode := range []db.Mode{db.Pipelined, db.Interactive} {
				name := fmt.Sprintf("%s/%s/sessions=%d", parameters, modeNames[mode], sessions)
				b.Run(name, func(b *testing.B) { benchTransfers(b, parameters, mode, sessions) })
			}
		}
	}
}

func benchTransfers(b *testing.B, parameters string, mode db.Mode, sessions int) {
	ctx := b.Context()
	d, err := sqlite.Open(ctx, "sqlite:"+filepath.Join(b.TempDir(), "bank.db")+"?"+parameters)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	createBank(b, d, benchAccounts)
	times := make([][]time.Duration, sessions)
	var wait sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for i := range sessions {
		s := openSession(b, d, mode)
		count := b.N / sessions
		if i < b.N%sessions {
			count++
		}
		times[i] = make([]time.Duration, 0, count)
		wait.Go(func() {
			t := newTransfer(uint64(i))
			for range count {
				begin := time.Now()
				if err := t.do(ctx, s); err != nil {
					b.Error(err)
					return
				}
				times[i] = append(times[i], time.Since(begin))
			}
		})
	}
	wait.Wait()
	b.StopTimer()
	all := slices.Sorted(slices.Values(slices.Concat(times...)))
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "transfers/s")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(all[len(all)-1].Microseconds())/1000, "max-ms")
}

// BenchmarkBulkLoad measures the loading of rows with six columns.
func BenchmarkBulkLoad(b *testing.B) {
	d, err := sqlite.Open(b.Context(), "sqlite:"+filepath.Join(b.TempDir(), "bank.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	b.ReportAllocs()
	b.ResetTimer()
	createBank(b, d, b.N)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkQuery measures how fast rows stream out.
func BenchmarkQuery(b *testing.B) {
	d, err := sqlite.Open(b.Context(), "sqlite:"+filepath.Join(b.TempDir(), "bank.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	createBank(b, d, b.N)
	s := openSession(b, d, db.Pipelined)
	all := &db.Statement{
		SQL:     "SELECT bic, ban, balance, version FROM account ORDER BY bic, ban",
		Columns: []db.Type{db.Text, db.Text, db.Decimal, db.Integer},
	}
	b.ReportAllocs()
	b.ResetTimer()
	n := 0
	if err := s.Query(b.Context(), all, nil, func([]db.Value) error { n++; return nil }); err != nil || n != b.N {
		b.Fatalf("%d of %d rows: %v", n, b.N, err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// transfer makes the transfers of one client between the accounts of createBank.
type transfer struct {
	client, next uint64
	bics, bans   [2][]byte
	args         []db.Value
}

func newTransfer(client uint64) *transfer { return &transfer{client: client} }

var (
	debit = &db.Statement{
		SQL: "UPDATE account SET balance = balance + ?3, version = version + 1, previous = last, last = ?4" +
			" WHERE bic = ?1 AND ban = ?2 RETURNING balance, version, previous",
		Params:  []db.Type{db.Text, db.Text, db.Decimal, db.Integer},
		Columns: []db.Type{db.Decimal, db.Integer, db.Integer},
	}
	leg = &db.Statement{
		SQL: "INSERT INTO ledger (transfer, number, bic, ban, amount, version)" +
			" SELECT ?1, ?2, bic, ban, ?5, version FROM account WHERE bic = ?3 AND ban = ?4",
		Params:  []db.Type{db.Integer, db.Integer, db.Text, db.Text, db.Decimal},
		Counted: true,
	}
)

// do runs the client's next transfer of one cent.
func (t *transfer) do(ctx context.Context, s db.SQLSession) error {
	t.next++
	id := int64(t.client<<32 | t.next)
	h := (t.client*1_000_003 + t.next) * 0x9E3779B97F4A7C15 >> 20
	payer := h % benchAccounts
	payee := (payer + 1 + h>>20%(benchAccounts-1)) % benchAccounts
	t.key(0, payer)
	t.key(1, payee)
	if err := s.Begin(ctx, false); err != nil {
		return err
	}
	for i, amount := range [2]int64{-1, 1} {
		t.args = append(t.args[:0], db.Value{Text: t.bics[i]}, db.Value{Text: t.bans[i]}, db.Value{Int: amount}, db.Value{Int: id})
		if _, err := s.Do(ctx, debit, t.args); err != nil {
			return err
		}
		t.args = append(t.args[:0], db.Value{Int: id}, db.Value{Int: int64(i)}, db.Value{Text: t.bics[i]}, db.Value{Text: t.bans[i]}, db.Value{Int: amount})
		if _, err := s.Do(ctx, leg, t.args); err != nil {
			return err
		}
	}
	if err := s.Commit(ctx); err != nil {
		return err
	}
	for i := range 4 {
		if r := s.Result(i); r.Rows() != 1 && r.Affected != 1 {
			return fmt.Errorf("statement %d brought %+v", i, r)
		}
	}
	return nil
}

func (t *transfer) key(i int, n uint64) {
	t.bics[i] = appendBIC(t.bics[i][:0], n)
	t.bans[i] = appendBAN(t.bans[i][:0], n)
}

func appendBIC(b []byte, n uint64) []byte {
	return strconv.AppendUint(append(b, "BANK"...), 1000+n%100, 10)
}

func appendBAN(b []byte, n uint64) []byte {
	return strconv.AppendUint(append(b, "ACCT"...), 1e12+n*7_777_777%1e12, 10)
}

// createBank creates the two tables of the bank with n accounts of 1,000.00 each.
func createBank(tb testing.TB, d *sqlite.Database, n int) {
	tb.Helper()
	options := d.Dialect().TableOptions
	i := uint64(0)
	var bic, ban []byte
	rows, err := d.BulkLoad(tb.Context(), db.BulkLoad{
		Before: []string{
			"CREATE TABLE account (bic TEXT NOT NULL, ban TEXT NOT NULL, balance INTEGER NOT NULL CHECK (balance >= 0)," +
				" version INTEGER NOT NULL, last INTEGER NOT NULL, previous INTEGER NOT NULL, PRIMARY KEY (bic, ban))" + options,
			"CREATE TABLE ledger (transfer INTEGER NOT NULL, number INTEGER NOT NULL, bic TEXT NOT NULL, ban TEXT NOT NULL," +
				" amount INTEGER NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (transfer, number))" + options,
		},
		Table:   "account",
		Columns: []string{"bic", "ban", "balance", "version", "last", "previous"},
		Types:   []db.Type{db.Text, db.Text, db.Decimal, db.Integer, db.Integer, db.Integer},
		Next: func(row []db.Value) bool {
			if i == uint64(n) {
				return false
			}
			bic, ban = appendBIC(bic[:0], i), appendBAN(ban[:0], i)
			clear(row)
			row[0].Text, row[1].Text, row[2].Int = bic, ban, 100_000
			i++
			return true
		},
	})
	if err != nil || rows != int64(n) {
		tb.Fatalf("loaded %d of %d accounts: %v", rows, n, err)
	}
}

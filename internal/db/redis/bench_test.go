//go:build unix

package redis_test

import (
	"fmt"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/kvtest"
	"stroppy/internal/db/redis"
)

const benchAccounts = 100_000

// transfers are those of the bank's size: its keys are as long.
func transfers(d *redis.Database) *kvtest.Transfers {
	return &kvtest.Transfers{
		Accounts: benchAccounts, Size: 24,
		Account: func(dst []byte, i int64) []byte {
			return fmt.Appendf(dst, "stroppy/account/BDFGXX2Z/%011d", uint64(i)%benchAccounts)
		},
		Entry:   func(dst []byte, id int64) []byte { return fmt.Appendf(dst, "stroppy/ledger/%016x", id) },
		Session: func(b *testing.B) db.KVSession { return newSession(b, d) },
	}
}

// BenchmarkTransfer runs transfers on one real server of this machine, without a
// file. It also reports what the loaded server needs of memory for an account, the
// index included.
func BenchmarkTransfer(b *testing.B) {
	for _, way := range []string{"script", "watch"} {
		c := start(b, serverOptions{})
		d := drivertest.Open(b, redis.Open, c.URL()+"?commit="+way)
		empty := memory(b, c)
		x := transfers(d)
		x.Load(b, d.Limits().Writes)
		account := float64(memory(b, c)-empty) / benchAccounts
		for _, sessions := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("commit=%s/sessions=%d", way, sessions), func(b *testing.B) {
				x.Run(b, sessions)
				b.ReportMetric(account, "server-bytes/account")
			})
		}
		if err := c.Stop(); err != nil {
			b.Error(err)
		}
	}
}

// BenchmarkScan reads 100,000 entries in one page, as an audit beside writers
// must, for which the server does nothing else.
func BenchmarkScan(b *testing.B) {
	c := start(b, serverOptions{})
	d := drivertest.Open(b, redis.Open, c.URL())
	transfers(d).Load(b, d.Limits().Writes)
	s := newSession(b, d)
	for b.Loop() {
		n := 0
		if err := s.Scan(b.Context(), nil, nil, func(_, _ []byte) error { n++; return nil }); err != nil || n != benchAccounts {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchAccounts, "ns/entry")
}

func memory(b *testing.B, c *servers) (bytes int64) {
	b.Helper()
	_, text, _ := strings.Cut(run(b, c, "INFO", "memory"), "used_memory:")
	if _, err := fmt.Sscan(text, &bytes); err != nil {
		b.Fatal(err)
	}
	return bytes
}

//go:build unix

package redis_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	servers "stroppy/internal/cluster/redis"
	"stroppy/internal/db"
)

const benchAccounts = 100_000

// BenchmarkTransfer moves money between pairs of 100,000 accounts on one real
// server of this machine, without a file: two round trips a transfer, and a
// ledger entry. It reports transfers per second, the CPU time of this process for
// each, user and system, and what the loaded server needs of memory for an
// account, the index included.
func BenchmarkTransfer(b *testing.B) {
	for _, way := range []string{"script", "watch"} {
		c := start(b, servers.Options{})
		d := open(b, c.URL()+"?commit="+way)
		empty := memory(b, c)
		load := newSession(b, d)
		for first := 0; first < benchAccounts; first += d.MaxWrites() {
			begin(b, load)
			for i := range d.MaxWrites() {
				load.Set(benchAccount(nil, int64(first+i)), binary.BigEndian.AppendUint64(make([]byte, 16, 24), 1000))
			}
			commit(b, load)
		}
		account := float64(memory(b, c)-empty) / benchAccounts
		for _, sessions := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("commit=%s/sessions=%d", way, sessions), func(b *testing.B) {
				b.ReportAllocs()
				all := make([]db.KVSession, sessions)
				for i := range all {
					all[i] = newSession(b, d)
				}
				var due, conflicts atomic.Int64
				due.Store(int64(b.N))
				stamp := time.Now().UnixNano() // no two runs share ledger keys
				before := cpuTime(b)
				b.ResetTimer()
				var wg sync.WaitGroup
				for _, s := range all {
					wg.Go(func() {
						t := transferer{session: s, keys: make([][]byte, 3), out: make([]db.Entry, 3), value: make([]byte, 24)}
						for n := due.Add(-1); n >= 0; n = due.Add(-1) {
							again, err := t.transfer(b.Context(), n, stamp+n)
							if conflicts.Add(again); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.StopTimer()
				used := cpuTime(b) - before
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "transfers/s")
				b.ReportMetric(float64(used.Microseconds())/float64(b.N), "client-cpu-us/op")
				b.ReportMetric(float64(conflicts.Load())/float64(b.N), "conflicts/op")
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
	c := start(b, servers.Options{})
	d := open(b, c.URL())
	s := newSession(b, d)
	for first := 0; first < benchAccounts; first += d.MaxWrites() {
		begin(b, s)
		for i := range d.MaxWrites() {
			s.Set(benchAccount(nil, int64(first+i)), make([]byte, 24))
		}
		commit(b, s)
	}
	for b.Loop() {
		n := 0
		if err := s.Scan(b.Context(), nil, nil, func(_, _ []byte) error { n++; return nil }); err != nil || n != benchAccounts {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchAccounts, "ns/entry")
}

func memory(b *testing.B, c *servers.Servers) (bytes int64) {
	b.Helper()
	_, text, _ := strings.Cut(run(b, c, "INFO", "memory"), "used_memory:")
	if _, err := fmt.Sscan(text, &bytes); err != nil {
		b.Fatal(err)
	}
	return bytes
}

// benchAccount is a key as long as an account's of the bank.
func benchAccount(dst []byte, i int64) []byte {
	return fmt.Appendf(dst[:0], "stroppy/account/BDFGXX2Z/%011d", uint64(i)%benchAccounts)
}

// transferer is one session and what it uses again for each transfer.
type transferer struct {
	session db.KVSession
	keys    [][]byte
	out     []db.Entry
	value   []byte
}

// transfer moves one unit, until it has succeeded; it returns the conflicts.
func (t *transferer) transfer(ctx context.Context, n, id int64) (conflicts int64, err error) {
	t.keys[0] = benchAccount(t.keys[0], n*7919)
	t.keys[1] = benchAccount(t.keys[1], n*104729+1)
	t.keys[2] = fmt.Appendf(t.keys[2][:0], "stroppy/ledger/%016x", id)
	for {
		err = t.attempt(ctx)
		if err == nil || db.ClassOf(err) != db.Aborted {
			return conflicts, err
		}
		conflicts++
	}
}

func (t *transferer) attempt(ctx context.Context) error {
	s := t.session
	if err := s.Begin(ctx, false); err != nil {
		return err
	}
	if err := s.Read(ctx, t.keys, t.out); err != nil {
		return err
	}
	for i, change := range []uint64{^uint64(0), 1} { // minus one, plus one
		copy(t.value, t.out[i].Value)
		binary.BigEndian.PutUint64(t.value[16:], binary.BigEndian.Uint64(t.value[16:])+change)
		s.Set(t.keys[i], t.value)
	}
	s.Set(t.keys[2], t.value)
	return s.Commit(ctx)
}

// cpuTime returns the CPU time that this process has used; the server is another.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

//go:build unix

package dbtest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"stroppy/internal/cluster"
	etcdcluster "stroppy/internal/cluster/etcd"
	"stroppy/internal/cluster/host"
	rediscluster "stroppy/internal/cluster/redis"
	"stroppy/internal/db"
	"stroppy/internal/db/etcd"
	"stroppy/internal/db/redis"
)

const benchAccounts = 100_000

// benchAccount appends the key of an account. The keys have the same length as the keys of the bank.
func benchAccount(dst []byte, i int64) []byte {
	return fmt.Appendf(dst, "stroppy_account/BDFGXX2Z/%011d", uint64(i)%benchAccounts)
}

// benchEntry appends the key of a ledger entry.
func benchEntry(dst []byte, id int64) []byte { return fmt.Appendf(dst, "stroppy_ledger/%016x", id) }

// BenchmarkTransferEtcd measures transfers on three local nodes with data in memory.
func BenchmarkTransferEtcd(b *testing.B) {
	c := started(b, func(ctx context.Context) (*etcdcluster.Cluster, error) {
		return etcdcluster.Start(ctx, cluster.Options{Nodes: 3, InMemory: true, Loopback: true})
	})
	d, err := etcd.Open(b.Context(), c.URL())
	must(b, err)
	defer d.Close()
	x := transfers{d, 8}
	x.load(b)
	for _, sessions := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) { x.run(b, sessions) })
	}
}

// BenchmarkTransferRedis measures transfers on one local server without persistence. It also reports the server's
// memory for an account with its index entry.
func BenchmarkTransferRedis(b *testing.B) {
	for _, way := range []string{"script", "watch"} {
		c, d := redisForBench(b, "?commit="+way)
		empty := redisMemory(b, c)
		x := transfers{d, 24}
		x.load(b)
		account := float64(redisMemory(b, c)-empty) / benchAccounts
		for _, sessions := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("commit=%s/sessions=%d", way, sessions), func(b *testing.B) {
				x.run(b, sessions)
				b.ReportMetric(account, "server-bytes/account")
			})
		}
	}
}

// BenchmarkScanRedis measures a read of 100,000 entries in one page. Audits during a run read this way; the server
// does nothing else meanwhile.
func BenchmarkScanRedis(b *testing.B) {
	_, d := redisForBench(b, "")
	transfers{d, 24}.load(b)
	s := benchSession(b, d)
	for b.Loop() {
		n := 0
		if err := s.Scan(b.Context(), nil, nil, func(_, _ []byte) error { n++; return nil }); err != nil || n != benchAccounts {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchAccounts, "ns/entry")
}

// redisForBench starts a server and opens it.
func redisForBench(b *testing.B, query string) (*rediscluster.Cluster, *redis.Database) {
	b.Helper()
	c := started(b, func(ctx context.Context) (*rediscluster.Cluster, error) {
		return rediscluster.StartCluster(ctx, cluster.Options{Nodes: 1, InMemory: true, Loopback: true})
	})
	d, err := redis.Open(b.Context(), c.URL()+query)
	must(b, err)
	b.Cleanup(func() { d.Close() })
	return c, d
}

// redisMemory returns the memory that the server uses.
func redisMemory(b *testing.B, c *rediscluster.Cluster) (bytes int64) {
	b.Helper()
	o, err := goredis.ParseURL(c.URL())
	must(b, err)
	client := goredis.NewClient(o)
	defer client.Close()
	text, err := client.Info(b.Context(), "memory").Result()
	must(b, err)
	_, text, _ = strings.Cut(text, "used_memory:")
	_, err = fmt.Sscan(text, &bytes)
	must(b, err)
	return bytes
}

// started starts a cluster and stops it after the benchmark.
func started[C interface{ Stop() error }](b *testing.B, start func(context.Context) (C, error)) C {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), startLimit)
	defer cancel()
	c, err := start(ctx)
	if missing, ok := errors.AsType[host.MissingError](err); ok {
		b.Skip("install the Debian package " + missing.Package)
	}
	must(b, err)
	b.Cleanup(func() {
		if err := c.Stop(); err != nil {
			b.Error(err)
		}
	})
	return c
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func benchSession(b *testing.B, d db.KV) db.KVSession {
	b.Helper()
	s, err := d.KVSession(b.Context(), db.SessionOptions{})
	must(b, err)
	b.Cleanup(func() { s.Close() })
	return s
}

// transfers is a benchmark of transfers between pairs of accounts. A transfer has two round trips and writes a ledger
// entry.
type transfers struct {
	d    db.KV
	size int // bytes of a value; the last eight are the balance
}

func (x transfers) load(b *testing.B) {
	b.Helper()
	s, value := benchSession(b, x.d), make([]byte, x.size)
	binary.BigEndian.PutUint64(value[x.size-8:], 1000)
	for i, batch := 0, x.d.Limits().Writes; i < benchAccounts; {
		must(b, s.Begin(b.Context(), false))
		for end := min(i+batch, benchAccounts); i < end; i++ {
			s.Set(benchAccount(nil, int64(i)), value)
		}
		must(b, s.Commit(b.Context()))
	}
}

// run executes b.N transfers on the given number of sessions. It reports transfers per second, conflicts per transfer,
// and the CPU time of this process per transfer.
func (x transfers) run(b *testing.B, sessions int) {
	b.ReportAllocs()
	all := make([]db.KVSession, sessions)
	for i := range all {
		all[i] = benchSession(b, x.d)
	}
	var due, conflicts atomic.Int64
	due.Store(int64(b.N))
	stamp := time.Now().UnixNano() // each run has its own ledger keys
	before := cpuTime(b)
	b.ResetTimer()
	var wg sync.WaitGroup
	for _, s := range all {
		wg.Go(func() {
			t := transferClient{session: s, keys: make([][]byte, 3), out: make([]db.Entry, 3), value: make([]byte, x.size)}
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
}

// transferClient is a session with buffers that it reuses for each transfer.
type transferClient struct {
	session db.KVSession
	keys    [][]byte
	out     []db.Entry
	value   []byte
}

// transfer moves one unit and retries until it succeeds. It returns the number of conflicts.
func (c *transferClient) transfer(ctx context.Context, n, id int64) (conflicts int64, err error) {
	c.keys[0] = benchAccount(c.keys[0][:0], n*7919)
	c.keys[1] = benchAccount(c.keys[1][:0], n*104729+1)
	c.keys[2] = benchEntry(c.keys[2][:0], id)
	for {
		err = c.attempt(ctx)
		if err == nil || db.ClassOf(err) != db.Aborted {
			return conflicts, err
		}
		conflicts++
	}
}

func (c *transferClient) attempt(ctx context.Context) error {
	s := c.session
	if err := s.Begin(ctx, false); err != nil {
		return err
	}
	if err := s.Read(ctx, c.keys, c.out); err != nil {
		return err
	}
	balance := c.value[len(c.value)-8:]
	for i, change := range []uint64{^uint64(0), 1} { // minus one, plus one
		copy(c.value, c.out[i].Value)
		binary.BigEndian.PutUint64(balance, binary.BigEndian.Uint64(balance)+change)
		s.Set(c.keys[i], c.value)
	}
	s.Set(c.keys[2], c.value)
	return s.Commit(ctx)
}

// cpuTime returns the CPU time that this process has used, without the servers.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

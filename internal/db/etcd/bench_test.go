//go:build unix

package etcd_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"stroppy/internal/db"
)

const benchAccounts = 100_000

// BenchmarkTransfer moves money between pairs of 100,000 accounts on a real
// cluster of three nodes on this machine, in memory: two round trips a transfer,
// and a ledger entry. It reports transfers per second and the CPU time of this
// process, user and system, for each.
func BenchmarkTransfer(b *testing.B) {
	c := startCluster(b, 3, nil)
	d := open(b, c.URL())
	load := newSession(b, d, "")
	for first := 0; first < benchAccounts; first += d.MaxWrites() {
		mustBegin(b, load)
		for i := range d.MaxWrites() {
			load.Set(benchAccount(nil, int64(first+i)), binary.BigEndian.AppendUint64(nil, 1000))
		}
		expectCommit(b, load)
	}
	for _, sessions := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) {
			b.ReportAllocs()
			all := make([]db.KVSession, sessions)
			for i := range all {
				all[i] = newSession(b, d, "")
			}
			var due, conflicts atomic.Int64
			due.Store(int64(b.N))
			stamp := time.Now().UnixNano() // no two runs share ledger keys
			before := cpuTime(b)
			b.ResetTimer()
			var wg sync.WaitGroup
			for _, s := range all {
				wg.Go(func() {
					t := transferer{session: s, keys: make([][]byte, 3), out: make([]db.Entry, 3), value: make([]byte, 8)}
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
		})
	}
}

func benchAccount(dst []byte, i int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst[:0], "bench/a/"...), uint64(i)%benchAccounts)
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
	t.keys[2] = binary.BigEndian.AppendUint64(append(t.keys[2][:0], "bench/l/"...), uint64(id))
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
		binary.BigEndian.PutUint64(t.value, binary.BigEndian.Uint64(t.out[i].Value)+change)
		s.Set(t.keys[i], t.value)
	}
	s.Set(t.keys[2], t.value)
	return s.Commit(ctx)
}

// cpuTime returns the CPU time that this process has used; the servers are other
// processes.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

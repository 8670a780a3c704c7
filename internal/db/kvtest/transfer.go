//go:build unix

package kvtest

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"stroppy/internal/db"
)

// Transfers is a benchmark that moves money between pairs of accounts: two round
// trips a transfer, and a ledger entry.
type Transfers struct {
	Accounts int
	Size     int                               // bytes of a value, of which the last eight are the balance
	Account  func(dst []byte, i int64) []byte  // appends the key of an account
	Entry    func(dst []byte, id int64) []byte // appends the key of a ledger entry
	Session  func(b *testing.B) db.KVSession   // opens one for the benchmark
}

// Load writes the accounts.
func (x *Transfers) Load(b *testing.B, perCommit int) {
	b.Helper()
	s, value := x.Session(b), make([]byte, x.Size)
	binary.BigEndian.PutUint64(value[x.Size-8:], 1000)
	for first := 0; first < x.Accounts; first += perCommit {
		Begin(b, s)
		for i := range perCommit {
			s.Set(x.Account(nil, int64(first+i)), value)
		}
		Commit(b, s)
	}
}

// Run runs b.N transfers on so many sessions and reports transfers per second,
// conflicts, and the CPU time of this process, user and system, for each.
func (x *Transfers) Run(b *testing.B, sessions int) {
	b.ReportAllocs()
	all := make([]db.KVSession, sessions)
	for i := range all {
		all[i] = x.Session(b)
	}
	var due, conflicts atomic.Int64
	due.Store(int64(b.N))
	stamp := time.Now().UnixNano() // no two runs share ledger keys
	before := cpuTime(b)
	b.ResetTimer()
	var wg sync.WaitGroup
	for _, s := range all {
		wg.Go(func() {
			t := client{Transfers: x, session: s, keys: make([][]byte, 3), out: make([]db.Entry, 3), value: make([]byte, x.Size)}
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

// client is one session and what it uses again for each transfer.
type client struct {
	*Transfers
	session db.KVSession
	keys    [][]byte
	out     []db.Entry
	value   []byte
}

// transfer moves one unit, until it has succeeded; it returns the conflicts.
func (c *client) transfer(ctx context.Context, n, id int64) (conflicts int64, err error) {
	c.keys[0] = c.Account(c.keys[0][:0], n*7919)
	c.keys[1] = c.Account(c.keys[1][:0], n*104729+1)
	c.keys[2] = c.Entry(c.keys[2][:0], id)
	for {
		err = c.attempt(ctx)
		if err == nil || db.ClassOf(err) != db.Aborted {
			return conflicts, err
		}
		conflicts++
	}
}

func (c *client) attempt(ctx context.Context) error {
	s := c.session
	if err := s.Begin(ctx, false); err != nil {
		return err
	}
	if err := s.Read(ctx, c.keys, c.out); err != nil {
		return err
	}
	balance := c.value[c.Size-8:]
	for i, change := range []uint64{^uint64(0), 1} { // minus one, plus one
		copy(c.value, c.out[i].Value)
		binary.BigEndian.PutUint64(balance, binary.BigEndian.Uint64(balance)+change)
		s.Set(c.keys[i], c.value)
	}
	s.Set(c.keys[2], c.value)
	return s.Commit(ctx)
}

// cpuTime returns the CPU time that this process has used; the servers are others.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

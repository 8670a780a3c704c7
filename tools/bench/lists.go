package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"stroppy/internal/check/lists"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/tools/try"
)

// The shape of the history for the check of lists.
const (
	listClients = 64
	listsAtOnce = 100 // the lists that are in use
	listLength  = 24  // after so many appends a list is left and another begun
)

// lists measures the check of list-append histories of growing length, to a verdict at strict
// serializability. The history is made while it is read, and what that costs is measured
// alone and taken away. Then a recorded run is checked as a user checks it.
func (s *suite) lists() {
	for _, count := range []int{10_000, 100_000, 1_000_000, 5_000_000, 10_000_000} {
		var made, checked time.Duration // the least of all repeats
		var used float64
		var bytes uint64
		for repeat := range min(s.repeats, 3) {
			start := time.Now()
			for range serialLists(count) {
			}
			making := time.Since(start)
			runtime.GC()
			before := processorTime()
			start = time.Now()
			peak, stop := watchHeap()
			report := try.Must(lists.Check(s.ctx, lists.Input{
				Expect: isolation.StrictSerializable, Transactions: serialLists(count), Complete: true, RealTime: true,
			}))
			took, cpu := time.Since(start), processorTime()-before
			stop()
			if len(report.Holds) != 1 || report.Holds[0] != isolation.StrictSerializable {
				try.Fail("the check of a serial history of %d transactions says %v", count, report.Holds)
			}
			if repeat == 0 || took < checked {
				made, checked, used, bytes = making, took, cpu.Seconds(), *peak
			}
		}
		name := fmt.Sprintf("lists: %d transactions: ", count)
		wanted := ""
		if count >= 5_000_000 {
			wanted = "≥ 500000"
		}
		s.row(name+"checked a second", "%.0f", float64(count)/(checked-made).Seconds(), 0, wanted)
		s.row(name+"CPU seconds (making it included)", "%.2f", used, 0, "")
		s.row(name+"memory a transaction, at the most", "%.0f B", float64(bytes)/float64(count), 0, "")
	}
	s.checkRun("check append: from files", "transactions", "append", "≥ 500000")
}

// watchHeap measures the most that the heap takes until it is stopped.
func watchHeap() (*uint64, func()) {
	peak, end, done := new(uint64), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		var m runtime.MemStats
		for {
			runtime.ReadMemStats(&m)
			*peak = max(*peak, m.HeapInuse)
			select {
			case <-end:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return peak, func() { close(end); <-done }
}

// serialLists yields transactions of one to five operations, each of which took effect at one
// instant between its beginning and its end.
func serialLists(count int) func(func(*lists.Transaction, error) bool) {
	return func(yield func(*lists.Transaction, error) bool) {
		rng := rand.New(rand.NewPCG(1, 13))
		type list struct {
			key      uint64
			elements []uint64
		}
		active := make([]list, listsAtOnce)
		next := uint64(0)
		for i := range active {
			active[i] = list{next, make([]uint64, 0, listLength)}
			next++
		}
		tx := lists.Transaction{Outcome: history.Committed, Ops: make([]lists.Op, 0, 5)}
		var free [listClients]int64
		for i := range count {
			client, now := uint64(i%listClients), int64(i+listClients)*1000
			tx.ID = history.NewID(1, client, uint64(i/listClients))
			tx.Client = client
			tx.Begin = max(free[client], now-rng.Int64N(32_000))
			tx.End = now + rng.Int64N(32_000)
			free[client] = tx.End + 1
			tx.Ops = tx.Ops[:0]
			for range 1 + rng.IntN(5) {
				l := &active[rng.IntN(listsAtOnce)]
				if rng.IntN(2) == 0 {
					tx.Ops = append(tx.Ops, lists.Op{Kind: lists.Read, Known: true, Key: l.key, List: l.elements})
					continue
				}
				if len(l.elements) == listLength {
					*l = list{next, make([]uint64, 0, listLength)}
					next++
				}
				element := uint64(tx.ID)<<3 | uint64(len(tx.Ops))
				l.elements = append(l.elements, element)
				tx.Ops = append(tx.Ops, lists.Op{Kind: lists.Append, Key: l.key, Element: element})
			}
			if !yield(&tx, nil) {
				return
			}
		}
	}
}

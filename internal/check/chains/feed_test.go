package chains

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"stroppy/internal/check/checktest"
	"stroppy/internal/history"
)

const objects = 20

// recorded returns the recordings and the end state of sequential transfers. The clients take turns and are
// divided among the runs. If swapped is set, the last transfer read a version that it could not have read.
func recorded(t *testing.T, runs, clients, count int, swapped bool) (list []Recording, end *history.End) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	var outs []*history.Writer
	var dirs []string
	for run := range runs {
		dirs = append(dirs, t.TempDir())
		out, err := history.Create(dirs[run], history.Header{Workload: "bank", Run: uint64(run + 1), Objects: objects, Clients: clients}, clients)
		must(err)
		outs = append(outs, out)
	}
	state, err := history.CreateEnd(dirs[0])
	must(err)
	zero := func(run int) int64 { return int64(run * count * 3) }
	rng := rand.New(rand.NewPCG(uint64(clients), uint64(count)))
	accounts := make([]history.Object, objects)
	for n := range accounts {
		accounts[n] = history.Object{N: uint64(n), Value: 100}
	}
	sequences := make([]uint64, clients)
	for i := range count {
		client := rng.IntN(clients)
		run := client % runs
		sequences[client]++
		at := int64(10*i) - zero(run)
		tx := history.Transaction{
			ID: history.NewID(uint64(run+1), uint64(client), sequences[client]), Kind: history.Numbered, Outcome: history.Committed, Attempts: 1,
			Due: at, Sent: at, Try: at, End: at + 5,
		}
		for leg, n := range rng.Perm(objects)[:2] {
			o := &accounts[n]
			op := history.Op{Object: o.N, Write: true, Observed: true, Amount: int64(1 - 2*leg), Version: o.Version, Value: o.Value, Writer: o.Writer}
			if swapped && i == count-1 {
				op.Value++
			}
			o.Value, o.Version, o.Writer = o.Value+op.Amount, o.Version+1, tx.ID
			tx.Ops = append(tx.Ops, op)
			must(state.Row(history.Row{Transaction: tx.ID, Number: uint32(leg), Object: o.N, Amount: op.Amount, Version: o.Version}))
		}
		must(outs[run].Client(client).Append(&tx))
	}
	for _, o := range accounts {
		must(state.Object(o))
	}
	must(state.Close())
	for run, out := range outs {
		for i := range clients {
			must(out.Client(i).Flush())
		}
		must(out.Close())
		reader, err := history.Open(dirs[run])
		must(err)
		t.Cleanup(func() { _ = reader.Close() })
		list = append(list, Recording{Source: reader, Zero: zero(run)})
	}
	end, err = history.OpenEnd(dirs[0])
	must(err)
	t.Cleanup(func() { _ = end.Close() })
	return list, end
}

// TestBatchSizesDoNotMatter checks that the result does not depend on the number of records in a batch, nor
// on the number of batches sent together.
func TestBatchSizesDoNotMatter(t *testing.T) {
	for _, c := range []struct{ runs, clients, count int }{{1, 1, 4000}, {1, 3, 3000}, {2, 40, 6000}, {1, 500, 5000}, {3, 500, 5000}} {
		for _, swapped := range []bool{false, true} {
			list, end := recorded(t, c.runs, c.clients, c.count, swapped)
			for _, piece := range []int{1, 3, 16, 512, 0} {
				for _, grouped := range []int{1, 5, 64} {
					in := Input{
						Objects: objects, Opening: func(uint64) int64 { return 100 }, Floor: -1 << 40, History: list, End: end,
						Look:  func() func(*history.Transaction) error { return func(*history.Transaction) error { return nil } },
						piece: piece, grouped: grouped,
					}
					proof, err := Prove(t.Context(), in)
					what := fmt.Sprintf("%d runs, %d clients, pieces of %d, %d together, swapped %v", c.runs, c.clients, piece, grouped, swapped)
					switch {
					case swapped && !Open(err):
						t.Errorf("%s: %v, %+v", what, err, proof)
					case !swapped && (err != nil || proof.Applied != c.count || proof.Committed != c.count || len(proof.Cyclic) > 0):
						t.Errorf("%s: %v, %+v", what, err, proof)
					}
				}
			}
		}
	}
}

// TestAuditsLeaveNothingBehind measures the memory of a proof while it reads audits of many accounts.
func TestAuditsLeaveNothingBehind(t *testing.T) {
	t.Run("many audits in a block", func(t *testing.T) { testAuditMemory(t, false) })
	t.Run("a client that writes seldom", func(t *testing.T) { testAuditMemory(t, true) })
}

// testAuditMemory proves a history in which audits read the same again, so that they take little space. If
// seldom is set, each audit has its own block, and the blocks of client 1 are at the beginning and at the end.
func testAuditMemory(t *testing.T, seldom bool) {
	const accounts, audits, clients = 20_000, 120, 20
	dir := t.TempDir()
	out, err := history.Create(dir, history.Header{Workload: "bank", Run: 1, Objects: accounts, Clients: clients}, clients)
	if err != nil {
		t.Fatal(err)
	}
	end, err := history.CreateEnd(dir)
	if err != nil {
		t.Fatal(err)
	}
	var sequence [clients]uint64
	transactions := 0
	for n := range uint64(audits) {
		at := int64(n * 1000)
		tx := history.Transaction{
			ID: history.NewID(1, 0, n+1), Kind: history.Numbered | history.ReadOnly | history.Background, Outcome: history.Committed, Attempts: 1,
			Due: at, Sent: at, Try: at, End: at + 500,
		}
		for object := range uint64(accounts) {
			tx.Ops = append(tx.Ops, history.Op{Object: object, Observed: true, Value: 100})
		}
		if err := out.Client(0).Append(&tx); err != nil {
			t.Fatal(err)
		}
		if seldom {
			if err := out.Client(0).Flush(); err != nil {
				t.Fatal(err)
			}
		}
		transactions++
		for c := 1; c < clients; c++ { // many batches are in progress
			if seldom && c == 1 && n > 0 && n < audits-1 {
				continue
			}
			sequence[c]++
			tx.ID, tx.Kind, tx.Ops = history.NewID(1, uint64(c), sequence[c]), history.Numbered|history.ReadOnly, tx.Ops[:2]
			if err := errors.Join(out.Client(c).Append(&tx), out.Client(c).Flush()); err != nil {
				t.Fatal(err)
			}
			transactions++
		}
	}
	for object := range uint64(accounts) {
		if err := end.Object(history.Object{N: object, Value: 100}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(end.Close(), out.Client(0).Flush(), out.Close()); err != nil {
		t.Fatal(err)
	}
	reader, state := checktest.Open(t, dir)
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	looked, most := 0, uint64(0)
	look := func(*history.Transaction) error {
		if looked++; looked%10 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc-min(now.HeapAlloc, before.HeapAlloc))
		}
		return nil
	}
	proof, err := Prove(t.Context(), Input{
		Objects: accounts, Opening: func(uint64) int64 { return 100 }, History: []Recording{{Source: reader}}, End: state,
		Look: func() func(*history.Transaction) error { return look },
	})
	if err != nil || proof.Applied != transactions || looked != audits {
		t.Fatalf("%d audits were looked at: %v, %+v", looked, err, proof)
	}
	const bound = 60 << 20 // all audits take more than 200 MB
	if most > bound {
		t.Errorf("the proof took %d MB", most>>20)
	}
}

// TestDoneBatchHoldsNoLargeMemory checks that a finished batch does not keep the memory of many operations.
func TestDoneBatchHoldsNoLargeMemory(t *testing.T) {
	b := &batch{live: 1, pool: new(sync.Pool)}
	if b.now = b.room(manyOperations); cap(b.now) < manyOperations || len(b.large) != 1 {
		t.Fatalf("there is room for %d operations", cap(b.now))
	}
	b.now = nil
	b.done()
	for _, ops := range b.large[:cap(b.large)] {
		if ops != nil {
			t.Error("the batch still holds the memory")
		}
	}
}

func TestWaitersAreFoundOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var table waiters
	want := map[version][]waiter{}
	for range 20_000 {
		v := version{uint32(rng.IntN(4)), uint32(rng.IntN(50))}
		switch list := want[v]; rng.IntN(3) {
		case 0, 1:
			who := waiter{&transaction{id: history.ID(rng.Uint64())}, int32(rng.IntN(3))}
			table.add(v, who)
			want[v] = append(list, who)
		case 2:
			if len(list) > 0 && rng.IntN(2) == 0 {
				table.remove(v, list[0].t)
				want[v] = list[1:]
				continue
			}
			seen := 0
			for range table.of(v) {
				seen++
			}
			left := map[waiter]bool{}
			for _, who := range list {
				left[who] = true
			}
			for who := range table.take(v) {
				if !left[who] {
					t.Fatalf("%v does not wait for %v, or was there twice", who, v)
				}
				delete(left, who)
			}
			if len(left) > 0 || seen != len(list) {
				t.Fatalf("%d of %d that wait for %v were not found", len(left), len(list), v)
			}
			delete(want, v)
		}
	}
}

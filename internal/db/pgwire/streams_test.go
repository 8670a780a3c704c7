package pgwire

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/sqltest"
)

func openStreams(t testing.TB, d *Database, n int) []*session {
	t.Helper()
	sessions, err := d.Streams(t.Context(), n, db.SessionOptions{Mode: db.Pipelined})
	if err != nil {
		t.Fatal(err)
	}
	var list []*session
	for _, s := range sessions {
		list = append(list, s.(*session))
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return list
}

// together runs one function for each stream, all concurrently.
func together(streams []*session, do func(i int, l *session)) {
	var group sync.WaitGroup
	for i, l := range streams {
		group.Go(func() { do(i, l) })
	}
	group.Wait()
}

// TestStreamsHaveIndependentTransactions checks that streams of one connection get their own results and that a
// refused transaction affects no other. A transaction with early results must not be torn apart.
func TestStreamsHaveIndependentTransactions(t *testing.T) {
	d := openFresh(t)
	const count = 12
	bank.Make(t, d, 2*count)
	for _, implicit := range []bool{true, false} {
		t.Run(fmt.Sprintf("implicit %v", implicit), func(t *testing.T) {
			streams := openStreams(t, way{implicit: implicit}.on(d), count)
			backends := map[int64]bool{}
			var want [2 * count]int64
			reader := sqltest.Session(t, d, db.Interactive, "")
			for i := range want {
				want[i] = bank.Balance(t, reader, int64(i))
			}
			var mu sync.Mutex
			together(streams, func(i int, l *session) {
				rng := rand.New(rand.NewPCG(uint64(i), 1))
				one, two := int64(i), int64(count+i) // the stream's own accounts
				for range 300 {
					cents := 1 + rng.Int64N(100)
					switch rng.IntN(4) {
					case 0: // one round trip
						if err := sqltest.Transact(t.Context(), l, false, false, bank.Touch(one, cents), bank.Touch(two, -cents)); err != nil {
							t.Error(err)
							return
						}
						if r := l.Result(0); r.Rows() != 1 || r.Row(0)[1].Int != want[one]+cents {
							t.Errorf("stream %d was given %+v, and its balance is %d", i, r, want[one]+cents)
							return
						}
						want[one], want[two] = want[one]+cents, want[two]-cents
					case 1: // refused by the schema, as a whole
						err := sqltest.Transact(t.Context(), l, false, false, bank.Touch(one, cents), bank.Touch(two, -1_000_000_000))
						if db.ConstraintOf(err) != db.CheckFailed {
							t.Errorf("an overdraft gives %v", err)
							return
						}
					case 2: // asks before its end
						if err := l.Begin(t.Context(), false); err != nil {
							t.Error(err)
							return
						}
						r, err := sqltest.Do(t.Context(), l, bank.See(one))
						if err != nil || r.Rows() != 1 {
							t.Errorf("read: %v", err)
							return
						}
						x := bank.Touch(one, cents)
						if _, err = l.Do(t.Context(), x.S, x.Args); err == nil && rng.IntN(2) == 0 {
							err = l.Rollback(t.Context())
							cents = 0
						} else if err == nil {
							err = l.Commit(t.Context())
						}
						if err != nil {
							t.Error(err)
							return
						}
						want[one] += cents
					default:
						err := l.Query(t.Context(), &db.Statement{SQL: "SELECT pg_backend_pid()", Columns: []db.Type{db.Integer}}, nil, func(row []db.Value) error {
							mu.Lock()
							defer mu.Unlock()
							backends[row[0].Int] = true
							return nil
						})
						if err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
			for i := range want {
				if got := bank.Balance(t, reader, int64(i)); got != want[i] {
					t.Errorf("account %d has %d, not %d", i, got, want[i])
				}
			}
			if len(backends) != 1 {
				t.Errorf("%d streams have %d connections", count, len(backends))
			}
		})
	}
}

// TestWaitingStreamsAreSentInOneWrite checks that transactions that wait for the connection are sent in one write.
func TestWaitingStreamsAreSentInOneWrite(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 16)
	streams := openStreams(t, d, 16)
	together(streams, func(i int, l *session) { // prepares the statement
		if err := sqltest.Transact(t.Context(), l, true, false, bank.See(int64(i))); err != nil {
			t.Error(err)
		}
	})
	sharedConn := streams[0].stream.conn
	r := &recorder{Conn: sharedConn.link.Conn}
	sharedConn.link.Conn = r
	streams[0].stream.handle.Acquire()
	done := make(chan struct{})
	go func() {
		defer close(done)
		together(streams[1:], func(i int, l *session) {
			if err := sqltest.Transact(t.Context(), l, true, false, bank.See(int64(i))); err != nil {
				t.Error(err)
			}
		})
	}()
	for sharedConn.Queued() < len(streams)-1 {
		time.Sleep(time.Millisecond)
	}
	streams[0].stream.handle.Release()
	<-done
	if want := strings.TrimSuffix(strings.Repeat("s1 S ", len(streams)-1), " "); r.take() != want {
		t.Errorf("%d transactions that waited together were not sent as %q", len(streams)-1, want)
	}
}

// TestStreamsRecoverFromLostConnection checks that every stream gets an error when the server ends the connection.
// Running transactions are unknown, and acknowledged transactions exist.
func TestStreamsRecoverFromLostConnection(t *testing.T) {
	d := openFresh(t)
	const count = 8
	bank.Make(t, d, count)
	streams := openStreams(t, d, count)
	other := sqltest.Session(t, d, db.Interactive, "")
	end := &db.Statement{SQL: "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'", Columns: []db.Type{db.Integer}}
	var applied, unknown [count]int64
	var done atomic.Bool
	var killer sync.WaitGroup
	killer.Go(func() {
		defer done.Store(true)
		for range 10 {
			time.Sleep(30 * time.Millisecond)
			if err := other.Query(t.Context(), end, nil, func([]db.Value) error { return nil }); err != nil {
				t.Error(err)
			}
		}
	})
	together(streams, func(i int, l *session) {
		for n := 0; !done.Load(); n++ {
			err := sqltest.Transact(t.Context(), l, false, n%5 == 0, bank.Touch(int64(i), 1))
			switch class := db.ClassOf(err); {
			case err == nil:
				applied[i]++
				continue
			case class == db.Unknown:
				unknown[i]++
			case class != db.Unavailable:
				t.Errorf("the end of the connection is %v: %v", class, err)
				return
			}
			if err := l.Begin(t.Context(), false); db.ClassOf(err) != db.Unavailable {
				t.Errorf("a broken stream begins: %v", err)
			}
			for l.Reset(t.Context()) != nil {
				time.Sleep(time.Millisecond)
			}
		}
	})
	killer.Wait()
	lost := int64(0)
	for i := range count {
		more := bank.Balance(t, other, int64(i)) - sqltest.Opening
		if more < applied[i] || more > applied[i]+unknown[i] {
			t.Errorf("account %d was added %d cents: %d transactions were acknowledged and %d are unknown", i, more, applied[i], unknown[i])
		}
		lost += unknown[i]
	}
	t.Logf("%v were acknowledged, %d are unknown", applied, lost)
	if lost == 0 {
		t.Error("no transaction was under way when the connection ended")
	}
}

// TestStreamWithCancelledContextSendsNothing checks that a stream whose context has ended sends nothing, and that
// a stream that waits for each statement is refused.
func TestStreamWithCancelledContextSendsNothing(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 1)
	l := openStreams(t, d, 2)[0]
	ctx, cancel := context.WithCancel(t.Context())
	if err := sqltest.Transact(ctx, l, false, false, bank.Touch(0, 1)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := sqltest.Transact(ctx, l, false, false, bank.Touch(0, 1)); db.ClassOf(err) != db.Aborted {
		t.Errorf("a transaction after its time gives %v", err)
	}
	if err := sqltest.Transact(t.Context(), l, false, false, bank.Touch(0, 1)); err != nil {
		t.Error(err)
	}
	if _, err := d.Streams(t.Context(), 2, db.SessionOptions{Mode: db.Interactive}); db.ClassOf(err) != db.Fatal {
		t.Errorf("streams of mode interactive give %v", err)
	}
}

// TestStreamsAllocateNothing checks that a transaction on a stream allocates nothing.
func TestStreamsAllocateNothing(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 1)
	l := openStreams(t, d, 2)[0]
	x := bank.See(0)
	if n := testing.AllocsPerRun(500, func() {
		err := l.Begin(t.Context(), true)
		if err == nil {
			_, err = l.Do(t.Context(), x.S, x.Args)
		}
		if err == nil {
			err = l.Commit(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a transaction", n)
	}
}

// TestMisusedStreamHarmsNoTransaction checks that an invalid call harms no transaction.
func TestMisusedStreamHarmsNoTransaction(t *testing.T) {
	d, ctx := openFresh(t), t.Context()
	bank.Make(t, d, 2)
	streams := openStreams(t, d, 2)
	a, b := streams[0], streams[1]
	see, touch := bank.See(1), bank.Touch(1, 1)
	if err := a.Begin(ctx, false); err != nil {
		t.Fatal(err)
	}
	if _, err := sqltest.Do(ctx, a, bank.Touch(0, 1)); err != nil {
		t.Fatal(err)
	}
	if err := b.Begin(ctx, false); err != nil {
		t.Fatal(err)
	}
	_, err := b.Do(ctx, touch.S, touch.Args[:1])
	sqltest.WantError(t, "too few arguments beside an open transaction", err, db.Fatal, "")
	if err := a.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.Begin(ctx, false); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Do(ctx, touch.S, touch.Args); err != nil {
		t.Fatal(err)
	}
	sqltest.WantError(t, "a query in a transaction", b.Query(ctx, see.S, see.Args, nil), db.Fatal, "")
	if err := b.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	for account := range int64(2) {
		if cents := bank.Balance(t, a, account); cents != sqltest.Opening+1 {
			t.Errorf("account %d has %d", account, cents)
		}
	}
}

package redis_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/kvtest"
	"stroppy/internal/db/redis"
)

func openStreams(t testing.TB, d *redis.Database, n int) []db.KVSession {
	t.Helper()
	streams, err := d.Streams(t.Context(), n, db.SessionOptions{})
	drivertest.Must(t, err)
	if len(streams) != n {
		t.Fatalf("%d streams, not %d", len(streams), n)
	}
	for _, l := range streams {
		t.Cleanup(func() { drivertest.Must(t, l.Close()) })
	}
	return streams
}

// atOnce runs one function for each stream, all at the same time.
func atOnce(streams []db.KVSession, do func(i int, l db.KVSession)) {
	var group sync.WaitGroup
	for i, l := range streams {
		group.Go(func() { do(i, l) })
	}
	group.Wait()
}

// together lets each stream do one thing, which must send one request. No stream sends before all want to send. If then
// is not nil, it runs just before the requests are sent.
func together(streams []db.KVSession, then func(), do func(i int, l db.KVSession)) {
	release := redis.Hold(streams[0])
	done := make(chan struct{})
	go func() {
		defer close(done)
		atOnce(streams, do)
	}()
	redis.AwaitQueue(streams[0], len(streams))
	if then != nil {
		then()
	}
	release()
	<-done
}

// names returns the names of the commands in one write.
func names(t *testing.T, written string) string {
	t.Helper()
	r := bufio.NewReader(strings.NewReader(written))
	var all []string
	for r.Buffered() > 0 || len(all) == 0 {
		words, err := request(r)
		drivertest.Must(t, err)
		all = append(all, words[0])
	}
	return strings.Join(all, " ")
}

// expectWrites fails the test unless exactly these commands were written since the last call. The commands in one
// string must be one write.
func expectWrites(t *testing.T, r *redis.Recorder, want ...string) {
	t.Helper()
	var got []string
	for _, w := range r.Take() {
		got = append(got, names(t, w))
	}
	if !slices.Equal(got, want) {
		t.Errorf("what was written is %q, not %q", got, want)
	}
}

func times(n int, name string) string { return strings.TrimSuffix(strings.Repeat(name+" ", n), " ") }

// awaitClients returns when a server has the given number of connections, without the connection that asks.
func awaitClients(t *testing.T, c *servers, want int) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		got := strings.Count(run(t, c, "CLIENT", "LIST", "TYPE", "normal"), "addr=") / 2 // each has addr= and laddr=
		if got-1 == want {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("the server has %d connections, not %d", got-1, want)
		}
	}
}

// add reads a counter and adds one to it.
func add(ctx context.Context, l db.KVSession, key string) (before int, err error) {
	if err := l.Begin(ctx, false); err != nil {
		return 0, err
	}
	var out [1]db.Entry
	if err := l.Read(ctx, kvtest.Keys(key), out[:]); err != nil {
		return 0, err
	}
	if before, err = strconv.Atoi(string(out[0].Value)); err != nil {
		return 0, db.Fatalf("count", "%s is %q", key, out[0].Value)
	}
	l.Set([]byte(key), strconv.AppendInt(nil, int64(before)+1, 10))
	return before, l.Commit(ctx)
}

// TestStreamsHaveIndependentTransactions checks that streams of one connection see their own writes and conflict as
// sessions do. A refused stream affects no other stream.
func TestStreamsHaveIndependentTransactions(t *testing.T) {
	c := start(t, serverOptions{})
	d := drivertest.Open(t, redis.Open, c.URL())
	const count, shared = 8, "shared"
	kvtest.Put(t, d, shared, "0")
	for i := range count {
		kvtest.Put(t, d, fmt.Sprint("own/", i), "0")
	}
	streams := openStreams(t, d, count)
	awaitClients(t, c, 1)
	var own [count]int
	var added, conflicts atomic.Int64
	atOnce(streams, func(i int, l db.KVSession) {
		rng, key := rand.New(rand.NewPCG(uint64(i), 1)), fmt.Sprint("own/", i)
		for range 400 {
			switch rng.IntN(4) {
			case 0:
				before, err := add(t.Context(), l, key)
				if err != nil || before != own[i] {
					t.Errorf("stream %d has read %d of its own, which is %d: %v", i, before, own[i], err)
					return
				}
				own[i]++
			case 1:
				switch _, err := add(t.Context(), l, shared); {
				case err == nil:
					added.Add(1)
				case db.ClassOf(err) == db.Aborted:
					conflicts.Add(1)
				default:
					t.Error(err)
					return
				}
			case 2: // abandoned
				if err := l.Begin(t.Context(), false); err != nil {
					t.Error(err)
					return
				}
				l.Set([]byte(key), []byte("given up"))
				l.Delete([]byte(shared))
				l.Rollback()
			default:
				found := ""
				err := l.Scan(t.Context(), []byte(key), []byte(key+"\x00"), func(key, value []byte) error {
					found += string(key) + "=" + string(value)
					return nil
				})
				if want := fmt.Sprint(key, "=", own[i]); err != nil || found != want {
					t.Errorf("stream %d finds %q, not %q: %v", i, found, want, err)
					return
				}
			}
		}
	})
	want := fmt.Sprint(added.Load())
	for _, n := range own {
		want += fmt.Sprint(" ", n)
	}
	s := newSession(t, d)
	kvtest.Begin(t, s)
	kvtest.ExpectRead(t, s, want, shared, "own/0", "own/1", "own/2", "own/3", "own/4", "own/5", "own/6", "own/7")
	t.Logf("%d met and %d of them were refused", added.Load()+conflicts.Load(), conflicts.Load())
}

// TestWaitingStreamsAreSentInOneWrite checks that transactions that wait for the connection are sent in one write, with
// one request for all reads. If several transactions read the same key, one commits and the others affect nobody.
func TestWaitingStreamsAreSentInOneWrite(t *testing.T) {
	d := drivertest.Open(t, redis.Open, start(t, serverOptions{}).URL())
	const count, same = 16, 3
	kvtest.Put(t, d, "same", "0") // the server also knows the script
	streams := openStreams(t, d, count)
	r := redis.Record(streams[0])
	key := func(i int) string {
		if i < same {
			return "same"
		}
		return fmt.Sprint("own/", i)
	}
	for _, l := range streams {
		kvtest.Begin(t, l)
	}
	together(streams, nil, func(i int, l db.KVSession) {
		var out [1]db.Entry
		if err := l.Read(t.Context(), kvtest.Keys(key(i)), out[:]); err != nil || out[0].Found != (i < same) {
			t.Errorf("stream %d reads %+v: %v", i, out, err)
		}
	})
	expectWrites(t, r, times(count, "mget")+" role")
	errs := make([]error, count)
	together(streams, nil, func(i int, l db.KVSession) {
		l.Set([]byte(key(i)), fmt.Append(nil, "of stream ", i))
		errs[i] = l.Commit(t.Context())
	})
	expectWrites(t, r, times(count, "evalsha"))
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && i < same && winner < 0:
			winner = i
		case err == nil && i >= same:
		case i < same && db.ClassOf(err) == db.Aborted:
		default:
			t.Errorf("stream %d: %v", i, err)
		}
	}
	together(streams, nil, func(i int, l db.KVSession) {
		if err := l.Scan(t.Context(), []byte(key(i)), []byte(key(i)+"\x00"), func(_, value []byte) error {
			author := i
			if i < same {
				author = winner
			}
			if want := fmt.Sprint("of stream ", author); string(value) != want {
				t.Errorf("stream %d finds %q, not %q", i, value, want)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	if got := r.Take(); len(got) < 1 || names(t, got[0]) != times(count, "evalsha")+" role" {
		t.Errorf("scans were written as %q", got)
	}
}

// TestLastStreamClosesTheConnection checks that the last stream closes the connection, and that a closed stream
// returns an error.
func TestLastStreamClosesTheConnection(t *testing.T) {
	c := start(t, serverOptions{})
	d := drivertest.Open(t, redis.Open, c.URL())
	streams := openStreams(t, d, 3)
	kvtest.Put(t, d, "a", "1")
	for _, l := range streams[:2] {
		drivertest.Must(t, l.Close())
		drivertest.Must(t, l.Close())
		expect(t, "a closed stream", l.Begin(t.Context(), false), db.Fatal, "closed")
		expect(t, "a reset of a closed stream", l.Reset(t.Context()), db.Fatal, "closed")
	}
	kvtest.Begin(t, streams[2])
	kvtest.ExpectRead(t, streams[2], "1", "a")
	awaitClients(t, c, 1)
	drivertest.Must(t, streams[2].Close())
	awaitClients(t, c, 0)
}

// TestStreamWithCancelledContextSendsNothing checks that a stream whose context has ended sends nothing, and that
// even its Reset disturbs no other stream.
func TestStreamWithCancelledContextSendsNothing(t *testing.T) {
	d := drivertest.Open(t, redis.Open, start(t, serverOptions{}).URL())
	streams := openStreams(t, d, 2)
	r := redis.Record(streams[0])
	kvtest.Begin(t, streams[1])
	kvtest.ExpectRead(t, streams[1], "-", "a")
	r.Take()
	kvtest.Begin(t, streams[0])
	streams[0].Set([]byte("a"), []byte("1"))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	expect(t, "a commit after its time", streams[0].Commit(ended), db.Aborted)
	expect(t, "a reset after its time", streams[0].Reset(ended), db.Unavailable)
	expectWrites(t, r)
	expect(t, "a stream that was not reset", streams[0].Begin(t.Context(), false), db.Unavailable)
	drivertest.Must(t, streams[0].Reset(t.Context()))
	streams[1].Set([]byte("a"), []byte("2"))
	kvtest.Commit(t, streams[1])
	kvtest.Begin(t, streams[0])
	kvtest.ExpectRead(t, streams[0], "2", "a")
}

func TestStreamsRefuseUnsupportedOptions(t *testing.T) {
	d := drivertest.Open(t, redis.Open, start(t, serverOptions{}).URL()+"?commit=watch")
	_, err := d.Streams(t.Context(), 4, db.SessionOptions{})
	expect(t, "streams that watch", err, db.Fatal, "take commit=script")
	d = drivertest.Open(t, redis.Open, start(t, serverOptions{}).URL())
	_, err = d.Streams(t.Context(), 4, db.SessionOptions{Isolation: "chaos"})
	expect(t, "streams of an unknown isolation", err, db.Fatal, "chaos")
	l := openStreams(t, d, 1)[0]
	drivertest.Must(t, d.Close())
	expect(t, "a reset with a closed database", l.Reset(t.Context()), db.Fatal, "closed")
	_, err = d.Streams(t.Context(), 4, db.SessionOptions{})
	expect(t, "streams of a closed database", err, db.Fatal, "closed")
}

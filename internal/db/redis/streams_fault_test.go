package redis_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/kvtest"
	"stroppy/internal/db/redis"
)

// hangUp describes when a server ends a connection for the first time.
type hangUp struct {
	name     string
	answered int // commits that are answered before
	unsent   bool
	wait     bool // at WAIT, which is after all other commands
	unknown  db.Class
}

// serve serves an empty database that ends its connections as h describes. It returns the URL and the number of
// connections.
func (h hangUp) serve(t *testing.T) (url string, connections *atomic.Int64) {
	connections = new(atomic.Int64)
	var commits, waits atomic.Int64
	url = "redis://" + fake(t, func(words []string) (string, bool) {
		switch words[0] {
		case "hello":
			return "*4\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$4\r\nmode\r\n$10\r\nstandalone", false
		case "role":
			return "*3\r\n$6\r\nmaster\r\n:0\r\n*1\r\n*3\r\n$9\r\n127.0.0.1\r\n$1\r\n1\r\n$1\r\n0", false
		case "type":
			if words[1] == "stroppy:index" { // a new connection is asked this once
				connections.Add(1)
			}
			return "+none", false
		case "mget":
			return "*1\r\n$-1", false
		case "wait":
			return ":1", waits.Add(1) == 1
		}
		return ":1", commits.Add(1) == int64(h.answered)+1 && !h.unsent && !h.wait
	})
	if h.wait {
		url += "?wait=1"
	}
	return url, connections
}

// TestStreamsReportLostConnectionPerTransaction checks the outcome of each stream when the connection ends under its
// commit or read. An answered transaction keeps its answer. An unanswered commit is not applied only if nothing was
// written. Other streams get the error when they use the connection. The first Reset opens it for all.
func TestStreamsReportLostConnectionPerTransaction(t *testing.T) {
	const streams, writers = 9, 6
	for _, h := range []hangUp{
		{name: "nothing was written", unsent: true, unknown: db.Unavailable},
		{name: "nothing was answered", unknown: db.Unknown},
		{name: "some was answered", answered: 2, unknown: db.Unknown},
		{name: "all but one was answered", answered: writers - 1, unknown: db.Unknown},
		{name: "all but the replicas", wait: true, unknown: db.Unknown},
	} {
		t.Run(h.name, func(t *testing.T) {
			url, connections := h.serve(t)
			list := openStreams(t, drivertest.Open(t, redis.Open, url), streams+2)
			bystanders, list := list[streams:], list[:streams]
			for _, l := range bystanders {
				kvtest.Begin(t, l)
				kvtest.ExpectRead(t, l, "-", "a")
				l.Set([]byte("b"), nil)
			}
			for _, l := range list {
				kvtest.Begin(t, l)
			}
			before := connections.Load()
			var then func()
			if h.unsent {
				then = func() { drivertest.Must(t, redis.Break(list[0])) }
			}
			var committed, lost, unread atomic.Int64
			together(list, then, func(i int, l db.KVSession) {
				if i >= writers {
					if err := l.Read(t.Context(), kvtest.Keys("a"), make([]db.Entry, 1)); err != nil {
						expect(t, "a read", err, db.Unavailable, "no connection")
						unread.Add(1)
					}
					return
				}
				l.Set(fmt.Append(nil, i), nil)
				if err := l.Commit(t.Context()); err != nil {
					expect(t, "a commit", err, h.unknown)
					lost.Add(1)
				} else {
					committed.Add(1)
				}
			})
			unanswered := int64(streams - writers) // reads, because ROLE is after all commits
			if h.wait {
				unanswered = 0
			}
			if committed.Load() != int64(h.answered) || lost.Load() != int64(writers-h.answered) || unread.Load() != unanswered {
				t.Errorf("%d commits are reported as applied, %d are lost, and %d reads", committed.Load(), lost.Load(), unread.Load())
			}
			expectOneReset(t, list, bystanders)
			if n := connections.Load() - before; n != 1 {
				t.Errorf("%d connections were opened for all streams", n)
			}
		})
	}
}

// expectOneReset resets streams that have got the error of their connection. It also uses two bystanders with open
// transactions, which have not. One bystander gets the error before the reset. The other gets it together with a
// stream's request on the new connection.
func expectOneReset(t *testing.T, reported, bystanders []db.KVSession) {
	t.Helper()
	early, late := bystanders[0], bystanders[1]
	expect(t, "a commit of a stream that had nothing under way", early.Commit(t.Context()), db.Unavailable, "another transaction")
	expect(t, "a stream that was reported", early.Begin(t.Context(), false), db.Unavailable, "reset")
	reset := func(_ int, l db.KVSession) {
		if err := l.Reset(t.Context()); err != nil {
			t.Error(err)
		}
	}
	atOnce(slices.Concat(reported, bystanders[:1]), reset)
	kvtest.Begin(t, early)
	early.Set([]byte("b"), nil)
	together(bystanders, nil, func(i int, l db.KVSession) {
		err := l.Commit(t.Context())
		if i == 1 {
			expect(t, "a commit of a stream that was not reset", err, db.Unavailable, "another transaction")
		} else if err != nil {
			t.Error(err)
		}
	})
	reset(0, late)
	atOnce(slices.Concat(reported, bystanders), func(i int, l db.KVSession) {
		err := l.Begin(t.Context(), false)
		l.Set(fmt.Append(nil, i), nil)
		if err == nil {
			err = l.Commit(t.Context())
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// TestKilledServerLosesNoStreamCommit checks that a killed server loses no commit of a stream that was
// acknowledged or found by a look-up. No commit is applied twice.
func TestKilledServerLosesNoStreamCommit(t *testing.T) {
	c := start(t, serverOptions{Settings: map[string]string{"appendonly": "yes", "appendfsync": "always"}})
	d := drivertest.Open(t, redis.Open, c.URL()+"?timeout=2s")
	known, unknown := chainsOf(t, openStreams(t, d, 12), func() {
		for range 3 {
			drivertest.Must(t, c.Kill(0))
			drivertest.Must(t, c.Restart(within(t, 30*time.Second), 0))
		}
	})
	t.Logf("%v commits, %d of unknown outcome", known, unknown)
	expectChains(t, d, known)
}

// TestFailoverWithStreamsLosesNoCommit checks that the outcomes reported with wait=1 are the outcomes of the replica,
// and that streams of a demoted primary report this.
func TestFailoverWithStreamsLosesNoCommit(t *testing.T) {
	c := start(t, serverOptions{Nodes: 2})
	d := drivertest.Open(t, redis.Open, c.URL()+"?timeout=2s&wait=1&wait_timeout=300ms")
	ctx := within(t, time.Minute)
	streams := openStreams(t, d, 8)
	known, unknown := chainsOf(t, streams, func() {
		drivertest.Must(t, c.Kill(0))
		drivertest.Must(t, c.Promote(ctx, 1))
		drivertest.Must(t, c.Restart(ctx, 0)) // until then no replica acknowledges anything
	})
	t.Logf("%v commits, %d of unknown outcome", known, unknown)
	expectChains(t, d, known)

	for _, l := range streams {
		kvtest.Begin(t, l)
		kvtest.ExpectRead(t, l, "-", "after")
	}
	drivertest.Must(t, c.Promote(ctx, 0))
	together(streams, nil, func(i int, l db.KVSession) {
		switch i % 3 {
		case 0:
			l.Set(fmt.Append(nil, "after/", i), []byte("1"))
			expect(t, "a commit to the demoted primary", l.Commit(ctx), db.Unavailable)
		case 1:
			expect(t, "a read of the demoted primary", l.Read(ctx, kvtest.Keys("after"), make([]db.Entry, 1)), db.Unavailable)
		default:
			expect(t, "a scan of the demoted primary", l.Scan(ctx, nil, nil, func(_, _ []byte) error { return nil }), db.Unavailable)
		}
	})
	atOnce(streams, func(_ int, l db.KVSession) { kvtest.ResetUntil(t, l) })
	atOnce(streams, func(i int, l db.KVSession) {
		if applied, err := kvtest.AppendOnce(ctx, l, fmt.Append(nil, "after/", i)); err != nil || !applied {
			t.Errorf("stream %d after the fail-over: %v, %v", i, applied, err)
		}
	})
	expectChains(t, d, known)
}

// TestStreamResetFollowsOtherSessions checks that a stream is reset to the primary of the other sessions, although
// its own server also claims to be primary.
func TestStreamResetFollowsOtherSessions(t *testing.T) {
	c := start(t, serverOptions{Nodes: 2})
	d := drivertest.Open(t, redis.Open, c.URL()+"?timeout=300ms")
	streams := openStreams(t, d, 2)
	drivertest.Must(t, c.Pause(0))
	if _, err := c.Command(t.Context(), 1, "REPLICAOF", "NO", "ONE"); err != nil {
		t.Fatal(err)
	}
	kvtest.Put(t, d, "a", "1")
	drivertest.Must(t, c.Resume(0))
	for _, l := range streams {
		drivertest.Must(t, l.Reset(t.Context()))
		kvtest.Begin(t, l)
		kvtest.ExpectRead(t, l, "1", "a")
	}
}

// waiters are streams on a server whose replica must acknowledge their commits.
type waiters struct {
	servers *servers
	streams []db.KVSession
	written *redis.Recorder
}

// begin begins a transaction on each stream. Then it changes the key that the first stream has read.
func (w *waiters) begin(t *testing.T) {
	t.Helper()
	for i, l := range w.streams {
		kvtest.Begin(t, l)
		kvtest.ExpectRead(t, l, "-", fmt.Sprint("key/", i))
		l.Set(fmt.Append(nil, "key/", i), []byte("1"))
	}
	run(t, w.servers, "SET", "key/0", "0")
	w.written.Take()
}

// commit commits all transactions together. The first has a conflict. Without the replica, the outcome of the others is
// unknown.
func (w *waiters) commit(t *testing.T, replica bool) {
	t.Helper()
	together(w.streams, nil, func(i int, l db.KVSession) {
		switch err := l.Commit(t.Context()); {
		case i == 0:
			expect(t, "a conflict", err, db.Aborted)
		case !replica:
			expect(t, "a commit without the replica", err, db.Unknown, "0 of 1 replicas", "500ms")
		case err != nil:
			t.Errorf("stream %d: %v", i, err)
		}
	})
	expectWrites(t, w.written, times(len(w.streams), "evalsha")+" wait")
}

// lookUp resets all streams except the first, and leaves the connection as it is. Each reset stream reads the key that
// it has written.
func (w *waiters) lookUp(t *testing.T, replica bool) {
	t.Helper()
	doubtful := w.streams[1:]
	for _, l := range doubtful {
		drivertest.Must(t, l.Reset(t.Context()))
		kvtest.Begin(t, l)
	}
	expectWrites(t, w.written, slices.Repeat([]string{"role"}, len(doubtful))...)
	together(doubtful, nil, func(i int, l db.KVSession) {
		var out [1]db.Entry
		err := l.Read(t.Context(), kvtest.Keys(fmt.Sprint("key/", i+1)), out[:])
		switch {
		case !replica:
			expect(t, "a look-up without the replica", err, db.Unavailable, "0 of 1 replicas")
		case err != nil || string(out[0].Value) != "1":
			t.Errorf("stream %d finds %+v: %v", i+1, out, err)
		}
	})
	expectWrites(t, w.written, times(len(doubtful), "mget incr")+" role wait")
}

// TestOneWaitCoversAllStreamCommits checks that one WAIT covers all commits that are sent together. A conflict is a
// conflict without the replica too. A stream with an unknown outcome leaves the connection to the others.
func TestOneWaitCoversAllStreamCommits(t *testing.T) {
	c := start(t, serverOptions{Nodes: 2})
	d := drivertest.Open(t, redis.Open, c.URL()+"?wait=1&wait_timeout=500ms")
	kvtest.Put(t, d, "a", "1")
	streams := openStreams(t, d, 6)
	w := waiters{servers: c, streams: streams[1:], written: redis.Record(streams[0])}
	w.begin(t)
	w.commit(t, true)
	run(t, c, "FLUSHDB")
	kvtest.Put(t, d, "a", "1")

	kvtest.Begin(t, streams[0])
	kvtest.ExpectRead(t, streams[0], "1", "a")
	w.begin(t)
	drivertest.Must(t, c.Stall(t.Context(), 1))
	w.commit(t, false)
	w.lookUp(t, false)
	drivertest.Must(t, c.Resume(1))
	awaitReplica(t, c)
	w.lookUp(t, true)
	kvtest.ExpectRead(t, streams[0], "1", "a") // its transaction was open all the time
	streams[0].Set([]byte("b"), []byte("1"))
	kvtest.Commit(t, streams[0])
}

// awaitReplica returns when the replica acknowledges again.
func awaitReplica(t *testing.T, c *servers) {
	t.Helper()
	ctx := within(t, 30*time.Second)
	for strings.TrimSpace(run(t, c, "WAIT", "1", "100")) != "1" {
		drivertest.Must(t, ctx.Err())
	}
}

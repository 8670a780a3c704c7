package redis_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/kvtest"
	"stroppy/internal/db/redis"
	"stroppy/internal/isolation"
)

// chains is chainsOf with six sessions that have their own connections.
func chains(t *testing.T, d *redis.Database, fault func()) (known []int, unknown int64) {
	t.Helper()
	sessions := make([]db.KVSession, 6)
	for i := range sessions {
		sessions[i] = newSession(t, d)
	}
	return chainsOf(t, sessions, fault)
}

// chainsOf lets each session append to its own chain of keys. fault happens between the 20th commit of each and the
// last. It returns how many keys each session knows to exist. The commits were acknowledged, or looked up after an
// unknown outcome.
func chainsOf(t *testing.T, sessions []db.KVSession, fault func()) (known []int, unknown int64) {
	t.Helper()
	const before, after = 20, 20
	known = make([]int, len(sessions))
	var doubts atomic.Int64
	var over atomic.Bool
	var started, done sync.WaitGroup
	started.Add(len(sessions))
	for i, s := range sessions {
		done.Go(func() {
			begun := sync.OnceFunc(started.Done)
			defer begun()
			for last := 0; last < after && t.Context().Err() == nil; {
				healed := over.Load()
				applied, err := kvtest.AppendOnce(t.Context(), s, fmt.Appendf(nil, "chain/%d/%06d", i, known[i]))
				switch class := db.ClassOf(err); {
				case err == nil:
					known[i]++
					if known[i] == before {
						begun()
					}
					if healed && applied {
						last++
					}
				case class == db.Unknown || class == db.Unavailable:
					if class == db.Unknown {
						doubts.Add(1)
					}
					kvtest.ResetUntil(t, s)
				default:
					t.Errorf("session %d: class %v: %v", i, class, err)
					return
				}
			}
		})
	}
	started.Wait()
	fault()
	over.Store(true)
	done.Wait()
	return known, doubts.Load()
}

// expectChains fails the test unless exactly the known keys exist.
func expectChains(t *testing.T, d *redis.Database, known []int) {
	t.Helper()
	s := newSession(t, d)
	for i, n := range known {
		if found := len(scan(t, s, fmt.Sprintf("chain/%d/", i), fmt.Sprintf("chain/%d0", i))); found != n {
			t.Errorf("session %d: %d keys are there, and it knows of %d", i, found, n)
		}
	}
}

// TestKilledServerLosesNoCommit checks that a killed server loses no commit that was acknowledged or found by a
// look-up. No commit is applied twice or in part.
func TestKilledServerLosesNoCommit(t *testing.T) {
	ways(t, serverOptions{Settings: map[string]string{"appendonly": "yes", "appendfsync": "always"}}, func(t *testing.T, c *servers, url string) {
		d := drivertest.Open(t, redis.Open, url+"&timeout=2s")
		known, unknown := chains(t, d, func() {
			drivertest.Must(t, c.Kill(0))
			drivertest.Must(t, c.Restart(within(t, 30*time.Second), 0))
		})
		t.Logf("%v commits, %d of unknown outcome", known, unknown)
		expectChains(t, d, known)
		drivertest.Must(t, c.Kill(0))
		drivertest.Must(t, c.Restart(within(t, 30*time.Second), 0))
		expectChains(t, d, known)
	})
}

// TestFailoverWithWaitLosesNoCommit kills the primary and promotes its only replica. With wait=1 the replica has all
// acknowledged commits. Then the old primary returns as a replica and becomes the primary again.
func TestFailoverWithWaitLosesNoCommit(t *testing.T) {
	c := start(t, serverOptions{Nodes: 2})
	d := drivertest.Open(t, redis.Open, c.URL()+"?timeout=2s&wait=1&wait_timeout=300ms")
	alone := drivertest.Open(t, redis.Open, strings.Replace(c.URL(), c.Endpoints()[1]+",", "", 1)+"?timeout=2s")
	ctx := within(t, time.Minute)
	known, unknown := chains(t, d, func() {
		drivertest.Must(t, c.Kill(0))
		drivertest.Must(t, c.Promote(ctx, 1))
		drivertest.Must(t, c.Restart(ctx, 0)) // until then no replica acknowledges anything
	})
	t.Logf("%v commits, %d of unknown outcome", known, unknown)
	expectChains(t, d, known)

	// Reads and commits of a session report that its primary was demoted.
	reader, writer, scanner := newSession(t, d), newSession(t, d), newSession(t, d)
	kvtest.Begin(t, writer)
	kvtest.ExpectRead(t, writer, "-", "after")
	drivertest.Must(t, c.Promote(ctx, 0))
	writer.Set([]byte("after"), []byte("1"))
	expect(t, "a commit to the demoted primary", writer.Commit(ctx), db.Unavailable)
	kvtest.Begin(t, reader)
	expect(t, "a read of the demoted primary", reader.Read(ctx, kvtest.Keys("after"), make([]db.Entry, 1)), db.Unavailable)
	expect(t, "a scan of the demoted primary", scanner.Scan(ctx, nil, nil, func(_, _ []byte) error { return nil }), db.Unavailable)
	for _, s := range []db.KVSession{reader, writer, scanner} {
		kvtest.ResetUntil(t, s)
		kvtest.Begin(t, s)
		kvtest.ExpectRead(t, s, "-", "after")
	}
	expectChains(t, alone, known)
	claim, err := alone.Claim("")
	drivertest.Must(t, err)
	if !strings.Contains(claim.Source, "a fail-over may lose acknowledged writes") {
		t.Errorf("the claim hides it: %s", claim.Source)
	}
}

// TestTwoPrimariesAreRefused checks that a new program refuses two primaries, and that a running program keeps its
// choice in all its sessions.
func TestTwoPrimariesAreRefused(t *testing.T) {
	c := start(t, serverOptions{Nodes: 2})
	d := drivertest.Open(t, redis.Open, c.URL())
	s := newSession(t, d)
	if _, err := c.Command(t.Context(), 1, "REPLICAOF", "NO", "ONE"); err != nil {
		t.Fatal(err)
	}
	_, err := redis.Open(t.Context(), c.URL())
	expect(t, "two primaries", err, db.Unavailable, "each claim", c.Endpoints()[0], c.Endpoints()[1])
	for range 3 {
		var server string
		drivertest.Must(t, s.Reset(db.WithConnected(t.Context(), func(to string) { server = to })))
		if server != c.Endpoints()[0] {
			t.Errorf("connected to %q", server)
		}
		kvtest.Put(t, d, "a", "1")
		kvtest.Begin(t, s)
		kvtest.ExpectRead(t, s, "1", "a")
	}
	if got, err := c.Command(t.Context(), 1, "EXISTS", "a"); err != nil || got != "0" {
		t.Errorf("the other one was written to: %s, %v", got, err)
	}
	_, err = redis.Open(t.Context(), "redis://"+c.Endpoints()[1]) // alone, the server is accepted
	drivertest.Must(t, err)
	run(t, c, "REPLICAOF", "127.0.0.1", strings.TrimPrefix(c.Endpoints()[1], "127.0.0.1:"))
	drivertest.Must(t, s.Reset(t.Context()))
	kvtest.Begin(t, s)
	kvtest.ExpectRead(t, s, "-", "a")
	_, err = redis.Open(t.Context(), "redis://"+c.Endpoints()[0])
	expect(t, "a replica alone", err, db.Unavailable, "is a replica")
}

// TestCommitToFrozenServerIsUnknown checks that a commit to a frozen server is unknown, and that a read from it is
// not.
func TestCommitToFrozenServerIsUnknown(t *testing.T) {
	ways(t, serverOptions{}, func(t *testing.T, c *servers, url string) {
		d := drivertest.Open(t, redis.Open, url+"&timeout=200ms")
		writer, reader := newSession(t, d), newSession(t, d)
		kvtest.Begin(t, writer)
		kvtest.ExpectRead(t, writer, "-", "a")
		writer.Set([]byte("a"), []byte("1"))
		kvtest.Begin(t, reader)
		drivertest.Must(t, c.Pause(0))
		expect(t, "a commit", writer.Commit(t.Context()), db.Unknown, "no answer in time")
		expect(t, "a read", reader.Read(t.Context(), kvtest.Keys("a"), make([]db.Entry, 1)), db.Unavailable, "no answer in time")
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		expect(t, "a reset", reader.Reset(ctx), db.Unavailable)
		expect(t, "a reset", writer.Reset(t.Context()), db.Unavailable)
		drivertest.Must(t, c.Resume(0))
		kvtest.ResetUntil(t, writer)
		kvtest.ResetUntil(t, reader)
		// The server may still have the commit in its queue.
		kvtest.Begin(t, writer)
		first := read(t, writer, "a")
		kvtest.Begin(t, reader)
		if again := read(t, reader, "a"); first == "1" && again != "1" {
			t.Errorf("a was %s and is %s", first, again)
		}
	})
}

// TestCommitWithoutReplicaAcknowledgementIsUnknown checks that a commit that too few replicas acknowledge is no
// success. Its writes are not trusted until the replicas have them.
func TestCommitWithoutReplicaAcknowledgementIsUnknown(t *testing.T) {
	for _, way := range []string{"script", "watch"} {
		t.Run(way, func(t *testing.T) {
			c := start(t, serverOptions{Nodes: 2})
			ctx := within(t, time.Minute)
			d := drivertest.Open(t, redis.Open, c.URL()+"?wait=1&wait_timeout=500ms&commit="+way)
			s := newSession(t, d)
			kvtest.Begin(t, s)
			read(t, s, "a")
			s.Set([]byte("a"), []byte("1"))
			kvtest.Commit(t, s)
			kvtest.Begin(t, s)
			read(t, s, "a")
			kvtest.Put(t, d, "a", "2")
			s.Set([]byte("a"), []byte("3"))
			expect(t, "a conflict", s.Commit(ctx), db.Aborted)

			drivertest.Must(t, c.Stall(ctx, 1))
			kvtest.Begin(t, s)
			kvtest.ExpectRead(t, s, "2", "a")
			s.Set([]byte("a"), []byte("4"))
			expect(t, "a commit without the replica", s.Commit(ctx), db.Unknown, "0 of 1 replicas", "500ms")
			if got := run(t, c, "GET", "a"); got != "4" {
				t.Errorf("the primary has %q: this test would prove nothing", got)
			}
			drivertest.Must(t, s.Reset(ctx))
			kvtest.Begin(t, s)
			expect(t, "a look-up without the replica", s.Read(ctx, kvtest.Keys("a"), make([]db.Entry, 1)), db.Unavailable, "0 of 1 replicas")
			drivertest.Must(t, c.Resume(1))
			for {
				kvtest.ResetUntil(t, s)
				kvtest.Begin(t, s)
				err := s.Read(ctx, kvtest.Keys("a"), make([]db.Entry, 1))
				if err == nil {
					break
				}
				expect(t, "a look-up", err, db.Unavailable)
			}
			kvtest.ExpectRead(t, s, "4", "a")
			if got, err := c.Command(ctx, 1, "GET", "a"); err != nil || got != "4" {
				t.Errorf("the replica has %q, %v", got, err)
			}
			s.Set([]byte("a"), []byte("5"))
			kvtest.Commit(t, s)
			before := run(t, c, "GET", "stroppy:commits")
			kvtest.Begin(t, s)
			kvtest.ExpectRead(t, s, "5", "a")
			if after := run(t, c, "GET", "stroppy:commits"); after != before {
				t.Errorf("a read of a session that is in no doubt has written: %s, %s", before, after)
			}
		})
	}
}

func TestUnreachableServerIsExplained(t *testing.T) {
	c := start(t, serverOptions{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	drivertest.Must(t, err)
	nobody := listener.Addr().String()
	listener.Close()
	_, err = redis.Open(t.Context(), "redis://me:hunter2@"+nobody)
	expect(t, "nobody listens", err, db.Unavailable, nobody, "check the address, and whether a server runs there")
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error shows the password: %v", err)
	}
	_, err = redis.Open(t.Context(), "redis://"+nobody+"?retries=3")
	expect(t, "an unknown parameter", err, db.Fatal)
	// One dead server among others does no harm.
	d := drivertest.Open(t, redis.Open, "redis://"+nobody+","+c.Endpoints()[0])
	s := newSession(t, d)
	kvtest.Begin(t, s)
	s.Set([]byte("a"), []byte("1"))
	kvtest.Commit(t, s)
	drivertest.Must(t, c.Kill(0))
	_, err = d.KVSession(t.Context(), db.SessionOptions{})
	expect(t, "all are dead", err, db.Unavailable, "none of the 2")
}

// TestReplicaReadsContinueWithoutPrimary checks that read=any reads one replica, and that the reads continue when
// the primary is dead.
func TestReplicaReadsContinueWithoutPrimary(t *testing.T) {
	ways(t, serverOptions{Nodes: 2}, func(t *testing.T, c *servers, url string) {
		ctx := within(t, time.Minute)
		kvtest.Put(t, drivertest.Open(t, redis.Open, url+"&wait=1&wait_timeout=20s&timeout=20s"), "a", "1", "b", "2")
		alone := strings.Replace(url, c.Endpoints()[0]+",", "", 1)
		_, err := redis.Open(ctx, alone)
		expect(t, "a replica without read=any", err, db.Unavailable, "is a replica")
		d := drivertest.Open(t, redis.Open, alone+"&read=any")
		if claim, err := d.Claim(""); err != nil || claim.Level != isolation.Serializable {
			t.Errorf("the claim is %+v, %v: a replica is behind", claim, err)
		}
		s := newSession(t, d)
		look := func() {
			t.Helper()
			kvtest.Begin(t, s)
			kvtest.ExpectRead(t, s, "1 2 -", "a", "b", "c")
			kvtest.Commit(t, s)
			if got := strings.Join(scan(t, s, "", ""), " "); got != "a=1 b=2" {
				t.Errorf("a scan of the replica finds %q", got)
			}
		}
		look()
		kvtest.Begin(t, s)
		s.Set([]byte("a"), []byte("3"))
		expect(t, "a write", s.Commit(ctx), db.Fatal, "read=any")
		if info, err := d.Info(ctx); err != nil || info.Name == "" {
			t.Errorf("the replica says of itself %+v, %v", info, err)
		}
		drivertest.Must(t, c.Kill(0))
		look()
		drivertest.Must(t, c.Restart(ctx, 0))
	})
}

package redis_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/kvtest"
	"stroppy/internal/db/redis"
)

// TestChangedReadConflictsAtCommit runs another transaction between the read and the commit.
func TestChangedReadConflictsAtCommit(t *testing.T) {
	for _, test := range []struct {
		name     string
		read     string
		other    []string
		conflict bool
		watched  bool // a conflict for WATCH alone: the key was written and has its old value again
	}{
		{name: "nothing", read: "a"},
		{name: "another key", read: "a", other: []string{"b", "2"}},
		{name: "changed", read: "a", other: []string{"a", "2"}, conflict: true},
		{name: "a byte more", read: "a", other: []string{"a", "1\x00"}, conflict: true},
		{name: "emptied", read: "a", other: []string{"a", ""}, conflict: true},
		{name: "changed to the same", read: "a", other: []string{"a", "1"}, watched: true},
		{name: "deleted", read: "a", other: []string{"a", "-"}, conflict: true},
		{name: "absent, then there", read: "c", other: []string{"c", ""}, conflict: true},
		{name: "absent, deleted", read: "c", other: []string{"c", "-"}},
		{name: "empty, deleted", read: "e", other: []string{"e", "-"}, conflict: true},
	} {
		ways(t, serverOptions{}, func(t *testing.T, c *servers, url string) {
			t.Run(test.name, func(t *testing.T) {
				d := drivertest.Open(t, redis.Open, url)
				kvtest.Put(t, d, "a", "1", "e", "")
				s := newSession(t, d)
				kvtest.Begin(t, s)
				out := make([]db.Entry, 1)
				drivertest.Must(t, s.Read(t.Context(), kvtest.Keys(test.read), out))
				value := bytes.Clone(out[0].Value)
				if test.other != nil {
					kvtest.Put(t, d, test.other...)
				}
				if !bytes.Equal(out[0].Value, value) {
					t.Error("what was read has changed before the next Begin")
				}
				s.Set([]byte("z"), []byte("z"))
				err := s.Commit(t.Context())
				if want := test.conflict || test.watched && strings.HasSuffix(url, "watch"); want {
					expect(t, "a commit", err, db.Aborted)
				} else {
					drivertest.Must(t, err)
				}
				kvtest.Begin(t, s) // the session is ready in any case
				want := "z"
				if err != nil {
					want = "-"
				}
				kvtest.ExpectRead(t, s, want, "z")
			})
		})
	}
}

func TestTransactionsWriteReadAndDelete(t *testing.T) {
	ways(t, serverOptions{}, func(t *testing.T, c *servers, url string) {
		d := drivertest.Open(t, redis.Open, url)
		s := newSession(t, d)
		kvtest.Begin(t, s)
		s.Set([]byte("a"), []byte("\x00\r\n\xff"))
		s.Set([]byte("b"), []byte("1"))
		s.Set([]byte("b"), []byte("2"))
		s.Delete([]byte("b"))
		s.Delete([]byte("c"))
		s.Set([]byte("c"), []byte("3"))
		s.Set(nil, []byte("no name"))
		kvtest.ExpectRead(t, s, "- - - -", "a", "b", "c", "") // not its own writes
		kvtest.Commit(t, s)
		kvtest.Begin(t, s)
		kvtest.ExpectRead(t, s, "\x00\r\n\xff - 3 no name", "a", "b", "c", "")
		s.Delete([]byte("a"))
		s.Delete(nil)
		s.Rollback()
		s.Rollback()
		kvtest.Begin(t, s)
		kvtest.ExpectRead(t, s, "\x00\r\n\xff", "a")
		s.Delete([]byte("a"))
		kvtest.Commit(t, s)
		if got := scan(t, s, "", ""); !slices.Equal(got, []string{"=no name", "c=3"}) {
			t.Errorf("at last there is %q", got)
		}

		// The keys that a transaction watches are forgotten when the transaction is abandoned.
		kvtest.Begin(t, s)
		kvtest.ExpectRead(t, s, "3", "c")
		s.Rollback()
		kvtest.Put(t, d, "c", "4")
		kvtest.Begin(t, s)
		kvtest.ExpectRead(t, s, "-", "d")
		s.Set([]byte("d"), []byte("1"))
		kvtest.Commit(t, s)
		kvtest.Begin(t, s)
		kvtest.ExpectRead(t, s, "4", "c")
		kvtest.Put(t, d, "c", "5")
		kvtest.Begin(t, s) // abandons the earlier transaction
		s.Set([]byte("e"), []byte("blind"))
		kvtest.Commit(t, s)

		// Two reads of one transaction are of the same moment.
		kvtest.Begin(t, s)
		kvtest.ExpectRead(t, s, "5", "c")
		kvtest.Put(t, d, "other", "1")
		kvtest.ExpectRead(t, s, "5 -", "c", "f")
		kvtest.Put(t, d, "f", "1")
		expect(t, "a read after a change", s.Read(t.Context(), kvtest.Keys("d"), make([]db.Entry, 1)), db.Aborted)
		for _, changed := range []string{"2", "", "-"} { // from 1, then each from the one before
			drivertest.Must(t, s.Begin(t.Context(), true))
			read(t, s, "f")
			kvtest.Put(t, d, "f", changed)
			expect(t, "a read after a change to "+changed, s.Read(t.Context(), kvtest.Keys("d"), make([]db.Entry, 1)), db.Aborted)
		}
		kvtest.Put(t, d, "f", "1")
		drivertest.Must(t, s.Begin(t.Context(), true))
		kvtest.ExpectRead(t, s, "1", "f")
		kvtest.ExpectRead(t, s, "1", "d")
		kvtest.Commit(t, s)
	})
}

func TestMisusedSessionReturnsFatalError(t *testing.T) {
	ways(t, serverOptions{}, func(t *testing.T, c *servers, url string) {
		d := drivertest.Open(t, redis.Open, url)
		s := newSession(t, d)
		ctx := t.Context()
		out := make([]db.Entry, 1)
		expect(t, "a read without begin", s.Read(ctx, kvtest.Keys("a"), out), db.Fatal, "begin")
		expect(t, "a commit without begin", s.Commit(ctx), db.Fatal, "begin")
		kvtest.Begin(t, s)
		expect(t, "a read into too little", s.Read(ctx, kvtest.Keys("a", "b"), out), db.Fatal)
		drivertest.Must(t, s.Begin(ctx, true))
		drivertest.Must(t, s.Read(ctx, nil, nil))
		s.Set([]byte("a"), nil)
		expect(t, "a write in a read-only transaction", s.Commit(ctx), db.Fatal, "read-only")
		for _, own := range []string{"stroppy:index", "stroppy:commits"} {
			kvtest.Begin(t, s)
			s.Set([]byte(own), nil)
			expect(t, "a write to the driver's own key", s.Commit(ctx), db.Fatal, own)
		}
		kvtest.Begin(t, s)
		for i := range d.Limits().Writes + 1 {
			s.Set(fmt.Append(nil, i), nil)
		}
		expect(t, "too many writes", s.Commit(ctx), db.Fatal, "smaller batches")
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		expect(t, "a cancelled begin", s.Begin(cancelled, false), db.Aborted)
		kvtest.Begin(t, s)
		expect(t, "a cancelled read", s.Read(cancelled, kvtest.Keys("a"), out), db.Aborted)
		kvtest.Begin(t, s)
		s.Set([]byte("a"), nil)
		expect(t, "a cancelled commit", s.Commit(cancelled), db.Aborted)
		expect(t, "a cancelled scan", s.Scan(cancelled, nil, nil, nil), db.Aborted)
		expect(t, "a cancelled reset", s.Reset(cancelled), db.Unavailable)
		expect(t, "a session that was not reset", s.Begin(ctx, false), db.Unavailable, "reset")
		drivertest.Must(t, s.Reset(ctx))
		kvtest.Begin(t, s)
		kvtest.ExpectRead(t, s, "-", "a")
		drivertest.Must(t, s.Close())
		expect(t, "a closed session", s.Begin(ctx, false), db.Fatal, "closed")
		if _, err := d.KVSession(ctx, db.SessionOptions{Isolation: "snapshot"}); db.ClassOf(err) != db.Fatal {
			t.Errorf("an isolation that is not there: %v", err)
		}
		drivertest.Must(t, d.Close())
		if _, err := d.KVSession(ctx, db.SessionOptions{}); db.ClassOf(err) != db.Fatal {
			t.Errorf("a closed database: %v", err)
		}
	})
}

// TestStoreEqualsMapAfterManyWrites compares the store with a map after transactions of any size up to the largest.
func TestStoreEqualsMapAfterManyWrites(t *testing.T) {
	ways(t, serverOptions{}, func(t *testing.T, c *servers, url string) {
		d := drivertest.Open(t, redis.Open, url)
		s := newSession(t, d)
		random := rand.New(rand.NewPCG(3, 4))
		want := map[string]string{}
		for _, size := range []int{1, 15, 16, 17, 100, d.Limits().Writes, d.Limits().Writes} {
			kvtest.Begin(t, s)
			read(t, s, "0", "1", "2")
			written := map[string]bool{}
			for len(written) < size {
				key := fmt.Sprint(random.IntN(3 * d.Limits().Writes))
				written[key] = true
				if random.IntN(3) == 0 {
					s.Delete([]byte(key))
					delete(want, key)
				} else {
					want[key] = fmt.Sprint(random.Int())
					s.Set([]byte(key), []byte(want[key]))
				}
			}
			kvtest.Commit(t, s)
		}
		var all []string
		for key, value := range want {
			all = append(all, key+"="+value)
		}
		slices.SortFunc(all, func(a, b string) int {
			a, _, _ = strings.Cut(a, "=")
			b, _, _ = strings.Cut(b, "=")
			return strings.Compare(a, b)
		})
		if got := scan(t, s, "", ""); !slices.Equal(got, all) {
			t.Errorf("%d entries, which are not the %d that were written", len(got), len(all))
		}
	})
}

// TestConcurrentCountersLoseNoCount checks that no count is lost when several sessions count.
func TestConcurrentCountersLoseNoCount(t *testing.T) {
	const sessions, each = 6, 60
	ways(t, serverOptions{}, func(t *testing.T, c *servers, url string) {
		d := drivertest.Open(t, redis.Open, url)
		var group sync.WaitGroup
		for i := range sessions {
			s := newSession(t, d)
			group.Go(func() {
				for done := 0; done < each; {
					err := increment(t.Context(), s, "counter", fmt.Sprint("mine", i))
					if err == nil {
						done++
					} else if db.ClassOf(err) != db.Aborted {
						t.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
		s := newSession(t, d)
		kvtest.Begin(t, s)
		kvtest.ExpectRead(t, s, fmt.Sprint(sessions*each)+strings.Repeat(fmt.Sprint(" ", each), 2), "counter", "mine0", "mine5")
	})
}

// increment adds one to each of the keys in one transaction.
func increment(ctx context.Context, s db.KVSession, names ...string) error {
	if err := s.Begin(ctx, false); err != nil {
		return err
	}
	out := make([]db.Entry, len(names))
	if err := s.Read(ctx, kvtest.Keys(names...), out); err != nil {
		return err
	}
	for i, e := range out {
		n := 0
		if e.Found {
			if _, err := fmt.Sscan(string(e.Value), &n); err != nil {
				return err
			}
		}
		s.Set([]byte(names[i]), fmt.Append(nil, n+1))
	}
	return s.Commit(ctx)
}

func TestScanReturnsSortedRange(t *testing.T) {
	ways(t, serverOptions{}, func(t *testing.T, c *servers, url string) {
		d := drivertest.Open(t, redis.Open, url)
		s := newSession(t, d)
		if got := scan(t, s, "", ""); got != nil {
			t.Errorf("an empty store has %q", got)
		}
		kvtest.Put(t, d, "a", "1", "a\x00", "2", "a/1", "3", "a/2", "", "b", "5", "\xff\xff", "6")
		for _, test := range []struct{ from, to, want string }{
			{"", "", "a=1 a\x00=2 a/1=3 a/2= b=5 \xff\xff=6"},
			{"a", "b", "a=1 a\x00=2 a/1=3 a/2="},
			{"a/", "a0", "a/1=3 a/2="},
			{"a\x00", "a\x00", ""},
			{"a\x00", "a\x00\x00", "a\x00=2"},
			{"c", "", "\xff\xff=6"},
		} {
			if got := strings.Join(scan(t, s, test.from, test.to), " "); got != test.want {
				t.Errorf("from %q to %q: %q, want %q", test.from, test.to, got, test.want)
			}
		}
		stop := errors.New("enough")
		if err := s.Scan(t.Context(), nil, nil, func(_, _ []byte) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("a callback's error came back as %v", err)
		}
		kvtest.Begin(t, s) // a scan that was stopped leaves the session as it was
		kvtest.ExpectRead(t, s, "1", "a")

		// A key that another client deletes is not an entry.
		if strings.HasSuffix(url, "script") {
			run(t, c, "EVAL", "redis.call('SELECT', '1') redis.call('DEL', 'a') return 1", "0")
			if got := strings.Join(scan(t, s, "", "a/2"), " "); got != "a\x00=2 a/1=3" {
				t.Errorf("after another hand's delete: %q", got)
			}
		}
	})
}

// TestScanDetectsConcurrentWrites checks that writes between the pages of a scan are detected, and that the next
// scan has pages that are long enough.
func TestScanDetectsConcurrentWrites(t *testing.T) {
	const entries = 10_500 // more than one page
	ways(t, serverOptions{}, func(t *testing.T, c *servers, url string) {
		d := drivertest.Open(t, redis.Open, url)
		s, writer := newSession(t, d), newSession(t, d)
		for first := 0; first < entries; first += d.Limits().Writes {
			kvtest.Begin(t, s)
			for i := range min(d.Limits().Writes, entries-first) {
				s.Set(fmt.Appendf(nil, "k%06d", first+i), []byte("1"))
			}
			kvtest.Commit(t, s)
		}
		read := func() (n, wrote int, err error) {
			err = s.Scan(t.Context(), nil, nil, func(_, _ []byte) error {
				if n++; n%5000 == 1 {
					kvtest.Begin(t, writer)
					writer.Set(fmt.Appendf(nil, "k%06d", entries-1), fmt.Append(nil, n))
					kvtest.Commit(t, writer)
					wrote++
				}
				return nil
			})
			return n, wrote, err
		}
		n, wrote, err := read()
		expect(t, "a scan beside a writer", err, db.Aborted, "snapshot")
		if wrote == 0 || n >= entries {
			t.Errorf("the scan was torn after %d of %d entries and %d writes", n, entries, wrote)
		}
		n, wrote, err = read()
		if err != nil || n != entries || wrote == 0 {
			t.Errorf("the next scan: %d of %d entries beside %d writes, %v", n, entries, wrote, err)
		}
		other := newSession(t, d)
		n = 0
		drivertest.Must(t, other.Scan(t.Context(), nil, nil, func(_, _ []byte) error { n++; return nil }))
		if n != entries {
			t.Errorf("a scan of several pages without writers: %d of %d entries", n, entries)
		}
	})
}

func TestReadAcceptsMaximumNumberOfKeys(t *testing.T) {
	ways(t, serverOptions{}, func(t *testing.T, c *servers, url string) {
		d := drivertest.Open(t, redis.Open, url+"&timeout=1m")
		s := newSession(t, d)
		kvtest.Put(t, d, "k0", "first", fmt.Sprint("k", d.Limits().Reads-1), "last")
		all, out := make([][]byte, d.Limits().Reads), make([]db.Entry, d.Limits().Reads)
		for i := range all {
			all[i] = fmt.Append(nil, "k", i)
		}
		kvtest.Begin(t, s)
		drivertest.Must(t, s.Read(t.Context(), all, out))
		if string(out[0].Value) != "first" || out[1].Found || string(out[len(out)-1].Value) != "last" {
			t.Errorf("%+v … %+v", out[0], out[len(out)-1])
		}
		s.Set([]byte("k1"), nil)
		kvtest.Commit(t, s)
	})
}

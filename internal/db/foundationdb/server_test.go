//go:build fdb

package foundationdb

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apple/foundationdb/bindings/go/src/fdb"

	"stroppy/internal/cluster"
	foundationdbcluster "stroppy/internal/cluster/foundationdb"
	"stroppy/internal/cluster/host"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/kvtest"
	"stroppy/internal/isolation"
)

func startCluster(t testing.TB, nodes int) *foundationdbcluster.Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a server")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := foundationdbcluster.Start(ctx, cluster.Options{Nodes: nodes, InMemory: true, Loopback: true, Params: url.Values{"knobs": {"test"}}})
	if missing, ok := errors.AsType[host.MissingError](err); ok {
		t.Skip("skipped engine: foundationdb: " + missing.Advice())
	}
	drivertest.Must(t, err)
	drivertest.Close(t, stopper{c})
	return c
}

// stopper closes a cluster.
type stopper struct{ *foundationdbcluster.Cluster }

func (s stopper) Close() error { return s.Stop() }

// testURL returns the URL of the cluster that STROPPY_TEST_FDB names. Without this variable it starts a cluster of one
// node.
func testURL(t testing.TB) string {
	t.Helper()
	if file := os.Getenv("STROPPY_TEST_FDB"); file != "" && !testing.Short() {
		return "fdb:" + file
	}
	return startCluster(t, 1).URL()
}

func openDatabase(t testing.TB, url string) *Database {
	t.Helper()
	return drivertest.Open(t, Open, url).(*Database)
}

func newSession(t testing.TB, d *Database, isolation string) *session {
	t.Helper()
	s, err := d.KVSession(t.Context(), db.SessionOptions{Isolation: isolation})
	drivertest.Must(t, err)
	drivertest.Close(t, s)
	return s.(*session)
}

// wipe removes the keys that begin with stroppytest/.
func wipe(t testing.TB, d *Database) {
	t.Helper()
	_, err := d.clients[0].Transact(func(tr fdb.Transaction) (any, error) {
		tr.ClearRange(fdb.KeyRange{Begin: fdb.Key("stroppytest/"), End: fdb.Key("stroppytest0")})
		return nil, nil
	})
	drivertest.Must(t, err)
}

const at = "stroppytest/"

func TestSessionsWorkOnRealServer(t *testing.T) {
	d := openDatabase(t, testURL(t))
	for name, test := range map[string]func(*testing.T, *Database){
		"round trip": testRoundTrip, "conflict": testConflict, "absent key": testAbsentKey, "snapshot": testSnapshot,
		"snapshot reads": testSnapshotReads, "limits": testLimits, "scan": testScan, "long scan": testLongScan,
		"misuse": testMisuse, "too old": testTooOld, "contexts": testContexts, "concurrent": testConcurrent, "adds": testAdds, "ranges": testRanges, "description": testDescription,
	} {
		t.Run(name, func(t *testing.T) {
			wipe(t, d)
			test(t, d)
		})
	}
	wipe(t, d)
}

func testRanges(t *testing.T, d *Database) {
	kvtest.Ranges(t, at+"rg/", func() db.RangeSession {
		s, err := d.RangeSession(t.Context(), db.SessionOptions{})
		drivertest.Must(t, err)
		return s
	})
}

func testRoundTrip(t *testing.T, d *Database) {
	s := newSession(t, d, "")
	kvtest.Begin(t, s)
	kvtest.ExpectRead(t, s, "- -", at+"a", at+"b")
	value := []byte("one")
	s.Set([]byte(at+"a"), value)
	copy(value, "two") // it was copied
	s.Set([]byte(at+"b"), []byte("lost"))
	s.Set([]byte(at+"b"), nil) // the last write counts
	s.Delete([]byte(at + "c"))
	kvtest.ExpectRead(t, s, "-", at+"a") // a transaction does not see its own writes
	kvtest.Commit(t, s)
	kvtest.Begin(t, s)
	kvtest.ExpectRead(t, s, "one  -", at+"a", at+"b", at+"c")
	s.Delete([]byte(at + "a"))
	s.Set([]byte(at+"b"), []byte("two"))
	s.Delete([]byte(at + "b"))
	s.Set([]byte(at+"b"), []byte("three"))
	kvtest.Commit(t, s)
	kvtest.Begin(t, s)
	kvtest.ExpectRead(t, s, "- three", at+"a", at+"b")
	s.Set([]byte(at+"b"), []byte("four"))
	s.Rollback()
	s.Rollback()
	drivertest.Must(t, s.Begin(t.Context(), true))
	kvtest.ExpectRead(t, s, "three", at+"b")
	kvtest.Commit(t, s)
}

func expectAborted(t testing.TB, s db.KVSession, code string) {
	t.Helper()
	err := s.Commit(t.Context())
	if e, ok := errors.AsType[*db.Error](err); !ok || e.Class != db.Aborted || e.Code != code {
		t.Fatalf("commit gives %v, want class aborted and code %s", err, code)
	}
}

func testConflict(t *testing.T, d *Database) {
	kvtest.Put(t, d, at+"a", "0", at+"b", "0")
	one, two := newSession(t, d, ""), newSession(t, d, "")
	kvtest.Begin(t, one)
	kvtest.Begin(t, two)
	kvtest.ExpectRead(t, one, "0 0", at+"a", at+"b")
	kvtest.ExpectRead(t, two, "0", at+"b")
	one.Set([]byte(at+"a"), []byte("1"))
	two.Set([]byte(at+"b"), []byte("2"))
	kvtest.Commit(t, two)
	expectAborted(t, one, "1020") // it read what the other wrote: write skew
	kvtest.Begin(t, one)          // ready once onError has waited
	kvtest.ExpectRead(t, one, "0 2", at+"a", at+"b")
	one.Set([]byte(at+"a"), []byte("1"))
	kvtest.Commit(t, one)
}

func testAbsentKey(t *testing.T, d *Database) {
	one, two := newSession(t, d, ""), newSession(t, d, "")
	for _, s := range []db.KVSession{one, two} {
		kvtest.Begin(t, s)
		kvtest.ExpectRead(t, s, "-", at+"id")
		s.Set([]byte(at+"id"), []byte("mine"))
	}
	kvtest.Commit(t, one)
	expectAborted(t, two, "1020")
}

func testSnapshot(t *testing.T, d *Database) {
	kvtest.Put(t, d, at+"a", "1", at+"b", "1")
	for _, readOnly := range []bool{false, true} {
		kvtest.Put(t, d, at+"a", "1", at+"b", "1", at+"c", "-")
		s := newSession(t, d, "")
		drivertest.Must(t, s.Begin(t.Context(), readOnly))
		kvtest.ExpectRead(t, s, "1", at+"a")
		kvtest.Put(t, d, at+"a", "2", at+"b", "2", at+"c", "2")
		kvtest.ExpectRead(t, s, "1", at+"b")
		kvtest.ExpectRead(t, s, "1 1 -", at+"a", at+"b", at+"c")
		kvtest.Commit(t, s) // it wrote nothing
		kvtest.Begin(t, s)
		kvtest.ExpectRead(t, s, "2 2", at+"a", at+"b")
	}
}

// testSnapshotReads checks that snapshot reads lose an update that the default isolation refuses.
func testSnapshotReads(t *testing.T, d *Database) {
	for isolation, lost := range map[string]bool{"": false, "serializable": false, "snapshot reads": true} {
		kvtest.Put(t, d, at+"n", "0")
		one, two := newSession(t, d, isolation), newSession(t, d, isolation)
		for _, s := range []db.KVSession{one, two} {
			kvtest.Begin(t, s)
			kvtest.ExpectRead(t, s, "0", at+"n")
			s.Set([]byte(at+"n"), []byte("1")) // both add one
		}
		kvtest.Commit(t, one)
		if err := two.Commit(t.Context()); (err == nil) != lost {
			t.Errorf("%q: the second of two increments gives %v", isolation, err)
		}
	}
}

func testLimits(t *testing.T, d *Database) {
	s := newSession(t, d, "")
	l := d.Limits()
	attempt := func(writes int, key string, size int) error {
		kvtest.Begin(t, s)
		for i := range writes {
			s.Set(fmt.Appendf(nil, at+"%06d%s", i, key), make([]byte, size))
		}
		return s.Commit(t.Context())
	}
	long := strings.Repeat("k", 100)
	for _, test := range []struct {
		writes, size int
		key, code    string // empty: it is taken
	}{
		{1, l.Value, "", ""}, {1, l.Value + 1, "", "2103"}, {1, 0, strings.Repeat("k", 10_001), "2102"},
		{l.Commit / (l.Value + 20), l.Value, "", ""}, {l.Writes, l.Commit/l.Writes - 150, long, ""}, {101, l.Value, "", "2101"},
	} {
		err := attempt(test.writes, test.key, test.size)
		e, failed := errors.AsType[*db.Error](err)
		if (test.code == "") != (err == nil) || failed && (e.Class != db.Fatal || e.Code != test.code || !strings.Contains(e.Error(), " at most")) {
			t.Errorf("%d writes of %d bytes with %d bytes of key: %v, want code %q", test.writes, test.size, len(test.key), err, test.code)
		}
	}
	if err := attempt(l.Writes+1, "", 0); db.ClassOf(err) != db.Fatal {
		t.Errorf("too many writes: %v", err)
	}
	kvtest.Begin(t, s)
	s.Set([]byte("\xff/x"), nil)
	if err := s.Commit(t.Context()); db.ClassOf(err) != db.Fatal {
		t.Errorf("a key of the database's own: %v", err)
	}
}

// fill writes n keys with values of so many bytes. The first eight bytes of a value are its number.
func fill(t *testing.T, d *Database, n, size int) {
	t.Helper()
	s := newSession(t, d, "")
	for first := 0; first < n; first += 1000 {
		kvtest.Begin(t, s)
		for i := first; i < min(n, first+1000); i++ {
			value := make([]byte, size)
			binary.BigEndian.PutUint64(value, uint64(i))
			s.Set(binary.BigEndian.AppendUint32([]byte(at+"sc/"), uint32(i)), value)
		}
		kvtest.Commit(t, s)
	}
}

// scanned scans the keys of fill and calls each with the number of every entry.
func scanned(t *testing.T, s *session, each func(i int) error) error {
	t.Helper()
	next := 0
	return s.Scan(t.Context(), []byte(at+"sc/"), []byte(at+"sc0"), func(key, value []byte) error {
		i := int(binary.BigEndian.Uint32(bytes.TrimPrefix(key, []byte(at+"sc/"))))
		if i != next || binary.BigEndian.Uint64(value) != uint64(i) {
			return fmt.Errorf("entry %d is %d with the value %x", next, i, value[:8])
		}
		next++
		return each(i)
	})
}

func testScan(t *testing.T, d *Database) {
	const n = 10_000
	fill(t, d, n, 8)
	s, seen := newSession(t, d, ""), 0
	last := string(binary.BigEndian.AppendUint32([]byte(at+"sc/"), n-1))
	err := scanned(t, s, func(i int) error {
		if i == 0 { // from here on the scan must not see what changes
			kvtest.Put(t, d, last, "changed!", at+"sc/\xff\xff\xff\xff", "new")
		}
		seen++
		return nil
	})
	if err != nil || seen != n {
		t.Errorf("%d of %d entries, %v", seen, n, err)
	}
	stop := errors.New("stop")
	if err := s.Scan(t.Context(), []byte(at), nil, func([]byte, []byte) error { return stop }); err != stop {
		t.Errorf("the callback's error: %v", err)
	}
	if err := s.Scan(t.Context(), []byte(at+"z"), []byte(at), func([]byte, []byte) error { return stop }); err != nil {
		t.Errorf("an empty range: %v", err)
	}
	kvtest.Begin(t, s)
}

// testLongScan checks a scan that lasts longer than a version is valid. It continues at a newer version, unless an
// entry that it has read was changed.
func testLongScan(t *testing.T, d *Database) {
	const n = 5000
	fill(t, d, n, 100)
	for _, test := range []struct {
		name   string
		change int // the entry that is changed at the half; -1: none
		class  db.Class
		ok     bool
	}{
		{"nothing moves", -1, 0, true}, {"what was read is changed", 10, db.Aborted, false}, {"what is yet to be read is changed", n - 10, 0, true},
	} {
		s, seen := newSession(t, d, ""), 0
		err := scanned(t, s, func(i int) error {
			if seen++; i%500 == 0 {
				time.Sleep(1200 * time.Millisecond) // twelve seconds in all
			}
			if i == n/2 && test.change >= 0 {
				value := string(binary.BigEndian.AppendUint64(nil, uint64(test.change)))
				kvtest.Put(t, d, string(binary.BigEndian.AppendUint32([]byte(at+"sc/"), uint32(test.change))), value)
			}
			return nil
		})
		if (err == nil) != test.ok || err == nil && seen != n || err != nil && db.ClassOf(err) != test.class {
			t.Errorf("%s: %d entries, %v", test.name, seen, err)
		}
		kvtest.Begin(t, s) // the session is ready
	}
}

func testMisuse(t *testing.T, d *Database) {
	_, err := d.KVSession(t.Context(), db.SessionOptions{Isolation: "read committed"})
	if db.ClassOf(err) != db.Fatal || !strings.Contains(err.Error(), "serializable, snapshot reads") {
		t.Errorf("an isolation that FoundationDB has not: %v", err)
	}
	s := newSession(t, d, "")
	if err := s.Commit(t.Context()); db.ClassOf(err) != db.Fatal {
		t.Errorf("commit without begin: %v", err)
	}
	if err := s.Read(t.Context(), kvtest.Keys("k"), make([]db.Entry, 1)); db.ClassOf(err) != db.Fatal {
		t.Errorf("read without begin: %v", err)
	}
	drivertest.Must(t, s.Begin(t.Context(), true))
	s.Set([]byte(at+"k"), nil)
	if err := s.Commit(t.Context()); db.ClassOf(err) != db.Fatal {
		t.Errorf("a write in a read-only transaction: %v", err)
	}
	kvtest.Begin(t, s)
	kvtest.ExpectRead(t, s, "-", at+"k")
}

// testTooOld checks a version that is older than five seconds. It can be used neither for a read nor for a commit, and
// onError resets the transaction for the next try.
func testTooOld(t *testing.T, d *Database) {
	patient := openDatabase(t, "fdb:"+d.config.file+"?timeout=30s")
	reader, writer := newSession(t, patient, ""), newSession(t, patient, "")
	for _, s := range []*session{reader, writer} {
		kvtest.Begin(t, s)
		kvtest.ExpectRead(t, s, "-", at+"old")
	}
	time.Sleep(7 * time.Second)
	err := reader.Read(t.Context(), kvtest.Keys(at+"other"), make([]db.Entry, 1))
	if e, ok := errors.AsType[*db.Error](err); !ok || e.Class != db.Aborted || e.Code != "1007" || !strings.Contains(e.Error(), "five seconds") {
		t.Errorf("a read after seven seconds: %v", err)
	}
	writer.Set([]byte(at+"old"), nil)
	expectAborted(t, writer, "1007")
	kvtest.Begin(t, writer)
	kvtest.ExpectRead(t, writer, "-", at+"old")

	short := newSession(t, openDatabase(t, "fdb:"+d.config.file+"?timeout=1s"), "")
	kvtest.Begin(t, short)
	kvtest.ExpectRead(t, short, "-", at+"old")
	time.Sleep(1500 * time.Millisecond)
	err = short.Read(t.Context(), kvtest.Keys(at+"other"), make([]db.Entry, 1))
	if e, ok := errors.AsType[*db.Error](err); !ok || e.Class != db.Unavailable || e.Code != "1031" {
		t.Errorf("a read after the transaction's time-out: %v", err)
	}
	if err := short.Begin(t.Context(), false); db.ClassOf(err) != db.Unavailable {
		t.Errorf("begin before reset: %v", err)
	}
	drivertest.Must(t, short.Reset(t.Context()))
	kvtest.Begin(t, short)
}

// testContexts checks that the end of a context ends the call with this context, and no later call.
func testContexts(t *testing.T, d *Database) {
	s := newSession(t, d, "")
	for i := range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		drivertest.Must(t, s.Begin(ctx, false))
		out := make([]db.Entry, 1)
		drivertest.Must(t, s.Read(ctx, kvtest.Keys(at+"ctx"), out))
		cancel()
		if i%2 == 0 {
			time.Sleep(time.Millisecond)
		}
		s.Set([]byte(at+"ctx"), []byte("x"))
		if err := s.Commit(ctx); db.ClassOf(err) != db.Aborted {
			t.Fatalf("commit with a context that has ended: %v", err)
		}
		drivertest.Must(t, s.Begin(t.Context(), false))
		kvtest.ExpectRead(t, s, "-", at+"ctx")
		s.Set([]byte(at+"other"), []byte("x"))
		kvtest.Commit(t, s)
	}
	var wg sync.WaitGroup
	classes := make([]db.Class, 200)
	for i := range classes {
		s := newSession(t, d, "")
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*20)*time.Microsecond)
			defer cancel()
			applied, err := kvtest.AppendOnce(ctx, s, fmt.Appendf(nil, at+"ctx/%d", i))
			if classes[i] = db.ClassOf(err); err == nil && applied {
				classes[i] = 255
			}
		})
	}
	wg.Wait()
	counts := map[db.Class]int{}
	for i, class := range classes {
		counts[class]++
		there := newSession(t, d, "")
		drivertest.Must(t, there.Begin(t.Context(), true))
		found := kvtest.Values(t, there, fmt.Sprintf(at+"ctx/%d", i))[0] == "x"
		if class == 255 && !found || class == db.Aborted && found {
			t.Errorf("commit %d ended as %d, and is there: %v", i, class, found)
		}
	}
	t.Logf("unknown %d, aborted %d, committed %d", counts[db.Unknown], counts[db.Aborted], counts[255])
}

func testConcurrent(t *testing.T, d *Database) {
	kvtest.Transfers(t, at+"cc/", func() db.KVSession { return newSession(t, d, "") })
}

func testAdds(t *testing.T, d *Database) {
	kvtest.Adds(t, at+"adds/", func() db.AddSession { return newSession(t, d, "") })
}

func testDescription(t *testing.T, d *Database) {
	info, err := d.Info(t.Context())
	drivertest.Must(t, err)
	if info.Name != "FoundationDB" || !strings.HasPrefix(info.Version, "7.") {
		t.Errorf("Info is %+v", info)
	}
	t.Log(info.Settings)
	sample, err := d.Monitor().Sample(t.Context())
	status := sample.State
	if err != nil || !strings.Contains(string(status), `"recovery_state":"fully_recovered"`) {
		t.Errorf("Status is %s, %v", status, err)
	}
	for name, level := range map[string]isolation.Level{
		"": isolation.StrictSerializable, "serializable": isolation.StrictSerializable, "snapshot reads": isolation.ReadCommitted,
	} {
		if claim, err := d.Claim(name); err != nil || claim.Level != level || claim.Isolation == "" || claim.Source == "" {
			t.Errorf("Claim(%q) is %+v, %v", name, claim, err)
		}
	}
	idempotent := openDatabase(t, "fdb:"+d.config.file+"?automatic_idempotency=on")
	kvtest.Put(t, idempotent, at+"idempotent", "1")
	if _, err := Open(t.Context(), "fdb:"+d.config.file+"?tls_ca=/other"); db.ClassOf(err) != db.Fatal || !strings.Contains(err.Error(), "once") {
		t.Errorf("other options of the library: %v", err)
	}
}

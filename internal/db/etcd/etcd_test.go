package etcd_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	cluster "stroppy/internal/cluster/etcd"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/etcd"
	"stroppy/internal/db/kvtest"
	"stroppy/internal/isolation"
)

func TestSessionsWorkOnRealCluster(t *testing.T) {
	c := startCluster(t, 3, nil)
	d := drivertest.Open(t, etcd.Open, c.URL())
	for name, test := range map[string]func(*testing.T, *cluster.Cluster, *etcd.Database){
		"round trip": testRoundTrip, "conflict": testConflict, "absent key": testAbsentKey,
		"snapshot": testSnapshot, "isolations": testIsolations, "limits": testLimits,
		"scan": testScan, "misuse": testMisuse, "compacted": testCompacted,
		"concurrent": testConcurrent, "ranges": testRanges, "description": testDescription, "old revisions": testStaleClaims,
	} {
		t.Run(name, func(t *testing.T) { test(t, c, d) })
	}
}

func testRoundTrip(t *testing.T, _ *cluster.Cluster, d *etcd.Database) {
	s := newSession(t, d, "")
	kvtest.Begin(t, s)
	kvtest.ExpectRead(t, s, "- -", "rt/a", "rt/b")
	value := []byte("one")
	s.Set([]byte("rt/a"), value)
	copy(value, "two") // the session has copied it
	s.Set([]byte("rt/b"), []byte("lost"))
	s.Set([]byte("rt/b"), nil) // the last write counts
	s.Delete([]byte("rt/c"))
	kvtest.ExpectRead(t, s, "-", "rt/a") // a transaction does not see its own writes
	kvtest.Commit(t, s)

	kvtest.Begin(t, s)
	kvtest.ExpectRead(t, s, "one  -", "rt/a", "rt/b", "rt/c")
	s.Delete([]byte("rt/a"))
	s.Set([]byte("rt/b"), []byte("two"))
	s.Delete([]byte("rt/b"))
	s.Set([]byte("rt/b"), []byte("three"))
	kvtest.Commit(t, s)
	kvtest.Begin(t, s)
	kvtest.ExpectRead(t, s, "- three", "rt/a", "rt/b")
	s.Set([]byte("rt/b"), []byte("four"))
	s.Rollback()
	s.Rollback()

	if err := s.Begin(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	kvtest.ExpectRead(t, s, "three", "rt/b")
	kvtest.Commit(t, s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func testConflict(t *testing.T, _ *cluster.Cluster, d *etcd.Database) {
	kvtest.Put(t, d, "cf/a", "0", "cf/b", "0")
	one, two := newSession(t, d, ""), newSession(t, d, "")
	kvtest.Begin(t, one)
	kvtest.Begin(t, two)
	kvtest.ExpectRead(t, one, "0 0", "cf/a", "cf/b")
	kvtest.ExpectRead(t, two, "0", "cf/b")
	one.Set([]byte("cf/a"), []byte("1"))
	two.Set([]byte("cf/b"), []byte("2"))
	kvtest.Commit(t, two)
	expectAborted(t, one)
	kvtest.Begin(t, one) // it is ready at once
	kvtest.ExpectRead(t, one, "0 2", "cf/a", "cf/b")
	one.Set([]byte("cf/a"), []byte("1"))
	kvtest.Commit(t, one)
}

func testAbsentKey(t *testing.T, _ *cluster.Cluster, d *etcd.Database) {
	one, two := newSession(t, d, ""), newSession(t, d, "")
	for _, s := range []db.KVSession{one, two} {
		kvtest.Begin(t, s)
		kvtest.ExpectRead(t, s, "-", "ab/id")
		s.Set([]byte("ab/id"), []byte("mine"))
	}
	kvtest.Commit(t, one)
	expectAborted(t, two)

	kvtest.Begin(t, two) // a key that was removed is not the key that was read
	kvtest.ExpectRead(t, two, "mine", "ab/id")
	two.Set([]byte("ab/other"), nil)
	kvtest.Begin(t, one)
	one.Delete([]byte("ab/id"))
	kvtest.Commit(t, one)
	expectAborted(t, two)
}

func testSnapshot(t *testing.T, _ *cluster.Cluster, d *etcd.Database) {
	kvtest.Put(t, d, "sn/a", "1", "sn/b", "1")
	s := newSession(t, d, "")
	kvtest.Begin(t, s)
	kvtest.ExpectRead(t, s, "1", "sn/a")
	kvtest.Put(t, d, "sn/a", "2", "sn/b", "2", "sn/c", "2")
	kvtest.ExpectRead(t, s, "1", "sn/b")
	kvtest.ExpectRead(t, s, "1 1 -", "sn/a", "sn/b", "sn/c")
	kvtest.Commit(t, s) // it wrote nothing
	kvtest.Begin(t, s)
	kvtest.ExpectRead(t, s, "2 2", "sn/a", "sn/b")
}

// testIsolations checks that read committed loses an update, which both other isolations refuse. Only the default
// refuses a blind write over a newer value.
func testIsolations(t *testing.T, _ *cluster.Cluster, d *etcd.Database) {
	for _, test := range []struct {
		isolation              string
		lost, blindOverwritten bool
	}{
		{"", false, false},
		{"serializable snapshot", false, false},
		{"serializable", false, true},
		{"read committed", true, true},
	} {
		kvtest.Put(t, d, "is/n", "0", "is/x", "0")
		one, two := newSession(t, d, test.isolation), newSession(t, d, test.isolation)
		for _, s := range []db.KVSession{one, two} {
			kvtest.Begin(t, s)
			kvtest.ExpectRead(t, s, "0", "is/n")
			s.Set([]byte("is/n"), []byte("1")) // both transactions add one
		}
		kvtest.Commit(t, one)
		if err := two.Commit(t.Context()); (err == nil) != test.lost {
			t.Errorf("%q: the second of two increments gives %v", test.isolation, err)
		}

		kvtest.Begin(t, one)
		kvtest.Values(t, one, "is/other")
		kvtest.Put(t, d, "is/x", "1")
		one.Set([]byte("is/x"), []byte("2"))
		if err := one.Commit(t.Context()); (err == nil) != test.blindOverwritten {
			t.Errorf("%q: a blind write over a newer one gives %v", test.isolation, err)
		}
	}
}

func testLimits(t *testing.T, c *cluster.Cluster, d *etcd.Database) {
	s := newSession(t, d, "")
	attempt := func(reads, writes int) error {
		kvtest.Begin(t, s)
		var names []string
		for i := range reads {
			names = append(names, fmt.Sprintf("li/r%d", i))
		}
		kvtest.Values(t, s, names...)
		for i := range writes {
			s.Set(fmt.Appendf(nil, "li/w%d", i), make([]byte, 100))
		}
		return s.Commit(t.Context())
	}
	most := d.Limits().Writes
	for _, reads := range []int{0, 1, 28} {
		if err := attempt(reads, most); err != nil {
			t.Errorf("%d reads and Limits().Writes = %d writes: %v", reads, most, err)
		}
	}
	if err := attempt(0, 128); err != nil {
		t.Errorf("128 writes: %v", err)
	}
	for _, n := range [][2]int{{0, 129}, {129, 1}, {29, 100}} {
		if err := attempt(n[0], n[1]); db.ClassOf(err) != db.Fatal {
			t.Errorf("%d reads and %d writes give %v, want class fatal", n[0], n[1], err)
		}
	}
	if err := attempt(300, 0); err != nil {
		t.Errorf("300 reads: %v", err)
	}
	if err := s.Begin(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	names := make([]string, 300)
	for i := range names {
		names[i] = fmt.Sprintf("li/w%d", i)
	}
	for i, v := range kvtest.Values(t, s, names...) {
		if (v != "-") != (i < 128) {
			t.Errorf("key %d of 300: %q", i, v)
		}
	}
	testServerRule(t, client(t, c.Endpoints()[0], "", ""))
}

// testServerRule checks the rule on which the limit depends: the server counts the longest list.
func testServerRule(t *testing.T, c *clientv3.Client) {
	request := func(compares, writes int) *pb.TxnRequest {
		r := &pb.TxnRequest{}
		for i := range compares {
			r.Compare = append(r.Compare, &pb.Compare{Key: fmt.Appendf(nil, "li/c%d", i), Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{}})
		}
		for i := range writes {
			r.Success = append(r.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: fmt.Appendf(nil, "li/p%d", i)}}})
		}
		return r
	}
	kv := pb.NewKVClient(c.ActiveConnection())
	if _, err := kv.Txn(t.Context(), request(128, 128)); err != nil {
		t.Errorf("128 comparisons and 128 writes: %v", err)
	}
	for _, n := range [][2]int{{129, 1}, {1, 129}} {
		_, err := kv.Txn(t.Context(), request(n[0], n[1]))
		if rpctypes.ErrorDesc(err) != rpctypes.ErrorDesc(rpctypes.ErrGRPCTooManyOps) {
			t.Errorf("%d comparisons and %d writes: %v", n[0], n[1], err)
		}
	}
}

func testScan(t *testing.T, _ *cluster.Cluster, d *etcd.Database) {
	const n = 10_000
	s := newSession(t, d, "")
	for first := 0; first < n; first += d.Limits().Writes {
		kvtest.Begin(t, s)
		for i := first; i < first+d.Limits().Writes; i++ {
			s.Set(binary.BigEndian.AppendUint32([]byte("sc/"), uint32(i)), binary.BigEndian.AppendUint64(nil, uint64(i)))
		}
		kvtest.Commit(t, s)
	}
	scan := func(from, to []byte) (seen []uint32) {
		err := s.Scan(t.Context(), from, to, func(key, value []byte) error {
			i := binary.BigEndian.Uint32(bytes.TrimPrefix(key, []byte("sc/")))
			if binary.BigEndian.Uint64(value) != uint64(i) {
				return fmt.Errorf("key %d has the value %x", i, value)
			}
			if len(seen) == 0 { // from here on the scan must not see changes
				kvtest.Put(t, d, "sc/"+string(binary.BigEndian.AppendUint32(nil, n-1)), "changed!", "sc/\xff\xff\xff\xff", "new")
			}
			seen = append(seen, i)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return seen
	}
	seen := scan([]byte("sc/"), []byte("sc0"))
	if len(seen) != n {
		t.Fatalf("%d of %d entries", len(seen), n)
	}
	for i, key := range seen {
		if key != uint32(i) {
			t.Fatalf("entry %d is %d", i, key)
		}
	}
	from, to := binary.BigEndian.AppendUint32([]byte("sc/"), 17), binary.BigEndian.AppendUint32([]byte("sc/"), 1042)
	if part := scan(from, to); len(part) != 1042-17 || part[0] != 17 {
		t.Errorf("17 to 1042: %d entries", len(part))
	}
	if none := scan(to, from); len(none) != 0 {
		t.Errorf("an empty range has %d entries", len(none))
	}
	const large, size = 120, 100_000 // two pages; the first is above gRPC's default limit of an answer
	for i := range large {
		kvtest.Put(t, d, fmt.Sprintf("sl/%03d", i), strings.Repeat("x", size))
	}
	entries := 0
	err := s.Scan(t.Context(), []byte("sl/"), []byte("sl0"), func(_, value []byte) error {
		if entries++; len(value) != size {
			return fmt.Errorf("a value has %d bytes", len(value))
		}
		return nil
	})
	if err != nil || entries != large {
		t.Errorf("%d of %d large entries, %v", entries, large, err)
	}
	stop := errors.New("stop")
	calls := 0
	err = s.Scan(t.Context(), nil, nil, func([]byte, []byte) error { calls++; return stop })
	if err != stop || calls != 1 {
		t.Errorf("the callback's error: %v after %d calls", err, calls)
	}
	kvtest.Begin(t, s)
}

func testMisuse(t *testing.T, _ *cluster.Cluster, d *etcd.Database) {
	_, err := d.KVSession(t.Context(), db.SessionOptions{Isolation: "snapshot"})
	if db.ClassOf(err) != db.Fatal || !strings.Contains(err.Error(), "serializable snapshot, serializable, read committed") {
		t.Errorf("an isolation that etcd has not: %v", err)
	}
	s := newSession(t, d, "")
	if err := s.Commit(t.Context()); db.ClassOf(err) != db.Fatal {
		t.Errorf("commit without begin: %v", err)
	}
	if err := s.Read(t.Context(), kvtest.Keys("k"), make([]db.Entry, 1)); db.ClassOf(err) != db.Fatal {
		t.Errorf("read without begin: %v", err)
	}
	if err := s.Begin(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	s.Set([]byte("k"), nil)
	if err := s.Commit(t.Context()); db.ClassOf(err) != db.Fatal {
		t.Errorf("a write in a read-only transaction: %v", err)
	}
	kvtest.Begin(t, s)
	s.Set(nil, []byte("v"))
	if err := s.Commit(t.Context()); db.ClassOf(err) != db.Fatal {
		t.Errorf("an empty key: %v", err)
	}
	for _, size := range []int{1_600_000, 3_000_000} { // above etcd's limit, above gRPC's limit
		kvtest.Begin(t, s)
		s.Set([]byte("k"), make([]byte, size))
		if err := s.Commit(t.Context()); db.ClassOf(err) != db.Fatal || !strings.Contains(err.Error(), "smaller batches") {
			t.Errorf("a value of %d bytes: %v", size, err)
		}
	}
}

func testCompacted(t *testing.T, c *cluster.Cluster, d *etcd.Database) {
	s := newSession(t, d, "")
	kvtest.Begin(t, s)
	kvtest.ExpectRead(t, s, "-", "co/a")
	kvtest.Put(t, d, "co/a", "1")
	admin := client(t, c.Endpoints()[0], "", "")
	head, err := admin.Get(t.Context(), "co/a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Compact(t.Context(), head.Header.Revision); err != nil {
		t.Fatal(err)
	}
	// The session's member may lag a moment behind the member that compacted.
	for err = nil; err == nil; {
		err = s.Read(t.Context(), kvtest.Keys("co/a"), make([]db.Entry, 1))
	}
	if db.ClassOf(err) != db.Aborted {
		t.Errorf("a snapshot that is gone gives %v", err)
	}
	kvtest.Begin(t, s)
	kvtest.ExpectRead(t, s, "1", "co/a")
}

func testRanges(t *testing.T, _ *cluster.Cluster, d *etcd.Database) {
	for _, isolation := range []string{"", "serializable"} {
		kvtest.Ranges(t, "rg"+isolation+"/", func() db.RangeSession {
			s, err := d.RangeSession(t.Context(), db.SessionOptions{Isolation: isolation})
			if err != nil {
				t.Fatal(err)
			}
			return s
		})
	}
}

func testConcurrent(t *testing.T, _ *cluster.Cluster, d *etcd.Database) {
	kvtest.Transfers(t, "cc/", func() db.KVSession { return newSession(t, d, "") })
}

func testDescription(t *testing.T, c *cluster.Cluster, d *etcd.Database) {
	info, err := d.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.Name != "etcd" || !strings.HasPrefix(info.Version, "3.") {
		t.Errorf("Info is %+v", info)
	}
	settings := fmt.Sprint(info.Settings)
	for _, want := range []string{"3 in the URL, 3 answered", "3: n", "cluster id", "fsync", "linearizable"} {
		if !strings.Contains(settings, want) {
			t.Errorf("the settings %v do not have %q", settings, want)
		}
	}
	if size, err := d.Footprint(t.Context()); err != nil || size < 4096 {
		t.Errorf("Footprint is %d, %v", size, err)
	}
	for name, level := range map[string]isolation.Level{
		"": isolation.StrictSerializable, "serializable snapshot": isolation.StrictSerializable,
		"serializable": isolation.StrictSerializable, "read committed": isolation.ReadCommitted,
	} {
		if claim, err := d.Claim(name); err != nil || claim.Level != level || claim.Isolation == "" || claim.Source == "" {
			t.Errorf("Claim(%q) is %+v, %v", name, claim, err)
		}
	}
	if _, err := d.Claim("repeatable read"); db.ClassOf(err) != db.Fatal {
		t.Errorf("Claim of an unknown isolation: %v", err)
	}
}

func testStaleClaims(t *testing.T, c *cluster.Cluster, d *etcd.Database) {
	old := drivertest.Open(t, etcd.Open, c.URL()+"?reads=serializable")
	for name, level := range map[string]isolation.Level{
		"": isolation.Serializable, "serializable": isolation.Serializable, "read committed": isolation.ReadCommitted,
	} {
		if claim, err := old.Claim(name); err != nil || claim.Level != level {
			t.Errorf("Claim(%q) is %+v, %v", name, claim, err)
		}
	}
	kvtest.Put(t, d, "st/a", "1")
	s := newSession(t, old, "")
	// A commit that compares an old read is safe.
	for range 100 {
		kvtest.Begin(t, s)
		seen := kvtest.Values(t, s, "st/a")[0]
		s.Set([]byte("st/a"), []byte("2"))
		err := s.Commit(t.Context())
		if err == nil && seen == "1" {
			return
		}
		if db.ClassOf(err) != db.Aborted {
			t.Fatalf("read %q, commit gives %v", seen, err)
		}
	}
	t.Error("no commit in 100 tries")
}

package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"stroppy/internal/db"
)

// event is a committed transaction for the oracle.
type event struct {
	position   uint64 // commit number of a writer, snapshot of a reader
	writes     map[string]string
	saw        map[string]string // "" for an absent key
	start, end int64             // ticks of one clock
}

// snapshot is the result of a scan, somewhere between two commits.
type snapshot struct {
	low, high uint64
	entries   map[string]string
}

// TestHistoryIsStrictlySerializable replays all committed transactions in the order of their commits. Every read
// must match, and the order must agree with real time.
func TestHistoryIsStrictlySerializable(t *testing.T) {
	for _, url := range []string{"memory:", "memory:?unknown=0.02&abort=0.05&seed=3"} {
		t.Run(url, func(t *testing.T) {
			d, err := Open(url)
			must(t, err)
			const clients, each = 64, 400
			var (
				clock atomic.Int64
				mu    sync.Mutex
				all   []event
				scans []snapshot
				wait  sync.WaitGroup
			)
			for i := range clients {
				wait.Go(func() {
					s := &session{database: d}
					events, found := randomClient(t, s, &clock, rand.New(rand.NewPCG(uint64(i), 5)), each)
					mu.Lock()
					defer mu.Unlock()
					all, scans = append(all, events...), append(scans, found...)
				})
			}
			wait.Wait()
			replay(t, all, scans)
		})
	}
}

func randomClient(t *testing.T, s *session, clock *atomic.Int64, random *rand.Rand, count int) (events []event, scans []snapshot) {
	ctx := context.Background()
	commits := func() uint64 {
		s.database.store.mu.Lock()
		defer s.database.store.mu.Unlock()
		return s.database.store.commits
	}
	for range count {
		if random.IntN(20) == 0 {
			snap := snapshot{low: commits(), entries: map[string]string{}}
			err := s.Scan(ctx, []byte("k"), []byte("l"), func(k, v []byte) error {
				snap.entries[string(k)] = string(v)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			snap.high = commits()
			scans = append(scans, snap)
			continue
		}
		if e, ok := randomTransaction(t, s, clock, random); ok {
			events = append(events, e)
		}
		if s.Broken {
			if err := s.Reset(ctx); err != nil {
				t.Error(err)
			}
		}
	}
	return events, scans
}

func randomTransaction(t *testing.T, s *session, clock *atomic.Int64, random *rand.Rand) (event, bool) {
	ctx := context.Background()
	key := func() string { return fmt.Sprintf("k%03d", random.IntN(120)) }
	e := event{start: clock.Add(1), saw: map[string]string{}, writes: map[string]string{}}
	readOnly := random.IntN(3) == 0
	if err := s.Begin(ctx, readOnly); err != nil {
		t.Error(err)
	}
	for range 1 + random.IntN(2) {
		keys := make([][]byte, 1+random.IntN(4))
		for i := range keys {
			keys[i] = []byte(key())
		}
		out := make([]db.Entry, len(keys))
		if s.Read(ctx, keys, out) != nil {
			return e, false
		}
		for i := range keys {
			if out[i].Found && len(out[i].Value) == 0 {
				t.Error("an empty value that nobody wrote")
			}
			e.saw[string(keys[i])] = string(out[i].Value)
		}
	}
	for range random.IntN(4) {
		if k := key(); readOnly {
			break
		} else if random.IntN(4) == 0 {
			s.Delete([]byte(k))
			e.writes[k] = ""
		} else {
			e.writes[k] = fmt.Sprint(e.start, " ", random.Uint64())
			s.Set([]byte(k), []byte(e.writes[k]))
		}
	}
	err := s.Commit(ctx)
	e.end = clock.Add(1)
	if db.ClassOf(err) == db.Unknown && s.tx.number > 0 {
		err = nil // it was applied
	}
	e.position = s.tx.snapshot
	if len(e.writes) > 0 {
		e.position = s.tx.number
	}
	return e, err == nil
}

func replay(t *testing.T, all []event, scans []snapshot) {
	slices.SortFunc(all, func(a, b event) int {
		reader := func(e event) int { return min(1, max(0, 1-len(e.writes))) }
		return cmp.Or(cmp.Compare(a.position, b.position), reader(a)-reader(b), cmp.Compare(a.start, b.start))
	})
	state := map[string]string{}
	states := []map[string]string{maps.Clone(state)} // by commit number
	latest := int64(0)
	readers := 0
	for i, e := range all {
		if e.end < latest {
			t.Fatalf("transaction %d of the order had ended before an earlier one began", i)
		}
		latest = max(latest, e.start)
		for k, v := range e.saw {
			if state[k] != v {
				t.Fatalf("transaction %d of the order saw %q at %s, and there was %q", i, v, k, state[k])
			}
		}
		for k, v := range e.writes {
			state[k] = v
			if v == "" {
				delete(state, k)
			}
		}
		if len(e.writes) == 0 {
			readers++
			continue
		}
		if states = append(states, maps.Clone(state)); len(states) != int(e.position)+1 {
			t.Fatalf("commit %d is number %d of the writers", e.position, len(states)-1)
		}
	}
	for _, s := range scans {
		if !slices.ContainsFunc(states[s.low:s.high+1], func(m map[string]string) bool { return maps.Equal(m, s.entries) }) {
			t.Fatalf("a scan between commits %d and %d saw no state of those", s.low, s.high)
		}
	}
	t.Logf("%d writers, %d readers, %d scans", len(all)-readers, readers, len(scans))
	if len(all) < 1000 || readers < 100 || len(scans) < 100 {
		t.Error("too few committed to prove anything")
	}
}

func TestConstraintRefusesInvalidValues(t *testing.T) {
	for _, tc := range []struct {
		name       string
		key        string
		value      []byte
		class      db.Class
		constraint db.ConstraintKind
		ok         bool
	}{
		{"zero", "bank/account/1", account{0, -5, -5}.encode(), 0, 0, true},
		{"negative", "bank/account/1", account{-1, 1, 1}.encode(), db.Constraint, db.CheckFailed, false},
		{"least", "bank/account/1", account{-1 << 63, 1, 1}.encode(), db.Constraint, db.CheckFailed, false},
		{"too short", "bank/account/1", make([]byte, 23), db.Fatal, 0, false},
		{"longer", "bank/account/1", make([]byte, 99), 0, 0, true},
		{"another keyspace", "bank/accounts", account{-1, 1, 1}.encode(), 0, 0, true},
		{"deleted", "bank/account/1", nil, 0, 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := openBank(t, "memory:", 2)
			s := b.session()
			must(t, s.Begin(t.Context(), false))
			s.Set([]byte("other"), []byte("x"))
			if tc.value == nil {
				s.Delete([]byte(tc.key))
			} else {
				s.Set([]byte(tc.key), tc.value)
			}
			err := s.Commit(t.Context())
			if tc.ok != (err == nil) || err != nil && (db.ClassOf(err) != tc.class || db.ConstraintOf(err) != tc.constraint) {
				t.Fatalf("got %v", err)
			}
			must(t, s.Begin(t.Context(), true))
			out := make([]db.Entry, 1)
			must(t, s.Read(t.Context(), [][]byte{[]byte("other")}, out))
			if out[0].Found != tc.ok {
				t.Error("the transaction was applied in part")
			}
		})
	}
	d, err := Open("memory:")
	must(t, err)
	if err := d.Constrain([]db.Keyspace{{Columns: []db.Column{{Offset: -1}}}}); db.ClassOf(err) != db.Fatal || err == nil {
		t.Errorf("a column before the value: got %v", err)
	}
}

// put commits one value through its own session.
func put(t *testing.T, d *Database, key, value string) {
	t.Helper()
	s := &session{database: d}
	must(t, s.Begin(t.Context(), false))
	s.Set([]byte(key), []byte(value))
	must(t, s.Commit(t.Context()))
}

func TestReaderKeepsItsSnapshot(t *testing.T) {
	d, err := Open("memory:")
	must(t, err)
	put(t, d, "a", "0")
	one := [][]byte{[]byte("a")}
	other := [][]byte{[]byte("b")}
	for changes := range keptVersions + 3 {
		s := &session{database: d}
		out := make([]db.Entry, 1)
		must(t, s.Begin(t.Context(), true))
		must(t, s.Read(t.Context(), other, out)) // takes the snapshot
		want := string(d.store.latest("a").value)
		for i := range changes {
			put(t, d, "a", fmt.Sprint(changes, i))
		}
		err := s.Read(t.Context(), one, out)
		switch {
		case changes < keptVersions && (err != nil || string(out[0].Value) != want):
			t.Errorf("after %d changes: %q, %v, want %q", changes, out[0].Value, err, want)
		case changes >= keptVersions && (err == nil || db.ClassOf(err) != db.Aborted):
			t.Errorf("after %d changes: %q, %v, want an aborted transaction", changes, out[0].Value, err)
		}
		if n := len(d.store.records["a"].versions); n > keptVersions {
			t.Fatalf("%d versions are kept", n)
		}
	}
}

// TestChangedReadConflictsAtCommit runs another transaction between the read and the commit.
func TestChangedReadConflictsAtCommit(t *testing.T) {
	for _, tc := range []struct {
		name     string
		read     string
		other    func(s db.KVSession)
		conflict bool
	}{
		{"nothing", "a", func(db.KVSession) {}, false},
		{"another key", "a", func(s db.KVSession) { s.Set([]byte("b"), nil) }, false},
		{"changed", "a", func(s db.KVSession) { s.Set([]byte("a"), []byte("2")) }, true},
		{"changed to the same", "a", func(s db.KVSession) { s.Set([]byte("a"), []byte("1")) }, true},
		{"deleted", "a", func(s db.KVSession) { s.Delete([]byte("a")) }, true},
		{"absent, then there", "c", func(s db.KVSession) { s.Set([]byte("c"), nil) }, true},
		{"absent, deleted", "c", func(s db.KVSession) { s.Delete([]byte("c")) }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, err := Open("memory:")
			must(t, err)
			put(t, d, "a", "1")
			s, o := &session{database: d}, &session{database: d}
			out := make([]db.Entry, 1)
			must(t, s.Begin(t.Context(), false))
			must(t, s.Read(t.Context(), [][]byte{[]byte(tc.read)}, out))
			value := bytes.Clone(out[0].Value)
			must(t, o.Begin(t.Context(), false))
			tc.other(o)
			must(t, o.Commit(t.Context()))
			if !bytes.Equal(out[0].Value, value) {
				t.Error("what was read has changed before the next Begin")
			}
			s.Set([]byte("z"), nil)
			if err := s.Commit(t.Context()); tc.conflict != (err != nil) || err != nil && db.ClassOf(err) != db.Aborted {
				t.Errorf("got %v", err)
			}
			must(t, s.Begin(t.Context(), true)) // the session is ready in any case
		})
	}
}

// TestIndexEqualsSortedSlice compares the index with a sorted slice.
func TestIndexEqualsSortedSlice(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var x index
	var want []string
	for range x.within(span{"", "\xff"}) {
		t.Error("an empty index has an entry")
	}
	for i := range 5000 {
		key := string(binary.BigEndian.AppendUint32(nil, random.Uint32N(1<<31)))
		if i < 2000 {
			key = string(binary.BigEndian.AppendUint32(nil, uint32(i))) // in order, as in a load
		}
		if p, there := slices.BinarySearch(want, key); !there {
			want = slices.Insert(want, p, key)
			x.insert(&record{key: key})
		}
	}
	for i := range 200 {
		from := string(binary.BigEndian.AppendUint32(nil, random.Uint32()))
		if i%2 == 0 {
			from = want[random.IntN(len(want))]
		}
		to := want[random.IntN(len(want))]
		if i%3 == 0 {
			to = "\xff"
		}
		p, _ := slices.BinarySearch(want, from)
		end, _ := slices.BinarySearch(want, to)
		var got []string
		for r := range x.within(span{from, to}) {
			got = append(got, r.key)
		}
		if !slices.Equal(got, want[p:max(p, end)]) {
			t.Fatalf("from %x to %x: %d keys, want %d", from, to, len(got), max(0, end-p))
		}
	}
}

// BenchmarkTransfers measures one transfer between two of 10,000 accounts per iteration, by 64 goroutines. Conflicts
// are retried.
func BenchmarkTransfers(b *testing.B) {
	for _, url := range []string{"memory:", "memory:?mutant=write-skew"} {
		b.Run(url, func(b *testing.B) { benchmarkTransfers(b, url) })
	}
}

func benchmarkTransfers(b *testing.B, url string) {
	const accounts = 10_000
	d, err := Open(url)
	if err != nil {
		b.Fatal(err)
	}
	if err := d.Constrain(spaces); err != nil {
		b.Fatal(err)
	}
	tx := &transaction{}
	keys := make([][]byte, accounts)
	for n := range accounts {
		keys[n] = accountKey(n)
		tx.writes = append(tx.writes, write{key: string(keys[n]), value: account{balance: opening}.encode()})
	}
	d.store.apply(tx)
	var clients atomic.Int64
	b.SetParallelism(32)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		number := clients.Add(1)
		s := &session{database: d}
		random := rand.New(rand.NewPCG(uint64(number), 9))
		read, out := make([][]byte, 3), make([]db.Entry, 3)
		ledger := []byte(ledgerPrefix + "0123456789abcdef")
		value := make([]byte, 24)
		for id := number << 32; pb.Next(); id++ {
			n := random.IntN(accounts)
			read[0], read[1], read[2] = keys[n], keys[(n+1+random.IntN(accounts-1))%accounts], ledger
			binary.BigEndian.PutUint64(ledger[len(ledgerPrefix):], uint64(id))
			for !benchmarkTry(b, s, read, out, value, id) {
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tx/s")
}

func benchmarkTry(b *testing.B, s *session, read [][]byte, out []db.Entry, value []byte, id int64) bool {
	ctx := context.Background()
	if err := s.Begin(ctx, false); err != nil {
		b.Error(err)
		return true
	}
	if err := s.Read(ctx, read, out); err != nil {
		return db.ClassOf(err) != db.Aborted
	}
	for i := range 2 {
		a := decodeAccount(out[i].Value)
		binary.BigEndian.PutUint64(value[0:], uint64(a.balance))
		binary.BigEndian.PutUint64(value[8:], uint64(a.version+1))
		binary.BigEndian.PutUint64(value[16:], uint64(id))
		s.Set(read[i], value)
	}
	s.Set(read[2], value)
	return db.ClassOf(s.Commit(ctx)) != db.Aborted
}

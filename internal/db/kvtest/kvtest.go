// Package kvtest holds the tests that the drivers of ordered key-value stores share: transactions in one line, and a
// benchmark.
package kvtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
)

// Keys returns names as keys.
func Keys(names ...string) (all [][]byte) {
	for _, n := range names {
		all = append(all, []byte(n))
	}
	return all
}

// Begin begins a transaction that may write.
func Begin(t testing.TB, s db.KVSession) {
	t.Helper()
	drivertest.Must(t, s.Begin(t.Context(), false))
}

// Values reads keys and returns their values as text. An absent key is "-".
func Values(t testing.TB, s db.KVSession, names ...string) []string {
	t.Helper()
	out := make([]db.Entry, len(names))
	drivertest.Must(t, s.Read(t.Context(), Keys(names...), out))
	values := make([]string, len(out))
	for i, e := range out {
		values[i] = "-"
		if e.Found {
			values[i] = string(e.Value)
		}
	}
	return values
}

// ExpectRead reads keys. Their values, joined by spaces, must be want.
func ExpectRead(t testing.TB, s db.KVSession, want string, names ...string) {
	t.Helper()
	if got := strings.Join(Values(t, s, names...), " "); got != want {
		t.Errorf("read %v: %q, want %q", names, got, want)
	}
}

// Commit commits the transaction of s, which must succeed.
func Commit(t testing.TB, s db.KVSession) {
	t.Helper()
	drivertest.Must(t, s.Commit(t.Context()))
}

// Put writes keys and values, given alternately, in a session of its own. The value "-" removes the key.
func Put(t testing.TB, d db.KV, pairs ...string) {
	t.Helper()
	s, err := d.KVSession(t.Context(), db.SessionOptions{})
	drivertest.Must(t, err)
	defer s.Close()
	Begin(t, s)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "-" {
			s.Delete([]byte(pairs[i]))
		} else {
			s.Set([]byte(pairs[i]), []byte(pairs[i+1]))
		}
	}
	Commit(t, s)
}

// AppendOnce writes key if it is absent. applied is true if it wrote the key; err is then the error of the commit.
func AppendOnce(ctx context.Context, s db.KVSession, key []byte) (applied bool, err error) {
	if err := s.Begin(ctx, false); err != nil {
		return false, err
	}
	var out [1]db.Entry
	if err := s.Read(ctx, [][]byte{key}, out[:]); err != nil || out[0].Found {
		return false, err
	}
	s.Set(key, []byte("x"))
	return true, s.Commit(ctx)
}

// ResetUntil resets s until a server answers. It waits between the tries, as every caller of a driver does.
func ResetUntil(t testing.TB, s db.KVSession) {
	t.Helper()
	begun := time.Now()
	for err := s.Reset(t.Context()); err != nil; err = s.Reset(t.Context()) {
		if time.Since(begun) > 30*time.Second {
			t.Fatalf("no server answers for 30 s: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Transfers moves money among ten accounts, which are keys below prefix, from sixteen sessions at once. The sum must
// stay the same. A prefix ends with a slash.
func Transfers(t *testing.T, prefix string, open func() db.KVSession) {
	const accounts, sessions, transfers, opening = 10, 16, 25, 1000
	number := func(i uint64) []byte { return binary.BigEndian.AppendUint64(nil, i) }
	account := func(i int) []byte { return fmt.Appendf(nil, "%s%d", prefix, i%accounts) }
	setup := open()
	Begin(t, setup)
	for i := range accounts {
		setup.Set(account(i), number(opening))
	}
	Commit(t, setup)
	var wg sync.WaitGroup
	for client := range sessions {
		s := open()
		wg.Go(func() {
			out := make([]db.Entry, 2)
			for done := 0; done < transfers; {
				pair := [][]byte{account(client + done), account(client*3 + done*7 + 1)}
				if bytes.Equal(pair[0], pair[1]) {
					pair[1] = account(client + done + 1)
				}
				err := s.Begin(t.Context(), false)
				if err == nil {
					err = s.Read(t.Context(), pair, out)
				}
				if err == nil {
					s.Set(pair[0], number(binary.BigEndian.Uint64(out[0].Value)-1))
					s.Set(pair[1], number(binary.BigEndian.Uint64(out[1].Value)+1))
					err = s.Commit(t.Context())
				}
				switch {
				case err == nil:
					done++
				case db.ClassOf(err) != db.Aborted:
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	var total uint64
	end := strings.TrimSuffix(prefix, "/") + "0"
	err := setup.Scan(t.Context(), []byte(prefix), []byte(end), func(_, value []byte) error {
		total += binary.BigEndian.Uint64(value)
		return nil
	})
	if err != nil || total != accounts*opening {
		t.Errorf("the total is %d after %d transfers, %v", total, sessions*transfers, err)
	}
}

// Adds checks that AddSession.Add keeps its contract, on keys below prefix.
func Adds(t *testing.T, prefix string, open func() db.AddSession) {
	a := adds{open(), []byte(prefix + "n")}
	a.alone(t)
	a.twoAtOnce(t, open(), []byte(prefix+"marker"))
	a.manyAtOnce(t, open)
}

// adds is a session and the key to which it adds.
type adds struct {
	db.AddSession
	key []byte
}

func littleEndian(n int64) string { return string(binary.LittleEndian.AppendUint64(nil, uint64(n))) }

func (a adds) holds(t *testing.T, what, want string) {
	t.Helper()
	Begin(t, a)
	if got := Values(t, a, string(a.key))[0]; got != want {
		t.Errorf("%s: the key holds %q, want %q", what, got, want)
	}
	a.Rollback()
}

// alone runs adds without other sessions, and leaves the number 2.
func (a adds) alone(t *testing.T) {
	number := littleEndian
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"an add that was rolled back", func() { a.Add(a.key, 7); a.Rollback(); Begin(t, a) }, "-"},
		{"an add to a key that is not there", func() { a.Add(a.key, 5) }, number(5)},
		{"a negative amount", func() { a.Add(a.key, -12) }, number(-7)},
		{"nothing", func() { a.Add(a.key, 0) }, number(-7)},
		{"two adds, which the transaction does not see", func() {
			a.Add(a.key, 3)
			ExpectRead(t, a, number(-7), string(a.key))
			a.Add(a.key, 4)
		}, number(0)},
		{"an add after a write", func() { a.Set(a.key, []byte(number(100))); a.Add(a.key, 1) }, number(101)},
		{"a write after an add", func() { a.Add(a.key, 1); a.Set(a.key, []byte(number(9))) }, number(9)},
		{"an add after a removal", func() { a.Delete(a.key); a.Add(a.key, 2) }, number(2)},
		{"an overflow", func() { a.Set(a.key, []byte(number(math.MaxInt64))); a.Add(a.key, 1) }, number(math.MinInt64)},
		{"a short value", func() { a.Set(a.key, []byte{255}); a.Add(a.key, 1) }, number(256)},
		{"a long value", func() { a.Set(a.key, []byte(number(1)+"more")); a.Add(a.key, 1) }, number(2)},
	} {
		Begin(t, a)
		step.do()
		Commit(t, a)
		a.holds(t, step.what, step.want)
	}
	drivertest.Must(t, a.Begin(t.Context(), true))
	a.Add(a.key, 1)
	if err := a.Commit(t.Context()); db.ClassOf(err) != db.Fatal {
		t.Errorf("an add in a transaction that only reads ended with %v", err)
	}
}

// twoAtOnce runs adds from two sessions at once, and leaves the number 33.
func (a adds) twoAtOnce(t *testing.T, other db.AddSession, marker []byte) {
	Begin(t, a)
	Begin(t, other)
	Values(t, a, string(marker)) // both have their snapshots before either of them commits
	Values(t, other, string(marker))
	a.Add(a.key, 10)
	other.Add(a.key, 20)
	Commit(t, other)
	Commit(t, a)
	a.holds(t, "two adds at once", littleEndian(32))
	Begin(t, a)
	Values(t, a, string(a.key))
	Begin(t, other)
	other.Add(a.key, 1)
	Commit(t, other)
	a.Set(marker, nil)
	if err := a.Commit(t.Context()); db.ClassOf(err) != db.Aborted {
		t.Errorf("a transaction that had read a key, to which another added, ended with %v", err)
	}
}

func (a adds) manyAtOnce(t *testing.T, open func() db.AddSession) {
	const sessions, each = 16, 25
	var wg sync.WaitGroup
	for range sessions {
		s := open()
		wg.Go(func() {
			for i := range int64(each) {
				err := s.Begin(t.Context(), false)
				if err == nil {
					s.Add(a.key, 3-i%2*2) // 3 and 1
					err = s.Commit(t.Context())
				}
				if err != nil { // a conflict is an error here too
					t.Errorf("an add beside others ended with %v", err)
				}
			}
		})
	}
	wg.Wait()
	a.holds(t, "concurrent adds", littleEndian(33+sessions*(each*2+1)))
}

// Refuses checks that parse refuses each URL of says with an error that contains the words there. No error may show the
// password, which begins with "secr".
func Refuses(t *testing.T, parse func(url string) error, says map[string]string) {
	t.Helper()
	for url, words := range says {
		err := parse(url)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s gives the error %v, which does not say %q", url, err, words)
		}
		if err != nil && strings.Contains(err.Error(), "secr") {
			t.Errorf("%s: the error shows the password: %v", url, err)
		}
	}
}

package kvtest

import (
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
)

// Ranges checks a driver that claims serializable isolation. It must keep the contract of db.RangeSession for the keys
// with a prefix. The prefix ends with a slash, and no key has it yet.
func Ranges(t *testing.T, prefix string, open func() db.RangeSession) {
	t.Helper()
	one, other := open(), open()
	defer one.Close()
	defer other.Close()
	k := func(name string) []byte { return []byte(prefix + name) }
	read := func(s db.RangeSession) string {
		t.Helper()
		var found []string
		drivertest.Must(t, s.Range(t.Context(), k("b"), k("y"), func(key, value []byte) error {
			found = append(found, strings.TrimPrefix(string(key), prefix)+"="+string(value))
			return nil
		}))
		return strings.Join(found, " ")
	}
	Begin(t, other)
	for _, name := range []string{"a", "b", "d", "y"} {
		other.Set(k(name), []byte("1"))
	}
	Commit(t, other)
	for _, c := range []struct {
		what     string
		change   func()
		conflict bool
		after    string
	}{
		{"nothing", func() {}, false, "b=1 d=1"},
		{"a key before the range", func() { other.Set(k("a"), []byte("2")) }, false, "b=1 d=1"},
		{"a key at its end, which is not in it", func() { other.Set(k("y"), []byte("2")) }, false, "b=1 d=1"},
		{"a new key in it", func() { other.Set(k("c"), []byte("1")) }, true, "b=1 c=1 d=1"},
		{"a change of a key", func() { other.Set(k("c"), []byte("2")) }, true, "b=1 c=2 d=1"},
		{"the removal of a key", func() { other.Delete(k("d")) }, true, "b=1 c=2"},
		{"a key that was there before", func() { other.Set(k("d"), []byte("3")) }, true, "b=1 c=2 d=3"},
	} {
		Begin(t, one)
		before := read(one)
		Begin(t, other)
		c.change()
		Commit(t, other)
		if again := read(one); again != before {
			t.Errorf("%s: the transaction read %q and then %q", c.what, before, again)
		}
		one.Set(k("z"), []byte(c.what))
		if err := one.Commit(t.Context()); (db.ClassOf(err) == db.Aborted) != c.conflict || !c.conflict && err != nil {
			t.Errorf("%s meanwhile: the commit ended with %v, a conflict is wanted: %v", c.what, err, c.conflict)
		}
		Begin(t, one)
		if got := read(one); got != c.after {
			t.Errorf("after %s the range is %q, want %q", c.what, got, c.after)
		}
		one.Rollback()
	}
}

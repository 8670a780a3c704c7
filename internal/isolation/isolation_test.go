package isolation

import (
	"slices"
	"testing"
)

// TestIncludesIsAPartialOrder checks that the inclusion of levels is a partial order, and that each level comes
// after the levels that it includes.
func TestIncludesIsAPartialOrder(t *testing.T) {
	for _, a := range Levels() {
		if !a.Includes(a) || !StrictSerializable.Includes(a) || !a.Includes(ReadUncommitted) || a.Includes(Unknown) || Unknown.Includes(a) {
			t.Errorf("%v is not between the weakest level and the strongest", a)
		}
		if back, err := Parse(a.String()); err != nil || back != a {
			t.Errorf("%v is read back as %v: %v", a, back, err)
		}
		for _, b := range Levels() {
			if a.Includes(b) && b > a {
				t.Errorf("%v stands before %v, which it includes", a, b)
			}
			for _, c := range Levels() {
				if a.Includes(b) && b.Includes(c) && !a.Includes(c) {
					t.Errorf("%v includes %v, which includes %v", a, b, c)
				}
			}
		}
	}
	for _, apart := range [][2]Level{
		{SnapshotIsolation, RepeatableRead}, {Serializable, StrongSessionReadCommitted}, {Serializable, StrongSnapshotIsolation}, {SnapshotIsolation, Causal},
	} {
		if apart[0].Includes(apart[1]) || apart[1].Includes(apart[0]) {
			t.Errorf("%v and %v are compared", apart[0], apart[1])
		}
	}
}

func TestStrongestOmitsIncludedLevels(t *testing.T) {
	got := Strongest([]Level{ReadUncommitted, ReadCommitted, MonotonicAtomicView, RepeatableRead, StrongReadCommitted, StrongSessionReadCommitted})
	if !slices.Equal(got, []Level{RepeatableRead, StrongReadCommitted}) {
		t.Errorf("the strongest are %v", got)
	}
}

// TestLevelsHaveUniqueNames checks that each level has a unique name in both vocabularies, and that no
// literature name is a vendor's name for another level.
func TestLevelsHaveUniqueNames(t *testing.T) {
	vendors := []string{"read uncommitted", "read committed", "repeatable read", "serializable"}
	names := map[string]bool{}
	for _, l := range Levels() {
		if l.Short() == "" || l.Forbids() == "" || l.Source() == "" || names[l.Literature()] || names[l.String()] {
			t.Errorf("%s is not defined, or twice: %+v", l, l.definition())
		}
		names[l.Literature()], names[l.String()] = true, true
		if slices.Contains(vendors, l.Short()) {
			t.Errorf("%s is called %s, as vendors call a level of their own", l, l.Short())
		}
	}
}

func TestForbiddenByNamesWeakestLevels(t *testing.T) {
	for _, c := range []struct {
		levels []Level
		want   string
	}{
		{[]Level{RepeatableRead}, "forbidden by PL-2.99 (the literature's repeatable read) and stronger"},
		{[]Level{SnapshotIsolation, RepeatableRead}, "forbidden by snapshot isolation and PL-2.99 (the literature's repeatable read) and stronger"},
		{[]Level{Serializable}, "forbidden by PL-3 (the literature's serializability) and stronger"},
		{[]Level{StrictSerializable}, "forbidden by strict serializability"},
		{[]Level{Unknown}, ""},
		{nil, ""},
	} {
		if got := ForbiddenBy(c.levels...); got != c.want {
			t.Errorf("%v: %q; want %q", c.levels, got, c.want)
		}
	}
}

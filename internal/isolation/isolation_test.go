package isolation

import (
	"slices"
	"testing"
)

// TestIncludes holds that the levels are a partial order, each after what it includes.
func TestIncludes(t *testing.T) {
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

func TestStrongest(t *testing.T) {
	got := Strongest([]Level{ReadUncommitted, ReadCommitted, MonotonicAtomicView, RepeatableRead, StrongReadCommitted, StrongSessionReadCommitted})
	if !slices.Equal(got, []Level{RepeatableRead, StrongReadCommitted}) {
		t.Errorf("the strongest are %v", got)
	}
}

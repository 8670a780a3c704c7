package optimistic

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"stroppy/internal/tier"
)

const many = 16 // writes of a transaction

// TestWritesBehaveLikeAMap compares the writes with a map, for few and many writes, with reused buffers.
func TestWritesBehaveLikeAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s Writes
	for round := range 200 {
		s.Clear()
		want := map[string]string{}
		for range r.IntN(4 * many) {
			key, value := fmt.Appendf(nil, "k%d", r.IntN(3*many)), fmt.Appendf(nil, "v%d", r.Uint32())
			if want[string(key)] = "=" + string(value); r.IntN(4) == 0 {
				want[string(key)] = "removed"
				s.Delete(key)
			} else {
				s.Set(key, value)
			}
			clear(key) // there are copies
			clear(value)
		}
		got := map[string]string{}
		for _, w := range s.All() {
			if got[string(w.Key)] = "=" + string(w.Value); w.Remove {
				got[string(w.Key)] = "removed"
			}
		}
		if len(got) != len(s.All()) || !maps.Equal(got, want) {
			t.Fatalf("round %d: %d writes %v, want %v", round, len(s.All()), got, want)
		}
	}
	if got := string(s.Copy([]byte("a"), nil, []byte("bc"))); got != "abc" {
		t.Errorf("the parts joined are %q", got)
	}
}

func TestWritesAllocateNothing(t *testing.T) {
	tier.SkipUnderRace(t)
	var s Writes
	keys := make([][]byte, many/2)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key %d", i)
	}
	if got := testing.AllocsPerRun(100, func() {
		s.Clear()
		for _, k := range keys {
			s.Set(k, k)
		}
	}); got != 0 {
		t.Errorf("%d writes cost %v allocations", len(keys), got)
	}
}

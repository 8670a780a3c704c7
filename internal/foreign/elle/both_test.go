package elle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/foreign"
	"stroppy/internal/foreign/plume"
	"stroppy/internal/isolation"
)

// twoForms returns a random history of registers as text of Plume and as EDN.
func twoForms(r *rand.Rand, invoked bool) (text, edn string) {
	var lines, forms strings.Builder
	keys, sessions := 1+r.IntN(3), 1+r.IntN(4)
	now := make([]int, keys)
	old := make([][]int, keys)
	value := 0
	stale := r.IntN(3)
	for tx := range 2 + r.IntN(8) {
		session := r.IntN(sessions)
		var ops []string
		for range 1 + r.IntN(3) {
			key := r.IntN(keys)
			if r.IntN(2) == 0 {
				value++
				now[key] = value
				old[key] = append(old[key], value)
				fmt.Fprintf(&lines, "w(%d,%d,%d,%d)\n", key, value, session, tx)
				ops = append(ops, fmt.Sprintf("[:w %d %d]", key, value))
				continue
			}
			seen := now[key]
			if n := len(old[key]); n > 0 && r.IntN(4) < stale {
				seen = old[key][r.IntN(n)]
			}
			fmt.Fprintf(&lines, "r(%d,%d,%d,%d)\n", key, seen, session, tx)
			if seen == 0 {
				ops = append(ops, fmt.Sprintf("[:r %d nil]", key))
			} else {
				ops = append(ops, fmt.Sprintf("[:r %d %d]", key, seen))
			}
		}
		if invoked {
			fmt.Fprintf(&forms, "{:type :invoke, :process %d, :value []}\n", session)
		}
		fmt.Fprintf(&forms, "{:type :ok, :process %d, :value [%s]}\n", session, strings.Join(ops, " "))
	}
	return lines.String(), forms.String()
}

// TestBothFormatsGiveSameVerdict checks that a history has the same verdict in both formats, at every level that both
// define equally.
func TestBothFormatsGiveSameVerdict(t *testing.T) {
	rounds := uint64(1500)
	if testing.Short() {
		rounds = 300
	}
	form, path := plume.Format(), filepath.Join(t.TempDir(), "history.txt")
	count := map[check.Status]int{}
	for seed := range rounds {
		text, edn := twoForms(rand.New(rand.NewPCG(seed, 1)), seed%2 == 0)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		one, err := form.Check(context.Background(), path, isolation.Unknown)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		_, other := checked(t, []byte(edn))
		for _, l := range []isolation.Level{isolation.Causal, isolation.SnapshotIsolation, isolation.Serializable, isolation.StrongSessionSnapshotIsolation, isolation.StrongSessionSerializable} {
			a, b := resultOf(one, l), resultOf(other, l)
			if count[a]++; a != b || a == check.Unknown {
				t.Fatalf("seed %d: %v is %v in Plume's form and %v in EDN:\n%s\n%s", seed, l, a, b, text, edn)
			}
		}
	}
	if count[check.Valid] < int(rounds) || count[check.Invalid] < int(rounds) {
		t.Errorf("the statuses are %v", count)
	}
}

func resultOf(c *foreign.Checked, l isolation.Level) check.Status {
	for _, r := range c.Results {
		if r.Name == l.String() {
			return r.Status
		}
	}
	return check.Unknown
}

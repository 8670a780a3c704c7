package lists

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// invalid returns the invalid and required results for a part of a history or the whole.
func invalid(t *testing.T, kept Storage, list []Transaction, complete bool, claim isolation.Level) map[string]string {
	t.Helper()
	report, err := Check(context.Background(), Input{Storage: func(uint64) Storage { return kept }, Transactions: each(list), Complete: complete, RealTime: true, Expect: claim})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, r := range report.Results {
		if r.Status == check.Invalid && r.Required {
			found[r.Name] = detail(&r)
		}
	}
	return found
}

// windowOf returns a part of a history, as a check of a growing recording sees it: the part has a different
// beginning and end for each client.
func windowOf(rng *rand.Rand, list []Transaction) []Transaction {
	window := slices.Clone(checktest.Window(rng, list, func(t Transaction) uint64 { return t.Client }, 5))
	for i := range window {
		window[i].Ops = slices.Clone(window[i].Ops)
	}
	return window
}

// doubted replaces some outcomes and some read results by unknown ones.
func doubted(rng *rand.Rand, list []Transaction) []Transaction {
	for i := range list[:len(list)-1] {
		if rng.IntN(8) > 0 {
			continue
		}
		t := &list[i]
		t.Outcome = history.Unknown
		for j := range t.Ops {
			t.Ops[j].Known = rng.IntN(2) == 0
		}
	}
	return list
}

// TestWindowsOfValidHistories checks that a part of a valid history is never invalid.
func TestWindowsOfValidHistories(t *testing.T) {
	rounds := checktest.Rounds(1500, 15_000)
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(seed, 17))
		list := serialHistory(rng, seed%2 == 1, false, 0)
		if seed%4 == 0 {
			list = doubted(rng, execute(rng, isolation.Serializable, Objects, 10+rng.IntN(60)))
		}
		window := windowOf(rng, list)
		if seed%3 == 0 { // or all clients begin and end together
			from := rng.IntN(len(list))
			window = list[from : from+1+rng.IntN(len(list)-from)]
		}
		for name, detail := range invalid(t, Objects, window, false, isolation.StrictSerializable) {
			t.Fatalf("seed %d: %+v of %+v: %s: %s", seed, window, list, name, detail)
		}
	}
}

// TestWindowsOfInvalidHistories checks that the whole breaks a claim if a part does.
func TestWindowsOfInvalidHistories(t *testing.T) {
	rounds := checktest.Rounds(1000, 4000)
	claims := []isolation.Level{isolation.ReadCommitted, isolation.RepeatableRead, isolation.SnapshotIsolation, isolation.Serializable, isolation.StrictSerializable}
	shown, hidden := map[isolation.Level]int{}, map[isolation.Level]int{}
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(seed, 19))
		var list []Transaction
		switch seed % 4 {
		case 0:
			list = doubted(rng, execute(rng, isolation.ReadCommitted, Objects, 10+rng.IntN(40)))
		case 1:
			list = doubted(rng, execute(rng, isolation.SnapshotIsolation, Objects, 10+rng.IntN(40)))
		case 2:
			list = weakHistory(rng, rng.IntN(2) == 0, false)
		default:
			list = execute(rng, isolation.Serializable, Objects, 10+rng.IntN(40))
			mutate(rng, list)
		}
		part := windowOf(rng, list)
		for _, claim := range claims {
			window, whole := invalid(t, Objects, part, false, claim), invalid(t, Objects, list, true, claim)
			switch {
			case len(window) > 0 && len(whole) == 0:
				t.Fatalf("seed %d: a window breaks %v and the whole does not: %v", seed, claim, window)
			case len(window) > 0:
				shown[claim]++
			case len(whole) > 0:
				hidden[claim]++
			}
		}
	}
	t.Log(shown, hidden)
	for _, claim := range claims {
		if shown[claim] < int(rounds)/100 || hidden[claim] < int(rounds)/100 {
			t.Errorf("of %d histories %d showed in a window that they break %v, and %d hid it", rounds, shown[claim], claim, hidden[claim])
		}
	}
}

// TestWindowsOfStorages does the same for lists that are written as a whole, and for lists of rows.
func TestWindowsOfStorages(t *testing.T) {
	rounds := checktest.Rounds(600, 3000)
	for _, kept := range []Storage{Values, Pieces} {
		shown := 0
		for seed := range rounds {
			rng := rand.New(rand.NewPCG(seed, 31))
			level := []isolation.Level{isolation.Serializable, isolation.SnapshotIsolation, isolation.ReadCommitted}[seed%3]
			list := doubted(rng, execute(rng, level, kept, 10+rng.IntN(40)))
			window, whole := invalid(t, kept, windowOf(rng, list), false, isolation.StrictSerializable), invalid(t, kept, list, true, isolation.StrictSerializable)
			if len(window) == 0 {
				continue
			}
			shown++
			if level == isolation.Serializable || len(whole) == 0 {
				t.Fatalf("seed %d: a window of %v at %v is invalid: %v", seed, kept, level, window)
			}
		}
		if shown < int(rounds)/10 {
			t.Errorf("%d of %d windows of %v show a violation", shown, rounds, kept)
		}
	}
}

// pair is an operation that read an element, and the append of the element by another transaction.
type pair struct {
	reader, writer *Transaction
	read, append   *Op
	at             int // position of the element in the result
}

// pairs returns the pairs of committed transactions in a window, in random order.
func pairs(rng *rand.Rand, window []Transaction) (list []pair) {
	for i := range window {
		for j := range window {
			r, w := &window[i], &window[j]
			if i == j || r.Outcome != history.Committed || w.Outcome != history.Committed {
				continue
			}
			for k := range r.Ops {
				for l := range w.Ops {
					read, made := &r.Ops[k], &w.Ops[l]
					if read.Kind != Read || made.Kind != Append || read.Key != made.Key {
						continue
					}
					if at := slices.Index(read.List, made.Element); at >= 0 {
						list = append(list, pair{r, w, read, made, at})
					}
				}
			}
		}
	}
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// appendsTo reports whether a transaction appends to a list.
func appendsTo(t *Transaction, key uint64) bool {
	return slices.ContainsFunc(t.Ops, func(op Op) bool { return op.Kind == Append && op.Key == key })
}

// TestWindowsFindPlants checks that a contradiction within a window is detected there.
func TestWindowsFindPlants(t *testing.T) {
	rounds := checktest.Rounds(200, 1500)
	for name, plant := range map[string]func(p pair) bool{ // false: there is no suitable place
		"an aborted read": func(p pair) bool {
			p.writer.Outcome = history.Aborted
			return true
		},
		"an order that another read does not have": func(p pair) bool {
			list := slices.Clone(p.read.List)
			if p.at == 0 || p.at+1 == len(list) || appendsTo(p.reader, p.read.Key) {
				return false
			}
			list[p.at-1], list[p.at] = list[p.at], list[p.at-1]
			// A second read of a different list contradicts the first.
			p.reader.Ops = append(p.reader.Ops, Op{Kind: Read, Known: true, Key: p.read.Key, List: list})
			return true
		},
		"a read of its own append that is gone": func(p pair) bool {
			p.writer.Ops = append(p.writer.Ops, Op{Kind: Read, Known: true, Key: p.read.Key, List: slices.Clone(p.read.List[:p.at])})
			return true
		},
		"a lost update": func(p pair) bool {
			own := slices.IndexFunc(p.reader.Ops, func(op Op) bool { return op.Kind == Append && op.Key == p.read.Key })
			if own < 0 || slices.Contains(p.read.List, p.reader.Ops[own].Element) || p.at+1 < len(p.read.List) {
				return false
			}
			p.read.List = p.read.List[:p.at]
			p.reader.Ops = slices.Insert(p.reader.Ops, 0, *p.read)
			// The writer had read the same.
			p.writer.Ops = slices.Insert(p.writer.Ops, 0, Op{Kind: Read, Known: true, Key: p.read.Key, List: slices.Clone(p.read.List)})
			return true
		},
		"a stale read": func(p pair) bool {
			if p.writer.End >= p.reader.Begin || appendsTo(p.reader, p.read.Key) {
				return false
			}
			p.read.List = p.read.List[:p.at]
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			planted := 0
			for seed := range rounds {
				rng := rand.New(rand.NewPCG(seed, 23))
				window := windowOf(rng, execute(rng, isolation.Serializable, Objects, 30+rng.IntN(30)))
				if !slices.ContainsFunc(pairs(rng, window), plant) {
					continue
				}
				planted++
				if len(invalid(t, Objects, window, false, isolation.StrictSerializable)) == 0 {
					t.Fatalf("seed %d: nothing is found in %+v", seed, window)
				}
			}
			if planted < int(rounds)/10 {
				t.Errorf("%d windows had a place for it", planted)
			}
		})
	}
}

// TestRequiredFollowsTheClaim checks that the required checks of an order do not depend on whether an
// unclaimed level holds.
func TestRequiredFollowsTheClaim(t *testing.T) {
	for _, claim := range isolation.Levels() {
		if claim == isolation.Causal || claim.Includes(isolation.RepeatableRead) && !claim.Includes(isolation.Serializable) {
			continue // not a level of lists, or one that a write skew breaks too
		}
		required := map[bool][]string{}
		for _, broken := range []bool{false, true} {
			list := []Transaction{ // each misses the other's append
				{ID: 1, Client: 1, Outcome: history.Committed, Begin: 0, End: 10, Ops: []Op{{Kind: Read, Known: true, Key: 1}, {Kind: Append, Key: 2, Element: 1}}},
				{ID: 2, Client: 2, Outcome: history.Committed, Begin: 1, End: 11, Ops: []Op{{Kind: Read, Known: true, Key: 2}, {Kind: Append, Key: 1, Element: 2}}},
				{ID: 3, Client: 3, Outcome: history.Committed, Begin: 12, End: 13, Ops: []Op{{Kind: Read, Known: true, Key: 2, List: []uint64{1}}}},
			}
			if !broken {
				list = slices.Delete(list, 1, 2)
			}
			report, err := Check(t.Context(), Input{Transactions: each(list), Complete: true, RealTime: true, Expect: claim})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range report.Results {
				if r.Required {
					required[broken] = append(required[broken], r.Name)
				}
				if r.Name == check.Serializable && (r.Status == check.Valid) == broken {
					t.Fatalf("%s is %v: %s", r.Name, r.Status, detail(&r))
				}
			}
		}
		if counts := claim.Includes(isolation.Serializable); slices.Contains(required[true], check.Serializable) != counts || !slices.Equal(required[false], required[true]) {
			t.Errorf("at %v %v are required if it is kept, and %v if it is not", claim, required[false], required[true])
		}
	}
}

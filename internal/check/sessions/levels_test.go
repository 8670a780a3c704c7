package sessions

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/graph"
	"stroppy/internal/isolation"
)

// timed adds times to a history. Each session runs its transactions one after another, and the sessions
// overlap. Some replies are lost; their transactions have no end.
func (s small) timed(r *rand.Rand, unknown bool) (*History, *Times) {
	h := s.history()
	times := &Times{Real: true}
	tx := 0
	for _, session := range h.Sessions {
		at := r.Int64N(20)
		for ; tx < session.End; tx++ {
			times.Begin = append(times.Begin, at)
			at += 1 + r.Int64N(20)
			times.End = append(times.End, at)
			at += 1 + r.Int64N(5)
		}
	}
	tx = 0
	for i := range h.Sessions {
		h.Sessions[i].Process = uint32(i)
		if last := h.Sessions[i].End - 1; unknown && r.IntN(3) == 0 {
			times.End[last] = graph.Never
		}
	}
	h.Times = times
	return h, times
}

// definition decides every level of package isolation by its definition, over all orders.
type definition struct {
	*oracle
	times  *Times
	sound  bool // each read value was written
	clean  bool // also, none was aborted, overwritten by its writer or written later
	own    bool // each transaction reads its own writes
	before func(o graph.Order, a, b int) bool
}

func newDefinition(s small, times *Times) *definition {
	d := &definition{oracle: newOracle(s), times: times, sound: true, clean: true, own: true}
	aborted := map[[2]int64]bool{}
	for _, op := range s.aborted {
		aborted[[2]int64{op.Key, op.Value}] = true
	}
	last := map[[2]int64]int64{}
	for t, tx := range d.txs {
		for _, op := range tx {
			if op.Write {
				last[[2]int64{int64(t), op.Key}] = op.Value
			}
		}
	}
	d.wr = nil
	for t, tx := range d.txs {
		own := map[int64][]int64{}
		for i, op := range tx {
			if op.Write {
				own[op.Key] = append(own[op.Key], op.Value)
				continue
			}
			mine := own[op.Key]
			if len(mine) > 0 && mine[len(mine)-1] == op.Value {
				continue
			}
			if len(mine) > 0 {
				d.own = false
			}
			if slices.Contains(mine, op.Value) {
				continue
			}
			w, known := d.writer[[2]int64{op.Key, op.Value}]
			switch {
			case op.Value == 0:
				w = -1
			case aborted[[2]int64{op.Key, op.Value}]:
				d.clean = false
				continue
			case !known:
				d.sound = false
				continue
			case w == t || last[[2]int64{int64(w), op.Key}] != op.Value:
				d.clean = false
			}
			d.wr = append(d.wr, []int{t, i, w, int(op.Key)})
		}
	}
	d.before = func(o graph.Order, a, b int) bool {
		switch o {
		case graph.Sessions:
			return d.session[a] == d.session[b] && a < b && (d.times == nil || d.times.End[a] < d.times.Begin[b])
		case graph.Real:
			return d.times.End[a] < d.times.Begin[b]
		}
		return false
	}
	return d
}

// some reports whether some order of the transactions agrees with an order and has a property.
func (d *definition) some(o graph.Order, holds func(place []int) bool) bool {
	n := len(d.txs)
	place, used := make([]int, n), make([]bool, n)
	var try func(k int) bool
	try = func(k int) bool {
		if k == n {
			return holds(place)
		}
	next:
		for t := range n {
			if used[t] {
				continue
			}
			for u := range n {
				if !used[u] && u != t && d.before(o, u, t) {
					continue next
				}
			}
			used[t], place[t] = true, k
			if try(k + 1) {
				return true
			}
			used[t] = false
		}
		return false
	}
	return try(0)
}

// arbitrated returns a predicate of orders. It holds if each transaction follows those that it read from, and
// if the last visible writer of a key is the one read from.
func (d *definition) arbitrated(visible func(reader, position, t int) bool) func(place []int) bool {
	at := func(place []int, t int) int {
		if t < 0 {
			return -1
		}
		return place[t]
	}
	return func(place []int) bool {
		for _, r := range d.wr {
			reader, position, writer, key := r[0], r[1], r[2], int64(r[3])
			if at(place, writer) >= place[reader] {
				return false
			}
			for t := range d.txs {
				if t != writer && t != reader && d.writes[t][key] && visible(reader, position, t) && place[t] > at(place, writer) {
					return false
				}
			}
		}
		return true
	}
}

func (d *definition) holds(l isolation.Level) bool {
	read := func(reader, until, t int) bool {
		return slices.ContainsFunc(d.wr, func(r []int) bool { return r[0] == reader && r[2] == t && r[1] < until })
	}
	none := d.arbitrated(func(int, int, int) bool { return false })
	const all = 1 << 20
	switch l {
	case isolation.ReadUncommitted, isolation.StrongSessionReadUncommitted, isolation.StrongReadUncommitted:
		return d.sound
	}
	if !d.sound || !d.clean {
		return false
	}
	switch l {
	case isolation.ReadCommitted:
		return d.some(graph.Plain, none)
	case isolation.StrongSessionReadCommitted:
		return d.some(graph.Sessions, none)
	case isolation.StrongReadCommitted:
		return d.some(graph.Real, none)
	case isolation.MonotonicAtomicView:
		return d.some(graph.Plain, d.arbitrated(read))
	}
	if !d.own {
		return false
	}
	run := func(serial bool, o graph.Order) bool {
		e := &executor{oracle: d.oracle, serial: serial, state: map[int64]int64{}, precedes: func(a, b int) bool { return d.before(o, a, b) }}
		e.begun, e.done = make([]bool, len(d.txs)), make([]bool, len(d.txs))
		e.snapshot, e.seen = make([]map[int64]int64, len(d.txs)), make([]int, len(d.txs))
		return e.try()
	}
	switch l {
	case isolation.ReadAtomic:
		return d.some(graph.Plain, d.arbitrated(func(reader, _, t int) bool { return read(reader, all, t) }))
	case isolation.Causal:
		reach := d.causes()
		return d.some(graph.Sessions, d.arbitrated(func(reader, _, t int) bool { return reach[t][reader] }))
	case isolation.RepeatableRead, isolation.Serializable:
		return run(true, graph.Plain)
	case isolation.SnapshotIsolation:
		return run(false, graph.Plain)
	case isolation.StrongSessionSerializable:
		return run(true, graph.Sessions)
	case isolation.StrongSessionSnapshotIsolation:
		return run(false, graph.Sessions)
	case isolation.StrictSerializable:
		return run(true, graph.Real)
	}
	return run(false, graph.Real)
}

// causes returns for each pair of transactions whether one precedes the other over sessions and reads.
func (d *definition) causes() [][]bool {
	n := len(d.txs)
	reach := make([][]bool, n)
	for a := range reach {
		reach[a] = make([]bool, n)
		for b := range n {
			reach[a][b] = d.before(graph.Sessions, a, b) || slices.ContainsFunc(d.wr, func(r []int) bool { return r[0] == b && r[2] == a })
		}
	}
	for k := range n {
		for a := range n {
			for b := range n {
				reach[a][b] = reach[a][b] || reach[a][k] && reach[k][b]
			}
		}
	}
	return reach
}

// compareAll compares every level with its definition.
func compareAll(t *testing.T, seed uint64, s small, times *Times, h *History) map[isolation.Level]check.Status {
	t.Helper()
	found, err := CheckAll(context.Background(), h, isolation.Unknown)
	if err != nil {
		t.Fatal(err)
	}
	d, got := newDefinition(s, times), map[isolation.Level]check.Status{}
	for _, r := range found.Results {
		l, err := isolation.Parse(r.Name)
		if err != nil {
			t.Fatal(err)
		}
		got[l] = r.Status
		if times == nil && l.Includes(isolation.StrongReadUncommitted) {
			continue
		}
		if want := map[bool]check.Status{true: check.Valid, false: check.Invalid}[d.holds(l)]; r.Status != want {
			t.Fatalf("seed %d: %v is %v (%s), and the definition says %v: %+v\n%s", seed, l, r.Status, said(r), want, times, s)
		}
		for _, a := range r.Findings {
			if a.Anomaly == "" || len(a.Instances) == 0 || !l.Includes(a.Forbidden) && l != isolation.RepeatableRead && l != isolation.Causal {
				t.Fatalf("seed %d: %v has an anomaly of %v: %+v\n%s", seed, l, a.Forbidden, a, s)
			}
			for i, e := range a.Cycle {
				if next := a.Cycle[(i+1)%len(a.Cycle)]; e.To != next.From || e.Why == nil {
					t.Fatalf("seed %d: no cycle: %+v\n%s", seed, a.Cycle, s)
				}
			}
		}
	}
	for l := range got {
		for m := range got {
			if l.Includes(m) && (got[l] == check.Valid && got[m] != check.Valid || got[m] == check.Invalid && got[l] != check.Invalid) {
				t.Fatalf("seed %d: %v is %v, and %v is %v\n%s", seed, l, got[l], m, got[m], s)
			}
		}
	}
	return got
}

// TestEveryLevelAgreesWithItsDefinition compares all levels with an exhaustive search over orders, for three
// kinds of histories: random ones, serial ones, and serial ones with one change.
func TestEveryLevelAgreesWithItsDefinition(t *testing.T) {
	rounds := uint64(4000)
	if testing.Short() {
		rounds = 700
	}
	counts := map[isolation.Level][2]int{}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 11))
		var s small
		switch seed % 4 {
		case 0:
			s = random(r, 5)
		case 1:
			s = modifying(r, 4)
		default:
			s = serialHistory(r, 5)
			if list, _ := s.mutations(); seed%4 == 3 && len(list) > 0 {
				s = list[r.IntN(len(list))]
			}
		}
		if len(slices.Concat(s.sessions...)) == 0 {
			continue
		}
		h, times := s.timed(r, seed%3 == 0)
		for l, status := range compareAll(t, seed, s, times, h) {
			n := counts[l]
			n[btoi(status == check.Valid)]++
			counts[l] = n
		}
		h.Times = nil
		compareAll(t, seed, s, nil, h)
	}
	for l, n := range counts {
		if n[0] < int(rounds)/50 || n[1] < int(rounds)/50 {
			t.Errorf("%v is broken by %d and kept by %d", l, n[0], n[1])
		}
	}
	t.Log(counts)
}

// TestBothVocabulariesAgree checks that causal consistency and the strong levels are equal in Check and
// CheckAll.
func TestBothVocabulariesAgree(t *testing.T) {
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 12))
		s := random(r, 8)
		if seed%2 == 0 {
			s = serialHistory(r, 9)
			if list, _ := s.mutations(); seed%4 == 0 && len(list) > 0 {
				s = list[r.IntN(len(list))]
			}
		}
		if len(slices.Concat(s.sessions...)) == 0 {
			continue
		}
		published := decided(t, s.history(), isolation.Unknown)
		found, err := CheckAll(context.Background(), s.history(), isolation.Unknown)
		if err != nil {
			t.Fatal(err)
		}
		for _, result := range found.Results {
			of, ok := published[result.Name]
			if !ok || result.Name == isolation.ReadCommitted.String() || result.Name == isolation.ReadAtomic.String() {
				continue
			}
			if of.Status != result.Status {
				t.Fatalf("seed %d: %s is %v (%s) and %v (%s):\n%s", seed, result.Name, of.Status, said(of), result.Status, said(result), s)
			}
		}
	}
}

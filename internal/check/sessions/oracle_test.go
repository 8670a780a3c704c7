package sessions

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/text"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// said returns a result as text for messages. It panics if a fact has no text.
func said(r check.Result) string {
	say := text.Speaker{Words: check.Words{One: "transaction"}}
	say.Anomalies(&r)
	return say.Detail(&r)
}

// small is a history as a list of sessions of transactions of operations.
type small struct {
	sessions [][][]Op
	aborted  []Op
}

// history converts s to the input of Check.
func (s small) history() *History {
	h := &History{Aborted: s.aborted}
	for i, session := range s.sessions {
		if len(session) == 0 {
			continue
		}
		for _, tx := range session {
			h.Ops = append(h.Ops, tx...)
			h.Transactions = append(h.Transactions, Transaction{Name: int64(len(h.Transactions)), End: len(h.Ops)})
		}
		h.Sessions = append(h.Sessions, Session{Name: int64(i), End: len(h.Transactions)})
	}
	return h
}

// String returns the history in the text format of the published testers.
func (s small) String() string {
	var out strings.Builder
	n := 0
	for _, op := range s.aborted {
		fmt.Fprintf(&out, "w(%d,%d,0,-1)\n", op.Key, op.Value)
	}
	for i, session := range s.sessions {
		for _, tx := range session {
			for _, op := range tx {
				fmt.Fprintf(&out, "%c(%d,%d,%d,%d)\n", "rw"[btoi(op.Write)], op.Key, op.Value, i, n)
			}
			n++
		}
	}
	return out.String()
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// random returns a history of at most the given number of transactions. Reads return any written value, so
// most histories break a level, and many do not.
func random(r *rand.Rand, most int) small {
	sessions, keys := 1+r.IntN(3), 1+r.IntN(3)
	var s small
	s.sessions = make([][][]Op, sessions)
	values := make([][]int64, keys)
	next := int64(0)
	wild := r.IntN(8) == 0
	for range 1 + r.IntN(most) {
		at := r.IntN(sessions)
		var tx []Op
		for range 1 + r.IntN(4) {
			op := Op{Key: int64(r.IntN(keys)), Write: r.IntN(2) == 0}
			if op.Write {
				next++
				op.Value = next
				values[op.Key] = append(values[op.Key], next)
			}
			tx = append(tx, op)
		}
		s.sessions[at] = append(s.sessions[at], tx)
	}
	if wild {
		next++
		s.aborted = append(s.aborted, Op{Key: 0, Value: next, Write: true})
		values[0] = append(values[0], next, next+1) // one value is never written
	}
	near := r.IntN(2) == 0 // a recently written value, as in real histories
	for _, session := range s.sessions {
		for _, tx := range session {
			own := map[int64]int64{}
			seen := map[int64]int64{}
			for i := range tx {
				op := &tx[i]
				value, wrote := own[op.Key]
				again, read := seen[op.Key]
				all := values[op.Key]
				switch {
				case op.Write:
					own[op.Key] = op.Value
					continue
				case wrote && r.IntN(20) > 0:
					op.Value = value
					continue
				case read && r.IntN(3) > 0:
					op.Value = again
				case len(all) > 0 && (near || r.IntN(4) > 0):
					op.Value = all[r.IntN(len(all))]
				}
				seen[op.Key] = op.Value
			}
		}
	}
	return s
}

// oracle decides by the definitions alone: it tries every order of the transactions.
type oracle struct {
	txs     [][]Op
	session []int
	writer  map[[2]int64]int // by key and value; -1: the initial state
	sound   bool             // each read returns the last value of its writer, or the reader's own value
	wr      [][]int          // by read: reader, position, writer, key
	writes  []map[int64]bool // the initial state is the last element
}

func newOracle(s small) *oracle {
	o := &oracle{writer: map[[2]int64]int{}, sound: true}
	final := map[[2]int64]bool{}
	for i, session := range s.sessions {
		for _, tx := range session {
			last := map[int64]int64{}
			wrote := map[int64]bool{}
			for _, op := range tx {
				if op.Write {
					o.writer[[2]int64{op.Key, op.Value}] = len(o.txs)
					last[op.Key], wrote[op.Key] = op.Value, true
				}
			}
			for key, value := range last {
				final[[2]int64{key, value}] = true
			}
			o.txs, o.session, o.writes = append(o.txs, tx), append(o.session, i), append(o.writes, wrote)
		}
	}
	for t, tx := range o.txs {
		own := map[int64]int64{}
		for i, op := range tx {
			if op.Write {
				own[op.Key] = op.Value
				continue
			}
			if value, ok := own[op.Key]; ok {
				o.sound = o.sound && value == op.Value
				continue
			}
			w, ok := o.writer[[2]int64{op.Key, op.Value}]
			switch {
			case op.Value == 0:
				w = -1
			case !ok || w == t || !final[[2]int64{op.Key, op.Value}]:
				o.sound = false
			}
			o.wr = append(o.wr, []int{t, i, w, int(op.Key)})
		}
	}
	return o
}

// before returns three relations between transactions: so, with the initial state first, wr, and the
// transitive closure of both.
func (o *oracle) before() (so, wr, hb func(a, b int) bool) {
	n := len(o.txs)
	so = func(a, b int) bool {
		return a == -1 && b != -1 || a != -1 && b != -1 && o.session[a] == o.session[b] && a < b
	}
	read := map[[2]int]bool{}
	for _, r := range o.wr {
		if r[2] != r[0] {
			read[[2]int{r[2], r[0]}] = true
		}
	}
	wr = func(a, b int) bool { return read[[2]int{a, b}] }
	reach := make([][]bool, n+1)
	for a := -1; a < n; a++ {
		reach[a+1] = make([]bool, n+1)
		for b := -1; b < n; b++ {
			reach[a+1][b+1] = so(a, b) || wr(a, b)
		}
	}
	for k := range reach {
		for a := range reach {
			for b := range reach {
				reach[a][b] = reach[a][b] || reach[a][k] && reach[k][b]
			}
		}
	}
	return so, wr, func(a, b int) bool { return reach[a+1][b+1] }
}

// allows reports whether a level allows the commit order with these positions (Biswas and Enea, figure 2).
func (o *oracle) allows(l isolation.Level, place []int) bool {
	so, wr, hb := o.before()
	at := func(t int) int {
		if t == -1 {
			return -1
		}
		return place[t]
	}
	for a := range o.txs {
		for b := range o.txs {
			if (so(a, b) || wr(a, b)) && at(a) >= at(b) {
				return false
			}
		}
	}
	for _, r := range o.wr {
		t3, pos, t1, key := r[0], r[1], r[2], int64(r[3])
		for t2 := -1; t2 < len(o.txs); t2++ {
			if t2 == t1 || t2 == t3 || t2 != -1 && !o.writes[t2][key] {
				continue
			}
			visible := false
			switch l {
			case isolation.ReadCommitted:
				for _, earlier := range o.wr {
					visible = visible || earlier[0] == t3 && earlier[1] < pos && earlier[2] == t2
				}
			case isolation.ReadAtomic:
				visible = so(t2, t3) || wr(t2, t3)
			case isolation.Causal:
				visible = hb(t2, t3)
			case isolation.StrongSessionSerializable:
				visible = at(t2) < at(t3)
			}
			if visible && at(t2) > at(t1) {
				return false
			}
		}
	}
	return true
}

// holds tries all orders.
func (o *oracle) holds(l isolation.Level) bool {
	if !o.sound {
		return false
	}
	place := make([]int, len(o.txs))
	for i := range place {
		place[i] = i
	}
	var try func(k int) bool
	try = func(k int) bool {
		if k == len(place) {
			return o.allows(l, place)
		}
		for i := k; i < len(place); i++ {
			place[k], place[i] = place[i], place[k]
			if try(k + 1) {
				return true
			}
			place[k], place[i] = place[i], place[k]
		}
		return false
	}
	return try(0)
}

// decided returns the results by level.
func decided(t *testing.T, h *History, expect isolation.Level) map[string]check.Result {
	t.Helper()
	found, err := Check(context.Background(), h, expect)
	if err != nil {
		t.Fatal(err)
	}
	results := map[string]check.Result{}
	for _, r := range found.Results {
		results[r.Name] = r
	}
	return results
}

// TestExactLevelsAgreeWithDefinitions compares the levels that are decided exactly with their definitions.
func TestExactLevelsAgreeWithDefinitions(t *testing.T) {
	counts := map[string][2]int{}
	for seed := range uint64(6000) {
		s := random(rand.New(rand.NewPCG(seed, 1)), 5)
		results, o := decided(t, s.history(), isolation.Unknown), newOracle(s)
		for _, l := range []isolation.Level{isolation.ReadCommitted, isolation.ReadAtomic, isolation.Causal} {
			got, want := results[l.String()], o.holds(l)
			if got.Status != map[bool]check.Status{true: check.Valid, false: check.Invalid}[want] {
				t.Fatalf("seed %d: %v is %v (%s), and the definition says %v:\n%s", seed, l, got.Status, said(got), want, s)
			}
			n := counts[l.String()]
			n[btoi(want)]++
			counts[l.String()] = n
		}
	}
	t.Log(counts)
}

// TestWitnessIsACycle checks that the witness of a broken level is a cycle. Its edges must be so or wr, or
// follow from a read by the level's definition.
func TestWitnessIsACycle(t *testing.T) {
	cycles := 0
	for seed := range uint64(4000) {
		s := random(rand.New(rand.NewPCG(seed, 2)), 7)
		h := s.history()
		for _, result := range decided(t, h, isolation.Unknown) {
			if said(result) == "" {
				t.Fatalf("seed %d: %s has no words", seed, result.Name)
			}
			for _, a := range result.Findings {
				if a.Count == 0 || len(a.Instances) == 0 || len(a.Transactions) == 0 {
					t.Fatalf("seed %d: an anomaly without a witness: %+v\n%s", seed, a, s)
				}
				for i, e := range a.Cycle {
					cycles++
					if next := a.Cycle[(i+1)%len(a.Cycle)]; e.To != next.From || e.From == e.To {
						t.Fatalf("seed %d: no cycle: %+v\n%s", seed, a.Cycle, s)
					}
					if e.Kind == check.ProcessOrder && (e.From.Client() != e.To.Client() || e.From >= e.To) {
						t.Fatalf("seed %d: not in the order of a session: %+v\n%s", seed, e, s)
					}
					if e.Kind == check.WriteRead && !readsFrom(h, e) {
						t.Fatalf("seed %d: not read so: %+v\n%s", seed, e, s)
					}
				}
			}
		}
	}
	if cycles < 1000 {
		t.Fatalf("only %d edges were looked at", cycles)
	}
}

// readsFrom reports whether the reader of an edge read from its writer.
func readsFrom(h *History, e check.Edge) bool {
	has := func(id history.ID, write bool) bool {
		s, n := int(id.Client()), int(id.Sequence())-1
		if s > 0 {
			n += h.Sessions[s-1].End
		}
		from := 0
		if n > 0 {
			from = h.Transactions[n-1].End
		}
		return slices.ContainsFunc(h.Ops[from:h.Transactions[n].End], func(op Op) bool {
			return op.Write == write && h.object(&op) == e.Object && fmt.Sprint(op.Value) == e.ToVersion
		})
	}
	return has(e.From, true) && has(e.To, false)
}

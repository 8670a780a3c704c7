package rows_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/check/rows"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

const x, y = rows.First, rows.First + 1

func id(n uint64) history.ID { return history.NewID(1, n, 1) }

func read(row, version, writer uint64) history.Op {
	op := history.Op{Object: row, Observed: true, Version: version}
	if writer > 0 {
		op.Writer = id(writer)
	}
	return op
}

func write(row, made uint64) history.Op {
	return history.Op{Object: row, Observed: true, Write: true, Version: made - 1}
}

// tx is a transaction of client n. All transactions are concurrent.
func tx(n uint64, outcome history.Outcome, ops ...history.Op) history.Transaction {
	return history.Transaction{ID: id(n), Kind: history.Numbered, Outcome: outcome, Attempts: 1, Try: 1, End: 100, Ops: ops}
}

func committed(n uint64, ops ...history.Op) history.Transaction {
	return tx(n, history.Committed, ops...)
}

func after(t history.Transaction, begin int64) history.Transaction {
	t.Due, t.Sent, t.Try, t.End = begin, begin, begin, begin+1
	return t
}

func words() check.Words { return check.Words{One: "transaction", Book: "end state"} }

func input(txns ...history.Transaction) rows.Input {
	return rows.Input{Words: words(), Input: check.Input{
		Expect:  isolation.Serializable,
		Name:    func(n uint64) string { return fmt.Sprintf("accounts %d", n-rows.First) },
		History: []check.Source{&checktest.History{Run: 1, Txns: txns}},
	}}
}

func results(t *testing.T, in rows.Input) map[string]checktest.Reported {
	t.Helper()
	list, err := rows.Check(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	reported := checktest.Worded(list, words())
	if wrong := checktest.Misexplained(reported); wrong != "" {
		t.Error(wrong)
	}
	return checktest.ByName(reported)
}

// TestAnomaliesAreNamed checks the anomaly of each small history, and its sentence.
func TestAnomaliesAreNamed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		txns          []history.Transaction
		anomaly, says string // empty: serializable is valid
		strict        bool   // strict finds it
	}{
		"serial": {txns: []history.Transaction{committed(1, read(x, 0, 0), write(x, 1)), committed(2, read(x, 1, 1), write(x, 2), read(y, 0, 0))}},
		"rows of earlier runs": {txns: []history.Transaction{
			committed(1, history.Op{Object: x, Observed: true, Version: 7, Writer: history.NewID(9, 1, 1)}, write(x, 8)),
			committed(2, read(x, 8, 1), write(x, 9)),
		}},
		"own writes": {txns: []history.Transaction{committed(1, write(x, 1), read(x, 1, 1), write(x, 2)), committed(2, read(x, 2, 1))}},
		"lost update": {
			txns:    []history.Transaction{committed(1, read(x, 0, 0), write(x, 1)), committed(2, read(x, 0, 0), write(x, 2))},
			anomaly: "lost update (P4)",
			says:    "transaction 1-2-1 read version 0 of accounts 0, transaction 1-1-1 replaced it, and transaction 1-2-1 overwrote that with version 2",
		},
		"two makers of a version": {
			txns:    []history.Transaction{committed(1, write(x, 1)), committed(2, write(x, 1))},
			anomaly: "lost update (P4)", says: "both made version 1",
		},
		"read again before the write": {
			txns:    []history.Transaction{committed(1, write(x, 1)), committed(2, read(x, 0, 0), read(x, 1, 1), write(x, 2))},
			anomaly: "read skew (G-single)", says: "accounts 0",
		},
		"read skew": {
			txns:    []history.Transaction{committed(1, write(x, 1), write(y, 1)), committed(2, read(x, 0, 0), read(y, 1, 1))},
			anomaly: "read skew (G-single)", says: "saw one part of transaction 1-1-1 without the other",
		},
		"write skew": {
			txns: []history.Transaction{
				committed(1, read(x, 0, 0), read(y, 0, 0), write(x, 1)), committed(2, read(x, 0, 0), read(y, 0, 0), write(y, 1)),
			},
			anomaly: "write skew (G2-item)", says: "neither of two transactions saw what the other one wrote",
		},
		"dirty read": {
			txns:    []history.Transaction{tx(1, history.Aborted), committed(2, read(x, 1, 1))},
			anomaly: "dirty read (G1a)", says: "which was aborted",
		},
		"dirty read of an earlier try": {
			txns:    []history.Transaction{committed(1, write(x, 2)), committed(2, read(x, 1, 1)), committed(3, write(x, 1))},
			anomaly: "dirty read (G1a)", says: "which made version 2 of it",
		},
		"intermediate read": {
			txns:    []history.Transaction{committed(1, write(x, 1), write(x, 2)), committed(2, read(x, 1, 1))},
			anomaly: "intermediate read (G1b)", says: "made and overwrote itself",
		},
		"nobody's version": {
			txns:    []history.Transaction{committed(1, read(x, 3, 7))},
			anomaly: "read of a version that nobody made", says: "which no client sent",
		},
		"dirty write": {
			txns:    []history.Transaction{committed(1, write(x, 1), write(y, 2)), committed(2, write(x, 2), write(y, 1))},
			anomaly: "dirty write (G0)", says: "accounts",
		},
		"stale read": {
			txns:    []history.Transaction{after(committed(1, write(x, 1)), 10), after(committed(2, read(x, 0, 0)), 50)},
			anomaly: "stale read (G-single-realtime)", says: "read version 0 of accounts 0", strict: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := results(t, input(tc.txns...))
			r := got[check.Serializable]
			if tc.strict {
				if r.Status != check.Valid {
					t.Errorf("serializable is %v: %s", r.Status, r.Detail)
				}
				r = got[check.Strict]
			}
			if tc.anomaly == "" {
				if r.Status != check.Valid || !strings.Contains(r.Detail, "Tracked were all") {
					t.Errorf("%v: %s", r.Status, r.Detail)
				}
				return
			}
			if r.Status != check.Invalid || len(r.Findings) != 1 || r.Findings[0].Anomaly != tc.anomaly || !strings.Contains(r.Detail, tc.says) {
				t.Errorf("%v, want %s: %s", r.Status, tc.anomaly, r.Detail)
			}
		})
	}
}

// TestTheClaimDecides checks that only what the claim forbids is required.
func TestTheClaimDecides(t *testing.T) {
	t.Parallel()
	skew := []history.Transaction{
		committed(1, read(x, 0, 0), read(y, 0, 0), write(x, 1)), committed(2, read(x, 0, 0), read(y, 0, 0), write(y, 1)),
	}
	lost := []history.Transaction{committed(1, read(x, 0, 0), write(x, 1)), committed(2, read(x, 0, 0), write(x, 2))}
	dirty := []history.Transaction{tx(1, history.Aborted), committed(2, read(x, 1, 1))}
	for _, tc := range []struct {
		txns   []history.Transaction
		expect isolation.Level
		want   bool
	}{
		{skew, isolation.Serializable, true}, {skew, isolation.SnapshotIsolation, false}, {skew, isolation.Unknown, true},
		{lost, isolation.SnapshotIsolation, true}, {lost, isolation.ReadCommitted, false},
		{dirty, isolation.ReadCommitted, true}, {dirty, isolation.ReadUncommitted, false},
	} {
		in := input(tc.txns...)
		in.Expect = tc.expect
		if r := results(t, in)[check.Serializable]; r.Status != check.Invalid || r.Required != tc.want {
			t.Errorf("%v: required is %v: %s", tc.expect, r.Required, r.Detail)
		}
	}
	in := input(lost...)
	in.Expect, in.Computes = isolation.ReadCommitted, true
	lost[1].Ops[1].Amount = 1
	if r := results(t, in)[rows.NoLostUpdate]; r.Status != check.Invalid || !r.Required || r.Findings[0].Count != 1 {
		t.Errorf("a computed value replaced another one: %+v", r)
	}
	lost[1].Ops[1].Amount = 0
	if r := results(t, in)[rows.NoLostUpdate]; r.Status != check.Valid {
		t.Errorf("a value that the database computes replaced another one: %+v", r)
	}
}

// TestWhatIsNotKnownIsNoFinding checks that missing knowledge never accuses, and never acquits.
func TestWhatIsNotKnownIsNoFinding(t *testing.T) {
	t.Parallel()
	blind := history.Op{Object: rows.Unversioned, Write: true, Amount: 1}
	for name, in := range map[string]rows.Input{
		"a write without a version":      input(committed(1, blind), committed(2, read(x, 1, 1))),
		"a version of an unknown try":    input(committed(1, write(x, 1), blind), committed(2, read(x, 2, 1))),
		"a lost result":                  input(tx(1, history.Unknown, blind), committed(2, read(x, 0, 0), write(x, 2))),
		"a missing version":              input(committed(1, write(x, 1)), committed(2, write(x, 3))),
		"an unknown outcome, not needed": input(tx(1, history.Unknown, read(y, 0, 0), write(x, 1)), tx(2, history.Unknown, write(x, 1)), committed(3, write(x, 3))),
	} {
		if r := results(t, in)[check.Serializable]; r.Status != check.Unknown {
			t.Errorf("%s: %v: %s", name, r.Status, r.Detail)
		}
	}
	in := input(committed(1, read(x, 0, 0), write(x, 1)), committed(2, read(x, 0, 0), write(x, 1)))
	in.Vanishes, in.Restarts = func(uint64) bool { return true }, func(uint64) bool { return true }
	if r := results(t, in)[check.Serializable]; r.Status != check.Unknown {
		t.Errorf("a row that starts again: %v: %s", r.Status, r.Detail)
	}
	in = input(committed(1, write(x, 1)))
	in.History[0].(*checktest.History).Incomplete = true
	if r := results(t, in)[check.Serializable]; r.Status != check.Unknown {
		t.Errorf("a recording that was cut off: %v: %s", r.Status, r.Detail)
	}
	in = input(tx(1, history.Unknown, read(x, 0, 0), write(x, 1)), committed(2, read(x, 0, 0), write(x, 2)))
	if r := results(t, in)[check.Serializable]; r.Status != check.Invalid {
		t.Errorf("a transaction that must have been applied: %v: %s", r.Status, r.Detail)
	}
	in = input(tx(1, history.Unknown, read(x, 0, 0), write(x, 1)), committed(2, read(x, 0, 0)))
	if r := results(t, in)[check.Serializable]; r.Status != check.Valid {
		t.Errorf("a transaction that nobody saw: %v: %s", r.Status, r.Detail)
	}
	in = input(committed(1, write(x, 1), history.Op{Object: rows.OtherReads, Amount: 3}))
	if r := results(t, in)[check.Serializable]; r.Status != check.Valid || !strings.Contains(r.Detail, "0 reads (0 %) and all 1 write") {
		t.Errorf("%v: %s", r.Status, r.Detail)
	}
}

// TestRowsThatAreInsertedAgain checks rows that may be deleted, and whose versions may start again.
func TestRowsThatAreInsertedAgain(t *testing.T) {
	t.Parallel()
	insert := write(x, 1)
	insert.State = history.Absent
	for name, tc := range map[string]struct {
		want check.Status
		txns []history.Transaction
	}{
		"once":            {check.Valid, []history.Transaction{committed(1, insert), committed(2, read(x, 1, 1), write(x, 2)), committed(3, read(x, 2, 2))}},
		"twice":           {check.Unknown, []history.Transaction{committed(1, insert), committed(2, insert)}},
		"after an update": {check.Unknown, []history.Transaction{committed(1, write(x, 1)), committed(2, insert)}},
		"after a version": {check.Unknown, []history.Transaction{committed(1, write(x, 6)), committed(2, insert)}},
		"after a read":    {check.Unknown, []history.Transaction{committed(1, read(x, 0, 0)), committed(2, insert), committed(3, read(x, 1, 2))}},
		"with a lost update": {check.Invalid, []history.Transaction{
			committed(1, insert), committed(2, read(x, 1, 1), write(x, 2)), committed(3, read(x, 1, 1), write(x, 3)),
		}},
	} {
		in := input(tc.txns...)
		in.Vanishes, in.Restarts = func(uint64) bool { return true }, func(uint64) bool { return false }
		if r := results(t, in)[check.Serializable]; r.Status != tc.want {
			t.Errorf("%s: %v: %s", name, r.Status, r.Detail)
		}
	}
}

// TestEndStateShowsLostWrites checks the end state of tracked rows.
func TestEndStateShowsLostWrites(t *testing.T) {
	t.Parallel()
	ends := func(list ...history.Object) *checktest.End { return &checktest.End{ObjectRows: list} }
	row := func(n, version, writer uint64) history.Object {
		return history.Object{N: n, Version: version, Writer: id(writer)}
	}
	txns := []history.Transaction{committed(1, write(x, 1)), committed(2, write(x, 2)), tx(3, history.Aborted)}
	for name, tc := range map[string]struct {
		end     *checktest.End
		durable check.Status
		ghost   check.Status
		says    string
	}{
		"whole":         {ends(row(x, 2, 2)), check.Valid, check.Valid, "1 tracked row was compared"},
		"lost":          {ends(row(x, 1, 1)), check.Invalid, check.Valid, "made version 2 of accounts 0 and was acknowledged, and the row ends at version 1"},
		"gone":          {ends(), check.Invalid, check.Valid, "the row ends at version 0"},
		"of an abort":   {ends(row(x, 3, 3)), check.Valid, check.Invalid, "which was aborted"},
		"never sent":    {ends(row(x, 3, 9)), check.Valid, check.Invalid, "which no client sent"},
		"twice there":   {ends(row(x, 2, 2), row(x, 1, 1)), check.Unknown, check.Unknown, "is there twice"},
		"of two makers": {ends(row(x, 2, 1)), check.Valid, check.Valid, "both made version 2"},
	} {
		in := input(txns...)
		in.End = tc.end
		got := results(t, in)
		text := got[check.Durable].Detail + got[check.NoGhost].Detail + got[check.Serializable].Detail
		if got[check.Durable].Status != tc.durable || got[check.NoGhost].Status != tc.ghost || !strings.Contains(text, tc.says) {
			t.Errorf("%s: durable is %v, no-ghost %v: %s", name, got[check.Durable].Status, got[check.NoGhost].Status, text)
		}
	}
	in := input(txns...)
	in.End, in.Vanishes, in.Restarts = ends(), func(uint64) bool { return true }, func(uint64) bool { return false }
	if r := results(t, in)[check.Durable]; r.Status != check.Valid {
		t.Errorf("a row that may be deleted: %v: %s", r.Status, r.Detail)
	}
}

// TestOracle compares the answer with a search through all orders of a few random transactions.
func TestOracle(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	found := [2]int{}
	for range 3000 {
		txns := randomTransactions(random)
		got := results(t, input(txns...))[check.Serializable]
		want := serial(txns, map[uint64]history.Object{}, 0)
		if (got.Status == check.Valid) != want || got.Status == check.Unknown {
			t.Fatalf("%v, and an order exists: %t: %s\n%+v", got.Status, want, got.Detail, txns)
		}
		if want {
			found[1]++
		} else {
			found[0]++
		}
	}
	if min(found[0], found[1]) < 300 {
		t.Errorf("%d histories have no order and %d have one", found[0], found[1])
	}
}

// randomTransactions returns transactions on two rows whose writes are in order. Each read sees a random version.
func randomTransactions(random *rand.Rand) (txns []history.Transaction) {
	versions := map[uint64][]uint64{x: {0}, y: {0}} // the makers
	for n := range 2 + random.Uint64N(4) {
		t := committed(n + 1)
		for _, row := range []uint64{x, y} {
			if random.IntN(2) == 0 {
				versions[row] = append(versions[row], n+1)
			}
		}
		txns = append(txns, t)
	}
	for i := range txns {
		n := uint64(i + 1)
		for _, row := range []uint64{x, y} {
			version := random.Uint64N(uint64(len(versions[row])))
			if maker := versions[row][version]; maker != n && random.IntN(3) > 0 {
				txns[i].Ops = append(txns[i].Ops, read(row, version, maker))
			}
		}
		for _, row := range []uint64{x, y} {
			for version, maker := range versions[row] {
				if maker == n {
					txns[i].Ops = append(txns[i].Ops, write(row, uint64(version)))
				}
			}
		}
	}
	return txns
}

// serial reports whether an order of the transactions that are not in done explains all of them.
func serial(txns []history.Transaction, state map[uint64]history.Object, done uint) bool {
	if done == 1<<len(txns)-1 {
		return true
	}
	for i := range txns {
		if done>>i&1 == 1 {
			continue
		}
		next, fits := map[uint64]history.Object{x: state[x], y: state[y]}, true
		for _, op := range txns[i].Ops {
			row := next[op.Object]
			fits = fits && row.Version == op.Version && (op.Write || row.Writer == op.Writer)
			if op.Write {
				next[op.Object] = history.Object{Version: row.Version + 1, Writer: txns[i].ID}
			}
		}
		if fits && serial(txns, next, done|1<<i) {
			return true
		}
	}
	return false
}

package kv

import (
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/stats"
)

// TestTablesCountCommittedTransactions checks the measurements of a recording made by hand. The warm-up and aborted
// transactions do not count.
func TestTablesCountCommittedTransactions(t *testing.T) {
	dir := t.TempDir()
	w, err := history.Create(filepath.Join(dir, "history"), history.Header{Workload: Name, Run: 1, Seed: 7, Keys: factsOf(shape{20, 64, 64})}, 1)
	if err != nil {
		t.Fatal(err)
	}
	const ms = 1_000_000
	log, id := w.Client(0), history.NewID(1, 0, 0)
	add := func(kind history.Kind, outcome history.Outcome, due, end int64, warmup bool, ops ...history.Op) {
		id++
		tx := history.Transaction{
			ID: id, Kind: kind, Outcome: outcome, Warmup: warmup, Attempts: 1,
			Due: due * ms, Sent: due * ms, Try: due * ms, End: end * ms, Ops: ops,
		}
		if err := log.Append(&tx); err != nil {
			t.Fatal(err)
		}
	}
	whole := history.Op{Object: 1, Observed: true, State: history.Whole, Value: 980_000 - 20}
	add(get, history.Committed, 0, 900, true, whole)
	add(get, history.Committed, 1000, 1010, false, whole)
	add(get, history.Committed, 1100, 1130, false, whole)
	add(get, history.Committed, 1200, 1220, false, history.Op{Object: 1, Observed: true, State: history.Absent})
	add(put, history.Aborted, 1300, 9000, false, history.Op{Object: 1, Write: true, Amount: 64})
	add(put, history.Committed, 1400, 3000, false, history.Op{Object: 1, Write: true, Amount: 1_000_000 - 20})
	if err := log.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	recorded, err := history.Open(filepath.Join(dir, "history"))
	if err != nil {
		t.Fatal(err)
	}
	defer recorded.Close()
	list, err := tables(t.Context(), recorded)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	want := [][]string{
		{"read", "3", "1.5", "20.0", "20.0", "30.0", "30.0", "1", "0.98", "0"},
		{"update", "1", "0.5", "1,600", "1,600", "1,600", "1,600", "0", "0", "0.5"},
	}
	if !slices.EqualFunc(list[0].Rows, want, slices.Equal) {
		t.Errorf("the rows are\n%q, not\n%q", list[0].Rows, want)
	}
	checked, err := Spec().Check(t.Context(), []string{dir}, isolation.StrictSerializable, nil)
	if err != nil || !reflect.DeepEqual(checked.Tables, list) {
		t.Errorf("the checks measure\n%v, %v, not\n%v", checked.Tables, err, list)
	}
	several := measure(recorded.Header()) // by workers that take turns
	workers, turn := several.Workers(3), 0
	for rec, err := range recorded.Transactions() {
		if err != nil {
			t.Fatal(err)
		}
		workers[turn%3](rec.Transaction)
		turn++
	}
	if got := several.tables(); !reflect.DeepEqual(got, list) {
		t.Errorf("several workers measure\n%v, not\n%v", got, list)
	}
}

// TestQuantilesEqualTheReports checks that a quantile equals the report's quantile of the same transactions.
func TestQuantilesEqualTheReports(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for _, n := range []int{1, 2, 7, 100, 571, 5429} {
		parts, all := [2]ofKind{}, stats.Breakdown{}
		for i := range n {
			due := random.Int64N(int64(3 * time.Second))
			tx := history.Transaction{Kind: get, Outcome: history.Committed, Due: due, End: due + int64(1000*random.ExpFloat64()*random.ExpFloat64()*1000)}
			parts[i%2].add(&tx, 20)
			all.Add(&tx)
		}
		k := parts[0]
		k.join(&parts[1])
		want := all.Measured(get)
		for q, d := range map[float64]time.Duration{0.50: want.P50, 0.95: want.P95, 0.99: want.P99} {
			if got := time.Duration(k.quantile(q)); got != d {
				t.Errorf("of %d the quantile %v is %v here and %v there", n, q, got, d)
			}
		}
		if mean := time.Duration(k.sum / int64(n)); (mean - want.Mean).Abs() > 1 {
			t.Errorf("of %d the mean is %v here and %v there", n, mean, want.Mean)
		}
	}
}

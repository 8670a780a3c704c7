package stats

import (
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestLiveEqualsNaiveDistribution(t *testing.T) {
	if n := twoDigits.size(); (n+pageSize-1)/pageSize != livePages {
		t.Fatalf("%d buckets do not fill %d pages", n, livePages)
	}
	r := newRandom(20)
	for range 30 {
		all := make([]Live, 1+r.IntN(4))
		var values []int64
		var first Reading
		for range 2 { // what came before a reading, and after
			values = values[:0]
			first = Reading{}
			for i := range all {
				first.Read(&all[i])
			}
			for range r.IntN(2000) {
				v := randomNS(r)
				all[r.IntN(len(all))].Add(v)
				values = append(values, min(max(v, 0), highest))
			}
		}
		var second Reading
		for i := range all {
			second.Read(&all[i])
		}
		since := second.Since(&first)
		if since.Count() != uint64(len(values)) || second.Count() != first.Count()+since.Count() {
			t.Fatalf("%d since, want %d", since.Count(), len(values))
		}
		if len(values) == 0 {
			continue
		}
		slices.Sort(values)
		for _, q := range []float64{0.5, 0.99, 1} {
			exact := values[max(int(rank(q, uint64(len(values)))), 1)-1]
			if over := int64(since.Quantile(q)) - exact; over < 0 || float64(over) > max(512, float64(exact)/100) {
				t.Errorf("the share %v of %d lies at %v, want %v", q, len(values), since.Quantile(q), time.Duration(exact))
			}
		}
		checkBuckets(t, since.Buckets(), values)
	}
	var nothing Reading
	if nothing.Count() != 0 || nothing.Quantile(0.5) != 0 || nothing.Buckets() != nil || nothing.Since(&nothing).Count() != 0 {
		t.Error("a distribution of nothing has something")
	}
}

// checkBuckets checks that the buckets match the sorted values and have two digits.
func checkBuckets(t *testing.T, got []Bucket, values []int64) {
	t.Helper()
	at := 0
	last := time.Duration(0)
	for _, b := range got {
		from := at
		for at < len(values) && values[at] < int64(b.Upper) {
			at++
		}
		if uint64(at-from) != b.Count || b.Count == 0 || b.Upper <= last {
			t.Fatalf("%d values up to %v, of which %d counted", at-from, b.Upper, b.Count)
		}
		if from < at {
			if width := int64(b.Upper) - values[from]; float64(width) > max(512, float64(b.Upper)/100) {
				t.Fatalf("%v lies in the bucket up to %v", time.Duration(values[from]), b.Upper)
			}
		}
		last = b.Upper
	}
	if at != len(values) {
		t.Fatalf("%d of %d values are in buckets", at, len(values))
	}
}

func TestLiveIsReadWhileItGoesOn(t *testing.T) {
	var l Live
	var group sync.WaitGroup
	group.Go(func() {
		for i := range int64(20_000) {
			l.Add(i % 977 * 1_000_000)
		}
	})
	last := uint64(0)
	for last < 20_000 {
		var r Reading
		r.Read(&l)
		if n := r.Count(); n < last {
			t.Fatalf("%d after %d", n, last)
		} else {
			last = n
		}
	}
	group.Wait()
}

func TestLiveAllocatesNothing(t *testing.T) {
	r := newRandom(21)
	values := make([]int64, 1000)
	for i := range values {
		values[i] = randomNS(r)
	}
	var l Live
	round := func() {
		for _, v := range values {
			l.Add(v)
		}
	}
	round()
	if got := testing.AllocsPerRun(100, round); got > 0 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkLive(b *testing.B) {
	r := newRandom(22)
	values := make([]int64, 4096)
	for i := range values {
		values[i] = int64(1e6 * r.ExpFloat64())
	}
	var l Live
	for i := 0; b.Loop(); i++ {
		l.Add(values[i%len(values)])
	}
}

func TestSummaryBuckets(t *testing.T) {
	r := newRandom(23)
	for range 20 {
		rec := new(Recorder)
		var values []int64
		for range r.IntN(3000) {
			tx := randomTransaction(r)
			tx.Warmup, tx.Outcome = false, 1
			rec.Record(&tx)
			values = append(values, min(max(tx.End-tx.Due, 0), highest))
		}
		slices.Sort(values)
		f := Merge(rec)
		checkBuckets(t, f.Latency.Buckets(), values)
		if f.Pacing.Buckets() != nil || !reflect.DeepEqual((&Summary{}).Buckets(), []Bucket(nil)) {
			t.Error("nothing has buckets")
		}
	}
}

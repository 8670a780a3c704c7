package logs

import (
	"iter"
	"math/rand/v2"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/history"
)

// ofWorker is one worker's part of a diary, with the bounds of its clock.
type ofWorker struct {
	*diary
	worker uint64
	error  int64
}

func (w ofWorker) Header() history.Header {
	return history.Header{Run: 1, Keys: map[string]string{check.KeyClock: check.Clock{ID: "boot", From: -w.error, To: w.error}.String()}}
}

func (w ofWorker) Transactions() iter.Seq2[history.Record, error] {
	return func(yield func(history.Record, error) bool) {
		for rec, err := range w.diary.Transactions() {
			if rec.ID.Client()%2 == w.worker && !yield(rec, err) {
				return
			}
		}
	}
}

// TestClockErrorsAgainstDefinition compares order with its definition when two workers have bounded clock errors. It
// must be valid exactly if it is valid for every pair of errors. It must be invalid exactly if two appends contradict
// each other for every pair of errors.
func TestClockErrorsAgainstDefinition(t *testing.T) {
	counts := map[check.Status]int{}
	for seed := range checktest.Rounds(2000, 20_000) {
		rng := rand.New(rand.NewPCG(seed, 9))
		d := appended(rng, 2+rng.IntN(4), 1, 1, 3+rng.IntN(10))
		for _, tx := range d.txns { // as if the order in the log contradicted real time
			if rng.IntN(5) == 0 {
				by := rng.Int64N(300) - 150
				tx.Try, tx.End = tx.Try+by, tx.End+by
			}
		}
		errors := [2]int64{rng.Int64N(12), rng.Int64N(12)}
		in := d.input()
		in.History = []check.Source{ofWorker{d, 0, errors[0]}, ofWorker{d, 1, errors[1]}}
		in.End = d
		results, err := Check(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		got := checktest.ByName(results)[Order]
		all, none := true, true
		for by := -errors[0] - errors[1]; by <= errors[0]+errors[1]; by++ { // relative error
			moved := *d
			moved.txns = nil
			for _, tx := range d.txns {
				own := *tx
				if own.ID.Client()%2 == 1 {
					own.Try, own.End = own.Try+by, own.End+by
				}
				moved.txns = append(moved.txns, &own)
			}
			wrong := oracle(&moved)[Order]
			all, none = all && !wrong, none && wrong
		}
		switch counts[got.Status]++; {
		case (got.Status == check.Valid) != all && got.Status != check.NotApplicable:
			t.Fatalf("seed %d, errors %v: order is %v, and right for every error: %v: %s", seed, errors, got.Status, all, said(got))
		case got.Status == check.Invalid && !none:
			t.Fatalf("seed %d, errors %v: order is invalid, and not for every error: %s", seed, errors, said(got))
		}
	}
	t.Logf("%v", counts)
	if counts[check.Valid] < 100 || counts[check.Invalid] < 100 || counts[check.Unknown] < 50 {
		t.Errorf("too few of one kind: %v", counts)
	}
}

package totals

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// worlds returns histories that exercise all parts of a check.
func worlds() map[string]*world {
	list := map[string]*world{"healthy": busy(3, 60, 2000)}
	w := newWorld(4 * 100)
	for i := range uint64(100) {
		skewPair(w, 4*i)
	}
	list["skewed"] = w
	list["weak"] = weak(rand.New(rand.NewPCG(4, 4)), 40, 1500)
	list["overwriting"] = overwriting(rand.New(rand.NewPCG(5, 5)), 30, 1500)
	w = busy(6, 60, 1500)
	stale := w.ObjectRows[0]
	w.transfer(0, 1, 1)
	tx := w.begin(kindInquiry)
	tx.Ops = append(tx.Ops, history.Op{Object: 0, Observed: true, Version: stale.Version, Value: stale.Value, Writer: stale.Writer})
	list["stale"] = w
	return list
}

// TestCancelledCheckReturnsOnlyTheCause checks that a cancelled check returns the cause and no result, and stops asking
// the context.
func TestCancelledCheckReturnsOnlyTheCause(t *testing.T) {
	for name, w := range worlds() {
		in := w.input(isolation.StrictSerializable)
		whole := &patient{Context: t.Context(), left: 1 << 30}
		results, err := Accounts(whole, in)
		if err != nil || len(results) != len(accountChecks) {
			t.Fatalf("%s: %v", name, err)
		}
		for n := 0; n < whole.asked; n += 1 + n/30 {
			p := &patient{Context: t.Context(), left: n}
			results, err := Accounts(p, in)
			if !errors.Is(err, context.Canceled) || results != nil {
				t.Fatalf("%s, ended when asked %d of %d times: %d results and %v", name, n, whole.asked, len(results), err)
			}
			if p.asked > n+2 { // once for the end, once for the cause
				t.Fatalf("%s, ended when asked %d of %d times: it was asked %d times", name, n, whole.asked, p.asked)
			}
		}
		if whole.asked < 20 && name != "healthy" { // which is proved in one pass
			t.Errorf("%s: the context was asked %d times only", name, whole.asked)
		}
	}
}

// TestContextIsAskedOften checks that at most a few thousand transactions are processed between two looks at the
// context.
func TestContextIsAskedOften(t *testing.T) {
	w := busy(8, 60, 60_000)
	read, before, most, after := 0, 0, 0, 0
	p := &patient{Context: t.Context(), left: 1 << 30}
	p.note = func() {
		most = max(most, read-before)
		if after++; read > before {
			after = 0
		}
		before = read
	}
	in := w.input(isolation.StrictSerializable)
	in.History = []check.Source{stopping{&w.History, func() { read++ }}}
	if _, err := Accounts(p, in); err != nil {
		t.Fatal(err)
	}
	if read < 2*len(w.Txns) || most > check.WatchEvery {
		t.Errorf("of %d transactions %d were read, at most %d without asking", len(w.Txns), read, most)
	}
	if after < len(w.Txns)/check.WatchEvery {
		t.Errorf("after the last transaction was read the context was asked %d times", after)
	}
}

var errStopped = errors.New("stopped by a person")

// TestCauseIsReported covers a context that ended before the check, and one that ends during it.
func TestCauseIsReported(t *testing.T) {
	w := busy(9, 100, 10_000)
	ctx, cancel := context.WithCancelCause(t.Context())
	read := 0
	in := w.input(isolation.StrictSerializable)
	in.History = []check.Source{stopping{&w.History, func() {
		if read++; read == 12_000 { // in the second pass
			cancel(errStopped)
		}
	}}}
	if results, err := Accounts(ctx, in); !errors.Is(err, errStopped) || results != nil {
		t.Errorf("midway: %v", err)
	}
	if read > 12_000+check.WatchEvery {
		t.Errorf("%d transactions were read, and the context ended at 12,000", read)
	}
	read = 0
	if results, err := Accounts(ctx, in); !errors.Is(err, errStopped) || results != nil {
		t.Errorf("before: %v", err)
	}
	if read > check.WatchEvery {
		t.Errorf("%d transactions were read after the end", read)
	}
}

// stopping reports each transaction that is read.
type stopping struct {
	check.Source
	each func()
}

func (s stopping) Transactions() iter.Seq2[history.Record, error] {
	return func(yield func(history.Record, error) bool) {
		for r, err := range s.Source.Transactions() {
			s.each()
			if !yield(r, err) {
				return
			}
		}
	}
}

// patient is a context that ends after a number of looks.
type patient struct {
	context.Context
	left, asked int
	note        func()
}

func (p *patient) Err() error {
	p.asked++
	if p.note != nil {
		p.note()
	}
	if p.left == 0 {
		return context.Canceled
	}
	p.left--
	return nil
}

package bank

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
)

// standInKV is a key-value session that finds the same value at each account
// and nothing anywhere else, and fails as it is reported.
type standInKV struct {
	value    []byte
	ledger   db.Entry
	missing  bool
	commit   error
	sets     map[string][]byte // nil: not kept
	rollback int
}

func (s *standInKV) Begin(context.Context, bool) error { return nil }
func (s *standInKV) Read(_ context.Context, keys [][]byte, out []db.Entry) error {
	for i, key := range keys {
		out[i] = db.Entry{}
		if key[len("stroppy/")] == 'a' && !s.missing {
			out[i] = db.Entry{Value: s.value, Found: true}
		} else if key[len("stroppy/")] == 'l' {
			out[i] = s.ledger
		}
	}
	return nil
}

func (s *standInKV) Set(key, value []byte) {
	if s.sets != nil {
		s.sets[string(key)] = bytes.Clone(value)
	}
}
func (s *standInKV) Delete([]byte)                {}
func (s *standInKV) Commit(context.Context) error { return s.commit }
func (s *standInKV) Rollback()                    { s.rollback++ }
func (s *standInKV) Scan(context.Context, []byte, []byte, func(key, value []byte) error) error {
	return nil
}
func (s *standInKV) Reset(context.Context) error { return nil }
func (s *standInKV) Close() error                { return nil }

func rich() []byte { return workload.State{Balance: 1 << 40, Version: 5, Last: 77}.Append(nil) }

func newKVClient(h *chooser, s db.KVSession, guarded bool) *workload.KVClient {
	h.guarded = guarded
	return workload.NewKVClient(s, h, rules, ledgerPrefix)
}

// legOf is a leg as it stands in a ledger's value.
func legOf(dst []byte, key uint64, amount, version int64) []byte {
	return appendLeg(dst, appendAccountKey(nil, key), amount, version)
}

func transferTx(id history.ID, payer, payee uint64, amount int64) *history.Transaction {
	return &history.Transaction{ID: id, Kind: transfer, Ops: []history.Op{leg(payer, -amount), leg(payee, amount)}}
}

func TestKVTransferWritesAccountsAndLedger(t *testing.T) {
	c := testConfig()
	s := &standInKV{value: rich(), sets: map[string][]byte{}}
	chooser := testChooser(c, 0)
	client := newKVClient(chooser, s, false)
	tx := transferTx(history.NewID(1, 2, 3), 10, 20, 500)
	if err := client.Attempt(t.Context(), tx); err != nil || tx.Outcome != history.Committed {
		t.Fatalf("%v, %v", tx.Outcome, err)
	}
	for i, op := range tx.Ops {
		if !op.Observed || op.Version != 5 || op.Value != 1<<40 || op.Writer != 77 {
			t.Errorf("operation %d is %+v", i, op)
		}
		key := appendAccountKey(nil, chooser.formula.key(op.Object))
		a, ok := workload.ParseState(s.sets[string(key)])
		if want := (workload.State{Balance: 1<<40 + op.Amount, Version: 6, Last: int64(tx.ID)}); !ok || a != want {
			t.Errorf("%s holds %+v, want %+v", key, a, want)
		}
	}
	entry := s.sets["stroppy/ledger/0002000200000003"]
	if n, ok := legCount(entry); !ok || n != 2 {
		t.Fatalf("the ledger's entry has %d legs: %x, keys %v", n, entry, len(s.sets))
	}
	for i, op := range tx.Ops {
		key, amount, version, ok := legAt(entry, i)
		if !ok || chooser.formula.number(key) != op.Object || amount != op.Amount || version != 6 {
			t.Errorf("leg %d is %d %d %d, %v", i, chooser.formula.number(key), amount, version, ok)
		}
	}
}

func TestKVOutcomes(t *testing.T) {
	kind := func(k db.ConstraintKind) error {
		return &db.Error{Class: db.Constraint, Constraint: k, Err: errors.New("refused")}
	}
	class := func(c db.Class) error { return &db.Error{Class: c, Err: errors.New("failed")} }
	poor := workload.State{Balance: 499}.Append(nil)
	for _, test := range []struct {
		name     string
		session  standInKV
		guarded  bool
		err      error // its class counts
		already  bool
		outcome  history.Outcome
		reason   history.Reason
		observed bool
	}{
		{name: "committed", session: standInKV{value: rich()}, outcome: history.Committed, observed: true},
		{name: "poor", session: standInKV{value: poor}, outcome: history.Rejected, reason: insufficientFunds, observed: true},
		{name: "poor and guarded", session: standInKV{value: poor, commit: kind(db.CheckFailed)}, guarded: true,
			outcome: history.Rejected, reason: insufficientFunds},
		{name: "poor and the guard fails", session: standInKV{value: poor}, guarded: true, outcome: history.Committed, observed: true},
		{name: "no account", session: standInKV{missing: true}, outcome: history.Rejected, reason: noSuchAccount},
		{name: "conflict", session: standInKV{value: rich(), commit: class(db.Aborted)}, err: class(db.Aborted)},
		{name: "unavailable", session: standInKV{value: rich(), commit: class(db.Unavailable)}, err: class(db.Unavailable)},
		{name: "unknown", session: standInKV{value: rich(), commit: class(db.Unknown)}, err: class(db.Unknown), observed: true},
		{name: "applied", session: standInKV{value: rich(), ledger: db.Entry{Found: true, Value: []byte("L…")}}, already: true},
		{name: "closed", session: standInKV{value: rich(), ledger: db.Entry{Found: true, Value: []byte{workload.Tombstone}}}, err: class(db.Aborted)},
		{name: "damaged", session: standInKV{value: []byte("?")}, err: class(db.Fatal)},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := newKVClient(testChooser(testConfig(), 0), &test.session, test.guarded)
			tx := transferTx(1, 10, 20, 500)
			err := client.Attempt(t.Context(), tx)
			switch {
			case test.already:
				if !errors.Is(err, load.ErrAlreadyApplied) {
					t.Errorf("the error is %v", err)
				}
			case (err == nil) != (test.err == nil) || err != nil && db.ClassOf(err) != db.ClassOf(test.err):
				t.Errorf("the error is %v", err)
			}
			if tx.Outcome != test.outcome || tx.Reason != test.reason || tx.Ops[0].Observed != test.observed {
				t.Errorf("%v, %v, observed %v", tx.Outcome, tx.Reason, tx.Ops[0].Observed)
			}
		})
	}
}

func TestKVSettle(t *testing.T) {
	for _, test := range []struct {
		ledger  db.Entry
		outcome history.Outcome
		sets    int
	}{
		{db.Entry{}, history.Aborted, 1},
		{db.Entry{Found: true, Value: []byte{workload.Tombstone}}, history.Aborted, 0},
		{db.Entry{Found: true, Value: legOf([]byte{ledgerLegs}, 1, 2, 3)}, history.Committed, 0},
	} {
		s := &standInKV{ledger: test.ledger, sets: map[string][]byte{}}
		client := newKVClient(testChooser(testConfig(), 0), s, false)
		tx := transferTx(1, 10, 20, 500)
		if err := client.ResolveUnknown(t.Context(), tx); err != nil || tx.Outcome != test.outcome || len(s.sets) != test.sets {
			t.Errorf("%+v: %v, %v, %d writes", test.ledger, tx.Outcome, err, len(s.sets))
		}
		for _, value := range s.sets {
			if !workload.IsTombstone(value) {
				t.Errorf("the tombstone is %q", value)
			}
		}
	}
}

func TestKVAttemptAllocatesNothing(t *testing.T) {
	client := newKVClient(testChooser(testConfig(), 0), &standInKV{value: rich()}, true)
	var tx history.Transaction
	try := func() {
		client.Next(&tx)
		if err := client.Attempt(t.Context(), &tx); err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 { // the buffers grow to the longest transaction
		try()
	}
	if n := testing.AllocsPerRun(1000, try); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzKVCodec(f *testing.F) {
	f.Add([]byte("BDFGXX2Z/00000000001"), rich())
	f.Add([]byte("0002000200000003"), legOf([]byte{ledgerLegs}, 1, -2, 3))
	f.Add([]byte(""), []byte{workload.Tombstone})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		if n, ok := accountOf(key); ok {
			if full := appendAccountKey(nil, n); string(full[len(accountPrefix):]) != string(key) {
				t.Errorf("%q reads as %d, which is written as %q", key, n, full)
			}
		}
		if id, ok := workload.ParseID(key); ok {
			full := append([]byte(ledgerPrefix), make([]byte, 16)...)
			if workload.PutID(full[len(ledgerPrefix):], id); string(full[len(ledgerPrefix):]) != string(key) {
				t.Errorf("%q reads as %v, which is written as %q", key, id, full)
			}
		}
		if s, ok := workload.ParseState(value); ok && !bytes.Equal(s.Append(nil), value) {
			t.Errorf("%x does not survive", value)
		}
		n, ok := legCount(value)
		if !ok || workload.IsTombstone(value) {
			return
		}
		again := []byte{ledgerLegs}
		for i := range n {
			key, amount, version, ok := legAt(value, i)
			if !ok {
				return
			}
			again = legOf(again, key, amount, version)
		}
		if !bytes.Equal(again, value) {
			t.Errorf("%x does not survive", value)
		}
	})
}

func BenchmarkKVTransaction(b *testing.B) {
	c := DefaultConfig()
	c.Accounts, c.Seed = 50_000_000, 1
	client := newKVClient(testChooser(c, 0), &standInKV{value: rich()}, true)
	var tx history.Transaction
	b.ReportAllocs()
	for b.Loop() {
		client.Next(&tx)
		if err := client.Attempt(b.Context(), &tx); err != nil {
			b.Fatal(err)
		}
	}
}

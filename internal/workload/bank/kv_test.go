package bank

import (
	"bytes"
	"context"
	"encoding/binary"
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
		if bytes.HasPrefix(key, []byte("stroppy_account/")) && !s.missing {
			out[i] = db.Entry{Value: s.value, Found: true}
		} else if bytes.HasPrefix(key, []byte("stroppy_ledger/")) {
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

func rich() []byte { return stateValue(1<<40, 5, 77) }

// stateValue is the value of an account's key.
func stateValue(numbers ...int64) (value []byte) {
	for _, n := range numbers {
		value = binary.BigEndian.AppendUint64(value, uint64(n))
	}
	return value
}

// standInStore is a store with one session.
type standInStore struct {
	db.KV
	session db.KVSession
}

func (d standInStore) KVSession(context.Context, db.SessionOptions) (db.KVSession, error) {
	return d.session, nil
}

// standInRecords are the collections of the clients of a stand-in.
var standInRecords = workload.NewStateRecords(tableAccount, tableLedger, db.Decimal, true)

// guardedStore is a store that enforces constraints.
type guardedStore struct{ standInStore }

func (guardedStore) Constrain([]db.Keyspace) error { return nil }

func newKVClient(t testing.TB, h *chooser, s db.KVSession, guarded bool) *workload.RecordClient {
	t.Helper()
	h.guarded = guarded
	store := db.Database(standInStore{session: s})
	if guarded {
		store = guardedStore{standInStore{session: s}}
	}
	records, _ := db.RecordsOf(store)
	if err := records.(db.Declarer).Declare(standInRecords.Objects); err != nil {
		t.Fatal(err)
	}
	session, err := records.RecordSession(t.Context(), db.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return workload.NewRecordClient(session, h, standInRecords, rules, workload.RecordsWrite)
}

func transferTx(id history.ID, payer, payee uint64, amount int64) *history.Transaction {
	return &history.Transaction{ID: id, Kind: transfer, Ops: []history.Op{leg(payer, -amount), leg(payee, amount)}}
}

func TestKVTransferWritesAccountsAndLedger(t *testing.T) {
	c := testConfig()
	s := &standInKV{value: rich(), sets: map[string][]byte{}}
	chooser := testChooser(c, 0)
	client := newKVClient(t, chooser, s, false)
	tx := transferTx(history.NewID(1, 2, 3), 10, 20, 500)
	if err := client.Attempt(t.Context(), tx); err != nil || tx.Outcome != history.Committed {
		t.Fatalf("%v, %v", tx.Outcome, err)
	}
	entry := []byte{0}
	for i, op := range tx.Ops {
		if !op.Observed || op.Version != 5 || op.Value != 1<<40 || op.Writer != 77 {
			t.Errorf("operation %d is %+v", i, op)
		}
		id := chooser.AppendID(nil, op.Object)
		if got, want := s.sets["stroppy_account/"+string(id)], stateValue(1<<40+op.Amount, 6, int64(tx.ID)); !bytes.Equal(got, want) {
			t.Errorf("%s holds %x, want %x", id, got, want)
		}
		entry = binary.AppendVarint(append(append(entry, byte(len(id))), id...), op.Amount)
		entry = binary.AppendVarint(entry, 6)
	}
	if got := s.sets["stroppy_ledger/0002000200000003"]; !bytes.Equal(got, entry) {
		t.Errorf("the ledger's entry is %x, want %x", got, entry)
	}
}

func TestKVErrorsBecomeTransactionOutcomes(t *testing.T) {
	kind := func(k db.ConstraintKind) error {
		return &db.Error{Class: db.Constraint, Constraint: k, Err: errors.New("refused")}
	}
	class := func(c db.Class) error { return &db.Error{Class: c, Err: errors.New("failed")} }
	poor := stateValue(499, 0, 0)
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
		{name: "closed", session: standInKV{value: rich(), ledger: db.Entry{Found: true, Value: []byte{0}}}, already: true},
		{name: "damaged", session: standInKV{value: []byte("?")}, err: class(db.Fatal)},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := newKVClient(t, testChooser(testConfig(), 0), &test.session, test.guarded)
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

func TestUnknownTransferIsResolvedFromLedger(t *testing.T) {
	for _, test := range []struct {
		ledger  db.Entry
		outcome history.Outcome
		sets    int
	}{
		{db.Entry{}, history.Aborted, 1},
		{db.Entry{Found: true, Value: []byte{0}}, history.Aborted, 0},
		{db.Entry{Found: true, Value: []byte{0, 1, 'x', 4, 6}}, history.Committed, 0},
	} {
		s := &standInKV{ledger: test.ledger, sets: map[string][]byte{}}
		client := newKVClient(t, testChooser(testConfig(), 0), s, false)
		tx := transferTx(1, 10, 20, 500)
		if err := client.ResolveUnknown(t.Context(), tx); err != nil || tx.Outcome != test.outcome || len(s.sets) != test.sets {
			t.Errorf("%+v: %v, %v, %d writes", test.ledger, tx.Outcome, err, len(s.sets))
		}
		for _, value := range s.sets {
			if !bytes.Equal(value, []byte{0}) {
				t.Errorf("the tombstone is %q", value)
			}
		}
	}
}

func TestKVAttemptAllocatesNothing(t *testing.T) {
	client := newKVClient(t, testChooser(testConfig(), 0), &standInKV{value: rich()}, true)
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

func FuzzAccountText(f *testing.F) {
	f.Add([]byte("BDFGXX2Z/00000000001"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if n, ok := accountOf(text); ok && !bytes.Equal(appendAccountText(nil, n), text) {
			t.Errorf("%q reads as %d, which is written as %q", text, n, appendAccountText(nil, n))
		}
	})
}

func BenchmarkKVTransaction(b *testing.B) {
	c := DefaultConfig()
	c.Accounts, c.Seed = 50_000_000, 1
	client := newKVClient(b, testChooser(c, 0), &standInKV{value: rich()}, true)
	var tx history.Transaction
	b.ReportAllocs()
	for b.Loop() {
		client.Next(&tx)
		if err := client.Attempt(b.Context(), &tx); err != nil {
			b.Fatal(err)
		}
	}
}

package bank

import (
	"bytes"
	"context"
	"encoding/binary"
	"strconv"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/totals"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/money"
	"stroppy/internal/workload"
)

// Prefixes of keys in the adapter over key-value stores.
const (
	accountPrefix = tableAccount + "/"
	ledgerPrefix  = tableLedger + "/"
)

// lateKV is a store whose accounts and ledger are scanned one after the other while abandoned transfers still commit.
// One commits after each of the first scans of the accounts.
type lateKV struct {
	standInKV
	database
	late     int // transfers still to come
	formula  formula
	accounts [8]workload.State
	ledger   map[history.ID][]byte
	scans    int
	total    int64
	hidden   uint64 // an account whose version is reported wrong, for ever; 0 for none
}

// database is the part of db.KV that does not matter here.
type database struct{ db.Database }

func (database) Claim(string) (db.Claim, error) { return db.Claim{}, nil }

func (s *lateKV) Limits() db.Limits { return db.Limits{Writes: 1000} }
func (s *lateKV) KVSession(context.Context, db.SessionOptions) (db.KVSession, error) {
	return s.session(), nil
}

// session hides the database's Close.
func (s *lateKV) session() db.KVSession { return lateSession{&s.standInKV, s} }

type lateSession struct {
	*standInKV
	store *lateKV
}

func (l lateSession) Scan(_ context.Context, from, _ []byte, entry func(key, value []byte) error) error {
	s := l.store
	if string(from) == ledgerPrefix {
		for id, value := range s.ledger {
			key := append([]byte(ledgerPrefix), make([]byte, workload.IDLength)...)
			workload.PutID(key[len(ledgerPrefix):], id)
			if err := entry(key, value); err != nil {
				return err
			}
		}
		return nil
	}
	if facts := kind.Table + "/"; string(from) == facts {
		for _, fact := range [][2]string{
			{"schema", "2"}, {"load_id", "late"}, {"state", "loaded"}, {"seed", "7"}, {"run", "0"},
			{kind.Things, strconv.Itoa(len(s.accounts))}, {factTotal, money.Format(s.total)},
		} {
			if err := entry([]byte(facts+fact[0]), []byte(fact[1])); err != nil {
				return err
			}
		}
		return nil
	}
	s.scans++
	for n, a := range s.accounts {
		key := appendAccountText([]byte(accountPrefix), s.formula.key(uint64(n)))
		if s.hidden > 0 && uint64(n) == s.hidden {
			a.Version++
		}
		if err := entry(key, stateValue(a.Balance, a.Version, a.Last)); err != nil {
			return err
		}
	}
	if s.late > 0 {
		s.late--
		s.transfer(history.NewID(1, 0, uint64(s.late)+1))
	}
	return nil
}

// transfer moves a cent from account 0 to account 1.
func (s *lateKV) transfer(id history.ID) {
	value := []byte{0}
	for n, amount := range []int64{-1, 1} {
		a := &s.accounts[n]
		*a = workload.State{Balance: a.Balance + amount, Version: a.Version + 1, Last: int64(id)}
		id := appendAccountText(nil, s.formula.key(uint64(n)))
		value = binary.AppendVarint(append(append(value, byte(len(id))), id...), amount)
		value = binary.AppendVarint(value, a.Version)
	}
	s.ledger[id] = bytes.Clone(value)
}

// downloaded checks what is downloaded of the store.
func downloaded(t *testing.T, s *lateKV) (map[string]check.Result, error) {
	t.Helper()
	c := DefaultConfig()
	c.Clients, c.Accounts = 1, uint64(len(s.accounts))
	c.PayrollShare = 0
	s.formula, s.ledger = newFormula(7), map[history.ID][]byte{}
	var total int64
	for n := range s.accounts {
		s.accounts[n].Balance = s.formula.opening(uint64(n))
		total += s.accounts[n].Balance
	}
	b, err := New(s, c)
	if err != nil {
		t.Fatal(err)
	}
	s.total = total
	if _, err := b.AttachReadOnly(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	end, err := history.CreateEnd(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.EndState(t.Context(), end, nil); err != nil {
		_ = end.Abandon()
		return nil, err
	}
	if err := end.Close(); err != nil {
		t.Fatal(err)
	}
	state, err := history.OpenEnd(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	results := map[string]check.Result{}
	made, err := totals.Accounts(t.Context(), totals.AccountsInput{
		Input: check.Input{Expect: isolation.ReadCommitted, Name: s.formula.Name, End: state},
		Words: sentenceWords(), Accounts: b.Size(), Total: total, Opening: s.formula.opening,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range made {
		results[r.Name] = r
	}
	return results, nil
}

// TestLateCommitIsNoViolation checks that a transfer that commits while the end state is downloaded is not
// reported as a wrong ledger.
func TestLateCommitIsNoViolation(t *testing.T) {
	for _, late := range []int{0, 1, 3} {
		results, err := downloaded(t, &lateKV{late: late})
		if err != nil || results[check.Ledger].Status != check.Valid {
			t.Errorf("%d late commits: ledger is %v: %s (%v)", late, results[check.Ledger].Status, said(results[check.Ledger]), err)
		}
	}
	if _, err := downloaded(t, &lateKV{late: 1 << 20}); err == nil {
		t.Error("a bank that is changed all the time was downloaded")
	}
}

// TestPersistentLedgerMismatchIsInvalid checks that a ledger that stays wrong in a second download makes the
// verdict invalid.
func TestPersistentLedgerMismatchIsInvalid(t *testing.T) {
	s := &lateKV{hidden: 3}
	results, err := downloaded(t, s)
	if err != nil || results[check.Ledger].Status != check.Invalid || s.scans != 2 {
		t.Errorf("ledger is %v after %d scans: %s (%v)", results[check.Ledger].Status, s.scans, said(results[check.Ledger]), err)
	}
}

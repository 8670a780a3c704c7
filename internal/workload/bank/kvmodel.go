package bank

import (
	"cmp"
	"context"
	"fmt"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// kvModel is the bank on an ordered key-value store.
type kvModel struct {
	*dataset.KV
	config *Config
}

// newKVModel fills in what the configuration leaves to the data model.
func newKVModel(database db.KV, c *Config) (*kvModel, error) {
	if c.Update = cmp.Or(c.Update, RMW); c.Update != RMW {
		return nil, fmt.Errorf("update %s needs SQL: a key-value store reads, computes and writes, so take rmw", c.Update)
	}
	if c.Mode = cmp.Or(c.Mode, workload.Pipelined); c.Mode == workload.Procedure {
		return nil, fmt.Errorf("mode procedure needs SQL: take pipelined or interactive")
	}
	// A payroll writes its payer, its payees and its ledger entry.
	if most := database.Limits().Writes; c.PayrollShare > 0 && c.PayrollLegs+2 > most {
		return nil, fmt.Errorf("payroll-legs is %d, but a transaction of this database has at most %d writes: take at most %d", c.PayrollLegs, most, most-2)
	}
	store, err := dataset.NewKV(kind, database, dataset.Keys{
		Prefixes: []string{accountPrefix, ledgerPrefix}, Spaces: accountSpace(), Facts: facts, Put: putAccounts,
	})
	return &kvModel{store, c}, err
}

// putAccounts sets the keys of the accounts from ≤ n < to.
func putAccounts(s db.KVSession, m dataset.Metadata, from, to uint64) {
	f := newFormula(m.Seed)
	key := append(make([]byte, 0, accountKeyLength), accountPrefix...)[:accountKeyLength]
	value := make([]byte, 0, accountValue)
	for n := from; n < to; n++ {
		putAccountKey(key, f.key(n))
		value = appendAccount(value[:0], account{balance: f.opening(n)})
		s.Set(key, value)
	}
}

func (m *kvModel) prepare(context.Context) error { return nil }

func (m *kvModel) client(ctx context.Context, b *Bank, i int) (load.Client, error) {
	s, err := m.session(ctx)
	if err != nil {
		return nil, err
	}
	return newKVClient(b.chooser(i), s, m.Guarded), nil
}

func (m *kvModel) session(ctx context.Context) (db.KVSession, error) {
	return m.Database.KVSession(ctx, workload.SessionOptions(m.config.Isolation, m.config.Mode))
}

// readKeys is how many keys an audit gives to one Read.
func (m *kvModel) readKeys() int {
	l := m.Database.Limits()
	return cmp.Or(l.Reads, min(l.Writes, maxKeys))
}

func (m *kvModel) endState(ctx context.Context, b *Bank, end *history.EndWriter, progress func(done, total uint64)) error {
	e := endEntries{newEndRows(b, end, progress)}
	return m.With(ctx, func(s db.KVSession) error {
		if err := dataset.Scan(ctx, s, accountPrefix, e.account); err != nil {
			return fmt.Errorf("download the accounts: %w", err)
		}
		if err := dataset.Scan(ctx, s, ledgerPrefix, e.transfer); err != nil {
			return fmt.Errorf("download the ledger: %w", err)
		}
		return nil
	})
}

// endEntries turns entries into the end state.
type endEntries struct{ *endRows }

func (e *endEntries) account(key, value []byte) error {
	e.report.Row()
	number, known := accountOf(key)
	a, whole := parseAccount(value)
	if n := e.formula.number(number); known && whole && n < e.accounts {
		return e.end.Object(history.Object{
			N: n, Value: a.balance, Version: uint64(a.version), Writer: history.ID(a.last),
		})
	}
	return e.end.Unexpected(fmt.Sprintf("an account %q with a value of %d bytes, which the load did not make", key, len(value)))
}

func (e *endEntries) transfer(key, value []byte) error {
	e.report.Row()
	id, ok := workload.ParseID(key)
	if ok && workload.IsTombstone(value) {
		return e.end.Row(history.Row{Transaction: id, Mark: history.Tombstone})
	}
	legs, whole := legCount(value)
	if !ok || !whole {
		return e.end.Unexpected(fmt.Sprintf("a ledger entry %q with a value of %d bytes, which no transfer writes", key, len(value)))
	}
	for i := range legs {
		number, amount, version, ok := legAt(value, i)
		if !ok {
			if err := e.end.Unexpected(fmt.Sprintf("a leg of transfer %v on an account that no formula makes", id)); err != nil {
				return err
			}
			continue
		}
		err := e.end.Row(history.Row{
			Transaction: id, Number: uint32(i), Object: e.formula.number(number), Amount: amount, Version: uint64(version),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

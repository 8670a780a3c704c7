package bank

import (
	"context"
	"fmt"
	"slices"

	"stroppy/internal/db"
	"stroppy/internal/workload/dataset"
)

// Probe implements dataset.Tables.
func (m *sqlModel) Probe() (string, *db.Statement) { return tableAccount, m.texts.probe }

// Count implements dataset.Tables.
func (m *sqlModel) Count() *db.Statement { return m.texts.countRows }

// Fill clears away what an earlier bank has left, unless it goes on with it, and
// makes the accounts and an empty ledger.
func (m *sqlModel) Fill(ctx context.Context, n dataset.Note, progress func(done uint64)) error {
	f := newFormula(n.Seed)
	if bulk, ok := m.database.(db.BulkLoader); ok && n.Rows == 0 {
		return m.bulk(ctx, bulk, &f, n.Size, progress)
	}
	before := []string{m.texts.dropLedger, m.texts.dropAccount, m.texts.createAccount}
	if n.Rows > 0 {
		before = before[:1] // an interrupted load may have come as far as the ledger
	}
	if err := m.store.Each(ctx, before...); err != nil {
		return err
	}
	err := m.store.Batches(ctx, n, batchRows, progress, func(s db.SQLSession, from, to uint64) error {
		return m.batch(ctx, s, &f, from, to)
	})
	if err != nil {
		return err
	}
	return m.store.Each(ctx, m.texts.createLedger)
}

func (m *sqlModel) bulk(ctx context.Context, bulk db.BulkLoader, f *formula, accounts uint64, progress func(done uint64)) error {
	order, done := keyOrder{formula: f, accounts: accounts}, uint64(0)
	drawn := make(chan struct{})
	go func() { // while the database makes the tables
		defer close(drawn)
		order.window()
	}()
	defer func() { <-drawn }()
	var bic [bicLength]byte
	rows, err := bulk.BulkLoad(ctx, db.BulkLoad{
		Before:  []string{m.texts.dropLedger, m.texts.dropAccount, m.texts.createBare},
		Table:   tableAccount,
		Columns: []string{"bic", "ban", "balance"},
		Types:   []db.Type{db.Text, db.Integer, db.Decimal},
		Next: func(row []db.Value) bool {
			<-drawn
			n, key, ok := order.take()
			if !ok {
				return false
			}
			putBIC(&bic, key)
			row[0].Text, row[1].Int, row[2].Int = bic[:], int64(ban(key)), f.opening(n)
			if done++; done%progressRows == 0 {
				progress(done)
			}
			return true
		},
		After: append(slices.Clone(m.texts.completes), m.texts.createLedger),
	})
	if err != nil {
		return err
	}
	if uint64(rows) != accounts {
		return fmt.Errorf("the database took %d rows of %d", rows, accounts)
	}
	progress(accounts)
	return nil
}

// batchRows is how many accounts one transaction of a load without BulkLoader
// makes.
const batchRows = 100 * insertRows

// batch adds the statements that make the accounts from ≤ n < to.
func (m *sqlModel) batch(ctx context.Context, s db.SQLSession, f *formula, from, to uint64) error {
	args := make([]db.Value, 0, 3*insertRows)
	bics := make([][bicLength]byte, insertRows)
	for from < to {
		statement, rows := m.texts.insertMany, uint64(insertRows)
		if to-from < rows {
			statement, rows = m.texts.insert, 1
		}
		args = args[:0]
		for i := range rows {
			key := f.key(from + i)
			putBIC(&bics[i], key)
			args = append(args, db.Value{Text: bics[i][:]}, db.Value{Int: int64(ban(key))}, db.Value{Int: f.opening(from + i)})
		}
		if _, err := s.Do(ctx, statement, args); err != nil {
			return err
		}
		from += rows
	}
	return nil
}

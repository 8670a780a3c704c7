package bank

import (
	"context"
	"slices"

	"stroppy/internal/db"
	"stroppy/internal/workload/dataset"
)

// Fill implements dataset.Store. It clears away what an earlier bank has left, unless it
// is resumed, and makes the accounts and an empty ledger.
func (m *sqlModel) Fill(ctx context.Context, n dataset.Metadata, progress func(done uint64)) error {
	f := newFormula(n.Seed)
	if bulk, ok := m.Database.(db.BulkLoader); ok && n.Rows == 0 {
		return m.bulk(ctx, bulk, &f, n.Size, progress)
	}
	before := []string{dropLedger, dropAccount, m.texts.createAccount}
	if n.Rows > 0 {
		before = before[:1] // an interrupted load may have come as far as the ledger
	}
	if err := m.Each(ctx, before...); err != nil {
		return err
	}
	err := m.Batches(ctx, n, batchRows, progress, func(s db.SQLSession, from, to uint64) error {
		return m.texts.insert.Add(ctx, s, from, to, func(values []db.Value, n uint64) []db.Value {
			key := f.key(n)
			return append(values, db.Value{Text: appendBIC(nil, key)}, integer(int64(ban(key))), integer(f.opening(n)))
		})
	})
	if err != nil {
		return err
	}
	return m.Each(ctx, m.texts.createLedger)
}

const (
	dropLedger  = "DROP TABLE IF EXISTS " + tableLedger
	dropAccount = "DROP TABLE IF EXISTS " + tableAccount
)

// batchRows is how many accounts one transaction of a load without BulkLoader makes.
const batchRows = 100 * insertRows

func (m *sqlModel) bulk(ctx context.Context, bulk db.BulkLoader, f *formula, accounts uint64, progress func(done uint64)) error {
	order := keyOrder{formula: f, accounts: accounts}
	drawn := make(chan struct{})
	go func() { // while the database makes the tables
		defer close(drawn)
		order.sort()
	}()
	defer func() { <-drawn }()
	bic := make([]byte, 0, bicLength)
	return dataset.Bulk(ctx, bulk, db.BulkLoad{
		Before:  []string{dropLedger, dropAccount, m.texts.createBare},
		Table:   tableAccount,
		Columns: accountColumns(),
		Types:   accountTypes(),
		After:   append(slices.Clone(m.texts.completes), m.texts.createLedger),
	}, accounts, progress, func(_ uint64, row []db.Value) {
		<-drawn
		n, key, _ := order.take()
		row[0].Text, row[1].Int, row[2].Int = appendBIC(bic, key), int64(ban(key)), f.opening(n)
	})
}

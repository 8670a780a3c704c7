package bank

import (
	"context"
	"slices"

	"stroppy/internal/db"
	"stroppy/internal/workload/dataset"
)

// Fill implements dataset.Store. It clears away what an earlier bank has left and makes
// the accounts and an empty ledger.
func (m *sqlModel) Fill(ctx context.Context, n dataset.Metadata, progress func(done uint64)) error {
	f := newFormula(n.Seed)
	order := keyOrder{formula: &f, accounts: n.Size}
	drawn := make(chan struct{})
	go func() { // while the database makes the tables
		defer close(drawn)
		order.sort()
	}()
	defer func() { <-drawn }()
	bic := make([]byte, 0, bicLength)
	return m.Bulk(ctx, db.BulkLoad{
		Before:  []string{"DROP TABLE IF EXISTS " + tableLedger, "DROP TABLE IF EXISTS " + tableAccount, m.texts.createBare},
		Table:   tableAccount,
		Columns: []string{"bic", "ban", "balance"},
		Types:   []db.Type{db.Text, db.Integer, db.Decimal},
		After:   append(slices.Clone(m.texts.completes), m.texts.createLedger),
	}, n.Size, progress, func(_ uint64, row []db.Value) {
		<-drawn
		n, key, _ := order.take()
		row[0].Text, row[1].Int, row[2].Int = appendBIC(bic, key), int64(ban(key)), f.opening(n)
	})
}

package tpcb

import (
	"context"
	"slices"

	"stroppy/internal/db"
	"stroppy/internal/workload/dataset"
)

// Fill implements dataset.Store. It clears away what an earlier load has left and makes
// the rows and an empty history. Balances begin at zero, as with pgbench.
func (m *sqlModel) Fill(ctx context.Context, n dataset.Metadata, progress func(done uint64)) error {
	f, err := factsOf(n.Facts, n.Size)
	if err == nil {
		err = m.take(&f)
	}
	if err != nil {
		return err
	}
	t, from := m.texts, uint64(0)
	drops := append(t.drops(), "DROP TABLE IF EXISTS "+tableOpening)
	if m.replaced != nil {
		drops = append(drops, m.replaced.drops()...)
	}
	if err := m.Each(ctx, drops...); err != nil {
		return err
	}
	for k, count := range m.size {
		c := columns[k]
		load := db.BulkLoad{
			Before: []string{t.create(kind(k), m.size)}, Table: t.of[k].name, After: t.addKey(kind(k)),
			Columns: []string{c.id, c.balance, "filler"}, Types: []db.Type{db.Integer, db.Integer, db.Text},
		}
		if c.bid != "" {
			load.Columns, load.Types = append(load.Columns, "bid"), append(load.Types, db.Integer)
		}
		err := m.Bulk(ctx, load, count, func(done uint64) { progress(from + done) }, func(n uint64, row []db.Value) { m.row(row, from+n) })
		if err != nil {
			return err
		}
		from += count
	}
	return m.Each(ctx, t.createHistory(m.size))
}

// row fills in row n: id, balance, filler and, of tellers and accounts, the branch
// that they are of, as pgbench has them: the filler of an account is spaces, and
// there is none of the others.
func (m *sqlModel) row(row []db.Value, n uint64) {
	k, id := m.size.place(n)
	row[0].Int, row[1].Int = int64(id), 0
	switch k {
	case branch:
		row[2].Null = true
	case teller:
		row[2].Null = true
		row[3].Int = int64((id-1)/(m.size[teller]/m.scale()) + 1)
	case account:
		row[2].Text, row[2].Null = empty, false
		row[3].Int = int64((id-1)/(m.size[account]/m.scale()) + 1)
	}
}

// empty is text without a character, which is not NULL.
var empty = []byte{}

// scale is how many branches the tellers and the accounts are shared out to: as many
// as there are, or fewer where there are fewer of them than branches.
func (m *sqlModel) scale() uint64 { return slices.Min(m.size[:]) }

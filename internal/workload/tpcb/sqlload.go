package tpcb

import (
	"context"

	"stroppy/internal/db"
	"stroppy/internal/workload/dataset"
)

// Fill implements dataset.Store. It clears away what an earlier load has left, unless it goes on with it, and
// makes the rows and an empty history. Balances begin at zero, as with pgbench.
func (m *sqlModel) Fill(ctx context.Context, n dataset.Metadata, progress func(done uint64)) error {
	t, history := m.texts, m.texts.createHistory(m.size)
	var creates, keys []string
	for k := branch; k < noKind; k++ {
		creates, keys = append(creates, t.create(k, m.size)), append(keys, t.addKey(k)...)
	}
	if n.Rows == 0 {
		drops := append(t.drops(), "DROP TABLE IF EXISTS "+tableOpening)
		if m.replaced != nil {
			drops = append(drops, m.replaced.drops()...)
		}
		if err := m.Each(ctx, drops...); err != nil {
			return err
		}
		if bulk, ok := m.Database.(db.BulkLoader); ok {
			if err := m.bulk(ctx, bulk, creates, progress); err != nil {
				return err
			}
			return m.Each(ctx, history)
		}
		if err := m.Each(ctx, creates...); err != nil {
			return err
		}
	}
	err := m.Batches(ctx, n, batchRows, progress, func(s db.SQLSession, from, to uint64) error { return m.batch(ctx, s, from, to) })
	if err != nil {
		return err
	}
	// An interrupted load may have come as far as the history, and then the keys are
	// there too.
	if n.Rows == n.Size {
		keys = nil
	}
	return m.Each(ctx, append(keys, t.drops()[0], history)...)
}

// bulk loads each table with one bulk load.
func (m *sqlModel) bulk(ctx context.Context, bulk db.BulkLoader, creates []string, progress func(done uint64)) error {
	from := uint64(0)
	for k, count := range [noKind]uint64{m.size.branches, m.size.tellers, m.size.accounts} {
		c := columns[k]
		load := db.BulkLoad{
			Before: creates[k : k+1], Table: m.texts.of[k].name, After: m.texts.addKey(kind(k)),
			Columns: []string{c.id, c.balance, "filler"}, Types: []db.Type{db.Integer, db.Integer, db.Text},
		}
		if c.bid != "" {
			load.Columns, load.Types = append(load.Columns, "bid"), append(load.Types, db.Integer)
		}
		err := dataset.Bulk(ctx, bulk, load, count, func(done uint64) { progress(from + done) }, func(n uint64, row []db.Value) {
			m.row(row, from+n)
		})
		if err != nil {
			return err
		}
		from += count
	}
	return nil
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
		row[3].Int = int64((id-1)/(m.size.tellers/m.scale()) + 1)
	case account:
		row[2].Text, row[2].Null = empty, false
		row[3].Int = int64((id-1)/(m.size.accounts/m.scale()) + 1)
	}
}

// empty is text without a character, which is not NULL.
var empty = []byte{}

// scale is how many branches the tellers and the accounts are shared out to: as many
// as there are, or fewer where there are fewer of them than branches.
func (m *sqlModel) scale() uint64 { return min(m.size.branches, m.size.tellers, m.size.accounts) }

// batchRows is how many rows one transaction of a load without BulkLoader makes.
const batchRows = 10_000

// batch adds the statements that make the rows from ≤ n < to.
func (m *sqlModel) batch(ctx context.Context, s db.SQLSession, from, to uint64) error {
	var row [4]db.Value
	for n := from; n < to; n++ {
		m.row(row[:], n)
		k, _ := m.size.place(n)
		args := []db.Value{row[0], row[3], row[2]}
		if k == branch {
			args = []db.Value{row[0], row[2]}
		}
		if _, err := s.Do(ctx, m.texts.of[k].load, args); err != nil {
			return err
		}
	}
	return nil
}

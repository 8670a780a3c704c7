package tpcb

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

type sqlModel struct {
	*dataset.SQL
	config   *Config
	texts    *texts // of the form that is loaded, or was found
	replaced *texts // of another form, which a load is to clear away; nil: none
	size     size
}

// newSQLModel fills in what the configuration leaves to the data model.
func newSQLModel(database db.SQL, c *Config) (model, error) {
	c.Mode = cmp.Or(c.Mode, workload.Pipelined)
	m := &sqlModel{SQL: dataset.NewSQL(dataKind, database, ""), config: c}
	m.use(m.newTexts(c.Versions))
	if c.Mode == workload.Procedure {
		return m, m.UseProcedure(newProcedure(m.Dialect, c.History))
	}
	return m, nil
}

// newTexts makes the statements of one form. Each shows whether it has found its row, unless
// that would take a round trip of its own.
func (m *sqlModel) newTexts(versions bool) *texts {
	return newTexts(m.Dialect, versions, !m.Dialect.CountsApart || m.config.Mode == workload.Interactive)
}

// use chooses the statements of one form of the data.
func (m *sqlModel) use(t *texts) { m.texts, m.Table, m.Listings = t, t.of[account].name, t.listings() }

func (m *sqlModel) rule(f *facts, c dataset.Census) string { return threeTablesRule(f, c) }

func (m *sqlModel) replaces(was *facts) {
	if was.versions != m.texts.versions {
		m.replaced = m.newTexts(was.versions)
	}
}

// take chooses the statements of the form that was found.
func (m *sqlModel) take(f *facts) error {
	if f.versions != m.texts.versions {
		m.use(m.newTexts(f.versions))
	}
	m.size = f.size
	switch {
	case f.versions && m.config.Mode == workload.Procedure:
		return errVersionsProcedure
	case f.versions && !m.config.History:
		return errVersionsHistory
	}
	return nil
}

// Fill implements dataset.Store. It clears away what an earlier load has left and makes
// the rows and an empty history. Balances begin at zero, as with pgbench.
func (m *sqlModel) Fill(ctx context.Context, n dataset.Metadata, progress func(done uint64)) error {
	f, err := factsOf(n.Facts, n.Size)
	if err = cmp.Or(err, m.take(&f)); err != nil {
		return err
	}
	t, from := m.texts, uint64(0)
	m.Tables = append(t.tables(), tableOpening)
	if m.replaced != nil {
		m.Tables = append(m.Tables, m.replaced.tables()...)
	}
	if err := m.Each(ctx, m.Drops()...); err != nil {
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

// Remove implements dataset.Store. The tables of pgbench itself stay.
func (m *sqlModel) Remove(ctx context.Context, n dataset.Metadata) ([]string, error) {
	f, err := factsOf(n.Facts, n.Size)
	if err != nil {
		return nil, err
	}
	m.Tables = []string{tableOpening}
	if !f.adopted {
		m.Tables = append(m.newTexts(f.versions).tables(), tableOpening)
	}
	return m.SQL.Remove(ctx, n)
}

// row fills in row n: id, balance, filler and, of tellers and accounts, the branch
// that they are of, as pgbench has them: the filler of an account is spaces, and
// there is none of the others.
func (m *sqlModel) row(row []db.Value, n uint64) {
	k, id := m.size.place(n)
	row[0].Int, row[1].Int = int64(id), 0
	row[2].Text, row[2].Null = empty, k != account
	if k != branch {
		// They are shared out to as many branches as there are, or fewer where there
		// are fewer of them.
		row[3].Int = int64((id-1)/(m.size[k]/slices.Min(m.size[:])) + 1)
	}
}

// empty is text without a character, which is not NULL.
var empty = []byte{}

// Prepare implements dataset.Store. It makes the stored procedure, which may come from an older program. For the
// checks of later runs it marks a run that keeps no history.
func (m *sqlModel) Prepare(ctx context.Context, run uint64) error {
	if err := m.SQL.Prepare(ctx, run); err != nil || m.config.History {
		return err
	}
	if err := m.Database.Exec(ctx, m.texts.createOpening()); err != nil {
		return err
	}
	return m.Change(ctx, func(s db.SQLSession) error {
		_, err := s.Do(ctx, m.texts.bare, []db.Value{{Int: -int64(run)}})
		return err
	})
}

func (m *sqlModel) client(ctx context.Context, h *chooser) (load.Client, error) {
	s, err := m.Database.Session(ctx, m.config.SessionOptions())
	return &sqlClient{chooser: h, SQLSession: s, texts: m.texts, keeps: m.config.History, steps: m.config.Mode == workload.Interactive, call: m.Caller(s)}, err
}

// endState reads each table in one statement. Nothing runs on them at that time, so
// that they need no common snapshot.
func (m *sqlModel) endState(ctx context.Context, e *endRows) error {
	return m.With(ctx, func(s db.SQLSession) error {
		postings, err := dataset.Count(ctx, s, m.texts.history)
		if err != nil {
			return fmt.Errorf("count the history: %w", err)
		}
		e.report.Total += postings
		for k := branch; k < noKind; k++ {
			t := &m.texts.of[k]
			err := s.Query(ctx, t.rows, nil, func(row []db.Value) error {
				state := workload.State{Balance: row[1].Int}
				if m.texts.versions {
					state.Version, state.Last = row[2].Int, row[3].Int
				}
				return e.row(k, row[0].Int, state)
			})
			if err != nil {
				return fmt.Errorf("download the table %s: %w", t.name, err)
			}
		}
		if err := m.downloadOpenings(ctx, s, e); err != nil {
			return fmt.Errorf("download the table %s: %w", tableOpening, err)
		}
		keep := func(row []db.Value) error { return keepPosting(e, row) }
		if m.texts.versions {
			keep = func(row []db.Value) error { return keepVersioned(e, row) }
		}
		if err := s.Query(ctx, m.texts.postings, nil, keep); err != nil {
			return fmt.Errorf("download the history: %w", err)
		}
		return nil
	})
}

// downloadOpenings reads the openings, of which there is a table only where they are
// not all zero, or where a run kept no history.
func (m *sqlModel) downloadOpenings(ctx context.Context, s db.SQLSession, e *endRows) error {
	there, err := m.Exists(ctx, tableOpening)
	if err != nil || !there {
		return err
	}
	return s.Query(ctx, m.texts.openings, nil, func(row []db.Value) error {
		if place := row[0].Int; place >= 0 {
			return e.opening(uint64(place), row[1].Int)
		}
		return e.bareRun(uint64(-row[0].Int))
	})
}

func keepPosting(e *endRows, row []db.Value) error {
	for i := range 4 {
		if row[i].Null {
			return e.end.Unexpected("a row of the history without an account, a teller, a branch or an amount, which no transaction writes")
		}
	}
	p := posting{rows: [operations]int64{row[0].Int, row[1].Int, row[2].Int}, delta: row[3].Int}
	if !row[4].Null {
		id, ok := parseFiller(row[4].Text)
		if !ok && len(trimmed(row[4].Text)) > 0 {
			return e.end.Unexpected(fmt.Sprintf("a row of the history with the filler %q, which no transaction writes", row[4].Text))
		}
		p.id = id
	}
	return e.posting(p)
}

func keepVersioned(e *endRows, row []db.Value) error {
	id := history.ID(row[4].Int)
	if row[1].Null {
		return e.tombstone(id)
	}
	return e.posting(posting{
		id: id, rows: [operations]int64{row[0].Int, row[1].Int, row[2].Int}, delta: row[3].Int,
		versions: [operations]int64{row[5].Int, row[6].Int, row[7].Int},
	})
}

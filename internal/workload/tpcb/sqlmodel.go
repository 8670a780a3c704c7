package tpcb

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

// sqlModel is the workload on a SQL database.
type sqlModel struct {
	*dataset.SQL
	config   *Config
	texts    *texts        // of the form that is loaded, or was found
	call     *db.Procedure // that is the transaction; nil in the other modes
	calls    db.Procedures // that runs it
	replaced *texts        // of another form, which a load is to clear away; nil: none
	size     size
}

// newSQLModel fills in what the configuration leaves to the data model.
func newSQLModel(database db.SQL, c *Config) (*sqlModel, error) {
	c.Mode = cmp.Or(c.Mode, workload.Pipelined)
	m := &sqlModel{SQL: dataset.NewSQL(dataKind, database, ""), config: c}
	d := m.Dialect
	m.use(newTexts(d, c.Versions))
	if c.Mode == workload.Procedure {
		var err error
		m.call = newProcedure(d, c.History)
		if m.calls, err = db.ProceduresOf(database, m.call); err != nil {
			return nil, fmt.Errorf("choose the mode procedure: %w: take pipelined or interactive", err)
		}
	}
	return m, nil
}

// use chooses the statements of one form of the data.
func (m *sqlModel) use(t *texts) { m.texts, m.Table, m.Count = t, t.tables.accounts, t.count }

func (m *sqlModel) replaces(was *facts) {
	if was.versions != m.texts.versions {
		m.replaced = newTexts(m.Dialect, was.versions)
	}
}

// take chooses the statements of the form that was found.
func (m *sqlModel) take(f *facts) error {
	if f.versions != m.texts.versions {
		m.use(newTexts(m.Dialect, f.versions))
	}
	m.size = f.size
	m.texts.fit(m.Dialect, f.size)
	switch {
	case f.versions && m.call != nil:
		return errVersionsProcedure
	case f.versions && !m.config.History:
		return errVersionsHistory
	}
	return nil
}

// prepare makes the stored procedure, which may be of an older program, and marks a
// run that keeps no history.
func (m *sqlModel) prepare(ctx context.Context, run uint64) error {
	if m.call != nil {
		if err := m.calls.Define(ctx, m.call); err != nil {
			return err
		}
	}
	if m.config.History {
		return nil
	}
	if err := m.Database.Exec(ctx, m.texts.opening); err != nil {
		return err
	}
	return m.With(ctx, func(s db.SQLSession) error {
		return dataset.Transact(ctx, s, func() error {
			_, err := s.Do(ctx, m.texts.bare, []db.Value{{Int: -int64(run)}})
			return err
		})
	})
}

func (m *sqlModel) client(ctx context.Context, h *chooser) (load.Client, error) {
	s, err := m.Database.Session(ctx, workload.SessionOptions(m.config.Isolation, m.config.Mode))
	if err != nil {
		return nil, err
	}
	c := newSQLClient(h, s, m.texts, m.config.History)
	if m.call != nil {
		c.calling(m.call, m.Dialect)
	}
	return c, nil
}

// endState reads each table in one statement. Nothing runs on them at that time, so
// that they need no common snapshot.
func (m *sqlModel) endState(ctx context.Context, e *endRows) error {
	return m.With(ctx, func(s db.SQLSession) error {
		postings, err := dataset.Number(ctx, s, dataset.CountRows(m.texts.tables.history))
		if err != nil {
			return fmt.Errorf("count the history: %w", err)
		}
		e.report.Total += postings
		for k := branch; k < noKind; k++ {
			err := s.Query(ctx, m.texts.rows[k], nil, func(row []db.Value) error {
				if m.texts.versions {
					return e.row(k, row[0].Int, row[1].Int, row[2].Int, row[3].Int)
				}
				return e.row(k, row[0].Int, row[1].Int, 0, 0)
			})
			if err != nil {
				return fmt.Errorf("download the table %s: %w", m.texts.tables.of(k), err)
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

// keepPosting keeps a row of pgbench's history.
func keepPosting(e *endRows, row []db.Value) error {
	for i := range 4 {
		if row[i].Null {
			return e.end.Unexpected("a row of the history without an account, a teller, a branch or an amount, which no transaction writes")
		}
	}
	p := posting{account: row[0].Int, teller: row[1].Int, branch: row[2].Int, delta: row[3].Int}
	if !row[4].Null {
		id, ok := parseFiller(row[4].Text)
		if !ok && len(trimmed(row[4].Text)) > 0 {
			return e.end.Unexpected(fmt.Sprintf("a row of the history with the filler %q, which no transaction writes", row[4].Text))
		}
		p.id = id
	}
	return e.posting(p)
}

// keepVersioned keeps a row of the history of rows with versions.
func keepVersioned(e *endRows, row []db.Value) error {
	id := history.ID(row[4].Int)
	if row[1].Null {
		return e.void(id)
	}
	return e.posting(posting{
		id: id, account: row[0].Int, teller: row[1].Int, branch: row[2].Int, delta: row[3].Int,
		accountV: row[5].Int, tellerV: row[6].Int, branchV: row[7].Int,
	})
}

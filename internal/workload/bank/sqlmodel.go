package bank

import (
	"cmp"
	"context"
	"fmt"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// sqlModel is the bank on a SQL database.
type sqlModel struct {
	*dataset.SQL
	config   *Config
	texts    *texts
	audits   string        // the isolation of the auditor's session
	transfer *db.Procedure // nil but in mode procedure
	calls    db.Procedures // that runs it
}

// newSQLModel fills in what the configuration leaves to the data model.
func newSQLModel(database db.SQL, c *Config) (*sqlModel, error) {
	c.Update, c.Mode = cmp.Or(c.Update, Atomic), cmp.Or(c.Mode, workload.Pipelined)
	claim, err := database.Claim(c.Isolation)
	if err != nil {
		return nil, err
	}
	m := &sqlModel{SQL: dataset.NewSQL(kind, database, tableAccount), config: c, audits: c.Isolation}
	d := m.Dialect
	m.texts = newTexts(d)
	if claim.Level < isolation.SnapshotIsolation && d.Snapshot != "" {
		m.audits = d.Snapshot
	}
	if c.Mode == workload.Procedure {
		m.transfer = newProcedure(d, c.Update)
		if m.calls, err = db.ProceduresOf(database, m.transfer); err != nil {
			return nil, fmt.Errorf("choose the mode procedure: %w: take pipelined or interactive", err)
		}
	}
	return m, nil
}

// prepare defines the stored procedure.
func (m *sqlModel) prepare(ctx context.Context) error {
	if m.transfer == nil {
		return nil
	}
	return m.calls.Define(ctx, m.transfer)
}

func (m *sqlModel) client(ctx context.Context, b *Bank, i int) (load.Client, error) {
	s, err := m.Database.Session(ctx, workload.SessionOptions(m.config.Isolation, m.config.Mode))
	if err != nil {
		return nil, err
	}
	c := &sqlClient{chooser: b.chooser(i), session: s, texts: m.texts, style: m.config.Update, transfer: m.transfer}
	if m.transfer != nil {
		c.caller = m.Dialect.NewCaller(s)
	}
	return c, nil
}

// endState takes the accounts and then the ledger, each in one statement.
// Nothing runs on the bank at that time, so that they need no common snapshot.
func (m *sqlModel) endState(ctx context.Context, b *Bank, end *history.EndWriter, progress func(done, total uint64)) error {
	return m.With(ctx, func(s db.SQLSession) error {
		legs, err := dataset.Number(ctx, s, m.texts.countLegs)
		if err != nil {
			return fmt.Errorf("count the ledger: %w", err)
		}
		e := newEndRows(b, end, progress)
		e.report.Total += legs
		if err := s.Query(ctx, m.texts.allAccounts, nil, e.account); err != nil {
			return fmt.Errorf("download the accounts: %w", err)
		}
		if err := s.Query(ctx, m.texts.allLegs, nil, e.leg); err != nil {
			return fmt.Errorf("download the ledger: %w", err)
		}
		return nil
	})
}

// endRows turns rows into the end state.
type endRows struct {
	formula  *formula
	accounts uint64
	end      *history.EndWriter
	report   dataset.Progress
}

func newEndRows(b *Bank, end *history.EndWriter, progress func(done, total uint64)) *endRows {
	return &endRows{&b.formula, b.Size(), end, dataset.Progress{Report: progress, Total: b.Size()}}
}

func (e *endRows) account(row []db.Value) error {
	e.report.Row()
	key, ok := keyOf(row[0].Text, row[1].Int)
	if n := e.formula.number(key); ok && n < e.accounts {
		return e.end.Object(history.Object{
			N: n, Value: row[2].Int, Version: uint64(row[3].Int), Writer: history.ID(row[4].Int),
		})
	}
	return e.end.Unexpected(fmt.Sprintf("an account %q/%011d, which the load did not make", row[0].Text, row[1].Int))
}

func (e *endRows) leg(row []db.Value) error {
	e.report.Row()
	l := history.Row{
		Transaction: history.ID(row[0].Int), Number: uint32(row[1].Int),
		Amount: row[4].Int, Version: uint64(row[5].Int),
	}
	if row[2].Null || row[3].Null {
		l.Mark = history.Tombstone
		return e.end.Row(l)
	}
	key, ok := keyOf(row[2].Text, row[3].Int)
	if !ok {
		return e.end.Unexpected(fmt.Sprintf("a leg of transfer %v on %q/%011d, an account that no formula makes", l.Transaction, row[2].Text, row[3].Int))
	}
	l.Object = e.formula.number(key)
	return e.end.Row(l)
}

package bank

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

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
	config         *Config
	texts          *texts
	auditIsolation string
}

var errNoPast = errors.New("audit-age needs a database that reads the past, such as by AS OF SYSTEM TIME, and this one does not: leave it out")

var errProcedureOpenings = errors.New("opening-share, predicate-share and low-balance-share need a client that reads a set of accounts and then decides, which the stored procedure of a transfer does not: leave them out, or take another mode or database")

// newSQLModel fills in what the configuration leaves to the data model.
func newSQLModel(database db.SQL, c *Config) (model, error) {
	c.Update, c.Mode = cmp.Or(c.Update, Atomic), cmp.Or(c.Mode, workload.Pipelined)
	d := database.Dialect()
	if c.Update == Locked && d.NoLockingRead {
		return nil, fmt.Errorf("update %s needs a SELECT that locks rows, which this version of the database does not have: take atomic or rmw", c.Update)
	}
	past := ""
	if c.AuditAge > 0 {
		if d.Past == nil {
			return nil, errNoPast
		}
		past = d.Past(c.AuditAge)
	}
	m := &sqlModel{SQL: dataset.NewSQL(kind, database, tableAccount), config: c, texts: newTexts(d, past, c.openings(), c.LowShare > 0), auditIsolation: c.Isolation}
	m.Tables = []string{tableLedger, tableAccount}
	m.Listings = []dataset.Listing{
		{Table: tableAccount, Columns: []string{"bic", "ban", columnBalance, columnVersion, "last_transfer"}, Types: rowColumns, Key: "ban, bic"},
		{
			Table: tableLedger, Columns: []string{"transfer", "leg", "bic", "ban", columnAmount, columnVersion}, Key: "transfer DESC, leg DESC",
			Types: []db.Type{db.Integer, db.Integer, db.Text, db.Integer, db.Decimal, db.Integer},
		},
	}
	if c.Claim.Level < isolation.SnapshotIsolation && d.Snapshot != "" {
		m.auditIsolation = d.Snapshot
	}
	if c.Mode == workload.Procedure && c.openings() {
		return nil, errProcedureOpenings
	}
	if c.Mode == workload.Procedure {
		return m, m.UseProcedure(newProcedure(d, c.Update))
	}
	return m, nil
}

// Fill implements dataset.Store. It clears away what an earlier bank has left and makes
// the accounts and an empty ledger.
func (m *sqlModel) Fill(ctx context.Context, n dataset.Metadata, progress func(done uint64)) error {
	f := newFormula(n.Seed)
	order := keyOrder{formula: &f, accounts: n.Size}
	drawn, ready := make(chan struct{}), false
	go func() { // while the database makes the tables
		defer close(drawn)
		order.sort()
	}()
	defer func() { <-drawn }()
	bic := make([]byte, 0, bicLength)
	return m.Bulk(ctx, db.BulkLoad{
		Before:  append(m.Drops(), m.texts.createBare),
		Table:   tableAccount,
		Columns: []string{"bic", "ban", "balance"},
		Types:   []db.Type{db.Text, db.Integer, db.Decimal},
		After:   append(slices.Clone(m.texts.completes), m.texts.createLast...),
	}, n.Size, progress, func(_ uint64, row []db.Value) {
		if !ready {
			<-drawn
			ready = true
		}
		n, key, _ := order.take()
		row[0].Text, row[1].Int, row[2].Int = appendBIC(bic, key), int64(ban(key)), f.opening(n)
	})
}

func (m *sqlModel) client(ctx context.Context, h *chooser) (load.Client, error) {
	s, err := m.Database.Session(ctx, m.config.SessionOptions())
	return &sqlClient{chooser: h, SQLSession: s, texts: m.texts, style: m.config.Update, call: m.Caller(s)}, err
}

func (m *sqlModel) audits(ctx context.Context) (auditSession, error) {
	s, err := m.Database.Session(ctx, db.SessionOptions{Isolation: m.auditIsolation, Mode: db.Pipelined})
	a := &sqlAudits{SQLSession: s, texts: m.texts}
	if m.config.AuditAge > 0 {
		a.past = m.Dialect.Statement("SET TRANSACTION" + m.Dialect.Past(m.config.AuditAge))
	}
	return a, err
}

// download reads the accounts and then the ledger, each in one statement. No transaction runs at that time, so they
// need no common snapshot.
func (m *sqlModel) download(ctx context.Context, e *endRows) error {
	return m.With(ctx, func(s db.SQLSession) error {
		legs, err := dataset.Count(ctx, s, tableLedger)
		if err != nil {
			return fmt.Errorf("count the ledger: %w", err)
		}
		e.report.Total += legs
		err = s.Query(ctx, m.texts.allAccounts, nil, func(row []db.Value) error {
			key, ok := keyOf(row[0].Text, row[1].Int)
			if made, err := e.account(key, ok, stateOf(row[2:])); made {
				return err
			}
			return e.end.Unexpected(fmt.Sprintf("an account %q/%011d, which the load did not make", row[0].Text, row[1].Int))
		})
		if err != nil {
			return fmt.Errorf("download the accounts: %w", err)
		}
		if err := s.Query(ctx, m.texts.allLegs, nil, e.leg); err != nil {
			return fmt.Errorf("download the ledger: %w", err)
		}
		return nil
	})
}

// endRows turns what a database holds into the end state.
type endRows struct {
	formula  *formula
	accounts uint64
	end      *history.EndWriter
	report   dataset.Progress
	openings bool // clients open accounts

	opened, openedLegs uint64 // the versions of accounts that clients opened and not closed, and the legs on all that they opened
}

// account keeps one account; made is false if the load has not made it.
func (e *endRows) account(key uint64, known bool, s workload.State) (made bool, err error) {
	e.report.Row()
	n := e.formula.number(key)
	if !known || n >= e.accounts && (n < firstOpened || !e.openings) {
		return false, nil
	}
	if n >= firstOpened {
		e.opened += uint64(s.Version)
	}
	return true, e.end.Object(s.Object(n))
}

// entry keeps a leg on an account.
func (e *endRows) entry(l history.Row) error {
	if l.Object >= firstOpened {
		e.openedLegs++
	}
	return e.end.Row(l)
}

// leg keeps a row of the ledger.
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
	return e.entry(l)
}

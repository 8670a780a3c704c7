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

// The bank of procedures alone.
var (
	stateTables    = workload.StateTables{Objects: tableAccount, Number: "ban", Text: "bic", Ledger: tableLedger, Amount: db.Decimal, NonNegative: true}
	accountColumns = []string{"ban", "bic", "balance", "version", "last_transfer"}
)

// procedureModel is the bank on a database of procedures alone.
type procedureModel struct {
	*dataset.Procedures
	config     *Config
	procedures *workload.StateProcedures
}

// newProcedureModel fills in what the configuration leaves to the data model.
func newProcedureModel(database db.ProcedureStore, c *Config) (model, error) {
	if c.Update = cmp.Or(c.Update, Atomic); c.Update != Atomic {
		return nil, fmt.Errorf("update %s needs a client that computes within a transaction, and one of this database is a procedure that computes by itself: take atomic", c.Update)
	}
	if c.openings() {
		return nil, errProcedureOpenings
	}
	legs := []int{2}
	if c.PayrollShare > 0 {
		legs = append(legs, 1+c.PayrollLegs)
	}
	m := &procedureModel{config: c, procedures: workload.NewStateProcedures(&stateTables, legs...)}
	var err error
	m.Procedures, err = dataset.NewProcedures(kind, database, &c.Mode, []dataset.ProcedureTable{
		{Name: tableAccount, Columns: stateTables.ObjectColumns(), Key: "ban", Sums: []string{columnBalance, columnVersion}},
		{Name: tableLedger, Columns: stateTables.LedgerColumns(), Key: "ban", Sums: []string{columnAmount, columnVersion}},
	}, m.procedures.All())
	return m, err
}

// Fill implements dataset.Store.
func (m *procedureModel) Fill(ctx context.Context, n dataset.Metadata, progress func(done uint64)) error {
	f := newFormula(n.Seed)
	return m.Insert(ctx, m.procedures.Insert(), n.Size, progress, func(n uint64, args []db.Value) {
		key := f.key(n)
		args[0].Int, args[1].Text, args[2].Int = int64(ban(key)), appendBIC(args[1].Text[:0], key), f.opening(n)
	})
}

// ObjectKey implements workload.ProcedureLogic.
func (h *chooser) ObjectKey(dst []byte, n uint64) (number int64, text []byte) {
	key := h.formula.key(n)
	return int64(ban(key)), appendBIC(dst, key)
}

// Floor implements workload.ProcedureLogic.
func (h *chooser) Floor(tx *history.Transaction) (least int64, ruled bool) {
	if tx.Kind != joint {
		return 0, false
	}
	payer, _ := jointOps(tx)
	return h.formula.floor(payer.Object), true
}

func (m *procedureModel) client(ctx context.Context, h *chooser) (load.Client, error) {
	s, err := m.Database.ProcedureSession(ctx, m.config.SessionOptions())
	return workload.NewProcedureClient(s, h, m.procedures, rules), err
}

// mostAudited is how many accounts an audit can read: all of them are one answer, which has
// a bound of 50 MB.
const mostAudited = 500_000

func (m *procedureModel) audits(ctx context.Context) (auditSession, error) {
	accounts, err := m.Count(ctx, tableAccount)
	if err == nil && accounts > mostAudited {
		err = dataset.MismatchErrorf("an audit reads all accounts of this database in one answer, which holds at most %d of the %d: leave audits out with --audits 0", mostAudited, accounts)
	}
	return &procedureAudits{m}, err
}

// procedureAudits reads all accounts in one statement, also for an audit of some.
type procedureAudits struct{ model *procedureModel }

func (s *procedureAudits) all(ctx context.Context, a *auditor, tx *history.Transaction) error {
	return s.model.Database.Query(ctx, "SELECT ban, bic, balance, version, last_transfer FROM "+tableAccount, nil, nil, func(row []db.Value) error {
		if key, ok := keyOf(row[1].Text, row[0].Int); ok {
			a.add(tx, key, stateOf(row[2:]))
		}
		return nil
	})
}

func (s *procedureAudits) sample(ctx context.Context, a *auditor, tx *history.Transaction) error {
	return s.all(ctx, a, tx)
}

// Reset does nothing: each audit has a connection of its own.
func (s *procedureAudits) Reset(context.Context) error { return nil }
func (s *procedureAudits) Close() error                { return nil }

func (m *procedureModel) download(ctx context.Context, e *endRows) error {
	legs, err := m.Count(ctx, tableLedger)
	if err != nil {
		return fmt.Errorf("count the ledger: %w", err)
	}
	e.report.Total += legs
	err = m.Download(ctx, tableAccount, accountColumns, []db.Type{db.Integer, db.Text}, dataset.PageRows, func(row []db.Value) error {
		key, ok := keyOf(row[1].Text, row[0].Int)
		if made, err := e.account(key, ok, stateOf(row[2:])); made {
			return err
		}
		return e.end.Unexpected(fmt.Sprintf("an account %q/%011d, which the load did not make", row[1].Text, row[0].Int))
	})
	if err != nil {
		return fmt.Errorf("download the accounts: %w", err)
	}
	var leg [6]db.Value
	err = m.Download(ctx, tableLedger, []string{"ban", "transfer", "leg", "bic", "amount", "version"}, []db.Type{db.Integer, db.Integer, db.Integer}, dataset.PageRows, func(row []db.Value) error {
		leg = [...]db.Value{row[1], row[2], row[3], row[0], row[4], row[5]}
		return e.leg(leg[:])
	})
	if err != nil {
		return fmt.Errorf("download the ledger: %w", err)
	}
	return nil
}

package tpcb

import (
	"context"
	"fmt"
	"strconv"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// The tables of a database of procedures alone. All rows are in one, of which the key is
// the id and the name of the kind; in the history each of the three rows has a leg of its
// own, in the partition of the row.
const (
	tableRow  = "stroppy_tpcb_row"
	tableLeg  = "stroppy_tpcb_history"
	tableBare = "stroppy_tpcb_bare" // the runs that kept no history
)

// procedureModel is the workload on a database of procedures alone. Its rows always have
// versions, as in a key-value store.
type procedureModel struct {
	*dataset.Procedures
	config     *Config
	tables     workload.StateTables
	procedures *workload.StateProcedures
}

func newProcedureModel(database db.ProcedureStore, c *Config) (model, error) {
	if c.Plain {
		return nil, errVersionsAlways
	}
	c.Versions, c.AnyRows = true, true
	m := &procedureModel{config: c, tables: workload.StateTables{Objects: tableRow, Number: "id", Text: "kind", Ledger: tableLeg, Amount: db.Integer}}
	legs := m.tables.LedgerColumns()
	if !c.History {
		m.tables.Ledger = ""
	}
	m.procedures = workload.NewStateProcedures(&m.tables, operations)
	var err error
	m.Procedures, err = dataset.NewProcedures(dataKind, database, &c.Mode, []dataset.ProcedureTable{
		{Name: tableRow, Columns: m.tables.ObjectColumns(), Key: "id", Sums: []string{columnBalance, columnVersion}},
		{Name: tableLeg, Columns: legs, Key: "id", Sums: []string{columnAmount, columnVersion}},
		{Name: tableBare, Columns: "run BIGINT NOT NULL, PRIMARY KEY (run)"},
	}, m.procedures.All())
	return m, err
}

// Fill implements dataset.Store.
func (m *procedureModel) Fill(ctx context.Context, n dataset.Metadata, progress func(done uint64)) error {
	f, err := factsOf(n.Facts, n.Size)
	if err != nil {
		return err
	}
	return m.Insert(ctx, m.procedures.Insert(), n.Size, progress, func(n uint64, args []db.Value) {
		k, id := f.size.place(n)
		args[0].Int, args[1].Text, args[2].Int = int64(id), append(args[1].Text[:0], kindNames[k]...), 0
	})
}

// ObjectKey implements workload.ProcedureLogic.
func (h *chooser) ObjectKey(dst []byte, n uint64) (number int64, text []byte) {
	k, id := h.size.place(n)
	return int64(id), append(dst, kindNames[k]...)
}

// Floor implements workload.ProcedureLogic: nothing is refused.
func (h *chooser) Floor(*history.Transaction) (least int64, ruled bool) { return 0, false }

// adopt does nothing: nobody else makes such tables.
func (m *procedureModel) adopt(context.Context, uint64) error { return nil }

func (m *procedureModel) rule(f *facts, c dataset.Census) string { return oneTableRule(f, c) }

func (m *procedureModel) replaces(*facts) {}

func (m *procedureModel) take(*facts) error { return nil }

// Prepare implements dataset.Store. It marks a run that keeps no history.
func (m *procedureModel) Prepare(ctx context.Context, run uint64) error {
	err := m.Procedures.Prepare(ctx, run)
	if err == nil && !m.config.History {
		err = m.Database.Exec(ctx, "UPSERT INTO "+tableBare+" (run) VALUES ("+strconv.FormatUint(run, 10)+")")
	}
	return err
}

func (m *procedureModel) client(ctx context.Context, h *chooser) (load.Client, error) {
	s, err := m.Database.ProcedureSession(ctx, m.config.SessionOptions())
	return workload.NewProcedureClient(s, h, m.procedures, workload.Rules{Missing: noSuchRow}), err
}

func (m *procedureModel) endState(ctx context.Context, e *endRows) error {
	err := m.Download(ctx, tableRow, []string{"id", "kind", "balance", "version", "last_transfer"}, []db.Type{db.Integer, db.Text}, dataset.PageRows, func(row []db.Value) error {
		return e.row(kindNamed(row[1].Text), row[0].Int, workload.State{Balance: row[2].Int, Version: row[3].Int, Last: row[4].Int})
	})
	if err != nil {
		return fmt.Errorf("download the rows: %w", err)
	}
	err = m.Download(ctx, tableBare, []string{"run"}, []db.Type{db.Integer}, dataset.PageRows, func(row []db.Value) error { return e.bareRun(uint64(row[0].Int)) })
	if err != nil {
		return fmt.Errorf("download the marks of runs: %w", err)
	}
	err = m.Download(ctx, tableLeg, []string{"id", "transfer", "leg", "kind", "amount", "version"}, []db.Type{db.Integer, db.Integer, db.Integer}, dataset.PageRows, e.legRow)
	if err != nil {
		return fmt.Errorf("download the history: %w", err)
	}
	return nil
}

// kindNamed is the kind of a name; noKind if there is none.
func kindNamed(name []byte) kind {
	for k := branch; k < noKind; k++ {
		if kindNames[k] == string(name) {
			return k
		}
	}
	return noKind
}

// legRow keeps one leg of a transaction.
func (e *endRows) legRow(row []db.Value) error {
	e.report.Row()
	l := history.Row{Transaction: history.ID(row[1].Int), Number: uint32(row[2].Int), Amount: row[4].Int, Version: uint64(row[5].Int)}
	if row[3].Null {
		l.Mark = history.Tombstone
		return e.end.Row(l)
	}
	k := kindNamed(row[3].Text)
	if k == noKind {
		return e.end.Unexpected(fmt.Sprintf("a leg of transaction %v on %s %d, which the load did not make", l.Transaction, row[3].Text, row[0].Int))
	}
	return e.leg(l, k, row[0].Int)
}

// leg keeps one leg on a row; the branch's counts for the sum of the history.
func (e *endRows) leg(l history.Row, k kind, id int64) error {
	n, ok := e.size.number(k, id)
	if !ok {
		return e.end.Unexpected(fmt.Sprintf("a leg of transaction %v on %s %d, which the load did not make", l.Transaction, kindNames[k], id))
	}
	if k == branch {
		e.books.history += l.Amount
	}
	l.Object = n
	return e.end.Row(l)
}

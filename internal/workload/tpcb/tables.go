package tpcb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/db"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// tableModel is the workload on a database of tables without free SQL. Its tables and
// statements are pgbench's, but for the fillers of the rows and the time of a row of the
// history, whose key is the id of the transaction. A client is that of a SQL database.
type tableModel struct {
	*dataset.Tables
	config  *Config
	texts   *texts
	of      [noKind]*db.Table
	history *db.Table
	bare    *db.Table // the runs that kept no history
	runs    *db.Statement
}

// newTableModel fills in what the configuration leaves to the data model.
func newTableModel(database db.TableStore, c *Config) (model, error) {
	switch {
	case c.Versions && !c.AnyRows:
		return nil, errors.New("rows with versions are for other databases, whose statements write several columns of a row and say what was there: leave --versions out")
	case c.Mode == workload.Procedure && c.History:
		return nil, errors.New("the procedure of this database leaves no id in the history, so that nothing could be looked up there: take --history=false with the mode procedure")
	}
	c.Mode, c.Versions, c.AnyRows = cmp.Or(c.Mode, workload.Interactive), false, true
	m := &tableModel{config: c, texts: newTexts(database.Dialect(), false, true)}
	for k := branch; k < noKind; k++ {
		m.of[k] = numbers(m.texts.of[k].name, columns[k].id, columns[k].balance)
	}
	m.history = numbers(m.texts.history, "tid", "bid", "aid", "delta")
	m.history.Columns = append([]db.TableColumn{{Name: "filler", Type: db.Text, Length: historyFiller}}, m.history.Columns...)
	m.bare = numbers(tableBare, "run")
	d := database.Dialect()
	p := d.Placeholder // of the arguments of a SQL database's statement, in whose table the filler is last
	m.texts.insert = &db.Statement{
		SQL:    "INSERT INTO " + m.texts.history + " VALUES (" + strings.Join([]string{p(5), p(1), p(2), p(3), p(4)}, ", ") + ")",
		Params: []db.Type{db.Integer, db.Integer, db.Integer, db.Integer, db.Text},
	}
	m.texts.bare = d.Statement("INSERT INTO " + tableBare + " VALUES ({integer})")
	m.runs = d.Statement("SELECT run FROM "+tableBare, db.Integer)
	m.Tables = dataset.NewTables(dataKind, database, append(slices.Clone(m.of[:]), m.history, m.bare)...)
	if c.Mode == workload.Procedure {
		m.Procedure = ownProcedure()
	}
	return m, nil
}

// numbers describes a table of numbers.
func numbers(name string, columns ...string) *db.Table {
	t := &db.Table{Name: name}
	for _, c := range columns {
		t.Columns = append(t.Columns, db.TableColumn{Name: c, Type: db.Integer})
	}
	return t
}

// ownProcedure is the transaction as such a database has it in a program of its own: without
// a row of the history. Its first argument is the amount.
func ownProcedure() *db.OwnProcedure {
	p := &db.OwnProcedure{
		Name:   "PgbenchNoinsert",
		Params: []db.Type{db.Integer, db.Integer, db.Integer, db.Integer}, Columns: []db.Type{db.Integer},
		Statements: [][2]string{{"pgbench_selectaccounts", "SELECT abalance FROM pgbench_accounts WHERE aid = :0"}},
	}
	for k := branch; k < noKind; k++ {
		c := columns[k]
		p.Statements = append(p.Statements, [2]string{
			"pgbench_update" + c.table,
			fmt.Sprintf("UPDATE %s SET %s = %s + :0 WHERE %s = :1", plainPrefix+c.table, c.balance, c.balance, c.id),
		})
	}
	return p
}

// adopt does nothing: what is in the tables of somebody else cannot be added up.
func (m *tableModel) adopt(context.Context, uint64) error { return nil }

// rule implements model. Runs that keep no history have rows in the last part.
func (m *tableModel) rule(f *facts, c dataset.Census) string {
	if len(c) == 0 || c[noKind+1].Rows > 0 {
		return ""
	}
	return threeTablesRule(f, c[:noKind+1])
}

func (m *tableModel) replaces(*facts) {}

func (m *tableModel) take(*facts) error { return nil }

// Fill implements dataset.Store. Balances begin at zero.
func (m *tableModel) Fill(ctx context.Context, n dataset.Metadata, progress func(done uint64)) error {
	f, err := factsOf(n.Facts, n.Size)
	if err != nil {
		return err
	}
	first := uint64(0)
	for k, rows := range f.size {
		insert := m.Database.Dialect().Statement("INSERT INTO " + m.of[k].Name + " VALUES ({integer}, 0)")
		err := m.Insert(ctx, insert, rows, func(done uint64) { progress(first + done) }, func(n uint64, row []db.Value) { row[0].Int = int64(n) + 1 })
		if err != nil {
			return fmt.Errorf("fill the table %s: %w", m.of[k].Name, err)
		}
		first += rows
	}
	return nil
}

// Prepare implements dataset.Store. It marks a run that keeps no history.
func (m *tableModel) Prepare(ctx context.Context, run uint64) error {
	if err := m.Tables.Prepare(ctx, run); err != nil || m.config.History {
		return err
	}
	return m.Change(ctx, func(s db.TableSession) error {
		_, err := s.Do(ctx, m.texts.bare, []db.Value{{Int: int64(run)}})
		return err
	})
}

func (m *tableModel) client(ctx context.Context, h *chooser) (load.Client, error) {
	s, err := m.Database.Session(ctx, m.config.SessionOptions())
	c := &sqlClient{chooser: h, SQLSession: s, texts: m.texts, keeps: m.config.History, steps: true}
	if p := m.Procedure; p != nil {
		args := make([]db.Value, operations+1)
		c.call = func(ctx context.Context, of []db.Value) (*db.Result, error) {
			args[0], args[1], args[2], args[3] = of[operations], of[opAccount], of[opTeller], of[opBranch]
			return s.Call(ctx, p, args)
		}
	}
	return c, err
}

// endState reads each table in one statement. Nothing runs on them at that time.
func (m *tableModel) endState(ctx context.Context, e *endRows) error {
	for k := branch; k < noKind; k++ {
		err := m.Each(ctx, m.of[k], m.texts.of[k].rows, func(row []db.Value) error {
			return e.row(k, row[0].Int, workload.State{Balance: row[1].Int})
		})
		if err != nil {
			return fmt.Errorf("download the table %s: %w", m.of[k].Name, err)
		}
	}
	err := m.Each(ctx, m.bare, m.runs, func(row []db.Value) error { return e.bareRun(uint64(row[0].Int)) })
	if err != nil {
		return fmt.Errorf("download the marks of runs: %w", err)
	}
	if err := m.Each(ctx, m.history, m.texts.postings, func(row []db.Value) error { return keepPosting(e, row) }); err != nil {
		return fmt.Errorf("download the history: %w", err)
	}
	return nil
}

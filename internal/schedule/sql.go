package schedule

import (
	"context"
	"fmt"
	"slices"

	"stroppy/internal/db"
)

// tableName is the table of the schedules, in every data model.
const tableName = "stroppy_schedule"

// sqlTable is the table in the model of SQL. Every schedule has ids and amounts of its own,
// which begin after base: what a replica that is behind still shows of an earlier one is
// not taken for its own.
type sqlTable struct {
	base     int64
	database db.SQL
	control  db.SQLSession
	made     bool
	index    bool // the table that is there has one

	readOne, readTwo, readAll, write, add, insert, delete, addAll, deleteAll *db.Statement
	byRange, byAmount                                                        sqlPredicate

	noUpdateLock, noShareLock bool // the database has no such SELECT
}

// sqlPredicate is the statements with one form of a predicate. A comparison for equality lets
// every planner use the index.
type sqlPredicate struct {
	find, findUpdate, findShare, addWhere, deleteWhere *db.Statement
}

func newPredicate(d *db.Dialect, where string) sqlPredicate {
	found := func(lock string) *db.Statement { return d.Statement(selects+where+lock, db.Integer, db.Integer) }
	return sqlPredicate{
		find: found(""), findUpdate: found(d.ForUpdate), findShare: found(d.ForShare),
		addWhere:    d.Counted("UPDATE " + tableName + " SET amount = amount + {integer}" + where),
		deleteWhere: d.Counted("DELETE FROM " + tableName + where),
	}
}

const selects = "SELECT id, amount FROM " + tableName

// NewSQL returns the table in a database of the model of SQL.
func NewSQL(database db.SQL) Table {
	d := database.Dialect()
	rows := func(where string) *db.Statement { return d.Statement(selects+where, db.Integer, db.Integer) }
	const byID = " WHERE id = {integer}"
	return &sqlTable{
		database:  database,
		readOne:   rows(byID),
		readTwo:   rows(" WHERE id IN ({integer}, {integer})"),
		readAll:   rows(""),
		write:     d.Counted("UPDATE " + tableName + " SET amount = {integer}" + byID),
		add:       d.Counted("UPDATE " + tableName + " SET amount = amount + {integer}" + byID),
		insert:    d.Statement("INSERT INTO " + tableName + " (id, amount) VALUES ({integer}, {integer})"),
		delete:    d.Counted("DELETE FROM " + tableName + byID),
		addAll:    d.Counted("UPDATE " + tableName + " SET amount = amount + {integer}"),
		deleteAll: d.Statement("DELETE FROM " + tableName),
		byRange:   newPredicate(d, " WHERE amount >= {integer} AND amount < {integer}"),
		byAmount:  newPredicate(d, " WHERE amount = {integer}"),

		noUpdateLock: d.ForUpdate == "",
		noShareLock:  d.ForShare == "",
	}
}

func (t *sqlTable) Refuses(s *Schedule) string {
	for _, step := range s.Steps {
		if step.Kind == FindUpdate && t.noUpdateLock {
			return "this database has no SELECT … FOR UPDATE"
		}
		if step.Kind == FindShare && t.noShareLock {
			return "this database has no SELECT … FOR SHARE"
		}
	}
	return ""
}

func (t *sqlTable) Fill(ctx context.Context, rows []Row, index bool) error {
	if !t.made || t.index != index {
		if err := t.create(ctx, index); err != nil {
			return err
		}
	}
	if err := t.ready(ctx); err != nil {
		return err
	}
	t.base += baseStep
	if err := t.refill(ctx, rows); err != nil {
		if db.ClassOf(err) == db.Unknown || db.ClassOf(err) == db.Unavailable {
			_ = t.control.Close() // the next try opens another
			t.control = nil
		}
		return err
	}
	return nil
}

func (t *sqlTable) create(ctx context.Context, index bool) error {
	d := t.database.Dialect()
	for _, statement := range []string{
		"DROP TABLE IF EXISTS " + tableName,
		fmt.Sprintf("CREATE TABLE %s (id %s NOT NULL PRIMARY KEY, amount %s NOT NULL)%s", tableName, d.IntegerType, d.IntegerType, d.TableOptions),
	} {
		if err := t.database.Exec(ctx, statement); err != nil {
			return err
		}
	}
	if index {
		if err := t.database.Exec(ctx, fmt.Sprintf("CREATE INDEX %s_amount ON %s (amount)", tableName, tableName)); err != nil {
			return err
		}
	}
	t.made, t.index = true, index
	return nil
}

func (t *sqlTable) ready(ctx context.Context) (err error) {
	if t.control == nil {
		t.control, err = t.database.Session(ctx, db.SessionOptions{Mode: db.Interactive})
	}
	return err
}

func (t *sqlTable) refill(ctx context.Context, rows []Row) error {
	if err := t.control.Begin(ctx, false); err != nil {
		return err
	}
	if _, err := t.control.Do(ctx, t.deleteAll, nil); err != nil {
		return err
	}
	for _, r := range rows {
		if _, err := t.control.Do(ctx, t.insert, integers(t.base+r.ID, t.base+r.Amount)); err != nil {
			return err
		}
	}
	return t.control.Commit(ctx)
}

func (t *sqlTable) Rows(ctx context.Context) (rows []Row, err error) {
	if err := t.ready(ctx); err != nil {
		return nil, err
	}
	return t.rows(ctx, t.control)
}

// rows are those that a session finds without a transaction.
func (t *sqlTable) rows(ctx context.Context, s db.SQLSession) (rows []Row, err error) {
	err = s.Query(ctx, t.readAll, nil, func(v []db.Value) error {
		if r := t.row(v); r.ID >= 1 && r.ID <= lastID {
			rows = append(rows, r)
		}
		return nil
	})
	sorted(rows)
	return rows, err
}

// baseStep is more than any amount of a schedule.
const baseStep = 1000

func (t *sqlTable) row(v []db.Value) Row { return Row{v[0].Int - t.base, v[1].Int - t.base} }

func (t *sqlTable) Client(ctx context.Context, isolation string) (Client, error) {
	s, err := t.database.Session(ctx, db.SessionOptions{Isolation: isolation, Mode: db.Interactive})
	if err != nil {
		return nil, err
	}
	return &sqlClient{SQLSession: s, of: t}, nil
}

func (t *sqlTable) Replica(database db.Database) (Table, error) {
	d, ok := database.(db.SQL)
	if !ok {
		return nil, errOtherModel
	}
	return &replica[db.SQLSession]{
		open: d.Session,
		rows: t.rows,
		client: func(s db.SQLSession) Client {
			return &sqlClient{SQLSession: s, of: t}
		},
	}, nil
}

func (t *sqlTable) Remove(ctx context.Context) (err error) {
	if t.control != nil {
		err = t.control.Close()
		t.control = nil
	}
	if !t.made {
		return err
	}
	t.made = false
	if dropped := t.database.Exec(ctx, "DROP TABLE IF EXISTS "+tableName); dropped != nil {
		return dropped
	}
	return err
}

func sorted(rows []Row) { slices.SortFunc(rows, func(a, b Row) int { return int(a.ID - b.ID) }) }

func integers(numbers ...int64) (list []db.Value) {
	for _, n := range numbers {
		list = append(list, db.Value{Int: n})
	}
	return list
}

// sqlClient is a session on a sqlTable.
type sqlClient struct {
	db.SQLSession
	of *sqlTable
}

func (c *sqlClient) Do(ctx context.Context, o Operation) (r Result, err error) {
	statement, args := c.of.spell(o)
	number, err := c.SQLSession.Do(ctx, statement, args)
	if err != nil {
		return r, err
	}
	if err := c.Flush(ctx); err != nil {
		return r, err
	}
	result := c.Result(number)
	if statement.Counted {
		return affected(int(result.Affected)), nil
	}
	if len(statement.Columns) == 0 {
		return r, nil
	}
	for i := range result.Rows() {
		r.Rows = append(r.Rows, c.of.row(result.Row(i)))
	}
	sorted(r.Rows)
	return r, nil
}

// spell returns the statement of an operation.
func (t *sqlTable) spell(o Operation) (*db.Statement, []db.Value) {
	switch o.Kind {
	case Read:
		if len(o.IDs) == 1 {
			return t.readOne, integers(t.base + o.IDs[0])
		}
		return t.readTwo, integers(t.base+o.IDs[0], t.base+o.IDs[1])
	case Write:
		return t.write, integers(t.base+o.Amount, t.base+o.IDs[0])
	case Add:
		return t.add, integers(o.Amount, t.base+o.IDs[0])
	case Insert:
		return t.insert, integers(t.base+o.IDs[0], t.base+o.Amount)
	case Delete:
		return t.delete, integers(t.base + o.IDs[0])
	case AddAll:
		return t.addAll, integers(o.Amount)
	}
	predicate, bounds := &t.byRange, []int64{t.base + o.Low, t.base + o.High}
	if o.equal() {
		predicate, bounds = &t.byAmount, bounds[:1]
	}
	switch o.Kind {
	case Find:
		return predicate.find, integers(bounds...)
	case FindUpdate:
		return predicate.findUpdate, integers(bounds...)
	case FindShare:
		return predicate.findShare, integers(bounds...)
	case AddWhere:
		return predicate.addWhere, integers(append([]int64{o.Amount}, bounds...)...)
	}
	return predicate.deleteWhere, integers(bounds...)
}

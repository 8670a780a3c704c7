package schedule

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"stroppy/internal/db"
)

// tableName is the table of the schedules, in every data model.
const tableName = "stroppy_schedule"

// sqlTable is the table in the model of SQL. Every schedule has ids and amounts of its own,
// which begin after number. So a row of an earlier schedule on a replica that is behind is not
// taken for one of this schedule.
type sqlTable struct {
	base[db.SQLSession]
	number   int64
	database db.SQL
	made     bool
	index    bool // the table that is there has one

	readOne, readTwo, readAll, write, add, insert, delete, addAll, deleteAll *db.Statement
	byRange, byAmount                                                        map[Kind]*db.Statement

	noUpdateLock, noShareLock bool // the database has no such SELECT
}

const selects = "SELECT id, amount FROM " + tableName

// byPredicate returns the statements with one form of a predicate, by the kind of operation. A
// comparison for equality lets every planner use the index.
func byPredicate(d *db.Dialect, where string) map[Kind]*db.Statement {
	found := func(lock string) *db.Statement { return d.Statement(selects+where+lock, db.Integer, db.Integer) }
	return map[Kind]*db.Statement{
		Find: found(""), FindUpdate: found(d.ForUpdate), FindShare: found(d.ForShare),
		AddWhere:    d.Counted("UPDATE " + tableName + " SET amount = amount + {integer}" + where),
		DeleteWhere: d.Counted("DELETE FROM " + tableName + where),
	}
}

// NewSQL returns the table in a database of the model of SQL.
func NewSQL(database db.SQL) Table {
	d := database.Dialect()
	rows := func(where string) *db.Statement { return d.Statement(selects+where, db.Integer, db.Integer) }
	const byID = " WHERE id = {integer}"
	t := &sqlTable{
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
		byRange:   byPredicate(d, " WHERE amount >= {integer} AND amount < {integer}"),
		byAmount:  byPredicate(d, " WHERE amount = {integer}"),

		noUpdateLock: d.ForUpdate == "",
		noShareLock:  d.ForShare == "",
	}
	t.base = base[db.SQLSession]{
		open: database.Session, rows: t.query, client: func(s db.SQLSession) Client { return &sqlClient{s, t} },
	}
	return t
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
	t.number += numberStep
	return t.with(ctx, func(s db.SQLSession) error {
		return db.Repeat(ctx, s, nil, func() error {
			_, err := s.Do(ctx, t.deleteAll, nil)
			for _, r := range rows {
				if err == nil {
					_, err = s.Do(ctx, t.insert, integers(t.number+r.ID, t.number+r.Amount))
				}
			}
			return err
		})
	})
}

func (t *sqlTable) create(ctx context.Context, index bool) error {
	d := t.database.Dialect()
	statements := []string{
		"DROP TABLE IF EXISTS " + tableName,
		fmt.Sprintf("CREATE TABLE %s (id %s NOT NULL PRIMARY KEY, amount %s NOT NULL)%s", tableName, d.IntegerType, d.IntegerType, d.TableOptions),
	}
	if index {
		statements = append(statements, fmt.Sprintf("CREATE INDEX %s_amount ON %s (amount)", tableName, tableName))
	}
	for _, statement := range statements {
		if err := t.database.Exec(ctx, statement); err != nil {
			return err
		}
	}
	t.made, t.index = true, index
	return nil
}

// query returns the rows that a session finds without a transaction.
func (t *sqlTable) query(ctx context.Context, s db.SQLSession) (rows []Row, err error) {
	err = s.Query(ctx, t.readAll, nil, func(v []db.Value) error {
		if r := t.row(v); r.ID >= 1 && r.ID <= lastID {
			rows = append(rows, r)
		}
		return nil
	})
	sorted(rows)
	return rows, err
}

// numberStep is more than any amount of a schedule.
const numberStep = 1000

func (t *sqlTable) row(v []db.Value) Row { return Row{v[0].Int - t.number, v[1].Int - t.number} }

func (t *sqlTable) Replica(database db.Database) (Table, error) {
	d, ok := database.(db.SQL)
	if !ok {
		return newReplica(&t.base, nil, false)
	}
	return newReplica(&t.base, d.Session, true)
}

func (t *sqlTable) Remove(ctx context.Context) error {
	err := t.close()
	if !t.made {
		return err
	}
	t.made = false
	return cmp.Or(t.database.Exec(ctx, "DROP TABLE IF EXISTS "+tableName), err)
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
			return t.readOne, integers(t.number + o.IDs[0])
		}
		return t.readTwo, integers(t.number+o.IDs[0], t.number+o.IDs[1])
	case Write:
		return t.write, integers(t.number+o.Amount, t.number+o.IDs[0])
	case Add:
		return t.add, integers(o.Amount, t.number+o.IDs[0])
	case Insert:
		return t.insert, integers(t.number+o.IDs[0], t.number+o.Amount)
	case Delete:
		return t.delete, integers(t.number + o.IDs[0])
	case AddAll:
		return t.addAll, integers(o.Amount)
	}
	statements, bounds := t.byRange, []int64{t.number + o.Low, t.number + o.High}
	if o.equal() {
		statements, bounds = t.byAmount, bounds[:1]
	}
	if o.Kind == AddWhere {
		bounds = append([]int64{o.Amount}, bounds...)
	}
	return statements[o.Kind], integers(bounds...)
}

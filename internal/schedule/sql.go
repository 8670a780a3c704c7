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

	all, insert, deleteAll *db.Statement
}

const selects = "SELECT id, amount FROM " + tableName

// NewSQL returns the table in a database of the model of SQL.
func NewSQL(database db.SQL) Table {
	d := database.Dialect()
	t := &sqlTable{
		database:  database,
		all:       d.Statement(selects, db.Integer, db.Integer),
		insert:    d.Statement("INSERT INTO " + tableName + " (id, amount) VALUES ({integer}, {integer})"),
		deleteAll: d.Statement("DELETE FROM " + tableName),
	}
	t.base = base[db.SQLSession]{
		open: database.Session, rows: t.query,
		client: func(s db.SQLSession) Client { return &sqlClient{s, t, map[string]*db.Statement{}} },
	}
	return t
}

func (t *sqlTable) Refuses(s *Schedule) string {
	d := t.database.Dialect()
	for _, step := range s.Steps {
		if step.Kind == FindUpdate && d.ForUpdate == "" {
			return "this database has no SELECT … FOR UPDATE"
		}
		if step.Kind == FindShare && d.ForShare == "" {
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
	err = s.Query(ctx, t.all, nil, func(v []db.Value) error {
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
	of         *sqlTable
	statements map[string]*db.Statement // by their texts
}

func (c *sqlClient) Do(ctx context.Context, o Operation) (r Result, err error) {
	statement, args := c.spell(o)
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

// spell returns the statement of an operation. A comparison for equality lets every planner use the index.
func (c *sqlClient) spell(o Operation) (*db.Statement, []db.Value) {
	d, number := c.of.database.Dialect(), c.of.number
	var where string
	var args []int64
	switch {
	case o.Kind == Insert:
		return c.of.insert, integers(number+o.IDs[0], number+o.Amount)
	case o.Kind == AddAll:
	case len(o.IDs) == 2:
		where, args = " WHERE id IN ({integer}, {integer})", []int64{number + o.IDs[0], number + o.IDs[1]}
	case len(o.IDs) == 1:
		where, args = " WHERE id = {integer}", []int64{number + o.IDs[0]}
	case o.equal():
		where, args = " WHERE amount = {integer}", []int64{number + o.Low}
	default:
		where, args = " WHERE amount >= {integer} AND amount < {integer}", []int64{number + o.Low, number + o.High}
	}
	text := selects + where + map[Kind]string{FindUpdate: d.ForUpdate, FindShare: d.ForShare}[o.Kind]
	switch o.Kind {
	case Write:
		text, args = "UPDATE "+tableName+" SET amount = {integer}"+where, append([]int64{number + o.Amount}, args...)
	case Add, AddAll, AddWhere:
		text, args = "UPDATE "+tableName+" SET amount = amount + {integer}"+where, append([]int64{o.Amount}, args...)
	case Delete, DeleteWhere:
		text = "DELETE FROM " + tableName + where
	}
	if c.statements[text] == nil {
		if o.Kind.reads() {
			c.statements[text] = d.Statement(text, db.Integer, db.Integer)
		} else {
			c.statements[text] = d.Counted(text)
		}
	}
	return c.statements[text], integers(args...)
}

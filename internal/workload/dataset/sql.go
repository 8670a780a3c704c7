package dataset

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"stroppy/internal/db"
)

// SQL is a Store in a SQL database. The metadata are a table. A workload embeds SQL and adds
// Fill, which creates the tables and their rows.
type SQL struct {
	Database db.SQL
	Dialect  *db.Dialect
	Table    string   // of the things
	Tables   []string // of the data, in the order in which they are removed
	// Listings describes the tables of the data for a census.
	Listings []Listing
	kind     Kind

	procedure *db.Procedure // the procedure of a transaction; nil unless in mode procedure

	create                           string
	read, clear, write, set, compare *db.Statement
}

// NewSQL returns the store of a kind. The table has one row for each thing.
func NewSQL(kind Kind, database db.SQL, table string) *SQL {
	d := database.Dialect()
	update := "UPDATE " + kind.Table + " SET value = {text} WHERE name = {text}"
	return &SQL{
		Database: database, Dialect: d, kind: kind, Table: table,
		create: d.CreateTable("IF NOT EXISTS "+kind.Table,
			"name "+d.TextType(16)+" NOT NULL PRIMARY KEY", "value "+d.TextType(32)+" NOT NULL"),
		read:    d.Statement("SELECT name, value FROM "+kind.Table, db.Text, db.Text),
		clear:   d.Statement("DELETE FROM " + kind.Table),
		write:   d.Statement("INSERT INTO " + kind.Table + " (name, value) VALUES ({text}, {text})"),
		set:     d.Statement(update),
		compare: d.Counted(update + " AND value = {text}"),
	}
}

// Count counts the rows of a table.
func Count(ctx context.Context, s db.SQLSession, table string) (n uint64, err error) {
	statement := &db.Statement{SQL: "SELECT COUNT(*) FROM " + table, Columns: []db.Type{db.Integer}}
	err = s.Query(ctx, statement, nil, func(row []db.Value) error {
		n = uint64(row[0].Int)
		return nil
	})
	return n, err
}

// Exists reports whether the server has a table. It returns an error if this is not known.
func (q *SQL) Exists(ctx context.Context, table string) (bool, error) {
	err := q.With(ctx, func(s db.SQLSession) error {
		_, err := Count(ctx, s, table+" WHERE 1 = 0")
		return err
	})
	if db.ClassOf(err) == db.Fatal {
		return false, q.reach(ctx)
	}
	return err == nil, err
}

// With calls use with a session, for work outside the transactions of clients.
func (q *SQL) With(ctx context.Context, use func(s db.SQLSession) error) error {
	return with(ctx, q.Database.Session, use)
}

// UseProcedure makes each transaction a call of a procedure.
func (q *SQL) UseProcedure(p *db.Procedure) error {
	q.procedure = p
	if _, err := q.Dialect.ProcedureText(p); err != nil {
		return fmt.Errorf("choose the mode procedure: %w: take pipelined or interactive", err)
	}
	return nil
}

// Prepare implements Store. It creates the procedure of the transactions, if there is one.
func (q *SQL) Prepare(ctx context.Context, _ uint64) error {
	if q.procedure == nil {
		return nil
	}
	return db.DefineProcedure(ctx, q.Database, q.procedure)
}

// Caller returns a function that calls the procedure on a session; nil if there is no procedure.
func (q *SQL) Caller(s db.SQLSession) func(ctx context.Context, args []db.Value) (*db.Result, error) {
	if q.procedure == nil {
		return nil
	}
	caller := q.Dialect.NewCaller(s)
	return func(ctx context.Context, args []db.Value) (*db.Result, error) {
		return caller.Call(ctx, q.procedure, args)
	}
}

// transact runs the statements of add as one transaction.
func transact(ctx context.Context, s db.SQLSession, add func() error) error {
	if err := s.Begin(ctx, false); err != nil {
		return err
	}
	if err := add(); err != nil {
		_ = s.Rollback(ctx) // the first error is the one to report
		return err
	}
	return s.Commit(ctx)
}

// Change carries out one transaction.
func (q *SQL) Change(ctx context.Context, add func(s db.SQLSession) error) error {
	return q.With(ctx, func(s db.SQLSession) error {
		return transact(ctx, s, func() error { return add(s) })
	})
}

// Each runs statements without parameters, each by itself.
func (q *SQL) Each(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if err := q.Database.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// Read implements Store.
func (q *SQL) Read(ctx context.Context) (Metadata, error) {
	values := map[string]string{}
	err := q.With(ctx, func(s db.SQLSession) error {
		return s.Query(ctx, q.read, nil, func(row []db.Value) error {
			values[string(row[0].Text)] = string(row[1].Text)
			return nil
		})
	})
	if err != nil && q.Dialect.NoTable != nil && q.Dialect.NoTable(err) {
		return Metadata{}, nil
	}
	if err != nil && db.ClassOf(err) == db.Fatal && q.reach(ctx) == nil {
		// The server answers, but refuses the statement. The table is missing, or it may not be read. In the second
		// case, making the table reports the error.
		return Metadata{Unread: err}, nil
	}
	return q.kind.parse(values), err
}

// reach returns an error if the server cannot be reached with these credentials.
func (q *SQL) reach(ctx context.Context) error {
	_, err := q.Database.Info(ctx)
	return err
}

// Foreign implements Store.
func (q *SQL) Foreign(ctx context.Context) (string, error) {
	there, err := q.Exists(ctx, q.Table)
	if err != nil || !there {
		return "", err
	}
	return "this database has a table " + q.Table, nil
}

// Begin implements Store. It marks the data as loading first, so that the mark stays if the load crashes at any later
// moment.
func (q *SQL) Begin(ctx context.Context, m Metadata) error {
	if err := q.Database.Exec(ctx, q.create); err != nil {
		return err
	}
	return q.Change(ctx, func(s db.SQLSession) error {
		_, err := s.Do(ctx, q.clear, nil)
		for _, row := range q.kind.starting(m) {
			if err == nil {
				_, err = s.Do(ctx, q.write, texts(row[:]...))
			}
		}
		return err
	})
}

// Rows implements Store. It returns 0, because an interrupted load begins again.
func (q *SQL) Rows(context.Context) (uint64, error) { return 0, nil }

// Census implements Store.
func (q *SQL) Census(ctx context.Context, m Metadata) (c Census, err error) {
	err = q.With(ctx, func(s db.SQLSession) error {
		c, err = censusOf(ctx, q.Listings, func(ctx context.Context, l Listing) (Part, error) { return q.part(ctx, s, &l, l.rows(&m)) })
		return err
	})
	return c, err
}

// part reads up to limit rows of one table, and counts the others. A table that the server refuses to read counts as
// missing.
func (q *SQL) part(ctx context.Context, s db.SQLSession, l *Listing, limit int) (Part, error) {
	t := newTally("the table "+l.Table, "rows", l.columns(), nil)
	query := "SELECT " + strings.Join(l.Columns, ", ") + " FROM " + l.Table
	if l.Key != "" {
		query += " ORDER BY " + l.Key
	}
	whole := &db.Statement{SQL: query + fmt.Sprintf(" LIMIT %d", limit+1), Columns: l.Types}
	p, err := t.close(s.Query(ctx, whole, nil, func(row []db.Value) error {
		if t.part.Rows == uint64(limit) {
			t.part.Whole = false
			return nil
		}
		if err := t.row(row); !errors.Is(err, errCensusFull) {
			return err
		}
		return nil // the rest is read too, because the session is needed again
	}))
	if err == nil && !p.Whole {
		if l.Key == "" { // the rows read may be any of them
			p.Digest, p.Sums = 0, nil
		}
		p.Rows, err = Count(ctx, s, fmt.Sprintf("(SELECT 1 AS counted FROM %s LIMIT %d) AS part", l.Table, censusCount))
	}
	if err != nil && db.ClassOf(err) == db.Fatal && q.reach(ctx) == nil {
		if l.Optional {
			err = nil
		}
		return Part{Name: p.Name, Things: p.Things, Missing: err, Whole: true}, nil
	}
	return p, err
}

func texts(list ...string) (values []db.Value) {
	for _, text := range list {
		values = append(values, db.Value{Text: []byte(text)})
	}
	return values
}

// Bulk loads a table of size rows. It uses one bulk load if the database has bulk loads. row fills in row n.
func (q *SQL) Bulk(
	ctx context.Context, load db.BulkLoad, size uint64, progress func(done uint64), row func(n uint64, values []db.Value),
) error {
	done := uint64(0)
	load.Next = func(values []db.Value) bool {
		if done == size {
			return false
		}
		row(done, values)
		if done++; done%ProgressRows == 0 {
			progress(done)
		}
		return true
	}
	insert := q.insert
	if bulk, ok := q.Database.(db.BulkLoader); ok {
		insert = bulk.BulkLoad
	}
	rows, err := insert(ctx, load)
	switch {
	case err != nil:
		return err
	case uint64(rows) != size:
		return fmt.Errorf("the database took %d rows of %d of the table %s", rows, size, load.Table)
	}
	progress(size)
	return nil
}

// batchRows is the number of rows of one transaction of insert.
const batchRows = 10_000

// insert is BulkLoad by statements. If it fails, the committed batches stay.
func (q *SQL) insert(ctx context.Context, load db.BulkLoad) (rows int64, err error) {
	if err := q.Each(ctx, load.Before...); err != nil {
		return 0, err
	}
	one := q.Dialect.Statement("INSERT INTO " + load.Table + " (" + strings.Join(load.Columns, ", ") + ") VALUES " + db.Row(load.Types...))
	row := make([]db.Value, len(load.Types))
	err = q.With(ctx, func(s db.SQLSession) error {
		batch := func() error {
			for range batchRows {
				if !load.Next(row) {
					return nil
				}
				if _, err := s.Do(ctx, one, row); err != nil {
					return err
				}
				rows++
			}
			return nil
		}
		for before := int64(-1); rows != before; {
			before = rows
			if err := transact(ctx, s, batch); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return rows, err
	}
	return rows, q.Each(ctx, load.After...)
}

// Set implements Store.
func (q *SQL) Set(ctx context.Context, name, value, guard, was string) error {
	return q.Change(ctx, func(s db.SQLSession) error {
		// A write of the guard with its old value waits for other writers, and sees their changes.
		guarded, err := s.Do(ctx, q.compare, texts(was, guard, was))
		if err == nil {
			_, err = s.Do(ctx, q.set, texts(value, name))
		}
		if err == nil {
			err = s.Flush(ctx)
		}
		if err == nil && s.Result(guarded).Affected != 1 {
			err = errChanged
		}
		return err
	})
}

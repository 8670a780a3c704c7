package kv

import (
	"context"
	"fmt"
	"slices"

	"stroppy/internal/db"
	"stroppy/internal/load"
	"stroppy/internal/workload/dataset"
)

// The table, whose columns are named so that no dialect has to quote them.
const (
	table       = "stroppy_kv"
	keyColumn   = "record_key"
	valueColumn = "record_value"
)

// sqlModel is the workload on a SQL database.
type sqlModel struct {
	database db.SQL
	store    *dataset.SQL
	dialect  *db.Dialect
	config   *Config
	lanes    lanes[db.SQLSession]

	read, update, insert, insertMany, scan *db.Statement
	probe, count, all                      *db.Statement
}

var (
	_ model          = (*sqlModel)(nil)
	_ dataset.Tables = (*sqlModel)(nil)
)

func newSQLModel(database db.SQL, c *Config) (*sqlModel, error) {
	if _, several := database.(db.Multiplexer[db.SQLSession]); c.InFlight > 1 && !several {
		return nil, inFlightError(c.InFlight)
	}
	if c.InFlight > 1 && c.Mode == Interactive {
		return nil, fmt.Errorf("in-flight is %d, and mode interactive waits for each statement: take mode pipelined, or leave in-flight out", c.InFlight)
	}
	d := database.Dialect()
	m := &sqlModel{database: database, dialect: d, config: c}
	m.store = dataset.NewSQL(kind, database, m)
	columns := keyColumn + ", " + valueColumn
	m.read = d.Write("SELECT ", valueColumn, " FROM ", table, " WHERE ", keyColumn, " = ").Param(db.Text).End(db.Text)
	m.update = d.Write("UPDATE ", table, " SET ", valueColumn, " = ").Param(db.Text).Text(" WHERE ", keyColumn, " = ").Param(db.Text).End()
	insert := func(rows int) *db.Statement {
		w := d.Write("INSERT INTO ", table, " (", columns, ") VALUES ")
		for i := range rows {
			if i > 0 {
				w.Text(", ")
			}
			w.Text("(").Param(db.Text).Text(", ").Param(db.Text).Text(")")
		}
		return w.End()
	}
	m.insert, m.insertMany = insert(1), insert(insertRows)
	m.scan = d.Write("SELECT ", columns, " FROM ", table, " WHERE ", keyColumn, " >= ").Param(db.Text).
		Text(" ORDER BY ", keyColumn, " LIMIT ").Param(db.Integer).End(db.Text, db.Text)
	m.probe = d.Write("SELECT ", keyColumn, " FROM ", table, " WHERE 1 = 0").End(db.Text)
	m.count = d.Write("SELECT COUNT(*) FROM ", table).End(db.Integer)
	m.all = d.Write("SELECT ", columns, " FROM ", table).End(db.Text, db.Text)
	return m, nil
}

// Probe implements dataset.Tables.
func (m *sqlModel) Probe() (string, *db.Statement) { return table, m.probe }

// Count implements dataset.Tables.
func (m *sqlModel) Count() *db.Statement { return m.count }

const (
	insertRows = 50              // of one statement of a load without BulkLoader
	batchRows  = 20 * insertRows // of one of its transactions
	sortRows   = 1 << 24         // records that a bulk load puts into the order of their keys, 8 bytes each
	dropTable  = "DROP TABLE IF EXISTS " + table
	primaryKey = "PRIMARY KEY (" + keyColumn + ")"
)

// create returns the statement that makes the table, with its key or without.
func (m *sqlModel) create(s shape, keyed bool) string {
	text := "CREATE TABLE " + table + " (\n" +
		"\t" + keyColumn + " " + m.dialect.TextType(int(s.key)) + " NOT NULL,\n" +
		"\t" + valueColumn + " " + m.dialect.TextType(int(s.high)) + " NOT NULL"
	if keyed {
		text += ",\n\t" + primaryKey
	}
	return text + "\n)" + m.dialect.TableOptions
}

// Fill clears away what an earlier load has left, unless it goes on with it, and
// makes the records.
func (m *sqlModel) Fill(ctx context.Context, n dataset.Note, progress func(done uint64)) error {
	s := m.config.shape()
	f := newFormula(n.Seed, s)
	if bulk, ok := m.database.(db.BulkLoader); ok && n.Rows == 0 {
		return m.bulk(ctx, bulk, f, n.Size, progress)
	}
	if n.Rows == 0 {
		if err := m.store.Each(ctx, dropTable, m.create(s, true)); err != nil {
			return err
		}
	}
	return m.store.Batches(ctx, n, batchRows, progress, func(s db.SQLSession, from, to uint64) error {
		return m.batch(ctx, s, f, from, to)
	})
}

// bulk loads all records in one transaction. Where the table has its key from the
// beginning they come in the order of their keys, which makes its tree from left to
// right; else in that of their numbers, so that neighbours by key are none on the
// disk, as after a long life.
func (m *sqlModel) bulk(ctx context.Context, bulk db.BulkLoader, f *formula, records uint64, progress func(done uint64)) error {
	var after []string
	if m.dialect.AddConstraint {
		after = []string{"ALTER TABLE " + table + " ADD " + primaryKey}
	}
	var places []uint64 // in order; nil: by number
	if !m.dialect.AddConstraint && records <= sortRows {
		places = make([]uint64, records)
		for n := range records {
			places[n] = f.place(n)
		}
		slices.Sort(places)
	}
	key, value, done := f.newKey(), []byte(nil), uint64(0)
	rows, err := bulk.BulkLoad(ctx, db.BulkLoad{
		Before:  []string{dropTable, m.create(m.config.shape(), !m.dialect.AddConstraint)},
		Table:   table,
		Columns: []string{keyColumn, valueColumn},
		Types:   []db.Type{db.Text, db.Text},
		Next: func(row []db.Value) bool {
			if done == records {
				return false
			}
			n, place := done, uint64(0)
			if places != nil {
				place = places[done]
				n = f.places.Backward(place)
			} else {
				place = f.place(n)
			}
			f.putKey(key, place)
			value = f.appendValue(value[:0], n, 0, 0, f.size(n, 0))
			row[0].Text, row[1].Text = key, value
			if done++; done%progressRecords == 0 {
				progress(done)
			}
			return true
		},
		After: after,
	})
	if err != nil {
		return err
	}
	if uint64(rows) != records {
		return fmt.Errorf("the database took %d rows of %d", rows, records)
	}
	progress(records)
	return nil
}

// batch adds the statements that make the records from ≤ n < to.
func (m *sqlModel) batch(ctx context.Context, s db.SQLSession, f *formula, from, to uint64) error {
	var args []db.Value
	for from < to {
		statement, rows := m.insertMany, uint64(insertRows)
		if to-from < rows {
			statement, rows = m.insert, 1
		}
		args = args[:0]
		for n := from; n < from+rows; n++ {
			key := f.newKey()
			f.putKey(key, f.place(n))
			args = append(args, db.Value{Text: key}, db.Value{Text: f.appendValue(nil, n, 0, 0, f.size(n, 0))})
		}
		if _, err := s.Do(ctx, statement, args); err != nil {
			return err
		}
		from += rows
	}
	return nil
}

func (m *sqlModel) client(ctx context.Context, h *chooser, _ int) (load.Client, error) {
	s, err := m.session(ctx)
	if err != nil {
		return nil, err
	}
	return newSQLClient(h, m, s), nil
}

func (m *sqlModel) session(ctx context.Context) (db.SQLSession, error) {
	if m.config.InFlight <= 1 {
		return m.database.Session(ctx, m.config.options())
	}
	return m.lanes.next(func() ([]db.SQLSession, error) {
		return m.database.(db.Multiplexer[db.SQLSession]).Streams(ctx, m.config.InFlight, m.config.options())
	})
}

func (m *sqlModel) endState(ctx context.Context, e *endRecords) error {
	return m.store.With(ctx, func(s db.SQLSession) error {
		return s.Query(ctx, m.all, nil, func(row []db.Value) error { return e.add(row[0].Text, row[1].Text) })
	})
}

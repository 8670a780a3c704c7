package kv

import (
	"context"
	"fmt"
	"slices"

	"stroppy/internal/db"
	"stroppy/internal/workload"
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
	*dataset.SQL
	config *Config
	next   func(context.Context) (db.SQLSession, error) // opens the next client's session

	read, update, insert, scan, all *db.Statement
	inserts                         dataset.Insert // of a load without BulkLoader
}

func newSQLModel(database db.SQL, c *Config) (*sqlModel, error) {
	next, err := sessions(c, database, database.Session)
	if err != nil {
		return nil, err
	}
	if c.InFlight > 1 && c.Mode == workload.Interactive {
		return nil, fmt.Errorf("in-flight is %d, and mode interactive waits for each statement: take mode pipelined, or leave in-flight out", c.InFlight)
	}
	m := &sqlModel{SQL: dataset.NewSQL(kind, database, table), config: c, next: next}
	d := m.Dialect
	columns := keyColumn + ", " + valueColumn
	m.read = d.Write("SELECT ", valueColumn, " FROM ", table, " WHERE ", keyColumn, " = ").Param(db.Text).End(db.Text)
	m.update = d.Write("UPDATE ", table, " SET ", valueColumn, " = ").Param(db.Text).Text(" WHERE ", keyColumn, " = ").Param(db.Text).End()
	m.insert = d.Write("INSERT INTO ", table, " (", columns, ") VALUES (").Params(db.Text, db.Text).Text(")").End()
	m.inserts = dataset.NewInsert(d, table, columns, []db.Type{db.Text, db.Text}, insertRows)
	m.scan = d.Write("SELECT ", columns, " FROM ", table, " WHERE ", keyColumn, " >= ").Param(db.Text).
		Text(" ORDER BY ", keyColumn, " LIMIT ").Param(db.Integer).End(db.Text, db.Text)
	m.all = d.Write("SELECT ", columns, " FROM ", table).End(db.Text, db.Text)
	return m, nil
}

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
		"\t" + keyColumn + " " + m.Dialect.TextType(int(s.key)) + " NOT NULL,\n" +
		"\t" + valueColumn + " " + m.Dialect.TextType(int(s.high)) + " NOT NULL"
	if keyed {
		text += ",\n\t" + primaryKey
	}
	return text + "\n)" + m.Dialect.TableOptions
}

// Fill implements dataset.Store. It clears away what an earlier load has left, unless it goes on with it, and
// makes the records.
func (m *sqlModel) Fill(ctx context.Context, n dataset.Metadata, progress func(done uint64)) error {
	s := m.config.shape()
	f := newFormula(n.Seed, s)
	if bulk, ok := m.Database.(db.BulkLoader); ok && n.Rows == 0 {
		return m.bulk(ctx, bulk, f, n.Size, progress)
	}
	if n.Rows == 0 {
		if err := m.Each(ctx, dropTable, m.create(s, true)); err != nil {
			return err
		}
	}
	return m.Batches(ctx, n, batchRows, progress, func(s db.SQLSession, from, to uint64) error {
		return m.inserts.Add(ctx, s, from, to, func(values []db.Value, n uint64) []db.Value {
			key := f.newKey()
			f.putKey(key, f.place(n))
			return append(values, db.Value{Text: key}, db.Value{Text: f.appendValue(nil, n, 0, 0, f.size(n, 0))})
		})
	})
}

// bulk loads all records in one transaction. Where the table has its key from the
// beginning they come in the order of their keys, which makes its tree from left to
// right; else in that of their numbers, so that neighbours by key are none on the
// disk, as after a long life.
func (m *sqlModel) bulk(ctx context.Context, bulk db.BulkLoader, f *formula, records uint64, progress func(done uint64)) error {
	var after []string
	if m.Dialect.AddConstraint {
		after = []string{"ALTER TABLE " + table + " ADD " + primaryKey}
	}
	var places []uint64 // in order; nil: by number
	if !m.Dialect.AddConstraint && records <= sortRows {
		places = make([]uint64, records)
		for n := range records {
			places[n] = f.place(n)
		}
		slices.Sort(places)
	}
	key, value := f.newKey(), []byte(nil)
	return dataset.Bulk(ctx, bulk, db.BulkLoad{
		Before:  []string{dropTable, m.create(m.config.shape(), !m.Dialect.AddConstraint)},
		Table:   table,
		Columns: []string{keyColumn, valueColumn},
		Types:   []db.Type{db.Text, db.Text},
		After:   after,
	}, records, progress, func(n uint64, row []db.Value) {
		place := uint64(0)
		if places != nil {
			place = places[n]
			n = f.places.Backward(place)
		} else {
			place = f.place(n)
		}
		f.putKey(key, place)
		value = f.appendValue(value[:0], n, 0, 0, f.size(n, 0))
		row[0].Text, row[1].Text = key, value
	})
}

func (m *sqlModel) session(ctx context.Context, _ *formula) (session, error) {
	s, err := m.next(ctx)
	if err != nil {
		return nil, err
	}
	return &sqlSession{SQLSession: s, model: m, args: make([]db.Value, 0, 2)}, nil
}

func (m *sqlModel) endState(ctx context.Context, e *endRecords) error {
	return m.With(ctx, func(s db.SQLSession) error {
		return s.Query(ctx, m.all, nil, func(row []db.Value) error { return e.add(row[0].Text, row[1].Text) })
	})
}

package kv

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stroppy/internal/db"
	"stroppy/internal/history"
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
	m.read = d.Statement("SELECT "+valueColumn+" FROM "+table+" WHERE "+keyColumn+" = {text}", db.Text)
	m.update = d.Statement("UPDATE " + table + " SET " + valueColumn + " = {text} WHERE " + keyColumn + " = {text}")
	m.insert = d.Statement("INSERT INTO " + table + " (" + columns + ") VALUES ({text}, {text})")
	all := "SELECT " + columns + " FROM " + table
	m.scan = d.Statement(all+" WHERE "+keyColumn+" >= {text} ORDER BY "+keyColumn+" LIMIT {integer}", db.Text, db.Text)
	m.all = d.Statement(all, db.Text, db.Text)
	return m, nil
}

const (
	sortRows   = 1 << 24 // records that a bulk load puts into the order of their keys, 8 bytes each
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

// Fill implements dataset.Store. It clears away what an earlier load has left and makes
// the records. Where the table has its key from the
// beginning they come in the order of their keys, which makes its tree from left to
// right; else in that of their numbers, so that neighbours by key are none on the
// disk, as after a long life.
func (m *sqlModel) Fill(ctx context.Context, loaded dataset.Metadata, progress func(done uint64)) error {
	shape, records := m.config.shape(), loaded.Size
	f := newFormula(loaded.Seed, shape)
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
	return m.Bulk(ctx, db.BulkLoad{
		Before:  []string{dropTable, m.create(shape, !m.Dialect.AddConstraint)},
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

// sqlSession is a client's session of a SQL database. A transaction of one statement asks
// for nothing before its end, so that it takes one round trip.
type sqlSession struct {
	db.SQLSession
	model *sqlModel
	args  []db.Value
}

func (s *sqlSession) transact(ctx context.Context, c *client, tx *history.Transaction) error {
	if err := s.Begin(ctx, tx.Kind.ReadOnly()); err != nil {
		return err
	}
	op := &tx.Ops[0]
	if tx.Kind == history.Modify {
		if writes, err := s.beforeUpdate(ctx, c, tx); err != nil || !writes {
			return err
		}
	}
	result, err := s.last(ctx, c, tx)
	if err != nil {
		return err
	}
	if err := s.Commit(ctx); err != nil {
		return err
	}
	switch r := s.Result(result); {
	case tx.Kind == history.Get:
		s.take(c, op, result)
	case tx.Kind == history.Insert:
		absent(op)
	case tx.Kind == history.Scan:
		c.scanned.start(tx)
		for i := range r.Rows() {
			c.scanned.add(r.Row(i)[0].Text, r.Row(i)[1].Text)
		}
	case r == nil || r.Affected == 0: // an update of nothing
		reject(tx)
		absent(op)
	}
	return nil
}

// last adds the last statement of a transaction, which of all but one kind is the only
// one.
func (s *sqlSession) last(ctx context.Context, c *client, tx *history.Transaction) (result int, err error) {
	key := db.Value{Text: c.key}
	switch tx.Kind {
	case history.Get:
		return s.do(ctx, s.model.read, key)
	case history.Insert:
		return s.do(ctx, s.model.insert, key, db.Value{Text: c.newValue(tx)})
	case history.Scan:
		return s.do(ctx, s.model.scan, key, db.Value{Int: tx.Ops[0].Amount})
	}
	return s.do(ctx, s.model.update, db.Value{Text: c.newValue(tx)}, key)
}

// beforeUpdate reads the record that is then written, without a lock: whether another
// may write in between is for the isolation to say. Where there is no record it ends
// the transaction.
func (s *sqlSession) beforeUpdate(ctx context.Context, c *client, tx *history.Transaction) (writes bool, err error) {
	result, err := s.do(ctx, s.model.read, db.Value{Text: c.key})
	if err != nil {
		return false, err
	}
	if err := s.Flush(ctx); err != nil {
		return false, err
	}
	s.take(c, &tx.Ops[0], result)
	writes, err = mayWrite(tx)
	switch {
	case err != nil:
		err = errors.Join(s.Rollback(ctx), err)
	case !writes:
		err = s.Commit(ctx)
	}
	return writes, err
}

// do adds a statement to the transaction.
func (s *sqlSession) do(ctx context.Context, statement *db.Statement, args ...db.Value) (result int, err error) {
	s.args = append(s.args[:0], args...)
	return s.Do(ctx, statement, s.args)
}

// take notes what the statement that reads one record has brought.
func (s *sqlSession) take(c *client, op *history.Op, result int) {
	if r := s.Result(result); r != nil && r.Rows() > 0 {
		c.formula.observe(op, r.Row(0)[0].Text)
		return
	}
	absent(op)
}

func (s *sqlSession) look(ctx context.Context, c *client, op *history.Op) error {
	if err := s.Begin(ctx, true); err != nil {
		return err
	}
	result, err := s.do(ctx, s.model.read, db.Value{Text: c.key})
	if err != nil {
		return err
	}
	if err := s.Commit(ctx); err != nil {
		return err
	}
	s.take(c, op, result)
	return nil
}

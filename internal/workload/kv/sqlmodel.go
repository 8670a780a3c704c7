package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// The columns are named so that no dialect has to quote them.
const (
	table      = "stroppy_kv"
	primaryKey = "PRIMARY KEY (record_key)"
	// sortRows is the number of records that a load sorts by key, 8 bytes each.
	sortRows = 1 << 24
)

type sqlModel struct {
	*dataset.SQL
	config *Config
	next   func(context.Context) (db.SQLSession, error) // opens the next client's session

	read, update, insert, scan, all *db.Statement
}

var errNoProcedure = errors.New("this workload has no mode procedure, because its transactions have one or two statements: take pipelined or interactive")

func newSQLModel(database db.SQL, c *Config) (model, error) {
	if c.Mode == workload.Procedure {
		return nil, errNoProcedure
	}
	next, err := sessions(c, database, database.Session)
	if err != nil {
		return nil, err
	}
	if c.InFlight > 1 && c.Mode == workload.Interactive {
		return nil, fmt.Errorf("in-flight is %d, and mode interactive waits for each statement: take mode pipelined, or leave in-flight out", c.InFlight)
	}
	m := &sqlModel{SQL: dataset.NewSQL(kind, database, table), config: c, next: next}
	m.Tables = []string{table}
	m.Listings = []dataset.Listing{{
		Table: table, Columns: []string{"record_key", "record_value"}, Types: []db.Type{db.Text, db.Text}, Key: "record_key", Bytes: longest,
	}}
	d := m.Dialect
	m.read = d.Statement("SELECT record_value FROM stroppy_kv WHERE record_key = {text}", db.Text)
	m.update = d.Counted("UPDATE stroppy_kv SET record_value = {text} WHERE record_key = {text}")
	m.insert = d.Statement("INSERT INTO stroppy_kv (record_key, record_value) VALUES ({text}, {text})")
	m.all = d.Statement("SELECT record_key, record_value FROM stroppy_kv", db.Text, db.Text)
	m.scan = d.Statement(m.all.SQL+" WHERE record_key >= {text} ORDER BY record_key LIMIT {integer}", db.Text, db.Text)
	return m, nil
}

// Fill implements dataset.Store. It removes what an earlier load left, and makes the records. If the table has its
// key from the beginning, records come in the order of keys, which builds its tree from left to right. Otherwise they
// come in the order of numbers, so that neighbors by key are not neighbors on the disk, as after a long life.
func (m *sqlModel) Fill(ctx context.Context, loaded dataset.Metadata, progress func(done uint64)) error {
	shape, records := m.config.shape(), loaded.Size
	f := newFormula(loaded.Seed, records, shape)
	var after []string
	var places []uint64 // in order; nil: by number
	lines := []string{
		"record_key " + m.Dialect.TextType(int(shape.key)) + " NOT NULL",
		"record_value " + m.Dialect.TextType(int(shape.high)) + " NOT NULL",
	}
	if m.Dialect.AddConstraint {
		after = []string{"ALTER TABLE " + table + " ADD " + primaryKey}
	} else {
		lines = append(lines, primaryKey)
	}
	if after == nil && records <= sortRows {
		places = make([]uint64, records)
		for n := range records {
			places[n] = f.place(n)
		}
		slices.Sort(places)
	}
	key, value := f.newKey(), []byte(nil)
	return m.Bulk(ctx, db.BulkLoad{
		Before:  append(m.Drops(), m.Dialect.CreateTable(table, lines...)),
		Table:   table,
		Columns: []string{"record_key", "record_value"},
		Types:   []db.Type{db.Text, db.Text},
		After:   after,
	}, records, progress, func(n uint64, row []db.Value) {
		if places != nil {
			n = f.places.Backward(places[n])
		}
		f.putKey(key, f.place(n))
		value = f.appendValue(value[:0], n, 0, 0, f.size(n, 0))
		row[0].Text, row[1].Text = key, value
	})
}

func (m *sqlModel) session(ctx context.Context, c *client) (session, error) {
	s, err := m.next(ctx)
	return &sqlSession{SQLSession: s, model: m, client: c, args: make([]db.Value, 0, 2)}, err
}

func (m *sqlModel) endState(ctx context.Context, record func(key, value []byte) error) error {
	return m.With(ctx, func(s db.SQLSession) error {
		return s.Query(ctx, m.all, nil, func(row []db.Value) error { return record(row[0].Text, row[1].Text) })
	})
}

// sqlSession is a client's session of a SQL database. A transaction of one statement needs no result before its end,
// so it takes one round trip.
type sqlSession struct {
	db.SQLSession
	model  *sqlModel
	client *client
	args   []db.Value
}

// Blocks implements db.Blocker.
func (s *sqlSession) Blocks() bool { return db.Blocks(s.SQLSession) }

func (s *sqlSession) transact(ctx context.Context, tx *history.Transaction) error {
	if err := s.Begin(ctx, tx.Kind.ReadOnly()); err != nil {
		return err
	}
	if tx.Kind == modify {
		if writes, err := s.beforeUpdate(ctx, tx); err != nil || !writes {
			return err
		}
	}
	var result int
	var err error
	c, op, key := s.client, &tx.Ops[0], db.Value{Text: s.client.key}
	switch tx.Kind {
	case get:
		result, err = s.do(ctx, s.model.read, key)
	case insert:
		result, err = s.do(ctx, s.model.insert, key, db.Value{Text: c.newValue(tx)})
	case scan:
		result, err = s.do(ctx, s.model.scan, key, db.Value{Int: int64(tx.Limit)})
	default:
		result, err = s.do(ctx, s.model.update, db.Value{Text: c.newValue(tx)}, key)
	}
	if err == nil {
		err = s.Commit(ctx)
	}
	if err != nil {
		return err
	}
	switch r := s.Result(result); {
	case tx.Kind == get:
		s.take(op, r)
	case tx.Kind == scan:
		c.beginScan(tx)
		for i := range r.Rows() {
			c.scanned(r.Row(i)[0].Text, r.Row(i)[1].Text)
		}
	case tx.Kind == insert:
		c.observe(op, false, nil)
	case r == nil || r.Affected == 0: // an update of nothing
		tx.Outcome, tx.Reason = history.Rejected, noSuchRecord
		c.observe(op, false, nil)
	}
	return nil
}

// beforeUpdate reads the record that is written next, without a lock: the isolation decides whether another
// transaction may write in between. If there is no record, it ends the transaction.
func (s *sqlSession) beforeUpdate(ctx context.Context, tx *history.Transaction) (writes bool, err error) {
	result, err := s.do(ctx, s.model.read, db.Value{Text: s.client.key})
	if err == nil {
		err = s.Flush(ctx)
	}
	if err != nil {
		return false, err
	}
	s.take(&tx.Ops[0], s.Result(result))
	writes, err = mayWrite(tx)
	switch {
	case err != nil:
		err = cmp.Or(s.Rollback(ctx), err)
	case !writes:
		err = s.Commit(ctx)
	}
	return writes, err
}

func (s *sqlSession) do(ctx context.Context, statement *db.Statement, args ...db.Value) (result int, err error) {
	s.args = append(s.args[:0], args...)
	return s.Do(ctx, statement, s.args)
}

// take records the result of the statement that reads one record.
func (s *sqlSession) take(op *history.Op, r *db.Result) {
	if r != nil && r.Rows() > 0 {
		s.client.observe(op, true, r.Row(0)[0].Text)
		return
	}
	s.client.observe(op, false, nil)
}

package kv

import (
	"context"
	"errors"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// procedureModel is the workload on a database of procedures alone. All of these but the
// scan run in the one partition of their record.
type procedureModel struct {
	*dataset.Procedures
	config *Config
	next   func(context.Context) (db.ProcedureSession, error) // opens the next client's session

	read, update, replace, insert, scan *db.Procedure
}

func newProcedureModel(database db.ProcedureStore, c *Config) (model, error) {
	const update = "UPDATE stroppy_kv SET record_value = ? WHERE record_key = ?"
	m := &procedureModel{config: c}
	one := func(name, parameter, body string, columns []db.Type, params int) *db.Procedure {
		return workload.NewProcedure(table+"_"+name, texts(params), columns, table+" COLUMN record_key"+parameter, body)
	}
	m.read = one("read", "", "SELECT record_value FROM stroppy_kv WHERE record_key = ?", texts(1), 1)
	m.insert = one("insert", "", "INSERT INTO stroppy_kv (record_key, record_value) VALUES (?, ?)", nil, 2)
	m.update = one("update", " PARAMETER 1", update, nil, 2)
	m.replace = one("replace", " PARAMETER 1", update+" AND record_value = ?", nil, 3)
	m.scan = workload.NewProcedure(table+"_scan", []db.Type{db.Text, db.Integer}, texts(2), "",
		"SELECT record_key, record_value FROM stroppy_kv WHERE record_key >= ? ORDER BY record_key LIMIT ?")
	var err error
	m.Procedures, err = dataset.NewProcedures(kind, database, &c.Mode, []dataset.ProcedureTable{{
		Name: table, Columns: "record_key VARCHAR(1024 BYTES) NOT NULL, record_value VARCHAR(1048576 BYTES) NOT NULL, " + primaryKey, Key: "record_key",
	}}, []*db.Procedure{m.read, m.update, m.replace, m.insert, m.scan})
	if err == nil {
		m.next, err = sessions(c, database, database.ProcedureSession)
	}
	return m, err
}

// texts are so many columns or parameters.
func texts(n int) []db.Type { return []db.Type{db.Text, db.Text, db.Text}[:n] }

// Fill implements dataset.Store.
func (m *procedureModel) Fill(ctx context.Context, loaded dataset.Metadata, progress func(done uint64)) error {
	f := newFormula(loaded.Seed, loaded.Size, m.config.shape())
	return m.Insert(ctx, m.insert, loaded.Size, progress, func(n uint64, args []db.Value) {
		if args[0].Text == nil {
			args[0].Text = f.newKey()
		}
		f.putKey(args[0].Text, f.place(n))
		args[1].Text = f.appendValue(args[1].Text[:0], n, 0, 0, f.size(n, 0))
	})
}

func (m *procedureModel) session(ctx context.Context, c *client) (session, error) {
	s, err := m.next(ctx)
	return &procedureSession{ProcedureSession: s, model: m, client: c}, err
}

func (m *procedureModel) endState(ctx context.Context, record func(key, value []byte) error) error {
	rows := dataset.RowsOf(int(m.config.KeySize + m.config.ValueHigh))
	return m.Download(ctx, table, []string{"record_key", "record_value"}, texts(1), rows, func(row []db.Value) error { return record(row[0].Text, row[1].Text) })
}

// procedureSession is a client's session.
type procedureSession struct {
	db.ProcedureSession
	model  *procedureModel
	client *client

	args [3]db.Value
	was  []byte // the value that a transaction replaces
}

// errReplaced says that another client has written a record between the two calls of a
// read-modify-write. The second is refused then, as an optimistic transaction is.
var errReplaced = &db.Error{Class: db.Aborted, Op: "replace a value by another", Err: errors.New("another client has replaced it since it was read")}

func (s *procedureSession) transact(ctx context.Context, tx *history.Transaction) error {
	c, op := s.client, &tx.Ops[0]
	switch tx.Kind {
	case get:
		_, err := s.observe(ctx, op)
		return err
	case scan:
		r, err := s.call(ctx, s.model.scan, db.Value{Text: c.key}, db.Value{Int: int64(tx.Limit)})
		if err != nil {
			return err
		}
		c.beginScan(tx)
		for i := range r.Rows() {
			c.scanned(r.Row(i)[0].Text, r.Row(i)[1].Text)
		}
		return nil
	case insert:
		_, err := s.call(ctx, s.model.insert, db.Value{Text: c.key}, db.Value{Text: c.newValue(tx)})
		if err == nil {
			c.observe(op, false, nil)
		}
		return err
	case modify:
		return s.modify(ctx, tx)
	}
	r, err := s.call(ctx, s.model.update, db.Value{Text: c.newValue(tx)}, db.Value{Text: c.key})
	if err == nil && r.Affected == 0 { // an update of nothing
		tx.Outcome, tx.Reason = history.Rejected, noSuchRecord
		c.observe(op, false, nil)
	}
	return err
}

// modify reads a record in one call, and replaces what it has read in another one.
func (s *procedureSession) modify(ctx context.Context, tx *history.Transaction) error {
	value, err := s.observe(ctx, &tx.Ops[0])
	if err != nil {
		return err
	}
	if writes, err := mayWrite(tx); err != nil || !writes {
		return err
	}
	s.was = append(s.was[:0], value...)
	r, err := s.call(ctx, s.model.replace, db.Value{Text: s.client.newValue(tx)}, db.Value{Text: s.client.key}, db.Value{Text: s.was})
	if err == nil && r.Affected == 0 {
		err = errReplaced
	}
	return err
}

func (s *procedureSession) call(ctx context.Context, p *db.Procedure, args ...db.Value) (*db.Result, error) {
	return s.Call(ctx, p, s.args[:copy(s.args[:], args)])
}

// observe reads the client's record.
func (s *procedureSession) observe(ctx context.Context, op *history.Op) (value []byte, err error) {
	r, err := s.call(ctx, s.model.read, db.Value{Text: s.client.key})
	if err != nil {
		return nil, err
	}
	found := r.Rows() > 0
	if found {
		value = r.Row(0)[0].Text
	}
	s.client.observe(op, found, value)
	return value, nil
}

package kv

import (
	"cmp"
	"context"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// recordModel is the workload on a database of records. The key is the id of the record.
type recordModel struct {
	*dataset.Records
	records *db.Collection
	replace *db.Update                                      // of a value
	next    func(context.Context) (db.RecordSession, error) // opens the next client's session
}

// loadBytes bounds the bytes that one transaction of a load inserts, unless the database does.
const loadBytes = 4 << 20

func newRecordModel(database db.Records, c *Config) (model, error) {
	c.Mode = workload.RecordMode(database.Limits(), c.Mode)
	next, err := sessions(c, database, database.RecordSession)
	if err != nil {
		return nil, err
	}
	m := &recordModel{next: next, records: &db.Collection{Name: table, ID: db.Text, Length: int(c.KeySize), Fields: []db.Field{{Name: "record_value", Type: db.Text}}}}
	m.replace = &db.Update{Collection: m.records, Set: []int{1}}
	f := newFormula(c.Seed, c.Records, c.shape())
	most := cmp.Or(uint64(database.Limits().Commit), loadBytes)
	m.Records, err = dataset.NewRecords(kind, database, dataset.Contents{
		Collections: []*db.Collection{m.records}, Things: []*db.Collection{m.records},
		Batch: int(max(most/(c.KeySize+c.ValueHigh+entryBytes), 1)),
		Put: func(ctx context.Context, s db.RecordSession, _ dataset.Metadata, from, to uint64) error {
			records := make([][]db.Value, 0, to-from)
			for n := from; n < to; n++ {
				key := f.newKey()
				f.putKey(key, f.place(n))
				records = append(records, []db.Value{{Text: key}, {Text: f.appendValue(nil, n, 0, 0, f.size(n, 0))}})
			}
			return s.Insert(ctx, m.records, records...)
		},
		Rehearse: m.rehearse,
	})
	return m, err
}

// rehearse carries out a transaction of each kind.
func (m *recordModel) rehearse(ctx context.Context, s db.RecordSession) error {
	key, value := []db.Value{{Text: []byte{}}}, []db.Value{{Text: []byte{}}}
	found, record := make([]db.Record, 1), append(key, value...)
	read := func() error { return s.Find(ctx, m.records, key, found) }
	write := func() error { return s.Insert(ctx, m.records, record) }
	for _, steps := range [][]func() error{
		{read}, {write}, {read, write},
		{func() error { return s.Scan(ctx, m.records, key[0], 1, func([]db.Value) error { return nil }) }},
		{func() error { _, err := s.Update(ctx, m.replace, key, value); return err }},
	} {
		err := s.Begin(ctx, false)
		for _, step := range steps {
			if err == nil {
				err = step()
			}
		}
		if err := cmp.Or(err, s.Commit(ctx)); err != nil {
			return err
		}
	}
	return nil
}

func (m *recordModel) session(ctx context.Context, c *client) (session, error) {
	s, err := m.next(ctx)
	return &recordSession{RecordSession: s, model: m, client: c, record: func(record []db.Value) error {
		c.scanned(record[db.ID].Text, record[1].Text)
		return nil
	}}, err
}

func (m *recordModel) endState(ctx context.Context, record func(key, value []byte) error) error {
	return m.With(ctx, func(s db.RecordSession) error {
		return s.Scan(ctx, m.records, db.Value{Null: true}, 0, func(values []db.Value) error {
			return record(values[db.ID].Text, values[1].Text)
		})
	})
}

// recordSession is a client's session of a database of records.
type recordSession struct {
	db.RecordSession
	model  *recordModel
	client *client

	id     [1]db.Value
	args   [2]db.Value
	entry  [1][]db.Value // the record to insert
	found  [1]db.Record
	record func(record []db.Value) error // takes a record of a scan
}

func (s *recordSession) transact(ctx context.Context, tx *history.Transaction) error {
	if err := s.Begin(ctx, tx.Kind.ReadOnly()); err != nil {
		return err
	}
	c, op := s.client, &tx.Ops[0]
	s.id[0].Text = c.key
	var err error
	switch tx.Kind {
	case get:
		err = s.observe(ctx, op)
	case scan:
		c.beginScan(tx)
		err = s.Scan(ctx, s.model.records, s.id[0], int(tx.Limit), s.record)
	case insert:
		s.args = [...]db.Value{{Text: c.key}, {Text: c.newValue(tx)}}
		s.entry[0] = s.args[:]
		err = s.Insert(ctx, s.model.records, s.entry[:]...)
	default:
		var there bool
		there, err = s.update(ctx, tx)
		if err == nil && !there {
			tx.Outcome, tx.Reason = history.Rejected, noSuchRecord
			c.observe(op, false, nil)
		}
	}
	if err == nil {
		err = s.Commit(ctx)
	}
	if db.ConstraintOf(err) == db.ForeignKey { // the commit found no record to update
		tx.Outcome, tx.Reason, err = history.Rejected, noSuchRecord, nil
		c.observe(op, false, nil)
	}
	if err == nil && tx.Kind == insert {
		c.observe(op, false, nil)
	}
	return err
}

// update replaces the value of the client's record. A read-modify-write reads the value before. update returns false if
// there is no record.
func (s *recordSession) update(ctx context.Context, tx *history.Transaction) (there bool, err error) {
	if tx.Kind == modify {
		if err := s.observe(ctx, &tx.Ops[0]); err != nil {
			return false, err
		}
		if writes, err := mayWrite(tx); err != nil || !writes {
			if err != nil {
				err = cmp.Or(s.Rollback(ctx), err)
			}
			return false, err
		}
	}
	s.args[0] = db.Value{Text: s.client.newValue(tx)}
	n, err := s.Update(ctx, s.model.replace, s.id[:], s.args[:1])
	return n > 0, err
}

// observe reads the client's record.
func (s *recordSession) observe(ctx context.Context, op *history.Op) error {
	err := s.Find(ctx, s.model.records, s.id[:], s.found[:])
	if err != nil {
		return err
	}
	var value []byte
	if s.found[0].Found {
		value = s.found[0].Values[1].Text
	}
	s.client.observe(op, s.found[0].Found, value)
	return nil
}

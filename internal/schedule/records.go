package schedule

import (
	"context"
	"errors"

	"stroppy/internal/db"
)

// recordTable is the table in the model of records: a row is a record. Records
// cannot be deleted in this model, so every schedule has records of its own, whose ids
// begin after number. A predicate is read by a scan of the records in the transaction.
type recordTable struct {
	base[db.RecordSession]
	database   db.Records
	collection *db.Collection
	set, add   *db.Update
	number     int64
	made       bool
}

// NewRecords returns the table in a database of the model of records.
func NewRecords(database db.Records) Table {
	c := &db.Collection{Name: tableName, ID: db.Integer, Fields: []db.Field{{Name: "amount", Type: db.Integer}}}
	t := &recordTable{
		database: database, collection: c,
		set: &db.Update{Collection: c, Set: []int{1}}, add: &db.Update{Collection: c, Add: []int{1}},
	}
	t.base = base[db.RecordSession]{
		open: database.RecordSession, rows: t.scan, client: func(s db.RecordSession) Client { return &recordClient{s, t} },
	}
	return t
}

func (*recordTable) Refuses(s *Schedule) string {
	for _, step := range s.Steps {
		switch step.Kind {
		case AddAll, AddWhere, DeleteWhere:
			return "records are changed by their ids here, not by a predicate"
		case Delete:
			return "records are not deleted here"
		}
	}
	if s.locking() {
		return "no read of records locks here"
	}
	if s.Index {
		return "records are found by their ids here; see the variant without an index"
	}
	return ""
}

func (t *recordTable) Fill(ctx context.Context, rows []Row, _ bool) error {
	if !t.made {
		if err := errors.Join(t.database.Drop(ctx, t.collection), t.database.Create(ctx, t.collection)); err != nil {
			return err
		}
		t.made = true
	}
	t.number += lastID
	var records [][]db.Value
	for _, r := range rows {
		records = append(records, integers(t.number+r.ID, r.Amount))
	}
	return t.with(ctx, func(s db.RecordSession) error {
		err := s.Begin(ctx, false)
		if err == nil {
			err = s.Insert(ctx, t.collection, records...)
		}
		if err == nil {
			err = s.Commit(ctx)
		}
		return err
	})
}

// scan returns the rows that a session finds in a transaction.
func (t *recordTable) scan(ctx context.Context, s db.RecordSession) ([]Row, error) {
	c := recordClient{s, t}
	if err := c.Begin(ctx, true); err != nil {
		return nil, err
	}
	rows, err := c.all(ctx)
	if err == nil {
		err = c.Commit(ctx)
	}
	return rows, err
}

func (t *recordTable) Replica(database db.Database) (Table, error) {
	d, ok := database.(db.Records)
	if !ok {
		return newReplica(&t.base, nil, false)
	}
	return newReplica(&t.base, d.RecordSession, true)
}

func (t *recordTable) Remove(ctx context.Context) error {
	err := t.close()
	if t.made {
		t.made = false
		err = errors.Join(err, t.database.Drop(ctx, t.collection))
	}
	return err
}

// recordClient is a session on a recordTable.
type recordClient struct {
	db.RecordSession
	of *recordTable
}

func (c *recordClient) all(ctx context.Context) (rows []Row, err error) {
	err = c.Scan(ctx, c.of.collection, db.Value{Int: c.of.number + 1}, lastID, func(v []db.Value) error {
		if id := v[db.ID].Int - c.of.number; id <= lastID {
			rows = append(rows, Row{id, v[1].Int})
		}
		return nil
	})
	return rows, err
}

func (c *recordClient) Do(ctx context.Context, o Operation) (r Result, err error) {
	switch o.Kind {
	case Read:
		r.Rows, err = c.read(ctx, o.IDs)
		return r, err
	case Write, Add:
		update := c.of.set
		if o.Kind == Add {
			update = c.of.add
		}
		found, err := c.Update(ctx, update, integers(c.of.number+o.IDs[0]), integers(o.Amount))
		return affected(found), err
	case Insert:
		return r, c.Insert(ctx, c.of.collection, integers(c.of.number+o.IDs[0], o.Amount))
	}
	rows, err := c.all(ctx)
	return Result{Rows: o.among(rows)}, err
}

func (c *recordClient) read(ctx context.Context, ids []int64) (rows []Row, err error) {
	var own []int64
	for _, id := range ids {
		own = append(own, c.of.number+id)
	}
	found := make([]db.Record, len(ids))
	if err := c.Find(ctx, c.of.collection, integers(own...), found); err != nil {
		return nil, err
	}
	for i, d := range found {
		if d.Found {
			rows = append(rows, Row{ids[i], d.Values[1].Int})
		}
	}
	return rows, nil
}

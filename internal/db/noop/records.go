package noop

import (
	"context"

	"stroppy/internal/db"
)

// Exists implements db.Records.
func (*Database) Exists(context.Context, *db.Collection) (bool, error) { return false, nil }

// Create implements db.Records.
func (*Database) Create(context.Context, *db.Collection) error { return nil }

// Drop implements db.Records.
func (*Database) Drop(context.Context, *db.Collection) error { return nil }

// RecordSession opens a session; there is no end to how many.
func (*Database) RecordSession(_ context.Context, options db.SessionOptions) (db.RecordSession, error) {
	if _, err := isolations.Name(options.Isolation); err != nil {
		return nil, err
	}
	return &recordSession{}, nil
}

// recordSession finds each record of a collection whose first field transactions add to: that
// field holds a large positive number and the others zero.
type recordSession struct {
	of    *db.Collection // the collection of the record
	found db.Record
	_     [64]byte // no two sessions on one cache line
}

// record returns what is found of a collection.
func (s *recordSession) record(c *db.Collection) db.Record {
	if s.of != c {
		s.of, s.found = c, db.Record{}
		if len(c.Fields) > 0 && c.Fields[0].Additive {
			s.found = db.Record{Found: true, Values: make([]db.Value, c.Width())}
			s.found.Values[1].Int = plenty
		}
	}
	return s.found
}

func (*recordSession) Begin(context.Context, bool) error { return nil }
func (*recordSession) Reserve(*db.Collection, db.Value)  {}
func (*recordSession) Commit(context.Context) error      { return nil }
func (*recordSession) Rollback(context.Context) error    { return nil }
func (*recordSession) Reset(context.Context) error       { return nil }
func (*recordSession) Close() error                      { return nil }

// Find implements db.RecordSession.
func (s *recordSession) Find(_ context.Context, c *db.Collection, ids []db.Value, out []db.Record) error {
	if len(out) < len(ids) {
		return db.Fatalf("find", "%d ids and room for %d records", len(ids), len(out))
	}
	for i := range ids {
		out[i] = s.record(c)
	}
	return nil
}

// Insert keeps nothing.
func (*recordSession) Insert(context.Context, *db.Collection, ...[]db.Value) error { return nil }

// Update finds all records and changes none.
func (*recordSession) Update(_ context.Context, _ *db.Update, ids, _ []db.Value) (int, error) {
	return len(ids), nil
}

// FindAndUpdate implements db.RecordSession.
func (s *recordSession) FindAndUpdate(_ context.Context, u *db.Update, _ db.Value, _ []db.Value) (db.Record, error) {
	return s.record(u.Collection), nil
}

// Scan finds nothing, because nothing is kept.
func (*recordSession) Scan(context.Context, *db.Collection, db.Value, int, func([]db.Value) error) error {
	return nil
}

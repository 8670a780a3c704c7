package mongodb

import (
	"bytes"
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
)

// session is a db.RecordSession over one session of the library. The server drops an open transaction of a session
// when a later one begins. So a lost commit does not lock its documents for a minute. Commands use any free
// connection of the library's pool.
type session struct {
	optimistic.State
	db      *Database
	library *mongo.Session
	outside bool // the transaction only reads, and is not a transaction of the server

	ctx    context.Context // of the open transaction, with its time-out and the library's session
	cancel context.CancelFunc

	command command
	values  []db.Value // returned by Find and FindAndUpdate since Begin
	row     []db.Value // passed on by Scan
}

// RecordRangeSession implements db.RecordRanger.
func (d *Database) RecordRangeSession(ctx context.Context, o db.SessionOptions) (db.RecordRangeSession, error) {
	s, err := d.RecordSession(ctx, o)
	if err != nil {
		return nil, err
	}
	return s.(*session), nil
}

// RecordSession implements db.Records. It ignores options.Mode, because every command waits for its answer.
func (d *Database) RecordSession(_ context.Context, o db.SessionOptions) (db.RecordSession, error) {
	name, err := Isolations.Name(o.Isolation)
	if err != nil {
		return nil, err
	}
	if o.Isolation == "" {
		name = d.config.readConcern
	}
	library, err := d.client.StartSession(d.config.sessionOptions(name))
	if err != nil {
		return nil, d.failure("open a session", err, before)
	}
	return &session{db: d, library: library}, nil
}

// errNone is one value because it is frequent.
var errNone = db.Fatalf("use the session", "no transaction is open: begin one first")

// Begin starts a transaction without sending anything. With readPreference=secondary a read-only transaction is not
// one of the server's, because no transaction can read from a secondary.
func (s *session) Begin(ctx context.Context, readOnly bool) error {
	if err := s.Start(ctx, readOnly); err != nil {
		return err
	}
	s.values = s.values[:0]
	s.outside = readOnly && s.db.config.secondary
	if !s.outside {
		if err := s.library.StartTransaction(); err != nil {
			s.Open = false
			return db.Fatalf("begin", "%w", err)
		}
	}
	s.begin(ctx)
	return nil
}

// begin makes the context of the transaction's commands. They share one time-out, except the commit, because a
// time-out per command would cost more than the command.
func (s *session) begin(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, s.db.config.timeout)
	s.ctx, s.cancel = mongo.NewSessionContext(limited, s.library), cancel
}

// ready returns an error if no transaction is open.
func (s *session) ready() error {
	if err := s.Usable(); err != nil || s.Open {
		return err
	}
	return errNone
}

// run sends the built command in the open transaction and returns the answer.
func (s *session) run(op string) ([]byte, error) {
	var answer bson.Raw
	var err error
	if s.outside {
		answer, err = s.db.data.RunCommand(s.ctx, &s.command, s.db.outsideOptions).Raw()
	} else {
		answer, err = s.db.data.RunCommand(s.ctx, &s.command).Raw()
	}
	if err != nil {
		return nil, s.lose(s.db.failure(op, err, before))
	}
	return answer, nil
}

// lose ends the transaction because of e, and the session if it must be Reset.
func (s *session) lose(e *db.Error) error {
	s.abort()
	return s.Lose(e)
}

// abort gives up the open transaction. It notifies the server, within its own time-out, because the server would keep
// its documents locked.
func (s *session) abort() {
	if !s.Open {
		return
	}
	s.Open = false
	s.cancel()
	if s.outside {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), min(abortTimeout, s.db.config.timeout))
	defer cancel()
	_ = s.library.AbortTransaction(ctx) // a server that does not receive it gives up by itself
}

// Reserve implements db.RecordSession. It does nothing, because the server looks for an id when it inserts.
func (*session) Reserve(*db.Collection, db.Value) {}

// Find implements db.RecordSession.
func (s *session) Find(_ context.Context, c *db.Collection, ids []db.Value, out []db.Record) error {
	if err := s.ready(); err != nil {
		return err
	}
	const op = "find documents"
	s.command.find(c, ids)
	if s.outside { // the library completes only the first command of a transaction
		s.command.concerned(s.db.config.concern(), s.library.OperationTime())
	}
	answer, err := s.run(op)
	if err != nil {
		return err
	}
	cursor := documentOf(answer, "cursor")
	if numberAt(cursor, "id") != 0 {
		return s.lose(db.Fatalf(op, "%d documents are more than one answer holds: ask for fewer", len(ids)))
	}
	for i := range out {
		out[i] = db.Record{}
	}
	err = each(documentOf(cursor, "firstBatch"), func(_ []byte, _ bsoncore.Type, raw []byte) error {
		values, err := s.take(c, raw)
		if err != nil {
			return err
		}
		for i := range ids {
			if ids[i].Int == values[db.ID].Int && bytes.Equal(ids[i].Text, values[db.ID].Text) {
				out[i] = db.Record{Found: true, Values: values}
			}
		}
		return nil
	})
	if err != nil {
		return s.lose(db.Fatalf(op, "%w", err))
	}
	return nil
}

// take decodes a document, whose values are valid until the next Begin. When the list of values grows, earlier values
// stay valid.
func (s *session) take(c *db.Collection, raw []byte) ([]db.Value, error) {
	start := len(s.values)
	values, err := decode(s.values, c, raw)
	if err != nil {
		return nil, err
	}
	s.values = values
	return values[start:len(values):len(values)], nil
}

// Insert implements db.RecordSession.
func (s *session) Insert(_ context.Context, c *db.Collection, documents ...[]db.Value) error {
	if err := s.ready(); err != nil {
		return err
	}
	if err := s.command.insert(c, documents); err != nil {
		return s.lose(db.Fatalf("insert into "+c.Name, "%w", err))
	}
	_, err := s.run("insert")
	return err
}

// Update implements db.RecordSession.
func (s *session) Update(_ context.Context, u *db.Update, ids, args []db.Value) (int, error) {
	if err := s.ready(); err != nil {
		return 0, err
	}
	if len(args) != len(ids)*u.Arguments() {
		return 0, s.lose(db.Fatalf("update "+u.Collection.Name, "%d documents and %d arguments", len(ids), len(args)))
	}
	s.command.update(u, ids, args)
	answer, err := s.run("update")
	return int(numberAt(answer, "n")), err
}

// FindAndUpdate implements db.RecordSession.
func (s *session) FindAndUpdate(_ context.Context, u *db.Update, id db.Value, args []db.Value) (before db.Record, err error) {
	if err := s.ready(); err != nil {
		return before, err
	}
	if len(args) != u.Arguments() {
		return before, s.lose(db.Fatalf("update "+u.Collection.Name, "%d arguments", len(args)))
	}
	s.command.findAndUpdate(u, id, args)
	answer, err := s.run("find and update")
	if err != nil {
		return before, err
	}
	raw := documentOf(answer, "value")
	if raw == nil {
		return before, nil
	}
	if before.Values, err = s.take(u.Collection, raw); err != nil {
		return db.Record{}, s.lose(db.Fatalf("update "+u.Collection.Name, "%w", err))
	}
	before.Found = true
	return before, nil
}

// Commit implements db.RecordSession. Until its time-out the library repeats a commit whose answer was lost, always
// with write concern majority, by its specification (https://github.com/mongodb/specifications, transactions). If the
// outcome is not known then, it is Unknown.
func (s *session) Commit(ctx context.Context) error {
	if err := s.ready(); err != nil {
		return err
	}
	s.Open = false
	s.cancel()
	if s.outside {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, s.db.config.timeout)
	defer cancel()
	err := s.library.CommitTransaction(limited)
	if err == nil {
		return nil
	}
	e := s.db.failure("commit", err, committing)
	if s.ReadOnly && e.Class == db.Unknown {
		e = s.db.failure("commit", err, before) // there was nothing to apply
	}
	// After a time-out the library still regards the transaction as open. An abort could arrive before the commit at
	// one shard and after it at another, so none is sent. An expired context ends the transaction only in the
	// library.
	ended, cancel := context.WithTimeout(context.Background(), -1)
	defer cancel()
	_ = s.library.AbortTransaction(ended)
	return s.Lose(e)
}

// Rollback implements db.RecordSession.
func (s *session) Rollback(context.Context) error {
	s.abort()
	return nil
}

// Delete implements db.RecordRangeSession.
func (s *session) Delete(_ context.Context, c *db.Collection, ids []db.Value) (int, error) {
	if err := s.ready(); err != nil {
		return 0, err
	}
	s.command.delete(c, ids)
	answer, err := s.run("delete")
	return int(numberAt(answer, "n")), err
}

// Range implements db.RecordRangeSession.
func (s *session) Range(ctx context.Context, c *db.Collection, r db.RecordRange, document func([]db.Value) error) error {
	if err := s.ready(); err != nil {
		return err
	}
	s.command.filter(c, r)
	return s.scan(ctx, c, 0, document)
}

// Scan implements db.RecordSession.
func (s *session) Scan(ctx context.Context, c *db.Collection, from db.Value, limit int, document func([]db.Value) error) error {
	if err := s.Usable(); err != nil {
		return err
	}
	s.command.filter(c, db.RecordRange{From: from, To: db.Value{Null: true}})
	return s.scan(ctx, c, limit, document)
}

// scan reads the documents that meet the condition that was built.
func (s *session) scan(ctx context.Context, c *db.Collection, limit int, document func([]db.Value) error) error {
	op := "read " + c.Name
	limited, cancel := context.WithTimeout(ctx, scanFactor*s.db.config.timeout)
	defer cancel()
	collection := s.db.scanned
	switch {
	case s.Open && s.outside:
		collection = s.db.outside
	case s.Open:
		collection = s.db.data
	}
	find := options.Find().SetSort(sortByID).SetLimit(int64(limit))
	if limit > 0 {
		find.SetBatchSize(int32(limit) + 1) // the server closes the cursor with its first answer
	}
	cursor, err := collection.Collection(c.Name).Find(mongo.NewSessionContext(limited, s.library), &s.command, find)
	if err != nil {
		return s.lose(s.db.failure(op, err, before))
	}
	var stopped error
	for stopped == nil && cursor.Next(limited) {
		if s.row, stopped = decode(s.row[:0], c, cursor.Current); stopped == nil {
			stopped = document(s.row)
		} else {
			stopped = db.Fatalf(op, "%w", stopped)
		}
	}
	err = cursor.Err()
	if closed := cursor.Close(limited); err == nil && stopped == nil {
		err = closed
	}
	switch {
	case stopped != nil:
		s.abort()
		return stopped
	case err != nil:
		return s.lose(s.db.failure(op, err, before))
	}
	return nil
}

// Reset implements db.RecordSession. It verifies that a server can be asked.
func (s *session) Reset(ctx context.Context) error {
	if s.Closed {
		return s.Usable()
	}
	s.abort()
	s.Broken = true
	limited, cancel := context.WithTimeout(ctx, s.db.config.timeout)
	defer cancel()
	if err := s.db.client.Ping(limited, s.db.preference()); err != nil {
		return s.db.failure("reset the session", err, before)
	}
	s.Broken = false
	return nil
}

// Close implements db.RecordSession.
func (s *session) Close() error {
	s.abort()
	if !s.Closed {
		s.Closed = true
		s.library.EndSession(context.Background())
	}
	return nil
}

//go:build fdb

package foundationdb

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/apple/foundationdb/bindings/go/src/fdb"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
)

// session is a db.KVSession: one transaction of the library, which is used again and again. Its reads have one read
// version, which the cluster gives with the first read. Each read adds the key to the read conflict ranges. A
// transaction that only reads conflicts with nothing and uses snapshot reads.
type session struct {
	optimistic.Session
	db       *Database
	client   fdb.Database
	tr       fdb.Transaction
	snapshot bool // the isolation is snapshot reads
	used     bool // the transaction must be reset before the next Begin
	failed   int  // the error that onError waits for before the next transaction; 0: none
	writes   int
	delta    [8]byte // of an Add, on its way to the library

	// The end of a context cancels the library's transaction. Watching costs an allocation and a lock, so the session
	// watches a context once if it is used several times in a row.
	watched <-chan struct{}
	release func() bool // ends watching; false: it has ended the transaction

	key   keyRef
	reads []fdb.FutureByteSlice
}

// keyRef is a key as the binding takes it, without an allocation for each.
type keyRef struct{ fdb.Key }

// KVSession implements db.KV.
func (d *Database) KVSession(ctx context.Context, options db.SessionOptions) (db.KVSession, error) {
	return d.AddSession(ctx, options)
}

// AddSession implements db.Adder. FoundationDB ignores options.Mode.
func (d *Database) AddSession(_ context.Context, options db.SessionOptions) (db.AddSession, error) {
	name, err := isolations.Name(options.Isolation)
	if err != nil {
		return nil, err
	}
	client, err := d.pick()
	if err != nil {
		return nil, err
	}
	s := &session{db: d, client: client, snapshot: name == snapshotReads}
	if err := s.renew(); err != nil {
		return nil, err
	}
	return s, nil
}

// renew gives the session a new transaction.
func (s *session) renew() (err error) {
	s.used, s.failed, s.writes = false, 0, 0
	if s.tr, err = s.client.CreateTransaction(); err != nil {
		e, _ := failure("create a transaction", numberOf(err), said(err), optimistic.Reading)
		return s.Lose(e)
	}
	return s.prepare()
}

// prepare makes a new or reset transaction read from the cluster alone, without its own writes.
func (s *session) prepare() error {
	if err := s.tr.Options().SetReadYourWritesDisable(); err != nil {
		e, _ := failure("begin", numberOf(err), said(err), optimistic.Reading)
		return s.Lose(e)
	}
	return nil
}

// Begin starts a transaction without sending anything. After a failed transaction it waits as long as the library's
// onError does.
func (s *session) Begin(ctx context.Context, readOnly bool) error {
	if err := s.Start(ctx, readOnly); err != nil {
		return err
	}
	if err := s.watch(ctx); err != nil {
		if err = s.renew(); err != nil {
			return err
		}
		_ = s.watch(ctx) // nothing is watched now
	}
	if !s.used {
		return nil
	}
	if s.failed == 0 || s.tr.OnError(fdb.Error{Code: s.failed}).Get() != nil {
		s.tr.Reset()
	}
	s.used, s.failed, s.writes = false, 0, 0
	if err := ctx.Err(); err != nil { // while onError waited
		s.Open = false
		return optimistic.Cancelled("begin", err)
	}
	return s.prepare()
}

// errEnded is the error of a transaction that the end of an earlier call's context has cancelled.
var errEnded = errors.New("the context of an earlier call has ended")

// watch cancels the transaction when ctx ends. It no longer watches the context before.
func (s *session) watch(ctx context.Context) error {
	done := ctx.Done()
	if done == s.watched {
		return nil
	}
	if !s.forget() {
		return errEnded
	}
	if s.watched = done; done != nil {
		s.release = context.AfterFunc(ctx, canceller(s.tr))
	}
	return nil
}

// forget ends the watching. It returns false if the transaction is cancelled, or about to be.
func (s *session) forget() bool {
	release := s.release
	s.watched, s.release = nil, nil
	return release == nil || release()
}

// Read requests all keys at once.
func (s *session) Read(ctx context.Context, keys [][]byte, out []db.Entry) error {
	const op = "read"
	if err := s.CheckRead(ctx, keys, out); err != nil {
		return err
	}
	if err := s.watch(ctx); err != nil {
		s.Open, s.used = false, true
		return optimistic.Cancelled(op, err)
	}
	s.used, s.reads = true, s.reads[:0]
	snapshot := s.snapshot || s.ReadOnly
	for _, key := range keys {
		s.key.Key = key
		if snapshot {
			s.reads = append(s.reads, s.tr.Snapshot().Get(&s.key))
		} else {
			s.reads = append(s.reads, s.tr.Get(&s.key))
		}
	}
	for i, read := range s.reads {
		value, err := read.Get()
		if err != nil {
			return s.fail(ctx, op, err, optimistic.Reading)
		}
		out[i] = db.Entry{Value: value, Found: value != nil}
	}
	clear(s.reads)
	return nil
}

// Set gives a write to the library, which copies it; so does Delete. Commit returns the error if the library refuses
// the write, for example because the key is too long.
func (s *session) Set(key, value []byte) {
	s.key.Key = key
	s.tr.Set(&s.key, value)
	s.writes, s.used = s.writes+1, true
}

func (s *session) Delete(key []byte) {
	s.key.Key = key
	s.tr.Clear(&s.key)
	s.writes, s.used = s.writes+1, true
}

// Add is FoundationDB's mutation ADD, which has no read conflict range.
func (s *session) Add(key []byte, delta int64) {
	s.key.Key = key
	binary.LittleEndian.PutUint64(s.delta[:], uint64(delta))
	s.tr.Add(&s.key, s.delta[:])
	s.writes, s.used = s.writes+1, true
}

// Commit commits once. A transaction without writes has nothing to send: all its reads are of one version, which was
// the newest when it was given.
func (s *session) Commit(ctx context.Context) error {
	const op = "commit"
	err := s.CheckCommit(ctx, s.writes, maxWrites)
	if err != nil || s.writes == 0 {
		return err
	}
	if err := s.watch(ctx); err != nil {
		return optimistic.Cancelled(op, err)
	}
	if err := s.tr.Commit().Get(); err != nil {
		return s.fail(ctx, op, err, optimistic.Sent)
	}
	return nil
}

// conflict is the error code of a commit whose reads were changed.
const conflict = 1020

// errConflict is optimistic.ErrConflict with the code; it is frequent.
var errConflict error = &db.Error{
	Class: db.Aborted, Code: "1020", Op: "commit",
	Err: errors.New("a key was changed by another transaction after this one had read it"),
}

// fail ends the transaction because of err.
func (s *session) fail(ctx context.Context, op string, err error, at optimistic.Phase) error {
	number := numberOf(err)
	if number == conflict {
		s.Open, s.failed = false, number
		return errConflict
	}
	e, retry := failure(op, number, said(err), at)
	if ended := ctx.Err(); ended != nil && at == optimistic.Reading {
		s.Open = false
		return optimistic.Cancelled(op, ended)
	} else if ended != nil {
		e.Err = ended
	}
	if retry {
		s.failed = number
	}
	return s.Lose(e)
}

// Rollback forgets the transaction. The cluster does not know it.
func (s *session) Rollback() { s.Open = false }

// Reset gives the session a new transaction once the cluster answers. After a commit whose
// outcome is unknown it waits as onError does.
func (s *session) Reset(ctx context.Context) error {
	if s.Closed {
		return s.Usable()
	}
	s.Open, s.Broken = false, true
	if s.db.closed.Load() {
		return db.Fatalf("reset the session", "the database is closed")
	}
	if s.failed != 0 && s.forget() {
		stop := whileUsed(ctx, s.tr)
		_ = s.tr.OnError(fdb.Error{Code: s.failed}).Get() // of the transaction that is given up
		stop()
	}
	s.forget()
	if err := s.db.probe(ctx, s.client, min(probeTimeout, s.db.config.timeout)); err != nil {
		return err
	}
	s.Broken = false
	return s.renew()
}

// Close ends the session; the connections stay with the Database.
func (s *session) Close() error {
	s.forget()
	s.Open, s.Closed = false, true
	return nil
}

package memory

import (
	"context"
	"errors"

	"stroppy/internal/db"
)

// maxWrites bounds how long one commit keeps the mutex.
const maxWrites = 1000

// session is one client of a Database.
type session struct {
	database *Database
	tx       transaction
	open     bool // a transaction is open
	broken   bool // the last commit was unknown: Reset comes first
	closed   bool
	values   []byte // what the open transaction has read
}

var _ db.KVSession = (*session)(nil)

// Begin starts a transaction; one that is still open is given up.
func (s *session) Begin(ctx context.Context, readOnly bool) error {
	if err := s.usable("begin"); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return cancelled("begin", err)
	}
	s.Rollback()
	s.tx.begin(readOnly)
	s.values = s.values[:0]
	s.open = true
	return nil
}

// Read copies what it finds, so that nobody but the store holds its values.
func (s *session) Read(_ context.Context, keys [][]byte, out []db.Entry) error {
	if !s.open {
		return db.Fatalf("read", "no transaction is open: call Begin first")
	}
	if len(out) < len(keys) {
		s.Rollback()
		return db.Fatalf("read", "%d keys do not fit into %d entries", len(keys), len(out))
	}
	d := s.database
	d.store.mu.Lock()
	err := d.engine.read(&s.tx, keys, out)
	if err != nil {
		d.engine.forget(&s.tx)
	}
	d.store.mu.Unlock()
	if err != nil {
		s.open = false
		return err
	}
	for i := range keys {
		if !out[i].Found {
			continue
		}
		start := len(s.values)
		s.values = append(s.values, out[i].Value...)
		out[i].Value = s.values[start:len(s.values):len(s.values)]
	}
	return nil
}

func (s *session) Set(key, value []byte) {
	if !s.open {
		return
	}
	kept := make([]byte, len(value))
	copy(kept, value)
	s.tx.writes = append(s.tx.writes, write{string(key), kept})
}

func (s *session) Delete(key []byte) {
	if !s.open {
		return
	}
	s.tx.writes = append(s.tx.writes, write{string(key), nil})
}

func (s *session) Commit(ctx context.Context) error {
	if !s.open {
		return db.Fatalf("commit", "no transaction is open: call Begin first")
	}
	var refusal error
	switch err := ctx.Err(); {
	case err != nil:
		refusal = cancelled("commit", err)
	case s.tx.readOnly && len(s.tx.writes) > 0:
		refusal = db.Fatalf("commit", "the transaction was begun as read-only and writes")
	case len(s.tx.writes) > maxWrites:
		refusal = db.Fatalf("commit", "the transaction has %d writes, %d more than it may have", len(s.tx.writes), len(s.tx.writes)-maxWrites)
	}
	if refusal != nil {
		s.Rollback()
		return refusal
	}
	d := s.database
	d.store.mu.Lock()
	err := d.engine.commit(&s.tx)
	d.store.mu.Unlock()
	s.open = false
	s.broken = err != nil && db.ClassOf(err) == db.Unknown
	return err
}

func (s *session) Rollback() {
	if !s.open {
		return
	}
	s.open = false
	d := s.database
	d.store.mu.Lock()
	d.engine.forget(&s.tx)
	d.store.mu.Unlock()
}

// Scan collects what it hands out in one go under the mutex, and calls entry
// without it.
func (s *session) Scan(ctx context.Context, from, to []byte, entry func(key, value []byte) error) error {
	if err := s.usable("scan"); err != nil {
		return err
	}
	d := s.database
	d.store.mu.Lock()
	keys, values := d.store.scan(string(from), string(to))
	d.store.mu.Unlock()
	var key, value []byte
	for i := range keys {
		if i%1024 == 0 && ctx.Err() != nil {
			return cancelled("scan", ctx.Err())
		}
		key = append(key[:0], keys[i]...)
		value = append(value[:0], values[i]...)
		if err := entry(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) Reset(context.Context) error {
	if s.closed {
		return s.usable("reset")
	}
	s.Rollback()
	s.broken = false
	return nil
}

func (s *session) Close() error {
	s.Rollback()
	s.closed = true
	return nil
}

// usable refuses a session that is closed, or that must be Reset first.
func (s *session) usable(op string) error {
	switch {
	case s.closed:
		return db.Fatalf(op, "the session is closed: open a new one")
	case s.broken:
		return &db.Error{Class: db.Unavailable, Code: "reset-needed", Op: op,
			Err: errors.New("the outcome of the last commit was unknown: reset the session first")}
	}
	return nil
}

// cancelled says that a context ended before anything was done.
func cancelled(op string, err error) error {
	return &db.Error{Class: db.Aborted, Code: "cancelled", Op: op, Err: err}
}

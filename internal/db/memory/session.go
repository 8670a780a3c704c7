package memory

import (
	"context"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
)

// maxWrites bounds the time for which one commit holds the mutex.
const maxWrites = 1000

// session is one client of a Database. Its writes are in tx. The copies of the open transaction's reads are in
// Writes.
type session struct {
	optimistic.Session
	database *Database
	tx       transaction
}

// Begin starts a transaction and gives up an open one.
func (s *session) Begin(ctx context.Context, readOnly bool) error {
	if s.Open {
		s.Rollback()
	}
	if err := s.Start(ctx, readOnly); err != nil {
		return err
	}
	s.tx.begin(readOnly)
	s.Writes.Clear()
	return nil
}

// Read copies its results, so that only the store holds its values.
func (s *session) Read(ctx context.Context, keys [][]byte, out []db.Entry) error {
	if err := s.CheckRead(ctx, keys, out); err != nil {
		s.Rollback()
		return err
	}
	d := s.database
	d.store.mu.Lock()
	err := d.engine.read(&s.tx, keys, out)
	if err != nil {
		s.Open = false
		d.engine.forget(&s.tx)
	}
	d.store.mu.Unlock()
	for i := range keys {
		if err == nil && out[i].Found {
			out[i].Value = s.Writes.Copy(out[i].Value)
		}
	}
	return err
}

// Range collects its results under the mutex and calls entry without it, because the value of a version never
// changes.
func (s *session) Range(ctx context.Context, from, to []byte, entry func(key, value []byte) error) error {
	if err := s.CheckRead(ctx, nil, nil); err != nil {
		s.Rollback()
		return err
	}
	d := s.database
	d.store.mu.Lock()
	found, err := d.engine.readRange(&s.tx, span{string(from), string(to)})
	d.store.mu.Unlock()
	if err == nil {
		err = pass(ctx, "read", found, entry)
	}
	if err != nil {
		s.Rollback()
	}
	return err
}

// pass calls entry with copies of the entries that were found.
func pass(ctx context.Context, op string, found []entry, entry func(key, value []byte) error) error {
	var key, value []byte
	for i, e := range found {
		if i%1024 == 0 && ctx.Err() != nil {
			return optimistic.Cancelled(op, ctx.Err())
		}
		key, value = append(key[:0], e.key...), append(value[:0], e.value...)
		if err := entry(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) Set(key, value []byte) {
	w := s.tx.write(key)
	w.value = append([]byte{}, value...)
	s.write(w)
}

func (s *session) Delete(key []byte) { s.write(s.tx.write(key)) }

func (s *session) Add(key []byte, delta int64) {
	w := s.tx.write(key)
	w.adds, w.delta = true, delta
	s.write(w)
}

func (s *session) write(w write) {
	if s.Open {
		s.tx.writes = append(s.tx.writes, w)
	}
}

func (s *session) Commit(ctx context.Context) error {
	if err := s.CheckCommit(ctx, len(s.tx.writes), maxWrites); err != nil {
		s.Rollback()
		return err
	}
	d := s.database
	d.store.mu.Lock()
	err := d.commit(&s.tx)
	d.store.mu.Unlock()
	s.Broken = err != nil && db.ClassOf(err) == db.Unknown
	return err
}

func (s *session) Rollback() {
	s.Open = false
	d := s.database
	d.store.mu.Lock()
	d.engine.forget(&s.tx)
	d.store.mu.Unlock()
}

// Scan collects everything under the mutex and calls entry without it.
func (s *session) Scan(ctx context.Context, from, to []byte, entry func(key, value []byte) error) error {
	if err := s.Usable(); err != nil {
		return err
	}
	d := s.database
	d.store.mu.Lock()
	found, err := d.store.readRange(&transaction{readOnly: true}, span{string(from), string(to)})
	d.store.mu.Unlock()
	if err != nil {
		return err
	}
	return pass(ctx, "scan", found, entry)
}

func (s *session) Reset(context.Context) error {
	if s.Closed {
		return s.Usable()
	}
	s.Rollback()
	s.Broken = false
	return nil
}

func (s *session) Close() error {
	s.Rollback()
	s.Closed = true
	return nil
}

package dbtest

import (
	"bytes"
	"context"

	"stroppy/internal/db"
)

type kvDatabase struct {
	db.KV
	in *Injector
}

// constrainedKV is one that enforces constraints itself.
type constrainedKV struct {
	*kvDatabase
	db.Constrainer
}

// KVSession implements db.KV.
func (d *kvDatabase) KVSession(ctx context.Context, options db.SessionOptions) (db.KVSession, error) {
	inner, err := d.KV.KVSession(ctx, options)
	if err != nil {
		return nil, err
	}
	s := &kvSession{KVSession: inner, d: d, options: options}
	s.line = d.in.line(func(context.Context) { s.KVSession.Rollback() })
	return s, nil
}

// kvSession keeps the writes of a transaction until it commits.
type kvSession struct {
	db.KVSession // the one inside
	line
	d       *kvDatabase
	options db.SessionOptions
	writes  []write
	late    *lateCommit
}

// write is a Set, or with remove a Delete.
type write struct {
	key, value []byte
	remove     bool
}

// lateCommit is a session of which the commit is under way.
type lateCommit struct {
	session db.KVSession
	early   bool // it arrives before the look-up
}

func (s *kvSession) Begin(ctx context.Context, readOnly bool) error {
	s.writes = s.writes[:0]
	if s.late != nil && s.late.early && !s.broken {
		s.arrive(ctx)
	}
	return s.do(ctx, Begin, func() error { return s.KVSession.Begin(ctx, readOnly) })
}

// arrive lets a late commit happen, or fail because its look-up came before.
func (s *kvSession) arrive(ctx context.Context) {
	_ = s.late.session.Commit(ctx) // nobody waits for this answer
	_ = s.late.session.Close()
	s.late = nil
}

func (s *kvSession) Read(ctx context.Context, keys [][]byte, out []db.Entry) error {
	return s.do(ctx, Read, func() error { return s.KVSession.Read(ctx, keys, out) })
}

func (s *kvSession) Set(key, value []byte) {
	s.writes = append(s.writes, write{key: bytes.Clone(key), value: bytes.Clone(value)})
}

func (s *kvSession) Delete(key []byte) {
	s.writes = append(s.writes, write{key: bytes.Clone(key), remove: true})
}

func (s *kvSession) Rollback() {
	s.writes = s.writes[:0]
	s.KVSession.Rollback()
}

// send hands the writes over and commits.
func (s *kvSession) send(ctx context.Context) error {
	for _, w := range s.writes {
		if w.remove {
			s.KVSession.Delete(w.key)
		} else {
			s.KVSession.Set(w.key, w.value)
		}
	}
	return s.KVSession.Commit(ctx)
}

func (s *kvSession) Commit(ctx context.Context) error {
	if !s.broken && len(s.writes) > 0 && !s.resolving {
		switch fault := s.draw(ctx, Commit, Late, LostAck, Ghost, Torn); fault {
		case Late:
			return s.delayed(ctx)
		case LostAck:
			s.in.count(fault)
			s.Rollback()
			return nil
		case Ghost:
			if err := s.send(ctx); err != nil {
				return err
			}
			s.in.count(fault)
			return &db.Error{Class: db.Aborted, Op: string(Commit), Err: errInjected}
		case Torn:
			if len(s.writes) > 1 {
				s.in.count(fault)
				i := s.random.IntN(len(s.writes))
				s.writes = append(s.writes[:i], s.writes[i+1:]...)
			}
		}
	}
	err := s.commit(ctx, func() error { return s.send(ctx) })
	if err == nil && s.late != nil {
		s.arrive(ctx)
	}
	return err
}

// delayed leaves the commit under way on the session inside, which Reset replaces.
func (s *kvSession) delayed(ctx context.Context) error {
	s.in.count(Late)
	for _, w := range s.writes {
		if w.remove {
			s.KVSession.Delete(w.key)
		} else {
			s.KVSession.Set(w.key, w.value)
		}
	}
	if s.late != nil {
		s.arrive(ctx)
	}
	s.late = &lateCommit{session: s.KVSession, early: s.random.IntN(2) == 0}
	s.broken, s.resolving = true, true
	return &db.Error{Class: db.Unknown, Op: string(Commit), Err: errInjected}
}

func (s *kvSession) Scan(ctx context.Context, from, to []byte, entry func(key, value []byte) error) error {
	return s.do(ctx, Scan, func() error { return s.KVSession.Scan(ctx, from, to, entry) })
}

func (s *kvSession) Reset(ctx context.Context) error {
	return s.do(ctx, Reset, func() error {
		if s.late == nil || s.late.session != s.KVSession {
			return s.KVSession.Reset(ctx)
		}
		fresh, err := s.d.KV.KVSession(ctx, s.options)
		if err == nil {
			s.KVSession = fresh
		}
		return err
	})
}

func (s *kvSession) Close() error {
	if s.late != nil {
		late := s.late.session != s.KVSession
		s.arrive(context.Background())
		if !late {
			return nil
		}
	}
	return s.KVSession.Close()
}

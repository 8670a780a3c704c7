package dbtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync"

	"stroppy/internal/db"
)

// kvDatabase wraps a key-value store whose sessions are faulty.
type kvDatabase struct {
	db.KV
	in     *Injector
	spaces []db.Keyspace // set if the database enforces constraints

	mu    sync.Mutex
	first map[string][]byte // first value of each key, for stale reads
}

// constrainedKV is a kvDatabase that enforces constraints.
type constrainedKV struct {
	*kvDatabase
	inner db.Constrainer
}

// Constrain implements db.Constrainer.
func (d constrainedKV) Constrain(spaces []db.Keyspace) error {
	d.spaces = spaces
	return d.inner.Constrain(spaces)
}

// keep records the first value of each key.
func (d *kvDatabase) keep(writes []write) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range writes {
		if _, known := d.first[string(w.key)]; !known && !w.remove {
			d.first[string(w.key)] = bytes.Clone(w.value)
		}
	}
}

// money returns the bytes of the non-negative number in a value, or nil.
func (d *kvDatabase) money(w write) []byte {
	for _, space := range d.spaces {
		for _, c := range space.Columns {
			if c.NonNegative && bytes.HasPrefix(w.key, space.Prefix) && len(w.value) >= c.Offset+8 {
				return w.value[c.Offset : c.Offset+8]
			}
		}
	}
	return nil
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

// kvSession keeps the writes of a transaction until the commit.
type kvSession struct {
	db.KVSession // the wrapped session
	line
	d       *kvDatabase
	options db.SessionOptions
	writes  []write
	before  []write // writes of the commit before
	late    *lateCommit

	readOnly bool
}

// write is a call of Set, or of Delete if remove is set.
type write struct {
	key, value []byte
	remove     bool
}

// lateCommit is a session whose commit is delayed.
type lateCommit struct {
	session db.KVSession
	early   bool // set if the commit arrives before the look-up
}

func (s *kvSession) Begin(ctx context.Context, readOnly bool) error {
	s.writes, s.readOnly = s.writes[:0], readOnly
	if s.late != nil && s.late.early && !s.broken {
		s.arrive(ctx)
	}
	return s.do(ctx, Begin, func() error { return s.KVSession.Begin(ctx, readOnly) })
}

// arrive executes a delayed commit. It fails if the look-up of the transaction came first.
func (s *kvSession) arrive(ctx context.Context) {
	_ = s.late.session.Commit(ctx) // the client does not get this answer
	_ = s.late.session.Close()
	s.late = nil
}

func (s *kvSession) Read(ctx context.Context, keys [][]byte, out []db.Entry) error {
	err := s.do(ctx, Read, func() error { return s.KVSession.Read(ctx, keys, out) })
	if err == nil && s.readOnly && s.draw(ctx, Read, StaleRead) != "" {
		s.d.mu.Lock()
		defer s.d.mu.Unlock()
		for i, key := range keys {
			if old, known := s.d.first[string(key)]; known && out[i].Found && !bytes.Equal(old, out[i].Value) {
				out[i].Value = bytes.Clone(old)
				s.in.count(StaleRead)
				break
			}
		}
	}
	return err
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

// send sends the writes and commits.
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
		switch fault := s.draw(ctx, Commit, Late, LostAck, Ghost, Torn, DoubleApply, PhantomMoney); fault {
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
		case DoubleApply:
			return s.again(ctx)
		case PhantomMoney:
			for _, w := range s.writes {
				if money := s.d.money(w); money != nil {
					binary.BigEndian.PutUint64(money, binary.BigEndian.Uint64(money)+1+s.random.Uint64N(100))
					s.in.count(fault)
					break
				}
			}
		case Torn:
			if len(s.writes) > 1 {
				s.in.count(fault)
				i := s.random.IntN(len(s.writes))
				s.writes = append(s.writes[:i], s.writes[i+1:]...)
			}
		}
	}
	err := s.commit(ctx, func() error { return s.send(ctx) })
	if err != nil {
		return err
	}
	if s.late != nil {
		s.arrive(ctx)
	}
	s.d.keep(s.writes)
	s.before = append([]write(nil), s.writes...)
	return nil
}

// again commits, and then applies the writes of the preceding commit a second time. It does nothing more if they
// change nothing.
func (s *kvSession) again(ctx context.Context) error {
	if err := s.send(ctx); err != nil || len(s.before) == 0 {
		return err
	}
	if err := s.KVSession.Begin(ctx, false); err != nil {
		return nil // the commit itself succeeded
	}
	keys, found := make([][]byte, len(s.before)), make([]db.Entry, len(s.before))
	for i, w := range s.before {
		keys[i] = w.key
	}
	err, changed := s.KVSession.Read(ctx, keys, found), false
	for i, w := range s.before {
		changed = changed || !w.remove && !bytes.Equal(w.value, found[i].Value)
	}
	if err != nil || !changed {
		s.KVSession.Rollback()
		return nil
	}
	s.writes = s.before
	if s.send(ctx) == nil {
		s.in.count(DoubleApply)
	}
	return nil
}

// delayed keeps the commit for later, with the wrapped session. Reset opens another session.
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

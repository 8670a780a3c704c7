// Package optimistic holds the code that the drivers of key-value stores share. It keeps the state of a session, and
// the writes of a transaction until its commit. The last write of each key counts. It also keeps copies of bytes until
// then.
package optimistic

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"stroppy/internal/db"
)

// Phase is the progress of a call to a server when the call failed.
type Phase uint8

const (
	Reading Phase = iota // the call changes nothing
	Unsent               // a commit that no server has seen
	Sent                 // a commit that a server may have received completely
)

// Class returns the class of an error that leaves the fate of the call open.
func (p Phase) Class() db.Class {
	if p == Sent {
		return db.Unknown
	}
	return db.Unavailable
}

// Write is one write of a transaction.
type Write struct {
	Key, Value []byte
	Remove     bool
}

// Writes holds the writes of one transaction after another, in the same memory.
type Writes struct {
	writes []Write
	order  []int // places in writes, in the order of their keys
	bytes  []byte
}

// Clear forgets everything, copies included.
func (s *Writes) Clear() { s.writes, s.order, s.bytes = s.writes[:0], s.order[:0], s.bytes[:0] }

// All returns the writes. They are valid until Clear.
func (s *Writes) All() []Write { return s.writes }

// Copy returns a copy of the joined parts, valid until Clear. When bytes grows, earlier copies stay where they are.
func (s *Writes) Copy(parts ...[]byte) []byte {
	start := len(s.bytes)
	for _, p := range parts {
		s.bytes = append(s.bytes, p...)
	}
	return s.bytes[start:len(s.bytes):len(s.bytes)]
}

// Set remembers a write; the last one of a key counts. Key and value are copied.
func (s *Writes) Set(key, value []byte) {
	w := s.write(key)
	w.Value, w.Remove = s.Copy(value), false
}

// Delete remembers a removal, which counts as a write.
func (s *Writes) Delete(key []byte) {
	w := s.write(key)
	w.Value, w.Remove = nil, true
}

func (s *Writes) write(key []byte) *Write {
	i, found := slices.BinarySearchFunc(s.order, key, func(place int, key []byte) int { return bytes.Compare(s.writes[place].Key, key) })
	if !found {
		s.order = slices.Insert(s.order, i, len(s.writes))
		s.writes = append(s.writes, Write{Key: s.Copy(key)})
	}
	return &s.writes[s.order[i]]
}

// State is the state of a session and of its transaction.
type State struct {
	Open, ReadOnly bool // of the transaction
	Broken, Closed bool
}

// Session is the state of a db.KVSession and of its transaction.
type Session struct {
	State
	Writes // and copies of bytes until the transaction ends
}

// Errors that are frequent are one value, because each would be allocated.
var (
	// ErrConflict is the error of a commit if another transaction has changed its keys.
	ErrConflict error = &db.Error{
		Class: db.Aborted, Op: "commit",
		Err: errors.New("a key was changed by another transaction after this one had read it"),
	}
	errBroken error = &db.Error{
		Class: db.Unavailable, Op: "use the session",
		Err: errors.New("its server did not answer the last call: reset the session first"),
	}
)

// Cancelled returns the error of a call whose context had ended before the call was sent.
func Cancelled(op string, err error) error {
	return &db.Error{Class: db.Aborted, Code: "cancelled", Op: op, Err: err}
}

// Usable returns an error if the session is closed or must be Reset first.
func (s *State) Usable() error {
	switch {
	case s.Closed:
		return db.Fatalf("use the session", "it is closed: open a new one")
	case s.Broken:
		return errBroken
	}
	return nil
}

// Start begins a transaction.
func (s *State) Start(ctx context.Context, readOnly bool) error {
	if err := s.Usable(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return Cancelled("begin", err)
	}
	s.Open, s.ReadOnly = true, readOnly
	return nil
}

// ready returns an error if no transaction is open or the context has ended.
func (s *Session) ready(ctx context.Context, op string) error {
	if err := s.Usable(); err != nil {
		return err
	}
	if !s.Open {
		return db.Fatalf(op, "no transaction is open: begin one first")
	}
	if err := ctx.Err(); err != nil {
		s.Open = false
		return Cancelled(op, err)
	}
	return nil
}

// CheckRead returns an error if the arguments of a Read are wrong, and then ends the transaction.
func (s *Session) CheckRead(ctx context.Context, keys [][]byte, out []db.Entry) error {
	if err := s.ready(ctx, "read"); err != nil {
		return err
	}
	if len(keys) != len(out) {
		s.Open = false
		return db.Fatalf("read", "%d keys and %d places for their values", len(keys), len(out))
	}
	return nil
}

// CheckCommit ends the transaction. It returns an error if the transaction may not write, or has more writes than most.
func (s *Session) CheckCommit(ctx context.Context, writes, most int) error {
	const op = "commit"
	if err := s.ready(ctx, op); err != nil {
		return err
	}
	s.Open = false
	switch {
	case s.ReadOnly && writes > 0:
		return db.Fatalf(op, "a read-only transaction has %d writes", writes)
	case writes > most:
		return db.Fatalf(op, "%d writes in a transaction, of which it may have %d: take smaller batches", writes, most)
	}
	return nil
}

// Lose ends the transaction because of e. It also marks the session as broken if the session must be Reset.
func (s *State) Lose(e *db.Error) error {
	s.Open = false
	s.Broken = e.Class == db.Unknown || e.Class == db.Unavailable
	return e
}

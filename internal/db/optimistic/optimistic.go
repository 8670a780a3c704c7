// Package optimistic is what the drivers of key-value stores share: the state of a
// session, and what it keeps of a transaction until it commits, which is its writes,
// of which the last of each key counts, and copies of bytes.
package optimistic

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"stroppy/internal/db"
)

// Phase is how far a call to a server could have come when it failed.
type Phase uint8

const (
	Reading Phase = iota // the call changes nothing, whatever became of it
	Unsent               // a commit that no server has seen
	Sent                 // a commit of which the server may have got all
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

// All returns the writes, which belong to them.
func (s *Writes) All() []Write { return s.writes }

// Copy returns the parts joined, until Clear. When bytes grows, earlier copies
// stay where they are.
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

// Session is the state of a db.KVSession and of its transaction.
type Session struct {
	Open, ReadOnly bool // of the transaction
	Broken, Closed bool
	Writes         // and copies of bytes that last as long
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

// Usable refuses a session that is closed, or that must be Reset first.
func (s *Session) Usable() error {
	switch {
	case s.Closed:
		return db.Fatalf("use the session", "it is closed: open a new one")
	case s.Broken:
		return errBroken
	}
	return nil
}

// Start begins a transaction.
func (s *Session) Start(ctx context.Context, readOnly bool) error {
	if err := s.Usable(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return Cancelled("begin", err)
	}
	s.Open, s.ReadOnly = true, readOnly
	return nil
}

// ready refuses a call for which no transaction is open, or whose context has ended.
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

// CheckRead refuses a Read that cannot be done, and ends its transaction.
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

// CheckCommit ends the transaction, and refuses to commit so many writes where the
// database takes most.
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

// Lose ends the transaction because of e, and the session if it must be Reset.
func (s *Session) Lose(e *db.Error) error {
	s.Open = false
	s.Broken = e.Class == db.Unknown || e.Class == db.Unavailable
	return e
}

package db

import "context"

// KV is the model of an ordered key-value store with optimistic transactions:
// keys and values are bytes, keys are ordered as bytes are.
type KV interface {
	Database
	// MaxWrites is the number of Sets and Deletes that one transaction may have.
	MaxWrites() int
	// KVSession opens a session: one client, used by one goroutine at a time.
	KVSession(ctx context.Context, options SessionOptions) (KVSession, error)
}

// KVSession is one client and at most one transaction. Its errors are *Error.
// After an error from any method the transaction is over. If the class is
// Unknown or Unavailable the session must be Reset before anything else.
type KVSession interface {
	// Begin starts a transaction.
	Begin(ctx context.Context, readOnly bool) error

	// Read reads several keys in one round trip into out, which has as many
	// entries. All reads of a transaction come from one snapshot. Values are
	// valid until the next Begin. A transaction does not see its own writes.
	Read(ctx context.Context, keys [][]byte, out []Entry) error

	// Set and Delete are remembered for Commit. Key and value are copied.
	Set(key, value []byte)
	Delete(key []byte)

	// Commit applies all writes at once, provided that no key that was read has
	// changed since, absent keys included; otherwise the error's class is
	// Aborted. Only nil means that it is committed.
	Commit(ctx context.Context) error

	// Rollback gives up the open transaction; without one it does nothing.
	Rollback()

	// Scan hands every entry with from ≤ key < to, in order and from one
	// snapshot, to entry, which must not keep them. It is no part of a
	// transaction.
	Scan(ctx context.Context, from, to []byte, entry func(key, value []byte) error) error

	// Reset drops the connection and opens a new one, once: the caller backs off
	// and calls again.
	Reset(ctx context.Context) error

	Close() error
}

// Entry is what Read found at a key.
type Entry struct {
	Value []byte
	Found bool
}

// Keyspace describes the values of all keys with one prefix: fixed columns of
// signed 64-bit big-endian numbers.
type Keyspace struct {
	Prefix  []byte
	Columns []Column
}

// Column is one number in every value of a keyspace.
type Column struct {
	Name        string
	Offset      int  // of its first byte in the value
	Additive    bool // a quantity that transactions add to, such as a balance or a counter
	NonNegative bool // a commit that makes it negative is refused: class Constraint, CheckFailed
}

// Constrainer is satisfied by a key-value store that enforces constraints
// itself. It is asked once, before the load.
type Constrainer interface {
	Constrain(spaces []Keyspace) error
}

// WideReader is satisfied by a key-value store whose Read of many keys costs far
// less than several of few, or fails less often beside writers.
type WideReader interface {
	// MaxReads is how many keys one Read is best given; at least 1.
	MaxReads() int
}

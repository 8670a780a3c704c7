package db

import "context"

// KV is the model of an ordered key-value store with optimistic transactions:
// keys and values are bytes, keys are ordered as bytes are.
type KV interface {
	Database
	// KVSession opens a session: one client, used by one goroutine at a time.
	KVSession(ctx context.Context, options SessionOptions) (KVSession, error)
}

// KVSession is one client and at most one transaction. Its transactions have the isolation
// that the database claims for the session (Database.Claim), and no more. Its errors are
// *Error.
//
// After an error from any method the transaction is over. If the class is
// Unknown or Unavailable the session must be Reset before anything else.
type KVSession interface {
	// Begin starts a transaction.
	Begin(ctx context.Context, readOnly bool) error

	// Read reads several keys in one round trip and from one snapshot into out, which
	// has as many entries. From snapshot isolation on, all Reads of a transaction come
	// from the same snapshot. Values are valid until the next Begin. A transaction
	// does not see its own writes.
	Read(ctx context.Context, keys [][]byte, out []Entry) error

	// Set and Delete are remembered for Commit. Key and value are copied.
	Set(key, value []byte)
	Delete(key []byte)

	// Commit applies all writes at once, or none. From serializable on, it applies them only if no key that was read
	// has changed since, absent keys included. At snapshot isolation, it applies them only if no key that is written
	// has changed since the snapshot. Below snapshot isolation, it always applies them. A commit that is refused for
	// such a change is Aborted. Only nil means that the transaction is committed.
	Commit(ctx context.Context) error

	// Rollback gives up the open transaction; without one it does nothing.
	Rollback()

	// Scan calls entry for each key with from ≤ key < to, in order and from one snapshot; entry must not keep its
	// arguments. Scan may take several round trips. If writers prevent one snapshot of all pages, Scan returns an error
	// of class Aborted, and a later Scan takes longer pages. Scan is not part of a transaction.
	Scan(ctx context.Context, from, to []byte, entry func(key, value []byte) error) error

	// Reset drops the connection and opens a new one, once: the caller backs off
	// and calls again.
	Reset(ctx context.Context) error

	Close() error
}

// Entry is the result of Read at one key.
type Entry struct {
	Value []byte
	Found bool
}

// Ranger is implemented by a key-value store whose transactions read ranges of keys.
type Ranger interface {
	// RangeSession opens a session as KVSession does.
	RangeSession(ctx context.Context, options SessionOptions) (RangeSession, error)
}

// RangeSession is a KVSession whose transactions read ranges.
type RangeSession interface {
	KVSession

	// Range calls entry for each key with from ≤ key < to, in order and from the snapshot of
	// the transaction. entry must not keep its arguments, and must not call methods of the
	// session. The whole range counts as read: from serializable on, Commit
	// succeeds only if no key has come into it, has left it, or has changed in it since.
	// An error of entry ends the transaction and is returned.
	Range(ctx context.Context, from, to []byte, entry func(key, value []byte) error) error
}

// Adder is implemented by a key-value store that adds to a number without reading it.
type Adder interface {
	// AddSession opens a session as KVSession does.
	AddSession(ctx context.Context, options SessionOptions) (AddSession, error)
}

// AddSession is a KVSession that adds.
type AddSession interface {
	KVSession

	// Add is remembered for Commit as Set is, and counts as one write. The commit adds delta to the value of the key at
	// that moment: eight bytes, a little-endian number in two's complement, which wraps when it overflows. A key that
	// is not there counts as zero and is created. A shorter value is extended with zero bytes, and a longer value is
	// cut.
	//
	// Add is not a read: two transactions that add to one key do not conflict. For a transaction that has read the key,
	// Add is a write. Writes of one transaction to one key apply in the order of their calls, and no Read of the
	// transaction sees them.
	Add(key []byte, delta int64)
}

// Keyspace describes the values of all keys with one prefix: fixed columns of
// signed 64-bit numbers.
type Keyspace struct {
	Prefix  []byte
	Columns []Column
}

// Column is one number in every value of a keyspace.
type Column struct {
	Name         string
	Offset       int  // of its first byte in the value
	LittleEndian bool // as AddSession.Add has it; else big-endian
	Additive     bool // a quantity that transactions add to, such as a balance or a counter
	NonNegative  bool // a commit that makes it negative is refused: class Constraint, CheckFailed
}

// Constrainer is implemented by a key-value store that enforces constraints
// itself. Constrain is called once, before the load.
type Constrainer interface {
	Constrain(spaces []Keyspace) error
}

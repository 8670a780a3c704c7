package workload

import (
	"context"
	"encoding/binary"
	"fmt"

	"stroppy/internal/db"
	"stroppy/internal/history"
)

// State is what a database keeps of an object that transactions add amounts to. The
// value of its key is these three numbers: signed, of 64 bits, big-endian.
type State struct{ Balance, Version, Last int64 }

const stateLength = 24

// Append appends the value.
func (s State) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(s.Balance))
	dst = binary.BigEndian.AppendUint64(dst, uint64(s.Version))
	return binary.BigEndian.AppendUint64(dst, uint64(s.Last))
}

// ParseState is the inverse of Append; false of what it has not written.
func ParseState(value []byte) (State, bool) {
	if len(value) != stateLength {
		return State{}, false
	}
	number := func(at int) int64 { return int64(binary.BigEndian.Uint64(value[at:])) }
	return State{number(0), number(8), number(16)}, true
}

// Object is the object of the end state that has this state.
func (s State) Object(n uint64) history.Object {
	return history.Object{N: n, Value: s.Balance, Version: uint64(s.Version), Writer: history.ID(s.Last)}
}

// StateSpace declares the objects whose keys have a prefix to a store that enforces
// constraints.
func StateSpace(prefix string, nonNegative bool) []db.Keyspace {
	return []db.Keyspace{{
		Prefix: []byte(prefix),
		Columns: []db.Column{
			{Name: "balance", Offset: 0, Additive: true, NonNegative: nonNegative},
			{Name: "version", Offset: 8, Additive: true},
			{Name: "last_transfer", Offset: 16},
		},
	}}
}

// KVLogic is what a workload's transactions are in a key-value store whose objects have
// a State.
type KVLogic interface {
	Next(tx *history.Transaction)
	AppendKey(dst []byte, object uint64) []byte
	// Refusal is the reason for which what was read forbids the transaction; 0: none.
	Refusal(tx *history.Transaction) history.Reason
	// AppendEntry appends what the ledger keeps of the transaction, whose operations
	// have these keys.
	AppendEntry(dst []byte, tx *history.Transaction, keys [][]byte) []byte
}

// KVClient runs one client's transactions on a session of its own: each reads its
// objects, and the writes among its operations add their amounts. Its buffers grow to
// the longest transaction and are then used again.
type KVClient struct {
	KVLogic
	db.KVSession
	rules  Rules
	ledger string // the prefix of its keys; empty: none is kept

	keys  [][]byte // of the operations' objects, and of the ledger's entry
	found []db.Entry
	value []byte
}

// NewKVClient returns the client whose transactions have their ids under the ledger's
// prefix; with an empty one no ledger is kept.
func NewKVClient(s db.KVSession, logic KVLogic, rules Rules, ledger string) *KVClient {
	return &KVClient{KVLogic: logic, KVSession: s, rules: rules, ledger: ledger}
}

// Attempt implements load.Client.
func (c *KVClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	Forget(tx)
	return Ended(tx, c.attempt(ctx, tx), c.rules)
}

func (c *KVClient) attempt(ctx context.Context, tx *history.Transaction) error {
	readOnly := tx.Kind.ReadOnly()
	if err := c.Begin(ctx, readOnly); err != nil {
		return err
	}
	objects := len(tx.Ops)
	c.reserve(objects + 1)
	for i := range objects {
		c.keys[i] = c.AppendKey(c.keys[i][:0], tx.Ops[i].Object)
	}
	keys := c.keys[:objects]
	logged := !readOnly && c.ledger != ""
	if logged {
		keys = append(keys, c.entryKey(objects, tx.ID))
	}
	if err := c.Read(ctx, keys, c.found[:len(keys)]); err != nil {
		return err
	}
	if logged && c.found[objects].Found {
		c.Rollback()
		return InLedger(c.found[objects].Value)
	}
	reason, err := c.observe(tx)
	if reason == 0 && err == nil {
		reason = c.Refusal(tx)
	}
	if reason != 0 || err != nil {
		// All reads come from one snapshot, so the refusal needs no commit.
		c.Rollback()
		if err == nil {
			Decide(tx, reason)
		}
		return err
	}
	c.write(tx, keys, logged)
	if err = c.Commit(ctx); err == nil {
		Decide(tx, 0)
	}
	return err
}

func (c *KVClient) reserve(n int) {
	for len(c.keys) < n {
		c.keys, c.found = append(c.keys, nil), append(c.found, db.Entry{})
	}
}

// entryKey makes key i that of a transaction in the ledger.
func (c *KVClient) entryKey(i int, id history.ID) []byte {
	c.keys[i] = Hex.Append(append(c.keys[i][:0], c.ledger...), uint64(id), IDLength)
	return c.keys[i]
}

// observe notes what was found of each operation's object.
func (c *KVClient) observe(tx *history.Transaction) (reason history.Reason, err error) {
	for i := range tx.Ops {
		found := &c.found[i]
		if !found.Found {
			reason = c.rules.Missing
			continue
		}
		s, ok := ParseState(found.Value)
		if !ok {
			return 0, UnreadableState(c.keys[i], found.Value)
		}
		Observe(&tx.Ops[i], s.Balance, s.Version, s.Last)
	}
	return reason, nil
}

// UnreadableState is the error of a value that is no State.
func UnreadableState(key, value []byte) error {
	return db.Fatalf(fmt.Sprintf("read %s", key), "its value has %d bytes, which no transaction writes", len(value))
}

// write adds the new states of the objects and the ledger's entry.
func (c *KVClient) write(tx *history.Transaction, keys [][]byte, logged bool) {
	for i := range tx.Ops {
		if op := &tx.Ops[i]; op.Write {
			c.value = State{op.Value + op.Amount, int64(op.Version) + 1, int64(tx.ID)}.Append(c.value[:0])
			c.Set(keys[i], c.value)
		}
	}
	if logged {
		c.value = c.AppendEntry(c.value[:0], tx, keys)
		c.Set(keys[len(tx.Ops)], c.value)
	}
}

// ResolveUnknown implements load.Client. The tombstone and every commit of the
// transaction have read its key as absent, so that only one of them can succeed. Without
// a ledger the outcome stays unknown.
func (c *KVClient) ResolveUnknown(ctx context.Context, tx *history.Transaction) error {
	if ResolvedWithoutLookUp(tx) || c.ledger == "" {
		return nil
	}
	if err := c.Begin(ctx, false); err != nil {
		return err
	}
	c.reserve(1)
	keys := c.keys[:1]
	c.entryKey(0, tx.ID)
	if err := c.Read(ctx, keys, c.found[:1]); err != nil {
		return err
	}
	if entry := &c.found[0]; entry.Found {
		c.Rollback()
		tx.Outcome = history.Committed
		if IsTombstone(entry.Value) {
			tx.Outcome = history.Aborted
		}
		return nil
	}
	c.Set(keys[0], []byte{Tombstone})
	if err := c.Commit(ctx); err != nil {
		return err
	}
	tx.Outcome = history.Aborted
	return nil
}

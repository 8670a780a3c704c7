package bank

import (
	"context"
	"fmt"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/workload"
)

// kvClient runs one client's transactions on a session of its own. Its buffers
// grow to the longest transaction and are then used again.
type kvClient struct {
	*chooser
	session db.KVSession
	guarded bool // the store refuses a balance below zero by itself

	numbers []uint64   // of each operation's account, as key
	keys    [][]byte   // of each operation's account
	batch   [][]byte   // the keys of one Read: accounts, and the ledger's
	found   []db.Entry // what it found
	entry   []byte     // the ledger's key
	value   []byte
}

func newKVClient(h *chooser, s db.KVSession, guarded bool) *kvClient {
	c := &kvClient{chooser: h, session: s, guarded: guarded}
	c.entry = append(make([]byte, 0, ledgerKeyLength), ledgerPrefix...)[:ledgerKeyLength]
	return c
}

// Attempt implements load.Client.
func (c *kvClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	workload.Forget(tx)
	return ended(tx, c.attempt(ctx, tx))
}

func (c *kvClient) attempt(ctx context.Context, tx *history.Transaction) error {
	if tx.Kind == history.Inquiry {
		return c.inquire(ctx, tx)
	}
	if err := c.session.Begin(ctx, false); err != nil {
		return err
	}
	c.setKeys(tx.Ops)
	workload.PutID(c.entry[len(ledgerPrefix):], tx.ID)
	c.batch = append(append(c.batch[:0], c.keys[:len(tx.Ops)]...), c.entry)
	if err := c.session.Read(ctx, c.batch, c.found[:len(c.batch)]); err != nil {
		return err
	}
	if ledger := &c.found[len(tx.Ops)]; ledger.Found {
		c.session.Rollback()
		return workload.InLedger(ledger.Value)
	}
	reason, err := c.observe(tx)
	if err != nil {
		return err
	}
	if reason == 0 {
		reason = c.formula.refusal(tx, c.guarded)
	}
	if reason != 0 {
		// All reads come from one snapshot, so the refusal needs no commit.
		c.session.Rollback()
		tx.Outcome, tx.Reason = history.Rejected, reason
		return nil
	}
	c.write(tx)
	if err := c.session.Commit(ctx); err != nil {
		return err
	}
	tx.Outcome = history.Committed
	return nil
}

// setKeys writes the keys of the operations' accounts.
func (c *kvClient) setKeys(ops []history.Op) {
	for len(c.keys) < len(ops) {
		key := append(make([]byte, 0, accountKeyLength), accountPrefix...)[:accountKeyLength]
		c.keys = append(c.keys, key)
		c.numbers = append(c.numbers, 0)
	}
	for len(c.found) <= len(ops) {
		c.found = append(c.found, db.Entry{})
	}
	for i := range ops {
		c.numbers[i] = c.formula.key(ops[i].Object)
		putAccountKey(c.keys[i], c.numbers[i])
	}
}

// observe notes what was found of each operation's account. With an error the
// transaction is given up.
func (c *kvClient) observe(tx *history.Transaction) (history.Reason, error) {
	reason := history.Reason(0)
	for i := range tx.Ops {
		if !c.found[i].Found {
			reason = history.NoSuchAccount
			continue
		}
		a, ok := parseAccount(c.found[i].Value)
		if !ok {
			c.session.Rollback()
			return 0, valueError(c.keys[i], c.found[i].Value)
		}
		workload.Observe(&tx.Ops[i], a.balance, a.version, a.last)
	}
	return reason, nil
}

func valueError(key, value []byte) error {
	return &db.Error{
		Class: db.Fatal, Op: fmt.Sprintf("read %s", key),
		Err: fmt.Errorf("its value has %d bytes, which no transfer writes", len(value)),
	}
}

// write adds the new values of the accounts and the ledger's entry.
func (c *kvClient) write(tx *history.Transaction) {
	for i := range tx.Ops {
		op := &tx.Ops[i]
		if !op.Write {
			continue
		}
		c.value = appendAccount(c.value[:0], account{op.Value + op.Amount, int64(op.Version) + 1, int64(tx.ID)})
		c.session.Set(c.keys[i], c.value)
	}
	c.value = append(c.value[:0], ledgerLegs)
	for i := range tx.Ops {
		if op := &tx.Ops[i]; op.Write {
			c.value = appendLeg(c.value, c.numbers[i], op.Amount, int64(op.Version)+1)
		}
	}
	c.session.Set(c.entry, c.value)
}

func (c *kvClient) inquire(ctx context.Context, tx *history.Transaction) error {
	if err := c.session.Begin(ctx, true); err != nil {
		return err
	}
	c.setKeys(tx.Ops)
	if err := c.session.Read(ctx, c.keys[:len(tx.Ops)], c.found[:len(tx.Ops)]); err != nil {
		return err
	}
	reason, err := c.observe(tx)
	if err != nil {
		return err
	}
	if err := c.session.Commit(ctx); err != nil {
		return err
	}
	tx.Outcome = history.Committed
	if reason != 0 {
		tx.Outcome, tx.Reason = history.Rejected, reason
	}
	return nil
}

// ResolveUnknown implements load.Client.
func (c *kvClient) ResolveUnknown(ctx context.Context, tx *history.Transaction) error {
	if tx.Kind == history.Inquiry { // it changes nothing, so it counts as aborted
		tx.Outcome = history.Aborted
		return nil
	}
	workload.PutID(c.entry[len(ledgerPrefix):], tx.ID)
	c.batch = append(c.batch[:0], c.entry)
	c.setKeys(nil)
	return workload.ResolveByKey(ctx, c.session, tx, c.batch, c.found[:1])
}

// Reset implements load.Client.
func (c *kvClient) Reset(ctx context.Context) error { return c.session.Reset(ctx) }

// Close implements load.Client.
func (c *kvClient) Close() error { return c.session.Close() }

package tpcb

import (
	"context"
	"fmt"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
)

// kvClient runs one client's transactions on a session of its own. Its buffers are
// made once.
type kvClient struct {
	*chooser
	session db.KVSession
	history bool

	keys  [operations + 1][]byte // of the rows, and of the history
	found [operations + 1]db.Entry
	ids   [operations]int64
	value []byte
}

func newKVClient(h *chooser, s db.KVSession, keeps bool) *kvClient {
	c := &kvClient{chooser: h, session: s, history: keeps}
	for i := range operations {
		c.keys[i] = newRowKey()
	}
	c.keys[operations] = append(make([]byte, 0, historyKeyLength), historyPrefix...)[:historyKeyLength]
	return c
}

// read reads the rows of a transaction and, where there is a history, its entry.
func (c *kvClient) read(ctx context.Context, tx *history.Transaction) error {
	for i := range operations {
		k, id := c.size.place(tx.Ops[i].Object)
		c.ids[i] = int64(id)
		putRowKey(c.keys[i], k, id)
	}
	n := operations
	if c.history {
		workload.PutID(c.keys[operations][len(historyPrefix):], tx.ID)
		n++
	}
	return c.session.Read(ctx, c.keys[:n], c.found[:n])
}

// Attempt implements load.Client.
func (c *kvClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	workload.Forget(tx)
	err := c.attempt(ctx, tx)
	if err != nil && (err == load.ErrAlreadyApplied || db.ClassOf(err) != db.Unknown) {
		workload.Forget(tx)
	}
	return err
}

func (c *kvClient) attempt(ctx context.Context, tx *history.Transaction) error {
	if err := c.session.Begin(ctx, false); err != nil {
		return err
	}
	if err := c.read(ctx, tx); err != nil {
		return err
	}
	if entry := &c.found[operations]; c.history && entry.Found {
		c.session.Rollback()
		return workload.InLedger(entry.Value)
	}
	for i := range operations {
		if !c.found[i].Found {
			c.session.Rollback()
			tx.Outcome, tx.Reason = history.Rejected, history.NoSuchAccount
			return nil
		}
		v, ok := parseValue(c.found[i].Value)
		if !ok {
			c.session.Rollback()
			return &db.Error{
				Class: db.Fatal, Op: fmt.Sprintf("read %s", c.keys[i]),
				Err: fmt.Errorf("its value has %d bytes, which no transaction writes", len(c.found[i].Value)),
			}
		}
		workload.Observe(&tx.Ops[i], v.balance, v.version, v.last)
	}
	c.write(tx)
	if err := c.session.Commit(ctx); err != nil {
		return err
	}
	tx.Outcome = history.Committed
	return nil
}

// write adds the new values of the rows and the entry of the history.
func (c *kvClient) write(tx *history.Transaction) {
	for i := range operations {
		op := &tx.Ops[i]
		c.value = appendValue(c.value[:0], value{op.Value + op.Amount, int64(op.Version) + 1, int64(tx.ID)})
		c.session.Set(c.keys[i], c.value)
	}
	if !c.history {
		return
	}
	version := func(op int) int64 { return int64(tx.Ops[op].Version) + 1 }
	c.value = appendEntry(c.value[:0], &posting{
		account: c.ids[opAccount], teller: c.ids[opTeller], branch: c.ids[opBranch], delta: tx.Ops[opAccount].Amount,
		accountV: version(opAccount), tellerV: version(opTeller), branchV: version(opBranch),
	})
	c.session.Set(c.keys[operations], c.value)
}

// ResolveUnknown implements load.Client. Without a history there is no key, and the
// outcome stays unknown.
func (c *kvClient) ResolveUnknown(ctx context.Context, tx *history.Transaction) error {
	if !c.history {
		tx.Outcome = history.Unknown
		return nil
	}
	workload.PutID(c.keys[operations][len(historyPrefix):], tx.ID)
	return workload.ResolveByKey(ctx, c.session, tx, c.keys[operations:], c.found[operations:])
}

// Reset implements load.Client.
func (c *kvClient) Reset(ctx context.Context) error { return c.session.Reset(ctx) }

// Close implements load.Client.
func (c *kvClient) Close() error { return c.session.Close() }

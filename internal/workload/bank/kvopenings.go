package bank

import (
	"cmp"
	"context"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
)

// kvOpenings is a client that opens and closes accounts of a key-value store, and reads
// the accounts of a bank code, which are a range of keys.
type kvOpenings struct {
	*workload.KVClient
	*chooser
	ranges db.RangeSession

	keys     [][]byte // of the operations that are planned, and of the ledger's entry
	found    []db.Entry
	from, to []byte
	value    []byte
	low      []byte // the key of an account under the balance
}

// newKVOpenings opens the client's session, in which all its transactions are.
func (m *kvModel) newKVOpenings(ctx context.Context, h *chooser) (load.Client, error) {
	r := m.Database.(db.Ranger) // or the model was refused
	s, err := r.RangeSession(ctx, workload.SessionOptions(m.config.Isolation, m.config.Mode))
	if err != nil {
		return nil, err
	}
	client := workload.NewKVClient(s, h, rules, ledgerPrefix)
	c := &kvOpenings{KVClient: client, chooser: h, ranges: s, keys: make([][]byte, 4), found: make([]db.Entry, 4)}
	return &withOpenings{Client: client, choice: h, attempt: c.attempt}, nil
}

func (c *kvOpenings) attempt(ctx context.Context, tx *history.Transaction) error {
	readOnly := tx.Kind.ReadOnly()
	if err := c.ranges.Begin(ctx, readOnly); err != nil {
		return err
	}
	reason, err := c.read(ctx, tx)
	if err != nil {
		return err
	}
	if reason != 0 || readOnly {
		// All reads come from one snapshot, so the refusal needs no commit.
		c.ranges.Rollback()
		workload.Decide(tx, reason)
		return nil
	}
	keys := c.keys[:planned(tx)+1]
	for i := range planned(tx) {
		if op := &tx.Ops[i]; op.Write {
			c.write(tx, op, keys[i])
		}
	}
	c.value = c.AppendEntry(c.value[:0], tx, keys)
	c.ranges.Set(keys[planned(tx)], c.value)
	if err = c.ranges.Commit(ctx); err == nil {
		workload.Decide(tx, 0)
	}
	return err
}

// write writes the account of an operation.
func (c *kvOpenings) write(tx *history.Transaction, op *history.Op, key []byte) {
	balance := op.Value + op.Amount
	c.value = workload.State{Balance: balance, Version: int64(op.Version) + 1, Last: int64(tx.ID)}.Append(c.value[:0])
	if op.Object >= firstOpened {
		c.low = append(append(c.low[:0], lowPrefix...), key[len(accountPrefix):]...)
		switch was, is := op.Value != 0 && op.Value < lowBalance, balance != 0 && balance < lowBalance; {
		case is:
			c.ranges.Set(c.low, c.value)
		case was:
			c.ranges.Delete(c.low)
		}
		if tx.Kind == closing {
			c.ranges.Delete(key)
			return
		}
	}
	c.ranges.Set(key, c.value)
}

// read reads the accounts of a transaction and the range, and decides. An error has ended
// the transaction.
func (c *kvOpenings) read(ctx context.Context, tx *history.Transaction) (reason history.Reason, err error) {
	n := planned(tx)
	for i := range n {
		c.keys[i] = c.AppendKey(c.keys[i][:0], tx.Ops[i].Object)
	}
	keys, found := c.keys[:n], c.found[:n]
	if readOnly := tx.Kind.ReadOnly(); !readOnly {
		c.keys[n] = workload.Hex.Append(append(c.keys[n][:0], ledgerPrefix...), uint64(tx.ID), workload.IDLength)
		keys, found = c.keys[:n+1], c.found[:n+1]
	}
	if err := c.ranges.Read(ctx, keys, found); err != nil {
		return 0, err
	}
	if len(found) > n && found[n].Found {
		c.ranges.Rollback()
		return 0, workload.InLedger(found[n].Value)
	}
	if reason, err = c.observe(tx); err != nil {
		c.ranges.Rollback()
		return 0, err
	}
	if of := predicateOf(tx); of != nil {
		if err := c.readPredicate(ctx, tx, of.Object); err != nil {
			return 0, err
		}
	}
	if reason != 0 || tx.Kind.ReadOnly() {
		return reason, nil
	}
	return cmp.Or(c.decide(tx), c.formula.refusal(tx, c.guarded)), nil
}

// observe notes what was found of the accounts that are planned.
func (c *kvOpenings) observe(tx *history.Transaction) (reason history.Reason, err error) {
	for i := range planned(tx) {
		op, found := &tx.Ops[i], &c.found[i]
		isNew := op.Object >= firstOpened && tx.Kind == opening
		switch {
		case isNew && !found.Found:
			absent(op)
		case isNew:
			return 0, db.Fatalf("open an account", "its key %s is there, which no other transaction makes", c.keys[i])
		case !found.Found:
			reason = noSuchAccount
		default:
			s, ok := workload.ParseState(found.Value)
			if !ok {
				return 0, workload.UnreadableState(c.keys[i], found.Value)
			}
			workload.Observe(op, s.Balance, s.Version, s.Last)
		}
	}
	return reason, nil
}

// readPredicate reads all accounts of the bank code of account n, or those under the
// balance.
func (c *kvOpenings) readPredicate(ctx context.Context, tx *history.Transaction, n uint64) error {
	prefix := accountPrefix
	if tx.Kind == withdrawal || tx.Kind == byBalance {
		prefix = lowPrefix
	}
	c.from = append(appendBIC(append(c.from[:0], prefix...), c.formula.key(n)), '/')
	c.to = append(c.to[:0], c.from...)
	c.to[len(c.to)-1]++
	return c.ranges.Range(ctx, c.from, c.to, func(key, value []byte) error {
		state, ok := workload.ParseState(value)
		if !ok {
			return workload.UnreadableState(key, value)
		}
		if number, ok := accountOf(key[len(prefix):]); ok {
			c.member(tx, number, state)
		}
		return nil
	})
}

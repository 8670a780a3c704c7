package bank

import (
	"cmp"
	"context"
	"slices"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/workload"
)

// sqlClient runs one client's transactions on a session of its own.
type sqlClient struct {
	*chooser
	db.SQLSession
	texts *texts
	style string
	call  func(ctx context.Context, args []db.Value) (*db.Result, error) // of the stored procedure; nil in the other modes

	keys    []sqlKey   // of the operations' accounts
	args    []db.Value // of the statement being added
	lists   []byte     // of the call
	results []int      // of each operation's statement
}

// sqlKey is the key of an account in its table.
type sqlKey struct {
	bic [bicLength]byte
	ban int64
}

func (k *sqlKey) set(key uint64) {
	appendBIC(k.bic[:0], key)
	k.ban = int64(ban(key))
}

// appendTo appends the arguments that pick the account; valid until the next set.
func (k *sqlKey) appendTo(args []db.Value) []db.Value {
	return append(args, db.Value{Text: k.bic[:]}, integer(k.ban))
}

func integer(n int64) db.Value { return db.Value{Int: n} }

// Attempt implements load.Client.
func (c *sqlClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	tx.Ops = tx.Ops[:planned(tx)]
	workload.Forget(tx)
	err := workload.Ended(tx, c.attempt(ctx, tx), rules)
	c.settle(tx, err)
	return err
}

func (c *sqlClient) attempt(ctx context.Context, tx *history.Transaction) error {
	c.keys, c.results, c.args = c.keys[:0], c.results[:0], c.args[:0]
	for i := range tx.Ops {
		var key sqlKey
		key.set(c.formula.key(tx.Ops[i].Object))
		c.keys, c.results = append(c.keys, key), append(c.results, 0)
	}
	if c.call != nil && tx.Kind != inquiry {
		return c.procedure(ctx, tx)
	}
	if err := c.Begin(ctx, tx.Kind.ReadOnly()); err != nil {
		return err
	}
	switch {
	case tx.Kind == inquiry:
		return c.inquire(ctx, tx)
	case tx.Kind == byPredicate, tx.Kind == byBalance:
		return c.readByPredicate(ctx, tx)
	case special(tx.Kind):
		return c.changeOpened(ctx, tx)
	case c.style == Atomic:
		return c.atomic(ctx, tx)
	case c.style == Locked:
		return c.readWrite(ctx, tx, c.texts.readLocking)
	default:
		return c.readWrite(ctx, tx, c.texts.read)
	}
}

// addIntegers appends arguments in place, as addKey does. Lists of db.Value would need
// a larger stack for each of ten thousand clients.
func (c *sqlClient) addIntegers(values ...int64) {
	for _, v := range values {
		c.args = append(c.args, integer(v))
	}
}

// addKey appends the key of the account of operation i. Inlined, its copies would be in
// the frames of its callers, which last while the database answers.
//
//go:noinline
func (c *sqlClient) addKey(i int) { c.args = c.keys[i].appendTo(c.args) }

// do adds a statement with the arguments appended since the last one.
func (c *sqlClient) do(ctx context.Context, s *db.Statement) (result int, err error) {
	result, err = c.Do(ctx, s, c.args)
	c.args = c.args[:0]
	return result, err
}

// atomic changes each balance by a relative update, and lets the schema refuse what the bank does not allow. Except
// for a joint transfer it needs no result before its end, so a pipelined transfer takes one round trip.
func (c *sqlClient) atomic(ctx context.Context, tx *history.Transaction) error {
	if tx.Kind == joint {
		// The decision rests on what was read here, so the transaction has observed these values, whatever the
		// updates find afterwards.
		reason, err := c.readPair(ctx, tx, c.Flush)
		if err != nil {
			return err
		}
		if reason = cmp.Or(reason, c.formula.refusal(tx, true)); reason != 0 {
			return c.end(ctx, tx, reason)
		}
	}
	if err := c.write(ctx, tx, c.addRelative); err != nil {
		return err
	}
	c.observeUpdates(tx)
	return nil
}

// observeUpdates records the results of the relative updates of a committed transaction.
func (c *sqlClient) observeUpdates(tx *history.Transaction) {
	for i := range tx.Ops {
		op := &tx.Ops[i]
		if op.Observed || !op.Write {
			continue
		}
		if r := c.Result(c.results[i]); r != nil && r.Rows() == 1 {
			after := r.Row(0)
			workload.Observe(op, after[0].Int-op.Amount, after[1].Int-1, after[2].Int)
		}
	}
}

// write adds each leg by its number and commits.
func (c *sqlClient) write(
	ctx context.Context, tx *history.Transaction, add func(ctx context.Context, tx *history.Transaction, i int, leg int64) error,
) error {
	leg := int64(0)
	for i := range tx.Ops {
		if !tx.Ops[i].Write {
			continue
		}
		if err := add(ctx, tx, i, leg); err != nil {
			return err
		}
		leg++
	}
	return c.end(ctx, tx, 0)
}

// addRelative adds the statements of the leg of operation i.
func (c *sqlClient) addRelative(ctx context.Context, tx *history.Transaction, i int, leg int64) (err error) {
	id, amount := int64(tx.ID), tx.Ops[i].Amount
	c.addIntegers(amount, id)
	c.addKey(i)
	if c.results[i], err = c.do(ctx, c.texts.update); err != nil {
		return err
	}
	if c.texts.readBack != nil {
		c.addKey(i)
		if c.results[i], err = c.do(ctx, c.texts.readBack); err != nil {
			return err
		}
	}
	c.addIntegers(id, leg)
	c.addKey(i)
	c.addIntegers(amount)
	c.addKey(i)
	_, err = c.do(ctx, c.texts.ledgerRelative)
	return err
}

// readPair reads the two accounts that are not credited in one statement. Even an isolation level with a snapshot per
// statement then shows them together. get makes the result available. The reason is set if one of them does not
// exist.
func (c *sqlClient) readPair(ctx context.Context, tx *history.Transaction, get func(context.Context) error) (reason history.Reason, err error) {
	for i := range tx.Ops {
		if tx.Ops[i].Amount <= 0 {
			c.addKey(i)
		}
	}
	result, err := c.do(ctx, c.texts.readPair)
	if err == nil {
		err = get(ctx)
	}
	if err != nil {
		return 0, err
	}
	r := c.Result(result)
	for i := range tx.Ops {
		op, key := &tx.Ops[i], &c.keys[i]
		for j := 0; r != nil && j < r.Rows(); j++ {
			if row := r.Row(j); string(row[0].Text) == string(key.bic[:]) && row[1].Int == key.ban {
				workload.Observe(op, row[2].Int, row[3].Int, row[4].Int)
			}
		}
		if op.Amount <= 0 && !op.Observed {
			reason = noSuchAccount
		}
	}
	return reason, nil
}

// readWrite reads all accounts, decides, and writes absolute values. Whether
// the reads lock is all that distinguishes locked from rmw.
func (c *sqlClient) readWrite(ctx context.Context, tx *history.Transaction, read *db.Statement) (err error) {
	for i := range tx.Ops {
		c.addKey(i)
		if c.results[i], err = c.do(ctx, read); err != nil {
			return err
		}
	}
	if err := c.Flush(ctx); err != nil {
		return err
	}
	for i := range tx.Ops {
		r := c.Result(c.results[i])
		if r == nil || r.Rows() == 0 {
			return c.end(ctx, tx, noSuchAccount)
		}
		before := r.Row(0)
		workload.Observe(&tx.Ops[i], before[0].Int, before[1].Int, before[2].Int)
	}
	if reason := c.formula.refusal(tx, false); reason != 0 {
		return c.end(ctx, tx, reason)
	}
	return c.write(ctx, tx, c.addAbsolute)
}

// addAbsolute adds the statements of the leg of operation i, whose account was read.
func (c *sqlClient) addAbsolute(ctx context.Context, tx *history.Transaction, i int, leg int64) error {
	op, id, version := &tx.Ops[i], int64(tx.ID), int64(tx.Ops[i].Version)+1
	c.addIntegers(op.Value+op.Amount, version, int64(op.Writer), id)
	c.addKey(i)
	if _, err := c.do(ctx, c.texts.write); err != nil {
		return err
	}
	c.addIntegers(id, leg)
	c.addKey(i)
	c.addIntegers(op.Amount, version)
	_, err := c.do(ctx, c.texts.ledgerAbsolute)
	return err
}

// end commits a transaction, also one that the bank refuses: what it has read is sure
// only once it has committed, and the refusal rests on it.
func (c *sqlClient) end(ctx context.Context, tx *history.Transaction, reason history.Reason) error {
	err := c.Commit(ctx)
	if err == nil {
		workload.Decide(tx, reason)
	}
	return err
}

func (c *sqlClient) inquire(ctx context.Context, tx *history.Transaction) error {
	reason, err := c.readPair(ctx, tx, c.Commit)
	if err == nil {
		workload.Decide(tx, reason)
	}
	return err
}

// ResolveUnknown implements load.Client.
func (c *sqlClient) ResolveUnknown(ctx context.Context, tx *history.Transaction) error {
	if workload.ResolvedWithoutLookUp(tx) {
		return nil
	}
	err := workload.ResolveByRow(ctx, c.SQLSession, tx, c.texts.tombstone, c.texts.legsOf)
	c.settle(tx, err)
	return err
}

// sqlAudits reads accounts of a SQL database, in an isolation in which the statements of
// a transaction read one snapshot.
type sqlAudits struct {
	db.SQLSession
	texts   *texts
	args    []db.Value
	keys    [auditChunk]sqlKey
	results []int
	past    *db.Statement // sets the transaction's time; nil where it reads the present
}

// all runs one statement, which reads one snapshot at any isolation level.
func (s *sqlAudits) all(ctx context.Context, a *auditor, tx *history.Transaction) error {
	return s.Query(ctx, s.texts.inKeyOrder, nil, func(row []db.Value) error {
		a.addRow(tx, row)
		return nil
	})
}

func (a *auditor) addRow(tx *history.Transaction, row []db.Value) {
	if key, ok := keyOf(row[0].Text, row[1].Int); ok {
		a.add(tx, key, stateOf(row[2:]))
	}
}

// stateOf reads the columns of an account behind its key.
func stateOf(row []db.Value) workload.State {
	return workload.State{Balance: row[0].Int, Version: row[1].Int, Last: row[2].Int}
}

// sample reads the accounts in statements of auditChunk keys each; the last
// one repeats its last key.
func (s *sqlAudits) sample(ctx context.Context, a *auditor, tx *history.Transaction) error {
	if err := s.Begin(ctx, true); err != nil {
		return err
	}
	s.results = s.results[:0]
	if s.past != nil {
		if _, err := s.Do(ctx, s.past, nil); err != nil {
			return err
		}
	}
	for ops := range slices.Chunk(tx.Ops, auditChunk) {
		s.args = s.args[:0]
		for i := range s.keys {
			s.keys[i].set(a.formula.key(ops[min(i, len(ops)-1)].Object))
			s.args = s.keys[i].appendTo(s.args)
		}
		result, err := s.Do(ctx, s.texts.readKeys, s.args)
		if err != nil {
			return err
		}
		s.results = append(s.results, result)
	}
	if err := s.Commit(ctx); err != nil {
		return err
	}
	for _, result := range s.results {
		r := s.Result(result)
		for i := range r.Rows() {
			a.addRow(tx, r.Row(i))
		}
	}
	return nil
}

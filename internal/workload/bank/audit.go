package bank

import (
	"context"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// auditor makes the audits of a run and gathers what they see. A whole audit
// reads all accounts; a sampled one reads a row of accounts that follow each
// other by number, from a start drawn at random.
type auditor struct {
	*chooser
	size uint64
	seen []uint64 // one bit an account: a whole audit has read it
}

func newAuditor(b *Bank) *auditor {
	a := &auditor{chooser: b.chooser(b.config.Clients), size: b.config.auditSize(b.Size())}
	if a.whole() {
		a.seen = make([]uint64, (a.accounts+63)/64)
	}
	return a
}

func (a *auditor) whole() bool { return a.size == a.accounts }

// Next implements load.Client. The operations of a whole audit are what it
// finds.
func (a *auditor) Next(tx *history.Transaction) {
	a.sequence++
	*tx = history.Transaction{ID: history.NewID(a.run, a.client, a.sequence), Kind: history.Audit, Ops: tx.Ops[:0]}
	if a.whole() {
		return
	}
	start := a.source.Below(a.accounts - a.size + 1)
	for i := range a.size {
		tx.Ops = append(tx.Ops, history.Op{Object: start + i})
	}
}

// start forgets what an earlier try has seen.
func (a *auditor) start(tx *history.Transaction) {
	workload.Forget(tx)
	if a.whole() {
		tx.Ops = tx.Ops[:0]
		clear(a.seen)
	}
}

// add notes one account. One that no formula makes is left to the end state,
// which tells of it.
func (a *auditor) add(tx *history.Transaction, key uint64, balance, version, last int64) {
	n := a.formula.number(key)
	switch {
	case n >= a.accounts:
	case a.whole():
		tx.Ops = append(tx.Ops, history.Op{Object: n})
		workload.Observe(&tx.Ops[len(tx.Ops)-1], balance, version, last)
		a.seen[n/64] |= 1 << (n % 64)
	case len(tx.Ops) > 0 && n >= tx.Ops[0].Object && n-tx.Ops[0].Object < uint64(len(tx.Ops)):
		workload.Observe(&tx.Ops[n-tx.Ops[0].Object], balance, version, last)
	}
}

// finish ends an audit that has seen all there is. An account that a whole one
// did not find is an operation without an observation, so that the audit does
// not pass for a sample.
func (a *auditor) finish(tx *history.Transaction) {
	tx.Outcome = history.Committed
	if !a.whole() || uint64(len(tx.Ops)) == a.accounts {
		return
	}
	for n := range a.accounts {
		if a.seen[n/64]&(1<<(n%64)) == 0 {
			tx.Ops = append(tx.Ops, history.Op{Object: n})
		}
	}
}

// ResolveUnknown implements load.Client: an audit changes nothing, so whatever became
// of it, it is as if it had not been.
func (a *auditor) ResolveUnknown(_ context.Context, tx *history.Transaction) error {
	tx.Outcome = history.Aborted
	return nil
}

// sqlAuditor audits over SQL.
type sqlAuditor struct {
	*auditor
	session db.SQLSession
	texts   *texts
	args    []db.Value
	bics    [auditChunk][bicLength]byte
	results []int
}

// auditor opens the auditor's session at an isolation in which its statements
// read one snapshot.
func (m *sqlModel) auditor(ctx context.Context, b *Bank) (load.Client, error) {
	s, err := m.Database.Session(ctx, db.SessionOptions{Isolation: m.audits, Mode: db.Pipelined})
	if err != nil {
		return nil, err
	}
	return &sqlAuditor{auditor: newAuditor(b), session: s, texts: m.texts}, nil
}

// Attempt implements load.Client.
func (c *sqlAuditor) Attempt(ctx context.Context, tx *history.Transaction) error {
	c.start(tx)
	var err error
	if c.whole() {
		err = c.readAll(ctx, tx)
	} else {
		err = c.readSample(ctx, tx)
	}
	if err != nil {
		c.start(tx)
		return err
	}
	c.finish(tx)
	return nil
}

// readAll is one statement and thereby one snapshot at any isolation.
func (c *sqlAuditor) readAll(ctx context.Context, tx *history.Transaction) error {
	return c.session.Query(ctx, c.texts.inKeyOrder, nil, func(row []db.Value) error {
		c.row(tx, row)
		return nil
	})
}

func (c *sqlAuditor) row(tx *history.Transaction, row []db.Value) {
	if key, ok := keyOf(row[0].Text, row[1].Int); ok {
		c.add(tx, key, row[2].Int, row[3].Int, row[4].Int)
	}
}

// readSample reads the accounts in statements of auditChunk keys each; the last
// one repeats its last key.
func (c *sqlAuditor) readSample(ctx context.Context, tx *history.Transaction) error {
	if err := c.session.Begin(ctx, true); err != nil {
		return err
	}
	c.results = c.results[:0]
	for from := 0; from < len(tx.Ops); from += auditChunk {
		c.args = c.args[:0]
		for i := range auditChunk {
			key := c.formula.key(tx.Ops[min(from+i, len(tx.Ops)-1)].Object)
			putBIC(&c.bics[i], key)
			c.args = append(c.args, db.Value{Text: c.bics[i][:]}, db.Value{Int: int64(ban(key))})
		}
		result, err := c.session.Do(ctx, c.texts.readKeys, c.args)
		if err != nil {
			return err
		}
		c.results = append(c.results, result)
	}
	if err := c.session.Commit(ctx); err != nil {
		return err
	}
	for _, result := range c.results {
		r := c.session.Result(result)
		for i := range r.Rows() {
			c.row(tx, r.Row(i))
		}
	}
	return nil
}

// Reset implements load.Client.
func (c *sqlAuditor) Reset(ctx context.Context) error { return c.session.Reset(ctx) }

// Close implements load.Client.
func (c *sqlAuditor) Close() error { return c.session.Close() }

// kvAuditor audits a key-value store.
type kvAuditor struct {
	*auditor
	session db.KVSession
	keys    [][]byte // of one Read
	found   []db.Entry
}

// maxKeys bounds the keys of one Read of an audit, unless the store asks for more.
const maxKeys = 500

func (m *kvModel) auditor(ctx context.Context, b *Bank) (load.Client, error) {
	s, err := m.session(ctx)
	if err != nil {
		return nil, err
	}
	c := &kvAuditor{auditor: newAuditor(b), session: s}
	c.found = make([]db.Entry, m.readKeys())
	for range c.found {
		c.keys = append(c.keys, append(make([]byte, 0, accountKeyLength), accountPrefix...)[:accountKeyLength])
	}
	return c, nil
}

// Attempt implements load.Client.
func (c *kvAuditor) Attempt(ctx context.Context, tx *history.Transaction) error {
	c.start(tx)
	var err error
	if c.whole() {
		err = dataset.Scan(ctx, c.session, accountPrefix, func(key, value []byte) error { return c.entry(tx, key, value) })
	} else {
		err = c.readSample(ctx, tx)
	}
	if err != nil {
		c.start(tx)
		return err
	}
	c.finish(tx)
	return nil
}

func (c *kvAuditor) entry(tx *history.Transaction, key, value []byte) error {
	a, ok := parseAccount(value)
	if !ok {
		return valueError(key, value)
	}
	if number, ok := accountOf(key); ok {
		c.add(tx, number, a.balance, a.version, a.last)
	}
	return nil
}

func (c *kvAuditor) readSample(ctx context.Context, tx *history.Transaction) error {
	if err := c.session.Begin(ctx, true); err != nil {
		return err
	}
	for from := 0; from < len(tx.Ops); from += len(c.keys) {
		n := min(len(c.keys), len(tx.Ops)-from)
		for i := range n {
			putAccountKey(c.keys[i], c.formula.key(tx.Ops[from+i].Object))
		}
		if err := c.session.Read(ctx, c.keys[:n], c.found[:n]); err != nil {
			return err
		}
		for i := range n {
			if !c.found[i].Found {
				continue
			}
			if err := c.entry(tx, c.keys[i][len(accountPrefix):], c.found[i].Value); err != nil {
				c.session.Rollback()
				return err
			}
		}
	}
	return c.session.Commit(ctx)
}

// Reset implements load.Client.
func (c *kvAuditor) Reset(ctx context.Context) error { return c.session.Reset(ctx) }

// Close implements load.Client.
func (c *kvAuditor) Close() error { return c.session.Close() }

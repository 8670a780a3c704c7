package kv

import (
	"context"
	"errors"
	"math"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
)

// kvClient runs one client's transactions on a session of its own. Its buffers are
// used again by the next.
type kvClient struct {
	*chooser
	session db.KVSession

	keys  [1][]byte
	found [1]db.Entry
	value []byte

	scan     scanned
	entry    func(key, value []byte) error // of every scan
	from, to []byte                        // of a range
}

var _ load.Client = (*kvClient)(nil)

func newKVClient(h *chooser, s db.KVSession) *kvClient {
	c := &kvClient{chooser: h, session: s}
	c.keys[0], c.from, c.to = h.formula.newKey(), h.formula.newKey(), h.formula.newKey()
	c.scan = scanned{formula: h.formula, scratch: h.formula.newKey()}
	c.entry = c.add
	return c
}

// Attempt implements load.Client.
func (c *kvClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	forget(tx)
	err := c.attempt(ctx, tx)
	if err == nil {
		if tx.Outcome == history.Unknown {
			tx.Outcome = history.Committed
		}
		return nil
	}
	if err == load.ErrAlreadyApplied || db.ClassOf(err) != db.Unknown {
		forget(tx)
	}
	return err
}

func (c *kvClient) attempt(ctx context.Context, tx *history.Transaction) error {
	op := &tx.Ops[0]
	if tx.Kind == history.Scan {
		return c.scanFrom(ctx, tx)
	}
	if err := c.session.Begin(ctx, tx.Kind.ReadOnly()); err != nil {
		return err
	}
	c.formula.putKey(c.keys[0], c.formula.place(op.Object))
	if tx.Kind != history.Put {
		if err := c.read(ctx, op); err != nil {
			return err
		}
		switch {
		case tx.Kind == history.Insert && op.State != history.Absent || op.Write && own(op, tx.ID):
			// A client's own value, or anything at a key that nobody else inserts, is
			// of a try that was told to be not applied.
			c.session.Rollback()
			return load.ErrAlreadyApplied
		case tx.Kind == history.Modify && op.State == history.Absent:
			c.session.Rollback()
			tx.Outcome, tx.Reason = history.Rejected, history.NoSuchAccount
			return nil
		}
	}
	if op.Write {
		c.value = c.formula.appendValue(c.value[:0], op.Object, tx.ID, op.Writer, int(op.Amount))
		c.session.Set(c.keys[0], c.value)
	}
	return c.session.Commit(ctx)
}

// read reads the record whose key is set.
func (c *kvClient) read(ctx context.Context, op *history.Op) error {
	if err := c.session.Read(ctx, c.keys[:], c.found[:]); err != nil {
		return err
	}
	if c.found[0].Found {
		c.formula.observe(op, c.found[0].Value)
	} else {
		absent(op)
	}
	return nil
}

// errEnough ends a scan that has brought what was asked for.
var errEnough = errors.New("enough")

// scanFrom reads as many records as are asked for from a key on. It asks for a range
// that holds them, as likely as not to one in a million, and goes on behind it if it
// did not: a store that must collect a whole range collects no more than that.
func (c *kvClient) scanFrom(ctx context.Context, tx *history.Transaction) error {
	place := c.formula.place(tx.Ops[0].Object)
	c.scan.start(tx)
	for {
		next, end := c.rangeOf(place)
		err := c.session.Scan(ctx, c.from, c.to, c.entry)
		switch {
		case errors.Is(err, errEnough):
			return nil
		case err != nil:
			return err
		case end:
			return nil
		}
		place = next
	}
}

// rangeOf sets from and to for the records that are still wanted, from a place on. It
// returns the place where the next range begins, and whether there is none.
func (c *kvClient) rangeOf(place uint64) (next uint64, end bool) {
	c.formula.putKey(c.from, place)
	clear(c.from[keyHead:]) // the least of all keys at this place
	// The places of the load's records are as if drawn at random, so that their
	// number in a range is Poisson's: its mean is exceeded by five deviations.
	wanted := float64(c.scan.left)
	wanted += 5*math.Sqrt(wanted) + 13
	span := wanted * float64((1<<placeBits)/c.records)
	if span >= float64(uint64(1)<<placeBits-place) {
		c.to = append(c.to[:0], prefix...)
		c.to[len(c.to)-1]++
		return 0, true
	}
	next = place + uint64(span)
	c.to = c.to[:c.formula.keySize]
	copy(c.to, prefix)
	c.formula.putKey(c.to, next)
	clear(c.to[keyHead:])
	return next, false
}

func (c *kvClient) add(key, value []byte) error {
	c.scan.add(key, value)
	if c.scan.left == 0 {
		return errEnough
	}
	return nil
}

// ResolveUnknown implements load.Client. A write is blind, so nothing closes it for ever: if
// its value is there it was applied, and if another is there it may have been
// overwritten, or may still come. It stays unknown then, and the checks let it take
// effect at any later time.
func (c *kvClient) ResolveUnknown(ctx context.Context, tx *history.Transaction) error {
	if tx.Kind.ReadOnly() { // it changes nothing, so it may as well not have been
		tx.Outcome = history.Aborted
		return nil
	}
	if err := c.session.Begin(ctx, true); err != nil {
		return err
	}
	op := tx.Ops[0]
	c.formula.putKey(c.keys[0], c.formula.place(op.Object))
	if err := c.read(ctx, &op); err != nil {
		return err
	}
	if err := c.session.Commit(ctx); err != nil {
		return err
	}
	if own(&op, tx.ID) {
		tx.Outcome = history.Committed
	}
	return nil
}

// Reset implements load.Client.
func (c *kvClient) Reset(ctx context.Context) error { return c.session.Reset(ctx) }

// Close implements load.Client.
func (c *kvClient) Close() error { return c.session.Close() }

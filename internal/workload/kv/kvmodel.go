package kv

import (
	"context"
	"errors"
	"math"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/workload/dataset"
)

type kvModel struct {
	*dataset.KV
	next func(context.Context) (db.KVSession, error) // opens the next client's session
}

// entryBytes is what a store may add to a key and a value in a request.
const entryBytes = 64

func newKVModel(database db.KV, c *Config) (model, error) {
	next, err := sessions(c, database, database.KVSession)
	if err != nil {
		return nil, err
	}
	m, f := &kvModel{next: next}, newFormula(c.Seed, c.Records, c.shape())
	// The last bytes of a record are named a column that means nothing, so that a store
	// which makes values up makes them as long as these.
	filler := db.Column{Name: "filler", Offset: int(max(c.ValueLow, leastValue)) - 8}
	if m.KV, err = dataset.NewKV(kind, database, dataset.Keys{
		Prefixes: []string{prefix}, Facts: len(factsOf(shape{})),
		Spaces: []db.Keyspace{{Prefix: []byte(prefix), Columns: []db.Column{filler}}},
		Put: func(s db.KVSession, _ dataset.Metadata, from, to uint64) {
			key, value := f.newKey(), []byte(nil)
			for n := from; n < to; n++ {
				f.putKey(key, f.place(n))
				value = f.appendValue(value[:0], n, 0, 0, f.size(n, 0))
				s.Set(key, value)
			}
		},
	}); err != nil {
		return nil, err
	}
	if commit := uint64(database.Limits().Commit); commit > 0 {
		// As many records as fit into one commit, and how far the load has come.
		m.Writes = min(m.Writes, int(max(commit/(c.KeySize+c.ValueHigh+entryBytes), 2)))
	}
	return m, nil
}

func (m *kvModel) session(ctx context.Context, c *client) (session, error) {
	s, err := m.next(ctx)
	return &kvSession{KVSession: s, client: c, entry: func(key, value []byte) error {
		if c.scanned(key, value); c.left == 0 {
			return errEnough
		}
		return nil
	}}, err
}

func (m *kvModel) endState(ctx context.Context, record func(key, value []byte) error) error {
	return m.With(ctx, func(s db.KVSession) error { return s.Scan(ctx, []byte(prefix), []byte(behind), record) })
}

// kvSession is a client's session of an ordered key-value store.
type kvSession struct {
	db.KVSession
	client *client

	keys     [1][]byte
	found    [1]db.Entry
	from, to []byte                        // of a range
	entry    func(key, value []byte) error // takes a record of a scan
}

func (s *kvSession) transact(ctx context.Context, tx *history.Transaction) error {
	if tx.Kind == scan {
		return s.scan(ctx, tx)
	}
	if err := s.Begin(ctx, tx.Kind.ReadOnly()); err != nil {
		return err
	}
	c, op := s.client, &tx.Ops[0]
	if tx.Kind != put {
		s.keys[0] = c.key
		if err := s.Read(ctx, s.keys[:], s.found[:]); err != nil {
			return err
		}
		c.observe(op, s.found[0].Found, s.found[0].Value)
	}
	if op.Write {
		if writes, err := mayWrite(tx); !writes {
			s.Rollback()
			return err
		}
		s.Set(c.key, c.newValue(tx))
	}
	return s.Commit(ctx)
}

// errEnough ends a scan that has brought what was asked for.
var errEnough = errors.New("enough")

// scan reads as many records as are asked for from a key on. It asks for a range
// that holds them, as likely as not to one in a million, and goes on behind it if it
// did not: a store that must collect a whole range collects no more than that.
func (s *kvSession) scan(ctx context.Context, tx *history.Transaction) error {
	c := s.client
	c.beginScan(tx)
	s.from = append(s.from[:0], c.key...)
	for place := c.formula.place(tx.Ops[0].Object); ; {
		// The places of the load's records are as if drawn at random, so that their
		// number in a range is Poisson's: its mean is exceeded by five deviations.
		wanted := float64(c.left)
		wanted += 5*math.Sqrt(wanted) + 13
		span := wanted * float64((1<<placeBits)/c.formula.records)
		last := span >= float64(uint64(1)<<placeBits-place)
		if last {
			s.to = append(s.to[:0], behind...)
		} else {
			place += uint64(span)
			s.to = append(s.to[:0], c.key...)
			c.formula.putKey(s.to, place)
		}
		err := s.Scan(ctx, s.from, s.to, s.entry)
		switch {
		case errors.Is(err, errEnough):
			return nil
		case err != nil || last:
			return err
		}
		s.from, s.to = s.to, s.from
	}
}

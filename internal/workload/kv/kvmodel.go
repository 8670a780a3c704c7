package kv

import (
	"context"
	"errors"
	"math"
	"sync"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/workload/dataset"
)

type kvModel struct {
	*dataset.KV
	loading func() *formula                             // of what a load makes
	next    func(context.Context) (db.KVSession, error) // opens the next client's session
}

func newKVModel(database db.KV, c *Config) (model, error) {
	m := &kvModel{}
	m.loading = sync.OnceValue(func() *formula { return newFormula(c.Seed, c.shape()) })
	var err error
	if m.next, err = sessions(c, database, database.KVSession); err != nil {
		return nil, err
	}
	if m.KV, err = dataset.NewKV(kind, database, dataset.Keys{
		Prefixes: []string{prefix}, Spaces: c.space(), Facts: facts, Put: m.put,
	}); err != nil {
		return nil, err
	}
	m.Writes = c.loadWrites(database.Limits())
	return m, nil
}

// space describes the records. Their last bytes are named a column that means
// nothing, so that a store which makes values up makes them as long as these.
func (c *Config) space() []db.Keyspace {
	length := int(max(c.ValueLow, leastValue))
	return []db.Keyspace{{Prefix: []byte(prefix), Columns: []db.Column{{Name: "filler", Offset: length - 8}}}}
}

// put sets the keys of the records from ≤ n < to.
func (m *kvModel) put(s db.KVSession, _ dataset.Metadata, from, to uint64) {
	f := m.loading()
	key, value := f.newKey(), []byte(nil)
	for n := from; n < to; n++ {
		f.putKey(key, f.place(n))
		value = f.appendValue(value[:0], n, 0, 0, f.size(n, 0))
		s.Set(key, value)
	}
}

func (m *kvModel) session(ctx context.Context, f *formula) (session, error) {
	s, err := m.next(ctx)
	if err != nil {
		return nil, err
	}
	k := &kvSession{KVSession: s, from: f.newKey(), to: f.newKey()}
	k.entry = k.add
	return k, nil
}

func (m *kvModel) endState(ctx context.Context, e *endRecords) error {
	return m.With(ctx, func(s db.KVSession) error {
		key := append(make([]byte, 0, 2*mostKey), prefix...)
		return dataset.Scan(ctx, s, prefix, func(rest, value []byte) error {
			key = append(key[:len(prefix)], rest...)
			return e.add(key, value)
		})
	})
}

// kvSession is a client's session of an ordered key-value store.
type kvSession struct {
	db.KVSession

	keys     [1][]byte
	found    [1]db.Entry
	from, to []byte                        // of a range
	client   *client                       // whose transaction scans
	entry    func(key, value []byte) error // takes a record of its scan
}

func (s *kvSession) transact(ctx context.Context, c *client, tx *history.Transaction) error {
	if tx.Kind == history.Scan {
		return s.scan(ctx, c, tx)
	}
	if err := s.Begin(ctx, tx.Kind.ReadOnly()); err != nil {
		return err
	}
	op := &tx.Ops[0]
	if tx.Kind != history.Put {
		s.keys[0] = c.key
		if err := s.Read(ctx, s.keys[:], s.found[:]); err != nil {
			return err
		}
		c.formula.observe(op, s.found[0].Found, s.found[0].Value)
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
func (s *kvSession) scan(ctx context.Context, c *client, tx *history.Transaction) error {
	place := c.formula.place(tx.Ops[0].Object)
	s.client = c
	c.scanned.start(tx)
	for {
		next, end := s.setRange(c, place)
		err := s.Scan(ctx, s.from, s.to, s.entry)
		switch {
		case errors.Is(err, errEnough):
			return nil
		case err != nil || end:
			return err
		}
		place = next
	}
}

// setRange sets from and to for the records that are still wanted, from a place on. It
// returns the place where the next range begins, and whether there is none.
func (s *kvSession) setRange(c *client, place uint64) (next uint64, end bool) {
	setFirst := func(key []byte, place uint64) {
		c.formula.putKey(key, place)
		clear(key[keyHead:]) // the least of all keys at this place
	}
	setFirst(s.from, place)
	// The places of the load's records are as if drawn at random, so that their
	// number in a range is Poisson's: its mean is exceeded by five deviations.
	wanted := float64(c.scanned.left)
	wanted += 5*math.Sqrt(wanted) + 13
	span := wanted * float64((1<<placeBits)/c.records)
	if span >= float64(uint64(1)<<placeBits-place) {
		s.to = append(s.to[:0], prefix...)
		s.to[len(s.to)-1]++
		return 0, true
	}
	next = place + uint64(span)
	s.to = append(s.to[:0], s.from...)
	setFirst(s.to, next)
	return next, false
}

func (s *kvSession) add(key, value []byte) error {
	s.client.scanned.add(key, value)
	if s.client.scanned.left == 0 {
		return errEnough
	}
	return nil
}

package kv

import (
	"cmp"
	"context"
	"errors"
	"math"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/workload/dataset"
)

// kvModel is the workload on an ordered key-value store. It loads as a database of records does. The clients use the
// keys directly, because a put then needs no read before it and a read no decoding.
type kvModel struct {
	*dataset.Records
	database db.KV
	next     func(context.Context) (db.KVSession, error) // opens the next client's session
}

// entryBytes is the number of bytes that a store may add to a key and a value in a request.
const entryBytes = 64

func newKVModel(database db.KV, c *Config) (model, error) {
	next, err := sessions(c, database, database.KVSession)
	if err != nil {
		return nil, err
	}
	// The key of a record begins with the name of the collection, which is the prefix without its slash.
	keys := &db.Collection{Name: prefix[:len(prefix)-1], ID: db.Text, Fields: []db.Field{{Name: "record_value", Type: db.Text}}}
	m, f := &kvModel{database: database, next: next}, newFormula(c.Seed, c.Records, c.shape())
	contents := dataset.Contents{
		Collections: []*db.Collection{keys}, Things: []*db.Collection{keys},
		Put: func(ctx context.Context, s db.RecordSession, _ dataset.Metadata, from, to uint64) error {
			key, value := f.newKey(), []byte(nil)
			for n := from; n < to; n++ {
				f.putKey(key, f.place(n))
				value = f.appendValue(value[:0], n, 0, 0, f.size(n, 0))
				if err := s.Insert(ctx, keys, []db.Value{{Text: key[len(prefix):]}, {Text: value}}); err != nil {
					return err
				}
			}
			return nil
		},
	}
	if commit := uint64(database.Limits().Commit); commit > 0 {
		// As many records as fit into one commit, and how far the load has come.
		contents.Batch = int(max(commit/(c.KeySize+c.ValueHigh+entryBytes), 2)) - 1
	}
	records, _ := db.RecordsOf(database)
	if m.Records, err = dataset.NewRecords(kind, records, contents); err != nil {
		return nil, err
	}
	if store, ok := database.(db.Constrainer); ok {
		// The last bytes of a record are a column without a meaning. A store that makes values up then makes them as
		// long as these.
		filler := db.Column{Name: "filler", Offset: int(max(c.ValueLow, leastValue)) - 8}
		err = store.Constrain([]db.Keyspace{{Prefix: []byte(prefix), Columns: []db.Column{filler}}})
	}
	return m, err
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
	s, err := m.database.KVSession(ctx, db.SessionOptions{Mode: db.Pipelined})
	if err != nil {
		return err
	}
	return cmp.Or(s.Scan(ctx, []byte(prefix), []byte(behind), record), s.Close())
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

// scan reads the requested number of records from a key on. It asks for a range that holds them with a probability of
// all but one in a million, and continues behind the range if necessary. A store that must collect a whole range then
// collects little more than needed.
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

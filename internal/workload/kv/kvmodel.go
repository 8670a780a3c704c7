package kv

import (
	"context"
	"sync"

	"stroppy/internal/db"
	"stroppy/internal/workload/dataset"
)

// kvModel is the workload on an ordered key-value store.
type kvModel struct {
	*dataset.KV
	loading func() *formula                             // of what a load makes
	next    func(context.Context) (db.KVSession, error) // opens the next client's session
}

func newKVModel(database db.KV, c *Config) (*kvModel, error) {
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
	return newKVSession(s, f), nil
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

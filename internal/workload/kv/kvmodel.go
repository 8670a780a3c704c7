package kv

import (
	"context"
	"fmt"
	"sync"

	"stroppy/internal/db"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// kvModel is the workload on an ordered key-value store.
type kvModel struct {
	*dataset.KV
	config  *Config
	loading func() *formula // of what a load makes
	lanes   lanes[db.KVSession]
}

func newKVModel(database db.KV, c *Config) (*kvModel, error) {
	if _, several := database.(db.Multiplexer[db.KVSession]); c.InFlight > 1 && !several {
		return nil, inFlightError(c.InFlight)
	}
	m := &kvModel{config: c}
	m.loading = sync.OnceValue(func() *formula { return newFormula(c.Seed, c.shape()) })
	var err error
	if m.KV, err = dataset.NewKV(kind, database, dataset.Keys{
		Prefixes: []string{prefix}, Spaces: c.space(), Facts: facts, Put: m.put,
	}); err != nil {
		return nil, err
	}
	m.Writes = c.loadWrites(database.Limits())
	return m, nil
}

func inFlightError(n int) error {
	return fmt.Errorf("in-flight is %d, and the library of this database has one transaction under way on a connection: leave it out, and take more clients", n)
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

func (m *kvModel) client(ctx context.Context, h *chooser, _ int) (load.Client, error) {
	s, err := m.session(ctx)
	if err != nil {
		return nil, err
	}
	return newKVClient(h, s), nil
}

func (m *kvModel) session(ctx context.Context) (db.KVSession, error) {
	o := workload.SessionOptions(m.config.Isolation, m.config.Mode)
	if m.config.InFlight <= 1 {
		return m.Database.KVSession(ctx, o)
	}
	return m.lanes.next(func() ([]db.KVSession, error) {
		return m.Database.(db.Multiplexer[db.KVSession]).Streams(ctx, m.config.InFlight, o)
	})
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

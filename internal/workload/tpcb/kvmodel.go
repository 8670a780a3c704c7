package tpcb

import (
	"cmp"
	"context"
	"fmt"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// kvModel is the workload on an ordered key-value store. Its rows always have
// versions: they are part of a value that is written as a whole anyway.
type kvModel struct {
	*dataset.KV
	config *Config
}

// newKVModel fills in what the configuration leaves to the data model.
func newKVModel(database db.KV, c *Config) (*kvModel, error) {
	if c.Mode = cmp.Or(c.Mode, workload.Pipelined); c.Mode == workload.Procedure {
		return nil, fmt.Errorf("mode procedure needs SQL: take pipelined or interactive")
	}
	if most := database.Limits().Writes; most < operations+1 {
		return nil, fmt.Errorf("a transaction of tpcb has %d writes, and one of this database at most %d", operations+1, most)
	}
	c.Versions, c.AnyRows = true, true
	store, err := dataset.NewKV(dataKind, database, dataset.Keys{
		Prefixes: []string{rowPrefix, historyPrefix, barePrefix}, Spaces: rowSpace(), Facts: factCount, Put: putRows,
	})
	return &kvModel{store, c}, err
}

// putRows sets the keys of the rows from ≤ n < to.
func putRows(s db.KVSession, m dataset.Metadata, from, to uint64) {
	f, err := factsOf(&m)
	if err != nil {
		return // Load has made the metadata from what was asked for: they are right
	}
	key, v := newRowKey(), appendValue(make([]byte, 0, rowValue), value{})
	for n := from; n < to; n++ {
		k, id := f.size.place(n)
		putRowKey(key, k, id)
		s.Set(key, v)
	}
}

// adopt does nothing: nobody else makes such keys.
func (m *kvModel) adopt(context.Context, uint64) error { return nil }

func (m *kvModel) replaces(*facts) {}

func (m *kvModel) take(*facts) error { return nil }

// prepare marks a run that keeps no history.
func (m *kvModel) prepare(ctx context.Context, run uint64) error {
	if m.config.History {
		return nil
	}
	key := append([]byte(barePrefix), make([]byte, workload.IDLength)...)
	workload.PutID(key[len(barePrefix):], history.ID(run))
	return m.With(ctx, func(s db.KVSession) error {
		return dataset.Write(ctx, s, func() error {
			s.Set(key, []byte{workload.Tombstone})
			return nil
		})
	})
}

func (m *kvModel) client(ctx context.Context, h *chooser) (load.Client, error) {
	s, err := m.Database.KVSession(ctx, workload.SessionOptions(m.config.Isolation, m.config.Mode))
	if err != nil {
		return nil, err
	}
	return newKVClient(h, s, m.config.History), nil
}

func (m *kvModel) endState(ctx context.Context, e *endRows) error {
	return m.With(ctx, func(s db.KVSession) error {
		err := dataset.Scan(ctx, s, rowPrefix, func(key, b []byte) error {
			k, id, known := parseRowKey(key)
			v, whole := parseValue(b)
			if !known || !whole {
				return e.end.Unexpected(fmt.Sprintf("a row %q with a value of %d bytes, which the load did not make", key, len(b)))
			}
			return e.row(k, id, v.balance, v.version, v.last)
		})
		if err != nil {
			return fmt.Errorf("download the rows: %w", err)
		}
		err = dataset.Scan(ctx, s, barePrefix, func(key, _ []byte) error {
			run, ok := workload.ParseID(key)
			if !ok {
				return e.end.Unexpected(fmt.Sprintf("a mark %q, which no run makes", key))
			}
			return e.bareRun(uint64(run))
		})
		if err != nil {
			return fmt.Errorf("download the marks of runs: %w", err)
		}
		err = dataset.Scan(ctx, s, historyPrefix, func(key, b []byte) error {
			id, ok := workload.ParseID(key)
			if ok && workload.IsTombstone(b) {
				return e.void(id)
			}
			p, whole := parseEntry(id, b)
			if !ok || !whole {
				return e.end.Unexpected(fmt.Sprintf("an entry of the history %q with a value of %d bytes, which no transaction writes", key, len(b)))
			}
			return e.posting(p)
		})
		if err != nil {
			return fmt.Errorf("download the history: %w", err)
		}
		return nil
	})
}

package tpcb

import (
	"context"
	"fmt"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload/dataset"
)

// kvModel is the workload on an ordered key-value store. Its rows always have
// versions: they are part of a value that is written as a whole anyway.
type kvModel struct {
	database db.KV
	store    *dataset.KV
	config   *Config
}

var _ model = (*kvModel)(nil)

// newKVModel fills in what the configuration leaves to the data model, and declares
// the rows to a store that enforces constraints.
func newKVModel(database db.KV, c *Config) (*kvModel, error) {
	switch c.Mode {
	case "":
		c.Mode = Pipelined
	case Procedure:
		return nil, fmt.Errorf("mode procedure needs SQL: take pipelined or interactive")
	}
	if most := database.Limits().Writes; most < operations+1 {
		return nil, fmt.Errorf("a transaction of tpcb has %d writes, and one of this database at most %d", operations+1, most)
	}
	c.Versions, c.AnyRows = true, true
	m := &kvModel{database: database, config: c}
	var err error
	if m.store, err = dataset.NewKV(dataKind, database, m, factCount); err != nil {
		return nil, err
	}
	if d, ok := database.(db.Constrainer); ok {
		if err := d.Constrain(rowSpace()); err != nil {
			return nil, err
		}
	}
	return m, nil
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
	key := append([]byte(barePrefix), make([]byte, idDigits)...)
	putID(key[len(barePrefix):], history.ID(run))
	return m.store.With(ctx, func(s db.KVSession) error {
		return dataset.Retry(ctx, s, func() error {
			if err := s.Begin(ctx, false); err != nil {
				return err
			}
			s.Set(key, []byte{entryVoid})
			return s.Commit(ctx)
		})
	})
}

func (m *kvModel) client(ctx context.Context, h *chooser) (load.Client, error) {
	s, err := m.database.KVSession(ctx, db.SessionOptions{Isolation: m.config.Isolation, Mode: m.config.sqlMode()})
	if err != nil {
		return nil, err
	}
	return newKVClient(h, s, m.config.History), nil
}

// Prefixes implements dataset.Keys.
func (m *kvModel) Prefixes() []string { return []string{rowPrefix, historyPrefix, barePrefix} }

// Put implements dataset.Keys.
func (m *kvModel) Put(s db.KVSession, note dataset.Note, from, to uint64) {
	f, err := factsOf(&note)
	if err != nil {
		return // Load has made the note from what was asked for: it is right
	}
	key, v := newRowKey(), appendValue(make([]byte, 0, rowValue), value{})
	for n := from; n < to; n++ {
		k, id := f.size.place(n)
		putRowKey(key, k, id)
		s.Set(key, v)
	}
}

func (m *kvModel) endState(ctx context.Context, e *endRows) error {
	return m.store.With(ctx, func(s db.KVSession) error {
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
			run, ok := parseID(key)
			if !ok {
				return e.end.Unexpected(fmt.Sprintf("a mark %q, which no run makes", key))
			}
			return e.bareRun(uint64(run))
		})
		if err != nil {
			return fmt.Errorf("download the marks of runs: %w", err)
		}
		err = dataset.Scan(ctx, s, historyPrefix, func(key, b []byte) error {
			id, ok := parseID(key)
			if ok && isVoid(b) {
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

package appends

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"stroppy/internal/check/lists"
	"stroppy/internal/db"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// listPrefix is that of the keys of lists.
const listPrefix = "stroppy-append/list/"

type kvModel struct {
	*dataset.KV
	config *Config
}

var errNoProcedure = errors.New("mode procedure is not one of this workload, whose transactions have as many operations as they draw: take pipelined or interactive")

func newKVModel(database db.KV, c *Config) (model, error) {
	c.Mode = cmp.Or(c.Mode, workload.Pipelined)
	if err := c.textOnly("a key-value store"); err != nil {
		return nil, err
	}
	if writes, most := int(c.Operations), database.Limits().Writes; writes > most {
		return nil, fmt.Errorf("operations is %d, and a transaction of this database has at most %d writes: take fewer", writes, most)
	}
	store, err := dataset.NewKV(kind, database, dataset.Keys{
		Prefixes: []string{listPrefix},
		Spaces:   []db.Keyspace{{Prefix: []byte(listPrefix)}},
		Put:      func(db.KVSession, dataset.Metadata, uint64, uint64) {}, // nothing: a list begins with its first element
	})
	return &kvModel{store, c}, err
}

func (*kvModel) storage() lists.Storage { return lists.Values }

func (m *kvModel) client(ctx context.Context, h *chooser) (load.Client, error) {
	s, err := m.Database.KVSession(ctx, workload.SessionOptions(m.config.Isolation, m.config.Mode))
	return &valueClient{chooser: h, values: &kvSession{KVSession: s}, together: m.config.Mode != workload.Interactive}, err
}

func (m *kvModel) endState(ctx context.Context, end *endLists) error {
	return m.With(ctx, func(s db.KVSession) error {
		return dataset.Scan(ctx, s, listPrefix, func(key, value []byte) error {
			object, ok := workload.Hex.Parse(key)
			if !ok || len(key) != workload.IDLength {
				return end.end.Unexpected(fmt.Sprintf("a key %q with a value of %d bytes, which no transaction writes", listPrefix+string(key), len(value)))
			}
			return end.text(object, value)
		})
	})
}

// kvSession is a client's session of an ordered key-value store.
type kvSession struct {
	db.KVSession
	keys  [][]byte
	found []db.Entry
	key   []byte // that is written
}

func appendKey(b []byte, object uint64) []byte {
	return workload.Hex.Append(append(b, listPrefix...), object, workload.IDLength)
}

func (s *kvSession) read(ctx context.Context, objects []uint64, out [][]byte) error {
	for len(s.keys) < len(objects) {
		s.keys, s.found = append(s.keys, nil), append(s.found, db.Entry{})
	}
	for i, object := range objects {
		s.keys[i] = appendKey(s.keys[i][:0], object)
	}
	found := s.found[:len(objects)]
	if err := s.Read(ctx, s.keys[:len(objects)], found); err != nil {
		return err
	}
	for i := range found {
		if found[i].Found {
			out[i] = found[i].Value
		}
	}
	return nil
}

func (s *kvSession) write(_ context.Context, object uint64, value []byte, _ bool) error {
	s.key = appendKey(s.key[:0], object)
	s.Set(s.key, value)
	return nil
}

func (s *kvSession) giveUp(context.Context) error {
	s.Rollback()
	return nil
}

package schedule

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"stroppy/internal/db"
)

// kvTable is the table in the model of an ordered key-value store: a row is a key. A predicate is
// read by the range of all keys that a row could have. If transactions read no ranges, it is read
// by all those keys, absent ones included. Every schedule has keys of its own, whose numbers begin
// after number, so that no earlier schedule affects it.
//
// The adapter of package db that gives such a store records is of no use here: its transactions
// read a key once, and would hide that a second read differs.
type kvTable struct {
	base[db.KVSession]
	number int64
}

// NewKV returns the table in a database of the model of key-value stores.
func NewKV(database db.KV) Table {
	t := &kvTable{}
	t.base = base[db.KVSession]{
		open: kvOpener(database), rows: t.scan, client: func(s db.KVSession) Client { return &kvClient{s, t} },
	}
	return t
}

// kvPrefix begins all keys, which end with a number of ten digits.
const kvPrefix = tableName + "/"

func (t *kvTable) key(id int64) []byte { return fmt.Appendf(nil, kvPrefix+"%010d", t.number+id) }

func kvValue(amount int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(amount)) }

func (*kvTable) Refuses(s *Schedule) string {
	switch {
	case s.Index:
		return "a key-value store has no index; see the variant without one"
	case s.Own:
		return "a transaction of a key-value store does not read its own writes here"
	case s.locking():
		return "no read of a key-value store locks"
	}
	return ""
}

func (t *kvTable) Fill(ctx context.Context, rows []Row, _ bool) error {
	if t.number == 0 {
		if err := t.clear(ctx); err != nil {
			return err
		}
	}
	t.number += lastID
	return t.with(ctx, func(s db.KVSession) error {
		return db.Repeat(ctx, s, nil, func() error {
			for _, r := range rows {
				s.Set(t.key(r.ID), kvValue(r.Amount))
			}
			return nil
		})
	})
}

// clear deletes the keys of all schedules, also those that an earlier call left.
func (t *kvTable) clear(ctx context.Context) error {
	return t.with(ctx, func(s db.KVSession) error {
		var keys [][]byte
		err := s.Scan(ctx, []byte(kvPrefix), []byte(tableName+"0"), func(key, _ []byte) error { // 0 follows /
			keys = append(keys, slices.Clone(key))
			return nil
		})
		for batch := range slices.Chunk(keys, kvBatch) {
			if err != nil {
				break
			}
			err = db.Repeat(ctx, s, nil, func() error {
				for _, key := range batch {
					s.Delete(key)
				}
				return nil
			})
		}
		return err
	})
}

// kvBatch is the number of keys that one transaction deletes; every store accepts as many.
const kvBatch = 100

// scan returns the rows that a session finds without a transaction: a schedule may show that
// transactions of the store cannot be trusted.
func (t *kvTable) scan(ctx context.Context, s db.KVSession) (rows []Row, err error) {
	err = s.Scan(ctx, t.key(1), t.key(lastID+1), func(key, value []byte) error {
		row, err := t.row(key, value)
		rows = append(rows, row)
		return err
	})
	return rows, err
}

func (t *kvTable) Replica(database db.Database) (Table, error) {
	d, ok := database.(db.KV)
	return newReplica(&t.base, kvOpener(d), ok)
}

// row returns the row of a key and its value.
func (t *kvTable) row(key, value []byte) (Row, error) {
	number, err := strconv.ParseInt(strings.TrimPrefix(string(key), kvPrefix), 10, 64)
	if err != nil || len(value) != 8 {
		return Row{}, db.Fatalf("read a row of the schedules", "the key %s holds %d bytes, which no schedule wrote", key, len(value))
	}
	return Row{number - t.number, int64(binary.BigEndian.Uint64(value))}, nil
}

// kvOpener opens sessions that read ranges, if the database has such.
func kvOpener(database db.KV) opener[db.KVSession] {
	return func(ctx context.Context, o db.SessionOptions) (db.KVSession, error) {
		if r, ok := database.(db.Ranger); ok {
			return r.RangeSession(ctx, o)
		}
		return database.KVSession(ctx, o)
	}
}

func (t *kvTable) Remove(ctx context.Context) error {
	if t.number == 0 {
		return nil
	}
	return errors.Join(t.clear(ctx), t.close())
}

// kvClient is a session on a kvTable.
type kvClient struct {
	db.KVSession
	of *kvTable
}

// Rollback has no error in this model.
func (c *kvClient) Rollback(context.Context) error {
	c.KVSession.Rollback()
	return nil
}

// all returns all rows.
func (c *kvClient) all(ctx context.Context) (rows []Row, err error) {
	ranges, ok := c.KVSession.(db.RangeSession)
	if !ok {
		return c.read(ctx, []int64{1, 2, 3, 4})
	}
	err = ranges.Range(ctx, c.of.key(1), c.of.key(lastID+1), func(key, value []byte) error {
		row, err := c.of.row(key, value)
		rows = append(rows, row)
		return err
	})
	return rows, err
}

func (c *kvClient) read(ctx context.Context, ids []int64) ([]Row, error) {
	var keys [][]byte
	for _, id := range ids {
		keys = append(keys, c.of.key(id))
	}
	entries := make([]db.Entry, len(keys))
	if err := c.Read(ctx, keys, entries); err != nil {
		return nil, err
	}
	var rows []Row
	for i, e := range entries {
		if !e.Found {
			continue
		}
		row, err := c.of.row(keys[i], e.Value)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (c *kvClient) Do(ctx context.Context, o Operation) (r Result, err error) {
	switch o.Kind {
	case Read:
		r.Rows, err = c.read(ctx, o.IDs)
		return r, err
	case Write, Insert:
		c.Set(c.of.key(o.IDs[0]), kvValue(o.Amount))
		return r, nil
	case Delete:
		c.Delete(c.of.key(o.IDs[0]))
		return r, nil
	}
	rows, err := c.selected(ctx, o)
	if err != nil {
		return r, err
	}
	switch o.Kind {
	case Find:
		return Result{Rows: rows}, nil
	case DeleteWhere:
		for _, row := range rows {
			c.Delete(c.of.key(row.ID))
		}
	default:
		for _, row := range rows {
			c.Set(c.of.key(row.ID), kvValue(row.Amount+o.Amount))
		}
	}
	return affected(len(rows)), nil
}

// selected returns the rows of an operation that needs to read them.
func (c *kvClient) selected(ctx context.Context, o Operation) ([]Row, error) {
	if o.Kind == Add {
		return c.read(ctx, o.IDs)
	}
	rows, err := c.all(ctx)
	if o.Kind != AddAll {
		rows = o.among(rows)
	}
	return rows, err
}

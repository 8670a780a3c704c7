// Package noop is the database that answers at once and keeps nothing. A run on it
// measures the tool itself: what a transaction takes when the database takes no time.
package noop

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"sync/atomic"

	"stroppy/internal/db"
	"stroppy/internal/isolation"
)

const (
	// maxWrites is as good as none, and keeps a batch of a load countable.
	maxWrites = 1 << 20
	// plenty is the first column of every value: a balance that no transfer overdraws.
	plenty = 1 << 40
)

// Database satisfies db.KV, db.Records, db.Volatile and db.Constrainer.
type Database struct {
	// spaces is replaced as a whole, so that sessions share it without a lock.
	spaces atomic.Pointer[[]space]
}

// space is a prefix whose keys are all found, with the same value.
type space struct{ prefix, value []byte }

// Open returns the database. There is nothing to reach and nothing that can fail.
func Open() *Database {
	d := new(Database)
	d.spaces.Store(new([]space))
	return d
}

// Info describes it as what it is.
func (*Database) Info(context.Context) (db.Info, error) {
	return db.Info{Name: "noop", Version: "built in", Settings: []db.Setting{{Name: "durability", Value: "none: nothing is kept"}}}, nil
}

// Claim promises nothing.
func (*Database) Claim(name string) (db.Claim, error) { return isolations.Claim(name) }

var isolations = db.Isolations{
	Product: "noop", Source: "noop keeps nothing and so promises nothing",
	Levels: []db.NamedLevel{{Name: "none", Level: isolation.Unknown}},
}

// Volatile is true: no end state of a run on it can be checked.
func (*Database) Volatile() bool { return true }

// Limits implements db.Database.
func (*Database) Limits() db.Limits {
	return db.Limits{Writes: maxWrites, Connectionless: true, Optimistic: true, Guarded: true}
}

// Close does nothing.
func (*Database) Close() error { return nil }

// Constrain makes every key of a space that has columns be found: the first column holds
// a large positive number, the others zero, which violates no constraint. It is for
// transactions that begin later, and takes the place of an earlier call.
func (d *Database) Constrain(spaces []db.Keyspace) error {
	var list []space
	for _, s := range spaces {
		if len(s.Columns) == 0 {
			continue
		}
		length := 0
		for _, c := range s.Columns {
			if c.Offset < 0 {
				return db.Fatalf("declare a keyspace to noop", "column %q of prefix %q begins before its value", c.Name, s.Prefix)
			}
			length = max(length, c.Offset+8)
		}
		value := make([]byte, length)
		binary.BigEndian.PutUint64(value[s.Columns[0].Offset:], plenty)
		list = append(list, space{bytes.Clone(s.Prefix), value})
	}
	slices.SortStableFunc(list, func(a, b space) int { return len(b.prefix) - len(a.prefix) })
	d.spaces.Store(&list)
	return nil
}

// KVSession opens a session; there is no end to how many.
func (d *Database) KVSession(_ context.Context, options db.SessionOptions) (db.KVSession, error) {
	if _, err := isolations.Name(options.Isolation); err != nil {
		return nil, err
	}
	return &session{database: d, spaces: d.spaces.Load()}, nil
}

// session holds nothing that another session changes.
type session struct {
	database *Database
	spaces   *[]space  // the longest prefix first
	_        [112]byte // no two sessions on one cache line, nor on the one prefetched with it
}

func (s *session) Begin(context.Context, bool) error {
	s.spaces = s.database.spaces.Load()
	return nil
}

func (s *session) Read(_ context.Context, keys [][]byte, out []db.Entry) error {
	if len(out) < len(keys) {
		return db.Fatalf("read", "%d keys and room for %d values", len(keys), len(out))
	}
	for i, key := range keys {
		out[i] = db.Entry{}
		for k := range *s.spaces {
			if space := &(*s.spaces)[k]; bytes.HasPrefix(key, space.prefix) {
				out[i] = db.Entry{Value: space.value, Found: true}
				break
			}
		}
	}
	return nil
}

func (*session) Set(_, _ []byte)              {}
func (*session) Delete([]byte)                {}
func (*session) Commit(context.Context) error { return nil }
func (*session) Rollback()                    {}
func (*session) Reset(context.Context) error  { return nil }
func (*session) Close() error                 { return nil }

// Scan finds nothing, because nothing is kept.
func (*session) Scan(context.Context, []byte, []byte, func(key, value []byte) error) error {
	return nil
}

package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"stroppy/internal/db"
)

const (
	// loaders is how many sessions load at once, each a part of its own. It is
	// fixed, so that an interrupted load is resumed with the same parts.
	loaders = 8
	// maxBatch bounds the things that one transaction of the load makes, whatever
	// the store would take.
	maxBatch = 1000
	// clearKeys is how many keys are found at a time when all are deleted.
	clearKeys = 10_000
	// loadTries is how often one transaction of the load is tried.
	loadTries = 20
	// loadPause is waited before the second try, twice that before the third …
	loadPause = 10 * time.Millisecond
)

// Keys are a workload's keys.
type Keys struct {
	// Prefixes are those of all its keys, the metadata's excepted; each ends with a
	// slash. The first is that of the things, one key a thing.
	Prefixes []string
	// Spaces are declared to a store that enforces constraints.
	Spaces []db.Keyspace
	// Facts is how many facts of its own the metadata have.
	Facts int
	// Put sets the keys of the things from ≤ n < to.
	Put func(s db.KVSession, m Metadata, from, to uint64)
}

// KV is a Store in an ordered key-value store. The metadata are a key a fact.
type KV struct {
	Database db.KV
	Writes   int  // of one transaction of the load
	Guarded  bool // the store enforces the constraints of the Spaces by itself
	kind     Kind
	keys     Keys
}

// NewKV returns the store of a kind.
func NewKV(kind Kind, database db.KV, keys Keys) (*KV, error) {
	// What the first transaction of a load writes: the metadata, and the progress of
	// all parts.
	least, most := len(kind.starting(Metadata{}))+keys.Facts+loaders, database.Limits().Writes
	if most < least {
		return nil, fmt.Errorf("a transaction of this database has at most %d writes, and the %s needs %d", most, kind.Noun, least)
	}
	k := &KV{Database: database, Writes: most, kind: kind, keys: keys}
	if d, ok := database.(db.Constrainer); ok {
		if err := d.Constrain(keys.Spaces); err != nil {
			return nil, err
		}
		k.Guarded = true
	}
	return k, nil
}

func (k *KV) key(name string) []byte { return []byte(k.kind.Prefix + name) }

// partName is the name under which part i of the load keeps how many of its things
// are made.
func partName(i int) string { return nameRows + "/" + strconv.Itoa(i) }

// part returns the things of part i: from ≤ n < to.
func part(size uint64, i int) (from, to uint64) {
	each, more := size/loaders, size%loaders
	start := func(i uint64) uint64 { return i*each + min(i, more) }
	return start(uint64(i)), start(uint64(i) + 1)
}

// With lends a session for something that is no client's transaction.
func (k *KV) With(ctx context.Context, use func(s db.KVSession) error) error {
	return with(ctx, k.Database.KVSession, use)
}

// Change carries out one transaction as write does.
func (k *KV) Change(ctx context.Context, change func(s db.KVSession) error) error {
	return k.With(ctx, func(s db.KVSession) error {
		return write(ctx, s, func() error { return change(s) })
	})
}

// with lends a session of any data model.
func with[S interface{ Close() error }](
	ctx context.Context, open func(context.Context, db.SessionOptions) (S, error), use func(s S) error,
) error {
	s, err := open(ctx, db.SessionOptions{Mode: db.Pipelined})
	if err != nil {
		return err
	}
	return cmp.Or(use(s), s.Close())
}

// Scan hands all entries with a prefix, which ends with a slash, to entry: their
// keys without it.
func Scan(ctx context.Context, s db.KVSession, prefix string, entry func(key, value []byte) error) error {
	from, to := []byte(prefix), []byte(prefix)
	to[len(to)-1]++
	return s.Scan(ctx, from, to, func(key, value []byte) error { return entry(key[len(prefix):], value) })
}

// Read implements Store.
func (k *KV) Read(ctx context.Context) (Metadata, error) {
	values := map[string]string{}
	err := k.With(ctx, func(s db.KVSession) error {
		clear(values)
		return Scan(ctx, s, k.kind.Prefix, func(key, value []byte) error {
			values[string(key)] = string(value)
			return nil
		})
	})
	if err != nil {
		return Metadata{}, err
	}
	return k.kind.parseParts(values), nil
}

// parseParts reads metadata of a load in parts.
func (k *Kind) parseParts(values map[string]string) Metadata {
	var rows uint64
	var parts [loaders]uint64
	for i := range parts {
		parts[i], _ = strconv.ParseUint(values[partName(i)], 10, 64) // 0 if it is none: the things are counted
		rows += parts[i]
		delete(values, partName(i))
	}
	values[nameRows] = strconv.FormatUint(rows, 10)
	m := k.parse(values)
	m.parts = parts
	return m
}

// errFound ends a scan that has found as much as it was to find.
var errFound = errors.New("found")

// Foreign implements Store.
func (k *KV) Foreign(ctx context.Context) (string, error) {
	var what string
	err := k.With(ctx, func(s db.KVSession) error {
		for _, prefix := range append(slices.Clone(k.keys.Prefixes), k.kind.Prefix) {
			err := Scan(ctx, s, prefix, func(key, _ []byte) error {
				what = fmt.Sprintf("this database has a key %q", prefix+string(key))
				return errFound
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if what != "" {
		return what, nil
	}
	return "", err
}

// Begin implements Store. It marks the data as loading first, so that a crash at
// any later time leaves data that say so.
func (k *KV) Begin(ctx context.Context, m Metadata) error {
	return k.With(ctx, func(s db.KVSession) error {
		err := k.mark(ctx, s, m)
		for i := len(k.keys.Prefixes) - 1; i >= 0 && err == nil; i-- {
			_, err = k.clear(ctx, s, k.keys.Prefixes[i])
		}
		return err
	})
}

// mark writes the metadata of a load that starts in place of any others.
func (k *KV) mark(ctx context.Context, s db.KVSession, m Metadata) error {
	return write(ctx, s, func() error {
		for _, row := range k.kind.starting(m) {
			s.Set(k.key(row[0]), []byte(row[1]))
		}
		for i := range loaders {
			s.Delete(k.key(partName(i)))
		}
		return nil
	})
}

// transactor is a session of any model whose transactions are begun and committed.
type transactor interface {
	Begin(ctx context.Context, readOnly bool) error
	Commit(ctx context.Context) error
	Reset(ctx context.Context) error
}

// write carries out one transaction, repeated while it may be, whatever became of it
// before: what it writes is the same every time. errChanged ends it.
func write(ctx context.Context, s transactor, change func() error) error {
	var lost error // why the session could not be reset
	for try := 1; ; try++ {
		err := lost
		if err == nil {
			err = s.Begin(ctx, false)
		}
		if err == nil {
			err = change()
		}
		if err == nil {
			err = s.Commit(ctx)
		}
		if err == nil || try == loadTries || ctx.Err() != nil || err == errChanged {
			return err
		}
		class := db.ClassOf(err)
		if class == db.Fatal || class == db.Constraint {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Duration(try) * loadPause):
		}
		if lost = nil; class == db.Unknown || class == db.Unavailable {
			lost = s.Reset(ctx)
		}
	}
}

// clear deletes all keys with a prefix, and counts them. It scans for some keys, and scans again when they
// are deleted: not every store can go on with the scan of one snapshot when it has been
// written to.
func (k *KV) clear(ctx context.Context, s db.KVSession, prefix string) (removed int, err error) {
	for {
		var keys [][]byte
		scanned := Scan(ctx, s, prefix, func(key, _ []byte) error {
			if keys = append(keys, append([]byte(prefix), key...)); len(keys) == clearKeys {
				return errFound
			}
			return nil
		})
		if scanned != nil && !errors.Is(scanned, errFound) {
			return removed, scanned
		}
		for batch := range slices.Chunk(keys, min(k.Writes, maxBatch)) {
			err := write(ctx, s, func() error {
				for _, key := range batch {
					s.Delete(key)
				}
				return nil
			})
			if err != nil {
				return removed, err
			}
			removed += len(batch)
		}
		if scanned == nil {
			return removed, nil
		}
	}
}

// Rows implements Store.
func (k *KV) Rows(ctx context.Context) (rows uint64, err error) {
	err = k.With(ctx, func(s db.KVSession) error {
		return Scan(ctx, s, k.keys.Prefixes[0], func(_, _ []byte) error {
			rows++
			return nil
		})
	})
	return rows, err
}

// Census implements Store. Each prefix is a part, in the order of the prefixes.
func (k *KV) Census(ctx context.Context, _ Metadata) (c Census, err error) {
	err = k.With(ctx, func(s db.KVSession) error {
		c, err = censusOf(ctx, slices.Sorted(slices.Values(k.keys.Prefixes)), func(ctx context.Context, prefix string) (Part, error) {
			var columns []db.Column
			for _, space := range k.keys.Spaces {
				if string(space.Prefix) == prefix {
					columns = space.Columns
				}
			}
			var named []column
			for _, c := range columns {
				named = append(named, column{c.Name, db.Integer})
			}
			t := newTally("the range "+prefix+"…", "keys", named)
			return t.close(Scan(ctx, s, prefix, func(key, value []byte) error { return t.entry(key, value, columns) }))
		})
		return err
	})
	return c, err
}

// Fill implements Store. It loads all parts at once.
func (k *KV) Fill(ctx context.Context, m Metadata, progress func(done uint64)) error {
	return fillParts(ctx, m, progress, k.fillPart)
}

// fillParts has all parts made at once.
func fillParts(
	ctx context.Context, m Metadata, progress func(done uint64),
	fill func(ctx context.Context, m Metadata, i int, made func(rows uint64)) error,
) error {
	group, ctx := errgroup.WithContext(ctx)
	var mu sync.Mutex
	done := m.Rows
	for i := range loaders {
		group.Go(func() error {
			return fill(ctx, m, i, func(rows uint64) {
				mu.Lock()
				defer mu.Unlock()
				done += rows
				progress(done)
			})
		})
	}
	return group.Wait()
}

// fillPart makes the things of one part that are not there yet, in transactions
// each of which also writes how far the part has come.
func (k *KV) fillPart(ctx context.Context, m Metadata, i int, made func(rows uint64)) error {
	from, to := part(m.Size, i)
	batch := uint64(min(k.Writes-1, maxBatch))
	return k.With(ctx, func(s db.KVSession) error {
		for at := from + m.parts[i]; at < to; {
			if ctx.Err() != nil { // not every store looks, as one that answers at once
				return context.Cause(ctx)
			}
			next := min(at+batch, to)
			err := write(ctx, s, func() error {
				k.keys.Put(s, m, at, next)
				s.Set(k.key(partName(i)), strconv.AppendUint(nil, next-from, 10))
				return nil
			})
			if err != nil {
				return err
			}
			made(next - at)
			at = next
		}
		return nil
	})
}

// Set implements Store.
func (k *KV) Set(ctx context.Context, name, value, guard, was string) error {
	return k.Change(ctx, func(s db.KVSession) error {
		var found [1]db.Entry
		if err := s.Read(ctx, [][]byte{k.key(guard)}, found[:]); err != nil {
			return err
		}
		if string(found[0].Value) != was {
			s.Rollback()
			return errChanged
		}
		s.Set(k.key(name), []byte(value))
		return nil
	})
}

// Prepare implements Store.
func (k *KV) Prepare(context.Context, uint64) error { return nil }

package dataset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

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
type Keys interface {
	// Prefixes are those of all its keys, the note's excepted; each ends with a
	// slash. The first is that of the things, one key a thing.
	Prefixes() []string
	// Put sets the keys of the things from ≤ n < to.
	Put(s db.KVSession, n Note, from, to uint64)
}

// KV is a Store in an ordered key-value store. The note is a key a fact.
type KV struct {
	Database db.KV
	kind     Kind
	keys     Keys
}

var _ Store = (*KV)(nil)

// NewKV returns the store of a kind, which has that many facts of its own.
func NewKV(kind Kind, database db.KV, keys Keys, facts int) (*KV, error) {
	// What the first transaction of a load writes: the note, and the progress of
	// all parts.
	least := len(kind.own()) + facts + loaders
	if most := database.Limits().Writes; most < least {
		return nil, fmt.Errorf("a transaction of this database has at most %d writes, and the %s needs %d", most, kind.Noun, least)
	}
	return &KV{Database: database, kind: kind, keys: keys}, nil
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
	s, err := k.Database.KVSession(ctx, db.SessionOptions{Mode: db.Pipelined})
	if err != nil {
		return err
	}
	err = use(s)
	if e := s.Close(); err == nil {
		err = e
	}
	return err
}

// Scan hands all entries with a prefix, which ends with a slash, to entry: their
// keys without it.
func Scan(ctx context.Context, s db.KVSession, prefix string, entry func(key, value []byte) error) error {
	from, to := []byte(prefix), []byte(prefix)
	to[len(to)-1]++
	return s.Scan(ctx, from, to, func(key, value []byte) error { return entry(key[len(prefix):], value) })
}

// Read implements Store.
func (k *KV) Read(ctx context.Context) (Note, error) {
	values := map[string]string{}
	err := k.With(ctx, func(s db.KVSession) error {
		clear(values)
		return Scan(ctx, s, k.kind.Prefix, func(key, value []byte) error {
			values[string(key)] = string(value)
			return nil
		})
	})
	if err != nil {
		return Note{}, err
	}
	var rows uint64
	for i := range loaders {
		n, _ := strconv.ParseUint(values[partName(i)], 10, 64) // 0 if it is none: Resumable counts
		rows += n
		delete(values, partName(i))
	}
	values[nameRows] = strconv.FormatUint(rows, 10)
	return k.kind.parse(values), nil
}

// errFound ends a scan that has found as much as it was to find.
var errFound = errors.New("found")

// Foreign implements Store.
func (k *KV) Foreign(ctx context.Context) (string, error) {
	var what string
	err := k.With(ctx, func(s db.KVSession) error {
		for _, prefix := range append(k.keys.Prefixes(), k.kind.Prefix) {
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
// any later moment leaves data that say so.
func (k *KV) Begin(ctx context.Context, n Note) error {
	return k.With(ctx, func(s db.KVSession) error {
		err := Retry(ctx, s, func() error {
			if err := s.Begin(ctx, false); err != nil {
				return err
			}
			for _, row := range k.kind.starting(n) {
				s.Set(k.key(row[0]), []byte(row[1]))
			}
			for i := range loaders {
				s.Delete(k.key(partName(i)))
			}
			return s.Commit(ctx)
		})
		if err != nil {
			return err
		}
		for _, prefix := range slices.Backward(k.keys.Prefixes()) {
			if err := k.clear(ctx, s, prefix); err != nil {
				return err
			}
		}
		return nil
	})
}

// Retry repeats one transaction that may be repeated, whatever became of it
// before: a load writes the same every time. A *StateError ends it.
func Retry(ctx context.Context, s db.KVSession, transaction func() error) error {
	for try := 1; ; try++ {
		err := transaction()
		if err == nil || try == loadTries || ctx.Err() != nil || errors.As(err, new(*StateError)) {
			return err
		}
		class := db.ClassOf(err)
		if class == db.Fatal || class == db.Constraint {
			return err
		}
		pause := time.NewTimer(time.Duration(try) * loadPause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return err
		case <-pause.C:
		}
		if class == db.Unknown || class == db.Unavailable {
			// If it fails the next try fails too, and says why.
			_ = s.Reset(ctx)
		}
	}
}

// clear deletes all keys with a prefix, in transactions of a session of its own.
// It scans for some keys, and scans again when they are deleted: not every store
// can go on with the scan of one snapshot when it has been written to.
func (k *KV) clear(ctx context.Context, s db.KVSession, prefix string) error {
	return k.With(ctx, func(deleting db.KVSession) error {
		for {
			var keys [][]byte
			scanned := Scan(ctx, s, prefix, func(key, _ []byte) error {
				if keys = append(keys, append([]byte(prefix), key...)); len(keys) == clearKeys {
					return errFound
				}
				return nil
			})
			if scanned != nil && !errors.Is(scanned, errFound) {
				return scanned
			}
			for batch := range slices.Chunk(keys, min(k.Database.Limits().Writes, maxBatch)) {
				err := Retry(ctx, deleting, func() error {
					if err := deleting.Begin(ctx, false); err != nil {
						return err
					}
					for _, key := range batch {
						deleting.Delete(key)
					}
					return deleting.Commit(ctx)
				})
				if err != nil {
					return err
				}
			}
			if scanned == nil {
				return nil
			}
		}
	})
}

// Resumable implements Store. It trusts the counts that were committed with the
// things, and only if they are the number of things.
func (k *KV) Resumable(ctx context.Context, n Note) (uint64, error) {
	if n.Rows == 0 {
		return 0, nil
	}
	var rows uint64
	err := k.With(ctx, func(s db.KVSession) error {
		return Scan(ctx, s, k.keys.Prefixes()[0], func(_, _ []byte) error {
			rows++
			return nil
		})
	})
	if err != nil || rows != n.Rows || rows > n.Size {
		return 0, err
	}
	return rows, nil
}

// Fill implements Store. It loads all parts at once.
func (k *KV) Fill(ctx context.Context, n Note, progress func(done uint64)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		mu    sync.Mutex
		first error
		done  = n.Rows
		group sync.WaitGroup
	)
	for i := range loaders {
		group.Go(func() {
			err := k.fillPart(ctx, n, i, func(rows uint64) {
				mu.Lock()
				defer mu.Unlock()
				done += rows
				progress(done)
			})
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				if first == nil {
					first = err
				}
				cancel()
			}
		})
	}
	group.Wait()
	return first
}

// fillPart makes the things of one part that are not there yet, in transactions
// each of which also writes how far the part has come.
func (k *KV) fillPart(ctx context.Context, n Note, i int, made func(rows uint64)) error {
	from, to := part(n.Size, i)
	batch := uint64(min(k.Database.Limits().Writes-1, maxBatch))
	return k.With(ctx, func(s db.KVSession) error {
		done, err := k.partDone(ctx, s, i)
		if err != nil {
			return err
		}
		for at := from + done; at < to; {
			if ctx.Err() != nil { // not every store looks, as one that answers at once
				return context.Cause(ctx)
			}
			next := min(at+batch, to)
			err := Retry(ctx, s, func() error {
				if err := s.Begin(ctx, false); err != nil {
					return err
				}
				k.keys.Put(s, n, at, next)
				s.Set(k.key(partName(i)), strconv.AppendUint(nil, next-from, 10))
				return s.Commit(ctx)
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

// partDone reads how many things of a part are there.
func (k *KV) partDone(ctx context.Context, s db.KVSession, i int) (done uint64, err error) {
	var found [1]db.Entry
	err = Retry(ctx, s, func() error {
		if err := s.Begin(ctx, true); err != nil {
			return err
		}
		defer s.Rollback()
		return s.Read(ctx, [][]byte{k.key(partName(i))}, found[:])
	})
	if err != nil || !found[0].Found {
		return 0, err
	}
	return strconv.ParseUint(string(found[0].Value), 10, 64)
}

// Finish implements Store.
func (k *KV) Finish(ctx context.Context, n Note) error {
	return k.With(ctx, func(s db.KVSession) error {
		return Retry(ctx, s, func() error {
			if err := s.Begin(ctx, false); err != nil {
				return err
			}
			var found [1]db.Entry
			if err := s.Read(ctx, [][]byte{k.key(nameLoad)}, found[:]); err != nil {
				return err
			}
			if found[0].Found && string(found[0].Value) != n.Load {
				s.Rollback()
				return k.kind.overtaken()
			}
			s.Set(k.key(nameState), []byte(stateLoaded))
			return s.Commit(ctx)
		})
	})
}

// NextRun implements Store.
func (k *KV) NextRun(ctx context.Context, n Note) error {
	return k.With(ctx, func(s db.KVSession) error {
		if err := s.Begin(ctx, false); err != nil {
			return err
		}
		var found [1]db.Entry
		if err := s.Read(ctx, [][]byte{k.key(nameRun)}, found[:]); err != nil {
			return err
		}
		if string(found[0].Value) != strconv.FormatUint(n.Run, 10) {
			s.Rollback()
			return errRunTaken
		}
		s.Set(k.key(nameRun), strconv.AppendUint(nil, n.Run+1, 10))
		return s.Commit(ctx)
	})
}

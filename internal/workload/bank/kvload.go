package bank

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/money"
)

const (
	// loaders is how many sessions load at once, each a part of its own. It is
	// fixed, so that an interrupted load is resumed with the same parts.
	loaders = 8
	// maxBatch bounds the accounts that one transaction of the load makes,
	// whatever the store would take.
	maxBatch = 1000
	// clearKeys is how many keys are found at a time when all are deleted.
	clearKeys = 10_000
	// loadTries is how often one transaction of the load is tried.
	loadTries = 20
	// loadPause is waited before the second try, twice that before the third …
	loadPause = 10 * time.Millisecond
)

func metaKey(name string) []byte { return []byte(metaPrefix + name) }

// partName is the name under which part i of the load keeps how many of its
// accounts are made.
func partName(i int) string { return metaRows + "/" + strconv.Itoa(i) }

// part returns the accounts of part i: from ≤ n < to.
func part(accounts uint64, i int) (from, to uint64) {
	size, more := accounts/loaders, accounts%loaders
	start := func(i uint64) uint64 { return i*size + min(i, more) }
	return start(uint64(i)), start(uint64(i) + 1)
}

func (m *kvModel) readMeta(ctx context.Context) (meta, error) {
	values := map[string]string{}
	err := m.with(ctx, func(s db.KVSession) error {
		clear(values)
		return scan(ctx, s, metaPrefix, func(key, value []byte) error {
			values[string(key)] = string(value)
			return nil
		})
	})
	if err != nil {
		return meta{}, err
	}
	var rows uint64
	for i := range loaders {
		n, _ := strconv.ParseUint(values[partName(i)], 10, 64) // 0 if it is none: resumable counts
		rows += n
	}
	values[metaRows] = strconv.FormatUint(rows, 10)
	return parseMeta(values), nil
}

// errFound ends a scan that has found as much as it was to find.
var errFound = errors.New("found")

func (m *kvModel) foreign(ctx context.Context) (string, error) {
	var what string
	err := m.with(ctx, func(s db.KVSession) error {
		for _, prefix := range []string{accountPrefix, ledgerPrefix, metaPrefix} {
			err := scan(ctx, s, prefix, func(key, _ []byte) error {
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

// begin marks the bank as loading first, so that a crash at any later moment
// leaves a bank that says so.
func (m *kvModel) begin(ctx context.Context, n meta) error {
	return m.with(ctx, func(s db.KVSession) error {
		err := retry(ctx, s, func() error {
			if err := s.Begin(ctx, false); err != nil {
				return err
			}
			for _, row := range startingMeta(n) {
				s.Set(metaKey(row[0]), []byte(row[1]))
			}
			for i := range loaders {
				s.Delete(metaKey(partName(i)))
			}
			return s.Commit(ctx)
		})
		if err != nil {
			return err
		}
		for _, prefix := range []string{ledgerPrefix, accountPrefix} {
			if err := m.clear(ctx, s, prefix); err != nil {
				return err
			}
		}
		return nil
	})
}

// retry repeats one transaction that may be repeated, whatever became of it
// before: a load writes the same every time.
func retry(ctx context.Context, s db.KVSession, transaction func() error) error {
	for try := 1; ; try++ {
		err := transaction()
		if err == nil || try == loadTries || ctx.Err() != nil {
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
func (m *kvModel) clear(ctx context.Context, s db.KVSession, prefix string) error {
	return m.with(ctx, func(deleting db.KVSession) error {
		for {
			var keys [][]byte
			scanned := scan(ctx, s, prefix, func(key, _ []byte) error {
				if keys = append(keys, append([]byte(prefix), key...)); len(keys) == clearKeys {
					return errFound
				}
				return nil
			})
			if scanned != nil && !errors.Is(scanned, errFound) {
				return scanned
			}
			for batch := range slices.Chunk(keys, min(m.database.MaxWrites(), maxBatch)) {
				err := retry(ctx, deleting, func() error {
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

// resumable trusts the counts that were committed with the accounts, and only
// if they are the number of accounts.
func (m *kvModel) resumable(ctx context.Context, n meta) (uint64, error) {
	if n.rows == 0 {
		return 0, nil
	}
	var rows uint64
	err := m.with(ctx, func(s db.KVSession) error {
		return scan(ctx, s, accountPrefix, func(_, _ []byte) error {
			rows++
			return nil
		})
	})
	if err != nil || rows != n.rows || rows > n.accounts {
		return 0, err
	}
	return rows, nil
}

// fill loads all parts at once.
func (m *kvModel) fill(ctx context.Context, f *formula, n meta, progress func(done uint64)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		mu    sync.Mutex
		first error
		done  = n.rows
		group sync.WaitGroup
	)
	for i := range loaders {
		group.Go(func() {
			err := m.fillPart(ctx, f, n.accounts, i, func(rows uint64) {
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

// fillPart makes the accounts of one part that are not there yet, in
// transactions each of which also writes how far the part has come.
func (m *kvModel) fillPart(ctx context.Context, f *formula, accounts uint64, i int, made func(rows uint64)) error {
	from, to := part(accounts, i)
	batch := uint64(min(m.database.MaxWrites()-1, maxBatch))
	return m.with(ctx, func(s db.KVSession) error {
		done, err := partDone(ctx, s, i)
		if err != nil {
			return err
		}
		for n := from + done; n < to; {
			next := min(n+batch, to)
			err := retry(ctx, s, func() error {
				if err := s.Begin(ctx, false); err != nil {
					return err
				}
				setAccounts(s, f, n, next)
				s.Set(metaKey(partName(i)), strconv.AppendUint(nil, next-from, 10))
				return s.Commit(ctx)
			})
			if err != nil {
				return err
			}
			made(next - n)
			n = next
		}
		return nil
	})
}

// partDone reads how many accounts of a part are there.
func partDone(ctx context.Context, s db.KVSession, i int) (done uint64, err error) {
	var found [1]db.Entry
	err = retry(ctx, s, func() error {
		if err := s.Begin(ctx, true); err != nil {
			return err
		}
		defer s.Rollback()
		return s.Read(ctx, [][]byte{metaKey(partName(i))}, found[:])
	})
	if err != nil || !found[0].Found {
		return 0, err
	}
	return strconv.ParseUint(string(found[0].Value), 10, 64)
}

func setAccounts(s db.KVSession, f *formula, from, to uint64) {
	key := append(make([]byte, 0, accountKeyLength), accountPrefix...)[:accountKeyLength]
	value := make([]byte, 0, accountValue)
	for n := from; n < to; n++ {
		putAccountKey(key, f.key(n))
		value = appendAccount(value[:0], account{balance: f.opening(n)})
		s.Set(key, value)
	}
}

func (m *kvModel) finish(ctx context.Context, total int64) error {
	return m.with(ctx, func(s db.KVSession) error {
		return retry(ctx, s, func() error {
			if err := s.Begin(ctx, false); err != nil {
				return err
			}
			s.Set(metaKey(metaTotal), money.Append(nil, total))
			s.Set(metaKey(metaState), []byte(stateLoaded))
			return s.Commit(ctx)
		})
	})
}

func (m *kvModel) nextRun(ctx context.Context, n meta) error {
	return m.with(ctx, func(s db.KVSession) error {
		if err := s.Begin(ctx, false); err != nil {
			return err
		}
		var found [1]db.Entry
		if err := s.Read(ctx, [][]byte{metaKey(metaRun)}, found[:]); err != nil {
			return err
		}
		if string(found[0].Value) != strconv.FormatUint(n.run, 10) {
			s.Rollback()
			return errRunTaken
		}
		s.Set(metaKey(metaRun), strconv.AppendUint(nil, n.run+1, 10))
		return s.Commit(ctx)
	})
}

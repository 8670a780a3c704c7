package dbtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/db"
	"stroppy/internal/fault"
	"stroppy/internal/nemesis"
)

// opens converts a driver's Open to a function that returns db.Database.
func opens[D db.Database](open func(context.Context, string) (D, error)) func(context.Context, string) (db.Database, error) {
	return func(ctx context.Context, url string) (db.Database, error) {
		d, err := open(ctx, url)
		if err != nil {
			return nil, err
		}
		return d, nil
	}
}

// allFaults is the environment variable that enables all faults instead of only a kill.
const allFaults = "STROPPY_TEST_FAULTS"

// TestFailOverKeepsAcknowledgedCommits injects faults while several sessions commit, and compares every outcome with
// the final data. Acknowledged writes must exist, and refused writes must not exist.
func TestFailOverKeepsAcknowledgedCommits(t *testing.T) {
	needsTime(t)
	t.Parallel()
	for _, f := range failingOvers() {
		if f.apart && os.Getenv(allFaults) == "" {
			continue
		}
		t.Run(f.engine, func(t *testing.T) {
			t.Parallel()
			c, err := f.start(t.Context(), cluster.Options{Nodes: 3, InMemory: true, Params: f.params})
			c = served(t, f.engine, c, err)
			if why := c.Network().Loopback(); why != "" {
				t.Skip("skipped engine: network namespaces: run as root: " + why)
			}
			between := "?"
			if strings.Contains(c.URL(), "?") {
				between = "&"
			}
			d, err := f.open(t.Context(), c.URL())
			d = opened(t, d, err)
			impatient, err := f.open(t.Context(), c.URL()+between+f.more)
			impatient = opened(t, impatient, err)
			if sql, ok := d.(db.SQL); ok {
				if err := sql.Exec(t.Context(), "CREATE TABLE kept (id BIGINT PRIMARY KEY)"); err != nil {
					t.Fatal(err)
				}
			}
			var ids atomic.Int64
			if os.Getenv(allFaults) == "" {
				f.faults = f.faults[:1]
			}
			for _, fault := range f.faults {
				if !t.Run(fault.fault, func(t *testing.T) { retryFault(t, c, d, impatient, fault, &ids) }) {
					break // the cluster may be unusable for the next fault
				}
			}
		})
	}
}

// writer writes an id in a transaction of its own.
type writer interface {
	// write reports whether the commit was sent. It calls before, unless nil, directly before the commit.
	write(ctx context.Context, id int64, before func()) (committing bool, err error)
	Reset(ctx context.Context) error
	Close() error
}

// sqlWriter writes ids into a table.
type sqlWriter struct {
	db.SQLSession
	insert *db.Statement
}

func (s sqlWriter) write(ctx context.Context, id int64, before func()) (bool, error) {
	if err := s.Begin(ctx, false); err != nil {
		return false, err
	}
	if _, err := s.Do(ctx, s.insert, []db.Value{{Int: id}}); err != nil {
		return false, err
	}
	if before != nil {
		before()
	}
	return true, s.Commit(ctx)
}

// kvWriter writes ids as keys.
type kvWriter struct{ db.KVSession }

func (s kvWriter) write(ctx context.Context, id int64, before func()) (bool, error) {
	if err := s.Begin(ctx, false); err != nil {
		return false, err
	}
	key := keptKey(id)
	if err := s.Read(ctx, [][]byte{key}, make([]db.Entry, 1)); err != nil {
		return false, err
	}
	s.Set(key, []byte("x"))
	if before != nil {
		before()
	}
	return true, s.Commit(ctx)
}

// keptKey returns the key of an id.
func keptKey(id int64) []byte { return fmt.Appendf(nil, "kept/%012d", id) }

// metWrite is the outcome of one write.
type metWrite struct {
	id         int64
	err        error
	committing bool
	from, to   time.Duration // time since the start of the nemesis
}

// writers, holders, starters and latecomers are numbers of sessions. The writers are numerous enough that some commit
// is always in progress. Holders delay a commit until the fault is in effect; starters begin then. Latecomers begin
// after three quarters of the fault. In SQL every second session sends each statement separately.
const writers, holders, starters, latecomers = 12, 2, 2, 2

// openWriter opens session i as a writer.
func openWriter(t *testing.T, d db.Database, i int) writer {
	t.Helper()
	if sql, ok := d.(db.SQL); ok {
		s := openAgain(t, func() (db.SQLSession, error) {
			return sql.Session(t.Context(), db.SessionOptions{Mode: []db.Mode{db.Pipelined, db.Interactive}[i%2]})
		})
		return sqlWriter{s, &db.Statement{SQL: "INSERT INTO kept VALUES (" + sql.Dialect().Placeholder(1) + ")", Params: []db.Type{db.Integer}}}
	}
	return kvWriter{openAgain(t, func() (db.KVSession, error) { return d.(db.KV).KVSession(t.Context(), db.SessionOptions{}) })}
}

// openAgain opens a session and retries until it succeeds. On a busy machine a healthy cluster may be failing over at
// this moment.
func openAgain[S io.Closer](t *testing.T, open func() (S, error)) (s S) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	err := wait.Retry(ctx, func() (err error) {
		s, err = open()
		return err
	})
	return opened(t, s, err)
}

// retryFault injects a fault until the commits have the required outcomes. On a busy machine the first tries may fail:
// the cluster may fail over by itself, so that the fault finds no leader or an unused node.
func retryFault(t *testing.T, c cluster.Local, d, impatient db.Database, hurt metFault, ids *atomic.Int64) {
	const tries = 4
	for range tries {
		if injectDuringCommits(t, c, d, impatient, hurt, ids) || t.Failed() {
			return
		}
	}
	t.Errorf("in %d tries the fault did not cause the required outcomes", tries)
}

// injectDuringCommits injects a fault while sessions of impatient write. It reports whether the commits had the
// required outcomes. It reads the final data through d.
func injectDuringCommits(t *testing.T, c cluster.Local, d, impatient db.Database, hurt metFault, ids *atomic.Int64) bool {
	t.Helper()
	f, err := nemesis.Parse(hurt.fault)
	if err != nil {
		t.Fatal(err)
	}
	n, err := nemesis.New(c, c.Network(), nemesis.Script{f}, 1)
	if err != nil {
		t.Fatal(err)
	}
	var sessions [writers + holders + starters + latecomers]writer
	for i := range sessions {
		sessions[i] = openWriter(t, impatient, i)
	}
	began := time.Now() // the time zero of the fault
	clock := func() time.Duration { return time.Since(began) }
	ctx, stop := context.WithTimeout(t.Context(), limit)
	defer stop()
	var mu sync.Mutex // guards all
	var all []metWrite
	var group sync.WaitGroup
	effect, seen := context.WithCancel(ctx)
	defer seen()
	for i, w := range sessions {
		group.Go(func() {
			var before func() // called before each commit
			switch {
			case i >= writers+holders+starters:
				<-effect.Done()
				_ = wait.Sleep(ctx, hurt.lasts()*3/4)
			case i >= writers+holders:
				<-effect.Done()
			case i >= writers && !hurt.waits:
				before = func() { <-effect.Done() }
			}
			one := metWrite{}
			note := func(err error) bool {
				one.err, one.to = err, clock()
				mu.Lock()
				defer mu.Unlock()
				all = append(all, one)
				class := db.ClassOf(err)
				return err != nil && (class == db.Unknown || class == db.Unavailable)
			}
			for ctx.Err() == nil {
				one = metWrite{id: ids.Add(1), from: clock()}
				var err error
				if one.committing, err = w.write(t.Context(), one.id, before); !note(err) {
					if effect.Err() != nil { // other sessions have the commits that the fault interrupts
						_ = wait.Sleep(ctx, 5*wait.PollEvery) // so that a server that comes back can catch up
					}
					continue
				}
				for ctx.Err() == nil {
					one = metWrite{id: ids.Add(1), from: clock()} // the id that the session would have written
					if err := w.Reset(t.Context()); err == nil || !note(err) {
						break
					}
					_ = wait.Sleep(ctx, 5*wait.PollEvery)
				}
			}
		})
	}
	var met fault.Injection
	n.Run(ctx, clock, func(i fault.Injection) {
		seen()
		if met = i; i.Over {
			time.AfterFunc(time.Second, stop) // let the sessions write after the fault
		}
	})
	group.Wait()
	healthy, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := c.WaitHealthy(healthy); err != nil {
		t.Fatal(err)
	}
	injected := met.Healed != nil
	if !injected {
		t.Logf("the fault was not injected as expected: %+v", met)
	}
	seenAll := judge(t, all, kept(t, d), hurt, met)
	return injected && seenAll
}

// kept returns the ids in the final data.
func kept(t *testing.T, d db.Database) map[int64]bool {
	t.Helper()
	there := map[int64]bool{}
	var err error
	switch d := d.(type) {
	case db.SQL:
		s := openAgain(t, func() (db.SQLSession, error) { return d.Session(t.Context(), db.SessionOptions{Mode: db.Interactive}) })
		err = s.Query(t.Context(), &db.Statement{SQL: "SELECT id FROM kept", Columns: []db.Type{db.Integer}}, nil, func(row []db.Value) error {
			there[row[0].Int] = true
			return nil
		})
	case db.KV:
		s := openAgain(t, func() (db.KVSession, error) { return d.KVSession(t.Context(), db.SessionOptions{}) })
		err = s.Scan(t.Context(), []byte("kept/"), []byte("kept0"), func(key, _ []byte) error {
			id, err := strconv.ParseInt(strings.TrimPrefix(string(key), "kept/"), 10, 64)
			there[id] = true
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return there
}

// judge compares every outcome with the final data and logs the outcomes of the writes during the fault. It reports
// whether all required outcomes occurred.
func judge(t *testing.T, all []metWrite, there map[int64]bool, hurt metFault, met fault.Injection) bool {
	t.Helper()
	classes, codes := map[string]int{}, map[string]bool{}
	lost, acknowledged, unknown, refused := 0, 0, 0, 0
	ended := met.At
	for _, at := range []*fault.Seconds{met.InEffect, met.Healing} {
		if at != nil {
			ended = max(ended, *at)
		}
	}
	for _, w := range all {
		class := db.ClassOf(w.err)
		if w.err == nil {
			acknowledged++
		}
		switch applied := there[w.id]; {
		case w.err == nil && !applied:
			lost++
		case w.err == nil, class == db.Unknown && w.committing:
		case class == db.Fatal, class == db.Unknown, class == db.Constraint:
			t.Errorf("a write ended with class %v: %v", class, w.err)
		case applied:
			t.Errorf("a write that was refused was applied: %v", w.err)
		}
		if w.from > time.Duration(ended) || w.to < time.Duration(met.At) {
			continue
		}
		name := "committed"
		if e, ok := errors.AsType[*db.Error](w.err); ok {
			name = strings.TrimSpace(class.String() + " " + e.Code)
			switch {
			case class == db.Unknown:
				unknown++
				name += map[bool]string{true: " (applied)", false: " (not applied)"}[there[w.id]]
			case w.committing:
				name += " at the commit"
			}
			if class != db.Unknown {
				refused, codes[e.Code] = refused+1, true
			}
		}
		classes[name]++
	}
	t.Logf("%s: outcomes of the writes during the fault: %v; %d of %d acknowledged writes are lost",
		hurt.fault, classes, lost, acknowledged)
	if lost > 0 && !hurt.loses {
		t.Errorf("%d acknowledged writes are lost", lost)
	}
	return acknowledged > 0 && (unknown > 0 || hurt.noUnknown != "") && (refused > 0 || hurt.noRefusal != "") && (codes[hurt.code] || hurt.code == "")
}

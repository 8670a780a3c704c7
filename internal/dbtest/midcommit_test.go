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

func opens[D db.Database](open func(context.Context, string) (D, error)) func(context.Context, string) (db.Database, error) {
	return func(ctx context.Context, url string) (db.Database, error) {
		d, err := open(ctx, url)
		if err != nil {
			return nil, err
		}
		return d, nil
	}
}

// allFaults is the variable of the environment that asks for more than a kill.
const allFaults = "STROPPY_TEST_FAULTS"

// TestCommitsMeetFailOver injects each fault while each of several sessions has a commit
// under way, and compares the class of every outcome with what is there in the end: what
// was acknowledged is there, and what was surely not applied is not.
func TestCommitsMeetFailOver(t *testing.T) {
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
				if !t.Run(fault.fault, func(t *testing.T) { meetOnce(t, c, d, impatient, fault, &ids) }) {
					break // the cluster may not be as the next one needs it
				}
			}
		})
	}
}

// writer writes an id in a transaction of its own.
type writer interface {
	// write says also whether the commit was begun.
	// before is called when all but the commit is done; nil does nothing.
	write(ctx context.Context, id int64, before func()) (committing bool, err error)
	Reset(ctx context.Context) error
	Close() error
}

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

func keptKey(id int64) []byte { return fmt.Appendf(nil, "kept/%012d", id) }

// metWrite is what became of one id.
type metWrite struct {
	id         int64
	err        error
	committing bool
	from, to   time.Duration // times of the nemesis's clock
}

// writers are so many that some have a commit under way at any time. Beside them two sessions hold
// the commit of a transaction until the fault is in effect, two begin one then, and two when
// three quarters of the fault are over. Of SQL every second one sends each statement by itself.
const writers, holders, starters, latecomers = 12, 2, 2, 2

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

// openAgain opens a session until it succeeds, because on a busy machine a cluster that was healthy
// may fail over by itself just then.
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

// meetOnce carries a fault out until it has met commits as it must. It may not at once: on a
// busy machine a cluster fails over by itself, and the fault then finds no leader, or a node
// that the clients have left.
func meetOnce(t *testing.T, c cluster.Local, d, impatient db.Database, hurt metFault, ids *atomic.Int64) {
	const tries = 4
	for range tries {
		if meet(t, c, d, impatient, hurt, ids) || t.Failed() {
			return
		}
	}
	t.Errorf("in %d tries the fault did not meet commits as it must", tries)
}

// meet carries a fault out while impatient has sessions that write, and says whether it has met
// commits as it must. By d is read what is there in the end.
func meet(t *testing.T, c cluster.Local, d, impatient db.Database, hurt metFault, ids *atomic.Int64) bool {
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
	began := time.Now() // which the fault counts from
	clock := func() time.Duration { return time.Since(began) }
	ctx, stop := context.WithTimeout(t.Context(), limit)
	defer stop()
	var mu sync.Mutex // of all
	var all []metWrite
	var group sync.WaitGroup
	effect, seen := context.WithCancel(ctx)
	defer seen()
	for i, w := range sessions {
		group.Go(func() {
			var before func() // a commit
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
					if effect.Err() != nil { // the commits that meet the fault are under way
						_ = wait.Sleep(ctx, 5*wait.PollEvery) // so that a server that comes back can catch up
					}
					continue
				}
				for ctx.Err() == nil {
					one = metWrite{id: ids.Add(1), from: clock()} // it would have been written
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
			time.AfterFunc(time.Second, stop) // of writes behind it
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
		t.Logf("the fault was not what it should be: %+v", met)
	}
	seenAll := judge(t, all, kept(t, d), hurt, met)
	return injected && seenAll
}

// kept are the ids that are there.
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

// judge compares every outcome with what is there, logs what the writes came to that were
// under way during the fault, and says whether all outcomes were seen that it must bring.
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
			t.Errorf("a write that was surely not applied is there: %v", w.err)
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
	t.Logf("%s: the writes under way came to %v; %d of all %d acknowledged are lost", hurt.fault, classes, lost, acknowledged)
	if lost > 0 && !hurt.loses {
		t.Errorf("%d acknowledged writes are lost", lost)
	}
	return acknowledged > 0 && (unknown > 0 || hurt.noUnknown != "") && (refused > 0 || hurt.noRefusal != "") && (codes[hurt.code] || hurt.code == "")
}

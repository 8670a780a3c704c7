package run

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
)

// reluctant is a workload whose clients cannot be opened for so long after the first try.
type reluctant struct {
	workload.Workload
	after time.Duration
	err   error
	tries int
	since time.Time
}

func (r *reluctant) Header() history.Header { return history.Header{Clients: 3} }

func (r *reluctant) Client(context.Context, int) (load.Client, error) {
	if r.tries++; r.tries == 1 {
		r.since = time.Now()
	}
	if time.Since(r.since) < r.after {
		return nil, r.err
	}
	return nil, nil
}

// TestOpenClientsReachesABusyServer checks that a dropped connection is made again for ten seconds. Answers of the
// server and other errors are returned at once.
func TestOpenClientsReachesABusyServer(t *testing.T) {
	away := &db.Error{Class: db.Unavailable, Op: "open a session", Err: errors.New("no answer in time")}
	full := &db.Error{Class: db.Unavailable, Op: "open a session", Code: "53300", Err: errors.New("too many clients")}
	for _, c := range []struct {
		name  string
		after time.Duration
		err   error
		opens bool
		took  time.Duration
	}{
		{"at once", 0, away, true, 0},
		{"after nine seconds", 9 * time.Second, away, true, 9 * time.Second},
		{"too late", 11 * time.Second, away, false, reachLimit},
		{"refused by the server", time.Second, full, false, 0},
		{"another error", time.Second, errors.New("no such table"), false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var o load.Options
				servers, err := OpenClients(t.Context(), &reluctant{after: c.after, err: c.err}, &o, 0, 3)
				if took := time.Since(began); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				switch {
				case c.opens && (err != nil || len(servers) != 3 || len(o.Clients) != 3):
					t.Errorf("opened %d: %v", len(o.Clients), err)
				case !c.opens && (!errors.Is(err, c.err) || !strings.HasPrefix(err.Error(), "open client 1 of 3: ")):
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
	t.Run("all", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			var o load.Options
			_, err := OpenClients(t.Context(), &each{err: away}, &o, 0, 100)
			if took := time.Since(began); !errors.Is(err, away) || took < reachAllLimit || took > reachAllLimit+reachLimit {
				t.Errorf("a hundred clients that take nine seconds each: %v after %v", err, took)
			}
		})
	})
	t.Run("end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			began := time.Now()
			if err := Reach(ended, func() error { return away }); !errors.Is(err, away) || time.Since(began) > 0 {
				t.Errorf("at an end: %v after %v", err, time.Since(began))
			}
		})
	})
}

// TestReadNodeAsksAgain checks that a silent node of a whole database is asked again, without remains of the first
// try. A node of a database that is not whole is asked once.
func TestReadNodeAsksAgain(t *testing.T) {
	away := &db.Error{Class: db.Unavailable, Op: "connect", Err: errors.New("no answer in time")}
	for unwhole, tries := range map[string]int{"": 3, "n1 is down": 1} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			node := Node{EndState: func(_ context.Context, end *history.EndWriter) error {
				err := end.Object(history.Object{N: uint64(asked)})
				if asked++; asked < 3 {
					return errors.Join(err, away)
				}
				return err
			}}
			c := &conductor{unwhole: unwhole}
			digest, err := c.readNode(t.Context(), node, filepath.Join(t.TempDir(), "node"))
			if asked != tries || (err == nil) != (tries == 3) || err == nil && digest.Accounts != 1 {
				t.Errorf("whole but for %q: asked %d times: %+v, %v", unwhole, asked, digest, err)
			}
		})
	}
}

// each is a workload each of whose clients can be opened nine seconds after its first try.
type each struct {
	reluctant
	err error
	at  map[int]time.Time
}

func (e *each) Client(_ context.Context, i int) (load.Client, error) {
	if e.at == nil {
		e.at = map[int]time.Time{}
	}
	if _, tried := e.at[i]; !tried {
		e.at[i] = time.Now()
	}
	if time.Since(e.at[i]) < 9*time.Second {
		return nil, e.err
	}
	return nil, nil
}

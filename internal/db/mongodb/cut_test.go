package mongodb

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	server "stroppy/internal/cluster/mongodb"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
)

// TestConnectionLostDuringCommitAppliesItOnce checks that a commit that is lost once is repeated and never applied
// twice. If every attempt is lost, the commit is unknown, whether the server received it or not. A transaction
// that ends before the commit is not applied.
func TestConnectionLostDuringCommitAppliesItOnce(t *testing.T) {
	const limit = 2 * time.Second
	direct := open(t, freshURL(t))
	observer := session1(t, direct, "")
	address := fmt.Sprintf("mongodb://%s/%s?directConnection=true&timeout=%v", direct.config.servers[0], direct.config.database, limit)
	ctx := t.Context()
	change := func(s db.RecordSession) error {
		_, err := s.Update(ctx, move, ids("a"), []db.Value{num(1), num(1)})
		return err
	}
	for _, tc := range []struct {
		request string
		at      drivertest.Moment
		always  bool
		class   db.Class // ignored if the commit is acknowledged
		moved   []int64
	}{
		{"update", drivertest.BeforeRequest, false, db.Unavailable, []int64{0}},
		{"update", drivertest.WithRequest, false, db.Unavailable, []int64{0}},
		{"update", drivertest.BeforeAnswer, false, db.Unavailable, []int64{0}},
		{"commitTransaction", drivertest.BeforeRequest, false, 0, []int64{1}},
		{"commitTransaction", drivertest.WithRequest, false, 0, []int64{1}},
		{"commitTransaction", drivertest.BeforeAnswer, false, 0, []int64{1}},
		{"commitTransaction", drivertest.BeforeRequest, true, db.Unknown, []int64{0}},
		{"commitTransaction", drivertest.WithRequest, true, db.Unknown, []int64{0, 1}},
		{"commitTransaction", drivertest.BeforeAnswer, true, db.Unknown, []int64{1}},
	} {
		t.Run(fmt.Sprintf("%s %d always %v", tc.request, tc.at, tc.always), func(t *testing.T) {
			c := drivertest.Cutter{Only: func(request []byte) bool { return bytes.Contains(request, []byte(tc.request+"\x00")) }}
			s := session1(t, drivertest.Open(t, Open, c.Stand(t, address)), "")
			before := balance(t, observer, "a")
			drivertest.Must(t, s.Begin(ctx, false))
			connections := 1
			if tc.always {
				connections = math.MaxInt
			}
			c.Cut(tc.at, connections)
			err, began := change(s), time.Now()
			if err == nil {
				err = s.Commit(ctx)
			}
			c.Rest()
			if acknowledged := tc.request != "update" && !tc.always; acknowledged {
				drivertest.Must(t, err)
			} else {
				wantError(t, tc.request, err, tc.class, "")
				if text := err.Error(); !strings.HasSuffix(text, ": the connection ended") && !strings.HasSuffix(text, ": no answer within 2s") {
					t.Errorf("the error says %q", text)
				}
				wantError(t, "a broken session", s.Begin(ctx, false), db.Unavailable, "")
			}
			if took := time.Since(began); took > 2*limit {
				t.Errorf("the answer took %v", took)
			}
			drivertest.Must(t, wait.Retry(clustertest.Within(t, clustertest.WaitLimit), func() error { return s.Reset(ctx) }))
			// A later transaction of the session ends the server's part of the one before.
			drivertest.Must(t, transact(ctx, s, func() error { return change(s) }))
			if moved := balance(t, observer, "a") - before - 1; !slices.Contains(tc.moved, moved) {
				t.Errorf("%d were moved, want one of %v", moved, tc.moved)
			}
		})
	}
}

// balance returns the balance of an account, whose version counts its changes.
func balance(t *testing.T, s db.RecordSession, account string) int64 {
	t.Helper()
	var out [1]db.Record
	drivertest.Must(t, s.Begin(t.Context(), true))
	drivertest.Must(t, s.Find(t.Context(), accounts, ids(account), out[:]))
	cents := out[0].Values[1].Int
	drivertest.Must(t, s.Commit(t.Context()))
	return cents
}

// TestFailoverDuringCommitIsUnknown checks that a commit that waits for a lost majority is unknown, and that its
// effect does not change later.
func TestFailoverDuringCommitIsUnknown(t *testing.T) {
	c, err := server.Start(clustertest.Within(t, clustertest.WaitLimit), cluster.Options{Nodes: 3, Loopback: true, InMemory: true})
	clustertest.Need(t, "mongodb", err)
	t.Cleanup(func() { drivertest.Must(t, c.Stop()) })
	d := open(t, at(t, c.URL(), "commit", "timeout=4s"))
	ctx, s := clustertest.Within(t, clustertest.WaitLimit), session1(t, d, "")
	drivertest.Must(t, s.Begin(ctx, false))
	_, err = s.Update(ctx, move, ids("a"), []db.Value{num(1), num(1)})
	drivertest.Must(t, err)
	leader, others := clustertest.Leader(t, c)
	for _, n := range others {
		drivertest.Must(t, n.Pause(ctx))
	}
	answer := make(chan error, 1)
	go func() { answer <- s.Commit(ctx) }()
	drivertest.Must(t, wait.Sleep(ctx, 300*time.Millisecond))
	drivertest.Must(t, leader.Kill(ctx))
	wantUnknown(t, <-answer)
	for _, n := range others {
		drivertest.Must(t, n.Resume(ctx))
	}
	reset := func() error { return s.Reset(ctx) }
	drivertest.Must(t, wait.Retry(ctx, reset))
	was := balance(t, s, "a")
	drivertest.Must(t, leader.Restart(ctx))
	drivertest.Must(t, c.WaitHealthy(ctx))
	drivertest.Must(t, wait.Retry(ctx, reset))
	now := balance(t, s, "a")
	t.Logf("the balance is %d", now)
	if now != was || now != 1000 && now != 1001 {
		t.Errorf("the balance was %d and is %d", was, now)
	}
}

func wantUnknown(t *testing.T, err error) {
	t.Helper()
	if err == nil || db.ClassOf(err) != db.Unknown {
		t.Errorf("%v (%v), want an unknown outcome", err, db.ClassOf(err))
	}
}

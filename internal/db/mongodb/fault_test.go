package mongodb

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	server "stroppy/internal/cluster/mongodb"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
)

// TestRefusedUpdateIsNotApplied checks that an update refused by a conflict or a validation rule is not applied,
// and that the session can continue.
func TestRefusedUpdateIsNotApplied(t *testing.T) {
	d := open(t, freshURL(t))
	ctx, s, other := t.Context(), session1(t, d, ""), session1(t, d, "")
	drivertest.Must(t, other.Begin(ctx, false))
	_, err := other.Update(ctx, move, ids("a"), []db.Value{num(1), num(1)})
	drivertest.Must(t, err)
	less, one := []db.Value{num(-2000), num(1)}, []db.Value{num(1), num(1)}
	drivertest.Must(t, s.Begin(ctx, false))
	_, err = s.Update(ctx, move, ids("a"), one)
	wantError(t, "a conflict", err, db.Aborted, "112")
	drivertest.Must(t, s.Begin(ctx, false))
	_, err = s.FindAndUpdate(ctx, move, text("a"), one)
	wantError(t, "a conflict of find and update", err, db.Aborted, "112")
	drivertest.Must(t, other.Commit(ctx))

	drivertest.Must(t, s.Begin(ctx, false))
	_, err = s.Update(ctx, move, ids("a"), less)
	wantError(t, "a negative balance", err, db.Constraint, "121")
	if kind := db.ConstraintOf(err); kind != db.CheckFailed {
		t.Errorf("a negative balance is the constraint %v", kind)
	}
	drivertest.Must(t, s.Begin(ctx, false))
	_, err = s.FindAndUpdate(ctx, move, text("a"), less)
	wantError(t, "a negative balance of find and update", err, db.Constraint, "121")
	drivertest.Must(t, s.Begin(ctx, false))
	err = s.Insert(ctx, accounts, []db.Value{text("a"), num(0), num(0), {Null: true}})
	wantError(t, "an id that is there", err, db.Constraint, "11000")
	if kind := db.ConstraintOf(err); kind != db.UniqueKey {
		t.Errorf("an id that is there is the constraint %v", kind)
	}
	wantError(t, "without a transaction", s.Commit(ctx), db.Fatal, "")
	want(t, "afterwards", find(t, s, "a"), "a 1001 1 null")
}

// failCommand makes the server fail some commands, times of each kind.
func failCommand(t *testing.T, d *Database, times int, data bson.D) {
	t.Helper()
	fail := func(mode any) error {
		return d.client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: mode}, {Key: "data", Value: data}}).Err()
	}
	drivertest.Must(t, fail(bson.D{{Key: "times", Value: times}}))
	t.Cleanup(func() {
		if err := d.client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "off"}}).Err(); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
}

// TestServerErrorsAreClassified makes the server fail before and during the commit, and checks the effect on the
// transaction.
func TestServerErrorsAreClassified(t *testing.T) {
	if os.Getenv("STROPPY_TEST_MONGODB") != "" {
		t.Skip("skipped engine: mongodb: fail points are of servers that this test starts")
	}
	d := open(t, freshURL(t))
	ctx := t.Context()
	const update, commit = "update", "commitTransaction"
	for _, tc := range []struct {
		what, command string
		times         int
		data          bson.D
		class         db.Class
		code          string
		applied       bool
	}{
		{"connection closed before", update, 1, bson.D{{Key: "closeConnection", Value: true}}, db.Unavailable, "", false},
		{"primary stepped down before", update, 1, bson.D{{Key: "errorCode", Value: 10107}}, db.Unavailable, "10107", false},
		{"transaction gone before", update, 1, bson.D{{Key: "errorCode", Value: 251}}, db.Aborted, "251", false},
		{"no lock before", update, 1, bson.D{{Key: "errorCode", Value: 24}}, db.Aborted, "24", false},
		{"time over before", update, 1, bson.D{{Key: "errorCode", Value: 50}}, db.Aborted, "50", false},
		{"no right before", update, 1, bson.D{{Key: "errorCode", Value: 13}}, db.Fatal, "13", false},
		{"connection closed at one commit", commit, 1, bson.D{{Key: "closeConnection", Value: true}}, db.Unknown, "none", true},
		{"conflict at the commit", commit, 1, bson.D{{Key: "errorCode", Value: 112}}, db.Aborted, "112", false},
		{"transaction gone at the commit", commit, 1, bson.D{{Key: "errorCode", Value: 251}}, db.Unknown, "251", false},
		{"no right at the commit", commit, 1, bson.D{{Key: "errorCode", Value: 13}}, db.Unknown, "13", false},
		{"primary stepped down at one commit", commit, 1, bson.D{{Key: "errorCode", Value: 10107}}, db.Unknown, "none", true},
		{"time over at the commit", commit, 1, bson.D{{Key: "errorCode", Value: 50}}, db.Unknown, "50", false},
		{"too old at the commit", commit, 1, bson.D{{Key: "errorCode", Value: 290}}, db.Unknown, "290", false},
		{"not replicated", commit, 1, bson.D{{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "waiting for replication timed out"}}}}, db.Unknown, "64", true},
	} {
		t.Run(tc.what, func(t *testing.T) {
			s := session1(t, d, "")
			was := find(t, s, "a")
			failCommand(t, d, tc.times, append(bson.D{{Key: "failCommands", Value: bson.A{tc.command}}}, tc.data...))
			err := transact(ctx, s, func() error {
				_, err := s.Update(ctx, move, ids("a"), []db.Value{num(1), num(1)})
				return err
			})
			if tc.code == "none" {
				drivertest.Must(t, err) // the library has repeated it
			} else {
				wantError(t, tc.what, err, tc.class, tc.code)
			}
			if db.ClassOf(err) == db.Unknown && err != nil || db.ClassOf(err) == db.Unavailable {
				wantError(t, "a broken session", s.Begin(ctx, false), db.Unavailable, "")
				drivertest.Must(t, s.Reset(ctx))
			}
			// A later transaction of the session ends the one before it at the server.
			drivertest.Must(t, transact(ctx, s, func() error {
				_, err := s.Update(ctx, move, ids("a"), []db.Value{num(0), num(0)})
				return err
			}))
			if now := find(t, s, "a"); (now != was) != tc.applied {
				t.Errorf("it was %s and is %s", was, now)
			}
		})
	}
}

// TestUnansweredCommitIsUnknown checks that a transaction is unknown if the server does not answer the commit, and
// not applied before the commit.
func TestUnansweredCommitIsUnknown(t *testing.T) {
	c := servers.Start(t, nil)
	d := open(t, at(t, c.URL(), "silence", "timeout=1s"))
	ctx, s, node := t.Context(), session1(t, d, ""), cluster.LocalNodes(c)[0]
	pay := func() error {
		_, err := s.Update(ctx, move, ids("a"), []db.Value{num(1), num(1)})
		return err
	}
	for what, class := range map[string]db.Class{"before the commit": db.Unavailable, "at the commit": db.Unknown} {
		drivertest.Must(t, s.Begin(ctx, false))
		do := pay
		if class == db.Unknown {
			drivertest.Must(t, pay())
			do = func() error { return s.Commit(ctx) }
		}
		drivertest.Must(t, node.Pause(ctx))
		began := time.Now()
		err := do()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: the answer took %v", what, took)
		}
		wantError(t, what, err, class, "")
		drivertest.Must(t, node.Resume(ctx))
		drivertest.Must(t, wait.Retry(clustertest.Within(t, clustertest.WaitLimit), func() error { return s.Reset(ctx) }))
	}
	drivertest.Must(t, node.Kill(ctx))
	wantError(t, "a dead server", func() error {
		if err := s.Begin(ctx, false); err != nil {
			return err
		}
		return pay()
	}(), db.Unavailable, "")
	drivertest.Must(t, node.Restart(ctx))
}

type counter struct {
	db.RecordSession
	id string
}

func (c counter) Count(ctx context.Context) error {
	return transact(ctx, c, func() error {
		_, err := c.Update(ctx, move, ids(c.id), []db.Value{num(1), num(1)})
		return err
	})
}

// TestFailoverLosesNoCommit checks that no acknowledged count is lost when the primary is killed. Every other
// count that is found must be unknown.
func TestFailoverLosesNoCommit(t *testing.T) {
	c, err := server.Start(clustertest.Within(t, clustertest.WaitLimit), cluster.Options{Nodes: 3, Loopback: true, InMemory: true})
	clustertest.Need(t, "mongodb", err)
	t.Cleanup(func() { drivertest.Must(t, c.Stop()) })
	d := open(t, at(t, c.URL(), "failover"))
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	counted := drivertest.Count(t, 4, func(ctx context.Context, i int) (drivertest.Counter, error) {
		s, err := d.RecordSession(ctx, db.SessionOptions{})
		return counter{s, []string{"a", "b"}[i%2]}, err
	}, func() {
		for range 2 {
			drivertest.Must(t, wait.Sleep(ctx, time.Second))
			leader, _ := clustertest.Leader(t, c)
			drivertest.Must(t, leader.Kill(ctx))
			clustertest.Succeeds(t, c, leader)
			drivertest.Must(t, errors.Join(wait.Sleep(ctx, time.Second), leader.Restart(ctx)))
		}
	})
	drivertest.Must(t, c.WaitHealthy(ctx))
	s := session1(t, d, "")
	var out [2]db.Record
	drivertest.Must(t, s.Begin(ctx, true))
	drivertest.Must(t, s.Find(ctx, accounts, []db.Value{text("a"), text("b")}, out[:]))
	there := out[0].Values[2].Int + out[1].Values[2].Int
	drivertest.Must(t, s.Commit(ctx))
	counted.Hold(t, there)
}

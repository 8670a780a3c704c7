package mysql

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
)

// groupOf returns the group of a cluster that StartMySQL has started.
func groupOf(c cluster.Local) *Group {
	if p, ok := c.(PrimaryGroup); ok {
		return p.Group
	}
	return c.(*Group)
}

func group(params url.Values) clustertest.Kind {
	return clustertest.Kind{
		Engine: "mysql", Params: params, Launch: StartMySQL, LeaderOnly: !params.Has("multi-primary"),
		Prepare: func(ctx context.Context, c cluster.Local) error {
			return retry(ctx, func() error {
				m := groupOf(c).List()[0]
				if p, ok := c.(PrimaryGroup); ok {
					var err error
					if m, err = p.primary(ctx); err != nil {
						return err
					}
				}
				_, err := m.db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS stroppy.paid (id bigint PRIMARY KEY)")
				return err
			})
		},
		Teller: func(ctx context.Context, c cluster.Local, i, try int) (clustertest.Teller, error) {
			members := groupOf(c).List()
			db, err := open(members[try%len(members)].address.String(), 3*time.Second)
			return teller{db}, err
		},
		Holds: func(ctx context.Context, c cluster.Local, number int) (map[string]string, error) {
			m, err := groupOf(c).Node(number)
			if err != nil {
				return nil, err
			}
			return paid(ctx, m.db)
		},
	}
}

// fetched is group with a MySQL that versions.sh has fetched. Its tests take minutes, so they run only if all faults
// are requested, or if mysqld on PATH is MySQL's.
func fetched(params url.Values) clustertest.Kind {
	if os.Getenv("STROPPY_TEST_FAULTS") == "" {
		return group(params)
	}
	all := url.Values{}
	maps.Copy(all, params)
	maps.Copy(all, clustertest.Fetched("mysql"))
	return group(all)
}

// TestSinglePrimaryGroupKeepsPayments checks that a group with one primary keeps all acknowledged payments through
// each kind of fault.
func TestSinglePrimaryGroupKeepsPayments(t *testing.T) {
	c := fetched(nil).Start(t, cluster.Options{Nodes: 3})
	if got := c.(PrimaryGroup).Description(); !strings.Contains(got, "with one primary (group_replication_consistency BEFORE_ON_PRIMARY_FAILOVER,") {
		t.Errorf("the cluster describes itself as %s", got)
	}
	group(nil).Hurt(t, c)
	t.Run("majority", func(t *testing.T) { testGroupMajority(t, c) })
}

// testGroupMajority kills two members of three. The third alone must refuse writes until they are restarted, and must
// not be replaced meanwhile.
func testGroupMajority(t *testing.T, c cluster.Local) {
	members := groupOf(c).List()
	p, ctx := group(nil).Pay(t, c), clustertest.Within(t, clustertest.WaitLimit)
	dead, third := members[:2], members[2]
	for _, m := range dead {
		clustertest.Must(t, m.Kill(ctx))
	}
	testWaiting(t, third)
	clustertest.Must(t, retry(ctx, func() error {
		if s, err := third.status(ctx); err != nil || s.state != failedState || s.writable {
			return fmt.Errorf("one member of three is %s, takes writes: %t: %w", s.state, s.writable, err)
		}
		return nil
	}))
	if err := third.Replace(clustertest.Within(t, 200*time.Millisecond)); err == nil || !third.Running() {
		t.Errorf("the last member that has the data was replaced: %v", err)
	}
	errs := make(chan error, len(dead))
	for _, m := range dead {
		go func() { errs <- m.Restart(ctx) }()
	}
	for range dead {
		clustertest.Must(t, <-errs)
	}
	p.GoOn(20)
	p.EndWell("kill two of three")
}

// testWaiting makes a session of a member that no longer reaches its group wait for it, and ends the session.
func testWaiting(t *testing.T, m *member) {
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	ended := make(chan error, 1)
	go func() {
		ended <- m.do(ctx, clustertest.WaitLimit, "SET SESSION group_replication_consistency = 'BEFORE'", "SELECT COUNT(*) FROM stroppy.paid")
	}()
	clustertest.Must(t, retry(ctx, func() error {
		n, err := m.endWaiting(ctx)
		if err == nil && n != 1 {
			err = fmt.Errorf("%d sessions waited for the group and were ended", n)
		}
		return err
	}))
	if err := <-ended; err == nil {
		t.Error("a session that waited for a group without a majority has read")
	}
}

// TestMultiPrimaryGroupKeepsPayments checks that a group in which all members are primaries keeps all acknowledged
// payments through each kind of fault.
func TestMultiPrimaryGroupKeepsPayments(t *testing.T) {
	k := fetched(url.Values{"multi-primary": {"on"}})
	k.Hurt(t, k.Start(t, cluster.Options{Nodes: 3}))
}

func TestGroupStartRejectsInvalidOptions(t *testing.T) {
	three := cluster.Options{Nodes: 3}
	group(nil).Refuses(t, nil, // without MySQL, MariaDB's mysqld may be found
		clustertest.Refusal{Options: cluster.Options{Nodes: 10}, Says: "at most 9"},
		clustertest.Refusal{Options: cluster.Options{Nodes: 3, FaultFS: true}, Says: "disk faults"},
		clustertest.Refusal{Query: "consistency=BEFORE", Says: "parameter consistency: MySQL has no such parameter"},
		clustertest.Refusal{Query: "consistency=before", Options: three, Says: "parameter consistency: it must be one of EVENTUAL"},
		clustertest.Refusal{Query: "multi-primary=yes", Options: three, Says: "neither on nor off"},
		clustertest.Refusal{Query: "expel=1500ms", Options: three, Says: "whole seconds"},
		clustertest.Refusal{Query: "snapshot=on", Options: three, Says: "parameter snapshot: MySQL has no such parameter"},
		clustertest.Refusal{Query: "set.gtid_mode=OFF", Options: three, Says: "sets gtid-mode itself"},
		clustertest.Refusal{Query: "set.loose-group_replication_consistency=AFTER", Options: three, Says: "sets group-replication-consistency itself"})
}

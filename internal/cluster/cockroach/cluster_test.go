package cockroach

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
)

// teller inserts numbers through one node, on its own connection.
type teller struct{ *pgx.Conn }

func (t teller) Pay(ctx context.Context, id string) error {
	_, err := t.Exec(ctx, "INSERT INTO paid VALUES ("+id+")")
	return err
}

func (t teller) Close() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = t.Conn.Close(ended) // at once: the node may be paused
}

func kind() clustertest.Kind {
	return clustertest.Kind{
		Engine: "cockroach",
		Launch: clustertest.Launcher(Start),
		Prepare: func(ctx context.Context, c cluster.Local) error {
			return c.(*Cluster).List()[0].server().exec(ctx, "CREATE TABLE IF NOT EXISTS paid (id INT PRIMARY KEY)")
		},
		Teller: func(ctx context.Context, c cluster.Local, i, try int) (clustertest.Teller, error) {
			nodes := c.(*Cluster).List()
			n := nodes[try%len(nodes)]
			if !n.Awake() {
				return nil, errors.New("the node does not run")
			}
			conn, err := pgx.Connect(ctx, strings.Replace(n.URL(), "cockroach://", "postgres://", 1))
			return teller{conn}, err
		},
		Holds: func(ctx context.Context, c cluster.Local, number int) (map[string]string, error) {
			n, err := c.(*Cluster).Node(number)
			if err != nil {
				return nil, err
			}
			ids, err := collect(ctx, n.server(), "SELECT id FROM paid", pgx.RowTo[int64])
			held := map[string]string{}
			for _, id := range ids {
				held[fmt.Sprint(id)] = ""
			}
			return held, err
		},
	}
}

// TestClusterKeepsPaymentsUnderAllFaults checks that a cluster keeps all acknowledged payments through each kind
// of fault.
func TestClusterKeepsPaymentsUnderAllFaults(t *testing.T) {
	k := kind()
	k.Params = url.Values{"election_ticks": {"6"}}
	c := k.Start(t, cluster.Options{Nodes: 3}).(*Cluster)
	nodes := c.List()
	if !strings.HasSuffix(c.URL(), ","+nodes[2].sql.String()+"/defaultdb?sslmode=disable&connect_timeout=1") || strings.Contains(c.NodeURL(2), ",") {
		t.Errorf("the URLs are %s and %s", c.URL(), c.NodeURL(2))
	}
	if _, err := c.Leader(t.Context()); !errors.Is(err, cluster.ErrNoLeader) {
		t.Errorf("the leader: %v", err)
	}
	k.Hurt(t, c)
	t.Run("majority", func(t *testing.T) { testMajority(t, c) })
}

// testMajority checks that a store is not removed while the others need it.
func testMajority(t *testing.T, c *Cluster) {
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	nodes := c.List()
	p := kind().Pay(t, c)
	clustertest.Must(t, nodes[2].Kill(ctx))
	short, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := nodes[0].Replace(short); err == nil || !nodes[0].Running() {
		t.Errorf("a node of two that run was replaced: %v", err)
	}
	clustertest.Must(t, nodes[2].Restart(ctx))
	old := nodes[0].id.Load()
	clustertest.Must(t, nodes[0].Replace(ctx))
	if id := nodes[0].id.Load(); id == old || id == 0 {
		t.Errorf("the replaced node has the id %d, and had %d", id, old)
	}
	p.EndWell("replace a node after another came back")
}

// TestResizeMovesReplicas checks that a new node gets replicas and that a removed node gives all of them away. The
// last three nodes cannot be removed.
func TestResizeMovesReplicas(t *testing.T) {
	k := kind()
	k.Params = url.Values{"election_ticks": {"6"}}
	c := k.Start(t, cluster.Options{Nodes: 4, InMemory: true}).(*Cluster)
	k.Resize(t, c) // to 5, 3, and 4 again
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	nodes := c.List()
	clustertest.Must(t, c.Remove(ctx, nodes[0].Number()))
	clustertest.Must(t, c.WaitHealthy(ctx))
	if err := c.Remove(ctx, nodes[1].Number()); err == nil || !strings.Contains(err.Error(), "add a node first") || !nodes[1].Running() {
		t.Errorf("one of the last three was removed: %v", err)
	}
}

// TestSingleNodeUsesSettingsAndRestarts checks that a cluster of one node uses its parameters, and keeps all
// payments when it is killed, paused and restarted.
func TestSingleNodeUsesSettingsAndRestarts(t *testing.T) {
	k := kind()
	k.Params = url.Values{"max_offset": {"400ms"}, "set.server.time_until_store_dead": {"2m"}}
	k.One(t, func(t *testing.T, c cluster.Local) {
		n := c.Nodes()[0].(*node)
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", n.PIDs()[0])); err != nil || !strings.Contains(string(line), "--max-offset=400ms") {
			t.Errorf("the server runs as %q, %v", line, err)
		}
		for setting, want := range map[string]string{"server.time_until_store_dead": "2m0s"} {
			got, err := collect(t.Context(), n.server(), "SELECT value FROM crdb_internal.cluster_settings WHERE variable = '"+setting+"'", pgx.RowTo[string])
			if err != nil || len(got) != 1 || got[0] != want {
				t.Errorf("%s is %v, %v, want %s", setting, got, err, want)
			}
		}
	})
}

func TestParamsRejectInvalidValues(t *testing.T) {
	clustertest.Params(t, parseParams, map[string]string{
		"":                                     "",
		"election_ticks=6":                     "",
		"election_ticks=5":                     "from 6 to 1000",
		"election_ticks=six":                   "from 6 to 1000",
		"max_offset=500ms":                     "",
		"max_offset=0s":                        "from 1ms",
		"set.server.time_until_store_dead=75s": "",
		"set.Bad Name=1":                       "not the name of a setting",
		"election_tick=6":                      "the nearest is election_ticks",
		"election_ticks=6&election_ticks=7":    "give it once",
	})
}

func TestStartRejectsInvalidOptions(t *testing.T) {
	kind().Refuses(t, []string{""}, clustertest.Refusal{Query: "sync=off", Says: "parameter sync: "})
}

// TestRangeWithMissingReplicaIsIncomplete checks that a range is not complete if it lacks replicas, or has one on
// a node that no longer exists.
func TestRangeWithMissingReplicaIsIncomplete(t *testing.T) {
	for _, tc := range []struct {
		held, ids []int64
		says      string
	}{
		{[]int64{1, 2, 3}, []int64{1, 2, 3}, ""},
		{[]int64{1, 2}, []int64{1, 2, 3}, "has 2 replicas instead of 3"},
		{[]int64{1, 2, 3}, []int64{1, 2, 4}, "on the node with the id 3, which no longer exists"},
		{[]int64{1}, []int64{1}, ""},
		{[]int64{1, 3, 5}, []int64{1, 2, 3, 4, 5}, ""},
	} {
		err := replicated{7, tc.held}.complete(tc.ids)
		if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%v of %v: %v, want %q", tc.held, tc.ids, err, tc.says)
		}
	}
}

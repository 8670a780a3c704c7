package infinisql

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/cluster/host"
	"stroppy/internal/db"
	"stroppy/internal/db/infinisql"
)

// paid is the collection of the test.
var paid = &db.Collection{Name: "paid", ID: db.Integer}

func kind() clustertest.Kind {
	return clustertest.Kind{Engine: "InfiniSQL", Launch: clustertest.Launcher(Starter(infinisql.Prepare))}
}

// TestNodeIsEmptyAfterRestart checks that the only node has lost its tables after a kill or a stop, and that it
// can be paused.
func TestNodeIsEmptyAfterRestart(t *testing.T) {
	c := kind().Start(t, cluster.Options{Nodes: 1}).(*Cluster)
	n, ctx := c.List()[0], clustertest.Within(t, clustertest.WaitLimit)
	if !strings.HasPrefix(c.URL(), "infinisql://benchmark:stroppy@"+n.sql.String()+"/benchmark?") || c.URL() != c.NodeURL(0) {
		t.Errorf("the URL is %s", c.URL())
	}
	if _, err := c.Leader(ctx); !errors.Is(err, cluster.ErrNoLeader) {
		t.Errorf("the leader: %v", err)
	}
	if err := n.Replace(ctx); err == nil || !n.Running() {
		t.Errorf("the only node was replaced: %v", err)
	}
	for _, end := range []func(context.Context) error{n.Kill, n.Terminate} {
		d, err := infinisql.Open(ctx, c.URL())
		clustertest.Must(t, err)
		clustertest.Must(t, d.Create(ctx, paid))
		pids := n.PIDs()
		if len(pids) < 2 {
			t.Errorf("the processes of the node are %v, and the server is a child of its starter", pids)
		}
		clustertest.Must(t, end(ctx))
		if left := n.PIDs(); n.Running() || len(left) > 0 || n.ask(ctx) == nil {
			t.Errorf("the node is there after its end, with the processes %v", left)
		}
		clustertest.Must(t, n.Restart(ctx))
		if there, err := d.Exists(ctx, paid); there || err != nil {
			t.Errorf("after a restart the table is there: %v, %v", there, err)
		}
	}
	clustertest.Must(t, n.Pause(ctx))
	if n.ask(ctx) == nil {
		t.Error("a paused node answers")
	}
	clustertest.Must(t, n.Resume(ctx))
	clustertest.Must(t, c.WaitHealthy(ctx))
}

func TestStartRejectsInvalidOptions(t *testing.T) {
	for says, o := range map[string]cluster.Options{
		"use infinisql:1": {Nodes: 3},
		"disk faults are": {Nodes: 1, FaultFS: true},
		"the nearest is":  {Nodes: 1, Params: url.Values{"procedure": {"x"}}},
		"has no settings": {Nodes: 1, Params: url.Values{"set.x": {"1"}}},
	} {
		var param *cluster.ParamError
		if _, err := Starter(infinisql.Prepare)(t.Context(), o); !errors.As(err, &param) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	t.Setenv("PATH", t.TempDir())
	var missing host.MissingError
	if _, err := Starter(infinisql.Prepare)(t.Context(), cluster.Options{Nodes: 1}); !errors.As(err, &missing) || !strings.Contains(err.Error(), "infinisqlmgr.py on PATH") {
		t.Errorf("without the programs: %v", err)
	}
}

//go:build fdb

package foundationdb

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/db"
	foundationdbdb "stroppy/internal/db/foundationdb"
)

// teller sets keys on its own session.
type teller struct {
	db.KVSession
	database db.Database
}

const paid = "paid/"

func (t teller) Pay(ctx context.Context, id string) error {
	if err := t.Begin(ctx, false); err != nil {
		return err
	}
	t.Set([]byte(paid+id), []byte("x"))
	return t.Commit(ctx)
}

func (t teller) Close() { _, _ = t.KVSession.Close(), t.database.Close() }

func open(ctx context.Context, url string) (teller, error) {
	d, err := foundationdbdb.Open(ctx, url)
	if err != nil {
		return teller{}, err
	}
	s, err := d.(db.KV).KVSession(ctx, db.SessionOptions{})
	return teller{s, d}, err
}

func kind() clustertest.Kind {
	return clustertest.Kind{
		Engine: "foundationdb", Launch: clustertest.Launcher(Start), Params: url.Values{"knobs": {"test"}},
		// Roles that every client needs, such as the only proxy for read versions, stay on a node that the other
		// nodes reach.
		LeaderOnly: true,
		Address:    func(c cluster.Local) string { return c.(*Cluster).List()[0].address() },
		Teller: func(ctx context.Context, c cluster.Local, i, try int) (clustertest.Teller, error) {
			t, err := open(ctx, c.URL()+"?timeout=3s")
			return t, err
		},
		Holds: func(ctx context.Context, c cluster.Local, number int) (map[string]string, error) {
			t, err := open(ctx, c.NodeURL(number))
			if err != nil {
				return nil, err
			}
			defer t.Close()
			held := map[string]string{}
			return held, t.Scan(ctx, []byte(paid), []byte("paid0"), func(key, value []byte) error {
				held[strings.TrimPrefix(string(key), paid)] = string(value)
				return nil
			})
		},
	}
}

// TestClusterKeepsPaymentsUnderAllFaults checks that a cluster keeps all acknowledged payments through each kind
// of fault.
func TestClusterKeepsPaymentsUnderAllFaults(t *testing.T) {
	kind().Hurt(t, kind().Start(t, cluster.Options{Nodes: 3}))
}

// TestSingleNodeUsesSettingsAndRestarts checks that a cluster of one node uses its parameters, and keeps all
// payments when it is killed, paused and restarted.
func TestSingleNodeUsesSettingsAndRestarts(t *testing.T) {
	k := kind()
	k.Params = url.Values{"knobs": {"test"}, "storage": {"memory"}}
	k.One(t, func(t *testing.T, c cluster.Local) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cluster.LocalNodes(c)[0].PIDs()[0]))
		if err != nil || !strings.Contains(string(line), "--knob_failure_max_delay\x001.5") { // fdbserver splits its arguments at the equals sign
			t.Errorf("the server runs as %q, %v", line, err)
		}
	})
}

// TestProcessesOfOneNodeFailTogether checks that two processes of a node fail together, and that a node is
// excluded before it is replaced.
func TestProcessesOfOneNodeFailTogether(t *testing.T) {
	k := kind()
	k.Params = url.Values{"knobs": {"test"}, "processes": {"2"}, "exclude": {"on"}}
	c := k.Start(t, cluster.Options{Nodes: 3}).(*Cluster)
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	n := c.List()[0]
	if pids := n.PIDs(); len(pids) != 3 { // and the shell
		t.Errorf("the node has the processes %v", pids)
	}
	p := k.Pay(t, c)
	clustertest.Must(t, n.Kill(ctx))
	p.GoOn(20)
	clustertest.Must(t, n.Restart(ctx))
	clustertest.Must(t, c.WaitHealthy(ctx))
	clustertest.Must(t, n.Replace(clustertest.Within(t, 2*clustertest.WaitLimit)))
	clustertest.Must(t, n.Terminate(ctx))
	clustertest.Must(t, n.Restart(ctx))
	p.GoOn(20)
	p.EndWell("kill, replace and stop a node of two processes")
}

func TestStartRejectsInvalidOptions(t *testing.T) {
	kind().Refuses(t, []string{""},
		clustertest.Refusal{Query: "sync=off", Says: "parameter sync: "},
		clustertest.Refusal{Query: "redundancy=double", Says: "needs at least 3 nodes"},
		clustertest.Refusal{Options: cluster.Options{Nodes: 3, FaultFS: true}, Says: "disk faults"})
}

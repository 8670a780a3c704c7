package postgres

import (
	"errors"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/cluster/wait"
)

// startCluster starts nodes with parameters.
func startCluster(t *testing.T, nodes int, query string) cluster.Local {
	t.Helper()
	values, err := url.ParseQuery(query)
	clustertest.Must(t, err)
	c, err := Start(clustertest.Within(t, clustertest.WaitLimit), cluster.Options{Nodes: nodes, Params: values})
	clustertest.Need(t, "pgbouncer", err)
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// plain returns the cluster's URL without stroppy's own parameters.
func plain(c cluster.Local) string { return strings.TrimSuffix(c.URL(), "&prepare=true") }

// pay inserts a row through the pooler as soon as this works.
func pay(t *testing.T, c cluster.Local, row string) {
	t.Helper()
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	err := wait.Retry(ctx, func() error {
		_, err := clustertest.Execute(ctx, plain(c), "INSERT INTO paid VALUES ("+row+") ON CONFLICT DO NOTHING")
		return err
	})
	clustertest.Must(t, err)
}

// TestPoolerFollowsNewPrimary checks that the pooler sends transactions to the new primary after a fail-over, and
// that acknowledged rows exist.
func TestPoolerFollowsNewPrimary(t *testing.T) {
	if testing.Short() {
		t.Skip("starts clusters")
	}
	for _, query := range []string{"pooler=transaction", "pooler=session"} {
		t.Run(query, func(t *testing.T) {
			c := startCluster(t, 2, query)
			ctx := clustertest.Within(t, clustertest.WaitLimit)
			_, err := clustertest.Execute(ctx, plain(c), clustertest.PaidTable)
			clustertest.Must(t, err)
			pay(t, c, "1")
			old, _ := clustertest.Leader(t, c)
			clustertest.Must(t, old.Kill(ctx))
			now := clustertest.Succeeds(t, c, old)
			pay(t, c, "2")
			clustertest.Must(t, old.Restart(ctx))
			clustertest.Must(t, c.WaitHealthy(ctx))
			clustertest.Must(t, c.(cluster.Mover).MoveLeader(ctx, old.Number()))
			clustertest.Must(t, c.WaitHealthy(ctx))
			pay(t, c, "3")
			rows, err := clustertest.Execute(ctx, c.NodeURL(old.Number()), "SELECT count(*) FROM paid")
			clustertest.Must(t, err)
			if got := string(rows[0]); got != "3" {
				t.Errorf("the primary has %s rows of 3", got)
			}
			var followed []string
			for _, e := range c.(interface{ Events() []cluster.Event }).Events() {
				if name, ok := strings.CutPrefix(e.Text, "PgBouncer sends transactions to "); ok {
					followed = append(followed, name)
				}
			}
			if want := now.Name() + " " + old.Name(); strings.Join(followed, " ") != want {
				t.Errorf("the pooler followed %v, want %s", followed, want)
			}
		})
	}
}

// TestKilledPoolerRestartsAndEndsWithCluster checks that a killed pooler is restarted, and that the end of the
// cluster leaves neither its process nor its folder.
func TestKilledPoolerRestartsAndEndsWithCluster(t *testing.T) {
	c := startCluster(t, 1, "pooler=transaction&pooler.default_pool_size=2")
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	_, err := clustertest.Execute(ctx, plain(c), clustertest.PaidTable)
	clustertest.Must(t, err)
	pooler := c.(*pooledServer).pooler
	first := pooler.PIDs()
	if len(first) != 1 {
		t.Fatalf("the pooler is the processes %v", first)
	}
	clustertest.Must(t, syscall.Kill(first[0], syscall.SIGKILL))
	pay(t, c, "1")
	second := pooler.PIDs()
	if len(second) != 1 || second[0] == first[0] {
		t.Fatalf("the pooler is the processes %v after it was killed, and was %v", second, first)
	}
	clustertest.Must(t, c.Stop())
	if err := syscall.Kill(second[0], 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the pooler's process is still there: %v", err)
	}
	if _, err := os.Stat(pooler.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the pooler's folder is still there: %v", err)
	}
}

// TestDryRunChecksPoolerSettings checks that PgBouncer verifies its settings in a dry run too.
func TestDryRunChecksPoolerSettings(t *testing.T) {
	for query, says := range map[string]string{
		"pooler=session":                           "",
		"pooler=transaction&pooler.verbose=2":      "",
		"pooler=session&pooler.nonsense=1":         "pooler.nonsense: PgBouncer has no such setting",
		"pooler=session&pooler.query_timeout=soon": `pooler.query_timeout: PgBouncer does not accept the value "soon"`,
		"pooler=transaction&failover=ideal":        "failover: stroppy's own supervisor was removed",
		"pooler=transaction&timeout=2s":            "timeout: it belonged to stroppy's own supervisor, which was removed",
		"ttl=5s&pooler=transaction":                "ttl: it is a setting of Patroni, and one server has no standby",
		"failover=patroni":                         "failover: one server has no standby",
	} {
		values, err := url.ParseQuery(query)
		clustertest.Must(t, err)
		_, err = Start(t.Context(), cluster.Options{Nodes: 1, Params: values, DryRun: true})
		if planned, ok := errors.AsType[*cluster.PlannedError](err); ok && planned.Lacks != nil {
			t.Skip("skipped engine: pgbouncer: " + planned.Lacks.Error())
		}
		if says == "" && !errors.As(err, new(*cluster.PlannedError)) || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("a dry run of %s: %v", query, err)
		}
	}
}

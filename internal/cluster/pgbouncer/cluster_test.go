package pgbouncer

import (
	"errors"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
)

// startCluster starts nodes with parameters.
func startCluster(t *testing.T, nodes int, query string) cluster.Local {
	t.Helper()
	values, err := url.ParseQuery(query)
	clustertest.Must(t, err)
	c, err := StartCluster(clustertest.Within(t, clustertest.WaitLimit), cluster.Options{Nodes: nodes, Params: values})
	clustertest.Need(t, "pgbouncer", err)
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// plain is the cluster's URL without what only stroppy knows.
func plain(c cluster.Local) string { return strings.TrimSuffix(c.URL(), "&prepare=true") }

// pay inserts a row through the pooler as soon as that works.
func pay(t *testing.T, c cluster.Local, row string) {
	t.Helper()
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	err := cluster.Retry(ctx, func() error {
		_, err := clustertest.Execute(ctx, plain(c), "INSERT INTO paid VALUES ("+row+") ON CONFLICT DO NOTHING")
		return err
	})
	clustertest.Must(t, err)
}

// TestFollows: whoever fails over, the pooler sends transactions to the new primary, and what
// was acknowledged is there.
func TestFollows(t *testing.T) {
	if testing.Short() {
		t.Skip("starts clusters")
	}
	for _, query := range []string{"failover=ideal&timeout=2s&pooler=transaction", "failover=ideal&timeout=2s&pooler=session", "pooler=transaction"} {
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

// TestEnds: a pooler that was killed is started again, and the end of the cluster leaves
// neither its process nor its folder.
func TestEnds(t *testing.T) {
	c := startCluster(t, 1, "pooler=transaction&pooler.default_pool_size=2")
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	_, err := clustertest.Execute(ctx, plain(c), clustertest.PaidTable)
	clustertest.Must(t, err)
	pooler := c.(*bySupervisor).pooler
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

// TestCheck: PgBouncer itself is asked for the settings before a server is started, in a dry
// run too.
func TestCheck(t *testing.T) {
	program, err := find()
	clustertest.Need(t, "pgbouncer", err)
	for query, says := range map[string]string{
		"pooler=session":                         "",
		"pooler=session&pooler.query_timeout=12": "",
		"pooler=transaction&pooler.autodb_idle_timeout=60&pooler.verbose=2":   "",
		"pooler=session&pooler.nonsense=1":                                    "pooler.nonsense: PgBouncer knows no setting of this name",
		"pooler=session&pooler.query_timeout=soon":                            `pooler.query_timeout: PgBouncer does not take the value "soon"`,
		"pooler=transaction&pooler.query_timeout=12&pooler.verbose_nonsense=": "pooler.verbose_nonsense: PgBouncer knows no",
	} {
		values, err := url.ParseQuery(query)
		clustertest.Must(t, err)
		p, o, err := parseParams(cluster.Options{Nodes: 1, Params: values})
		clustertest.Must(t, err)
		err = p.check(t.Context(), program)
		if wrong, ok := errors.AsType[*cluster.ParamError](err); (says == "") != (err == nil) || err != nil && (!ok || !strings.Contains(wrong.Error(), says)) {
			t.Errorf("%s: %v", query, err)
		}
		o.Params, o.DryRun = values, true
		_, err = StartCluster(t.Context(), o)
		if missing := (cluster.MissingError{}); errors.As(err, &missing) {
			continue
		}
		if says == "" && !errors.As(err, new(*cluster.PlannedError)) || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("a dry run of %s: %v", query, err)
		}
	}
}

// TestParams: what is given for the pooler is read, and what is wrong is named.
func TestParams(t *testing.T) {
	read := func(values url.Values) (params, error) {
		p, _, err := parseParams(cluster.Options{Nodes: 1, Params: values})
		return p, err
	}
	clustertest.Params(t, read, map[string]string{
		"pooler=transaction&pooler.default_pool_size=50": "",
		"pooler=session&fsync=off":                       "",
		"fsync=off":                                      "",
		"pooler=statement":                               "one of session, transaction",
		"pooler.default_pool_size=50":                    "add pooler=transaction",
		"pooler=session&pooler.listen_port=1":            "not for you to set",
		"pooler=session&pooler.default_pool_size=no":     "a number of connections",
	})
	p, o, err := parseParams(cluster.Options{Nodes: 1, Connections: 10_000, Params: url.Values{"pooler": {transaction}, "pooler.default_pool_size": {"50"}}})
	clustertest.Must(t, err)
	if o.Connections != 50 || p.settings["max_client_conn"] != "10050" || len(o.Params) != 0 {
		t.Errorf("10,000 clients over 50 connections: %+v, %+v", p, o)
	}
	if p, o, err = parseParams(cluster.Options{Nodes: 1, Connections: 300, Params: url.Values{"pooler": {session}}}); err != nil || o.Connections < 300 || p.settings["default_pool_size"] != "350" {
		t.Errorf("300 clients with a session each: %+v, %+v, %v", p, o, err)
	}
}

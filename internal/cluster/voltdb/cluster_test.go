package voltdb

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/cluster/host"
	"stroppy/internal/db"
	"stroppy/internal/db/voltdb"
)

// paid has a record for each payment.
var paid = &db.Collection{Name: "paid", ID: db.Integer}

// prepare makes the collection, also in a cluster that was lost and begins anew.
func prepare(ctx context.Context, d *voltdb.Database) error {
	if err := d.Declare(paid); err != nil {
		return err
	}
	return d.Create(ctx, paid)
}

// teller inserts numbers by one node, on a connection of its own.
type teller struct{ db.RecordSession }

func (t teller) Pay(ctx context.Context, id string) error {
	n, err := strconv.ParseInt(id, 10, 64)
	if err == nil {
		err = t.Begin(ctx, false)
	}
	if err == nil {
		err = t.Insert(ctx, paid, []db.Value{{Int: n}})
	}
	if err == nil {
		err = t.Commit(ctx)
	}
	return err
}

func (t teller) Close() { _ = t.RecordSession.Close() }

func kind() clustertest.Kind {
	return clustertest.Kind{
		Engine: "voltdb",
		Launch: clustertest.Launcher(Starter(voltdb.Hosts)),
		Params: url.Values{"jars": {os.Getenv(Variable)}, "heartbeat": {"2s"}},
		Loses:  []string{"kill all and restart", "stop all and restart"}, // there is no command log
		Prepare: func(ctx context.Context, c cluster.Local) error {
			d, err := voltdb.Open(ctx, c.URL())
			if err == nil {
				err = prepare(ctx, d)
			}
			return err
		},
		Teller: func(ctx context.Context, c cluster.Local, _, try int) (clustertest.Teller, error) {
			nodes := c.(*Cluster).List()
			n := nodes[try%len(nodes)]
			if !n.Awake() {
				return nil, errors.New("the node does not run")
			}
			d, err := voltdb.Open(ctx, n.URL()+"&answer_timeout=8s")
			if err == nil {
				err = prepare(ctx, d)
			}
			if err != nil {
				return nil, err
			}
			s, err := d.RecordSession(ctx, db.SessionOptions{})
			return teller{s}, err
		},
		Holds: func(ctx context.Context, c cluster.Local, number int) (map[string]string, error) {
			d, err := voltdb.Open(ctx, c.NodeURL(number))
			if err != nil {
				return nil, err
			}
			s, err := d.RecordSession(ctx, db.SessionOptions{})
			if err != nil {
				return nil, err
			}
			defer s.Close()
			held := map[string]string{}
			return held, s.Scan(ctx, paid, db.Value{Null: true}, 0, func(values []db.Value) error {
				held[strconv.FormatInt(values[db.ID].Int, 10)] = ""
				return nil
			})
		},
	}
}

// TestClusterKeepsPaymentsUnderAllFaults checks that a cluster keeps all acknowledged payments through each kind
// of fault.
func TestClusterKeepsPaymentsUnderAllFaults(t *testing.T) {
	k := kind()
	c := k.Start(t, cluster.Options{Nodes: 3}).(*Cluster)
	nodes := c.List()
	if !strings.HasSuffix(c.URL(), ","+nodes[2].client.String()+"?connect_timeout=1s") || strings.Contains(c.NodeURL(2), ",") {
		t.Errorf("the URLs are %s and %s", c.URL(), c.NodeURL(2))
	}
	if _, err := c.Leader(t.Context()); !errors.Is(err, cluster.ErrNoLeader) {
		t.Errorf("the leader: %v", err)
	}
	k.Hurt(t, c)
	if left, err := filepath.Glob("voltdb_crash*"); err != nil || len(left) > 0 {
		t.Errorf("the nodes that have ended themselves left %v, %v", left, err)
	}
}

func TestParamsRejectInvalidValues(t *testing.T) {
	three := func(values url.Values) (params, error) { return parseParams(values, 3) }
	clustertest.Params(t, three, map[string]string{
		"":                                "",
		"kfactor=0&sites=3&heartbeat=10s": "",
		"kfactor=3":                       "from 0 to 2",
		"sites=none":                      "from 1 to 24",
		"heartbeat=1ms":                   "from 1s",
		"security=yes":                    "neither on nor off",
		"jar=x":                           "the nearest is jars",
		"set.x=1":                         "no settings",
	})
}

// TestMissingJarsAreNamed checks that a folder which lacks jars is refused with their names, and that a missing
// folder is refused.
func TestMissingJarsAreNamed(t *testing.T) {
	var missing host.MissingError
	if _, err := classPath(""); !errors.As(err, &missing) || !strings.Contains(err.Error(), Variable) {
		t.Errorf("without a folder: %v", err)
	}
	dir := t.TempDir()
	for _, coordinates := range jars[2:] {
		part := strings.Split(coordinates, ":")
		clustertest.Must(t, os.WriteFile(filepath.Join(dir, part[1]+"-"+part[2]+".jar"), []byte("jar"), 0o600))
	}
	var param *cluster.ParamError
	if _, err := classPath(dir); !errors.As(err, &param) || !strings.Contains(err.Error(), "lacks 2 of the 16 jars") || !strings.Contains(err.Error(), "org.voltdb:voltdb:10.0, log4j:log4j:1.2.17") {
		t.Errorf("without two jars: %v", err)
	}
}

func TestSitesMustBeDivisibleByCopies(t *testing.T) {
	if _, err := parseParams(url.Values{"sites": {"1"}}, 3); err == nil || !strings.Contains(err.Error(), "divisible by kfactor + 1") {
		t.Errorf("three partitions of two copies each: %v", err)
	}
}

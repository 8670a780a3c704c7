package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	cockroachcluster "stroppy/internal/cluster/cockroach"
	etcdcluster "stroppy/internal/cluster/etcd"
	infinisqlcluster "stroppy/internal/cluster/infinisql"
	mongodbcluster "stroppy/internal/cluster/mongodb"
	mysqlcluster "stroppy/internal/cluster/mysql"
	postgrescluster "stroppy/internal/cluster/postgres"
	rediscluster "stroppy/internal/cluster/redis"
	voltdbcluster "stroppy/internal/cluster/voltdb"
	"stroppy/internal/db/infinisql"
	"stroppy/internal/db/voltdb"
	"stroppy/internal/fault"
	"stroppy/internal/nemesis"
)

// planned is a kind of cluster for a dry run.
type planned struct {
	name, params string
	nodes        int
	layer        bool // the fault-injecting file system can hold its data
	loopback     bool
	start        func(context.Context, cluster.Options) (cluster.Local, error)
}

// plannedKinds returns the kinds of clusters with parameters that decide which faults are possible.
func plannedKinds() []planned {
	postgres, redis := postgrescluster.Start, rediscluster.Start
	return []planned{
		{name: "etcd", nodes: 3, layer: true, start: clustertest.Launcher(etcdcluster.Start)},
		{name: "etcd", nodes: 1, loopback: true, start: clustertest.Launcher(etcdcluster.Start)},
		{name: "redis", nodes: 3, layer: true, start: redis},
		{name: "redis", nodes: 2, layer: true, start: redis},
		{name: "redis", params: "failover=off", nodes: 3, layer: true, start: redis},
		{name: "postgres", nodes: 3, layer: true, start: postgres},
		{name: "postgres", nodes: 1, layer: true, start: postgres},
		{name: "postgres", params: "pooler=session", nodes: 1, layer: true, start: postgres},
		{name: "galera", nodes: 3, start: clustertest.Launcher(mysqlcluster.StartGalera)},
		{name: "mariadb", nodes: 1, layer: true, start: clustertest.Launcher(mysqlcluster.StartMariaDB)},
		{name: "mysql", nodes: 3, start: mysqlcluster.StartMySQL},
		{name: "mysql", params: "multi-primary=on", nodes: 3, start: mysqlcluster.StartMySQL},
		{name: "mysql", nodes: 1, layer: true, start: mysqlcluster.StartMySQL},
		{name: "cockroach", nodes: 3, layer: true, start: clustertest.Launcher(cockroachcluster.Start)},
		{name: "mongodb", nodes: 3, layer: true, start: mongodbcluster.Start},
		{name: "mongodb", params: "shards=2", nodes: 2, layer: true, start: mongodbcluster.Start},
		{name: "voltdb", nodes: 3, start: clustertest.Launcher(voltdbcluster.Starter(voltdb.Hosts))},
		{name: "infinisql", nodes: 1, start: clustertest.Launcher(infinisqlcluster.Starter(infinisql.Prepare))},
	}
}

// options returns the options of a cluster.
func (p planned) options(t *testing.T) cluster.Options {
	t.Helper()
	params, err := url.ParseQuery(p.params)
	if err != nil {
		t.Fatal(err)
	}
	if jars := os.Getenv(voltdbcluster.Variable); p.name == "voltdb" && jars != "" {
		params.Set("jars", jars)
	}
	return cluster.Options{Nodes: p.nodes, InMemory: true, Loopback: p.loopback, Params: params, FaultFS: p.layer, Clock: true}
}

// plan returns the plan of a dry run, which must not create any file.
func (p planned) plan(t *testing.T) *cluster.PlannedError {
	t.Helper()
	o := p.options(t)
	o.DryRun, o.Dir = true, t.TempDir()
	c, err := p.start(t.Context(), o)
	plan, ok := errors.AsType[*cluster.PlannedError](err)
	if c != nil || !ok {
		t.Fatalf("the dry run returned %v, %v", c, err)
	}
	if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
		t.Errorf("the dry run left files %v, %v", left, err)
	}
	return plan
}

// everyFault returns every fault that can be written, with every sort of target.
func everyFault(t *testing.T) (faults []nemesis.Fault) {
	t.Helper()
	file := t.TempDir() + "/chaos.yaml"
	further := map[string][]string{
		"partition": {" one-way", "halves", "ring", "bridge", "client from n0"}, "slow": {" by 50ms"}, "lossy": {" by 5%"}, "limit": {" to 1MB/s"},
		"clock": {" by 5s", " at rate 1.05"}, "stress": {"", " by 2"}, "slow-disk": {""}, "add": {"node"}, "move": {"leader", "leader to n1"},
		"rolling-restart": {"rolling-restart"}, "exec": {"exec 'true'"}, "chaos": {"chaos '" + file + "'"}, "kill-store": {"kill-store"}, "pause-store": {"pause-store"},
	}
	targets := []string{"n0", "n9", "random", "leader", "follower", "followers", "majority", "minority", "all"}
	for _, word := range nemesis.Continuations("") {
		before := len(faults)
		for _, target := range targets {
			for _, end := range append(further[word], "") {
				for _, text := range []string{end, word + " " + end, word + " " + target + end} {
					if f, err := nemesis.Parse(strings.TrimSpace(text)); err == nil && strings.HasPrefix(text, word) && !slices.ContainsFunc(faults, func(o nemesis.Fault) bool { return o.String() == f.String() }) {
						faults = append(faults, f)
					}
				}
			}
		}
		if len(faults) == before {
			t.Errorf("no fault begins with %s: add its arguments to further", word)
		}
	}
	return faults
}

// TestDryRunRefusesSameFaultsAsRun compares the refused faults of a dry run and of a running cluster. The errors must
// be equal, except for refusals that depend on this machine. If the servers are not installed, only the dry run is
// checked.
func TestDryRunRefusesSameFaultsAsRun(t *testing.T) {
	faults := everyFault(t)
	for _, p := range plannedKinds() {
		t.Run(fmt.Sprintf("%s:%d?%s", p.name, p.nodes, p.params), func(t *testing.T) {
			t.Parallel()
			plan := p.plan(t)
			refused := map[string]error{}
			for _, f := range faults {
				refused[f.String()] = nemesis.Possible(plan, plan.Cluster.(cluster.Local).Network(), nemesis.Script{f})
			}
			if refused["kill n0"] != nil || refused["kill n9"] == nil || refused["exec 'true'"] != nil {
				t.Errorf("%v; %v; %v", refused["kill n0"], refused["kill n9"], refused["exec 'true'"])
			}
			needsTime(t)
			started, err := p.start(t.Context(), p.options(t))
			up := served(t, p.name, started, err)
			same := 0
			for _, f := range faults {
				_, really := nemesis.New(up, up.Network(), nemesis.Script{f}, 1)
				switch planned := refused[f.String()]; {
				case planned == nil && really == nil, planned != nil && really != nil && planned.Error() == really.Error():
					same++
				case planned == nil && refusedByMachine(up, really):
				default:
					t.Errorf("%s: the dry run returned %v, the run %v", f, planned, really)
				}
			}
			t.Logf("%d of %d faults have the same answer", same, len(faults))
		})
	}
}

// refusedByMachine reports whether this machine, not the kind of cluster, is the reason for a refusal.
func refusedByMachine(up cluster.Local, refusal error) bool {
	reasons := []error{up.Network().LinkFaults(fault.BetweenNodes)}
	for _, n := range up.Nodes() {
		if p, ok := n.(nemesis.Processor); ok {
			reasons = append(reasons, p.Stressable())
		}
		if c, ok := n.(nemesis.Clock); ok {
			reasons = append(reasons, c.Steered())
		}
	}
	return slices.ContainsFunc(reasons, func(why error) bool { return why != nil && strings.HasSuffix(refusal.Error(), why.Error()) })
}

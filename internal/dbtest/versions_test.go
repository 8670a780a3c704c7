package dbtest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	dqlitecluster "stroppy/internal/cluster/dqlite"
	etcdcluster "stroppy/internal/cluster/etcd"
	"stroppy/internal/cluster/host"
	mysqlcluster "stroppy/internal/cluster/mysql"
	postgrescluster "stroppy/internal/cluster/postgres"
	postgresserver "stroppy/internal/cluster/postgres/server"
	rediscluster "stroppy/internal/cluster/redis"
	"stroppy/internal/db"
	"stroppy/internal/db/dqlite"
	"stroppy/internal/db/etcd"
	"stroppy/internal/db/mysql"
)

// wholeVariable is the environment variable with the servers that run the whole matrix, separated by commas, or "all".
// Their folder is filled by scripts/versions.sh.
const wholeVariable = "STROPPY_TEST_WHOLE_VERSIONS"

// installed replaces the version in the name of the server that is installed on this machine.
const installed = "installed"

// version is a version of a server.
type version struct {
	Name  string `json:"name"` // of its folder, for example postgres-14.0.0
	From  string `json:"from"` // its source
	Whole bool   `json:"whole"`
	bin   string // folder of its programs; empty: the installed programs

	// Database and Version replace the data of the server in the table, for a product that runs next to a database.
	Database string `json:"database,omitempty"`
	Version  string `json:"version,omitempty"`
}

// product returns the name of the product.
func (v version) product() string {
	product, _, _ := strings.Cut(v.Name, "-")
	return product
}

// briefly lists the oldest and the newest version of each product that scripts/versions.sh fetches. briefCells lists
// the cells that run on them. The oldest etcd and Redis are Debian's own, on which the whole matrix runs.
var (
	briefly    = []string{"postgres-14.0.0", "postgres-18.6.0", "mariadb-10.2.11", "mariadb-11.8", "mysql-9.7", "etcd-3.7.3", "redis-8.0", "valkey-8.1", "valkey-9.1"}
	briefCells = map[string][]string{
		"postgres": {"bank serializable atomic pipelined", "bank repeatable read rmw pipelined", "bank read committed rmw interactive",
			"bank read committed locked procedure", "kv serializable --in-flight 8", "events shared streams"},
		"mariadb": {"bank serializable atomic pipelined", "bank repeatable read locked interactive", "bank repeatable read rmw pipelined",
			"bank read committed atomic procedure", "kv serializable", "events shared streams"},
		"mysql": {"bank serializable atomic pipelined", "bank rmw interactive", "bank read committed locked procedure", "kv serializable", "events shared streams"},
		"etcd":  {"bank audits of all", "kv --in-flight 4", "events shared streams"},
		"redis": briefRedis, "valkey": briefRedis,
	}
	briefRedis = []string{"bank audits of a sample by script", "bank audits of all by watch", "kv by script", "append by watch", "events shared streams by script"}
)

// TestVersions runs servers of other versions, from the folder that scripts/versions.sh fills. The oldest and the
// newest run some cells; the versions in wholeVariable run the whole matrix and a failover. tools/verified writes
// docs/tables/versions.md from the output.
func TestVersions(t *testing.T) {
	needsTime(t)
	if os.Getenv(wholeVariable) == "" { // the whole matrix of some products changes PATH for all tests
		t.Parallel()
	}
	if os.Getenv(clustertest.VersionsVariable) == "" {
		t.Skip("skipped engine: other versions of servers: fetch them with scripts/versions.sh and name their folder in " + clustertest.VersionsVariable)
	}
	for _, v := range versions(t) {
		t.Run(v.Name, func(t *testing.T) {
			if !v.Whole {
				t.Parallel()
			}
			v.run(t)
		})
	}
}

// TestDefaultVersionsAreFetched checks that scripts/test.sh fetches the default versions and that their cells exist.
func TestDefaultVersionsAreFetched(t *testing.T) {
	script, err := os.ReadFile("../../scripts/test.sh")
	if err != nil {
		t.Fatal(err)
	}
	if line := "\tversions " + strings.Join(briefly, " ") + "\n"; !strings.Contains(string(script), line) {
		t.Errorf("scripts/test.sh has no line %q", line)
	}
	for _, name := range briefly {
		v, found := version{Name: name}, 0
		for _, e := range v.engines() {
			found += len(e.cells)
		}
		if want := len(briefCells[v.product()]); want == 0 || found != want {
			t.Errorf("%s has %d of %d cells", name, found, want)
		}
	}
}

// versions returns the servers to test. Servers of the default versions may be missing.
func versions(t *testing.T) (list []version) {
	t.Helper()
	folder, err := filepath.Abs(os.Getenv(clustertest.VersionsVariable))
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string, whole bool) version {
		v := version{Name: name, Whole: whole, From: "this machine"}
		if !strings.HasSuffix(name, "-"+installed) {
			from, _ := os.ReadFile(filepath.Join(folder, name, "from"))
			v.From, v.bin = strings.TrimSpace(string(from)), filepath.Join(folder, name, "bin")
		}
		return v
	}
	whole := strings.FieldsFunc(os.Getenv(wholeVariable), func(r rune) bool { return r == ',' })
	switch {
	case len(whole) == 0:
		for _, name := range briefly {
			list = append(list, at(name, false))
		}
		return list
	case slices.Equal(whole, []string{"all"}):
		found, err := filepath.Glob(filepath.Join(folder, "*-*", "from"))
		if err != nil {
			t.Fatal(err)
		}
		whole = []string{"postgres-" + installed, "mariadb-" + installed, "etcd-" + installed, "redis-" + installed, "dqlite-" + installed}
		for _, path := range found {
			whole = append(whole, filepath.Base(filepath.Dir(path)))
		}
	}
	for _, name := range whole {
		list = append(list, at(name, true))
	}
	return list
}

// run runs the cells and failovers of a version.
func (v version) run(t *testing.T) {
	if v.From == "" {
		t.Skipf("skipped engine: %s: fetch it with scripts/versions.sh %s", v.Name, v.Name)
	}
	if name, ok := beside[v.product()]; ok {
		v.Database, v.Version = name, v.putFirst(t)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("version %s", text)
	for _, e := range v.engines() {
		e.run(t)
	}
	for _, h := range v.failovers() {
		t.Run("fail-over "+h.name, func(t *testing.T) {
			if !v.Whole {
				t.Parallel()
			}
			h.run(t)
		})
	}
}

// beside maps products that run next to the installed PostgreSQL to their names in the table. No parameter of a
// cluster names their programs.
var beside = map[string]string{"patroni": "PostgreSQL under Patroni", "pgbouncer": "PostgreSQL behind PgBouncer"}

// putFirst puts the programs of this version first in PATH until the test ends. It returns the version that the found
// program reports.
func (v version) putFirst(t *testing.T) string {
	t.Helper()
	if v.bin != "" {
		t.Setenv("PATH", v.bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	}
	program, err := host.Find(v.product(), v.product(), "/usr/sbin")
	skipMissing(t, v.Name, err)
	if v.bin != "" && filepath.Dir(program) != v.bin {
		t.Fatalf("found %s instead of a program in %s", program, v.bin)
	}
	said, err := host.VersionOf(t.Context(), program, "--version")
	words := strings.Fields(said) // the product, its version and further text
	if err != nil || len(words) < 2 {
		t.Fatalf("%s --version printed %q: %v", program, said, err)
	}
	return words[1]
}

// onPrepared is a row of the matrix behind a pooler that supports prepared statements, as PgBouncer does since 1.21.
const onPrepared = "postgres prepared"

// engines returns the rows of the matrix for this product, on this version.
func (v version) engines() (list []engine) {
	starts := map[string]map[string]func(t *testing.T) opener{
		"postgres": {"postgres": v.onPostgres},
		"mariadb": {
			// A version without this setting has no snapshot isolation and reports so. Since 11.4 a server with TLS
			// spends seconds on a key for its certificate.
			"mariadb":                         onMariaDBOf(v.bin, map[string]string{"loose-innodb-snapshot-isolation": "OFF", "ssl": "OFF"}),
			"mariadb with snapshot isolation": onMariaDBOf(v.bin, map[string]string{"loose-innodb-snapshot-isolation": "ON", "ssl": "OFF"}),
		},
		"mysql":     {"mysql": onNodes(v, 1, mysqlcluster.StartMySQL, url.Values{"flush": {"2"}}, mysql.Open)},
		"dqlite":    {"dqlite": onNodes(v, 3, dqlitecluster.Start, nil, dqlite.Open)},
		"etcd":      {"etcd": onNodes(v, 3, etcdcluster.Start, nil, etcd.Open)},
		"redis":     {"redis by script": v.onRedis("script"), "redis by watch": v.onRedis("watch")},
		"valkey":    {"redis by script": v.onRedis("script"), "redis by watch": v.onRedis("watch")},
		"pgbouncer": {"postgres behind pgbouncer": v.onPooler(false), onPrepared: v.onPooler(true)},
	}
	for _, e := range append(engines(), engine{name: onPrepared, cells: behindPooler()}) {
		start, ok := starts[v.product()][e.name]
		if !ok {
			continue
		}
		e.start = start
		_, apart, _ := strings.Cut(e.name, " ")
		var cells []cell
		for _, c := range e.cells {
			c.name = strings.Join(strings.Fields(c.name+" "+apart), " ") // the names differ from the names in the other row
			if strings.HasPrefix(c.name, "kv in flight?") {              // these cells start their own servers
				continue
			}
			if v.Whole || slices.Contains(briefCells[v.product()], c.name) {
				cells = append(cells, c)
			}
		}
		e.cells = cells
		if len(e.cells) > 0 {
			list = append(list, e)
		}
	}
	return list
}

// failoverKinds lists, by product, the clusters for failovers and the node to kill. program is a file that an archive
// with only the server lacks.
var failoverKinds = map[string][]struct{ cluster, target, program string }{
	"postgres": {{"postgres:1?memory=on", "random", ""}, {"postgres:3?memory=on", "leader", "pg_rewind"}},
	"mariadb":  {{"mariadb:1", "random", ""}, {"galera:3", "random", "wsrep_sst_rsync"}}, // not in memory: see startMariaDBIn
	"mysql":    {{"mysql:1", "random", ""}, {briefGroup, "leader", ""}},
	"dqlite":   {{"dqlite:3?memory=on", "leader", ""}},
	"etcd":     {{briefEtcd, "leader", ""}},
	"redis":    redisFailovers,
	"valkey":   redisFailovers,
}

// briefGroup and briefEtcd fail over by default. No other default test runs the command on a group of MySQL.
const briefGroup, briefEtcd = "mysql:3", "etcd:3?memory=on"

// redisFailovers use wait, because otherwise a failover of Redis loses acknowledged writes.
var redisFailovers = []struct{ cluster, target, program string }{
	{"redis:3?memory=on&wait=1", "leader", ""},
}

// underPatroni moves the lead to another node before the killed node is back. This takes longer than the shortest ttl
// that Patroni accepts since 3.1.
var underPatroni = faultyRun{
	name:    "postgres:3?synchronous=strict kill primary, move leader",
	cluster: "postgres:3?memory=on&synchronous=strict&ttl=20s&retry_timeout=3s&loop_wait=1s",
	faults:  []string{"kill primary at 3s for 30s", "move leader at 45s"},
	args:    []string{"--duration", "55s"},
	outage:  true,
}

// failovers returns short runs on clusters of this version that must be VALID.
func (v version) failovers() (list []faultyRun) {
	if v.product() == "patroni" {
		run := underPatroni
		run.by = "by Patroni " + v.Version
		return []faultyRun{run}
	}
	for _, kind := range failoverKinds[v.product()] {
		if !v.Whole && kind.cluster != briefGroup && kind.cluster != briefEtcd {
			continue
		}
		found, _ := filepath.Glob(filepath.Join(v.bin, kind.program)) // a valid pattern returns no error
		if v.bin != "" && len(found) == 0 {
			continue
		}
		run := faultyRun{
			name:    strings.NewReplacer("?memory=on&", "?", "?memory=on", "").Replace(kind.cluster) + " kill " + kind.target,
			cluster: kind.cluster, faults: []string{"kill " + kind.target + " at 2s for 1s"}, args: []string{"--duration", "9s"},
		}
		if !v.Whole {
			run.args[1] = "5s"
		}
		if v.product() == "mariadb" || v.product() == "mysql" { // a reader may see commits that a crash takes back
			run.args = append(run.args, "--audits", "0", "--read-only-share", "0")
		}
		if v.bin != "" {
			mark := "?"
			if strings.Contains(run.cluster, mark) {
				mark = "&"
			}
			run.cluster += mark + "bin=" + url.QueryEscape(v.bin)
		}
		list = append(list, run)
	}
	return list
}

// options returns the options of a cluster of this version.
func (v version) options(nodes int, params url.Values) cluster.Options {
	all := url.Values{}
	maps.Copy(all, params)
	if v.bin != "" {
		all.Set("bin", v.bin)
	}
	return cluster.Options{Nodes: nodes, InMemory: true, Loopback: true, Params: all}
}

// onNodes is onNode with the programs of this version and a number of nodes.
func onNodes[C startedCluster, D db.Database](v version, nodes int, start func(context.Context, cluster.Options) (C, error),
	params url.Values, open func(context.Context, string) (D, error),
) func(t *testing.T) opener {
	return func(t *testing.T) opener {
		c, err := start(t.Context(), v.options(nodes, params))
		server := served(t, v.Name, c, err).URL()
		return func(t *testing.T) (db.Database, string) {
			d, err := open(t.Context(), server)
			return opened(t, d, err), server
		}
	}
}

// onRedis starts a Redis server of this version and opens it with a way of committing.
func (v version) onRedis(way string) func(t *testing.T) opener {
	return func(t *testing.T) opener {
		c, err := rediscluster.StartCluster(t.Context(), v.options(1, url.Values{"appendfsync": {"no"}}))
		address := served(t, v.Name, c, err).URL() + "?commit=" + way
		return func(t *testing.T) (db.Database, string) { return openRedis(t, address), address }
	}
}

// onPostgres starts a PostgreSQL server of this version, with a new database for each cell.
func (v version) onPostgres(t *testing.T) opener {
	alone := cluster.Alone(nil)
	alone.InMemory = true
	if v.bin != "" {
		alone.Params.Set("bin", v.bin)
	}
	s, err := postgresserver.Start(t.Context(), alone)
	served(t, v.Name, s, err)
	var databases atomic.Int64
	return func(t *testing.T) (db.Database, string) {
		name := fmt.Sprintf("bank%d", databases.Add(1))
		psql(t, s.URL(), "CREATE DATABASE "+name)
		address := s.URLFor(postgresserver.Superuser, "", name)
		return openPostgresURL(t, address), address
	}
}

// onPooler starts the pooler of this version in front of one server. Each cell has its own database with three server
// sessions.
func (v version) onPooler(prepare bool) func(t *testing.T) opener {
	return func(t *testing.T) opener {
		c, err := postgrescluster.Start(t.Context(), cluster.Options{Nodes: 1, InMemory: true, Loopback: true, Params: url.Values{
			"pooler": {"transaction"}, "pooler.default_pool_size": {"3"}, "pooler.server_idle_timeout": {"1"},
		}})
		u, err := url.Parse(served(t, v.Name, c, err).URL())
		if err != nil {
			t.Fatal(err)
		}
		info, err := openPostgresURL(t, u.String()).Info(t.Context())
		if err != nil || !slices.ContainsFunc(info.Settings, func(s db.Setting) bool {
			return s.Name == "pooler" && strings.HasPrefix(s.Value, "PgBouncer "+v.Version+",")
		}) {
			t.Fatalf("no PgBouncer %s is seen: %+v, %v", v.Version, info.Settings, err)
		}
		var databases atomic.Int64
		return func(t *testing.T) (db.Database, string) {
			own, query := *u, u.Query()
			own.Path = fmt.Sprintf("/bank%d", databases.Add(1))
			psql(t, u.String(), "CREATE DATABASE "+own.Path[1:])
			if prepare {
				query.Set("prepare", "true")
			}
			own.RawQuery = query.Encode()
			return openPostgresURL(t, own.String()), own.String()
		}
	}
}

package dbtest

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/check/registers"
	cockroachcluster "stroppy/internal/cluster/cockroach"
	dqlitecluster "stroppy/internal/cluster/dqlite"
	foundationdbcluster "stroppy/internal/cluster/foundationdb"
	infinisqlcluster "stroppy/internal/cluster/infinisql"
	mongodbcluster "stroppy/internal/cluster/mongodb"
	mysqlcluster "stroppy/internal/cluster/mysql"
	"stroppy/internal/cluster/postgres/pgbouncer"
	postgrescluster "stroppy/internal/cluster/postgres/server"
	voltdbcluster "stroppy/internal/cluster/voltdb"
	"stroppy/internal/db"
	"stroppy/internal/db/cockroach"
	"stroppy/internal/db/dqlite"
	"stroppy/internal/db/foundationdb"
	"stroppy/internal/db/infinisql"
	"stroppy/internal/db/mongodb"
	"stroppy/internal/db/mysql"
	"stroppy/internal/db/voltdb"
	"stroppy/internal/isolation"
	"stroppy/internal/workload"
	"stroppy/internal/workload/appends"
	"stroppy/internal/workload/bank"
	"stroppy/internal/workload/events"
)

// engine is a row of the matrix: a database system in one configuration, with the workloads to run on it.
type engine struct {
	name  string
	short bool // all cells are short tests, because the engine needs no server
	own   bool // part of this program; its cells do not verify a database
	apart bool // each cell has its own database, so that cells run in parallel
	start func(t *testing.T) opener
	cells []cell
}

// opener opens a database for one cell. It is a new database, or one whose data the load replaces. The address is for
// runs of commands.
type opener func(t *testing.T) (database db.Database, address string)

// cell is one workload with its settings on an engine.
type cell struct {
	name  string // workload and settings
	short bool   // a short test although it needs a server
	more  bool   // skipped by default, because other cells cover each pair of its settings
	run   func(t *testing.T, open opener)
}

// engines returns all rows of the matrix.
func engines() []engine {
	keys := slices.Concat(bankSamples(1500, 50), []cell{tpcbOnKeys(false), tpcbByAdds(false)}, kvOnMemory(), eventsCells(500), []cell{appendCell("", 5000), appendCell("", 3000, "--mode", "interactive")})
	hurt := slices.Concat(bankSamples(counted[uint64](1500), 50), []cell{tpcbOnKeys(true), tpcbByAdds(true)}, kvOnMemory(), []cell{appendCell("", counted(3000))})
	redis := slices.Concat(bankSamples(1000, 120), []cell{bankContention(3000), tpcbOnKeys(false), kvCell("", 2000), appendCell("", 1000)}, eventsCells(300))
	jars := url.Values{"jars": {os.Getenv(voltdbcluster.Variable)}}
	return []engine{
		{"memory", true, true, false, onMemory("memory:"), keys},
		{"memory with lost answers", true, true, false, onMemory("memory:?unknown=0.05&abort=0.05"), hurt},
		{"sqlite", true, false, true, onSQLite, slices.Concat(
			bankCells(counted[uint64](600), []string{""}, workload.Pipelined, workload.Interactive),
			[]cell{tpcbCell(workload.Pipelined, workload.Interactive), tpcbWithoutNote(), kvCell("", counted(3000))}, eventsCells(counted[uint64](300)), appendCells("", counted(1000)), scriptCells(counted(300)), trackedCells(counted(300)))},
		{"postgres", false, false, true, onPostgres, slices.Concat(
			bankCells(300, []string{"read committed", "repeatable read", "serializable"}, workload.Pipelined, workload.Interactive, workload.Procedure),
			[]cell{tpcbCell(workload.Pipelined, workload.Interactive, workload.Procedure), tpcbAt("repeatable read"), tpcbAt("serializable")},
			kvOnPostgres(), appendOnPostgres(), scriptCells(300), trackedCells(300), eventsCells(300), eventsAt("read committed", "repeatable read", "serializable"))},
		{"postgres behind pgbouncer", false, false, false, onPooler("transaction"), behindPooler()},
		{"postgres behind pgbouncer with a session for each client", false, false, false, onPooler("session"), skipCovered(behindPooler())},
		{"mariadb", false, false, true, onMariaDB, slices.Concat(
			bankCells(300, []string{"read uncommitted", "read committed", "repeatable read", "serializable"}, workload.Pipelined, workload.Interactive, workload.Procedure),
			[]cell{tpcbCell(workload.Pipelined, workload.Interactive, workload.Procedure), tpcbWithoutNote()},
			[]cell{kvCell("read committed", 1500), kvCell("repeatable read", 1500), kvCell("serializable", 1500)}, eventsCells(300), appendCells("serializable", 400),
			[]cell{appendShows("repeatable read", appends.Upsert, []string{"(G-single)", "(G-nonadjacent)"}, []string{"(G0)", "(G1a)", "(G1b)", "(G1c)"})}, scriptCells(200), trackedCells(200))},
		{"mysql", false, false, false, onNode("mysql", "STROPPY_TEST_MYSQL", mysqlcluster.StartMySQL, url.Values{"flush": {"2"}}, mysql.Open), slices.Concat(
			bankCells(400, []string{"", "read committed", "serializable"}, workload.Pipelined, workload.Interactive, workload.Procedure),
			[]cell{tpcbCell(workload.Pipelined, workload.Interactive, workload.Procedure), kvCell("repeatable read", 2000), kvCell("serializable", 2000)},
			eventsCells(200), appendCells("serializable", 300), scriptCells(200), trackedCells(200))},
		{"mariadb with snapshot isolation", false, false, true, onMariaDBOf("", map[string]string{"innodb-snapshot-isolation": "ON"}),
			bankCells(300, []string{"repeatable read"}, workload.Pipelined, workload.Interactive, workload.Procedure)},
		{"cockroach", false, false, false, onCockroach, slices.Concat(
			bankCells(400, []string{""}, workload.Pipelined, workload.Interactive), bankInThePast(),
			[]cell{bankContention(300), tpcbCell(workload.Pipelined, workload.Interactive), kvCell("", 2000), kvCell("", 2000, "--mode", "interactive"), kvCell("", 2000, "--in-flight", "4")},
			appendCells("", 300), eventsCells(200), scriptCells(200), trackedCells(200))},
		{"voltdb", false, false, false, onNode("voltdb", "STROPPY_TEST_VOLTDB", voltdbcluster.Starter(voltdb.Hosts), jars, voltdb.Open), slices.Concat(
			bankSamples(1500, 50), []cell{tpcbOnKeys(false), kvCell("", 4000), kvCell("", 10_000, "--in-flight", "20"), kvCell("", 2000, "--preset", "ycsb-f", "--records", "50"),
				appendCell("", 2000), appendCell("", 500, "--operations", "16", "--list-length", "4")},
			slices.DeleteFunc(eventsCells(200), func(c cell) bool { return c.name == "events interactive" }))}, // a procedure is one call
		{"mongodb", false, false, false, onNode("mongodb", "STROPPY_TEST_MONGODB", mongodbcluster.Start, nil, mongodb.Open), slices.Concat(
			bankCells(400, []string{"", "majority"}, workload.Interactive), bankSamples(400, 50),
			[]cell{bankContention(300), tpcbOnKeys(false), kvCell("", 2000), kvCell("", 2000, "--preset", "ycsb-f", "--records", "50"), appendCell("", 1000)}, eventsCells(200))},
		{"mongodb behind mongos", false, false, false, onNode("mongodb", "STROPPY_TEST_MONGOS", mongodbcluster.Start, url.Values{"shards": {"2"}}, mongodb.Open), slices.Concat(
			bankSamples(300, 50), []cell{bankContention(200), tpcbOnKeys(false), kvCell("", 1000), appendCell("", 300)}, eventsCells(100))},
		{"foundationdb", false, false, false, onNode("foundationdb", "STROPPY_TEST_FDB", foundationdbcluster.Start, nil, foundationdb.Open), slices.Concat(
			bankSamples(500, 50), []cell{bankContention(300), tpcbOnKeys(false), tpcbByAdds(false), kvCell("", 2000), kvCell("", 2000, "--in-flight", "20"), appendCell("", 1000)}, eventsCells(200))},
		{"dqlite", false, false, false, onNode("dqlite", "STROPPY_TEST_DQLITE", dqlitecluster.Start, nil, dqlite.Open), slices.Concat(
			bankCells(200, []string{""}, workload.Pipelined, workload.Interactive), []cell{tpcbCell(workload.Pipelined, workload.Interactive), kvCell("", 500)},
			eventsCells(100), appendCells("", 200), scriptCells(100), trackedCells(100))},
		{"infinisql", false, false, false, onNode("InfiniSQL", "STROPPY_TEST_INFINISQL", infinisqlcluster.Starter(infinisql.Prepare), nil, infinisql.Open), tpcbOnTables()},
		{"etcd", false, false, false, onEtcd, slices.Concat(bankOnEtcd(), []cell{tpcbOnEtcd(), appendCell("", 500)}, kvOnEtcd(), eventsCells(200))},
		{"redis by script", false, false, false, onRedis("script"), slices.Concat(redis, kvOnSharedRedisConnections())},
		{"redis by watch", false, false, false, onRedis("watch"), redis},
	}
}

// counted returns the number of transactions of a cell without a server. Under the race detector it is a third,
// because the detector needs many clients rather than many transactions.
func counted[N int | uint64](n N) N {
	if raceEnabled {
		return n / 3
	}
	return n
}

// TestMatrix runs every workload with every setting on every database. Engines run in parallel, and so do cells with
// their own database.
func TestMatrix(t *testing.T) {
	t.Parallel()
	for _, e := range engines() {
		if checktest.Factor() == 0 {
			e.cells = slices.DeleteFunc(e.cells, func(c cell) bool { return c.more && !c.short })
		}
		if testing.Short() && !e.short {
			e.cells = slices.DeleteFunc(e.cells, func(c cell) bool { return !c.short || e.name != "postgres" })
		}
		if len(e.cells) == 0 || raceEnabled && e.name == "memory" { // the row with lost answers runs the same code
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			e.run(t)
		})
	}
}

// run runs each cell of an engine as a subtest.
func (e engine) run(t *testing.T) {
	open := e.start(t)
	for _, c := range e.cells {
		t.Run(strings.Join(strings.Fields(c.name), " "), func(t *testing.T) {
			if e.apart {
				t.Parallel()
			}
			var on db.Info
			c.run(t, func(t *testing.T) (database db.Database, address string) {
				database, address = open(t)
				on, _ = database.Info(t.Context()) // the run reports an error
				return database, address
			})
			if workload, _, _ := strings.Cut(c.name, " "); on.Name != "" && !e.own && !t.Failed() {
				verified(t, on.Name, on.Version, workload)
			}
		})
	}
}

// verified prints a record for tools/verified, which counts the record if the test passes.
func verified(t *testing.T, database, version, workload string, faults ...string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"database": database, "version": version, "workload": workload, "faults": faults})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("verified %s", text)
}

// onMemory returns the start function of the in-memory reference.
func onMemory(address string) func(t *testing.T) opener {
	return func(*testing.T) opener {
		return func(t *testing.T) (db.Database, string) { return openMemory(t, address), address }
	}
}

// onSQLite starts no server and opens SQLite files.
func onSQLite(*testing.T) opener {
	return func(t *testing.T) (db.Database, string) {
		return openSQLite(t), "sqlite:" + filepath.Join(t.TempDir(), "kv.db")
	}
}

// onPostgres opens databases on the shared PostgreSQL server.
func onPostgres(t *testing.T) opener {
	postgresServer(t)
	return func(t *testing.T) (db.Database, string) { return openPostgres(t) }
}

// onPooler starts a pooler in front of the shared server. It has three server sessions for each database, or thirty in
// session mode.
func onPooler(mode string) func(t *testing.T) opener {
	return func(t *testing.T) opener {
		size := "3"
		if mode == "session" {
			size = "30"
		}
		p := startPooler(t, map[string]string{"pool_mode": mode, "default_pool_size": size})
		return func(t *testing.T) (db.Database, string) { return openPooled(t, p, newPostgresDatabase(t)) }
	}
}

// skipCovered marks the cells to skip by default: cells whose settings each appear in an earlier cell of the workload.
// Another row of the matrix covers the pairs of settings.
func skipCovered(list []cell) []cell {
	met := map[string]bool{}
	for i := range list {
		if list[i].more {
			continue
		}
		workload, settings, _ := strings.Cut(list[i].name, " ")
		fresh := !met[workload]
		met[workload] = true
		for _, word := range strings.Fields(settings) {
			fresh = fresh || !met[workload+" "+word]
			met[workload+" "+word] = true
		}
		list[i].more = !fresh
	}
	return list
}

// startPooler starts a pooler in front of the shared server.
func startPooler(t *testing.T, settings map[string]string) *pgbouncer.Pooler {
	t.Helper()
	u, err := url.Parse(postgresServer(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	settings["max_client_conn"] = "1000"
	settings["server_idle_timeout"] = "1" // the next cell adds the sessions of its own database
	p, err := pgbouncer.Start(t.Context(), netip.MustParseAddrPort(u.Host), postgrescluster.Superuser, settings)
	return served(t, "pgbouncer", p, err)
}

// openPooled opens the database at the address direct through a pooler. The returned address does not show that the
// server is a pooler.
func openPooled(t *testing.T, p *pgbouncer.Pooler, direct string) (database db.Database, address string) {
	t.Helper()
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	address = p.URL(postgrescluster.Superuser, strings.TrimPrefix(u.Path, "/"), "")
	return openPostgresURL(t, address), address
}

// behindPooler returns cells for all workloads, modes and isolation levels, and for each access of append in each
// mode.
func behindPooler() []cell {
	isolations := []string{"read committed", "repeatable read", "serializable"}
	list := slices.Concat(bankBehindPooler(),
		[]cell{tpcbCell(workload.Pipelined, workload.Interactive, workload.Procedure), tpcbAt("repeatable read"), tpcbAt("serializable")}, eventsCells(100))
	for i, isolation := range isolations {
		list = append(list, kvCell(isolation, 400, "--in-flight", "8"))
		for k, mode := range []string{workload.Pipelined, workload.Interactive} {
			list = append(list, kvCell(isolation, 400, "--mode", mode), eventsCell(isolation+" "+mode, 100, func(c *events.Config) {
				c.Streams, c.Isolation, c.Mode = 2, isolation, mode
			}))
			for n, access := range accesses {
				if isolation == "serializable" || n == 2*i+k {
					c := appendCell(isolation, 150, "--access", access, "--mode", mode)
					c.more = n%2 != k
					list = append(list, c)
				}
			}
		}
	}
	return list
}

// onMariaDB opens databases on the shared MariaDB server.
func onMariaDB(t *testing.T) opener {
	sharedMariaDB(t)
	return func(t *testing.T) (db.Database, string) { return openSharedMariaDB(t) }
}

// onMariaDBOf starts a MariaDB server from the programs in a folder, or from the installed programs if the folder is
// empty.
func onMariaDBOf(bin string, settings map[string]string) func(t *testing.T) opener {
	return func(t *testing.T) opener {
		s := startMariaDBIn(t, bin, true, settings)
		var databases atomic.Int64
		return func(t *testing.T) (db.Database, string) {
			name := fmt.Sprintf("d%d", databases.Add(1))
			return openMariaDB(t, s, name), s.URLFor(mysqlcluster.Superuser, "", name)
		}
	}
}

// onEtcd opens the shared etcd cluster.
func onEtcd(t *testing.T) opener {
	useEtcd(t)
	openEtcd(t)
	return func(t *testing.T) (db.Database, string) { return openEtcd(t), shared.etcd.URL() }
}

// onCockroach starts a cluster of one node, or uses the cluster that STROPPY_TEST_COCKROACH names.
func onCockroach(t *testing.T) opener {
	server := namedOrStarted(t, "cockroach", "STROPPY_TEST_COCKROACH", cockroachcluster.Start, nil)
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := cockroach.Open(t.Context(), server)
	opened(t, shared, err)
	var databases atomic.Int64
	return func(t *testing.T) (db.Database, string) {
		name := fmt.Sprintf("stroppy_test_%d", databases.Add(1))
		for _, statement := range []string{"DROP DATABASE IF EXISTS " + name + " CASCADE", "CREATE DATABASE " + name} {
			if err := shared.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		own := *u
		own.Path = "/" + name
		d, err := cockroach.Open(t.Context(), own.String())
		return opened(t, d, err), own.String()
	}
}

// onRedis starts a Redis server and opens it with a way of committing.
func onRedis(way string) func(t *testing.T) opener {
	return func(t *testing.T) opener {
		address := startRedis(t, 1, "no").URL() + "?commit=" + way
		return func(t *testing.T) (db.Database, string) { return openRedis(t, address), address }
	}
}

// bankCell returns a cell that runs the bank with a change to its settings and requires a valid run.
func bankCell(name string, count uint64, change func(*bank.Config)) cell {
	return cell{name: "bank " + name, run: func(t *testing.T, open opener) {
		d, _ := open(t)
		c := small()
		change(&c)
		runBank(t, d, c, count).wantValid(t)
	}}
}

// bankSamples returns cells with audits of all accounts and of a sample.
func bankSamples(count, sample uint64) []cell {
	return []cell{
		bankCell("audits of all", count, func(*bank.Config) {}),
		bankCell("audits of a sample", count, func(c *bank.Config) { c.AuditSample = sample }),
	}
}

// bankInThePast returns cells with audits that read the state of an earlier time.
func bankInThePast() []cell {
	const age = 500 * time.Millisecond
	return []cell{
		bankCell("audits of all in the past", 1500, func(c *bank.Config) { c.AuditAge, c.Audits = age, 5 }),
		bankCell("audits of a sample in the past", 1500, func(c *bank.Config) { c.AuditAge, c.Audits, c.AuditSample = age, 5, 50 }),
	}
}

// bankContention returns a cell in which many transactions conflict.
func bankContention(count uint64) cell {
	return bankCell("under contention", count, func(c *bank.Config) { c.Accounts, c.Clients, c.Zipfian = 20, 16, true })
}

// bankOnEtcd returns the cells of the bank on etcd.
func bankOnEtcd() []cell {
	return []cell{
		bankCell("audits of all", 500, func(c *bank.Config) { c.Audits = 10 }),
		bankCell("audits of a sample", 500, func(c *bank.Config) { c.Audits, c.AuditSample = 10, 120 }),
	}
}

// bankCells returns a cell for every combination of update style, mode and isolation level. Cells outside a selection
// that covers all pairs of settings are skipped by default.
func bankCells(count uint64, isolations []string, modes ...string) (list []cell) {
	updates := []string{bank.Atomic, bank.Locked, bank.RMW}
	met := map[[2]string]bool{}
	for shift := range modes {
		for i, isolation := range isolations {
			for u, update := range updates {
				// In this order the first shift covers all pairs of three times three settings.
				mode := modes[(i+u+shift)%len(modes)]
				c := cell{
					name:  strings.Join([]string{"bank", isolation, update, mode}, " "),
					short: isolation == "serializable" && update == bank.Atomic && mode == workload.Pipelined,
					more:  true,
					run: func(t *testing.T, open opener) {
						d, _ := open(t)
						c := small()
						c.Isolation, c.Update, c.Mode = isolation, update, mode
						if update != bank.RMW { // lost updates need conflicts
							c.Clients /= 2
						}
						runBankAt(t, d, c, count)
					},
				}
				for _, pair := range [][2]string{{isolation, update}, {isolation, mode}, {update, mode}} {
					c.more = c.more && met[pair]
					met[pair] = true
				}
				list = append(list, c)
			}
		}
	}
	return list
}

// TestDefaultBankCellsCoverPairsOfSettings checks that the default cells cover all pairs of isolation level, update
// style and mode. The skipped cells must complete the combinations.
func TestDefaultBankCellsCoverPairsOfSettings(t *testing.T) {
	three, updates := []string{workload.Pipelined, workload.Interactive, workload.Procedure}, []string{bank.Atomic, bank.Locked, bank.RMW}
	for _, c := range []struct {
		isolations, modes []string
		most              int // limit on default cells
	}{
		{[]string{""}, three[:2], 6}, {[]string{"repeatable read"}, three, 9}, {[]string{"read committed", "repeatable read", "serializable"}, three, 9},
		{[]string{"read uncommitted", "read committed", "repeatable read", "serializable"}, three, 12}, {[]string{"a", "b", "c"}, three[:1], 9}, {[]string{"a", "b", "c"}, three[:2], 9},
	} {
		more := map[string]bool{}
		some := 0
		for _, one := range bankCells(1, c.isolations, c.modes...) {
			if more[one.name] = one.more; !one.more {
				some++
			}
		}
		met := map[[2]string]bool{}
		for _, isolation := range c.isolations {
			for _, update := range updates {
				for _, mode := range c.modes {
					if is, there := more[strings.Join([]string{"bank", isolation, update, mode}, " ")]; !there {
						t.Errorf("no cell has %q, %s and %s", isolation, update, mode)
					} else if !is {
						met[[2]string{isolation, update}], met[[2]string{isolation, mode}], met[[2]string{update, mode}] = true, true, true
					}
				}
			}
		}
		i, u, m := len(c.isolations), len(updates), len(c.modes)
		if len(more) != i*u*m || len(met) != i*u+i*m+u*m || some > c.most {
			t.Errorf("%q and %q: %d cells; the %d default cells cover %d pairs of %d",
				c.isolations, c.modes, len(more), some, len(met), i*u+i*m+u*m)
		}
	}
}

// TestDefaultCellsCoverEachSetting checks that the default cells of a row cover each setting of each workload.
// skipCovered must skip more cells than the row did without it.
func TestDefaultCellsCoverEachSetting(t *testing.T) {
	for _, e := range engines() {
		all, kept := map[string]bool{}, map[string]bool{}
		for _, c := range e.cells {
			for _, setting := range settingsOf(c.name) {
				all[setting] = true
				kept[setting] = kept[setting] || !c.more
			}
		}
		if len(all) == 0 {
			t.Errorf("%s has no cell", e.name)
		}
		for setting := range all {
			if !kept[setting] {
				t.Errorf("%s: no default cell has %s", e.name, setting)
			}
		}
	}
	left := func(list []cell) (n int) {
		for _, c := range list {
			if c.more {
				n++
			}
		}
		return n
	}
	if whole, once := left(behindPooler()), left(skipCovered(behindPooler())); whole == 0 || once <= whole {
		t.Errorf("behind the pooler %d cells are skipped by default, and %d after skipCovered", whole, once)
	}
}

// settingsOf returns the workload of a cell and its settings: isolation level, flags with their values, and other
// words of the name. The name of the workload precedes each setting.
func settingsOf(name string) []string {
	workload, rest, _ := strings.Cut(strings.Join(strings.Fields(name), " "), " ")
	list := []string{workload}
	for rest != "" {
		words := strings.Fields(rest)
		n := 1
		if len(words) > 1 && (strings.HasPrefix(words[0], "--") || slices.Contains([]string{"read committed", "read uncommitted", "repeatable read"}, words[0]+" "+words[1])) {
			n = 2
		}
		list = append(list, workload+" "+strings.Join(words[:n], " "))
		rest = strings.Join(words[n:], " ")
	}
	return list
}

// runBankAt runs the bank at an isolation level. If the level allows lost updates, a check must name one.
func runBankAt(t *testing.T, d db.Database, c bank.Config, count uint64) {
	t.Helper()
	switch {
	case c.Update == bank.RMW && losesUpdates(t, d, c.Isolation):
		runLosingUpdates(t, d, c)
	case c.Update == bank.Atomic && c.Isolation == "read uncommitted":
		// A joint transfer may read uncommitted data and commit before the data. An audit between the two commits sees
		// an inconsistent state.
		runBank(t, d, c, count).wantValid(t, check.Audits)
	default:
		runBank(t, d, c, count).wantValid(t)
	}
}

// losesUpdates reports whether an engine may lose updates at an isolation level. InnoDB may at repeatable read too,
// unless it claims snapshot isolation.
func losesUpdates(t *testing.T, d db.Database, name string) bool {
	t.Helper()
	claim, err := d.Claim(name)
	if err != nil {
		t.Fatal(err)
	}
	switch claim.Isolation {
	case "read uncommitted", "read committed":
		return true
	case "repeatable read":
		return !claim.Level.Includes(isolation.SnapshotIsolation)
	}
	return false
}

// bankBehindPooler returns the cells of the bank behind a pooler.
func bankBehindPooler() []cell {
	modes := []string{workload.Pipelined, workload.Interactive, workload.Procedure}
	list := bankCells(300, []string{"read committed", "repeatable read", "serializable"}, modes...)
	for _, mode := range modes {
		list = append(list, bankCell("default "+mode, 300, func(c *bank.Config) { c.Mode = mode }))
	}
	return append(list, cell{name: "bank lost updates", run: func(t *testing.T, open opener) {
		d, _ := open(t)
		c := small()
		c.Isolation, c.Update = "read committed", bank.RMW
		runLosingUpdates(t, d, c)
	}})
}

// tpcbCell returns a cell that runs TPC-B in the modes given.
func tpcbCell(modes ...string) cell {
	return cell{name: "tpcb", run: func(t *testing.T, open opener) {
		d, _ := open(t)
		onTPCB(t, d, modes)
	}}
}

// tpcbAt returns a cell that runs TPC-B at an isolation level.
func tpcbAt(isolation string) cell {
	return cell{name: "tpcb " + isolation, short: isolation == "serializable", run: func(t *testing.T, open opener) {
		d, _ := open(t)
		c := smallTPCB()
		c.Isolation = isolation
		runTPCB(t, d, c, 500, true).wantTPCB(t, tpcbChecks...)
	}}
}

// tpcbWithoutNote returns a cell that runs TPC-B on tables without the metadata of this program.
func tpcbWithoutNote() cell {
	return cell{name: "tpcb without a note", run: func(t *testing.T, open opener) {
		d, _ := open(t)
		withoutNote(t, d.(db.SQL))
	}}
}

// tpcbOnKeys returns a cell that runs TPC-B on a key-value store, with and without its history. If answers are lost,
// only the history shows which transactions were applied.
func tpcbOnKeys(losesAnswers bool) cell {
	return tpcbKept("tpcb", counted[uint64](800), losesAnswers, false)
}

// tpcbOnEtcd is tpcbOnKeys with fewer transactions, because each needs three servers.
func tpcbOnEtcd() cell { return tpcbKept("tpcb", 250, false, false) }

// tpcbByAdds is tpcbOnKeys on rows without versions.
func tpcbByAdds(losesAnswers bool) cell {
	return tpcbKept("tpcb by adds", counted[uint64](800), losesAnswers, true)
}

// tpcbKept returns a cell that runs TPC-B with and without its history.
func tpcbKept(name string, count uint64, losesAnswers, plain bool) cell {
	return cell{name: name, run: func(t *testing.T, open opener) {
		d, _ := open(t)
		for _, keeps := range []bool{true, false} {
			c := smallTPCB()
			c.History, c.Plain = keeps, plain
			o := runTPCB(t, d, c, count, true)
			switch {
			case keeps:
				o.wantTPCB(t, tpcbChecks...)
			case losesAnswers:
				wantUnknown(t, o.results, check.Ledger)
			default:
				o.wantTPCB(t, check.Total, check.Ledger, check.Serializable, check.Strict)
			}
		}
	}}
}

// tpcbOnTables returns cells for databases with db.Limits.Simple. They run TPC-B by statements and by its procedure,
// with and without a load. A procedure keeps no history.
func tpcbOnTables() (list []cell) {
	for _, mode := range []string{workload.Interactive, workload.Procedure} {
		for _, keeps := range []bool{true, false} {
			if keeps && mode == workload.Procedure {
				continue // a procedure writes no id into the history
			}
			list = append(list, cell{name: fmt.Sprintf("tpcb %s history %v", mode, keeps), run: func(t *testing.T, open opener) {
				d, address := open(t)
				if mode == workload.Procedure && !strings.Contains(address, "procedures=") {
					t.Skip("skipped engine: procedures of InfiniSQL: name their folder in STROPPY_TEST_INFINISQL by procedures=")
				}
				c := smallTPCB()
				c.Mode, c.History, c.AnyRows = mode, keeps, true
				names := []string{check.Total, check.Ledger, check.Serializable}
				if keeps {
					names = tpcbChecks
				}
				o := runTPCB(t, d, c, 800, true)
				o.wantTPCB(t, names...)
				runTPCB(t, d, c, 200, false, o.dir).wantTPCB(t, names...)
			}})
		}
	}
	return list
}

// kvCell returns a cell that runs kv as a command. The command gets the further arguments.
func kvCell(isolation string, count int, more ...string) cell {
	return cell{name: strings.Join(append([]string{"kv", isolation}, more...), " "), run: func(t *testing.T, open opener) {
		_, address := open(t)
		args := slices.Concat([]string{"--db", address, "--count", fmt.Sprint(count)}, kvMix, more)
		if isolation != "" {
			args = append(args, "--isolation", isolation)
		}
		code, v, why := program(t, "kv", args...)
		v.wantKV(t, code, why)
	}}
}

// kvOnMemory returns the cells of kv on the in-memory reference.
func kvOnMemory() []cell {
	count := 10_000
	if raceEnabled {
		count = 1000
	}
	return []cell{
		kvCell("", count), kvCell("", count, "--distribution", "latest"), kvCell("", count, "--in-flight", "4"),
		kvCell("", count, "--value-size", "64..3000", "--key-size", "16"),
	}
}

// kvOnPostgres returns the cells of kv on PostgreSQL.
func kvOnPostgres() (list []cell) {
	for _, isolation := range []string{"read committed", "repeatable read", "serializable"} {
		for _, how := range [][]string{{"--mode", "pipelined"}, {"--mode", "interactive"}, {"--in-flight", "8"}} {
			list = append(list, cell{
				name:  fmt.Sprintf("kv %s %s", isolation, strings.Join(how, " ")),
				short: isolation == "serializable" && how[0] == "--in-flight",
				run: func(t *testing.T, open opener) {
					_, address := open(t)
					args := slices.Concat([]string{"--db", address, "--count", "700", "--isolation", isolation}, kvMix, []string{"--records", "20"}, how)
					code, v, why := program(t, "kv", args...)
					v.wantKV(t, code, why)
					lost := func() bool { return v.status(registers.NoLostUpdate) == "invalid" }
					// It reads without a lock, so that READ COMMITTED may lose updates. A single run may not show
					// this.
					allowed := isolation == "read committed"
					for again := 1; allowed && !lost() && again < 5; again++ {
						code, v, why = program(t, "kv", args...)
						v.wantKV(t, code, why)
					}
					if lost() != allowed {
						t.Errorf("%s at %s is %s", registers.NoLostUpdate, isolation, v.status(registers.NoLostUpdate))
					}
				},
			})
		}
	}
	return list
}

// kvOnEtcd returns the cells of kv on etcd.
func kvOnEtcd() []cell {
	return []cell{
		kvCell("", 1000, "--in-flight", "1"), kvCell("", 1000, "--in-flight", "4"),
		// In the first cell a batch of values exceeds a request; in the second cell one value does.
		kvCell("", 200, "--value-size", "100000", "--records", "40", "--scan-length", "3"),
		{name: "kv too large", run: func(t *testing.T, open opener) {
			_, address := open(t)
			if code, _, why := program(t, "kv", "--db", address, "--value-size", "2000000"); code != 2 || !strings.Contains(why, "takes values of at most") {
				t.Errorf("exit code %d: %s", code, why)
			}
		}},
	}
}

// kvOnSharedRedisConnections returns cells with eight concurrent transactions on one connection, without replicas and
// with one replica that acknowledges each commit.
func kvOnSharedRedisConnections() (list []cell) {
	for replicas, query := range []string{"?wait=0", "?wait=1"} {
		list = append(list, cell{name: "kv in flight" + query, run: func(t *testing.T, _ opener) {
			s := startRedis(t, 1+replicas, "no")
			code, v, why := program(t, "kv", slices.Concat([]string{"--db", s.URL() + query, "--count", "3000", "--in-flight", "8"}, kvMix)...)
			v.wantKV(t, code, why)
		}})
	}
	return list
}

// eventsCells returns a cell for each configuration of the log.
func eventsCells(count uint64) (list []cell) {
	for name, change := range eventsWays() {
		list = append(list, eventsCell(name, count, change))
	}
	slices.SortFunc(list, func(a, b cell) int { return strings.Compare(a.name, b.name) })
	return list
}

// eventsAt returns a cell with shared streams for each isolation level. The primary key keeps positions unique at
// every level.
func eventsAt(isolations ...string) (list []cell) {
	for _, isolation := range isolations {
		list = append(list, eventsCell(isolation, 200, func(c *events.Config) { c.Streams, c.Isolation = 2, isolation }))
	}
	return list
}

// eventsCell returns a cell that runs events with a change to its configuration.
func eventsCell(name string, count uint64, change func(c *events.Config)) cell {
	return cell{name: "events " + name, short: name == "shared streams", run: func(t *testing.T, open opener) {
		d, _ := open(t)
		c := fewEvents()
		change(&c)
		r := runEvents(t, d, c, count)
		r.wantAllValid(t)
		if n := r.driven.Measurements.Latency.Count; n != count {
			t.Errorf("%d of %d appends were committed on a healthy database", n, count)
		}
	}}
}

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

// engine is a database system, in one form of it, on which the matrix runs the
// workloads.
type engine struct {
	name  string
	short bool // needs no server, so that all its cells are short tests
	own   bool // is part of this program, so that it verifies nothing of a database
	apart bool // each cell has a database of its own, so that they run side by side
	start func(t *testing.T) opener
	cells []cell
}

// opener opens a database for one cell: a new one, or one whose data a load
// replaces. The address is for runs of the whole program.
type opener func(t *testing.T) (database db.Database, address string)

// cell is one workload in one of its ways on an engine.
type cell struct {
	name  string // workload and way
	short bool   // a short test though it needs a server
	more  bool   // of its settings, each two meet in another cell
	run   func(t *testing.T, open opener)
}

// engines are all rows of the matrix.
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
			[]cell{tpcbCell(workload.Pipelined, workload.Interactive), tpcbWithoutNote(), kvCell("", counted(3000))}, eventsCells(counted[uint64](300)), appendCells("", counted(1000)))},
		{"postgres", false, false, true, onPostgres, slices.Concat(
			bankCells(300, []string{"read committed", "repeatable read", "serializable"}, workload.Pipelined, workload.Interactive, workload.Procedure),
			[]cell{tpcbCell(workload.Pipelined, workload.Interactive, workload.Procedure), tpcbAt("repeatable read"), tpcbAt("serializable")},
			kvOnPostgres(), appendOnPostgres(), eventsCells(300), eventsAt("read committed", "repeatable read", "serializable"))},
		{"postgres behind pgbouncer", false, false, false, onPooler("transaction"), behindPooler()},
		{"postgres behind pgbouncer with a session for each client", false, false, false, onPooler("session"), eachMet(behindPooler())},
		{"mariadb", false, false, true, onMariaDB, slices.Concat(
			bankCells(300, []string{"read uncommitted", "read committed", "repeatable read", "serializable"}, workload.Pipelined, workload.Interactive, workload.Procedure),
			[]cell{tpcbCell(workload.Pipelined, workload.Interactive, workload.Procedure), tpcbWithoutNote()},
			[]cell{kvCell("read committed", 1500), kvCell("repeatable read", 1500), kvCell("serializable", 1500)}, eventsCells(300), appendCells("serializable", 400),
			[]cell{appendShows("repeatable read", appends.Upsert, []string{"(G-single)", "(G-nonadjacent)"}, []string{"(G0)", "(G1a)", "(G1b)", "(G1c)"})})},
		{"mysql", false, false, false, onNode("mysql", "STROPPY_TEST_MYSQL", mysqlcluster.StartMySQL, url.Values{"flush": {"2"}}, mysql.Open), slices.Concat(
			bankCells(400, []string{"", "read committed", "serializable"}, workload.Pipelined, workload.Interactive, workload.Procedure),
			[]cell{tpcbCell(workload.Pipelined, workload.Interactive, workload.Procedure), kvCell("repeatable read", 2000), kvCell("serializable", 2000)},
			eventsCells(200), appendCells("serializable", 300))},
		{"mariadb with snapshot isolation", false, false, true, onMariaDBOf("", map[string]string{"innodb-snapshot-isolation": "ON"}),
			bankCells(300, []string{"repeatable read"}, workload.Pipelined, workload.Interactive, workload.Procedure)},
		{"cockroach", false, false, false, onCockroach, slices.Concat(
			bankCells(400, []string{""}, workload.Pipelined, workload.Interactive), bankInThePast(),
			[]cell{bankContention(300), tpcbCell(workload.Pipelined, workload.Interactive), kvCell("", 2000), kvCell("", 2000, "--mode", "interactive"), kvCell("", 2000, "--in-flight", "4")},
			appendCells("", 300), eventsCells(200))},
		{"voltdb", false, false, false, onNode("voltdb", "STROPPY_TEST_VOLTDB", voltdbcluster.Starter(voltdb.Hosts), jars, voltdb.Open), slices.Concat(
			bankSamples(1500, 50), []cell{tpcbOnKeys(false), kvCell("", 4000), kvCell("", 10_000, "--in-flight", "20"), kvCell("", 2000, "--preset", "ycsb-f", "--records", "50"),
				appendCell("", 2000), appendCell("", 500, "--operations", "16", "--list-length", "4")},
			slices.DeleteFunc(eventsCells(200), func(c cell) bool { return c.name == "events interactive" }))}, // a procedure has no statements that travel
		{"mongodb", false, false, false, onNode("mongodb", "STROPPY_TEST_MONGODB", mongodbcluster.Start, nil, mongodb.Open), slices.Concat(
			bankCells(400, []string{"", "majority"}, workload.Interactive), bankSamples(400, 50),
			[]cell{bankContention(300), tpcbOnKeys(false), kvCell("", 2000), kvCell("", 2000, "--preset", "ycsb-f", "--records", "50"), appendCell("", 1000)}, eventsCells(200))},
		{"mongodb behind mongos", false, false, false, onNode("mongodb", "STROPPY_TEST_MONGOS", mongodbcluster.Start, url.Values{"shards": {"2"}}, mongodb.Open), slices.Concat(
			bankSamples(300, 50), []cell{bankContention(200), tpcbOnKeys(false), kvCell("", 1000), appendCell("", 300)}, eventsCells(100))},
		{"foundationdb", false, false, false, onNode("foundationdb", "STROPPY_TEST_FDB", foundationdbcluster.Start, nil, foundationdb.Open), slices.Concat(
			bankSamples(500, 50), []cell{bankContention(300), tpcbOnKeys(false), tpcbByAdds(false), kvCell("", 2000), kvCell("", 2000, "--in-flight", "20"), appendCell("", 1000)}, eventsCells(200))},
		{"dqlite", false, false, false, onNode("dqlite", "STROPPY_TEST_DQLITE", dqlitecluster.Start, nil, dqlite.Open), slices.Concat(
			bankCells(200, []string{""}, workload.Pipelined, workload.Interactive), []cell{tpcbCell(workload.Pipelined, workload.Interactive), kvCell("", 500)},
			eventsCells(100), appendCells("", 200))},
		{"infinisql", false, false, false, onNode("InfiniSQL", "STROPPY_TEST_INFINISQL", infinisqlcluster.Starter(infinisql.Prepare), nil, infinisql.Open), tpcbOnTables()},
		{"etcd", false, false, false, onEtcd, slices.Concat(bankOnEtcd(), []cell{tpcbOnEtcd(), appendCell("", 500)}, kvOnEtcd(), eventsCells(200))},
		{"redis by script", false, false, false, onRedis("script"), slices.Concat(redis, kvOnSharedRedisConnections())},
		{"redis by watch", false, false, false, onRedis("watch"), redis},
	}
}

// counted is how many transactions a cell without a server has: a third under the race detector,
// which needs several clients at once and not many transactions.
func counted[N int | uint64](n N) N {
	if raceEnabled {
		return n / 3
	}
	return n
}

// TestMatrix holds every database to every workload in each of its ways. The engines
// run side by side, and so do the cells that do not share a database.
func TestMatrix(t *testing.T) {
	t.Parallel()
	for _, e := range engines() {
		if checktest.Factor() == 0 {
			e.cells = slices.DeleteFunc(e.cells, func(c cell) bool { return c.more && !c.short })
		}
		if testing.Short() && !e.short {
			e.cells = slices.DeleteFunc(e.cells, func(c cell) bool { return !c.short || e.name != "postgres" })
		}
		if len(e.cells) == 0 || raceEnabled && e.name == "memory" { // the detector sees the same code where answers are lost
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			e.run(t)
		})
	}
}

// run runs the cells of an engine, each as a test below that of the engine.
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
				on, _ = database.Info(t.Context()) // an error is seen by the run
				return database, address
			})
			if workload, _, _ := strings.Cut(c.name, " "); on.Name != "" && !e.own && !t.Failed() {
				verified(t, on.Name, on.Version, workload)
			}
		})
	}
}

// verified reports to tools/verified, which counts it if the test passes.
func verified(t *testing.T, database, version, workload string, faults ...string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"database": database, "version": version, "workload": workload, "faults": faults})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("verified %s", text)
}

func onMemory(address string) func(t *testing.T) opener {
	return func(*testing.T) opener {
		return func(t *testing.T) (db.Database, string) { return openMemory(t, address), address }
	}
}

func onSQLite(*testing.T) opener {
	return func(t *testing.T) (db.Database, string) {
		return openSQLite(t), "sqlite:" + filepath.Join(t.TempDir(), "kv.db")
	}
}

func onPostgres(t *testing.T) opener {
	postgresServer(t)
	return func(t *testing.T) (db.Database, string) { return openPostgres(t) }
}

// onPooler puts a pooler of a pool mode before the shared server. It has three sessions there
// for each database where it lends one for each transaction.
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

// eachMet leaves those cells to who has the time of which each setting is in an earlier one, of
// the same workload: the settings meet each other in another row of the matrix.
func eachMet(list []cell) []cell {
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

func startPooler(t *testing.T, settings map[string]string) *pgbouncer.Pooler {
	t.Helper()
	u, err := url.Parse(postgresServer(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	settings["max_client_conn"] = "1000"
	settings["server_idle_timeout"] = "1" // the next cell has another database, whose sessions come on top
	p, err := pgbouncer.Start(t.Context(), netip.MustParseAddrPort(u.Host), postgrescluster.Superuser, settings)
	return served(t, "pgbouncer", p, err)
}

// openPooled opens the database with the address direct through a pooler, which nothing in
// the address names.
func openPooled(t *testing.T, p *pgbouncer.Pooler, direct string) (database db.Database, address string) {
	t.Helper()
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	address = p.URL(postgrescluster.Superuser, strings.TrimPrefix(u.Path, "/"), "")
	return openPostgresURL(t, address), address
}

// behindPooler are all workloads in all modes at each isolation, and each access of append
// in each mode.
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

func onMariaDB(t *testing.T) opener {
	sharedMariaDB(t)
	return func(t *testing.T) (db.Database, string) { return openSharedMariaDB(t) }
}

// onMariaDBOf starts a server whose programs are in a folder, this machine's without one.
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

func onEtcd(t *testing.T) opener {
	useEtcd(t)
	openEtcd(t)
	return func(t *testing.T) (db.Database, string) { return openEtcd(t), shared.etcd.URL() }
}

// onCockroach takes a cluster of one node, or the one that STROPPY_TEST_COCKROACH names.
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

func onRedis(way string) func(t *testing.T) opener {
	return func(t *testing.T) opener {
		address := startRedis(t, 1, "no").URL() + "?commit=" + way
		return func(t *testing.T) (db.Database, string) { return openRedis(t, address), address }
	}
}

// bankCell runs the bank with a change to its settings, and wants all that is required
// to hold.
func bankCell(name string, count uint64, change func(*bank.Config)) cell {
	return cell{name: "bank " + name, run: func(t *testing.T, open opener) {
		d, _ := open(t)
		c := small()
		change(&c)
		runBank(t, d, c, count).wantValid(t)
	}}
}

// bankSamples has audits of all accounts and of a sample.
func bankSamples(count, sample uint64) []cell {
	return []cell{
		bankCell("audits of all", count, func(*bank.Config) {}),
		bankCell("audits of a sample", count, func(c *bank.Config) { c.AuditSample = sample }),
	}
}

// bankInThePast has audits that read what was there a while ago.
func bankInThePast() []cell {
	const age = 500 * time.Millisecond
	return []cell{
		bankCell("audits of all in the past", 1500, func(c *bank.Config) { c.AuditAge, c.Audits = age, 5 }),
		bankCell("audits of a sample in the past", 1500, func(c *bank.Config) { c.AuditAge, c.Audits, c.AuditSample = age, 5, 50 }),
	}
}

func bankContention(count uint64) cell {
	return bankCell("under contention", count, func(c *bank.Config) { c.Accounts, c.Clients, c.Zipfian = 20, 16, true })
}

func bankOnEtcd() []cell {
	return []cell{
		bankCell("audits of all", 500, func(c *bank.Config) { c.Audits = 10 }),
		bankCell("audits of a sample", 500, func(c *bank.Config) { c.Audits, c.AuditSample = 10, 120 }),
	}
}

// bankCells has every way of updating, in each mode and at each isolation. Those beyond a
// choice in which each two of these meet are for who has the time.
func bankCells(count uint64, isolations []string, modes ...string) (list []cell) {
	updates := []string{bank.Atomic, bank.Locked, bank.RMW}
	met := map[[2]string]bool{}
	for shift := range modes {
		for i, isolation := range isolations {
			for u, update := range updates {
				// In this order each two of three times three settings have met after the first shift.
				mode := modes[(i+u+shift)%len(modes)]
				c := cell{
					name:  strings.Join([]string{"bank", isolation, update, mode}, " "),
					short: isolation == "serializable" && update == bank.Atomic && mode == workload.Pipelined,
					more:  true,
					run: func(t *testing.T, open opener) {
						d, _ := open(t)
						c := small()
						c.Isolation, c.Update, c.Mode = isolation, update, mode
						if update != bank.RMW { // those have to meet
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

// TestBankCellsMeet holds that in the cells which the run of all tests has each isolation meets each
// way of updating and each mode, and each of these the other, and that the others are all there are.
func TestBankCellsMeet(t *testing.T) {
	three, updates := []string{workload.Pipelined, workload.Interactive, workload.Procedure}, []string{bank.Atomic, bank.Locked, bank.RMW}
	for _, c := range []struct {
		isolations, modes []string
		most              int // cells of the run of all tests
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
			t.Errorf("%q and %q: %d cells, %d of them in the run of all tests, in which %d pairs meet of %d", c.isolations, c.modes, len(more), some, len(met), i*u+i*m+u*m)
		}
	}
}

// TestMatrixMeetsEachSetting holds that the cells which the run of all tests has meet each setting
// of each workload that a row has, and that a row which is met once leaves some of it.
func TestMatrixMeetsEachSetting(t *testing.T) {
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
				t.Errorf("%s: no cell of the run of all tests has %s", e.name, setting)
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
	if whole, once := left(behindPooler()), left(eachMet(behindPooler())); whole == 0 || once <= whole {
		t.Errorf("behind the pooler %d cells are left to who has the time, and %d where each setting is met once", whole, once)
	}
}

// settingsOf are the workload of a cell and, each after it, its isolation, its flags with their
// values, and whatever else its name says.
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

// runBankAt runs the bank at an isolation that may lose what is read, computed and
// written: it then must be seen to.
func runBankAt(t *testing.T, d db.Database, c bank.Config, count uint64) {
	t.Helper()
	switch {
	case c.Update == bank.RMW && losesUpdates(t, d, c.Isolation):
		runLosingUpdates(t, d, c)
	case c.Update == bank.Atomic && c.Isolation == "read uncommitted":
		// A joint transfer may rest on data that are not committed yet and commit before
		// them, and an audit between the two sees the one without the other.
		runBank(t, d, c, count).wantValid(t, check.Audits)
	default:
		runBank(t, d, c, count).wantValid(t)
	}
}

// losesUpdates reports whether an engine loses updates at an isolation, as InnoDB does where
// it claims no snapshot isolation, at repeatable read too.
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

func tpcbCell(modes ...string) cell {
	return cell{name: "tpcb", run: func(t *testing.T, open opener) {
		d, _ := open(t)
		onTPCB(t, d, modes)
	}}
}

func tpcbAt(isolation string) cell {
	return cell{name: "tpcb " + isolation, short: isolation == "serializable", run: func(t *testing.T, open opener) {
		d, _ := open(t)
		c := smallTPCB()
		c.Isolation = isolation
		runTPCB(t, d, c, 500, true).wantTPCB(t, tpcbChecks...)
	}}
}

func tpcbWithoutNote() cell {
	return cell{name: "tpcb without a note", run: func(t *testing.T, open opener) {
		d, _ := open(t)
		withoutNote(t, d.(db.SQL))
	}}
}

// tpcbOnKeys runs TPC-B on a store of keys, with and without its history. Where
// answers are lost, only the history reports what was applied.
func tpcbOnKeys(losesAnswers bool) cell {
	return tpcbKept("tpcb", counted[uint64](800), losesAnswers, false)
}

// tpcbOnEtcd is the same of fewer transactions, each of which takes three servers.
func tpcbOnEtcd() cell { return tpcbKept("tpcb", 250, false, false) }

// tpcbByAdds is the same on rows without versions.
func tpcbByAdds(losesAnswers bool) cell {
	return tpcbKept("tpcb by adds", counted[uint64](800), losesAnswers, true)
}

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

// tpcbOnTables runs TPC-B on a database with db.Limits.Simple: by statements, with its history and
// without, by its procedure if a folder has one, and then without a load.
func tpcbOnTables() (list []cell) {
	for _, mode := range []string{workload.Interactive, workload.Procedure} {
		for _, keeps := range []bool{true, false} {
			if keeps && mode == workload.Procedure {
				continue // it leaves no id there
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

// kvCell runs kv by the whole program; further arguments are appended.
func kvCell(isolation string, count int, more ...string) cell {
	return cell{name: strings.Join(append([]string{"kv", isolation}, more...), " "), run: func(t *testing.T, open opener) {
		_, address := open(t)
		args := slices.Concat([]string{"--db", address, "--count", fmt.Sprint(count)}, kvMix, more)
		if isolation != "" {
			args = append(args, "--isolation", isolation)
		}
		code, v, why := kvOn(t, args...)
		v.wantValid(t, code, why)
	}}
}

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

func kvOnPostgres() (list []cell) {
	for _, isolation := range []string{"read committed", "repeatable read", "serializable"} {
		for _, how := range [][]string{{"--mode", "pipelined"}, {"--mode", "interactive"}, {"--in-flight", "8"}} {
			list = append(list, cell{
				name:  fmt.Sprintf("kv %s %s", isolation, strings.Join(how, " ")),
				short: isolation == "serializable" && how[0] == "--in-flight",
				run: func(t *testing.T, open opener) {
					_, address := open(t)
					args := slices.Concat([]string{"--db", address, "--count", "700", "--isolation", isolation}, kvMix, []string{"--records", "20"}, how)
					code, v, why := kvOn(t, args...)
					v.wantValid(t, code, why)
					lost := func() bool { return v.status(registers.NoLostUpdate) == "invalid" }
					// It reads without a lock, so that what READ COMMITTED allows comes up, which no
					// single run is sure to bring.
					allowed := isolation == "read committed"
					for again := 1; allowed && !lost() && again < 5; again++ {
						code, v, why = kvOn(t, args...)
						v.wantValid(t, code, why)
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

func kvOnEtcd() []cell {
	return []cell{
		kvCell("", 1000, "--in-flight", "1"), kvCell("", 1000, "--in-flight", "4"),
		// Values of which a request does not hold a whole batch, and then not even one.
		kvCell("", 200, "--value-size", "100000", "--records", "40", "--scan-length", "3"),
		{name: "kv too large", run: func(t *testing.T, open opener) {
			_, address := open(t)
			if code, _, why := kvOn(t, "--db", address, "--value-size", "2000000"); code != 2 || !strings.Contains(why, "takes values of at most") {
				t.Errorf("exit code %d: %s", code, why)
			}
		}},
	}
}

// kvOnSharedRedisConnections has eight transactions under way on one connection at a time, without
// replicas and with one that must acknowledge each commit.
func kvOnSharedRedisConnections() (list []cell) {
	for replicas, query := range []string{"?wait=0", "?wait=1"} {
		list = append(list, cell{name: "kv in flight" + query, run: func(t *testing.T, _ opener) {
			s := startRedis(t, 1+replicas, "no")
			code, v, why := kvOn(t, slices.Concat([]string{"--db", s.URL() + query, "--count", "3000", "--in-flight", "8"}, kvMix)...)
			v.wantValid(t, code, why)
		}})
	}
	return list
}

// eventsCells has each way of driving the log.
func eventsCells(count uint64) (list []cell) {
	for name, change := range eventsWays() {
		list = append(list, eventsCell(name, count, change))
	}
	slices.SortFunc(list, func(a, b cell) int { return strings.Compare(a.name, b.name) })
	return list
}

// eventsAt drives shared streams at each isolation: that two clients do not get one
// place is the key's doing, and no level's.
func eventsAt(isolations ...string) (list []cell) {
	for _, isolation := range isolations {
		list = append(list, eventsCell(isolation, 200, func(c *events.Config) { c.Streams, c.Isolation = 2, isolation }))
	}
	return list
}

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

package dbtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/check/invariants"
	"stroppy/internal/check/rows"
	"stroppy/internal/db"
	"stroppy/internal/history"
	language "stroppy/internal/script"
	"stroppy/internal/workload/script"
)

// plantedSchema is a schema with scripts that are correct on it. Its bugs are planted in the database or in a script.
type plantedSchema struct {
	name       string
	tables     string // SERIAL is replaced for SQLite
	write      string // writes a parent and inserts a child
	remove     string // deletes a parent, which a foreign key refuses while there are children
	invariants string
	duplicate  string // a trigger that inserts some rows twice
	// The invariants that find a lost commit and a duplicate. An orphan is found by the invariant orphans.
	lost, duplicated string

	tracked []string // the tables of the following scripts
	rewrite string   // reads a row, computes and writes; %s locks the row
	skewed  string   // writes one of two rows, after it has read both
}

// pgbenchSchema has the four tables of pgbench with its foreign keys.
var pgbenchSchema = plantedSchema{
	name: "pgbench",
	tables: `
CREATE TABLE pgbench_branches (bid INTEGER PRIMARY KEY, bbalance INTEGER NOT NULL, filler CHAR(88));
CREATE TABLE pgbench_tellers (tid INTEGER PRIMARY KEY, bid INTEGER NOT NULL REFERENCES pgbench_branches(bid),
  tbalance INTEGER NOT NULL, filler CHAR(84));
CREATE TABLE pgbench_accounts (aid INTEGER PRIMARY KEY, bid INTEGER NOT NULL REFERENCES pgbench_branches(bid),
  abalance INTEGER NOT NULL, filler CHAR(84));
CREATE TABLE pgbench_history (tid INTEGER NOT NULL REFERENCES pgbench_tellers(tid), bid INTEGER NOT NULL,
  aid INTEGER NOT NULL REFERENCES pgbench_accounts(aid), delta INTEGER NOT NULL, mtime TIMESTAMP, filler CHAR(22));
INSERT INTO pgbench_branches (bid, bbalance) VALUES (1, 0);
INSERT INTO pgbench_tellers (tid, bid, tbalance) VALUES (1, 1, 0), (2, 1, 0), (3, 1, 0);
INSERT INTO pgbench_accounts (aid, bid, abalance)
  WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40) SELECT i, 1, 0 FROM n;
`,
	write: `
\set aid random(1, 40)
\set tid random(1, 3)
\set delta random(-5000, 5000)
\set posted 1
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = 1;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, 1, :aid, :delta, CURRENT_TIMESTAMP);
COMMIT;
`,
	remove: `
\set aid random(1, 40)
DELETE FROM pgbench_accounts WHERE aid = :aid;
`,
	invariants: `
books: equal: SELECT sum(bbalance) FROM pgbench_branches; SELECT coalesce(sum(delta), 0) FROM pgbench_history
posted: sum(:posted): SELECT count(*) FROM pgbench_history
orphans: empty: SELECT aid FROM pgbench_history WHERE aid NOT IN (SELECT aid FROM pgbench_accounts)
`,
	duplicate: `CREATE TRIGGER twice AFTER INSERT ON pgbench_history WHEN NEW.rowid % 20 = 0 BEGIN
INSERT INTO pgbench_history (tid, bid, aid, delta) VALUES (NEW.tid, NEW.bid, NEW.aid, NEW.delta); END`,
	lost: "posted", duplicated: "books",

	tracked: []string{"pgbench_accounts(aid)"},
	rewrite: `
\set aid random(1, 3)
\set delta random(-5000, 5000)
BEGIN;
SELECT abalance AS had FROM pgbench_accounts WHERE aid = :aid%s \gset
\set has :had + :delta
UPDATE pgbench_accounts SET abalance = :has WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, :aid, :delta, CURRENT_TIMESTAMP);
COMMIT;
`,
	skewed: `
\set aid random(1, 2)
\set other 3 - :aid
BEGIN;
SELECT abalance AS mine FROM pgbench_accounts WHERE aid = :aid \gset
SELECT abalance AS yours FROM pgbench_accounts WHERE aid = :other \gset
\if :mine + :yours > -100000
  UPDATE pgbench_accounts SET abalance = abalance - 1 WHERE aid = :aid;
  INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, :aid, -1, CURRENT_TIMESTAMP);
\endif
COMMIT;
`,
}

// sysbenchSchema has two tables of sysbench's OLTP tests. A row of the second table refers to a row of the first.
var sysbenchSchema = plantedSchema{
	name: "sysbench",
	tables: `
CREATE TABLE sbtest1 (id SERIAL PRIMARY KEY, k INTEGER DEFAULT 0 NOT NULL, c CHAR(120) DEFAULT '' NOT NULL,
  pad CHAR(60) DEFAULT '' NOT NULL);
CREATE INDEX k_1 ON sbtest1 (k);
CREATE TABLE sbtest2 (id SERIAL PRIMARY KEY, k INTEGER DEFAULT 0 NOT NULL REFERENCES sbtest1(id),
  c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL);
CREATE INDEX k_2 ON sbtest2 (k);
INSERT INTO sbtest1 (id, k)
  WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40) SELECT i, 50 FROM n;
INSERT INTO sbtest2 (id, k) SELECT id, id FROM sbtest1;
`,
	write: `
\set id random(1, 40)
\set other random(1, 40)
\set text random(1, 1000000000)
\set step random(1, 9)
BEGIN;
SELECT c FROM sbtest1 WHERE id = :id;
SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN :id AND :id + 9 ORDER BY c;
UPDATE sbtest1 SET k = k + :step WHERE id = :id;
UPDATE sbtest1 SET c = :text WHERE id = :other;
DELETE FROM sbtest2 WHERE id = :other;
INSERT INTO sbtest2 (id, k, c, pad) VALUES (:other, :other, :text, 'pad');
COMMIT;
`,
	remove: `
\set id random(1, 40)
DELETE FROM sbtest1 WHERE id = :id;
`,
	invariants: `
steps: sum(:step): SELECT sum(k) FROM sbtest1
rows: unchanged: SELECT count(*) FROM sbtest2
orphans: empty: SELECT id FROM sbtest2 WHERE k NOT IN (SELECT id FROM sbtest1)
`,
	duplicate: `CREATE TRIGGER twice AFTER INSERT ON sbtest2 WHEN NEW.id % 20 = 0 BEGIN
INSERT INTO sbtest2 (k, c, pad) VALUES (NEW.k, NEW.c, NEW.pad); END`,
	lost: "steps", duplicated: "rows",

	tracked: []string{"sbtest1(id)"},
	rewrite: `
\set id random(1, 3)
\set step random(-9, 9)
BEGIN;
SELECT k AS had FROM sbtest1 WHERE id = :id%s \gset
\set has :had + :step
UPDATE sbtest1 SET k = :has WHERE id = :id;
COMMIT;
`,
	skewed: `
\set id random(1, 2)
\set other 3 - :id
BEGIN;
SELECT k AS mine FROM sbtest1 WHERE id = :id \gset
SELECT k AS yours FROM sbtest1 WHERE id = :other \gset
\if :mine + :yours > -100000
  UPDATE sbtest1 SET k = k - 1 WHERE id = :id;
\endif
COMMIT;
`,
}

// ordersSchema is an application with customers, stock and orders.
var ordersSchema = plantedSchema{
	name: "orders",
	tables: `
CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR(40) NOT NULL);
CREATE TABLE stock (item INTEGER PRIMARY KEY, pieces INTEGER NOT NULL);
CREATE TABLE orders (id SERIAL PRIMARY KEY, customer INTEGER NOT NULL REFERENCES customers(id),
  item INTEGER NOT NULL REFERENCES stock(item), pieces INTEGER NOT NULL);
INSERT INTO customers (id, name)
  WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40) SELECT i, 'someone' FROM n;
INSERT INTO stock (item, pieces) VALUES (1, 100000), (2, 100000), (3, 100000);
`,
	write: `
\set customer random(1, 40)
\set item random(1, 3)
\set pieces random(1, 5)
BEGIN;
UPDATE stock SET pieces = pieces - :pieces WHERE item = :item;
INSERT INTO orders (customer, item, pieces) VALUES (:customer, :item, :pieces);
COMMIT;
`,
	remove: `
\set customer random(1, 40)
DELETE FROM customers WHERE id = :customer;
`,
	invariants: `
books: equal: SELECT 300000 - sum(pieces) FROM stock; SELECT coalesce(sum(pieces), 0) FROM orders
sold: sum(:pieces): SELECT 300000 - sum(pieces) FROM stock
orphans: empty: SELECT id FROM orders WHERE customer NOT IN (SELECT id FROM customers)
`,
	duplicate: `CREATE TRIGGER twice AFTER INSERT ON orders WHEN NEW.id % 20 = 0 BEGIN
INSERT INTO orders (customer, item, pieces) VALUES (NEW.customer, NEW.item, NEW.pieces); END`,
	lost: "sold", duplicated: "books",

	tracked: []string{"stock(item)", "orders(id)"},
	rewrite: `
\set item random(1, 3)
\set pieces random(1, 5)
BEGIN;
SELECT pieces AS had FROM stock WHERE item = :item%s \gset
\set has :had - :pieces
UPDATE stock SET pieces = :has WHERE item = :item;
INSERT INTO orders (customer, item, pieces) VALUES (1, :item, :pieces);
COMMIT;
`,
	skewed: `
\set item random(1, 2)
\set other 3 - :item
BEGIN;
SELECT pieces AS mine FROM stock WHERE item = :item \gset
SELECT pieces AS yours FROM stock WHERE item = :other \gset
\if :mine + :yours > 0
  UPDATE stock SET pieces = pieces - 1 WHERE item = :item;
  INSERT INTO orders (customer, item, pieces) VALUES (1, :item, 1);
\endif
COMMIT;
`,
}

var plantedSchemas = []plantedSchema{pgbenchSchema, sysbenchSchema, ordersSchema}

// foreignKeys matches the foreign keys of the tables.
var foreignKeys = regexp.MustCompile(` REFERENCES \w+\(\w+\)`)

// embedded drives the scripts on SQLite, with faults in its sessions and a statement that runs after the load phase.
func (s *plantedSchema) embedded(t *testing.T, tables, faults, plant string) (*trial, *Injector) {
	t.Helper()
	list, err := invariants.Parse(s.invariants)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tables.sql")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(tables, "SERIAL", "INTEGER")), 0o600); err != nil {
		t.Fatal(err)
	}
	in, database, _ := wrapped(t, openSQLite(t), "seed 7"+faults)
	w, err := script.New(database, script.Config{
		Clients: 8, Seed: 7, Init: path, Invariants: list,
		Files: []language.File{
			{Name: "write.sql", Text: s.write, Weight: 9}, {Name: "remove.sql", Text: s.remove, Weight: 1},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := newTrial(t, database, w, "")
	r.load(t)
	if plant != "" {
		if err := database.(db.SQL).Exec(t.Context(), plant); err != nil {
			t.Fatal(err)
		}
	}
	r.attach(t)
	in.Enable(true)
	r.drive(t, 600)
	in.Enable(false)
	r.download(t)
	r.check(t)
	return r, in
}

// wantPlanted fails the test unless exactly these checks are invalid, and the invariants name the one that must find
// the bug.
func (r *trial) wantPlanted(t *testing.T, invariant string, checks ...string) {
	t.Helper()
	var invalid []string
	for _, result := range r.results {
		if result.Status == check.Invalid {
			invalid = append(invalid, result.Name)
		}
	}
	slices.Sort(invalid)
	if !slices.Equal(invalid, checks) || checktest.Verdict(r.results) != check.Invalid {
		t.Errorf("the invalid checks are %v, want %v: %+v", invalid, checks, r.results)
	}
	if detail := r.status(check.Invariants).Detail; !strings.Contains(detail, "nvariant "+invariant+" (") {
		t.Errorf("the invariant %s is not among the violations: %s", invariant, detail)
	}
}

// real runs a script with tracked tables on PostgreSQL.
func (s *plantedSchema) real(t *testing.T, text string, args ...string) (code int, v verdict, why string) {
	t.Helper()
	dir := t.TempDir()
	tables, path := filepath.Join(dir, "tables.sql"), filepath.Join(dir, "write.sql")
	for name, text := range map[string]string{tables: s.tables, path: text} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range s.tracked {
		args = append(args, "--track", table)
	}
	return program(t, script.Name, append(args, "--db", newPostgresDatabase(t), "--init", tables, "-f", path,
		"--clients", "8", "--count", "800", "--seed", "7", "--retries", "1000")...)
}

// plantedBug is a bug that TestPlantedBugsOfSchemasAreFound plants in each schema.
type plantedBug struct {
	name    string
	healthy func(t *testing.T, s *plantedSchema)
	planted func(t *testing.T, s *plantedSchema)
}

// plantedBugs plants each bug, and runs the same scripts without it.
var plantedBugs = []plantedBug{
	{
		"lost commit",
		healthyEmbedded,
		func(t *testing.T, s *plantedSchema) {
			r, in := s.embedded(t, s.tables, "; lost-ack commit 0.05", "")
			if in.Fired(LostAck) == 0 {
				t.Fatal("the planted bug never took effect")
			}
			r.wantPlanted(t, s.lost, check.Durable, check.Invariants)
		},
	},
	{
		"duplicate",
		healthyEmbedded,
		func(t *testing.T, s *plantedSchema) {
			r, _ := s.embedded(t, s.tables, "", s.duplicate)
			r.wantPlanted(t, s.duplicated, check.Invariants)
		},
	},
	{
		"orphan",
		healthyEmbedded,
		func(t *testing.T, s *plantedSchema) {
			r, _ := s.embedded(t, foreignKeys.ReplaceAllString(s.tables, ""), "", "")
			r.wantPlanted(t, "orphans", check.Invariants)
		},
	},
	{
		"lost update",
		func(t *testing.T, s *plantedSchema) {
			wantHealthy(t, s, fmt.Sprintf(s.rewrite, " FOR UPDATE"), "--isolation", "read committed")
		},
		func(t *testing.T, s *plantedSchema) {
			wantAnomaly(t, s, fmt.Sprintf(s.rewrite, ""), anomaly{rows.NoLostUpdate, "lost update (P4)", "application"},
				"--isolation", "read committed")
		},
	},
	{
		"write skew",
		func(t *testing.T, s *plantedSchema) { wantHealthy(t, s, s.skewed, "--isolation", "serializable") },
		func(t *testing.T, s *plantedSchema) {
			wantAnomaly(t, s, s.skewed, anomaly{check.Serializable, "write skew (G2-item)", "configuration"},
				"--isolation", "repeatable read", "--expect", "serializable")
		},
	},
}

// healthyEmbedded checks that the scripts are valid on SQLite, and that the foreign keys refuse transactions.
func healthyEmbedded(t *testing.T, s *plantedSchema) {
	t.Helper()
	r, _ := s.embedded(t, s.tables, "", "")
	r.wantValid(t)
	if outcomes := r.outcomes(t); outcomes[history.Rejected] == 0 {
		t.Errorf("no foreign key refused a transaction: %v", outcomes)
	}
}

// wantHealthy checks that a script is valid on PostgreSQL.
func wantHealthy(t *testing.T, s *plantedSchema, text string, args ...string) {
	t.Helper()
	code, v, why := s.real(t, text, args...)
	if code != 0 || v.Verdict != "valid" || v.status(check.Serializable) != "valid" || v.status(check.Durable) != "valid" {
		t.Errorf("exit code %d, verdict %s: %+v\n%s", code, v.Verdict, v.Checks, why)
	}
}

// anomaly names an anomaly, the check that finds it and its culprit.
type anomaly struct{ check, name, culprit string }

// wantAnomaly checks that the run of a script finds an anomaly and names its culprit.
func wantAnomaly(t *testing.T, s *plantedSchema, text string, want anomaly, args ...string) {
	t.Helper()
	code, v, why := s.real(t, text, args...)
	if code != 1 || v.Verdict != "invalid" || v.status(want.check) != "invalid" || v.status(check.Durable) != "valid" {
		t.Fatalf("exit code %d, verdict %s: %+v\n%s", code, v.Verdict, v.Checks, why)
	}
	if v.Cause == nil || v.Cause.Anomaly != want.name || v.Cause.Culprit != want.culprit {
		t.Errorf("the cause is %+v, want %+v", v.Cause, want)
	}
	c := checkNamed(t, &v.Result, check.Serializable)
	if len(c.Findings) == 0 || c.Findings[0].Anomaly != want.name {
		t.Errorf("the findings are %+v", c.Findings)
	}
}

// TestPlantedBugsOfSchemasAreFound plants five bugs in each of three schemas. Each bug is found by its own check, and
// the same scripts are valid without it.
func TestPlantedBugsOfSchemasAreFound(t *testing.T) {
	t.Parallel()
	for i := range plantedSchemas {
		for _, bug := range plantedBugs {
			s := &plantedSchemas[i]
			t.Run(s.name+"/"+bug.name, func(t *testing.T) {
				t.Parallel()
				t.Run("healthy", func(t *testing.T) {
					t.Parallel()
					bug.healthy(t, s)
				})
				t.Run("planted", func(t *testing.T) {
					t.Parallel()
					bug.planted(t, s)
				})
			})
		}
	}
}

// orderInParts is a script of two transactions that write.
const orderInParts = `
\set customer random(1, 40)
\set item random(1, 3)
UPDATE customers SET name = 'known' WHERE id = :customer;
BEGIN;
UPDATE stock SET pieces = pieces - 1 WHERE item = :item;
INSERT INTO orders (customer, item, pieces) VALUES (:customer, :item, 1);
COMMIT;
`

// TestReceiptsResolveOutcomesOfKilledServer kills the server twice while each client has a transaction on its way. The
// receipts decide every outcome whose answer was lost. A script of two transactions has an outcome for each.
func TestReceiptsResolveOutcomesOfKilledServer(t *testing.T) {
	t.Parallel()
	needsTime(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"tables.sql": ordersSchema.tables, "write.sql": ordersSchema.write, "parts.sql": orderInParts,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	books, _, _ := strings.Cut(strings.TrimSpace(ordersSchema.invariants), "\n")
	code, v, why := program(t, script.Name, "--cluster", "postgres:1?memory=on", "--clients", "8", "--mode", "pipelined",
		"--nemesis", "kill primary at 1s for 500ms", "--nemesis", "kill primary at 3s for 500ms", "--duration", "5s",
		"--init", filepath.Join(dir, "tables.sql"), "--invariant", books,
		"-f", filepath.Join(dir, "write.sql"), "-f", filepath.Join(dir, "parts.sql"))
	if code != 0 || v.Verdict != "valid" || v.status(check.Durable) != "valid" || v.status(check.NoGhost) != "valid" ||
		v.status(check.ExactlyOnce) != "valid" || v.status(check.Invariants) != "valid" {
		t.Errorf("exit code %d, verdict %s: %+v\n%s", code, v.Verdict, v.Checks, why)
	}
	looked, unknown := 0, 0
	h, err := history.Open(filepath.Join(v.dir, "history"))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for record, err := range h.Transactions() {
		if err != nil {
			t.Fatal(err)
		}
		if record.LookedUp {
			looked++
		}
		if record.Outcome == history.Unknown {
			unknown++
		}
	}
	if looked == 0 || unknown > 0 || v.Drive.Unknown > 0 || v.Resolved != nil {
		t.Errorf("%d outcomes were looked up and %d stayed unknown; the result has %d and %+v",
			looked, unknown, v.Drive.Unknown, v.Resolved)
	}
}

// TestInvariantsFindBrokenRowsAndMoments checks two queries whose first rows are equal. In the second case a later
// transaction of each script removes the violation. Only an audit in the load phase can see it then.
func TestInvariantsFindBrokenRowsAndMoments(t *testing.T) {
	t.Parallel()
	const take = "UPDATE shop_stock SET stock = stock - 1 WHERE item = 3;\n"
	const wait = "\\sleep 5 ms\n" // so that an audit meets the violation
	const back = "UPDATE shop_stock SET stock = stock + 1 WHERE item = 3;\n"
	for name, c := range map[string]struct {
		script   string
		interval time.Duration
		want     check.Status
	}{
		"last row":            {take, 0, check.Invalid},
		"moment":              {take + wait + back, time.Millisecond, check.Invalid},
		"moment, not audited": {take + wait + back, 0, check.Valid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, err := invariants.Parse("books: equal: SELECT item, stock FROM shop_stock ORDER BY item;" +
				"SELECT item, 100000 FROM shop_stock ORDER BY item")
			if err != nil {
				t.Fatal(err)
			}
			database := openSQLite(t)
			w := newShop(t, database, c.script, func(config *script.Config) {
				config.Invariants, config.AuditInterval = list, c.interval
			})
			r := conduct(t, database, w, "", 800)
			if result := r.status(check.Invariants); result.Status != c.want {
				t.Errorf("the invariants are %v: %s", result.Status, result.Detail)
			}
		})
	}
}

// TestLostVersionIsFoundBesideReceipts takes the last versions of a tracked row away after the load phase. The receipts
// of the transactions are complete.
func TestLostVersionIsFoundBesideReceipts(t *testing.T) {
	t.Parallel()
	database := openSQLite(t)
	r := newTrial(t, database, newPurses(t, database, fmt.Sprintf(purseRewrite, ""), ""), "")
	r.load(t)
	r.attach(t)
	r.drive(t, 200)
	if err := database.Exec(t.Context(), "UPDATE purse SET stroppy_version = 1 WHERE id = 2"); err != nil {
		t.Fatal(err)
	}
	r.download(t)
	r.check(t)
	if result := r.status(check.Durable); result.Status != check.Invalid {
		t.Errorf("durable is %v: %s", result.Status, result.Detail)
	}
}

// TestRolledBackPartLeavesNothing checks a script whose first transaction is rolled back. The second one has its own
// receipt and versions.
func TestRolledBackPartLeavesNothing(t *testing.T) {
	t.Parallel()
	const text = `
\set one random(1, 3)
BEGIN;
UPDATE purse SET n = n + 1 WHERE id = :one;
ROLLBACK;
BEGIN;
UPDATE purse SET n = n - 1 WHERE id = :one;
COMMIT;
`
	database := openSQLite(t)
	conduct(t, database, newPurses(t, database, text, ""), "", 200).wantAllValid(t)
}

// TestRolledBackScriptAddsNothingToSums checks that a script which rolls back is rejected, and adds nothing to the sum
// of an invariant.
func TestRolledBackScriptAddsNothingToSums(t *testing.T) {
	t.Parallel()
	list, err := invariants.Parse("sold: sum(:sold): SELECT 300000 - sum(stock) FROM shop_stock")
	if err != nil {
		t.Fatal(err)
	}
	const text = `
\set sold 1
BEGIN;
UPDATE shop_stock SET stock = stock - 1 WHERE item = 1;
ROLLBACK;
`
	database := openSQLite(t)
	w := newShop(t, database, text, func(config *script.Config) { config.Invariants = list })
	r := conduct(t, database, w, "", 40)
	if outcomes := r.outcomes(t); outcomes[history.Rejected] != 40 {
		t.Errorf("the outcomes are %v, want 40 rejections", outcomes)
	}
	if result := r.status(check.Invariants); result.Status != check.Valid {
		t.Errorf("the invariants are %v: %s", result.Status, result.Detail)
	}
}

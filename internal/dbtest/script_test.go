package dbtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/invariants"
	"stroppy/internal/db"
	"stroppy/internal/history"
	language "stroppy/internal/script"
	"stroppy/internal/workload"
	"stroppy/internal/workload/script"
)

// The scripts of a cell: a shop with stock and orders, whose tables the load phase makes anew.
const (
	shopTables = `
DROP TABLE IF EXISTS shop_stock;
DROP TABLE IF EXISTS shop_order;
CREATE TABLE shop_stock (item INTEGER PRIMARY KEY, stock INTEGER NOT NULL, price DECIMAL(10, 2) NOT NULL, note VARCHAR(40));
CREATE TABLE shop_order (item INTEGER NOT NULL, client INTEGER NOT NULL, part DOUBLE PRECISION, note VARCHAR(40));
INSERT INTO shop_stock VALUES (1, 100000, 1.50, 'why?'), (2, 100000, 2.25, 'it''s'), (3, 100000, 10, NULL);
`
	shopOrder = `
\set item random(1, 3)
\set part random_gaussian(1, 1000, 3) / 7.0
\set big :item > 2
\set sold 1
BEGIN;
SELECT stock AS remaining, price, note FROM shop_stock WHERE item = :item \gset before_
UPDATE shop_stock SET stock = stock - 1 WHERE item = :item;
\if :big
  INSERT INTO shop_order VALUES (:item, :client_id, :part, :before_note);
\else
  INSERT INTO shop_order (item, client, part, note) VALUES (:item, :client_id, NULL, 'item?');
\endif
COMMIT;
`
	shopReport = `
SELECT count(*), sum(stock) FROM shop_stock;
SELECT item, note FROM shop_stock WHERE note = 'why?' \aset
`
)

// scriptCell runs a user's scripts as a command, with receipts.
func scriptCell(mode string, count int) cell {
	return cell{name: "script " + mode, run: func(t *testing.T, open opener) {
		_, address := open(t)
		dir := t.TempDir()
		for name, text := range map[string]string{"tables.sql": shopTables, "order.sql": shopOrder, "report.sql": shopReport} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		expected := []string{
			"--audit-interval", "30ms",
			"--invariant", "items: unchanged: SELECT sum(price) FROM shop_stock",
			"--invariant", "orphans: empty: SELECT o.item FROM shop_order o LEFT JOIN shop_stock s ON s.item = o.item WHERE s.item IS NULL",
			"--invariant", "books: equal: SELECT item, 100000 - stock FROM shop_stock WHERE stock < 100000;" +
				"SELECT item, count(*) FROM shop_order GROUP BY item",
			"--invariant", "kinds: 3: SELECT count(*) FROM shop_stock",
			"--invariant", "sold: sum(:sold): SELECT count(*) FROM shop_order",
		}
		code, v, why := program(t, script.Name, append(expected, "--db", address, "--count", strconv.Itoa(count), "--clients", "4", "--mode", mode,
			"--init", filepath.Join(dir, "tables.sql"), "-f", filepath.Join(dir, "order.sql@4"), "-f", filepath.Join(dir, "report.sql"))...)
		if code != 0 || v.Verdict != "valid" || v.status("durable") != "valid" || v.status("invariants") != "valid" {
			t.Errorf("exit code %d, verdict %s: %+v\n%s", code, v.Verdict, v.Checks, why)
		}
	}}
}

func scriptCells(count int) []cell {
	return []cell{scriptCell(workload.Interactive, count), scriptCell(workload.Pipelined, count), brokenScriptCell(count)}
}

// brokenSale breaks an invariant of each form in some of its transactions.
const brokenSale = `
\set item random(1, 3)
\set part random(1, 1000000)
\set bug random(1, 20)
\set sold 1
BEGIN;
UPDATE shop_stock SET stock = stock - 1 WHERE item = :item;
\if :bug = 1
  UPDATE shop_stock SET price = price + 1 WHERE item = 3;
\elif :bug = 2
  INSERT INTO shop_order (item, client, part) VALUES (99, :client_id, :part);
\elif :bug = 3
  INSERT INTO shop_order (item, client, part) VALUES (:item, :client_id, :part);
  INSERT INTO shop_order (item, client, part) VALUES (:item, :client_id, :part);
\elif :bug <> 4
  INSERT INTO shop_order (item, client, part) VALUES (:item, :client_id, :part);
\endif
COMMIT;
`

// brokenScriptCell checks that each form of invariant finds the bugs of a script: a changed price, an orphan, a duplicate
// and a lost order.
func brokenScriptCell(count int) cell {
	return cell{name: "script with bugs", run: func(t *testing.T, open opener) {
		_, address := open(t)
		dir := t.TempDir()
		for name, text := range map[string]string{"tables.sql": shopTables, "sale.sql": brokenSale} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		code, v, why := program(t, script.Name, "--db", address, "--count", strconv.Itoa(max(count, 200)), "--clients", "4",
			"--seed", "7", "--init", filepath.Join(dir, "tables.sql"), "-f", filepath.Join(dir, "sale.sql"), "--audit-interval", "30ms",
			"--invariant", "prices: unchanged: SELECT sum(price) FROM shop_stock",
			"--invariant", "cheap: 3: SELECT count(*) FROM shop_stock WHERE price < 11",
			"--invariant", "orphans: empty: SELECT o.item FROM shop_order o LEFT JOIN shop_stock s ON s.item = o.item WHERE s.item IS NULL",
			"--invariant", "parts: empty: SELECT part, count(*) FROM shop_order GROUP BY part HAVING count(*) > 1",
			"--invariant", "books: equal: SELECT 300000 - sum(stock) FROM shop_stock; SELECT count(DISTINCT part) FROM shop_order",
			"--invariant", "sold: sum(:sold): SELECT count(DISTINCT part) FROM shop_order",
			"--invariant", "kinds: unchanged: SELECT count(*) FROM shop_stock")
		if code != 1 || v.Verdict != "invalid" || v.status("invariants") != "invalid" || v.status("durable") != "valid" {
			t.Fatalf("exit code %d, verdict %s: %+v\n%s", code, v.Verdict, v.Checks, why)
		}
		for name, want := range map[string]bool{
			"prices": true, "cheap": true, "orphans": true, "parts": true, "books": true, "sold": true, "kinds": false,
		} {
			if got := strings.Contains(fmt.Sprint(v.Checks), "nvariant "+name+" ("); got != want {
				t.Errorf("the invariant %s is broken: %t, want %t: %+v", name, got, want, v.Checks)
			}
		}
		if v.Cause == nil || v.Cause.Kind != "broken-invariants" || v.Cause.Culprit != "undecided" {
			t.Errorf("the cause is %+v", v.Cause)
		}
	}}
}

// shopSale reads and writes in one transaction, and reads in another one. Each sale leaves what was drawn for it.
const shopSale = `
\set item random(1, 3)
\set part random(1, 1000000)
BEGIN;
SELECT stock AS remaining FROM shop_stock WHERE item = :item \gset
\if :remaining > 0
  UPDATE shop_stock SET stock = stock - 1 WHERE item = :item;
  INSERT INTO shop_order VALUES (:item, :client_id, :part, NULL);
\endif
COMMIT;
SELECT count(*) FROM shop_stock;
`

// newShop binds scripts to a database.
func newShop(t *testing.T, database db.Database, text string, change ...func(*script.Config)) *script.Script {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tables.sql")
	if err := os.WriteFile(path, []byte(shopTables), 0o600); err != nil {
		t.Fatal(err)
	}
	config := script.Config{
		Clients: 8, Seed: 7, Init: path, Files: []language.File{{Name: "sale.sql", Text: text, Weight: 1}},
	}
	for _, f := range change {
		f(&config)
	}
	w, err := script.New(database, config)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestRetriedScriptsKeepTheirDraws checks that a transaction which is repeated has the values that were drawn first.
func TestRetriedScriptsKeepTheirDraws(t *testing.T) {
	t.Parallel()
	drawn := func(faults string) (list []string) {
		in, database, _ := wrapped(t, openSQLite(t), faults)
		r := driveFaulty(t, in, database, newShop(t, database, shopSale), 400)
		r.wantValid(t)
		if refused := in.Fired(Refuse); strings.Contains(faults, "refuse") != (refused > 10) {
			t.Errorf("%d transactions were refused", refused)
		}
		s, err := database.(db.SQL).Session(t.Context(), db.SessionOptions{Mode: db.Interactive})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		all := &db.Statement{SQL: "SELECT client, item, part FROM shop_order", Free: true}
		err = s.Query(t.Context(), all, nil, func(row []db.Value) error {
			list = append(list, fmt.Sprintf("%s %s %s", row[0].Text, row[1].Text, row[2].Text))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(list)
		return list
	}
	healthy, retried := drawn("seed 1"), drawn("seed 1; refuse commit 0.2; refuse statement 0.1; refuse begin 0.1")
	if len(healthy) != 400 || !slices.Equal(healthy, retried) {
		t.Errorf("%d sales without faults and %d with faults are not the same", len(healthy), len(retried))
	}
}

// shopSteps writes in four transactions: alone, in a block, and twice in a pipeline.
const shopSteps = `
\set item random(1, 3)
\set part random(1, 1000000)
UPDATE shop_stock SET stock = stock - 1 WHERE item = :item;
SELECT count(*) FROM shop_stock;
BEGIN;
INSERT INTO shop_order VALUES (:item, :client_id, :part, NULL);
COMMIT;
\startpipeline
UPDATE shop_stock SET note = 'seen' WHERE item = :item;
\syncpipeline
INSERT INTO shop_order VALUES (:item, :client_id, -:part, NULL);
\endpipeline
`

// TestScriptMayWriteInSeveralTransactions checks that each transaction of a script is applied once and counts by itself,
// though many are refused or lose their answer.
func TestScriptMayWriteInSeveralTransactions(t *testing.T) {
	t.Parallel()
	for _, faults := range []string{"seed 1", "seed 1; refuse commit 0.2; refuse statement 0.1; refuse begin 0.1", "seed 1; lose commit 0.1; cut commit 0.1"} {
		t.Run(faults, func(t *testing.T) {
			t.Parallel()
			in, database, _ := wrapped(t, openSQLite(t), faults)
			r := driveFaulty(t, in, database, newShop(t, database, shopSteps), 400)
			r.wantValid(t)
			s, err := database.(db.SQL).Session(t.Context(), db.SessionOptions{Mode: db.Interactive})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var got [3]int64 // of the alone, the blocks, and the ends of pipelines
			all := &db.Statement{
				SQL:     "SELECT (SELECT 300000 - sum(stock) FROM shop_stock), (SELECT count(*) FROM shop_order WHERE part > 0), (SELECT count(*) FROM shop_order WHERE part < 0)",
				Columns: []db.Type{db.Integer, db.Integer, db.Integer},
			}
			err = s.Query(t.Context(), all, nil, func(row []db.Value) error {
				got = [3]int64{row[0].Int, row[1].Int, row[2].Int}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			// Each of 8 clients has 50 transactions. A transaction that is lost, or not applied, ends its script.
			if want := [3]int64{8 * 13, 8 * 13, 8 * 12}; got != want && !strings.Contains(faults, "lose") {
				t.Errorf("the parts were applied %v times, not %v", got, want)
			}
			if strings.Contains(faults, "lose") && (got[0] < got[1] || got[1] < got[2] || got[2] == 0) {
				t.Errorf("a later part was applied more often than an earlier one: %v", got)
			}
		})
	}
}

// TestScriptMayEndInBranches checks a transaction that begins behind another statement of a pipeline, and ends in one
// of two branches.
func TestScriptMayEndInBranches(t *testing.T) {
	t.Parallel()
	const text = `
\set keep random(0, 1)
\startpipeline
SELECT count(*) FROM shop_order;
BEGIN;
UPDATE shop_stock SET stock = stock - 1 WHERE item = 1;
\endpipeline
\if :keep
  COMMIT;
\else
  ROLLBACK;
\endif
`
	list, err := invariants.Parse("sold: sum(:keep): SELECT 300000 - sum(stock) FROM shop_stock")
	if err != nil {
		t.Fatal(err)
	}
	database := openSQLite(t)
	r := conduct(t, database, newShop(t, database, text, func(c *script.Config) { c.Invariants = list }), "", 100)
	r.wantAllValid(t)
	if o := r.outcomes(t); o[history.Committed] < 10 || o[history.Rejected] < 10 || o[history.Committed]+o[history.Rejected] != 100 {
		t.Errorf("the outcomes are %v", o)
	}
}

// TestCommittedTransactionIsNotRejected checks that a script which commits and then rolls back is not rejected.
func TestCommittedTransactionIsNotRejected(t *testing.T) {
	t.Parallel()
	const text = `
UPDATE shop_stock SET stock = stock - 1 WHERE item = 1;
BEGIN;
SELECT stock FROM shop_stock WHERE item = 1;
ROLLBACK;
`
	database := openSQLite(t)
	conduct(t, database, newShop(t, database, text), "", 50).wantValid(t)
}

// TestScriptPlantedBugsAreFound checks that each bug which receipts can show is found by its own check.
func TestScriptPlantedBugsAreFound(t *testing.T) {
	t.Parallel()
	for fault, name := range map[Fault]string{
		LostAck: check.Durable, FalseAck: check.Durable, Ghost: check.NoGhost, UnknownLies: check.NoGhost,
	} {
		for i, seed := range seeds(2) {
			t.Run(fmt.Sprintf("%s/seed=%d", fault, seed), func(t *testing.T) {
				t.Parallel()
				in, database, _ := wrapped(t, openSQLite(t), fmt.Sprintf("seed %d; %s commit 0.05", seed, fault))
				r := driveFaulty(t, in, database, newShop(t, database, []string{shopSale, shopSteps}[i%2]), 800)
				if in.Fired(fault) == 0 {
					t.Fatal("the planted bug never took effect")
				}
				if result := r.status(name); result.Status != check.Invalid {
					t.Errorf("the bug took effect %d times, and %s is %v: %s", in.Fired(fault), name, result.Status, result.Detail)
				}
			})
		}
	}
}

// TestInvariantsFindLostCommits checks that a sum over committed transactions finds commits that were lost although they
// were acknowledged, and no wrong answer if outcomes are unknown.
func TestInvariantsFindLostCommits(t *testing.T) {
	t.Parallel()
	list, err := invariants.Parse("sold: sum(:sold): SELECT count(*) FROM shop_order\n" +
		"books: equal: SELECT 300000 - sum(stock) FROM shop_stock; SELECT count(*) FROM shop_order")
	if err != nil {
		t.Fatal(err)
	}
	sale := strings.Replace(shopSale, "BEGIN;", "\\set sold 1\nBEGIN;", 1)
	for _, c := range []struct {
		faults, receipts string
		want             check.Status
	}{
		{"lost-ack commit 0.05", "false", check.Invalid},
		{"lost-ack commit 0.05", "true", check.Invalid},
		{"refuse commit 0.2; refuse statement 0.1; refuse begin 0.1", "false", check.Valid},
		{"lose commit 0.05; cut commit 0.05", "true", check.Valid},
		{"lose commit 0.05; cut commit 0.05", "false", check.Unknown},
	} {
		t.Run(c.faults+" receipts="+c.receipts, func(t *testing.T) {
			t.Parallel()
			in, database, _ := wrapped(t, openSQLite(t), "seed 5; "+c.faults)
			r := driveFaulty(t, in, database, newShop(t, database, sale, func(config *script.Config) {
				config.Invariants, config.Receipts, config.AuditInterval = list, c.receipts, 5*time.Millisecond
			}), 600)
			if result := r.status(check.Invariants); result.Status != c.want {
				t.Errorf("the invariants are %v: %s", result.Status, result.Detail)
			}
		})
	}
}

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/cluster"
	mysqlcluster "stroppy/internal/cluster/mysql"
	"stroppy/internal/db"
	"stroppy/internal/registry"
)

// shopTables make a schema with all kinds of constraints, and names that need quotes. INT is the type of a number.
var shopTables = []string{
	`CREATE TABLE customer (id INT PRIMARY KEY, email VARCHAR(50) NOT NULL UNIQUE, level VARCHAR(10) CHECK (level IN ('it''s', 'gold')))`,
	`CREATE TABLE "order" (id INT PRIMARY KEY, customer INT, "the total" INT NOT NULL, FOREIGN KEY (customer) REFERENCES customer (id), CHECK ("the total" >= 0))`,
	`CREATE TABLE item ("order" INT NOT NULL, place INT NOT NULL, name VARCHAR(20), PRIMARY KEY ("order", place), FOREIGN KEY ("order") REFERENCES "order" (id))`,
	`CREATE TABLE note (item_order INT, item_place INT, body VARCHAR(20), FOREIGN KEY (item_order, item_place) REFERENCES item ("order", place))`,
	`INSERT INTO customer VALUES (1, 'a@x', 'gold'), (7, 'b@x', NULL)`,
	`INSERT INTO "order" VALUES (3, 1, 20), (4, NULL, 0)`,
	`INSERT INTO item VALUES (3, 1, 'pen'), (3, 2, 'ink')`,
	`INSERT INTO note VALUES (3, 2, 'blue'), (NULL, NULL, 'none')`,
}

// orphan is an item of no order.
const orphan = `INSERT INTO item VALUES (77, 9, 'lost')`

// change executes statements, with the quotes of the database around names.
func change(t *testing.T, url, quote string, statements ...string) {
	t.Helper()
	database, err := registry.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	for _, s := range statements {
		if err := database.(db.SQL).Exec(t.Context(), strings.ReplaceAll(s, `"`, quote)); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func TestInitWritesScenarioThatRuns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		quote string
		harm  []string // makes an orphan
		start func(t *testing.T) (url string)
	}{
		"sqlite":   {`"`, []string{"PRAGMA foreign_keys = OFF", orphan}, func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "shop.db") }},
		"postgres": {`"`, []string{`ALTER TABLE item DISABLE TRIGGER ALL`, orphan}, func(t *testing.T) string { return startPostgres(t).URL() }},
		"mariadb": {"`", []string{`SET STATEMENT foreign_key_checks = 0 FOR ` + orphan}, func(t *testing.T) string {
			if testing.Short() {
				t.Skip("starts a server")
			}
			server, err := mysqlcluster.Start(t.Context(), cluster.Alone(nil))
			return started(t, "mariadb", server, err).URL()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := c.start(t)
			change(t, url, c.quote, shopTables...)
			file := filepath.Join(t.TempDir(), "shop.yaml")
			code, stdout, stderr := call(t, "init", "--db", url, "-o", file)
			if code != 0 || !strings.Contains(stdout, "stroppy run -f "+file) {
				t.Fatalf("init ended with %d: %s%s", code, stdout, stderr)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, has := range []string{"name: 'customer'", `random(1, 7)`, "name: 'order'", "name: 'item'", "LIMIT 10"} {
				if !strings.Contains(string(text), has) {
					t.Errorf("the scenario lacks %s:\n%s", has, text)
				}
			}
			run := []string{"run", "-f", file, "--db", url, "--duration", "1s", "--out"}
			code, stdout, stderr = call(t, append(run, filepath.Join(t.TempDir(), "run"))...)
			if code != 0 {
				t.Fatalf("the scenario ended with %d: %s%s\n%s", code, stdout, stderr, text)
			}
			if !strings.Contains(stdout, "invariants") || !strings.HasPrefix(stdout, "VALID") {
				t.Errorf("the run checked nothing: %s", stdout)
			}
			change(t, url, c.quote, c.harm...)
			code, _, stderr = call(t, append(run, filepath.Join(t.TempDir(), "run"))...)
			refused(t, code, 2, stderr, "item.")
			change(t, url, c.quote, `DELETE FROM item WHERE place = 9`)
			code, printed, stderr := call(t, "init", "--db", url)
			if code != 0 || printed != string(text) {
				t.Errorf("without --out it ended with %d and printed %s%s", code, printed, stderr)
			}
			code, _, stderr = call(t, "init", "--db", url, "-o", file)
			refused(t, code, 2, stderr, "exists: name another file, or replace it with --force")
			if code, _, stderr = call(t, "init", "--db", url, "-o", file, "--force"); code != 0 {
				t.Errorf("with --force it ended with %d: %s", code, stderr)
			}
		})
	}
}

func TestInitIsRefusedWithoutTables(t *testing.T) {
	t.Parallel()
	empty := "sqlite:" + filepath.Join(t.TempDir(), "empty.db")
	change(t, empty, `"`, "CREATE TABLE stroppy_receipt (id INTEGER)")
	for says, args := range map[string][]string{
		"needs a database":                  {},
		"there is no such file":             {"--db", "sqlite:" + filepath.Join(t.TempDir(), "none.db")},
		"the schema has no table":           {"--db", empty},
		"no tables that can be listed":      {"--db", "memory:"},
		"--force replaces a file":           {"--db", empty, "--force"},
		"no such file or directory":         {"--db", "sqlite:" + filepath.Join(t.TempDir(), "none.db"), "-o", filepath.Join(t.TempDir(), "none", "x.yaml")},
		"is no flag of `stroppy init`":      {"--clients", "3"},
		"takes no argument, and was given ": {"shop"},
	} {
		code, stdout, stderr := call(t, append([]string{"init"}, args...)...)
		if code == 0 || stdout != "" || !strings.Contains(stderr, says) && says != "no such file or directory" {
			t.Errorf("%v ended with %d: %s%s", args, code, stdout, stderr)
		}
	}
}

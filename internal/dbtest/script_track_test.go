package dbtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/rows"
	"stroppy/internal/db"
	language "stroppy/internal/script"
	"stroppy/internal/workload/script"
	"stroppy/internal/workload/script/track"
)

// purses has a few rows with a key of whole numbers, and a few with a key of text.
const purses = `
DROP TABLE IF EXISTS purse;
DROP TABLE IF EXISTS limits;
CREATE TABLE purse (id INTEGER PRIMARY KEY, n INTEGER NOT NULL);
CREATE TABLE limits (name VARCHAR(20) PRIMARY KEY, n INTEGER NOT NULL);
INSERT INTO purse VALUES (1, 100), (2, 100), (3, 100), (4, 100), (5, 100), (-6, 100);
INSERT INTO limits VALUES ('low', 0), ('high', 10);
`

// The scripts read and write. The first one loses updates if the rows are not locked; the second one adds to what is there.
const (
	purseRewrite = `
\set one random(1, 3)
\set delta random(-5, 5)
BEGIN;
SELECT n AS had FROM purse WHERE id = :one%s \gset
\set has :had + :delta
UPDATE purse SET n = :has WHERE id = :one;
COMMIT;
`
	purseAdd = `
\set one random(1, 3)
BEGIN;
SELECT n AS had FROM purse WHERE id = :one \gset
UPDATE purse SET n = n + :had - :had + 1 WHERE id = :one;
COMMIT;
`
	purseSkewed = `
\set one random(1, 2)
\set other 3 - :one
BEGIN;
SELECT n AS mine FROM purse WHERE id = :one \gset
SELECT n AS yours FROM purse WHERE id = :other \gset
\if :mine + :yours > -100000
  UPDATE purse SET n = n - 1 WHERE id = :one;
\endif
COMMIT;
`
	pursesReport = `
BEGIN;
SELECT id, n FROM purse WHERE id > 0 ORDER BY id;
SELECT n FROM limits WHERE name = 'high';
COMMIT;
`
	limitsRaised = `
UPDATE limits SET n = n + 1 WHERE name = 'high';
`
)

// trackedRun runs scripts on tracked tables of an engine.
func trackedRun(t *testing.T, url string, scripts []string, args ...string) (code int, v verdict, why string) {
	t.Helper()
	return trackedRunOn(t, url, purses, scripts, args...)
}

// trackedRunOn is trackedRun with other tables.
func trackedRunOn(t *testing.T, url, tables string, scripts []string, args ...string) (code int, v verdict, why string) {
	t.Helper()
	dir := t.TempDir()
	args = append([]string{
		"--clients", "8", "--init", filepath.Join(dir, "tables.sql"), "--track", "purse(id)", "--track", "limits(name)",
	}, args...)
	if url != "" {
		args = append(args, "--db", url)
	}
	for i, text := range append([]string{tables}, scripts...) {
		name := "tables.sql"
		if i > 0 {
			name = fmt.Sprintf("script%d.sql", i)
			args = append(args, "-f", filepath.Join(dir, name))
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return program(t, script.Name, args...)
}

// trackedCells runs healthy scripts on tracked tables.
func trackedCells(count int) []cell {
	return []cell{{name: "script with tracked tables", run: func(t *testing.T, open opener) {
		_, address := open(t)
		lock := " FOR UPDATE"
		if strings.HasPrefix(address, "sqlite:") || strings.HasPrefix(address, "dqlite:") {
			lock = ""
		}
		code, v, why := trackedRun(t, address, []string{fmt.Sprintf(purseRewrite, lock), pursesReport, limitsRaised}, "--count", fmt.Sprint(count))
		if code != 0 || v.Verdict != "valid" || v.status(check.Durable) != "valid" || v.status(rows.NoLostUpdate) != "valid" {
			t.Errorf("exit code %d, verdict %s: %+v\n%s", code, v.Verdict, v.Checks, why)
		}
	}}}
}

// TestTrackedTablesShowAnomalies checks that anomalies which an isolation allows are found on a real server. The same
// scripts are serializable if the isolation or a lock forbids them. The recording alone gives the same answer.
func TestTrackedTablesShowAnomalies(t *testing.T) {
	t.Parallel()
	lost, locked := fmt.Sprintf(purseRewrite, ""), fmt.Sprintf(purseRewrite, " FOR UPDATE")
	apart := strings.NewReplacer("BEGIN;\n", "", "COMMIT;\n", "").Replace(lost)
	for name, tc := range map[string]struct {
		script, isolation, expect string
		verdict, serializable     string
		anomaly, culprit          string
	}{
		"lost updates":            {lost, "read committed", "", "invalid", "invalid", "lost update (P4)", "application"},
		"relative updates":        {purseAdd, "read committed", "", "valid", "invalid", "lost update (P4)", ""},
		"locked":                  {locked, "read committed", "", "valid", "valid", "", ""},
		"write skew":              {purseSkewed, "repeatable read", "", "valid", "invalid", "write skew (G2-item)", ""},
		"write skew, not allowed": {purseSkewed, "repeatable read", "serializable", "invalid", "invalid", "write skew (G2-item)", "configuration"},
		"serializable":            {purseSkewed, "serializable", "", "valid", "valid", "", ""},
		"serializable updates":    {lost, "serializable", "", "valid", "valid", "", ""},
		"lost in the second":      {limitsRaised + lost, "read committed", "", "invalid", "invalid", "lost update (P4)", "application"},
		"separate transactions":   {apart + apart, "read committed", "", "valid", "valid", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"--isolation", tc.isolation, "--count", "3000", "--retries", "1000"}
			if tc.expect != "" {
				args = append(args, "--expect", tc.expect)
			}
			_, v, why := trackedRun(t, newPostgresDatabase(t), []string{tc.script, pursesReport}, args...)
			if v.Verdict != tc.verdict || v.status(check.Serializable) != tc.serializable {
				t.Fatalf("the verdict is %s: %+v\n%s", v.Verdict, v.Checks, why)
			}
			if k := v.Cause; tc.culprit != "" && (k == nil || k.Culprit != tc.culprit || k.Anomaly != tc.anomaly) {
				t.Errorf("the cause is %+v", k)
			}
			c := checkNamed(t, &v.Result, check.Serializable)
			if tc.anomaly != "" && (len(c.Findings) == 0 || c.Findings[0].Anomaly != tc.anomaly) {
				t.Errorf("the findings are %+v", c.Findings)
			}
			if code, _, complaints := stroppy("check", v.dir, "--json"); (code == 1) != (tc.verdict == "invalid") {
				t.Errorf("check ended with %d: %s", code, complaints)
			}
		})
	}
}

// newPurses binds a script to a database, with tracked tables.
func newPurses(t *testing.T, database db.Database, text string, receipts string) *script.Script {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tables.sql")
	if err := os.WriteFile(path, []byte(purses), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := script.New(database, script.Config{
		Clients: 8, Seed: 7, Init: path, Receipts: receipts,
		Files: []language.File{{Name: "purse.sql", Text: text, Weight: 2}, {Name: "report.sql", Text: pursesReport, Weight: 1}},
		Track: []track.Table{{Name: "purse", Key: "id"}, {Name: "limits", Key: "name"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestTrackedTablesFindPlantedBugs checks that bugs of a database are found by its tracked rows.
func TestTrackedTablesFindPlantedBugs(t *testing.T) {
	t.Parallel()
	for _, m := range []struct {
		fault  Fault
		step   Step
		script string
		check  string
	}{
		{LostAck, Commit, fmt.Sprintf(purseRewrite, ""), check.Serializable},
		{FalseAck, Commit, fmt.Sprintf(purseRewrite, ""), check.Serializable},
		{Ghost, Commit, fmt.Sprintf(purseRewrite, ""), check.Serializable},
		{DirtyRead, Commit, fmt.Sprintf(purseRewrite, ""), check.Serializable},
		{LostUpdate, Read, fmt.Sprintf(purseRewrite, ""), rows.NoLostUpdate},
		{WriteSkew, Read, purseSkewed, check.Serializable},
		{ReadSkew, Read, purseSkewed, check.Serializable},
		{StaleRead, Read, purseSkewed, check.Strict},
	} {
		for _, seed := range seeds(2) {
			t.Run(fmt.Sprintf("%s/seed=%d", m.fault, seed), func(t *testing.T) {
				t.Parallel()
				in, database, _ := wrapped(t, openSQLite(t), fmt.Sprintf("seed %d; %s %s 0.05", seed, m.fault, m.step))
				r := newTrial(t, database, newPurses(t, database, m.script, ""), "")
				r.retries = 5 // the bug aborts some transactions at every attempt
				r.load(t)
				r.attach(t)
				in.Enable(true)
				r.drive(t, 800)
				in.Enable(false)
				r.download(t)
				r.check(t)
				if in.Fired(m.fault) == 0 {
					t.Fatal("the planted bug never took effect")
				}
				if result := r.status(m.check); result.Status != check.Invalid {
					t.Errorf("the bug took effect %d times, and %s is %v: %s", in.Fired(m.fault), m.check, result.Status, result.Detail)
				}
			})
		}
	}
}

// TestSumsReachOverTransactions checks the sum of a variable that the script sets before a read that is tracked as a
// transaction of its own.
func TestSumsReachOverTransactions(t *testing.T) {
	t.Parallel()
	const text = `
\set one random(1, 3)
\set bumps 1
SELECT n FROM purse WHERE id = :one;
UPDATE purse SET n = n + 1 WHERE id = :one;
`
	_, v, why := trackedRun(t, "", []string{text}, "--count", "200",
		"--invariant", "bumps: sum(:bumps): SELECT sum(n) - 600 FROM purse")
	if v.Verdict != "valid" || v.status(check.Invariants) != "valid" || v.Drive.Committed != 200 {
		t.Errorf("the verdict is %s: %+v\n%s", v.Verdict, v.Checks, why)
	}
}

// TestTriggerThatLosesWritesIsFound plants a lost write with a trigger of the database.
func TestTriggerThatLosesWritesIsFound(t *testing.T) {
	t.Parallel()
	const trigger = `CREATE TRIGGER loser AFTER UPDATE ON purse WHEN NEW.id = 2 AND NEW.stroppy_version % 7 = 0 BEGIN
UPDATE purse SET n = OLD.n, stroppy_version = OLD.stroppy_version, stroppy_writer = OLD.stroppy_writer WHERE id = 2; END`
	database := openSQLite(t)
	r := newTrial(t, database, newPurses(t, database, fmt.Sprintf(purseRewrite, ""), "false"), "")
	r.load(t)
	r.attach(t)
	if err := database.Exec(t.Context(), trigger); err != nil {
		t.Fatal(err)
	}
	r.drive(t, 300)
	r.download(t)
	r.check(t)
	if result := r.status(check.Serializable); result.Status != check.Invalid || !strings.Contains(result.Detail, "both read version 6 of purse 2 and both made version 7") {
		t.Errorf("%v: %s", result.Status, result.Detail)
	}
}

// TestTrackedTablesSurviveKilledServer kills the server twice. Each lost commit is looked up, and the order of the rows
// stays known.
func TestTrackedTablesSurviveKilledServer(t *testing.T) {
	t.Parallel()
	for name, isolation := range map[string]string{"serializable": "serializable", "locked": "read committed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := fmt.Sprintf(purseRewrite, map[string]string{"locked": " FOR UPDATE"}[name])
			code, v, why := trackedRun(t, "", []string{text, pursesReport, limitsRaised},
				"--cluster", "postgres:1?memory=on", "--nemesis", "kill primary at 2s for 500ms", "--nemesis", "kill primary at 4s for 500ms",
				"--duration", "6s", "--isolation", isolation, "--retries", "1000")
			if code != 0 || v.Verdict != "valid" || v.status(check.Durable) != "valid" || v.status(rows.NoLostUpdate) != "valid" {
				t.Errorf("exit code %d, verdict %s: %+v\n%s", code, v.Verdict, v.Checks, why)
			}
			if v.Drive.Unknown > 0 {
				t.Errorf("%d outcomes are unknown", v.Drive.Unknown)
			}
		})
	}
}

// These scripts lock without writing, and insert rows whose keys the database makes.
const (
	locksOnly = `
SELECT n AS x FROM purse WHERE id = 1 FOR UPDATE \gset
BEGIN;
SELECT n FROM purse WHERE id = 2 FOR SHARE;
COMMIT;
`
	orderOne = `
\set one random(1, 3)
BEGIN;
INSERT INTO purchase (item) VALUES (:one), (:one + 1) RETURNING n \aset
UPDATE purse SET n = n - 1 WHERE id = :one;
SELECT item FROM purchase WHERE n = :n \gset
UPDATE purchase SET item = :item + 1 WHERE n = :n;
COMMIT;
`
)

// TestTrackedTablesTakeAnyScript checks scripts that lock without writing, keys that the database makes, and a pipeline.
func TestTrackedTablesTakeAnyScript(t *testing.T) {
	t.Parallel()
	const tables = purses + `
DROP TABLE IF EXISTS purchase;
CREATE TABLE purchase (n SERIAL PRIMARY KEY, item INTEGER NOT NULL);
`
	piped := strings.NewReplacer("BEGIN;", "\\startpipeline\nBEGIN;", "COMMIT;", "COMMIT;\n\\endpipeline").Replace(`
BEGIN;
UPDATE purse SET n = n + 1 WHERE id = 4;
UPDATE purse SET n = n - 1 WHERE id = 5;
SELECT id, n FROM purse WHERE id IN (4, 5);
COMMIT;
`)
	for name, args := range map[string][]string{"one process": nil, "pipelined": {"--mode", "pipelined"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"--count", "800", "--isolation", "serializable", "--retries", "1000", "--track", "purchase(n)"}, args...)
			code, v, why := trackedRunOn(t, newPostgresDatabase(t), tables, []string{locksOnly, orderOne, piped, pursesReport}, args...)
			if code != 0 || v.Verdict != "valid" || v.status(check.Serializable) != "valid" {
				t.Errorf("exit code %d, verdict %s: %+v\n%s", code, v.Verdict, v.Checks, why)
			}
		})
	}
}

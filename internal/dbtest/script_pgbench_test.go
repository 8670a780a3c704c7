package dbtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/workload"
	"stroppy/internal/workload/script"
)

// storingScript stores the values of expressions, of results and of the special variables as the database sees them.
const storingScript = `
\set i 40 + 2
\set real 10.0 / 4
\set big 1e300
\set less :i < 41
\set more :i > 41
\set least -9223372036854775808
\set hashed hash(:i, 7)
\set permuted permute(5, 1000, 7)
\set place 0
SELECT 7 AS one, '007' AS text, 'a''b' AS quote, 2.50 AS money, true AS yes \gset g_
SELECT 3 AS last UNION ALL SELECT 4 ORDER BY 1 \aset
\set sum :g_one + :last + :g_money + :g_text
\if :g_yes and :less
\set place 1
\elif :g_yes
  \if :last = 3
  \set place 2
  \else
  \set place 3
  \endif
\else
\set place 1 / :place
\endif
BEGIN;
INSERT INTO stored VALUES ('i', CAST(:i AS text)), ('real', CAST(:real AS text)), ('big', CAST(:big AS text)),
  ('less', CAST(:less AS boolean)), ('more', CAST(:more AS boolean)), ('least', CAST(:least AS bigint)),
  ('hashed', CAST(:hashed AS bigint)), ('permuted', CAST(:permuted AS int)), ('one', CAST(:g_one AS int));
INSERT INTO stored VALUES ('text', :g_text), ('quote', :g_quote), ('money', CAST(:g_money AS numeric)),
  ('yes', CAST(:g_yes AS boolean)), ('last', CAST(:last AS int)), ('sum', CAST(:sum AS float8)),
  ('place', CAST(:place AS int)), ('scale', CAST(:scale AS int)), ('client', CAST(:client_id AS int)),
  ('given', CAST(:given AS int)), ('slice', CAST((ARRAY[1,2,3])[2:3] AS text));
COMMIT;
SELECT count(*) AS n FROM stored \gset
INSERT INTO stored SELECT 'n', :n;
`

// TestScriptRefusesColumnWithoutAName checks that \gset refuses a column whose name cannot name a variable.
func TestScriptRefusesColumnWithoutAName(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.sql")
	if err := os.WriteFile(path, []byte("SELECT 1;\nSELECT 1 + 1\n\\gset"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, why := program(t, script.Name, "--clients", "1", "--count", "1", "-f", path)
	want := `store.sql:2: the column "1 + 1" cannot name a variable: give it a name by AS`
	if code != 3 || !strings.Contains(why, want) {
		t.Errorf("exit code %d, want 3 and %s: %s", code, want, why)
	}
}

// TestScriptsStoreTheValuesOfPgbench compares the rows that a script leaves in a table, in both modes, with the rows that
// the real pgbench leaves.
func TestScriptsStoreTheValuesOfPgbench(t *testing.T) {
	t.Parallel()
	url := newPostgresDatabase(t)
	path := filepath.Join(t.TempDir(), "store.sql")

	if err := os.WriteFile(path, []byte(storingScript), 0o600); err != nil {
		t.Fatal(err)
	}
	stored := func(run func()) string {
		psql(t, url, "DROP TABLE IF EXISTS stored; CREATE TABLE stored (name text, value text)")
		run()
		return psql(t, url, "SELECT name || '=' || value FROM stored")
	}
	want := stored(func() { pgbench(t, "-n", "-t", "1", "-M", "prepared", "-D", "given=12", "-f", path, url) })
	if strings.Count(want, "\n") != 21 {
		t.Fatalf("pgbench stores %s", want)
	}
	for _, mode := range []string{workload.Interactive, workload.Pipelined} {
		got := stored(func() {
			code, _, why := program(t, script.Name, "--db", url, "--mode", mode, "--clients", "1", "--count", "1", "--no-receipts",
				"--define", "given=12", "-f", path)
			if code != 0 {
				t.Fatalf("%s: exit code %d: %s", mode, code, why)
			}
		})
		if got != want {
			t.Errorf("%s: %s\nwant %s", mode, got, want)
		}
	}
}

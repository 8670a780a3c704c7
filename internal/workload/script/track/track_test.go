package track

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"stroppy/internal/script"
)

// parsed returns the only statement of a script.
func parsed(t *testing.T, text string) *script.SQL {
	t.Helper()
	p, err := script.Parse([]script.File{{Name: "one.sql", Text: text, Weight: 1}}, map[string]script.Value{
		"id": {}, "n": {}, "m": {},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p.Scripts[0].Steps[0].SQL
}

func rewriter(returning bool) *Rewriter {
	return &Rewriter{Tables: []Table{{"accounts", "id"}, {"public.orders", `"key"`}}, Returning: returning}
}

// shown returns a rewritten statement with @ for the id of the transaction.
func shown(s Statement) string {
	text := s.Parts[0]
	for i, part := range s.Parts[1:] {
		if s.Own[i] {
			text += "@" + part
		} else {
			text += "?" + part
		}
	}
	return text
}

// TestStatementsAreRewritten compares the rewritten forms of statements that can be tracked.
func TestStatementsAreRewritten(t *testing.T) {
	t.Parallel()
	const read = "id AS stroppy_key, accounts.stroppy_version AS stroppy_version, accounts.stroppy_writer AS stroppy_writer"
	const version = "stroppy_version = accounts.stroppy_version + 1, stroppy_writer = @,"
	const returned = "id AS stroppy_key, stroppy_version AS stroppy_version"
	for text, want := range map[string]string{
		"SELECT n FROM accounts WHERE id = :id":                   "SELECT n, accounts." + read + " FROM accounts WHERE id = ?",
		"select n, m as x from accounts order by n limit 3":       "select n, m as x, accounts." + read + " from accounts order by n limit 3",
		"SELECT n FROM accounts WHERE id = :id FOR UPDATE":        "SELECT n, accounts." + read + " FROM accounts WHERE id = ? FOR UPDATE",
		"SELECT coalesce(n, 0) -- it's n\nFROM accounts":          "SELECT coalesce(n, 0), accounts." + read + " -- it's n\nFROM accounts",
		"SELECT n IS DISTINCT FROM 3 FROM accounts":               "SELECT n IS DISTINCT FROM 3, accounts." + read + " FROM accounts",
		"SELECT n FROM accounts WHERE id IN (SELECT id FROM ids)": "SELECT n, accounts." + read + " FROM accounts WHERE id IN (SELECT id FROM ids)",
		"SELECT a.n FROM accounts a WHERE a.id = :id": "SELECT a.n, a.id AS stroppy_key, a.stroppy_version AS stroppy_version, " +
			"a.stroppy_writer AS stroppy_writer FROM accounts a WHERE a.id = ?",
		`SELECT "n" FROM "accounts"`: `SELECT "n", "accounts".` + strings.ReplaceAll(read, "accounts.", `"accounts".`) + ` FROM "accounts"`,
		"SELECT total FROM orders WHERE key = 'a''b'": `SELECT total, orders."key" AS stroppy_key, orders.stroppy_version AS ` +
			"stroppy_version, orders.stroppy_writer AS stroppy_writer FROM orders WHERE key = 'a''b'",
		"UPDATE accounts SET n = n + :n WHERE id = :id":           "UPDATE accounts SET " + version + " n = n + ? WHERE id = ? RETURNING " + returned,
		"UPDATE accounts SET n = :n, m = :m":                      "UPDATE accounts SET " + version + " n = ?, m = ? RETURNING " + returned,
		"UPDATE accounts SET n = 1 WHERE id = :id RETURNING n":    "UPDATE accounts SET " + version + " n = 1 WHERE id = ? RETURNING n, " + returned,
		"INSERT INTO accounts (id, n) VALUES (:id, 0)":            "INSERT INTO accounts (id, n, stroppy_version, stroppy_writer) VALUES (?, 0, 1, @) RETURNING " + returned,
		"INSERT INTO accounts (id) VALUES (1), ((2)) RETURNING n": "INSERT INTO accounts (id, stroppy_version, stroppy_writer) VALUES (1, 1, @), ((2), 1, @) RETURNING n, " + returned,
	} {
		s, err := rewriter(true).Rewrite(parsed(t, text))
		if err != nil || s.Kind == None || s.Why != "" || shown(s) != want {
			t.Errorf("%s\nbecame %q (%v, %v), want\n%q", text, s.Parts, s.Why, err, want)
		}
	}
}

// TestStatementsAreNotTracked checks that a statement of any other shape stays as it is, and is opaque if it may write.
func TestStatementsAreNotTracked(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text                    string
		blind, deletes, inserts bool
	}{
		{text: "SELECT sum(n) FROM accounts"},
		{text: "SELECT count(*) FROM accounts"},
		{text: "SELECT DISTINCT n FROM accounts"},
		{text: "SELECT n FROM accounts GROUP BY n"},
		{text: "SELECT n FROM accounts UNION SELECT 1"},
		{text: "SELECT n FROM accounts, ids"},
		{text: "SELECT n FROM accounts JOIN ids USING (id)"},
		{text: "SELECT n FROM ids WHERE id IN (SELECT id FROM accounts)"},
		{text: "SELECT n, (SELECT 1) FROM accounts"},
		{text: "SELECT n FROM accounts WHERE id = (SELECT max(id) FROM accounts)"},
		{text: "SELECT row_number() OVER () FROM accounts"},
		{text: "SELECT n FROM accounts /* why */ WHERE id = 1"},
		{text: `SELECT n FROM accounts WHERE m = 'a\'`},
		{text: "SELECT n FROM ONLY accounts"},
		{text: "WITH a AS (SELECT n FROM accounts) SELECT * FROM a"},
		{text: "SELECT * FROM (SELECT n FROM accounts) AS a"},
		{text: "UPDATE accounts SET n = 1 FROM ids WHERE ids.id = accounts.id", blind: true},
		{text: "UPDATE accounts SET n = (SELECT max(n) FROM accounts)", blind: true},
		{text: "UPDATE accounts SET (n, m) = (1, 2)", blind: true},
		{text: "UPDATE accounts SET id = :n WHERE id = :id", blind: true, deletes: true, inserts: true},
		{text: "UPDATE accounts, ids SET n = 1", blind: true},
		{text: "INSERT INTO accounts (id) SELECT id FROM ids", blind: true, inserts: true},
		{text: "INSERT INTO accounts (id) VALUES (1) ON CONFLICT DO NOTHING", blind: true, inserts: true},
		{text: "INSERT INTO accounts DEFAULT VALUES", blind: true, inserts: true},
		{text: "INSERT OR REPLACE INTO accounts (id) VALUES (1)", blind: true, deletes: true, inserts: true},
		{text: "REPLACE INTO accounts (id) VALUES (1)", blind: true, deletes: true, inserts: true},
		{text: "DELETE FROM accounts WHERE id = :id", blind: true, deletes: true},
		{text: "TRUNCATE accounts", blind: true, deletes: true, inserts: true},
		{text: "WITH a AS (DELETE FROM accounts RETURNING n) SELECT n FROM a", blind: true, deletes: true, inserts: true},
		{text: "CALL pay(:id)", blind: true},
		{text: "UPDATE accounts /* all */ SET n = 1", blind: true, deletes: true, inserts: true},
	} {
		s, err := rewriter(true).Rewrite(parsed(t, tc.text))
		if err != nil || s.Kind != None || s.Parts != nil || s.Why == "" || s.Blind != tc.blind ||
			(len(s.Deletes) > 0) != tc.deletes || (len(s.Inserts) > 0) != tc.inserts {
			t.Errorf("%s: %+v (%v)", tc.text, s, err)
		}
	}
	for _, text := range []string{
		"SELECT n FROM other", "UPDATE other SET n = 1", "DELETE FROM other WHERE id IN (SELECT id FROM accounts)",
		"INSERT INTO other SELECT n FROM accounts", "SELECT accounts.n FROM other AS accounts", "SELECT /* accounts */ 1",
	} {
		s, err := rewriter(true).Rewrite(parsed(t, text))
		if err != nil || s.Kind != None || s.Blind || len(s.Deletes)+len(s.Inserts) > 0 {
			t.Errorf("%s: %+v (%v)", text, s, err)
		}
	}
}

// TestStatementsThatMeetTheColumnsAreRefused checks that a statement whose meaning the columns would change is an error.
func TestStatementsThatMeetTheColumnsAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"SELECT * FROM accounts", "SELECT a.* FROM accounts a", "SELECT n, accounts.* FROM accounts JOIN ids USING (id)",
		"INSERT INTO accounts VALUES (1, 2)", "INSERT INTO public.accounts SELECT 1, 2", "UPDATE accounts SET n = 1 RETURNING *",
		"INSERT INTO accounts (id) VALUES (1) RETURNING *", "INSERT INTO other SELECT * FROM accounts",
		"WITH a AS (SELECT * FROM accounts) SELECT * FROM a", "SELECT n FROM (SELECT * FROM ids, accounts) AS a",
	} {
		if _, err := rewriter(true).Rewrite(parsed(t, text)); err == nil || !strings.Contains(err.Error(), "tracked table accounts") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"SELECT 1 FROM ids WHERE EXISTS (SELECT * FROM accounts)", "SELECT count(*) FROM accounts", "SELECT * FROM other"} {
		if _, err := rewriter(true).Rewrite(parsed(t, text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestWritesAreFollowedByKey checks how a write is followed on a database without UPDATE … RETURNING.
func TestWritesAreFollowedByKey(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"UPDATE accounts SET n = :n WHERE id = :id":                    "? 1",
		"UPDATE accounts SET n = :n WHERE m = 3 AND :id = id":          "? 1",
		"UPDATE accounts a SET n = 1 WHERE a.id = 7 AND n > 3":         "7 -1",
		"INSERT INTO accounts (n, id) VALUES (:n, :id)":                "? 1",
		"INSERT INTO accounts (id, n) VALUES ('x', :id)":               "'x' -1",
		"UPDATE accounts SET n = :n WHERE id = :id OR id = 3":          "",
		"UPDATE accounts SET n = :n WHERE id = :id + 1":                "",
		"UPDATE accounts SET n = :n WHERE NOT id = :id":                "",
		"UPDATE accounts SET n = :n WHERE id IN (:id)":                 "",
		"UPDATE accounts SET n = :n":                                   "",
		"INSERT INTO accounts (n) VALUES (:n)":                         "",
		"INSERT INTO accounts (id) VALUES (:n), (:id)":                 "",
		"INSERT INTO accounts (id, n) VALUES (:id + 1, 3)":             "",
		"INSERT INTO accounts (id, n) VALUES (abs(:id), 3)":            "",
		"UPDATE accounts SET n = :n WHERE id = :id ORDER BY n LIMIT 1": "",
	} {
		s, err := rewriter(false).Rewrite(parsed(t, text))
		got := ""
		if len(s.Follow) > 0 {
			const head = "SELECT id AS stroppy_key, stroppy_version AS stroppy_version, stroppy_writer AS stroppy_writer FROM accounts WHERE id = "
			follow := strings.Join(s.Follow, "?")
			if !strings.HasPrefix(follow, head) || s.Kind == None || s.Extra != 0 {
				t.Errorf("%s is followed by %s", text, follow)
			}
			got = fmt.Sprintf("%s %d", strings.TrimPrefix(follow, head), s.FollowBy)
		}
		if err != nil || got != want || (want == "") != s.Blind {
			t.Errorf("%s: %q, want %q: %+v (%v)", text, got, want, s, err)
		}
	}
}

// TestComputedColumnsAreKnown checks which columns get values that the database does not compute.
func TestComputedColumnsAreKnown(t *testing.T) {
	t.Parallel()
	s, err := rewriter(true).Rewrite(parsed(t, "UPDATE accounts SET n = :n + 1, m = m + :m, note = 'x', o = CAST(:id AS int)"))
	if err != nil || fmt.Sprint(s.Sets) != "[{n [0]} {o [2]}]" {
		t.Errorf("%v (%v)", s.Sets, err)
	}
	s, err = rewriter(true).Rewrite(parsed(t, "SELECT n, a.m AS x, o y, n + 1 AS z FROM accounts a"))
	if err != nil || fmt.Sprint(s.Columns) != "[[n n] [x m] [y o]]" {
		t.Errorf("%v (%v)", s.Columns, err)
	}
}

func TestTablesAreParsed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"accounts(id)": "accounts id accounts id", "public.accounts (id)": "public.accounts id accounts id",
		`"My Table"("a b")`: `"My Table" "a b" My Table a b`,
	} {
		table, err := Parse(text)
		if got := strings.Join([]string{table.Name, table.Key, table.base(), table.key()}, " "); err != nil || got != want {
			t.Errorf("%s: %s (%v)", text, got, err)
		}
	}
	for _, text := range []string{"", "accounts", "accounts()", "(id)", "accounts(id, n)", "accounts(id", "a b(id)", "a.(id)", "1(id)", "a;drop(id)", "a(id)b"} {
		if table, err := Parse(text); err == nil {
			t.Errorf("%q is %v", text, table)
		}
	}
}

// TestIntegersAreExact compares Integer with the standard library.
func TestIntegersAreExact(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "-", "0", "-0", "00", "01", "7", "-7", "+7", "1a", " 1", "12345678901234567", "9223372036854775807",
		"9223372036854775808", "-9223372036854775807", "9999999999999999999", "10000000000000000000", "1.0",
	} {
		want, err := strconv.ParseInt(text, 10, 64)
		exact := err == nil && strconv.FormatInt(want, 10) == text
		if got, ok := Integer([]byte(text)); ok != exact || ok && got != want {
			t.Errorf("%q is %d, %t, and not %d, %t", text, got, ok, want, exact)
		}
	}
}

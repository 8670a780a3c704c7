package script

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"stroppy/internal/check/rows"
	"stroppy/internal/history"
	language "stroppy/internal/script"
	"stroppy/internal/workload/script/track"
)

// TestRowsHaveNames checks that a row and its number determine each other, and that other keys have a hash.
func TestRowsHaveNames(t *testing.T) {
	t.Parallel()
	two := tables{{Table: track.Table{Name: "accounts", Key: "id"}}, {Table: track.Table{Name: "public.orders", Key: "n"}}}
	seen := map[uint64]string{}
	for i := range two {
		for _, key := range []string{"0", "1", "-1", "17", "-17", strconv.Itoa(wholeKeys - 1), strconv.Itoa(1 - wholeKeys)} {
			n := two.object(i, []byte(key))
			name := two[i].Name + " " + key
			back, ok := two.number(name)
			if n < rows.First || n&hashed != 0 || two.Name(n) != name || back != n || !ok || two.table(n) != i {
				t.Errorf("%s is %d, whose name is %s and number %d", name, n, two.Name(n), back)
			}
			if seen[n] != "" {
				t.Errorf("%s and %s have one number", name, seen[n])
			}
			seen[n] = name
		}
		for _, key := range []string{"", "x", "007", "+7", "7.0", strconv.Itoa(math.MaxInt64), "6f1c0f7e-0b0c-4d3e-9a55-0d5f8c1f2b11"} {
			n := two.object(i, []byte(key))
			name := two.Name(n)
			if back, ok := two.number(name); n&hashed == 0 || !strings.HasPrefix(name, two[i].Name+" key-hash-") || back != n || !ok {
				t.Errorf("the key %q of %s has the number %d and the name %s, which is %d", key, two[i].Name, n, name, back)
			}
			if seen[n] != "" {
				t.Errorf("two rows have the number %d", n)
			}
			seen[n] = name
		}
	}
	for _, n := range []uint64{0, 1, 7, hashed | 9<<hashBits} {
		if name := two.Name(n); name == "" || strings.Contains(name, "accounts") {
			t.Errorf("object %d is %q", n, name)
		}
	}
	if _, ok := two.number("nothing 7"); ok {
		t.Error("a row of no table has a number")
	}
	if name := tables(nil).Name(0); name != receiptTable {
		t.Errorf("the table of receipts is %s", name)
	}
	header := history.Header{Keys: map[string]string{keyTracked: two.text()}}
	if got := trackedIn(header); len(got) != 2 || got[1].Name != "public.orders" {
		t.Errorf("the header has %v", got)
	}
}

// TestRowsMayVanish checks what the statements of a script may do with the rows of a table.
func TestRowsMayVanish(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]bool{
		"UPDATE a SET n = 1 WHERE id = 1;":                            {false, false},
		"INSERT INTO a (id) VALUES (1);":                              {false, false},
		"INSERT INTO a (id) SELECT 1;":                                {false, true},
		"INSERT INTO b VALUES (1);":                                   {false, false},
		"DELETE FROM b;":                                              {true, false},
		"BEGIN; DELETE FROM b; INSERT INTO a (id) VALUES (1); COMMIT": {true, false},
		"CALL f();": {true, false},
		"INSERT OR REPLACE INTO a (id) VALUES (1);": {true, true},
		"TRUNCATE a;":                   {true, true},
		"SELECT n FROM a WHERE id = 1;": {false, false},
	} {
		program, err := language.Parse([]language.File{{Name: "one.sql", Text: text, Weight: 1}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		list := []track.Table{{Name: "a", Key: "id"}}
		p := planner{tables: tables{{Table: list[0]}}, program: program, rewrite: track.Rewriter{Tables: list, Returning: true}}
		_, err = p.script(program.Scripts[0])
		if got := [2]bool{p.tables[0].Deletes, p.tables[0].Inserts}; err != nil || got != want {
			t.Errorf("%q: rows may vanish and come unseen: %v, want %v (%v)", text, got, want, err)
		}
	}
}

// TestComputedWritesAreFound checks which scripts write into a table what they computed from its rows.
func TestComputedWritesAreFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"BEGIN;SELECT n FROM a WHERE id = 1 \\gset\n\\set m :n + 1\nUPDATE a SET n = :m WHERE id = 1;COMMIT;":         true,
		"BEGIN;SELECT n AS x FROM a WHERE id = 1 \\gset p_\nUPDATE a SET n = :p_x + 1 WHERE id = 1;COMMIT;":           true,
		"BEGIN;SELECT n FROM a WHERE id = 1 \\gset\n\\set m :n + 1\nUPDATE a SET n = n + :m WHERE id = 1;COMMIT;":     false,
		"BEGIN;SELECT n FROM a WHERE id = 1 \\gset\nUPDATE a SET m = :n WHERE id = 1;COMMIT;":                         false,
		"BEGIN;SELECT n FROM a WHERE id = 1 \\gset\n\\set n 7\nUPDATE a SET n = :n WHERE id = 1;COMMIT;":              false,
		"BEGIN;SELECT n FROM a WHERE id = 2 \\gset\nUPDATE a SET n = :n WHERE id = 1;COMMIT;":                         false,
		"\\set k 1\nBEGIN;SELECT n FROM a WHERE id = :k FOR SHARE \\gset\nUPDATE a SET n = :n WHERE ID = :k;COMMIT;":  true,
		"\\set k 1\n\\set j 1\nBEGIN;SELECT n FROM a WHERE id = :j \\gset\nUPDATE a SET n = :n WHERE id = :k;COMMIT;": false,
		"BEGIN;SELECT n FROM b WHERE id = 1 \\gset\nUPDATE a SET n = :n WHERE id = 1;COMMIT;":                         false,
	} {
		program, err := language.Parse([]language.File{{Name: "one.sql", Text: text, Weight: 1}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		list := []track.Table{{Name: "a", Key: "id"}}
		p := planner{tables: tables{{Table: list[0]}}, program: program, rewrite: track.Rewriter{Tables: list, Returning: true}}
		if _, err := p.script(program.Scripts[0]); err != nil || p.tables[0].Computes != want {
			t.Errorf("%q computes: %t, want %t (%v)", text, p.tables[0].Computes, want, err)
		}
	}
}

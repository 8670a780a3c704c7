package starter

import (
	"slices"
	"testing"
)

func TestChecksAreFoundInCreateStatements(t *testing.T) {
	for create, want := range map[string][]string{
		`CREATE TABLE t (a INT CHECK (a > 0), b TEXT)`:                                {"a > 0"},
		"CREATE TABLE t (a INT,\n-- CHECK (no)\n/* CHECK (no) */ check(a IN (1, 2)))": {"a IN (1, 2)"},
		`CREATE TABLE "CHECK (x)" ([check (y)] INT, c TEXT DEFAULT 'CHECK (z)')`:      nil,
		`CREATE TABLE t (c TEXT CONSTRAINT k CHECK (c <> ')' AND c <> 'it''s (') UNIQUE, CHECK ((c) = (c)))`: {
			`c <> ')' AND c <> 'it''s ('`, "(c) = (c)"},
		`CREATE TABLE t (checks INT, check_at INT)`: nil,
		`CREATE TABLE t (a INT CHECK (a`:            nil,
		`CREATE TABLE t (a INT CHECK`:               nil,
		`CREATE TABLE 'open`:                        nil,
	} {
		var got []string
		for _, c := range checksIn(create) {
			got = append(got, c.Condition)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has %q, not %q", create, got, want)
		}
	}
}

func TestQuotesWithBackslashesAreDoubled(t *testing.T) {
	for condition, want := range map[string]string{
		"`level` in ('it\\'s','gold')":                               "`level` in ('it''s','gold')",                   // MariaDB
		"(`level` in (_utf8mb4\\'it\\\\\\'s\\',_utf8mb4\\'gold\\'))": "(`level` in (_utf8mb4'it''s',_utf8mb4'gold'))", // MySQL
		"(`a` > 0)": "(`a` > 0)",
	} {
		if got := plainQuotes(condition); got != want {
			t.Errorf("%s is %s, not %s", condition, got, want)
		}
	}
}

package starter

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// A scenario has at most this number of scripts, and about this number of bytes. The workload and the reader of scenarios
// take a little more.
const (
	mostScripts = 50
	mostBytes   = 60 << 10
)

// Scenario returns a scenario for the schema, as YAML. url is the database's URL without secrets, and command is the one
// that wrote the scenario. With secret, the URL lacks a password.
func (s *Schema) Scenario(url, command string, secret bool) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# A first scenario for an existing schema, written by `%s`.\n", command)
	b.WriteString("# `stroppy run -f FILE` runs it. Its scripts read, and change nothing: add the transactions of your application.\n")
	if secret {
		b.WriteString("# The password is not kept: give it in PGPASSWORD, or the whole URL in STROPPY_DB.\n")
	}
	fmt.Fprintf(&b, "workload: script\ndb: %s\nclients: 4\nduration: 10s\n", single(url))
	left := 0
	add := func(text string) {
		if b.Len()+len(text) > mostBytes {
			left++
			return
		}
		b.WriteString(text)
	}
	b.WriteString("# A script is in the language of pgbench. It may also be a file: - order.sql@8\nscript:\n")
	for _, t := range s.Tables[:min(len(s.Tables), mostScripts)] {
		add(item(plainName(t.Name), s.script(t)))
	}
	if list := s.invariants(); len(list) > 0 {
		b.WriteString("# The constraints of the schema, which hold in every snapshot.\ninvariant:\n")
		for _, i := range list {
			add(fmt.Sprintf("  - name: %s\n    expect: empty\n    sql: %s\n", single(i.name), single(i.sql)))
		}
	}
	if left += max(0, len(s.Tables)-mostScripts); left > 0 {
		fmt.Fprintf(&b, "# The schema is large: %d further scripts and constraints are left out.\n", left)
	}
	return []byte(b.String())
}

// item returns a script of the list. YAML shows text line by line if all of its characters can be printed.
func item(name, text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		return fmt.Sprintf("  - %s\n", single(name+"@1 "+strconv.Quote(text)))
	}
	lines := strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n      ")
	return fmt.Sprintf("  - name: %s\n    weight: 1\n    sql: |\n      %s\n", single(name), lines)
}

// single returns a text as a YAML value in single quotes.
func single(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// plainName returns a name without characters that mean something in the name of a script or an invariant.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && r != '.' && !isWord(byte(r)) {
			return '_'
		}
		return r
	}, name)
}

// script returns a script that reads rows of a table: one by its key, if that is an integer, and else some.
func (s *Schema) script(t *Table) string {
	table := s.quoted(t.Name)
	if t.low == "" {
		return "SELECT * FROM " + table + " LIMIT 10;\n"
	}
	return "\\set key random(" + t.low + ", " + t.high + ")\nSELECT * FROM " + table + " WHERE " + s.quoted(t.Primary[0]) + " = :key;\n"
}

// invariant is a query that returns no row.
type invariant struct{ name, sql string }

// invariants returns the constraints of all tables as queries for rows that break them.
func (s *Schema) invariants() (list []invariant) {
	for _, t := range s.Tables {
		table := s.quoted(t.Name)
		if len(t.Primary) > 0 {
			list = append(list, invariant{nameOf(t, "key"), s.repeated(table, t.Primary)})
		}
		for _, k := range t.Unique {
			list = append(list, invariant{nameOf(t, k.Name), s.repeated(table, k.Columns)})
		}
		for _, k := range t.Foreign {
			list = append(list, invariant{nameOf(t, k.Name), s.orphans(t, &k)})
		}
		for _, c := range t.Checks {
			list = append(list, invariant{nameOf(t, c.Name), "SELECT " + s.shown(t) + " FROM " + table + " WHERE NOT (" + oneLine(c.Condition) + ")"})
		}
	}
	return list
}

// oneLine returns a condition without line breaks, as an invariant has it.
func oneLine(condition string) string {
	return strings.Join(strings.FieldsFunc(condition, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}

// repeated returns the query for values of unique columns that are there twice. NULL is never the same.
func (s *Schema) repeated(table string, columns []string) string {
	list := s.list("", columns, ", ")
	var there []string
	for _, c := range columns {
		there = append(there, s.quoted(c)+" IS NOT NULL")
	}
	return "SELECT " + list + " FROM " + table + " WHERE " + strings.Join(there, " AND ") + " GROUP BY " + list + " HAVING COUNT(*) > 1"
}

// orphans returns the query for rows that refer to a row that is not there.
func (s *Schema) orphans(t *Table, k *Key) string {
	var same, there []string
	for i, c := range k.Columns {
		same = append(same, "o."+s.quoted(k.To[i])+" = t."+s.quoted(c))
		there = append(there, "t."+s.quoted(c)+" IS NOT NULL")
	}
	return "SELECT " + s.list("t.", k.Columns, ", ") + " FROM " + s.quoted(t.Name) + " t WHERE " + strings.Join(there, " AND ") +
		" AND NOT EXISTS (SELECT 1 FROM " + s.quoted(k.Other) + " o WHERE " + strings.Join(same, " AND ") + ")"
}

// shown returns the columns that identify a row.
func (s *Schema) shown(t *Table) string {
	if len(t.Primary) == 0 {
		return "*"
	}
	return s.list("", t.Primary, ", ")
}

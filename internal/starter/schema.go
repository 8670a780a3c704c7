// Package starter reads the schema of an existing database, and writes a first scenario for it: a script for each table,
// and the constraints as invariants. It changes nothing in the database.
package starter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/db"
)

// Schema holds the tables of a database, in the order of their names.
type Schema struct {
	Tables []*Table
	quote  byte
}

// Table is one table with its constraints.
type Table struct {
	Name    string
	Primary []string // its columns; none: there is no primary key
	Unique  []Key
	Foreign []Key
	Checks  []Check

	integers map[string]bool // columns
	low      string          // the least and the greatest value of Primary, if it is one integer
	high     string
}

// Key is a unique or a foreign key.
type Key struct {
	Name    string
	Columns []string
	Other   string   // the table that a foreign key refers to
	To      []string // its columns
}

// Check is a CHECK constraint.
type Check struct {
	Name      string
	Condition string // in SQL
}

// own begins the names of tables that this program makes.
const own = "stroppy_"

// Listed returns an error if a database, which need not be open, has no SQL or no catalog of its tables.
func Listed(database db.Database) error {
	_, isSQL := database.(db.SQL)
	if _, ok := database.(db.Cataloged); !ok || !isSQL {
		return errors.New("this database has no tables that can be listed: take one with SQL, or write the scenario by hand")
	}
	return nil
}

// Read reads the schema of an open database. It returns an error if the tables cannot be listed, or if there is none.
func Read(ctx context.Context, database db.Database) (*Schema, error) {
	if err := Listed(database); err != nil {
		return nil, err
	}
	sql, listed := database.(db.SQL), database.(db.Cataloged)
	session, err := sql.Session(ctx, db.SessionOptions{Mode: db.Interactive})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	c := listed.Catalog()
	s, r := &Schema{quote: c.Quote}, reader{ctx, session}
	for _, part := range []func(*reader, *db.Catalog) error{s.readColumns, s.readKeys, s.readChecks, s.readRanges} {
		if err := part(&r, c); err != nil {
			return nil, fmt.Errorf("read the schema: %w", err)
		}
	}
	if len(s.Tables) == 0 {
		return nil, errors.New("the schema has no table: create the tables first, or name another schema in the URL")
	}
	return s, nil
}

// reader asks questions.
type reader struct {
	ctx     context.Context
	session db.SQLSession
}

// rows calls do for each row of texts that a query returns.
func (r *reader) rows(query string, columns int, do func(row []string)) error {
	statement := &db.Statement{SQL: query, Columns: slices.Repeat([]db.Type{db.Text}, columns)}
	texts := make([]string, columns)
	return r.session.Query(r.ctx, statement, nil, func(row []db.Value) error {
		for i := range row {
			texts[i] = string(row[i].Text)
		}
		do(texts)
		return nil
	})
}

func (s *Schema) table(name string) *Table {
	for _, t := range s.Tables {
		if t.Name == name {
			return t
		}
	}
	return nil
}

func (s *Schema) readColumns(r *reader, c *db.Catalog) error {
	return r.rows(c.Columns, 3, func(row []string) {
		if strings.HasPrefix(row[0], own) {
			return
		}
		t := s.table(row[0])
		if t == nil {
			t = &Table{Name: row[0], integers: map[string]bool{}}
			s.Tables = append(s.Tables, t)
		}
		t.integers[row[1]] = row[2] == "yes"
	})
}

func (s *Schema) readKeys(r *reader, c *db.Catalog) error {
	return r.rows(c.Keys, 6, func(row []string) {
		t := s.table(row[0])
		if t == nil {
			return
		}
		list := &t.Unique
		switch row[2] {
		case "p":
			t.Primary = append(t.Primary, row[3])
			return
		case "f":
			list = &t.Foreign
		}
		if n := len(*list); n == 0 || (*list)[n-1].Name != row[1] {
			*list = append(*list, Key{Name: row[1], Other: row[4]})
		}
		k := &(*list)[len(*list)-1]
		k.Columns, k.To = append(k.Columns, row[3]), append(k.To, row[5])
	})
}

func (s *Schema) readChecks(r *reader, c *db.Catalog) error {
	return r.rows(c.Checks, 3, func(row []string) {
		t := s.table(row[0])
		switch {
		case t == nil:
		case c.CreateText:
			t.Checks = checksIn(row[2])
		case c.Quote == '`':
			t.Checks = append(t.Checks, Check{row[1], plainQuotes(row[2])})
		default:
			t.Checks = append(t.Checks, Check{row[1], row[2]})
		}
	})
}

// plainQuotes doubles the quotes in texts that have backslashes before them. If the whole condition is shown as the
// inside of a text, it also removes that level of backslashes.
func plainQuotes(condition string) string {
	if i := strings.IndexByte(condition, '\''); i > 0 && condition[i-1] == '\\' {
		condition = strings.NewReplacer(`\\`, `\`, `\'`, `'`).Replace(condition)
	}
	return strings.ReplaceAll(condition, `\'`, `''`)
}

// readRanges reads the least and the greatest value of each primary key that is one integer.
func (s *Schema) readRanges(r *reader, _ *db.Catalog) error {
	for _, t := range s.Tables {
		if len(t.Primary) != 1 || !t.integers[t.Primary[0]] {
			continue
		}
		key, name := s.quoted(t.Primary[0]), s.quoted(t.Name)
		statement := &db.Statement{
			SQL:     "SELECT COALESCE(MIN(" + key + "), 0), COALESCE(MAX(" + key + "), 0) FROM " + name,
			Columns: []db.Type{db.Integer, db.Integer},
		}
		err := r.session.Query(r.ctx, statement, nil, func(row []db.Value) error {
			t.low, t.high = fmt.Sprint(row[0].Int), fmt.Sprint(row[1].Int)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// quoted returns a name in quotes.
func (s *Schema) quoted(name string) string {
	q := string(s.quote)
	return q + strings.ReplaceAll(name, q, q+q) + q
}

// list returns names in quotes, each behind a prefix, with a separator between them.
func (s *Schema) list(prefix string, names []string, separator string) string {
	var all []string
	for _, name := range names {
		all = append(all, prefix+s.quoted(name))
	}
	return strings.Join(all, separator)
}

// checksIn returns the CHECK constraints in a CREATE TABLE statement.
func checksIn(create string) (list []Check) {
	for at := 0; at < len(create); {
		switch c := create[at]; {
		case c == '\'' || c == '"' || c == '`' || c == '[':
			at += quotedLength(create[at:])
		case strings.HasPrefix(create[at:], "--"):
			at += lengthTo(create[at:], "\n")
		case strings.HasPrefix(create[at:], "/*"):
			at += lengthTo(create[at:], "*/")
		case isWord(c):
			word := create[at : at+wordLength(create[at:])]
			at += len(word)
			if strings.EqualFold(word, "check") {
				rest := strings.TrimLeft(create[at:], " \t\r\n")
				if inner, ok := bracketed(rest); ok {
					list = append(list, Check{fmt.Sprintf("check %d", len(list)+1), inner})
					at = len(create) - len(rest) + len(inner) + 2
				}
			}
		default:
			at++
		}
	}
	return list
}

// bracketed returns the text in the brackets with which text begins.
func bracketed(text string) (inner string, ok bool) {
	depth := 0
	for at := 0; at < len(text); {
		switch c := text[at]; {
		case c == '\'' || c == '"' || c == '`' || c == '[':
			at += quotedLength(text[at:])
			continue
		case c == '(':
			depth++
		case c == ')':
			depth--
		}
		if at++; depth == 0 {
			return text[min(1, at-1) : at-1], at > 1
		}
	}
	return "", false
}

// quotedLength returns the length of the quoted text with which text begins. A quote in it is doubled.
func quotedLength(text string) int {
	end := text[0]
	if end == '[' {
		end = ']'
	}
	for at := 1; at < len(text); at++ {
		if text[at] != end {
			continue
		}
		if at+1 == len(text) || text[at+1] != end || end == ']' {
			return at + 1
		}
		at++
	}
	return len(text)
}

// lengthTo returns the length of text up to the end of mark.
func lengthTo(text, mark string) int {
	if i := strings.Index(text, mark); i >= 0 {
		return i + len(mark)
	}
	return len(text)
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func wordLength(text string) int {
	for i := range len(text) {
		if !isWord(text[i]) {
			return i
		}
	}
	return len(text)
}

// nameOf returns the name of a constraint for people. A colon would end it.
func nameOf(t *Table, constraint string) string { return plainName(t.Name + "." + constraint) }

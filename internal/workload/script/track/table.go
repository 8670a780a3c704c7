// Package track rewrites statements of a user so that rows count their versions and name their last writer. It changes
// statements of a few shapes, and never guesses: any other statement stays as it is, with the reason.
package track

import (
	"fmt"
	"strings"
)

// The columns that a tracked table gets.
const (
	Version = "stroppy_version"
	Writer  = "stroppy_writer"
)

// Table is a tracked table with the column that is its key.
type Table struct {
	Name string `json:"table"` // as SQL has it
	Key  string `json:"key"`
}

// Parse reads a table as in accounts(id).
func Parse(s string) (t Table, err error) {
	tokens, ok := tokenize(s)
	n := len(tokens)
	if !ok || n < 4 || tokens[n-3].kind != '(' || tokens[n-1].kind != ')' || !name(tokens[n-2]) {
		return t, fmt.Errorf("%q needs a table and its key, such as accounts(id)", s)
	}
	for i, t := range tokens[:n-3] {
		if i%2 == 0 != name(t) || i%2 == 1 && t.kind != '.' || i == n-4 && !name(t) {
			return Table{}, fmt.Errorf("%q needs a table and its key, such as accounts(id)", s)
		}
	}
	return Table{
		Name: strings.TrimSpace(s[:tokens[n-3].from]), Key: s[tokens[n-2].from:tokens[n-2].to],
	}, nil
}

func name(t token) bool { return t.kind == word || t.kind == quoted }

// base returns the name of the table without its schema and quotes.
func (t *Table) base() string { return last(t.Name) }

func (t *Table) key() string { return last(t.Key) }

func last(name string) string {
	tokens, _ := tokenize(name)
	return tokens[len(tokens)-1].text
}

func (t *Table) String() string { return t.Name + "(" + t.Key + ")" }

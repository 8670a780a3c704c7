package script

import (
	"fmt"
	"regexp"
	"strings"

	"stroppy/internal/db"
	"stroppy/internal/script"
)

// statements holds the statements of one script for a database.
type statements struct {
	at     []*db.Statement // by step; nil for steps without one
	writes bool            // the script writes, or may write
	locks  bool            // it locks what it reads, which a read-only transaction may not do
	parts  int             // its transactions that write
	plan   plan            // of its statements on tracked tables
}

// newStatements makes the statements of a script. It returns an error if the workload cannot run one.
func newStatements(s *script.Script, d *db.Dialect) (t statements, err error) {
	t.at = make([]*db.Statement, len(s.Steps))
	open, counted := false, false // in a transaction, which is counted in parts
	begun, branches := 0, false   // the line of the latest BEGIN, and whether the order of steps may differ
	for i := range s.Steps {
		step := &s.Steps[i]
		switch step.Op {
		case script.JumpUnless:
			branches = true
		case script.StartPipeline:
			counted = false
		case script.Execute:
			q := step.SQL
			if err := supported(s.Name, step, open, branches); err != nil {
				return t, err
			}
			switch q.Control {
			case script.Begin:
				open, counted, begun = true, false, step.Line
			case script.Commit, script.Rollback:
				open = false
			default:
				t.at[i] = newStatement(q, d)
				t.locks = t.locks || locking.MatchString(t.at[i].SQL)
				if q.Writes == script.No {
					continue
				}
				t.writes = true
				if !open || !counted {
					t.parts++
				}
				counted = true
			}
		}
	}
	if open && !branches { // otherwise the run finds out
		return t, fmt.Errorf("%s:%d: the transaction has no end: write COMMIT at its end", s.Name, begun)
	}
	return t, nil
}

// locking matches a SELECT that locks the rows.
var locking = regexp.MustCompile(`(?i)\bFOR\s+(NO\s+KEY\s+UPDATE|UPDATE|SHARE|KEY\s+SHARE)\b`)

func newStatement(q *script.SQL, d *db.Dialect) *db.Statement {
	statement := &db.Statement{SQL: q.Text(d.Placeholder), Parts: q.Parts, Free: q.Store != script.NoStore || returnsRows[q.Keyword]}
	for range q.Params {
		statement.Params = append(statement.Params, db.Untyped)
	}
	return statement
}

// returnsRows holds the first words of statements that return rows.
var returnsRows = map[string]bool{"SELECT": true, "WITH": true, "VALUES": true, "TABLE": true, "SHOW": true, "EXPLAIN": true}

// supported returns an error for a statement that the workload cannot run as it is written. With branches before it, the
// run finds out whether a transaction is open.
func supported(file string, step *script.Step, open, branches bool) error {
	q := step.SQL
	refuse := func(why string) error { return fmt.Errorf("%s:%d: %s", file, step.Line, why) }
	words := strings.Fields(strings.ToUpper(strings.Join(q.Parts, "?")))
	switch {
	case len(q.Joined) > 0:
		return refuse("statements joined by \\; are not supported: end each with a semicolon")
	case q.Control == script.Begin && open && !branches:
		return refuse("a transaction is open already: end it before the next BEGIN")
	case q.Control == script.Begin && len(words) > 1 && !plain(words[1:], "TRANSACTION", "WORK"):
		return refuse("BEGIN with options is not supported: give the isolation level with --isolation")
	case (q.Control == script.Commit || q.Control == script.Rollback) && !open && !branches:
		return refuse(words[0] + " without a transaction: begin one with BEGIN")
	case (q.Control == script.Commit || q.Control == script.Rollback) && len(words) > 1 && !plain(words[1:], "TRANSACTION", "WORK"):
		return refuse(words[0] + " with options is not supported: leave the options out")
	}
	return nil
}

// plain reports whether words has one word, and it is one of these.
func plain(words []string, these ...string) bool {
	if len(words) != 1 {
		return false
	}
	for _, word := range these {
		if words[0] == word {
			return true
		}
	}
	return false
}

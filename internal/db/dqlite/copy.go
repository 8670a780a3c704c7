//go:build dqlite

package dqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/canonical/go-dqlite/client"
	_ "github.com/mattn/go-sqlite3" // which the client has too

	"stroppy/internal/db"
)

// nodeCopy is what one node holds, read from a copy of its files as of the moment at
// which it was opened. It satisfies db.SQL for reading.
type nodeCopy struct {
	dir string
	db  *sql.DB
}

var _ db.SQL = (*nodeCopy)(nil)

// openCopy downloads the files of the database from one node, which need not lead.
func openCopy(ctx context.Context, c config) (_ db.Database, err error) {
	op := "read what the dqlite node " + c.nodes[0] + " holds"
	unavailable := func(err error) error { return &db.Error{Class: db.Unavailable, Op: op, Err: err} }
	limited, cancel := context.WithTimeout(ctx, 20*c.timeout) // a copy is large
	defer cancel()
	node, err := client.New(limited, c.nodes[0])
	if err != nil {
		return nil, unavailable(fmt.Errorf("%w: %s", err, db.CheckServer))
	}
	defer node.Close()
	files, err := node.Dump(limited, c.database)
	if err != nil {
		return nil, unavailable(err)
	}
	n := &nodeCopy{}
	if n.dir, err = os.MkdirTemp("", "stroppy-dqlite-"); err != nil {
		return nil, unavailable(err)
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(n.dir, filepath.Base(f.Name)), f.Data, 0o600); err != nil {
			return nil, unavailable(errors.Join(err, n.Close()))
		}
	}
	if n.db, err = sql.Open("sqlite3", filepath.Join(n.dir, c.database)); err != nil {
		return nil, unavailable(errors.Join(err, n.Close()))
	}
	return n, nil
}

func (n *nodeCopy) Dialect() *db.Dialect                  { return dialect() }
func (n *nodeCopy) Claim(name string) (db.Claim, error)   { return isolations.Claim(name) }
func (n *nodeCopy) Limits() db.Limits                     { return db.Limits{} }
func (n *nodeCopy) Exec(context.Context, string) error    { return errReadOnly }
func (n *nodeCopy) Info(context.Context) (db.Info, error) { return db.Info{Name: "dqlite"}, nil }

// Close removes the copy.
func (n *nodeCopy) Close() error {
	var err error
	if n.db != nil {
		err = n.db.Close()
	}
	return errors.Join(err, os.RemoveAll(n.dir))
}

var errReadOnly = db.Fatalf("write to one node", "read=node in the address reads a copy: leave it out to write")

// Session implements db.SQL: it can query.
func (n *nodeCopy) Session(context.Context, db.SessionOptions) (db.SQLSession, error) {
	return &copySession{n: n}, nil
}

type copySession struct{ n *nodeCopy }

func (s *copySession) Begin(context.Context, bool) error { return errReadOnly }
func (s *copySession) Do(context.Context, *db.Statement, []db.Value) (int, error) {
	return 0, errReadOnly
}
func (s *copySession) Flush(context.Context) error    { return errReadOnly }
func (s *copySession) Result(int) *db.Result          { return &db.Result{} }
func (s *copySession) Commit(context.Context) error   { return errReadOnly }
func (s *copySession) Rollback(context.Context) error { return nil }
func (s *copySession) Reset(context.Context) error    { return nil }
func (s *copySession) Close() error                   { return nil }

// Query implements db.SQLSession.
func (s *copySession) Query(ctx context.Context, statement *db.Statement, args []db.Value, row func([]db.Value) error) error {
	op := "run " + db.Shorten(statement.SQL)
	bound := make([]any, len(args))
	for i, a := range args {
		switch {
		case a.Null:
		case statement.Params[i] == db.Text:
			bound[i] = string(a.Text)
		default:
			bound[i] = a.Int
		}
	}
	rows, err := s.n.db.QueryContext(ctx, statement.SQL, bound...)
	if err != nil {
		return &db.Error{Class: db.Fatal, Op: op, Err: err}
	}
	defer rows.Close()
	cells, targets, values := make([]any, len(statement.Columns)), make([]any, len(statement.Columns)), make([]db.Value, len(statement.Columns))
	for i := range cells {
		targets[i] = &cells[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return &db.Error{Class: db.Fatal, Op: op, Err: err}
		}
		for i, c := range cells {
			if values[i], err = value(statement.Columns[i], c); err != nil {
				return &db.Error{Class: db.Fatal, Op: op, Err: err}
			}
		}
		if err := row(values); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return &db.Error{Class: db.Fatal, Op: op, Err: err}
	}
	return nil
}

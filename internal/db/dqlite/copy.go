//go:build dqlite

package dqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/canonical/go-dqlite/client"

	"stroppy/internal/db"
	"stroppy/internal/db/sqlite"
)

// nodeCopy is the content of one node, read by SQLite from a copy of its files at the time of opening.
type nodeCopy struct {
	db.SQL // the copy
	dir    string
}

// openCopy downloads the database files from one node, which need not be the leader.
func openCopy(ctx context.Context, c config) (_ db.Database, err error) {
	unavailable := func(err error) error {
		return &db.Error{Class: db.Unavailable, Op: "read what the dqlite node " + c.nodes[0] + " holds", Err: err}
	}
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
		if errWrite := os.WriteFile(filepath.Join(n.dir, filepath.Base(f.Name)), f.Data, 0o600); errWrite != nil && err == nil {
			err = unavailable(errWrite)
		}
	}
	if err == nil {
		n.SQL, err = sqlite.Open(ctx, "sqlite:"+filepath.Join(n.dir, c.database))
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(n.dir))
	}
	return n, nil
}

func (n *nodeCopy) Dialect() *db.Dialect                { return dialect() }
func (n *nodeCopy) Claim(name string) (db.Claim, error) { return isolations.Claim(name) }
func (n *nodeCopy) Exec(context.Context, string) error  { return errReadOnly }

func (n *nodeCopy) Info(context.Context) (db.Info, error) { return db.Info{Name: "dqlite"}, nil }

func (n *nodeCopy) Close() error { return errors.Join(n.SQL.Close(), os.RemoveAll(n.dir)) }

var errReadOnly = db.Fatalf("write to one node", "read=node in the address reads a copy: leave it out to write")

// Session implements db.SQL for reads of the copy.
func (n *nodeCopy) Session(ctx context.Context, options db.SessionOptions) (db.SQLSession, error) {
	s, err := n.SQL.Session(ctx, options)
	if err != nil {
		return nil, err
	}
	return copySession{s}, nil
}

type copySession struct{ db.SQLSession }

func (s copySession) Begin(ctx context.Context, readOnly bool) error {
	if !readOnly {
		return errReadOnly
	}
	return s.SQLSession.Begin(ctx, readOnly)
}

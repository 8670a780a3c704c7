//go:build dqlite

package dqlite

import (
	"context"
	"fmt"
	"os"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/db"
	dqlitedb "stroppy/internal/db/dqlite"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == NodeCommand { // this program, started as a node
		if err := Serve(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// teller inserts numbers on its own session.
type teller struct {
	db.SQLSession
	database db.Database
}

var paid = &db.Statement{SQL: "INSERT INTO paid VALUES (?)", Params: []db.Type{db.Text}}

func (t teller) Pay(ctx context.Context, id string) error {
	if err := t.Begin(ctx, false); err != nil {
		return err
	}
	if _, err := t.Do(ctx, paid, []db.Value{{Text: []byte(id)}}); err != nil {
		return err
	}
	return t.Commit(ctx)
}

func (t teller) Close() { _, _ = t.SQLSession.Close(), t.database.Close() }

func kind() clustertest.Kind {
	return clustertest.Kind{
		Engine: "dqlite", Launch: clustertest.Launcher(Start), LeaderOnly: true,
		Prepare: func(ctx context.Context, c cluster.Local) error {
			d, err := dqlitedb.Open(ctx, c.URL())
			if err != nil {
				return err
			}
			return d.(db.SQL).Exec(ctx, "CREATE TABLE IF NOT EXISTS paid (id TEXT PRIMARY KEY)")
		},
		Teller: func(ctx context.Context, c cluster.Local, i, try int) (clustertest.Teller, error) {
			d, err := dqlitedb.Open(ctx, c.URL()+"?timeout=2s")
			if err != nil {
				return nil, err
			}
			s, err := d.(db.SQL).Session(ctx, db.SessionOptions{Mode: db.Interactive})
			return teller{s, d}, err
		},
		Holds: func(ctx context.Context, c cluster.Local, number int) (map[string]string, error) {
			d, err := dqlitedb.Open(ctx, c.NodeURL(number))
			if err != nil {
				return nil, err
			}
			defer d.Close()
			s, err := d.(db.SQL).Session(ctx, db.SessionOptions{Mode: db.Interactive})
			if err != nil {
				return nil, err
			}
			held := map[string]string{}
			return held, s.Query(ctx, &db.Statement{SQL: "SELECT id FROM paid", Columns: []db.Type{db.Text}}, nil, func(row []db.Value) error {
				held[string(row[0].Text)] = ""
				return nil
			})
		},
	}
}

// TestSingleNodeRestarts checks that a cluster of one node keeps all payments when it is killed, paused and
// restarted.
func TestSingleNodeRestarts(t *testing.T) { kind().One(t, nil) }

// TestClusterKeepsPaymentsUnderAllFaults checks that a cluster keeps all acknowledged payments through each kind
// of fault.
func TestClusterKeepsPaymentsUnderAllFaults(t *testing.T) {
	kind().Hurt(t, kind().Start(t, cluster.Options{Nodes: 3}))
}

func TestStartRejectsInvalidOptions(t *testing.T) {
	kind().Refuses(t, nil,
		clustertest.Refusal{Query: "timeout=1s", Says: "dqlite has no parameters"},
		clustertest.Refusal{Options: cluster.Options{Nodes: 3, FaultFS: true}, Says: "disk faults"})
}

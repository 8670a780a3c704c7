//go:build dqlite

package dqlite

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"

	"github.com/canonical/go-dqlite/client"
	"github.com/canonical/go-dqlite/driver"

	"stroppy/internal/cluster/wait"
)

// barrierDatabase is an internal database, beside the one in the URL.
const barrierDatabase = "stroppy-barrier"

// catchUp returns nil if all nodes have applied all that was committed before the call. dqlite does not report the
// progress of a node. So catchUp writes a mark and looks for it in each node's data: all nodes apply one log in
// order.
func (c *Cluster) catchUp(ctx context.Context) error {
	mark := rand.Text()
	if err := c.write(ctx, mark); err != nil {
		return fmt.Errorf("write a mark for all nodes to apply: %w", err)
	}
	for _, n := range c.List() {
		if err := n.applied(ctx, mark); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) write(ctx context.Context, mark string) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	store, err := c.store(ctx, func(*node) bool { return true })
	if err != nil {
		return err
	}
	d, err := driver.New(store, driver.WithLogFunc(quiet))
	if err != nil {
		return err
	}
	connector, err := d.OpenConnector(barrierDatabase)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	for _, statement := range []string{
		"CREATE TABLE IF NOT EXISTS barrier (id INTEGER PRIMARY KEY, mark TEXT)",
		"INSERT OR REPLACE INTO barrier VALUES (1, '" + mark + "')",
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// applied waits until the node has the mark.
func (n *node) applied(ctx context.Context, mark string) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	conn, err := client.New(ctx, n.address)
	if err != nil {
		return fmt.Errorf("%s does not answer: %w", n.Name(), err)
	}
	defer conn.Close()
	return wait.Retry(ctx, func() error {
		files, err := conn.Dump(ctx, barrierDatabase)
		if err != nil {
			return fmt.Errorf("read the data of %s: %w", n.Name(), err)
		}
		for _, f := range files {
			if bytes.Contains(f.Data, []byte(mark)) {
				return nil
			}
		}
		return fmt.Errorf("%s has not applied all commits", n.Name())
	})
}

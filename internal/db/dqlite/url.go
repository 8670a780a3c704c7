// Package dqlite drives dqlite, SQLite replicated by Raft, by Canonical's Go client.
//
// The client brings C libraries with it, so that the driver is there only where
// Stroppy was built with the tag dqlite; without it Open says what to install and
// how to build.
//
// An address is dqlite://HOST:PORT,HOST:PORT[/DATABASE][?timeout=T&read=node]: the
// nodes, the file that is the database, and how long a call may take. With
// read=node what one node holds is read from that node alone, as a copy, which any
// node gives; everything else is asked of the leader.
package dqlite

import (
	"strings"
	"time"

	"stroppy/internal/db/address"
)

const (
	// defaultTimeout bounds one call. A leader that is frozen or cut off keeps its
	// clients waiting for as long.
	defaultTimeout  = 3 * time.Second
	defaultDatabase = "bank"
)

// config is what a URL says.
type config struct {
	nodes    []string // host:port
	database string
	timeout  time.Duration // of one call
	copy     bool          // read=node
}

// style is how a dqlite URL is written; 9000 is the port that dqlite's own programs take.
var style = address.Style{Product: "dqlite", Server: "node", Port: "9000", Form: "dqlite://HOST:PORT,HOST:PORT"}

// parseURL reads an address.
func parseURL(text string) (config, error) {
	c := config{timeout: defaultTimeout, database: defaultDatabase}
	rest, ok := strings.CutPrefix(text, "dqlite://")
	if !ok {
		return c, style.Errorf("it does not begin with dqlite://")
	}
	if err := style.Whole(rest); err != nil {
		return c, err
	}
	rest, query, _ := strings.Cut(rest, "?")
	if strings.Contains(rest, "@") {
		return c, style.Errorf("dqlite knows no users and no passwords: write %s", style.Form)
	}
	servers, database, _ := strings.Cut(rest, "/")
	if database != "" {
		if strings.Trim(database, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != "" {
			return c, style.Errorf("%q is no name of a database: it has letters, digits, and the marks _ - .", database)
		}
		c.database = database
	}
	var err error
	if c.nodes, err = style.Servers(servers); err != nil {
		return c, err
	}
	values, err := style.Parameters(query, []string{"timeout", "read"})
	if err != nil {
		return c, err
	}
	if values.Has("read") {
		if c.copy = true; values.Get("read") != "node" || len(c.nodes) != 1 {
			return c, style.Errorf("read=node, which reads from one node alone, stands behind the address of one node")
		}
	}
	return c, style.Duration(values, "timeout", time.Millisecond, &c.timeout)
}

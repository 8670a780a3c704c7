// Package dqlite drives dqlite, SQLite replicated by Raft, by Canonical's Go client.
//
// The client needs C libraries, so Stroppy must be built with the tag dqlite. Without the tag, Open returns an error
// that describes the installation and the build.
//
// An address is dqlite://HOST:PORT,HOST:PORT[/DATABASE][?timeout=T&read=node]: the nodes, the name of the database,
// and the time-out of a call. With read=node a copy of one node's data is read, which any node can give. Everything
// else goes to the leader.
package dqlite

import (
	"errors"
	"strings"
	"time"

	"stroppy/internal/db/address"
)

type config struct {
	nodes    []string // host:port
	database string
	timeout  time.Duration // of one call, for which a frozen leader keeps its clients waiting
	copy     bool          // read=node
}

// style describes the URLs of dqlite. 9000 is the port of dqlite's own programs.
var style = address.Style{Product: "dqlite", Server: "node", Port: "9000", Form: "dqlite://HOST:PORT,HOST:PORT"}

// readURL is parseURL with the error of Open.
func readURL(url string) (config, error) { return address.Read("open dqlite", url, parseURL) }

func parseURL(text string) (config, error) {
	c := config{timeout: 3 * time.Second, database: "stroppy"}
	u, err := style.ParseURL(text, address.Options{
		"read": func(value string) error {
			if c.copy = true; value != "node" {
				return errors.New("is not read=node, which reads from the address of one node alone")
			}
			return nil
		},
		"timeout": address.Time(&c.timeout, time.Millisecond),
	})
	c.nodes = u.Servers
	switch {
	case u.Account:
		return c, style.Errorf("dqlite knows no users and no passwords: write %s", style.Form)
	case err != nil:
		return c, err
	case strings.Trim(u.Path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != "":
		return c, style.Errorf("%q is no name of a database: it has letters, digits, and the marks _ - .", u.Path)
	case c.copy && len(c.nodes) > 1:
		return c, style.Errorf("read=node, which reads from one node alone, stands behind the address of one node")
	case u.Path != "":
		c.database = u.Path
	}
	return c, nil
}

package kv

import (
	"fmt"

	"stroppy/internal/db"
)

// checkValues says in one sentence whether a database cannot hold values as large as
// asked for.
func (c *Config) checkValues(database db.Database) error {
	l := database.Limits()
	most := uint64(l.Value)
	if most == 0 {
		return nil
	}
	if commit := uint64(l.Commit); commit > c.KeySize && commit-c.KeySize < most {
		most = commit - c.KeySize
	}
	if c.ValueHigh > most {
		return fmt.Errorf("value-size is up to %d bytes, and this database takes values of at most %d here: take a smaller one", c.ValueHigh, most)
	}
	return nil
}

// capped is a store to whose load a transaction has fewer writes than it may have,
// so that it does not become too large.
type capped struct {
	db.KV
	writes int
}

func (c capped) Limits() db.Limits {
	l := c.KV.Limits()
	l.Writes = c.writes
	return l
}

// entryBytes is what a store may add to a key and a value in a request.
const entryBytes = 64

// forLoad returns the database as a load uses it: a transaction writes as many records
// as fit into one commit, and how far the load has come.
func (c *Config) forLoad(database db.KV) db.KV {
	l := database.Limits()
	if l.Commit == 0 {
		return database
	}
	records := uint64(l.Commit) / (c.KeySize + c.ValueHigh + entryBytes)
	return capped{database, min(l.Writes, int(max(records, 2)))}
}

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

// entryBytes is what a store may add to a key and a value in a request.
const entryBytes = 64

// loadWrites returns how many writes a transaction of a load has: as many records as
// fit into one commit, and how far the load has come.
func (c *Config) loadWrites(l db.Limits) int {
	if l.Commit == 0 {
		return l.Writes
	}
	records := uint64(l.Commit) / (c.KeySize + c.ValueHigh + entryBytes)
	return min(l.Writes, int(max(records, 2)))
}

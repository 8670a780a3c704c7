package postgres

import (
	"fmt"

	"stroppy/internal/db"
	"stroppy/internal/isolation"
)

const repeatableRead = "repeatable read"

// levels are PostgreSQL's names for isolation and what its documentation
// promises of each: 13.2, "Transaction Isolation". Read uncommitted behaves as
// read committed; repeatable read is snapshot isolation.
var levels = []struct {
	name  string
	level isolation.Level
}{
	{"read uncommitted", isolation.ReadCommitted},
	{"read committed", isolation.ReadCommitted},
	{repeatableRead, isolation.SnapshotIsolation},
	{"serializable", isolation.Serializable},
}

const claimSource = "PostgreSQL documentation, 13.2 Transaction Isolation"

// Claim says what PostgreSQL's documentation promises.
func (d *Database) Claim(name string) (db.Claim, error) {
	if name == "" {
		name = d.isolation
	}
	own, err := isolationName(name)
	if err != nil {
		return db.Claim{}, err
	}
	for _, l := range levels {
		if l.name == own {
			return db.Claim{Isolation: own, Level: l.level, Source: claimSource}, nil
		}
	}
	return db.Claim{}, fmt.Errorf("no promise is known for the isolation %q", own)
}

// isolationName returns PostgreSQL's spelling of an isolation.
func isolationName(name string) (string, error) {
	names := make([]string, len(levels))
	for i, l := range levels {
		names[i] = l.name
	}
	return db.IsolationName("PostgreSQL", name, names)
}

package mysql

import (
	"stroppy/internal/db"
	"stroppy/internal/isolation"
)

const (
	readUncommitted = "read uncommitted"
	readCommitted   = "read committed"
	repeatableRead  = "repeatable read"
	serializable    = "serializable"
)

// Isolations lists the names of SET TRANSACTION in lower case. Their promises depend on the server.
var Isolations = db.Isolations{
	Product: "InnoDB",
	Levels:  []db.NamedLevel{{Name: readUncommitted}, {Name: readCommitted}, {Name: repeatableRead}, {Name: serializable}},
}

// These pages document the promises.
const (
	sourceMySQL    = "MySQL Reference Manual, InnoDB Transaction Isolation Levels, https://dev.mysql.com/doc/refman/8.4/en/innodb-transaction-isolation-levels.html"
	sourceMariaDB  = "MariaDB documentation, SET TRANSACTION, https://mariadb.com/docs/server/reference/sql-statements/administrative-sql-statements/set-commands/set-transaction"
	sourceSnapshot = "MariaDB documentation, innodb_snapshot_isolation, https://mariadb.com/docs/server/server-usage/storage-engines/innodb/innodb-system-variables#innodb_snapshot_isolation"
	sourceGalera   = "Galera Cluster documentation, Isolation Levels, https://galeracluster.com/library/documentation/isolation-levels.html"
	sourceGroup    = "MySQL Reference Manual, Group Replication Limitations, https://dev.mysql.com/doc/refman/8.4/en/group-replication-limitations.html"
)

// IsolationNames implements db.Isolated.
func (*Database) IsolationNames() []string { return Isolations.IsolationNames() }

// Claim returns the documented promise of the server that was found at Open.
func (d *Database) Claim(name string) (db.Claim, error) {
	if name == "" {
		name = d.isolation
	}
	own, err := Isolations.Name(name)
	if err == nil {
		err = d.server.refuses(own)
	}
	if err != nil {
		return db.Claim{}, err
	}
	return d.server.claim(own), nil
}

// claim returns the level of an isolation.
//
// At REPEATABLE READ, InnoDB reads from one snapshot but writes to the newest version: writing back a value
// that was read overwrites concurrent commits. So it promises only read committed, unless
// innodb_snapshot_isolation makes such a write fail with error 1020; then it is documented as snapshot
// isolation. Some versions break that: some lose about one update in 150,000 (MDEV-39263), and a locking
// statement by an index skips a row that left its predicate (MDEV-40092).
//
// In Galera, a level holds between nodes as far as it holds on each, and SERIALIZABLE only between
// transactions of one node. Between nodes, the first committer wins; within a node, only with
// innodb_snapshot_isolation. Group Replication refuses SERIALIZABLE or does not enforce it between members.
// There, group_replication_consistency determines how recent reads are; it is shown with the source.
func (s *server) claim(name string) db.Claim {
	c := db.Claim{Isolation: name, Level: isolation.ReadCommitted, Source: sourceMySQL}
	if s.product == mariaDB {
		c.Source = sourceMariaDB
	}
	if s.galera {
		c.Source = sourceGalera
	}
	if s.grouped() {
		c.Source = sourceGroup
	}
	if s.product == tiDB {
		c.Level, c.Source = s.claimTiDB(name)
		return c
	}
	switch name {
	case readUncommitted:
		c.Level = isolation.ReadUncommitted
	case repeatableRead:
		if s.on("innodb_snapshot_isolation") {
			c.Level, c.Source = isolation.SnapshotIsolation, sourceSnapshot
		}
	case serializable:
		switch {
		case s.replicates():
		default:
			c.Level = isolation.Serializable
		}
	}
	if level := s.variables[consistency]; s.grouped() && level != "" {
		c.Source += ", with " + consistency + " " + level
	}
	return c
}

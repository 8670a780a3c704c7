package mysql

import (
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/db"
	"stroppy/internal/isolation"
)

// product identifies the engine of a server.
type product uint8

const (
	mySQL product = iota + 1 // and what is built from its source, such as Percona Server
	mariaDB
	tiDB // which speaks MySQL's protocol and shares no code with it
)

func (p product) String() string {
	switch p {
	case mariaDB:
		return "MariaDB"
	case tiDB:
		return "TiDB"
	}
	return "MySQL"
}

// productOf parses the result of VERSION(): 11.8.3-MariaDB, 8.0.11-TiDB-v8.5.1, or a number with any suffix
// for MySQL and Percona Server.
func productOf(version string) product {
	switch lower := strings.ToLower(version); {
	case strings.Contains(lower, "mariadb"):
		return mariaDB
	case strings.Contains(lower, "-tidb-"):
		return tiDB
	}
	return mySQL
}

// versionComment is the variable in which builds from MySQL's source name themselves: "Percona Server (GPL),
// …" and "Percona XtraDB Cluster (GPL), …".
const versionComment = "version_comment"

// name returns the product name of the server, with its kind of replication.
func (s *server) name() string {
	name := s.product.String()
	percona := s.product == mySQL && strings.Contains(s.variables[versionComment], "Percona")
	if percona {
		name = "Percona Server"
	}
	switch {
	case percona && s.galera:
		return "Percona XtraDB Cluster"
	case s.galera:
		return name + " Galera Cluster"
	case s.grouped():
		return name + " Group Replication"
	}
	return name
}

// check refuses a server that ignores CHECK constraints: MySQL before 8.0.16, MariaDB before 10.2.1, TiDB
// before 7.2, and later TiDB versions if the constraints are off
// (https://dev.mysql.com/doc/refman/8.0/en/create-table-check-constraints.html,
// https://mariadb.com/docs/server/reference/sql-statements/data-definition/constraint,
// https://docs.pingcap.com/tidb/stable/constraints).
func (s *server) check() error {
	oldest := map[product][3]int{mySQL: {8, 0, 16}, mariaDB: {10, 2, 1}, tiDB: {7, 2, 0}}[s.product]
	own := s.version
	if s.product == tiDB {
		own = strings.TrimPrefix(own[strings.Index(strings.ToLower(own), "-tidb-")+len("-tidb-"):], "v")
	}
	var version [3]int
	if _, err := fmt.Sscanf(own, "%d.%d.%d", &version[0], &version[1], &version[2]); err != nil {
		return fmt.Errorf("its version %q cannot be read", s.version)
	}
	switch {
	case slices.Compare(version[:], oldest[:]) < 0:
		return fmt.Errorf("%s %s ignores CHECK constraints, which guard the balances: use version %d.%d.%d or later",
			s.product, s.version, oldest[0], oldest[1], oldest[2])
	case s.product == tiDB && !s.on(checkConstraints):
		return fmt.Errorf("it ignores CHECK constraints, which guard the balances: run SET GLOBAL %s = ON on it", checkConstraints)
	}
	return nil
}

// These variables determine the behavior of TiDB's transactions.
const (
	transactionMode  = "tidb_txn_mode" // pessimistic, or optimistic, which the empty text is too
	checkConstraints = "tidb_enable_check_constraint"
	noAutoRetry      = "tidb_disable_txn_auto_retry" // OFF: an optimistic transaction is tried again by the server
)

// These pages document TiDB's promises.
const (
	sourceTiDB            = "TiDB documentation, Transaction Isolation Levels, https://docs.pingcap.com/tidb/stable/transaction-isolation-levels"
	sourceTiDBPessimistic = "TiDB documentation, Pessimistic Transaction Mode, https://docs.pingcap.com/tidb/stable/pessimistic-transaction"
	sourceTiDBRetry       = "TiDB documentation, Optimistic Transaction Model, https://docs.pingcap.com/tidb/stable/optimistic-transaction"
)

// claimTiDB returns the level of an isolation on TiDB. For optimistic transactions, REPEATABLE READ is
// snapshot isolation: a conflicting commit fails. If the server retries such a transaction itself, an update
// may be lost. Pessimistic transactions, the default, read from their snapshot and write to the newest
// version, like InnoDB. READ COMMITTED exists only for pessimistic transactions; optimistic ones keep their
// snapshot. The other two isolations are refused unless tidb_skip_isolation_level_check is on, and are then
// REPEATABLE READ.
func (s *server) claimTiDB(name string) (isolation.Level, string) {
	switch mode := strings.ToLower(s.variables[transactionMode]); {
	case name == readUncommitted:
		return isolation.ReadUncommitted, sourceTiDB
	case mode == "pessimistic":
		return isolation.ReadCommitted, sourceTiDBPessimistic
	case s.variables[noAutoRetry] != "" && !s.on(noAutoRetry):
		return isolation.ReadCommitted, sourceTiDBRetry
	}
	return isolation.SnapshotIsolation, sourceTiDB
}

// shareLock returns the clause of a SELECT with a shared lock. FOR SHARE exists in MySQL 8.0 but not in
// MariaDB. TiDB refuses both forms, because it has no such lock
// (https://docs.pingcap.com/tidb/stable/system-variables#tidb_enable_noop_functions-new-in-v40).
func (s *server) shareLock() string {
	if s.product == tiDB {
		return ""
	}
	return " LOCK IN SHARE MODE"
}

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

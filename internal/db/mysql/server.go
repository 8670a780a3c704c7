package mysql

import (
	"cmp"
	"errors"
	"strings"

	"stroppy/internal/db"
)

type server struct {
	product   product
	version   string
	galera    bool
	variables map[string]string // as they are for a session of this URL
	status    map[string]string // of a Galera node
}

// shown lists the variables that matter for trust in the measurements: durability, logging, isolation, and
// sizes. Each server has some of them.
var shown = []string{
	"innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "binlog_format", "innodb_doublewrite", "innodb_flush_method",
	"transaction_isolation", "tx_isolation", "innodb_snapshot_isolation", "innodb_rollback_on_timeout",
	"innodb_deadlock_detect", "innodb_lock_wait_timeout", "read_only", "check_constraint_checks",
	"rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled", "group_replication_group_name",
	"group_replication_single_primary_mode", everywhere, consistency,
	transactionMode, checkConstraints, noAutoRetry,
	"wsrep_on", "wsrep_cluster_name", "wsrep_sync_wait", "wsrep_slave_threads", "wsrep_trx_fragment_size",
	"innodb_buffer_pool_size", "innodb_log_file_size", "max_connections",
}

// needed lists further variables that this driver uses.
var needed = []string{"local_infile", "sql_require_primary_key", "innodb_force_primary_key", versionComment}

// statuses lists the shown status variables of a Galera node.
var statuses = []string{"wsrep_provider_version", "wsrep_cluster_size", "wsrep_cluster_status", "wsrep_ready"}

func (c *link) ask() (*server, error) {
	row, err := c.row("SELECT VERSION()")
	if err != nil {
		return nil, err
	}
	s := &server{product: productOf(row[0]), version: row[0]}
	if s.variables, err = c.pairs("SHOW VARIABLES WHERE Variable_name IN ('" + strings.Join(append(needed, shown...), "', '") + "')"); err != nil {
		return nil, err
	}
	s.galera = s.on("wsrep_on")
	if s.galera {
		s.status, err = c.pairs("SHOW GLOBAL STATUS WHERE Variable_name IN ('" + strings.Join(statuses, "', '") + "')")
	}
	return s, err
}

// on reports whether a variable exists and is on.
func (s *server) on(name string) bool {
	value := strings.ToUpper(s.variables[name])
	return value == "ON" || value == "1"
}

// everywhere is the variable of a group with only primaries. It makes the members check for what only a
// single server can guarantee.
const everywhere = "group_replication_enforce_update_everywhere_checks"

// refuses returns the reason why the server accepts no writes at an isolation, or nil. The server itself
// reports a write at SERIALIZABLE like a write to a table without a primary key (3098,
// https://dev.mysql.com/doc/refman/8.4/en/group-replication-limitations.html).
func (s *server) refuses(isolation string) error {
	if isolation == serializable && s.grouped() && s.on(everywhere) {
		return db.Fatalf("choose the isolation", "a group whose members are all primaries takes no writes at %s (%s): take %s, or a group with one primary",
			serializable, everywhere, repeatableRead)
	}
	return nil
}

func (s *server) grouped() bool { return s.variables["group_replication_group_name"] != "" }

// replicates reports whether several servers accept writes and certify each other's, so that another server's
// transaction can roll back a running one.
func (s *server) replicates() bool { return s.galera || s.grouped() }

// isolation returns the default isolation of the server's sessions, as named by SET TRANSACTION.
func (s *server) isolation() (string, error) {
	value := cmp.Or(s.variables["transaction_isolation"], s.variables["tx_isolation"])
	if value == "" {
		return "", errors.New("it did not name its default isolation")
	}
	return Isolations.Name(value)
}

// keyless reports whether a table may lack a primary key until it is loaded. Galera and Group Replication
// need one in every table.
func (s *server) keyless() bool {
	return !s.replicates() && !s.on("sql_require_primary_key") && !s.on("innodb_force_primary_key")
}

// keyColumn returns a key column for a table without one, if the server needs it.
func (s *server) keyColumn() string {
	if s.keyless() {
		return ""
	}
	return "row_number_ BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY"
}

func (s *server) info() db.Info {
	info := db.Info{Name: s.name(), Version: s.version}
	for _, name := range shown {
		value, there := s.variables[name]
		if !there || strings.HasPrefix(name, "wsrep_") && !s.galera || strings.HasPrefix(name, "group_") && !s.grouped() {
			continue
		}
		info.Settings = append(info.Settings, db.Setting{Name: name, Value: value})
	}
	for _, name := range statuses {
		if value, there := s.status[name]; there {
			info.Settings = append(info.Settings, db.Setting{Name: name, Value: value})
		}
	}
	s.durability(&info)
	return info
}

// durability adds to an Info what the server promises about acknowledged commits.
func (s *server) durability(info *db.Info) {
	const manual = "https://dev.mysql.com/doc/refman/8.4/en/"
	info.Durable = manual + "mysql-acid.html"
	if flush, there := s.variables["innodb_flush_log_at_trx_commit"]; there && flush != "1" {
		info.Caveats = append(info.Caveats, db.Caveat{
			Setting: "innodb_flush_log_at_trx_commit=" + flush, Source: manual + "innodb-parameters.html", Cure: "innodb_flush_log_at_trx_commit=1",
			Quote: "Transactions for which logs have not been flushed can be lost in a crash.",
		})
	}
}

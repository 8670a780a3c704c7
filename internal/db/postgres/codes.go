package postgres

import (
	"errors"
	"strings"

	"stroppy/internal/db"
	"stroppy/internal/db/pgwire"
)

// codes maps meanings to SQLSTATE codes, and to two-character classes for codes that are not listed. The names are
// from the PostgreSQL documentation, Appendix A, "PostgreSQL Error Codes".
//
// A full disk or exhausted memory (53) and an I/O error (58) are Aborted. The server answered and has rolled back.
// Vacuum, the removal of old WAL or an operator can free space, so a later try may succeed. The run should show the
// outage rather than end.
var codes = map[pgwire.Meaning][]string{
	{Class: db.Unknown}: {"08007", "40003"}, // transaction_resolution_unknown, statement_completion_unknown
	{Class: db.Aborted}: {
		"53", "58", // insufficient resources (disk_full, out_of_memory), system error (io_error)
		"25P02", "40000", "40001", "40P01", // in_failed_sql_transaction, transaction_rollback, serialization_failure, deadlock_detected
		"55P03", "57014", "72000", // lock_not_available, query_canceled, snapshot_too_old
	},
	{Class: db.Constraint}: {
		"23000", "23P01", "40002", // integrity_constraint_violation, exclusion_violation, transaction_integrity_constraint_violation
	},
	{Class: db.Constraint, Constraint: db.ForeignKey}:  {"23001", "23503"}, // restrict_violation, foreign_key_violation
	{Class: db.Constraint, Constraint: db.NotNull}:     {"23502"},
	{Class: db.Constraint, Constraint: db.UniqueKey}:   {"23505"},
	{Class: db.Constraint, Constraint: db.CheckFailed}: {"23514"},
	{Class: db.Unavailable}: {
		"08", "53300", // connection exception, too_many_connections
		"25006",          // read_only_sql_transaction: this server is a standby now; a new connection may find the primary
		"25P03", "25P04", // idle_in_transaction_session_timeout, transaction_timeout: the session has ended
		"57P01", "57P02", "57P03", "57P05", // admin_shutdown, crash_shutdown, cannot_connect_now, idle_session_timeout
	},
	{Class: db.Fatal}: {
		"0A", "0L", "0P", // feature not supported, invalid grantor, invalid role specification
		"20", "21", "22", // case not found, cardinality violation, data exception
		"24", "25", "26", // invalid cursor state, transaction state, SQL statement name
		"28", "2B", "2F", // invalid authorization (28P01 invalid_password), dependent privilege descriptors still exist, SQL routine exception
		"34", "38", "39", // invalid cursor name, external routine exception, external routine invocation exception
		"3B", "3D", "3F", // savepoint exception, invalid catalog name (the database does not exist), invalid schema name
		"42", "44", // syntax error or access rule violation (42501 insufficient_privilege), WITH CHECK OPTION violation
		"54", "55", "57", // program limit exceeded, object not in prerequisite state, operator intervention (57P04 database_dropped)
		"F0", "P0", "XX", // configuration file error, PL/pgSQL error, internal error (damaged data or a damaged index)
	},
}

// errLocalOnly is the error of a commit whose acknowledgement has a warning.
var errLocalOnly = errors.New("the server has committed the transaction on itself but may not have " +
	"replicated it to the synchronous standby, so that a fail-over can lose it")

// errNoTransaction is the error of a COMMIT outside of a transaction, whose outcome is unknown.
var errNoTransaction = errors.New("the server reports that no transaction was open at COMMIT: " +
	"something between client and server has changed the connection")

// warning returns an error if a notice during a commit revokes its success.
//
// The function that waits for the synchronous standby warns if the wait is cancelled or the session is terminated
// (src/backend/replication/syncrep.c, SyncRepWaitForLSN). The text is in the server's language, but the function name
// in the notice is not.
func warning(routine, code, message, detail string) error {
	switch {
	case routine == "SyncRepWaitForLSN",
		strings.Contains(message, "wait for synchronous replication"),
		strings.Contains(detail, "already committed locally"):
		return errLocalOnly
	case code == "25P01": // no_active_sql_transaction
		return errNoTransaction
	}
	return nil
}

package postgres

import (
	"errors"
	"strings"

	"stroppy/internal/db"
	"stroppy/internal/db/pgwire"
)

// codes gives the meaning of SQLSTATE codes that differ from the rest of their
// class. The names are those of the PostgreSQL documentation, Appendix A,
// "PostgreSQL Error Codes".
var codes = map[string]pgwire.Meaning{
	"08007": {Class: db.Unknown},                                // transaction_resolution_unknown
	"23000": {Class: db.Constraint},                             // integrity_constraint_violation
	"23001": {Class: db.Constraint, Constraint: db.ForeignKey},  // restrict_violation
	"23502": {Class: db.Constraint, Constraint: db.NotNull},     // not_null_violation
	"23503": {Class: db.Constraint, Constraint: db.ForeignKey},  // foreign_key_violation
	"23505": {Class: db.Constraint, Constraint: db.UniqueKey},   // unique_violation
	"23514": {Class: db.Constraint, Constraint: db.CheckFailed}, // check_violation
	"23P01": {Class: db.Constraint},                             // exclusion_violation
	"25006": {Class: db.Unavailable},                            // read_only_sql_transaction: this server is a standby now; a new connection may find the primary
	"25P02": {Class: db.Aborted},                                // in_failed_sql_transaction
	"25P03": {Class: db.Unavailable},                            // idle_in_transaction_session_timeout: the session has ended
	"25P04": {Class: db.Unavailable},                            // transaction_timeout: the session has ended
	"40000": {Class: db.Aborted},                                // transaction_rollback
	"40001": {Class: db.Aborted},                                // serialization_failure
	"40002": {Class: db.Constraint},                             // transaction_integrity_constraint_violation
	"40003": {Class: db.Unknown},                                // statement_completion_unknown
	"40P01": {Class: db.Aborted},                                // deadlock_detected
	"53300": {Class: db.Unavailable},                            // too_many_connections
	"55P03": {Class: db.Aborted},                                // lock_not_available
	"57014": {Class: db.Aborted},                                // query_canceled
	"57P01": {Class: db.Unavailable},                            // admin_shutdown
	"57P02": {Class: db.Unavailable},                            // crash_shutdown
	"57P03": {Class: db.Unavailable},                            // cannot_connect_now
	"57P05": {Class: db.Unavailable},                            // idle_session_timeout
	"72000": {Class: db.Aborted},                                // snapshot_too_old
}

// classes gives the meaning of the codes of a class, their first two
// characters, from the same appendix.
//
// A full disk or exhausted memory (53) and an I/O error (58) are Aborted: the
// server answered and has surely rolled back, and space is freed by vacuum, by
// the removal of old WAL or by an operator, so a later try may succeed and the
// run shall show the outage, not end with it.
var classes = map[string]db.Class{
	"08": db.Unavailable, // connection exception
	"53": db.Aborted,     // insufficient resources: 53100 disk_full, 53200 out_of_memory
	"58": db.Aborted,     // system error: 58030 io_error

	"0A": db.Fatal, // feature not supported
	"0L": db.Fatal, // invalid grantor
	"0P": db.Fatal, // invalid role specification
	"20": db.Fatal, // case not found
	"21": db.Fatal, // cardinality violation
	"22": db.Fatal, // data exception
	"24": db.Fatal, // invalid cursor state
	"25": db.Fatal, // invalid transaction state
	"26": db.Fatal, // invalid SQL statement name
	"28": db.Fatal, // invalid authorization: 28P01 invalid_password
	"2B": db.Fatal, // dependent privilege descriptors still exist
	"2F": db.Fatal, // SQL routine exception
	"34": db.Fatal, // invalid cursor name
	"38": db.Fatal, // external routine exception
	"39": db.Fatal, // external routine invocation exception
	"3B": db.Fatal, // savepoint exception
	"3D": db.Fatal, // invalid catalog name: the database does not exist
	"3F": db.Fatal, // invalid schema name
	"42": db.Fatal, // syntax error or access rule violation: 42501 insufficient_privilege
	"44": db.Fatal, // WITH CHECK OPTION violation
	"54": db.Fatal, // program limit exceeded
	"55": db.Fatal, // object not in prerequisite state
	"57": db.Fatal, // operator intervention: 57P04 database_dropped
	"F0": db.Fatal, // configuration file error
	"P0": db.Fatal, // PL/pgSQL error
	"XX": db.Fatal, // internal error: damaged data or a damaged index
}

// errLocalOnly is why a commit whose acknowledgement has a warning is unknown.
var errLocalOnly = errors.New("the server has committed the transaction on itself but may not have " +
	"replicated it to the synchronous standby, so that a fail-over can lose it")

// errNoTransaction is why a COMMIT outside any transaction is unknown.
var errNoTransaction = errors.New("the server says that no transaction was open when COMMIT came: " +
	"something between client and server has changed the connection")

// warning says whether a notice that came while a commit was under way takes its
// success away, and why.
//
// The function that waits for the synchronous standby warns when the wait is
// cancelled or the session is terminated (src/backend/replication/syncrep.c,
// SyncRepWaitForLSN). The text is in the server's language, the function's name
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

package cockroach

import (
	"stroppy/internal/db"
	"stroppy/internal/db/pgwire"
)

// codes maps meanings to SQLSTATE codes, and to two-character classes for codes that are not listed. Codes
// shared with PostgreSQL are in the PostgreSQL documentation, Appendix A; CockroachDB's own are in its
// source, pkg/sql/pgwire/pgcode/codes.go.
// https://www.cockroachlabs.com/docs/stable/transaction-retry-error-reference explains 40001 with its reasons
// (RETRY_WRITE_TOO_OLD, RETRY_SERIALIZABLE, ABORT_REASON_…).
// https://www.cockroachlabs.com/docs/stable/common-errors explains 40003, 08, 57 and 53.
var codes = map[pgwire.Meaning][]string{
	{Class: db.Unknown}: {"08007", "40003"}, // transaction_resolution_unknown, statement_completion_unknown: "result is ambiguous"
	{Class: db.Aborted}: {
		"25P02", "40000", "40001", "40P01", // in_failed_sql_transaction, transaction_rollback, serialization_failure, deadlock_detected
		"53", "58", // insufficient resources, and system error: 58C00 range_unavailable, 58C01 internal_connection_failure
		"55P03", "57014", // lock_not_available, query_canceled, which statement_timeout gives too
		"XXUUU", // uncategorized: what nodes could not do because others were lost has no code of its own
	},
	{Class: db.Constraint}:                             {"23000", "23P01"},
	{Class: db.Constraint, Constraint: db.ForeignKey}:  {"23001", "23503"},
	{Class: db.Constraint, Constraint: db.NotNull}:     {"23502"},
	{Class: db.Constraint, Constraint: db.UniqueKey}:   {"23505"},
	{Class: db.Constraint, Constraint: db.CheckFailed}: {"23514"},
	{Class: db.Unavailable}: {
		"08", "53300", // connection exception, too_many_connections
		"25006",          // read_only_sql_transaction
		"25P03", "25P04", // idle_in_transaction_session_timeout, transaction_timeout
		"57P01", "57P02", "57P03", "57P05", // admin_shutdown: the node drains, crash_shutdown, cannot_connect_now, idle_session_timeout
	},
	{Class: db.Fatal}: {
		"0A", "20", "21", "22", // feature not supported (also NOWAIT and cursors), case not found, cardinality violation, data exception
		"24", "25", "26", "28", // invalid cursor state, transaction state, statement name, authorization
		"34", "3B", "3D", "3F", // invalid cursor name, savepoint exception, invalid catalog name, invalid schema name
		"42", "54", "55", "57", // syntax error or access rule violation, program limit exceeded, object not in prerequisite state, operator intervention
		"F0", "P0", "XX", // configuration file error, PL/pgSQL error, internal error (XXC01 and XXC02: a licence is required)
	},
}

// openAtCommit lists the codes that leave the outcome open during COMMIT: the node may have asked the others
// to commit before it was cancelled or lost them. 40001 is certain ("a transaction retry error … was not
// committed", transaction-retry-error-reference).
var openAtCommit = []string{"53", "55", "57", "58", "XX", "25P03", "25P04"}

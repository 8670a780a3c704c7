package mysql

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"strconv"
	"strings"

	client "github.com/go-sql-driver/mysql"

	"stroppy/internal/db"
)

// meaning is what one error number says about the transaction that it ended:
// before COMMIT was sent, and once it was.
type meaning struct {
	number           uint16
	before, atCommit db.Class
	kind             db.ConstraintKind
	only             product // the product that has this number; 0 for both
}

// meanings is the table of the servers' error numbers. Names and texts are in
// https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html and
// https://mariadb.com/docs/server/reference/error-codes/mariadb-error-code-reference;
// MariaDB and MySQL share the numbers below 1900. A number that is not here means
// what the class of its SQLSTATE means, see states.
//
// An error leaves the transaction open unless it is a deadlock: InnoDB undoes
// only the statement (https://dev.mysql.com/doc/refman/8.4/en/innodb-error-handling.html;
// 1205 too, unless innodb_rollback_on_timeout). Session.fail therefore rolls back
// after every error.
//
// While COMMIT is under way,
//   - 1213 is how Galera says that certification failed or that a replicated
//     transaction took the locks: rolled back on all nodes
//     (https://mariadb.com/docs/galera-cluster/galera-architecture/certification-based-replication);
//   - 1020 is the same within one node with innodb_snapshot_isolation, 3101 that
//     of Group Replication;
//   - 1205 comes from the wait for the commit lock, and 1290 and 1836 from a
//     server that was made read-only meanwhile, both followed by a rollback
//     (sql/handler.cc, ha_commit_trans);
//   - 1047 comes from a node outside the primary component, which refuses every
//     command before it looks at it (sql/sql_parse.cc, do_command);
//   - 1180, 3100 and 1026 come after something may have been written or sent:
//     unknown, as is the end of the connection and of the server.
//
// A full disk is Aborted before COMMIT: space can come back, so a later try may
// succeed, and the run shall show the outage rather than end with it.
var meanings = [...]meaning{
	{number: 1213, before: db.Aborted, atCommit: db.Aborted},                // ER_LOCK_DEADLOCK
	{number: 1205, before: db.Aborted, atCommit: db.Aborted},                // ER_LOCK_WAIT_TIMEOUT
	{number: 1020, before: db.Aborted, atCommit: db.Aborted},                // ER_CHECKREAD
	{number: 1206, before: db.Aborted, atCommit: db.Aborted},                // ER_LOCK_TABLE_FULL: InnoDB rolls all back
	{number: 1568, before: db.Aborted, atCommit: db.Unknown},                // ER_CANT_CHANGE_TX_CHARACTERISTICS
	{number: 1412, before: db.Aborted, atCommit: db.Unknown},                // ER_TABLE_DEF_CHANGED: since the snapshot was taken
	{number: 1615, before: db.Aborted, atCommit: db.Unknown},                // ER_NEED_REPREPARE
	{number: 1637, before: db.Aborted, atCommit: db.Unknown},                // ER_TOO_MANY_CONCURRENT_TRXS
	{number: 1317, before: db.Aborted, atCommit: db.Unknown},                // ER_QUERY_INTERRUPTED
	{number: 1969, before: db.Aborted, atCommit: db.Unknown, only: mariaDB}, // ER_STATEMENT_TIMEOUT: max_statement_time
	{number: 3024, before: db.Aborted, atCommit: db.Unknown, only: mySQL},   // ER_QUERY_TIMEOUT: max_execution_time
	{number: 3572, before: db.Aborted, atCommit: db.Unknown, only: mySQL},   // ER_LOCK_NOWAIT
	{number: 3101, before: db.Aborted, atCommit: db.Aborted, only: mySQL},   // ER_TRANSACTION_ROLLBACK_DURING_COMMIT
	{number: 3100, before: db.Aborted, atCommit: db.Unknown, only: mySQL},   // ER_RUN_HOOK_ERROR
	{number: 1180, before: db.Aborted, atCommit: db.Unknown},                // ER_ERROR_DURING_COMMIT
	{number: 1026, before: db.Aborted, atCommit: db.Unknown},                // ER_ERROR_ON_WRITE
	{number: 1021, before: db.Aborted, atCommit: db.Unknown},                // ER_DISK_FULL
	{number: 1114, before: db.Aborted, atCommit: db.Unknown},                // ER_RECORD_FILE_FULL
	{number: 1030, before: db.Aborted, atCommit: db.Unknown},                // ER_GET_ERRNO: an error of the storage engine
	{number: 1037, before: db.Aborted, atCommit: db.Unknown},                // ER_OUTOFMEMORY
	{number: 1038, before: db.Aborted, atCommit: db.Unknown},                // ER_OUT_OF_SORTMEMORY
	{number: 1041, before: db.Aborted, atCommit: db.Unknown},                // ER_OUT_OF_RESOURCES

	{number: 1062, before: db.Constraint, atCommit: db.Constraint, kind: db.UniqueKey},                  // ER_DUP_ENTRY
	{number: 1586, before: db.Constraint, atCommit: db.Constraint, kind: db.UniqueKey},                  // ER_DUP_ENTRY_WITH_KEY_NAME
	{number: 1022, before: db.Constraint, atCommit: db.Constraint, kind: db.UniqueKey},                  // ER_DUP_KEY
	{number: 1452, before: db.Constraint, atCommit: db.Constraint, kind: db.ForeignKey},                 // ER_NO_REFERENCED_ROW_2
	{number: 1216, before: db.Constraint, atCommit: db.Constraint, kind: db.ForeignKey},                 // ER_NO_REFERENCED_ROW
	{number: 1451, before: db.Constraint, atCommit: db.Constraint, kind: db.ForeignKey},                 // ER_ROW_IS_REFERENCED_2
	{number: 1217, before: db.Constraint, atCommit: db.Constraint, kind: db.ForeignKey},                 // ER_ROW_IS_REFERENCED
	{number: 1048, before: db.Constraint, atCommit: db.Constraint, kind: db.NotNull},                    // ER_BAD_NULL_ERROR
	{number: 1364, before: db.Constraint, atCommit: db.Constraint, kind: db.NotNull},                    // ER_NO_DEFAULT_FOR_FIELD
	{number: 1263, before: db.Constraint, atCommit: db.Constraint, kind: db.NotNull},                    // ER_WARN_NULL_TO_NOTNULL, a warning of LOAD DATA
	{number: 4025, before: db.Constraint, atCommit: db.Constraint, kind: db.CheckFailed, only: mariaDB}, // ER_CONSTRAINT_FAILED
	{number: 3819, before: db.Constraint, atCommit: db.Constraint, kind: db.CheckFailed, only: mySQL},   // ER_CHECK_CONSTRAINT_VIOLATED

	{number: 1047, before: db.Unavailable, atCommit: db.Unavailable},            // ER_UNKNOWN_COM_ERROR: "WSREP has not yet prepared node for application use"
	{number: 1290, before: db.Unavailable, atCommit: db.Unavailable},            // ER_OPTION_PREVENTS_STATEMENT: --read-only; a new connection may find the primary
	{number: 1836, before: db.Unavailable, atCommit: db.Unavailable},            // ER_READ_ONLY_MODE
	{number: 1053, before: db.Unavailable, atCommit: db.Unknown},                // ER_SERVER_SHUTDOWN
	{number: 1077, before: db.Unavailable, atCommit: db.Unknown},                // ER_NORMAL_SHUTDOWN
	{number: 1927, before: db.Unavailable, atCommit: db.Unknown, only: mariaDB}, // ER_CONNECTION_KILLED
	{number: 4031, before: db.Unavailable, atCommit: db.Unknown, only: mySQL},   // ER_CLIENT_INTERACTION_TIMEOUT
	{number: 1152, before: db.Unavailable, atCommit: db.Unknown},                // ER_ABORTING_CONNECTION
	{number: 1184, before: db.Unavailable, atCommit: db.Unknown},                // ER_NEW_ABORTING_CONNECTION
	{number: 1158, before: db.Unavailable, atCommit: db.Unknown},                // ER_NET_READ_ERROR
	{number: 1159, before: db.Unavailable, atCommit: db.Unknown},                // ER_NET_READ_INTERRUPTED
	{number: 1160, before: db.Unavailable, atCommit: db.Unknown},                // ER_NET_ERROR_ON_WRITE
	{number: 1161, before: db.Unavailable, atCommit: db.Unknown},                // ER_NET_WRITE_INTERRUPTED
	{number: 2006, before: db.Unavailable, atCommit: db.Unknown},                // CR_SERVER_GONE_ERROR, from a proxy
	{number: 2013, before: db.Unavailable, atCommit: db.Unknown},                // CR_SERVER_LOST, from a proxy
	{number: 1040, before: db.Unavailable, atCommit: db.Unknown},                // ER_CON_COUNT_ERROR
	{number: 1203, before: db.Unavailable, atCommit: db.Unknown},                // ER_TOO_MANY_USER_CONNECTIONS
	{number: 1226, before: db.Unavailable, atCommit: db.Unknown},                // ER_USER_LIMIT_REACHED
	{number: 1129, before: db.Unavailable, atCommit: db.Unknown},                // ER_HOST_IS_BLOCKED: until FLUSH HOSTS
	{number: 1135, before: db.Unavailable, atCommit: db.Unknown},                // ER_CANT_CREATE_THREAD

	{number: 1045, before: db.Fatal, atCommit: db.Fatal},              // ER_ACCESS_DENIED_ERROR
	{number: 1044, before: db.Fatal, atCommit: db.Fatal},              // ER_DBACCESS_DENIED_ERROR
	{number: 1049, before: db.Fatal, atCommit: db.Fatal},              // ER_BAD_DB_ERROR
	{number: 1130, before: db.Fatal, atCommit: db.Fatal},              // ER_HOST_NOT_PRIVILEGED
	{number: 1153, before: db.Fatal, atCommit: db.Fatal},              // ER_NET_PACKET_TOO_LARGE: it was not read
	{number: 1193, before: db.Fatal, atCommit: db.Fatal},              // ER_UNKNOWN_SYSTEM_VARIABLE
	{number: 1231, before: db.Fatal, atCommit: db.Fatal},              // ER_WRONG_VALUE_FOR_VAR
	{number: 1792, before: db.Fatal, atCommit: db.Fatal},              // ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
	{number: 1366, before: db.Fatal, atCommit: db.Fatal},              // ER_TRUNCATED_WRONG_VALUE_FOR_FIELD
	{number: 1698, before: db.Fatal, atCommit: db.Fatal},              // ER_ACCESS_DENIED_NO_PASSWORD_ERROR
	{number: 1820, before: db.Fatal, atCommit: db.Fatal},              // ER_MUST_CHANGE_PASSWORD
	{number: 3159, before: db.Fatal, atCommit: db.Fatal, only: mySQL}, // ER_SECURE_TRANSPORT_REQUIRED
}

// states gives the meaning of the numbers that are not in the table by the class
// of their SQLSTATE, its first two characters (ISO/IEC 9075-2, table 38; which
// number has which is in the references above).
var states = map[string]meaning{
	"08": {before: db.Unavailable, atCommit: db.Unknown},   // connection exception
	"0A": {before: db.Fatal, atCommit: db.Fatal},           // feature not supported
	"21": {before: db.Fatal, atCommit: db.Fatal},           // cardinality violation
	"22": {before: db.Fatal, atCommit: db.Fatal},           // data exception: 1264, 1406, 1690
	"23": {before: db.Constraint, atCommit: db.Constraint}, // integrity constraint violation
	"25": {before: db.Fatal, atCommit: db.Fatal},           // invalid transaction state
	"28": {before: db.Fatal, atCommit: db.Fatal},           // invalid authorization
	"40": {before: db.Aborted, atCommit: db.Aborted},       // transaction rollback
	"42": {before: db.Fatal, atCommit: db.Fatal},           // syntax error or access rule violation: 1064, 1142, 1146, 1305
}

// phase says how far the transaction had gone when an error came.
type phase uint8

const (
	connecting phase = iota + 1
	before           // in a session, and no commit was sent
	committing       // COMMIT, or a packet that ends with it, was sent
)

// classify gives the meaning of an error that a server reported.
func classify(p product, number uint16, state string, at phase) (db.Class, db.ConstraintKind) {
	m := meaning{before: db.Fatal, atCommit: db.Unknown}
	if len(state) == 5 {
		if s, known := states[state[:2]]; known {
			m = s
		}
	}
	for i := range meanings {
		if meanings[i].number == number && (meanings[i].only == 0 || meanings[i].only == p) {
			m = meanings[i]
			break
		}
	}
	if at == committing {
		return m.atCommit, m.kind
	}
	return m.before, m.kind
}

// serverError is an error that the server reported, in its own words, and what
// to do about it.
type serverError struct {
	*client.MySQLError
	advice string
}

func (e serverError) Error() string {
	text := strings.ReplaceAll(e.Message, "\n", " ")
	if e.advice != "" {
		text += ": " + e.advice
	}
	return text
}

func (e serverError) Unwrap() error { return e.MySQLError }

// advice says what to do about an error; empty where nothing can be said in
// general.
func advice(number uint16) string {
	switch number {
	case 1045, 1698:
		return "check the user and the password in the URL"
	case 1044, 1142, 1143, 1227, 1370:
		return "give this user the right, or take another user"
	case 1049:
		return "make it, or name another in the URL"
	case 1040, 1203, 1226:
		return "take fewer clients, or raise max_connections"
	case 1129:
		return "run FLUSH HOSTS on it"
	case 1193, 1231:
		return "check the parameters in the URL"
	case 1153:
		return "raise max_allowed_packet"
	}
	return ""
}

// reported is the error for something that the server reported.
func reported(op string, p product, e *client.MySQLError, at phase) *db.Error {
	class, kind := classify(p, e.Number, string(e.SQLState[:]), at)
	return &db.Error{Class: class, Constraint: kind, Code: strconv.Itoa(int(e.Number)), Op: op, Err: serverError{e, advice(e.Number)}}
}

// lost is the error for a connection that ended or did not answer.
func lost(op string, err error, at phase) *db.Error {
	class := db.Unavailable
	if at == committing {
		class = db.Unknown
	}
	return &db.Error{Class: class, Op: op, Err: err}
}

// unusable are the errors of the client library that say that it and the server
// will never agree.
var unusable = []error{
	client.ErrNoTLS, client.ErrOldProtocol, client.ErrOldPassword, client.ErrCleartextPassword,
	client.ErrNativePassword, client.ErrUnknownPlugin,
}

// connectError is the error for a connection that was not made.
func connectError(ctx context.Context, op string, p product, err error) *db.Error {
	var e *client.MySQLError
	if errors.As(err, &e) {
		return reported(op, p, e, connecting)
	}
	for _, u := range unusable {
		if errors.Is(err, u) {
			return db.Fatalf(op, "%w", err)
		}
	}
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return db.Fatalf(op, "%w: check tls in the URL", err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = db.Told{Text: "no answer in time: " + db.CheckServer, Cause: context.Cause(ctx)}
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, client.ErrInvalidConn):
		err = db.Told{Text: "the server ended the connection while it was being made", Cause: err}
	default:
		err = db.Told{Text: err.Error() + ": " + db.CheckServer, Cause: err}
	}
	return lost(op, err, connecting)
}

package mysql

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"strconv"
	"strings"

	client "github.com/go-sql-driver/mysql"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// meaning is the effect of an error on its transaction, before COMMIT was sent and afterwards.
type meaning struct {
	before, atCommit db.Class
	kind             db.ConstraintKind
	only             product  // the product with these numbers; 0 for all; TiDB shares MySQL's numbers
	states           []string // the first two characters of SQLSTATEs (ISO/IEC 9075-2, table 38)
	numbers          []uint16
}

// meanings is the table of the servers' error numbers. Names and texts are in
// https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html and
// https://mariadb.com/docs/server/reference/error-codes/mariadb-error-code-reference. MariaDB and MySQL share the
// numbers below 1900. TiDB's numbers are in https://docs.pingcap.com/tidb/stable/error-codes. For other numbers, the
// class of the SQLSTATE decides.
//
// An error leaves the transaction open unless it is a deadlock, because InnoDB undoes only the statement
// (https://dev.mysql.com/doc/refman/8.4/en/innodb-error-handling.html). This includes 1205, unless
// innodb_rollback_on_timeout is set. Session.fail therefore rolls back after every error.
//
// During COMMIT,
//   - 1213 of Galera means that certification failed or that a replicated
//     transaction took the locks: rolled back on all nodes
//     (https://mariadb.com/docs/galera-cluster/galera-architecture/certification-based-replication);
//   - 1020 means the same within one node with innodb_snapshot_isolation, and 3101
//     for Group Replication;
//   - 1205 comes from the wait for the commit lock. 1290 and 1836 come from a
//     server that became read-only. A rollback follows
//     (sql/handler.cc, ha_commit_trans);
//   - 1047 comes from a node outside the primary component, which refuses every
//     command before examining it (sql/sql_parse.cc, do_command);
//   - 1180, 3100 and 1026 come after something may have been written or sent. So
//     the outcome is unknown, as after the end of the connection or the server.
//
// A full disk is Aborted before COMMIT: space can become free, so a later try may succeed, and the run should show
// the outage rather than end.
var meanings = [...]meaning{
	{before: db.Aborted, atCommit: db.Aborted, states: []string{"40"}, numbers: []uint16{ // transaction rollback
		1213 /* ER_LOCK_DEADLOCK */, 1205 /* ER_LOCK_WAIT_TIMEOUT */, 1020, /* ER_CHECKREAD */
		1206, // ER_LOCK_TABLE_FULL: InnoDB rolls all back
	}},
	{before: db.Aborted, atCommit: db.Aborted, only: mySQL, numbers: []uint16{3101 /* ER_TRANSACTION_ROLLBACK_DURING_COMMIT */}},
	{before: db.Aborted, atCommit: db.Aborted, only: tiDB, numbers: []uint16{
		8002 /* of SELECT FOR UPDATE */, 8005 /* write conflict */, 8022 /* commit failed, rolled back */, 9007, /* write conflict in TiKV */
	}},
	{before: db.Aborted, atCommit: db.Unknown, only: tiDB, numbers: []uint16{8028 /* the schema has changed */}},
	{before: db.Unavailable, atCommit: db.Unknown, only: tiDB, numbers: []uint16{
		9001 /* PD: time-out */, 9002 /* TiKV: time-out */, 9003 /* TiKV: busy */, 9004 /* locks not resolved */, 9005, /* region unavailable */
	}},
	{before: db.Aborted, atCommit: db.Unknown, numbers: []uint16{
		1568 /* ER_CANT_CHANGE_TX_CHARACTERISTICS */, 1412 /* ER_TABLE_DEF_CHANGED, since the snapshot */, 1615, /* ER_NEED_REPREPARE */
		1637 /* ER_TOO_MANY_CONCURRENT_TRXS */, 1317 /* ER_QUERY_INTERRUPTED */, 1180, /* ER_ERROR_DURING_COMMIT */
		1026 /* ER_ERROR_ON_WRITE */, 1021 /* ER_DISK_FULL */, 1114 /* ER_RECORD_FILE_FULL */, 1030, /* ER_GET_ERRNO, of the engine */
		1037 /* ER_OUTOFMEMORY */, 1038 /* ER_OUT_OF_SORTMEMORY */, 1041, /* ER_OUT_OF_RESOURCES */
	}},
	{before: db.Aborted, atCommit: db.Unknown, only: mariaDB, numbers: []uint16{1969 /* ER_STATEMENT_TIMEOUT: max_statement_time */}},
	{before: db.Aborted, atCommit: db.Unknown, only: mySQL, numbers: []uint16{
		3024 /* ER_QUERY_TIMEOUT: max_execution_time */, 3572 /* ER_LOCK_NOWAIT */, 3100, /* ER_RUN_HOOK_ERROR */
	}},

	{before: db.Constraint, atCommit: db.Constraint, states: []string{"23"}}, // integrity constraint violation
	{before: db.Constraint, atCommit: db.Constraint, kind: db.UniqueKey, numbers: []uint16{
		1062 /* ER_DUP_ENTRY */, 1586 /* ER_DUP_ENTRY_WITH_KEY_NAME */, 1022, /* ER_DUP_KEY */
	}},
	{before: db.Constraint, atCommit: db.Constraint, kind: db.ForeignKey, numbers: []uint16{
		1452 /* ER_NO_REFERENCED_ROW_2 */, 1216 /* ER_NO_REFERENCED_ROW */, 1451 /* ER_ROW_IS_REFERENCED_2 */, 1217, /* ER_ROW_IS_REFERENCED */
	}},
	{before: db.Constraint, atCommit: db.Constraint, kind: db.NotNull, numbers: []uint16{
		1048 /* ER_BAD_NULL_ERROR */, 1364 /* ER_NO_DEFAULT_FOR_FIELD */, 1263, /* ER_WARN_NULL_TO_NOTNULL, a warning of LOAD DATA */
	}},
	{before: db.Constraint, atCommit: db.Constraint, kind: db.CheckFailed, only: mariaDB, numbers: []uint16{4025 /* ER_CONSTRAINT_FAILED */}},
	{before: db.Constraint, atCommit: db.Constraint, kind: db.CheckFailed, only: mySQL, numbers: []uint16{3819 /* ER_CHECK_CONSTRAINT_VIOLATED */}},

	{before: db.Unavailable, atCommit: db.Unavailable, numbers: []uint16{
		1047, // ER_UNKNOWN_COM_ERROR: "WSREP has not yet prepared node for application use"
		1290, // ER_OPTION_PREVENTS_STATEMENT: --read-only; a new connection may find the primary
		1836, // ER_READ_ONLY_MODE
	}},
	{before: db.Unavailable, atCommit: db.Unknown, states: []string{"08"}, numbers: []uint16{ // connection exception
		1053 /* ER_SERVER_SHUTDOWN */, 1077 /* ER_NORMAL_SHUTDOWN */, 1152 /* ER_ABORTING_CONNECTION */, 1184, /* ER_NEW_ABORTING_CONNECTION */
		1158 /* ER_NET_READ_ERROR */, 1159 /* ER_NET_READ_INTERRUPTED */, 1160 /* ER_NET_ERROR_ON_WRITE */, 1161, /* ER_NET_WRITE_INTERRUPTED */
		2006 /* CR_SERVER_GONE_ERROR, from a proxy */, 2013, /* CR_SERVER_LOST, from a proxy */
		1040 /* ER_CON_COUNT_ERROR */, 1203 /* ER_TOO_MANY_USER_CONNECTIONS */, 1226, /* ER_USER_LIMIT_REACHED */
		1129 /* ER_HOST_IS_BLOCKED, until FLUSH HOSTS */, 1135, /* ER_CANT_CREATE_THREAD */
	}},
	{before: db.Unavailable, atCommit: db.Unknown, only: mariaDB, numbers: []uint16{1927 /* ER_CONNECTION_KILLED */}},
	{before: db.Unavailable, atCommit: db.Unknown, only: mySQL, numbers: []uint16{
		4031, // ER_CLIENT_INTERACTION_TIMEOUT
		// For Group Replication, where a transaction waits at its beginning for the group or for a new primary.
		3781 /* ER_GR_HOLD_WAIT_TIMEOUT */, 3782 /* ER_GR_HOLD_KILLED */, 3783, /* ER_GR_HOLD_MEMBER_STATUS_ERROR */
		3796 /* ER_GRP_TRX_CONSISTENCY_NOT_ALLOWED */, 3797, /* ER_GRP_TRX_CONSISTENCY_BEFORE */
		3798 /* ER_GRP_TRX_CONSISTENCY_AFTER_ON_TRX_BEGIN */, 3799, /* ER_GRP_TRX_CONSISTENCY_BEGIN_NOT_ALLOWED */
	}},

	{before: db.Fatal, atCommit: db.Fatal, states: []string{
		"0A", "21", "22", // feature not supported, cardinality violation, data exception (1264, 1406, 1690)
		"25", "28", "42", // invalid transaction state, invalid authorization, syntax error or access rule violation (1064, 1142, 1146, 1305)
	}, numbers: []uint16{
		1045 /* ER_ACCESS_DENIED_ERROR */, 1044 /* ER_DBACCESS_DENIED_ERROR */, 1049 /* ER_BAD_DB_ERROR */, 1130, /* ER_HOST_NOT_PRIVILEGED */
		1153 /* ER_NET_PACKET_TOO_LARGE, which was not read */, 1193 /* ER_UNKNOWN_SYSTEM_VARIABLE */, 1231, /* ER_WRONG_VALUE_FOR_VAR */
		1792 /* ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION */, 1366, /* ER_TRUNCATED_WRONG_VALUE_FOR_FIELD */
		1698 /* ER_ACCESS_DENIED_NO_PASSWORD_ERROR */, 1820, /* ER_MUST_CHANGE_PASSWORD */
	}},
	{before: db.Fatal, atCommit: db.Fatal, only: mySQL, numbers: []uint16{
		3159 /* ER_SECURE_TRANSPORT_REQUIRED */, 3098, /* ER_BEFORE_DML_VALIDATION_ERROR, of Group Replication */
		3750, /* ER_TABLE_WITHOUT_PK: sql_require_primary_key */
	}},
}

// classify returns the meaning of an error that a server reported.
func classify(p product, number uint16, state string, at wire.Phase) (db.Class, db.ConstraintKind) {
	m := &meaning{before: db.Fatal, atCommit: db.Unknown}
	for i := range meanings {
		row := &meanings[i]
		if slices.Contains(row.numbers, number) && (row.only == 0 || row.only == p || row.only == mySQL && p == tiDB) {
			m = row
			break
		}
		if len(state) == 5 && slices.Contains(row.states, state[:2]) {
			m = row
		}
	}
	if at == wire.Committing {
		return m.atCommit, m.kind
	}
	return m.before, m.kind
}

// withoutPassword ends the server's message for a login without a password (ER_ACCESS_DENIED_ERROR).
const withoutPassword = "(using password: NO)"

// denials maps errors to what is wrong with the user of the URL.
var denials = map[uint16]wire.Refusal{
	1045: wire.WrongUser, 1698: wire.WrongUser,
	1049: wire.NoDatabase,
	1044: wire.NoRight, 1130: wire.NoRight, 1142: wire.NoRight, 1143: wire.NoRight, 1227: wire.NoRight, 1370: wire.NoRight,
	3159: wire.NeedsTLS, // ER_SECURE_TRANSPORT_REQUIRED of MySQL
}

// advice maps errors to a recommended action.
var advice = map[uint16]string{
	1040: fewerClients, 1203: fewerClients, 1226: fewerClients,
	1193: checkParameters, 1229: checkParameters, 1231: checkParameters, 1232: checkParameters, 1238: checkParameters, 1298: checkParameters,
	1129: "run FLUSH HOSTS on it",
	1153: "raise max_allowed_packet",
	3098: "Group Replication takes rows of InnoDB tables with a primary key alone: give the table one",
}

const (
	fewerClients    = "take fewer clients, or raise max_connections"
	checkParameters = "check the parameters in the URL"
)

// reported returns the error for a message of the server, with the server's text and advice.
func reported(op string, p product, e *client.MySQLError, at wire.Phase) *db.Error {
	class, kind := classify(p, e.Number, string(e.SQLState[:]), at)
	text := strings.ReplaceAll(e.Message, "\n", " ")
	if denial := denials[e.Number]; denial != 0 {
		if denial == wire.WrongUser && strings.Contains(text, withoutPassword) {
			denial = wire.NoPassword
		}
		text = denial.Text(text, inURL[denial])
	} else if do := advice[e.Number]; do != "" {
		text += ": " + do
	} else if at == wire.Connecting && e.Number == 1064 /* ER_PARSE_ERROR: nothing but variables of the URL is set then */ {
		text += ": " + checkParameters
	}
	return &db.Error{Class: class, Constraint: kind, Code: strconv.Itoa(int(e.Number)), Op: op, Err: db.MessageError{Text: text, Cause: e}}
}

// unusable lists the errors of the client library after which it can never use the server.
var unusable = []error{
	client.ErrOldProtocol, client.ErrOldPassword, client.ErrCleartextPassword,
	client.ErrNativePassword, client.ErrUnknownPlugin,
}

// badConnection is the text of an error that the client library does not export (errBadConnNoWrite).
const badConnection = "bad connection"

// connectError returns the error for a failed connection.
func connectError(ctx context.Context, op string, p product, certified bool, err error) *db.Error {
	if e, ok := errors.AsType[*client.MySQLError](err); ok {
		return reported(op, p, e, wire.Connecting)
	}
	refused, why := wire.CertificateRefusal(err)
	switch {
	case errors.Is(err, client.ErrNoTLS):
		return db.Fatalf(op, "%w", db.MessageError{Text: wire.LacksTLS.Text("", inURL[wire.LacksTLS]), Cause: err})
	case slices.ContainsFunc(unusable, func(u error) bool { return errors.Is(err, u) }):
		return db.Fatalf(op, "%w", err)
	case refused != 0:
		text := refused.Text(why, inURL[refused])
		return db.Fatalf(op, "%w", db.MessageError{Text: text, Cause: err})
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = db.MessageError{Text: "no answer in time: " + db.CheckServer, Cause: context.Cause(ctx)}
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, client.ErrInvalidConn), err.Error() == badConnection:
		text := "the server ended the connection while it was being made"
		if certified { // the client library hides the alert of TLS
			text += "; if it does not trust the client's certificate, take one whose authority is in its ssl-ca"
		}
		err = db.MessageError{Text: text, Cause: err}
	default:
		err = db.MessageError{Text: cmp.Or(wire.Reason(err), err.Error()) + ": " + db.CheckServer, Cause: err}
	}
	return wire.Lost(op, err, wire.Connecting)
}

package postgres

import (
	"strings"

	"stroppy/internal/db/pgwire"
)

// poolerCode is the SQLSTATE of almost all errors that PgBouncer creates, protocol_violation (src/proto.c,
// send_pooler_error). Newer versions use the server's codes for some.
const poolerCode = "08P01"

const (
	largerPool   = "raise PgBouncer's default_pool_size or query_wait_timeout, or take fewer clients"
	checkServers = "check the servers that PgBouncer connects to"
	largerServer = "lower PgBouncer's default_pool_size, or raise the server's max_connections"
	setForUser   = "take it out of the URL and set it for the user (ALTER ROLE NAME SET SETTING = VALUE), because ignore_startup_parameters would drop it"
	checkConfig  = "check PgBouncer's configuration"
)

// poolerErrors lists the beginnings of the messages with which PgBouncer 1.18 to 1.25 ends a connection.
// NotSent marks those to a client that waits for a server session or has sent nothing: the pooler discards
// what it has (src/janitor.c, pool_client_maint; src/objects.c, check_fast_fail). Others, such as "server
// conn crashed?", may also reach clients with a transaction in progress. For a login that the server refused,
// 1.18 does not report the server's code.
var poolerErrors = []struct {
	begins string
	pgwire.PoolerError
}{
	{"query_wait_timeout", pgwire.PoolerError{NotSent: true, Advice: largerPool}},
	{"server login has been failing", pgwire.PoolerError{NotSent: true, Advice: checkServers}},
	{"client_idle_timeout", pgwire.PoolerError{NotSent: true, Advice: "raise PgBouncer's client_idle_timeout"}},
	{"client_login_timeout", pgwire.PoolerError{NotSent: true, Advice: checkServers}},
	{"no more connections allowed", pgwire.PoolerError{Code: "53300", NotSent: true, Advice: "take fewer clients, or raise PgBouncer's max_client_conn"}},
	{"client connections exceeded", pgwire.PoolerError{Code: "53300", NotSent: true, Advice: "take fewer clients, or raise this limit of PgBouncer's"}},
	{"sorry, too many clients already", pgwire.PoolerError{Code: "53300", NotSent: true, Advice: largerServer}},
	{"remaining connection slots are reserved", pgwire.PoolerError{Code: "53300", NotSent: true, Advice: largerServer}},
	{"pooler is shutting down", pgwire.PoolerError{Code: "57P03", NotSent: true}},
	{"no such database", pgwire.PoolerError{Code: "3D000"}},
	{"database \"", pgwire.PoolerError{Code: "3D000"}}, // "… does not exist", "… is disabled"
	{"no such user", pgwire.PoolerError{Code: "28P01"}},
	{"password authentication failed", pgwire.PoolerError{Code: "28P01"}},
	{"SASL authentication failed", pgwire.PoolerError{Code: "28P01"}},
	{"login rejected", pgwire.PoolerError{Code: "28P01"}},
	{"bouncer config error", pgwire.PoolerError{Code: "F0000", Advice: checkConfig}},
	{"unsupported startup parameter", pgwire.PoolerError{Code: "42704", Advice: setForUser}},
	{"transaction blocks not allowed in statement pooling mode", pgwire.PoolerError{Advice: "set PgBouncer's pool_mode to transaction or session"}},
	{"prepared statement did not exist", pgwire.PoolerError{Code: "26000", Advice: "leave prepare=true out of the URL"}},
}

// pooler implements pgwire.Flavor.Pooler.
func pooler(code, message string) pgwire.PoolerError {
	if code != poolerCode {
		return pgwire.PoolerError{}
	}
	for _, e := range poolerErrors {
		if strings.HasPrefix(message, e.begins) {
			return e.PoolerError
		}
	}
	return pgwire.PoolerError{}
}

package foundationdb

import (
	"strconv"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
)

// code is the meaning of one error of FoundationDB. Names and texts are from flow/error_definitions.h, 7.3.
type code struct {
	number int
	name   string
	before db.Class // before a commit was sent
	commit db.Class // after a commit was sent
	retry  bool     // onError waits, and the transaction may be tried again
	advice string
}

// codes are the errors with a certain meaning. After any other error the outcome of a commit is unknown (classify). The
// codes come from fdbclient/NativeAPI.actor.cpp, 7.3: tryCommit throws the first group instead of applying the
// transaction, and Transaction::onError retries the errors that are marked here. Tests with kills and pauses on real
// clusters showed that a transaction with commit_unknown_result was sometimes applied. The same was seen for
// transaction_timed_out and cluster_version_changed.
var codes = []code{
	{1007, "transaction_too_old", db.Aborted, db.Aborted, true, "a transaction can read and commit for five seconds after its first read"},
	{1009, "future_version", db.Aborted, db.Aborted, true, ""},
	{1020, "not_committed", db.Aborted, db.Aborted, true, ""},
	{1037, "process_behind", db.Aborted, db.Aborted, true, ""},
	{1038, "database_locked", db.Aborted, db.Aborted, true, "a restore or a switch-over has locked the database: wait for its end, or unlock it with fdbcli"},
	{1042, "commit_proxy_memory_limit_exceeded", db.Aborted, db.Aborted, true, ""},
	{1051, "batch_transaction_throttled", db.Aborted, db.Aborted, true, ""},
	{1078, "grv_proxy_memory_limit_exceeded", db.Aborted, db.Aborted, true, ""},
	{1213, "tag_throttled", db.Aborted, db.Aborted, true, ""},
	{1223, "proxy_tag_throttled", db.Aborted, db.Aborted, true, ""},
	{1225, "storage_quota_exceeded", db.Fatal, db.Fatal, false, "raise the tenant's quota"},

	// The commit may have been applied. After commit_unknown_result it is no longer in flight: tryCommit first commits
	// a conflicting transaction.
	{1021, "commit_unknown_result", db.Unavailable, db.Unknown, true, ""},
	{1022, "commit_unknown_result_fatal", db.Unavailable, db.Unknown, false, ""},
	{1025, "transaction_cancelled", db.Unavailable, db.Unknown, false, ""},
	{1031, "transaction_timed_out", db.Unavailable, db.Unknown, false, "it took longer than timeout in the URL"},
	{1039, "cluster_version_changed", db.Unavailable, db.Unknown, true, ""},
	{1101, "operation_cancelled", db.Unavailable, db.Unknown, false, ""},

	// The client library refuses these before it sends anything (ReadYourWrites.actor.cpp, Transaction::set,
	// commitMutations).
	{2004, "key_outside_legal_range", db.Fatal, db.Fatal, false, "keys from \\xff on are the database's own"},
	{2007, "invalid_option", db.Fatal, db.Fatal, false, ""},
	{2101, "transaction_too_large", db.Fatal, db.Fatal, false, "take smaller batches: a transaction has 10,000,000 bytes at most"},
	{2102, "key_too_large", db.Fatal, db.Fatal, false, "a key has 10,000 bytes at most"},
	{2103, "value_too_large", db.Fatal, db.Fatal, false, "a value has 100,000 bytes at most: split it into fragments"},

	// These errors come from the cluster itself, and no new try helps. A proxy refuses such a commit before
	// the commit is resolved (CommitProxyServer.actor.cpp).
	{2100, "incompatible_protocol_version", db.Fatal, db.Fatal, false, "take the client library of the servers' version"},
	{2125, "incompatible_client", db.Fatal, db.Fatal, false, "take the client library of the servers' version"},
	{2130, "tenant_name_required", db.Fatal, db.Fatal, false, "the cluster takes keys of tenants alone, of which stroppy knows none"},
	{6000, "permission_denied", db.Fatal, db.Fatal, false, "the cluster asks for an authorization token, of which stroppy knows none"},
	{6001, "unauthorized_attempt", db.Fatal, db.Fatal, false, "the cluster does not trust this client: check the tls_ parameters of the URL"},
}

// codeOf returns the entry of an error number; false if there is none.
func codeOf(number int) (code, bool) {
	for _, c := range codes {
		if c.number == number {
			return c, true
		}
	}
	return code{}, false
}

// classify returns the class of an error number for the transaction that it ended, and whether onError must wait before
// the next transaction.
func classify(number int, at optimistic.Phase) (class db.Class, advice string, retry bool) {
	c, known := codeOf(number)
	switch {
	case !known:
		return at.Class(), "", false
	case at == optimistic.Sent:
		return c.commit, c.advice, c.retry
	}
	return c.before, c.advice, c.retry
}

// failure returns the error of a call that ended with the error number. said is the library's text of this error.
func failure(op string, number int, said error, at optimistic.Phase) (e *db.Error, retry bool) {
	class, advice, retry := classify(number, at)
	e = &db.Error{Class: class, Code: strconv.Itoa(number), Op: op, Err: said}
	if advice != "" {
		e.Err = db.MessageError{Text: said.Error() + ": " + advice, Cause: said}
	}
	return e, retry
}

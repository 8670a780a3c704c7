package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
	"stroppy/internal/db/wire"
)

// refusal is an error which proves that the request was not applied.
type refusal struct {
	err    error // of etcd's package rpctypes, which is api/v3rpc/rpctypes/error.go
	class  db.Class
	advice string
	denial wire.Refusal // why the URL's user was refused; 0: another reason
}

// grant is the right that a user needs.
const grant = "a role with readwrite on the keys"

const takeLess = "raise the server's --max-request-bytes, or take smaller batches"

// refusals lists all errors that are taken to mean "not applied". Each is returned before the request enters the raft
// log, except for the cases that a comment describes. In these cases every member alike returns the error when the
// log's entry is applied, instead of the request. The files are in etcd's server/etcdserver, 3.4 to 3.6.
var refusals = []refusal{
	// v3_server.go, processInternalRaftRequestOnce: more than 5000 entries are committed and not yet applied, so the
	// member proposes no new entry.
	{rpctypes.ErrGRPCRequestTooManyRequests, db.Aborted, "", 0},
	// api/v3rpc/quota.go before the proposal. If the NOSPACE alarm is raised, the quota applier of apply returns it
	// instead of applying the request.
	{rpctypes.ErrGRPCNoSpace, db.Fatal, "raise --quota-backend-bytes, or compact, defragment and disarm the alarm with etcdctl", 0},
	// The corrupt applier of apply returns it instead of applying any request under the CORRUPT alarm.
	{rpctypes.ErrGRPCCorrupt, db.Fatal, "the members' data differ: see etcd's data corruption guide", 0},

	// mvcc, for reads at a revision: the snapshot is gone, or this member has not received the revision yet.
	{rpctypes.ErrGRPCCompacted, db.Aborted, "", 0},
	{rpctypes.ErrGRPCFutureRev, db.Aborted, "", 0},

	// api/v3rpc/interceptor.go, before the request is read.
	{rpctypes.ErrGRPCNoLeader, db.Unavailable, "", 0},
	{rpctypes.ErrGRPCNotCapable, db.Unavailable, "", 0},
	{rpctypes.ErrGRPCNotSupportedForLearner, db.Unavailable, "", 0},
	{rpctypes.ErrGRPCInvalidClientAPIVersion, db.Fatal, "", 0},

	// api/v3rpc/key.go, before the proposal.
	{rpctypes.ErrGRPCEmptyKey, db.Fatal, "", 0},
	{rpctypes.ErrGRPCKeyNotFound, db.Fatal, "", 0},
	{rpctypes.ErrGRPCValueProvided, db.Fatal, "", 0},
	{rpctypes.ErrGRPCLeaseProvided, db.Fatal, "", 0},
	{rpctypes.ErrGRPCInvalidSortOption, db.Fatal, "", 0},
	{rpctypes.ErrGRPCDuplicateKey, db.Fatal, "", 0},
	{rpctypes.ErrGRPCTooManyOps, db.Fatal, "the server's --max-txn-ops must be 128, its default, or more", 0},
	// v3_server.go, before the proposal.
	{rpctypes.ErrGRPCRequestTooLarge, db.Fatal, takeLess, 0},

	// auth/store.go: the user is checked before the proposal, and once more when the entry is applied. Then the error
	// is returned instead of applying the request. The client fetches a new token by itself after one of the first two
	// errors.
	{rpctypes.ErrGRPCInvalidAuthToken, db.Aborted, "", 0},
	{rpctypes.ErrGRPCAuthOldRevision, db.Aborted, "", 0},
	{rpctypes.ErrGRPCUserEmpty, db.Fatal, "etcd://user:password@…", wire.NoUser},
	{rpctypes.ErrGRPCAuthFailed, db.Fatal, "", wire.WrongUser},
	{rpctypes.ErrGRPCPermissionDenied, db.Fatal, grant, wire.NoRight},
	{rpctypes.ErrGRPCPermissionNotGiven, db.Fatal, grant, wire.NoRight},
	{rpctypes.ErrGRPCUserNotFound, db.Fatal, "", wire.WrongUser},
	{rpctypes.ErrGRPCRoleNotFound, db.Fatal, "", 0},
	{rpctypes.ErrGRPCInvalidAuthMgmt, db.Fatal, "", 0},
}

// tooLarge is the beginning of the error for a request above --max-request-bytes plus 512 KiB. The server's gRPC
// refuses the request before etcd sees it (grpc-go rpc_util.go, recvAndDecompress). The error cannot come from our own
// side, which does not limit the size of an answer.
const tooLarge = "grpc: received message larger than max"

// dropped is the error of a member whose Raft refuses to propose a request. The request is in no log then and was not
// sent to a leader. The cluster has no leader, or the leader is transferring its leadership (raft.go,
// ErrProposalDropped; processInternalRaftRequestOnce returns it).
const dropped = "raft proposal dropped"

// classify returns the class of err for the transaction that it ended, and the text for a person. An error that is not
// in the table of refusals proves nothing. Examples are a deadline; a connection that broke; "request timed out,
// possibly due to previous leader failure"; "leader changed"; "server stopped". The quoted errors have gRPC's code
// Unavailable (https://etcd.io/docs/v3.4/learning/api_guarantees/: the client may be uncertain about the status of an
// operation). Such an error makes a read fail. If a commit was sent, its outcome is unknown.
func classify(err error, at optimistic.Phase) (class db.Class, code, text string) {
	text = rpctypes.ErrorDesc(err)
	for _, r := range refusals {
		if text == rpctypes.ErrorDesc(r.err) {
			if r.denial != 0 {
				text = r.denial.Text(text, r.advice)
			} else if r.advice != "" {
				text += ": " + r.advice
			}
			return r.class, status.Code(r.err).String(), text
		}
	}
	grpcCode, known := codeOf(err)
	if known {
		code = grpcCode.String()
	}
	switch {
	case strings.HasPrefix(text, tooLarge):
		return db.Fatal, code, text + ": " + takeLess
	case text == dropped:
		return db.Unavailable, code, text
	case grpcCode == codes.Unimplemented:
		return db.Fatal, code, text + ": the server is no etcd of version 3"
	}
	return at.Class(), code, text
}

// codeOf returns the gRPC code of an error of the client, a call or a context. Other errors, such as the dialer's, have
// no code.
func codeOf(err error) (codes.Code, bool) {
	var client rpctypes.EtcdError
	switch {
	case errors.As(err, &client):
		return client.Code(), true
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded, true
	case errors.Is(err, context.Canceled):
		return codes.Canceled, true
	}
	s, ok := status.FromError(err)
	return s.Code(), ok
}

// failure returns the error of a call to a node.
func failure(op, node string, err error, at optimistic.Phase) *db.Error {
	class, code, text := classify(err, at)
	return &db.Error{
		Class: class, Code: code, Op: op,
		Err: db.MessageError{Text: fmt.Sprintf("etcd node %s: %s", node, text), Cause: err},
	}
}

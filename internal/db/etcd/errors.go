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

// refusal is an answer which says for sure that the request was not applied.
type refusal struct {
	err    error // of etcd's package rpctypes, which is api/v3rpc/rpctypes/error.go
	class  db.Class
	advice string
	denial wire.Refusal // of the user of the URL; 0: it is none
}

// grant is the right that a user needs.
const grant = "a role with readwrite on the keys"

const takeLess = "raise the server's --max-request-bytes, or take smaller batches"

// refusals is the whole list of answers that are believed to mean "not applied".
// Each is given before the request enters the raft log, or, where the comment
// says so, when the log's entry is applied, by every member alike and instead of
// the request. Files are those of etcd's server/etcdserver, 3.4 to 3.6.
var refusals = []refusal{
	// v3_server.go, processInternalRaftRequestOnce: more than 5000 entries are
	// committed and not yet applied, so no new one is proposed.
	{rpctypes.ErrGRPCRequestTooManyRequests, db.Aborted, "", 0},
	// api/v3rpc/quota.go before the proposal; apply's quota applier instead of
	// it, once the NOSPACE alarm is raised.
	{rpctypes.ErrGRPCNoSpace, db.Fatal, "raise --quota-backend-bytes, or compact, defragment and disarm the alarm with etcdctl", 0},
	// apply's corrupt applier, instead of every request under the CORRUPT alarm.
	{rpctypes.ErrGRPCCorrupt, db.Fatal, "the members' data differ: see etcd's data corruption guide", 0},

	// mvcc, for reads at a revision: the snapshot is gone, or the member that is
	// asked now has not yet got it.
	{rpctypes.ErrGRPCCompacted, db.Aborted, "", 0},
	{rpctypes.ErrGRPCFutureRev, db.Aborted, "", 0},

	// api/v3rpc/interceptor.go, before the request is looked at.
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

	// auth/store.go: the user is checked before the proposal, and once more
	// instead of the request when its entry is applied. The client fetches a new
	// token by itself when it sees one of the first two.
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

// tooLarge begins the text with which a server's gRPC refuses a request above
// --max-request-bytes plus 512 KiB, before etcd sees it (grpc-go rpc_util.go,
// recvAndDecompress). Our own side, which sets no limit to an answer, cannot
// have said it.
const tooLarge = "grpc: received message larger than max"

// dropped is what a member answers whose Raft refuses to propose a request, before it is in
// any log or sent to a leader: there is none, or it is handing over its lead
// (raft.go, ErrProposalDropped; processInternalRaftRequestOnce returns it).
const dropped = "raft proposal dropped"

// classify returns the class of err, for the transaction that it ended and for a
// person. What is not in the table of refusals could be anything: a deadline; a
// connection that broke; "request timed out, possibly due to previous leader
// failure"; "leader changed"; "server stopped" (all of gRPC's code Unavailable,
// https://etcd.io/docs/v3.4/learning/api_guarantees/: the client may be
// uncertain about the status of an operation). Such an error ends a read for
// sure, and leaves a commit unknown once it was sent.
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

// codeOf returns the gRPC code of an error of the client's, of a call or of a
// context; other errors, such as the dialer's, have none.
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

// failure makes the error of a call to a node.
func failure(op, node string, err error, at optimistic.Phase) *db.Error {
	class, code, text := classify(err, at)
	return &db.Error{
		Class: class, Code: code, Op: op,
		Err: db.MessageError{Text: fmt.Sprintf("etcd node %s: %s", node, text), Cause: err},
	}
}

package mongodb

import "stroppy/internal/db"

// MongoDB's error codes, from src/mongo/base/error_codes.err (4.2 to 8.0).
const (
	codeBadValue            = 2
	codeUnauthorized        = 13
	codeUserNotFound        = 11
	codeAuthentication      = 18
	codeIllegalOperation    = 20
	codeNamespaceExists     = 48
	codeDocumentValidation  = 121
	codeWriteConflict       = 112
	codeSnapshotUnavailable = 246
	codeDuplicateKey        = 11000
	codeMaxTimeMSExpired    = 50
	codeNoSuchTransaction   = 251
)

// refusals maps a server's code to the class of an error before the commit was sent. Nothing of the transaction can
// have been applied. Codes that are not listed are Aborted.
var refusals = map[int32]db.Class{
	codeWriteConflict:       db.Aborted, // another transaction has written to the document; the server does not wait
	codeSnapshotUnavailable: db.Aborted, // a collection is newer than the snapshot
	239:                     db.Aborted, // SnapshotTooOld
	24:                      db.Aborted, // LockTimeout: maxTransactionLockRequestTimeoutMillis
	46:                      db.Aborted, // LockBusy
	codeMaxTimeMSExpired:    db.Aborted, // time-out of the URL, enforced by the server
	262:                     db.Aborted, // ExceededTimeLimit
	codeNoSuchTransaction:   db.Aborted, // ended by the server: a fail-over, or transactionLifetimeLimitSeconds
	267:                     db.Aborted, // PreparedTransactionInProgress
	290:                     db.Aborted, // TransactionExceededLifetimeLimitSeconds
	43:                      db.Aborted, // CursorNotFound
	175:                     db.Aborted, // the collection was dropped meanwhile (QueryPlanKilled)
	13388:                   db.Aborted, // StaleConfig: a shard has moved
	63:                      db.Aborted, // StaleShardVersion

	codeDocumentValidation: db.Constraint,
	codeDuplicateKey:       db.Constraint,

	// Codes of a member that is no longer primary, or that is shutting down.
	6: db.Unavailable, 7: db.Unavailable, 89: db.Unavailable, 9001: db.Unavailable, // HostUnreachable, HostNotFound, NetworkTimeout, SocketException
	91: db.Unavailable, 189: db.Unavailable, // ShutdownInProgress, PrimarySteppedDown
	133: db.Unavailable, 134: db.Unavailable, // FailedToSatisfyReadPreference, ReadConcernMajorityNotAvailableYet
	10107: db.Unavailable, 11600: db.Unavailable, 11602: db.Unavailable, // NotWritablePrimary, InterruptedAtShutdown, InterruptedDueToReplStateChange
	13435: db.Unavailable, 13436: db.Unavailable, // NotPrimaryNoSecondaryOk, NotPrimaryOrSecondary: in a rollback or a recovery

	codeBadValue: db.Fatal, 9: db.Fatal, 14: db.Fatal, 72: db.Fatal, // FailedToParse, TypeMismatch, InvalidOptions
	codeUnauthorized: db.Fatal, codeAuthentication: db.Fatal, codeUserNotFound: db.Fatal,
	codeIllegalOperation: db.Fatal, 59: db.Fatal, 115: db.Fatal, 263: db.Fatal, // CommandNotFound, CommandNotSupported, OperationNotSupportedInTransaction
	40415: db.Fatal,                  // an unknown field of a command: another product
	10334: db.Fatal, 17280: db.Fatal, // BSONObjectTooLarge, KeyTooLong
	14031: db.Fatal, // OutOfDiskSpace
}

// commitRefusals maps the codes of a commit that was certainly not applied. The server returns them before it writes
// any part of it (src/mongo/db/transaction_participant.cpp, 4.2). A second attempt of an applied commit returns
// success. All other codes are Unknown, even NoSuchTransaction and Unauthorized. The library repeats a commit by
// itself when it has lost an answer, and the second server's answer may not describe the first attempt.
var commitRefusals = map[int32]db.Class{
	codeWriteConflict:       db.Aborted, // from a shard that could not prepare
	codeSnapshotUnavailable: db.Aborted,
}

var constraints = map[int32]db.ConstraintKind{
	codeDocumentValidation: db.CheckFailed, // the collection's schema: a field that must not be negative
	codeDuplicateKey:       db.UniqueKey,   // of the id
}

var advices = map[int32]string{
	codeIllegalOperation: "transactions need a replica set or mongos",
	14031:                "free space on the server's disk",
}

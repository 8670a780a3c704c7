// Package load generates load: it decides when each transaction is due, runs it until its outcome is known or
// its retries are used up, measures it and records it. It is independent of workloads and databases.
package load

import (
	"context"
	"errors"
	"time"

	"stroppy/internal/history"
)

// Client makes and runs the transactions of one client. It is used by one goroutine at a time and must not
// allocate for each transaction.
type Client interface {
	// Next chooses the client's next transaction and sets ID, Kind and Ops (Object, Write, Amount). It reuses
	// the memory of Ops and Elements. The choice depends only on the seed, the client's number and the number
	// of calls, never on outcomes.
	Next(tx *history.Transaction)

	// Attempt runs the transaction once. If it returns nil, it has set Outcome to Committed or to Rejected
	// with its Reason, and what it read in Ops. Otherwise the class of the error states what happened. Errors
	// must be existing values or come from the driver.
	Attempt(ctx context.Context, tx *history.Transaction) error

	// ResolveUnknown looks up a transaction of unknown outcome by ID, with an answer that stays true: it sets
	// Outcome to Committed, or closes the ID permanently and sets Aborted. It is not called for read-only
	// transactions.
	ResolveUnknown(ctx context.Context, tx *history.Transaction) error

	// Reset closes the connection and opens a new one, with one attempt.
	Reset(ctx context.Context) error

	Close() error
}

// Background is a client that runs one transaction in each interval of the load phase and is not measured. It
// runs at least one, unless the load phase is interrupted: its first transaction may continue after the
// clients have ended, until it meets no conflict.
type Background struct {
	Client Client
	Every  time.Duration
	After  time.Duration // from the start of the load phase to the first one
	// Wake, if not nil, makes the next transaction begin at once, or after the one that is running.
	Wake chan struct{}
}

// ErrAlreadyApplied is returned by Attempt, possibly wrapped, if the ledger has the transaction's own ID although every
// earlier try was reported as not applied. The transaction is recorded as Aborted, as the database reported, so that
// the check no-ghost finds the violation.
var ErrAlreadyApplied = errors.New("the transaction is in the ledger although the database had reported it as not applied")

// Package load is the load generator: it decides when each transaction is due, tries
// it until its outcome is known or the retries are used up, times it, and records it.
// It knows neither workloads nor databases.
package load

import (
	"context"
	"errors"
	"time"

	"stroppy/internal/history"
)

// Client makes and tries the transactions of one client. It is used by one
// goroutine at a time, and allocates nothing per transaction.
type Client interface {
	// Next chooses the client's next transaction and fills in ID, Kind and
	// Ops (Object, Write, Amount); it uses the memory of Ops and Elements again. It is a
	// function of the seed, the client's number and how often it was called: outcomes never
	// change the choice.
	Next(tx *history.Transaction)

	// Attempt tries it once. With nil it has set Outcome to Committed or to
	// Rejected with its Reason, and what it observed in Ops; otherwise the
	// error's class says what happened. Errors are values that exist already or
	// come from the driver.
	Attempt(ctx context.Context, tx *history.Transaction) error

	// ResolveUnknown looks up by ID a transaction whose outcome is unknown, in such a way
	// that the answer stays true: it sets Outcome to Committed, or closes the ID
	// for ever and sets Aborted. Nothing that only reads is ever unknown.
	ResolveUnknown(ctx context.Context, tx *history.Transaction) error

	// Reset drops the connection and opens a new one, once.
	Reset(ctx context.Context) error

	Close() error
}

// Background is a client that runs one transaction each interval during the load phase
// and does not count in the measurements. It runs one at least, unless the load phase is
// ended before: the first outlasts the clients until it meets no conflict any more.
type Background struct {
	Client Client
	Every  time.Duration
	After  time.Duration // from the start of the load phase to the first one
}

// ErrAlreadyApplied is what Attempt returns, wrapped or not, when it finds the
// transaction's own ID in the ledger although every earlier try was reported as
// surely not applied. The transaction is then recorded as Aborted, which is what
// the database said, so that the check no-ghost can name the lie.
var ErrAlreadyApplied = errors.New("the transaction is in the ledger although the database had reported it as not applied")

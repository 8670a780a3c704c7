// Package workload defines a workload for the run that conducts it. Each folder below holds one workload, written
// once for each data model of db.
package workload

import (
	"context"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
)

// Workload is one workload bound to one open database.
type Workload interface {
	// Load makes the initial data; progress is called now and then with what is
	// done of the total.
	Load(ctx context.Context, progress func(done, total uint64)) (Loaded, error)

	// Attach finds what an earlier Load has left, which may have been made on
	// another machine, and refuses what does not fit: no load, half a load,
	// another seed, size or schema version. It takes the next run number.
	// Load is followed by Attach too.
	Attach(ctx context.Context) (Loaded, error)

	// Join makes Attach find the data of that load id and use the run number that another
	// process has taken, instead of taking one. It is called before Attach.
	Join(loadID string, run uint64)

	// AttachReadOnly finds the same and takes no run number: it only reads, as a user
	// does who may not write. EndState is all that can follow it.
	AttachReadOnly(ctx context.Context) (Loaded, error)

	// Leave marks that the current run changes the data no more: each of its transactions has ended. A later Attach
	// then detects changes by others. Leave does nothing after AttachReadOnly or Join.
	Leave(ctx context.Context) error

	// Claim returns the promise of the database at the isolation level of the clients.
	Claim() db.Claim

	// Header returns what the checks need in the history; valid after Attach.
	Header() history.Header

	// Client opens client i; valid after Attach.
	Client(ctx context.Context, i int) (load.Client, error)

	// Background returns clients that run besides and are not measured, such as an auditor; valid after Attach.
	Background(ctx context.Context) ([]load.Background, error)

	// CheckUnchanged returns an error for the user if the initial data were loaded again since Attach or
	// AttachReadOnly. It returns nil if they were not, or if that cannot be read.
	CheckUnchanged(ctx context.Context) error

	// EndState downloads what the checks need into end; valid after Attach or
	// AttachReadOnly.
	EndState(ctx context.Context, end *history.EndWriter, progress func(done, total uint64)) error

	// ForNode returns the workload that this one is attached to as another database
	// holds it: one node of the same cluster, which may be read only. EndState is all
	// that it is for.
	ForNode(database db.Database) (Workload, error)

	// Remove removes from the database what a Load of this workload and the runs have made, and nothing else. It
	// refuses data that no Load has made.
	Remove(ctx context.Context) (Removed, error)

	// OnOverwrite has report called with one sentence before a Load replaces data that
	// are loaded.
	OnOverwrite(report func(what string))
}

// UsageError is a mistake of the user that shows only when the workload meets its files or its database.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }

// Removed describes what was removed from a database.
type Removed struct {
	What  string   // the data, to stand behind "the"; empty: there were none
	Names []string // the tables, collections or keys that are gone
}

// Loaded describes the initial data.
type Loaded struct {
	Size    uint64        // how many things were loaded
	Things  string        // what Size counts; empty: accounts
	Total   string        // decimal text; empty where nothing is added up
	Took    time.Duration // zero from Attach
	Resumed uint64        // how many of them an interrupted load had left and this one kept
}

// Table is an additional table of the report.
type Table = check.Table

// The modes in which the statements of a transaction travel.
const (
	Pipelined   = "pipelined"   // together, as far as they do not need each other's results
	Interactive = "interactive" // one by one
	Procedure   = "procedure"   // as one call of a stored procedure
)

// Session holds how the clients of a run speak to the database.
type Session struct {
	Isolation string   // as the database names it; empty is its own default
	Mode      string   // how statements travel; empty is the choice of the workload and the data model
	Claim     db.Claim // the promise of the database at the isolation level; set when the workload is bound to it
}

// SessionOptions returns the options of a client's session.
func (s *Session) SessionOptions() db.SessionOptions {
	o := db.SessionOptions{Isolation: s.Isolation, Mode: db.Pipelined}
	if s.Mode == Interactive {
		o.Mode = db.Interactive
	}
	return o
}

// RecordMode returns the mode of a run on a database of records: mode, unless it is left out.
func RecordMode(l db.Limits, mode string) string {
	switch {
	case mode != "":
		return mode
	case l.Deferred:
		return Procedure
	case l.Optimistic:
		return Pipelined
	}
	return Interactive
}

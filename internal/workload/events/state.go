package events

import (
	"context"
	"time"

	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// kind is what a log of events is to a database.
var kind = dataset.Kind{
	Noun: "log of events", Things: "streams", Make: "stroppy run events", Schema: 1,
	Table: "stroppy_events_meta", Prefix: "stroppy-events/meta/",
}

// Load makes the streams, which are empty. A log of this program that is there
// already is replaced; what somebody else made is never touched.
func (e *Log) Load(ctx context.Context, progress func(done, total uint64)) (workload.Loaded, error) {
	started := time.Now()
	kept, err := e.set.Load(ctx, progress)
	if err != nil {
		return workload.Loaded{}, err
	}
	return workload.Loaded{Accounts: e.want.Size, Things: kind.Things, Took: time.Since(started), Resumed: kept}, nil
}

// OnReplace has tell called with one sentence before a load replaces a log that is
// loaded.
func (e *Log) OnReplace(tell func(what string)) { e.want.Replacing = tell }

// Replaced returns a *dataset.StateError if the log in the database is now of
// another load than the one that this one is attached to.
func (e *Log) Replaced(ctx context.Context) error { return e.set.Replaced(ctx) }

// Attach finds the log that an earlier load has left, with what earlier runs have
// appended, and takes the next run number. It returns a *dataset.StateError if there
// is none that can be used and a *dataset.MismatchError if it is another than the one
// that was asked for.
func (e *Log) Attach(ctx context.Context) (workload.Loaded, error) {
	if err := e.set.Attach(ctx); err != nil {
		return workload.Loaded{}, err
	}
	return e.take(), nil
}

// Look finds the log as Attach does, and only reads. The run number that it goes by
// is one that nobody has taken.
func (e *Log) Look(ctx context.Context) (workload.Loaded, error) {
	if err := e.set.Look(ctx); err != nil {
		return workload.Loaded{}, err
	}
	return e.take(), nil
}

// take takes over what the database says about the log in it.
func (e *Log) take() workload.Loaded {
	n := e.set.Note()
	e.formula, e.streams, e.run, e.load = newFormula(n.Seed), n.Size, e.set.Run(), n.Load
	return workload.Loaded{Accounts: e.streams, Things: kind.Things}
}

// Package events is the log of events: clients append to the ends of streams, and everything is read back at the end.
// It is written once for each data model.
//
// # The log
//
// The entries of a stream have the numbers 1, 2, 3 … without a gap. Place 0 is the stream's origin, which the load
// makes and nobody removes. One commit appends --batch events to one stream, at the places after its last entry.
//
// By default each client has a stream of its own and remembers its end. With more streams than clients, a client
// takes its own streams in turn. With fewer, several clients append to one stream: they read its end in the
// transaction, and of two that read the same end only one can commit. The other is aborted and tried again.
//
// A value is ASCII, incompressible but for the two unused bits of each byte. It is a function of the seed, the
// transaction's id and the event's number within its batch. It begins with these two, its length and a checksum
// (CRC-32C). So a reader can prove without the writer that it is whole; see value.go. --fragment splits it into
// pieces, each a row or key of its own. Each piece has the id and the number, so it cannot pass for a piece of
// another event.
//
// # Lost answers
//
// A look-up for the events of a lost append is not enough, because the append may be on its way. But it can be
// applied only at the place that its client tried, while that place is free. SQL ensures this by the primary key.
// Key-value stores and records ensure it by the stream's end, which every append reads and writes. So the look-up
// takes the place with a tombstone, and then reads what is there:
// - The tombstone: the append can never be applied any more. It is aborted.
// - The append itself: it was applied, with its whole batch. It is committed.
// - Another client's entry: the place is taken, so the append can never be applied. It is aborted.
//
// The answer stays true whatever is on its way. A tombstone is a void entry: the log has no hole there, and the next
// append stands behind it. Earlier tries need no look-up, because the database has reported that they were not
// applied. To check this, each new try reads the place of the try before, and reports its own events there.
package events

import (
	"context"
	"fmt"
	"strconv"

	"stroppy/internal/check"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload/dataset"
)

// Name is the workload's name in commands, histories and results.
const Name = "events"

// kind describes a log of events to a database.
var kind = dataset.Kind{
	Workload: Name, Noun: "log of events", Things: "streams", Make: "stroppy run events", Schema: 1,
	Table: "stroppy_events_meta",
}

// appends is the kind of all transactions: events at the end of a stream. A transaction is rejected if its stream
// does not exist.
const (
	appends                     = 1 * history.Numbered
	noSuchStream history.Reason = 1
)

// Log is the workload on one open database.
type Log struct {
	*dataset.Set
	config  Config
	model   model
	formula formula // of what Attach found
}

// model is the log written for one data model.
type model interface {
	dataset.Store

	client(ctx context.Context, a *appender) (load.Client, error)

	// download hands every entry, in the order of streams and places, and every
	// stream's end to the reader.
	download(ctx context.Context, r *reader, report *dataset.Progress) error
}

var models = dataset.Models[model, Config]{SQL: newSQLModel, Records: newRecordModel}

// New binds the log to a database of any model that it is written for.
func New(database db.Database, c Config) (*Log, error) {
	err := c.Validate()
	if uint64(c.Batch)*c.Size.High > maxCommit {
		err = fmt.Errorf("a batch of %d events of up to %d bytes makes commits of more than %d bytes: take a smaller batch or a smaller value-size", c.Batch, c.Size.High, maxCommit)
	}
	if err != nil {
		return nil, err
	}
	e := &Log{config: c}
	e.model, e.Set, err = dataset.Bind(kind, database, &e.config, models, dataset.Expected{
		Session: &e.config.Session, Clients: c.Clients, Seed: c.Seed, Size: c.Streams,
		Rule: rule,
		Take: func(m *dataset.Metadata) error {
			e.formula = formula{m.Seed}
			return nil
		},
		Client: func(ctx context.Context, i int) (load.Client, error) {
			return e.model.client(ctx, newAppender(&e.config, e.formula, e.Size(), e.Run(), uint64(i)))
		},
		Another: func(d db.Database) (dataset.Bound, error) { return New(d, e.config) },
	})
	return e, err
}

// rule returns what contradicts the log that was loaded: no append removes an entry, the
// origin of a stream or its end. A part of the census has the ends of the streams, and another
// one the entries; or one part has all.
func rule(m *dataset.Metadata, c dataset.Census) string {
	ends, entries := &c[0], &c[len(c)-1]
	if _, ok := ends.Sums[columnPlace]; !ok {
		ends, entries = entries, ends
	}
	switch last := uint64(ends.Sums[columnPlace]); {
	case !ends.Whole:
	case ends.Rows < m.Size:
		return fmt.Sprintf("%s has %s entries for the %s streams of the load", ends.Name, check.Group(ends.Rows), check.Group(m.Size))
	case ends != entries && entries.Whole && entries.Rows < last:
		return fmt.Sprintf("%s has %s entries for the %s entries of all streams", entries.Name, check.Group(entries.Rows), check.Group(last))
	}
	return ""
}

// columnPlace is the last place of a stream.
const columnPlace = "place"

// Header returns what the checks need in the history; valid after Attach.
func (e *Log) Header() history.Header {
	return e.Complete(history.Header{
		Kinds:   []history.Declared{appends.Named("append")},
		Reasons: []history.Declared{noSuchStream.Named("no such stream")},
		Object:  "stream",
		Unit:    "bytes",
		Keys: map[string]string{
			keyBatch:   strconv.Itoa(e.config.Batch),
			keyLow:     strconv.FormatUint(e.config.Size.Low, 10),
			keyHigh:    strconv.FormatUint(e.config.Size.High, 10),
			"fragment": strconv.FormatUint(e.config.Fragment, 10),
			"mode":     e.config.Mode,
		},
	})
}

// EndState downloads the log and proves every value while it does, as dataset.Download
// does: ends and entries must agree.
func (e *Log) EndState(ctx context.Context, end *history.EndWriter, progress func(done, total uint64)) error {
	return dataset.Download(ctx, e.Set, end.Restart, func() (uint64, bool, error) {
		r := &reader{formula: &e.formula, streams: e.Size(), end: end, lasts: map[uint64]history.Object{}, origins: map[uint64]bool{}}
		err := e.model.download(ctx, r, &dataset.Progress{Report: progress})
		return r.seen, r.agrees, err
	})
}

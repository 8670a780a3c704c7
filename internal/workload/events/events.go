package events

import (
	"context"
	"fmt"
	"strconv"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// Name is the workload's name in commands, histories and results.
const Name = "events"

// Log is the log of events on one open database.
type Log struct {
	config Config
	model  model
	set    *dataset.Set
	want   dataset.Want

	// What Attach found.
	formula formula
	streams uint64
	run     uint64
	load    string // the id of the load
}

var _ workload.Workload = (*Log)(nil)

// model is the log written for one data model; how it is loaded is a dataset.Tables
// or dataset.Keys.
type model interface {
	client(ctx context.Context, a *appender) (load.Client, error)

	// download hands every entry, in the order of streams and places, and every
	// stream's end to the reader.
	download(ctx context.Context, r *reader, report *dataset.Progress) error
}

// New binds the log to a database of any model that it is written for.
func New(database db.Database, c Config) (*Log, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if _, err := database.Claim(c.Isolation); err != nil {
		return nil, err
	}
	if c.Mode == Procedure {
		return nil, fmt.Errorf("mode procedure is not for events, whose values would go through the procedure's language: take pipelined or interactive")
	}
	if c.Mode == "" {
		c.Mode = Pipelined
	}
	e := &Log{config: c}
	var store dataset.Store
	var err error
	switch d := database.(type) {
	case db.SQL:
		var m *sqlModel
		if m, err = newSQLModel(d, &e.config); err == nil {
			e.model, store = m, m.store
		}
	case db.KV:
		var m *kvModel
		if m, err = newKVModel(d, &e.config); err == nil {
			e.model, store = m, m.store
		}
	default:
		err = fmt.Errorf("the events workload is written for SQL and for ordered key-value stores, and this database is neither")
	}
	if err != nil {
		return nil, err
	}
	e.want = dataset.Want{Seed: c.Seed, Size: c.Streams}
	e.set = dataset.New(kind, database, store, &e.want)
	return e, nil
}

// On implements workload.Workload.
func (e *Log) On(database db.Database) (workload.Workload, error) {
	if !e.set.Found() {
		return nil, fmt.Errorf("look at the log of events on one node: it is not attached yet")
	}
	other, err := New(database, e.config)
	if err != nil {
		return nil, err
	}
	other.set.Adopt(e.set)
	other.formula, other.streams, other.run = e.formula, e.streams, e.run
	return other, nil
}

// Header is what the history must keep for the checks; valid after Attach.
func (e *Log) Header() history.Header {
	return history.Header{
		Kinds:    history.Kinds(history.Append, history.Fetch),
		Object:   "stream",
		Unit:     "bytes",
		Workload: Name,
		LoadID:   e.load,
		Run:      e.run,
		Seed:     e.formula.seed,
		Accounts: e.streams,
		Clients:  e.config.Clients,
		Keys: map[string]string{
			keyBatch:    strconv.Itoa(e.config.Batch),
			keyLow:      strconv.FormatUint(e.config.Size.Low, 10),
			keyHigh:     strconv.FormatUint(e.config.Size.High, 10),
			keyFragment: strconv.FormatUint(e.config.Fragment, 10),
			keyMode:     e.config.Mode,
		},
	}
}

// Client opens client i; valid after Attach.
func (e *Log) Client(ctx context.Context, i int) (load.Client, error) {
	if err := e.set.Client(i, e.config.Clients); err != nil {
		return nil, err
	}
	return e.model.client(ctx, newAppender(&e.config, e.formula, e.streams, e.run, uint64(i)))
}

// Background returns none: everything is read back in the end.
func (e *Log) Background(context.Context) ([]load.Background, error) { return nil, nil }

// EndState downloads the log and proves every value while it does, as dataset.Download
// does: ends and entries must agree.
func (e *Log) EndState(ctx context.Context, end *history.EndWriter, progress func(done, total uint64)) error {
	return dataset.Download(ctx, e.set, end.Restart, func() (uint64, bool, error) {
		r := &reader{formula: &e.formula, streams: e.streams, end: end}
		err := e.model.download(ctx, r, &dataset.Progress{Report: progress})
		return r.seen, r.agrees, err
	})
}

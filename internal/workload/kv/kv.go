package kv

import (
	"context"
	"fmt"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// Name is the workload's name in commands, histories and results.
const Name = "kv"

// Workload is the key-value workload on one open database.
type Workload struct {
	config Config
	model  model
	set    *dataset.Set
	want   dataset.Want

	// What Attach found.
	formula *formula
	shape   shape
	records uint64
	run     uint64
	load    string // the id of the load; empty where it has none
}

var _ workload.Workload = (*Workload)(nil)

// model is the workload written for one data model; how it is loaded is a
// dataset.Tables or dataset.Keys.
type model interface {
	client(ctx context.Context, h *chooser, i int) (load.Client, error)
	endState(ctx context.Context, e *endRecords) error
}

// New binds the workload to a database of any model that it is written for.
func New(database db.Database, c Config) (*Workload, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := c.checkValues(database); err != nil {
		return nil, err
	}
	if _, err := database.Claim(c.Isolation); err != nil {
		return nil, err
	}
	w := &Workload{config: c}
	var store dataset.Store
	var err error
	switch d := database.(type) {
	case db.SQL:
		var m *sqlModel
		if m, err = newSQLModel(d, &w.config); err == nil {
			w.model, store = m, m.store
		}
	case db.KV:
		var m *kvModel
		if m, err = newKVModel(d, &w.config); err == nil {
			w.model, store = m, m.store
		}
	default:
		err = fmt.Errorf("the kv workload is written for SQL and for ordered key-value stores, and this database is neither")
	}
	if err != nil {
		return nil, err
	}
	w.want = dataset.Want{Seed: c.Seed, Size: c.Records, Facts: factsOf(c.shape()), Fits: w.fits}
	w.set = dataset.New(kind, database, store, &w.want)
	return w, nil
}

// On implements workload.Workload.
func (w *Workload) On(database db.Database) (workload.Workload, error) {
	if !w.set.Found() {
		return nil, fmt.Errorf("look at the records on one node: they are not attached yet")
	}
	other, err := New(database, w.config)
	if err != nil {
		return nil, err
	}
	other.set.Adopt(w.set)
	other.formula, other.shape, other.records, other.run = w.formula, w.shape, w.records, w.run
	return other, nil
}

// Header is what the history must keep for the checks; valid after Attach.
func (w *Workload) Header() history.Header {
	return history.Header{
		Kinds:    history.Kinds(history.Get, history.Put, history.Insert, history.Scan, history.Modify),
		Reasons:  history.Reasons(history.NoSuchAccount),
		Object:   "record",
		Unit:     "bytes",
		Workload: Name,
		LoadID:   w.load,
		Run:      w.run,
		Seed:     w.formula.seed,
		Accounts: w.records,
		Clients:  w.config.Clients(),
		Keys:     factsOf(w.shape),
	}
}

// Client opens client i; valid after Attach. Clients whose transactions share a
// connection are opened one after the other.
func (w *Workload) Client(ctx context.Context, i int) (load.Client, error) {
	if err := w.set.Client(i, w.config.Clients()); err != nil {
		return nil, err
	}
	return w.model.client(ctx, w.chooser(i), i)
}

// Background returns none.
func (w *Workload) Background(context.Context) ([]load.Background, error) { return nil, nil }

// EndState downloads all records, what they say of themselves in place of their
// values, as dataset.Download does: a record agrees with itself.
func (w *Workload) EndState(ctx context.Context, end *history.EndWriter, progress func(done, total uint64)) error {
	return dataset.Download(ctx, w.set, end.Restart, func() (struct{}, bool, error) {
		e := newEndRecords(w.formula, end, &dataset.Progress{Report: progress, Total: w.records})
		if err := w.model.endState(ctx, e); err != nil {
			return struct{}{}, false, fmt.Errorf("download the records: %w", err)
		}
		return struct{}{}, true, nil
	})
}

// chooser makes the transactions of client i.
func (w *Workload) chooser(i int) *chooser {
	return newChooser(&w.config, w.formula, w.records, w.run, uint64(i))
}

// endRecords turns records into the end state.
type endRecords struct {
	formula  *formula
	end      *history.EndWriter
	progress *dataset.Progress
	scratch  []byte
	count    uint64
}

func newEndRecords(f *formula, end *history.EndWriter, progress *dataset.Progress) *endRecords {
	return &endRecords{formula: f, end: end, progress: progress, scratch: f.newKey()}
}

// progressRecords is how many records pass between two looks at the clock.
const progressRecords = 4096

func (e *endRecords) add(key, value []byte) error {
	if e.count++; e.count%progressRecords == 0 {
		e.progress.Total = max(e.progress.Total, e.count)
		e.progress.Done(e.count)
	}
	n, ok := e.formula.number(key, e.scratch)
	if !ok {
		return e.end.Unexpected(fmt.Sprintf("a key %q with a value of %d bytes, which neither the load nor a transaction makes", key, len(value)))
	}
	writer, whole := e.formula.parse(value, n)
	state := history.Broken
	if whole {
		state = history.Whole
	}
	return e.end.Object(history.Object{N: n, Value: int64(len(value)), State: state, Writer: writer})
}

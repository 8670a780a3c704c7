package tpcb

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
const Name = "tpcb"

// TPCB is the workload on one open database.
type TPCB struct {
	config Config
	model  model
	store  dataset.Store
	set    *dataset.Set
	want   dataset.Want
	facts  facts // what Attach or Look found
}

var _ workload.Workload = (*TPCB)(nil)

// model is the workload written for one data model; how it is loaded is a
// dataset.Tables or dataset.Keys.
type model interface {
	// adopt writes the note of tables that are there without one, if there are any.
	adopt(ctx context.Context, seed uint64) error
	// replaces is told, before a load, what the database held until then.
	replaces(was *facts)
	// take takes over what was found.
	take(f *facts) error
	// prepare makes what the clients of this run need beside the data. A run that
	// keeps no history says so in the database, for the checks of later ones.
	prepare(ctx context.Context, run uint64) error

	client(ctx context.Context, h *chooser) (load.Client, error)
	endState(ctx context.Context, rows *endRows) error
}

// New binds the workload to a database of any model that it is written for.
func New(database db.Database, c Config) (*TPCB, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if _, err := database.Claim(c.Isolation); err != nil {
		return nil, err
	}
	t := &TPCB{config: c}
	var err error
	switch d := database.(type) {
	case db.SQL:
		var m *sqlModel
		if m, err = newSQLModel(d, &t.config); err == nil {
			t.model, t.store = m, m.store
		}
	case db.KV:
		var m *kvModel
		if m, err = newKVModel(d, &t.config); err == nil {
			t.model, t.store = m, m.store
		}
	default:
		err = fmt.Errorf("the tpcb workload is written for SQL and for ordered key-value stores, and this database is neither")
	}
	if err != nil {
		return nil, err
	}
	t.want = dataset.Want{Seed: c.Seed, Fits: t.fits}
	if c.Scale != 0 {
		s, err := c.size()
		if err != nil {
			return nil, err
		}
		t.want.Size = s.rows()
	}
	t.set = dataset.New(dataKind, database, t.store, &t.want)
	return t, nil
}

// On implements workload.Workload.
func (t *TPCB) On(database db.Database) (workload.Workload, error) {
	if !t.set.Found() {
		return nil, fmt.Errorf("look at tpcb on one node: it is not attached yet")
	}
	other, err := New(database, t.config)
	if err != nil {
		return nil, err
	}
	other.set.Adopt(t.set)
	other.facts = t.facts
	return other, other.model.take(&other.facts)
}

// What the header of a history keeps beside the run's numbers.
const (
	keyScale    = "scale"
	keyRatio    = "ratio"
	keyVersions = "versions"
	keyHistory  = "history"
	keyMode     = "mode"
	// keyStrangers is how many rows of the history were somebody else's when the
	// data were first driven.
	keyStrangers = "strangers"
)

// Header is what the history must keep for the checks; valid after Attach.
func (t *TPCB) Header() history.Header {
	n, f := t.set.Note(), &t.facts
	return history.Header{
		Kinds:    history.Kinds(history.Profile),
		Object:   "row",
		Unit:     "number",
		Workload: Name,
		LoadID:   n.Load,
		Run:      t.set.Run(),
		Seed:     n.Seed,
		Accounts: n.Size,
		Clients:  t.config.Clients,
		Keys: map[string]string{
			keyScale:     strconv.FormatUint(f.scale, 10),
			keyRatio:     ratioText(f.ratio),
			keyVersions:  strconv.FormatBool(f.versions),
			keyHistory:   strconv.FormatBool(t.config.History),
			keyMode:      t.config.Mode,
			keyStrangers: strconv.FormatUint(f.strangers, 10),
		},
	}
}

// sizeOf reads the rows from a header; false if it does not say.
func sizeOf(h history.Header) (size, bool) {
	scale, err := strconv.ParseUint(h.Keys[keyScale], 10, 64)
	ratio, ok := parseRatio(h.Keys[keyRatio])
	if err != nil || !ok {
		return size{}, false
	}
	c := Config{Scale: scale, Ratio: ratio}
	s, err := c.size()
	return s, err == nil && s.rows() == h.Accounts
}

// Client opens client i; valid after Attach.
func (t *TPCB) Client(ctx context.Context, i int) (load.Client, error) {
	if err := t.set.Client(i, t.config.Clients); err != nil {
		return nil, err
	}
	return t.model.client(ctx, newChooser(&t.config, t.facts.size, t.set.Note().Seed, t.set.Run(), uint64(i)))
}

// Background returns none: nothing runs beside the clients.
func (t *TPCB) Background(context.Context) ([]load.Background, error) { return nil, nil }

// EndState downloads all rows and the history, as dataset.Download does: the sums of the
// tables must agree.
func (t *TPCB) EndState(ctx context.Context, end *history.EndWriter, progress func(done, total uint64)) error {
	return dataset.Download(ctx, t.set, end.Restart, func() (books, bool, error) {
		rows := &endRows{size: t.facts.size, end: end, report: dataset.Progress{Report: progress, Total: t.facts.size.rows()}}
		err := t.model.endState(ctx, rows)
		return rows.books, rows.books.agree(), err
	})
}

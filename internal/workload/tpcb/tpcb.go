// Package tpcb is the transaction of TPC-B as pgbench has it: an account, a teller
// and a branch each get an amount, and a row of the history says so. Tables,
// columns, types and statements are pgbench's own, so that pgbench runs on what
// this package has loaded, and this package on what `pgbench -i` has loaded.
//
// # Exactly once
//
// pgbench leaves the column filler of its history empty. Here it holds the id of
// the transaction, so that the history says which transactions were applied and
// how often, at the cost of no statement.
//
// The price is that an id cannot be closed: pgbench's history has no key, so a
// look-up that does not find an id keeps nobody from applying it later. Nor can a
// lock on one of the three rows, for the lost transaction may not have reached its
// first row yet. Only a statement more in each transaction could, and then it would
// no longer be pgbench's. So a transaction whose answer was lost stays unknown for
// its client, and the end state, whose history has its id or has not, decides: the
// checks count it as applied or not without doubt. In the rows with versions, which
// are not pgbench's, the id is the key of the history, and in a key-value store it
// is a key of its own; there a look-up writes a tombstone under it, and is right for
// ever.
//
// Without the history nothing shows whether a lost transaction was applied. The
// balances are then checked against what was acknowledged, and as soon as one outcome
// is unknown that comparison is unknown too.
//
// # Data that others have made
//
// What a pgbench before us has left is part of the opening: when its tables are
// driven for the first time, what each row holds beyond the rows of the history is
// written into a table of our own, in one statement. Rows of the history without an
// id are somebody else's and explain balances as ours do.
package tpcb

import (
	"context"
	"strconv"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload/dataset"
)

// Name is the workload's name in commands, histories and results.
const Name = "tpcb"

// profile is the kind of all transactions, and noSuchRow why one is rejected.
const (
	profile                  = 1 * history.Numbered
	noSuchRow history.Reason = 1
)

// TPCB is the workload on one open database.
type TPCB struct {
	*dataset.Set
	config Config
	model  model
	asked  size  // all zero where whatever the database holds is right
	facts  facts // that Attach or AttachReadOnly found
}

// model is the workload written for one data model.
type model interface {
	dataset.Store

	// adopt writes the metadata of tables that are there without, if there are any.
	adopt(ctx context.Context, seed uint64) error
	// rule returns what in a census contradicts the data with these facts, as dataset.Expected.Rule does.
	rule(f *facts, c dataset.Census) string
	// replaces is called before a load with what the database held until then.
	replaces(was *facts)
	// take takes over what was found.
	take(f *facts) error

	client(ctx context.Context, h *chooser) (load.Client, error)
	endState(ctx context.Context, rows *endRows) error
}

var models = dataset.Models[model, Config]{SQL: newSQLModel, Records: newRecordModel, Procedures: newProcedureModel, Tables: newTableModel}

// New binds the workload to a database of any model that it is written for.
func New(database db.Database, c Config) (*TPCB, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	t := &TPCB{config: c}
	t.asked, _ = c.size() // which was checked, if there is any
	var err error
	t.model, t.Set, err = dataset.Bind(dataKind, database, &t.config, models, dataset.Expected{
		Session: &t.config.Session, Clients: c.Clients, Seed: c.Seed, Size: t.asked.rows(), AnySize: true,
		Facts: func(context.Context) (map[string]string, error) {
			f := facts{scale: t.config.Scale, ratio: t.config.Ratio, versions: t.config.Versions}
			return f.metadata(), nil
		},
		Replace: t.replace, Take: t.take,
		Rule: func(_ *dataset.Metadata, c dataset.Census) string { return t.model.rule(&t.facts, c) },
		Explains: func(_ *dataset.Metadata, c dataset.Census) bool {
			_, shared := t.model.(*sqlModel)
			return shared && !t.facts.versions && accountsForAll(c) && t.model.rule(&t.facts, c) == ""
		},
		Anew: func(c dataset.Census) bool {
			_, shared := t.model.(*sqlModel)
			return shared && !t.facts.versions && untouched(c)
		},
		Client: func(ctx context.Context, i int) (load.Client, error) {
			return t.model.client(ctx, newChooser(&t.config, t.facts.size, t.Seed(), t.Run(), uint64(i)))
		},
		Another: func(d db.Database) (dataset.Bound, error) { return New(d, t.config) },
	})
	return t, err
}

// What the header of a history keeps besides the facts of the data.
const (
	keyHistory = "history"
	keyMode    = "mode"
)

// Header is what the history must keep for the checks; valid after Attach.
func (t *TPCB) Header() history.Header {
	keys := t.facts.metadata()
	delete(keys, factAdopted)
	keys[keyHistory], keys[keyMode] = strconv.FormatBool(t.config.History), t.config.Mode
	return t.Complete(history.Header{
		Kinds:   []history.Declared{profile.Named("TPC-B")},
		Reasons: []history.Declared{noSuchRow.Named("no such row")},
		Object:  "row", Unit: "number", Keys: keys,
	})
}

// EndState downloads all rows and the history, as dataset.Download does: the sums of the
// tables must agree.
func (t *TPCB) EndState(ctx context.Context, end *history.EndWriter, progress func(done, total uint64)) error {
	return dataset.Download(ctx, t.Set, end.Restart, func() (books, bool, error) {
		rows := &endRows{size: t.facts.size, end: end, report: dataset.Progress{Report: progress, Total: t.facts.size.rows()}}
		err := t.model.endState(ctx, rows)
		return rows.books, rows.books.agree(), err
	})
}

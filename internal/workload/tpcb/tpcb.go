// Package tpcb is pgbench's transaction of TPC-B: an account, a teller and a branch each get an amount, and the
// history gets a row. Tables, columns, types and statements are pgbench's own. So pgbench runs on data that this
// package has loaded, and this package on data of `pgbench -i`.
//
// # Exactly once
//
// pgbench leaves the column filler of its history empty. Here it holds the id of the transaction. So the history
// shows which transactions were applied and how often, without an additional statement.
//
// The price is that an id cannot be closed. pgbench's history has no key, so after a look-up that finds no id the
// transaction can still be applied. A lock on one of the three rows does not help, because the lost transaction may
// not have reached its first row. Only another statement in each transaction could close the id, and that would no
// longer be pgbench's transaction. So a transaction with a lost answer stays unknown for its client, and the history
// in the end state decides. With --versions the id is the key of the history, and in a key-value store it is a key of
// its own. There a look-up writes a tombstone under it, and is final.
//
// Without the history nothing shows whether a lost transaction was applied. The balances are then compared with the
// acknowledged transactions. One unknown outcome makes this comparison unknown.
//
// # Data of others
//
// The data of an earlier pgbench are part of the opening. At the first run, one statement writes into a table of our
// own what each row holds beyond the history. Rows of the history without an id belong to others and explain balances
// as ours do.
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

var models = dataset.Models[model, Config]{SQL: newSQLModel, Records: newRecordModel, Simple: true}

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

// Keys in the header of a history besides the facts of the data.
const (
	keyHistory = "history"
	keyMode    = "mode"
)

// Header returns what the checks need in the history; valid after Attach.
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

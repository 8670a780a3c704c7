package bank

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
const Name = "bank"

// Bank is the bank on one open database.
type Bank struct {
	config Config
	model  model
	set    *dataset.Set
	want   dataset.Want

	// What Attach found.
	formula  formula
	accounts uint64
	total    int64 // cents
	run      uint64
	load     string // the id of the load; empty where it has none
}

var _ workload.Workload = (*Bank)(nil)

// model is the bank written for one data model; how it is loaded is a
// dataset.Tables or dataset.Keys.
type model interface {
	// prepare makes what the clients need beside the data.
	prepare(ctx context.Context) error

	client(ctx context.Context, b *Bank, i int) (load.Client, error)
	auditor(ctx context.Context, b *Bank) (load.Client, error)
	endState(ctx context.Context, b *Bank, end *history.EndWriter, progress func(done, total uint64)) error
}

// New binds the bank to a database of any model that it is written for.
func New(database db.Database, c Config) (*Bank, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	claim, err := database.Claim(c.Isolation)
	if err != nil {
		return nil, err
	}
	b := &Bank{config: c}
	var store dataset.Store
	switch d := database.(type) {
	case db.SQL:
		var m *sqlModel
		if m, err = newSQLModel(d, &b.config, claim); err == nil {
			b.model, store = m, m.store
		}
	case db.KV:
		var m *kvModel
		if m, err = newKVModel(d, &b.config); err == nil {
			b.model, store = m, m.store
		}
	default:
		err = fmt.Errorf("the bank workload is written for SQL and for ordered key-value stores, and this database is neither")
	}
	if err != nil {
		return nil, err
	}
	b.want = dataset.Want{Seed: c.Seed, Size: c.Accounts, Fits: b.fits}
	b.set = dataset.New(kind, database, store, &b.want)
	return b, nil
}

// On implements workload.Workload.
func (b *Bank) On(database db.Database) (workload.Workload, error) {
	if !b.set.Found() {
		return nil, fmt.Errorf("look at the bank on one node: it is not attached yet")
	}
	other, err := New(database, b.config)
	if err != nil {
		return nil, err
	}
	other.set.Adopt(b.set)
	other.formula, other.accounts, other.total, other.run = b.formula, b.accounts, b.total, b.run
	return other, nil
}

// Header is what the history must keep for the checks; valid after Attach.
func (b *Bank) Header() history.Header {
	return history.Header{
		Kinds:    history.Kinds(history.Transfer, history.Payroll, history.Joint, history.Inquiry, history.Audit),
		Reasons:  history.Reasons(history.InsufficientFunds, history.NoSuchAccount),
		Object:   "account",
		Unit:     "cents",
		Workload: Name,
		LoadID:   b.load,
		Run:      b.run,
		Seed:     b.formula.seed,
		Accounts: b.accounts,
		Total:    b.total,
		Clients:  b.config.Clients,
		Keys: map[string]string{
			keyAudits: strconv.FormatFloat(b.config.Audits, 'g', -1, 64),
			keyUpdate: b.config.Update,
			keyMode:   b.config.Mode,
		},
	}
}

// Client opens client i; valid after Attach.
func (b *Bank) Client(ctx context.Context, i int) (load.Client, error) {
	if err := b.set.Client(i, b.config.Clients); err != nil {
		return nil, err
	}
	return b.model.client(ctx, b, i)
}

// Background returns the auditor, if audits are asked for; valid after Attach.
// Its client number is the one after the clients'.
func (b *Bank) Background(ctx context.Context) ([]load.Background, error) {
	if b.config.Audits == 0 {
		return nil, nil
	}
	if b.run == 0 {
		return nil, fmt.Errorf("open the auditor of the bank: it is not attached yet")
	}
	auditor, err := b.model.auditor(ctx, b)
	if err != nil {
		return nil, err
	}
	return []load.Background{{Client: auditor, Every: b.config.auditEvery()}}, nil
}

// EndState downloads all accounts and the ledger, as dataset.Download does: the versions
// of the accounts must add up to the legs of the ledger.
func (b *Bank) EndState(ctx context.Context, end *history.EndWriter, progress func(done, total uint64)) error {
	type found struct{ versions, legs uint64 }
	return dataset.Download(ctx, b.set, end.Restart, func() (found, bool, error) {
		err := b.model.endState(ctx, b, end, progress)
		versions, legs := end.Books()
		return found{versions, legs}, versions == legs, err
	})
}

// chooser makes the transactions of client i.
func (b *Bank) chooser(i int) *chooser {
	return newChooser(&b.config, b.formula, b.accounts, b.run, uint64(i))
}

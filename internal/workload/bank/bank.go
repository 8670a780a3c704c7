package bank

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/load"
	"stroppy/internal/workload"
)

// Name is the workload's name in commands, histories and results.
const Name = "bank"

// Bank is the bank on one open database.
type Bank struct {
	config   Config
	model    model
	volatile bool // the database keeps nothing

	// What Attach found.
	formula  formula
	accounts uint64
	total    int64 // cents
	run      uint64
	found    bool   // Attach or Look was there
	load     string // the id of the load; empty where it has none
	doing    string // what is done with the bank, in words; empty: whatever is there is told

	replacing func(what string) // is told before a load replaces a bank; may be nil
}

var _ workload.Workload = (*Bank)(nil)

// model is the bank written for one data model.
type model interface {
	// readMeta returns what the database says about the bank in it, of which
	// nothing may be there.
	readMeta(ctx context.Context) (meta, error)
	// foreign says what of somebody else's is where a bank would be; empty if
	// there is nothing.
	foreign(ctx context.Context) (string, error)
	// begin writes the meta of a load that starts, and clears away what an
	// earlier bank has left.
	begin(ctx context.Context, m meta) error
	// resumable returns how many accounts an interrupted load of the same bank
	// has left that can be kept.
	resumable(ctx context.Context, m meta) (uint64, error)
	// fill makes the accounts that are not there yet.
	fill(ctx context.Context, f *formula, m meta, progress func(done uint64)) error
	// finish writes the total and that the bank is loaded.
	finish(ctx context.Context, total int64) error
	// nextRun raises the run number from m.run by one, if it is still that.
	nextRun(ctx context.Context, m meta) error
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
	if v, ok := database.(db.Volatile); ok {
		b.volatile = v.Volatile()
	}
	switch d := database.(type) {
	case db.SQL:
		b.model, err = newSQLModel(d, &b.config, claim)
	case db.KV:
		b.model, err = newKVModel(d, &b.config)
	default:
		err = fmt.Errorf("the bank workload is written for SQL and for ordered key-value stores, and this database is neither")
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// On returns the bank that this one is attached to as another database holds
// it: one node of the same cluster, which may only let itself be read. EndState
// is all that it is for.
func (b *Bank) On(database db.Database) (*Bank, error) {
	if !b.found {
		return nil, fmt.Errorf("look at the bank on one node: it is not attached yet")
	}
	other, err := New(database, b.config)
	if err != nil {
		return nil, err
	}
	// Not held to the load's id: a node that holds another bank is told as wrong.
	other.formula, other.accounts, other.total, other.run, other.found = b.formula, b.accounts, b.total, b.run, true
	return other, nil
}

// Name returns the workload's name.
func (b *Bank) Name() string { return Name }

// Header is what the history must keep for the checks; valid after Attach.
func (b *Bank) Header() history.Header {
	return history.Header{
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
	if b.run == 0 {
		return nil, fmt.Errorf("open client %d of the bank: it is not attached yet", i)
	}
	if i < 0 || i >= b.config.Clients {
		return nil, fmt.Errorf("open client %d of the bank: it has clients 0 to %d", i, b.config.Clients-1)
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

// How often an end state is downloaded whose accounts and ledger do not agree,
// and the wait before it is downloaded again.
const (
	endTries = 10
	endWait  = 200 * time.Millisecond
)

// EndState downloads all accounts and the ledger. The two are read one after the
// other, and a transfer that a client had given up as unknown may still commit
// between them: it would look like a ledger that does not fit its accounts. So
// where they do not agree they are downloaded again until they do, or until
// twice the same was found, which is then what the database holds. A bank that was
// loaded anew since it was attached to is a *StateError.
func (b *Bank) EndState(ctx context.Context, end *history.EndWriter, progress func(done, total uint64)) error {
	if !b.found {
		return fmt.Errorf("download the end state of the bank: it is not attached yet")
	}
	var versions, legs uint64 // of the try before
	for try := 1; ; try++ {
		if err := b.model.endState(ctx, b, end, progress); err != nil {
			return cmp.Or(b.Replaced(ctx), err)
		}
		m, err := b.readAgain(ctx)
		if err == nil {
			err = b.sameLoad(m)
		}
		if err != nil {
			return err
		}
		v, l := end.Books()
		if v == l || try > 1 && v == versions && l == legs {
			return nil
		}
		if try == endTries {
			return stateErrorf("the bank was changed while it was downloaded, %d times in a row: end what else works on it, then check again", endTries)
		}
		versions, legs = v, l
		select {
		case <-time.After(endWait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := end.Restart(); err != nil {
			return err
		}
	}
}

// Check holds the recorded run in dir against the level, as CheckDir does.
func (b *Bank) Check(ctx context.Context, dir string, expect isolation.Level, tell func(check.Violation)) ([]check.Result, error) {
	return CheckDir(ctx, dir, expect, tell)
}

// chooser makes the transactions of client i.
func (b *Bank) chooser(i int) *chooser {
	return newChooser(&b.config, b.formula, b.accounts, b.run, uint64(i))
}

// every calls report now and then: progress is for people.
type every struct {
	report func(done, total uint64)
	total  uint64
	last   time.Time
}

const progressEvery = 100 * time.Millisecond

func (e *every) done(n uint64) {
	if e.report == nil {
		return
	}
	if now := time.Now(); n >= e.total || now.Sub(e.last) >= progressEvery {
		e.last = now
		e.report(n, e.total)
	}
}

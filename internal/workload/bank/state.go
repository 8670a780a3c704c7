package bank

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/money"
	"stroppy/internal/workload"
)

// schemaVersion is what this program writes. Any change of a table, a key or a
// formula makes the next one. A bank of plainSchema, which has no load id, can be
// driven as it is.
const (
	schemaVersion = 2
	plainSchema   = 1
)

// The names in the meta data that a bank's database carries.
const (
	metaSchema   = "schema"
	metaLoad     = "load_id" // drawn at random by each load
	metaState    = "state"
	metaSeed     = "seed"
	metaAccounts = "accounts"
	metaTotal    = "total" // decimal text; written at the end of the load
	metaRun      = "run"   // the last run number taken
	metaRows     = "rows"  // accounts loaded so far, where a load can be resumed
)

var metaNames = [...]string{metaSchema, metaLoad, metaState, metaSeed, metaAccounts, metaTotal, metaRun, metaRows}

// The states of a bank.
const (
	stateLoading = "loading"
	stateLoaded  = "loaded"
)

// meta is what a database says about the bank in it.
type meta struct {
	found    bool // there is one, of whatever schema
	schema   uint64
	load     string // empty of a bank of plainSchema
	state    string
	seed     uint64
	accounts uint64
	total    int64
	run      uint64
	rows     uint64
	unread   error // why nothing could be read, if that is not sure to be because nothing is there
	problem  error // a *StateError: what is written there makes no sense
}

// parseMeta reads meta data as they are stored. What makes no sense becomes the
// problem: a load may replace it, nothing else may use it.
func parseMeta(values map[string]string) meta {
	var m meta
	if _, m.found = values[metaSchema]; !m.found {
		return m
	}
	altered := func(name string) {
		m.problem = stateErrorf("the bank in this database says that its %s is %q, which no load has written: run `stroppy pop` to load it anew", name, values[name])
	}
	number := func(name string, to *uint64) {
		var err error
		if *to, err = strconv.ParseUint(values[name], 10, 64); err != nil {
			altered(name)
		}
	}
	if number(metaSchema, &m.schema); !m.readable() {
		return m
	}
	if m.load = values[metaLoad]; m.load == "" && m.schema != plainSchema {
		altered(metaLoad)
	}
	m.state = values[metaState]
	number(metaSeed, &m.seed)
	number(metaAccounts, &m.accounts)
	number(metaRun, &m.run)
	if m.state == stateLoading {
		number(metaRows, &m.rows)
		return m
	}
	var err error
	if m.total, err = money.Parse(values[metaTotal]); err != nil {
		altered(metaTotal)
	}
	return m
}

// readable says that this program understands what the bank is made of.
func (m *meta) readable() bool { return m.schema == schemaVersion || m.schema == plainSchema }

// Load makes the bank. One of this program that is there already is replaced;
// of an interrupted load of the same bank it keeps what is there. What somebody
// else made is never touched.
func (b *Bank) Load(ctx context.Context, progress func(done, total uint64)) (workload.Loaded, error) {
	started := time.Now()
	c := &b.config
	if c.Accounts == 0 || c.Seed == 0 {
		return workload.Loaded{}, fmt.Errorf("load the bank: the number of accounts and the seed must be given, and not be 0")
	}
	f := newFormula(c.Seed)
	total, err := f.total(c.Accounts)
	if err != nil {
		return workload.Loaded{}, err
	}
	m, err := b.model.readMeta(ctx)
	if err != nil {
		return workload.Loaded{}, err
	}
	if !b.volatile {
		if err := b.mayLoad(ctx, m); err != nil {
			return workload.Loaded{}, err
		}
	}
	var kept uint64
	if m.problem == nil && m.schema == schemaVersion && m.state == stateLoading && m.seed == c.Seed && m.accounts == c.Accounts {
		if kept, err = b.model.resumable(ctx, m); err != nil {
			return workload.Loaded{}, err
		}
	}
	if kept == 0 {
		b.tellReplaced(m)
		m = meta{found: true, schema: schemaVersion, load: rand.Text(), state: stateLoading, seed: c.Seed, accounts: c.Accounts}
		if err := b.model.begin(ctx, m); err != nil {
			return workload.Loaded{}, fmt.Errorf("begin the load: %w", err)
		}
	}
	report := every{report: progress, total: c.Accounts}
	reached := kept
	err = b.model.fill(ctx, &f, m, func(done uint64) { reached = done; report.done(done) })
	if err == nil {
		err = b.model.finish(ctx, total)
	}
	if err != nil {
		return workload.Loaded{}, loadError(reached, c.Accounts, err)
	}
	return workload.Loaded{
		Accounts: c.Accounts, Total: money.Format(total), Took: time.Since(started), Resumed: kept,
	}, nil
}

func loadError(done, total uint64, err error) error {
	return fmt.Errorf("the load stopped after %d of %d accounts (run `stroppy pop` again to finish it): %w", done, total, err)
}

// mayLoad refuses to touch what this program did not make.
func (b *Bank) mayLoad(ctx context.Context, m meta) error {
	if m.found {
		if !m.readable() {
			return schemaError(m)
		}
		return nil
	}
	what, err := b.model.foreign(ctx)
	if err != nil {
		return err
	}
	if what != "" {
		return stateErrorf("%s, which was not made by this program: rename or remove it, or use another database", what)
	}
	return nil
}

// OnReplace has tell called with one sentence before a load replaces a bank that
// is loaded.
func (b *Bank) OnReplace(tell func(what string)) { b.replacing = tell }

// tellReplaced says which bank a load is about to replace. Whether somebody still
// drives it nobody can know: a run that was killed says no more than one that
// goes on.
func (b *Bank) tellReplaced(m meta) {
	if b.volatile || b.replacing == nil || m.state != stateLoaded || m.problem != nil {
		return
	}
	what := fmt.Sprintf("the load replaces the bank of %d accounts and seed %d that was in this database", m.accounts, m.seed)
	switch m.run {
	case 0:
	case 1:
		what += ", on which 1 run has begun: one that still drives it ends without a verdict"
	default:
		what += fmt.Sprintf(", on which %d runs have begun: one that still drives it ends without a verdict", m.run)
	}
	b.replacing(what)
}

// Replaced returns a *StateError if the bank in the database is now of another
// load than the one that this one is attached to, and nil if it is not or if
// nobody can tell: a database that has lost the bank is to be held to what it
// promised.
func (b *Bank) Replaced(ctx context.Context) error {
	m, err := b.readAgain(ctx)
	if err != nil {
		return nil
	}
	return b.sameLoad(m)
}

// readAgain reads the meta data of a bank that is attached to, where they can tell
// of another load.
func (b *Bank) readAgain(ctx context.Context) (meta, error) {
	if b.volatile || b.doing == "" {
		return meta{}, nil
	}
	return b.model.readMeta(ctx)
}

// sameLoad holds the id of a load that was found later against the one that is
// attached to. A bank gets an id by being loaded and never loses it.
func (b *Bank) sameLoad(m meta) error {
	if m.load == "" || m.load == b.load {
		return nil
	}
	return stateErrorf("the bank in this database was loaded anew while it was %s: what was recorded of it is gone, so that nothing can be said about it", b.doing)
}

func schemaError(m meta) error {
	return stateErrorf("the bank in this database has schema version %d and this program reads %d: use the program that made it, or remove it and run `stroppy pop`", m.schema, schemaVersion)
}

// maxRun is the last run number that an ID can hold.
const maxRun = 1<<history.RunBits - 1

// attachTries bounds how often a run number that another process took first is
// asked for again.
const attachTries = 100

// Attach finds the bank that an earlier load has left and takes the next run
// number. It returns a *StateError if there is none that can be used and a
// *MismatchError if it is another than the one that was asked for.
func (b *Bank) Attach(ctx context.Context) (workload.Loaded, error) {
	if b.volatile {
		return b.attachVolatile()
	}
	for try := 1; ; try++ {
		m, err := b.model.readMeta(ctx)
		if err != nil {
			return workload.Loaded{}, err
		}
		if err := b.fits(m); err != nil {
			return workload.Loaded{}, err
		}
		if err = b.model.nextRun(ctx, m); err == nil {
			b.take(m, "driven")
			b.run++
			break
		}
		// A number taken without knowing it is only skipped.
		again := db.ClassOf(err) == db.Aborted || db.ClassOf(err) == db.Unknown
		if !again || try == attachTries || ctx.Err() != nil {
			return workload.Loaded{}, fmt.Errorf("write the next run number into the bank: %w", err)
		}
	}
	if err := b.model.prepare(ctx); err != nil {
		return workload.Loaded{}, err
	}
	return workload.Loaded{Accounts: b.accounts, Total: money.Format(b.total)}, nil
}

// take takes over what the database says about the bank in it.
func (b *Bank) take(m meta, doing string) {
	b.formula, b.accounts, b.total, b.run, b.found = newFormula(m.seed), m.accounts, m.total, m.run, true
	b.load, b.doing = m.load, doing
}

// Look finds the bank as Attach does, and only reads. The run number that it
// goes by is one that nobody has taken.
func (b *Bank) Look(ctx context.Context) (workload.Loaded, error) {
	if b.volatile {
		return b.attachVolatile()
	}
	m, err := b.model.readMeta(ctx)
	if err == nil {
		err = b.fits(m)
	}
	if err != nil {
		return workload.Loaded{}, err
	}
	b.take(m, "downloaded")
	b.run++
	return workload.Loaded{Accounts: b.accounts, Total: money.Format(b.total)}, nil
}

// attachVolatile attaches to a database that keeps nothing: the bank is what
// the configuration says.
func (b *Bank) attachVolatile() (workload.Loaded, error) {
	c := &b.config
	if c.Accounts == 0 {
		return workload.Loaded{}, fmt.Errorf("attach to the bank: this database keeps nothing, so the number of accounts must be given")
	}
	f := newFormula(c.Seed)
	total, err := f.total(c.Accounts)
	if err != nil {
		return workload.Loaded{}, err
	}
	b.formula, b.accounts, b.total, b.found = f, c.Accounts, total, true
	b.run = min(b.run+1, maxRun)
	return workload.Loaded{Accounts: b.accounts, Total: money.Format(total)}, nil
}

// fits says whether a bank can be used as this one is configured.
func (b *Bank) fits(m meta) error {
	c := &b.config
	switch {
	case m.unread != nil:
		return stateErrorf("there is no bank in this database that its user can read (%v): run `stroppy pop` first", m.unread)
	case !m.found:
		return stateErrorf("there is no bank in this database: run `stroppy pop` first")
	case !m.readable():
		return schemaError(m)
	case m.problem != nil:
		return m.problem
	case m.state != stateLoaded:
		return stateErrorf("the load was not finished: run `stroppy pop` again")
	case c.Seed != 0 && c.Seed != m.seed:
		return mismatchErrorf("the bank in this database was loaded with seed %d, and seed %d is asked for: leave the seed out, or run `stroppy pop`", m.seed, c.Seed)
	case c.Accounts != 0 && c.Accounts != m.accounts:
		return mismatchErrorf("the bank in this database has %d accounts, and %d are asked for: leave the number out, or run `stroppy pop`", m.accounts, c.Accounts)
	case m.run >= maxRun:
		return stateErrorf("all %d run numbers of this bank are used: run `stroppy pop` to load it anew", maxRun)
	}
	if err := c.checkAccounts(m.accounts); err != nil {
		return mismatchErrorf("the bank in this database does not fit: %v", err)
	}
	return nil
}

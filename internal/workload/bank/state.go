package bank

import (
	"context"
	"time"

	"stroppy/internal/money"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// kind is what a bank is to a database. A bank of the plain schema, which has no
// load id, can be driven as it is.
var kind = dataset.Kind{
	Noun: "bank", Things: "accounts", Make: "stroppy pop", Schema: 2, Plain: 1, Table: "stroppy_meta", Prefix: "stroppy/meta/",
}

// What the note of a bank keeps beside what every note has.
const (
	factTotal = "total" // decimal text
	facts     = 1
)

// Load makes the bank. One of this program that is there already is replaced;
// of an interrupted load of the same bank it keeps what is there. What somebody
// else made is never touched.
func (b *Bank) Load(ctx context.Context, progress func(done, total uint64)) (workload.Loaded, error) {
	started := time.Now()
	f := newFormula(b.config.Seed)
	total, err := f.total(ctx, b.config.Accounts)
	if err != nil {
		return workload.Loaded{}, err
	}
	want := b.want
	b.want.Facts = map[string]string{factTotal: money.Format(total)}
	defer func() { b.want = want }()
	kept, err := b.set.Load(ctx, progress)
	if err != nil {
		return workload.Loaded{}, err
	}
	return workload.Loaded{
		Accounts: b.config.Accounts, Total: money.Format(total), Took: time.Since(started), Resumed: kept,
	}, nil
}

// OnReplace has tell called with one sentence before a load replaces a bank that
// is loaded.
func (b *Bank) OnReplace(tell func(what string)) { b.want.Replacing = tell }

// Replaced returns a *dataset.StateError if the bank in the database is now of
// another load than the one that this one is attached to.
func (b *Bank) Replaced(ctx context.Context) error { return b.set.Replaced(ctx) }

// Attach finds the bank that an earlier load has left and takes the next run
// number. It returns a *dataset.StateError if there is none that can be used and a
// *dataset.MismatchError if it is another than the one that was asked for.
func (b *Bank) Attach(ctx context.Context) (workload.Loaded, error) {
	if err := b.set.Attach(ctx); err != nil {
		return workload.Loaded{}, err
	}
	loaded, err := b.take(ctx)
	if err == nil && !b.set.Volatile() {
		err = b.model.prepare(ctx)
	}
	return loaded, err
}

// Look finds the bank as Attach does, and only reads. The run number that it
// goes by is one that nobody has taken.
func (b *Bank) Look(ctx context.Context) (workload.Loaded, error) {
	if err := b.set.Look(ctx); err != nil {
		return workload.Loaded{}, err
	}
	return b.take(ctx)
}

// take takes over what the database says about the bank in it.
func (b *Bank) take(ctx context.Context) (workload.Loaded, error) {
	n := b.set.Note()
	b.formula, b.accounts, b.run, b.load = newFormula(n.Seed), n.Size, b.set.Run(), n.Load
	var err error
	if b.set.Volatile() {
		b.total, err = b.formula.total(ctx, n.Size)
	} else {
		b.total, err = money.Parse(n.Facts[factTotal])
	}
	return workload.Loaded{Accounts: b.accounts, Total: money.Format(b.total)}, err
}

// fits says whether the bank that was found can be driven as this one is
// configured.
func (b *Bank) fits(n *dataset.Note) error {
	if _, err := money.Parse(n.Facts[factTotal]); err != nil {
		return kind.Altered(factTotal, n.Facts[factTotal])
	}
	if err := b.config.checkAccounts(n.Size); err != nil {
		return dataset.MismatchErrorf("the bank in this database does not fit: %v", err)
	}
	return nil
}

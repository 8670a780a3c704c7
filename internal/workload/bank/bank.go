// Package bank is the bank workload: accounts with exact money, transfers
// between them in several styles, payrolls, joint transfers, inquiries, and
// audits that run in the background. Its logic is written once for each data model; it
// names no database.
//
// Accounts are made by formula (account.go), transactions by a seeded choice
// (choice.go); what a database is asked to do is in sql*.go, records.go and
// procedures.go.
package bank

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/money"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// Name is the workload's name in commands, histories and results.
const Name = "bank"

// kind describes a bank to a database. A bank of the plain schema, which has no load id, is still supported.
var kind = dataset.Kind{
	Workload: Name, Noun: "bank", Things: "accounts", Make: "stroppy load", Schema: 2, Plain: 1,
	Table: "stroppy_meta", Total: factTotal,
}

// These metadata belong to a bank alone.
const (
	factTotal    = "total"    // decimal text
	factOpenings = "openings" // there if clients can open accounts
	factLow      = "balances" // there if they can read by balance
)

// Bank is the workload on one open database.
type Bank struct {
	*dataset.Set
	config Config
	model  model

	// The formula that Attach found.
	formula formula
	total   int64  // cents
	codes   *codes // nil: no client may open an account
}

// The kinds of transactions.
const (
	transfer   = (iota + 1) * history.Numbered // two legs, payer to payee
	payroll                                    // one corporate payer, several payees
	joint                                      // a transfer allowed only by a rule over the payer's and a sibling's balance
	opening                                    // opens an account, allowed only by a rule over all that are open in its bank code
	closing                                    // moves all that an opened account holds, and removes it
	withdrawal                                 // takes an opened account under a balance, allowed only by a rule over all that are under it in its bank code
	topUp                                      // pays so much into such an account that it is under it no more

	inquiry     = 1*history.Numbered | history.ReadOnly                      // reads two accounts
	byPredicate = 2*history.Numbered | history.ReadOnly                      // reads all accounts of a bank code
	byBalance   = 3*history.Numbered | history.ReadOnly                      // reads the accounts among them that are under a balance
	audit       = 1*history.Numbered | history.ReadOnly | history.Background // reads all accounts, or a sample, from one snapshot
)

var kinds = []history.Declared{
	transfer.Named("transfer"), payroll.Named("payroll"), joint.Named("joint transfer"), inquiry.Named("inquiry"), audit.Named("audit"),
}

var openingKinds = []history.Declared{opening.Named("opening"), closing.Named("closing"), byPredicate.Named("predicate read")}

var lowKinds = []history.Declared{withdrawal.Named("withdrawal"), topUp.Named("top-up"), byBalance.Named("balance read")}

// The rules that reject a transaction.
const (
	insufficientFunds history.Reason = iota + 1
	noSuchAccount
	limitReached
	coverReached
)

var rules = workload.Rules{CheckFailed: insufficientFunds, Missing: noSuchAccount, Logged: true}

// model is the bank written for one data model.
type model interface {
	dataset.Store

	client(ctx context.Context, h *chooser) (load.Client, error)
	audits(ctx context.Context) (auditSession, error)
	download(ctx context.Context, e *endRows) error
}

var models = dataset.Models[model, Config]{SQL: newSQLModel, Records: newRecordModel}

// New binds the bank to a database of any model that it is written for.
func New(database db.Database, c Config) (*Bank, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	b := &Bank{config: c}
	var err error
	b.model, b.Set, err = dataset.Bind(kind, database, &b.config, models, dataset.Expected{
		Session: &b.config.Session, Clients: c.Clients, Seed: c.Seed, Size: c.Accounts,
		Facts: b.facts, Rule: b.rule, Take: b.take,
		Client:  func(ctx context.Context, i int) (load.Client, error) { return b.model.client(ctx, b.chooser(i)) },
		Another: func(d db.Database) (dataset.Bound, error) { return New(d, b.config) },
	})
	return b, err
}

func (b *Bank) facts(ctx context.Context) (map[string]string, error) {
	f := newFormula(b.config.Seed)
	total, err := f.total(ctx, b.config.Accounts)
	facts := b.config.facts()
	facts[factTotal] = money.Format(total)
	return facts, err
}

// take adopts the bank that was found, if it fits the configuration.
func (b *Bank) take(m *dataset.Metadata) (err error) {
	b.formula = newFormula(m.Seed)
	if b.total, err = money.Parse(m.Facts[factTotal]); err != nil {
		return kind.Altered(factTotal, m.Facts[factTotal])
	}
	if err := b.config.checkAccounts(m.Size); err != nil {
		return dataset.MismatchErrorf("the bank in this database does not fit: %v", err)
	}
	b.codes = nil
	if m.Facts[factOpenings] != "" {
		b.codes = newCodes(&b.formula, b.config.anchors(m.Size))
	} else if b.config.openings() {
		return dataset.MismatchErrorf("the bank in this database was loaded for clients that open no accounts: leave opening-share and predicate-share out, or give them to `%s`", kind.Make)
	}
	if b.config.LowShare > 0 && m.Facts[factLow] == "" {
		return dataset.MismatchErrorf("the bank in this database was loaded for clients that read no accounts by balance: leave low-balance-share out, or give it to `%s`", kind.Make)
	}
	return nil
}

// The columns of numbers in a census of the bank. Its first part has the accounts, and its
// second part the ledger.
const (
	columnBalance = "balance"
	columnVersion = "version"
	columnAmount  = "amount"
)

// rule returns what contradicts the bank that was loaded: transfers keep the total, and each
// of them leaves legs in the ledger that cancel each other.
func (b *Bank) rule(m *dataset.Metadata, c dataset.Census) string {
	accounts, ledger := &c[0], &c[1]
	versions, opens := accounts.Sums[columnVersion], m.Facts[factOpenings] != ""
	legs, ofLegs := ledger.Sums[columnVersion] // a row of the ledger is one leg; else it is a transfer
	switch {
	case !accounts.Whole:
	case accounts.Rows < m.Size, accounts.Rows > m.Size && !opens:
		return fmt.Sprintf("%s has %s accounts and the load made %s", accounts.Name, check.Group(accounts.Rows), check.Group(m.Size))
	case accounts.Sums[columnBalance] != b.total:
		return fmt.Sprintf("the balances in %s add up to %s and the load made %s", accounts.Name, money.Text(accounts.Sums[columnBalance]), money.Text(b.total))
	case opens: // an account that is closed has legs and no version
	case versions > 0 && ledger.Rows == 0, ofLegs && ledger.Whole && ledger.Rows < uint64(versions):
		return fmt.Sprintf("%s has %s entries for %s changes of accounts", ledger.Name, check.Group(ledger.Rows), check.Group(uint64(versions)))
	case versions == 0 && legs > 0:
		return fmt.Sprintf("%s has %s entries for no change of an account", ledger.Name, check.Group(ledger.Rows))
	}
	if ledger.Whole && ledger.Sums[columnAmount] != 0 {
		return fmt.Sprintf("the amounts in %s add up to %s and not to zero", ledger.Name, money.Text(ledger.Sums[columnAmount]))
	}
	return ""
}

// Header returns what the checks need in the history; valid after Attach.
func (b *Bank) Header() history.Header {
	keys := map[string]string{
		keyAudits: strconv.FormatFloat(b.config.Audits, 'g', -1, 64),
		keyUpdate: b.config.Update,
		keyMode:   b.config.Mode,
	}
	if b.config.Audits > 0 {
		keys[keyAuditSize] = strconv.FormatUint(b.config.auditSize(b.Size()), 10)
	}
	if age := b.config.auditAge(); age > 0 {
		keys[check.KeyAuditAge] = age.String()
	}
	declared, reasons := kinds, []history.Declared{insufficientFunds.Named("insufficient funds"), noSuchAccount.Named("no such account")}
	if b.codes != nil {
		declared = slices.Concat(kinds, openingKinds, lowKinds)
		reasons = append(reasons, limitReached.Named("limit of the bank code"), coverReached.Named("cover of low balances"))
		keys[keyCodes] = strconv.Itoa(b.codes.anchors)
	}
	return b.Complete(history.Header{
		Kinds:   declared,
		Reasons: reasons,
		Object:  "account",
		Unit:    "cents",
		Total:   b.total,
		Keys:    keys,
	})
}

// BackgroundClients implements workload.Attended.
func (c *Config) BackgroundClients() int {
	if c.Audits == 0 {
		return 0
	}
	return 1
}

// Background returns the auditor, if audits are asked for; valid after Attach.
// Its client number is the one after the clients'.
func (b *Bank) Background(ctx context.Context) ([]load.Background, error) {
	if b.config.BackgroundClients() == 0 {
		return nil, nil
	}
	if b.Run() == 0 {
		return nil, fmt.Errorf("open the auditor of the bank: it is not attached yet")
	}
	s, err := b.model.audits(ctx)
	if err != nil {
		return nil, err
	}
	every := time.Duration(math.Round(float64(time.Second) / b.config.Audits))
	a := &auditor{chooser: b.chooser(b.config.Clients), auditSession: s, size: b.config.auditSize(b.Size())}
	return []load.Background{{Client: a, Every: every, After: b.config.auditAge()}}, nil
}

// EndState downloads all accounts and the ledger, as dataset.Download does: the versions
// of the accounts must add up to the legs of the ledger.
func (b *Bank) EndState(ctx context.Context, end *history.EndWriter, progress func(done, total uint64)) error {
	type found struct{ versions, legs uint64 }
	return dataset.Download(ctx, b.Set, end.Restart, func() (found, bool, error) {
		rows := endRows{formula: &b.formula, accounts: b.Size(), end: end, report: dataset.Progress{Report: progress, Total: b.Size()}, openings: b.codes != nil}
		err := b.model.download(ctx, &rows)
		versions, legs := end.Books()
		// A closed account has legs and no version.
		return found{versions, legs}, versions-rows.opened == legs-rows.openedLegs, err
	})
}

func (b *Bank) chooser(i int) *chooser {
	h := newChooser(&b.config, b.formula, b.Size(), b.Run(), uint64(i))
	h.opener = opener{codes: b.codes, next: uint64(i), step: uint64(b.config.Clients)}
	return h
}

// jointOps returns the payer's and the sibling's operation of a joint transfer;
// nil for one that it does not have.
func jointOps(tx *history.Transaction) (payer, other *history.Op) {
	for i := range tx.Ops {
		switch op := &tx.Ops[i]; {
		case !op.Write:
			other = op
		case op.Amount < 0:
			payer = op
		}
	}
	return payer, other
}

// refusal applies the bank's rules to what the transaction has read. With
// guarded the database itself refuses a balance below zero, and only the rule
// over two accounts is left.
func (f *formula) refusal(tx *history.Transaction, guarded bool) history.Reason {
	if !guarded {
		for i := range tx.Ops {
			if op := &tx.Ops[i]; op.Amount < 0 && op.Value+op.Amount < 0 {
				return insufficientFunds
			}
		}
	}
	if tx.Kind != joint {
		return 0
	}
	if payer, other := jointOps(tx); payer == nil || other == nil ||
		payer.Value+other.Value+payer.Amount < f.floor(payer.Object) {
		return insufficientFunds
	}
	return 0
}

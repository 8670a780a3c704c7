package bank

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/totals"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/money"
	"stroppy/internal/setting"
	"stroppy/internal/workload"
	"stroppy/internal/workload/recording"
	"stroppy/internal/workload/sampling"
)

// Spec is the bank as the commands know it.
func Spec() workload.Spec {
	return recording.Checked(workload.Spec{
		Opening: true,
		Words:   sentenceWords(), Unsafe: &workload.UnsafeStyle{Setting: "update", Value: RMW, Safe: Locked},
		Name: Name, About: "transfers, payrolls and audits over accounts; every transfer is checked",
		Data: "bank", Steps: true, Study: true,
		Config: func() workload.Config { return new(DefaultConfig()) },
		Loaded: func(h history.Header) map[string]string {
			return map[string]string{"accounts": strconv.FormatUint(h.Objects, 10)}
		},
		Registers: true,
		// A few accounts that everybody writes by values that were read: each anomaly of
		// items costs money soon.
		Isolation: &workload.IsolationTest{
			Settings:   [][2]string{{"accounts", "200"}},
			Steps:      [][2]string{{"update", RMW}},
			Predicates: [][2]string{{"opening-share", "0.2"}, {"predicate-share", "0.1"}, {"low-balance-share", "0.2"}},
			Finds: map[string][]string{
				check.Serializable: {"G0", "G1a", "G1c", "P4", "G-single", "long fork", "G2-item", "G2"},
				check.Strict:       {"stale read"},
			},
		},
		Objects: func(h history.Header) workload.Objects { return &names{newFormula(h.Seed), h.Objects} },
		Format:  format(),
	}, declared(), checks)
}

// declared returns the checks, with the files that each needs.
func declared() []check.Declared {
	return []check.Declared{
		recording.Declare(check.Total, history.EndObjects,
			"the end balances, downloaded and summed, equal the canonical total"),
		recording.Declare(check.NonNegative, history.EndObjects, "no balance is below zero"),
		recording.Declare(check.Ledger, history.EndState,
			"opening balance + ledger legs = end balance, and version = number of legs, for every account"),
		recording.Declare(check.Durable, history.Recorded|history.EndState,
			"every committed transfer is in the ledger"),
		recording.Declare(check.NoGhost, history.Recorded|history.EndState,
			"nothing rejected or aborted is in the ledger, and nothing there was never sent"),
		recording.Declare(check.ExactlyOnce, history.Recorded|history.EndLedger, "no transfer was applied twice"),
		recording.Declare(check.Serializable, history.Recorded|history.EndState, "the dependency graph has no cycle"),
		recording.Declare(check.Strict, history.Recorded|history.EndState,
			"the dependency graph with real-time order added has no cycle"),
		recording.Declare(check.Audits, history.Recorded, "every audit saw exactly the total, and a consistent cut"),
		recording.DeclareIf(withCodes, check.Limit, history.Recorded|history.EndState,
			"what clients opened in a bank code never held more than the limit, nor lacked more than the "+
				"cover, where they open accounts"),
	}
}

// withCodes reports whether clients opened accounts in one of these runs.
func withCodes(runs []history.Header) bool {
	return slices.ContainsFunc(runs, func(h history.Header) bool { return h.Keys[keyCodes] != "" })
}

// format returns the format of amounts. An audit, which reads the whole bank, has a short form.
func format() workload.Format {
	f := workload.FormatAmounts(money.Text)
	f.Short = func(tx *history.Transaction, _ workload.Objects) string {
		if tx.Kind != audit {
			return ""
		}
		var sum int64
		seen := 0
		for i := range tx.Ops {
			if op := &tx.Ops[i]; op.Observed {
				sum += op.Value
				seen++
			}
		}
		return fmt.Sprintf("saw %s in %s", money.Text(sum), check.Plural(seen, "account"))
	}
	return f
}

// Settings implements workload.Config.
func (c *Config) Settings() []setting.Setting {
	return append([]setting.Setting{
		setting.Whole(&c.Accounts, "accounts", "accounts of the bank").OfData().Between(minAccounts, MaxAccounts).Sized(c.enough),
		setting.Text(&c.Update, "update", "STYLE", "style of the transaction: atomic, locked or rmw").OneOf(Atomic, Locked, RMW),
		setting.Real(&c.Audits, "audits", "audits per second that run beside the transfers").Between(0, maxAudits),
		setting.Whole(&c.AuditSample, "audit-sample", "accounts that one audit reads; 0 reads all of up to 100,000, and 10,000 of more"),
		setting.Duration(&c.AuditAge, "audit-age", "age of the state that audits read, if the database can read the past; 0 reads the present"),
		setting.Share(&c.PayrollShare, "payroll-share", "share of payrolls, 0 to 1"),
		setting.Small(&c.PayrollLegs, "payroll-legs", "people that one payroll pays").Between(1, maxPayrollLegs),
		setting.Share(&c.JointShare, "two-account-share", "share of transfers allowed by a rule over two accounts, 0 to 1").Formerly("joint-share"),
		setting.Share(&c.InquiryShare, "read-only-share", "share of transactions that only read, 0 to 1").Formerly("inquiry-share"),
		setting.Share(&c.LargeShare, "overdraft-share", "share of transfers large enough to overdraw, 0 to 1").Formerly("large-share"),
		setting.Share(&c.OpeningShare, "opening-share", "share of transactions that open or close an account, by a rule over its bank code, 0 to 1"),
		setting.Share(&c.PredicateShare, "predicate-share", "share of transactions that read all accounts of a bank code, or those under a balance, 0 to 1"),
		setting.Share(&c.LowShare, "low-balance-share", "share of transactions that take an opened account under a balance or top it up, by a rule over its bank code, 0 to 1"),
		setting.Small(&c.PredicateCodes, "predicate-codes", "bank codes in which accounts are opened and read by predicate").Between(1, 1<<bankBits),
		setting.Text(&c.LockOrder, "lock-order", "ORDER", "order in which a transaction takes its accounts: key or random").OneOf(KeyOrder, RandomOrder),
	}, sampling.Settings(&c.Zipfian, &c.ZipfExponent)...)
}

// New implements workload.Config.
func (c *Config) New(database db.Database, o workload.Options) (workload.Workload, error) {
	b := *c
	b.Clients, b.Seed, b.Session = o.Clients, o.Seed, o.Session
	if !o.Given("accounts") {
		b.Accounts = 0
	}
	if o.Undriven { // openings stay, because a load makes their index
		b.PayrollShare, b.JointShare, b.InquiryShare, b.AuditSample, b.AuditAge = 0, 0, 0, 0, 0
	}
	return New(database, b)
}

// Keys in the header of a history besides the run's numbers.
const (
	keyAudits    = "audits"     // a second
	keyAuditSize = "audit_size" // accounts of the load that each audit reads
	keyUpdate    = "update"
	keyMode      = "mode"
	keyCodes     = "predicate codes" // in which accounts are opened; there if they are
)

func checks(ctx context.Context, recorded recording.Input) ([]check.Result, error) {
	h := recorded.Header
	f := newFormula(h.Seed)
	in := totals.AccountsInput{Input: recorded.Input, Words: sentenceWords(), Accounts: h.Objects, Total: h.Total, Opening: f.opening, Missing: noSuchAccount}
	in.Name = f.Name
	codes := 0
	for _, source := range in.History {
		if n, err := strconv.Atoi(source.Header().Keys[keyCodes]); err == nil {
			codes = max(codes, n)
		}
	}
	if codes > 0 {
		in.Predicates = f.predicates(h.Objects, codes)
		in.Opening = f.openingIfLoaded
	}
	if recorded.Opening != nil {
		in.Opening = recorded.Opening.Value
	}
	for _, source := range in.History {
		audits, err := strconv.ParseFloat(source.Header().Keys[keyAudits], 64)
		if err == nil && audits > 0 {
			in.Audited = append(in.Audited, source.Header().Run)
		}
		if size, err := strconv.ParseUint(source.Header().Keys[keyAuditSize], 10, 64); err == nil {
			if in.AuditSize == nil {
				in.AuditSize = map[uint64]uint64{}
			}
			in.AuditSize[source.Header().Run] = size
		}
	}
	return totals.Accounts(ctx, in)
}

func sentenceWords() check.Words {
	return check.Words{
		One: "transfer", Book: "ledger", Part: "leg", Before: "account ", Amount: money.Text,
		Kind:  (&history.Header{Kinds: slices.Concat(kinds, openingKinds, lowKinds)}).KindName,
		Rules: map[string]string{"joint transfer": "checked that two accounts together cover its withdrawal, then took it from one of them"},
	}
}

// The styles of a transfer.
const (
	Atomic = "atomic" // guarded relative updates
	Locked = "locked" // read for update, then write
	RMW    = "rmw"    // read, compute, write the absolute value
)

// Config configures the bank and its clients.
type Config struct {
	workload.Session
	// Accounts and Seed make the bank. Zero is right only where an earlier load
	// is attached to: whatever the database holds.
	Accounts, Seed uint64

	Clients int
	Update  string // a style; empty is the data model's own: atomic for SQL, rmw for key-value

	Zipfian      bool
	ZipfExponent float64 // of rank^-exponent, above 0

	// The shares of payrolls, joint transfers and inquiries among all
	// transactions; the rest are plain transfers.
	PayrollShare, JointShare, InquiryShare float64
	// OpeningShare is the share of openings and closings. LowShare is the share of withdrawals and top-ups, and
	// PredicateShare the share of reads by predicate. They use the codes of the first PredicateCodes accounts.
	OpeningShare, PredicateShare, LowShare float64
	PredicateCodes                         int
	// LargeShare is the share of transfers that probably exceed the balance.
	LargeShare  float64
	PayrollLegs int // people paid by one payroll

	Audits      float64       // a second; 0 for none
	AuditSample uint64        // accounts an audit reads; 0 is all up to 100,000, and else 10,000
	AuditAge    time.Duration // of the state that an audit reads; 0 is the present

	// LockOrder is the order in which a transaction takes its accounts. In a random order transactions can deadlock.
	// The default is the order of the keys.
	LockOrder string
}

// auditAge returns the largest age of the state that an audit reads, 0 for the present. Audits of the past begin when
// the loaded data are that old.
func (c *Config) auditAge() time.Duration {
	if c.AuditAge == 0 {
		return 0
	}
	return c.AuditAge + clockError
}

// clockError is the largest difference between the clocks of a database and of this machine. It only bounds the
// real-time order of audits of the past.
const clockError = time.Second

// The orders of a transaction's accounts.
const (
	KeyOrder    = "key"
	RandomOrder = "random"
)

// DefaultConfig returns the bank that runs without being asked; Seed and Clients are
// the caller's.
func DefaultConfig() Config {
	return Config{
		Accounts:     10_000,
		LockOrder:    KeyOrder,
		ZipfExponent: 0.99,
		PayrollShare: 0.01,
		JointShare:   0.05,
		InquiryShare: 0.05,
		LargeShare:   0.01,
		PayrollLegs:  10,
		Audits:       1,

		PredicateCodes: 8,
	}
}

const (
	minAccounts    = 4
	maxPayrollLegs = 1000 // one transaction must stay one that databases are made for
	wholeAudit     = 100_000
	sampledAudit   = 10_000
	maxAudits      = 1000 // a second
)

// check returns the first error of a configuration, whatever the database. The bounds of single settings are checked
// elsewhere.
func (c *Config) check() error {
	if c.Accounts != 0 {
		if err := c.checkAccounts(c.Accounts); err != nil {
			return err
		}
	}
	return c.Validate()
}

// Validate implements workload.Config.
func (c *Config) Validate() error {
	sum := c.PayrollShare + c.JointShare + c.InquiryShare
	all := sum + c.OpeningShare + c.PredicateShare + c.LowShare
	switch {
	case all <= 1+1e-9:
	case !c.openings():
		return fmt.Errorf("payroll-share, two-account-share and read-only-share are %g together: they are parts of all transactions, so at most 1", sum)
	default:
		return fmt.Errorf("payroll-share, two-account-share, read-only-share, opening-share, predicate-share and low-balance-share are %g together: they are parts of all transactions, so at most 1", all)
	}
	return nil
}

// openings reports whether clients open accounts, or read by predicate.
func (c *Config) openings() bool { return c.OpeningShare+c.PredicateShare+c.LowShare > 0 }

// Omits implements workload.Selective.
func (c *Config) Omits(name string) bool { return name == check.Limit && !c.openings() }

// anchors returns the number of first accounts whose codes are used.
func (c *Config) anchors(accounts uint64) int {
	return max(1, int(min(uint64(c.PredicateCodes), accounts)))
}

// facts returns the metadata of the configured bank, without their values.
func (c *Config) facts() map[string]string {
	facts := map[string]string{factTotal: ""}
	if c.openings() {
		facts[factOpenings] = "yes"
	}
	if c.LowShare > 0 {
		facts[factLow] = "yes"
	}
	return facts
}

// checkAccounts returns an error if the transactions do not fit a number of accounts. It may be known only after
// Attach.
func (c *Config) checkAccounts(accounts uint64) error {
	switch {
	case accounts < minAccounts || accounts > MaxAccounts:
		return fmt.Errorf("accounts is %d: take %d to %d", accounts, minAccounts, uint64(MaxAccounts))
	case c.openings() && accounts > firstOpened:
		return fmt.Errorf("accounts is %d: take at most %d if clients open more", accounts, uint64(firstOpened))
	case accounts%2 != 0:
		return fmt.Errorf("accounts is %d: take an even number, because accounts come in pairs of one owner", accounts)
	case c.PayrollShare > 0 && uint64(c.PayrollLegs) >= accounts:
		return fmt.Errorf("payroll-legs is %d, but of %d accounts one payroll can pay at most %d", c.PayrollLegs, accounts, accounts-1)
	case c.AuditSample > accounts:
		return fmt.Errorf("audit-sample is %d, but there are %d accounts: take at most those, or 0, which reads all of up to %d and %d of more", c.AuditSample, accounts, wholeAudit, sampledAudit)
	}
	return nil
}

// enough returns the smallest number of accounts, at least n, that the transactions fit.
func (c *Config) enough(n uint64) uint64 {
	n = max(n, minAccounts, c.AuditSample)
	if c.PayrollShare > 0 {
		n = max(n, uint64(c.PayrollLegs)+1)
	}
	return n + n%2
}

func (c *Config) auditSize(accounts uint64) uint64 {
	switch {
	case c.AuditSample > 0:
		return c.AuditSample
	case accounts <= wholeAudit:
		return accounts
	}
	return sampledAudit
}

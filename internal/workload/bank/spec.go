package bank

import (
	"context"
	"strconv"

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
	return workload.Spec{
		Name: Name, About: "transfers, payrolls and audits over accounts; every transfer is checked",
		Data: "bank", Steps: true, Study: true,
		Config: func() workload.Config { return new(DefaultConfig()) },
		Loaded: func(h history.Header) map[string]string {
			return map[string]string{"accounts": strconv.FormatUint(h.Accounts, 10)}
		},
		Check: recording.Checker(Name, checks),
		Checks: [][2]string{
			{check.Total, "the end balances, downloaded and summed, equal the canonical total"},
			{check.NonNegative, "no balance is below zero"},
			{check.Ledger, "opening balance + ledger legs = end balance, and version = number of legs, for every account"},
			{check.Durable, "every committed transfer is in the ledger"},
			{check.NoGhost, "nothing rejected or aborted is in the ledger, and nothing there was never sent"},
			{check.ExactlyOnce, "no transfer was applied twice"},
			{check.Serializable, "the dependency graph has no cycle"},
			{check.Strict, "the dependency graph with real-time order added has no cycle"},
			{check.Audits, "every audit saw exactly the total, and a consistent cut"},
		},
		Objects: func(h history.Header) workload.Objects { return &names{newFormula(h.Seed), h.Accounts} },
		Format:  workload.FormatAmounts(money.Format),
	}
}

// Settings implements workload.Config.
func (c *Config) Settings() []setting.Setting {
	return append([]setting.Setting{
		setting.Whole(&c.Accounts, "accounts", "accounts of the bank").OfData().Between(minAccounts, MaxAccounts),
		setting.Text(&c.Update, "update", "STYLE", "style of the transaction: atomic, locked or rmw").OneOf(Atomic, Locked, RMW),
		setting.Real(&c.Audits, "audits", "audits per second that run beside the transfers").Between(0, maxAudits),
		setting.Whole(&c.AuditSample, "audit-sample", "accounts that one audit reads; 0 reads all of up to 100,000, and 10,000 of more"),
		setting.Share(&c.PayrollShare, "payroll-share", "share of payrolls, 0 to 1"),
		setting.Small(&c.PayrollLegs, "payroll-legs", "people that one payroll pays").Between(1, maxPayrollLegs),
		setting.Share(&c.JointShare, "two-account-share", "share of transfers allowed by a rule over two accounts, 0 to 1").Formerly("joint-share"),
		setting.Share(&c.InquiryShare, "read-only-share", "share of transactions that only read, 0 to 1").Formerly("inquiry-share"),
		setting.Share(&c.LargeShare, "overdraft-share", "share of transfers large enough to overdraw, 0 to 1").Formerly("large-share"),
		setting.Text(&c.LockOrder, "lock-order", "ORDER", "order in which a transaction takes its accounts: key or random").OneOf(KeyOrder, RandomOrder),
	}, sampling.Settings(&c.Zipfian, &c.ZipfExponent)...)
}

// New implements workload.Config.
func (c *Config) New(database db.Database, o workload.Options) (workload.Workload, error) {
	b := *c
	b.Clients, b.Seed, b.Isolation, b.Mode = o.Clients, o.Seed, o.Isolation, o.Mode
	if !o.Given("accounts") {
		b.Accounts = 0
	}
	if o.LoadOnly { // nothing is driven that could not fit the accounts
		b.PayrollShare, b.JointShare, b.InquiryShare, b.AuditSample = 0, 0, 0, 0
	}
	return New(database, b)
}

// What the header of a history keeps besides the run's numbers.
const (
	keyAudits = "audits" // a second
	keyUpdate = "update"
	keyMode   = "mode"
)

func checks(ctx context.Context, recorded recording.Input) ([]check.Result, error) {
	h := recorded.Header
	f := newFormula(h.Seed)
	in := totals.AccountsInput{Input: recorded.Input, Words: sentenceWords(), Accounts: h.Accounts, Total: h.Total, Opening: f.opening}
	in.Name = f.Name
	for _, source := range in.History {
		audits, err := strconv.ParseFloat(source.Header().Keys[keyAudits], 64)
		if err == nil && audits > 0 {
			in.Audited = append(in.Audited, source.Header().Run)
		}
	}
	return totals.Accounts(ctx, in)
}

func sentenceWords() check.Words {
	return check.Words{One: "transfer", Book: "ledger", Part: "leg", Before: "account ", Amount: money.Format}
}

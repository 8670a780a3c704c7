package cli

import (
	"context"
	"fmt"

	"stroppy/internal/check"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/scenario"
	"stroppy/internal/workload"
	"stroppy/internal/workload/bank"
)

// kindOfWork is one workload as the commands know it.
type kindOfWork struct {
	name, about string
	// bind makes it on an open database as the configuration describes it. Unless
	// this call loads, what nobody named is left to what the database holds.
	bind func(database db.Database, c *config, loads bool) (workload.Workload, error)
	// check makes all checks of recorded runs.
	check func(ctx context.Context, dirs []string, expect isolation.Level, tell func(check.Violation)) ([]check.Result, error)
	// checks says what each of its checks holds, in the order in which they are told.
	checks func() [][2]string
	// tables are what it adds to the report of one run's directory; nil: nothing.
	tables func(ctx context.Context, dir string) ([]workload.Table, error)
	// names are the accounts, or whatever its transactions touch, of a recording.
	names func(h history.Header) naming
	words func() wording
}

// naming gives names to numbers, and back.
type naming interface {
	Name(n uint64) string
	Number(name string) (uint64, error)
}

func works() []kindOfWork {
	return []kindOfWork{
		{
			name: scenario.Bank, about: "transfers, payrolls and audits over accounts; every transfer is checked",
			bind: func(database db.Database, c *config, loads bool) (workload.Workload, error) {
				return bank.New(database, c.bankConfig(loads))
			},
			check: bank.CheckDirs, checks: bank.Checks,
			names: func(h history.Header) naming { return bank.NamesOf(h) }, words: moneyWording,
		},
		tpcbWork(),
		eventsWork(),
		kvWork(),
	}
}

// workOf returns the workload of that name, which a recording may have from a
// newer program.
func workOf(name string) (kindOfWork, error) {
	for _, w := range works() {
		if w.name == name {
			return w, nil
		}
	}
	return kindOfWork{}, fmt.Errorf("this program has no workload %q: `stroppy list workloads` shows those that it has", name)
}

// bind makes the configuration's workload on a database.
func (c *config) bind(database db.Database, loads bool) (workload.Workload, error) {
	w, err := workOf(c.Workload)
	if err != nil {
		return nil, err
	}
	return w.bind(database, c, loads || isVolatile(database))
}

// ofTheBank refuses another workload, which a variable or a file has named, for a step
// of the bank test.
func (c *config) ofTheBank(command string) error {
	if c.Workload == scenario.Bank {
		return nil
	}
	return usagef("`stroppy %s` is a step of the bank test, and the workload is %s: `stroppy run %s` loads, drives and checks it", command, c.Workload, c.Workload)
}

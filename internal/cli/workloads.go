package cli

import (
	"stroppy/internal/db"
	"stroppy/internal/scenario"
	"stroppy/internal/workload"
	"stroppy/internal/workload/appends"
	"stroppy/internal/workload/bank"
	"stroppy/internal/workload/events"
	"stroppy/internal/workload/kv"
	"stroppy/internal/workload/tpcb"
)

// workloads is the registry: every workload that this program has, the default first.
func workloads() scenario.Workloads {
	return scenario.Workloads{
		bank.Spec(),
		tpcb.Spec(),
		events.Spec(),
		kv.Spec(),
		appends.Spec(),
	}
}

// bind makes the configuration's workload on a database. Unless this call loads, what
// nobody named is left to what the database holds.
func (c *config) bind(database db.Database, loads bool) (workload.Workload, error) {
	return c.Config.New(database, c.options(loads || isVolatile(database)))
}

// options are what the configuration says to its workload.
func (c *config) options(loads bool) workload.Options {
	o := workload.Options{Clients: c.Clients, Isolation: c.Isolation, Mode: c.Mode}
	o.Given = func(name string) bool { return loads || c.Named[name] }
	if o.Given("seed") {
		o.Seed = c.Seed
	}
	return o
}

// spec is the configuration's workload, which was checked with its settings.
func (c *config) spec() workload.Spec {
	spec, _ := workloads().Find(c.Workload)
	return spec
}

// inSteps refuses a workload, which a variable or a file has named, that cannot be
// loaded, driven and checked by single commands.
func (c *config) inSteps(command string) error {
	if c.spec().Steps {
		return nil
	}
	return usagef("`stroppy %s` is a step of the bank test, and the workload is %s: `stroppy run %s` loads, drives and checks it", command, c.Workload, c.Workload)
}

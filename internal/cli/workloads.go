package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"stroppy/internal/db"
	"stroppy/internal/live"
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

// workloadOf returns what is given to run a workload of this name, or of another tool's.
func workloadOf(name string) (form string, found bool) {
	for _, w := range workloads() {
		if w.Name == name {
			return name, true
		}
		if flags, known := w.Elsewhere[strings.ToLower(name)]; known {
			return strings.TrimSpace(w.Name + " " + flags), true
		}
	}
	return "", false
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

// cleanupCommand takes what loads have made out of a database.
func (a *app) cleanupCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "cleanup --db URL", Short: "Remove all that loads of this program have made from a database",
		Long: "The tables, collections or keys of every workload are removed, with what runs have added to them,\n" +
			"and what was removed is printed. What this program did not make stays, pgbench's own tables\n" +
			"under tpcb as well; what has the name of ours and is not marked as ours is refused. Stored\n" +
			"procedures that runs have made hold no data and stay.",
		Args: noArguments,
	}
	read := a.settings(c, keys("db"))
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := read(nil)
		switch {
		case err != nil:
			return err
		case config.DB == "":
			return usagef("`%s` needs a database: name it with --db", c.CommandPath())
		case config.missing(config.DB):
			return usagef("there is nothing to clean up in %s, which does not exist: name another with --db", scenario.Redact(config.DB))
		}
		return a.cleanup(config.DB)
	}
	return c
}

// cleanup removes what it can, workload by workload, and then says what it could not.
func (a *app) cleanup(url string) error {
	s := a.begin(live.NewFeed())
	defer s.stop()
	database, err := openDatabase(s.ctx, url)
	if err != nil {
		return s.cause(err, "nothing was removed")
	}
	defer database.Close()
	shown, found, bound := scenario.Redact(url), false, false
	var unbound, failed error
	for _, spec := range workloads() {
		w, err := spec.Config().New(database, workload.Options{Clients: 1, Undriven: true, Given: func(string) bool { return false }})
		if err != nil { // it cannot have been loaded here
			unbound = cmp.Or(unbound, err)
			continue
		}
		bound = true
		removed, err := w.Remove(s.ctx)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("clean up %s: %w", shown, err))
		}
		if removed.What == "" || len(removed.Names) == 0 {
			continue
		}
		found = true
		if _, err := fmt.Fprintf(a.stdout, "removed the %s from %s: %s\n", removed.What, shown, listed(removed.Names)); err != nil {
			return err
		}
	}
	switch {
	case !bound:
		return &exitError{exitUsage, unbound}
	case failed != nil:
		return s.cause(failed, "what was removed until then is gone")
	case !found:
		_, err = fmt.Fprintf(a.stdout, "nothing to remove: no load of this program is in %s\n", shown)
	}
	return err
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

package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"stroppy/internal/exit"
	"stroppy/internal/live"
	"stroppy/internal/registry"
	"stroppy/internal/scenario"
	"stroppy/internal/workload"
)

// cleanupCommand removes from a database everything that loads have made.
func (a *app) cleanupCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "cleanup --db URL", Short: "Remove all that loads of this program have made from a database",
		Long: "This command removes the tables, collections or keys of every workload with all that runs have\n" +
			"added, and prints what it removed. Objects of other programs stay, also pgbench's own tables\n" +
			"under tpcb. An object with a name of ours that is not marked as ours is refused. Stored\n" +
			"procedures of runs hold no data and stay.",
		Args: noArguments,
	}
	read := a.settings(c, keys("db"))
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := read(nil)
		switch {
		case err != nil:
			return err
		case config.DB == "":
			return exit.Usagef("`%s` needs a database: name it with --db", c.CommandPath())
		case config.Missing(config.DB):
			return exit.Usagef("there is nothing to clean up in %s, which does not exist: name another with --db", scenario.Redact(config.DB))
		}
		return a.cleanup(config.DB)
	}
	return c
}

// cleanup removes the data of each workload. It continues after a failure and reports it at the end.
func (a *app) cleanup(url string) error {
	s := a.Begin(live.NewFeed())
	defer s.Stop()
	database, err := registry.Open(s.Context, url)
	if err != nil {
		return s.Cause(err, "nothing was removed")
	}
	defer database.Close()
	shown, found, bound := scenario.Redact(url), false, false
	var unbound, failed error
	for _, spec := range registry.Workloads() {
		w, err := spec.Config().New(database, workload.Options{Clients: 1, Undriven: true, Given: func(string) bool { return false }})
		if err != nil { // it cannot have been loaded here
			unbound = cmp.Or(unbound, err)
			continue
		}
		bound = true
		removed, err := w.Remove(s.Context)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("clean up %s: %w", shown, err))
		}
		if removed.What == "" || len(removed.Names) == 0 {
			continue
		}
		found = true
		if _, err := fmt.Fprintf(a.Stdout, "removed the %s from %s: %s\n", removed.What, shown, listed(removed.Names)); err != nil {
			return err
		}
	}
	switch {
	case !bound:
		return exit.With(exit.Usage, unbound)
	case failed != nil:
		return s.Cause(failed, "what was removed until then is gone")
	case !found:
		_, err = fmt.Fprintf(a.Stdout, "nothing to remove: no load of this program is in %s\n", shown)
	}
	return err
}

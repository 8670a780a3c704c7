package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stroppy/internal/exit"
	"stroppy/internal/registry"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/session"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// oneWorkload returns an error unless the arguments are at most one workload.
func oneWorkload(c *cobra.Command, args []string) error {
	for _, arg := range args {
		if registry.NamesCluster(arg) {
			return exit.Usagef("%s is a cluster and no workload: give it with --cluster", arg)
		}
		if _, err := registry.Find(arg); err == nil {
			return exit.Usagef("%s is a database and no workload: give it with --db", scenario.Redact(arg))
		}
		if path, _, _ := strings.Cut(arg, "@"); strings.HasSuffix(strings.ToLower(path), ".sql") {
			return exit.Usagef("%s is a script and no workload: `%s script -f %s` runs it", arg, c.CommandPath(), arg)
		}
		if slices.Contains(tpcc, strings.ToLower(arg)) {
			return exit.Usagef("stroppy has no workload %s: `%s tpcb` has the transaction of pgbench, and `%s script -f FILE.sql` runs your own transactions",
				arg, c.CommandPath(), c.CommandPath())
		}
		if form, found := registry.WorkloadOf(arg); found && form != arg {
			return exit.Usagef("%q is no workload of stroppy; the equivalent is `%s %s`", arg, c.CommandPath(), form)
		}
		if slices.Contains(session.ScenarioNames(), arg) || strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml") {
			return exit.Usagef("%s is a scenario and no workload: give it with -f", arg)
		}
	}
	if len(args) > 1 {
		return exit.Usagef("`%s` takes one workload, and was given %q as well", c.CommandPath(), args[1])
	}
	return nil
}

// tpcc lists names of a workload that people ask for and that does not exist.
var tpcc = []string{"tpcc", "tpc-c", "tpc_c"}

func exitCode(err error) int {
	var coded *exit.Error
	switch {
	case errors.As(err, &coded):
		return coded.Code
	case errors.As(err, new(*dataset.MismatchError)), errors.As(err, new(*dataset.ChangedError)), errors.As(err, new(*run.UnusableError)),
		errors.As(err, new(*workload.UsageError)):
		return exit.Usage
	}
	return exit.Failed
}

package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stroppy/internal/scenario"
	"stroppy/internal/setting"
	"stroppy/internal/workload"
)

// inSteps says whether a key is one of a workload that has steps.
func inSteps(k scenario.Key) bool {
	return slices.ContainsFunc(workloads(), func(w workload.Spec) bool { return w.Steps && k.Of(w.Name) })
}

// groupedHelp lets a command show the flags of the workload in its argument, in groups.
func groupedHelp(c *cobra.Command) {
	c.SetHelpFunc(func(c *cobra.Command, _ []string) {
		list := workloads()
		spec, err := list.Find(cmp.Or(c.Flags().Arg(0), list[0].Name))
		if err != nil {
			spec = list[0]
		}
		fmt.Fprint(c.OutOrStdout(), helpOf(c, list, spec))
	})
}

func helpOf(c *cobra.Command, list scenario.Workloads, spec workload.Spec) string {
	s, _, err := list.Merge([]scenario.Setting{{Key: "workload", Value: spec.Name}})
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	others := slices.DeleteFunc(list.Names(), func(other string) bool { return other == spec.Name })
	fmt.Fprintf(&out, "%s\n\nUsage:\n  %s\n\nThe workload %s: %s.\n", cmp.Or(c.Long, c.Short), c.UseLine(), spec.Name, spec.About)
	if c.Example != "" {
		fmt.Fprintf(&out, "\nExamples:\n%s\n\n", c.Example)
	}
	fmt.Fprintf(&out, "The settings of %s are shown by `%s WORKLOAD --help`.\n", setting.Or(others), c.CommandPath())
	show := func(group string, add func(*pflag.FlagSet)) {
		flags := pflag.NewFlagSet(c.Name(), pflag.ContinueOnError)
		flags.SortFlags = false
		if add(flags); flags.HasFlags() {
			fmt.Fprintf(&out, "\n%s:\n%s", group, flags.FlagUsages())
		}
	}
	for _, group := range setting.Groups() {
		show(string(group), func(flags *pflag.FlagSet) {
			for _, one := range s.Settings() {
				if one.Group != group || c.Flags().Lookup(one.Name) == nil {
					continue
				}
				addFlag(flags, scenario.Key{Name: one.Name, Setting: one}, one.Help)
				for i := range one.Aliases {
					if alias := &one.Aliases[i]; alias.Help != "" {
						addFlag(flags, scenario.Key{Name: alias.Name, Setting: one, Alias: alias}, alias.Help)
					}
				}
			}
		})
	}
	show("Other", func(flags *pflag.FlagSet) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if _, ofSetting := f.Value.(*keyFlag); !ofSetting {
				flags.AddFlag(f)
			}
		})
		flags.SortFlags = true
	})
	return out.String()
}

// examples returns commands to begin with, by the command that they show, a line each.
func examples() map[string]string {
	return map[string]string{
		"stroppy": `stroppy run
stroppy run bank --db postgres://me@localhost/test --clients 32 --duration 1m
stroppy run --cluster etcd:3 --nemesis 'kill leader every 20s for 5s' --duration 2m`,
		"stroppy run": `stroppy run bank -c 32 -d 1m --db postgres://me@localhost/test
stroppy run bank --cluster etcd:3 --nemesis 'kill leader every 20s for 5s' -d 2m
stroppy run kv --rate 1000 --threshold 'p99<50ms' --db redis://localhost
stroppy run -f lost-update`,
		"stroppy pop":  `stroppy pop --db postgres://me@localhost/test --accounts 1000000`,
		"stroppy load": `stroppy load --db postgres://me@localhost/test --accounts 1000000`,
		"stroppy pay": `stroppy pay --db postgres://me@localhost/test -c 32 -d 1m
stroppy pay --db postgres://me@localhost/test --rate 500 --isolation serializable`,
		"stroppy drive": `stroppy drive --db postgres://me@localhost/test -c 32 -d 1m
stroppy drive --db postgres://me@localhost/test --rate 500 --isolation serializable`,
		"stroppy cleanup": `stroppy cleanup --db postgres://me@localhost/test`,
		"stroppy check": `stroppy check stroppy-runs/20250101-120000-bank-sqlite
stroppy check stroppy-runs/20250101-120000-bank-postgres --db postgres://me@localhost/test
stroppy check --db postgres://me@localhost/test
stroppy check --format elle history.edn --expect serializable`,
		"stroppy export": `stroppy export --format elle stroppy-runs/20250101-120000-append-sqlite -o history.edn`,
		"stroppy history": `stroppy history stroppy-runs/20250101-120000-bank-sqlite 1-2-345
stroppy history stroppy-runs/20250101-120000-bank-sqlite --around 1-2-345 --within 10ms`,
		"stroppy cluster": `stroppy cluster up postgres:3
stroppy cluster status
stroppy cluster down postgres:3`,
		"stroppy cluster up":     `stroppy cluster up postgres:3`,
		"stroppy cluster status": `stroppy cluster status`,
		"stroppy cluster down":   `stroppy cluster down postgres:3`,
		"stroppy report": `stroppy report stroppy-runs/20250101-120000-bank-sqlite --verbose
stroppy report stroppy-runs/20250101-120000-bank-sqlite --format junit
stroppy report before after --out comparison`,
		"stroppy sweep": `stroppy sweep bank --over clients=1,2,4,8 -d 10s --db postgres://me@localhost/test
stroppy sweep kv --over rate --db redis://localhost
stroppy sweep bank --over nodes=1,3,5 --cluster etcd`,
		"stroppy compare": `stroppy compare before.yaml after.yaml --repeat 5
stroppy compare lost-update --db sqlite:a.db --db postgres://me@localhost/test`,
		"stroppy isolation": `stroppy isolation --db postgres://me@localhost/test
stroppy isolation --cluster mariadb --schedules-only --format markdown`,
		"stroppy help": `stroppy help run`,
		"stroppy list": `stroppy list faults
stroppy list scenarios`,
		"stroppy version": `stroppy version`,
		"stroppy completion": `source <(stroppy completion bash)
stroppy completion zsh
stroppy completion fish`,
	}
}

// showExamples gives a command and those below it their examples.
func showExamples(c *cobra.Command, all map[string]string) {
	if text := all[c.CommandPath()]; text != "" {
		c.Example = "  " + strings.ReplaceAll(text, "\n", "\n  ")
	}
	for _, below := range c.Commands() {
		showExamples(below, all)
	}
}

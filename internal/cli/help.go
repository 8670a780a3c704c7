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

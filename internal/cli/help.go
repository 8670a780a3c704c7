package cli

import (
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

// groupedHelp lets a command show the flags of its workload, which is its argument, in
// groups.
func (a *app) groupedHelp(c *cobra.Command) {
	c.SetHelpFunc(func(c *cobra.Command, _ []string) {
		name := workloads()[0].Name
		if args := c.Flags().Args(); len(args) > 0 && slices.Contains(workloads().Names(), args[0]) {
			name = args[0]
		}
		fmt.Fprint(c.OutOrStdout(), helpOf(c, name))
	})
}

// helpOf is the help of a command for a workload.
func helpOf(c *cobra.Command, name string) string {
	var out strings.Builder
	list := workloads()
	spec, err := list.Find(name)
	if err != nil {
		return err.Error()
	}
	about := c.Long
	if about == "" {
		about = c.Short
	}
	fmt.Fprintf(&out, "%s\n\nUsage:\n  %s\n\nThe workload %s: %s.\n", about, c.UseLine(), spec.Name, spec.About)
	others := slices.DeleteFunc(list.Names(), func(other string) bool { return other == name })
	fmt.Fprintf(&out, "The settings of %s are shown by `%s WORKLOAD --help`.\n", setting.Or(others), c.CommandPath())

	shown := map[string]bool{}
	s, _, err := list.Merge([]scenario.Setting{{Key: "workload", Value: name}})
	if err != nil {
		return err.Error()
	}
	for _, group := range setting.Groups() {
		flags := pflag.NewFlagSet(c.Name(), pflag.ContinueOnError)
		flags.SortFlags = false
		for _, one := range s.Settings() {
			if one.Group != group || c.Flags().Lookup(one.Name) == nil {
				continue
			}
			addFlag(flags, flagOf(scenario.Key{Name: one.Name, Setting: one}), one.Help)
			for i := range one.Aliases {
				if alias := &one.Aliases[i]; alias.Help != "" {
					addFlag(flags, flagOf(scenario.Key{Name: alias.Name, Setting: one, Alias: alias}), alias.Help)
				}
			}
		}
		if flags.HasFlags() {
			fmt.Fprintf(&out, "\n%s:\n%s", group, flags.FlagUsages())
		}
		flags.VisitAll(func(f *pflag.Flag) { shown[f.Name] = true })
	}
	rest := pflag.NewFlagSet(c.Name(), pflag.ContinueOnError)
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if _, ofSetting := f.Value.(*keyFlag); !ofSetting && !shown[f.Name] {
			rest.AddFlag(f)
		}
	})
	fmt.Fprintf(&out, "\nOther:\n%s", rest.FlagUsages())
	return out.String()
}

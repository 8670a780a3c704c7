package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stroppy/internal/campaign"
	"stroppy/internal/exit"
	"stroppy/internal/scenario"
)

// sweepScenarios carries out `stroppy sweep --over scenarios`. The flags apply to each scenario.
func (a *app) sweepScenarios(c *cobra.Command, args, names []string, over string, dry bool) error {
	for _, flag := range []string{"repeat", "arrival", "scenario"} {
		if c.Flags().Changed(flag) {
			return exit.Usagef("--%s does not apply to a sweep over scenarios: leave it out", flag)
		}
	}
	if len(args) > 0 {
		return exit.Usagef("each scenario names its workload: leave %s out", args[0])
	}
	given, own := flagsOf(c)
	w, err := campaign.NewScenarios(a.App, own["out"], over, names, given)
	if err != nil {
		return err
	}
	if dry {
		return a.printPlan(w.Plan())
	}
	asJSON := own["json"] == "true"
	w.Print = func(partial bool) error {
		if partial && asJSON {
			return nil
		}
		return a.printSweep(w.Book, w.Published, w.Dir, asJSON)
	}
	return w.Run()
}

// flagsOf returns the settings that were given as flags, separately for the runs and for the sweep.
func flagsOf(c *cobra.Command) (given []scenario.Setting, own map[string]string) {
	own = map[string]string{}
	c.Flags().Visit(func(f *pflag.Flag) {
		k, ok := f.Value.(*keyFlag)
		switch {
		case !ok:
		case k.key.Name == "out", k.key.Name == "json":
			own[k.key.Name] = k.text
		default:
			given = append(given, scenario.Setting{Key: k.key.Name, Value: k.text, Source: "--" + k.key.Name})
		}
	})
	return given, own
}

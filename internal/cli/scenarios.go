package cli

import (
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stroppy/internal/campaign"
	"stroppy/internal/exit"
	"stroppy/internal/output"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/sweep"
	"stroppy/internal/sweep/study"
)

// sweepScenarios carries out `stroppy sweep --over scenarios`. The flags count for each scenario.
func (a *app) sweepScenarios(c *cobra.Command, args, names []string, over string, dry bool) error {
	for _, flag := range []string{"repeat", "arrival", "scenario"} {
		if c.Flags().Changed(flag) {
			return exit.Usagef("--%s is of other sweeps than one over scenarios, which runs each as it is: leave it out", flag)
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
	w.Print = func(partial bool) error {
		switch {
		case own["json"] != "true":
			return study.Text(a.Stdout, w.Book, w.Dir, w.Published)
		case partial:
			return nil
		}
		return a.printJSON(w.Book)
	}
	return w.Run()
}

// flagsOf are the settings that were given as flags: those of each run, and those of the sweep.
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

// reportScenarios shows a sweep over scenarios again and makes its page again, whose path it
// returns.
func (a *app) reportScenarios(dir, format string, open bool) (page string, err error) {
	book, err := sweep.Scenarios.Read(dir)
	if err != nil {
		return "", err
	}
	published, err := campaign.Published()
	if err != nil {
		return "", err
	}
	if format == output.Text {
		err = study.Text(a.Stdout, book, dir, published)
	} else {
		var set *output.Set
		if set, err = output.OfScenarios(book, published, dir, run.ReadResult); err == nil {
			err = a.printSet(set, format)
		}
	}
	if err == nil && (format == output.Text || open) {
		err = a.unmade(study.SavePage(book, dir, published, campaign.Onwards(book, dir)), open)
	}
	return filepath.Join(dir, study.PageName), err
}

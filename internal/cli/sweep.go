package cli

import (
	"github.com/spf13/cobra"

	"stroppy/internal/campaign"
	"stroppy/internal/exit"
	"stroppy/internal/scenario"
	"stroppy/internal/sweep"
)

func (a *app) sweepCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "sweep [WORKLOAD] --over AXIS[=VALUES]", Short: "Repeat a run at several rates, or with several numbers of clients or nodes; or run several scenarios",
		Long: "Every step is a whole run with a verdict of its own, in a folder of the sweep's directory.\n" +
			"A sweep that was interrupted goes on where it stopped when it is called again with --out.\n\n" +
			"  --over rate                   finds the maximum rate, steps down by tenths, below 70 % by half,\n" +
			"                                refines near the knee and measures its two sides three times;\n" +
			"                                a step lasts until its 99 % latency has samples enough, a minute at most\n" +
			"  --over clients=1,2,4,8        these; clients=1..64 doubles; clients=10..50 by 10 adds\n" +
			"  --over nodes=1,3,5            with --cluster, which is started again for each\n" +
			"  --over scenarios='study/*'    scenarios by name, pattern or file, one after the other; by default\n" +
			"                                the studies'. A scenario that cannot run is reported, and the others\n" +
			"                                go on. Tables that the studies published show our figures beside theirs",
		Args: oneWorkload,
	}
	absent := keys("workload", "keep", "arrival")
	read := a.settings(c, func(k scenario.Key) bool { return !absent(k) })
	arrival := c.Flags().String("arrival", "", "over rate: how transactions lie within it, uniform or poisson, by `NAME`")
	repeat := c.Flags().String("repeat", "1", "measure each step `TIMES`")
	dry := dryRunFlag(c)
	over := c.Flags().String("over", "", "what the steps differ in: `AXIS[=VALUES]`")
	groupedHelp(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		if *over == "" {
			return exit.Usagef("`%s` needs --over: rate, clients, nodes or scenarios, such as --over clients=1,2,4,8", c.CommandPath())
		}
		if names, ok, err := campaign.ScenariosOf(*over); err != nil {
			return err
		} else if ok {
			return a.sweepScenarios(c, args, names, *over, *dry)
		}
		spec, err := sweep.Parse(*over)
		if err != nil {
			return exit.With(exit.Usage, err)
		}
		times, err := rounds(*repeat)
		if err != nil {
			return err
		}
		if c.Flags().Changed("repeat") {
			spec.Repeat = times
		}
		var later []string // read by the steps alone
		if spec.Axis == sweep.Rate {
			later = []string{"max-backlog"}
		}
		config, err := read(args, later...)
		if err != nil {
			return err
		}
		if *arrival != "" && spec.Axis != sweep.Rate {
			return exit.Usagef("--arrival applies to a sweep over rate, and this one is over %s: leave it out", spec.Axis)
		}
		w, err := campaign.NewSweep(a.App, &config, spec, *arrival)
		if err != nil {
			return err
		}
		return a.sweep(w, config.JSON, *dry)
	}
	return c
}

// sweep carries out a sweep, or prints its plan.
func (a *app) sweep(w *campaign.Sweep, asJSON, dry bool) error {
	if dry {
		return a.printPlan(w.Plan())
	}
	w.Print = func(partial bool) error {
		if partial && (asJSON || len(w.Book.Points) == 0) {
			return nil
		}
		return a.printSweep(w.Book, nil, w.Dir, asJSON)
	}
	return w.Run()
}

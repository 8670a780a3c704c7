package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"stroppy/internal/campaign"
	"stroppy/internal/exit"
	"stroppy/internal/matrix"
	"stroppy/internal/scenario"
)

func (a *app) isolationCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "isolation", Short: "Show which anomalies each isolation level of a database lets through",
		Long: "Each isolation level of the database is tested by schedules and under load. A schedule is a few\n" +
			"transactions whose steps come in one fixed order; it shows one anomaly unless the database prevents\n" +
			"it. The table shows which anomalies were seen, how the others were prevented, what the database\n" +
			"claims, and the strongest level of the literature of which no violation was seen, in how many\n" +
			"transactions and schedules. That level is an upper bound: no test shows that a level holds.\n" +
			"The exit code is 1 if an anomaly was seen that a claim forbids.",
		Args: noArguments,
	}
	always := keys("db", "cluster", "nemesis", "probe", "yes", "clients", "duration", "seed", "out", "json")
	read := a.settings(c, func(k scenario.Key) bool { return always(k) })
	levels := c.Flags().StringArray("level", nil, "try this `LEVEL` alone, as the database names it; may be repeated")
	only := c.Flags().Bool("schedules-only", false, "no load: under a minute, and nothing is kept unless --out says where")
	followers := c.Flags().Bool("followers", false, "with --cluster: carry out the transactions of schedules that only read on the nodes that do not lead, each by itself; needs --schedules-only")
	dry := dryRunFlag(c)
	format := c.Flags().String("format", "text", "print the matrix as `FORMAT`: text or markdown")
	c.RunE = func(*cobra.Command, []string) error {
		config, err := read(nil)
		switch {
		case err != nil:
			return err
		case *format != "text" && *format != "markdown":
			return exit.Usagef("--format is %q: it must be text or markdown", *format)
		case *followers && (config.Cluster == "" || !*only):
			return exit.Usagef("--followers needs --cluster and --schedules-only: give both")
		case config.JSON && c.Flags().Changed("format"):
			return exit.Usagef("--json and --format both choose the form: give one of them")
		}
		for _, name := range []string{"nemesis", "clients", "duration", "seed"} {
			if *only && c.Flags().Changed(name) {
				return exit.Usagef("--%s is for the load, which --schedules-only leaves out: give one of them", name)
			}
		}
		i, err := campaign.NewIsolation(a.App, &config, *levels, *only, *followers)
		if err != nil {
			return err
		}
		if *dry {
			return a.printPlan(i.Plan())
		}
		i.Print = func(partial bool) error {
			if partial || i.Matrix == nil {
				return nil
			}
			return a.printMatrix(i.Matrix, i.Dir, config.JSON, *format)
		}
		return i.Run()
	}
	return c
}

// printMatrix prints a matrix that was saved in dir; empty: it was not saved.
func (a *app) printMatrix(m *matrix.Matrix, dir string, asJSON bool, format string) error {
	switch {
	case asJSON:
		return m.JSON(a.Stdout)
	case format == "markdown":
		return m.Markdown(a.Stdout)
	}
	if err := m.Text(a.Stdout); err != nil || dir == "" {
		return err
	}
	_, err := fmt.Fprintf(a.Stdout, "directory         %s\npage              %s\n", dir, filepath.Join(dir, matrix.PageName))
	return err
}

package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"stroppy/internal/run"
	"stroppy/internal/session"
	"stroppy/internal/sweep"
)

func dryRunFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("dry-run", false, "print the plan, and refuse what would be refused; nothing is started, connected to or kept")
}

// dryRun prints what a run would do.
func (a *app) dryRun(command string, config *session.Config, steps run.Steps) error {
	rows, err := a.Outline(command, config, steps)
	if err != nil {
		return err
	}
	return a.printOutline("Plan of `stroppy "+command+"`; nothing was started.", rows)
}

func (a *app) printOutline(head string, rows [][2]string) error {
	for i := range rows {
		rows[i][1] = a.Scrub(rows[i][1])
	}
	return writeOutline(a.Stdout, a.Scrub(head), rows, a.textOptions("").Width)
}

// writeOutline writes a plan for a terminal of so many columns; 0: there is none. The command
// stays one line, because it is pasted.
func writeOutline(w io.Writer, head string, rows [][2]string, width int) error {
	err := writeList(w, []listLine{{"", head}}, width)
	for i := 0; i < len(rows) && err == nil; i++ {
		columns := width
		if rows[i][0] == "command" {
			columns = 0
		}
		err = writeList(w, []listLine{{fmt.Sprintf("  %-18s", rows[i][0]), rows[i][1]}}, columns)
	}
	return err
}

// dryRun prints what a sweep would do.
func (w *sweeping) dryRun() error {
	dir := w.config.Out
	if dir != "" {
		if err := sweepable(dir); err != nil {
			return err
		}
	}
	step := *w.config
	step.Out = ""
	rows, err := w.app.Outline("sweep", &step, run.Steps{Load: true, Check: !step.NoCheck})
	if err != nil {
		return err
	}
	w.config.Seed = step.Seed
	values := w.spec.Values
	if len(values) == 0 {
		values = w.fallback
	}
	var steps []string
	for _, value := range values {
		steps = append(steps, w.label(value))
	}
	text := strings.Join(steps, ", ")
	if len(steps) == 0 {
		text = "the first as fast as it goes; the others follow from what it measures"
	}
	if w.spec.Repeat > 1 {
		text += fmt.Sprintf("; each %d times", w.spec.Repeat)
	}
	for i := range rows {
		switch value := &rows[i][1]; {
		case rows[i][0] == "clients" && w.spec.Axis == sweep.Clients:
			*value = "as the steps say, " + step.Pace()
		case rows[i][0] == "clients" && w.spec.Axis == sweep.Rate:
			*value = fmt.Sprintf("%d, at the rates of the steps", step.Clients)
		case rows[i][0] == "database" && w.spec.Axis == sweep.Nodes:
			_, how, _ := strings.Cut(*value, ", ")
			kind, _, _ := clusterNodes(step.Cluster)
			*value = "a cluster " + kind + " of as many nodes as the steps say, " + how
		case rows[i][0] == "directory":
			*value = cmp.Or(dir, strings.Replace(*value, "TIME-"+step.Workload, "TIME-"+step.Workload+"-sweep", 1))
		case rows[i][0] == "command":
			*value = w.again()
		}
	}
	rows = append([][2]string{{"steps", fmt.Sprintf("%s: %s", w.spec.Axis, text)}}, rows...)
	return w.app.printOutline("Plan of `stroppy sweep`, each step of which is a run; nothing was started.", rows)
}

// dryRun prints what a comparison would do.
func (c *comparing) dryRun() error {
	var names []string
	sides := make([][][2]string, len(c.configs))
	for i, config := range c.configs {
		side := config
		side.Out, side.Seed = "", c.configs[0].Seed // as in the first round
		rows, err := c.app.Outline("run", &side, run.Steps{Load: true, Check: !side.NoCheck})
		if err != nil {
			return fmt.Errorf("%s: %w", c.sides[i].Name, err)
		}
		names, sides[i] = append(names, string('A'+rune(i))), rows[:len(rows)-2]
	}
	often := "once"
	if c.rounds > 1 {
		often = fmt.Sprintf("%d times", c.rounds)
	}
	err := c.app.printOutline("Plan of `stroppy compare`; nothing was started.", [][2]string{
		{"order", strings.Join(names, " ") + ", " + often},
		{"seeds", fmt.Sprintf("%d, and one more each round", c.configs[0].Seed)},
		{"directory", c.dir}, {"command", c.command},
	})
	for i := 0; i < len(sides) && err == nil; i++ {
		err = c.app.printOutline(fmt.Sprintf("%s: %s", names[i], c.sides[i].Name), sides[i])
	}
	return err
}

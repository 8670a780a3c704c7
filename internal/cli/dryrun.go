package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"stroppy/internal/campaign"
)

func dryRunFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("dry-run", false, "print the plan, and refuse what would be refused; nothing is started, connected to or kept")
}

// printPlan prints a plan, or returns err.
func (a *app) printPlan(plan []campaign.Outline, err error) error {
	for i := 0; i < len(plan) && err == nil; i++ {
		rows := plan[i].Rows
		for j := range rows {
			rows[j][1] = a.Scrub(rows[j][1])
		}
		err = writeOutline(a.Stdout, a.Scrub(plan[i].Head), rows, a.textOptions("").Width)
	}
	return err
}

// writeOutline writes a plan for a terminal of the given width; 0: no terminal. It does not wrap the command, so that it
// can be pasted.
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

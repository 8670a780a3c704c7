package sweep

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"stroppy/internal/report"
)

// mostFailed is the number of invalid steps that are shown with their findings.
const mostFailed = 5

// folder is the name of a step's folder as a command takes it without quotes.
var folder = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// failed returns the first invalid steps of the sweep in a directory, and counts the others.
func failed(axis Axis, points []Point, dir string) (list []report.Item) {
	more := uint64(0)
	for _, p := range points {
		switch {
		case p.Verdict != "invalid":
		case len(list) == mostFailed:
			more++
		default:
			list = append(list, failedStep(axis, p, dir))
		}
	}
	return append(list, report.MoreViolated(more, "step")...)
}

func failedStep(axis Axis, p Point, dir string) report.Item {
	c := report.Violated(step(axis, p.Value), "See the report of the step for the findings.", report.PageBeside(p.Dir))
	first := &c.Findings[0]
	if dir != "" && c.Page != "" && folder.MatchString(p.Dir) {
		c.Command = "stroppy report " + filepath.Join(dir, p.Dir)
	}
	var others []string
	for i, v := range p.Violations {
		switch {
		case i > 0 && v.Found > 0:
			others = append(others, fmt.Sprintf("%s (%s)", v.Check, report.Group(v.Found)))
		case i > 0:
			others = append(others, v.Check)
		default:
			c.Name += ": " + v.Check
			if first.Text = v.Detail; v.Found > 1 {
				first.Note = report.Group(v.Found) + " such violations were found. "
			}
		}
		if len(c.Witness) == 0 && len(v.Witness) > 0 {
			c.WitnessOf, c.Witness = v.Check, append(c.Witness, v.Witness...)
		}
	}
	if len(others) > 0 {
		first.Note += "Checks that found other violations: " + strings.Join(others, ", ") + "."
	}
	first.Note = strings.TrimSpace(first.Note)
	c.Detail = strings.TrimSpace(first.Text + " " + first.Note)
	if len(c.Witness) > 0 {
		c.Detail += " Transactions (" + c.WitnessOf + "): " + strings.Join(c.Witness, ", ")
	}
	return c
}

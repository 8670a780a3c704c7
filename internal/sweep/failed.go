package sweep

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"stroppy/internal/report"
)

// mostFailed is how many invalid steps are shown with what was found in them.
const mostFailed = 5

// folder is the name of a step's folder as a command takes it without quotes.
var folder = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// failed are the first invalid steps of the sweep in a directory, and how many more there are.
func failed(axis Axis, points []Point, dir string) (list []PageFailed, more string) {
	list = []PageFailed{}
	left := uint64(0)
	for _, p := range points {
		switch {
		case p.Verdict != "invalid":
		case len(list) == mostFailed:
			left++
		default:
			list = append(list, failedStep(axis, p, dir))
		}
	}
	if left > 0 {
		more = fmt.Sprintf("%s more found violations, too: INVALID in the table of the steps.", report.Counted(left, "step"))
	}
	return list, more
}

func failedStep(axis Axis, p Point, dir string) PageFailed {
	f := PageFailed{Step: step(axis, p.Value), Text: "What was found stands in the report of the step.", Witness: []string{}, Page: link(p.Dir)}
	if dir != "" && f.Page != "" && folder.MatchString(p.Dir) {
		f.Command = "stroppy report " + filepath.Join(dir, p.Dir)
	}
	var others []string
	for i, v := range p.Violations {
		switch {
		case i > 0 && v.Found > 0:
			others = append(others, fmt.Sprintf("%s (%s)", v.Check, report.Group(v.Found)))
		case i > 0:
			others = append(others, v.Check)
		default:
			f.Check, f.Text = v.Check, v.Detail
			if v.Found > 1 {
				f.More = report.Group(v.Found) + " such violations were found. "
			}
		}
		if len(f.Witness) == 0 && len(v.Witness) > 0 {
			f.WitnessOf, f.Witness = v.Check, append(f.Witness, v.Witness...)
		}
	}
	if len(others) > 0 {
		f.More += "Checks that found other violations: " + strings.Join(others, ", ") + "."
	}
	f.More = strings.TrimSpace(f.More)
	return f
}

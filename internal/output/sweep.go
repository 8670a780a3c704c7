package output

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"stroppy/internal/report"
	"stroppy/internal/sweep"
	"stroppy/internal/sweep/study"
)

// Reader reads the result of the run in a directory. If there is none, its error is an
// fs.ErrNotExist.
type Reader func(dir string) (*report.Result, error)

// notRun is the verdict of a run that was not made.
const notRun = "not run"

// OfSweep returns the set of a sweep: its steps in the order of their measurement, then the steps
// that are missing.
func OfSweep(b *sweep.Book, dir string, read Reader) (*Set, error) {
	spec, err := sweep.Parse(b.Over)
	if err != nil {
		return nil, err
	}
	d, err := sweep.NewDocument(b, dir, "")
	if err != nil {
		return nil, err
	}
	s := &Set{Lead: []string{"over", "value", "repeat"}, document: d, Whole: &Whole{Kind: "sweep", Name: dir, json: b}}
	s.ofSweep(b.Finished, len(b.Points))
	times := map[float64]int{}
	add := func(value float64, r Run) {
		times[value]++
		shown := sweep.ValueName(spec.Axis, value)
		r.Lead, r.Step = []string{string(spec.Axis), shown, strconv.Itoa(times[value])}, string(spec.Axis)+"="+shown
		s.Runs = append(s.Runs, r)
	}
	for i := range b.Points {
		p := &b.Points[i]
		r, err := s.recorded(p.Dir, p.Verdict, read)
		if err != nil {
			return nil, err
		}
		if r.Result == nil {
			r.Figs, r.Result = p.Figures(), pointResult(b, p)
			r.Figs[unsent] = float64(p.Backlog)
			if spec.Axis != sweep.Nodes {
				r.Figs[string(spec.Axis)] = p.Value
			}
		}
		add(p.Value, r)
	}
	if b.Finished {
		return s, nil
	}
	for i, value := range spec.Due(b.Points, b.Repeat) {
		next := due(b.Workload, b.Database, "This step was not measured, or not to its end.")
		if i == 0 {
			if cut := s.invalidPart(len(b.Points)+1, read); cut.Result != nil {
				next = cut
				found := fmt.Sprintf("A check found a violation in %s, which was cut off.", cut.Dir)
				d.Verdict, d.Reason = "invalid", found+" "+d.Reason
				s.Notes = append(s.Notes, found)
			}
		}
		add(value, next)
	}
	return s, nil
}

// OfScenarios returns the set of a sweep over scenarios, with the runs that could not be made.
func OfScenarios(b *sweep.Book, published []study.Published, dir string, read Reader) (*Set, error) {
	s := &Set{Lead: []string{"scenario"}, document: study.NewDocument(b, published, ""), Whole: &Whole{Kind: "sweep", Name: dir, json: b}}
	s.ofSweep(b.Finished, len(b.Points))
	for _, name := range b.Names {
		row, r := b.Point(name), Run{}
		switch {
		case row == nil:
			r = due("", "", "This scenario was not run, or not to its end.")
		case row.Problem != "":
			r = due("", "", row.Problem)
			r.Result.Verdict = "could not run"
		default:
			var err error
			if r, err = s.recorded(row.Dir, row.Verdict, read); err != nil {
				return nil, err
			}
			if r.Result == nil {
				r.Figs, r.Result = row.Figures(), &report.Result{Verdict: row.Verdict, Database: row.Database, Reason: noFolder}
			}
		}
		r.Lead, r.Key = []string{name}, report.Setting{Name: "scenario", Value: name}
		s.Runs = append(s.Runs, r)
	}
	return s, nil
}

// missing adds the reason why runs are missing.
func (s *Set) missing(why string) {
	s.Whole.Missing, s.Notes = why, append(s.Notes, s.Whole.Name+": "+why)
}

// ofSweep adds what is missing from a sweep of so many steps.
func (s *Set) ofSweep(finished bool, steps int) {
	switch {
	case !finished:
		s.missing(sweep.NotFinished)
	case steps == 0:
		s.missing("The sweep has no step.")
	}
}

// recorded returns the run in a folder of the set, without a result if the folder has none. It adds
// a note if the verdict differs from the one that the book keeps.
func (s *Set) recorded(folder, verdict string, read Reader) (Run, error) {
	if !filepath.IsLocal(folder) {
		return Run{}, nil
	}
	r := Run{Dir: filepath.Join(s.Whole.Name, folder)}
	result, err := read(r.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.Notes = append(s.Notes, fmt.Sprintf("%s has no %s: of this run there is only what the %s keeps of it", r.Dir, report.FileName, s.Whole.Kind))
		return r, nil
	case err != nil:
		return r, err
	case result.Verdict != verdict:
		s.Notes = append(s.Notes, fmt.Sprintf("%s was checked again since: it is %s, and the %s has kept that it was %s", r.Dir, report.OrNotKnown(result.Verdict), s.Whole.Kind, report.OrNotKnown(verdict)))
	}
	r.Result = result
	return r, nil
}

// invalidPart returns the step of this number if it was cut off and is invalid, else a run without a
// result. Its measurements do not count.
func (s *Set) invalidPart(number int, read Reader) Run {
	folders, _ := filepath.Glob(filepath.Join(pattern.Replace(s.Whole.Name), fmt.Sprintf("%02d-*", number))) // the pattern is a good one
	for _, dir := range folders {
		if r, err := read(dir); err == nil && r.Verdict == "invalid" {
			part := *r
			part.Objectives = nil
			return Run{Dir: dir, Result: &part, Figs: map[string]float64{}}
		}
	}
	return Run{}
}

// pattern writes a path so that filepath.Glob takes it literally.
var pattern = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// due returns a run that was not made.
func due(workload, database, reason string) Run {
	return Run{Result: &report.Result{Verdict: notRun, Reason: reason, Workload: workload, Database: database}, Figs: map[string]float64{}}
}

const noFolder = "The folder of the run is missing. These are the figures that the sweep kept."

// pointResult returns the result that a sweep keeps of a step.
func pointResult(b *sweep.Book, p *sweep.Point) *report.Result {
	r := &report.Result{Verdict: p.Verdict, Reason: noFolder, Workload: b.Workload, Database: b.Database, Stroppy: b.Stroppy}
	for _, v := range p.Violations {
		r.Checks = append(r.Checks, report.Check{Name: v.Check, Status: "invalid", Required: true, Detail: v.Detail})
	}
	if p.Objectives != "" {
		r.Objectives = []report.Objective{{Name: "objectives", Status: p.Objectives, Detail: p.ObjectivesText}}
	}
	return r
}

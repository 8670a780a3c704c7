package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stroppy/internal/exit"
	"stroppy/internal/history"
	"stroppy/internal/live"
	"stroppy/internal/output"
	"stroppy/internal/registry"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/session"
	"stroppy/internal/sweep"
	"stroppy/internal/sweep/rounds"
	"stroppy/internal/sweep/study"
)

// The bounds of one comparison: its rounds, and its sides, which are named by letters.
const (
	mostRepeats = 1000
	mostSides   = 26
)

func (a *app) compareCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "compare SCENARIO…", Short: "Run scenarios alternately, several times, and compare them",
		Long: "The runs go A B A B, so that what drifts on the machine comes to all alike, and the variation\n" +
			"between the rounds is what the intervals are made of. Every run has a verdict and a folder of its own.\n" +
			"The runs of one round share a seed: the first scenario's, and one more each round.\n" +
			"With --db or --cluster, each as often as there are databases, every scenario runs on each of them.",
	}
	var databases []scenario.Setting
	c.Flags().Var(&repeated{"db", &databases}, "db", "run the scenarios on the database at `URL`")
	c.Flags().Var(&repeated{"cluster", &databases}, "cluster", "run the scenarios on a cluster of this `KIND[:N]`, started on this machine for each run")
	format := outputFormat(c)
	repeat := c.Flags().String("repeat", "3", "how many `ROUNDS`")
	dry := dryRunFlag(c)
	out := c.Flags().StringP("out", "o", "", "the comparison's `DIR`, which must not hold anything yet")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if err := noneEmpty(c); err != nil {
			return err
		}
		if err := knownFormat(c, format, false); err != nil {
			return err
		}
		times, err := strconv.Atoi(*repeat)
		switch {
		case len(args) == 0, len(args) == 1 && len(databases) < 2:
			return exit.Usagef("`%s` compares two or more scenarios and was given %d: name their YAML files, such as scenario.yaml of earlier runs, or one file and two databases by --db or --cluster", c.CommandPath(), len(args))
		case len(args)*max(len(databases), 1) > mostSides:
			return exit.Usagef("`%s` compares %d sides at most and was given %d", c.CommandPath(), mostSides, len(args)*max(len(databases), 1))
		case err != nil || times < 1 || times > mostRepeats:
			return exit.Usagef("--repeat %q is no number of rounds from 1 to %d", *repeat, mostRepeats)
		}
		return a.compare(args, databases, times, *out, *format, *dry)
	}
	return c
}

// repeated is a flag that adds a setting each time that it is given.
type repeated struct {
	key  string
	list *[]scenario.Setting
}

func (r *repeated) String() string {
	if r.list == nil || len(*r.list) == 0 {
		return ""
	}
	return (*r.list)[len(*r.list)-1].Value
}

func (r *repeated) Type() string { return "text" }

func (r *repeated) Set(value string) error {
	*r.list = append(*r.list, scenario.Setting{Key: r.key, Value: value, Source: "--" + r.key})
	return nil
}

// shown is the database of a flag as it may be shown.
func shown(database scenario.Setting) string {
	if database.Key == "db" {
		return scenario.Redact(database.Value)
	}
	return database.Value
}

type comparing struct {
	app     *app
	command string // that repeats it
	configs []session.Config
	sides   []report.Side
	book    rounds.Book
	rounds  int
	dir     string
	format  string // of what is printed
	asked   bool   // for a verdict, by every scenario
}

func (a *app) compare(files []string, databases []scenario.Setting, times int, out, format string, dry bool) error {
	if err := noRuns(files); err != nil {
		return err
	}
	c := &comparing{app: a, rounds: times, format: format, asked: true, command: fmt.Sprintf("stroppy compare --repeat %d", times)}
	for _, d := range databases {
		c.command += " --" + d.Key + session.Quoted([]string{shown(d)})
	}
	c.command += session.Quoted(files)
	for _, file := range files {
		if len(databases) == 0 {
			if err := c.add(file); err != nil {
				return err
			}
		}
		for _, d := range databases {
			if err := c.add(file, d); err != nil {
				return err
			}
		}
	}
	if c.dir = out; out == "" {
		c.dir = run.Unused(filepath.Join(session.RunsRoot, time.Now().Format("20060102-150405")+"-compare"))
	}
	if err := ofComparison(run.Vacant(c.dir)); err != nil {
		return err
	}
	if dry {
		return c.dryRun()
	}
	if err := os.MkdirAll(c.dir, 0o777); err != nil {
		return ofComparison(run.Unusable(c.dir, err))
	}
	defer os.Remove(c.dir) // one that holds something stays
	err := c.run()
	if err == nil {
		err = c.report()
	}
	var found verdicts
	for _, side := range c.sides {
		for _, r := range side.Runs {
			found.add(r.Dir, r.Result.Verdict, r.Result.ObjectivesStatus())
		}
	}
	return found.with(err, c.asked)
}

func (c *comparing) report() error {
	compared, err := c.app.printComparison(c.sides, c.dir, c.command, c.format, "")
	if err != nil {
		return err
	}
	if err := c.app.comparisonPage(compared, c.dir, c.format == output.Text); err != nil {
		return fmt.Errorf("%w: the runs are kept in %s, and `stroppy report` compares them", err, c.dir)
	}
	return nil
}

// add takes a scenario, on the database that is named if one is.
func (c *comparing) add(file string, database ...scenario.Setting) error {
	config, err := c.app.Configure(database, file)
	switch {
	case err != nil:
		return err
	case len(c.configs) > 0 && config.Workload != c.configs[0].Workload:
		return exit.Usagef("compare the runs: %s runs %s and %s runs %s, whose measurements mean different things",
			c.sides[0].Name, c.configs[0].Workload, file, config.Workload)
	case config.NoLoad:
		return exit.Usagef("%s drives what is loaded, and what one run leaves is not what the other began with: take no-load out", file)
	case config.Serve != "" || config.Metrics != "":
		return exit.Usagef("%s, or a variable, asks for serve or metrics, and a comparison shows nothing live: leave them out", file)
	}
	if err := c.app.DrawSeed(&config, true); err != nil {
		return err
	}
	config.JSON = false
	c.asked = c.asked && !config.NoCheck
	name := file
	for _, d := range database {
		name += " on " + shown(d)
	}
	c.configs, c.sides = append(c.configs, config), append(c.sides, report.Side{Name: name})
	return nil
}

func (c *comparing) run() error {
	s := c.app.Begin(live.NewFeed())
	defer s.Stop()
	c.book = rounds.Book{Command: c.command, Stroppy: registry.Version(), Rounds: c.rounds}
	for i := range c.configs {
		if err := c.configs[i].AdmitFirst(s, fewerIn(c.sides[i].Name)); err != nil {
			return err
		}
		c.book.Sides = append(c.book.Sides, rounds.Side{Name: c.sides[i].Name, Runs: []string{}})
	}
	s.Note("directory of the comparison %s", c.dir)
	for round := range c.rounds {
		for i, config := range c.configs {
			s.Note("round %d of %d: %s", round+1, c.rounds, c.sides[i].Name)
			config.Seed = c.configs[0].Seed + uint64(round)
			config.Out = filepath.Join(c.dir, fmt.Sprintf("%02d-%c", round+1, 'a'+rune(i)))
			_, path, err := c.app.Next(s, &config)
			if err != nil {
				return err
			}
			recorded, err := report.ReadRecorded(path)
			if err != nil {
				return err
			}
			c.sides[i].Runs = append(c.sides[i].Runs, recorded)
			c.book.Sides[i].Runs = append(c.book.Sides[i].Runs, filepath.Base(path))
			if err := c.book.Save(c.dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareRuns compares recorded runs, each a side of its own, and makes a page of
// that in the directory out; none where that is empty.
func (a *app) compareRuns(dirs []string, out, format string) error {
	var sides []report.Side
	if out != "" {
		if err := ofComparison(run.Vacant(out)); err != nil {
			return err
		}
	}
	for _, dir := range dirs {
		recorded, err := recordedRun(dir)
		if err != nil {
			return err
		}
		sides = append(sides, report.Side{Name: dir, Runs: []report.Recorded{recorded}})
	}
	command := "stroppy report" + session.Quoted(dirs)
	compared, err := a.printComparison(sides, out, command, format, "")
	if err != nil || out == "" {
		return err
	}
	book, err := rounds.Of(dirs, out)
	if err != nil {
		return err
	}
	book.Command, book.Stroppy = command, registry.Version()
	if err = os.MkdirAll(out, 0o777); err == nil {
		err = book.Save(out)
	}
	if err == nil {
		err = a.comparisonPage(compared, out, format == output.Text)
	}
	if err != nil {
		return ofComparison(run.Unusable(out, err))
	}
	return nil
}

// recordedRun reads a run that is to be compared.
func recordedRun(dir string) (report.Recorded, error) {
	if err := mustBeDirectory(dir); err != nil {
		return report.Recorded{}, err
	}
	recorded, err := report.ReadRecorded(dir)
	if err == nil {
		err = run.SameRun(dir, recorded.Result)
	}
	if errors.Is(err, os.ErrNotExist) {
		err = cmp.Or(ofSeveral(dir), exit.Usagef("%s is no run's directory to compare: it has no %s or no series", dir, report.FileName))
	}
	return recorded, err
}

// reportComparison shows a comparison that was kept again, and makes its page again,
// whose path it returns.
func (a *app) reportComparison(dir, format string, open bool) (page string, err error) {
	book, err := rounds.Read(dir)
	if err != nil {
		return "", err
	}
	var sides []report.Side
	for i, side := range book.Sides {
		if len(side.Runs) == 0 {
			return "", exit.Usagef("%s holds a comparison that was cut off before each side had a run, and there is nothing to compare with for side %s (%s): `%s` makes it again", dir, report.SideName(i), side.Name, book.Command)
		}
		read := report.Side{Name: side.Name}
		for _, folder := range side.Dirs(dir) {
			recorded, err := recordedRun(folder)
			if err != nil {
				return "", err
			}
			read.Runs = append(read.Runs, recorded)
		}
		sides = append(sides, read)
	}
	c, err := a.printComparison(sides, dir, book.Command, format, book.Missing())
	if err == nil && (format == output.Text || open) {
		err = a.unmade(a.comparisonPage(c, dir, format == output.Text), open)
	}
	return filepath.Join(dir, report.ComparisonPageName), err
}

// ofComparison has the error of a directory, which may be nil, say that it is a comparison's.
func ofComparison(err error) error {
	var unusable *run.UnusableError
	if errors.As(err, &unusable) {
		unusable.Of = "comparison"
	}
	return err
}

// noResult refuses a directory without a result. Of one that holds the directories of runs, as
// that of a comparison, these are named.
func noResult(dir string) error {
	const most = 4 // fit in a sentence
	results, err := filepath.Glob(filepath.Join(pattern.Replace(dir), "*", report.FileName))
	if err != nil || len(results) == 0 {
		return exit.Usagef("%s is no run's directory: it has no %s", dir, report.FileName)
	}
	more := ""
	if len(results) > most {
		results, more = results[:most], " …"
	}
	for i := range results {
		results[i] = filepath.Dir(results[i])
	}
	return exit.Usagef("%s is no run's directory, but holds several: `stroppy report%s%s` shows one, or compares them", dir, session.Quoted(results), more)
}

// noHistory refuses a directory without a recording. Of one of a sweep or a comparison it names
// a run. If other files of a recording are there, the recording is damaged.
func noHistory(dir string) error {
	folder := (&run.Directory{Path: dir}).History()
	if left, err := os.ReadDir(folder); err == nil && len(left) > 0 {
		return fmt.Errorf("read the run in %s: %s is missing: restore it from a copy", dir, filepath.Join(folder, history.FileName))
	}
	return cmp.Or(ofSeveral(dir), exit.Usagef("%s is no run's directory: there is no history in it", dir))
}

// ofSeveral refuses the directory of a sweep or a comparison where that of a run is needed; nil
// for any other. One of a book that cannot be read has no example.
func ofSeveral(dir string) error {
	what, example := "", ""
	switch {
	case study.Holds(dir):
		what = "sweep"
		if book, err := study.Read(dir); err == nil {
			for _, row := range book.Rows {
				if row.Dir != "" {
					example = cmp.Or(example, filepath.Join(dir, row.Dir))
				}
			}
		}
	case holdsBook(dir):
		what = "sweep"
		if book, err := sweep.Read(dir); err == nil && len(book.Points) > 0 {
			example = filepath.Join(dir, book.Points[0].Dir)
		}
	case rounds.Holds(dir):
		what = "comparison"
		if book, err := rounds.Read(dir); err == nil {
			for _, side := range book.Sides {
				for _, run := range side.Dirs(dir) {
					example = cmp.Or(example, run)
				}
			}
		}
	default:
		return nil
	}
	if example != "" {
		example = ", such as " + scenario.Quote(example)
	}
	return exit.Usagef("%s is the directory of a %s and not of a run: name the folders of its runs%s", dir, what, example)
}

// pattern writes a path so that filepath.Glob takes it literally.
var pattern = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// noRuns refuses directories of runs where scenarios are to be compared.
func noRuns(files []string) error {
	scenarios := slices.DeleteFunc(slices.Clone(files), func(file string) bool {
		info, err := os.Stat(file)
		return err == nil && info.IsDir()
	})
	if len(files) > 1 && len(scenarios) == 0 {
		return exit.Usagef("%s is a directory and no scenario: `stroppy report%s` compares runs that are recorded", files[0], session.Quoted(files))
	}
	return nil // of one alone it is said when it is read
}

// printComparison prints a comparison. missing says why it has not all of its runs; empty: it has.
func (a *app) printComparison(sides []report.Side, dir, command, format, missing string) (*report.ComparisonData, error) {
	c, err := report.Compare(sides, dir, command)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	if missing != "" {
		c.CutOff(missing)
	}
	if format == output.Text {
		return c, c.WriteText(a.Stdout, a.textOptions(dir).Width)
	}
	return c, a.printSet(output.OfComparison(sides, c, dir, missing), format)
}

// printSet prints a set in a form that is not text, and beside it what else is to be known of it.
func (a *app) printSet(s *output.Set, format string) error {
	for _, note := range s.Notes {
		fmt.Fprintln(a.Stderr, a.Scrub(note))
	}
	return output.Write(a.Stdout, format, s)
}

// comparisonPage makes the page of a comparison in its directory, and if named says where.
func (a *app) comparisonPage(c *report.ComparisonData, dir string, named bool) error {
	d := run.Directory{Path: dir}
	if err := d.WriteFrom(report.ComparisonPageName, c.WritePage); err != nil {
		return err
	}
	if !named {
		return nil
	}
	_, err := fmt.Fprintf(a.Stdout, "\n%s\n", filepath.Join(dir, report.ComparisonPageName))
	return err
}

// verdicts are the directories of several runs that are not valid, or missed an objective.
type verdicts struct{ invalid, unknown, missed []string }

// add takes up a run's verdict, and what its objectives came to.
func (v *verdicts) add(dir, verdict, objectives string) {
	if objectives == report.ObjectiveMissed {
		v.missed = append(v.missed, dir)
	}
	switch verdict {
	case "valid":
		if objectives == report.ObjectiveUnknown {
			v.unknown = append(v.unknown, dir)
		}
	case "invalid":
		v.invalid = append(v.invalid, dir)
	default:
		v.unknown = append(v.unknown, dir)
	}
}

// with is the error of runs that ended with err, which may be nil: a violation
// outweighs it. Where nobody asked for a verdict, an unknown one is none.
func (v *verdicts) with(err error, asked bool) error {
	switch {
	case len(v.invalid) > 0:
		return errors.Join(exit.With(exit.Invalid, fmt.Errorf("invalid: a check found a violation in %s", strings.Join(v.invalid, ", "))), err)
	case err == nil && asked && len(v.unknown) > 0:
		return exit.With(exit.Unknown, fmt.Errorf("unknown: a check or an objective could not be decided in %s", strings.Join(v.unknown, ", ")))
	case err == nil && len(v.missed) > 0:
		return exit.With(exit.Missed, fmt.Errorf("objectives missed in %s", strings.Join(v.missed, ", ")))
	}
	return err
}

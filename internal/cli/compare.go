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

	"stroppy/internal/campaign"
	"stroppy/internal/exit"
	"stroppy/internal/history"
	"stroppy/internal/output"
	"stroppy/internal/registry"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/session"
	"stroppy/internal/sweep"
)

// mostRepeats is the largest value of --repeat.
const mostRepeats = 1000

func (a *app) compareCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "compare [WORKLOAD | SCENARIO…]", Short: "Run set-ups alternately, several times, and compare them",
		Long: "The set-ups are scenarios, or one workload or scenario on several databases (--db, --cluster), with\n" +
			"several values (--vary), or both: then each value is run on each database. Flags apply to all set-ups.\n" +
			"The runs alternate (A B A B), so that a drift of the machine affects all set-ups alike. The\n" +
			"intervals come from the variation between the rounds. Every run has a verdict and a folder.\n" +
			"The runs of one round share a seed: the first set-up's, and one more each round. With --no-load\n" +
			"all runs use the data that are there, and each begins with what the run before has left.",
		Args: cobra.ArbitraryArgs,
	}
	absent := keys("workload", "db", "cluster", "keep", "out", "serve", "metrics", "json")
	given := givenBy(c, func(k scenario.Key) bool { return !absent(k) })
	var sides campaign.Sides
	c.Flags().Var(&repeated{"db", &sides.Databases}, "db", "run on the database at `URL`; may be repeated")
	c.Flags().Var(&repeated{"cluster", &sides.Databases}, "cluster", "run on a cluster of this `KIND[:N]`, started on this machine for each run; may be repeated")
	vary := c.Flags().StringArray("vary", nil, "compare values of a setting, or of a parameter of the cluster or the URL, such as clients=8,16 or synchronous=on,off, by `NAME=VALUE,VALUE`; may be repeated")
	format := outputFormat(c)
	repeat := c.Flags().String("repeat", "3", "how many `ROUNDS`")
	dry := dryRunFlag(c)
	out := c.Flags().StringP("out", "o", "", "the comparison's `DIR`; one that was interrupted goes on")
	groupedHelp(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		if err := knownFormat(c, format, false); err != nil {
			return err
		}
		times, err := rounds(*repeat)
		if err == nil {
			sides.Files, args, err = scenariosOrWorkload(c, args)
		}
		if err == nil {
			sides.Base, sides.Given, err = given(args)
		}
		if err == nil && sides.Base != "" && len(sides.Files) > 0 {
			err = exit.Usagef("--scenario %s and %s are scenarios: name both as arguments", sides.Base, sides.Files[0])
		}
		if err == nil {
			sides.Variations, err = campaign.ParseVariations(*vary)
		}
		if err != nil {
			return err
		}
		return a.compare(sides, times, *out, *format, *dry)
	}
	return c
}

// scenariosOrWorkload returns the scenarios in the arguments, or the only argument if it is a workload.
func scenariosOrWorkload(c *cobra.Command, args []string) (files, workload []string, err error) {
	for _, arg := range args {
		switch {
		case !slices.Contains(registry.Workloads().Names(), arg):
			files = append(files, arg)
		case len(args) > 1:
			return nil, nil, exit.Usagef("`%s` takes one workload or several scenarios: %s is a workload, so leave the others out", c.CommandPath(), arg)
		default:
			workload = args
		}
	}
	if len(files) == 1 && slices.Contains(tpcc, strings.ToLower(files[0])) || len(files) > 0 && strings.HasSuffix(files[0], ".sql") {
		return nil, nil, oneWorkload(c, files[:1])
	}
	return files, workload, nil
}

// rounds parses the value of --repeat.
func rounds(text string) (int, error) {
	times, err := strconv.Atoi(text)
	if err != nil || times < 1 || times > mostRepeats {
		return 0, exit.Usagef("--repeat %q is not a number from 1 to %d", text, mostRepeats)
	}
	return times, nil
}

// repeated is a flag that adds a setting for each use.
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

func (a *app) compare(sides campaign.Sides, times int, out, format string, dry bool) error {
	if err := noRuns(sides.Files); err != nil {
		return err
	}
	c, err := campaign.NewCompared(a.App, out, sides, times)
	if err != nil {
		return err
	}
	if dry {
		return a.printPlan(c.Plan())
	}
	c.Print = func(partial bool) error {
		if partial {
			return nil
		}
		_, err := a.reportComparison(c.Dir, format, true)
		return err
	}
	return c.Run()
}

// compareRuns compares recorded runs, each a side of its own. It makes a page of the comparison in
// the directory out, if that is not empty.
func (a *app) compareRuns(dirs []string, out, format string) error {
	b := &sweep.Book{
		Kind: sweep.Comparison, Names: dirs, Repeat: 1, Finished: true, Stroppy: registry.Version(),
		StartedAt: time.Now().UTC().Format(time.RFC3339), Command: "stroppy report" + session.Quoted(dirs),
	}
	if out != "" {
		if err := campaign.Unusable(b.Kind, run.Vacant(out)); err != nil {
			return err
		}
	}
	from, err := filepath.Abs(out)
	for _, dir := range dirs {
		to, failed := filepath.Abs(dir)
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		if near, failed := filepath.Rel(from, to); failed == nil {
			to = near
		}
		b.Points = append(b.Points, sweep.Point{Scenario: dir, Dir: to})
	}
	compared, err := a.printComparison(b, dirs, out, format)
	if err != nil || out == "" {
		return err
	}
	if err = os.MkdirAll(out, 0o777); err == nil {
		err = b.Save(out)
	}
	if err == nil {
		err = a.comparisonPage(compared, out, format == output.Text)
	}
	if err != nil {
		return campaign.Unusable(b.Kind, run.Unusable(out, err))
	}
	return nil
}

// recordedRun reads a run for a comparison.
func recordedRun(dir string) (report.Recorded, error) {
	if err := mustBeDirectory(dir); err != nil {
		return report.Recorded{}, err
	}
	recorded, err := report.ReadRecorded(dir)
	if err == nil {
		err = run.SameRun(dir, recorded.Result)
	}
	if errors.Is(err, os.ErrNotExist) {
		err = cmp.Or(ofSeveral(dir), exit.Usagef("%s cannot be compared: it has no %s or no series", dir, report.FileName))
	}
	return recorded, err
}

// reportComparison prints a kept comparison and makes its page. It returns the path of the page.
func (a *app) reportComparison(dir, format string, open bool) (page string, err error) {
	b, err := sweep.Comparison.Read(dir)
	if err != nil {
		return "", err
	}
	if n := len(b.Points); n < len(b.Names) {
		return "", exit.Usagef("the comparison in %s was cut off before side %s (%s) had a run: `%s` repeats it",
			dir, report.SideName(n), b.Names[n], b.Command)
	}
	c, err := a.printComparison(b, b.Runs(dir), dir, format)
	if err == nil && (format == output.Text || open) {
		err = a.unmade(a.comparisonPage(c, dir, format == output.Text), open)
	}
	return filepath.Join(dir, report.ComparisonPageName), err
}

// noResult returns the error for a directory without a result. If the directory holds runs, the error names them.
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

// noHistory returns the error for a directory without a recording. For a sweep or a comparison, the error names a
// run. If other files of a recording exist, the recording is damaged.
func noHistory(dir string) error {
	folder := (&run.Directory{Path: dir}).History()
	if left, err := os.ReadDir(folder); err == nil && len(left) > 0 {
		return fmt.Errorf("read the run in %s: %s is missing: restore it from a copy", dir, filepath.Join(folder, history.FileName))
	}
	return cmp.Or(ofSeveral(dir), exit.Usagef("%s is no run's directory: there is no history in it", dir))
}

// ofSeveral returns an error if dir is the directory of a campaign instead of a run. The error names a run as an
// example if the book can be read.
func ofSeveral(dir string) error {
	kind, example := sweep.KindOf(dir), ""
	if kind == "" {
		return nil
	}
	if b, err := kind.Read(dir); err == nil && len(b.Runs(dir)) > 0 {
		example = ", such as " + scenario.Quote(b.Runs(dir)[0])
	}
	return exit.Usagef("%s is the directory of a %s and not of a run: name the folders of its runs%s", dir, kind, example)
}

// pattern writes a path so that filepath.Glob takes it literally.
var pattern = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// noRuns returns an error if the files to compare are directories of runs instead of scenarios.
func noRuns(files []string) error {
	scenarios := slices.DeleteFunc(slices.Clone(files), func(file string) bool {
		info, err := os.Stat(file)
		return err == nil && info.IsDir()
	})
	if len(files) > 1 && len(scenarios) == 0 {
		return exit.Usagef("%s is a directory, not a scenario: `stroppy report%s` compares recorded runs", files[0], session.Quoted(files))
	}
	return nil // a single directory is refused when it is read
}

// printComparison prints the comparison of the given runs. dir is the directory of the comparison.
func (a *app) printComparison(b *sweep.Book, runs []string, dir, format string) (*report.Document, error) {
	sides := make([]report.Side, len(b.Names))
	for i, folder := range runs {
		recorded, err := recordedRun(folder)
		if err != nil {
			return nil, err
		}
		side := &sides[i%len(sides)]
		side.Name, side.Runs = b.Names[i%len(sides)], append(side.Runs, recorded)
	}
	c, err := report.Compare(sides, dir, b.Command)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	missing := ""
	if due := b.Repeat * len(b.Names); len(runs) < due {
		missing = fmt.Sprintf("The comparison is not finished: it has %d of its %s.", len(runs), report.Counted(uint64(due), "run"))
		c.CutOff(missing)
	}
	if format == output.Text {
		return c, c.WriteText(a.Stdout, report.Options{Width: cmp.Or(a.textOptions(dir).Width, report.Unwrapped), Detail: report.Full})
	}
	return c, a.printSet(output.OfComparison(sides, c, dir, missing), format)
}

// printSet prints a set in a form other than text, and its notes on standard error.
func (a *app) printSet(s *output.Set, format string) error {
	for _, note := range s.Notes {
		fmt.Fprintln(a.Stderr, a.Scrub(note))
	}
	return output.Write(a.Stdout, format, s)
}

// comparisonPage makes the page of a comparison in its directory, and prints the path if named is set.
func (a *app) comparisonPage(c *report.Document, dir string, named bool) error {
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

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stroppy/internal/cluster"
	"stroppy/internal/db"
	"stroppy/internal/db/sqlite"
	"stroppy/internal/isolation"
	"stroppy/internal/nemesis"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/sweep"
	"stroppy/internal/workload"
)

// The bounds of the faults that a plan lists.
const (
	shownFaults = 20 // all together
	openFaults  = 3  // of each line of a script, where the run's length is not known
)

func dryRunFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("dry-run", false, "print the plan, and refuse what would be refused; nothing is started, connected to or kept")
}

// dryRun prints what a run would do.
func (a *app) dryRun(command string, config *config, steps run.Steps) error {
	rows, err := a.outline(command, config, steps)
	if err != nil {
		return err
	}
	return a.printOutline("Plan of `stroppy "+command+"`; nothing was started.", rows)
}

func (a *app) printOutline(head string, rows [][2]string) error {
	for i := range rows {
		rows[i][1] = a.scrub(rows[i][1])
	}
	return writeOutline(a.stdout, a.scrub(head), rows, a.textOptions("").Width)
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

// outline is what a run would do, by name and value, or why it would be refused.
func (a *app) outline(command string, config *config, steps run.Steps) (rows [][2]string, err error) {
	if config.JSON {
		return nil, usagef("--json prints result.json, and a dry run has none: leave it out")
	}
	if _, err := wantedServers(config); err != nil {
		return nil, err
	}
	if err := cmp.Or(config.loadedElsewhere(), config.oneProcess()); err != nil {
		return nil, &exitError{exitUsage, err}
	}
	if _, err := config.connectFrom(context.Background()); err != nil {
		return nil, err
	}
	if config.Out != "" {
		if err := run.Vacant(config.Out); err != nil {
			return nil, err
		}
	}
	if err := a.drawSeed(config, steps.Load); err != nil {
		return nil, err
	}
	where, scheme, err := config.whereRun(a.environ)
	if err != nil {
		return nil, err
	}
	claim, err := config.rehearse(steps.Load)
	if err != nil {
		return nil, err
	}
	spec := config.spec()
	say := func(name, format string, args ...any) {
		rows = append(rows, [2]string{name, fmt.Sprintf(format, args...)})
	}
	say("workload", "%s: %s", spec.Name, spec.About)
	say("database", "%s", where)
	if note := config.unlimited(); note != "" {
		say("resources", "%s", note)
	}
	if by := config.scaled(); by != "" {
		say("scaled down", "%s", by)
	}
	if config.Seed != 0 {
		say("seed", "%d", config.Seed)
	} else {
		say("seed", "that of what is loaded")
	}
	say("clients", "%d, %s", config.Clients, config.pace())
	switch {
	case config.WorkersListen != "":
		say("workers", "%d that join at %s, of which each has a part of the clients", config.Workers, config.WorkersListen)
	case config.Workers > 0:
		say("workers", "%d processes that the clients are spread over", config.Workers)
	}
	rows = append(rows, config.phases(steps)...)
	rows = append(rows, config.faults()...)
	if steps.Check {
		say("checks", "%s", strings.Join(config.checkNames(), ", "))
		say("claim", "%s", config.claimed(claim))
	}
	rows = append(rows, config.objectives()...)
	say("directory", "%s", cmp.Or(config.Out, filepath.Join(runsRoot, "TIME-"+config.Workload+"-"+scheme)))
	say("command", "%s", config.Command(command))
	return rows, nil
}

// whereRun says which database a run is on, and how its directory calls that. What the
// cluster would refuse by itself is an error.
func (c *config) whereRun(environ []string) (where, scheme string, err error) {
	if c.Cluster != "" {
		kind, o, err := c.clusterOptions()
		if err != nil {
			return "", "", err
		}
		how := "started on this machine"
		if kind.elsewhere() {
			how = "made in Kubernetes"
			if o.Params.Has("selector") {
				how = "there already in Kubernetes"
			}
		}
		o.DryRun = true
		_, err = startCluster(context.Background(), kind, o, environ)
		planned, lacks := new(cluster.PlannedError), new(cluster.MissingError)
		if errors.As(err, &planned) {
			err = planned.Lacks
		}
		switch {
		case errors.As(err, lacks): // another machine, or another build, may have it
			how += "; " + lacks.Error()
		case err != nil:
			return "", "", err
		}
		possible := c.Script.Fits(o.Nodes) // where this build has nothing else of the kind
		if planned.Cluster != nil {
			possible = nemesis.Possible(planned, linksOf(planned.Cluster), c.Script)
		}
		if possible != nil {
			return "", "", &exitError{exitUsage, possible}
		}
		return fmt.Sprintf("a cluster %s of %s, %s", kind.name, report.Counted(uint64(o.Nodes), "node"), how), kind.name, nil
	}
	url := c.runDatabase("")
	kind, err := databaseOf(url)
	if err != nil {
		return "", "", err
	}
	scheme, _, _ = strings.Cut(url, ":")
	if c.DB == "" {
		return "embedded, a new file in the run's directory", scheme, nil
	}
	about := "not connected to, so that what it alone could refuse is not known"
	if kind.embedded {
		about = "in this process"
	}
	return scenario.Redact(url) + ", " + about, scheme, nil
}

// databaseKind is the kind of the run's database, or of its cluster's nodes.
func (c *config) databaseKind() (database, error) {
	if c.Cluster == "" {
		return databaseOf(c.runDatabase(""))
	}
	kind, _, err := parseCluster(c.Cluster)
	if err != nil {
		return database{}, err
	}
	list := databases()
	return list[slices.IndexFunc(list, func(d database) bool {
		return slices.ContainsFunc(d.clusters, func(k clusterKind) bool { return k.name == kind.name })
	})], nil
}

// unopened is a key-value store that is not open. What a workload makes of one asks it for its
// limits and its claim alone.
type unopened struct {
	db.KV
	isolations db.Isolations
}

func (u unopened) Claim(isolation string) (db.Claim, error) { return u.isolations.Claim(isolation) }

// foresee refuses what any server of the kind would refuse of the run.
func (c *config) foresee(kind database, loads bool) error {
	if len(kind.isolations.Levels) == 0 {
		return nil
	}
	_, err := kind.isolations.Claim(c.Isolation)
	if err == nil && kind.keyValue != nil {
		_, err = c.bind(unopened{kind.keyValue, kind.isolations}, loads)
	}
	if err != nil {
		return &exitError{exitUsage, err}
	}
	return nil
}

// rehearse refuses what the database would, and returns the claim of an embedded one. That
// needs an open database: an empty one that is thrown away.
func (c *config) rehearse(loads bool) (claim db.Claim, err error) {
	kind, err := c.databaseKind()
	if err != nil {
		return claim, err
	}
	if !kind.embedded {
		return claim, c.foresee(kind, loads)
	}
	url := c.DB
	if kind.file {
		if url != "" {
			if err := sqlite.Place(url); err != nil {
				return claim, &exitError{exitUsage, err}
			}
		}
		dir, err := os.MkdirTemp("", "stroppy-dry-run-")
		if err != nil {
			return claim, fmt.Errorf("make room for an empty database to hold the plan against: %w", err)
		}
		defer os.RemoveAll(dir)
		_, params, found := strings.Cut(url, "?")
		if url = ownScheme + ":" + filepath.Join(dir, "empty.db"); found {
			url += "?" + params
		}
	}
	database, err := openDatabase(context.Background(), url, c.Isolation)
	if err != nil {
		return claim, err
	}
	defer database.Close()
	if _, err := c.bind(database, loads); err != nil {
		return claim, &exitError{exitUsage, err}
	}
	return database.Claim(c.Isolation)
}

// pace says how the clients send.
func (c *config) pace() string {
	switch {
	case !c.Rate.Closed():
		return c.Rate.String() + " transactions a second, " + cmp.Or(c.Arrival, "uniform")
	case c.Think > 0:
		return fmt.Sprintf("closed loop, %v between two transactions", c.Think)
	}
	return "closed loop: each sends when the last answer is there"
}

// phases are the parts of a run, with the times since the start of the load phase.
func (c *config) phases(steps run.Steps) (rows [][2]string) {
	say := func(name, text string) { rows = append(rows, [2]string{name, text}) }
	if steps.Load {
		say("load data", "until all is loaded")
	} else {
		say("load data", "left out: what is loaded is used")
	}
	if c.Warmup > 0 {
		say("warm-up", fmt.Sprintf("0s to %v", c.Warmup))
	}
	if c.Duration > 0 {
		say("measurement", fmt.Sprintf("%v to %v", c.Warmup, c.Duration))
	} else {
		say("measurement", fmt.Sprintf("from %v until %d transactions are done", c.Warmup, c.Count))
	}
	if steps.Check {
		say("check", "the end state is downloaded and checked with what was recorded")
	} else {
		say("check", "left out")
	}
	return rows
}

// faults are the injections that the seed fixes.
func (c *config) faults() (rows [][2]string) {
	if len(c.Script) == 0 {
		return nil
	}
	before, most := c.Duration, shownFaults+1
	if before == 0 {
		before, most = time.Duration(1<<63-1), openFaults
	}
	list := c.Script.Due(c.Seed, before, most)
	for i, d := range list {
		if i == shownFaults {
			return append(rows, [2]string{"", "and more until the end"})
		}
		fault, _ := scenario.RedactScript(d.Fault)
		text := fmt.Sprintf("at %v: %s", d.At.Round(time.Millisecond), fault)
		if d.Heal > 0 {
			text += fmt.Sprintf(", healed at %v", d.Heal.Round(time.Millisecond))
		}
		rows = append(rows, [2]string{"", text})
	}
	if c.Duration == 0 {
		rows = append(rows, [2]string{"", "and so on until the transactions are done"})
	}
	rows[0][0] = "faults"
	return rows
}

func (c *config) checkNames() (names []string) {
	list := c.spec().Checks
	if c.Cluster != "" {
		list = append(list[:len(list):len(list)], run.Checks()...)
	}
	selective, _ := c.Config.(workload.Selective)
	for _, one := range list {
		if selective == nil || c.NoLoad || !selective.Omits(one.Name) {
			names = append(names, one.Name)
		}
	}
	return names
}

// claimed says what the verdict is about.
func (c *config) claimed(claim db.Claim) string {
	switch {
	case c.Expect != isolation.Unknown:
		return c.Expect.String() + ", as --expect says"
	case claim.Level != isolation.Unknown:
		return fmt.Sprintf("%v, which the database claims for its isolation level %q", claim.Level, claim.Isolation)
	}
	if c.Isolation == "" {
		return "what the database claims for its own default isolation level"
	}
	return fmt.Sprintf("what the database claims for its isolation level %q", c.Isolation)
}

// objectives are the limits that a run is held to besides the checks.
func (c *config) objectives() (rows [][2]string) {
	var list []string
	if c.MaxOutage > 0 {
		list = append(list, fmt.Sprintf("no outage longer than %v", c.MaxOutage))
	}
	if c.MaxDegradation > 0 {
		list = append(list, fmt.Sprintf("at most %g of the throughput lost", c.MaxDegradation))
	}
	thresholds, _ := report.ParseThresholds(c.Thresholds) // which were checked
	for _, t := range thresholds {
		list = append(list, t.String())
	}
	if len(list) == 0 {
		return nil
	}
	return [][2]string{{"objectives", strings.Join(list, ", ")}}
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
	rows, err := w.app.outline("sweep", &step, run.Steps{Load: true, Check: !step.NoCheck})
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
			*value = "as the steps say, " + step.pace()
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
		rows, err := c.app.outline("run", &side, run.Steps{Load: true, Check: !side.NoCheck})
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

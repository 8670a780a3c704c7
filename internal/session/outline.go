package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/db"
	"stroppy/internal/exit"
	"stroppy/internal/isolation"
	"stroppy/internal/nemesis"
	"stroppy/internal/registry"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/workload"
)

// These constants bound the number of faults in an outline.
const (
	shownFaults = 20 // all together
	openFaults  = 3  // of each line of a script, if the length of the run is not known
)

// outline holds the rows of a plan, each a name and a value.
type outline [][2]string

func (o *outline) say(name, format string, args ...any) {
	*o = append(*o, [2]string{name, fmt.Sprintf(format, args...)})
}

// Outline describes a run as names and values for a dry run. It returns the error that the run would return.
func (a *App) Outline(command string, config *Config) (rows [][2]string, err error) {
	if config.JSON {
		return nil, exit.Usagef("a dry run has no result.json: leave --json out")
	}
	if _, err := wantedServers(config); err != nil {
		return nil, err
	}
	if err := cmp.Or(config.LoadedElsewhere(), config.OneProcess()); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	if _, err := config.ConnectFrom(context.Background()); err != nil {
		return nil, err
	}
	if config.Out != "" {
		if err := run.Vacant(config.Out); err != nil {
			return nil, err
		}
	}
	if err := a.DrawSeed(config); err != nil {
		return nil, err
	}
	where, scheme, err := config.WhereRun(a.Environ)
	if err != nil {
		return nil, err
	}
	claim, err := config.rehearse()
	if err != nil {
		return nil, err
	}
	spec := config.WorkloadSpec()
	o := outline{{"workload", spec.Name + ": " + spec.About}, {"database", where}}
	if note := config.unlimited(); note != "" {
		o.say("resources", "%s", note)
	}
	if by := config.scaled(); by != "" {
		o.say("scaled down", "%s", by)
	}
	if config.Seed != 0 {
		o.say("seed", "%d", config.Seed)
	} else {
		o.say("seed", "the seed of the loaded data")
	}
	o.say("clients", "%d, %s", config.Clients, config.Pace())
	switch {
	case config.WorkersListen != "":
		o.say("workers", "%d that join at %s, of which each has a part of the clients", config.Workers, config.WorkersListen)
	case config.Workers > 0:
		o.say("workers", "%d processes that the clients are spread over", config.Workers)
	}
	config.phases(&o)
	if !config.NoCheck {
		o.say("checks", "%s", strings.Join(config.checkNames(), ", "))
		o.say("claim", "%s", config.claimed(claim))
	}
	if list := config.objectives(); len(list) > 0 {
		o.say("objectives", "%s", strings.Join(list, ", "))
	}
	o.say("directory", "%s", cmp.Or(config.Out, filepath.Join(RunsRoot, "TIME-"+config.Workload+"-"+scheme)))
	o.say("command", "%s", config.Command(command))
	return o, nil
}

// WhereRun describes the database of the run, and returns its name in the name of the run's directory. It returns the
// errors that a start of the cluster would return.
func (c *Config) WhereRun(environ []string) (where, scheme string, err error) {
	if c.Cluster != "" {
		kind, o, err := c.clusterOptions()
		if err != nil {
			return "", "", err
		}
		if kind.OfOwner() {
			planned, err := c.planOwned(environ)
			if err != nil {
				return "", "", err
			}
			scheme, _, _ := strings.Cut(planned.Cluster.URL(), ":")
			return "the servers of " + c.Cluster + ", not connected to", scheme, c.possible(planned)
		}
		how := "started on this machine"
		if kind.Elsewhere() {
			how = "made in Kubernetes"
			if o.Params.Has("selector") {
				how = "there already in Kubernetes"
			}
		}
		o.DryRun = true
		_, err = registry.StartCluster(context.Background(), kind, o, environ)
		planned, lacks := new(cluster.PlannedError), new(host.MissingError)
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
			return "", "", exit.With(exit.Usage, possible)
		}
		return fmt.Sprintf("a cluster %s of %s, %s", kind.Name, report.Counted(uint64(o.Nodes), "node"), how), kind.Name, nil
	}
	url := c.RunDatabase("")
	kind, err := registry.Find(url)
	if err != nil {
		return "", "", err
	}
	scheme, _, _ = strings.Cut(url, ":")
	if c.DB == "" {
		return "embedded, a new file in the run's directory", scheme, nil
	}
	if c.hurts() {
		planned, err := c.planOwned(environ)
		if err == nil {
			err = c.possible(planned)
		}
		if err != nil {
			return "", "", err
		}
	}
	about := "not connected to, so that what it alone could refuse is not known"
	if kind.Embedded {
		about = "in this process"
	}
	return scenario.Redact(url) + ", " + about, scheme, nil
}

// DatabaseKind returns the kind of the run's database, or of the nodes of its cluster.
func (c *Config) DatabaseKind() (registry.Database, error) {
	if c.Cluster == "" {
		return registry.Find(c.RunDatabase(""))
	}
	kind, _, err := registry.ParseCluster(c.Cluster)
	if err == nil && kind.OfOwner() {
		planned, err := c.planOwned(nil)
		if err != nil {
			return registry.Database{}, err
		}
		return registry.Find(planned.Cluster.URL())
	}
	if err != nil {
		return registry.Database{}, err
	}
	list := registry.Databases()
	return list[slices.IndexFunc(list, func(d registry.Database) bool {
		return slices.ContainsFunc(d.Clusters, func(k registry.ClusterKind) bool { return k.Name == kind.Name })
	})], nil
}

// foresee returns the error with which every server of the kind would refuse the run.
func (c *Config) foresee() error {
	kind, err := c.DatabaseKind()
	if err != nil || len(kind.Isolations.Levels) == 0 {
		return err
	}
	_, err = kind.Isolations.Claim(c.Isolation)
	if err == nil && kind.KeyValue != nil {
		_, err = c.bind(kind.KeyValue)
	}
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	return nil
}

// outset refuses what no server of the kind could do. It returns the context for connections from the configured address.
func (c *Config) outset(ctx context.Context) (context.Context, error) {
	if err := c.foresee(); err != nil {
		return ctx, err
	}
	return c.ConnectFrom(ctx)
}

// rehearse returns the error with which the database would refuse the run, and the claim of an embedded database. For
// the latter it opens an empty database and removes it again.
func (c *Config) rehearse() (claim db.Claim, err error) {
	kind, err := c.DatabaseKind()
	if err != nil {
		return claim, err
	}
	if !kind.Embedded {
		return claim, c.foresee()
	}
	url := c.DB
	if kind.File {
		if url != "" {
			if err := kind.Place(url); err != nil {
				return claim, exit.With(exit.Usage, err)
			}
		}
		dir, err := os.MkdirTemp("", "stroppy-dry-run-")
		if err != nil {
			return claim, fmt.Errorf("make an empty database for the dry run: %w", err)
		}
		defer os.RemoveAll(dir)
		_, params, found := strings.Cut(url, "?")
		if url = registry.OwnScheme + ":" + filepath.Join(dir, "empty.db"); found {
			url += "?" + params
		}
	}
	database, err := registry.Open(context.Background(), url, c.Isolation)
	if err != nil {
		return claim, err
	}
	defer database.Close()
	w, err := c.bind(database)
	if err != nil {
		return claim, exit.With(exit.Usage, err)
	}
	return w.Claim(), nil
}

// Pace describes the pace of the clients.
func (c *Config) Pace() string {
	switch {
	case !c.Rate.Closed():
		return c.Rate.String() + " transactions a second, " + cmp.Or(c.Arrival, "uniform")
	case c.Think > 0:
		return fmt.Sprintf("closed loop, %v between two transactions", c.Think)
	}
	return "closed loop: each sends when the last answer is there"
}

// phases describes the phases of a run, with times since the start of the load phase. The faults have the times that
// the seed determines.
func (c *Config) phases(o *outline) {
	load, check := "until all is loaded", "the end state is downloaded and checked with what was recorded"
	if c.NoLoad {
		load = "left out: what is loaded is used"
	}
	if c.NoCheck {
		check = "left out"
	}
	o.say("load data", "%s", load)
	if c.Warmup > 0 {
		o.say("warm-up", "0s to %v", c.Warmup)
	}
	before, most := c.Duration, shownFaults+1
	if c.Duration > 0 {
		o.say("measurement", "%v to %v", c.Warmup, c.Duration)
	} else {
		o.say("measurement", "from %v until %d transactions are done", c.Warmup, c.Count)
		before, most = time.Duration(1<<63-1), openFaults
	}
	o.say("check", "%s", check)
	name, list := "faults", c.Script.Due(c.Seed, before, most)
	for _, d := range list[:min(len(list), shownFaults)] {
		fault, _ := scenario.RedactScript(d.Fault)
		text := fmt.Sprintf("at %v: %s", d.At.Round(time.Millisecond), fault)
		if d.Heal > 0 {
			text += fmt.Sprintf(", healed at %v", d.Heal.Round(time.Millisecond))
		}
		o.say(name, "%s", text)
		name = ""
	}
	switch {
	case len(list) > shownFaults:
		o.say("", "and more until the end")
	case len(list) > 0 && c.Duration == 0:
		o.say("", "and so on until the transactions are done")
	}
}

func (c *Config) checkNames() (names []string) {
	list := c.WorkloadSpec().Checks
	if c.Cluster != "" || c.Nemesis != "" {
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

// claimed describes the isolation level of the verdict.
func (c *Config) claimed(claim db.Claim) string {
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

// objectives describes the limits on the measurements of the run.
func (c *Config) objectives() (list []string) {
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
	return list
}

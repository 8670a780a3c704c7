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
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stroppy/internal/db"
	"stroppy/internal/exit"
	"stroppy/internal/isolation"
	"stroppy/internal/live"
	"stroppy/internal/matrix"
	"stroppy/internal/registry"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/schedule"
	"stroppy/internal/session"
	"stroppy/internal/workload"
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
	always := keys("db", "cluster", "nemesis", "clients", "duration", "seed", "out", "json")
	read := a.settings(c, func(k scenario.Key) bool { return always(k) })
	levels := c.Flags().StringArray("level", nil, "try this `LEVEL` alone, as the database names it; may be repeated")
	only := c.Flags().Bool("schedules-only", false, "no load: under a minute, and nothing is kept unless --out says where")
	followers := c.Flags().Bool("followers", false, "with --cluster: carry out the transactions of schedules that only read on the nodes that do not lead, each by itself; needs --schedules-only")
	format := c.Flags().String("format", "text", "print the matrix as `FORMAT`: text or markdown")
	c.RunE = func(*cobra.Command, []string) error {
		config, err := read(nil)
		switch {
		case err != nil:
			return err
		case *format != "text" && *format != "markdown":
			return exit.Usagef("--format is %q: it must be text or markdown", *format)
		case *followers && (config.Cluster == "" || !*only):
			return exit.Usagef("--followers is of schedules on the nodes of a cluster: give --cluster and --schedules-only too")
		case config.JSON && c.Flags().Changed("format"):
			return exit.Usagef("--json and --format are two forms of the same: leave one out")
		}
		for _, name := range []string{"nemesis", "clients", "duration", "seed"} {
			if *only && c.Flags().Changed(name) {
				return exit.Usagef("--%s is of the load, and --schedules-only leaves that out", name)
			}
		}
		i := &isolating{app: a, config: &config, levels: *levels, markdown: *format == "markdown", only: *only, followers: *followers}
		return i.run()
	}
	return c
}

// isolating is one call of the command.
type isolating struct {
	app      *app
	config   *session.Config
	levels   []string // asked for; none: all
	markdown bool
	only     bool // schedules
	// followers says that transactions that only read are on nodes that do not lead.
	followers bool
	dir       string // of what is kept; empty: nothing is
	// ranges and sql say how the database's transactions read by predicate, and steps that
	// clients carry them out step by step.
	ranges, sql, steps bool
}

// triedLevel is one level, and what its schedules came to.
type triedLevel struct {
	claim     db.Claim
	isDefault bool
	outcomes  []schedule.Outcome
}

func (i *isolating) run() error {
	if err := i.place(); err != nil {
		return err
	}
	s := i.app.Begin(live.NewFeed())
	defer s.Stop()
	m, err := i.matrix(s)
	s.Stop()
	if i.dir != "" {
		defer os.Remove(i.dir) // one that holds something stays
	}
	if err != nil {
		return s.Cause(err, session.NothingLeft)
	}
	if err := i.keep(m); err != nil {
		return err
	}
	if err := i.print(m); err != nil {
		return err
	}
	switch m.Verdict {
	case "valid":
		return nil
	case "invalid":
		return exit.With(exit.Invalid, fmt.Errorf("invalid: %s", m.Reason))
	}
	return exit.With(exit.Unknown, fmt.Errorf("unknown: %s", m.Reason))
}

// place makes the directory of what is kept, and draws the seed of the load.
func (i *isolating) place() error {
	i.dir = i.config.Out
	if i.dir == "" && !i.only {
		i.dir = run.Unused(filepath.Join(session.RunsRoot, time.Now().Format("20060102-150405")+"-isolation"))
	}
	if i.dir == "" {
		return nil
	}
	if err := run.Vacant(i.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(i.dir, 0o777); err != nil {
		return run.Unusable(i.dir, err)
	}
	return i.app.DrawSeed(i.config, !i.only)
}

// keep writes the matrix into its directory, in all its forms.
func (i *isolating) keep(m *matrix.Matrix) error {
	if i.dir == "" {
		return nil
	}
	d := run.Directory{Path: i.dir}
	for name, write := range map[string]func(io.Writer) error{
		"isolation.json": m.JSON, "isolation.md": m.Markdown, "isolation.txt": m.Text, matrix.PageName: m.Page,
	} {
		if err := d.WriteFrom(name, write); err != nil {
			return err
		}
	}
	return nil
}

func (i *isolating) print(m *matrix.Matrix) error {
	switch {
	case i.config.JSON:
		return m.JSON(i.app.Stdout)
	case i.markdown:
		return m.Markdown(i.app.Stdout)
	}
	if err := m.Text(i.app.Stdout); err != nil || i.dir == "" {
		return err
	}
	_, err := fmt.Fprintf(i.app.Stdout, "directory         %s\npage              %s\n", i.dir, filepath.Join(i.dir, matrix.PageName))
	return err
}

// matrix makes the matrix: first all schedules, and then the runs under load, each of
// which starts its own cluster where one was asked for.
func (i *isolating) matrix(s *session.Session) (*matrix.Matrix, error) {
	m := &matrix.Matrix{Stroppy: registry.Version(), Started: time.Now().UTC().Format(time.RFC3339)}
	levels, err := i.schedules(s, m)
	if err != nil {
		return nil, err
	}
	for n, level := range levels {
		var loads []matrix.Load
		for _, spec := range registry.Workloads() {
			if i.only || spec.Isolation == nil || spec.Isolation.StepsOnly && !i.steps {
				continue
			}
			l, err := i.load(s, &spec, &level.claim, n)
			if err != nil {
				return nil, err
			}
			loads = append(loads, l)
		}
		m.Levels = append(m.Levels, matrix.NewLevel(level.claim.Isolation, level.isDefault, level.claim.Level, level.claim.Source, level.outcomes, loads))
	}
	m.Command = i.command()
	m.Judge()
	return m, nil
}

// schedules runs the schedules at all levels, on the database that is named or a cluster
// that is started for them, or on an embedded one of their own.
func (i *isolating) schedules(s *session.Session, m *matrix.Matrix) (levels []triedLevel, err error) {
	own := *i.config // whose database becomes that of the cluster
	cluster, err := i.app.OpenCluster(s, &own)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.Stop(nil)) }()
	database, done, err := openEmbedded(s.Context, &own, i.levels...)
	if err != nil {
		return nil, err
	}
	defer done()
	info, err := database.Info(s.Context)
	if err != nil {
		return nil, err
	}
	m.Database, m.Version = info.Name, info.Version
	_, i.sql = database.(db.SQL)
	_, i.ranges = database.(db.Ranger)
	if _, ok := database.(db.DocumentRanger); ok {
		i.ranges = true
	}
	claims, err := i.claims(database)
	if err != nil {
		return nil, err
	}
	usual, err := database.Claim("")
	if err != nil {
		return nil, err
	}
	table, refused := schedule.NewTable(database)
	if i.steps = refused == nil; !i.steps {
		m.NoSchedules = refused.Error()
	} else {
		defer func() { err = errors.Join(err, table.Remove(context.WithoutCancel(s.Context))) }()
	}
	options, err := i.options(s.Context, cluster, table)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, t := range options.Replicas {
			err = errors.Join(err, t.Remove(context.WithoutCancel(s.Context)))
		}
	}()
	for _, claim := range claims {
		level := triedLevel{claim: claim, isDefault: claim.Isolation == usual.Isolation}
		if refused := i.onFollowers(s.Context, table, options, &level.claim); refused != nil {
			s.Note("%s is left out: %v", claim.Isolation, refused)
			continue
		}
		if table != nil {
			s.Note("schedules at %s", claim.Isolation)
			if level.outcomes, err = schedule.RunAll(s.Context, table, claim.Isolation, options); err != nil {
				return nil, err
			}
		}
		levels = append(levels, level)
	}
	return levels, nil
}

// options are how schedules are run: with followers, on each of them by itself.
func (i *isolating) options(ctx context.Context, c *session.Cluster, table schedule.Table) (o schedule.Options, err error) {
	if !i.followers || table == nil {
		return o, nil
	}
	followers, err := c.Followers(ctx)
	if err != nil {
		return o, err
	}
	for _, url := range followers {
		database, err := registry.Open(ctx, url)
		if err != nil {
			return o, err
		}
		replica, err := table.Replica(database)
		if err != nil {
			return o, err
		}
		o.Replicas = append(o.Replicas, &closing{replica, database})
	}
	if len(o.Replicas) == 0 {
		return o, exit.Usagef("--followers needs nodes that do not lead and that answer by themselves, and this cluster has none")
	}
	return o, nil
}

// onFollowers makes of a claim what it is where followers answer: without real time, of
// which they promise nothing. An error says that one has no such level.
func (i *isolating) onFollowers(ctx context.Context, table schedule.Table, o schedule.Options, c *db.Claim) error {
	if len(o.Replicas) == 0 {
		return nil
	}
	switch c.Level {
	case isolation.StrictSerializable:
		c.Level = isolation.Serializable
	case isolation.StrongSnapshotIsolation:
		c.Level = isolation.SnapshotIsolation
	}
	if err := table.Fill(ctx, nil, false); err != nil {
		return err
	}
	for _, replica := range o.Replicas {
		if err := schedule.Carries(ctx, replica, c.Isolation); err != nil {
			return err
		}
	}
	return nil
}

// closing closes the database of a table with it.
type closing struct {
	schedule.Table
	database db.Database
}

func (c *closing) Remove(ctx context.Context) error {
	return errors.Join(c.Table.Remove(ctx), c.database.Close())
}

// load runs a workload at one level. A run that could not be carried out is one that
// says nothing.
func (i *isolating) load(s *session.Session, spec *workload.Spec, claim *db.Claim, number int) (matrix.Load, error) {
	level := claim.Isolation
	add := func(list []scenario.Setting, key, value string) []scenario.Setting {
		return append(list, scenario.Setting{Key: key, Value: value, Source: "the load of the matrix"})
	}
	settings := add(nil, "workload", spec.Name)
	settings = add(settings, "isolation", level)
	settings = add(settings, "seed", strconv.FormatUint(i.config.Seed, 10))
	settings = add(settings, "warmup", "0s")
	settings = add(settings, "out", filepath.Join(i.dir, fmt.Sprintf("%02d-%s-%s", number+1, strings.ReplaceAll(level, " ", "-"), spec.Name)))
	own, finds := spec.Isolation.Settings, spec.Isolation.Finds
	if i.steps {
		own = slices.Concat(own, spec.Isolation.Steps)
	}
	var predicates [][2]string
	if i.sql || i.ranges {
		predicates = spec.Isolation.Predicates
	}
	if i.sql {
		predicates = slices.Concat(predicates, spec.Isolation.SQL)
	}
	if len(predicates) == 0 {
		finds = matrix.WithoutPredicates(finds)
	}
	for _, one := range slices.Concat(own, predicates) {
		settings = add(settings, one[0], one[1])
	}
	for key, value := range map[string]string{"db": i.config.DB, "cluster": i.config.Cluster, "nemesis": i.config.Nemesis} {
		if value != "" {
			settings = add(settings, key, value)
		}
	}
	if i.config.Named["clients"] {
		settings = add(settings, "clients", strconv.Itoa(i.config.Clients))
	}
	switch {
	case i.config.Named["duration"]:
		settings = add(settings, "duration", i.config.Duration.String())
	case i.config.Nemesis == "": // else it is as long as the faults take
		settings = add(settings, "duration", loadDuration.String())
	}
	config, err := i.app.Configure(settings, "")
	if err != nil {
		return matrix.Load{}, err
	}
	s.Note("load at %s: %s for %v", level, spec.Name, config.Duration)
	result, dir, err := i.app.Next(s, &config)
	switch {
	case context.Cause(s.Context) != nil:
		return matrix.Load{}, err
	case result == nil:
		s.Note("%v", err)
		return matrix.FailedLoad(config.Command("run"), err), nil
	}
	kept := isolation.Unknown
	if spec.Isolation.Decides {
		kept = claim.Level
	}
	return matrix.NewLoad(result, dir, finds, kept), nil
}

// loadDuration is how long one run under load takes where nobody says.
const loadDuration = 5 * time.Second

// openEmbedded opens the database that is named, or else an embedded one, for isolations.
// done closes it, and takes away what it made for the call alone.
func openEmbedded(ctx context.Context, c *session.Config, isolations ...string) (database db.Database, done func(), err error) {
	url, remove := cmp.Or(c.Live, c.DB), func() {}
	if url == "" {
		dir, err := os.MkdirTemp("", "stroppy-isolation-")
		if err != nil {
			return nil, nil, fmt.Errorf("make a folder for the embedded database: %w", err)
		}
		remove = func() { _ = os.RemoveAll(dir) }
		url = registry.OwnScheme + ":" + filepath.Join(dir, "isolation.db")
	}
	database, err = registry.Open(ctx, url, isolations...)
	if err == nil && registry.IsVolatile(database) {
		err = errors.Join(exit.Usagef("%s keeps nothing, so that there is nothing to isolate: name another database", scenario.Redact(url)), database.Close())
	}
	if err != nil {
		remove()
		return nil, nil, err
	}
	return database, func() {
		_ = database.Close()
		remove()
	}, nil
}

// claims are those of the levels to try.
func (i *isolating) claims(database db.Database) (claims []db.Claim, err error) {
	asked := i.levels
	if listed, ok := database.(db.Isolated); ok && len(asked) == 0 {
		asked = listed.IsolationNames()
	}
	if len(asked) == 0 {
		asked = []string{""}
	}
	for _, name := range asked {
		claim, err := database.Claim(name)
		switch {
		case err != nil && len(i.levels) == 0: // this server does not have it, or not as itself
			continue
		case err != nil:
			return nil, exit.With(exit.Usage, err)
		case !slices.ContainsFunc(claims, func(c db.Claim) bool { return c.Isolation == claim.Isolation }):
			claims = append(claims, claim)
		}
	}
	return claims, nil
}

// command is what makes the matrix again.
func (i *isolating) command() string {
	words := []string{"stroppy isolation"}
	switch {
	case i.config.Cluster != "":
		words = append(words, "--cluster", scenario.Quote(i.config.Cluster))
	case i.config.DB != "":
		words = append(words, "--db", i.config.Address())
	}
	for _, name := range i.levels {
		words = append(words, "--level", scenario.Quote(name))
	}
	if i.only {
		words = append(words, "--schedules-only")
		if i.followers {
			words = append(words, "--followers")
		}
		return strings.Join(words, " ")
	}
	for _, fault := range i.config.Script {
		shown, _ := scenario.RedactScript(fault.String())
		words = append(words, "--nemesis", scenario.Quote(shown))
	}
	if i.config.Named["clients"] {
		words = append(words, "--clients", strconv.Itoa(i.config.Clients))
	}
	if i.config.Named["duration"] {
		words = append(words, "--duration", i.config.Duration.String())
	}
	words = append(words, "--seed", strconv.FormatUint(i.config.Seed, 10))
	return strings.Join(words, " ")
}

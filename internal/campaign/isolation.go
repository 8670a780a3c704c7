package campaign

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

	"stroppy/internal/db"
	"stroppy/internal/exit"
	"stroppy/internal/isolation"
	"stroppy/internal/matrix"
	"stroppy/internal/registry"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/schedule"
	"stroppy/internal/session"
	"stroppy/internal/sweep"
	"stroppy/internal/workload"
)

// Isolation is the campaign that tests the isolation levels of a database: schedules, and then
// runs under load at each level.
type Isolation struct {
	Campaign
	Config        *session.Config
	Levels        []string // asked for; none: all
	SchedulesOnly bool
	Followers     bool // transactions that only read are on nodes that do not lead

	Matrix *matrix.Matrix // of a campaign that is finished

	// ranges and sql are set if transactions can read by predicate, and steps if clients can carry
	// them out step by step.
	ranges, sql, steps bool

	tried []triedLevel
	loads []levelLoad
	at    int // the next of loads
}

// NewIsolation returns the campaign for a configuration. If only schedules are carried out, nothing
// is kept unless the configuration names a directory.
func NewIsolation(app *session.App, config *session.Config, levels []string, schedulesOnly, followers bool) (*Isolation, error) {
	i := &Isolation{Config: config, Levels: levels, SchedulesOnly: schedulesOnly, Followers: followers}
	name := "isolation"
	if schedulesOnly {
		name = ""
	}
	i.Campaign = newCampaign(app, sweep.Levels, config.Out, name)
	shared := *config
	shared.Seed, shared.Out, shared.JSON = 0, "", false
	i.list, i.Book.Seed, i.Book.Names, i.Book.Scenario = i, config.Seed, levels, string(shared.YAML())
	return i, i.usable()
}

// Plan returns what the campaign would do.
func (i *Isolation) Plan() ([]Outline, error) {
	if err := i.drawSeed(); err != nil {
		return nil, err
	}
	where, _, err := i.Config.WhereRun(i.app.Environ)
	if err != nil {
		return nil, err
	}
	levels := strings.Join(i.Levels, ", ")
	if levels == "" {
		levels = "all that the database has"
	}
	rows := [][2]string{{"database", where}, {"levels", levels}, {"schedules", "at each level"}}
	for _, spec := range registry.Workloads() {
		if i.SchedulesOnly || spec.Isolation == nil {
			continue
		}
		config, err := i.loadConfig(&levelLoad{spec: spec}, "")
		if err != nil {
			return nil, err
		}
		rows = append(rows, [2]string{"load", fmt.Sprintf("%s for %v, at each level", spec.Name, config.Duration)})
	}
	if dir := i.shownDir(); dir != "" {
		rows = append(rows, [2]string{"directory", dir})
	}
	rows = append(rows, [2]string{"command", i.command()})
	return []Outline{{"Plan of `stroppy isolation`; nothing was started.", rows}}, nil
}

// levelLoad is a workload under load at one level.
type levelLoad struct {
	level int // of tried
	spec  workload.Spec
	finds map[string][]string // of matrix.NewLoad
}

// triedLevel is one level, and what its schedules came to.
type triedLevel struct {
	claim     db.Claim
	isDefault bool
	outcomes  []schedule.Outcome
	loads     []matrix.Load
}

// keep saves the book with the command that repeats it.
func (i *Isolation) keep() error {
	i.Book.Command = i.command()
	return i.Campaign.keep()
}

// save writes the matrix into its directory, in all its forms.
func (i *Isolation) save(m *matrix.Matrix) error {
	if i.Dir == "" {
		return nil
	}
	d := run.Directory{Path: i.Dir}
	for name, write := range map[string]func(io.Writer) error{
		"isolation.json": m.JSON, "isolation.md": m.Markdown, "isolation.txt": m.Text, matrix.PageName: m.Page,
	} {
		if err := d.WriteFrom(name, write); err != nil {
			return err
		}
	}
	return nil
}

// begin carries out the schedules, and lists the loads.
func (i *Isolation) begin(s *session.Session) error {
	i.Matrix = &matrix.Matrix{Stroppy: registry.Version(), Started: i.Book.StartedAt, Command: i.command()}
	levels, err := i.schedules(s, i.Matrix)
	if err != nil {
		i.Matrix = nil
		return s.Cause(err, session.NothingLeft)
	}
	i.tried = levels
	for n := range levels {
		for _, spec := range registry.Workloads() {
			if !i.SchedulesOnly && spec.Isolation != nil && (i.steps || !spec.Isolation.StepsOnly) {
				i.loads = append(i.loads, levelLoad{level: n, spec: spec})
			}
		}
	}
	return nil
}

// finish makes the matrix, and keeps it in all its forms.
func (i *Isolation) finish() error {
	for _, l := range i.tried {
		i.Matrix.Levels = append(i.Matrix.Levels, matrix.NewLevel(l.claim.Isolation, l.isDefault, l.claim.Level, l.claim.Source, l.outcomes, l.loads))
	}
	i.Matrix.Judge()
	return i.save(i.Matrix)
}

// verdict implements list: the matrix has a verdict of its own.
func (i *Isolation) verdict(err error) error {
	if err != nil {
		return err
	}
	return exit.Judged(i.Matrix.Verdict, i.Matrix.Reason)
}

// schedules runs the schedules at all levels. The database is the one that is named, a cluster
// that is started for them, or an embedded one.
func (i *Isolation) schedules(s *session.Session, m *matrix.Matrix) (levels []triedLevel, err error) {
	own := *i.Config // its database becomes the cluster
	cluster, err := i.app.OpenCluster(s, &own)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.Stop(nil)) }()
	database, done, err := openEmbedded(s.Context, &own, i.Levels...)
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
	if _, ok := database.(db.RecordRanger); ok {
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
func (i *Isolation) options(ctx context.Context, c *session.Cluster, table schedule.Table) (o schedule.Options, err error) {
	if !i.Followers || table == nil {
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

// onFollowers weakens a claim to what followers promise, which excludes real time. It returns an
// error if a follower does not have the level.
func (i *Isolation) onFollowers(ctx context.Context, table schedule.Table, o schedule.Options, c *db.Claim) error {
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

// next skips the loads that were run. One that could not be run is tried again.
func (i *Isolation) next() (*planned, error) {
	for i.at < len(i.loads) {
		at := i.at
		l := &i.loads[at]
		level := i.tried[l.level].claim.Isolation
		config, err := i.loadConfig(l, level)
		if err != nil {
			return nil, err
		}
		folder := fmt.Sprintf("%02d-%s-%s", l.level+1, strings.ReplaceAll(level, " ", "-"), l.spec.Name)
		i.at++
		if !i.Book.Done(folder) {
			return &planned{
				title:  fmt.Sprintf("load at %s: %s for %v", level, l.spec.Name, config.Duration),
				folder: folder, config: config, index: at,
			}, nil
		}
		dir := filepath.Join(i.Dir, i.Book.Point(folder).Dir)
		r, err := run.ReadResult(dir)
		if err != nil {
			return nil, err
		}
		i.loaded(l, r, dir)
	}
	return nil, nil
}

// loadConfig returns the configuration of a load at a level.
func (i *Isolation) loadConfig(l *levelLoad, level string) (session.Config, error) {
	spec := &l.spec
	l.finds = spec.Isolation.Finds
	own := slices.Clone(spec.Isolation.Settings)
	if i.steps {
		own = append(own, spec.Isolation.Steps...)
	}
	fixed := len(own)
	if i.sql || i.ranges {
		own = append(own, spec.Isolation.Predicates...)
	}
	if i.sql {
		own = append(own, spec.Isolation.SQL...)
	}
	if len(own) == fixed {
		l.finds = matrix.WithoutPredicates(l.finds)
	}
	for _, one := range [][2]string{{"db", i.Config.DB}, {"cluster", i.Config.Cluster}, {"nemesis", i.Config.Nemesis}, {"probe", i.Config.Probe}} {
		if one[1] != "" {
			own = append(own, one)
		}
	}
	if i.Config.Named["clients"] {
		own = append(own, [2]string{"clients", strconv.Itoa(i.Config.Clients)})
	}
	switch {
	case i.Config.Named["duration"]:
		own = append(own, [2]string{"duration", i.Config.Duration.String()})
	case i.Config.Nemesis == "": // else it is as long as the faults take
		own = append(own, [2]string{"duration", loadDuration.String()})
	}
	seed := strconv.FormatUint(i.Book.Seed, 10)
	own = append([][2]string{{"workload", spec.Name}, {"isolation", level}, {"seed", seed}, {"warmup", "0s"}}, own...)
	var settings []scenario.Setting
	for _, one := range own {
		settings = append(settings, scenario.Setting{Key: one[0], Value: one[1], Source: "the load of the matrix"})
	}
	config, err := i.app.Configure(settings, "")
	config.NoLoad = false // STROPPY_NO_LOAD has no effect here
	return config, err
}

// took implements list. A run that could not be carried out has no result for its level.
func (i *Isolation) took(s *session.Session, p *planned, r *report.Result, dir string, err error) error {
	l := &i.loads[p.index]
	if r == nil {
		s.Note("%v", err)
		level := &i.tried[l.level]
		level.loads = append(level.loads, matrix.FailedLoad(p.config.Command("run"), err))
		return nil
	}
	i.loaded(l, r, dir)
	point := sweep.NewPoint(0, filepath.Base(dir), r)
	point.Scenario = p.folder
	i.Book.Put(point)
	return nil
}

// loaded adds the result of a load to its level.
func (i *Isolation) loaded(l *levelLoad, r *report.Result, dir string) {
	level, kept := &i.tried[l.level], isolation.Unknown
	if l.spec.Isolation.Decides {
		kept = level.claim.Level
	}
	level.loads = append(level.loads, matrix.NewLoad(r, dir, l.finds, kept))
}

// loadDuration is the duration of one run under load if none is given.
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
		err = errors.Join(exit.Usagef("%s keeps nothing, so that there is nothing to isolate: name another database",
			scenario.Redact(url)), database.Close())
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

// claims returns the claims of the levels to try.
func (i *Isolation) claims(database db.Database) (claims []db.Claim, err error) {
	asked := i.Levels
	if listed, ok := database.(db.Isolated); ok && len(asked) == 0 {
		asked = listed.IsolationNames()
	}
	if len(asked) == 0 {
		asked = []string{""}
	}
	for _, name := range asked {
		claim, err := database.Claim(name)
		switch {
		case err != nil && len(i.Levels) == 0: // this server does not have it, or not as itself
			continue
		case err != nil:
			return nil, exit.With(exit.Usage, err)
		case !slices.ContainsFunc(claims, func(c db.Claim) bool { return c.Isolation == claim.Isolation }):
			claims = append(claims, claim)
		}
	}
	return claims, nil
}

// command returns the command that makes the matrix again.
func (i *Isolation) command() string {
	shared := *i.Config
	if shared.Seed = i.Book.Seed; i.SchedulesOnly {
		shared.Seed = 0
	}
	command := shared.Command("isolation")
	for _, name := range i.Levels {
		command += " --level " + scenario.Quote(name)
	}
	if i.SchedulesOnly {
		command += " --schedules-only"
	}
	if i.Followers {
		command += " --followers"
	}
	return command
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stroppy/internal/db"
	"stroppy/internal/live"
	"stroppy/internal/matrix"
	"stroppy/internal/scenario"
	"stroppy/internal/schedule"
)

func (a *app) isolationCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "isolation", Short: "Show what each isolation level of a database really gives",
		Long: "Every level that the database offers is tried: by scripted schedules, transactions step by step that\n" +
			"show one anomaly each unless the database prevents it. The table says which anomalies were\n" +
			"prevented, and how, or what was seen; the level of the literature that this amounts to; and what the\n" +
			"database claims. The exit code is 1 if an anomaly was seen that a claim forbids.",
		Args: noArguments,
	}
	always := keys("db", "cluster", "json")
	read := a.settings(c, func(k scenario.Key) bool { return always(k) })
	levels := c.Flags().StringArray("level", nil, "try this `LEVEL` alone, as the database names it; may be repeated")
	format := c.Flags().String("format", "text", "print the matrix as `FORMAT`: text or markdown")
	c.RunE = func(*cobra.Command, []string) error {
		config, err := read(nil)
		switch {
		case err != nil:
			return err
		case *format != "text" && *format != "markdown":
			return usagef("--format is %q: it must be text or markdown", *format)
		case config.JSON && c.Flags().Changed("format"):
			return usagef("--json and --format are two forms of the same: leave one out")
		}
		i := &isolating{app: a, config: &config, levels: *levels, markdown: *format == "markdown"}
		return i.run()
	}
	return c
}

// isolating is one call of the command.
type isolating struct {
	app      *app
	config   *config
	levels   []string // asked for; none: all
	markdown bool
}

func (i *isolating) run() error {
	s := i.app.begin(live.NewFeed())
	defer s.stop()
	m, err := i.matrix(s)
	s.stop()
	if err != nil {
		return s.cause(err, nothingLeft)
	}
	if err := i.print(m); err != nil {
		return err
	}
	switch m.Verdict {
	case "valid":
		return nil
	case "invalid":
		return &exitError{exitInvalid, fmt.Errorf("invalid: %s", m.Reason)}
	}
	return &exitError{exitUnknown, fmt.Errorf("unknown: %s", m.Reason)}
}

func (i *isolating) print(m *matrix.Matrix) error {
	switch {
	case i.config.JSON:
		return m.JSON(i.app.stdout)
	case i.markdown:
		return m.Markdown(i.app.stdout)
	}
	return m.Text(i.app.stdout)
}

// matrix makes the matrix, on the database that is named or a cluster that is started for
// it, or on an embedded one of its own.
func (i *isolating) matrix(s *session) (m *matrix.Matrix, err error) {
	started := time.Now()
	cluster, err := i.app.openCluster(s, i.config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.stop()) }()
	database, done, err := i.open(s.ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	info, err := database.Info(s.ctx)
	if err != nil {
		return nil, err
	}
	m = &matrix.Matrix{
		Database: info.Name, Version: info.Version, Stroppy: version(), Started: started.UTC().Format(time.RFC3339), Command: i.command(),
	}
	names, err := i.names(database)
	if err != nil {
		return nil, err
	}
	table, refused := schedule.NewTable(database)
	if refused != nil {
		m.NoSchedules = refused.Error()
	} else {
		defer func() { err = errors.Join(err, table.Remove(context.WithoutCancel(s.ctx))) }()
	}
	for _, name := range names {
		level, err := i.level(s, database, table, name)
		if err != nil {
			return nil, err
		}
		m.Levels = append(m.Levels, level)
	}
	m.Judge()
	return m, nil
}

// level tries one level.
func (i *isolating) level(s *session, database db.Database, table schedule.Table, name string) (matrix.Level, error) {
	claim, err := database.Claim(name)
	if err != nil {
		return matrix.Level{}, err
	}
	usual, err := database.Claim("")
	if err != nil {
		return matrix.Level{}, err
	}
	var outcomes []schedule.Outcome
	if table != nil {
		s.note("schedules at %s", name)
		if outcomes, err = schedule.RunAll(s.ctx, table, name, schedule.Options{}); err != nil {
			return matrix.Level{}, err
		}
	}
	return matrix.NewLevel(name, usual.Isolation == name, claim.Level, claim.Source, outcomes, nil), nil
}

// open opens the database. done closes it, and takes away what it made for the call alone.
func (i *isolating) open(ctx context.Context) (database db.Database, done func(), err error) {
	url, remove := i.config.DB, func() {}
	if i.config.live != "" {
		url = i.config.live
	}
	if url == "" {
		dir, err := os.MkdirTemp("", "stroppy-isolation-")
		if err != nil {
			return nil, nil, fmt.Errorf("make a folder for the embedded database: %w", err)
		}
		remove = func() { _ = os.RemoveAll(dir) }
		url = ownScheme + ":" + filepath.Join(dir, "isolation.db")
	}
	database, err = openDatabase(ctx, url)
	if err == nil && isVolatile(database) {
		err = errors.Join(usagef("%s keeps nothing, so that there is nothing to isolate: name another database", scenario.Redact(url)), database.Close())
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

// names are the levels to try, as the database has them.
func (i *isolating) names(database db.Database) (names []string, err error) {
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
			return nil, &exitError{exitUsage, err}
		case !slices.Contains(names, claim.Isolation):
			names = append(names, claim.Isolation)
		}
	}
	return names, nil
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
	return strings.Join(words, " ")
}

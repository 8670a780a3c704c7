package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/exit"
	"stroppy/internal/registry"
	"stroppy/internal/report"
	"stroppy/internal/resource"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/workload/dataset"
)

// RunsRoot is the default folder for the directories of runs.
const RunsRoot = "stroppy-runs"

// Conduct carries out one run and shows its progress. An error with a result means that a part of the run could not be
// saved.
func (a *App) Conduct(s *Session, command string, config *Config) (result *report.Result, path string, err error) {
	started := time.Now()
	s.Fresh()
	own := *config
	config = &own
	defer func(before context.Context) { s.Context = before }(s.Context)
	if s.Context, err = config.outset(s.Context); err != nil {
		return nil, "", err
	}
	cluster, err := a.OpenCluster(s, config)
	if err != nil {
		return nil, "", s.Cause(err, NothingLeft)
	}
	defer func() { err = errors.Join(err, cluster.Stop(s.Note)) }()
	dir, database, err := a.place(s.Context, config, started)
	if err != nil {
		return nil, "", s.Cause(err, NothingLeft)
	}
	defer dir.Close()
	defer database.Close()
	if err := config.admit(s.Context, database, atMostClients); err != nil {
		return nil, "", s.abandon(err, dir, database, config.ownFiles())
	}
	workload, err := config.bind(database)
	if err != nil {
		return nil, "", exit.With(exit.Usage, s.abandon(err, dir, database, config.ownFiles()))
	}
	a.announceChanges(s, workload, config)
	s.named(dir.Path)
	if config.Seed != 0 {
		s.Note("seed %d", config.Seed)
	}
	if by := config.scaled(); by != "" {
		s.Note("scaled down %s", by)
	}
	if note := config.unlimited(); note != "" {
		s.Note("%s", note)
	}
	if note := run.MemoryWarning(&config.Plan, workload, resource.Free()); note != "" && !config.NoCheck {
		s.Note("%s", note)
	}
	url := config.RunDatabase(dir.Path)
	options := run.Options{
		Spec: config.WorkloadSpec(), Workload: workload, Database: database, Dir: dir,
		Plan: config.Plan, DatabaseURL: scenario.Redact(url), Embedded: registry.Embedded(url),
		Stroppy: registry.Version(), Command: command, Unchecked: "Nothing was checked, as asked.",
		Progress: s, Note: func(text string) { s.Note("%s", text) }, Interrupt: s.interrupt, Scrub: a.Scrub, Where: run.Environment{Build: registry.Build()},
	}
	if command == "drive" {
		options.Unchecked = "The run is recorded and not checked yet: `stroppy check` does that."
	}
	cluster.complete(&options, config, workload)
	workers, err := a.startWorkers(s, config, cluster, url, dir.Path)
	if err != nil {
		return nil, "", s.abandon(err, dir, database, config.ownFiles())
	}
	if workers != nil {
		options.Workers = workers
		defer func() { err = errors.Join(err, workers.Close()) }()
	}
	result, err = run.Run(s.Context, options)
	if err != nil && !errors.As(err, new(*run.UnsavedError)) {
		s.Stop()
		return nil, dir.Path, s.checkable(s.abandon(err, dir, database, config.ownFiles()), config, dir.Path)
	}
	if command == "drive" {
		s.Note("%s", ToPaste("check it", fmt.Sprintf("stroppy check %s --db %s", scenario.Quote(dir.Path), config.Address())))
	}
	return result, dir.Path, err
}

// abandon ends a failed run. It removes the directory and the run's own database if nothing was recorded. It returns
// the error to report.
func (s *Session) abandon(err error, dir *run.Directory, database db.Database, own []string) error {
	_ = database.Close() // nothing is written into the directory any more
	removed, failed := Discard(dir, own...)
	if !removed {
		return errors.Join(s.Cause(err, RecordsLeft), failed)
	}
	s.unnamed(dir.Path)
	var stopped *dataset.StoppedError
	if len(own) > 0 && errors.As(err, &stopped) {
		err = fmt.Errorf("load the run's own database, which is removed again: %w", stopped.Err)
	}
	return errors.Join(s.Cause(err, NothingLeft), failed)
}

// LoadAgain shows the command that continues a stopped load.
func (a *App) LoadAgain(config *Config, command string, err error) {
	if errors.As(err, new(*dataset.StoppedError)) {
		fmt.Fprintln(a.Stderr, ToPaste("repeat", config.Command(command)))
	}
}

// Discard removes a run's directory if nothing was recorded in it. It also removes RunsRoot if that is empty then.
func Discard(dir *run.Directory, worthless ...string) (removed bool, err error) {
	removed, err = dir.Discard(worthless...)
	if filepath.Dir(dir.Path) == RunsRoot {
		_ = os.Remove(RunsRoot) // one that holds something stays
	}
	return removed, err
}

// place makes the run's directory and opens the database. If opening fails, the directory is removed again.
func (a *App) place(ctx context.Context, config *Config, started time.Time) (*run.Directory, db.Database, error) {
	_, unknown := registry.Find(config.RunDatabase(""))
	if err := cmp.Or(unknown, config.LoadedElsewhere(), config.OneProcess()); err != nil {
		return nil, nil, err
	}
	scheme, _, _ := strings.Cut(config.RunDatabase(""), ":")
	dir, err := run.NewDirectory(config.NewPath(started, config.Workload, scheme))
	if err != nil {
		return nil, nil, err
	}
	var database db.Database
	open := func() (err error) {
		database, err = config.openToRun(ctx, dir.Path)
		return err
	}
	if config.Cluster == "" {
		err = open()
	} else { // it was well a moment ago
		err = run.Reach(ctx, open)
	}
	if err != nil {
		_, failed := Discard(dir, config.ownFiles()...)
		return nil, nil, errors.Join(err, failed, dir.Close())
	}
	return dir, database, nil
}

// LoadedElsewhere returns an error if a run without a load phase cannot find any loaded data.
func (c *Config) LoadedElsewhere() error {
	switch {
	case !c.NoLoad:
		return nil
	case len(c.ownFiles()) > 0:
		return exit.Usagef("--no-load uses loaded data, and the default database is new: name a database with --db")
	}
	if kind, err := registry.Find(c.DB); err == nil && kind.InMemory {
		return exit.Usagef("no-load uses loaded data, and %s: is empty when a run begins: leave no-load out, or name another database", kind.Schemes[0])
	}
	return c.MustExist(c.DB)
}

// NewPath returns the path for a new directory: the configured one, or a path with the time, the activity and the
// database.
func (c *Config) NewPath(started time.Time, what, database string) string {
	return cmp.Or(c.Out, run.Unused(run.DefaultPath(RunsRoot, started, what, database)))
}

// DrawSeed draws a seed if the load needs one and none was given. The seed is small enough for the numbers of
// JavaScript.
func (a *App) DrawSeed(config *Config) error {
	if config.Seed != 0 || config.NoLoad {
		return nil
	}
	drawn, err := rand.Int(rand.Reader, big.NewInt(999_999_999))
	if err != nil {
		return fmt.Errorf("draw a seed: %w", err)
	}
	config.Seed = drawn.Uint64() + 1
	return nil
}

// Again ends the error of a page that could not be made.
const Again = ": `stroppy report` makes it again"

// Page makes report.html in a run's directory and prints its path. It prints an error instead of returning it, because
// the page does not affect the verdict.
func (a *App) Page(dir string, asJSON bool) {
	if err := a.PageAgain(dir, asJSON); err != nil {
		fmt.Fprintln(a.Stderr, a.Scrub(err.Error())+Again)
	}
}

// PageAgain is Page for a command that was asked for the page. It returns the error.
func (a *App) PageAgain(dir string, asJSON bool) error {
	path, err := run.WritePage(dir)
	var damaged *report.FileError
	switch {
	case errors.As(err, &damaged):
		return fmt.Errorf("%w: move %s away, and the page is made without it", err, damaged.Name)
	case err != nil:
		return err
	case !asJSON && !a.Quiet:
		fmt.Fprintf(a.Stdout, "  %-18s%s\n", "page", path)
	}
	return nil
}

// Quoted returns the words for a shell, each after a space.
func Quoted(words []string) (text string) {
	for _, word := range words {
		text += " " + scenario.Quote(word)
	}
	return text
}

// Next carries out one of several runs. An error without a result ends the series.
func (a *App) Next(s *Session, config *Config) (result *report.Result, dir string, err error) {
	result, dir, err = a.Conduct(s, "run", config)
	switch {
	case result == nil:
	case result.Drive == nil || result.Drive.Interrupted || context.Cause(s.Context) != nil:
		return nil, dir, errors.Join(ErrInterrupted, err)
	default:
		a.Page(dir, true)
	}
	return result, dir, err
}

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"stroppy/internal/load"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/workers"
)

// workerCommand is the name of the command by which this program is a worker.
const workerCommand = "worker"

// secretVariable has what a worker joins a run by.
const secretVariable = "STROPPY_WORKER_SECRET"

// workersFolder is where a run's workers record, in its directory.
const workersFolder = "workers"

// assigned are the settings of a run as its workers get them.
type assigned struct {
	Settings [][2]string
	Named    []string
}

// runWorkers are the workers of one run.
type runWorkers struct {
	*workers.Coordinator
	generator *workers.Generator
}

// oneProcess refuses workers on a database that is in the memory of one process.
func (c *config) oneProcess() error {
	kind, err := databaseOf(c.runDatabase(""))
	if c.Workers == 0 || err != nil || !kind.inMemory {
		return nil
	}
	return usagef("workers is %d and %s: is in the memory of one process: leave --workers out, or take another database", c.Workers, kind.schemes[0])
}

// startWorkers starts those that the configuration asks for; nil where it asks for none.
func (a *app) startWorkers(ctx context.Context, config *config, url, dir string) (*runWorkers, error) {
	if config.Workers == 0 {
		return nil, nil
	}
	settings, err := json.Marshal(config.assign(url))
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, to start the workers: %w", err)
	}
	c, err := workers.Start(ctx, workers.Options{
		Count: config.Workers, Version: version(), Clock: run.SharedClock, Settings: settings,
		Folder: filepath.Join(dir, workersFolder),
		Command: func(_ int, address, secret, folder string) workers.Command {
			return workers.Command{Path: program, Args: []string{workerCommand, address, folder}, Env: append(a.workerEnvironment(), secretVariable+"="+secret)}
		},
	})
	if err != nil {
		return nil, err
	}
	return &runWorkers{Coordinator: c}, nil
}

// workerEnvironment is this call's without the settings, which the workers are given.
func (a *app) workerEnvironment() []string {
	return slices.DeleteFunc(slices.Clone(a.environ), func(v string) bool { return strings.HasPrefix(v, scenario.Prefix) })
}

// assign are the settings that a worker opens its clients by.
func (c *config) assign(url string) assigned {
	list := assigned{Settings: [][2]string{{"db", url}}}
	for _, one := range c.Settings() {
		if value := one.Get(); value != "" && !one.Local && !slices.Contains(notAssigned, one.Name) {
			list.Settings = append(list.Settings, [2]string{one.Name, value})
		}
	}
	for name := range c.Named {
		list.Named = append(list.Named, name)
	}
	return list
}

// notAssigned are the settings that concern the run alone.
var notAssigned = []string{"db", "cluster", "nemesis", "max-outage", "max-degradation", "threshold", "workers", "expect", "no-load", "no-check"}

// config is what assign has made an assignment of.
func (l *assigned) config() (c config, err error) {
	var given []scenario.Setting
	for _, s := range l.Settings {
		given = append(given, scenario.Setting{Key: s[0], Value: s[1], Source: "the run's " + s[0]})
	}
	merged, _, err := workloads().Merge(given)
	if err != nil {
		return c, err
	}
	named := scenario.Set{}
	for _, name := range l.Named {
		named[name] = true
	}
	c.Plan, err = merged.Plan(named)
	return c, err
}

// Generator, Collect and Shares implement run.Workers, as Connect and PIDs of the Coordinator do.
func (w *runWorkers) Generator(o load.Options) run.Generator {
	w.generator = w.Coordinator.Generator(o)
	return w.generator
}

func (w *runWorkers) Collect() error { return w.generator.Collect() }

func (w *runWorkers) Shares() (list []report.Worker) {
	for _, m := range w.generator.Members() {
		share := report.Worker{Clients: m.Clients}
		if m.CPUSeconds > 0 {
			share.CPUSeconds = &m.CPUSeconds
		}
		if m.MaxRSSBytes > 0 {
			share.MaxRSSBytes = &m.MaxRSSBytes
		}
		if m.Threads > 0 {
			share.Threads = new(float64(m.Threads))
		}
		list = append(list, share)
	}
	return list
}

// workerServant is this program as a worker that a run has started.
func (a *app) workerServant() *cobra.Command {
	return servant(workerCommand, "Be a worker of a run", func(args []string) error {
		secret := a.getenv(secretVariable)
		if len(args) != 2 || secret == "" {
			return usagef("`stroppy %s` is started by a run with --workers", workerCommand)
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		w := workers.Worker{Version: version(), Clock: run.SharedClock, Folder: args[1], Open: openPart}
		return w.Join(ctx, args[0], secret)
	})
}

// openPart opens a worker's part of the clients.
func openPart(ctx context.Context, a *workers.Assignment) (part *workers.Opened, err error) {
	var given assigned
	if err := json.Unmarshal(a.Settings, &given); err != nil {
		return nil, fmt.Errorf("read the settings of the run: %w", err)
	}
	config, err := given.config()
	if err != nil {
		return nil, err
	}
	if ctx, err = config.connectFrom(ctx); err != nil {
		return nil, err
	}
	database, err := openDatabase(ctx, config.DB, config.Isolation)
	if err != nil {
		return nil, err
	}
	part = &workers.Opened{Close: database.Close}
	defer func() {
		if err != nil {
			err = errors.Join(err, part.Close())
		}
	}()
	w, err := config.bind(database, false)
	if err != nil {
		return nil, err
	}
	w.Join(a.LoadID, a.Run)
	if _, err := w.Attach(ctx); err != nil {
		return nil, err
	}
	part.Header = w.Header()
	o := &part.Options
	*o = run.LoadOptions(&config.Plan, part.Header)
	o.First, o.All = a.First, a.All
	part.Close = func() error { return errors.Join(run.CloseClients(o), database.Close()) }
	if part.Servers, err = run.OpenClients(ctx, w, o, a.First, a.Clients); err != nil {
		return nil, err
	}
	if a.Background {
		o.Background, err = w.Background(ctx)
	}
	return part, err
}

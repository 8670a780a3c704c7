package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"stroppy/internal/cluster/wait"
	"stroppy/internal/db"
	"stroppy/internal/exit"
	"stroppy/internal/registry"
	"stroppy/internal/workload"
)

// openToRun opens the database of a run in the directory dir. It returns an error if a database with fail-over has no
// server that could take over. A cluster of this program was verified at its start.
func (c *Config) openToRun(ctx context.Context, dir string) (db.Database, error) {
	database, err := registry.Open(ctx, c.RunDatabase(dir), c.Isolation)
	watched, ok := database.(db.FailsOver)
	if err != nil || !ok || c.Cluster != "" {
		return database, err
	}
	if err := watched.CheckSuccessors(ctx); err != nil {
		return nil, errors.Join(err, database.Close())
	}
	return database, nil
}

// ConnectFrom returns a context with which connections are made from the configured local addresses, if there are any.
func (c *Config) ConnectFrom(ctx context.Context) (context.Context, error) {
	addresses, err := c.LocalAddresses()
	if err != nil || len(addresses) == 0 {
		return ctx, err
	}
	kind, err := registry.Find(c.DB)
	if err != nil {
		return ctx, err
	}
	if !kind.Bindable {
		return ctx, exit.Usagef("local-address: a connection to %s: has no choice of the local address: leave the setting out", kind.Schemes[0])
	}
	return registry.ConnectFromThose(ctx, addresses)
}

// ownFiles returns the files of the run's own database; none if another database was named.
func (c *Config) ownFiles() []string {
	if c.DB != "" || c.Cluster != "" {
		return nil
	}
	file := c.defaultFile()
	return []string{file, file + "-wal", file + "-shm", file + "-journal"}
}

// defaultFile returns the file name of the default database.
func (c *Config) defaultFile() string { return c.Workload + ".db" }

// Missing reports whether the URL names an SQLite file that does not exist. Opening it would create the file.
func (c *Config) Missing(url string) bool {
	path, ok := strings.CutPrefix(url, registry.OwnScheme+":")
	path, _, _ = strings.Cut(path, "?")
	if !ok {
		return false
	}
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// MustExist returns an error if the URL names an SQLite file that does not exist.
func (c *Config) MustExist(url string) error {
	if !c.Missing(url) {
		return nil
	}
	spec, load := c.WorkloadSpec(), "stroppy run "+c.Workload
	if spec.Steps {
		load = "stroppy load"
	}
	return exit.With(exit.Failed, fmt.Errorf("there is no %s in %s, which does not exist: run `%s` first, or name the database with --db", spec.Data, url, load))
}

// RunDatabase returns the URL of the run's database. It is the cluster of the run, the database
// that was named, or SQLite in the run's directory. Commands that have no directory in common
// give an empty dir.
func (c *Config) RunDatabase(dir string) string {
	switch {
	case c.Live != "":
		return c.Live
	case c.DB != "":
		return c.DB
	}
	return registry.OwnScheme + ":" + filepath.Join(dir, c.defaultFile())
}

// connections returns the number of simultaneous connections of a run: one for each client, for each background client
// and for the monitor. For nil it assumes a monitor.
func (c *Config) connections(database db.Database) int {
	n := c.Clients
	if attended, ok := c.Config.(workload.Attended); ok {
		n += attended.BackgroundClients()
	}
	if _, monitored := database.(db.Monitored); monitored || database == nil {
		n++
	}
	return n
}

// atMostClients returns the advice for a run with too many clients; most is at least 1.
func atMostClients(most int) string { return fmt.Sprintf("give at most %d --clients", most) }

// If there are too few connections, the server is asked again, because it may still count closed connections.
const (
	admitTries = 3
	admitPause = 300 * time.Millisecond
	admitLimit = 5 * time.Second // of each question
)

// admit returns an error if the database has too few connections for the clients. fewer returns
// the advice how to take fewer clients. If the limit is not known, the clients find out when they
// connect.
func (c *Config) admit(ctx context.Context, database db.Database, fewer func(most int) string) error {
	limited, ok := database.(db.ConnectionLimited)
	if !ok {
		return nil
	}
	needed := c.connections(database)
	var free db.FreeConnections
	for try := range admitTries {
		if try > 0 && wait.Sleep(ctx, admitPause) != nil {
			return nil // the caller reports the end
		}
		asked, cancel := context.WithTimeout(ctx, admitLimit)
		found, err := limited.FreeConnections(asked)
		cancel()
		if err != nil || !found.Known || found.Count >= needed {
			return nil
		}
		free = found
	}
	do := "end connections of others"
	if most := free.Count - (needed - c.Clients); most > 0 {
		do = fewer(most)
	}
	if !strings.Contains(free.Remedy, ", or ") {
		do += ", or"
	} else {
		do += ","
	}
	return exit.Usagef("run %d clients on %s: that takes %d connections, %d of them stroppy's own, and it has room for %d more (%s): %s %s",
		c.Clients, free.Server, needed, needed-c.Clients, free.Count, free.Limit, do, free.Remedy)
}

// AdmitFirst is admit before the first of several runs on a database that exists already. If the
// database cannot be reached, the run reports it.
func (c *Config) AdmitFirst(s *Session, fewer func(most int) string) error {
	if c.Cluster != "" || registry.Embedded(c.RunDatabase("")) {
		return nil
	}
	ctx, err := c.ConnectFrom(s.Context)
	if err != nil {
		return err
	}
	database, err := registry.Open(ctx, c.DB, c.Isolation)
	if err != nil {
		return s.Cause(err, NothingLeft)
	}
	defer database.Close()
	if err := c.admit(ctx, database, fewer); err != nil {
		return s.Cause(err, NothingLeft)
	}
	return nil
}

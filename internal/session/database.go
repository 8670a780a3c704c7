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

	"stroppy/internal/db"
	"stroppy/internal/exit"
	"stroppy/internal/registry"
	"stroppy/internal/workload"
)

// openToRun opens the database of a run whose directory is dir. One that is watched, and has
// no server that could take over, is refused; a cluster of this program has been seen whole.
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

// ConnectFrom returns a context in which connections to the database are made from the
// addresses that the configuration names, if it names some.
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
		return ctx, exit.Usagef("local-address: a connection to %s: cannot be made from an address of one's choice: leave it out", kind.Schemes[0])
	}
	return registry.ConnectFromThose(ctx, addresses)
}

// ownFiles returns the files of the run's own database; none if another database was named.
func (c *Config) ownFiles() []string {
	if c.DB != "" || c.Live != "" {
		return nil
	}
	file := c.defaultFile()
	return []string{file, file + "-wal", file + "-shm", file + "-journal"}
}

// defaultFile is where the embedded database is when no other is named.
func (c *Config) defaultFile() string { return c.Workload + ".db" }

// Missing says of an SQLite file, which opening would make, that it is not there.
func (c *Config) Missing(url string) bool {
	path, ok := strings.CutPrefix(url, registry.OwnScheme+":")
	path, _, _ = strings.Cut(path, "?")
	if !ok {
		return false
	}
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// MustExist refuses an SQLite file that is not there.
func (c *Config) MustExist(url string) error {
	if !c.Missing(url) {
		return nil
	}
	spec, load := c.WorkloadSpec(), "stroppy run "+c.Workload
	if spec.Steps {
		load = "stroppy pop"
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

// connections is how many connections the clients of a run have open at once: each its own,
// those in the background, and the database's monitor where it has one; of nil that is not
// known, and it is counted.
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

// atMostClients is the advice for a run with too many clients; most is at least 1.
func atMostClients(most int) string { return fmt.Sprintf("give at most %d --clients", most) }

// The server is asked again where there are too few, because it may still count connections
// that have just ended.
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
		if try > 0 {
			select {
			case <-ctx.Done():
				return nil // whoever ended it says so
			case <-time.After(admitPause):
			}
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

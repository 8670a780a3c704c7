package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"stroppy/internal/db"
	"stroppy/internal/db/dqlite"
	"stroppy/internal/db/etcd"
	"stroppy/internal/db/memory"
	"stroppy/internal/db/mysql"
	"stroppy/internal/db/noop"
	"stroppy/internal/db/postgres"
	"stroppy/internal/db/redis"
	"stroppy/internal/db/sqlite"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/workload/dataset"
)

// driver is one kind of database.
type driver struct {
	scheme string
	about  string
	open   func(ctx context.Context, url string) (db.Database, error)
}

func drivers() []driver {
	return []driver{
		{"sqlite", "sqlite:PATH  embedded, durable; the default, in the run's own directory", opener(sqlite.Open)},
		{"postgres", "postgres://USER:PASSWORD@HOST:PORT/DATABASE  PostgreSQL; several hosts with commas", opener(postgres.Open)},
		{"postgresql", "", opener(postgres.Open)},
		{"etcd", "etcd://HOST:PORT,HOST:PORT  etcd, its nodes with commas", opener(etcd.Open)},
		{"dqlite", "dqlite://HOST:PORT,HOST:PORT[/DATABASE]  dqlite, SQLite replicated by Raft; in a build with the tag dqlite", dqlite.Open},
		{"mysql", "mysql://USER:PASSWORD@HOST:PORT/DATABASE  MySQL, MariaDB and Galera; several hosts with commas", opener(mysql.Open)},
		{"redis", "redis://[USER:PASSWORD@]HOST:PORT,HOST:PORT/DB[?commit=script|watch&wait=N]  Redis 7 or later; a primary and its replicas with commas", opener(redis.Open)},
		{"rediss", "", opener(redis.Open)},
		{"memory", "memory:[?mutant=NAME&rate=R]  the strictly serializable reference in this process, with a bug planted if asked", opener(func(_ context.Context, url string) (*memory.Database, error) { return memory.Open(url) })},
		{"noop", "noop:  answers at once and keeps nothing; measures stroppy itself", opener(func(_ context.Context, url string) (*noop.Database, error) {
			if url != "noop:" {
				return nil, &db.Error{Class: db.Fatal, Op: "open noop", Err: errors.New("the address is noop: with nothing behind it")}
			}
			return noop.Open(), nil
		})},
	}
}

func opener[D db.Database](open func(context.Context, string) (D, error)) func(context.Context, string) (db.Database, error) {
	return func(ctx context.Context, url string) (db.Database, error) {
		d, err := open(ctx, url)
		if err != nil {
			return nil, err
		}
		return d, nil
	}
}

// openDatabase opens a database by URL. An address that cannot be right is an
// error of usage; a database that cannot be reached is not.
func openDatabase(ctx context.Context, url string) (db.Database, error) {
	d, err := driverOf(url)
	if err != nil {
		return nil, err
	}
	database, err := d.open(ctx, url)
	var e *db.Error
	if errors.As(err, &e) && e.Class == db.Fatal && (e.Code == "" || e.Code == "url") {
		return nil, &exitError{exitUsage, err}
	}
	return database, err
}

// driverOf finds the driver by the scheme. Of an address that has none or an
// unknown one nothing else is told: what may be shown of it is known to its driver.
func driverOf(url string) (driver, error) {
	scheme, _, found := strings.Cut(url, ":")
	found = found && isScheme.MatchString(scheme)
	var schemes []string
	for _, d := range drivers() {
		if found && d.scheme == strings.ToLower(scheme) {
			return d, nil
		}
		schemes = append(schemes, d.scheme)
	}
	if !found {
		return driver{}, usagef("the database's URL has no scheme: it begins with one of %s:", strings.Join(schemes, ":, "))
	}
	return driver{}, usagef("no database is known by the scheme %s:, and the nearest scheme is %s:", scheme, scenario.Nearest(scheme, schemes))
}

// isScheme matches what RFC 3986, section 3.1, calls a scheme.
var isScheme = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*$`)

// ownFiles are those of a database that is the run's own, in its directory; none if
// another was named.
func (c *config) ownFiles() []string {
	if c.DB != "" || c.live != "" {
		return nil
	}
	file := c.defaultFile()
	return []string{file, file + "-wal", file + "-shm", file + "-journal"}
}

// defaultFile is where the embedded database is when no other is named.
func (c *config) defaultFile() string { return c.Workload + ".db" }

// mustExist refuses an SQLite file that is not there, which opening would make.
func (c *config) mustExist(url string) error {
	path, ok := strings.CutPrefix(url, "sqlite:")
	if !ok {
		return nil
	}
	path, _, _ = strings.Cut(path, "?")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		spec, err := workloads().Find(c.Workload)
		if err != nil {
			return err
		}
		load := "stroppy run " + c.Workload
		if spec.Steps {
			load = "stroppy pop"
		}
		return &exitError{exitFailed, fmt.Errorf("there is no %s in %s, which does not exist: run `%s` first, or name the database with --db", spec.Data, url, load)}
	}
	return nil
}

// runDatabase returns the URL of the run's database: that of the cluster that
// was started for it, the one that was named, or SQLite in the run's directory.
func (c *config) runDatabase(dir string) string {
	switch {
	case c.live != "":
		return c.live
	case c.DB != "":
		return c.DB
	}
	return "sqlite:" + filepath.Join(dir, c.defaultFile())
}

// stepDatabase is runDatabase for the steps that have no directory in common.
func (c *config) stepDatabase() string {
	if c.DB != "" {
		return c.DB
	}
	return "sqlite:" + c.defaultFile()
}

// exitCode says how the program ends after an error.
func exitCode(err error) int {
	var exit *exitError
	var mismatch *dataset.MismatchError
	var unusable *run.UnusableError
	switch {
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &mismatch), errors.As(err, &unusable):
		return exitUsage
	}
	return exitFailed
}

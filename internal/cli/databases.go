package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stroppy/internal/cluster"
	"stroppy/internal/db"
	"stroppy/internal/db/memory"
	"stroppy/internal/db/noop"
	"stroppy/internal/db/sqlite"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/spelling"
	"stroppy/internal/sweep"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// database is what this program knows of one kind of database.
type database struct {
	schemes  []string // of its URL; the first is the one to use
	about    string
	port     string // of a server whose address has none
	embedded bool   // it runs in this process
	inMemory bool   // what it holds is in the memory of this process alone
	file     bool   // its URL is the path of a file, which may be shown
	open     func(ctx context.Context, url string) (db.Database, error)
	check    func(url string) error // what open would refuse without a connection; nil: open makes none
	// isolations are those that any such server has, none where it is not known; keyValue is a
	// key-value store that is not open. By these a dry run refuses what a server would.
	isolations db.Isolations
	keyValue   db.KV
	bindable   bool // connections to it can be made from --local-address
	// alone sets in the query of a URL of several servers what reads one of them, whatever
	// its role is; false: they hold no data. Nil: none can be read alone.
	alone func(query url.Values) bool
	// primary does the same for one server that answers only if it takes writes; nil: there
	// may be several such servers.
	primary  func(query url.Values) bool
	ownState string                                   // in the URL of one node: it answers from what it has, whether that is old or not; empty: it does anyway, or cannot
	claim    func(isolation string) (db.Claim, error) // without a database, where opening makes one; else nil
	clusters []clusterKind
	servant  *cobra.Command // what this program is when a cluster starts it as a node
}

// databases is the registry: a database is a folder in internal/db, one in
// internal/cluster where this program can start it, and an entry here.
func databases() []database {
	list := []database{
		{schemes: []string{ownScheme}, about: "sqlite:PATH  embedded, durable; the default, in the run's own directory",
			embedded: true, file: true, open: opener(sqlite.Open), claim: sqlite.Claim},
		{schemes: []string{"memory"}, about: "memory:[?mutant=NAME&rate=R]  the strictly serializable reference in this process, with a bug planted if asked",
			embedded: true, inMemory: true, open: opener(func(_ context.Context, url string) (*memory.Database, error) { return memory.Open(url) })},
		{schemes: []string{"noop"}, about: "noop:  answers at once and keeps nothing; measures stroppy itself",
			embedded: true, open: opener(openNoop)},
	}
	return slices.Insert(list, 1, servers()...)
}

// fileSchemes are those of databases that are files.
func fileSchemes() (schemes []string) {
	for _, d := range databases() {
		if d.file {
			schemes = append(schemes, d.schemes...)
		}
	}
	return schemes
}

// leftOut is what a build without databases with servers says of one.
const leftOut = "its tag embedded leaves out all databases with servers: build it without that tag"

// ownScheme is that of the embedded database in a run's directory.
const ownScheme = "sqlite"

func openNoop(_ context.Context, url string) (*noop.Database, error) {
	if url != "noop:" {
		return nil, &db.Error{Class: db.Fatal, Op: "open noop", Err: errors.New("the address is noop: with nothing behind it")}
	}
	return noop.Open(), nil
}

// opener and starter hand on values of a concrete type, which count only without an error.
func opener[D db.Database](open func(context.Context, string) (D, error)) func(context.Context, string) (db.Database, error) {
	return func(ctx context.Context, url string) (db.Database, error) { return open(ctx, url) }
}

func starter[C cluster.Cluster](start func(context.Context, cluster.Options) (C, error)) func(context.Context, cluster.Options) (cluster.Cluster, error) {
	return func(ctx context.Context, o cluster.Options) (cluster.Cluster, error) { return start(ctx, o) }
}

// openDatabase opens a database by URL. An address that cannot be right is an
// error of usage; a database that cannot be reached is not. Opening makes no database for
// isolations that it would not have.
func openDatabase(ctx context.Context, url string, isolations ...string) (db.Database, error) {
	kind, err := databaseOf(url)
	if err != nil {
		return nil, err
	}
	for _, name := range isolations {
		if kind.claim == nil {
			continue
		}
		if _, err := kind.claim(name); err != nil {
			return nil, &exitError{exitUsage, err}
		}
	}
	database, err := kind.open(ctx, url)
	if err == nil {
		return database, nil
	}
	var e *db.Error
	if errors.As(err, &e) && e.Class == db.Fatal && e.Code == "" {
		err = &exitError{exitUsage, err}
	}
	return nil, err
}

// openToRun opens the database of a run whose directory is dir. One that is watched, and has
// no server that could take over, is refused; a cluster of this program has been seen whole.
func (c *config) openToRun(ctx context.Context, dir string) (db.Database, error) {
	database, err := openDatabase(ctx, c.runDatabase(dir), c.Isolation)
	watched, ok := database.(db.FailsOver)
	if err != nil || !ok || c.Cluster != "" {
		return database, err
	}
	if err := watched.CheckSuccessors(ctx); err != nil {
		return nil, errors.Join(err, database.Close())
	}
	return database, nil
}

// serverMeanings are other names of databases, for the schemes and clusters of this program.
var serverMeanings = map[string]string{
	"pg": "postgres", "psql": "postgres", "pgsql": "postgres", "patroni": "postgres", "crdb": "cockroach", "foundationdb": "fdb",
	"mariadb": "mysql", "percona": "mysql", "tidb": "mysql", "mysqli": "mysql", "mongo": "mongodb", "mongodb+srv": "mongodb",
	"valkey": "redis", "sqlite3": ownScheme, "file": ownScheme,
}

// foreign are addresses as libraries and other tools write them, with the scheme of this
// program for what each is of.
var foreign = []struct {
	form   *regexp.Regexp
	scheme string
}{
	{regexp.MustCompile(`(?i)^jdbc:postgresql:`), "postgres"},
	{regexp.MustCompile(`(?i)^jdbc:(mysql|mariadb):`), "mysql"},
	{regexp.MustCompile(`(?i)^jdbc:sqlite:`), ownScheme},
	{regexp.MustCompile(`^.*@(tcp|unix)?[46]?\(.*\)/`), "mysql"},
	{regexp.MustCompile(`(?i)^\s*(host|hostaddr|port|dbname|user)\s*=`), "postgres"},
	{regexp.MustCompile(`(?i)^[^:@]*\.(db|sqlite3?)$|^[.~]{0,2}/[^:@]*$`), ownScheme},
}

// writtenHere says how an address is written that is written as elsewhere; empty where that
// is not known. Nothing of the address is in it.
func writtenHere(url string) string {
	for _, f := range foreign {
		for _, d := range databases() {
			if form, _, _ := strings.Cut(d.about, "  "); d.schemes[0] == f.scheme && f.form.MatchString(url) {
				return form
			}
		}
	}
	return ""
}

// databaseOf finds a database by the scheme of its URL. Nothing else of a URL with
// an unknown scheme or none is shown: only its driver knows what may be.
func databaseOf(url string) (database, error) {
	scheme, _, found := strings.Cut(url, ":")
	found = found && isScheme.MatchString(scheme)
	if namesCluster(url) {
		return database{}, usagef("what is to be a database's URL is the name of a cluster: give it with --cluster")
	}
	var schemes []string
	for _, d := range databases() {
		if found && slices.Contains(d.schemes, strings.ToLower(scheme)) {
			return d, nil
		}
		schemes = append(schemes, d.schemes...)
	}
	if form := writtenHere(url); form != "" {
		return database{}, usagef("the database's URL has no scheme that stroppy knows: here it is written %s", form)
	}
	if !found {
		return database{}, usagef("the database's URL has no scheme: it begins with one of %s:", strings.Join(schemes, ":, "))
	}
	if len(servers()) == 0 {
		return database{}, usagef("no database of this build has the scheme %s:, and %s", scheme, leftOut)
	}
	const unknown = "no database is known by the scheme %s:"
	if near, found := serverMeanings[strings.ToLower(scheme)]; found {
		return database{}, usagef(unknown+", and the nearest scheme is %s:", scheme, near)
	}
	if near, found := spelling.Near(scheme, schemes); found {
		return database{}, usagef(unknown+", and the nearest scheme is %s:", scheme, near)
	}
	return database{}, usagef(unknown+"; `stroppy list databases` shows how each is written", scheme)
}

// checkURL says what is wrong with a database's URL, as far as that is known without a
// connection. From then on its scheme is known and may stand in a path.
func checkURL(url string) error {
	kind, err := databaseOf(url)
	if err == nil && kind.check != nil {
		err = kind.check(url)
	}
	return err
}

// oneWorkload refuses arguments that are no workload alone.
func oneWorkload(c *cobra.Command, args []string) error {
	for _, arg := range args {
		if namesCluster(arg) {
			return usagef("%s is a cluster and no workload: give it with --cluster", arg)
		}
		if _, err := databaseOf(arg); err == nil {
			return usagef("%s is a database and no workload: give it with --db", scenario.Redact(arg))
		}
		if form, found := workloadOf(arg); found && form != arg {
			return usagef("%q is no workload of stroppy; what comes to the same is `%s %s`", arg, c.CommandPath(), form)
		}
		if slices.Contains(scenarioNames(), arg) || strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml") {
			return usagef("%s is a scenario and no workload: give it with -f", arg)
		}
	}
	if len(args) > 1 {
		return usagef("`%s` takes one workload, and was given %q as well", c.CommandPath(), args[1])
	}
	return nil
}

// namesCluster says whether a text is written as a cluster is that this program can start.
// Nothing of such a text is secret.
func namesCluster(text string) bool {
	name, number, counted := strings.Cut(text, ":")
	_, err := strconv.ParseUint(number, 10, 8)
	return (!counted || err == nil) && slices.ContainsFunc(clusterKinds(), func(k clusterKind) bool { return k.name == name })
}

// connectFrom returns a context in which connections to the database are made from the
// addresses that the configuration names, if it names some.
func (c *config) connectFrom(ctx context.Context) (context.Context, error) {
	addresses, err := c.LocalAddresses()
	if err != nil || len(addresses) == 0 {
		return ctx, err
	}
	kind, err := databaseOf(c.DB)
	if err != nil {
		return ctx, err
	}
	if !kind.bindable {
		return ctx, usagef("local-address: a connection to %s: cannot be made from an address of one's choice: leave it out", kind.schemes[0])
	}
	return connectFromThose(ctx, addresses)
}

// embedded says whether the database of a URL runs in this process.
func embedded(url string) bool {
	kind, err := databaseOf(url)
	return err == nil && kind.embedded
}

// isScheme matches what RFC 3986, section 3.1, calls a scheme.
var isScheme = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*$`)

// ownFiles are those of the run's own database; none if another was named.
func (c *config) ownFiles() []string {
	if c.DB != "" || c.live != "" {
		return nil
	}
	file := c.defaultFile()
	return []string{file, file + "-wal", file + "-shm", file + "-journal"}
}

// defaultFile is where the embedded database is when no other is named.
func (c *config) defaultFile() string { return c.Workload + ".db" }

// missing says of an SQLite file, which opening would make, that it is not there.
func (c *config) missing(url string) bool {
	path, ok := strings.CutPrefix(url, ownScheme+":")
	path, _, _ = strings.Cut(path, "?")
	if !ok {
		return false
	}
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// mustExist refuses an SQLite file that is not there.
func (c *config) mustExist(url string) error {
	if !c.missing(url) {
		return nil
	}
	spec, load := c.spec(), "stroppy run "+c.Workload
	if spec.Steps {
		load = "stroppy pop"
	}
	return &exitError{exitFailed, fmt.Errorf("there is no %s in %s, which does not exist: run `%s` first, or name the database with --db", spec.Data, url, load)}
}

// runDatabase returns the URL of the run's database: that of the cluster that
// was started for it, the one that was named, or SQLite in the run's directory, which
// is empty for the steps that have none in common.
func (c *config) runDatabase(dir string) string {
	switch {
	case c.live != "":
		return c.live
	case c.DB != "":
		return c.DB
	}
	return ownScheme + ":" + filepath.Join(dir, c.defaultFile())
}

func exitCode(err error) int {
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, new(*dataset.MismatchError)), errors.As(err, new(*dataset.ChangedError)), errors.As(err, new(*run.UnusableError)):
		return exitUsage
	}
	return exitFailed
}

// servants are what this program is when a cluster of it starts it once more.
func servants() []*cobra.Command {
	list := clusterServants()
	for _, d := range databases() {
		if d.servant != nil {
			list = append(list, d.servant)
		}
	}
	return list
}

func servant(name, short string, serve func(args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Hidden: true, Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return serve(args) },
	}
}

// connections is how many connections the clients of a run have open at once: each its own,
// those in the background, and the database's monitor where it has one; of nil that is not
// known, and it is counted.
func (c *config) connections(database db.Database) int {
	n := c.Clients
	if attended, ok := c.Config.(workload.Attended); ok {
		n += attended.BackgroundClients()
	}
	if _, monitored := database.(db.Monitored); monitored || database == nil {
		n++
	}
	return n
}

// What is done about clients that are too many: most is at least 1.
func atMostClients(most int) string { return fmt.Sprintf("give at most %d --clients", most) }

func fewerIn(scenario string) func(most int) string {
	return func(most int) string { return fmt.Sprintf("set clients to at most %d in %s", most, scenario) }
}

func smallerSteps(most int) string {
	return fmt.Sprintf("leave out the steps with more than %d clients", most)
}

// The server is asked again where there are too few, because it may still count connections
// that have just ended.
const (
	admitTries = 3
	admitPause = 300 * time.Millisecond
	admitLimit = 5 * time.Second // of each question
)

// admit refuses more clients than the database has connections for; fewer says how to take
// fewer. Where that is not known nothing is refused: then it is seen when they connect.
func (c *config) admit(ctx context.Context, database db.Database, fewer func(most int) string) error {
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
	return usagef("run %d clients on %s: that takes %d connections, %d of them stroppy's own, and it has room for %d more (%s): %s %s",
		c.Clients, free.Server, needed, needed-c.Clients, free.Count, free.Limit, do, free.Remedy)
}

// admitFirst is admit before the first of several runs on a database that is there already.
// Where it cannot be reached, the run says so.
func (c *config) admitFirst(s *session, fewer func(most int) string) error {
	if c.Cluster != "" || embedded(c.runDatabase("")) {
		return nil
	}
	ctx, err := c.connectFrom(s.ctx)
	if err != nil {
		return err
	}
	database, err := openDatabase(ctx, c.DB, c.Isolation)
	if err != nil {
		return s.cause(err, nothingLeft)
	}
	defer database.Close()
	if err := c.admit(ctx, database, fewer); err != nil {
		return s.cause(err, nothingLeft)
	}
	return nil
}

// admit refuses a sweep over clients of which the largest step has too many.
func (w *sweeping) admit(s *session) error {
	if w.spec.Axis != sweep.Clients {
		return nil // its first step has as many as all others
	}
	values := w.spec.Values
	if len(values) == 0 {
		values = w.fallback
	}
	largest, err := w.with(slices.Max(values))
	if err != nil {
		return err
	}
	return largest.admitFirst(s, smallerSteps)
}

func isVolatile(database db.Database) bool {
	v, ok := database.(db.Volatile)
	return ok && v.Volatile()
}

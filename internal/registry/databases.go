// Package registry lists the databases, clusters and workloads of this build. It is the only
// package that knows concrete ones. Each database has one entry in list.go.
package registry

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"stroppy/internal/cluster"
	"stroppy/internal/db"
	"stroppy/internal/db/memory"
	"stroppy/internal/db/sqlite"
	"stroppy/internal/exit"
	"stroppy/internal/scenario"
	"stroppy/internal/spelling"
)

// ReadsAlone sets what reads one server of a URL. It reports whether the database can do that.
func (d Database) ReadsAlone(query url.Values) bool { return d.Alone != nil && d.Alone(query) }

// PrimaryAlone sets what reaches one server of a URL if it takes writes. It reports whether the database can do that.
func (d Database) PrimaryAlone(query url.Values) bool { return d.Primary != nil && d.Primary(query) }

// ServersOf are the servers of a database's URL, each HOST:PORT with the URL by which how
// asks for it alone; none where it cannot.
func ServersOf(address string, how func(Database, url.Values) bool) (list [][2]string) {
	kind, err := Find(address)
	hosts := Addresses(address)
	if err != nil || len(hosts) < 2 {
		return nil
	}
	scheme, rest, _ := strings.Cut(address, "://")
	rest, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if err != nil || !how(kind, values) {
		return nil
	}
	authority, path, slash := strings.Cut(rest, "/")
	account := authority[:strings.LastIndex(authority, "@")+1]
	if slash {
		path = "/" + path
	}
	for _, host := range hosts {
		one := scheme + "://" + account + host + path
		if len(values) > 0 {
			one += "?" + values.Encode()
		}
		list = append(list, [2]string{host, one})
	}
	return list
}

// Addresses are the HOST:PORT of a database's address, with commas between them.
func Addresses(database string) []string {
	_, rest, ok := strings.Cut(database, "://")
	kind, err := Find(database)
	if !ok || err != nil {
		return nil
	}
	authority, _, _ := strings.Cut(rest, "/")
	authority, _, _ = strings.Cut(authority, "?")
	var list []string
	for host := range strings.SplitSeq(authority[strings.LastIndex(authority, "@")+1:], ",") {
		u := url.URL{Host: host}
		if port := cmp.Or(u.Port(), kind.Port); u.Hostname() != "" && port != "" {
			list = append(list, net.JoinHostPort(u.Hostname(), port))
		}
	}
	return list
}

// Database describes one kind of database.
type Database struct {
	db.Driver
	Clusters []ClusterKind
	servant  *cobra.Command // what this program is when a cluster starts it as a node
}

// FileSchemes returns the schemes of databases that are files.
func FileSchemes() (schemes []string) {
	for _, d := range Databases() {
		if d.File {
			schemes = append(schemes, d.Schemes...)
		}
	}
	return schemes
}

// leftOut explains why a build has no databases with servers.
const leftOut = "its tag embedded leaves out all databases with servers: build it without that tag"

// OwnScheme is the scheme of the embedded database in a run's directory.
const OwnScheme = sqlite.Scheme

// starter adapts a function that starts a concrete type. The value counts only without an error.
func starter[C cluster.Cluster](start func(context.Context, cluster.Options) (C, error)) func(context.Context, cluster.Options) (cluster.Cluster, error) {
	return func(ctx context.Context, o cluster.Options) (cluster.Cluster, error) { return start(ctx, o) }
}

// Open opens a database by URL. An address that cannot be right is an
// error of usage; a database that cannot be reached is not. Opening makes no database for
// isolations that it would not have.
func Open(ctx context.Context, url string, isolations ...string) (db.Database, error) {
	kind, err := Find(url)
	if err != nil {
		return nil, err
	}
	for _, name := range isolations {
		if kind.Claim == nil {
			continue
		}
		if _, err := kind.Claim(name); err != nil {
			return nil, exit.With(exit.Usage, err)
		}
	}
	database, err := kind.Open(ctx, url)
	if err != nil {
		return nil, usage(err)
	}
	return database, nil
}

// Look opens a database that is there, and changes nothing in it.
func Look(ctx context.Context, url string) (db.Database, error) {
	kind, err := Find(url)
	if err != nil {
		return nil, err
	}
	open := kind.Open
	if kind.Look != nil {
		open = kind.Look
	}
	database, err := open(ctx, url)
	if err != nil {
		return nil, usage(err)
	}
	return database, nil
}

// usage marks the error of an address that cannot be right.
func usage(err error) error {
	if e, ok := errors.AsType[*db.Error](err); ok && e.Class == db.Fatal && e.Code == "" {
		return exit.With(exit.Usage, err)
	}
	return err
}

// meanings returns other names of databases, each with the scheme of its database.
func meanings() map[string]string {
	names := map[string]string{}
	for _, d := range Databases() {
		for _, name := range d.Also {
			names[name] = d.Schemes[0]
		}
	}
	return names
}

// writtenHere returns the form of an address that is written as other programs write it; empty if
// the form is not known. It contains nothing of the address.
func writtenHere(url string) string {
	for _, d := range slices.Backward(Databases()) { // the first one is a file: nearly any text is the form of a path
		if d.Foreign != nil && d.Foreign.MatchString(url) {
			form, _, _ := strings.Cut(d.About, "  ")
			return form
		}
	}
	return ""
}

// Find returns the database that has the scheme of a URL. If the scheme is unknown, the error shows
// no more of the URL, because only a driver knows which parts are secret.
func Find(url string) (Database, error) {
	scheme, _, found := strings.Cut(url, ":")
	found = found && isScheme.MatchString(scheme)
	if NamesCluster(url) {
		return Database{}, exit.Usagef("the database's URL is the name of a cluster: use --cluster instead")
	}
	var schemes []string
	for _, d := range Databases() {
		if found && slices.Contains(d.Schemes, strings.ToLower(scheme)) {
			return d, nil
		}
		schemes = append(schemes, d.Schemes...)
	}
	if form := writtenHere(url); form != "" {
		return Database{}, exit.Usagef("the database's URL has no scheme that stroppy knows: here it is written %s", form)
	}
	if !found {
		return Database{}, exit.Usagef("the database's URL has no scheme: it begins with one of %s:", strings.Join(schemes, ":, "))
	}
	if len(ClusterKinds()) == 0 {
		return Database{}, exit.Usagef("no database of this build has the scheme %s:, and %s", scheme, leftOut)
	}
	const unknown = "no database is known by the scheme %s:"
	if near, found := meanings()[strings.ToLower(scheme)]; found {
		return Database{}, exit.Usagef(unknown+", and the nearest scheme is %s:", scheme, near)
	}
	if plain, library, found := strings.Cut(strings.ToLower(scheme), "+"); found && slices.Contains(schemes, plain) {
		return Database{}, exit.Usagef(unknown+", and without +%s it is %s:", scheme, library, plain)
	}
	if near, found := spelling.Near(scheme, schemes); found {
		return Database{}, exit.Usagef(unknown+", and the nearest scheme is %s:", scheme, near)
	}
	return Database{}, exit.Usagef(unknown+"; `stroppy list databases` shows how each is written", scheme)
}

// CheckURL returns an error for a URL that is wrong, as far as this is known without a connection.
// If there is none, the scheme is known and may stand in a path.
func CheckURL(url string) error {
	kind, err := Find(url)
	if err == nil && kind.Check != nil {
		err = kind.Check(url)
	}
	return err
}

// NamesCluster reports whether a text is written like a cluster that this program can start. Such
// a text has no secrets.
func NamesCluster(text string) bool {
	name, number, counted := strings.Cut(text, ":")
	_, err := strconv.ParseUint(number, 10, 8)
	return strings.HasPrefix(text, scenario.OwnServers) || (!counted || err == nil) && slices.ContainsFunc(ClusterKinds(), func(k ClusterKind) bool { return k.Name == name })
}

// Embedded reports whether the database of a URL runs in this process.
func Embedded(url string) bool {
	kind, err := Find(url)
	return err == nil && kind.Embedded
}

// isScheme matches what RFC 3986, section 3.1, calls a scheme.
var isScheme = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*$`)

// Servants returns the commands by which a cluster starts this program once more.
func Servants() []*cobra.Command {
	list := clusterServants()
	for _, d := range Databases() {
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

func IsVolatile(database db.Database) bool {
	v, ok := database.(db.Volatile)
	return ok && v.Volatile()
}

// Mutants lists the bugs that the database memory: can have.
func Mutants() []memory.Mutant { return memory.Mutants() }

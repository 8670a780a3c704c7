// Package foundationdb connects to a FoundationDB cluster through the official Go binding. The cluster is an ordered
// key-value store with optimistic transactions.
//
// The binding needs FoundationDB's C library. So only a Stroppy that was built with the tag fdb has the driver. Without
// the tag, Open returns an error that explains what to install and how to build.
package foundationdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/address"
)

const (
	// defaultFile is the path of the cluster file in FoundationDB's packages
	// (https://apple.github.io/foundationdb/administration.html#default-cluster-file).
	defaultFile = "/etc/foundationdb/fdb.cluster"

	// defaultTimeout is the time limit of a transaction. A transaction cannot live longer: a read version is valid for
	// five seconds (https://apple.github.io/foundationdb/known-limitations.html).
	defaultTimeout = 5 * time.Second

	// headerVersion is the newest API of the binding in go.mod. leastVersion is the oldest API that opens a database by
	// its connection string.
	headerVersion, leastVersion = 730, 720
)

// config holds the parts of a URL.
type config struct {
	file        string // the cluster file; empty if the URL has its content
	connection  string // the content of a cluster file
	timeout     time.Duration
	idempotency bool // AUTOMATIC_IDEMPOTENCY
	library     library
}

// library holds the options of the C library. A process has one set of them.
type library struct {
	api                        int
	certificate, key, ca       string // files
	verifyPeers                string
	externalClient, clientsDir string // further versions of the library
	threads                    int    // for each version
}

// style is the form of a URL, which names a file and no servers.
var style = address.Style{Product: "FoundationDB", Form: "fdb:CLUSTER_FILE"}

// readURL is parseURL with the error of Open.
func readURL(url string) (config, error) { return address.Read("open FoundationDB", url, parseURL) }

// parseURL reads fdb:CLUSTER_FILE[?name=value…]. An empty path is the default cluster file, unless the URL has a
// connection. A connection is for clients without a cluster file.
func parseURL(text string) (config, error) {
	c := config{timeout: defaultTimeout, library: library{api: headerVersion, threads: 1}}
	rest, ok := strings.CutPrefix(text, "fdb:")
	if !ok {
		return c, errors.New("read the database URL: it does not begin with the scheme fdb")
	}
	path, query, _ := strings.Cut(rest, "?")
	l := &c.library
	err := style.Read(query, address.Options{
		"connection":            address.Text(&c.connection),
		"timeout":               address.Time(&c.timeout, 10*time.Millisecond),
		"automatic_idempotency": address.Choice(&c.idempotency, "off", "on"),
		"api_version":           l.readVersion,
		"tls_certificate":       address.Text(&l.certificate),
		"tls_key":               address.Text(&l.key),
		"tls_ca":                address.Text(&l.ca),
		"tls_verify_peers":      address.Text(&l.verifyPeers),
		"external_client":       address.Text(&l.externalClient),
		"external_clients":      address.Text(&l.clientsDir),
		"client_threads":        address.Number(&l.threads, "number of threads", 1, 64),
	})
	switch c.file = path; {
	case path != "" && c.connection != "" && err == nil:
		err = style.Errorf("it has a cluster file and a connection: leave one of them out")
	case path == "" && c.connection == "":
		c.file = defaultFile
	}
	if err == nil && l.threads > 1 && l.externalClient == "" && l.clientsDir == "" {
		err = style.Errorf("client_threads=%d needs external_client=FILE, a copy of libfdb_c.so: the library that is linked in has one thread", l.threads)
	}
	return c, err
}

func (l *library) readVersion(value string) error {
	if err := address.Number(&l.api, "version of the API", 13, 9999)(value); err != nil {
		return err
	}
	switch {
	case l.api > headerVersion:
		return fmt.Errorf("is newer than the binding in this program, which knows the API up to version %d", headerVersion)
	case l.api < leastVersion:
		return fmt.Errorf("is too old: this program needs version %d of the API or a later one", leastVersion)
	}
	return nil
}

// checkFiles returns an error if one of the files is missing. For most files the library reports nothing, and then
// nobody answers.
func (l *library) checkFiles() error {
	for _, f := range []struct{ name, path string }{
		{"tls_certificate", l.certificate}, {"tls_key", l.key}, {"tls_ca", l.ca},
		{"external_client", l.externalClient}, {"external_clients", l.clientsDir},
	} {
		if f.path == "" {
			continue
		}
		if _, err := os.Stat(f.path); err != nil {
			return fmt.Errorf("%s=%s: %w", f.name, f.path, errors.Unwrap(err))
		}
	}
	return nil
}

// clusterFile holds the parts of a cluster file
// (https://apple.github.io/foundationdb/administration.html#cluster-file-format).
type clusterFile struct {
	connection   string   // description:id@coordinators
	coordinators []string // host:port
}

const openCluster = "open the FoundationDB cluster file"

// cluster returns the connection string, from the cluster file or from the URL.
func (c *config) cluster() (clusterFile, error) {
	if c.connection == "" {
		return readClusterFile(c.file)
	}
	cluster, err := parseClusterFile(c.connection)
	if err != nil {
		return cluster, db.Fatalf("open FoundationDB", "the connection in its URL is none: %w", err)
	}
	return cluster, nil
}

// readClusterFile reads a cluster file, which Stroppy never writes.
func readClusterFile(path string) (clusterFile, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return clusterFile{}, db.Fatalf(openCluster, "there is no %s: name the file that the cluster's clients have, fdb:CLUSTER_FILE", path)
	}
	if err != nil {
		return clusterFile{}, db.Fatalf(openCluster, "%w", err)
	}
	c, err := parseClusterFile(string(text))
	if err != nil {
		return c, db.Fatalf(openCluster, "%s is none: %w", path, err)
	}
	return c, nil
}

// parseClusterFile reads description:id@host:port,host:port[:tls] among comments.
func parseClusterFile(text string) (c clusterFile, err error) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if c.connection != "" {
			return c, errors.New("it has more than one line that is no comment")
		}
		c.connection = line
	}
	const form = "write DESCRIPTION:ID@HOST:PORT,HOST:PORT"
	key, list, found := strings.Cut(c.connection, "@")
	description, id, named := strings.Cut(key, ":")
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	if !found || !named || description == "" || id == "" || strings.Trim(description, letters+"_") != "" || strings.Trim(id, letters) != "" {
		return c, errors.New(form)
	}
	for coordinator := range strings.SplitSeq(list, ",") {
		coordinator = strings.TrimSuffix(strings.TrimSpace(coordinator), ":tls")
		host := coordinator[:max(0, strings.LastIndexByte(coordinator, ':'))]
		port := strings.TrimPrefix(coordinator[len(host):], ":")
		if host == "" || port == "" || strings.Trim(port, "0123456789") != "" {
			return c, fmt.Errorf("%q is no address of a coordinator: %s", db.Shorten(coordinator), form)
		}
		c.coordinators = append(c.coordinators, coordinator)
	}
	return c, nil
}

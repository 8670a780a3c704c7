package mongodb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"stroppy/internal/db"
	"stroppy/internal/db/address"
	"stroppy/internal/db/wire"
)

const (
	// defaultTimeout is longer than an election with a short election time-out. So the next primary answers most
	// commits that the election interrupts.
	defaultTimeout = 5 * time.Second
	// defaultDatabase is the database if the URL names none.
	defaultDatabase = "stroppy"
	// wMajority is the write concern that no fail-over reverts.
	wMajority = "majority"
	// maxW is the largest number of voting members of a replica set
	// (https://www.mongodb.com/docs/v4.2/reference/limits/).
	maxW = 7
	// heartbeat is the interval at which each server is asked for its state. With the library's default of 10 s, a
	// silent server would cause an outage of this length.
	heartbeat = time.Second
	// connectTimeout bounds a connection and each heartbeat.
	connectTimeout = 2 * time.Second
)

type config struct {
	servers        []string // host:port, or of a URL with srv the name of the records
	srv            bool     // the servers are in DNS
	user, password string
	database       string
	authSource     string
	authMechanism  string // empty: by a password, as the server has it
	appName        string
	noRetry        bool // retryWrites=false
	replicaSet     string
	direct         bool // only the named server, in any role
	timeout        time.Duration
	w              string // of a commit: majority, or a number of members
	readConcern    string // of a transaction at the default isolation
	secondary      bool   // readPreference=secondary: read-only transactions read from a secondary
	tls            url.Values
	via            detour // addresses of servers whose names cannot be reached
}

// detour maps the HOST:PORT of a server in the replica set to its reachable address. It is the library's Dialer.
type detour map[string]string

// DialContext connects to a server.
func (d detour) DialContext(ctx context.Context, network, server string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, d.of(server))
}

func (d detour) of(server string) string {
	if address, there := d[server]; there {
		return address
	}
	return server
}

// readVia reads NAME:PORT=ADDRESS:PORT,….
func readVia(to *detour) address.Option {
	return func(value string) error {
		*to = detour{}
		for pair := range strings.SplitSeq(value, ",") {
			server, at, ok := strings.Cut(pair, "=")
			_, _, errServer := net.SplitHostPort(server)
			if _, _, err := net.SplitHostPort(at); !ok || errServer != nil || err != nil {
				return errors.New("is not NAME:PORT=ADDRESS:PORT, with commas between several")
			}
			(*to)[server] = at
		}
		return nil
	}
}

// style describes a MongoDB URL; 27017 is the port of mongod and mongos.
var style = address.Style{Product: "MongoDB", Server: "server", Port: "27017", Form: "mongodb://[USER:PASSWORD@]HOST:PORT,HOST:PORT[/DATABASE]"}

// srvScheme begins a URL whose servers are in DNS, in the SRV records of the host
// (https://www.mongodb.com/docs/manual/reference/connection-string/#dns-seed-list-connection-format).
const srvScheme = "mongodb+srv"

// srvStyle describes such a URL.
var srvStyle = address.Style{Product: "MongoDB", Server: "host", Port: "27017", Form: srvScheme + "://[USER:PASSWORD@]HOST[/DATABASE]"}

const byCertificate = "MONGODB-X509"

// mechanisms lists the supported values of authMechanism.
var mechanisms = []string{"SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN", byCertificate}

func readMechanism(to *string) address.Option {
	return func(value string) error {
		if *to = value; !slices.Contains(mechanisms, value) {
			return fmt.Errorf("is not supported: take one of %s", strings.Join(mechanisms, ", "))
		}
		return nil
	}
}

// parseURL reads mongodb://[user:password@]h1[:27017],h2[/database][?…]. No error repeats the password.
func parseURL(text string) (config, error) {
	c := config{database: defaultDatabase, timeout: defaultTimeout, w: wMajority, readConcern: snapshot, tls: url.Values{}}
	style := style
	if c.srv = strings.HasPrefix(text, srvScheme+"://"); c.srv {
		style = srvStyle
	}
	u, err := style.ParseURL(text, c.parameters())
	c.servers, c.user, c.password = u.Servers, u.User, u.Password
	if u.Path != "" {
		c.database = u.Path
	}
	if err != nil {
		return c, err
	}
	if c.srv {
		host, port, _ := net.SplitHostPort(u.Servers[0]) // Parse has joined them
		if len(u.Servers) > 1 || port != srvStyle.Port {
			return c, style.Errorf("%s:// is followed by one host without a port: DNS has the servers and their ports", srvScheme)
		}
		c.servers = []string{host}
	}
	switch {
	case c.authMechanism == byCertificate && (c.password != "" || c.tls.Get(certificateFile) == ""):
		return c, style.Errorf("authMechanism=%s takes the client's certificate in place of a password: write %s=FILE and no password", byCertificate, certificateFile)
	case c.authMechanism == byCertificate:
	case u.Account && (c.user == "" || c.password == ""):
		return c, style.Errorf("before the @ stand a user and a password, user:password@")
	case strings.ContainsAny(c.database, `/\. "$*<>:|?`):
		return c, style.Errorf("%q is no name of a database", c.database)
	case c.direct && c.srv:
		return c, style.Errorf("directConnection=true names one server, and the servers of %s:// are in DNS: use only one of them", srvScheme)
	case c.direct && len(c.servers) > 1:
		return c, style.Errorf("directConnection=true is for one server, and %d are named", len(c.servers))
	}
	return c, nil
}

// certificateFile is the parameter with the client's certificate and its key.
const certificateFile = "tlsCertificateKeyFile"

func (c *config) parameters() address.Options {
	all := address.Options{
		"authSource": address.Text(&c.authSource), "replicaSet": address.Text(&c.replicaSet),
		"authMechanism": readMechanism(&c.authMechanism), "appName": address.Text(&c.appName),
		"directConnection": address.Choice(&c.direct, "false", "true"),
		"retryWrites":      address.Choice(&c.noRetry, "true", "false"),
		"timeout":          address.Time(&c.timeout, time.Millisecond),
		"w":                readW(&c.w),
		"readConcernLevel": address.Word(&c.readConcern, snapshot, majority, local),
		"via":              readVia(&c.via),
		"readPreference":   address.Choice(&c.secondary, "primary", "secondary"),
	}
	for _, name := range []string{"tls", "ssl", "tlsCAFile", certificateFile, "tlsCertificateKeyFilePassword", "tlsInsecure"} {
		all[name] = func(value string) error {
			c.tls.Set(name, value)
			return nil
		}
	}
	return all
}

func readW(to *string) address.Option {
	return func(value string) error {
		if *to = value; value == wMajority {
			return nil
		}
		if n, err := strconv.Atoi(value); err != nil || n < 1 || n > maxW {
			return errors.New("is neither majority, the default, nor a number of members from 1 to 7")
		}
		return nil
	}
}

// options returns the library's options. Commands outside a transaction carry the client's read concern or write
// concern. The servers of a URL with srv are looked up if resolve is set; otherwise such options cannot be used.
func (c *config) options(resolve bool) (*options.ClientOptions, error) {
	o := options.Client()
	switch {
	case c.srv && resolve: // the library adds what DNS has about the log-in
		o.ApplyURI(c.srvURI())
	case len(c.tls) > 0: // the library reads their files
		o.ApplyURI("mongodb://unused/?" + c.tls.Encode())
	}
	if !c.srv {
		o.SetHosts(c.servers)
	}
	o.SetDirect(c.direct).SetAppName(cmp.Or(c.appName, "stroppy")).SetRetryWrites(!c.noRetry).
		SetConnectTimeout(connectTimeout).SetHeartbeatInterval(heartbeat).SetServerSelectionTimeout(c.timeout).
		SetMaxPoolSize(0).SetMaxConnecting(16).SetRetryReads(false)
	if len(c.via) > 0 {
		o.SetDialer(c.via)
	}
	if c.replicaSet != "" {
		o.SetReplicaSet(c.replicaSet)
	}
	if !(c.srv && resolve) && (c.user != "" || c.authMechanism != "") {
		o.SetAuth(options.Credential{AuthMechanism: c.authMechanism, Username: c.user, Password: c.password, AuthSource: c.authSource})
	}
	err := o.Validate()
	if unknown := new(net.DNSError); errors.As(err, &unknown) {
		return nil, &db.Error{Class: db.Unavailable, Op: "open MongoDB", Err: db.MessageError{Cause: err,
			Text: fmt.Sprintf("look up the servers of %s (SRV records of _mongodb._tcp.%[1]s): %s: check the name", c.name(), wire.Reason(unknown))}}
	}
	if err != nil {
		return nil, style.Errorf("%w", err)
	}
	return o, nil
}

// srvURI returns the URL that the library looks up.
func (c *config) srvURI() string {
	query := url.Values{}
	maps.Copy(query, c.tls)
	for name, value := range map[string]string{"authSource": c.authSource, "authMechanism": c.authMechanism} {
		if value != "" {
			query.Set(name, value)
		}
	}
	u := url.URL{Scheme: srvScheme, Host: c.servers[0], Path: "/", RawQuery: query.Encode()}
	switch {
	case c.password != "":
		u.User = url.UserPassword(c.user, c.password)
	case c.user != "":
		u.User = url.User(c.user)
	}
	return u.String()
}

// members returns the number of members that a commit waits for; 0: the majority.
func (c *config) members() int {
	n, err := strconv.Atoi(c.w)
	if err != nil {
		return 0
	}
	return n
}

func (c *config) writeConcern() *writeconcern.WriteConcern {
	if n := c.members(); n > 0 {
		return &writeconcern.WriteConcern{W: n}
	}
	return writeconcern.Majority()
}

// concern returns the read concern of reads outside a transaction. Servers before 5.0 do not know snapshot there. A
// majority may not have writes that were acknowledged with a lower write concern yet, so these are read locally.
func (c *config) concern() string {
	switch {
	case c.w != wMajority:
		return local
	case c.readConcern == snapshot:
		return majority
	}
	return c.readConcern
}

// sessionOptions returns the options of a session whose transactions have a read concern.
func (c *config) sessionOptions(readConcern string) *options.SessionOptionsBuilder {
	return options.Session().SetCausalConsistency(true).SetDefaultTransactionOptions(
		options.Transaction().SetReadConcern(&readconcern.ReadConcern{Level: readConcern}).SetWriteConcern(c.writeConcern()))
}

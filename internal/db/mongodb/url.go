package mongodb

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"stroppy/internal/db/address"
)

const (
	// defaultTimeout is longer than an election of a replica set whose election time-out is
	// short, so that most commits which it interrupts are answered by the next primary.
	defaultTimeout = 5 * time.Second
	// defaultDatabase is where a URL that names no database has its collections.
	defaultDatabase = "stroppy"
	// wMajority is the write concern that no fail-over takes back.
	wMajority = "majority"
	// maxW is the most members of a replica set with a vote
	// (https://www.mongodb.com/docs/v4.2/reference/limits/).
	maxW = 7
	// heartbeat is how often each server is asked what it is. The library's own time, 10 s,
	// would be the outage that a silent server makes.
	heartbeat = time.Second
	// connectTimeout bounds a connection and each heartbeat.
	connectTimeout = 2 * time.Second
)

type config struct {
	servers        []string // host:port
	user, password string
	database       string
	authSource     string
	replicaSet     string
	direct         bool // the server that is named alone, whatever it is
	timeout        time.Duration
	w              string // of a commit: majority, or a number of members
	readConcern    string // of a transaction at the default isolation
	secondary      bool   // readPreference=secondary: transactions that only read ask a secondary
	tls            url.Values
	via            detour // where servers are reached that are not reached by their names
}

// detour has the addresses at which servers are reached, by the HOST:PORT that the replica set
// calls them. It is the library's Dialer.
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

// style is how a MongoDB URL is written; 27017 is mongod's and mongos's port.
var style = address.Style{Product: "MongoDB", Server: "server", Port: "27017", Form: "mongodb://[USER:PASSWORD@]HOST:PORT,HOST:PORT[/DATABASE]"}

// parseURL reads mongodb://[user:password@]h1[:27017],h2[/database][?…]. No error repeats
// the password.
func parseURL(text string) (config, error) {
	c := config{database: defaultDatabase, timeout: defaultTimeout, w: wMajority, readConcern: snapshot, tls: url.Values{}}
	rest, ok := strings.CutPrefix(text, "mongodb://")
	if !ok {
		return c, errors.New("read the database URL: it does not begin with mongodb://")
	}
	keep := func(name string) address.Option {
		return func(value string) error {
			c.tls.Set(name, value)
			return nil
		}
	}
	u, err := style.Parse(rest, address.Options{
		"authSource": address.Text(&c.authSource), "replicaSet": address.Text(&c.replicaSet),
		"directConnection": address.Choice(&c.direct, "false", "true"),
		"timeout":          address.Time(&c.timeout, time.Millisecond),
		"w":                readW(&c.w),
		"readConcernLevel": address.Word(&c.readConcern, snapshot, majority, local),
		"via":              readVia(&c.via),
		"readPreference":   address.Choice(&c.secondary, "primary", "secondary"),
		"tls":              keep("tls"), "tlsCAFile": keep("tlsCAFile"), "tlsCertificateKeyFile": keep("tlsCertificateKeyFile"), "tlsInsecure": keep("tlsInsecure"),
	})
	c.servers, c.user, c.password = u.Servers, u.User, u.Password
	if u.Path != "" {
		c.database = u.Path
	}
	switch {
	case err != nil:
		return c, err
	case u.Account && (c.user == "" || c.password == ""):
		return c, style.Errorf("before the @ stand a user and a password, user:password@")
	case strings.ContainsAny(c.database, `/\. "$*<>:|?`):
		return c, style.Errorf("%q is no name of a database", c.database)
	case c.direct && len(c.servers) > 1:
		return c, style.Errorf("directConnection=true is for one server, and %d are named", len(c.servers))
	}
	return c, nil
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

// options are the library's. Commands outside a transaction that read carry the read
// concern of the client, and those that write its write concern.
func (c *config) options() (*options.ClientOptions, error) {
	o := options.Client()
	if len(c.tls) > 0 { // of which the library reads the files
		o.ApplyURI("mongodb://unused/?" + c.tls.Encode())
	}
	o.SetHosts(c.servers).SetDirect(c.direct).SetAppName("stroppy").
		SetConnectTimeout(connectTimeout).SetHeartbeatInterval(heartbeat).SetServerSelectionTimeout(c.timeout).
		SetMaxPoolSize(0).SetMaxConnecting(16).SetRetryReads(false)
	if len(c.via) > 0 {
		o.SetDialer(c.via)
	}
	if c.replicaSet != "" {
		o.SetReplicaSet(c.replicaSet)
	}
	if c.user != "" {
		o.SetAuth(options.Credential{Username: c.user, Password: c.password, AuthSource: c.authSource})
	}
	if err := o.Validate(); err != nil {
		return nil, style.Errorf("%w", err)
	}
	return o, nil
}

// members is how many members of the replica set a commit waits for; 0: the majority.
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

// concern is what a read outside a transaction is to have: from there snapshot is not known
// to servers before 5.0. What a write concern below majority has acknowledged, a majority
// need not have yet, so that it is read where it is.
func (c *config) concern() string {
	switch {
	case c.w != wMajority:
		return local
	case c.readConcern == snapshot:
		return majority
	}
	return c.readConcern
}

// sessionOptions are those of a session whose transactions have a read concern.
func (c *config) sessionOptions(readConcern string) *options.SessionOptionsBuilder {
	return options.Session().SetCausalConsistency(true).SetDefaultTransactionOptions(
		options.Transaction().SetReadConcern(&readconcern.ReadConcern{Level: readConcern}).SetWriteConcern(c.writeConcern()))
}

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
	servers        []string // host:port
	user, password string
	database       string
	authSource     string
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

// parseURL reads mongodb://[user:password@]h1[:27017],h2[/database][?…]. No error repeats the password.
func parseURL(text string) (config, error) {
	c := config{database: defaultDatabase, timeout: defaultTimeout, w: wMajority, readConcern: snapshot, tls: url.Values{}}
	keep := func(name string) address.Option {
		return func(value string) error {
			c.tls.Set(name, value)
			return nil
		}
	}
	u, err := style.ParseURL(text, address.Options{
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

// options returns the library's options. Commands outside a transaction carry the client's read concern or write
// concern.
func (c *config) options() (*options.ClientOptions, error) {
	o := options.Client()
	if len(c.tls) > 0 { // the library reads their files
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

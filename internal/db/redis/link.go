package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// probeTimeout is the most that a frozen server costs a fail-over.
const probeTimeout = time.Second

const opConnect = "connect"

// link is one connection to one server, and never another: WATCH belongs to the
// connection, and on a new one the library would commit what nobody compared.
type link struct {
	node   string
	client *goredis.Client
	conn   *goredis.Conn
	wire   *watched
}

// watched is the connection under the library. It remembers whether anything was
// written, so that a commit that never left is known not to have been applied.
type watched struct {
	net.Conn
	wrote bool
}

func (w *watched) Write(b []byte) (int, error) {
	n, err := w.Conn.Write(b)
	w.wrote = w.wrote || n > 0
	return n, err
}

// dial connects to a server, which must be the primary unless any may be read.
func dial(ctx context.Context, c *config, node string) (*link, error) {
	if err := ctx.Err(); err != nil {
		return nil, unreachable(node, err)
	}
	ctx, cancel := context.WithTimeout(ctx, min(probeTimeout, c.timeout))
	defer cancel()
	plain, err := connection(ctx, c, node)
	if err != nil {
		return nil, err
	}
	l := &link{node: node, wire: &watched{Conn: plain}}
	handed, limit := false, c.timeout
	if c.wait > 0 {
		limit += c.waitFor
	}
	l.client = goredis.NewClient(&goredis.Options{
		Addr: node, Username: c.user, Password: c.password, DB: c.database,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			if handed { // the library asks for another connection
				return nil, errors.New("the connection is gone")
			}
			handed = true
			return l.wire, nil
		},
		// One try and no more: a second EVALSHA of a commit whose answer was lost
		// would answer for the first.
		MaxRetries:            -1,
		DialerRetries:         1,
		PoolSize:              1,
		PipelinePoolSize:      -1,
		ConnMaxIdleTime:       -1,
		ReadTimeout:           limit,
		WriteTimeout:          limit,
		ContextTimeoutEnabled: true,
		// RESP 2 and no notifications, so that nothing arrives unasked.
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	l.conn = l.client.EphemeralConn()
	if err := l.inspect(ctx, c); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// connection opens a connection, with TLS if the URL asks for it.
func connection(ctx context.Context, c *config, node string) (net.Conn, error) {
	plain, err := wire.Dial(ctx, "tcp", node)
	if err != nil {
		return nil, unreachable(node, err)
	}
	if !c.tls {
		return plain, nil
	}
	host, _, _ := net.SplitHostPort(node) // parseURL has joined them
	settings := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if c.ca != "" {
		text, err := os.ReadFile(c.ca)
		if err != nil {
			plain.Close()
			return nil, db.Fatalf(opConnect, "read the certificates to trust: %w", err)
		}
		if settings.RootCAs = x509.NewCertPool(); !settings.RootCAs.AppendCertsFromPEM(text) {
			plain.Close()
			return nil, db.Fatalf(opConnect, "the file %s has no certificate in PEM", c.ca)
		}
	}
	secure := tls.Client(plain, settings)
	if err := secure.HandshakeContext(ctx); err != nil {
		plain.Close()
		if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
			return nil, db.Fatalf(opConnect, "the Redis server %s has a certificate that is not trusted: %w: name the one that signed it with ca=FILE", node, err)
		}
		return nil, unreachable(node, err)
	}
	return secure, nil
}

// inspect asks what the server is, and whether it can do what a session needs.
func (l *link) inspect(ctx context.Context, c *config) error {
	hello, role := goredis.NewMapStringInterfaceCmd(ctx, "hello"), goredis.NewCmd(ctx, "role")
	index, count := goredis.NewStatusCmd(ctx, "type", indexKey), goredis.NewStatusCmd(ctx, "type", countKey)
	questions := []goredis.Cmder{hello, role, index, count}
	if c.watch {
		// Without the right to MULTI what follows it would be executed one by one.
		questions = append(questions, goredis.NewStatusCmd(ctx, "multi"), goredis.NewStatusCmd(ctx, "discard"))
	}
	if err := cmp.Or(l.run(ctx, questions...), hello.Err()); err != nil {
		return unreachable(l.node, err)
	}
	if err := l.suits(hello.Val()); err != nil {
		return err
	}
	if err := role.Err(); err != nil {
		return unreachable(l.node, err)
	}
	if !c.stays(role) {
		return unavailable(opConnect, "the Redis server %s is a replica: promote it, or name its primary too", l.node)
	}
	for _, question := range questions[2:] {
		if err := question.Err(); err != nil {
			return unreachable(l.node, err)
		}
	}
	for key, found := range map[*goredis.StatusCmd]string{index: "zset", count: "string"} {
		if kind := key.Val(); kind != found && kind != "none" {
			return db.Fatalf(opConnect, "the Redis server %s has a key %v of type %s: %s", l.node, key.Args()[1], kind, foreign)
		}
	}
	return nil
}

// suits refuses what is no server for this driver, by its answer to HELLO:
// https://redis.io/docs/latest/commands/hello/.
func (l *link) suits(hello map[string]any) error {
	switch hello["mode"] {
	case "cluster":
		return db.Fatalf(opConnect, "the Redis server %s is a node of a Redis Cluster: %s", l.node, noCluster)
	case "sentinel":
		return db.Fatalf(opConnect, "the Redis server %s is a Sentinel: name the servers that it watches", l.node)
	}
	version, _ := hello["version"].(string)
	major, _, _ := strings.Cut(version, ".")
	if number, err := strconv.Atoi(major); err != nil || number < 7 {
		return db.Fatalf(opConnect, "the Redis server %s is of version %q: the driver needs 7.0 or later, whose scripts are refused before they begin", l.node, version)
	}
	return nil
}

// stays reports by an answer to ROLE whether the server may be read yet.
func (c *config) stays(role *goredis.Cmd) bool {
	answer, _ := role.Val().([]any)
	return c.any || len(answer) > 0 && answer[0] == "master"
}

// run sends commands together and reads their answers, one a command. Its error
// is of the connection, refusals to let us in among them; what the server answers
// to each command is in the command.
func (l *link) run(ctx context.Context, commands ...goredis.Cmder) error {
	pipe := l.conn.Pipeline()
	for _, c := range commands {
		_ = pipe.Process(ctx, c) // only queues it
	}
	_, err := pipe.Exec(ctx) // the first error, be it an answer to a command or not
	if err == nil || !answered(err) {
		return err
	}
	marked := false
	for _, c := range commands {
		if !answered(c.Err()) {
			return c.Err()
		}
		marked = marked || c.Err() != nil
	}
	if !marked {
		return err // the handshake was refused, which marks no command
	}
	return nil
}

// answered reports whether an error, or none, is what the server said.
func answered(err error) bool {
	_, ok := errors.AsType[goredis.Error](err)
	return err == nil || ok
}

// close drops the connection, whatever state it is in: there is nothing to save.
func (l *link) close() {
	_ = l.conn.Close()
	_ = l.client.Close()
	_ = l.wire.Close()
}

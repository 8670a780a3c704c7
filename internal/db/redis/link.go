package redis

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// probeTimeout is the longest delay of a fail-over by a frozen server.
const probeTimeout = time.Second

const opConnect = "connect"

// link is one connection to one server, and never reconnects. WATCH belongs to the connection. On a new connection the
// library would commit without the comparison.
type link struct {
	node   string
	client *goredis.Client
	conn   *goredis.Conn
	wire   *watched
	closed func() // is called when the link ends; may be nil

	replicas int // replicas that had all data of the primary at the time of connecting
}

// watched is the connection under the library. It records whether anything was written. So a commit that was never sent
// is known as not applied.
type watched struct {
	net.Conn
	wrote bool
}

func (w *watched) Write(b []byte) (int, error) {
	n, err := w.Conn.Write(b)
	w.wrote = w.wrote || n > 0
	return n, err
}

// dial connects to a server. It must be the primary, unless the configuration allows reads from any server.
func dial(ctx context.Context, c *config, node string) (*link, error) {
	if err := ctx.Err(); err != nil {
		return nil, unreachable(node, err)
	}
	ctx, cancel := context.WithTimeout(ctx, min(probeTimeout, c.timeout))
	defer cancel()
	limit := c.timeout
	if c.wait > 0 {
		limit += c.waitFor
	}
	l, err := attach(ctx, c, goredis.Options{Addr: node, Username: c.user, Password: c.password, DB: c.database, ReadTimeout: limit})
	if err != nil {
		return nil, err
	}
	if err := l.inspect(ctx, c); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// attach opens a connection to the server of o, and completes o.
func attach(ctx context.Context, c *config, o goredis.Options) (*link, error) {
	plain, err := connection(ctx, c, o.Addr)
	if err != nil {
		return nil, err
	}
	l, handed := &link{node: o.Addr, wire: &watched{Conn: plain}}, false
	o.Dialer = func(context.Context, string, string) (net.Conn, error) {
		if handed { // the library asks for another connection
			return nil, errors.New("the connection is gone")
		}
		handed = true
		return l.wire, nil
	}
	// Only one try. If the answer to a commit is lost, a second EVALSHA would return its own answer instead.
	o.MaxRetries, o.DialerRetries = -1, 1
	o.PoolSize, o.PipelinePoolSize, o.ConnMaxIdleTime = 1, -1, -1
	o.WriteTimeout, o.ContextTimeoutEnabled = o.ReadTimeout, true
	// RESP 2 and no notifications, so that the server sends only answers.
	o.Protocol, o.DisableIdentity = 2, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	l.client = goredis.NewClient(&o)
	l.conn = l.client.EphemeralConn()
	return l, nil
}

// connection opens a connection. It uses TLS if the URL requires it.
func connection(ctx context.Context, c *config, node string) (net.Conn, error) {
	network := "tcp"
	if strings.HasPrefix(node, "/") {
		network = "unix"
	}
	dial := func(ctx context.Context) (net.Conn, error) { return wire.Dial(ctx, network, node) }
	var conn net.Conn
	var err error
	if c.tls {
		tls := wire.Handshake{Dial: dial, Config: c.secure, Server: node, Question: "PING\r\n", End: '\n'} // any server answers with a line
		conn, err = tls.Connect(ctx)
	} else {
		conn, err = dial(ctx)
	}
	switch {
	case err == nil:
		return conn, nil
	case wire.AnswersPlain(err):
		return nil, db.Fatalf(opConnect, "%w", db.MessageError{Text: "the Redis server " + node + ": " + lacksTLS, Cause: err})
	}
	return nil, unreachable(node, err)
}

// inURL states how a URL avoids a refusal.
var inURL = map[wire.Refusal]string{wire.Untrusted: "ca=FILE", wire.WrongHost: "or write insecure=true", wire.NeedsCertificate: "cert=FILE&key=FILE"}

// lacksTLS is the message about a server that answers only without TLS.
var lacksTLS = wire.LacksTLS.Text("", "redis:// in place of rediss://")

// lacksTLS returns the error of opening servers with TLS that failed with err. A server without TLS may end the
// connection at the first byte of TLS. If such a server answers PING without TLS, the error explains it.
func (c *config) lacksTLS(ctx context.Context, err error) error {
	if db.ClassOf(err) != db.Unavailable {
		return err
	}
	for _, node := range c.nodes {
		if answersPlain(ctx, node) {
			return db.Fatalf("open Redis", "%w", db.MessageError{Text: "the Redis server " + node + ": " + lacksTLS, Cause: err})
		}
	}
	return err
}

// answersPlain reports whether the server answers PING without TLS. Any server of the protocol answers it with a line,
// even if it requires a password.
func answersPlain(ctx context.Context, node string) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", node)
	if err != nil {
		return false
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	answer := make([]byte, 1)
	if conn.SetDeadline(deadline) != nil {
		return false
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	_, err = io.ReadFull(conn, answer)
	return err == nil && (answer[0] == '+' || answer[0] == '-')
}

// inspect asks the server for its role and version, and checks the rights that a session needs.
func (l *link) inspect(ctx context.Context, c *config) error {
	hello, role := goredis.NewMapStringInterfaceCmd(ctx, "hello"), goredis.NewCmd(ctx, "role")
	index, count := goredis.NewStatusCmd(ctx, "type", indexKey), goredis.NewStatusCmd(ctx, "type", countKey)
	questions := []goredis.Cmder{hello, role, index, count}
	if c.watch {
		// Without the right to MULTI the commands that follow would be executed one by one.
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
	l.replicas = replicasOf(role)
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

// suits returns an error if this driver cannot use the server, by its answer to HELLO:
// https://redis.io/docs/latest/commands/hello/.
func (l *link) suits(hello map[string]any) error {
	switch hello["mode"] {
	case "cluster":
		return db.Fatalf(opConnect, "the Redis server %s is a node of a Redis Cluster: %s", l.node, noCluster)
	case "sentinel":
		return db.Fatalf(opConnect, "the Redis server %s is a Sentinel: add sentinel=NAME to the URL, with the name under which it watches the primary", l.node)
	}
	version, _ := hello["version"].(string)
	major, _, _ := strings.Cut(version, ".")
	if number, err := strconv.Atoi(major); err != nil || number < 7 {
		return db.Fatalf(opConnect, "the Redis server %s is of version %q: the driver needs 7.0 or later, whose scripts are refused before they begin", l.node, version)
	}
	return nil
}

// stays reports, by an answer to ROLE, whether the server may still be read.
func (c *config) stays(role *goredis.Cmd) bool {
	answer, _ := role.Val().([]any)
	return c.any || len(answer) > 0 && answer[0] == "master"
}

// replicasOf counts the replicas that have all data, by a primary's answer to ROLE:
// https://redis.io/docs/latest/commands/role/.
func replicasOf(role *goredis.Cmd) int {
	answer, _ := role.Val().([]any)
	if len(answer) < 3 {
		return 0
	}
	list, _ := answer[2].([]any)
	return len(list)
}

// run sends commands together and reads one answer for each. It returns only errors of the connection, including
// refusals to let the client in. The server's answer to each command is in the command.
func (l *link) run(ctx context.Context, commands ...goredis.Cmder) error {
	pipe := l.conn.Pipeline()
	for _, c := range commands {
		_ = pipe.Process(ctx, c) // it only queues the command
	}
	_, err := pipe.Exec(ctx) // the first error, either an answer to a command or not
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
		return err // the handshake was refused, which sets no error in a command
	}
	return nil
}

// answered reports whether the server replied, with success or with an error.
func answered(err error) bool {
	_, ok := errors.AsType[goredis.Error](err)
	return err == nil || ok
}

// close closes the connection in any state, because there is nothing to save.
func (l *link) close() {
	if l.closed != nil {
		l.closed()
	}
	_ = l.conn.Close()
	_ = l.client.Close()
	_ = l.wire.Close()
}

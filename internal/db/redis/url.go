package redis

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/db/address"
)

const (
	defaultTimeout     = 5 * time.Second
	defaultWaitTimeout = time.Second
	mostReplicas       = 100
)

// config is what a URL says.
type config struct {
	nodes    []string // host:port
	user     string   // empty: Redis's user default
	password string
	tls      bool
	ca       string // a file of certificates, PEM; empty: those of the system
	database int
	watch    bool          // commit=watch
	timeout  time.Duration // of one call
	wait     int           // replicas that must acknowledge a commit
	waitFor  time.Duration // how long they may take
	any      bool          // read=any: the one server is read whatever its role is, and never written
}

// parameters are the names that the URL's query knows.
var parameters = []string{"ca", "commit", "read", "timeout", "wait", "wait_timeout"}

// style is how a Redis URL is written.
var style = address.Style{Product: "Redis", Server: "server", Port: "6379", Form: "redis://[USER:PASSWORD@]HOST:PORT,HOST:PORT/DB"}

// parseURL reads redis://[[user]:password@]h1[:6379],h2/DB[?…]; rediss:// is the
// same over TLS. No error repeats the password.
func parseURL(text string) (config, error) {
	c := config{timeout: defaultTimeout, waitFor: defaultWaitTimeout}
	scheme, rest, ok := strings.Cut(text, "://")
	if c.tls = scheme == "rediss"; !ok || scheme != "redis" && !c.tls {
		return c, errors.New("read the database URL: it begins neither with redis:// nor with rediss://")
	}
	err := style.Whole(rest)
	if err != nil {
		return c, err
	}
	rest, query, _ := strings.Cut(rest, "?")
	if strings.Contains(rest, "@") {
		if c.user, c.password, rest, err = style.Authority(rest); err != nil {
			return c, err
		}
		if c.password == "" {
			return c, style.Errorf("before the @ stands a password, with or without a user: user:password@ or :password@")
		}
	}
	servers, path, _ := strings.Cut(rest, "/")
	if c.nodes, err = style.Servers(servers); err != nil {
		return c, err
	}
	if path != "" {
		number, err := strconv.ParseUint(path, 10, 16)
		if err != nil {
			return c, style.Errorf("after the hosts stands the number of a database, as in /0")
		}
		c.database = int(number)
	}
	return c, c.query(query)
}

func (c *config) query(text string) error {
	values, err := style.Parameters(text, parameters)
	if err != nil {
		return err
	}
	if values.Has("commit") {
		switch value := values.Get("commit"); value {
		case "script":
		case "watch":
			c.watch = true
		default:
			return style.Errorf("commit=%s is neither script, the default, nor watch", value)
		}
	}
	if values.Has("wait") {
		value := values.Get("wait")
		number, err := strconv.ParseUint(value, 10, 16)
		if err != nil || number > mostReplicas {
			return style.Errorf("wait=%s is no number of replicas from 0 to %d", value, mostReplicas)
		}
		c.wait = int(number)
	}
	if values.Has("read") {
		switch value := values.Get("read"); {
		case value == "primary":
		case value != "any":
			return style.Errorf("read=%s is neither primary, the default, nor any", value)
		case len(c.nodes) > 1:
			return style.Errorf("read=any takes one server, for of several nobody would know which was read")
		case c.wait > 0:
			return style.Errorf("wait means nothing with read=any, which commits nothing")
		default:
			c.any = true
		}
	}
	if c.ca = values.Get("ca"); c.ca != "" && !c.tls {
		return style.Errorf("ca names certificates for TLS, and the URL does not begin with rediss://")
	}
	if values.Has("wait_timeout") && c.wait == 0 {
		return style.Errorf("wait_timeout means nothing without wait, the number of replicas to wait for")
	}
	// Redis counts WAIT's time in milliseconds, of which 0 means for ever.
	return errors.Join(
		style.Duration(values, "timeout", time.Millisecond, &c.timeout),
		style.Duration(values, "wait_timeout", time.Millisecond, &c.waitFor),
	)
}

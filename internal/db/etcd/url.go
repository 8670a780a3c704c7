package etcd

import (
	"errors"
	"strings"
	"time"

	"stroppy/internal/db/address"
)

// defaultTimeout is how long a call hangs that was sent to a leader which is then
// cut off from the others, and so the least that a client is out. By default an
// election takes one to two seconds (election-timeout 1000).
const defaultTimeout = time.Second

// config is what a URL says.
type config struct {
	nodes    []string // host:port
	user     string
	password string
	timeout  time.Duration // of one call; of a page of a scan pagePatience times that
	stale    bool          // reads=serializable
}

// style is how an etcd URL is written; 2379 is etcd's client port.
var style = address.Style{Product: "etcd", Server: "node", Port: "2379", Form: "etcd://[USER:PASSWORD@]HOST:PORT,HOST:PORT"}

// parseURL reads etcd://[user:password@]h1[:2379],h2,h3[?reads=…&timeout=…]. No
// error repeats the password.
func parseURL(text string) (config, error) {
	c := config{timeout: defaultTimeout}
	rest, ok := strings.CutPrefix(text, "etcd://")
	if !ok {
		return c, errors.New("read the database URL: it does not begin with etcd://")
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
		if c.user == "" || c.password == "" {
			return c, style.Errorf("before the @ stand a user and a password, user:password@")
		}
	}
	if c.nodes, err = style.Servers(strings.TrimSuffix(rest, "/")); err != nil {
		return c, err
	}
	values, err := style.Parameters(query, []string{"reads", "timeout"})
	if err != nil {
		return c, err
	}
	if values.Has("reads") {
		switch value := values.Get("reads"); value {
		case "linearizable":
		case "serializable":
			c.stale = true
		default:
			return c, style.Errorf("reads=%s is neither linearizable, the default, nor serializable, which may be stale", value)
		}
	}
	return c, style.Duration(values, "timeout", 1, &c.timeout)
}

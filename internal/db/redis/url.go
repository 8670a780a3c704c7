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

type config struct {
	nodes    []string // host:port, of Sentinels if sentinel is set
	sentinel string   // the name under which the Sentinels watch the primary
	user     string   // empty: Redis's user default
	password string
	tls      bool
	ca       string // a file of certificates, PEM; empty: the certificates of the system
	database int
	watch    bool          // commit=watch
	timeout  time.Duration // of one call
	wait     int           // replicas that must acknowledge a commit
	waitFor  time.Duration // how long they may take
	any      bool          // read=any: the one server is read whatever its role is, and never written
}

// style is the form of a Redis URL.
var style = address.Style{Product: "Redis", Server: "server", Port: "6379", Form: "redis://[USER:PASSWORD@]HOST:PORT,HOST:PORT/DB"}

// sentinelStyle is the form of a URL that names Sentinels.
var sentinelStyle = address.Style{Product: "Redis", Server: "Sentinel", Port: "26379", Form: "redis://[USER:PASSWORD@]HOST:PORT,HOST:PORT/DB?sentinel=NAME"}

// CheckURL returns the error of Open for a URL that is wrong by itself. It connects to nothing.
var CheckURL = address.Check(readURL)

// readURL is parseURL with the error of Open.
func readURL(url string) (config, error) { return address.Read("open Redis", url, parseURL) }

// parseURL reads redis://[[user]:password@]h1[:6379],h2/DB[?…]. rediss:// is the same over TLS. No error contains the
// password.
func parseURL(text string) (config, error) {
	c := config{timeout: defaultTimeout}
	scheme, rest, ok := strings.Cut(text, "://")
	if c.tls = scheme == "rediss"; !ok || scheme != "redis" && !c.tls {
		return c, errors.New("read the database URL: it begins neither with redis:// nor with rediss://")
	}
	style := style
	if _, query, _ := strings.Cut(rest, "?"); strings.Contains("&"+query, "&sentinel=") {
		style = sentinelStyle
	}
	u, err := style.Parse(rest, address.Options{
		"ca":     address.Text(&c.ca),
		"commit": address.Choice(&c.watch, "script", "watch"),
		"read":   address.Choice(&c.any, "primary", "any"),
		"sentinel": func(value string) error {
			if c.sentinel = value; value == "" {
				return errors.New("names no primary: write the name under which the Sentinels watch it, such as mymaster")
			}
			return nil
		},
		"timeout": address.Time(&c.timeout, time.Millisecond),
		"wait":    address.Number(&c.wait, "number of replicas", 0, mostReplicas),
		// Redis counts WAIT's time in milliseconds, and 0 means forever.
		"wait_timeout": address.Time(&c.waitFor, time.Millisecond),
	})
	if err != nil {
		return c, err
	}
	c.nodes, c.user, c.password = u.Servers, u.User, u.Password
	if u.Path != "" {
		number, err := strconv.ParseUint(u.Path, 10, 16)
		if err != nil {
			return c, style.Errorf("after the hosts stands the number of a database, as in /0")
		}
		c.database = int(number)
	}
	switch {
	case u.Account && c.password == "":
		return c, style.Errorf("before the @ stands a password, with or without a user: user:password@ or :password@")
	case c.any && c.sentinel != "":
		return c, style.Errorf("read=any names the server itself, and sentinel names a primary that the Sentinels locate: use only one of them")
	case c.any && len(c.nodes) > 1:
		return c, style.Errorf("read=any takes one server: with several, it is not known which one was read")
	case c.any && c.wait > 0:
		return c, style.Errorf("wait means nothing with read=any, which commits nothing")
	case c.ca != "" && !c.tls:
		return c, style.Errorf("ca names certificates for TLS, and the URL does not begin with rediss://")
	case c.waitFor > 0 && c.wait == 0:
		return c, style.Errorf("wait_timeout means nothing without wait, the number of replicas to wait for")
	case c.waitFor == 0:
		c.waitFor = defaultWaitTimeout
	}
	return c, nil
}

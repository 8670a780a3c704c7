package redis

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	defaultPort        = "6379"
	defaultTimeout     = 5 * time.Second
	defaultWaitTimeout = time.Second
	longestTimeout     = time.Hour
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

// parseURL reads redis://[[user]:password@]h1[:6379],h2/DB[?…]; rediss:// is the
// same over TLS. net/url does not take several hosts. No error repeats the
// password.
func parseURL(text string) (config, error) {
	c := config{timeout: defaultTimeout, waitFor: defaultWaitTimeout}
	scheme, rest, ok := strings.Cut(text, "://")
	if c.tls = scheme == "rediss"; !ok || scheme != "redis" && !c.tls {
		return c, errors.New("read the database URL: it begins neither with redis:// nor with rediss://")
	}
	rest, query, _ := strings.Cut(rest, "?")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if err := c.credentials(rest[:at]); err != nil {
			return c, err
		}
		rest = rest[at+1:]
	}
	hosts, path, _ := strings.Cut(rest, "/")
	for host := range strings.SplitSeq(hosts, ",") {
		node, err := address(host)
		if err != nil {
			return c, err
		}
		if slices.Contains(c.nodes, node) {
			return c, fmt.Errorf("read the Redis URL: the server %s is named twice", node)
		}
		c.nodes = append(c.nodes, node)
	}
	if path != "" {
		number, err := strconv.ParseUint(path, 10, 16)
		if err != nil {
			return c, fmt.Errorf("read the Redis URL: %q is no database: after the hosts stands its number, as in /0", path)
		}
		c.database = int(number)
	}
	return c, c.query(query)
}

func (c *config) credentials(userinfo string) error {
	user, password, given := strings.Cut(userinfo, ":")
	var errUser, errPassword error
	c.user, errUser = url.PathUnescape(user)
	c.password, errPassword = url.PathUnescape(password)
	switch {
	case errUser != nil || errPassword != nil:
		return errors.New("read the Redis URL: the user or the password has a % that begins no escape: write %25 for a %")
	case !given || c.password == "":
		return errors.New("read the Redis URL: before the @ stands a password, with or without a user: user:password@ or :password@")
	}
	return nil
}

// address completes a host with the default port.
func address(text string) (string, error) {
	host, port := text, defaultPort
	if strings.HasSuffix(text, "]") || !strings.Contains(text, ":") {
		host = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	} else {
		var err error
		if host, port, err = net.SplitHostPort(text); err != nil {
			return "", fmt.Errorf("read the Redis URL: the server %q is no host:port; an IPv6 address stands in [brackets]", text)
		}
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return "", fmt.Errorf("read the Redis URL: the port of the server %q is no number from 1 to 65535", text)
	}
	if host == "" || strings.ContainsAny(host, "/@[] ") {
		return "", fmt.Errorf("read the Redis URL: %q is no host: write redis://host1:%s,host2/0", text, defaultPort)
	}
	return net.JoinHostPort(host, port), nil
}

func (c *config) query(text string) error {
	values, err := url.ParseQuery(text)
	if err != nil {
		return fmt.Errorf("read the Redis URL: its query %q is malformed: %w", text, err)
	}
	for name, given := range values {
		if !slices.Contains(parameters, name) {
			return fmt.Errorf("read the Redis URL: no parameter is called %q: the known ones are %s", name, strings.Join(parameters, ", "))
		}
		if len(given) > 1 {
			return fmt.Errorf("read the Redis URL: the parameter %s is given %d times", name, len(given))
		}
	}
	if values.Has("commit") {
		switch value := values.Get("commit"); value {
		case "script":
		case "watch":
			c.watch = true
		default:
			return fmt.Errorf("read the Redis URL: commit=%s is neither script, the default, nor watch", value)
		}
	}
	if values.Has("wait") {
		value := values.Get("wait")
		number, err := strconv.ParseUint(value, 10, 16)
		if err != nil || number > mostReplicas {
			return fmt.Errorf("read the Redis URL: wait=%s is no number of replicas from 0 to %d", value, mostReplicas)
		}
		c.wait = int(number)
	}
	if values.Has("read") {
		switch value := values.Get("read"); {
		case value == "primary":
		case value != "any":
			return fmt.Errorf("read the Redis URL: read=%s is neither primary, the default, nor any", value)
		case len(c.nodes) > 1:
			return errors.New("read the Redis URL: read=any takes one server, for of several nobody would know which was read")
		case c.wait > 0:
			return errors.New("read the Redis URL: wait means nothing with read=any, which commits nothing")
		default:
			c.any = true
		}
	}
	if c.ca = values.Get("ca"); c.ca != "" && !c.tls {
		return errors.New("read the Redis URL: ca names certificates for TLS, and the URL does not begin with rediss://")
	}
	if values.Has("wait_timeout") && c.wait == 0 {
		return errors.New("read the Redis URL: wait_timeout means nothing without wait, the number of replicas to wait for")
	}
	return errors.Join(
		duration(values, "timeout", &c.timeout),
		duration(values, "wait_timeout", &c.waitFor),
	)
}

// duration reads a parameter that is a time, if it is given. Redis counts WAIT's
// in milliseconds, of which 0 means for ever.
func duration(values url.Values, name string, to *time.Duration) error {
	if !values.Has(name) {
		return nil
	}
	value := values.Get(name)
	d, err := time.ParseDuration(value)
	if err != nil || d < time.Millisecond || d > longestTimeout {
		return fmt.Errorf("read the Redis URL: %s=%s is no time from 1ms to %v, such as 3s", name, value, longestTimeout)
	}
	*to = d
	return nil
}

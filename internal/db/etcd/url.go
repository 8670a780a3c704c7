package etcd

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
	defaultPort    = "2379"          // etcd's client port
	defaultTimeout = 2 * time.Second // a call to a member that is cut off from the others hangs for so long
	longestTimeout = time.Hour
)

// config is what a URL says.
type config struct {
	nodes    []string // host:port
	user     string
	password string
	timeout  time.Duration // of one call
	stale    bool          // reads=serializable
}

// parameters are the names that the URL's query knows.
var parameters = []string{"reads", "timeout"}

// parseURL reads etcd://[user:password@]h1[:2379],h2,h3[?reads=…&timeout=…].
// net/url does not take several hosts. No error repeats the password.
func parseURL(text string) (config, error) {
	c := config{timeout: defaultTimeout}
	rest, ok := strings.CutPrefix(text, "etcd://")
	if !ok {
		return c, errors.New("read the database URL: it does not begin with etcd://")
	}
	rest, query, _ := strings.Cut(rest, "?")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if err := c.credentials(rest[:at]); err != nil {
			return c, err
		}
		rest = rest[at+1:]
	}
	rest = strings.TrimSuffix(rest, "/")
	for host := range strings.SplitSeq(rest, ",") {
		node, err := address(host)
		if err != nil {
			return c, err
		}
		if slices.Contains(c.nodes, node) {
			return c, fmt.Errorf("read the etcd URL: the node %s is named twice", node)
		}
		c.nodes = append(c.nodes, node)
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
		return errors.New("read the etcd URL: the user or the password has a % that begins no escape: write %25 for a %")
	case c.user == "" || !given || c.password == "":
		return errors.New("read the etcd URL: before the @ stand a user and a password, user:password@")
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
			return "", fmt.Errorf("read the etcd URL: the node %q is no host:port; an IPv6 address stands in [brackets]", text)
		}
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return "", fmt.Errorf("read the etcd URL: the port of the node %q is no number from 1 to 65535", text)
	}
	if host == "" || strings.ContainsAny(host, "/@[] ") {
		return "", fmt.Errorf("read the etcd URL: %q is no host: write etcd://host1:%s,host2,host3", text, defaultPort)
	}
	return net.JoinHostPort(host, port), nil
}

func (c *config) query(text string) error {
	values, err := url.ParseQuery(text)
	if err != nil {
		return fmt.Errorf("read the etcd URL: its query %q is malformed: %w", text, err)
	}
	for name, given := range values {
		if !slices.Contains(parameters, name) {
			return fmt.Errorf("read the etcd URL: no parameter is called %q: the known ones are %s", name, strings.Join(parameters, ", "))
		}
		if len(given) > 1 {
			return fmt.Errorf("read the etcd URL: the parameter %s is given %d times", name, len(given))
		}
	}
	if values.Has("timeout") {
		value := values.Get("timeout")
		if c.timeout, err = time.ParseDuration(value); err != nil || c.timeout <= 0 || c.timeout > longestTimeout {
			return fmt.Errorf("read the etcd URL: timeout=%s is no time from 1ns to %v, such as 3s", value, longestTimeout)
		}
	}
	if values.Has("reads") {
		switch value := values.Get("reads"); value {
		case "linearizable":
		case "serializable":
			c.stale = true
		default:
			return fmt.Errorf("read the etcd URL: reads=%s is neither linearizable, the default, nor serializable, which may be stale", value)
		}
	}
	return nil
}

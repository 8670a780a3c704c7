package mysql

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	client "github.com/go-sql-driver/mysql"

	"stroppy/internal/db"
	addresses "stroppy/internal/db/address"
)

const (
	scheme         = "mysql://"
	connectTimeout = 5 * time.Second // of a URL that names none
	// answerTimeout is how long a transaction waits for an answer if the URL does
	// not say, so that a frozen server does not hang a client for ever.
	answerTimeout = 10 * time.Second
	usualPort     = "3306"
)

// unescaped says how a URL is written.
var unescaped = &addresses.UnescapedError{Form: scheme + "USER:PASSWORD@HOST:PORT/DATABASE"}

// address is what a URL says.
type address struct {
	hosts   []*client.Config // one a host, alike but for the address
	connect time.Duration    // the limit of one attempt to connect
	answer  time.Duration    // how long a transaction waits for an answer
	spread  bool             // sessions begin with different hosts
}

// parameters of the client library that a URL may name. All others of the
// library's would change what this driver relies on, such as multiStatements, or
// let a server read this machine's files.
var parameters = []string{"allowCleartextPasswords", "compress", "tls"}

// ours are the URL's parameters that this driver takes itself.
var ours = []string{"answer_timeout", "spread", "timeout"}

// settings are the session variables that this driver's statements rely on, as
// https://mariadb.com/docs/server/server-management/variables-and-modes/server-system-variables
// describes them. A URL may name others, and other values.
// Beside them is innodb_lock_wait_timeout: see lockWait.
var settings = map[string]string{
	"autocommit":         "1",
	"completion_type":    "'NO_CHAIN'",
	"foreign_key_checks": "1",
	"unique_checks":      "1",
	"sql_mode":           "'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
}

// lockWait is the seconds that a statement waits for a lock, of the time-out of its
// answer: the wait shall end with the server's own error, which says that the
// statement was surely not done, before this driver's patience does.
func lockWait(answer time.Duration) string {
	return strconv.Itoa(max(1, int((answer * 4 / 5).Seconds())))
}

// variable is the name of a session variable.
var variable = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// parseURL reads mysql://user:password@host:port,host2:port2/database?name=value.
// Nothing of a URL that cannot be read is in the error, for it may be a piece of
// the password.
func parseURL(text string) (*address, error) {
	const op = "read the database URL"
	rest, ok := strings.CutPrefix(text, scheme)
	if !ok {
		return nil, db.Fatalf(op, "it does not begin with %s", scheme)
	}
	authority, path, slash := strings.Cut(rest, "/")
	database, query, _ := strings.Cut(path, "?")
	if !slash || database == "" || strings.ContainsAny(authority, "?#") || strings.ContainsAny(database, "@/#") || hostsIn(query) {
		return nil, db.Fatalf(op, "%w", unescaped)
	}
	user, hosts, found := cutLast(authority, "@")
	if !found {
		return nil, db.Fatalf(op, "it names no user: %w", unescaped)
	}
	name, password, _ := strings.Cut(user, ":")
	config := client.NewConfig()
	for _, part := range []struct {
		to   *string
		text string
	}{{&config.User, name}, {&config.Passwd, password}, {&config.DBName, database}} {
		var err error
		if *part.to, err = url.PathUnescape(part.text); err != nil {
			return nil, db.Fatalf(op, "a %% in it is not followed by two digits: %w", unescaped)
		}
	}
	a := &address{connect: connectTimeout, answer: answerTimeout}
	config, err := a.parameters(config, query)
	if err != nil {
		return nil, &db.Error{Class: db.Fatal, Op: op, Err: err}
	}
	for host := range strings.SplitSeq(hosts, ",") {
		c := config.Clone()
		if c.Addr, err = hostPort(host); err != nil {
			return nil, &db.Error{Class: db.Fatal, Op: op, Err: err}
		}
		a.hosts = append(a.hosts, c)
	}
	return a, nil
}

// hostsIn says that the hosts and the database stand in what was taken for the
// parameters, because of a / and a ? in the password. A variable's value may have an @.
func hostsIn(query string) bool {
	_, after, found := strings.Cut(query, "@")
	return found && strings.Contains(after, "/")
}

// cutLast cuts around the last separator, because a password may hold one.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return "", s, false
}

// hostPort completes an address by the usual port. A host of colons is an IPv6
// address in brackets.
func hostPort(host string) (string, error) {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port, err = net.SplitHostPort(host + ":" + usualPort)
	}
	if err != nil || name == "" || port == "" {
		return "", fmt.Errorf("%q is no host: write host:port, with an IPv6 address in brackets", host)
	}
	return net.JoinHostPort(name, port), nil
}

// parameters adds to a configuration what a query says and what is always so.
func (a *address) parameters(base *client.Config, query string) (*client.Config, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("its parameters cannot be read: write them as name=value&name=value")
	}
	var library []string
	variables := maps.Clone(settings)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := values.Get(name)
		switch {
		case len(values[name]) > 1:
			return nil, fmt.Errorf("its parameter %s is given %d times: give it once", name, len(values[name]))
		case slices.Contains(ours, name):
			if err := a.set(name, value); err != nil {
				return nil, err
			}
		case slices.Contains(parameters, name):
			library = append(library, name+"="+url.QueryEscape(value))
		case variable.MatchString(name):
			variables[name] = value
		default:
			return nil, fmt.Errorf("no parameter is called %q: take one of %s, or a session variable of the server",
				name, strings.Join(slices.Concat(ours, parameters), ", "))
		}
	}
	if _, given := variables["innodb_lock_wait_timeout"]; !given {
		variables["innodb_lock_wait_timeout"] = lockWait(a.answer)
	}
	config, err := client.ParseDSN("/?" + strings.Join(library, "&"))
	if err != nil {
		return nil, fmt.Errorf("its parameters cannot be used: %w", err)
	}
	config.User, config.Passwd, config.DBName = base.User, base.Passwd, base.DBName
	config.Params = variables
	config.Logger = &client.NopLogger{} // what it would log is in the errors
	config.ClientFoundRows = true       // an UPDATE that changes nothing has found its row
	config.MultiStatements = true
	config.MaxAllowedPacket = 0 // asks the server for its own
	return config, nil
}

func (a *address) set(name, value string) (err error) {
	switch name {
	case "answer_timeout":
		return limit(name, value, &a.answer)
	case "timeout":
		return limit(name, value, &a.connect)
	case "spread":
		if value != "true" && value != "false" {
			return fmt.Errorf("its parameter spread is %q: take true or false", value)
		}
		a.spread = value == "true"
	}
	return nil
}

// limit reads a parameter that is a time.
func limit(name, value string, to *time.Duration) (err error) {
	if *to, err = time.ParseDuration(value); err != nil || *to <= 0 {
		return fmt.Errorf("its parameter %s is %q: give a duration such as 5s", name, value)
	}
	return nil
}

// where names the hosts, for errors.
func (a *address) where() string {
	names := make([]string, len(a.hosts))
	for i, c := range a.hosts {
		names[i] = c.Addr
	}
	return strings.Join(names, ",")
}

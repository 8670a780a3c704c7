package mysql

import (
	"errors"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	client "github.com/go-sql-driver/mysql"

	"stroppy/internal/db"
	addresses "stroppy/internal/db/address"
	"stroppy/internal/db/wire"
)

const scheme = "mysql://"

var style = addresses.Style{Product: "database", Server: "host", Port: "3306", Form: scheme + "USER:PASSWORD@HOST:PORT/DATABASE"}

type address struct {
	hosts   []*client.Config // one a host, alike but for the address
	connect time.Duration    // the limit of one attempt to connect
	answer  time.Duration    // how long a transaction waits for an answer
	spread  bool             // sessions begin with different hosts
}

// parameters lists the parameters of the client library that a URL may set. The others would break assumptions of
// this driver, such as multiStatements, or let a server read local files.
var parameters = []string{"allowCleartextPasswords", "compress", "tls"}

// settings holds the session variables that this driver's statements rely on; see
// https://mariadb.com/docs/server/server-management/variables-and-modes/server-system-variables. A URL may set
// others, and other values. innodb_lock_wait_timeout is set in configure.
var settings = map[string]string{
	"autocommit":         "1",
	"completion_type":    "'NO_CHAIN'",
	"foreign_key_checks": "1",
	"unique_checks":      "1",
	"sql_mode":           "'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
}

// variable matches the name of a session variable.
var variable = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// word matches a value that is text. It may be words with the characters that join them in names, such as BEFORE,
// READ-COMMITTED, ANSI,STRICT_ALL_TABLES and Europe/Berlin. It may also be the offset of a time zone, such as -05:00,
// or empty, which sql_mode allows.
var word = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_,:./-]*|[+-][0-9]{1,2}:[0-9]{2})?$`)

// bare lists words that SET accepts only without quotes, such as DEFAULT
// (https://dev.mysql.com/doc/refman/8.4/en/set-variable.html).
var bare = []string{"DEFAULT", "NULL", "TRUE", "FALSE", "ON", "OFF"}

// quoted returns a value for SET. Words are quoted, because some are reserved, such as BEFORE.
func quoted(value string) string {
	if !word.MatchString(value) || slices.Contains(bare, strings.ToUpper(value)) {
		return value
	}
	return "'" + value + "'"
}

// parseURL parses mysql://user:password@host:port,host2:port2/database?name=value.
func parseURL(text string) (*address, error) {
	a, err := readURL(text)
	if err != nil {
		return nil, &db.Error{Class: db.Fatal, Op: "read the database URL", Err: errors.Unwrap(err)}
	}
	return a, nil
}

func readURL(text string) (*address, error) {
	rest, ok := strings.CutPrefix(text, scheme)
	if !ok {
		return nil, style.Errorf("it does not begin with %s", scheme)
	}
	rest, query, _ := strings.Cut(rest, "?")
	unescaped := &addresses.UnescapedError{Form: style.Form}
	// A / and a ? in the password move the hosts and the database into the apparent parameters. A variable's value
	// may contain an @.
	if _, after, found := strings.Cut(query, "@"); found && strings.Contains(after, "/") {
		return nil, style.Errorf("%w", unescaped)
	}
	onSocket := strings.Contains("&"+query, "&socket=")
	if authority, path, _ := strings.Cut(rest, "/"); onSocket && strings.HasSuffix(authority, "@") {
		rest = authority + "localhost/" + path
	}
	u, err := style.Parse(rest, nil)
	if err != nil {
		return nil, err
	}
	database, err := url.PathUnescape(u.Path)
	switch {
	case !u.Account:
		return nil, style.Errorf("it names no user: %w", unescaped)
	case err != nil || u.Path == "" || strings.ContainsAny(u.Path, "/#"):
		return nil, style.Errorf("%w", unescaped)
	}
	a := &address{connect: wire.ConnectTimeout, answer: wire.AnswerTimeout}
	var t transport
	config, err := a.configure(query, &t)
	switch {
	case err != nil:
		return nil, err
	case onSocket && len(u.Servers) > 1:
		return nil, style.Errorf("socket is for one server, and %d are named", len(u.Servers))
	case onSocket && !strings.HasPrefix(t.socket, "/"):
		return nil, style.Errorf("socket names no path that begins with /")
	}
	config.User, config.Passwd, config.DBName = u.User, u.Password, database
	for _, host := range u.Servers {
		a.hosts = append(a.hosts, t.at(config, host))
	}
	return a, nil
}

// configure builds a configuration from the query and the constant settings, and reads the parameters of t.
func (a *address) configure(query string, t *transport) (*client.Config, error) {
	options := addresses.Options{
		"answer_timeout": addresses.Time(&a.answer, time.Millisecond),
		"timeout":        addresses.Time(&a.connect, time.Millisecond),
		"spread":         addresses.Choice(&a.spread, "false", "true"),
	}
	maps.Copy(options, t.options())
	library := url.Values{}
	for _, name := range parameters {
		options[name] = func(value string) error {
			library.Set(name, value)
			return nil
		}
	}
	variables := maps.Clone(settings)
	values, _ := url.ParseQuery(query) // Read has returned the same error
	for name := range values {
		if options[name] == nil && variable.MatchString(name) {
			options[name] = func(value string) error {
				variables[name] = quoted(value)
				return nil
			}
		}
	}
	if err := style.Read(query, options); err != nil {
		return nil, err
	}
	if _, given := variables["innodb_lock_wait_timeout"]; !given {
		// The wait must end with the server's own error, which shows that the statement was not done, before this
		// driver's deadline.
		variables["innodb_lock_wait_timeout"] = strconv.Itoa(max(1, int((a.answer * 4 / 5).Seconds())))
	}
	config, err := client.ParseDSN("/?" + library.Encode())
	if err != nil {
		return nil, style.Errorf("its parameters cannot be used: %w", err)
	}
	if err := t.apply(config, library.Get("tls")); err != nil {
		return nil, style.Errorf("%w", err)
	}
	config.Params = variables
	config.Logger = &client.NopLogger{} // what it would log is in the errors
	config.ClientFoundRows = true       // an UPDATE that changes nothing has found its row
	config.MultiStatements = true
	config.MaxAllowedPacket = 0 // asks the server for its own
	return config, nil
}

// where returns the hosts for errors.
func (a *address) where() string {
	names := make([]string, len(a.hosts))
	for i, c := range a.hosts {
		names[i] = c.Addr
	}
	return strings.Join(names, ",")
}

// Package address parses the URLs of databases with several servers, which net/url does not support:
// SCHEME://[user:password@]h1[:port],h2,h3[/…][?name=value]. No error contains a password, or a possible part
// of one that was split at a special character.
package address

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/spelling"
)

// Read returns the result of parse for a URL. The error is a *db.Error of op without a server's answer.
func Read[C any](op, url string, parse func(string) (C, error)) (C, error) {
	c, err := parse(url)
	if err != nil {
		return c, &db.Error{Class: db.Fatal, Op: op, Err: err}
	}
	return c, nil
}

// Check returns a function that returns the error of parse alone. It connects to nothing.
func Check[C any](parse func(url string) (C, error)) func(url string) error {
	return func(url string) error {
		_, err := parse(url)
		return err
	}
}

// Style describes the URLs of one database.
type Style struct {
	Product string // as its errors name it, such as etcd
	Server  string // what one of the servers is called there, such as node
	Port    string // of a server that names none
	Form    string // what to write, such as etcd://HOST:PORT,HOST:PORT
}

// Errorf returns an error about a URL that begins with the operation.
func (s *Style) Errorf(format string, args ...any) error {
	return fmt.Errorf("read the %s URL: %w", s.Product, fmt.Errorf(format, args...))
}

// UnescapedError reports an unescaped special character in a URL, so that the end of the name or password is
// not known. It contains no part of the URL. Its placeholders are in capitals, so that code that removes
// passwords from texts does not find one.
type UnescapedError struct {
	Form string // what to write, such as etcd://HOST:PORT,HOST:PORT
}

func (e *UnescapedError) Error() string {
	return "write " + e.Form + ", with each of / ? # @ % in USER or PASSWORD as %2F %3F %23 %40 %25"
}

// Unescaped reports whether a special character in the user or the password ended the servers early: an @
// follows the first / ? or #. An @ in a user or a password must be written as %40. rest is the text after
// SCHEME://.
func Unescaped(rest string) bool {
	end := strings.IndexAny(rest, "/?#")
	return end >= 0 && strings.Contains(rest[end:], "@")
}

// URL is the part of a URL between SCHEME:// and the parameters.
type URL struct {
	Account        bool // an @ stands before the servers
	User, Password string
	Servers        []string // host:port
	Path           string   // after the first /
}

// ParseURL parses a URL that begins as Form does.
func (s *Style) ParseURL(text string, options Options) (URL, error) {
	scheme, _, _ := strings.Cut(s.Form, "://")
	rest, ok := strings.CutPrefix(text, scheme+"://")
	if !ok {
		return URL{}, fmt.Errorf("read the database URL: it does not begin with %s://", scheme)
	}
	return s.Parse(rest, options)
}

// Parse parses the text after SCHEME:// and passes the parameters to options.
func (s *Style) Parse(text string, options Options) (u URL, err error) {
	if Unescaped(text) {
		return u, s.Errorf("%w", &UnescapedError{s.Form})
	}
	text, query, _ := strings.Cut(text, "?")
	servers, path, _ := strings.Cut(text, "/")
	u.Path = path
	if at := strings.LastIndexByte(servers, '@'); at >= 0 {
		u.Account = true
		u.User, u.Password, _ = strings.Cut(servers[:at], ":")
		for _, part := range []*string{&u.User, &u.Password} {
			if *part, err = url.PathUnescape(*part); err != nil {
				return u, s.Errorf("the user or the password has a %% that begins no escape: write %%25 for a %%")
			}
		}
		servers = servers[at+1:]
	}
	if u.Servers, err = s.servers(servers); err != nil {
		return u, err
	}
	return u, s.Read(query, options)
}

// servers parses a list of servers separated by commas, and adds the default port to each.
func (s *Style) servers(list string) ([]string, error) {
	var all []string
	for text := range strings.SplitSeq(list, ",") {
		server, err := s.complete(text)
		if err != nil {
			return nil, err
		}
		if slices.Contains(all, server) {
			return nil, s.Errorf("the %s %s is named twice", s.Server, server)
		}
		all = append(all, server)
	}
	return all, nil
}

func (s *Style) complete(text string) (string, error) {
	host, port := text, s.Port
	if strings.HasSuffix(text, "]") || !strings.Contains(text, ":") {
		host = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	} else {
		var err error
		if host, port, err = net.SplitHostPort(text); err != nil {
			name, _, _ := strings.Cut(text, ":") // what follows may be a password that has lost its @
			return "", s.Errorf("the %s %q is not host:port; write an IPv6 address in [brackets]", s.Server, name)
		}
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return "", s.Errorf("the port of the %s %q is no number from 1 to 65535", s.Server, host)
	}
	if host == "" || strings.ContainsAny(host, "/@[] ") {
		return "", s.Errorf("%q is no host: write %s", text, s.Form)
	}
	return net.JoinHostPort(host, port), nil
}

// Option parses the value of a parameter. Its error continues the sentence "name=value".
type Option func(value string) error

// Options holds the parameters that a URL may have.
type Options map[string]Option

// Read parses the text after the question mark. Names must be known and occur at most once.
func (s *Style) Read(query string, options Options) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return s.Errorf("its query is malformed: write name=value&name=value, with a %% in a value as %%25")
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		read, known := options[name]
		switch given := values[name]; {
		case !known:
			return s.Errorf("no parameter is called %q: %s", name, Known(name, "the known ones are", slices.Sorted(maps.Keys(options))))
		case len(given) > 1:
			return s.Errorf("the parameter %s is given %d times: give it once", name, len(given))
		default:
			if err := read(given[0]); err != nil {
				return s.Errorf("%s=%s %w", name, given[0], err)
			}
		}
	}
	return nil
}

// Known returns a clause with the known names, for an unknown one. are begins the list.
func Known(name, are string, known []string) string {
	all := are + " " + strings.Join(known, ", ")
	if near, found := spelling.Near(name, known); found {
		return "the nearest is " + near + ", and " + all
	}
	return all
}

// Text returns an option for any value.
func Text(to *string) Option {
	return func(value string) error {
		*to = value
		return nil
	}
}

// Time returns an option for a time from least to one hour.
func Time(to *time.Duration, least time.Duration) Option {
	const most = time.Hour
	return func(value string) error {
		d, err := time.ParseDuration(value)
		if err != nil || d < least || d > most {
			return fmt.Errorf("is no time from %v to %v, such as 3s", least, most)
		}
		*to = d
		return nil
	}
}

// Choice returns an option for one of two words; no is the default.
func Choice(to *bool, no, yes string) Option {
	return func(value string) error {
		if value != no && value != yes {
			return fmt.Errorf("is neither %s, the default, nor %s", no, yes)
		}
		*to = value == yes
		return nil
	}
}

// Word returns an option for one of the words in lower or upper case.
func Word(to *string, words ...string) Option {
	return func(value string) error {
		if *to = strings.ToLower(value); !slices.Contains(words, *to) {
			return fmt.Errorf("is not known: take one of %s", strings.Join(words, ", "))
		}
		return nil
	}
}

// Number returns an option for an integer from least to most; what names the thing that it counts.
func Number[T int | int64 | uint64](to *T, what string, least, most T) Option {
	return func(value string) error {
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil || n < uint64(least) || n > uint64(most) {
			return fmt.Errorf("is no %s from %d to %d", what, least, most)
		}
		*to = T(n)
		return nil
	}
}

// Share returns an option for a number from 0 to 1.
func Share(to *float64) Option {
	return func(value string) error {
		share, err := strconv.ParseFloat(value, 64)
		if err != nil || !(share >= 0 && share <= 1) {
			return errors.New("is no number from 0 to 1")
		}
		*to = share
		return nil
	}
}

// Package address reads the URLs of databases that name several servers, which
// net/url does not take: SCHEME://[user:password@]h1[:port],h2,h3[/…][?name=value].
// No error repeats a password, nor what may be a piece of one because a special
// character in it was taken for the end of the servers.
package address

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Longest is the longest time that a parameter may be.
const Longest = time.Hour

// Style is how the URLs of one database are written.
type Style struct {
	Product string // as its errors name it, such as etcd
	Server  string // what one of the servers is called there, such as node
	Port    string // of a server that names none
	Form    string // what to write, such as etcd://HOST:PORT,HOST:PORT
}

// Errorf is an error of a URL, which begins with what was being done.
func (s *Style) Errorf(format string, args ...any) error {
	return fmt.Errorf("read the %s URL: %w", s.Product, fmt.Errorf(format, args...))
}

// UnescapedError says that a special character stands in a URL as it is, so that
// nobody can tell where a name or password ends. Nothing of the URL is in it, and
// its placeholders are in capitals: whoever takes a password out of a text shall
// not find it in these words.
type UnescapedError struct {
	Form string // what to write, such as etcd://HOST:PORT,HOST:PORT
}

func (e *UnescapedError) Error() string {
	return "write " + e.Form + ", with each of / ? # @ % in USER or PASSWORD as %2F %3F %23 %40 %25"
}

// Unescaped says of what stands behind SCHEME:// that a special character of the
// user or the password ended the servers early: an @ follows the first / ? or #. An
// @ that belongs there is written as %40.
func Unescaped(rest string) bool {
	end := strings.IndexAny(rest, "/?#")
	return end >= 0 && strings.Contains(rest[end:], "@")
}

// Whole is an error if text, which stands behind SCHEME://, is Unescaped.
func (s *Style) Whole(text string) error {
	if Unescaped(text) {
		return s.Errorf("%w", &UnescapedError{s.Form})
	}
	return nil
}

// Authority takes what stands before the last @ of text, which has one, as user and
// password, either of which may be empty, and returns the rest.
func (s *Style) Authority(text string) (user, password, rest string, err error) {
	at := strings.LastIndexByte(text, '@')
	userinfo, rest := text[:at], text[at+1:]
	user, password, _ = strings.Cut(userinfo, ":")
	for _, part := range []*string{&user, &password} {
		if *part, err = url.PathUnescape(*part); err != nil {
			return "", "", rest, s.Errorf("the user or the password has a %% that begins no escape: write %%25 for a %%")
		}
	}
	return user, password, rest, nil
}

// Servers reads a list of servers with commas between them and completes each
// with the port: host:port.
func (s *Style) Servers(list string) ([]string, error) {
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
			return "", s.Errorf("the %s %q is no host:port; an IPv6 address stands in [brackets]", s.Server, name)
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

// Parameters reads what stands after the question mark: known names, each at most
// once.
func (s *Style) Parameters(query string, known []string) (url.Values, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, s.Errorf("its query is malformed: write name=value&name=value, with a %% in a value as %%25")
	}
	for name, given := range values {
		if !slices.Contains(known, name) {
			return nil, s.Errorf("no parameter is called %q: the known ones are %s", name, strings.Join(known, ", "))
		}
		if len(given) > 1 {
			return nil, s.Errorf("the parameter %s is given %d times", name, len(given))
		}
	}
	return values, nil
}

// Duration reads a parameter that is a time from least to Longest, if it is given.
func (s *Style) Duration(values url.Values, name string, least time.Duration, to *time.Duration) error {
	if !values.Has(name) {
		return nil
	}
	value := values.Get(name)
	d, err := time.ParseDuration(value)
	if err != nil || d < least || d > Longest {
		return s.Errorf("%s=%s is no time from %v to %v, such as 3s", name, value, least, Longest)
	}
	*to = d
	return nil
}

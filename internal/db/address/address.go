// Package address reads the URLs of databases that name several servers, which
// net/url does not take: SCHEME://[user:password@]h1[:port],h2,h3[/…][?name=value].
// No error repeats a password.
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
	Form    string // what to write, such as etcd://host1:2379,host2,host3
}

// Errorf is an error of a URL, which begins with what was being done.
func (s *Style) Errorf(format string, args ...any) error {
	return fmt.Errorf("read the %s URL: %w", s.Product, fmt.Errorf(format, args...))
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
			return "", s.Errorf("the %s %q is no host:port; an IPv6 address stands in [brackets]", s.Server, text)
		}
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return "", s.Errorf("the port of the %s %q is no number from 1 to 65535", s.Server, text)
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
		return nil, s.Errorf("its query %q is malformed: %w", query, err)
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

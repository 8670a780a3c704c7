package infinisql

import (
	"fmt"
	"net"
	"regexp"
	"strings"
	"time"

	"stroppy/internal/db/address"
	"stroppy/internal/db/wire"
)

type config struct {
	sql, admin     string // host:port
	user, password string
	domain         string // InfiniSQL's name for a database
	procedures     string // the folder of the libraries on the server; empty: none is known
	connect        time.Duration
	answer         time.Duration
}

var style = address.Style{Product: "InfiniSQL", Server: "node", Port: "15432", Form: "infinisql://USER:PASSWORD@HOST:PORT/DOMAIN"}

// plain matches names of domains and users. Neither protocol quotes them in its messages.
var plain = regexp.MustCompile(`^[A-Za-z0-9_]{1,32}$`)

// CheckURL returns the error of Open for a URL that is wrong by itself. It connects to nothing.
var CheckURL = address.Check(readURL)

// readURL is parseURL with the error of Open.
func readURL(url string) (config, error) { return address.Read("open InfiniSQL", url, parseURL) }

// parseURL reads infinisql://USER:PASSWORD@HOST[:15432]/DOMAIN[?…]. No error repeats the password.
func parseURL(text string) (config, error) {
	c := config{connect: wire.ConnectTimeout, answer: wire.AnswerTimeout}
	port := 11521
	u, err := style.ParseURL(text, address.Options{
		"admin_port":      address.Number(&port, "port", 1, 65535),
		"procedures":      address.Text(&c.procedures),
		"connect_timeout": address.Time(&c.connect, time.Millisecond),
		"answer_timeout":  address.Time(&c.answer, time.Millisecond),
	})
	if err != nil {
		return c, err
	}
	c.user, c.password, c.domain, c.sql = u.User, u.Password, u.Path, u.Servers[0]
	switch {
	case len(u.Servers) > 1:
		return c, style.Errorf("%d nodes are named, and one is enough: each has all data", len(u.Servers))
	case !plain.MatchString(c.domain) || c.domain == globalDomain:
		return c, style.Errorf("behind the node stands a domain of letters, digits and _: write %s", style.Form)
	case !plain.MatchString(c.user) || c.password == "" || strings.ContainsRune(c.password, 0):
		return c, style.Errorf("before the @ stand a user of letters, digits and _ and a password: write %s", style.Form)
	}
	host, _, err := net.SplitHostPort(c.sql)
	c.admin = net.JoinHostPort(host, fmt.Sprint(port))
	return c, err
}

package voltdb

import (
	"errors"
	"strings"
	"time"

	"stroppy/internal/db/address"
	"stroppy/internal/db/wire"
)

type config struct {
	nodes          []string // host:port
	user, password string   // empty where the server has no security
	connect        time.Duration
	answer         time.Duration
}

var style = address.Style{Product: "VoltDB", Server: "node", Port: "21212", Form: "voltdb://[USER:PASSWORD@]HOST:PORT,HOST:PORT"}

// CheckURL returns the error of Open for a URL that is wrong by itself. It connects to nothing.
func CheckURL(url string) error {
	_, err := readURL(url)
	return err
}

// readURL is parseURL with the error of Open.
func readURL(url string) (config, error) { return address.Read(opConnect, url, parseURL) }

// parseURL reads voltdb://[user:password@]h1[:21212],h2[?…]. No error repeats the password.
func parseURL(text string) (config, error) {
	c := config{connect: wire.ConnectTimeout, answer: wire.AnswerTimeout}
	rest, ok := strings.CutPrefix(text, "voltdb://")
	if !ok {
		return c, errors.New("read the database URL: it does not begin with voltdb://")
	}
	u, err := style.Parse(rest, address.Options{
		"connect_timeout": address.Time(&c.connect, time.Millisecond),
		"answer_timeout":  address.Time(&c.answer, time.Millisecond),
	})
	if err != nil {
		return c, err
	}
	c.nodes, c.user, c.password = u.Servers, u.User, u.Password
	switch {
	case u.Path != "":
		return c, style.Errorf("a VoltDB cluster has one database, so the URL ends after the nodes: write %s", style.Form)
	case u.Account && c.user == "":
		return c, style.Errorf("before the @ stands a user: write %s", style.Form)
	}
	return c, nil
}

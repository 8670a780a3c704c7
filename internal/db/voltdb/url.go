package voltdb

import (
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
var CheckURL = address.Check(readURL)

// readURL is parseURL with the error of Open.
func readURL(url string) (config, error) { return address.Read(opConnect, url, parseURL) }

// parseURL reads voltdb://[user:password@]h1[:21212],h2[?…]. No error repeats the password.
func parseURL(text string) (config, error) {
	c := config{connect: wire.ConnectTimeout, answer: wire.AnswerTimeout}
	u, err := style.ParseURL(text, address.Options{
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

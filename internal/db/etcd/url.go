package etcd

import (
	"time"

	"stroppy/internal/db/address"
)

// defaultTimeout is the time that a call hangs if its leader is cut off from the other members. So it is also the
// minimal outage of a client. By default an election takes one to two seconds (election-timeout 1000).
const defaultTimeout = time.Second

type config struct {
	nodes    []string // host:port
	user     string
	password string
	timeout  time.Duration // of one call; a page of a scan has pageFactor times as long
	stale    bool          // reads=serializable
}

// style is the form of an etcd URL; 2379 is the client port of etcd.
var style = address.Style{Product: "etcd", Server: "node", Port: "2379", Form: "etcd://[USER:PASSWORD@]HOST:PORT,HOST:PORT"}

// CheckURL returns the error of Open for a URL that is wrong by itself. It connects to nothing.
var CheckURL = address.Check(readURL)

// readURL is parseURL with the error of Open.
func readURL(url string) (config, error) { return address.Read("open etcd", url, parseURL) }

// parseURL reads etcd://[user:password@]h1[:2379],h2,h3[?reads=…&timeout=…]. No
// error repeats the password.
func parseURL(text string) (config, error) {
	c := config{timeout: defaultTimeout}
	u, err := style.ParseURL(text, address.Options{
		"reads":   address.Choice(&c.stale, "linearizable", "serializable"),
		"timeout": address.Time(&c.timeout, 1),
	})
	c.nodes, c.user, c.password = u.Servers, u.User, u.Password
	switch {
	case err != nil:
		return c, err
	case u.Account && (c.user == "" || c.password == ""):
		return c, style.Errorf("before the @ stand a user and a password, user:password@")
	case u.Path != "":
		return c, style.Errorf("nothing stands after the hosts: write %s", style.Form)
	}
	return c, nil
}

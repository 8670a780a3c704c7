package etcd

import (
	"crypto/tls"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/address"
	"stroppy/internal/db/wire"
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
	tls      bool
	files    wire.TLSFiles
	insecure bool        // no certificate of a member is checked
	secure   *tls.Config // of files; nil without TLS
}

// style is the form of an etcd URL; 2379 is the client port of etcd.
var style = address.Style{Product: "etcd", Server: "node", Port: "2379", Form: "etcd://[USER:PASSWORD@]HOST:PORT,HOST:PORT"}

// CheckURL returns the error of Open for a URL that is wrong by itself. It connects to nothing.
var CheckURL = address.Check(readURL)

// readURL is parseURL with the error of Open. It also reads the files of TLS.
func readURL(url string) (config, error) {
	c, err := address.Read("open etcd", url, parseURL)
	if err != nil || !c.tls {
		return c, err
	}
	if c.secure, err = c.files.Config(); err != nil {
		return c, db.Fatalf("open etcd", "%w", err)
	}
	c.secure.InsecureSkipVerify = c.insecure
	return c, nil
}

// parseURL reads etcd://[user:password@]h1[:2379],h2,h3[?reads=…&timeout=…&tls=true…]. No
// error repeats the password.
func parseURL(text string) (config, error) {
	c := config{timeout: defaultTimeout}
	u, err := style.ParseURL(text, address.Options{
		"reads":   address.Choice(&c.stale, "linearizable", "serializable"),
		"timeout": address.Time(&c.timeout, 1),
		"tls":     address.Choice(&c.tls, "false", "true"),
		"ca":      address.Text(&c.files.CA), "cert": address.Text(&c.files.Certificate), "key": address.Text(&c.files.Key),
		"insecure": address.Choice(&c.insecure, "false", "true"),
	})
	c.nodes, c.user, c.password = u.Servers, u.User, u.Password
	switch {
	case err != nil:
		return c, err
	case u.Account && (c.user == "" || c.password == ""):
		return c, style.Errorf("before the @ stand a user and a password, user:password@")
	case (c.files != wire.TLSFiles{} || c.insecure) && !c.tls:
		return c, style.Errorf("ca, cert, key and insecure are for TLS: write tls=true too")
	case u.Path != "":
		return c, style.Errorf("nothing stands after the hosts: write %s", style.Form)
	}
	return c, nil
}

package redis

import (
	"crypto/tls"
	"errors"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/address"
	"stroppy/internal/db/wire"
)

const (
	defaultTimeout     = 5 * time.Second
	defaultWaitTimeout = time.Second
	mostReplicas       = 100
)

type config struct {
	nodes    []string // host:port, of Sentinels if sentinel is set
	sentinel string   // the name under which the Sentinels watch the primary
	user     string   // empty: Redis's user default
	password string
	tls      bool
	files    wire.TLSFiles
	insecure bool        // no certificate of a server is checked
	secure   *tls.Config // of files; nil without TLS
	database int
	watch    bool          // commit=watch
	timeout  time.Duration // of one call
	wait     int           // replicas that must acknowledge a commit
	waitFor  time.Duration // how long they may take
	any      bool          // read=any: the one server is read whatever its role is, and never written
}

// style is the form of a Redis URL.
var style = address.Style{Product: "Redis", Server: "server", Port: "6379", Form: "redis://[USER:PASSWORD@]HOST:PORT,HOST:PORT/DB"}

// sentinelStyle is the form of a URL that names Sentinels.
var sentinelStyle = address.Style{Product: "Redis", Server: "Sentinel", Port: "26379", Form: "redis://[USER:PASSWORD@]HOST:PORT,HOST:PORT/DB?sentinel=NAME"}

// CheckURL returns the error of Open for a URL that is wrong by itself. It connects to nothing.
var CheckURL = address.Check(readURL)

// readURL is parseURL with the error of Open. It also reads the files of TLS.
func readURL(url string) (config, error) {
	c, err := address.Read("open Redis", url, parseURL)
	if err != nil || !c.tls {
		return c, err
	}
	if c.secure, err = c.files.Config(); err != nil {
		return c, db.Fatalf("open Redis", "%w", err)
	}
	c.secure.InsecureSkipVerify = c.insecure
	return c, nil
}

// socketScheme begins the URL of a Unix socket.
const socketScheme = "redis+unix"

// socketStyle is the form of the URL of a Unix socket.
var socketStyle = address.Style{Product: "Redis", Server: "socket", Port: "6379", Form: socketScheme + "://[USER:PASSWORD@]/PATH?db=NUMBER"}

// options returns the parameters.
func (c *config) options() address.Options {
	return address.Options{
		"ca": address.Text(&c.files.CA), "cert": address.Text(&c.files.Certificate), "key": address.Text(&c.files.Key),
		"insecure": address.Choice(&c.insecure, "false", "true"),
		"db":       address.Number(&c.database, "number of a database", 0, math.MaxUint16),
		"commit":   address.Choice(&c.watch, "script", "watch"),
		"read":     address.Choice(&c.any, "primary", "any"),
		"sentinel": func(value string) error {
			if c.sentinel = value; value == "" {
				return errors.New("names no primary: write the name under which the Sentinels watch it, such as mymaster")
			}
			return nil
		},
		"timeout": address.Time(&c.timeout, time.Millisecond),
		"wait":    address.Number(&c.wait, "number of replicas", 0, mostReplicas),
		// Redis counts WAIT's time in milliseconds, and 0 means forever.
		"wait_timeout": address.Time(&c.waitFor, time.Millisecond),
	}
}

// parseURL reads redis://[[user]:password@]h1[:6379],h2/DB[?…]. rediss:// is the same over TLS, and redis+unix:// has
// the path of a socket in place of the servers. No error contains the password.
func parseURL(text string) (config, error) {
	c := config{timeout: defaultTimeout}
	scheme, rest, ok := strings.Cut(text, "://")
	if c.tls = scheme == "rediss"; !ok || scheme != "redis" && scheme != socketScheme && !c.tls {
		return c, errors.New("read the database URL: it begins neither with redis:// nor with rediss:// nor with " + socketScheme + "://")
	}
	style := style
	if _, query, _ := strings.Cut(rest, "?"); strings.Contains("&"+query, "&sentinel=") {
		style = sentinelStyle
	}
	socket := ""
	if scheme == socketScheme {
		style = socketStyle
		var err error
		if rest, socket, err = splitSocket(rest); err != nil {
			return c, err
		}
	}
	u, err := style.Parse(rest, c.options())
	if err != nil {
		return c, err
	}
	c.nodes, c.user, c.password = u.Servers, u.User, u.Password
	if socket != "" {
		c.nodes = []string{socket}
	}
	if u.Path != "" {
		number, err := strconv.ParseUint(u.Path, 10, 16)
		if err != nil {
			return c, style.Errorf("after the hosts stands the number of a database, as in /0")
		}
		if c.database != 0 {
			return c, style.Errorf("the database stands after the hosts and in the parameter db: leave one of them out")
		}
		c.database = int(number)
	}
	switch {
	case u.Account && c.password == "":
		return c, style.Errorf("before the @ stands a password, with or without a user: user:password@ or :password@")
	case c.any && c.sentinel != "":
		return c, style.Errorf("read=any names the server itself, and sentinel names a primary that the Sentinels locate: use only one of them")
	case c.any && len(c.nodes) > 1:
		return c, style.Errorf("read=any takes one server: with several, it is not known which one was read")
	case c.any && c.wait > 0:
		return c, style.Errorf("wait means nothing with read=any, which commits nothing")
	case c.sentinel != "" && socket != "":
		return c, style.Errorf("a socket leads to one server, and sentinel asks for others: use only one of them")
	case (c.files != wire.TLSFiles{} || c.insecure) && !c.tls:
		return c, style.Errorf("ca, cert, key and insecure are for TLS, and the URL does not begin with rediss://")
	case c.waitFor > 0 && c.wait == 0:
		return c, style.Errorf("wait_timeout means nothing without wait, the number of replicas to wait for")
	case c.waitFor == 0:
		c.waitFor = defaultWaitTimeout
	}
	return c, nil
}

// splitSocket splits the text after redis+unix:// into a text for Style.Parse and the path.
func splitSocket(text string) (rest, path string, err error) {
	text, query, _ := strings.Cut(text, "?")
	account := text[:strings.LastIndexByte(text, '@')+1]
	path, err = url.PathUnescape(text[len(account):])
	if err != nil || !strings.HasPrefix(path, "/") || path == "/" {
		return "", "", socketStyle.Errorf("it has no path of a socket that begins with /: write %s", socketStyle.Form)
	}
	return account + "localhost?" + query, path, nil
}

package redis

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/kvtest"
	"stroppy/internal/db/wire"
)

func TestURLIsParsed(t *testing.T) {
	base := func(change func(*config)) config {
		c := config{nodes: []string{"h1:6379"}, timeout: 5 * time.Second, waitFor: time.Second}
		change(&c)
		return c
	}
	for url, want := range map[string]config{
		"redis://h1":    base(func(*config) {}),
		"redis://h1/":   base(func(*config) {}),
		"redis://h1/15": base(func(c *config) { c.database = 15 }),
		"redis://h1,h2:1,10.0.0.3/0": base(func(c *config) {
			c.nodes = []string{"h1:6379", "h2:1", "10.0.0.3:6379"}
		}),
		"redis://[::1],[::2]:7": base(func(c *config) { c.nodes = []string{"[::1]:6379", "[::2]:7"} }),
		"redis://:p%40%3A@h1":   base(func(c *config) { c.password = "p@:" }),
		"redis://u:p@h1:9/2?commit=watch&timeout=300ms": base(func(c *config) {
			c.nodes, c.user, c.password, c.database, c.watch, c.timeout = []string{"h1:9"}, "u", "p", 2, true, 300*time.Millisecond
		}),
		"redis://h1?commit=script&wait=2&wait_timeout=50ms": base(func(c *config) { c.wait, c.waitFor = 2, 50*time.Millisecond }),
		"redis://h1?read=primary":                           base(func(*config) {}),
		"redis://h1?read=any":                               base(func(c *config) { c.any = true }),
		"redis://h1,h2:1/3?sentinel=mymaster&wait=1": base(func(c *config) {
			c.nodes, c.sentinel, c.database, c.wait = []string{"h1:26379", "h2:1"}, "mymaster", 3, 1
		}),
		"redis://h1?db=4":          base(func(c *config) { c.database = 4 }),
		"redis+unix:///run/r.sock": base(func(c *config) { c.nodes = []string{"/run/r.sock"} }),
		"redis+unix://u:p%2F@/a%40b?db=2&wait=1": base(func(c *config) {
			c.nodes, c.user, c.password, c.database, c.wait = []string{"/a@b"}, "u", "p/", 2, 1
		}),
		"rediss://h1?cert=c&key=k&insecure=true": base(func(c *config) {
			c.tls, c.insecure, c.files = true, true, wire.TLSFiles{Certificate: "c", Key: "k"}
		}),
		"rediss://h1?ca=/etc/ca.pem": base(func(c *config) { c.tls, c.files.CA = true, "/etc/ca.pem" }),
	} {
		got, err := parseURL(url)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s gives %+v, %v; want %+v", url, got, err, want)
		}
	}
}

func TestInvalidURLIsRefused(t *testing.T) {
	kvtest.Refuses(t, func(url string) error { _, err := parseURL(url); return err }, map[string]string{
		"postgres://h1":                     "redis://",
		"redis:h1":                          "redis://",
		"redis://":                          "host",
		"redis://h1,":                       "host",
		"redis://h1,h1:6379":                "twice",
		"redis://h1:0":                      "port",
		"redis://h1:x":                      "port",
		"redis://::1":                       "brackets",
		"redis://h1/bank":                   "number",
		"redis://u:secr/et@h1":              "%2F",
		"redis://u:secr?et@h1":              "%3F",
		"redis://u:secr#et@h1":              "%23",
		"redis://u:secr/et?wait=1@h1":       "%2F",
		"redis://u:p@secr?et@h1/0":          "%40",
		"redis://u:secret":                  "port of the server \"u\"",
		"redis://u:secret:9":                "server \"u\"",
		"redis://u:1/secret":                "number",
		"redis://u:1?secret=%zz":            "malformed",
		"redis://h1/-1":                     "number",
		"redis://u@h1":                      "password",
		"redis://u:@h1":                     "password",
		"redis://u:secr%et@h1":              "%25",
		"redis://u:secret@h1:x":             "port",
		"redis://h1?time=3s":                "known ones are ca, cert, commit, db, insecure, key, read, sentinel, timeout, wait, wait_timeout",
		"redis://h1?commit=lua":             "script",
		"redis://h1?timeout=0s":             "no time",
		"redis://h1?timeout=2h":             "no time",
		"redis://h1?wait=-1":                "number of replicas",
		"redis://h1?wait=1000":              "number of replicas",
		"redis://h1?wait=1&wait_timeout=us": "no time",
		"redis://h1?wait_timeout=1s":        "without wait",
		"redis://h1?insecure=true":          "rediss://",
		"redis://h1/2?db=3":                 "leave one of them out",
		"redis+unix://h1/r.sock":            "no path of a socket",
		"redis+unix://":                     "no path of a socket",
		"redis+unix:///r?sentinel=a":        "use only one of them",
		"redis+unix://u:secr/et@/r":         "%2F",
		"redis+unix://u:secret@r":           "no path of a socket",
		"redis://h1?ca=x":                   "rediss://",
		"redis://h1?read=replica":           "neither primary",
		"redis://h1,h2?read=any":            "one server",
		"redis://h1?read=any&wait=1":        "commits nothing",
		"redis://h1?sentinel=":              "names no primary",
		"redis://h1?sentinel=a&read=any":    "the server itself",
		"redis://h1?sentinels=a":            "the nearest is sentinel",
		"redis://h1,h1:26379?sentinel=a":    "the Sentinel h1:26379 is named twice",
		"redis://h1?%zz":                    "malformed",
		"redis://h1?wait=1&wait=2":          "2 times",
	})
}

func TestErrorsContainNoPartOfThePassword(t *testing.T) {
	drivertest.Passwords(t, "redis", "h:1", []string{"", "/", "/0?timeout=3s"}, "/?#", func(url string) (drivertest.Account, error) {
		c, err := parseURL(url)
		return drivertest.Account{Servers: strings.Join(c.nodes, ","), User: c.user, Password: c.password}, err
	})
}

func FuzzParseURL(f *testing.F) {
	for _, url := range []string{"redis://u:p@h1:1,h2/3?timeout=3s&wait=1", "rediss://[::1]", "redis://%@,:?&=", "redis://@"} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		c, err := parseURL(url)
		if err != nil {
			return
		}
		if len(c.nodes) == 0 || c.timeout <= 0 || c.waitFor <= 0 || c.wait < 0 || c.user != "" && c.password == "" {
			t.Errorf("%q gives %+v", url, c)
		}
	})
}

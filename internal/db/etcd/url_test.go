package etcd

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
	for _, test := range []struct {
		url  string
		want config
	}{
		{"etcd://h1", config{nodes: []string{"h1:2379"}, timeout: time.Second}},
		{"etcd://h1,h2:1,10.0.0.3/", config{nodes: []string{"h1:2379", "h2:1", "10.0.0.3:2379"}, timeout: time.Second}},
		{"etcd://[::1],[::2]:7", config{nodes: []string{"[::1]:2379", "[::2]:7"}, timeout: time.Second}},
		{"etcd://u:p%40%3A@h1:9,h2", config{nodes: []string{"h1:9", "h2:2379"}, user: "u", password: "p@:", timeout: time.Second}},
		{"etcd://h1?timeout=300ms&reads=serializable", config{nodes: []string{"h1:2379"}, timeout: 300 * time.Millisecond, stale: true}},
		{"etcd://h1?tls=true&ca=a&cert=b&key=c", config{nodes: []string{"h1:2379"}, timeout: time.Second, tls: true, files: wire.TLSFiles{CA: "a", Certificate: "b", Key: "c"}}},
		{"etcd://h1?reads=linearizable", config{nodes: []string{"h1:2379"}, timeout: time.Second}},
	} {
		got, err := parseURL(test.url)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s gives %+v, %v; want %+v", test.url, got, err, test.want)
		}
	}
}

func TestInvalidURLIsRefused(t *testing.T) {
	kvtest.Refuses(t, func(url string) error { _, err := parseURL(url); return err }, map[string]string{
		"postgres://h1":             "etcd://",
		"etcd://":                   "host",
		"etcd://h1,":                "host",
		"etcd://h1,h1:2379":         "twice",
		"etcd://h1:0":               "port",
		"etcd://h1:http":            "port",
		"etcd://::1":                "brackets",
		"etcd://h1/db":              "host",
		"etcd://u:secr/et@h1":       "%2F",
		"etcd://u:secr?et@h1":       "%3F",
		"etcd://u:secr#et@h1":       "%23",
		"etcd://u:p@secr?et@h1":     "%40",
		"etcd://u:secret":           "port of the node \"u\"",
		"etcd://u:secret:9":         "node \"u\"",
		"etcd://u:1?secret=%zz":     "malformed",
		"etcd://u@h1":               "password",
		"etcd://u:@h1":              "password",
		"etcd://u:secr%et@h1":       "%25",
		"etcd://u:secret@h1:x":      "port",
		"etcd://h1?time=3s":         "known ones are ca, cert, insecure, key, reads, timeout, tls",
		"etcd://h1?timeout=0s":      "no time",
		"etcd://h1?timeout=2h":      "no time",
		"etcd://h1?timeout=3":       "no time",
		"etcd://h1?reads=fast":      "linearizable",
		"etcd://h1?reads=":          "linearizable",
		"etcd://h1?%zz":             "malformed",
		"etcd://h1?reads=a&reads=b": "2 times",
	})
}

func TestErrorsContainNoPartOfThePassword(t *testing.T) {
	drivertest.Passwords(t, "etcd", "h:1", []string{"", "/", "/?timeout=3s"}, "/?#", func(url string) (drivertest.Account, error) {
		c, err := parseURL(url)
		return drivertest.Account{Servers: strings.Join(c.nodes, ","), User: c.user, Password: c.password}, err
	})
}

func FuzzParseURL(f *testing.F) {
	for _, url := range []string{"etcd://u:p@h1:1,h2?timeout=3s", "etcd://[::1]", "etcd://%@,:?&=", "etcd://@"} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		c, err := parseURL(url)
		if err != nil {
			return
		}
		if len(c.nodes) == 0 || c.timeout <= 0 || (c.user == "") != (c.password == "") {
			t.Errorf("%q gives %+v", url, c)
		}
	})
}

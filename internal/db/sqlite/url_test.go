package sqlite

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestURLParametersAreParsed(t *testing.T) {
	for _, test := range []struct {
		url  string
		want options
	}{
		{"sqlite:/a/b.db", options{"/a/b.db", "full", "wal", 10 * time.Second, 8192}},
		{"sqlite:/a/b%20c.db?", options{"/a/b%20c.db", "full", "wal", 10 * time.Second, 8192}},
		{"sqlite:/a?synchronous=OFF&busy_timeout=50ms", options{"/a", "off", "wal", 50 * time.Millisecond, 8192}},
		{"sqlite:/a?journal=delete", options{"/a", "extra", "delete", 10 * time.Second, 8192}},
		{"sqlite:/a?journal=delete&synchronous=full&cache_size=100", options{"/a", "full", "delete", 10 * time.Second, 100}},
		{"sqlite:/:memory:", options{"/:memory:", "full", "wal", 10 * time.Second, 8192}},
	} {
		got, err := parseURL(test.url)
		if err != nil || got != test.want {
			t.Errorf("%s: got %+v, %v; want %+v", test.url, got, err, test.want)
		}
	}
	if got, err := parseURL("sqlite:run/bank.db"); err != nil || !filepath.IsAbs(got.path) || !strings.HasSuffix(got.path, "/run/bank.db") {
		t.Errorf("a relative path became %q, %v", got.path, err)
	}
}

func TestInvalidURLIsRefused(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://x":                     `does not start with "sqlite:"`,
		"sqlite:":                          "names no file",
		"sqlite:?journal=wal":              "names no file",
		"sqlite::memory:":                  "use memory:",
		"sqlite::memory:?journal=wal":      "use memory:",
		"sqlite:file::memory:":             "use memory:",
		"sqlite:file:x.db":                 "and no file: before it",
		"sqlite://host/x.db":               "without the two slashes",
		"sqlite:///tmp/x.db":               "write sqlite:/tmp/x.db",
		"sqlite:a\x00b":                    "zero byte",
		"sqlite:x?sync=full":               "busy_timeout, cache_size, journal, synchronous",
		"sqlite:x?synchronous=fsync":       "extra, full, normal, off",
		"sqlite:x?journal=memory":          "wal, delete",
		"sqlite:x?busy_timeout=10":         "no time from 0s to 1h0m0s, such as 3s",
		"sqlite:x?busy_timeout=-1s":        "no time from 0s to 1h0m0s, such as 3s",
		"sqlite:x?cache_size=0":            "number of KiB",
		"sqlite:x?cache_size=1MB":          "number of KiB",
		"sqlite:x?journal=wal&journal=wal": "give it once",
		"sqlite:x?journal=%zz":             "name=value",
	} {
		if _, err := parseURL(url); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", url, err, want)
		}
	}
}

func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{"sqlite:a.db", "sqlite:/a?journal=wal&synchronous=off", "sqlite:?", "sqlite:x?busy_timeout=1h&cache_size=9"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, url string) {
		o, err := parseURL(url)
		if err == nil && (!filepath.IsAbs(o.path) || o.synchronous == "" || o.journal == "" || o.busyTimeout < 0 || o.cacheKiB < 1) {
			t.Errorf("%q was read as %+v", url, o)
		}
	})
}

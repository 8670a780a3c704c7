package dqlite

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestURLParametersAreParsedOrRefused(t *testing.T) {
	for url, want := range map[string]config{
		"dqlite://h1":                         {nodes: []string{"h1:9000"}, database: "stroppy", timeout: 3 * time.Second},
		"dqlite://h1:1,h2:2/db?timeout=200ms": {nodes: []string{"h1:1", "h2:2"}, database: "db", timeout: 200 * time.Millisecond},
		"dqlite://10.0.0.1:9000/b?read=node":  {nodes: []string{"10.0.0.1:9000"}, database: "b", timeout: 3 * time.Second, copy: true},
	} {
		if got, err := parseURL(url); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", url, got, err, want)
		}
	}
	for url, says := range map[string]string{
		"dqlite:h1":                "begin with dqlite://",
		"dqlite://":                "is no host",
		"dqlite://u:s3cr3t@h1":     "no users and no passwords",
		"dqlite://h1/a/b":          "no name of a database",
		"dqlite://h1?timeout=3":    "no time from",
		"dqlite://h1?wait=1":       "no parameter is called",
		"dqlite://h1,h2?read=node": "of one node",
		"dqlite://h1?read=leader":  "of one node",
	} {
		if _, err := parseURL(url); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v, want %q", url, err, says)
		}
	}
}

package foundationdb

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/kvtest"
)

func TestURLParametersAreParsedOrRefused(t *testing.T) {
	plain := config{file: defaultFile, timeout: 5 * time.Second, library: library{api: 730, threads: 1}}
	with := func(change func(*config)) config {
		c := plain
		c.file = "/a/b.cluster"
		change(&c)
		return c
	}
	for url, want := range map[string]config{
		"fdb:":             plain,
		"fdb:/a/b.cluster": with(func(*config) {}),
		"fdb:/a/b.cluster?timeout=300ms&automatic_idempotency=on": with(func(c *config) { c.timeout, c.idempotency = 300*time.Millisecond, true }),
		"fdb:/a/b.cluster?api_version=720&tls_certificate=c&tls_key=k&tls_ca=a&tls_verify_peers=Check.Valid%3D1": with(func(c *config) {
			c.library = library{api: 720, certificate: "c", key: "k", ca: "a", verifyPeers: "Check.Valid=1", threads: 1}
		}),
		"fdb:/a/b.cluster?external_client=/l.so&client_threads=4": with(func(c *config) { c.library.externalClient, c.library.threads = "/l.so", 4 }),
		"fdb:?connection=a:b@10.0.0.1:4501,n1.here:4501&timeout=1s": with(func(c *config) {
			c.file, c.connection, c.timeout = "", "a:b@10.0.0.1:4501,n1.here:4501", time.Second
		}),
	} {
		if got, err := parseURL(url); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", url, got, err, want)
		}
	}
	kvtest.Refuses(t, func(url string) error { _, err := parseURL(url); return err }, map[string]string{
		"foundationdb:x":                  "does not begin with the scheme fdb",
		"fdb:x?connection=a:b@h:1":        "leave one of them out",
		"fdb:x?timeout=3":                 "no time from 10ms",
		"fdb:x?api_version=740":           "newer than the binding in this program, which knows the API up to version 730",
		"fdb:x?api_version=630":           "too old",
		"fdb:x?api_version=new":           "no version of the API",
		"fdb:x?client_threads=2":          "needs external_client",
		"fdb:x?client_threads=0":          "from 1 to 64",
		"fdb:x?tls_cert=y":                "nearest is tls_",
		"fdb:x?automatic_idempotency=yes": "neither off",
	})
}

// TestMissingFilesOfURLAreNamed checks that the error names a file of the URL that does not exist.
func TestMissingFilesOfURLAreNamed(t *testing.T) {
	dir := t.TempDir()
	for url, says := range map[string]string{
		"fdb:x": "", "fdb:x?tls_ca=" + dir: "", "fdb:x?tls_ca=/no/ca": "tls_ca=/no/ca: no such file", "fdb:x?tls_key=/no/k": "tls_key=/no/k: ",
		"fdb:x?tls_certificate=/no/c": "tls_certificate=/no/c: ", "fdb:x?external_client=/no/l.so": "external_client=/no/l.so: ", "fdb:x?external_clients=/no/d": "external_clients=/no/d: ",
	} {
		c, err := parseURL(url)
		if err == nil {
			err = c.library.checkFiles()
		}
		if (says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestClusterFileIsParsedOrRefused(t *testing.T) {
	for text, want := range map[string]clusterFile{
		"a_1:b2@10.0.0.1:4500": {"a_1:b2@10.0.0.1:4500", []string{"10.0.0.1:4500"}},
		"# made by hand\n\n  d:i@h1:1,[::1]:2:tls,10.0.0.3:4500:tls # so\n": {"d:i@h1:1,[::1]:2:tls,10.0.0.3:4500:tls", []string{"h1:1", "[::1]:2", "10.0.0.3:4500"}},
	} {
		if got, err := parseClusterFile(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "# nothing", "garbage", "a:b", "a:b@", "a@h:1", "a b:c@h:1", "a:b@h", "a:b@h:x", "a:b@:1", "a:b@h:1,", "a:b@h:1\na:b@h:2", "\x00\xff",
	} {
		if got, err := parseClusterFile(text); err == nil {
			t.Errorf("%q was taken: %+v", text, got)
		}
	}
	dir := t.TempDir()
	if _, err := readClusterFile(filepath.Join(dir, "none")); db.ClassOf(err) != db.Fatal || !strings.Contains(err.Error(), "there is no ") {
		t.Errorf("a missing file: %v", err)
	}
	for url, says := range map[string]string{"fdb:?connection=a:b@h:1": "", "fdb:?connection=a@h:1": "the connection in its URL is none: write DESCRIPTION:ID@HOST:PORT", "fdb:" + dir + "/no": "there is no "} {
		c, err := parseURL(url)
		if err == nil {
			_, err = c.cluster()
		}
		if (says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", url, err)
		}
	}
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte("postgres://h/d"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readClusterFile(garbage); db.ClassOf(err) != db.Fatal || !strings.Contains(err.Error(), garbage+" is none: write DESCRIPTION:ID@HOST:PORT") {
		t.Errorf("garbage: %v", err)
	}
}

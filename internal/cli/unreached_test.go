package cli_test

import (
	"net"
	"strings"
	"testing"
)

// TestDriversExplainUnreachableServers checks that all drivers use the same words for an address without a listener
// and for an unknown host name.
func TestDriversExplainUnreachableServers(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	listener.Close()
	const unknown = "nobody.invalid" // RFC 2606: no name server knows it
	urls := map[string]string{
		"PostgreSQL": "postgres://u:p@ADDRESS/d", "MySQL": "mysql://u:p@ADDRESS/d", "CockroachDB": "cockroach://u@ADDRESS/d",
		"InfiniSQL": "infinisql://u:p@ADDRESS/d", "etcd": "etcd://ADDRESS", "Redis": "redis://ADDRESS",
		"MongoDB": "mongodb://ADDRESS/d", "VoltDB": "voltdb://ADDRESS",
	}
	for name, url := range urls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, try := range []struct {
				address string
				says    []string
			}{
				{closed, []string{closed, "connection refused", "check the address, and whether a server runs there"}},
				{unknown, []string{unknown, "check the address, and whether a server runs there"}},
			} {
				url := strings.Replace(url, "ADDRESS", try.address, 1)
				code, _, stderr := call(t, "run", "--db", url, "--accounts", "100", "--duration", "1s", "--out", t.TempDir()+"/r")
				refused(t, code, 3, stderr, try.says...)
				for _, jargon := range []string{"dial", "lookup", "(code", "connect: c", "tcp"} {
					if strings.Contains(stderr, jargon) {
						t.Errorf("%q has %q in it", stderr, jargon)
					}
				}
			}
		})
	}
}

// TestKeyValueStoresRefuseOnlyWhatTheyCannotDo checks that a run which a key-value store can do fails at its
// connection, and not before it.
func TestKeyValueStoresRefuseOnlyWhatTheyCannotDo(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	listener.Close()
	runs := map[string][]string{
		"in flight": {"kv", "--records", "100", "--in-flight", "4"},
		"scans":     {"kv", "--records", "100", "--preset", "ycsb-e"},
		"kv rmw":    {"kv", "--records", "100", "--preset", "ycsb-f"},
		"bank":      {"bank", "--accounts", "100"},
		"bank rmw":  {"bank", "--accounts", "100", "--update", "rmw"},
		"append":    {"append"},
		"events":    {"events"},
		"tpcb":      {"tpcb"},
	}
	for name, args := range runs {
		for _, url := range []string{"redis://" + closed, "etcd://" + closed} {
			t.Run(name+" on "+url[:4], func(t *testing.T) {
				t.Parallel()
				code, _, stderr := call(t, append([]string{"run"}, append(args, "--db", url, "--duration", "1s", "--out", t.TempDir()+"/r")...)...)
				refused(t, code, 3, stderr, closed, "connection refused")
				code, _, stderr = call(t, append([]string{"run"}, append(args, "--db", url, "--duration", "1s", "--dry-run")...)...)
				if code != 0 {
					t.Errorf("the dry run: exit code %d: %s", code, stderr)
				}
			})
		}
	}
}

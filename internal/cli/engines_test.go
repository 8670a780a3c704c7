package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/cli"
	"stroppy/internal/cluster"
	"stroppy/internal/cluster/etcd"
	"stroppy/internal/cluster/host"
	"stroppy/internal/report"
)

// call runs stroppy in this process.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Main(args, []string{"PATH=" + os.Getenv("PATH")}, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func runs(t *testing.T, want int, args ...string) *report.Result {
	t.Helper()
	code, r := result(t, args...)
	if code != want {
		t.Fatalf("%v ended with %d, not %d: %+v", args, code, want, r)
	}
	return r
}

// result returns the exit code and the result of a run.
func result(t *testing.T, args ...string) (code int, r *report.Result) {
	t.Helper()
	code, stdout, stderr := call(t, append(args, "--json", "--out", filepath.Join(t.TempDir(), "run"))...)
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v ended with %d: %v\n%s\n%s", args, code, err, stderr, stdout)
	}
	return code, r
}

func status(r *report.Result, name string) string {
	for _, c := range r.Checks {
		if c.Name == name {
			return c.Status
		}
	}
	return "missing"
}

// TestFollowersCarryOutReads checks that transactions that only read run on the standbys, which have no serializable
// level, and that real time is compared with no claim.
func TestFollowersCarryOutReads(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	code, stdout, stderr := call(t, "isolation", "--cluster", "postgres:2?synchronous=off", "--schedules-only", "--followers", "--json")
	if code != 0 || !strings.Contains(stderr, "serializable is left out: ") || !strings.Contains(stderr, "hot standby") {
		t.Errorf("code %d: %s", code, stderr)
	}
	var m struct {
		Command string
		Levels  []struct {
			Name      string
			Anomalies map[string]struct{ Schedule string }
		}
	}
	if err := json.Unmarshal([]byte(stdout), &m); err != nil {
		t.Fatal(err)
	}
	if len(m.Levels) != 3 || !strings.HasSuffix(m.Command, " --schedules-only --followers") {
		t.Errorf("%d levels: %s", len(m.Levels), m.Command)
	}
	for _, l := range m.Levels {
		if s := l.Anomalies["stale read"].Schedule; s != "seen" && s != "prevented" {
			t.Errorf("at %s the stale read is %s", l.Name, s)
		}
	}
	if code, _, stderr := call(t, "isolation", "--cluster", "postgres:1", "--schedules-only", "--followers"); code != 2 || !strings.Contains(stderr, "this cluster has none") {
		t.Errorf("a cluster without followers: code %d: %s", code, stderr)
	}
}

func TestPostgreSQLRunsAreValid(t *testing.T) {
	t.Parallel()
	url := startPostgres(t).URL()
	small := []string{"--accounts", "200", "--clients", "4", "--count", "400"}
	for _, mode := range []string{"pipelined", "interactive", "procedure"} {
		t.Run(mode, func(t *testing.T) {
			r := runs(t, 0, append([]string{"run", "--db", url, "--mode", mode}, small...)...)
			if r.Database != "PostgreSQL" || r.Drive.Committed == 0 || r.FootprintBytes == nil || r.Drive.Style["mode"] != mode {
				t.Errorf("got %+v", r)
			}
		})
	}
	t.Run("serializable", func(t *testing.T) {
		r := runs(t, 0, append([]string{"run", "--db", url, "--isolation", "serializable", "--zipfian"}, small...)...)
		if r.Claim.Level != "serializable" || status(r, "serializable") != "valid" {
			t.Errorf("got %+v", r.Claim)
		}
	})
	t.Run("lost updates", func(t *testing.T) {
		for again := 1; ; again++ { // no single run is sure to bring one
			code, r := result(t, "run", "--db", url, "--update", "rmw", "--expect", "serializable", "--accounts", "20", "--clients", "8", "--count", "1000")
			lost := strings.Contains(fmt.Sprint(r.Checks), "lost update")
			if invalid := status(r, "serializable") == "invalid"; invalid != (code == 1) || code > 1 || lost && !invalid {
				t.Fatalf("exit code %d: %+v", code, r.Checks)
			}
			if lost {
				return
			}
			if again == 5 {
				t.Fatalf("no lost update in %d runs: %+v", again, r.Checks)
			}
		}
	})
	t.Run("wrong database", func(t *testing.T) {
		code, _, stderr := call(t, "run", "--db", strings.Replace(url, "/postgres", "/nowhere", 1))
		if code != 3 || !strings.Contains(stderr, "nowhere") {
			t.Errorf("code %d: %s", code, stderr)
		}
	})
}

func TestEtcdRunsAreValid(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a server")
	}
	nodes, err := etcd.Start(t.Context(), cluster.Options{Nodes: 3, InMemory: true, Loopback: true})
	if missing := (host.MissingError{}); errors.As(err, &missing) {
		t.Skipf("skipped engine: etcd: install the Debian package %s", missing.Package)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := nodes.Stop(); err != nil {
			t.Error(err)
		}
	})
	r := runs(t, 0, "run", "--db", nodes.URL(), "--accounts", "200", "--clients", "4", "--count", "500")
	if r.Database != "etcd" || r.Drive.Committed == 0 || status(r, "strict") != "valid" {
		t.Errorf("got %+v", r)
	}
}

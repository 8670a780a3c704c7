package postgres

import (
	"os/exec"
	"strings"
	"testing"

	"stroppy/internal/cluster/clustertest"
)

func servers() clustertest.Singles {
	return clustertest.Singles{
		Engine: "postgres",
		Start:  clustertest.Starter(Start),
		// By psql, as anybody would.
		SQL: func(t testing.TB, s clustertest.Single, statements string) string {
			t.Helper()
			psql, err := PGBin("psql")
			clustertest.Must(t, err)
			out, err := exec.CommandContext(t.Context(), psql, "-XAtq", "-c", statements, s.(*Server).URL()).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v: %s", statements, err, out)
			}
			return strings.TrimSpace(string(out))
		},
		Settings: map[string]string{"fsync": "off", "application_name": "it's a test"},
		Ask:      "SELECT current_setting('fsync'), current_setting('data_checksums')", Told: "off|on", Default: "on|on",
		Hello: []byte{0, 0, 0, 8, 4, 210, 22, 47}, // SSLRequest, answered by one byte: PostgreSQL documentation 55.7
		Wrong: "no_such_setting", WrongSays: "no_such_setting",
	}
}

func TestServer(t *testing.T) { servers().Run(t) }

func TestCrashLeavesNothing(t *testing.T) { servers().Crash(t) }

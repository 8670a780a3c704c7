package mariadb

import (
	"testing"

	"stroppy/internal/cluster/clustertest"
)

func servers() clustertest.Singles {
	return clustertest.Singles{
		Engine: "mariadb",
		Start:  clustertest.Starter(Start),
		SQL: func(t testing.TB, s clustertest.Single, statements string) string {
			t.Helper()
			out, err := s.(*Server).SQL(t.Context(), "USE test; "+statements)
			clustertest.Must(t, err)
			return out
		},
		Settings: map[string]string{"sync_binlog": "7", "init-connect": `SET @it = 'is "a" \\ test'`},
		Ask:      "SELECT @@sync_binlog, @@init_connect, @@skip_networking",
		Told:     "7\tSET @it = 'is \"a\" \\\\\\\\ test'\t0", Default: "0\t\t0",
		Wrong: "no_such_setting", WrongSays: "no-such-setting",
	}
}

func TestServer(t *testing.T) { servers().Run(t) }

func TestCrashLeavesNothing(t *testing.T) { servers().Crash(t) }

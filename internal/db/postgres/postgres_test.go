package postgres

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/postgres/server"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
	"stroppy/internal/isolation"
)

func TestMain(m *testing.M) { servers.Main(m) }

// servers run without fsync, because no test cuts the power.
var servers = drivertest.Servers[*server.Server]{
	Launch: func(ctx context.Context, settings map[string]string) (*server.Server, error) {
		all := map[string]string{"fsync": "off"}
		maps.Copy(all, settings)
		return server.Start(ctx, cluster.Alone(all))
	},
	Missing: func(err error) string {
		if missing := new(host.MissingError); errors.As(err, missing) {
			return "skipped engine: postgres: install the Debian package " + missing.Package
		}
		return ""
	},
}

// openFresh opens a new, empty database on the shared server.
func openFresh(t testing.TB) *Database {
	t.Helper()
	shared, name := servers.Shared(t), servers.Name()
	sqltest.Execute(t, drivertest.Open(t, Open, shared.URL()), "CREATE DATABASE "+name)
	return drivertest.Open(t, Open, shared.URLFor(server.Superuser, "", name))
}

func TestServerDescriptionHasSettingsAndIsolation(t *testing.T) {
	claimSource := Flavor().Isolations.Source
	pg := servers.Start(t, map[string]string{"default_transaction_isolation": "repeatable read", "synchronous_commit": "local"})
	d := drivertest.Open(t, Open, pg.URL())
	info, err := d.Info(t.Context())
	if err != nil || info.Name != "PostgreSQL" || info.Version == "" {
		t.Errorf("Info = %+v, %v", info, err)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Name] = s.Value
	}
	if settings["fsync"] != "off" || settings["synchronous_commit"] != "local" || settings["default_transaction_isolation"] != "repeatable read" || len(settings) != 8 {
		t.Errorf("settings %v", settings)
	}
	size, err := d.Footprint(t.Context())
	if err != nil || size < 1<<20 {
		t.Errorf("Footprint = %d, %v", size, err)
	}
	for name, want := range map[string]db.Claim{
		"":                 {Isolation: "repeatable read", Level: isolation.SnapshotIsolation, Source: claimSource},
		"read-uncommitted": {Isolation: "read uncommitted", Level: isolation.ReadCommitted, Source: claimSource},
		"READ COMMITTED":   {Isolation: "read committed", Level: isolation.ReadCommitted, Source: claimSource},
		"Serializable":     {Isolation: "serializable", Level: isolation.Serializable, Source: claimSource},
	} {
		if got, err := d.Claim(name); err != nil || got != want {
			t.Errorf("Claim(%q) = %+v, %v", name, got, err)
		}
	}
	if _, err := d.Claim("snapshot"); err == nil || !strings.Contains(err.Error(), "repeatable read") {
		t.Errorf("Claim of nonsense: %v", err)
	}
	shown := &db.Statement{SQL: "SHOW transaction_isolation", Columns: []db.Type{db.Text}}
	for name, want := range map[string]string{"": "repeatable read", "SERIALIZABLE": "serializable", "read-committed": "read committed"} {
		s := sqltest.Session(t, d, db.Pipelined, name)
		err := s.Query(t.Context(), shown, nil, func(row []db.Value) error {
			if string(row[0].Text) != want {
				t.Errorf("isolation %q: the session runs at %s", name, row[0].Text)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestReplicationWarningMakesCommitFail(t *testing.T) {
	for name, tc := range map[string]struct {
		routine, code, message, detail string
		want                           error
	}{
		"cancelled":        {"SyncRepWaitForLSN", "01000", "canceling wait for synchronous replication due to user request", "The transaction has already committed locally, but might not have been replicated to the standby.", errLocalOnly},
		"another language": {"SyncRepWaitForLSN", "01000", "Warten auf synchrone Replikation wird storniert", "", errLocalOnly},
		"no routine":       {"", "01000", "canceling wait for synchronous replication due to user request", "", errLocalOnly},
		"only the detail":  {"", "57P01", "x", "The transaction has already committed locally, but …", errLocalOnly},
		"no transaction":   {"EndTransactionBlock", "25P01", "there is no transaction in progress", "", errNoTransaction},
		"something else":   {"ExecCreateTable", "42P07", "relation exists, skipping", "", nil},
	} {
		if got := warning(tc.routine, tc.code, tc.message, tc.detail); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

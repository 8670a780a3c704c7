package cli_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestUnreadableURLRevealsNothing checks that the error for an unreadable URL contains no part of the password.
func TestUnreadableURLRevealsNothing(t *testing.T) {
	t.Parallel()
	const escape = ", with each of / ? # @ % in USER or PASSWORD as %2F %3F %23 %40 %25"
	const (
		postgres = "read the database URL: write postgres://USER:PASSWORD@HOST:PORT/DATABASE" + escape
		mysql    = "read the database URL: write mysql://USER:PASSWORD@HOST:PORT/DATABASE" + escape
		redis    = "read the Redis URL: write redis://[USER:PASSWORD@]HOST:PORT,HOST:PORT/DB" + escape
		etcd     = "read the etcd URL: write etcd://[USER:PASSWORD@]HOST:PORT,HOST:PORT" + escape
		unknown  = "no database is known by the scheme tdb:, and the nearest scheme is "
	)
	out := filepath.Join(t.TempDir(), "run")
	for url, says := range map[string]string{
		"postgres://admin:super@secret99@127.0.0.1:54399/bank": postgres,
		"postgres://admin:super/secret99@127.0.0.1:54399/bank": postgres,
		"postgres://u:pass?secret99@127.0.0.1:54399/bank":      postgres,
		"mysql://u:pass/secret99@127.0.0.1:3306/bank":          mysql,
		"mysql://u:pass#secret99@127.0.0.1:3306/bank":          mysql,
		"mysql://user:super/host@127.0.0.1:3306/bank":          mysql,
		"redis://u:pass/secret99@127.0.0.1:6379":               redis,
		"redis://u:1/secret99@127.0.0.1:6379/0":                redis,
		"redis://u:pass?secret99@127.0.0.1:6379/0":             redis,
		"etcd://u:pass#secret99@127.0.0.1:2379":                etcd,
		"etcd://u:1#secret99@127.0.0.1:2379":                   etcd,
		"etcd://u:pass/secret99@127.0.0.1:2379,h2:2379":        etcd,
		"tdb:u:secret99@x":                                     unknown,
		"tdb://u:secret99@x":                                   unknown,
		"tdb:u:super/secret99@x":                               unknown,
		"postgresql+psycopg2://u:secret99@h/d":                 "by the scheme postgresql+psycopg2:, and without +psycopg2 it is postgresql:",
		"u/secret99:super@x":                                   "the database's URL has no scheme: it begins with one of sqlite:",
		"secret99":                                             "the database's URL has no scheme: it begins with one of sqlite:",
		"noop:u:secret99@x":                                    "open noop: the address is noop: with nothing behind it",
	} {
		code, stdout, stderr := call(t, "run", "bank", "--db", url, "--accounts", "10", "--count", "10", "--out", out)
		refused(t, code, 2, stderr, says)
		for _, piece := range []string{"secret99", "super", "xxxxx"} {
			if strings.Contains(stdout+stderr, piece) {
				t.Errorf("%s: %q is shown in %s%s", url, piece, stdout, stderr)
			}
		}
	}
}

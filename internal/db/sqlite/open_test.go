package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/sqlite"
	"stroppy/internal/isolation"
)

func TestOpenRefusesUnusableFiles(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "letter.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("Dear bank, ", 500)), 0o644); err != nil {
		t.Fatal(err)
	}
	short := filepath.Join(dir, "short.txt")
	if err := os.WriteFile(short, []byte("no"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir + "/none/bank.db":     "the directory " + dir + "/none does not exist",
		dir:                       "is a directory",
		text + "/bank.db":         "is no directory",
		text:                      "is no SQLite database",
		short:                     "is no SQLite database",
		"/dev/null":               "not a regular file",
		":memory:":                "use memory:",
		dir + "/x.db?sync=full":   "the known ones are busy_timeout, cache_size, journal, synchronous",
		dir + "/x.db?journal=off": "take one of wal, delete",
	} {
		_, err := sqlite.Open(t.Context(), "sqlite:"+path)
		wantError(t, err, db.Fatal, want)
		if strings.ContainsAny(err.Error(), "\n") {
			t.Errorf("more than one line: %v", err)
		}
	}
}

func TestOpenRefusesDamagedDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bank.db")
	d, err := sqlite.Open(t.Context(), "sqlite:"+path)
	if err != nil {
		t.Fatal(err)
	}
	createBank(t, d, 5000)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := &db.Statement{SQL: "SELECT bic, balance FROM account", Columns: []db.Type{db.Text, db.Decimal}}
	read := func(t *testing.T, bad []byte) error {
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		d, err := sqlite.Open(t.Context(), "sqlite:"+path)
		if err != nil {
			return err
		}
		defer d.Close()
		s := openSession(t, d, db.Interactive)
		return s.Query(t.Context(), all, nil, func([]db.Value) error { return nil })
	}
	t.Run("schema", func(t *testing.T) {
		bad := append([]byte(nil), good...)
		for i := 100; i < 4096; i++ {
			bad[i] = 0xA5
		}
		wantError(t, read(t, bad), db.Fatal, "open the SQLite database "+path, "damaged")
	})
	t.Run("pages", func(t *testing.T) {
		bad := append([]byte(nil), good...)
		for i := 4096; i < len(bad); i++ {
			bad[i] ^= 0xA5
		}
		wantError(t, read(t, bad), db.Fatal, "SQLITE_CORRUPT")
	})
	t.Run("whole", func(t *testing.T) {
		if err := read(t, good); err != nil {
			t.Error(err)
		}
	})
}

func TestInfoReportsSettings(t *testing.T) {
	for _, test := range []struct{ parameters, journal, synchronous, timeout string }{
		{"", "wal", "2 (full)", "10s"},
		{"journal=delete", "delete", "3 (extra)", "10s"},
		{"synchronous=off&busy_timeout=20ms", "wal", "0 (off)", "20ms"},
		{"synchronous=normal", "wal", "1 (normal)", "10s"},
	} {
		d, _ := openNew(t, test.parameters)
		info, err := d.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.Name != "SQLite" || !strings.HasPrefix(info.Version, "3.") {
			t.Errorf("the server is %q %q", info.Name, info.Version)
		}
		got := map[string]string{}
		for _, s := range info.Settings {
			got[s.Name] = s.Value
		}
		for name, want := range map[string]string{
			"journal_mode": test.journal, "synchronous": test.synchronous, "busy_timeout": test.timeout,
			"foreign_keys": "1", "page_size": "4096", "cache_size": "-8192", "wal_autocheckpoint": "1000",
		} {
			if got[name] != want {
				t.Errorf("%q: %s is %q, want %q", test.parameters, name, got[name], want)
			}
		}
	}
}

func TestClaimIsSerializable(t *testing.T) {
	d, _ := openNew(t, "")
	for _, name := range []string{"", "serializable", "SERIALIZABLE"} {
		claim, err := d.Claim(name)
		if err != nil || claim.Level != isolation.Serializable || claim.Isolation != "serializable" || !strings.Contains(claim.Source, "Isolation In SQLite") {
			t.Errorf("%q: %+v, %v", name, claim, err)
		}
	}
	_, err := d.Claim("read uncommitted")
	wantError(t, err, db.Fatal, `"read uncommitted"`, "serializable")
	_, err = d.Session(t.Context(), db.SessionOptions{Isolation: "snapshot", Mode: db.Pipelined})
	wantError(t, err, db.Fatal, "serializable")
	_, err = d.Session(t.Context(), db.SessionOptions{})
	wantError(t, err, db.Fatal, "mode")
}

func TestFootprintGrowsAndCloseFreesFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bank.db")
	d := openAt(t, path, "")
	createBank(t, d, 1000)
	s := openSession(t, d, db.Pipelined)
	before, err := d.Footprint(t.Context())
	if err != nil || before < 1000*40 {
		t.Fatalf("footprint %d, %v", before, err)
	}
	if err := transact(t, s, sql("UPDATE account SET version = version + 1")); err != nil {
		t.Fatal(err)
	}
	wal, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	after, err := d.Footprint(t.Context())
	if err != nil || after != file.Size()+wal.Size() || after <= before {
		t.Errorf("footprint %d, %v; the files have %d and %d bytes", after, err, file.Size(), wal.Size())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path + "-wal"); !os.IsNotExist(err) {
		t.Errorf("the WAL is still there after the last connection was closed: %v", err)
	}
	wantError(t, d.Exec(t.Context(), "SELECT 1"), db.Unavailable, "closed")

	again := openAt(t, path, "")
	if n := number(t, openSession(t, again, db.Interactive), "SELECT sum(version) FROM account"); n != 1000 {
		t.Errorf("after reopening the versions are %d", n)
	}
	run(t, again, "VACUUM", "PRAGMA optimize")
	wantError(t, again.Exec(t.Context(), "SELECT 1; SELECT 2"), db.Fatal, "more than one statement")
	wantError(t, again.Exec(t.Context(), " -- nothing"), db.Fatal, "no statement")
	wantError(t, again.Exec(t.Context(), "CREATE TABLE account (n INTEGER)"), db.Fatal, "already exists")
}

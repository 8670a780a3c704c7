package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqlite"
)

func TestOpenWithoutPermissionIsRefused(t *testing.T) {
	base, err := os.MkdirTemp("", "rights") // not t.TempDir, whose parent nobody else may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	chmod := func(path string, mode os.FileMode) {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	chmod(base, 0o755)
	for _, test := range []struct {
		name            string
		file, directory os.FileMode
		want            string
	}{
		{"readable file", 0o444, 0o777, "may read the file"},
		{"secret file", 0o000, 0o777, "may not open the file"},
		{"closed directory", 0o666, 0o000, "may not be entered"},
		{"fixed directory", 0o666, 0o555, "permissions"},
		{"fixed and empty directory", 0, 0o555, "permissions"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(base, test.name)
			path := filepath.Join(dir, "bank.db")
			if err := os.Mkdir(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			d, err := sqlite.Open(t.Context(), "sqlite:"+path)
			if err != nil {
				t.Fatal(err)
			}
			run(t, d, "CREATE TABLE a (n INTEGER) STRICT")
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if test.name == "fixed and empty directory" {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			} else {
				chmod(path, test.file)
			}
			chmod(dir, test.directory)
			t.Cleanup(func() { chmod(dir, 0o777) })
			drivertest.AsNobody(t, func() {
				_, err := sqlite.Open(t.Context(), "sqlite:"+path)
				wantError(t, err, db.Fatal, path, test.want)
			})
		})
	}
}

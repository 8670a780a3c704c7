package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestUnusableDirectoryIsAWrongCall checks that errors which another directory avoids are distinguished from errors
// of the machine.
func TestUnusableDirectoryIsAWrongCall(t *testing.T) {
	for err, want := range map[error]bool{
		ErrNotEmpty: true, syscall.EACCES: true, syscall.EPERM: true, syscall.EROFS: true, syscall.ENOTDIR: true,
		syscall.EEXIST: true, syscall.ENOENT: true, syscall.ENAMETOOLONG: true, syscall.ELOOP: true,
		syscall.ENOSPC: false, syscall.EIO: false, syscall.EMFILE: false, syscall.EDQUOT: false, errors.New("other"): false,
	} {
		got := Unusable("a/b", fmt.Errorf("make it: %w", &fs.PathError{Op: "mkdir", Path: "a/b", Err: err}))
		var unusable *UnusableError
		if errors.As(got, &unusable) != want || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
		if named := strings.Contains(got.Error(), "name another with --out"); named != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestDiscardKeepsRecordings checks that recordings stay, and that files named worthless are removed.
func TestDiscardKeepsRecordings(t *testing.T) {
	for _, c := range []struct {
		files, worthless []string
		removed          bool
	}{
		{nil, nil, true},
		{[]string{FaultsFile, ScenarioFile}, nil, true},
		{[]string{"bank.db"}, nil, false},
		{[]string{"bank.db"}, []string{"bank.db", "bank.db-wal"}, true},
		{[]string{"bank.db", HistoryDir}, []string{"bank.db"}, false},
	} {
		d, err := NewDirectory(filepath.Join(t.TempDir(), "run"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range c.files {
			if err := os.WriteFile(filepath.Join(d.Path, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		removed, err := d.Discard(c.worthless...)
		_, gone := os.Stat(d.Path)
		if err := errors.Join(err, d.Close()); err != nil || removed != c.removed || errors.Is(gone, fs.ErrNotExist) != removed {
			t.Errorf("%v without %v: removed %v, %v", c.files, c.worthless, removed, err)
		}
	}
}

package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRecordListsLeftoversWithoutPassword(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	r, err := NewRecord("etcd:3")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := r.TempFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []Leftover{
		{}, {Kind: LeftFolder, Name: "/"}, Leftover{Kind: LeftFolder, Name: "stroppy-x"}, Leftover{Kind: LeftFolder, Name: "/a/stroppy-x/../.."}, Leftover{Kind: LeftFolder, Name: "/home/stroppy"},
		Leftover{Kind: LeftMount, Name: "/mnt"}, {Kind: LeftProcess, PID: 1}, {Kind: "disk", Name: "/stroppy-x"},
	} {
		if err := r.Add(bad); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
	if err := r.SetURL("etcd://root:secret@h1:2379"); err != nil {
		t.Fatal(err)
	}
	records, err := Records()
	if err != nil || len(records) != 1 {
		t.Fatalf("Records: %v, %v", records, err)
	}
	got := records[0]
	if got.Kind != "etcd:3" || got.URL != "etcd://root@h1:2379" || got.PID != os.Getpid() || !got.Alive ||
		len(got.Made) != 1 || got.Made[0].Name != folder || time.Since(got.Began) > time.Hour {
		t.Errorf("the record is %+v", got)
	}
	if text, err := os.ReadFile(got.path); err != nil || strings.Contains(string(text), "secret") {
		t.Errorf("the record has the password: %v", err)
	}
	if lines, err := Clear(t.Context()); err != nil || len(lines) > 0 {
		t.Errorf("Clear of a living program: %v, %v", lines, err)
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := r.Add(Leftover{Kind: LeftFolder, Name: "/stroppy-x"}); err == nil {
		t.Error("a closed record is written")
	}
	if records, err := Records(); err != nil || len(records) != 0 {
		t.Errorf("after Close: %v, %v", records, err)
	}
}

// TestStateFolderRejectsUnsafeFolders checks that a folder is rejected if somebody else could have prepared it.
func TestStateFolderRejectsUnsafeFolders(t *testing.T) {
	for name, prepare := range map[string]func(path string) error{
		"open to others": func(path string) error { return os.Mkdir(path, 0o700) },
		"a link":         func(path string) error { return os.Symlink(t.TempDir(), path) },
		"a file":         func(path string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		runtime := t.TempDir()
		t.Setenv("XDG_RUNTIME_DIR", runtime)
		path := filepath.Join(runtime, "stroppy")
		if err := prepare(path); err != nil {
			t.Fatal(err)
		}
		if name == "open to others" {
			if err := os.Chmod(path, 0o770); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := NewRecord("x"); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestClearRemovesOldIncompleteRecords checks that Clear removes the record of a program that was killed before it
// wrote its name. A record that is just being written stays.
func TestClearRemovesOldIncompleteRecords(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	state, err := stateFolder()
	if err != nil {
		t.Fatal(err)
	}
	for _, age := range []time.Duration{0, time.Hour} {
		path := filepath.Join(state, "x"+recordSuffix)
		if err := os.WriteFile(path, []byte(`{"owner":{"pi`), 0o600); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-age)
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
		if lines, err := Clear(t.Context()); err != nil || len(lines) > 0 {
			t.Errorf("Clear: %v, %v", lines, err)
		}
		if _, err := os.Lstat(path); (err == nil) != (age == 0) {
			t.Errorf("the record of %v ago: %v", age, err)
		}
	}
}

// TestClearWorksOnReadOnlyFileSystem checks that Clear succeeds if no cluster was ever started and no folder can
// be made, as on a read-only file system.
func TestClearWorksOnReadOnlyFileSystem(t *testing.T) {
	runtime := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	if lines, err := Clear(t.Context()); err != nil || len(lines) > 0 {
		t.Errorf("Clear: %v, %v", lines, err)
	}
	if entries, err := os.ReadDir(runtime); err != nil || len(entries) > 0 {
		t.Errorf("Clear made %v, %v", entries, err)
	}
}

// TestClearRemovesKubernetesObjects checks that a Clearer removes a dead program's objects in Kubernetes. The
// record stays until then, and other calls do not wait for it.
func TestClearRemovesKubernetesObjects(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	r, err := NewRecord("k8s/thing:3")
	if err != nil {
		t.Fatal(err)
	}
	const name = `{"Run":"stroppy-1"}`
	if err := r.Add(Leftover{Kind: LeftObjects, Name: name}); err != nil {
		t.Fatal(err)
	}
	if err := r.Add(Leftover{Kind: LeftObjects, Name: `{"Run":"theirs"}`}); err == nil {
		t.Error("what cannot be ours was recorded")
	}
	text, err := os.ReadFile(r.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(filepath.Dir(r.file.Name()), "dead"+recordSuffix) // nobody holds its lock
	if err := os.WriteFile(dead, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if lines, err := Clear(t.Context()); err != nil || len(lines) > 0 {
		t.Errorf("without a way to Kubernetes: %v, %v", lines, err)
	}
	away := errors.New("the API server does not answer")
	_, err = ClearObjects(t.Context(), func(context.Context, string) (bool, error) { return false, away })
	if !errors.Is(err, away) || !strings.Contains(err.Error(), "delete "+dead) {
		t.Errorf("the error is %v", err)
	}
	var asked []string
	lines, err := ClearObjects(t.Context(), func(_ context.Context, name string) (bool, error) {
		asked = append(asked, name)
		return true, nil
	})
	if err != nil || len(lines) != 1 || !strings.Contains(lines[0], "objects in Kubernetes, left by process") || len(asked) != 1 || asked[0] != name {
		t.Errorf("it cleared %v and said %v, %v", asked, lines, err)
	}
	if _, err := os.Stat(dead); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the record of the dead program is there: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

package rounds

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/report"
)

func TestBook(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) || Holds(dir) {
		t.Errorf("an empty directory holds a comparison: %v", err)
	}
	b := &Book{Command: "stroppy compare a b", Stroppy: "1.0", Rounds: 2, Sides: []Side{{"a", []string{"01-a", "02-a"}}, {"b", []string{"01-b"}}}}
	if err := b.Save(dir); err != nil {
		t.Fatal(err)
	}
	kept, err := Read(dir)
	if err != nil || !Holds(dir) || kept.Schema != report.Schema || !reflect.DeepEqual(kept, b) {
		t.Errorf("kept %v, %v", kept, err)
	}
	if m := kept.Missing(); m != "The comparison is not finished: it has 3 of its 4 runs." {
		t.Errorf("missing: %q", m)
	}
	kept.Sides[1].Runs = append(kept.Sides[1].Runs, "02-b")
	if m := kept.Missing(); m != "" {
		t.Errorf("nothing is missing: %q", m)
	}
}

func TestReadRefuses(t *testing.T) {
	for text, why := range map[string]string{
		`{`:                             "it is not whole",
		`{"schema":1,"sides":[{}]}`:     "fewer than two sides",
		`{"schema":99,"sides":[{},{}]}`: "schema",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v and not %q", text, err, why)
		}
	}
}

func TestOf(t *testing.T) {
	b, err := Of([]string{"/runs/one", "/runs/kept/two"}, "/runs/kept/compared")
	if err != nil {
		t.Fatal(err)
	}
	b.Sides = append(b.Sides, Side{Runs: []string{"/elsewhere/three"}})
	var dirs []string
	for _, side := range b.Sides {
		dirs = append(dirs, side.Dirs("/moved/kept/compared")...)
	}
	if want := []string{"/moved/one", "/moved/kept/two", "/elsewhere/three"}; !slices.Equal(dirs, want) {
		t.Errorf("the runs are in %v and not in %v", dirs, want)
	}
}

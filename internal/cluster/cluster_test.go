package cluster

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/cluster/host"
)

// TestFindAllPrefersBinThenPathThenNewest checks that programs come from the parameter bin, else from PATH, else
// from the newest installed version.
func TestFindAllPrefersBinThenPathThenNewest(t *testing.T) {
	dir := t.TempDir()
	for folder, programs := range map[string][]string{"9/bin": {"a", "b"}, "10/bin": {"a", "b"}, "half": {"a"}, "path": {"a", "b"}, "own": {"a", "b"}} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range programs {
			if err := os.WriteFile(filepath.Join(dir, folder, name), nil, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	own := func(folder string) Options { return Options{Params: url.Values{"bin": {filepath.Join(dir, folder)}}} }
	for _, c := range []struct {
		name string
		path []string // folders on PATH
		o    Options
		want string // the folder, or a part of the error
	}{
		{"newest of the system's", []string{"half"}, Options{}, "10/bin"},
		{"PATH before the system's", []string{"half", "path"}, Options{}, "path"},
		{"bin before PATH", []string{"path"}, own("own"), "own"},
		{"bin that lacks one", []string{"path"}, own("half"), "half has no b: name the folder of the programs"},
		{"bin that is none", []string{"path"}, own("none"), "there is no folder " + filepath.Join(dir, "none")},
	} {
		folders := make([]string, len(c.path))
		for i, folder := range c.path {
			folders[i] = filepath.Join(dir, folder)
		}
		t.Setenv("PATH", strings.Join(folders, string(filepath.ListSeparator)))
		found, err := c.o.FindAll([]string{"a", "b"}, "some-package", dir+"/*/bin")
		if err != nil {
			if param := new(ParamError); !errors.As(err, &param) || param.Param != "bin" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.name, err, c.want)
			}
			continue
		}
		for _, name := range []string{"a", "b"} {
			if want := filepath.Join(dir, c.want, name); found[name] != want {
				t.Errorf("%s: %s is taken from %q, want %s", c.name, name, found[name], want)
			}
		}
	}
	t.Setenv("PATH", dir)
	if _, err := (Options{}).FindAll([]string{"a"}, "some-package"); !errors.Is(err, host.MissingError{Program: "a", Package: "some-package"}) {
		t.Errorf("FindAll of nothing: %v", err)
	}
}

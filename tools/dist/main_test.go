package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"stroppy/tools/try"
)

// commitTime is the time of fake releases.
var commitTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fakeRelease is a release with binaries that are no programs, for what packs them alone.
func fakeRelease(t *testing.T) (*release, []binary) {
	t.Helper()
	r := &release{version: "1.2.0-rc.1+dirty", commit: "0123abc", time: commitTime, scratch: t.TempDir(), shared: []file{
		{"LICENSE", []byte("the licence\n")}, {"README.md", []byte("the text\n")}, {"man/stroppy.1", []byte(".TH STROPPY\n")},
		{"completions/_stroppy", []byte("zsh\n")}, {"completions/stroppy.bash", []byte("bash\n")},
		{"completions/stroppy.fish", []byte("fish\n")}, {"completions/stroppy.ps1", []byte("powershell\n")},
	}}
	targets := parseTargets(strings.Join(allTargets, ","))
	var list []binary
	for _, one := range targets {
		file := filepath.Join(r.scratch, one.base(), one.program())
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("a fake binary for "+one.String()+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		info := &debug.BuildInfo{GoVersion: "go1.26.0", Deps: []*debug.Module{{Path: "example.org/b", Version: "v2.0.0"}, {Path: "example.org/a", Version: "v1.0.0"}}}
		list = append(list, binary{one, file, info})
	}
	return r, list
}

// fakeFolder writes a release of fake binaries.
func fakeFolder(t *testing.T) string {
	t.Helper()
	r, binaries := fakeRelease(t)
	out := t.TempDir()
	r.write(out, binaries, io.Discard)
	return out
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestReleaseIsReproducible checks the files of a release, and that two releases have the same bytes.
func TestReleaseIsReproducible(t *testing.T) {
	one, two := fakeFolder(t), fakeFolder(t)
	sums := string(read(t, one, sumsName))
	if other := string(read(t, two, sumsName)); sums != other {
		t.Errorf("two releases differ:\n%s\n%s", sums, other)
	}
	var names []string
	for line := range strings.Lines(sums) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if got := fmt.Sprintf("%x", sumOf(filepath.Join(one, name))); got != sum {
			t.Errorf("%s: %s", line, got)
		}
		names = append(names, name)
	}
	var want []string
	for _, of := range allTargets {
		base := "stroppy-" + strings.ReplaceAll(of, "/", "-")
		want = append(want, base+".cdx.json")
		switch {
		case strings.HasPrefix(of, "linux"):
			want = append(want, base+".tar.gz", base+".deb", base+".rpm")
		case strings.HasPrefix(of, "windows"):
			want = append(want, base+".zip")
		default:
			want = append(want, base+".tar.gz")
		}
	}
	want = append(want, imageName, chartName)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

// packed holds the entries of an archive, by name.
type packed struct {
	mode int64
	text string
}

func untar(t *testing.T, text []byte, compressed bool) map[string]packed {
	t.Helper()
	var in io.Reader = bytes.NewReader(text)
	if compressed {
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			t.Fatal(err)
		}
		in = unzipped
	}
	list := map[string]packed{}
	for archive := tar.NewReader(in); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(commitTime) {
			t.Errorf("%s is of %v", header.Name, header.ModTime)
		}
		list[header.Name] = packed{header.Mode, string(content)}
	}
}

func TestArchivesHoldProgramAndLicense(t *testing.T) {
	out := fakeFolder(t)
	unix := untar(t, read(t, out, "stroppy-darwin-arm64.tar.gz"), true)
	const base = "stroppy-darwin-arm64/"
	for name, want := range map[string]packed{
		base: {0o755, ""}, base + "stroppy": {0o755, "a fake binary for darwin/arm64\n"}, base + "man/": {0o755, ""},
		base + "man/stroppy.1": {0o644, ".TH STROPPY\n"}, base + "completions/_stroppy": {0o644, "zsh\n"},
	} {
		if unix[name] != want {
			t.Errorf("%s is %+v, want %+v", name, unix[name], want)
		}
	}
	if _, found := unix[base+"completions/stroppy.ps1"]; found || len(unix) != 10 {
		t.Errorf("the archive has %v", unix)
	}
	windows, err := zip.OpenReader(filepath.Join(out, "stroppy-windows-amd64.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer windows.Close()
	var names []string
	for _, f := range windows.File {
		if !f.Modified.Equal(commitTime) {
			t.Errorf("%s is of %v", f.Name, f.Modified)
		}
		names = append(names, path.Base(f.Name))
	}
	if want := []string{"stroppy-windows-amd64", "LICENSE", "README.md", "completions", "stroppy.ps1", "man", "stroppy.1", "stroppy.exe"}; !slices.Equal(names, want) {
		t.Errorf("the zip has %v, want %v", names, want)
	}
}

func TestUnknownTargetsAreRefused(t *testing.T) {
	for _, wrong := range []string{"", "linux", "plan9/amd64", "linux/amd64,linux/amd64", "linux/amd64, darwin/arm64"} {
		if try.Attempt(func() { parseTargets(wrong) }) == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

// TestOnlyFilesOfAReleaseAreRemoved checks that a build removes only files of an earlier release.
func TestOnlyFilesOfAReleaseAreRemoved(t *testing.T) {
	out := filepath.Join(t.TempDir(), "dist")
	for range 2 {
		emptied(out)
		if entries, err := os.ReadDir(out); err != nil || len(entries) > 0 {
			t.Errorf("%v, %v", entries, err)
		}
		for _, name := range []string{sumsName, "stroppy-linux-amd64", imageName} {
			if err := os.WriteFile(filepath.Join(out, name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(out, "thesis.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := try.Attempt(func() { emptied(out) }); err == nil || !strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("a folder with a file of somebody else: %v", err)
	}
	if _, err := os.Stat(filepath.Join(out, sumsName)); err != nil {
		t.Error("a folder that was refused was emptied")
	}
}

// TestReleaseRuns builds stroppy for one system twice, runs it and packs it into an image. It leaves out the profile of
// a release, which would compile everything again. TestReleaseIsReproducible checks the packed files, because
// compressing a whole binary into each archive takes twenty seconds.
func TestReleaseRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("links stroppy twice")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(root, ".git")); err != nil || !info.IsDir() { // Go stamps no other checkout
		t.Setenv("SOURCE_DATE_EPOCH", fmt.Sprint(commitTime.Unix()))
	}
	r, one := buildOnce(t, root)
	again, two := buildOnce(t, root)
	first, second := read(t, one.path), read(t, two.path)
	if !bytes.Equal(first, second) {
		t.Errorf("two builds have %d and %d bytes, which differ", len(first), len(second))
	}
	if bytes.Contains(first, []byte(root+"/internal")) {
		t.Error("the binary names the folder that it was built in")
	}
	if !reflect.DeepEqual(r.shared, again.shared) || r.version != again.version || !r.time.Equal(again.time) {
		t.Error("what stands beside two builds differs")
	}
	for _, f := range r.shared {
		if len(f.text) < 1000 {
			t.Errorf("%s has %d bytes alone", f.name, len(f.text))
		}
	}
	if one.target == host() {
		said, err := exec.Command(one.path, "--version").Output()
		if want := "stroppy " + one.info.Main.Version + "\n"; err != nil || string(said) != want {
			t.Errorf("it says %q of itself, and not %q: %v", said, want, err)
		}
	}
	out := t.TempDir()
	name := r.image(out, []binary{one})
	info, err := os.Stat(filepath.Join(out, name))
	if err != nil || info.Size() > 40e6 {
		t.Errorf("the image for one processor is %v: %v", info, err)
	}
}

func buildOnce(t *testing.T, root string) (*release, binary) {
	t.Helper()
	b := builder{root: root, scratch: t.TempDir()}
	binaries := b.buildAll([]target{{"linux", "amd64"}}, io.Discard)
	r := b.release(binaries)
	return r, binaries[0]
}

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/blakesmith/ar"
	"github.com/sassoftware/go-rpmutils"

	"stroppy/tools/try"
)

func TestDebInstallsTheProgram(t *testing.T) {
	archive := ar.NewReader(bytes.NewReader(read(t, fakeFolder(t), "stroppy-linux-arm64.deb")))
	parts := map[string][]byte{}
	for {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if parts[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
	control := untar(t, parts["control.tar.gz"], true)["./control"].text
	for _, want := range []string{"Package: stroppy\n", "Version: 1.2.0~rc.1+dirty-1\n", "Architecture: arm64\n", "Recommends: ca-certificates\n"} {
		if !strings.Contains(control, want) {
			t.Errorf("control has no %q:\n%s", want, control)
		}
	}
	data := untar(t, parts["data.tar.gz"], true)
	if got := data["./usr/bin/stroppy"]; got != (packed{0o755, "a fake binary for linux/arm64\n"}) {
		t.Errorf("the binary is %+v", got)
	}
	for _, name := range []string{"bash-completion/completions/stroppy", "zsh/vendor-completions/_stroppy", "fish/vendor_completions.d/stroppy.fish", "man/man1/stroppy.1.gz", "doc/stroppy/copyright", "doc/stroppy/README.md"} {
		if data["./usr/share/"+name].mode != 0o644 {
			t.Errorf("there is no /usr/share/%s in %v", name, slices.Sorted(maps.Keys(data)))
		}
	}
}

func TestRPMIsSound(t *testing.T) {
	text := read(t, fakeFolder(t), "stroppy-linux-arm64.rpm")
	if _, _, err := rpmutils.Verify(bytes.NewReader(text), nil); err != nil {
		t.Errorf("its digests: %v", err)
	}
	read, err := rpmutils.ReadRpm(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	name, err := read.Header.GetNEVRA()
	if err != nil || name.String() != "stroppy-0:1.2.0~rc.1+dirty-1.aarch64.rpm" {
		t.Errorf("it is %v, %v", name, err)
	}
	files, err := read.Header.GetFiles()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
		if f.UserName() != "root" || f.Mtime() != int(commitTime.Unix()) {
			t.Errorf("%s belongs to %s and is of %d", f.Name(), f.UserName(), f.Mtime())
		}
	}
	want := []string{"/usr/bin/stroppy", "/usr/share/bash-completion/completions/stroppy", "/usr/share/doc/stroppy/README.md", "/usr/share/fish/vendor_completions.d/stroppy.fish", "/usr/share/licenses/stroppy/LICENSE", "/usr/share/man/man1/stroppy.1.gz", "/usr/share/zsh/site-functions/_stroppy"}
	if !slices.Equal(names, want) {
		t.Errorf("it has %v, want %v", names, want)
	}
}

func TestBillOfMaterialsListsModules(t *testing.T) {
	out := fakeFolder(t)
	var bom struct {
		BOMFormat, SerialNumber string
		Metadata                struct {
			Component struct{ Name, Version string }
		}
		Components []struct{ Name, Version, Purl string }
	}
	if err := json.Unmarshal(read(t, out, "stroppy-darwin-amd64.cdx.json"), &bom); err != nil {
		t.Fatal(err)
	}
	if bom.BOMFormat != "CycloneDX" || bom.Metadata.Component.Name != "stroppy" || bom.Metadata.Component.Version != "1.2.0-rc.1+dirty" {
		t.Errorf("%+v", bom)
	}
	var names []string
	for _, c := range bom.Components {
		names = append(names, c.Purl)
	}
	if want := []string{"pkg:golang/example.org/a@v1.0.0", "pkg:golang/example.org/b@v2.0.0", "pkg:golang/std@1.26.0"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	if bytes.Equal(read(t, out, "stroppy-darwin-amd64.cdx.json"), read(t, out, "stroppy-darwin-arm64.cdx.json")) {
		t.Error("two binaries have one bill")
	}
}

// TestManualPageHasAllCommands checks that the page is made from all commands.
func TestManualPageHasAllCommands(t *testing.T) {
	page := manual(read(t, "../../docs/commands.md"), "1.2.0", commitTime)
	for _, want := range []string{".TH \"STROPPY\" \"1\" \"2026-01-02\" \"stroppy 1.2.0\"", "\n.SH SYNOPSIS\n", "\n.SH stroppy run\n", "\n.SH stroppy isolation\n", "--nemesis", "\n.SH EXIT STATUS\n"} {
		if !strings.Contains(strings.ReplaceAll(string(page), `\-`, "-"), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if try.Attempt(func() { manual([]byte("# Commands\n"), "1.2.0", commitTime) }) == nil {
		t.Error("a text without commands was taken")
	}
}

// TestFilesWithoutLicenseAreRefused checks that a module without a license that allows it is not passed on.
func TestFilesWithoutLicenseAreRefused(t *testing.T) {
	folder := t.TempDir()
	var text bytes.Buffer
	err := try.Attempt(func() { writeNotices(&text, "example.org/a v1.0.0", folder) })
	if err == nil || !strings.Contains(err.Error(), "example.org/a v1.0.0") {
		t.Errorf("without a licence: %v", err)
	}
	for _, name := range []string{"LICENSE.txt", "NOTICE", "licensing.go"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("text of "+name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	writeNotices(&text, "example.org/a v1.0.0", folder)
	if got := text.String(); !strings.Contains(got, "text of LICENSE.txt") || !strings.Contains(got, "text of NOTICE") || strings.Contains(got, "licensing.go") {
		t.Errorf("got %s", got)
	}
}

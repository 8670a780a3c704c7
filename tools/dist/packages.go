package main

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"

	"stroppy/tools/try"
)

// summary is the description of stroppy in packages and the image.
const summary = "Money transfers against a database under faults, proved from their recording"

const description = summary + `
Stroppy moves money between accounts with many clients at once while faults
are injected, records every transaction, and proves from the records and the
end state whether the database kept its promises, and how fast it was.`

// places maps files to the folders where systems look for them. Other files are documentation.
var places = map[string]string{
	"completions/stroppy.bash": "/usr/share/bash-completion/completions/stroppy",
	"completions/stroppy.fish": "/usr/share/fish/vendor_completions.d/stroppy.fish",
	"completions/_stroppy":     "/usr/share/zsh/site-functions/_stroppy",
	"man/stroppy.1":            "/usr/share/man/man1/stroppy.1.gz",
}

// deb makes the package of Debian and Ubuntu.
func (r *release) deb(out string, b binary) string {
	own := map[string]string{
		"completions/_stroppy": "/usr/share/zsh/vendor-completions/_stroppy",
		"LICENSE":              "/usr/share/doc/stroppy/copyright",
	}
	info := r.describe(b, own)
	info.Section, info.Priority = "database", "optional"
	name := b.target.base() + ".deb"
	written(filepath.Join(out, name), func(w io.Writer) { try.Check(deb.Default.Package(info, w)) })
	return name
}

// rpm makes the package of Fedora, RHEL and SUSE.
func (r *release) rpm(out string, b binary) string {
	info := r.describe(b, map[string]string{"LICENSE": "/usr/share/licenses/stroppy/LICENSE"})
	info.RPM = nfpm.RPM{Summary: summary, BuildHost: "localhost", Compression: "gzip", Group: "Unspecified"}
	name := b.target.base() + ".rpm"
	written(filepath.Join(out, name), func(w io.Writer) { try.Check(rpm.DefaultRPM.Package(info, w)) })
	return name
}

// describe returns the description of a package and its content, with files in places of its own.
func (r *release) describe(b binary, own map[string]string) *nfpm.Info {
	staged := try.Must(os.MkdirTemp(r.scratch, "package-"))
	contents := files.Contents{r.content(b.path, "/usr/bin/stroppy", 0o755)}
	for _, f := range r.shared {
		if strings.HasSuffix(f.name, ".ps1") {
			continue
		}
		place := cmp.Or(own[f.name], places[f.name], "/usr/share/doc/stroppy/"+f.name)
		text := f.text
		if strings.HasSuffix(place, ".gz") {
			text = compressed(text)
		}
		path := filepath.Join(staged, strings.ReplaceAll(f.name, "/", "-"))
		try.Write(path, text)
		contents = append(contents, r.content(path, place, 0o644))
	}
	version, prerelease, metadata := parts(r.version)
	return nfpm.WithDefaults(&nfpm.Info{
		Name: "stroppy", Arch: b.target.arch, Platform: "linux", Maintainer: "The Stroppy project",
		Version: version, VersionSchema: "none", Prerelease: prerelease, VersionMetadata: metadata, Release: "1",
		Description: description, License: "Apache-2.0", MTime: r.time, DisableGlobbing: true,
		Overridables: nfpm.Overridables{Contents: contents, Recommends: []string{"ca-certificates"}},
	})
}

func (r *release) content(path, place string, mode os.FileMode) *files.Content {
	return &files.Content{Source: path, Destination: place, Type: files.TypeFile,
		FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.time}}
}

// parts takes a semantic version apart, as packages write it: 1.2.0~rc.1 is before 1.2.0, and
// a hyphen would begin the number of the package.
func parts(text string) (version, prerelease, metadata string) {
	text, metadata, _ = strings.Cut(text, "+")
	version, prerelease, _ = strings.Cut(text, "-")
	dots := strings.NewReplacer("-", ".")
	return version, dots.Replace(prerelease), dots.Replace(metadata)
}

const (
	// chartFolder has the Helm chart, in the project.
	chartFolder = "deploy/helm"
	chartName   = "stroppy-chart.tgz"
)

// chartVersions are the lines of Chart.yaml that a release fills in.
var chartVersions = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)

// chartFiles reads the chart, with the release's version in it.
func chartFiles(root, version string) []file {
	folder := filepath.Join(root, chartFolder)
	list := filesIn(folder)
	for i, f := range list {
		if f.name == "Chart.yaml" {
			if len(chartVersions.FindAll(f.text, -1)) != 2 {
				try.Fail("Chart.yaml in %s has not one version and one appVersion", folder)
			}
			list[i].text = chartVersions.ReplaceAll(f.text, []byte("$1: "+version))
		}
	}
	return list
}

// chart packs the Helm chart, as `helm package` does.
func (r *release) chart(out string) {
	t := r.tree()
	t.addAll("stroppy", r.chartFiles)
	written(filepath.Join(out, chartName), t.writeTarGzip)
}

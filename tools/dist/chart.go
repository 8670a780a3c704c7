package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"stroppy/tools/try"
)

const (
	// chartFolder has the Helm chart, in the project.
	chartFolder = "deploy/helm"
	chartName   = "stroppy-chart.tgz"
)

// chartVersions are the lines of Chart.yaml that a release fills in.
var chartVersions = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)

// chartFiles reads the chart, with the release's version in it.
func chartFiles(root, version string) (list []file) {
	folder := filepath.Join(root, chartFolder)
	try.Check(fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(folder, name))
		if name == "Chart.yaml" {
			if len(chartVersions.FindAll(text, -1)) != 2 {
				return errors.New("Chart.yaml in " + folder + " has not one version and one appVersion")
			}
			text = chartVersions.ReplaceAll(text, []byte("$1: "+version))
		}
		list = append(list, file{name, text})
		return err
	}))
	return list
}

// chart packs the Helm chart, as `helm package` does.
func (r *release) chart(out string) {
	t := r.tree()
	for _, f := range r.chartFiles {
		t.add("stroppy/"+f.name, 0o644, f.text)
	}
	written(filepath.Join(out, chartName), t.writeTarGzip)
}

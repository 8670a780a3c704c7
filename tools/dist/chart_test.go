package main

import (
	"io"
	"strings"
	"testing"

	"stroppy/tools/try"
)

// TestChartHasTheReleaseVersion checks that the chart of a release is the project's, with the release's version, in one
// folder.
func TestChartHasTheReleaseVersion(t *testing.T) {
	r, binaries := fakeRelease(t)
	r.chartFiles = chartFiles("../..", r.version)
	out := t.TempDir()
	r.write(out, binaries, io.Discard)
	files := untar(t, read(t, out, chartName), true)
	for _, want := range []string{"name: stroppy\n", "\nversion: 1.2.0-rc.1+dirty\n", "\nappVersion: 1.2.0-rc.1+dirty\n"} {
		if got := files["stroppy/Chart.yaml"].text; !strings.Contains(got, want) {
			t.Errorf("Chart.yaml has no %q: %s", want, got)
		}
	}
	for _, name := range []string{"values.yaml", "values.schema.json", "templates/role.yaml", "files/rights.yaml"} {
		if files["stroppy/"+name].text == "" {
			t.Errorf("the chart has no %s", name)
		}
	}
	if try.Attempt(func() { chartFiles(t.TempDir(), "1.0.0") }) == nil {
		t.Error("a project without a chart has one")
	}
}

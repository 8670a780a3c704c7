package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// golden compares a page's data with testdata/NAME.json, which -update writes again. A list that a script
// reads is never null; only the named parts may be null.
func golden(t *testing.T, name string, data any, null ...string) {
	t.Helper()
	got, err := json.MarshalIndent(data, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(append(got, '\n'), want) {
		t.Errorf("%s is not as %s: run go test with -update here and look at the difference", name, file)
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(got, &parts); err != nil {
		t.Fatal(err)
	}
	for key, value := range parts {
		if string(value) == "null" && !slices.Contains(null, key) {
			t.Errorf("%s: %s is null", name, key)
		}
	}
}

// NewPageData returns the charts over the time of a run.
func NewPageData(in Input) *RunCharts {
	return RunDocument(in).Section("timeline").Chart.Data.(*RunCharts)
}

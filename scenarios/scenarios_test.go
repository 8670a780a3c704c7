package scenarios

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAllListsEveryScenarioFile checks that the list has every file, with a verdict and a text.
func TestAllListsEveryScenarioFile(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	studies, err := filepath.Glob("study/*.yaml")
	if err != nil || len(studies) == 0 {
		t.Fatal(studies, err)
	}
	files = append(files, studies...)
	slices.Sort(files)
	list := All()
	if len(list) != len(files) {
		t.Errorf("%d of %d", len(list), len(files))
	}
	for i, s := range list {
		data, err := os.ReadFile(files[i])
		if err != nil || s.Name+".yaml" != files[i] || string(s.Data) != string(data) {
			t.Errorf("%s is not %s: %v", s.Name, files[i], err)
		}
		if !slices.Contains([]string{"valid", "invalid"}, s.Verdict) || s.Database == "" || len(s.About) < 10 || strings.Contains(s.About, "\n") {
			t.Errorf("%s: verdict %q, database %q, about %q", s.Name, s.Verdict, s.Database, s.About)
		}
	}
}

package internal_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// scriptLists are the lists of scripts/test.sh: of packages, and of tests.
var scriptLists = map[string]*regexp.Regexp{
	"racy":       regexp.MustCompile(`(?m)^racy="([^"]*)"`),
	"watched":    regexp.MustCompile(`(?m)^watched="([^"]*)"`),
	"sequential": regexp.MustCompile(`(?m)^sequential=(.*)`),
}

// TestScriptRunsEachTest holds that the run of all tests has each of those packages that the race
// detector alone watches: none is cut short there, and those that are not watched run after it.
func TestScriptRunsEachTest(t *testing.T) {
	script := read(t, "../scripts/test.sh")
	list := func(name string) (text string) {
		for _, m := range scriptLists[name].FindAllStringSubmatch(script, -1) {
			text += m[1] + " "
		}
		if text == "" {
			t.Fatalf("scripts/test.sh has no list %s", name)
		}
		return text
	}
	for _, line := range []string{
		`tests "./internal/dbtest $watched $racy" -race -count 1 -short -p 3 -parallel 4 -skip "$sequential"`,
		"\t\trace\n", "\t\t" + `tests "$watched" -count 1 -run "$sequential"` + "\n",
		`unwatched=$(go list ./... | grep -vxF "$(go list $watched)" | tr '\n' ' ')`,
	} {
		if !strings.Contains(script, line) {
			t.Errorf("scripts/test.sh does not run %s", line)
		}
	}
	all := ""
	for path, text := range testsOf(t, list("watched")) {
		all += text
		if strings.Contains(text, "testing.Short()") {
			t.Errorf("%s: scripts/test.sh runs it with -short alone, so that what it skips then runs nowhere: take its package out of $watched", path)
		}
	}
	for _, text := range testsOf(t, list("racy")) {
		all += text
	}
	for _, name := range regexp.MustCompile(`Test\w+`).FindAllString(list("sequential"), -1) {
		if !strings.Contains(all, "\nfunc "+name+"(t *testing.T)") {
			t.Errorf("scripts/test.sh names %s, which no package has that the race detector watches", name)
		}
	}
}

// TestScriptRunsLeftScenarios holds that a scenario which the run of all tests leaves out is run by
// what its head names.
func TestScriptRunsLeftScenarios(t *testing.T) {
	_, branches, _ := strings.Cut(read(t, "../scripts/test.sh"), "\nif [ $tier = seeds ]; then\n")
	files, err := filepath.Glob("../scenarios/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for _, path := range files {
		head := regexp.MustCompile(`(?m)^# only: make (\w+)$`).FindStringSubmatch(read(t, path))
		if head == nil {
			continue
		}
		left++
		branch := branches
		if head[1] != "seeds" {
			_, branch, _ = strings.Cut(branches, "\nelif [ $tier = "+head[1]+" ]; then\n")
		}
		branch, _, _ = strings.Cut(branch, "\nel")
		run := regexp.MustCompile(`tests \./internal .*-run '\^TestDocuments\$/\^scenarios\$/(\S+)'`).FindStringSubmatch(branch)
		if run == nil || !regexp.MustCompile(run[1]).MatchString(filepath.Base(path)) {
			t.Errorf("make %s does not run %s: %q", head[1], path, run)
		}
	}
	if left == 0 {
		t.Error("no scenario is left out, so this test proves nothing")
	}
}

// testsOf reads the files of tests of packages, as go test names them, by their paths.
func testsOf(t *testing.T, packages string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, name := range strings.Fields(packages) {
		folder, whole := strings.CutSuffix(filepath.Join("..", name), "/...")
		before := len(texts)
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && path != folder && !whole:
				return fs.SkipDir
			case strings.HasSuffix(path, "_test.go"):
				texts[path] = read(t, path)
			}
			return nil
		})
		if err != nil || len(texts) == before {
			t.Errorf("scripts/test.sh names %s, which has no tests: %v", name, err)
		}
	}
	return texts
}

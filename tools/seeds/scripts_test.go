package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"stroppy/internal/script"
	"stroppy/tools/try"
)

// TestScriptSeedDrawsTheSamePlan checks that a seed draws the same plan each time, with enough transactions, and that
// the seeds draw all engines, schemas and files.
func TestScriptSeedDrawsTheSamePlan(t *testing.T) {
	drew := map[string]bool{}
	for seed := 1; seed <= 300; seed++ {
		p := drawScript(seed)
		if again := drawScript(seed); !reflect.DeepEqual(p, again) {
			t.Errorf("seed %d draws %v and then %v", seed, p, again)
		}
		if p.count < 2000 || p.clients < 2 || p.clients > 24 || len(p.files) == 0 {
			t.Errorf("seed %d draws %d transactions of %d clients and the scripts %q", seed, p.count, p.clients, p.files)
		}
		drew[p.engine.name+" "+p.schema.name], drew[p.wants()] = true, true
		for _, file := range p.files {
			name, _, _ := strings.Cut(file, "@")
			drew[p.schema.name+"/"+name] = true
		}
	}
	wanted := []string{"valid", "measured"}
	for _, s := range schemas() {
		for _, e := range engines() {
			wanted = append(wanted, e.name+" "+s.name)
		}
		for _, f := range s.files {
			wanted = append(wanted, s.name+"/"+f.name)
		}
	}
	for _, name := range wanted {
		if !drew[name] {
			t.Errorf("300 seeds never draw %s", name)
		}
	}
}

// TestScriptPlansAreHealthy checks that no plan has a script that its isolation or its checks do not allow.
func TestScriptPlansAreHealthy(t *testing.T) {
	for seed := 1; seed <= 300; seed++ {
		p := drawScript(seed)
		for _, f := range p.schema.files {
			if !strings.Contains(" "+strings.Join(p.files, " "), " "+f.name+"@") {
				continue
			}
			serializable := p.isolation == "serializable" || p.engine.name == "sqlite"
			sum := strings.Contains(strings.Join(p.invariants, "\n"), "sum(:")
			if f.computes && !serializable || f.deletes && p.tracked != nil || (f.several || f.unsummed) && sum {
				t.Errorf("seed %d draws %s of %s: %v", seed, f.name, p.schema.name, p.entry().Settings)
			}
		}
	}
}

// TestScriptsParse checks that each file of the schemas is a script, and that no file is left out.
func TestScriptsParse(t *testing.T) {
	for _, s := range schemas() {
		paths, err := filepath.Glob("scripts/" + s.name + "/*.sql")
		if err != nil || len(paths) != len(s.files)+1 {
			t.Errorf("the folder %s and its list differ: it has the files %q, %v", s.name, paths, err)
		}
		for _, f := range s.files {
			text, err := os.ReadFile("scripts/" + s.name + "/" + f.name + ".sql")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := script.Parse([]script.File{{Name: f.name, Text: string(text), Weight: 1}}, nil); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestScriptRecordIsOfTheseSeeds checks that each seed that has run draws what the record has of it.
func TestScriptRecordIsOfTheseSeeds(t *testing.T) {
	for _, a := range try.JSON[[]attempt]("../../" + scripts.record) {
		if e := drawScript(a.Seed).entry(); e.Cluster != a.Cluster || e.Workload != a.Workload || e.Settings != a.Settings {
			t.Errorf("seed %d drew %+v, and now it draws %+v", a.Seed, a, e)
		}
	}
}

// TestScriptsPageShowsWrongRunsAlone checks that the page counts all runs and has a row for wrong runs only.
func TestScriptsPageShowsWrongRunsAlone(t *testing.T) {
	var list []attempt
	for seed := 1; seed <= 20; seed++ {
		list = append(list, attemptOf(drawScript(seed), outcome{Verdict: drawScript(seed).wants()}, ""))
	}
	page := scriptsPage(list)
	if !strings.Contains(page, "| all |  |  | 20 |") || !strings.Contains(page, "Every run was right.") {
		t.Errorf("the page of right runs is:\n%s", page)
	}
	list[3].Verdict, list[5].Aside = "invalid", "overload"
	page = scriptsPage(list)
	if !strings.Contains(page, "| all |  |  | 19 |") || strings.Contains(page, "Every run was right.") ||
		!strings.Contains(page, "| invalid |\n| 6 |") || strings.Contains(page, "\n| 5 |") {
		t.Errorf("the page of a wrong run is:\n%s", page)
	}
	var read []attempt
	if err := json.Unmarshal(lines(list), &read); err != nil || !reflect.DeepEqual(read, list) {
		t.Errorf("the record is read as %+v: %v", read, err)
	}
}

// TestTrimKeepsTheResult checks that a trimmed run still has its outcome.
func TestTrimKeepsTheResult(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "run", "history"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"ended.txt": "0 1.5\n", "run/result.json": `{"verdict": "valid"}`,
		"run/history/transactions.bin": "x", "run/log.txt": "y",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	trim(dir)
	left, err := os.ReadDir(filepath.Join(dir, "run"))
	if o, ended := readOutcome(dir); err != nil || len(left) != 1 || !ended || o.Verdict != "valid" {
		t.Errorf("%d files are left, and the outcome is %+v: %v", len(left), o, err)
	}
}

package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/fault"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/report"
)

// faultyRun makes the directory of a finished run with two faults on a cluster of two
// nodes.
func faultyRun(t *testing.T, number uint64) string {
	t.Helper()
	dir := recording(t, number, 5, func(h *history.Header) {
		h.Keys[keyNemesis], h.Keys[keyNodes] = "kill leader every 5s for 2s\npause n1 at 9s for 1s", "n0 n1"
	})
	c := newConductor(Options{Dir: &Directory{Path: dir}, Progress: silent{}})
	if err := c.identify(); err != nil {
		t.Fatal(err)
	}
	c.result.Finished, c.result.Workload = true, "bank"
	log := &faultLog{conductor: c}
	for i, what := range []string{"kill leader", "pause n1"} {
		log.note(fault.Injection{
			Number: i + 1, Line: i + 1, Fault: what, Target: "n1", At: fault.Round(5), Healed: new(fault.Round(7)), Verified: "n1 down",
		})
	}
	nodes := nodesRecord{Nodes: []check.Replica{{Node: "n0"}, {Node: "n1"}}}
	if err := errors.Join(log.err, c.keepNodes(&nodes), c.save()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// checked returns the verdict and the reason of a check of the directory, or its error.
func checked(t *testing.T, dir string) string {
	t.Helper()
	r, err := Check(t.Context(), checking(t, []string{dir}, allValid))
	if err != nil {
		return err.Error()
	}
	details := ""
	for _, c := range r.Checks {
		details += c.Detail
	}
	return r.Verdict + ": " + r.Reason + " " + details
}

func replaceFile(t *testing.T, path string, change func(text string) string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(change(string(text))), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// reseal keeps the digests that the files in dir have now, as a run that left them like this.
func reseal(t *testing.T, dir string) {
	t.Helper()
	c := newConductor(Options{Dir: &Directory{Path: dir}, Progress: silent{}})
	r, err := report.Read(dir)
	if err == nil {
		c.result, r.Files = r, nil
		err = c.save()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFilesOfAnotherRun checks that a file of another run is refused by its name, by check and by
// report, and never checked against a healthy database.
func TestFilesOfAnotherRun(t *testing.T) {
	if dir := faultyRun(t, 2); !strings.HasPrefix(checked(t, dir), "valid: ") {
		t.Fatalf("files of one run: %s", checked(t, dir))
	}
	for _, name := range []string{report.FileName, NodesFile, FaultsFile, HistoryDir} {
		dir := faultyRun(t, 2)
		says := name + " belongs to run 3 of the workload bank, "
		if name == HistoryDir {
			says = "but the history in the same directory belongs to run 3"
		}
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(faultyRun(t, 3), name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if got := checked(t, dir); !strings.Contains(got, says) || strings.Contains(got, "\n") {
			t.Errorf("%s of another run, checked: %s", name, got)
		}
		if _, err := ReadResult(dir); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s of another run, reported: %v", name, err)
		}
		if _, err := PageInput(dir); err == nil {
			t.Errorf("%s of another run has a page", name)
		}
	}
}

// TestFaultsAndNodesAreAllThere checks that missing, extra or unreadable entries of nodes.json and faults.jsonl leave
// the verdict open. The verdict names the claim.
func TestFaultsAndNodesAreAllThere(t *testing.T) {
	line := func(text string, n int) string { return strings.SplitAfter(text, "\n")[n] }
	for _, tc := range []struct {
		name, file string
		change     func(text string) string
		says       string
	}{
		{"garbage", FaultsFile, func(text string) string { return line(text, 0) + "nonsense\n" + line(text, 1) }, "Line 2 of faults.jsonl is no fault."},
		{"a line twice", FaultsFile, func(text string) string { return text + line(text, 1) }, "faults.jsonl has 3 lines, and the run wrote 2."},
		{"another shape", FaultsFile, func(text string) string { return text + "{}\n" }, "Line 3 of faults.jsonl is no fault."},
		{"a fault is missing", FaultsFile, func(text string) string { return line(text, 0) }, `The fault "pause n1 at 9s for 1s" of the script is missing from faults.jsonl.`},
		{"the number of one is missing", FaultsFile, func(text string) string { return line(text, 1) }, "Fault 1 of 2 is missing from faults.jsonl."},
		{"no faults", FaultsFile, func(string) string { return "" }, "Fault 2 of 2 is missing from faults.jsonl."},
		{"a fault of no script", FaultsFile, func(text string) string { return strings.Replace(text, "pause n1", "pause n0", 1) }, "Fault 2 in faults.jsonl, pause n0, is none of the script."},
		{"a part of a fault", FaultsFile, func(text string) string { return strings.Replace(text, "pause n1", "pause n", 1) }, "Fault 2 in faults.jsonl, pause n, is none of the script."},
		{"of no line", FaultsFile, func(text string) string { return strings.Replace(text, `"line":2`, `"line":3`, 1) }, "Fault 2 in faults.jsonl, pause n1, is none of the script."},
		{"of no run", FaultsFile, func(text string) string {
			var fields map[string]any
			if err := json.Unmarshal([]byte(line(text, 0)), &fields); err != nil {
				t.Fatal(err)
			}
			delete(fields, "identity")
			first, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%s\n%s", first, line(text, 1))
		}, "Line 1 of faults.jsonl does not name its run."},
		{"a node is missing", NodesFile, func(text string) string { return strings.Replace(text, `"n0"`, `"n1"`, 1) }, "n0 could not be read: it is missing from nodes.json."},
		{"another node", NodesFile, func(text string) string { return strings.Replace(text, `"n0"`, `"n7"`, 1) }, "n7 could not be read: it is no node of the cluster"},
	} {
		dir := faultyRun(t, 2)
		replaceFile(t, filepath.Join(dir, tc.file), tc.change)
		for range 2 { // a check does not take over what it found
			if got, says := checked(t, dir), tc.file+" is not the one that the run left"; !strings.HasPrefix(got, "unknown: ") || !strings.Contains(got, says) {
				t.Errorf("%s: %s", tc.name, got)
			}
		}
		reseal(t, dir)
		if got := checked(t, dir); !strings.HasPrefix(got, "unknown: ") || !strings.Contains(got, tc.says) || !strings.Contains(got, "(claim: serializable)") {
			t.Errorf("%s: %s", tc.name, got)
		}
	}
	dir := faultyRun(t, 2)
	if err := os.Remove(filepath.Join(dir, NodesFile)); err != nil {
		t.Fatal(err)
	}
	if got := checked(t, dir); !strings.HasPrefix(got, "unknown: ") || !strings.Contains(got, "nodes.json is missing") {
		t.Errorf("without nodes.json: %s", got)
	}
}

// TestNodesThatComeAndGo checks that the nodes that are read at the end are those that faults have left
// in the cluster.
func TestNodesThatComeAndGo(t *testing.T) {
	for names, says := range map[string]string{
		"n1 n2":    "",
		"n0 n1":    "n0 could not be read: it is no node of the cluster",
		"n1":       "n2 could not be read: it is missing from nodes.json",
		"n1 n2 n3": "n3 could not be read: it is no node of the cluster",
	} {
		dir := faultyRun(t, 2)
		replaceFile(t, filepath.Join(dir, FaultsFile), func(text string) string {
			return strings.Replace(text, `"skipped":""`, `"skipped":"","joined":["n2","n3"],"left":["n0","n3"]`, 1)
		})
		replaceFile(t, filepath.Join(dir, NodesFile), func(text string) string {
			var record map[string]any
			if err := json.Unmarshal([]byte(text), &record); err != nil {
				t.Fatal(err)
			}
			var nodes []check.Replica
			for name := range strings.FieldsSeq(names) {
				nodes = append(nodes, check.Replica{Node: name})
			}
			record["nodes"] = nodes
			changed, err := json.Marshal(record)
			if err != nil {
				t.Fatal(err)
			}
			return string(changed)
		})
		reseal(t, dir)
		if got := checked(t, dir); strings.HasPrefix(got, "unknown: ") != (says != "") || !strings.Contains(got, says) {
			t.Errorf("%s: %s", names, got)
		}
	}
}

// TestChangedFileIsRefused checks that a file changed after the run is refused by its name, if it has no identity of
// its own.
func TestChangedFileIsRefused(t *testing.T) {
	for _, name := range []string{ScenarioFile, report.SeriesFile, report.ResourcesFile, ViolationsFile} {
		dir := faultyRun(t, 2)
		c := newConductor(Options{Dir: &Directory{Path: dir}, Progress: silent{}})
		r, err := ReadResult(dir)
		if err == nil {
			c.result = r
			err = errors.Join(c.o.Dir.Write(name, []byte("what the run wrote\n")), c.save())
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadResult(dir); err != nil {
			t.Errorf("%s as the run left it: %v", name, err)
		}
		replaceFile(t, filepath.Join(dir, name), func(text string) string { return text + "and more\n" })
		says := name + " is not the one that the run left"
		if got := checked(t, dir); !strings.Contains(got, says) {
			t.Errorf("%s was changed, checked: %s", name, got)
		}
		if _, err := PageInput(dir); err == nil || name != report.SeriesFile && name != report.ResourcesFile && !strings.Contains(err.Error(), says) {
			t.Errorf("%s was changed, reported: %v", name, err)
		}
	}
}

// TestReasonNamesTheClaim checks that the sentence of a verdict names the claim, if no violation was found.
func TestReasonNamesTheClaim(t *testing.T) {
	for status, verdict := range map[check.Status]string{check.Valid: "valid", check.Unknown: "unknown"} {
		for _, names := range [][]string{{"total"}, {"total", "ledger"}} {
			var results []check.Result
			for _, name := range names {
				results = append(results, check.Result{Name: name, Status: status, Required: true, Why: fact.CutOff{}})
			}
			r := new(report.Result)
			c := &conductor{result: r, expect: isolation.SnapshotIsolation}
			c.decide(results, 1, "")
			if r.Verdict != verdict || !strings.Contains(r.Reason, isolation.SnapshotIsolation.String()) {
				t.Errorf("%v of %v: %s: %s", status, names, r.Verdict, r.Reason)
			}
		}
	}
}

package study

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/report"
)

const tables = `
study: Test study
tables:
  - title: Throughput
    note: As printed.
    columns: [No, vendor, TPS]
    ours: [tps, clients]
    rows:
      - {scenarios: [s/one], cells: ["1", FDB, "2263"]}
      - {scenarios: [s/two, s/three], cells: ["2", PG, "2059"]}
      - {scenarios: [], cells: ["3", PG, "1"]}
  - title: Elsewhere
    columns: [No]
    ours: [tps]
    rows: [{scenarios: [s/other], cells: ["1"]}]
`

func parsed(t *testing.T) []Published {
	t.Helper()
	p, err := Parse("tables.yaml", []byte(tables))
	if err != nil {
		t.Fatal(err)
	}
	return []Published{p}
}

// book is a sweep of four scenarios: measured and scaled down, without a plan, not done, and
// one that no study has.
func book() *Book {
	return &Book{
		Over: []string{"s/one", "s/two", "s/three", "own"}, Seed: 7, StartedAt: "2026-11-21T14:03:02Z", Command: "stroppy sweep --over scenarios", Stroppy: "1.0", Machine: "2 processors",
		Rows: []Row{
			{Scenario: "s/one", Dir: "01-s-one", Verdict: "valid", Database: "FoundationDB 7.3", ScaledDown: 1000, Clients: 4, Loaded: 1000, Committed: 50, TPS: new(1234.0), P99MS: new(5.5)},
			{Scenario: "s/two", Problem: "start the cluster: it is not here"},
			{Scenario: "own", Dir: "04-own", Verdict: "valid", Clients: 1},
		},
	}
}

// TestTables: theirs is cited once, ours has numbers only where they were measured, and the
// factor stands beside them.
func TestTables(t *testing.T) {
	list := book().tables(parsed(t))
	if len(list) != 1 {
		t.Fatalf("%d tables", len(list))
	}
	want := [][]string{
		{"1", "FDB", "2263", "1,234", "4", "1000", "valid", "FoundationDB 7.3", "s/one"},
		{"2", "PG", "2059", none, none, none, "could not run", none, "s/two"},
		{"", "", "", none, none, none, "not run yet", none, "s/three"},
		{"3", "PG", "1", none, none, none, none, none, none},
	}
	for i, row := range list[0].Rows {
		if !slices.Equal(row.Cells, want[i]) || len(row.Cells) != len(list[0].Columns) {
			t.Errorf("row %d is %q and not %q", i+1, row.Cells, want[i])
		}
	}
	if !slices.Equal(list[0].Text, []int{1, 6, 7, 8}) || !strings.HasPrefix(list[0].Note, "As printed. The columns") {
		t.Errorf("%v, %s", list[0].Text, list[0].Note)
	}
	b := book()
	b.Over = b.Over[:1]
	if cells := b.tables(parsed(t))[0].Rows[1].Cells; cells[6] != "not in this sweep" {
		t.Errorf("%q", cells)
	}
}

// TestVerdict: what could not be run, or is not done, is never valid; a violation comes first.
func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		bend            func(*Book)
		verdict, reason string
	}{
		{func(b *Book) {}, "unfinished", "is not finished"},
		{func(b *Book) { b.Finished = true }, "unknown", "1 of 4 scenarios could not be run"},
		{func(b *Book) { b.Finished, b.Rows = true, b.Rows[:1] }, "valid", "No check found"},
		{func(b *Book) { b.Finished, b.Rows = true, b.Rows[1:2] }, "unknown", "No scenario was run"},
		{func(b *Book) { b.Rows[0].Verdict = "invalid" }, "invalid", "s/one"},
		{func(b *Book) { b.Finished, b.Rows = true, nil }, "unknown", "No scenario was run"},
	} {
		b := book()
		c.bend(b)
		if d := NewDocument(b, nil, ""); d.Verdict != c.verdict || !strings.Contains(d.Reason, c.reason) {
			t.Errorf("%s, %q; want %s, %q", d.Verdict, d.Reason, c.verdict, c.reason)
		}
	}
}

// TestForms: text, Markdown, page and file say the same, and none breaks out of the page.
func TestForms(t *testing.T) {
	b, dir := book(), t.TempDir()
	b.Rows[1].Problem = `</script><script>alert(1)</script>`
	published := parsed(t)
	if err := errors.Join(b.Save(dir, published), SavePage(b, dir, published, b.Command)); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := Text(&text, b, dir, published); err != nil {
		t.Fatal(err)
	}
	markdown := NewDocument(b, published, "").Markdown()
	for _, want := range []string{"UNFINISHED", "could not run", "2263", "1,234", "Test study, Throughput", "Runs were scaled down", "--out " + dir} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q", want)
		}
	}
	for _, want := range []string{"**UNFINISHED**", "| 1 | FDB | 2263 | 1,234 | 4 | 1000 | valid |", "### Could not run"} {
		if !strings.Contains(markdown, want) {
			t.Errorf("the Markdown lacks %q:\n%s", want, markdown)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, PageName))
	if err != nil || bytes.Contains(page, []byte("</script><script>alert")) || !bytes.Contains(page, []byte(`"page":"./01-s-one/report.html"`)) {
		t.Errorf("the page: %v", err)
	}
	again, err := Read(dir)
	if err != nil || len(again.Rows) != 3 || again.Rows[0].TPS == nil || len(again.Tables) != 1 || again.Tables[0].Rows[0][2] != "2263" {
		t.Errorf("read again: %v, %+v", err, again)
	}
}

// TestResume: a directory is gone on with by the same sweep of the same program alone.
func TestResume(t *testing.T) {
	dir := t.TempDir()
	fresh := func() *Book { return &Book{Over: book().Over, Stroppy: "1.0"} }
	if b, err := fresh().Resume(dir); err != nil || len(b.Rows) != 0 {
		t.Fatal(b, err)
	}
	if err := book().Save(dir, nil); err != nil {
		t.Fatal(err)
	}
	if b, err := fresh().Resume(dir); err != nil || len(b.Rows) != 3 || b.Seed != 7 || len(b.Missing()) != 1 {
		t.Error(b, err)
	}
	for want, bend := range map[string]func(*Book){
		"over other scenarios": func(b *Book) { b.Over = b.Over[1:] },
		"by stroppy 1.0":       func(b *Book) { b.Stroppy = "2.0" },
		"its seed is 7":        func(b *Book) { b.Seed = 8 },
	} {
		b := fresh()
		bend(b)
		if _, err := b.Resume(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fresh().Resume(dir); err == nil {
		t.Error("a file that is none is read")
	}
}

// TestParseRefuses: tables that do not fit themselves.
func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		strings.Replace(tables, `"2263"`, `"2263", "x"`, 1),
		strings.Replace(tables, "[tps, clients]", "[speed]", 1),
		strings.Replace(tables, "note:", "notes:", 1),
		"[", "",
	} {
		if _, err := Parse("tables.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "read the tables in tables.yaml") {
			t.Errorf("%v: %s", err, text)
		}
	}
}

// TestNewRow: what a result has of a run is in its row, and nothing is made up for one
// without a load phase.
func TestNewRow(t *testing.T) {
	r := &report.Result{Verdict: "valid", Database: "X", DatabaseVersion: "1", ScaledDownBy: 10, Load: &report.Load{Accounts: 100}, FootprintBytes: new(int64(5)),
		Drive: &report.Drive{Clients: 3, Committed: 9, TPS: &report.Throughput{Mean: new(2.0)}, Latency: &report.Latency{Mean: 1, P99: 2, Max: 3}}}
	row := NewRow("s", "", "d", r)
	data, err := json.Marshal(row)
	if want := `{"scenario":"s","settings":"","dir":"d","verdict":"valid","database":"X 1","scaled_down_by":10,"clients":3,"loaded":100,"committed":9,"tps":2,"tps_median":null,"tps_best":null,"latency_mean_ms":1,"latency_p99_ms":2,"latency_max_ms":3,"footprint_bytes":5}`; err != nil || string(data) != want {
		t.Errorf("%v, %s", err, data)
	}
	if row := NewRow("s", "", "d", &report.Result{}); row.TPS != nil || row.MeanMS != nil || row.Footprint != nil {
		t.Errorf("%+v", row)
	}
}

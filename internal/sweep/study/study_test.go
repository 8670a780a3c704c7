package study

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/sweep"
)

const studyTables = `
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
	p, err := Parse("tables.yaml", []byte(studyTables))
	if err != nil {
		t.Fatal(err)
	}
	return []Published{p}
}

// book is a sweep of four scenarios: measured and scaled down, without a plan, not done, and
// one that no study has.
func book() *sweep.Book {
	return &sweep.Book{
		Kind:  sweep.Scenarios,
		Names: []string{"s/one", "s/two", "s/three", "own"}, Seed: 7, StartedAt: "2026-11-21T14:03:02Z", Command: "stroppy sweep --over scenarios", Stroppy: "1.0", Machine: "2 processors",
		Points: []sweep.Point{
			{Scenario: "s/one", Dir: "01-s-one", Verdict: "valid", Database: "FoundationDB 7.3", ScaledDown: 1000, Clients: 4, Loaded: 1000, Committed: 50, TPS: new(1234.0), P99MS: new(5.5)},
			{Scenario: "s/two", Problem: "start the cluster: it is not here"},
			{Scenario: "own", Dir: "04-own", Verdict: "valid", Clients: 1},
		},
	}
}

// TestTablesComparePublishedAndMeasured checks that published numbers are shown once, and measured numbers and the
// factor only where they exist.
func TestTablesComparePublishedAndMeasured(t *testing.T) {
	list := tables(book(), parsed(t))
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
	b.Names = b.Names[:1]
	if cells := tables(b, parsed(t))[0].Rows[1].Cells; cells[6] != "not in this sweep" {
		t.Errorf("%q", cells)
	}
}

// TestVerdictIsNeverValidIfUnfinished checks that an unfinished or impossible run is never valid, and that a
// violation comes first.
func TestVerdictIsNeverValidIfUnfinished(t *testing.T) {
	for _, c := range []struct {
		bend            func(*sweep.Book)
		verdict, reason string
	}{
		{func(b *sweep.Book) {}, "unfinished", "is not finished"},
		{func(b *sweep.Book) { b.Finished = true }, "unknown", "1 of 4 scenarios could not be run"},
		{func(b *sweep.Book) { b.Finished, b.Points = true, b.Points[:1] }, "valid", "No check found"},
		{func(b *sweep.Book) { b.Finished, b.Points = true, b.Points[1:2] }, "unknown", "No scenario was run"},
		{func(b *sweep.Book) { b.Points[0].Verdict = "invalid" }, "invalid", "s/one"},
		{func(b *sweep.Book) { b.Finished, b.Points = true, nil }, "unknown", "No scenario was run"},
	} {
		b := book()
		c.bend(b)
		if d := NewDocument(b, nil, ""); d.Verdict != c.verdict || !strings.Contains(d.Reason, c.reason) {
			t.Errorf("%s, %q; want %s, %q", d.Verdict, d.Reason, c.verdict, c.reason)
		}
	}
}

// TestTextPageAndFileAgree checks that text, Markdown, page and file have the same content, and that no text
// breaks out of the page.
func TestTextPageAndFileAgree(t *testing.T) {
	b, dir := book(), t.TempDir()
	b.Points[1].Problem = `</script><script>alert(1)</script>`
	published := parsed(t)
	if err := errors.Join(Save(b, dir, published), SavePage(b, dir, published, b.Command)); err != nil {
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
	again, err := sweep.Scenarios.Read(dir)
	if err != nil || len(again.Points) != 3 || again.Points[0].TPS == nil || len(again.Tables) != 1 || again.Tables[0].Rows[0][2] != "2263" {
		t.Errorf("read again: %v, %+v", err, again)
	}
}

// TestResumeRejectsOtherSweep checks that only the same sweep of the same program continues a directory.
func TestResumeRejectsOtherSweep(t *testing.T) {
	dir := t.TempDir()
	fresh := func() *sweep.Book { return &sweep.Book{Kind: sweep.Scenarios, Names: book().Names, Stroppy: "1.0"} }
	if b, err := fresh().Resume(dir); err != nil || len(b.Points) != 0 {
		t.Fatal(b, err)
	}
	if err := Save(book(), dir, nil); err != nil {
		t.Fatal(err)
	}
	if b, err := fresh().Resume(dir); err != nil || len(b.Points) != 3 || b.Seed != 7 || len(b.Missing()) != 1 {
		t.Error(b, err)
	}
	for want, bend := range map[string]func(*sweep.Book){
		"over other scenarios": func(b *sweep.Book) { b.Names = b.Names[1:] },
		"by stroppy 1.0":       func(b *sweep.Book) { b.Stroppy = "2.0" },
		"its seed is 7":        func(b *sweep.Book) { b.Seed = 8 },
	} {
		b := fresh()
		bend(b)
		if _, err := b.Resume(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, string(sweep.Scenarios)), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fresh().Resume(dir); err == nil {
		t.Error("a file that is none is read")
	}
}

// TestParseRejectsInvalidTables checks that tables that are inconsistent are rejected.
func TestParseRejectsInvalidTables(t *testing.T) {
	for _, text := range []string{
		strings.Replace(studyTables, `"2263"`, `"2263", "x"`, 1),
		strings.Replace(studyTables, "[tps, clients]", "[speed]", 1),
		strings.Replace(studyTables, "note:", "notes:", 1),
		"[", "",
	} {
		if _, err := Parse("tables.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "read the tables in tables.yaml") {
			t.Errorf("%v: %s", err, text)
		}
	}
}

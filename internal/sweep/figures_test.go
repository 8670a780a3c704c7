package sweep

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"stroppy/internal/report"
)

// TestFastestStepHasHighestMedian checks that the step with the luckiest single measurement is not the fastest.
func TestFastestStepHasHighestMedian(t *testing.T) {
	b := books()["repeated"]
	b.Over, b.Points = "clients=4,8", nil
	for _, p := range []struct{ n, tps float64 }{{4, 226_877}, {8, 180_000}, {4, 110_780}, {8, 190_000}} {
		b.Points = append(b.Points, Point{Value: p.n, Verdict: "valid", TPS: new(p.tps), Best: new(p.tps)})
	}
	f := data(t, b).Figures[0]
	if f.Value != "185,000" || !slices.Equal(f.Below, []string{"with 8 clients", "median of 2, from 180,000 to 190,000"}) {
		t.Errorf("the highest throughput is %+v", f)
	}
	b.Points = b.Points[:2]
	if f := data(t, b).Figures[0]; f.Value != "226,877" || !slices.Equal(f.Below, []string{"with 4 clients", "best second 226,877"}) {
		t.Errorf("of single measurements the highest throughput is %+v", f)
	}
}

// inOrder fails unless the text has the parts, one after the other.
func inOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		_, after, found := strings.Cut(text, part)
		if !found {
			t.Fatalf("no %q in what is left: %s", part, text)
		}
		text = after
	}
}

// written is the text of a sweep in the directory runs/a for a terminal of so many columns.
func written(t *testing.T, b *Book, columns int) string {
	t.Helper()
	var out bytes.Buffer
	if err := Text(&out, b, report.Options{Dir: "runs/a", Width: columns}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestInvalidStepsComeFirst checks that text and page begin with the findings of the invalid steps, and with the
// command that shows their reports.
func TestInvalidStepsComeFirst(t *testing.T) {
	b := books()["invalid"]
	bad := &b.Points[3]
	bad.Violations = []report.FirstFinding{
		{Check: "total", Detail: "The balances add up to 90, and at the load to 100: 10 was lost.", Found: 1},
		{Check: "ledger", Detail: "Account 7 is off.", Found: 1234, Witness: []string{"1-0-7", "1-0-9"}},
	}
	inOrder(t, written(t, b, 100), "INVALID  bank on PostgreSQL", "1 of 5 steps: clients 8", "What is wrong", "clients 8: total", "10 was lost.",
		"Checks that found other violations: ledger (1,234).", "transactions (ledger): 1-0-7, 1-0-9", "All of it: stroppy report runs/a/08-clients", "Invalid: clients 8", "efficiency")
	d := data(t, b)
	if len(d.Failed) != 1 {
		t.Fatalf("what is wrong is %+v", d.Failed)
	}
	if f := d.Failed[0]; f.Name != "clients 8: total" || f.Page != "./08-clients/report.html" || f.Command != "stroppy report runs/curve/08-clients" || f.WitnessOf != "ledger" {
		t.Errorf("what is wrong is %+v", f)
	}
	// The first of many steps are shown, and the others counted. An old file has no findings.
	for n := range 9 {
		b.Points = append(b.Points, Point{Value: float64(20 + n), Dir: fmt.Sprintf("x; rm %d", n), Verdict: "invalid"})
	}
	d = data(t, b)
	if len(d.Failed) != 6 || d.Failed[5].Name != "5 steps more" || d.Failed[1].Command != "" || d.Failed[1].Detail == "" {
		t.Errorf("of ten invalid steps it has %+v", d.Failed)
	}
}

// TestMissedObjectivesAreShown checks that missed objectives are shown beside the verdict, in the rows, and in a
// note.
func TestMissedObjectivesAreShown(t *testing.T) {
	b := books()["few"]
	b.Points[0].Objectives, b.Points[2].Objectives = report.ObjectiveMet, report.ObjectiveMissed
	b.Points[1].Objectives, b.Points[2].ObjectivesText = report.ObjectiveUnknown, "objectives missed: p99<5%: It is 9 %d"
	d := data(t, b)
	if d.Objectives != report.ObjectiveMissed || d.Table.Rows[2].Cells[1] != "valid, objectives missed" || d.Table.Rows[2].Mark != "warning" || d.Table.Rows[0].Cells[1] != "valid" {
		t.Errorf("%s, %+v", d.Objectives, d.Table.Rows)
	}
	inOrder(t, written(t, b, 120), "VALID, OBJECTIVES MISSED  bank", "Objectives missed: clients 4. At clients 4: p99<5%: It is 9 %d.",
		"Objectives that could not be decided: clients 2.", "valid, objectives not decided", "valid, objectives missed")
	b.Points = append(b.Points[:1], Point{Value: 1, Verdict: "valid", Objectives: report.ObjectiveUnknown})
	if m := merge(b.Points)[0].Objectives; m != report.ObjectiveUnknown {
		t.Errorf("met and unknown are %s", m)
	}
}

// TestTextFitsTheTerminal checks that no line of a sentence or of the table is wider than the terminal.
func TestTextFitsTheTerminal(t *testing.T) {
	for name, b := range books() {
		if name == "hostile" {
			continue
		}
		b.Points = slices.DeleteFunc(b.Points, func(p Point) bool { return p.TPS == nil })
		for _, columns := range []int{80, 120} {
			text := written(t, b, columns)
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > columns && !strings.Contains(line, "seed 7") {
					t.Errorf("%s: %d columns of %d: %s", name, n, columns, line)
				}
			}
			if out := strings.Contains(strings.Join(strings.Fields(text), " "), "has no room for these columns"); name == "clients" && out != (columns == 80) {
				t.Errorf("%s: in %d columns:\n%s", name, columns, text)
			}
		}
	}
}

// TestPageShowsEnvironment checks that the page shows where the sweep was measured, like the page of a run.
func TestPageShowsEnvironment(t *testing.T) {
	b := books()["clients"]
	b.Environment = &report.Environment{Processor: "Elm 7", Cores: 4, Threads: 4, Governor: "performance", Kernel: "6.1", Servers: report.OnThisMachine, Build: report.Build{Version: "v2", Commit: "abc"}}
	d := data(t, b)
	what, machine := d.Section("what").Facts, d.Section("details").Tables
	if f := what[len(what)-1]; f.Name != "Machine" || !strings.HasPrefix(f.Value, "Elm 7 · 4 cores") {
		t.Errorf("the machine is %+v", f)
	}
	inOrder(t, machine[0].AsMarkdown(), "Elm 7", "performance", "6.1", report.OnThisMachine, "v2 · commit abc")
	d = data(t, books()["clients"])
	if what := d.Section("what").Facts; len(d.Section("details").Tables) != 0 || !strings.Contains(what[len(what)-1].Value, "2 processors") {
		t.Errorf("without an environment there is %+v", what)
	}
}

package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// comparisons are those that the page is tested with; their directory is c.
func comparisons() map[string][]Side {
	repeated := func(letter string, means ...uint64) (runs []Recorded) {
		for i, mean := range means {
			r := recorded(fmt.Sprintf("c/%02d-%s", i+1, letter), "bank", "valid", about(mean)...)
			r.Result.Drive.Latency = &Latency{Mean: 1000 / float64(mean), P50: 900 / float64(mean), P99: 4000/float64(mean) + float64(i)/10, P999: 9, Max: 20}
			r.Result.Tables = []Table{{Title: "Commits", Columns: []string{"", "avg [ms]"}, Rows: [][]string{{"commit", fmt.Sprintf("%.6f", 1000/float64(mean))}}}}
			r.Result.StartedAt, r.Result.Stroppy = "2026-11-21T14:03:02Z", "stroppy 1.0"
			runs = append(runs, r)
		}
		return runs
	}
	faster := side("locked.yaml", repeated("b", 1500, 1510, 1495)...)
	for i := range faster.Runs {
		faster.Runs[i].Result.Scenario = []Setting{{Name: "update", Value: "locked"}, {Name: "clients", Value: "8"}}
	}
	invalid := side("locked.yaml", repeated("b", 1500, 1510, 1495)...)
	invalid.Runs[1].Result.Verdict = "invalid"
	invalid.Runs[1].Series = invalid.Runs[1].Series[:9]
	hostile := side(evil, repeated("b", 1000)...)
	hostile.Runs[0].Result.Database, hostile.Runs[0].Result.Verdict, hostile.Runs[0].Dir = evil, evil, "c/"+evil
	hostile.Runs[0].Result.Scenario = []Setting{{evil, evil}}
	long := side("long", recorded("c/long", "bank", "valid", make([]uint64, 3601)...))
	first := side("atomic.yaml", repeated("a", 1000, 1010, 990)...)
	return map[string][]Side{
		"faster":  {first, faster, side("again.yaml", repeated("c", 1002, 1008, 992)...)},
		"invalid": {first, invalid},
		"single":  {side("one", repeated("a", 1000)[0]), long},
		"hostile": {side("one", repeated("a", 1000)...), hostile},
	}
}

func data(t *testing.T, sides []Side, command string) *Document {
	t.Helper()
	d, err := Compare(sides, "c", command)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func comparisonPage(t *testing.T, sides []Side) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := data(t, sides, "stroppy compare --repeat 3 atomic.yaml locked.yaml").WritePage(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestComparisonPageDataKeepsItsShape compares the page's JSON with a golden file.
func TestComparisonPageDataKeepsItsShape(t *testing.T) {
	for name, sides := range comparisons() {
		if name != "hostile" {
			golden(t, name+".comparison", data(t, sides, "stroppy compare"))
		}
	}
}

// TestComparisonPageNamesWorstVerdict checks which differences the page shows, and that it names the worst verdict.
func TestComparisonPageNamesWorstVerdict(t *testing.T) {
	d := data(t, comparisons()["faster"], "")
	if b, c := d.Section("figures").Figures[0], d.Section("figures").Figures[1]; b.Value != "1.503" || c.Value != "no difference shown" || d.Verdict != "valid" {
		t.Errorf("the measurements are %+v and %+v, the verdict %s", b, c, d.Verdict)
	}
	for _, r := range Ratios(d) {
		if r.Shown != (r.Low != nil && (*r.Low > 1 || *r.High < 1)) {
			t.Errorf("a difference is shown: %+v", r)
		}
	}
	if len(d.Section("differs").Facts) != 2 || d.Section("differs").Facts[0].Name != "update" || d.Section("runs").Tables[0].Rows[0].Page != "./01-a/report.html" {
		t.Errorf("not the same is %v; the first run is %+v", d.Section("differs").Facts, d.Section("runs").Tables[0].Rows[0])
	}
	bad := data(t, comparisons()["invalid"], "")
	if bad.Verdict != "invalid" || bad.Notes[0].Kind != "warning" || !strings.Contains(bad.Reason, "02-b") || bad.Section("differs").Facts[0].Name != "verdict" {
		t.Errorf("an invalid run makes the comparison %s: %s %v %v", bad.Verdict, bad.Reason, bad.Notes, bad.Section("differs").Facts)
	}
	if line := bad.Section("timeline").Chart.Data.(RunLines).Lines[3]; line.Label != "B 2" || line.Column[8] != line.Column[8] || line.Column[9] == line.Column[9] {
		t.Errorf("a run whose series ends early is drawn as %+v", line)
	}
	long := data(t, comparisons()["single"], "").Section("timeline").Chart.Data.(RunLines)
	if long.Bin != 7 || len(long.At) > mostPoints || long.Note == "" {
		t.Errorf("an hour is drawn in %d points of %d s: %q", len(long.At), long.Bin, long.Note)
	}
	if _, err := Compare(comparisons()["single"][:1], "c", ""); err == nil {
		t.Errorf("one side is compared: %v", err)
	}
}

// TestPageLinkStaysRelative checks that a link is relative and cannot become another scheme.
func TestPageLinkStaysRelative(t *testing.T) {
	for run, want := range map[string]string{
		"c/01-a": "./01-a/report.html", "other/01-a": "./../other/01-a/report.html", "/etc": "", "c/a b": "./a%20b/report.html", "c/javascript:x": "./javascript:x/report.html",
	} {
		if got := PageFrom("c", run); got != want {
			t.Errorf("%s is linked as %q, want %q", run, got, want)
		}
	}
}

// TestComparisonInABrowser opens every page as a file, in light and dark, wide
// and on a phone.
func TestComparisonInABrowser(t *testing.T) {
	b := OpenBrowser(t)
	for name, sides := range comparisons() {
		text := comparisonPage(t, sides)
		if n := bytes.Count(text, []byte("</script>")); n != 3+len(shared) {
			t.Errorf("%s: %d scripts end", name, n)
		}
		path := filepath.Join(t.TempDir(), name+".html")
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		want := data(t, sides, "")
		for _, view := range []struct {
			name, scheme string
			width        int64
		}{{"light", "light", 1200}, {"dark", "dark", 1200}, {"phone", "light", 360}} {
			b.Do(t, chromedp.EmulateViewport(view.width, 900), Scheme(view.scheme), chromedp.Navigate("file://"+path))
			s := b.Look(t)
			dots := Ask(t, b, chromedp.Evaluate[int](`document.querySelectorAll(".ratios .dot").length`))
			where := name + " " + view.name
			b.Quiet(t, where)
			if s.Wide > 0 || s.Title != want.Title || !strings.EqualFold(s.Verdict, want.Verdict) {
				t.Errorf("%s: %d pixels too wide, the title is %q and the verdict %q", where, s.Wide, s.Title, s.Verdict)
			}
			for _, bad := range []string{"[object", "undefined", "NaN", "Infinity"} {
				if strings.Contains(s.Text, bad) {
					t.Errorf("%s: the text has %q: %s", where, bad, s.Text)
				}
			}
			if c := s.Charts["throughput"]; c.Pixels < 500 || c.Colours < 3 || dots == 0 {
				t.Errorf("%s: the chart has %d pixels in %d colours, and there are %d dots", where, c.Pixels, c.Colours, dots)
			}
			if name == "faster" && (!strings.Contains(s.Text, "no difference shown") || strings.Index(s.Text, "Not the same") > strings.Index(s.Text, "Ratios")) {
				t.Errorf("%s: it does not say what is shown, or what is not the same comes late: %s", where, s.Text)
			}
			marks := Ask(t, b, chromedp.Evaluate[[]string](`[...document.querySelectorAll(".legend .u-marker")].map((e) => { const s = getComputedStyle(e); return s.backgroundColor + " " + s.backgroundImage; })`))
			slices.Sort(marks)
			if lines := len(want.Section("timeline").Chart.Data.(RunLines).Lines); len(slices.Compact(marks)) < lines {
				t.Errorf("%s: the marks of %d lines are %v", where, lines, marks)
			}
			b.Picture(t, "comparison-"+name+"-"+view.name)
		}
	}
}

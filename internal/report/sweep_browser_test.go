package report_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"stroppy/internal/report"
	"stroppy/internal/sweep"
)

// books returns the sweeps that the tests of package sweep make their pages of.
func books(t *testing.T) map[string]*sweep.Book {
	t.Helper()
	var texts map[string]json.RawMessage
	data, err := os.ReadFile("../sweep/testdata/books.json")
	if err == nil {
		err = json.Unmarshal(data, &texts)
	}
	if err != nil {
		t.Fatal(err)
	}
	books, dir := map[string]*sweep.Book{}, t.TempDir()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, string(sweep.Steps)), text, 0o644); err != nil {
			t.Fatal(err)
		}
		if books[name], err = sweep.Steps.Read(dir); err != nil {
			t.Fatal(err)
		}
	}
	return books
}

// page writes the page of a sweep into a file.
func page(t *testing.T, name string, b *sweep.Book) (path string) {
	t.Helper()
	dir := t.TempDir()
	d, err := sweep.NewDocument(b, "runs/curve", "stroppy sweep --db 'postgres://bank@[::1]/bank' --seed 7 --over "+b.Over)
	if err == nil {
		err = d.SavePage(dir, name+".html")
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name+".html")
}

// sweepCharts are those that a page must have.
func sweepCharts(name string) []string {
	switch {
	case name == "begun":
		return nil
	case strings.HasPrefix(name, "rate"):
		return []string{"curve"}
	}
	return []string{"scaling", "latency"}
}

// TestSweepPageInABrowser opens every page as a file, in light and dark, wide and on a
// phone.
func TestSweepPageInABrowser(t *testing.T) {
	b := report.OpenBrowser(t)
	for name, book := range books(t) {
		path := page(t, name, book)
		want, err := sweep.NewDocument(book, "", "")
		if err != nil {
			t.Fatal(err)
		}
		for _, view := range []struct {
			name, scheme string
			width        int64
		}{{"light", "light", 1200}, {"dark", "dark", 1200}, {"phone", "light", 360}} {
			b.Do(t, chromedp.EmulateViewport(view.width, 900), report.Scheme(view.scheme), chromedp.Navigate("file://"+path))
			s := b.Look(t)
			where := name + " " + view.name
			b.Quiet(t, where)
			if s.Wide > 0 {
				t.Errorf("%s: the page is %d pixels wider than the window", where, s.Wide)
			}
			if s.Title != want.Title || !strings.EqualFold(s.Verdict, want.Verdict) {
				t.Errorf("%s: the title is %q and the verdict %q", where, s.Title, s.Verdict)
			}
			for _, bad := range []string{"[object", "undefined", "NaN", "Infinity"} {
				if strings.Contains(s.Text, bad) {
					t.Errorf("%s: the text has %q: %s", where, bad, s.Text)
				}
			}
			if len(s.Charts) != len(sweepCharts(name)) {
				t.Errorf("%s: the charts are %v, want %v", where, s.Charts, sweepCharts(name))
			}
			for _, chart := range sweepCharts(name) {
				if c := s.Charts[chart]; name != "nothing" && (c.Pixels < 500 || c.Colours < 3) {
					t.Errorf("%s: the chart %s has %d pixels in %d colours", where, chart, c.Pixels, c.Colours)
				}
			}
			b.Picture(t, name+"-"+view.name)
		}
	}
}

// TestSweepPageShowsInvalidSteps checks that an invalid step is red in its chart and in its row, and that the row leads
// to its report. A valid sweep has nothing red.
func TestSweepPageShowsInvalidSteps(t *testing.T) {
	b := report.OpenBrowser(t)
	const red = `(() => {
		const canvas = document.querySelector("figure.chart canvas"), d = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
		let n = 0;
		for (let i = 0; i < d.length; i += 4) if (Math.abs(d[i] - 0xb3) < 4 && Math.abs(d[i + 1] - 0x26) < 4 && Math.abs(d[i + 2] - 0x1e) < 4 && d[i + 3] > 200) n++;
		return { n, rows: [...document.querySelectorAll("#steps tr.invalid a")].map((a) => a.getAttribute("href")).join(" "), links: document.querySelectorAll("#steps tbody a").length };
	})()`
	type found struct {
		N     int    `json:"n"`
		Rows  string `json:"rows"`
		Links int    `json:"links"`
	}
	for name, want := range map[string]found{
		"clients": {0, "", 7}, "rate": {0, "", 14},
		"invalid": {30, "./08-clients/report.html", 5}, "rate-invalid": {30, "./rate-8000/report.html", 6},
	} {
		path := page(t, name, books(t)[name])
		b.Do(t, chromedp.EmulateViewport(1200, 900), report.Scheme("light"), chromedp.Navigate("file://"+path), report.Settle())
		got := report.Ask(t, b, chromedp.Evaluate[found](red))
		b.Quiet(t, name)
		if (want.N == 0) != (got.N == 0) || got.N < want.N || got.Rows != want.Rows || got.Links != want.Links {
			t.Errorf("%s shows %+v, want at least %+v", name, got, want)
		}
	}
}

// TestSweepPageShowsStepUnderPointer checks that under the pointer the legend shows the step, and the law there.
func TestSweepPageShowsStepUnderPointer(t *testing.T) {
	b := report.OpenBrowser(t)
	for name, want := range map[string][]string{
		"clients": {"64 clients", "scalability law", "ideal"}, "rate": {"did ", "99.9 %"},
	} {
		path := page(t, name, books(t)[name])
		b.Do(t, chromedp.EmulateViewport(1200, 900), chromedp.Navigate("file://"+path), report.Settle(), chromedp.Evaluate[chromedp.Void](`(() => {
			const over = document.querySelector(".u-over"), r = over.getBoundingClientRect();
			over.dispatchEvent(new MouseEvent("mouseenter", { clientX: r.right - 200, clientY: r.top + 50 }));
			over.dispatchEvent(new MouseEvent("mousemove", { clientX: r.right - 200, clientY: r.top + 50, bubbles: true }));
		})()`), report.Settle())
		legend := report.Ask(t, b, chromedp.Evaluate[string](`document.querySelector(".legend").innerText`))
		b.Quiet(t, name)
		for _, part := range want {
			if !strings.Contains(legend, part) || strings.Contains(legend, "none") {
				t.Errorf("%s: the legend shows %q, want %q in it", name, legend, part)
			}
		}
	}
}

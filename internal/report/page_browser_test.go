package report

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// charts are those that a page must have.
func chartsOf(name string) []string {
	switch name {
	case "empty", "nothing":
		return nil
	case "invalid":
		return []string{"throughput", "latency", "queue", "histogram", "percentiles"}
	case "hour", "day":
		return []string{"throughput", "latency", "processors", "memory", "histogram", "percentiles"}
	case "split":
		return []string{"throughput", "acknowledged", "latency", "processors", "memory", "network", "volumes"}
	case "second":
		return []string{"throughput", "latency", "processors", "memory"}
	}
	return []string{"throughput", "latency"}
}

// TestPageInABrowser opens every page as a file, in light and dark, wide and on a
// phone, and prints it.
func TestPageInABrowser(t *testing.T) {
	b := OpenBrowser(t)
	for name, in := range pages() {
		path := filepath.Join(t.TempDir(), name+".html")
		if err := os.WriteFile(path, render(t, in), 0o644); err != nil {
			t.Fatal(err)
		}
		backgrounds := map[string]string{}
		for _, view := range []struct {
			name, scheme string
			width        int64
		}{{"light", "light", 1200}, {"dark", "dark", 1200}, {"phone", "light", 360}} {
			b.Do(t, chromedp.EmulateViewport(view.width, 900), Scheme(view.scheme), chromedp.Navigate("file://"+path))
			s := b.Look(t)
			where := name + " " + view.name
			b.Quiet(t, where)
			backgrounds[view.name] = s.Background
			if s.Wide > 0 {
				t.Errorf("%s: the page is %d pixels wider than the window", where, s.Wide)
			}
			if want := RunDocument(in); s.Title != want.Title || !strings.EqualFold(s.Verdict, want.Verdict) {
				t.Errorf("%s: the title is %q and the verdict %q", where, s.Title, s.Verdict)
			}
			if strings.Contains(s.Text, "[object") || strings.Contains(s.Text, "undefined") || strings.Contains(s.Text, "NaN") {
				t.Errorf("%s: the text is %s", where, s.Text)
			}
			if len(s.Charts) != len(chartsOf(name)) {
				t.Errorf("%s: the charts are %v, want %v", where, s.Charts, chartsOf(name))
			}
			for _, chart := range chartsOf(name) {
				if c := s.Charts[chart]; c.Pixels < 500 || c.Colours < 3 {
					t.Errorf("%s: the chart %s has %d pixels in %d colours", where, chart, c.Pixels, c.Colours)
				}
			}
			b.Picture(t, name+"-"+view.name)
		}
		if backgrounds["light"] == backgrounds["dark"] {
			t.Errorf("%s: light and dark have the same background %s", name, backgrounds["dark"])
		}
	}
}

// TestPagePrintsInLightColors checks that a page is printed in light colours with its charts,
// and is itself again after that.
func TestPagePrintsInLightColors(t *testing.T) {
	b := OpenBrowser(t)
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, render(t, pages()["invalid"]), 0o644); err != nil {
		t.Fatal(err)
	}
	b.Do(t, chromedp.EmulateViewport(1200, 900), Scheme("dark"), chromedp.Navigate("file://"+path), Settle(),
		chromedp.Evaluate[chromedp.Void](`window.printed = []; window.addEventListener("beforeprint", () => printed.push(getComputedStyle(document.documentElement).getPropertyValue("--paper").trim()))`))
	pdf := Ask(t, b, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4), chromedp.PDFPreferCSSPageSize()))
	papers := Ask(t, b, chromedp.Evaluate[[]string](`window.printed`))
	s := b.Look(t)
	b.Quiet(t, "print")
	if len(pdf) < 20_000 || !strings.HasPrefix(string(pdf), "%PDF") || len(papers) != 1 || papers[0] != "#ffffff" {
		t.Errorf("printed %d bytes on %v", len(pdf), papers)
	}
	if s.Background != "rgb(20, 23, 27)" || s.Charts["throughput"].Pixels < 500 {
		t.Errorf("after printing the background is %s and the charts are %v", s.Background, s.Charts)
	}
	if *Screenshots != "" {
		if err := os.WriteFile(filepath.Join(*Screenshots, "print.pdf"), pdf, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPageReactsToPointerAndClicks uses the page as a person does: hovers, switches a toggle,
// copies the command.
func TestPageReactsToPointerAndClicks(t *testing.T) {
	b := OpenBrowser(t)
	path := filepath.Join(t.TempDir(), "page.html")
	in := pages()["hour"]
	if err := os.WriteFile(path, render(t, in), 0o644); err != nil {
		t.Fatal(err)
	}
	b.Do(t, chromedp.EmulateViewport(1200, 900), Scheme("light"), chromedp.Navigate("file://"+path), Settle(),
		chromedp.Evaluate[chromedp.Void](`(() => {
			const over = document.querySelector('[data-chart="throughput"] .u-over'), r = over.getBoundingClientRect();
			over.dispatchEvent(new MouseEvent("mouseenter", { clientX: r.left + 300, clientY: r.top + 50 }));
			over.dispatchEvent(new MouseEvent("mousemove", { clientX: r.left + 300, clientY: r.top + 50, bubbles: true }));
		})()`), Settle())
	text := func(script string) string { return Ask(t, b, chromedp.Evaluate[string](script)) }
	legend := text(`[...document.querySelectorAll('[data-chart="throughput"] .legend, [data-chart="latency"] .legend')].map((e) => e.innerText).join(" | ")`)
	both := text(`document.querySelector("#latency input").click(), document.querySelector('[data-chart="histogram"] .legend').innerText`)
	button, selected := text(`document.querySelector(".command button").innerText`), text(`document.querySelector(".command code").innerText`)
	b.Quiet(t, "hour")
	if !strings.Contains(legend, "second ") || !strings.Contains(legend, "10,") && !strings.Contains(legend, "9,") || strings.Count(legend, "99 %") != 1 {
		t.Errorf("under the pointer the legends show %q", legend)
	}
	if !strings.Contains(both, "since sent") {
		t.Errorf("with service time the legend shows %q", both)
	}
	if button != "Copy" || selected != in.Result.Command {
		t.Errorf("%q copies %q", button, selected)
	}
}

// TestDragZoomsAllCharts checks that a drag on one chart zooms all charts over time, and
// that a double click goes back.
func TestDragZoomsAllCharts(t *testing.T) {
	b := OpenBrowser(t)
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, render(t, pages()["hour"]), 0o644); err != nil {
		t.Fatal(err)
	}
	b.Do(t, chromedp.EmulateViewport(1200, 900), chromedp.Navigate("file://"+path), Settle())
	place := Ask(t, b, chromedp.Evaluate[struct{ X, Y float64 }](`(() => {
		const over = document.querySelector('[data-chart="throughput"] .u-over');
		over.scrollIntoView({ block: "center" });
		const r = over.getBoundingClientRect();
		return { X: r.left + 100, Y: r.top + 60 };
	})()`))
	other := chromedp.Evaluate[string](`document.querySelector('[data-chart="latency"] canvas').toDataURL()`)
	whole := Ask(t, b, other)
	b.Do(t, chromedp.DragAndDropXY(place.X, place.Y, place.X+200, place.Y, 5), Settle())
	zoomed := Ask(t, b, other)
	b.Do(t, chromedp.MouseClickXY(place.X, place.Y, func(p *input.DispatchMouseEventParams) { p.ClickCount = 1 }),
		chromedp.MouseClickXY(place.X, place.Y, func(p *input.DispatchMouseEventParams) { p.ClickCount = 2 }), Settle())
	back := Ask(t, b, other)
	b.Quiet(t, "zoom")
	if zoomed == whole {
		t.Error("a drag on the throughput does not zoom the latency")
	}
	if back != whole {
		t.Error("a double click does not go back")
	}
}

// TestPageOfTenHoursOpens logs how long a browser takes to parse and draw a long page. It has no limit,
// because a machine does other things too.
func TestPageOfTenHoursOpens(t *testing.T) {
	b := OpenBrowser(t)
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, render(t, tenHours()), 0o644); err != nil {
		t.Fatal(err)
	}
	b.Do(t, chromedp.EmulateViewport(1200, 900), chromedp.Navigate("file://"+path), Settle())
	took := Ask(t, b, chromedp.Evaluate[float64](`performance.getEntriesByType("navigation")[0].loadEventEnd`))
	drawn := Ask(t, b, chromedp.Evaluate[float64](`performance.now()`))
	t.Logf("the page was loaded in %.0f ms and all of it drawn after %.0f ms", took, drawn)
	b.Quiet(t, "opening")
}

// TestLivePageShowsNewData checks that a live page shows newer data, draws it without
// being made again, and stops when the run is over.
func TestLivePageShowsNewData(t *testing.T) {
	b := OpenBrowser(t)
	var mu sync.Mutex
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		in := pages()["invalid"]
		in.Live = r.URL.Path != "/"+LiveData || asked < 1
		if r.URL.Path == "/favicon.ico" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if r.URL.Path == "/"+LiveData {
			asked++
			_ = json.NewEncoder(w).Encode(RunDocument(in))
			return
		}
		in.Seconds = in.Seconds[:60]
		_ = Page(w, in)
	}))
	defer server.Close()
	b.Do(t, chromedp.EmulateViewport(1200, 900), chromedp.Navigate(server.URL), Settle())
	first := Ask(t, b, chromedp.Evaluate[string](`window.plot = document.querySelector('[data-chart="throughput"] canvas'), document.querySelector("h1").innerText`))
	Ask(t, b, chromedp.Poll[bool](`document.querySelector("h1").innerText.toLowerCase() === "invalid"`, chromedp.WithPollingTimeout(time.Minute)))
	last := Ask(t, b, chromedp.Evaluate[string](`document.querySelector("h1").innerText + (window.plot.isConnected ? " same chart" : " other chart")`))
	b.Quiet(t, "live")
	if !strings.EqualFold(first, "running") || !strings.EqualFold(last, "invalid same chart") {
		t.Errorf("first %q, then %q", first, last)
	}
	mu.Lock()
	defer mu.Unlock()
	if asked != 2 {
		t.Errorf("it asked %d times, want 2", asked)
	}
}

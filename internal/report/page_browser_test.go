package report

import (
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// screenshots is where a person who works on the page wants to look at it.
var screenshots = flag.String("screenshots", "", "a directory into which the browser tests put pictures of the pages")

// browser starts a headless Chromium for a test and gathers what it complains of.
type browser struct {
	ctx context.Context

	mu         sync.Mutex
	complaints []string
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("skipped engine: chromium: install the Debian package chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()))
	if os.Geteuid() == 0 { // Chromium refuses root in its sandbox
		options = append(options, chromedp.NoSandbox)
	}
	deadline, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	allocated, stop := chromedp.NewExecAllocator(deadline, options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(allocated)
	t.Cleanup(end)
	b := &browser{ctx: ctx}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	err = chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.complaints = append(b.complaints, e.ExceptionDetails.Text+" "+e.ExceptionDetails.Exception.Description)
		case *runtime.EventConsoleAPICalled:
			b.complaints = append(b.complaints, "console "+e.Type.String())
		case *log.EventEntryAdded:
			b.complaints = append(b.complaints, e.Entry.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *browser) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// get returns what an action finds.
func get[T any](t *testing.T, b *browser, action chromedp.Action[T]) T {
	t.Helper()
	found, err := chromedp.Run(b.ctx, action)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// quiet holds that nothing was complained of.
func (b *browser) quiet(t *testing.T, name string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		t.Errorf("%s: the browser says %s", name, c)
	}
	b.complaints = nil
}

func (b *browser) picture(t *testing.T, name string) {
	t.Helper()
	if *screenshots == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), get(t, b, chromedp.FullScreenshot(100)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func scheme(value string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}},
		})
		return err
	})
}

// settle waits until what was asked of the page is drawn.
func settle() chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](`new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => r(true))))`, chromedp.EvalAwaitPromise)
}

// drawn tells of each chart how many of its pixels are not empty and how many
// colours they have, and whether the page is wider than the window.
const drawn = `(() => {
	const charts = {};
	for (const figure of document.querySelectorAll("figure.chart")) {
		const canvas = figure.querySelector("canvas");
		let pixels = 0;
		const colours = new Set();
		if (canvas && canvas.width > 0) {
			const d = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
			for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 60) { pixels++; colours.add((d[i] >> 5) + "," + (d[i + 1] >> 5) + "," + (d[i + 2] >> 5)); }
		}
		charts[figure.dataset.chart] = { pixels, colours: colours.size };
	}
	const root = document.documentElement;
	return { charts, wide: root.scrollWidth - root.clientWidth, title: document.title, background: getComputedStyle(document.body).backgroundColor,
		verdict: document.querySelector("h1").innerText, text: document.body.innerText };
})()`

type seen struct {
	Charts map[string]struct {
		Pixels  int `json:"pixels"`
		Colours int `json:"colours"`
	} `json:"charts"`
	Wide       int    `json:"wide"`
	Title      string `json:"title"`
	Background string `json:"background"`
	Verdict    string `json:"verdict"`
	Text       string `json:"text"`
}

func (b *browser) look(t *testing.T) seen {
	t.Helper()
	b.do(t, settle())
	return get(t, b, chromedp.Evaluate[seen](drawn))
}

// charts are those that a page must have.
func chartsOf(name string) []string {
	switch name {
	case "empty", "nothing":
		return nil
	case "invalid":
		return []string{"throughput", "latency", "queue", "histogram"}
	case "hour", "day":
		return []string{"throughput", "latency", "processors", "memory", "histogram"}
	case "second":
		return []string{"throughput", "latency", "processors", "memory"}
	}
	return []string{"throughput", "latency"}
}

// TestPageInABrowser opens every page as a file, in light and dark, wide and on a
// phone, and prints it.
func TestPageInABrowser(t *testing.T) {
	b := newBrowser(t)
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
			b.do(t, chromedp.EmulateViewport(view.width, 900), scheme(view.scheme), chromedp.Navigate("file://"+path))
			s := b.look(t)
			where := name + " " + view.name
			b.quiet(t, where)
			backgrounds[view.name] = s.Background
			if s.Wide > 0 {
				t.Errorf("%s: the page is %d pixels wider than the window", where, s.Wide)
			}
			if want := NewPageData(in); s.Title != want.Title || !strings.EqualFold(s.Verdict, want.Verdict) {
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
			b.picture(t, name+"-"+view.name)
		}
		if backgrounds["light"] == backgrounds["dark"] {
			t.Errorf("%s: light and dark have the same background %s", name, backgrounds["dark"])
		}
	}
}

// TestPagePrints holds that a page is printed in light colours with its charts,
// and is itself again after that.
func TestPagePrints(t *testing.T) {
	b := newBrowser(t)
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, render(t, pages()["invalid"]), 0o644); err != nil {
		t.Fatal(err)
	}
	b.do(t, chromedp.EmulateViewport(1200, 900), scheme("dark"), chromedp.Navigate("file://"+path), settle(),
		chromedp.Evaluate[chromedp.Void](`window.printed = []; window.addEventListener("beforeprint", () => printed.push(getComputedStyle(document.documentElement).getPropertyValue("--paper").trim()))`))
	pdf := get(t, b, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4), chromedp.PDFPreferCSSPageSize()))
	papers := get(t, b, chromedp.Evaluate[[]string](`window.printed`))
	s := b.look(t)
	b.quiet(t, "print")
	if len(pdf) < 20_000 || !strings.HasPrefix(string(pdf), "%PDF") || len(papers) != 1 || papers[0] != "#ffffff" {
		t.Errorf("printed %d bytes on %v", len(pdf), papers)
	}
	if s.Background != "rgb(20, 23, 27)" || s.Charts["throughput"].Pixels < 500 {
		t.Errorf("after printing the background is %s and the charts are %v", s.Background, s.Charts)
	}
	if *screenshots != "" {
		if err := os.WriteFile(filepath.Join(*screenshots, "print.pdf"), pdf, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPageAnswers uses the page as a person does: hovers, switches a toggle,
// copies the command.
func TestPageAnswers(t *testing.T) {
	b := newBrowser(t)
	path := filepath.Join(t.TempDir(), "page.html")
	in := pages()["hour"]
	if err := os.WriteFile(path, render(t, in), 0o644); err != nil {
		t.Fatal(err)
	}
	b.do(t, chromedp.EmulateViewport(1200, 900), scheme("light"), chromedp.Navigate("file://"+path), settle(),
		chromedp.Evaluate[chromedp.Void](`(() => {
			const over = document.querySelector('[data-chart="throughput"] .u-over'), r = over.getBoundingClientRect();
			over.dispatchEvent(new MouseEvent("mouseenter", { clientX: r.left + 300, clientY: r.top + 50 }));
			over.dispatchEvent(new MouseEvent("mousemove", { clientX: r.left + 300, clientY: r.top + 50, bubbles: true }));
		})()`), settle())
	text := func(script string) string { return get(t, b, chromedp.Evaluate[string](script)) }
	legend := text(`[...document.querySelectorAll('[data-chart="throughput"] .legend, [data-chart="latency"] .legend')].map((e) => e.innerText).join(" | ")`)
	both := text(`document.querySelector("#latency input").click(), document.querySelector('[data-chart="histogram"] .legend').innerText`)
	button, selected := text(`document.querySelector(".command button").innerText`), text(`document.querySelector(".command code").innerText`)
	b.quiet(t, "hour")
	if !strings.Contains(legend, "second ") || !strings.Contains(legend, "10,") && !strings.Contains(legend, "9,") || strings.Count(legend, "99 %") != 1 {
		t.Errorf("under the pointer the legends tell %q", legend)
	}
	if !strings.Contains(both, "since sent") {
		t.Errorf("with service time the legend tells %q", both)
	}
	if button != "Copy" || selected != in.Result.Command {
		t.Errorf("%q copies %q", button, selected)
	}
}

// TestPageZooms holds that a drag on one chart zooms all charts over time, and
// that a double click goes back.
func TestPageZooms(t *testing.T) {
	b := newBrowser(t)
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, render(t, pages()["hour"]), 0o644); err != nil {
		t.Fatal(err)
	}
	b.do(t, chromedp.EmulateViewport(1200, 900), chromedp.Navigate("file://"+path), settle())
	place := get(t, b, chromedp.Evaluate[struct{ X, Y float64 }](`(() => {
		const over = document.querySelector('[data-chart="throughput"] .u-over');
		over.scrollIntoView({ block: "center" });
		const r = over.getBoundingClientRect();
		return { X: r.left + 100, Y: r.top + 60 };
	})()`))
	other := chromedp.Evaluate[string](`document.querySelector('[data-chart="latency"] canvas').toDataURL()`)
	whole := get(t, b, other)
	b.do(t, chromedp.DragAndDropXY(place.X, place.Y, place.X+200, place.Y, 5), settle())
	zoomed := get(t, b, other)
	b.do(t, chromedp.MouseClickXY(place.X, place.Y, func(p *input.DispatchMouseEventParams) { p.ClickCount = 1 }),
		chromedp.MouseClickXY(place.X, place.Y, func(p *input.DispatchMouseEventParams) { p.ClickCount = 2 }), settle())
	back := get(t, b, other)
	b.quiet(t, "zoom")
	if zoomed == whole {
		t.Error("a drag on the throughput does not zoom the latency")
	}
	if back != whole {
		t.Error("a double click does not go back")
	}
}

// TestPageOpensFast holds that an hour's page is parsed and drawn within the two
// seconds that a person waits, on a machine that does other things too.
func TestPageOpensFast(t *testing.T) {
	b := newBrowser(t)
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, render(t, pages()["hour"]), 0o644); err != nil {
		t.Fatal(err)
	}
	b.do(t, chromedp.EmulateViewport(1200, 900), chromedp.Navigate("file://"+path), settle())
	took := get(t, b, chromedp.Evaluate[float64](`performance.getEntriesByType("navigation")[0].loadEventEnd`))
	t.Logf("the page of an hour was loaded and drawn in %.0f ms", took)
}

// TestLivePageFollows holds that a live page shows newer data, draws it without
// being made again, and stops when the run is over.
func TestLivePageFollows(t *testing.T) {
	b := newBrowser(t)
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
			_ = json.NewEncoder(w).Encode(NewPageData(in))
			return
		}
		in.Seconds = in.Seconds[:60]
		_ = Page(w, in)
	}))
	defer server.Close()
	b.do(t, chromedp.EmulateViewport(1200, 900), chromedp.Navigate(server.URL), settle())
	first := get(t, b, chromedp.Evaluate[string](`window.plot = document.querySelector('[data-chart="throughput"] canvas'), document.querySelector("h1").innerText`))
	get(t, b, chromedp.Poll[bool](`document.querySelector("h1").innerText.toLowerCase() === "invalid"`, chromedp.WithPollingTimeout(time.Minute)))
	last := get(t, b, chromedp.Evaluate[string](`document.querySelector("h1").innerText + (window.plot.isConnected ? " same chart" : " other chart")`))
	b.quiet(t, "live")
	if !strings.EqualFold(first, "running") || !strings.EqualFold(last, "invalid same chart") {
		t.Errorf("first %q, then %q", first, last)
	}
	mu.Lock()
	defer mu.Unlock()
	if asked != 2 {
		t.Errorf("it asked %d times, want 2", asked)
	}
}

package report

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Screenshots is where a person who works on a page wants to look at it; empty:
// no pictures are kept.
var Screenshots = flag.String("screenshots", "", "a directory into which the browser tests put pictures of the pages")

// Browser is a headless Chromium that gathers what it complains of.
type Browser struct {
	Context context.Context

	mu         sync.Mutex
	complaints []string
}

// started is the process that the browsers of all tests are windows of: to start one takes longer
// than most tests. TestMain ends it.
var started struct {
	once sync.Once
	ctx  context.Context // with the process
	ends []func()        // in this order
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, end := range started.ends {
		end()
	}
	os.Exit(code)
}

// startBrowser starts the process once. Chromium leaves folders where temporary files are.
func startBrowser(program string) {
	dir, err := os.MkdirTemp("", "stroppy-browser-")
	if err != nil {
		started.err = err
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.UserDataDir(filepath.Join(dir, "data")), chromedp.Env("TMPDIR="+dir))
	if os.Geteuid() == 0 { // Chromium refuses root in its sandbox
		options = append(options, chromedp.NoSandbox)
	}
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(allocated)
	started.ctx, started.ends = ctx, []func(){end, stop, func() { _ = os.RemoveAll(dir) }}
	started.err = chromedp.Do(ctx)
}

// OpenBrowser opens a browser of a test's own, and skips the test where there is none.
func OpenBrowser(t *testing.T) *Browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("skipped engine: chromium: install the Debian package chromium")
	}
	started.once.Do(func() { startBrowser(program) })
	if started.err != nil {
		t.Fatal(started.err)
	}
	own, end := chromedp.NewContext(started.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(end)
	ctx, cancel := context.WithTimeout(own, 3*time.Minute)
	t.Cleanup(cancel)
	b := &Browser{Context: ctx}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *Browser) listen(event any) {
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
}

// Do carries out actions.
func (b *Browser) Do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(b.Context, actions...); err != nil {
		t.Fatal(err)
	}
}

// Ask returns what an action finds.
func Ask[T any](t *testing.T, b *Browser, action chromedp.Action[T]) T {
	t.Helper()
	found, err := chromedp.Run(b.Context, action)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Quiet holds that nothing was complained of since it was asked last.
func (b *Browser) Quiet(t *testing.T, name string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		t.Errorf("%s: the browser says %s", name, c)
	}
	b.complaints = nil
}

// Picture keeps a picture of the page where Screenshots asks for it.
func (b *Browser) Picture(t *testing.T, name string) {
	t.Helper()
	if *Screenshots == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(*Screenshots, name+".png"), Ask(t, b, chromedp.FullScreenshot(100)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Scheme sets the color scheme that the reader prefers: light or dark.
func Scheme(value string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}},
		})
		return err
	})
}

// Settle waits until what was asked of the page is drawn.
func Settle() chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](`new Promise((r) => {
		const look = (left) => requestAnimationFrame(() => {
			const waiting = window.stroppy && window.stroppy.charts && window.stroppy.charts.waiting() > 0;
			if (left === 0 && !waiting) r(true);
			else look(waiting ? 1 : left - 1);
		});
		look(1);
	})`, chromedp.EvalAwaitPromise)
}

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

// Seen is the visible content of a page.
type Seen struct {
	Charts map[string]struct {
		Pixels  int `json:"pixels"`  // that are not empty
		Colours int `json:"colours"` // that they have
	} `json:"charts"`
	Wide       int    `json:"wide"` // pixels that the page is wider than the window
	Title      string `json:"title"`
	Background string `json:"background"`
	Verdict    string `json:"verdict"`
	Text       string `json:"text"`
}

// Look returns what the page shows once it is drawn.
func (b *Browser) Look(t *testing.T) Seen {
	t.Helper()
	b.Do(t, Settle())
	return Ask(t, b, chromedp.Evaluate[Seen](drawn))
}

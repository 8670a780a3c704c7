package report

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// measured is a run of so many seconds in which the database measured itself.
func measured(n int) Input {
	in := long(n, 1000)
	in.Result.ServerMetrics = &ServerMetrics{Asked: n, Missed: 1, Error: `no answer from "evil" </script>`, Columns: []ServerColumn{
		{Name: "waiting", Label: "waiting", Chart: "Sessions"},
		{Name: "idle", Label: "idle", Chart: "Sessions"},
		{Name: "never", Label: "never known", Chart: "Nothing"},
		{Name: "commits_per_s", Label: "commits"},
		{Name: "log_bytes_per_s", Label: "written </script>", Chart: "Log, MB per second", Scale: 1e6},
	}}
	for i := range n {
		row := ServerRow{Second: i, Server: []string{"a:1", "b:2"}[2*i/n], Values: []float64{float64(i % 7), 0, math.NaN(), 5, 2.5e6}}
		if i == n/2 {
			row = ServerRow{Second: i}
		}
		in.Server = append(in.Server, row)
	}
	in.Server[n/3].Values = []float64{500, 0, math.NaN(), 5, 1e6}
	return in
}

func TestPageDrawsServerMetrics(t *testing.T) {
	p := pageServer(measured(100))
	if p.Bin != 1 || len(p.At) != 100 || p.At[3] != 3.5 || len(p.Charts) != 2 {
		t.Fatalf("it is %+v", p)
	}
	sessions, log := p.Charts[0], p.Charts[1]
	if sessions.Title != "Sessions" || len(sessions.Lines) != 1 || sessions.Lines[0].Label != "waiting" || sessions.Note != "Zero all the time: idle." || sessions.Lines[0].Column[5] != 5 {
		t.Errorf("the sessions are %+v", sessions)
	}
	if log.Lines[0].Column[0] != 2.5 || log.Note != "" || !math.IsNaN(float64(log.Lines[0].Column[50])) {
		t.Errorf("the log is %+v", log)
	}
	for _, want := range []string{"Asked: a:1, b:2.", `no answer to 1 of 100 questions: No answer from "evil"`} {
		if !strings.Contains(p.Note, want) {
			t.Errorf("%q does not say %q", p.Note, want)
		}
	}
	refused := &ServerMetrics{Asked: 1, Missed: 1, Refused: true, Error: "ask: may not"}
	if got := pageServer(Input{Result: &Result{ServerMetrics: refused}}); got.Note != "The database does not give its own measurements: Ask: may not." || len(got.Charts) != 0 {
		t.Errorf("refused it is %+v", got)
	}
	if pageServer(Input{Result: &Result{}}) != nil {
		t.Error("a database that measures nothing has a part of the page")
	}
}

// TestPageServerEndsWithTheRun checks that a second that the load phase did not fill is left out. So all
// charts have the same axis.
func TestPageServerEndsWithTheRun(t *testing.T) {
	in := measured(100)
	in.Result.Drive.WarmupSeconds, in.Result.Drive.Seconds = 0, 98.7
	if p := pageServer(in); len(p.At) != 98 || len(p.Charts[0].Lines[0].Column) != 98 {
		t.Errorf("%d points of 98 whole seconds", len(p.At))
	}
}

// TestPageServerOfALongRun checks that a long run stays small and keeps its extremes.
func TestPageServerOfALongRun(t *testing.T) {
	p := pageServer(measured(36_000))
	if n := len(p.At); n > mostServerRows || p.Bin != 20 || p.At[n-1] > 36_000 || p.At[0] < 0 {
		t.Fatalf("%d points of %d seconds, from %v to %v", n, p.Bin, p.At[0], p.At[n-1])
	}
	found := false
	for i, x := range p.Charts[0].Lines[0].High {
		if x == 500 {
			found = math.Abs(float64(p.At[i])-12_000) <= 20
		}
	}
	if !found {
		t.Error("the highest second is lost, or elsewhere")
	}
}

func TestServerMetricsRoundTrip(t *testing.T) {
	in := measured(10)
	columns := in.Result.ServerMetrics.Columns
	var out bytes.Buffer
	WriteServerHeader(&out, columns)
	for _, r := range in.Server {
		WriteServerRow(&out, len(columns), r)
	}
	if header, _, _ := strings.Cut(out.String(), "\n"); header != "second,server,waiting,idle,never,commits_per_s,log_bytes_per_s" {
		t.Errorf("the header is %s", header)
	}
	cut := out.String() + "10,a:1,4"
	rows, err := ReadServer(strings.NewReader(cut), columns)
	if err != nil || len(rows) != 10 || rows[1].Values[0] != 1 || !math.IsNaN(rows[1].Values[2]) || rows[1].Server != "a:1" || !math.IsNaN(rows[5].Values[0]) {
		t.Errorf("%d rows, %v: %+v", len(rows), err, rows)
	}
	for _, text := range []string{"second,server\n0,a\n", strings.Replace(cut, "\n1,", "\nx,", 1), strings.Replace(cut, ",2500000", ",much", 1), strings.Replace(cut, "a:1", `"a:1`, 1)} {
		if _, err := ReadServer(strings.NewReader(text), columns); err == nil || !strings.Contains(err.Error(), "server.csv") {
			t.Errorf("%q was read: %v", text, err)
		}
	}
}

// TestServerInABrowser checks that the charts are drawn, on wide windows and narrow ones.
func TestServerInABrowser(t *testing.T) {
	b := OpenBrowser(t)
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, render(t, measured(120)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int64{1200, 360} {
		b.Do(t, chromedp.EmulateViewport(width, 900), chromedp.Navigate("file://"+path))
		s := b.Look(t)
		b.Quiet(t, "the server's side")
		for _, name := range []string{"throughput", "server-0", "server-1"} {
			if c := s.Charts[name]; c.Pixels < 500 || c.Colours < 3 {
				t.Errorf("the chart %s has %d pixels in %d colours", name, c.Pixels, c.Colours)
			}
		}
		if !strings.Contains(s.Text, "Zero all the time: idle.") || s.Wide > 0 {
			t.Errorf("%d pixels too wide: %s", s.Wide, s.Text)
		}
		b.Picture(t, "server")
	}
}

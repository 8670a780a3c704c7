package live

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"stroppy/internal/fault"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/stats"
)

func TestAddressDefaultsToLoopback(t *testing.T) {
	for text, want := range map[string]string{
		"8080": "127.0.0.1:8080", ":8080": "127.0.0.1:8080", "0": "127.0.0.1:0", "127.0.0.1:8080": "127.0.0.1:8080",
		"0.0.0.0:1": "0.0.0.0:1", "[::1]:65535": "[::1]:65535", "localhost:08080": "localhost:8080", "[::]:9": "[::]:9",
		"": "", "x": "", "host": "", "127.0.0.1": "", "1.2.3.4:": "", ":": "", "65536": "", "-1": "", "::1:80": "", "a:b": "", "http://x:80": "", "a b:80": "", "80 ": "",
	} {
		got, err := Address(text)
		if got != want || (err == nil) != (want != "") || err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestPortInUseIsAnError(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for address, says := range map[string]string{taken.Addr().String(): "the port is in use", "192.0.2.1:0": "no address of this machine"} {
		if s, err := Listen(NewFeed(), address, Options{Page: true}); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), address) {
			t.Errorf("%s: %v, %v", address, s, err)
		}
	}
}

// ask sends a request to a host name like a browser.
func ask(t *testing.T, h http.Handler, method, path, host string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	r.Host = host
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestServerRefusesOtherHostsAndMethods(t *testing.T) {
	feed, _ := driven()
	s := &Server{feed: feed, Options: Options{Page: true}, named: "127.0.0.1", started: "x"}
	h := s.handler(nil)
	for _, c := range []struct {
		method, path, host string
		status             int
	}{
		{"GET", "/", "127.0.0.1:8080", 200}, {"HEAD", "/", "localhost:8080", 200}, {"GET", "/data.json", "[::1]:8080", 200}, {"GET", "/", "localhost", 200},
		{"GET", "/", "evil.example:8080", 421}, {"GET", "/data.json", "evil.example", 421},
		{"POST", "/", "127.0.0.1:8080", 405}, {"DELETE", "/data.json", "127.0.0.1", 405}, {"OPTIONS", "/", "127.0.0.1", 405},
		{"GET", "/metrics", "127.0.0.1", 404}, {"GET", "/x", "127.0.0.1", 404}, {"GET", "/../etc/passwd", "127.0.0.1", 307},
	} {
		r := ask(t, h, c.method, c.path, c.host)
		if r.StatusCode != c.status {
			t.Errorf("%s %s at %s is answered with %d, want %d", c.method, c.path, c.host, r.StatusCode, c.status)
		}
		if r.Header.Get("X-Content-Type-Options") != "nosniff" || r.Header.Get("X-Frame-Options") != "DENY" || r.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s %s: the headers are %v", c.method, c.path, r.Header)
		}
		if c.method == "HEAD" && body(t, r) != "" {
			t.Error("HEAD has a body")
		}
	}
	if r := ask(t, (&Server{feed: feed, Options: Options{Page: true}}).handler(nil), "GET", "/", "my.host.example"); r.StatusCode != 200 {
		t.Errorf("a server for all is not known by its name: %d", r.StatusCode)
	}
}

// TestLivePageDecidesOnlyViolations checks that a violation is shown during the run, that nothing else is decided, and
// that the last second is shown with the mean.
func TestLivePageDecidesOnlyViolations(t *testing.T) {
	feed, d := violated()
	shown := func() *report.Document {
		s := feed.Snapshot()
		return s.data()
	}
	bad := shown()
	if bad.Verdict != "invalid" || !strings.HasPrefix(bad.Title, "Invalid: ") || len(bad.Section("checks").Checks) != 0 || len(bad.Section("failed").Checks) != 1 || bad.Section("failed").Checks[0].Name != "serializable" || bad.Section("failed").Checks[0].Shown != "Invalid" ||
		bad.Section("failed").Checks[0].Findings[0].Text != "a lost update" || bad.Section("failed").Checks[0].Findings[0].File != "" || bad.Section("failed").Checks[0].Witness[0] != "1-2-3" ||
		!strings.HasPrefix(bad.Reason, "The check beside the clients has found a violation of serializable (700 transactions checked so far, and 11 transactions left out") || strings.Contains(bad.Reason, "decided") {
		t.Errorf("with a violation the page is %q: %q, %+v", bad.Title, bad.Reason, bad.Section("failed").Checks)
	}
	if now := bad.Section("figures").Figures[0]; now.Name != "Throughput, last second" || now.Value != "1" || now.Below[0] != "asked for 251/s" || bad.Section("figures").Figures[1].Name != "Throughput, mean" {
		t.Errorf("the figures are %+v", bad.Section("figures").Figures)
	}
	d.found = &run.LiveCheck{LiveCheck: report.LiveCheck{Checked: 900}}
	d.commit(10, rand.New(rand.NewPCG(1, 1)))
	feed.Show(d.state())
	if good := shown(); good.Verdict != "running" || len(good.Section("checks").Checks) != 0 ||
		!strings.HasSuffix(good.Reason, "Nothing is decided before its end. The check beside the clients has found no violation (900 transactions checked so far).") {
		t.Errorf("without one it is %s: %q", good.Verdict, good.Reason)
	}
	// The run's own verdict replaces it.
	result := known(0)
	result.Finished, result.Verdict, result.Reason = true, "invalid", "It is."
	result.Checks = []report.Check{{Name: "total", Status: "valid"}, {Name: "serializable", Status: "unknown"}}
	feed.Known(result)
	if end := shown(); len(end.Section("checks").Checks) != 2 || strings.Contains(end.Reason, "beside the clients") {
		t.Errorf("at the end it is %q, %+v", end.Reason, end.Section("checks").Checks)
	}
	families := scrape(t, feed, asText)
	if n := labelled(t, families["stroppy_check_status"], "status", "valid") + labelled(t, families["stroppy_check_status"], "status", "unknown"); n != 2 {
		t.Errorf("%v checks have a status", n)
	}
}

// TestFirstPageIsCompleteWithoutScript checks that the page initially contains, also as text, what its script shows a
// second later, and nothing unknown.
func TestFirstPageIsCompleteWithoutScript(t *testing.T) {
	feed, _ := violated()
	s := &Server{feed: feed, Options: Options{Page: true}, started: "x"}
	h := s.handler(nil)
	page, data := body(t, ask(t, h, "GET", "/", "h")), body(t, ask(t, h, "GET", "/data.json", "h"))
	if !strings.Contains(page, data) {
		t.Error("the page does not begin with its data")
	}
	_, text, _ := strings.Cut(page, "<noscript>")
	text, _, _ = strings.Cut(text, "</noscript>")
	for _, want := range []string{"INVALID  bank", "What is wrong\n", "a lost update", "transactions: 1-2-3", "another 56s.", "Throughput, last second  1 /s"} {
		if !strings.Contains(text, want) {
			t.Errorf("as text it does not say %q: %s", want, text)
		}
	}
	for _, not := range []string{"not known", "was cut off", "None was made"} {
		if strings.Contains(text, not) || strings.Contains(data, `"`+not+`"`) {
			t.Errorf("it says %q: %s", not, text)
		}
	}
}

// TestDataIsConditional checks that a reader with the newest data gets an empty answer.
func TestDataIsConditional(t *testing.T) {
	feed, d := driven()
	h := (&Server{feed: feed, Options: Options{Page: true}, started: "x"}).handler(nil)
	first := ask(t, h, "GET", "/data.json", "h")
	tag := first.Header.Get("ETag")
	var data report.Document
	if err := json.Unmarshal([]byte(body(t, first)), &data); err != nil || !data.Live || data.Verdict != "running" {
		t.Fatalf("%v, %+v", err, data)
	}
	again := ask(t, h, "GET", "/data.json", "h", "If-None-Match", tag)
	if again.StatusCode != http.StatusNotModified || body(t, again) != "" || again.Header.Get("ETag") != tag {
		t.Errorf("the same data is answered with %d", again.StatusCode)
	}
	if list := ask(t, h, "GET", "/data.json", "h", "If-None-Match", `"a", `+tag); list.StatusCode != http.StatusNotModified {
		t.Errorf("one of several is answered with %d", list.StatusCode)
	}
	d.commit(10, rand.New(rand.NewPCG(1, 1)))
	feed.Show(d.state())
	newer := ask(t, h, "GET", "/data.json", "h", "If-None-Match", tag)
	if newer.StatusCode != http.StatusOK || newer.Header.Get("ETag") == tag || len(body(t, newer)) == 0 {
		t.Errorf("newer data is answered with %d and %s", newer.StatusCode, newer.Header.Get("ETag"))
	}
}

// TestLivePageDataDescribesTheLoad checks what the page shows of the running load phase.
func TestLivePageDataDescribesTheLoad(t *testing.T) {
	feed, d := driven()
	now := feed.Snapshot()
	data := now.data()
	c := data.Section("timeline").Chart.Data.(*report.RunCharts).Timeline
	if len(c.At) != 3 || len(c.Bands) != 2 || c.Bands[1].Healed != nil || c.Bands[0].Healed == nil {
		t.Errorf("the timeline is %+v", c)
	}
	if figures := data.Section("figures").Figures; data.Section("latency").Chart == nil || len(figures) == 0 || figures[0].Value == report.NotKnown {
		t.Errorf("measurements %+v", figures)
	}
	text, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Nothing is decided", "another 57s", "pause n1 at 2s is in effect", "2 of 16 clients have lost", "Due and not sent yet: 9 transactions.", "never sent: 4 transactions.",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the data does not say %q: %s", want, text)
		}
	}
	for _, not := range []string{"cut off", "insufficient funds", "when the load phase ended"} {
		if strings.Contains(string(text), not) {
			t.Errorf("the data of a run that goes on says %q: %s", not, text)
		}
	}
	if len(d.all) != 15000 || !strings.Contains(string(text), "15,000") {
		t.Errorf("it does not count %d: %s", len(d.all), text)
	}
}

// TestWarmupIsNotMeasured checks that the warm-up is excluded from the measurements.
func TestWarmupIsNotMeasured(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	f, d := NewFeed(), &standIn{}
	f.Begin(PhaseDrive)
	f.Known(known(2))
	for i, n := range []int{1000, 1000, 50, 70} {
		d.commit(n, random)
		f.Show(d.state())
		now := f.Snapshot()
		drive := now.result().Drive
		want := max(0, []int{0, 0, 50, 120}[i])
		if drive.Committed != uint64(want) || want > 0 && now.measured().Count() != uint64(want) {
			t.Errorf("after second %d it counts %d, want %d", i, drive.Committed, want)
		}
	}
}

// TestEndShowsTheFinalResult checks that the last transactions count and that the run's directory then
// provides the result.
func TestEndShowsTheFinalResult(t *testing.T) {
	feed, d := driven()
	d.add(time.Millisecond)
	feed.Show(d.state()) // no whole second has passed
	if now := feed.Snapshot(); now.State.Counters.Committed != 15000 {
		t.Errorf("within a second it looks again: %d", now.State.Counters.Committed)
	}
	feed.Begin("measure")
	if now := feed.Snapshot(); now.State.Counters.Committed != 15001 || now.Latencies.Count() != 15001 {
		t.Errorf("the drive ended with %d, and %d latencies", now.State.Counters.Committed, now.Latencies.Count())
	}
	r := known(0)
	r.Verdict, r.Reason, r.Finished = "valid", "All is well.", true
	feed.Known(r)
	now := feed.Snapshot()
	if d := now.data(); !d.Live || d.Verdict != "running" || !strings.Contains(d.Reason, "came to VALID: All is well.") {
		t.Errorf("between the verdict and the report: %s, %s", d.Verdict, d.Reason)
	}
	feed.End(report.Input{Result: r, Seconds: []stats.Second{{Second: 0, Committed: 5}}}, "A note.")
	now = feed.Snapshot()
	if d := now.data(); d.Live || d.Verdict != "valid" || d.Notes[len(d.Notes)-1].Text != "A note." || !now.Over() {
		t.Errorf("at the end: %+v", d)
	}
	feed.Fresh()
	feed.Break("there is no such database")
	now = feed.Snapshot()
	if d := now.data(); d.Live || d.Verdict != "unknown" || !strings.Contains(d.Reason, "no such database") {
		t.Errorf("broken: %+v", d)
	}
}

// TestConcurrentReadersOfALiveRun reads a running run concurrently.
func TestConcurrentReadersOfALiveRun(t *testing.T) {
	feed, d := driven()
	s, err := Listen(feed, "127.0.0.1:0", Options{Page: true, Metrics: true})
	if err != nil {
		t.Fatal(err)
	}
	var serving, readers sync.WaitGroup
	serving.Go(s.Serve)
	for _, path := range []string{"/", "/data.json", "/metrics", "/data.json"} {
		readers.Go(func() {
			for range 10 {
				answer, err := http.Get("http://" + s.Address() + path)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
					t.Errorf("%s: %v %s", path, err, answer.Status)
				}
				answer.Body.Close()
			}
		})
	}
	random := rand.New(rand.NewPCG(5, 6))
	for i := range 20 {
		d.commit(100, random)
		feed.Show(d.state())
		feed.Fault(fault.Record{Injection: fault.Injection{Number: 10 + i, Fault: "kill", Target: "n0"}})
	}
	feed.Begin("check")
	readers.Wait()
	feed.End(report.Input{Result: known(0)})
	answer, err := http.Get("http://" + s.Address() + "/data.json")
	if err != nil {
		t.Fatal(err)
	}
	if text := body(t, answer); !strings.Contains(text, `"live":false`) {
		t.Error("the end is not shown")
	}
	answer.Body.Close()
	s.Close()
	serving.Wait()
	if _, err := http.Get("http://" + s.Address() + "/"); err == nil {
		t.Error("it answers after it was closed")
	}
}

// TestLiveRejectionsNameNoRule checks that no rule is named for rejections during the load phase, when the rules are
// not known.
func TestLiveRejectionsNameNoRule(t *testing.T) {
	feed, _ := driven()
	now := feed.Snapshot()
	r := now.drive().Rejected
	if r[report.Unsplit] == 0 || len(r) != 1 {
		t.Errorf("of what was rejected it says %+v", r)
	}
	var below []string
	for _, figure := range now.data().Section("figures").Figures {
		below = append(below, figure.Below...)
	}
	if want := fmt.Sprint(r[report.Unsplit], " rejected"); !slices.Contains(below, want) {
		t.Errorf("the measurements %q do not say %q", below, want)
	}
}

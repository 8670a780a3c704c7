package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"

	"stroppy/internal/fault"
	"stroppy/internal/stats"
)

// evil is text that would end a script, a comment or an attribute.
const evil = `</script><script>document.title="broken out"</script><!-- "'><img src=x onerror=alert(1)>` + "\u2028"

// synthetic is a series as a run of so many seconds leaves it, with a slow wave,
// noise, and nothing for outage seconds from at.
func synthetic(n, tps, at, outage int) []stats.Second {
	random := rand.New(rand.NewPCG(1, 2))
	series := make([]stats.Second, n)
	for i := range series {
		s := &series[i]
		s.Second = i
		if i >= at && i < at+outage {
			s.Unknown, s.Aborted = 3, 11
			s.Waiting = uint64((i - at + 1) * tps)
			continue
		}
		wave := 1 + 0.05*math.Sin(float64(i)/200) + 0.02*random.NormFloat64()
		s.Committed = uint64(float64(tps) * max(wave, 0))
		s.Rejected = uint64(random.IntN(tps/50 + 1))
		s.P50 = time.Duration(900+random.IntN(200)) * time.Microsecond
		s.P99 = time.Duration(7000+random.IntN(5000)) * time.Microsecond
		s.P90, s.P999 = (s.P50+s.P99).Truncate(2*time.Microsecond)/2, s.P99.Truncate(2*time.Microsecond)*3/2
		s.Max = s.P99 * time.Duration(2+random.IntN(9))
	}
	return series
}

// resourcesOf returns a possible use of resources by client and servers.
func resourcesOf(n int) []Resource {
	random := rand.New(rand.NewPCG(3, 4))
	rows := make([]Resource, n)
	for i := range rows {
		rows[i] = Resource{
			Second: i, ClientCPU: number(0.4 + 0.05*random.Float64()), ClientRSS: number(int64(80_000_000 + 1000*i)),
			ServersCPU: number(1.2 + 0.3*random.Float64()), ServersRSS: number(int64(400_000_000 + 20_000*i)),
		}
	}
	return rows
}

// elsewhere adds what the machines of servers elsewhere know of them, but for the first seconds.
func elsewhere(rows []Resource) []Resource {
	for i := range rows[3:] {
		r := &rows[3+i]
		r.ServersReceived, r.ServersSent = number(int64(2_500_000+40_000*(i%7))), number(int64(1_100_000+30_000*(i%5)))
		r.ServersStored = number(int64(1_000_000_000 + 7_000_000*i))
	}
	return rows
}

// distribution is a log-normal histogram in buckets of two digits.
func distribution(medianUS, tail float64, n int) *Histogram {
	random := rand.New(rand.NewPCG(5, 6))
	counts := map[float64]float64{}
	for range n {
		x := medianUS * math.Exp(0.45*random.NormFloat64())
		if random.Float64() < 0.02 {
			x *= 1 + tail*random.Float64()
		}
		width := max(0.512, math.Pow(2, math.Floor(math.Log2(x))-7))
		counts[(math.Floor(x/width)+1)*width]++
	}
	h := &Histogram{}
	for upper, count := range counts {
		h.Buckets = append(h.Buckets, [2]float64{upper, count})
	}
	return h
}

// long is a run of so many seconds with everything known.
func long(n, tps int) Input {
	r := cases()["valid"]
	d := r.Drive
	d.Seconds, d.WarmupSeconds, d.Rate, d.RatePlan, d.Arrival = float64(n)-60, 60, float64(tps), "", "poisson"
	d.Committed = uint64(n) * uint64(tps)
	d.Interval = &stats.Interval{Low: float64(tps) * 0.99, High: float64(tps) * 1.01, Confidence: 0.95, Effective: float64(n) / 9}
	d.Steady = &stats.Steadiness{State: "steady", From: 72}
	d.Histogram, d.ServiceTimes = distribution(1100, 40, 50_000), distribution(800, 30, 50_000)
	d.Pacing = &Latency{0.02, 0.015, 0.03, 0.04, 0.09, 0.3, 1.2}
	d.Outcomes = map[string]*Latency{"committed": d.Latency, "retried": {9.1, 8.2, 12, 15, 31, 60, 210}, "rejected": d.Service, "unknown": nil}
	r.FootprintPerTransfer = number(178.4)
	r.Servers = []Server{{Name: "n0", CPUSeconds: number(812.4), MaxRSSBytes: number(int64(410_000_000))}, {Name: "n1"}}
	r.Scenario = []Setting{{"workload", "bank"}, {"cluster", "postgres:2?fsync=off"}}
	return Input{Result: r, Seconds: synthetic(n, tps, -1, 0), Resources: resourcesOf(n)}
}

// pages are the runs that the page is tested with. Tests share them.
var pages = sync.OnceValue(func() map[string]Input {
	second := cases()["valid"]
	second.Drive.Seconds, second.Drive.Committed = 1.0004, 9000
	invalid := cases()["invalid"]
	invalid.Faults, invalid.Degradation = cases()["hurt"].Faults, &Degradation{FirstTPS: 12345.6, LastTPS: 9000}
	invalid.Drive.Seconds, invalid.Drive.Backlog, invalid.Drive.Shed, invalid.Drive.Rate = 90.4, 777, 12, 1500
	invalid.Drive.MaxBacklog = 30_000
	invalid.Drive.Steady = &stats.Steadiness{State: "unsteady", Detail: "no steady state: the throughput was 31 % lower in the second half than in the first"}
	invalid.Drive.Histogram = distribution(1100, 400, 20_000)
	invalid.Client.Bottleneck = "it kept 1.97 of its 2 processors busy"
	split := cases()["split"]
	split.Drive.Seconds = 30
	split.Servers = []Server{
		{Name: "n0", CPUSeconds: number(12.4), MaxRSSBytes: number(int64(410_000_000)), ReceivedBytes: number(int64(77_000_000)), SentBytes: number(int64(31_000_000)), MaxStoredBytes: number(int64(1_200_000_000))},
		{Name: "n1", ReceivedBytes: number(int64(5_000_000)), SentBytes: number(int64(4_000_000))},
	}
	hostile := cases()["invalid"]
	hostile.Reason, hostile.Workload, hostile.DatabaseURL, hostile.Command = evil, evil, "postgres://"+evil, evil
	hostile.Drive.Errors[0].Example, hostile.Checks[0].Detail = evil, evil
	hostile.Checks[0].Witness = []string{evil}
	hostile.Settings = append(hostile.Settings, Setting{evil, evil})
	hostile.Faults = []fault.Record{{Injection: fault.Injection{Number: 1, Fault: evil, Target: evil, At: fault.Round(1), Healed: new(fault.Round(2.0))}, Outage: new(fault.Round(1.0))}}
	return map[string]Input{
		"empty":   {Result: cases()["empty"]},
		"nothing": {Result: cases()["nothing"]},
		"second":  {Result: second, Seconds: synthetic(1, 9000, -1, 0), Resources: resourcesOf(1)},
		"hour":    long(3600, 10_000),
		"day":     long(86_400, 5_000),
		"invalid": {Result: invalid, Seconds: synthetic(91, 1500, 30, 13)},
		"split":   {Result: split, Seconds: synthetic(31, 1500, 12, 2), Resources: elsewhere(resourcesOf(30))},
		"hostile": {Result: hostile, Seconds: synthetic(5, 10, 1, 1)},
	}
})

func render(t *testing.T, in Input) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Page(&out, in); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestPageDataKeepsItsShape compares the page's JSON with a golden file, because a live page depends on its shape.
func TestPageDataKeepsItsShape(t *testing.T) {
	for _, name := range []string{"empty", "nothing", "second", "invalid", "split"} {
		golden(t, name+".page", RunDocument(pages()[name]))
	}
}

// TestPageIsWellFormed parses every page: nothing that a database or a person
// wrote becomes markup, and the data that a script reads is that which was put in.
func TestPageIsWellFormed(t *testing.T) {
	for name, in := range pages() {
		text := render(t, in)
		root, err := html.Parse(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		var data, policy string
		for node := range root.Descendants() {
			if node.Type == html.CommentNode {
				t.Errorf("%s: a comment: %.80s", name, node.Data)
			}
			if node.Type != html.ElementNode {
				continue
			}
			count[node.Data]++
			for _, a := range node.Attr {
				switch {
				case a.Key == "id" && a.Val == "data":
					data = node.FirstChild.Data
				case a.Key == "content" && strings.Contains(a.Val, "default-src"):
					policy = a.Val
				case a.Key == "src", strings.HasPrefix(a.Key, "on"), a.Key == "href" && !strings.HasPrefix(a.Val, "#"), a.Key == "style":
					t.Errorf("%s: <%s %s=%q>", name, node.Data, a.Key, a.Val)
				}
			}
		}
		if count["script"] != 1+len(shared)+len(RunDocument(in).scripts()) || count["style"] != 1 || count["img"] != 0 || count["link"] != 0 || count["title"] != 1 {
			t.Errorf("%s: the elements are %v", name, count)
		}
		if want := json.RawMessage(encode(t, in)); data != string(want) {
			t.Errorf("%s: the data in the page is not that which was put in", name)
		}
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") || strings.Contains(policy, "connect-src") {
			t.Errorf("%s: the policy is %s", name, policy)
		}
	}
}

func encode(t *testing.T, in Input) []byte {
	t.Helper()
	data, err := json.Marshal(RunDocument(in))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestPageOfALongRunStaysSmall checks that the page of an hour at 10,000 a second, and of a day,
// is small enough to be sent around.
func TestPageOfALongRunStaysSmall(t *testing.T) {
	for _, name := range []string{"hour", "day"} {
		if size := len(render(t, pages()[name])); size > 3<<20 {
			t.Errorf("%s: %d bytes", name, size)
		} else {
			t.Logf("%s: %d bytes", name, size)
		}
	}
}

// TestPageIsAFunction checks that the same run gives the same bytes.
func TestPageIsAFunction(t *testing.T) {
	if !bytes.Equal(render(t, pages()["invalid"]), render(t, pages()["invalid"])) {
		t.Error("two pages of one run differ")
	}
}

// TestOnlyLivePageUsesTheNetwork checks that only a live page may use the network, and that it
// decides nothing.
func TestOnlyLivePageUsesTheNetwork(t *testing.T) {
	in := pages()["hour"]
	in.Live = true
	if text := render(t, in); !bytes.Contains(text, []byte("connect-src 'self'")) {
		t.Error("a live page may not ask for its data")
	}
	if d := RunDocument(in); d.Verdict != "running" || !d.Live {
		t.Errorf("a live page says %s", d.Verdict)
	}
}

// TestUnknownIsNotZero checks that an unknown figure is reported as unknown.
func TestUnknownIsNotZero(t *testing.T) {
	d := RunDocument(pages()["nothing"])
	if f := d.Section("figures").Figures[0]; f.Value != NotKnown || strings.Contains(strings.Join(f.Below, " "), " 0") {
		t.Errorf("throughput: %+v", f)
	}
	for _, table := range d.Section("study").Tables {
		row := strings.Join(table.Rows[0].Cells, "|")
		if !strings.Contains(row, NotKnown) {
			t.Errorf("%s: %s", table.Title, row)
		}
	}
	if d.Section("timeline").Chart != nil || d.Section("latency").Chart != nil {
		t.Error("charts of nothing")
	}
}

// TestBinsKeepExtremes checks that a point of a long run is the mean of its bin, in its middle. The highest
// and lowest seconds are drawn too.
func TestBinsKeepExtremes(t *testing.T) {
	in := pages()["day"]
	c := NewPageData(in).Timeline
	if len(c.At) > mostBins || c.Bin != 60 || !strings.Contains(c.Note, "the mean of 60 seconds") {
		t.Fatalf("%d points of %d s: %s", len(c.At), c.Bin, c.Note)
	}
	for b := range c.At {
		low, high, sum := uint64(math.MaxUint64), uint64(0), uint64(0)
		bin := in.Seconds[b*c.Bin : min((b+1)*c.Bin, len(in.Seconds))]
		for _, s := range bin {
			low, high, sum = min(low, s.Committed), max(high, s.Committed), sum+s.Committed
		}
		x, y, mean := uint64(c.Low["committed"][b]), uint64(c.High["committed"][b]), float64(c.Columns["committed"][b])
		if x != low || y != high || math.Abs(mean-float64(sum)/float64(len(bin))) > 1e-6 {
			t.Fatalf("bin %d has %d to %d and the mean %v, want %d to %d", b, x, y, mean, low, high)
		}
		if want := float64(b*c.Bin) + float64(len(bin))/2; float64(c.At[b]) != want {
			t.Fatalf("bin %d is at %v, not in its middle %v", b, c.At[b], want)
		}
	}
	mean, low, high := binned([]num{num(math.NaN()), 4, 2, num(math.NaN()), num(math.NaN()), num(math.NaN()), 7}, 3)
	if mean[0] != 3 || low[0] != 2 || high[0] != 4 || mean[1] == mean[1] || low[1] == low[1] || mean[2] != 7 {
		t.Errorf("with unknown seconds: %v, %v to %v", mean, low, high)
	}
}

// TestPartialSecondIsNotDrawn checks that a second that the load phase did not fill is not drawn. A second without a
// row at the end is one without a commit.
func TestPartialSecondIsNotDrawn(t *testing.T) {
	r := cases()["valid"]
	r.Drive.WarmupSeconds, r.Drive.Seconds = 0, 10.9
	series := synthetic(11, 1000, -1, 0)
	series[10].Committed = 9
	c := NewPageData(Input{Result: r, Seconds: series, Resources: resourcesOf(11)}).Timeline
	for name, column := range c.Columns {
		if len(column) != 10 {
			t.Errorf("%s has %d points of ten whole seconds", name, len(column))
		}
	}
	if c.Columns["servers_received_mb"] != nil || c.Columns["servers_stored_mb"] != nil {
		t.Errorf("of processes of this machine nobody knows what they receive: %v", c.Columns["servers_received_mb"])
	}
	if c.End != 10.9 || c.At[9] != 9.5 || c.Columns["committed"][9] != num(series[9].Committed) {
		t.Errorf("%v to %v: %v", c.At, c.End, c.Columns["committed"])
	}
	r.Drive.Seconds = 14
	if c = NewPageData(Input{Result: r, Seconds: series}).Timeline; len(c.At) != 14 || c.Columns["committed"][13] != 0 || !math.IsNaN(float64(c.Columns["p50_ms"][13])) {
		t.Errorf("nothing ended from second 11 on: %v, %v", c.Columns["committed"], c.Columns["p50_ms"])
	}
}

// TestFaultBandEndsAtTheHeal checks that a fault's time ends where its heal was begun, and that a change of
// the lead has its place.
func TestFaultBandEndsAtTheHeal(t *testing.T) {
	r := cases()["valid"]
	r.Drive.WarmupSeconds, r.Drive.Seconds = 0, 60
	r.Faults = []fault.Record{
		{Injection: fault.Injection{Number: 1, Fault: "kill leader", At: fault.Round(10), Healing: new(fault.Round(15.0)), Healed: new(fault.Round(19.0))}, Recovered: new(fault.Round(1.5))},
		{Injection: fault.Injection{Number: 2, Fault: "pause n1", At: fault.Round(30), Healed: new(fault.Round(35.0))}, Recovered: new(fault.Round(0.0))},
		{Injection: fault.Injection{Number: 3, Fault: "kill n1", At: fault.Round(50)}},
		{Injection: fault.Injection{Number: 4, Fault: "kill n2", At: fault.Round(55), Skipped: "as the script allows"}},
	}
	r.ClusterEvents = []Event{{AtSeconds: 10.5, Text: "n0, which leads, is lost"}, {AtSeconds: 11.25, Text: "n1 leads", Leader: "n1"}, {AtSeconds: 70, Leader: "n0"}}
	c := NewPageData(Input{Result: r, Seconds: synthetic(60, 1000, 10, 1)}).Timeline
	at := func(s float64) *fault.Seconds { return new(fault.Round(s)) }
	want := []Band{{1, "kill leader", *at(10), *at(15), at(19), at(11.5)}, {2, "pause n1", *at(30), *at(35), at(35), nil}, {3, "kill n1", *at(50), *at(60), nil, nil}}
	if got, _ := json.Marshal(c.Bands); string(got) != string(must(json.Marshal(want))) {
		t.Errorf("bands %s", got)
	}
	if !slices.Equal(c.Leaders, r.ClusterEvents[1:2]) {
		t.Errorf("leaders %v", c.Leaders)
	}
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

// TestHistogramKeepsCounts checks that binning loses nothing and puts a value into
// the bin that holds it.
func TestHistogramKeepsCounts(t *testing.T) {
	r := cases()["valid"]
	r.Drive.Histogram = distribution(3, 1000, 50_000)
	h := histogram(Input{Result: r}.Result.Drive)
	sum := 0.0
	for _, n := range h.Due {
		sum += float64(n)
	}
	if math.Abs(sum-50_000) > 0.01 || len(h.Edges) != len(h.Due)+1 {
		t.Errorf("%v of 50000 in %d bins with %d edges", sum, len(h.Due), len(h.Edges))
	}
	r.Drive.Histogram = &Histogram{Buckets: [][2]float64{{1000.9, 7}}}
	h = histogram(Input{Result: r}.Result.Drive)
	if last := len(h.Due) - 1; h.Edges[0] > 1 || h.Edges[last+1] < 1 {
		t.Errorf("a millisecond lies between %v and %v", h.Edges[0], h.Edges[last+1])
	}
	for _, bad := range [][][2]float64{nil, {{math.Inf(1), 1}}, {{-1, 4}}, {{5, -1}}, {{math.NaN(), 1}}} {
		r.Drive.Histogram = &Histogram{Buckets: bad}
		if got := histogram(Input{Result: r}.Result.Drive); got != nil {
			t.Errorf("%v gives %+v", bad, got)
		}
	}
}

// TestMarkdownEscapesCells checks that a cell cannot make a column.
func TestMarkdownEscapesCells(t *testing.T) {
	table := NewTable("", "", []int{0}, "a|b", "c")
	table.Add("x|y\nz", `1\2`)
	want := "| a\\|b | c |\n| :-- | --: |\n| x\\|y z | 1\\\\2 |\n"
	if got := table.AsMarkdown(); got != want {
		t.Errorf("got\n%s want\n%s", got, want)
	}
}

// TestSeriesRoundTrip checks that the series is read as it was written, and that
// one of an earlier version, with fewer columns, is read too.
func TestSeriesRoundTrip(t *testing.T) {
	want := synthetic(50, 100, 10, 5)
	var text bytes.Buffer
	if err := WriteRows(&text, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRows[stats.Second](&text, SeriesFile)
	if err != nil || len(got) != len(want) {
		t.Fatal(len(got), err)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("second %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	old, err := ReadRows[stats.Second](strings.NewReader("second,committed,rejected,aborted,unknown,p50_ms,p99_ms,max_ms\n3,4,0,0,0,1.5,2.5,3.5\n"), SeriesFile)
	if err != nil || old[0].Committed != 4 || old[0].Max != 3500*time.Microsecond {
		t.Errorf("%+v, %v", old, err)
	}
	for _, bad := range []string{"", "a,b\n", "second,committed\nx,1\n", "second,committed\n1,-1\n", "second,committed\n99999999,1\n", "second,committed,p50_ms\n1,1,NaN\n", "second,committed\n1\n", "\x00\xff\"\n"} {
		got, err := ReadRows[stats.Second](strings.NewReader(bad), SeriesFile)
		if err == nil {
			t.Errorf("%q is read as %v", bad, got)
		} else if text := err.Error(); !strings.Contains(text, "series.csv") || strings.ContainsAny(text, "\n\x00") || strings.Contains(text, "strconv") {
			t.Errorf("of %q is said %q", bad, text)
		}
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestWriteSeries(t *testing.T) {
	var b bytes.Buffer
	series := []stats.Second{{Second: 0, Committed: 1, Rejected: 2, Aborted: 3, Unknown: 4, P50: 1500 * time.Microsecond, P99: time.Second, Max: 1234567, Waiting: 5}, {Second: 1}}
	if err := WriteRows(&b, series); err != nil {
		t.Fatal(err)
	}
	want := "second,committed,rejected,aborted,unknown,p50_ms,p99_ms,max_ms,waiting,p90_ms,p999_ms\n0,1,2,3,4,1.500,1000.000,1.235,5,0.000,0.000\n1,0,0,0,0,0.000,0.000,0.000,0,0.000,0.000\n"
	if b.String() != want {
		t.Errorf("got %q", b.String())
	}
	if err := WriteRows(failing{}, series); err == nil {
		t.Error("a full disk gave no error")
	}
}

// FuzzPage checks that no result makes the page panic or break out of its data.
func FuzzPage(f *testing.F) {
	for _, in := range pages() {
		data, err := in.Result.JSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"schema":1,"verdict":"valid","drive":{"seconds":1e300,"warmup_seconds":-5,"clients":-1,"latency_histogram":{"buckets_us":[[1e308,1],[0,1e308]]}},"faults":[{"at_s":-1e300}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Parse(data)
		if err != nil {
			return
		}
		in := Input{Result: r, Seconds: synthetic(3, 10, -1, 0)}
		text := render(t, in)
		if n := bytes.Count(text, []byte("</script>")); n != 1+len(shared)+len(RunDocument(in).scripts()) {
			t.Fatalf("%d scripts end", n)
		}
	})
}

// TestTableMayBeWiderThanTheTerminal checks that the columns before the last column of text may be wider than a
// terminal.
func TestTableMayBeWiderThanTheTerminal(t *testing.T) {
	long := strings.Repeat("x", 2*usualWidth)
	table := DataTable{Columns: []string{"fault", "effect"}, Text: []int{0, 1}}
	table.Add(long, "it was seen")
	var out strings.Builder
	if table.write(&out, usualWidth, nil); !strings.Contains(out.String(), long+"  it was seen\n") {
		t.Error(out.String())
	}
}

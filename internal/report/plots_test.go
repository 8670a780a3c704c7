package report

import (
	"bytes"
	"cmp"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"stroppy/internal/fault"
	"stroppy/internal/history"
	"stroppy/internal/stats"
)

// tenHours returns a run of ten hours at 3,000 a second, as its files have it. A fault every two minutes
// stops all commits for half a second.
func tenHours() Input {
	const n = 36_000
	in := long(n, 3000)
	random := rand.New(rand.NewPCG(9, 10))
	in.Plots = breakdownOf(n, 3000, random)
	for at := 120; at < n-60; at += 120 {
		number := len(in.Result.Faults) + 1
		f := fault.Record{
			Injection: fault.Injection{Number: number, Line: 1, Fault: "kill leader", Target: "n0 (leader)", At: fault.Round(float64(at)), Healing: new(fault.Round(float64(at) + 10)), Healed: new(fault.Round(float64(at) + 13)), Verified: "n0 down; n0 up again"},
			Outage:    new(fault.Round(0.5 + random.Float64()/10)), OutageAt: new(fault.Round(float64(at))), TPSBefore: new(3000.0), TPSDuring: new(2900.0), TPSAfter: new(3000.0), Recovered: new(fault.Round(0.6)), P99Before: new(9.0), P99During: new(500.0), P99After: new(9.0), Unknown: 8, FoundCommitted: 4, FoundAborted: 4,
		}
		in.Result.Faults = append(in.Result.Faults, f)
		in.Result.ClusterEvents = append(in.Result.ClusterEvents, Event{AtSeconds: float64(at) + 0.45, Text: "n1 leads, 450ms after the loss of n0 was seen", Leader: "n1"})
		for step := 10 * (at - 5); step < 10*(at+18); step++ {
			row := AroundRow{At: time.Duration(step) * stats.FineStep, Committed: uint64(270 + random.IntN(60))}
			if step >= 10*at && step < 10*at+5 {
				row.Committed = 0
			}
			in.Plots.Around = append(in.Plots.Around, row)
		}
		in.Seconds[at].Committed /= 2
	}
	in.Result.ServerMetrics = &ServerMetrics{Asked: n}
	for i := range 24 { // as many as PostgreSQL has
		in.Result.ServerMetrics.Columns = append(in.Result.ServerMetrics.Columns, ServerColumn{Name: string(rune('a' + i)), Label: string(rune('a' + i)), Chart: "chart " + string(rune('a'+i/4))})
	}
	for i := range n {
		row := ServerRow{Second: i, Server: []string{"10.0.0.1:5432"}[0]}
		for range 24 {
			row.Values = append(row.Values, random.Float64()*1000)
		}
		in.Server = append(in.Server, row)
	}
	return in
}

// breakdownOf returns the rows that a run of so many seconds leaves in kinds.csv and heatmap.csv.
func breakdownOf(n, tps int, random *rand.Rand) (p Plots) {
	var b stats.Breakdown
	for i := range n * tps / 50 {
		end := int64(i) * 50 * int64(time.Second) / int64(tps)
		b.Add(&history.Transaction{
			Kind: []history.Kind{1, 2, 3}[i%3] * history.Numbered, Outcome: history.Committed, End: end, Due: end - int64(2e6*math.Exp(random.NormFloat64())),
		})
	}
	for i, kind := range b.Kinds() {
		p.AddKind([]string{"transfer", "inquiry", "payroll"}[i], b.Width(), b.Columns(kind))
	}
	all := b.Columns(b.Kinds()...)
	p.AddKind(AllKinds, b.Width(), all)
	p.AddHeat(b.Width(), all)
	return p
}

// TestPageOfTenHours checks that the page of a run of ten hours with all plots is small. So it can be sent
// around, and opens at once.
func TestPageOfTenHours(t *testing.T) {
	in := tenHours()
	page := render(t, in)
	t.Logf("%d bytes", len(page))
	if *Screenshots != "" {
		if err := os.WriteFile(filepath.Join(*Screenshots, "ten-hours.html"), page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if len(page) > 3<<20*9/10 {
		t.Errorf("the page has %d bytes", len(page))
	}
	d := NewPageData(in)
	if c := d.Timeline; c.Bin != 20 || len(c.At) != 1800 || len(c.Bands) != len(in.Result.Faults) || len(c.Leaders) != len(c.Bands) || !strings.Contains(c.Note, "the mean of 20 seconds") {
		t.Errorf("%d points of %d s, %d bands, %d leaders, %q", len(c.At), c.Bin, len(c.Bands), len(c.Leaders), c.Note)
	}
	lowest := slices.Min(d.Timeline.Low["committed"])
	if lowest > 1700 {
		t.Errorf("the seconds of the outages are lost: the lowest is %v", lowest)
	}
	if k := d.Kinds; k == nil || k.Bin != 64 || len(k.Lines) != 3 || len(k.At) != 563 || k.At[562] != 35_968+16 {
		t.Errorf("kinds %+v", k)
	}
	a := d.Around
	if a == nil || len(a.Faults) != len(in.Result.Faults) || a.Note != "" {
		t.Fatalf("around the faults %+v", a)
	}
	for _, f := range a.Faults {
		if len(f.Committed) != 230 || slices.Min(f.Committed) != 0 || f.Cut {
			t.Fatalf("around fault %d: %v from %v", f.Number, f.Committed, f.From)
		}
	}
	worst := slices.MaxFunc(in.Result.Faults, func(a, b fault.Record) int { return cmp.Compare(*a.Outage, *b.Outage) })
	if a.Faults[a.First].Number != worst.Number {
		t.Errorf("fault %d is shown first, want %d", a.Faults[a.First].Number, worst.Number)
	}
}

// TestManyLongFaultsLeaveASmallPage checks that faults which last for hours, and many of them, leave a page
// that opens: the longest outages come first, and a long fault is cut.
func TestManyLongFaultsLeaveASmallPage(t *testing.T) {
	in := Input{Result: cases()["valid"]}
	for i := range 200_000 {
		in.Plots.Around = append(in.Plots.Around, AroundRow{At: time.Duration(i) * stats.FineStep, Committed: 1})
	}
	for i := range 150 {
		at := float64(10 + 130*i)
		in.Result.Faults = append(in.Result.Faults, fault.Record{Injection: fault.Injection{Number: i + 1, At: fault.Round(at), Healed: new(fault.Round(at + 10_000))}, Outage: new(fault.Round(float64(i)))})
	}
	a := pageAround(in)
	steps := 0
	for _, f := range a.Faults {
		steps += len(f.Committed)
		if !f.Cut || f.From != 5+130*float64(f.Number-1) {
			t.Errorf("fault %d from %v, cut %v", f.Number, f.From, f.Cut)
		}
	}
	if steps > mostAround || steps < mostAround*9/10 || a.Note == "" || a.Faults[a.First].Number != 150 || a.Faults[0].Number == 1 {
		t.Errorf("%d steps of %d faults, the first is %d: %q", steps, len(a.Faults), a.First, a.Note)
	}
	if pageAround(Input{Result: cases()["hurt"]}) != nil || pageAround(Input{Result: cases()["valid"], Plots: in.Plots}) != nil {
		t.Error("without steps, or without a fault, there is something to draw")
	}
}

// TestHeatmapKeepsCounts checks that each transaction is in the cell of its time and latency.
func TestHeatmapKeepsCounts(t *testing.T) {
	var b stats.Breakdown
	latencies := []time.Duration{100, 9 * time.Microsecond, 500 * time.Microsecond, 950 * time.Microsecond, 1100 * time.Microsecond, 40 * time.Millisecond, 3 * time.Second}
	for i, l := range latencies {
		end := int64(i%3)*int64(time.Second) + 4e9
		b.Add(&history.Transaction{Kind: 1, Outcome: history.Committed, End: end, Due: end - int64(l)})
	}
	var p Plots
	columns := b.Columns(b.Kinds()...)
	p.AddKind(AllKinds, b.Width(), columns)
	p.AddHeat(b.Width(), columns)
	var out bytes.Buffer
	if err := WriteRows(&out, p.Heat); err != nil {
		t.Fatal(err)
	}
	read, err := ReadRows[HeatCell](&out, HeatFile)
	if err != nil || len(read) != len(p.Heat) {
		t.Fatalf("%d rows, %v", len(read), err)
	}
	p.Heat = read
	h := pageHeat(p, 7)
	if len(h.At) != 7 || h.At[4] != 4.5 || len(h.Cells[0]) != 0 {
		t.Fatalf("columns at %v: %v", h.At, h.Cells)
	}
	for i, l := range latencies {
		ms := max(float64(l)/1e6, 0.009)
		bin := slices.IndexFunc(h.Edges, func(e num) bool { return float64(e) >= ms }) - 1
		if h.Cells[4+i%3][bin] < 1 {
			t.Errorf("%v is not in the bin up to %v ms: %v", l, h.Edges[bin+1], h.Cells[4+i%3])
		}
	}
	sum := num(0)
	for _, cells := range h.Cells {
		for _, n := range cells {
			sum += n
		}
	}
	if sum != num(len(latencies)) {
		t.Errorf("%v transactions in the cells, want %d", sum, len(latencies))
	}
	if pageKinds(p.Kinds, 7) != nil {
		t.Error("one kind is drawn by itself")
	}
}

// TestPlotsRoundTrip checks that written files are read back, and that broken files are refused.
func TestPlotsRoundTrip(t *testing.T) {
	p := breakdownOf(30, 3000, rand.New(rand.NewPCG(1, 1)))
	var out bytes.Buffer
	if err := WriteRows(&out, p.Kinds); err != nil {
		t.Fatal(err)
	}
	kinds, err := ReadRows[KindRow](&out, KindsFile)
	if err != nil || len(kinds) != len(p.Kinds) || kinds[7].Kind != p.Kinds[7].Kind || kinds[7].P99.Round(time.Microsecond) != p.Kinds[7].P99.Round(time.Microsecond) {
		t.Fatalf("%d kinds, %v", len(kinds), err)
	}
	around := AroundRows([]stats.Stretch{{From: 7100 * time.Millisecond, Committed: []uint32{3, 0}}, {From: 9 * time.Second, Committed: []uint32{1}}})
	if err := WriteRows(&out, around); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadRows[AroundRow](&out, AroundFile); err != nil || !slices.Equal(got, around) || got[1] != (AroundRow{At: 7200 * time.Millisecond}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "at_ms\n1\n", "at_ms,committed\nNaN,1\n", "at_ms,committed\n1,-1\n"} {
		if _, err := ReadRows[AroundRow](strings.NewReader(bad), AroundFile); err == nil || !strings.Contains(err.Error(), AroundFile) {
			t.Errorf("%q was read: %v", bad, err)
		}
	}
	if _, err := ReadRows[KindRow](strings.NewReader("kind,second,seconds,committed,p50_ms,p90_ms,p99_ms,p999_ms,max_ms\n,1,1,1,1,1,1,1,1\n"), KindsFile); err == nil {
		t.Error("a kind without a name was read")
	}
	wrong := Plots{Kinds: []KindRow{{Kind: "a"}, {Kind: "b"}}, Heat: []HeatCell{{UpTo: 1}}}
	if pageKinds(wrong.Kinds, -1) != nil || pageHeat(wrong, -1) != nil {
		t.Error("columns without a width are drawn")
	}
}

// TestPercentilesAreNearestRank checks that each percentile is the nearest-rank one of its distribution,
// on an axis on which each further nine has as much room.
func TestPercentilesAreNearestRank(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 9))
	for _, n := range []int{1, 2, 7, 1000, 123_457} {
		h := &Histogram{}
		var all []float64
		for range n {
			upper := math.Ceil(100 * math.Exp(2*random.NormFloat64()))
			all = append(all, upper/1000)
			h.Buckets = append(h.Buckets, [2]float64{upper, 1})
		}
		slices.Sort(all)
		p := percentiles(&Drive{Histogram: h, ServiceTimes: h, Latency: &Latency{Max: all[n-1]}})
		if p.Count != uint64(n) || len(p.Due) != len(p.At) || p.At[0] != 1 || p.At[len(p.At)-1] != num(n) || !slices.Equal(p.Due, p.Sent[:len(p.Due)]) && n > 1 {
			t.Fatalf("%d: %+v", n, p)
		}
		for i, x := range p.At {
			rank := max(int(math.Ceil((1-1/float64(x))*float64(n)-1e-6)), 1)
			if i == len(p.At)-1 {
				rank = n
			}
			if float64(p.Due[i]) != all[rank-1] {
				t.Fatalf("%d: at %v is %v, want %v", n, x, p.Due[i], all[rank-1])
			}
			if i > 0 && p.Due[i] < p.Due[i-1] {
				t.Fatalf("%d: it falls at %v", n, x)
			}
		}
	}
}

// TestPlotsInABrowser chooses what the charts offer, as a person does.
func TestPlotsInABrowser(t *testing.T) {
	b := OpenBrowser(t)
	in := tenHours()
	in.Seconds, in.Server, in.Result.ServerMetrics = in.Seconds[:600], nil, nil
	in.Result.Faults, in.Result.ClusterEvents = in.Result.Faults[:4], in.Result.ClusterEvents[:4]
	in.Result.Drive.WarmupSeconds, in.Result.Drive.Seconds = 10, 590
	in.Resources, in.Plots.Kinds, in.Plots.Heat = in.Resources[:600], nil, nil
	short := breakdownOf(600, 3000, rand.New(rand.NewPCG(2, 2)))
	in.Plots.Kinds, in.Plots.Heat = short.Kinds, short.Heat
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, render(t, in), 0o644); err != nil {
		t.Fatal(err)
	}
	text := func(script string) string { return Ask(t, b, chromedp.Evaluate[string](script)) }
	for _, width := range []int64{1200, 360} {
		b.Do(t, chromedp.EmulateViewport(width, 900), chromedp.Navigate("file://"+path))
		s := b.Look(t)
		for _, name := range []string{"throughput", "around", "latency", "heat", "histogram", "percentiles"} {
			if c := s.Charts[name]; c.Pixels < 500 || c.Colours < 3 {
				t.Errorf("the chart %s has %d pixels in %d colours", name, c.Pixels, c.Colours)
			}
		}
		if s.Wide > 0 || strings.Contains(s.Text, "undefined") || strings.Contains(s.Text, "NaN") {
			t.Errorf("%d pixels too wide: %s", s.Wide, s.Text)
		}
		b.Picture(t, map[int64]string{1200: "plots", 360: "plots-phone"}[width])
		first := text(`document.querySelector('[data-chart="around"] h3').innerText + document.querySelector('[data-chart="around"] canvas').toDataURL()`)
		second := text(`[...document.querySelectorAll('[data-chart="around"] button')].find((b) => b.getAttribute("aria-pressed") === "false").click(),
			document.querySelector('[data-chart="around"] h3').innerText + document.querySelector('[data-chart="around"] canvas').toDataURL()`)
		if first == second || !strings.HasPrefix(second, "Around fault ") {
			t.Errorf("another fault is not shown: %.60s", second)
		}
		kinds := text(`document.querySelector('[data-chart="throughput"] input').click(), document.querySelector('[data-chart="throughput"] .legend').innerText`)
		if !strings.Contains(kinds, "inquiry") || !strings.Contains(kinds, "payroll") || strings.Contains(kinds, "rejected") {
			t.Errorf("by kind the legend shows %q", kinds)
		}
		latency := text(`(() => {
			const place = document.querySelector('[data-chart="latency"]'), before = place.querySelector("canvas").toDataURL(), choice = place.querySelector("select");
			choice.value = "inquiry";
			choice.dispatchEvent(new Event("change"));
			return (before === place.querySelector("canvas").toDataURL() ? "same" : "other") + " " + choice.options.length;
		})()`)
		if latency != "other 4" {
			t.Errorf("of a kind the latency is %s", latency)
		}
		b.Quiet(t, "plots")
	}
}

package sweep

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"stroppy/internal/report"
)

var update = flag.Bool("update", false, "write the golden files anew")

// evil is text that would end a script, a comment or an attribute.
const evil = `</script><script>document.title="broken out"</script><!-- "'><img src=x onerror=alert(1)>` + "\u2028"

// atRate returns the result of a database of a capacity at a rate.
func atRate(capacity, rate float64) Point {
	p := Point{Value: rate, Verdict: "valid", Dir: fmt.Sprintf("rate-%g", rate), Samples: 10_000}
	tps, load := rate, rate/capacity
	if rate == 0 || rate >= capacity {
		tps, load = capacity, 0.995
		if rate > 0 {
			p.Backlog = uint64(rate - capacity)
			p.Left = (rate - capacity) / rate
		}
	}
	wait := 0.8 / (1 - load)
	p.MeanMS, p.P50MS, p.P99MS, p.P999MS, p.MaxMS = new(wait), new(wait*0.8), new(wait*4), new(wait*9), new(wait*20)
	p.TPS, p.Low, p.High, p.Median, p.Best = new(tps), new(tps*0.985), new(tps*1.015), new(tps*1.001), new(tps*1.04)
	return p
}

// atSize returns the result of a database with a peak with n clients.
func atSize(n float64) Point {
	x := 1000 * n / (1 + 0.05*(n-1) + 0.001*n*(n-1)) * (1 + 0.02*math.Sin(n))
	return Point{Value: n, Dir: fmt.Sprintf("%02.0f-clients", n), Verdict: "valid", TPS: new(x), Low: new(x * 0.95), High: new(x * 1.04), Median: new(x), Best: new(x * 1.1),
		MeanMS: new(n / x * 1e3), P50MS: new(n / x * 900), P99MS: new(n / x * 4000), P999MS: new(n / x * 9000), MaxMS: new(n / x * 30_000)}
}

// nothingOf is a step that ended within its warm-up.
func nothingOf(p Point) Point { return Point{Value: p.Value, Dir: p.Dir, Verdict: p.Verdict} }

// books are the sweeps that the page is tested with.
func books() map[string]*Book {
	book := func(over string, finished bool, points ...Point) *Book {
		return &Book{
			Schema: report.Schema, Workload: "bank", Database: "PostgreSQL 15.18", Over: over, Scenario: "workload: bank\nupdate: atomic\n", Seed: 7,
			StartedAt: "2026-11-21T14:03:02Z", Finished: finished, Points: points, Machine: "2 processors, 8 GB, linux/amd64", Stroppy: "stroppy 1.0",
		}
	}
	rates := func(values ...float64) (points []Point) {
		for _, v := range values {
			points = append(points, atRate(10_000, v))
		}
		return points
	}
	sizes := func(values ...float64) (points []Point) {
		for _, v := range values {
			points = append(points, atSize(v))
		}
		return points
	}
	invalid := sizes(1, 2, 4, 8, 16)
	invalid[3].Verdict, invalid[1].Unsteady, invalid[0].Low, invalid[0].High = "invalid", true, nil, nil
	badRates := rates(0, 9000, 8000, 7000, 3500, 12_000)
	badRates[2].Verdict, badRates[5].Verdict = "invalid", "unknown"
	unmeasured, lostRates := sizes(1, 2, 4, 8, 16, 32, 64), rates(0, 9000, 8000, 7000, 3500, 1750, 875, 3500, 8000, 3500, 8000)
	unmeasured[0], lostRates[0], lostRates[3] = nothingOf(unmeasured[0]), nothingOf(lostRates[0]), nothingOf(lostRates[3])
	hostile := book(" clients=1,2,4,8,16", true, sizes(1, 2, 4, 8, 16)...)
	hostile.Workload, hostile.Database, hostile.Scenario, hostile.Machine, hostile.Stroppy = evil, evil, evil, evil, evil
	hostile.Points[0].Dir, hostile.Points[1].Dir, hostile.Points[2].Dir, hostile.Points[3].Dir = evil, "javascript:alert(1)", "../../other", "/etc"
	hostile.Points[0].Verdict = evil
	again := book("clients=1,2,4,8,16,32,64", true, sizes(1, 2, 4, 8, 16, 32, 64, 1, 2, 4, 8, 16, 32, 64)...)
	again.Repeat = 2
	for i := range again.Points[7:] {
		p := &again.Points[7+i]
		p.Dir, p.TPS = p.Dir+"-2", new(*p.TPS*1.06)
	}
	return map[string]*Book{
		"rate":         book("rate", true, rates(0, 9000, 8000, 7000, 3500, 1750, 875, 8500, 9500, 11_000, 3500, 7000, 3500, 7000)...),
		"rate-once":    book("rate", true, rates(0, 9000, 8000, 7000, 3500, 1750, 875)...),
		"repeated":     again,
		"few":          book("clients=1,2,4,8", true, sizes(1, 2, 4, 8)...),
		"rate-invalid": book("rate", true, badRates...),
		"clients":      book("clients=1,2,4,8,16,32,64", true, sizes(1, 2, 4, 8, 16, 32, 64)...),
		"predicted":    book("clients=1,2,4,8,16,24", true, sizes(1, 2, 4, 8, 16, 24)...),
		"invalid":      book("clients=1,2,4,8,16", true, invalid...),
		"unfinished":   book("nodes=1,3,5", false, sizes(1, 3)...),
		"unmeasured":   book("clients=1,2,4,8,16,32,64", true, unmeasured...),
		"rate-lost":    book("rate=875,1750,3500,7000,8000,9000", true, lostRates...),
		"begun":        book("rate", false),
		"nothing":      book("clients=1,2", true, Point{Value: 1, Dir: "a", Verdict: "unknown"}, Point{Value: 2, Dir: "b", Verdict: "unknown"}),
		"hostile":      hostile,
	}
}

// page is the document of a sweep, with its parts by their names.
type page struct {
	*report.Document
	Charts
	Figures      []report.Figure
	Failed       []report.Item
	Findings     []string
	Coefficients []report.DataTable
	Table        report.DataTable
	conclusions  *Conclusions
}

func data(t *testing.T, b *Book) *page {
	t.Helper()
	d, err := NewDocument(b, "runs/curve", "stroppy sweep --db 'postgres://bank@[::1]/bank' --seed 7 --over "+b.Over)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := Parse(b.Over)
	if err != nil {
		t.Fatal(err)
	}
	curve := d.Section("curve")
	p := &page{
		Document: d, Figures: d.Section("figures").Figures, Failed: d.Section("failed").Checks, Findings: curve.Text, Coefficients: curve.Tables,
		conclusions: &summarize(spec.Axis, shown(b.Points, spec.Axis)).Conclusions,
	}
	if curve.Chart != nil {
		p.Charts = *curve.Chart.Data.(*Charts)
	}
	if steps := d.Section("steps").Tables; len(steps) > 0 {
		p.Table = steps[0]
	}
	return p
}

func render(t *testing.T, b *Book) []byte {
	t.Helper()
	var out bytes.Buffer
	d, err := NewDocument(b, "runs/curve", data(t, b).Section("what").Command)
	if err == nil {
		err = d.WritePage(&out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// golden compares data with a file in testdata, which update writes again.
func golden(t *testing.T, file string, data any) {
	t.Helper()
	got, err := json.MarshalIndent(data, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(append(got, '\n'), want) {
		t.Errorf("%s is not as it was: run go test with -update here and look at the difference", file)
	}
}

// TestSweepsOfBrowserTestsMatchGolden checks that the sweeps of the browser's tests, which are in package report,
// are these sweeps.
func TestSweepsOfBrowserTestsMatchGolden(t *testing.T) { golden(t, "books.json", books()) }

// TestPageDataHasNoNullLists checks the page's JSON. A list that a script reads is never null.
func TestPageDataHasNoNullLists(t *testing.T) {
	for _, name := range []string{"rate", "rate-once", "clients", "repeated", "few", "invalid", "unfinished", "begun", "nothing"} {
		d := data(t, books()[name])
		golden(t, name+".page.json", d.Document)
		encoded, err := json.Marshal(d.Document)
		if err != nil {
			t.Fatal(err)
		}
		var parts map[string]json.RawMessage
		if err := json.Unmarshal(encoded, &parts); err != nil {
			t.Fatal(err)
		}
		for key, value := range parts {
			if string(value) == "null" && key != "knee" && key != "law" {
				t.Errorf("%s: %s is null", name, key)
			}
		}
	}
}

// TestPageVerdictIsWorstOfSteps checks that one bad step is the sweep's verdict, and that an unfinished or unknown
// step is never valid.
func TestPageVerdictIsWorstOfSteps(t *testing.T) {
	for name, want := range map[string]string{
		"rate": "valid", "rate-invalid": "invalid", "clients": "valid", "invalid": "invalid", "unfinished": "unfinished",
		"begun": "unfinished", "nothing": "unknown", "hostile": "unknown",
	} {
		if d := data(t, books()[name]); d.Verdict != want || d.Reason == "" {
			t.Errorf("%s is %s (%s), want %s", name, d.Verdict, d.Reason, want)
		}
	}
	cut := books()["invalid"]
	cut.Finished = false
	if d := data(t, cut); d.Verdict != "invalid" || !strings.Contains(d.Reason, "not finished") || !strings.Contains(d.Notes[0].Text, "clients 8") {
		t.Errorf("a sweep that was cut off after an invalid step is %s: %s %v", d.Verdict, d.Reason, d.Notes)
	}
}

// TestPageAndTextHaveSameKnee checks that page and text have the same knee. The maximum rate is reported apart,
// and a step that did not keep its rate is marked.
func TestPageAndTextHaveSameKnee(t *testing.T) {
	b := books()["rate"]
	d, k := data(t, b), knee(b.Points)
	if d.Knee == nil || d.Knee.TPS != k.Step.Offered || d.Knee.N != k.Step.Offered || d.Findings[0] != report.Sentence(k.Detail) {
		t.Errorf("the knee is %+v, want %+v", d.Knee, k)
	}
	once := data(t, books()["rate-once"])
	if once.Knee != nil || once.conclusions.Knee != nil || !strings.HasPrefix(once.Findings[0], "No knee is claimed: ") || slices.ContainsFunc(once.Figures, func(f report.Figure) bool { return f.Name == "Knee" }) {
		t.Errorf("of single measurements the page has %+v, %v", once.Knee, once.Findings)
	}
	if c := d.conclusions.Knee; c == nil || c.Rate != k.Step.Offered || c.P99MS != digits(k.Step.Latency) {
		t.Errorf("the file has the knee %+v, the page %+v", c, d.Knee)
	}
	last := len(d.Steps) - 1
	if !d.Steps[last].Full || d.Steps[last-1].Kept || !d.Steps[0].Kept {
		t.Errorf("the steps are %+v", d.Steps)
	}
	if row := d.Table.Rows[len(d.Table.Rows)-2]; row.Mark != "warning" || !strings.Contains(row.Cells[1], "rate not kept") {
		t.Errorf("the row of a rate that was not kept is %+v", row)
	}
}

// TestKneeIsNeverStepThatMissedItsRate checks that a step that did not keep its rate is not named as the knee,
// however small the rest was.
func TestKneeIsNeverStepThatMissedItsRate(t *testing.T) {
	b := books()["rate"]
	b.Points = nil
	for _, rate := range []float64{1000, 2000, 3000, 4000, 5000, 3000, 4000, 3000, 4000} {
		p := atRate(50_000, rate)
		if rate > 3000 {
			p.Left = 2 * mostLeft
		}
		b.Points = append(b.Points, p)
	}
	d := data(t, b)
	if k := knee(b.Points); !k.Found || k.Step.Offered != 3000 || !strings.Contains(d.Findings[0], "The knee is at 3,000/s: from 4,000/s on") {
		t.Errorf("the knee is %+v: %v", k, d.Findings)
	}
	for _, row := range d.Table.Rows {
		if behind := row.Cells[0] == "4,000" || row.Cells[0] == "5,000"; strings.Contains(row.Cells[1], "rate not kept") != behind {
			t.Errorf("there is the row %+v", row)
		}
	}
}

// TestPageShowsFittedCurve checks that the curve is the fitted law, with its dashed part and its peak.
func TestPageShowsFittedCurve(t *testing.T) {
	for name, beyond := range map[string]bool{"clients": false, "predicted": true} {
		b := books()[name]
		fit, err := scaling(Clients, b.Points)
		if err != nil {
			t.Fatal(err)
		}
		l := data(t, b).Law
		for _, p := range l.Curve {
			if math.Abs(p[1]/fit.At(p[0])-1) > 1e-3 {
				t.Errorf("%s: the curve has %g at %g, the law %g", name, p[1], p[0], fit.At(p[0]))
			}
		}
		end := l.Curve[len(l.Curve)-1][0]
		if l.Peak == nil || math.Abs(l.Peak.N/fit.PeakN-1) > 1e-4 || end < l.Peak.N || end <= l.Most || (l.Peak.N > l.Most) != beyond || strings.Contains(l.Peak.Label, "predicted") != beyond {
			t.Errorf("%s: the peak is %+v on a curve to %g, want N = %g", name, l.Peak, end, fit.PeakN)
		}
	}
}

// TestUnknownValueIsNotShownAsZero checks that an unknown value is reported as not known.
func TestUnknownValueIsNotShownAsZero(t *testing.T) {
	d := data(t, books()["nothing"])
	if s := d.Steps[0]; s.TPS != nil || s.Low != nil || s.P99MS != nil || d.Law != nil {
		t.Errorf("a step that did nothing is %+v", s)
	}
	if text := strings.Join(d.Table.Rows[0].Cells, "|"); strings.Count(text, report.NotKnown) != 5 {
		t.Errorf("its row is %s", text)
	}
	if d.Figures[0].Value != report.NotKnown {
		t.Errorf("the highest throughput of nothing is %+v", d.Figures[0])
	}
	if note := d.Notes[1].Text; !strings.Contains(note, "not known") || !strings.Contains(note, "clients 1, clients 2") {
		t.Errorf("of steps without a measured second it notes: %s", note)
	}
	idle := books()["nothing"]
	idle.Points[0].TPS = new(0.0)
	if d := data(t, idle); d.Table.Rows[0].Cells[2] != "0" || !strings.Contains(d.Notes[2].Text, "Nothing was committed in what was measured: clients 1.") {
		t.Errorf("a step in which nothing was committed has the row %v and the notes %v", d.Table.Rows[0].Cells, d.Notes)
	}
}

// TestUnmeasuredStepsDoNotChangeFit checks that steps without a throughput change neither the law nor the knee, and
// that the page calls them not known.
func TestUnmeasuredStepsDoNotChangeFit(t *testing.T) {
	sizes := books()["unmeasured"]
	d, want := data(t, sizes), books()["unmeasured"]
	want.Points = want.Points[1:]
	if other := data(t, want); d.Law == nil || !reflect.DeepEqual(d.Law, other.Law) || !reflect.DeepEqual(d.Figures, other.Figures) || !reflect.DeepEqual(d.Findings, other.Findings) {
		t.Errorf("the law is %+v, %v, %v\nand of the other steps %+v, %v, %v", d.Law, d.Figures, d.Findings, other.Law, other.Figures, other.Findings)
	}
	if cells := d.Table.Rows[0].Cells; cells[2] != report.NotKnown || len(d.Table.Columns) != 10 {
		t.Errorf("the rows are %+v", d.Table.Rows[:2])
	}
	rates := books()["rate-lost"]
	d = data(t, rates)
	known := slices.DeleteFunc(slices.Clone(rates.Points), func(p Point) bool { return p.TPS == nil })
	if k := knee(known); !k.Found || d.Findings[0] != report.Sentence(k.Detail) || d.Knee.N != k.Step.Offered {
		t.Errorf("the knee is %+v, %v; and of the other steps %+v", d.Knee, d.Findings, k)
	}
	for _, row := range d.Table.Rows {
		if unknown := row.Cells[2] == report.NotKnown; unknown != (row.Cells[0] == "7,000" || row.Cells[0] == "maximum") || strings.Contains(row.Cells[1], "not kept") || row.Mark != "" {
			t.Errorf("there is the row %+v", row)
		}
	}
	if full := d.Figures[1]; full.Name != "Maximum rate" || full.Value != report.NotKnown || full.Unit != "" {
		t.Errorf("the maximum rate is %+v", full)
	}
	unknown := regexp.MustCompile(`(?m)^ +(7,000|maximum) +valid( +not known){8} +0$`) // 0 transactions were not sent
	for _, b := range []*Book{sizes, rates} {
		var out bytes.Buffer
		if err := Text(&out, b, report.Options{Dir: "dir"}); err != nil || !strings.Contains(out.String(), report.NotKnown) || strings.Contains(out.String(), "rate not kept") ||
			b == sizes && strings.Contains(out.String(), " 0  ") || b == rates && len(unknown.FindAllString(out.String(), -1)) != 2 {
			t.Errorf("the text is, %v:\n%s", err, out.String())
		}
	}
}

// TestRowLinksStayInSweepFolder checks that a row links only into the sweep's own folder.
func TestRowLinksStayInSweepFolder(t *testing.T) {
	for dir, want := range map[string]string{
		"01-clients-1": "./01-clients-1/report.html", "a b": "./a%20b/report.html", "javascript:alert(1)": "./javascript:alert%281%29/report.html",
		"": "", ".": "", "..": "", "../x": "", "/etc": "", "a/b": "", `"><img>`: "./%22%3E%3Cimg%3E/report.html",
	} {
		if got := report.PageBeside(dir); got != want {
			t.Errorf("%q leads to %q, want %q", dir, got, want)
		}
	}
}

// TestPageIsWellFormed checks that every page parses, and that no text of a person or a database becomes markup.
func TestPageIsWellFormed(t *testing.T) {
	for name, b := range books() {
		root, err := html.Parse(bytes.NewReader(render(t, b)))
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		var found, policy string
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
					found = node.FirstChild.Data
				case a.Key == "content" && strings.Contains(a.Val, "default-src"):
					policy = a.Val
				case a.Key == "src", strings.HasPrefix(a.Key, "on"), a.Key == "href" && !strings.HasPrefix(a.Val, "#"), a.Key == "style":
					t.Errorf("%s: <%s %s=%q>", name, node.Data, a.Key, a.Val)
				}
			}
		}
		want, err := json.Marshal(data(t, b))
		if err != nil {
			t.Fatal(err)
		}
		if found != string(want) {
			t.Errorf("%s: the data in the page is not that which was put in", name)
		}
		if count["script"] < 5 || count["style"] != 1 || count["img"] != 0 || count["link"] != 0 || count["title"] != 1 {
			t.Errorf("%s: the elements are %v", name, count)
		}
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "connect-src") {
			t.Errorf("%s: the policy is %s", name, policy)
		}
	}
}

// TestSavePageReplacesAtomically checks that the page is put in place at once and leaves nothing beside it. A page
// that cannot be made leaves the old one.
func TestSavePageReplacesAtomically(t *testing.T) {
	dir, b := t.TempDir(), books()["rate"]
	if err := SavePage(b, report.Options{Dir: dir}, "stroppy sweep"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, PageName)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b.Over = "colours"
	if err := SavePage(b, report.Options{Dir: dir}, "stroppy sweep"); err == nil {
		t.Error("a page of a sweep over colours was made")
	}
	after, err := os.ReadFile(path)
	if entries, _ := os.ReadDir(dir); err != nil || !bytes.Equal(before, after) || len(entries) != 1 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}

// FuzzPage checks that no book makes the page panic or break out of its data.
func FuzzPage(f *testing.F) {
	for _, b := range books() {
		text, err := json.Marshal(b)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"schema":1,"over":"clients","points":[{"value":-1,"tps":1},{"value":1e300,"tps":1e300},{"value":0,"tps":1},{"value":2,"tps":3}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := Steps.parse(text)
		if err != nil {
			return
		}
		var out bytes.Buffer
		d, err := NewDocument(b, "dir", "again")
		if err == nil {
			err = d.WritePage(&out)
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(out.Bytes(), []byte("</script>")); n < 5 || n > 6 {
			t.Fatalf("%d scripts end", n)
		}
	})
}

// TestPageShowsNoLawWithoutGoodFit checks that page and file have no law, no peak and no R² without a sound fit,
// and give the reason in one sentence.
func TestPageShowsNoLawWithoutGoodFit(t *testing.T) {
	noise := books()["clients"]
	for i, x := range []float64{87_000, 119_692, 96_000, 104_000, 101_000, 92_000, 103_000} {
		noise.Points[i].TPS = new(x)
	}
	for name, c := range map[string]struct {
		b    *Book
		says string
	}{
		"few":   {books()["few"], "No peak is claimed: 4 measurements are too few"},
		"noise": {noise, "No peak is claimed: the scalability law explains"},
	} {
		d := data(t, c.b)
		if d.Law != nil || d.conclusions.Law != nil || len(d.Coefficients) > 0 || len(d.Findings) != 1 || !strings.HasPrefix(d.Findings[0], c.says) {
			t.Errorf("%s: %+v, %+v", name, d.Law, d.Findings)
		}
		for _, f := range d.Figures {
			if f.Name != "Highest throughput" && f.Name != "Efficiency" {
				t.Errorf("%s: there is the figure %+v", name, f)
			}
		}
		if cells := d.Table.Rows[0].Cells; d.Table.Columns[6] != "efficiency" || cells[6] != "100 %" {
			t.Errorf("%s: the efficiency of one is %v", name, cells)
		}
		dir := t.TempDir()
		if err := c.b.Save(dir); err != nil {
			t.Fatal(err)
		}
		kept, err := Steps.Read(dir)
		if err != nil || !reflect.DeepEqual(kept.Conclusions.Findings, d.Findings) || kept.Conclusions.Law != nil {
			t.Errorf("%s: the file has %+v, %v", name, kept.Conclusions, err)
		}
	}
}

// TestRepeatedValueIsOnePoint checks that a repeated value has one point, the median, with the range of the
// measurements.
func TestRepeatedValueIsOnePoint(t *testing.T) {
	b := books()["repeated"]
	d := data(t, b)
	if len(d.Steps) != 7 || len(d.Table.Rows) != 14 || !d.Repeated || len(d.Coefficients) != 2 || len(d.Coefficients[0].Rows) != 7 {
		t.Fatalf("%d steps, %d rows, %+v", len(d.Steps), len(d.Table.Rows), d.Coefficients)
	}
	s := d.Steps[0]
	if low := *b.Points[0].TPS; *s.Low != low || *s.High != *b.Points[7].TPS || *s.TPS <= *s.Low || *s.TPS >= *s.High {
		t.Errorf("%g from %g to %g", *s.TPS, *s.Low, *s.High)
	}
	if d.Law.Lambda != *d.Steps[0].TPS {
		t.Errorf("the ideal is %g times N, and one gave %g", d.Law.Lambda, *d.Steps[0].TPS)
	}
	b.Points[9].Starved = true
	if note := data(t, b).Notes[0].Text; !strings.HasPrefix(note, "The host was starved: clients 4 (1 of 2 times).") {
		t.Errorf("of one starved measurement of two it notes: %s", note)
	}
	b.Points[9].Starved = false
	b.Points[9].Unsteady = true
	if note := data(t, b).Notes[0].Text; !strings.Contains(note, "clients 4 (1 of 2 times).") {
		t.Errorf("of one unsteady measurement of two it notes: %s", note)
	}
	for _, row := range []int{0, 1} {
		if share := d.Table.Rows[row].Cells[6]; share != "100 %" {
			t.Errorf("the efficiency of one is %s", share)
		}
	}
	if f := d.conclusions.Law; f == nil || f.PeakN == nil || d.Law.Peak == nil || *f.PeakN != d.Law.Peak.N || f.Kappa.Low == nil {
		t.Errorf("the file has %+v, the page %+v", f, d.Law.Peak)
	}
}

// TestEfficiencyNeedsOne checks that the efficiency is relative to the throughput of one, and absent without it.
func TestEfficiencyNeedsOne(t *testing.T) {
	points := []Point{{Value: 1, TPS: new(100.0)}, {Value: 2, TPS: new(150.0)}, {Value: 3}, {Value: 4, TPS: new(200.0)}, {Value: 1, TPS: new(110.0)}, {Value: 1, TPS: new(90.0)}}
	got := efficiencies(merge(points))
	if want := map[float64]float64{1: 1, 2: 0.75, 4: 0.5}; !maps.Equal(got, want) {
		t.Errorf("%v and not %v", got, want)
	}
	for name, points := range map[string][]Point{"without one": {{Value: 2, TPS: new(150.0)}}, "nothing of one": {{Value: 1, TPS: new(0.0)}}, "unknown of one": {{Value: 1}, {Value: 2, TPS: new(1.0)}}} {
		if got := efficiencies(points); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

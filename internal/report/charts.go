package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/fault"
	"stroppy/internal/stats"
)

// mostSeconds is the longest run of which each second is drawn. In a longer run a point is the mean of a
// bin of seconds. The lowest and the highest second of the bin are drawn too, so no peak is lost.
const mostSeconds = 60 * 60

// mostBins is the number of bins of a longer run: more than a screen has columns.
const mostBins = 1800

// timeAxis is the time axis of a chart.
type timeAxis struct {
	At   []num  `json:"at_s"`  // the middle of each point
	Bin  int    `json:"bin_s"` // seconds of a point
	Note string `json:"note"`
}

// Line is one line of a chart. A value that is not known is null.
type Line struct {
	Label  string `json:"label"`
	Side   int    `json:"side"` // of a comparison
	Column []num  `json:"column"`
	Low    []num  `json:"low"` // the lowest value of each bin; null if a point is no bin
	High   []num  `json:"high"`
}

// Timeline is the run over time. All columns are as long as At. A value that is not known is null. A
// second that the load phase did not fill would look like a fall, so it is left out.
type Timeline struct {
	timeAxis
	End     float64 `json:"end_s"`    // the right edge, in seconds since the run's start
	Warmup  float64 `json:"warmup_s"` // 0: none
	Target  float64 `json:"target"`   // the requested rate, per second, if it never changed; 0: none
	Open    bool    `json:"open"`
	Columns Columns `json:"columns"` // the mean of the seconds of each point
	Low     Columns `json:"low"`     // the lowest second of each bin; null if a point is a second
	High    Columns `json:"high"`
	Bands   []Band  `json:"bands"`
	Leaders []Event `json:"leaders"` // the changes of the leader
}

// Columns are the lines over time by name.
type Columns map[string][]num

// The names of the columns, by what they come from.
var (
	countColumns    = []string{"committed", "rejected", "aborted", "unknown", "waiting"}
	latencyColumns  = []string{"p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms"}
	resourceColumns = []string{"client_cpu", "servers_cpu", "client_rss_mb", "servers_rss_mb"}
	rareColumns     = []string{"servers_received_mb", "servers_sent_mb", "servers_stored_mb"} // left out if never known
)

// newColumns returns columns of a length without a known value.
func newColumns(n int, names ...string) Columns {
	c := Columns{}
	for _, name := range names {
		c[name] = slices.Repeat([]num{num(math.NaN())}, n)
	}
	return c
}

// Band is the time of one fault.
type Band struct {
	Number int            `json:"number"`
	Label  string         `json:"label"`
	From   fault.Seconds  `json:"from_s"`
	To     fault.Seconds  `json:"to_s"`     // when its heal began, or the end of the run
	Healed *fault.Seconds `json:"healed_s"` // when its heal was done
	Back   *fault.Seconds `json:"back_s"`   // when the throughput was back
}

// num is a number of a chart. JSON has it with four digits, and NaN as null.
type num float64

func (n num) MarshalJSON() ([]byte, error) {
	x := float64(n)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return []byte("null"), nil
	}
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return strconv.AppendInt(nil, int64(x), 10), nil
	}
	digits := 4
	if math.Abs(x) >= 1000 { // a second with its half
		digits = 9
	}
	return strconv.AppendFloat(nil, Rounded(x, digits), 'f', -1, 64), nil
}

// timeline returns the run second by second, or nil if no whole second is known.
func timeline(in Input) *Timeline {
	n := 0
	for _, s := range in.Seconds {
		n = max(n, s.Second+1)
	}
	for _, r := range in.Resources {
		if r.Second <= mostSecond {
			n = max(n, r.Second+1)
		}
	}
	c := &Timeline{timeAxis: timeAxis{Bin: 1}, End: float64(n), Bands: []Band{}, Leaders: []Event{}}
	if d := in.Result.Drive; d != nil {
		c.Warmup, c.Open = d.WarmupSeconds, open(d)
		if d.RatePlan == "" || d.RatePlan == strconv.FormatFloat(d.Rate, 'f', -1, 64) {
			c.Target = d.Rate
		}
		// Nothing ended in the seconds at the end without a row.
		if whole := in.whole(); !in.Live && whole >= 0 && n > 0 {
			c.End, n = d.WarmupSeconds+d.Seconds, whole
		}
	}
	if n == 0 {
		return nil
	}
	c.Columns = newColumns(n, slices.Concat(countColumns, latencyColumns, resourceColumns, rareColumns)...)
	c.Columns.seconds(in.Seconds)
	c.Columns.resources(in.Resources)
	c.End = max(c.End, float64(n))
	if n > mostSeconds {
		c.bin(n)
	}
	c.At = middles(n, c.Bin)
	c.bands(in.Result.Faults)
	c.leaders(in.Result.ClusterEvents)
	return c
}

// whole returns the number of whole seconds of the load phase, or -1 if it is not known.
func (in *Input) whole() int {
	if d := in.Result.Drive; d != nil && d.Seconds > 0 && d.WarmupSeconds+d.Seconds <= mostSecond {
		return int(d.WarmupSeconds + d.Seconds + 1e-6)
	}
	return -1
}

// seconds fills in the series. Nothing ended in a second that the series does not have.
func (c Columns) seconds(series []stats.Second) {
	if len(series) == 0 {
		return
	}
	for _, counts := range countColumns {
		clear(c[counts])
	}
	for _, s := range series {
		i := s.Second
		if i < 0 || i >= len(c["committed"]) {
			continue
		}
		c["committed"][i], c["rejected"][i], c["aborted"][i] = num(s.Committed), num(s.Rejected), num(s.Aborted)
		c["unknown"][i], c["waiting"][i] = num(s.Unknown), num(s.Waiting)
		if s.Committed == 0 {
			continue
		}
		c.latencies(i, s.P50, s.P90, s.P99, s.P999, s.Max)
		if s.P999 == 0 { // earlier versions did not record them
			c["p90_ms"][i], c["p999_ms"][i] = num(math.NaN()), num(math.NaN())
		}
	}
}

// latencies sets the latencies of a point, in the order of latencyColumns.
func (c Columns) latencies(i int, list ...time.Duration) {
	for n, name := range latencyColumns {
		c[name][i] = num(float64(list[n]) / float64(time.Millisecond))
	}
}

func (c Columns) resources(rows []Resource) {
	for _, r := range rows {
		if r.Second < 0 || r.Second >= len(c["client_cpu"]) {
			continue
		}
		put(c["client_cpu"], r.Second, r.ClientCPU, 1)
		put(c["servers_cpu"], r.Second, r.ServersCPU, 1)
		put(c["client_rss_mb"], r.Second, r.ClientRSS, 1e6)
		put(c["servers_rss_mb"], r.Second, r.ServersRSS, 1e6)
		put(c["servers_received_mb"], r.Second, r.ServersReceived, 1e6)
		put(c["servers_sent_mb"], r.Second, r.ServersSent, 1e6)
		put(c["servers_stored_mb"], r.Second, r.ServersStored, 1e6)
	}
	for _, rare := range rareColumns {
		if !slices.ContainsFunc(c[rare], func(x num) bool { return x == x }) {
			delete(c, rare)
		}
	}
}

func put[N int64 | float64](column []num, i int, x *N, unit float64) {
	if x != nil {
		column[i] = num(float64(*x) / unit)
	}
}

// bin makes one point of each bin of n seconds.
func (c *Timeline) bin(n int) {
	c.Bin = binWidth(n, mostBins)
	c.Low, c.High = Columns{}, Columns{}
	for name, column := range c.Columns {
		c.Columns[name], c.Low[name], c.High[name] = binned(column, c.Bin)
	}
	c.Note = fmt.Sprintf("Each point is the mean of %d seconds; shaded about it: from the lowest of them to the highest."+
		" series.csv has every second.", c.Bin)
}

// binWidth returns the smallest round number of seconds that divides n into at most most bins.
func binWidth(n, most int) int {
	for _, width := range []int{1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600} {
		if n <= width*most {
			return width
		}
	}
	return (n + most - 1) / most
}

// middles returns the middle of each bin of a width in n seconds.
func middles(n, width int) []num {
	at := make([]num, 0, (n+width-1)/width)
	for from := 0; from < n; from += width {
		at = append(at, num(from)+num(min(width, n-from))/2)
	}
	return at
}

// binned returns the mean, the least and the greatest known value of each bin, or NaN.
func binned(column []num, width int) (mean, low, high []num) {
	mean = []num{} // a script goes through it
	for part := range slices.Chunk(column, width) {
		sum, known, least, most := num(0), num(0), num(math.NaN()), num(math.NaN())
		for _, x := range part {
			if x != x {
				continue
			}
			if sum, known = sum+x, known+1; known == 1 {
				least, most = x, x
			}
			least, most = min(least, x), max(most, x)
		}
		mean, low, high = append(mean, sum/known), append(low, least), append(high, most)
	}
	return mean, low, high
}

// bands sets the times of the faults that were injected.
func (c *Timeline) bands(faults []fault.Record) {
	for _, f := range faults {
		if f.Skipped != "" || f.Error != "" && f.Outage == nil {
			continue
		}
		b := Band{Number: f.Number, Label: f.Fault, From: f.At, To: fault.Round(c.End), Healed: f.Healed}
		if begun := cmp.Or(f.Healing, f.Healed); begun != nil {
			b.To = *begun
		}
		if f.Recovered != nil && *f.Recovered > 0 {
			b.Back = new(f.At + *f.Recovered)
		}
		c.Bands = append(c.Bands, b)
	}
}

// leaders sets the changes of the leader during the load phase.
func (c *Timeline) leaders(events []Event) {
	for _, e := range events {
		if e.Leader != "" && e.AtSeconds >= 0 && e.AtSeconds <= c.End {
			c.Leaders = append(c.Leaders, e)
		}
	}
}

// Plots holds the rows of a run's files that only plots use.
type Plots struct {
	Around []AroundRow
	Kinds  []KindRow
	Heat   []HeatCell
}

// AroundRow is a row of AroundFile: the commits in the stats.FineStep from At on.
type AroundRow struct {
	At        time.Duration `csv:"at_ms"`
	Committed uint64        `csv:"committed"`
}

// KindRow is a row of KindsFile: the commits of one kind, or of AllKinds, in the seconds from Second on.
// Latencies are from the intended start time.
type KindRow struct {
	Kind      string        `csv:"kind"`
	Second    int           `csv:"second"`
	Seconds   int           `csv:"seconds"`
	Committed uint64        `csv:"committed"`
	P50       time.Duration `csv:"p50_ms"`
	P90       time.Duration `csv:"p90_ms"`
	P99       time.Duration `csv:"p99_ms"`
	P999      time.Duration `csv:"p999_ms"`
	Max       time.Duration `csv:"max_ms"`
}

// AllKinds stands in KindsFile for all kinds of transactions together.
const AllKinds = "all"

// HeatCell is a row of HeatFile: the commits in the seconds from Second on with a latency in one bin. UpTo is
// the upper end of the bin.
type HeatCell struct {
	Second    int           `csv:"second"`
	Seconds   int           `csv:"seconds"`
	UpTo      time.Duration `csv:"up_to_ms"`
	Committed uint64        `csv:"committed"`
}

// heatPerDecade is the number of bins of a heat map for each power of ten of the latency.
const heatPerDecade = 10

// leastHeat is the first bin, which ends at 10 µs and has all faster transactions.
const leastHeat = heatPerDecade

// AroundRows returns the rows of stretches.
func AroundRows(stretches []stats.Stretch) (rows []AroundRow) {
	for _, s := range stretches {
		for i, n := range s.Committed {
			rows = append(rows, AroundRow{At: s.From + time.Duration(i)*stats.FineStep, Committed: uint64(n)})
		}
	}
	return rows
}

// AddKind adds the columns of one kind, or of AllKinds, each of a width.
func (p *Plots) AddKind(name string, width time.Duration, columns []stats.Column) {
	for _, c := range columns {
		p.Kinds = append(p.Kinds, KindRow{
			Kind: name, Second: int(c.From / time.Second), Seconds: int(width / time.Second), Committed: c.Committed,
			P50: c.P50, P90: c.P90, P99: c.P99, P999: c.P999, Max: c.Max,
		})
	}
}

// AddHeat adds the cells of columns, each of a width.
func (p *Plots) AddHeat(width time.Duration, columns []stats.Column) {
	for _, c := range columns {
		last := math.MinInt
		for _, b := range c.Buckets { // ascending
			bin := heatBin(math.Sqrt(float64(max(b.Lower, 1))*float64(b.Upper)) / 1000)
			if bin != last {
				last = bin
				p.Heat = append(p.Heat, HeatCell{Second: int(c.From / time.Second), Seconds: int(width / time.Second), UpTo: time.Duration(1000 * heatEdge(bin))})
			}
			p.Heat[len(p.Heat)-1].Committed += b.Count
		}
	}
}

// heatBin returns the bin of a latency in microseconds.
func heatBin(us float64) int {
	return max(int(math.Ceil(math.Log10(us)*heatPerDecade-1e-9)), leastHeat)
}

// binOfEdge returns the bin with an upper end in microseconds, which heatmap.csv has rounded.
func binOfEdge(us float64) int {
	return max(int(math.Round(math.Log10(us)*heatPerDecade)), leastHeat)
}

// heatEdge returns the upper end of a bin in microseconds.
func heatEdge(bin int) float64 { return math.Pow(10, float64(bin)/heatPerDecade) }

// The bounds of a page's plots around faults.
const (
	mostAround    = 100_000           // steps in all
	aroundBefore  = 5 * time.Second   // an injection
	aroundLongest = 120 * time.Second // after it
)

// AroundPlot is the throughput in small steps around each fault.
type AroundPlot struct {
	Step   float64       `json:"step_s"`
	Faults []AroundFault `json:"faults"` // by their number
	First  int           `json:"first"`  // which of them to show first: that with the longest outage
	Note   string        `json:"note"`
}

// AroundFault is the time around one fault.
type AroundFault struct {
	Number    int     `json:"number"`
	Label     string  `json:"label"`
	From      float64 `json:"from_s"`    // of the first step
	Committed []num   `json:"committed"` // in each step
	Cut       bool    `json:"cut"`       // it lasts longer
}

// pageAround returns nil if nothing is known.
func pageAround(in Input) *AroundPlot {
	rows := in.Plots.Around
	if len(rows) == 0 {
		return nil
	}
	p := &AroundPlot{Step: stats.FineStep.Seconds(), Faults: []AroundFault{}}
	drawn := slices.DeleteFunc(slices.Clone(in.Result.Faults), func(f fault.Record) bool { return f.Outage == nil })
	worstFirst := func(a, b fault.Record) int { return cmp.Compare(*b.Outage, *a.Outage) }
	slices.SortStableFunc(drawn, worstFirst)
	steps := 0
	for i := range drawn {
		a := aroundFault(&drawn[i], rows)
		if len(a.Committed) == 0 {
			continue
		}
		if steps += len(a.Committed); steps > mostAround {
			p.Note = "The faults with the longest outages are shown; " + AroundFile + " has all."
			break
		}
		p.Faults = append(p.Faults, a)
	}
	if len(p.Faults) == 0 {
		return nil
	}
	worst := p.Faults[0].Number
	slices.SortFunc(p.Faults, func(a, b AroundFault) int { return cmp.Compare(a.Number, b.Number) })
	p.First = slices.IndexFunc(p.Faults, func(a AroundFault) bool { return a.Number == worst })
	return p
}

// aroundFault takes the steps around one fault: from some seconds before it to some seconds after its heal
// and the end of its effects.
func aroundFault(f *fault.Record, rows []AroundRow) AroundFault {
	at, over := time.Duration(f.At), f.At
	for _, t := range []*fault.Seconds{f.Healed, f.OutageAt} {
		if t != nil {
			over = max(over, *t)
		}
	}
	if f.Recovered != nil {
		over = max(over, f.At+*f.Recovered)
	}
	if f.OutageAt != nil {
		over = max(over, *f.OutageAt+*f.Outage)
	}
	to := time.Duration(over) + aroundBefore
	a := AroundFault{Number: f.Number, Label: f.Fault, Committed: []num{}}
	if most := at + aroundLongest; to > most {
		to, a.Cut = most, true
	}
	first, _ := slices.BinarySearchFunc(rows, at-aroundBefore, func(r AroundRow, t time.Duration) int { return cmp.Compare(r.At, t) })
	for i := first; i < len(rows) && rows[i].At < to; i++ {
		if i > first && rows[i].At > rows[i-1].At+stats.FineStep*3/2 { // the next stretch
			break
		}
		a.Committed = append(a.Committed, num(rows[i].Committed))
	}
	if len(a.Committed) > 0 {
		a.From = rows[first].At.Seconds()
	}
	return a
}

// KindPlot are the committed transactions by kind over time. All lists are as long as At.
type KindPlot struct {
	timeAxis
	Lines []KindLine `json:"lines"` // two at least, the line with most transactions first
}

// KindLine is one kind over time. Without a commit the latencies are null.
type KindLine struct {
	Name    string  `json:"name"`
	Columns Columns `json:"columns"`
}

// columnAxis returns the middles of columns of a width, and the seconds of each column. The last column ends
// with the last whole second, or the last known one.
func columnAxis(last, width, whole int) (at []num, seconds []float64) {
	end := last + width
	if whole >= 0 && whole <= end { // nothing is known behind the last column
		end = whole
	}
	at = middles(end, width)
	for i := range at {
		seconds = append(seconds, float64(min(width, end-i*width)))
	}
	return at, seconds
}

// pageKinds returns nil if nothing is known, or all transactions are of one kind.
func pageKinds(rows []KindRow, whole int) *KindPlot {
	width, last, sums := 0, 0, map[string]uint64{}
	for _, r := range rows {
		if r.Seconds < 1 || r.Second > mostSecond {
			return nil
		}
		width, last = r.Seconds, max(last, r.Second)
		sums[r.Kind] += r.Committed
	}
	delete(sums, AllKinds)
	if len(sums) < 2 {
		return nil
	}
	k := &KindPlot{timeAxis: timeAxis{Bin: width}}
	var seconds []float64
	k.At, seconds = columnAxis(last, width, whole)
	names := slices.SortedFunc(maps.Keys(sums), func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b))
	})
	for _, name := range names {
		k.Lines = append(k.Lines, kindLine(name, rows, width, seconds))
	}
	return k
}

func kindLine(name string, rows []KindRow, width int, seconds []float64) KindLine {
	n := len(seconds)
	l := KindLine{name, newColumns(n, latencyColumns...)}
	l.Columns["tps"] = make([]num, n)
	for _, r := range rows {
		if i := r.Second / width; r.Kind == name && i < n {
			l.Columns["tps"][i] = num(float64(r.Committed) / seconds[i])
			l.Columns.latencies(i, r.P50, r.P90, r.P99, r.P999, r.Max)
		}
	}
	return l
}

// HeatPlot is the number of transactions by latency, over time.
type HeatPlot struct {
	timeAxis
	Edges []num   `json:"edges_ms"`
	Cells [][]num `json:"cells"`  // by column: per second in each bin, from Edges[i] to Edges[i+1]; empty without a commit
	P50   []num   `json:"p50_ms"` // of each column, exactly
	P99   []num   `json:"p99_ms"`
}

// pageHeat returns nil if nothing is known.
func pageHeat(p Plots, whole int) *HeatPlot {
	if len(p.Heat) == 0 {
		return nil
	}
	width, last, low, high := 0, 0, math.MaxInt, math.MinInt
	for _, c := range p.Heat {
		bin := binOfEdge(float64(c.UpTo) / 1000)
		if c.Seconds < 1 || c.Second > mostSecond {
			return nil
		}
		width, last, low, high = c.Seconds, max(last, c.Second), min(low, bin), max(high, bin)
	}
	at, seconds := columnAxis(last, width, whole)
	h := &HeatPlot{timeAxis: timeAxis{At: at, Bin: width}, Cells: make([][]num, len(at)), Edges: []num{}}
	for bin := low - 1; bin <= high; bin++ {
		h.Edges = append(h.Edges, num(heatEdge(bin)/1000))
	}
	for i := range h.Cells {
		h.Cells[i] = []num{}
	}
	for _, c := range p.Heat {
		i := c.Second / width
		if i >= len(h.Cells) {
			continue
		}
		if len(h.Cells[i]) == 0 {
			h.Cells[i] = make([]num, high-low+1)
		}
		h.Cells[i][binOfEdge(float64(c.UpTo)/1000)-low] += num(Rounded(float64(c.Committed)/seconds[i], 3))
	}
	all := kindLine(AllKinds, p.Kinds, width, seconds).Columns
	h.P50, h.P99 = all["p50_ms"], all["p99_ms"]
	return h
}

// mostServerRows is the number of rows of server.csv up to which each is drawn. In a longer run a point is
// the mean of a bin, as in Timeline.
const mostServerRows = 3600

// ServerPlot holds the database's own measurements, over the time of Timeline.
type ServerPlot struct {
	timeAxis
	Charts []ServerChart `json:"charts"`
}

// ServerChart is one chart, of one unit.
type ServerChart struct {
	Title string `json:"title"` // with the unit
	Note  string `json:"note"`
	Lines []Line `json:"lines"`
}

// pageServer returns nil if the database did not measure itself.
func pageServer(in Input) *ServerPlot {
	m := in.Result.ServerMetrics
	if m == nil {
		return nil
	}
	p := &ServerPlot{timeAxis{Note: m.note(in.Server), At: []num{}, Bin: 1}, []ServerChart{}}
	rows := in.Server
	if whole := in.whole(); !in.Live && whole >= 0 { // the second that the load phase did not fill is drawn nowhere
		rows = slices.DeleteFunc(slices.Clone(rows), func(r ServerRow) bool { return r.Second >= whole })
	}
	for _, r := range rows {
		p.At = append(p.At, num(r.Second)+0.5)
	}
	for i := 0; i < len(m.Columns); {
		title, from := m.Columns[i].Chart, i
		for i < len(m.Columns) && m.Columns[i].Chart == title {
			i++
		}
		if c := serverChart(title, m.Columns[from:i], rows, from); title != "" && len(c.Lines) > 0 {
			p.Charts = append(p.Charts, c)
		}
	}
	p.bin()
	return p
}

// serverChart draws adjacent columns, the first of them at number from. Lines that are always zero are named
// below the chart.
func serverChart(title string, columns []ServerColumn, rows []ServerRow, from int) ServerChart {
	c := ServerChart{Title: title, Lines: []Line{}}
	var zero []string
	for i, column := range columns {
		line := Line{Label: column.Label, Column: make([]num, len(rows))}
		scale := cmp.Or(column.Scale, 1)
		known, some := false, false
		for n, r := range rows {
			line.Column[n] = num(math.NaN())
			if r.Values != nil && !math.IsNaN(r.Values[from+i]) {
				line.Column[n] = num(r.Values[from+i] / scale)
				known, some = true, some || r.Values[from+i] != 0
			}
		}
		switch {
		case some:
			c.Lines = append(c.Lines, line)
		case known:
			zero = append(zero, column.Label)
		}
	}
	if len(zero) > 0 {
		c.Note = "Zero all the time: " + strings.Join(zero, ", ") + "."
	}
	return c
}

// note names the servers that answered, and the answers that are missing.
func (m *ServerMetrics) note(rows []ServerRow) string {
	if m.Refused && m.Missed == m.Asked {
		return "The database does not give its own measurements: " + Sentence(m.Error)
	}
	text := "The database's own measurements; server.csv has all of them."
	var servers []string
	for _, r := range rows {
		if r.Server != "" && !slices.Contains(servers, r.Server) {
			servers = append(servers, r.Server)
		}
	}
	if len(servers) > 0 {
		text += " Asked: " + some(servers, 5) + "."
	}
	if m.Missed > 0 {
		text += fmt.Sprintf(" There was no answer to %d of %s: %s", m.Missed, Counted(uint64(m.Asked), "question"), Sentence(m.Error))
	}
	return text
}

// bin makes one point of each bin of rows.
func (p *ServerPlot) bin() {
	n := len(p.At)
	if n <= mostServerRows {
		return
	}
	rows := binWidth(n, mostBins)
	p.Bin = int(math.Round(float64(p.At[n-1]-p.At[0]) / float64(n-1) * float64(rows)))
	for _, c := range p.Charts {
		for i := range c.Lines {
			l := &c.Lines[i]
			l.Column, l.Low, l.High = binned(l.Column, rows)
		}
	}
	at := []num{}
	for from := 0; from < n; from += rows {
		at = append(at, (p.At[from]+p.At[min(from+rows, n)-1])/2)
	}
	p.At = at
}

// binsPerDecade is the number of bins of the drawn histogram for each power of ten.
const binsPerDecade = 20

// The range that is ever drawn, in microseconds: a tenth of one to a day.
const (
	leastDecade = -1
	mostDecade  = 11
)

// HistogramPlot is the distribution of the latency of committed transactions, in bins of equal width on a log
// scale.
type HistogramPlot struct {
	Edges []num  `json:"edges_ms"` // ascending; the bin i goes from Edges[i] to Edges[i+1]
	Due   []num  `json:"due"`      // how many in each bin, from when they were due
	Sent  []num  `json:"sent"`     // and from when they were sent; empty: not known
	Marks []Mark `json:"marks"`    // since due

	Percentiles *PercentilePlot `json:"percentiles"`
}

// PercentilePlot are the same distributions by percentile, on the axis of HdrHistogram's plots. A percentile
// q is at 1/(1-q), so each further nine has the same room.
type PercentilePlot struct {
	At    []num  `json:"at"`     // 1/(1-q), from 1 to Count
	Due   []num  `json:"due_ms"` // since due
	Sent  []num  `json:"sent_ms"`
	Count uint64 `json:"count"` // of transactions
}

// perDecadeOfNines is the number of percentiles that are drawn for each further nine.
const perDecadeOfNines = 40

// percentiles returns nil if nothing is known. The largest one is the slowest of all.
func percentiles(d *Drive) *PercentilePlot {
	due, count := sortedBuckets(d.Histogram)
	if count == 0 {
		return nil
	}
	p := &PercentilePlot{At: []num{}, Count: count}
	for i := 0; ; i++ {
		x := math.Pow(10, float64(i)/perDecadeOfNines)
		if x >= float64(count) {
			break
		}
		p.At = append(p.At, num(x))
	}
	p.At = append(p.At, num(count))
	p.Due = quantiles(due, count, p.At, d.Latency)
	if sent, n := sortedBuckets(d.ServiceTimes); n == count {
		p.Sent = quantiles(sent, count, p.At, d.Service)
	}
	return p
}

// sortedBuckets returns the sound buckets in ascending order, and the number of their values.
func sortedBuckets(h *Histogram) (list [][2]float64, count uint64) {
	if h == nil {
		return nil, 0
	}
	for _, b := range h.Buckets {
		if b[0] >= 0 && b[1] >= 1 && b[0] <= 1e15 && b[1] <= 1e15 {
			list, count = append(list, b), count+uint64(b[1])
		}
	}
	slices.SortFunc(list, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
	return list, count
}

// quantiles returns the nearest-rank quantiles in milliseconds, as the upper ends of their buckets. None is
// above the largest value, if that is known.
func quantiles(buckets [][2]float64, count uint64, at []num, known *Latency) []num {
	list, seen, next := make([]num, len(at)), uint64(0), 0
	for i, x := range at {
		rank := uint64(math.Ceil((1 - 1/float64(x)) * float64(count) * (1 - 1e-12)))
		if i == len(at)-1 {
			rank = count
		}
		for next < len(buckets) && seen < max(rank, 1) {
			seen += uint64(buckets[next][1])
			next++
		}
		list[i] = num(buckets[next-1][0] / 1000)
		if known != nil && known.Max > 0 {
			list[i] = min(list[i], num(known.Max))
		}
	}
	return list
}

// Mark is a place on the scale of a chart.
type Mark struct {
	Name string `json:"name"`
	At   num    `json:"at_ms"`
}

// histogram returns the distribution of a load phase, or nil if it is not known. A closed loop has one curve,
// because work is sent when it is due.
func histogram(d *Drive) *HistogramPlot {
	if d == nil || d.Histogram == nil || len(d.Histogram.Buckets) == 0 {
		return nil
	}
	due, sent := bins(d.Histogram), map[int]float64(nil)
	if d.ServiceTimes != nil && open(d) {
		sent = bins(d.ServiceTimes)
	}
	used := slices.AppendSeq(slices.Collect(maps.Keys(due)), maps.Keys(sent))
	if len(used) == 0 {
		return nil
	}
	first, last := slices.Min(used), slices.Max(used)
	h := &HistogramPlot{Edges: []num{num(edge(first) / 1000)}, Due: []num{}, Sent: []num{}, Marks: []Mark{}}
	for i := first; i <= last; i++ {
		h.Edges, h.Due = append(h.Edges, num(edge(i+1)/1000)), append(h.Due, num(due[i]))
		if sent != nil {
			h.Sent = append(h.Sent, num(sent[i]))
		}
	}
	h.Percentiles = percentiles(d)
	if l := d.Latency; l != nil {
		h.Marks = append(h.Marks, Mark{"50 %", num(l.P50)}, Mark{"99 %", num(l.P99)}, Mark{"99.9 %", num(l.P999)}, Mark{"max", num(l.Max)})
	}
	return h
}

// edge returns the lower end of a bin in microseconds.
func edge(bin int) float64 { return math.Pow(10, float64(bin)/binsPerDecade) }

// bins spreads the buckets over the bins. A bucket that lies in several bins gives each the share that it
// covers, as if its values were spread evenly. With two significant digits this moves nothing by more than 1
// %.
func bins(h *Histogram) map[int]float64 {
	out := map[int]float64{}
	buckets := slices.Clone(h.Buckets)
	slices.SortFunc(buckets, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
	before := 0.0
	for _, b := range buckets {
		upper, count := b[0], b[1]
		if !(count > 0) || !(upper >= 0) || math.IsInf(upper, 0) {
			continue
		}
		upper = min(max(upper, math.Pow(10, leastDecade)), math.Pow(10, mostDecade))
		lower := max(before, upper-max(bucketUnit, upper/bucketShare), math.Pow(10, leastDecade))
		before = upper
		from, to := binOf(lower), binOf(upper)
		if lower >= upper || from == to {
			out[to] += count
			continue
		}
		for i := from; i <= to; i++ {
			if covered := min(upper, edge(i+1)) - max(lower, edge(i)); covered > 0 {
				out[i] += count * covered / (upper - lower)
			}
		}
	}
	return out
}

// The width of a bucket of an HdrHistogram with two significant digits over
// microseconds: it is one unit at first and later at most this share of its
// value (http://hdrhistogram.org).
const (
	bucketUnit  = 0.512
	bucketShare = 128
)

func binOf(us float64) int { return int(math.Floor(math.Log10(us)*binsPerDecade + 1e-9)) }

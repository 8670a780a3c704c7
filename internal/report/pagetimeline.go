package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
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

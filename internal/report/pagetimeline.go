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

// mostSeconds is the longest run whose every second is drawn. Of a longer one a point is
// the mean of a bin of seconds, and the lowest and the highest of them are drawn too, so
// that no peak and no fall is lost.
const mostSeconds = 60 * 60

// mostBins is how many bins a longer run is cut into: more than a screen has columns.
const mostBins = 1800

// PageTimeline is the run over time. All columns are as long as At; null is not
// known, or no time for that. A second that the load phase did not fill would look like a
// fall, and is left out.
type PageTimeline struct {
	End     float64      `json:"end_s"`    // the right edge, in seconds since the run's start
	Warmup  float64      `json:"warmup_s"` // 0: none
	Bin     int          `json:"bin_s"`    // how many seconds a point stands for
	Note    string       `json:"note"`
	Target  float64      `json:"target"` // the rate asked for, per second, where it was one all the time; 0: none
	Open    bool         `json:"open"`
	At      []num        `json:"at_s"`    // the middle of what a point stands for
	Columns Columns      `json:"columns"` // of a bin the mean of its seconds
	Low     *Columns     `json:"low"`     // of a bin its lowest second; null where a point is a second
	High    *Columns     `json:"high"`
	Bands   []Band       `json:"bands"`
	Leaders []PageLeader `json:"leaders"` // the nodes that took the lead
}

// Columns are what is drawn over time.
type Columns struct {
	Committed  []num `json:"committed"`
	Rejected   []num `json:"rejected"`
	Aborted    []num `json:"aborted"`
	Unknown    []num `json:"unknown"`
	P50        []num `json:"p50_ms"`
	P90        []num `json:"p90_ms"`
	P99        []num `json:"p99_ms"`
	P999       []num `json:"p999_ms"`
	Max        []num `json:"max_ms"`
	Waiting    []num `json:"waiting"`
	ClientCPU  []num `json:"client_cpu"`
	ServersCPU []num `json:"servers_cpu"`
	ClientRSS  []num `json:"client_rss_mb"`
	ServersRSS []num `json:"servers_rss_mb"`
	// Nil where nothing of them is known.
	ServersReceived []num `json:"servers_received_mb,omitempty"` // a second
	ServersSent     []num `json:"servers_sent_mb,omitempty"`     // a second
	ServersStored   []num `json:"servers_stored_mb,omitempty"`
}

// PageLeader is a node that leads from a time on.
type PageLeader struct {
	Name string  `json:"name"`
	At   float64 `json:"at_s"`
}

// Band is the time of one fault.
type Band struct {
	Number int            `json:"number"`
	Label  string         `json:"label"`
	From   fault.Seconds  `json:"from_s"`
	To     fault.Seconds  `json:"to_s"`     // when its heal was begun; the end where it never was
	Healed *fault.Seconds `json:"healed_s"` // when its heal was done
	Back   *fault.Seconds `json:"back_s"`   // when the throughput was back
}

// num is a number of a chart. It is written with four digits, and NaN as null.
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

// timeline is the run second by second; nil where no whole second is known.
func timeline(in Input) *PageTimeline {
	n := 0
	for _, s := range in.Seconds {
		n = max(n, s.Second+1)
	}
	for _, r := range in.Resources {
		if r.Second <= mostSecond {
			n = max(n, r.Second+1)
		}
	}
	c := &PageTimeline{End: float64(n), Bin: 1, Bands: []Band{}, Leaders: []PageLeader{}}
	if d := in.Result.Drive; d != nil {
		c.Warmup, c.Open = d.WarmupSeconds, open(d)
		if d.RatePlan == "" || d.RatePlan == strconv.FormatFloat(d.Rate, 'f', -1, 64) {
			c.Target = d.Rate
		}
		// In the seconds at the end for which there is no row nothing ended.
		if whole := in.whole(); !in.Live && whole >= 0 && n > 0 {
			c.End, n = d.WarmupSeconds+d.Seconds, whole
		}
	}
	if n == 0 {
		return nil
	}
	for _, column := range c.Columns.all() {
		*column = slices.Repeat([]num{num(math.NaN())}, n)
	}
	c.Columns.seconds(in.Seconds)
	c.Columns.resources(in.Resources)
	c.End = max(c.End, float64(n))
	c.At = make([]num, n)
	for i := range c.At {
		c.At[i] = num(i) + 0.5
	}
	if n > mostSeconds {
		c.bin()
	}
	c.bands(in.Result.Faults)
	c.leaders(in.Result.ClusterEvents)
	return c
}

// whole is how many whole seconds the load phase had; -1 where that is not known.
func (in *Input) whole() int {
	if d := in.Result.Drive; d != nil && d.Seconds > 0 && d.WarmupSeconds+d.Seconds <= mostSecond {
		return int(d.WarmupSeconds + d.Seconds + 1e-6)
	}
	return -1
}

func (c *Columns) all() []*[]num {
	return []*[]num{
		&c.Committed, &c.Rejected, &c.Aborted, &c.Unknown, &c.P50, &c.P90, &c.P99, &c.P999, &c.Max, &c.Waiting,
		&c.ClientCPU, &c.ServersCPU, &c.ClientRSS, &c.ServersRSS, &c.ServersReceived, &c.ServersSent, &c.ServersStored,
	}
}

// seconds fills in the series: a second that it does not have is one in which
// nothing ended.
func (c *Columns) seconds(series []stats.Second) {
	if len(series) == 0 {
		return
	}
	for _, counts := range [][]num{c.Committed, c.Rejected, c.Aborted, c.Unknown, c.Waiting} {
		clear(counts)
	}
	ms := func(d time.Duration) num { return num(float64(d) / float64(time.Millisecond)) }
	for _, s := range series {
		i := s.Second
		if i < 0 || i >= len(c.Committed) {
			continue
		}
		c.Committed[i], c.Rejected[i], c.Aborted[i], c.Unknown[i] = num(s.Committed), num(s.Rejected), num(s.Aborted), num(s.Unknown)
		c.Waiting[i] = num(s.Waiting)
		if s.Committed == 0 {
			continue
		}
		c.P50[i], c.P99[i], c.Max[i] = ms(s.P50), ms(s.P99), ms(s.Max)
		if s.P999 > 0 { // a recording of an older stroppy does not have them
			c.P90[i], c.P999[i] = ms(s.P90), ms(s.P999)
		}
	}
}

func (c *Columns) resources(rows []Resource) {
	for _, r := range rows {
		if r.Second < 0 || r.Second >= len(c.Committed) {
			continue
		}
		put(c.ClientCPU, r.Second, r.ClientCPU, 1)
		put(c.ServersCPU, r.Second, r.ServersCPU, 1)
		put(c.ClientRSS, r.Second, r.ClientRSS, 1e6)
		put(c.ServersRSS, r.Second, r.ServersRSS, 1e6)
		put(c.ServersReceived, r.Second, r.ServersReceived, 1e6)
		put(c.ServersSent, r.Second, r.ServersSent, 1e6)
		put(c.ServersStored, r.Second, r.ServersStored, 1e6)
	}
	for _, rare := range []*[]num{&c.ServersReceived, &c.ServersSent, &c.ServersStored} {
		if !slices.ContainsFunc(*rare, func(x num) bool { return x == x }) {
			*rare = nil
		}
	}
}

func put[N int64 | float64](column []num, i int, x *N, unit float64) {
	if x != nil {
		column[i] = num(float64(*x) / unit)
	}
}

// bin makes one point of each bin of seconds.
func (c *PageTimeline) bin() {
	n := len(c.At)
	c.Bin = binWidth(n, mostBins)
	c.Low, c.High = new(Columns), new(Columns)
	low, high := c.Low.all(), c.High.all()
	for i, column := range c.Columns.all() {
		*column, *low[i], *high[i] = binned(*column, c.Bin)
	}
	c.At = c.At[:0]
	for from := 0; from < n; from += c.Bin {
		c.At = append(c.At, num(float64(from)+float64(min(c.Bin, n-from))/2))
	}
	c.Note = fmt.Sprintf("Each point is the mean of %d seconds; shaded about it: from the lowest of them to the highest. series.csv has every second.", c.Bin)
}

// binWidth is the smallest round number of seconds of which most at most make n.
func binWidth(n, most int) int {
	for _, width := range []int{1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600} {
		if n <= width*most {
			return width
		}
	}
	return (n + most - 1) / most
}

// binned returns the mean, the least and the most of each bin; NaN where none is known.
func binned(column []num, width int) (mean, low, high []num) {
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

// bands are the times of the faults that were injected.
func (c *PageTimeline) bands(faults []fault.Record) {
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

// leaders are the nodes that took the lead during the load phase, as the cluster's events say.
func (c *PageTimeline) leaders(events []Event) {
	for _, e := range events {
		if e.Leader != "" && e.AtSeconds >= 0 && e.AtSeconds <= c.End {
			c.Leaders = append(c.Leaders, PageLeader{e.Leader, e.AtSeconds})
		}
	}
}

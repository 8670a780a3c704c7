package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/stats"
)

// mostSeconds is the longest run whose every second is drawn, four hours. Of a
// longer one two points stand for a bucket: its lowest and its highest second.
const mostSeconds = 4 * 60 * 60

// mostBuckets is how many buckets a longer run is cut into: more than a screen
// has columns.
const mostBuckets = 3600

// PageTimeline is the run over time. All columns are as long as At; null is not
// known, or no time for that.
type PageTimeline struct {
	End     float64 `json:"end_s"`    // the right edge, in seconds since the run's start
	Warmup  float64 `json:"warmup_s"` // 0: none
	Bucket  int     `json:"bucket_s"` // how many seconds two points stand for; 1: a point is a second
	Note    string  `json:"note"`
	Target  float64 `json:"target"` // the rate asked for, per second, where it was one all the time; 0: none
	Open    bool    `json:"open"`
	At      []num   `json:"at_s"` // the middle of what a point stands for
	Columns Columns `json:"columns"`
	Bands   []Band  `json:"bands"`
}

// Columns are what is drawn over time.
type Columns struct {
	Committed  []num `json:"committed"`
	Rejected   []num `json:"rejected"`
	Aborted    []num `json:"aborted"`
	Unknown    []num `json:"unknown"`
	P50        []num `json:"p50_ms"`
	P99        []num `json:"p99_ms"`
	Max        []num `json:"max_ms"`
	Waiting    []num `json:"waiting"`
	ClientCPU  []num `json:"client_cpu"`
	ServersCPU []num `json:"servers_cpu"`
	ClientRSS  []num `json:"client_rss_mb"`
	ServersRSS []num `json:"servers_rss_mb"`
}

// Band is the time of one fault.
type Band struct {
	Number int      `json:"number"`
	Label  string   `json:"label"`
	From   float64  `json:"from_s"`
	To     float64  `json:"to_s"`
	Healed bool     `json:"healed"` // otherwise it lasts to the end
	Back   *float64 `json:"back_s"` // when the throughput was back
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

// timeline is the run second by second; nil where no second is known.
func timeline(in Input) *PageTimeline {
	known := 0
	for _, s := range in.Seconds {
		known = max(known, s.Second+1)
	}
	n := known
	for _, r := range in.Resources {
		if r.Second <= mostSecond {
			n = max(n, r.Second+1)
		}
	}
	if n == 0 {
		return nil
	}
	c := &PageTimeline{End: float64(n), Bucket: 1, At: make([]num, n), Bands: []Band{}}
	for _, column := range c.Columns.all() {
		*column = slices.Repeat([]num{num(math.NaN())}, n)
	}
	whole := n
	if d := in.Result.Drive; d != nil {
		c.Warmup, c.Open = d.WarmupSeconds, open(d)
		if d.RatePlan == "" || d.RatePlan == strconv.FormatFloat(d.Rate, 'f', -1, 64) {
			c.Target = d.Rate
		}
		if end := d.WarmupSeconds + d.Seconds; !in.Live && d.Seconds > 0 {
			if end >= 1 && end < float64(n) {
				whole = int(end + 1e-6)
			}
			c.End = max(end, float64(whole))
		}
	}
	c.Columns.seconds(in.Seconds, known, whole)
	c.Columns.resources(in.Resources)
	for i := range c.At {
		c.At[i] = num(i) + 0.5
	}
	if whole < known {
		c.Note = "The load phase did not fill its last second, whose counts are left out."
	}
	if n > mostSeconds {
		c.decimate()
	}
	c.bands(in.Result.Faults)
	return c
}

func (c *Columns) all() []*[]num {
	return []*[]num{
		&c.Committed, &c.Rejected, &c.Aborted, &c.Unknown, &c.P50, &c.P99, &c.Max, &c.Waiting,
		&c.ClientCPU, &c.ServersCPU, &c.ClientRSS, &c.ServersRSS,
	}
}

// seconds fills in the series: a second that it does not have is one in which
// nothing ended. The counts of a second that the load phase did not fill would look
// like a fall, and are left out.
func (c *Columns) seconds(series []stats.Second, known, whole int) {
	for _, counts := range [][]num{c.Committed, c.Rejected, c.Aborted, c.Unknown, c.Waiting} {
		clear(counts[:min(known, whole)])
	}
	ms := func(d time.Duration) num { return num(float64(d) / float64(time.Millisecond)) }
	for _, s := range series {
		i := s.Second
		if i >= 0 && i < whole {
			c.Committed[i], c.Rejected[i], c.Aborted[i], c.Unknown[i] = num(s.Committed), num(s.Rejected), num(s.Aborted), num(s.Unknown)
			c.Waiting[i] = num(s.Waiting)
		}
		if i >= 0 && s.Committed > 0 {
			c.P50[i], c.P99[i], c.Max[i] = ms(s.P50), ms(s.P99), ms(s.Max)
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
	}
}

func put[N int64 | float64](column []num, i int, x *N, unit float64) {
	if x != nil {
		column[i] = num(float64(*x) / unit)
	}
}

// decimate keeps the lowest and the highest second of each bucket, in the order
// in which they came: no peak and no fall is lost, and what lies between is not
// drawn.
func (c *PageTimeline) decimate() {
	n := len(c.At)
	c.Bucket = (n + mostBuckets - 1) / mostBuckets
	for _, column := range c.Columns.all() {
		*column = extremes(*column, c.Bucket)
	}
	at := []num{}
	for from := 0; from < n; from += c.Bucket {
		width := float64(min(c.Bucket, n-from))
		at = append(at, num(float64(from)+width/4), num(float64(from)+width*3/4))
	}
	c.At = at
	c.Note = strings.TrimSpace(c.Note + fmt.Sprintf(" Of each %d seconds the lowest and the highest are drawn; series.csv has every second.", c.Bucket))
}

// extremes returns two numbers for each bucket; NaN where none is known.
func extremes(column []num, bucket int) []num {
	var out []num
	for part := range slices.Chunk(column, bucket) {
		low, high := 0, 0
		for i, x := range part {
			if !(part[low] <= x) && x == x { // NaN is less than any
				low = i
			}
			if !(part[high] >= x) && x == x {
				high = i
			}
		}
		out = append(out, part[min(low, high)], part[max(low, high)])
	}
	return out
}

// bands are the times of the faults that were injected.
func (c *PageTimeline) bands(faults []Fault) {
	for _, f := range faults {
		if f.Skipped != "" || f.Error != "" && f.OutageSeconds == nil {
			continue
		}
		b := Band{Number: f.Number, Label: f.Fault, From: f.AtSeconds, To: c.End}
		if f.HealedSeconds != nil {
			b.To, b.Healed = *f.HealedSeconds, true
		}
		if f.RecoveredSeconds != nil && *f.RecoveredSeconds > 0 {
			b.Back = new(f.AtSeconds + *f.RecoveredSeconds)
		}
		c.Bands = append(c.Bands, b)
	}
}

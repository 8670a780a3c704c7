package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"stroppy/internal/fault"
	"stroppy/internal/stats"
)

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
	var drawn []fault.Record
	for _, f := range in.Result.Faults {
		if f.Outage != nil {
			drawn = append(drawn, f)
		}
	}
	worstFirst := func(a, b fault.Record) int { return cmp.Compare(*b.Outage, *a.Outage) }
	slices.SortStableFunc(drawn, worstFirst)
	steps := 0
	for i := range drawn {
		a, ok := aroundFault(&drawn[i], rows)
		if !ok {
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
func aroundFault(f *fault.Record, rows []AroundRow) (a AroundFault, ok bool) {
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
	a = AroundFault{Number: f.Number, Label: f.Fault, Committed: []num{}}
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
	if len(a.Committed) == 0 {
		return a, false
	}
	a.From = rows[first].At.Seconds()
	return a, true
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

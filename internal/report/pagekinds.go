package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// PageKinds are the committed transactions by kind over time. All lists are as long as At.
type PageKinds struct {
	Seconds int        `json:"bin_s"` // that a point stands for
	At      []num      `json:"at_s"`  // the middle of them
	Lines   []KindLine `json:"lines"` // two at least, that with most transactions first
}

// KindLine is one kind over time. Where none committed the latencies are null.
type KindLine struct {
	Name string `json:"name"`
	TPS  []num  `json:"tps"`
	P50  []num  `json:"p50_ms"`
	P90  []num  `json:"p90_ms"`
	P99  []num  `json:"p99_ms"`
	P999 []num  `json:"p999_ms"`
	Max  []num  `json:"max_ms"`
}

// columnAxis are the middles of the columns of a width up to the last whole second, or the last
// that is known, and how many seconds each has.
func columnAxis(last, width, whole int) (at []num, seconds []float64) {
	end := last + width
	if whole >= 0 && whole <= end { // behind the last column nothing is known
		end = whole
	}
	for from := 0; from < end; from += width {
		wide := min(width, end-from)
		at, seconds = append(at, num(from)+num(wide)/2), append(seconds, float64(wide))
	}
	return at, seconds
}

// pageKinds is null where nothing is known, or all are of one kind.
func pageKinds(rows []KindRow, whole int) *PageKinds {
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
	k := &PageKinds{Seconds: width}
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
	l := KindLine{Name: name, TPS: make([]num, n)}
	for _, column := range []*[]num{&l.P50, &l.P90, &l.P99, &l.P999, &l.Max} {
		*column = slices.Repeat([]num{num(math.NaN())}, n)
	}
	ms := func(d time.Duration) num { return num(float64(d) / float64(time.Millisecond)) }
	for _, r := range rows {
		if i := r.Second / width; r.Kind == name && i < n {
			l.TPS[i] = num(float64(r.Committed) / seconds[i])
			l.P50[i], l.P90[i], l.P99[i], l.P999[i], l.Max[i] = ms(r.P50), ms(r.P90), ms(r.P99), ms(r.P999), ms(r.Max)
		}
	}
	return l
}

// PageHeat is how many transactions took how long, over time.
type PageHeat struct {
	Seconds int     `json:"bin_s"` // that a column stands for
	At      []num   `json:"at_s"`  // the middle of them
	Edges   []num   `json:"edges_ms"`
	Cells   [][]num `json:"cells"`  // by column: per second in each bin, from Edges[i] to Edges[i+1]; empty where nothing committed
	P50     []num   `json:"p50_ms"` // of each column, exactly
	P99     []num   `json:"p99_ms"`
}

// pageHeat is null where nothing is known.
func pageHeat(p Plots, whole int) *PageHeat {
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
	h := &PageHeat{Seconds: width, At: at, Cells: make([][]num, len(at)), Edges: []num{}}
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
	all := kindLine(AllKinds, p.Kinds, width, seconds)
	h.P50, h.P99 = all.P50, all.P99
	return h
}

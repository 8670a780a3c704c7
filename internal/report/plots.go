package report

import (
	"io"
	"math"
	"time"

	"stroppy/internal/stats"
)

// Plots are the rows of a run's files that only plots are made of.
type Plots struct {
	Around []AroundRow
	Kinds  []KindRow
	Heat   []HeatCell
}

// AroundRow is one row of around-faults.csv: what committed in the stats.FineStep from At on.
type AroundRow struct {
	At        time.Duration
	Committed uint64
}

// KindRow is one row of kinds.csv: what committed of one kind in the seconds from Second on.
type KindRow struct {
	Kind                     string // AllKinds: of all together
	Second, Seconds          int
	Committed                uint64
	P50, P90, P99, P999, Max time.Duration // from when it was due
}

// AllKinds stands in kinds.csv for all kinds of transactions together.
const AllKinds = "all"

// HeatCell is one row of heatmap.csv: how many of the transactions that committed in the
// seconds from Second on took up to UpTo, and more than the next smaller bin has.
type HeatCell struct {
	Second, Seconds int
	UpTo            time.Duration // the upper end of a bin
	Committed       uint64
}

// heatPerDecade is how many bins of latency a heat map has for each power of ten.
const heatPerDecade = 10

// The least bin of a heat map ends at 10 µs, and has all that is faster.
const leastHeat = heatPerDecade

var aroundColumns = []column[AroundRow]{
	{"at_ms", func(row *AroundRow) any { return &row.At }},
	{"committed", func(row *AroundRow) any { return &row.Committed }},
}

var kindColumns = []column[KindRow]{
	{"kind", func(row *KindRow) any { return &row.Kind }},
	{"second", func(row *KindRow) any { return &row.Second }},
	{"seconds", func(row *KindRow) any { return &row.Seconds }},
	{"committed", func(row *KindRow) any { return &row.Committed }},
	{"p50_ms", func(row *KindRow) any { return &row.P50 }},
	{"p90_ms", func(row *KindRow) any { return &row.P90 }},
	{"p99_ms", func(row *KindRow) any { return &row.P99 }},
	{"p999_ms", func(row *KindRow) any { return &row.P999 }},
	{"max_ms", func(row *KindRow) any { return &row.Max }},
}

var heatColumns = []column[HeatCell]{
	{"second", func(row *HeatCell) any { return &row.Second }},
	{"seconds", func(row *HeatCell) any { return &row.Seconds }},
	{"up_to_ms", func(row *HeatCell) any { return &row.UpTo }},
	{"committed", func(row *HeatCell) any { return &row.Committed }},
}

// WriteAround writes around-faults.csv.
func WriteAround(w io.Writer, rows []AroundRow) error { return writeRows(w, aroundColumns, rows) }

// ReadAround reads what WriteAround wrote.
func ReadAround(r io.Reader) ([]AroundRow, error) {
	return readRows(r, aroundFile, aroundColumns, len(aroundColumns))
}

// WriteKinds writes kinds.csv.
func WriteKinds(w io.Writer, rows []KindRow) error { return writeRows(w, kindColumns, rows) }

// ReadKinds reads what WriteKinds wrote.
func ReadKinds(r io.Reader) ([]KindRow, error) {
	return readRows(r, kindsFile, kindColumns, len(kindColumns))
}

// WriteHeat writes heatmap.csv.
func WriteHeat(w io.Writer, rows []HeatCell) error { return writeRows(w, heatColumns, rows) }

// ReadHeat reads what WriteHeat wrote.
func ReadHeat(r io.Reader) ([]HeatCell, error) {
	return readRows(r, heatFile, heatColumns, len(heatColumns))
}

// AroundRows are the rows of stretches.
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

// heatBin is the number of the bin of a latency in microseconds, heatEdge the upper end of a
// bin, and binOfEdge the bin of an upper end, which heatmap.csv has rounded.
func heatBin(us float64) int {
	return max(int(math.Ceil(math.Log10(us)*heatPerDecade-1e-9)), leastHeat)
}

func binOfEdge(us float64) int {
	return max(int(math.Round(math.Log10(us)*heatPerDecade)), leastHeat)
}

func heatEdge(bin int) float64 { return math.Pow(10, float64(bin)/heatPerDecade) }

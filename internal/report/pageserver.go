package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

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

package matrix

import (
	"fmt"
	"io"

	"stroppy/internal/report"
	"stroppy/internal/schedule"
)

// PageName is the page's name in the directory of a matrix.
const PageName = "isolation.html"

// PageData is what the page of a matrix shows.
type PageData struct {
	report.Head
	Anomalies   []PageAnomaly `json:"anomalies"`
	Levels      []PageLevel   `json:"levels"`
	NoSchedules string        `json:"no_schedules"`
	Legend      string        `json:"legend"`
}

// PageAnomaly is one column.
type PageAnomaly struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// PageLevel is one row, and a section of its own.
type PageLevel struct {
	Name         string     `json:"name"`
	Default      bool       `json:"default"`
	Claims       string     `json:"claims"`
	ClaimsShort  string     `json:"claims_short"` // without its meaning in words
	Source       string     `json:"source"`
	Bound        string     `json:"upper_bound"`
	Transactions uint64     `json:"transactions"`
	Schedules    int        `json:"schedules"`
	Summary      string     `json:"summary"`
	Verdict      string     `json:"verdict"`
	Cells        []PageCell `json:"cells"` // one each column
	Loads        []Load     `json:"loads"`
}

// PageCell is one anomaly at one level.
type PageCell struct {
	Mark     string             `json:"mark"`
	Few      bool               `json:"few_transactions"`
	Sentence string             `json:"sentence"`
	Load     []string           `json:"load"` // what load saw
	Variants []schedule.Outcome `json:"variants"`
}

// NewPageData makes the data of the page.
func NewPageData(m *Matrix) *PageData {
	d := &PageData{
		Head:   report.NewHead("isolation levels", m.Database+" "+m.Version, m.Started, m.Command, m.Stroppy),
		Levels: []PageLevel{}, NoSchedules: m.NoSchedules, Legend: Legend,
	}
	d.Notes = []report.PageNote{}
	d.Verdict, d.Reason = m.Verdict, m.Reason
	d.Title = fmt.Sprintf("%s: isolation levels of %s", report.Capital(m.Verdict), report.OrNotKnown(m.Database))
	for _, a := range schedule.Anomalies() {
		d.Anomalies = append(d.Anomalies, PageAnomaly{a.String(), a.Text()})
	}
	for i := range m.Levels {
		l := &m.Levels[i]
		p := PageLevel{
			Name: l.Name, Default: l.Default, Claims: l.Claims.Literature(), ClaimsShort: l.Claims.Short(), Source: l.Source,
			Bound: l.Bound(), Transactions: l.Transactions, Schedules: l.Schedules, Summary: l.Summary + l.Unseen(),
			Verdict: l.Verdict, Loads: l.Loads,
		}
		for _, a := range schedule.Anomalies() {
			c := l.Anomalies[a.String()]
			cell := PageCell{Mark: c.Mark(), Few: c.Few, Sentence: c.Sentence(), Load: []string{}, Variants: c.Variants}
			if c.Load == LoadSeen {
				cell.Load = c.Witnesses[len(c.Witnesses)-1:]
			}
			p.Cells = append(p.Cells, cell)
		}
		d.Levels = append(d.Levels, p)
	}
	return d
}

// Page writes the matrix as one HTML file that needs nothing else.
func (m *Matrix) Page(w io.Writer) error {
	data := NewPageData(m)
	sheet := report.Sheet{Title: data.Title, Data: data, Scripts: []string{"isolation.js"}}
	if err := sheet.Write(w, m.Text); err != nil {
		return fmt.Errorf("write the page of the isolation levels: %w", err)
	}
	return nil
}

// Package study is a sweep over scenarios: what each run came to, or why it could not be
// carried out, and the tables that studies have published of such runs with ours beside.
package study

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"stroppy/internal/report"
)

// FileName is the book's name in the directory of the sweep.
const FileName = "scenarios.json"

// maxFile is the largest scenarios.json that is read, in bytes.
const maxFile = 16 << 20

// Book is what a sweep over scenarios has come to so far, as scenarios.json keeps it.
type Book struct {
	Schema    int      `json:"schema"`
	Over      []string `json:"over"` // the scenarios' names, in their order
	Seed      uint64   `json:"seed"` // of each scenario that names none
	StartedAt string   `json:"started_at"`
	Command   string   `json:"command"` // repeats it; with --out it goes on
	Machine   string   `json:"machine"` // that drove
	Stroppy   string   `json:"stroppy"` // the version
	Finished  bool     `json:"finished"`
	Rows      []Row    `json:"runs"` // in the order in which they were carried out

	Tables []report.Table `json:"tables"` // those of studies, with ours beside
}

// Row is what one scenario came to. What is not known is null.
type Row struct {
	Scenario string `json:"scenario"`
	Settings string `json:"settings"`                // in effect, as YAML
	Problem  string `json:"could_not_run,omitempty"` // why there is no run; empty: there is one
	Dir      string `json:"dir,omitempty"`           // the run's, below the sweep's

	Verdict    string  `json:"verdict,omitempty"`
	Objectives string  `json:"objectives,omitempty"` // met, missed or unknown; empty: none was given
	Database   string  `json:"database,omitempty"`   // with its version
	ScaledDown float64 `json:"scaled_down_by,omitempty"`
	Clients    int     `json:"clients,omitempty"`
	Loaded     uint64  `json:"loaded,omitempty"` // accounts, or what else the workload has
	Committed  uint64  `json:"committed,omitempty"`

	TPS       *float64 `json:"tps"`
	MedianTPS *float64 `json:"tps_median"`
	BestTPS   *float64 `json:"tps_best"`
	MeanMS    *float64 `json:"latency_mean_ms"`
	P99MS     *float64 `json:"latency_p99_ms"`
	MaxMS     *float64 `json:"latency_max_ms"`
	Footprint *int64   `json:"footprint_bytes"`
}

// NewRow is what a run came to.
func NewRow(name, settings, dir string, r *report.Result) Row {
	row := Row{
		Scenario: name, Settings: settings, Dir: dir, Verdict: r.Verdict, Objectives: r.ObjectivesStatus(),
		Database: joined(r.Database, r.DatabaseVersion), ScaledDown: r.ScaledDownBy, Footprint: r.FootprintBytes,
	}
	if r.Load != nil {
		row.Loaded = r.Load.Accounts
	}
	d := r.Drive
	if d == nil {
		return row
	}
	row.Clients, row.Committed = d.Clients, d.Committed
	if t := d.TPS; t != nil {
		row.TPS, row.MedianTPS, row.BestTPS = t.Mean, t.Median, t.Max
	}
	if l := d.Latency; l != nil {
		row.MeanMS, row.P99MS, row.MaxMS = &l.Mean, &l.P99, &l.Max
	}
	return row
}

// Row returns what is known of a scenario; nil where it has not been tried.
func (b *Book) Row(name string) *Row {
	if i := slices.IndexFunc(b.Rows, func(r Row) bool { return r.Scenario == name }); i >= 0 {
		return &b.Rows[i]
	}
	return nil
}

// Put takes up a row in place of what was known of its scenario.
func (b *Book) Put(row Row) {
	if known := b.Row(row.Scenario); known != nil {
		*known = row
		return
	}
	b.Rows = append(b.Rows, row)
}

// Missing are the scenarios of which there is no run.
func (b *Book) Missing() (names []string) {
	for _, row := range b.Rows {
		if row.Problem != "" {
			names = append(names, row.Scenario)
		}
	}
	return names
}

// ErrOther says that a directory holds another sweep than the one asked for.
var ErrOther = errors.New("another sweep is kept there")

// Resume returns what a directory keeps of the sweep that b describes, and b where it keeps
// nothing yet.
func (b *Book) Resume(dir string) (*Book, error) {
	kept, err := Read(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return b, nil
	case err != nil:
		return nil, err
	case !slices.Equal(kept.Over, b.Over):
		return nil, fmt.Errorf("go on with the sweep in %s: %w, over other scenarios: take another directory", dir, ErrOther)
	case len(kept.Rows) > 0 && kept.Stroppy != b.Stroppy:
		return nil, fmt.Errorf("go on with the sweep in %s: its runs were made by stroppy %s and this is %s: take another directory", dir, kept.Stroppy, b.Stroppy)
	case b.Seed != 0 && b.Seed != kept.Seed:
		return nil, fmt.Errorf("go on with the sweep in %s: its seed is %d and not %d", dir, kept.Seed, b.Seed)
	}
	return kept, nil
}

// Holds says whether a directory is one of such a sweep.
func Holds(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, FileName))
	return err == nil
}

// Read reads the book in a sweep's directory. Where there is none the error is an
// fs.ErrNotExist.
func Read(dir string) (*Book, error) {
	return report.ReadFile(dir, FileName, "sweep over scenarios", maxFile, func(data []byte) (*Book, error) {
		return report.Decode[Book](data, "sweep over scenarios")
	})
}

// Save puts the book in place at once, with the tables of the studies.
func (b *Book) Save(dir string, published []Published) error {
	b.Schema, b.Tables = report.Schema, []report.Table{}
	for _, t := range b.tables(published) {
		plain := report.Table{Title: t.Title, Columns: t.Columns, Notes: []string{t.Note}}
		for _, row := range t.Rows {
			plain.Rows = append(plain.Rows, row.Cells)
		}
		b.Tables = append(b.Tables, plain)
	}
	if b.Rows == nil {
		b.Rows = []Row{}
	}
	if err := report.WriteJSON(dir, FileName, b); err != nil {
		return fmt.Errorf("keep the sweep in %s: %w", dir, err)
	}
	return nil
}

package sweep

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"stroppy/internal/report"
)

// FileName is the book's name in the directory of the sweep.
const FileName = "sweep.json"

// maxFile is the largest sweep.json that is read, in bytes.
const maxFile = 16 << 20

// Book is what a sweep has come to so far, as sweep.json keeps it.
type Book struct {
	Schema    int    `json:"schema"`
	Workload  string `json:"workload"`
	Database  string `json:"database"`
	Over      string `json:"over"`     // as Spec prints it
	Scenario  string `json:"scenario"` // of every step; what the sweep changes and the seed left out
	Seed      uint64 `json:"seed"`
	StartedAt string `json:"started_at"`
	Command   string `json:"command,omitempty"` // repeats it from its beginning; with --out it goes on
	Machine   string `json:"machine,omitempty"` // that drove

	Environment *report.Environment `json:"environment,omitempty"` // of the first step

	Stroppy  string  `json:"stroppy,omitempty"` // the version
	Finished bool    `json:"finished"`
	Repeat   int     `json:"repeat,omitempty"` // how often each step is measured, where it is more than once
	Points   []Point `json:"points"`           // in the order in which they were run

	Conclusions *Conclusions `json:"conclusions,omitempty"` // from all points, as the text and the page have them
}

// Conclusions are what the steps together show. What is not claimed is null, and
// Findings say why.
type Conclusions struct {
	Findings []string `json:"findings"`
	Knee     *AtKnee  `json:"knee"`
	Law      *Fitted  `json:"law"`
}

// AtKnee is a claimed knee.
type AtKnee struct {
	Rate    float64 `json:"rate"`
	P99MS   float64 `json:"latency_p99_ms"` // the median of the measurements there
	Samples uint64  `json:"latency_samples"`
}

// Fitted is the scalability law where it explains the measurements. A peak, or a limit,
// that is not claimed is null.
type Fitted struct {
	Lambda  Coefficient `json:"lambda"`
	Sigma   Coefficient `json:"sigma"`
	Kappa   Coefficient `json:"kappa"`
	R2      float64     `json:"r2"`
	PeakN   *float64    `json:"peak_n"`
	PeakTPS *float64    `json:"peak_tps"`
	Limit   *float64    `json:"limit_tps"`
}

// Coefficient has a 95 % interval, which is null where it is not known.
type Coefficient struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
}

// ErrOther says that a directory holds another sweep than the one asked for.
var ErrOther = errors.New("another sweep is kept there")

// Resume returns what a directory keeps of the sweep that b describes: b itself
// where it keeps nothing yet. ErrOther: it keeps a sweep over something else, or
// of another scenario.
func (b *Book) Resume(dir string) (*Book, error) {
	kept, err := Read(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return b, nil
	case err != nil:
		return nil, err
	case kept.Over != b.Over:
		return nil, fmt.Errorf("go on with the sweep in %s: %w: over %s, and this one is over %s: take another directory", dir, ErrOther, kept.Over, b.Over)
	case kept.Scenario != b.Scenario:
		return nil, fmt.Errorf("go on with the sweep in %s: %w: its steps have other settings: take another directory", dir, ErrOther)
	}
	return kept, nil
}

// Holds reports whether a directory is one of a sweep.
func Holds(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, FileName))
	return err == nil
}

// Read reads the book in a sweep's directory. Where there is none the error is
// an fs.ErrNotExist.
func Read(dir string) (*Book, error) { return report.ReadFile(dir, FileName, "sweep", maxFile, parse) }

func parse(data []byte) (*Book, error) {
	b, err := report.Decode[Book](data, "sweep")
	if err != nil {
		return nil, err
	}
	if _, err := Parse(b.Over); err != nil {
		return nil, fmt.Errorf("it does not fit schema %d: %w", report.Schema, err)
	}
	return b, nil
}

// Save puts the book in place at once: nobody ever sees half of it.
func (b *Book) Save(dir string) error {
	b.Schema = report.Schema
	if b.Points == nil {
		b.Points = []Point{}
	}
	spec, err := Parse(b.Over)
	if err != nil {
		return fmt.Errorf("keep the sweep in %s: %w", dir, err)
	}
	b.Conclusions = &summarize(spec.Axis, shown(b.Points, spec.Axis)).Conclusions
	if err := report.WriteJSON(dir, FileName, b); err != nil {
		return fmt.Errorf("keep the sweep in %s: %w", dir, err)
	}
	return nil
}

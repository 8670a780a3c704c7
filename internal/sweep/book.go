package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"stroppy/internal/report"
)

// FileName is the book's name in the directory of the sweep.
const FileName = "sweep.json"

// maxFile is the largest sweep.json that is read, in bytes.
const maxFile = 16 << 20

// Book is what a sweep has come to so far, as sweep.json keeps it.
type Book struct {
	Schema    int     `json:"schema"`
	Workload  string  `json:"workload"`
	Database  string  `json:"database"`
	Over      string  `json:"over"`     // as Spec prints it
	Scenario  string  `json:"scenario"` // of every step; what the sweep changes and the seed left out
	Seed      uint64  `json:"seed"`
	StartedAt string  `json:"started_at"`
	Command   string  `json:"command,omitempty"` // repeats it from its beginning; with --out it goes on
	Machine   string  `json:"machine,omitempty"` // that drove
	Stroppy   string  `json:"stroppy,omitempty"` // the version
	Finished  bool    `json:"finished"`
	Points    []Point `json:"points"` // in the order in which they were run
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
	err := report.WriteFile(dir, FileName, func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(b)
	})
	if err != nil {
		return fmt.Errorf("keep the sweep in %s: %w", dir, err)
	}
	return nil
}

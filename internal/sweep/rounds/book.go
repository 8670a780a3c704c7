// Package rounds keeps which runs the sides of a comparison had, so that it can be reported
// again.
package rounds

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"stroppy/internal/report"
)

// FileName is the book's name in the directory of the comparison.
const FileName = "comparison.json"

// maxFile is the largest comparison.json that is read, in bytes.
const maxFile = 16 << 20

// Book is what a comparison has come to so far, as comparison.json keeps it.
type Book struct {
	Schema  int    `json:"schema"`
	Command string `json:"command"` // repeats it
	Stroppy string `json:"stroppy"` // the version
	Rounds  int    `json:"rounds"`  // that were asked for
	Sides   []Side `json:"sides"`
}

// Side is a scenario, and the runs that were made of it, one a round; or a run that there was.
type Side struct {
	Name string   `json:"name"`
	Runs []string `json:"runs"` // their directories, as seen from the comparison's
}

// Dirs are the directories of the side's runs, where the comparison's is dir.
func (s *Side) Dirs(dir string) (list []string) {
	for _, run := range s.Runs {
		if !filepath.IsAbs(run) {
			run = filepath.Join(dir, run)
		}
		list = append(list, run)
	}
	return list
}

// Of is the book of a comparison of runs that there are, each a side, which is kept in dir.
func Of(runs []string, dir string) (*Book, error) {
	b := &Book{Rounds: 1}
	from, err := filepath.Abs(dir)
	for _, run := range runs {
		to, errOne := filepath.Abs(run)
		if err = errors.Join(err, errOne); err != nil {
			return nil, err
		}
		if near, errOne := filepath.Rel(from, to); errOne == nil {
			to = near
		}
		b.Sides = append(b.Sides, Side{Name: run, Runs: []string{to}})
	}
	return b, nil
}

// Holds says whether a directory is one of a comparison.
func Holds(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, FileName))
	return err == nil
}

// Read reads the book in a comparison's directory. Where there is none the error is an
// fs.ErrNotExist.
func Read(dir string) (*Book, error) {
	return report.ReadFile(dir, FileName, "comparison", maxFile, parse)
}

func parse(data []byte) (*Book, error) {
	b, err := report.Decode[Book](data, "comparison")
	if err != nil {
		return nil, err
	}
	if len(b.Sides) < 2 {
		return nil, errors.New("it names fewer than two sides")
	}
	return b, nil
}

// Save puts the book in place at once.
func (b *Book) Save(dir string) error {
	b.Schema = report.Schema
	if err := report.WriteJSON(dir, FileName, b); err != nil {
		return fmt.Errorf("keep the comparison in %s: %w", dir, err)
	}
	return nil
}

// Missing says how many of the runs are due; empty where all were made.
func (b *Book) Missing() string {
	made, due := 0, b.Rounds*len(b.Sides)
	for _, side := range b.Sides {
		made += len(side.Runs)
	}
	if made >= due {
		return ""
	}
	return fmt.Sprintf("The comparison is not finished: it has %d of its %s.", made, report.Counted(uint64(due), "run"))
}

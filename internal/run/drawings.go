package run

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"stroppy/internal/report"
)

// keepDrawings writes the drawings of the anomalies into their folder, and removes the drawings of an earlier check.
func keepDrawings(dir string, checks []report.Check) error {
	folder := filepath.Join(dir, report.DrawingsDir)
	var names []string
	for _, c := range checks {
		for i := range c.Anomalies {
			a := &c.Anomalies[i]
			if a.Drawing == "" {
				continue
			}
			if err := os.MkdirAll(folder, 0o777); err != nil {
				return err
			}
			name := filepath.Base(a.Drawing)
			write := func(w io.Writer) error {
				_, err := io.WriteString(w, report.DrawingFile(a))
				return err
			}
			if err := report.WriteFile(folder, name, write); err != nil {
				return err
			}
			names = append(names, name)
		}
	}
	old, err := drawings(dir)
	if err != nil {
		return err
	}
	for _, name := range old {
		if !slices.Contains(names, filepath.Base(name)) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, name)))
		}
	}
	if len(names) == 0 && len(old) > 0 {
		_ = os.Remove(folder) // where a person has put something there it stays
	}
	return err
}

// drawings returns the names of the drawings in a run's directory, relative to it.
func drawings(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, report.DrawingsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && filepath.Ext(e.Name()) == ".svg" {
			names = append(names, report.DrawingsDir+"/"+e.Name())
		}
	}
	return names, nil
}

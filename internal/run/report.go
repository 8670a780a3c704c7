package run

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"stroppy/internal/report"
)

// WritePage makes report.html from the other files of a run's directory, and
// puts it in place at once. It returns the page's path.
func WritePage(dir string) (string, error) {
	in, err := PageInput(dir)
	if err != nil {
		return "", fmt.Errorf("make the page of the run in %s: %w", dir, err)
	}
	d := Directory{Path: dir}
	return filepath.Join(dir, report.PageName), d.WriteFrom(report.PageName, func(w io.Writer) error { return report.Page(w, in) })
}

// PageInput reads what the page is made from. Not every run has a series.
func PageInput(dir string) (in report.Input, err error) {
	if in.Result, err = ReadResult(dir); err != nil {
		return in, err
	}
	if in.Seconds, err = readFile(filepath.Join(dir, SeriesFile), report.ReadSeries); err != nil {
		return in, err
	}
	if in.Result.Drive == nil && in.Seconds == nil { // it was cut off
		if in.Seconds, in.Plots, err = recomputed(dir, in.Result); err != nil {
			return in, err
		}
	} else if in.Plots, err = readPlots(dir); err != nil {
		return in, err
	}
	if in.Resources, err = readFile(filepath.Join(dir, ResourcesFile), report.ReadResources); err != nil {
		return in, err
	}
	if m := in.Result.ServerMetrics; m != nil {
		in.Server, err = readFile(filepath.Join(dir, ServerFile), func(r io.Reader) ([]report.ServerRow, error) { return report.ReadServer(r, m.Columns) })
		if err != nil {
			return in, err
		}
	}
	return in, unchanged(dir, in.Result)
}

// readPlots reads the rows that only plots are made of. Older runs have none.
func readPlots(dir string) (p report.Plots, err error) {
	if p.Around, err = readFile(filepath.Join(dir, AroundFile), report.ReadAround); err != nil {
		return p, err
	}
	if p.Kinds, err = readFile(filepath.Join(dir, KindsFile), report.ReadKinds); err != nil {
		return p, err
	}
	p.Heat, err = readFile(filepath.Join(dir, HeatFile), report.ReadHeat)
	return p, err
}

// readFile reads rows from a file; of none that is not there.
func readFile[Row any](path string, read func(io.Reader) ([]Row, error)) ([]Row, error) {
	file, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer file.Close()
	return read(file)
}

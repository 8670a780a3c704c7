package run

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"stroppy/internal/report"
	"stroppy/internal/stats"
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

// PageInput reads the input of the page. Not every run has all of the files.
func PageInput(dir string) (in report.Input, err error) {
	if in.Result, err = ReadResult(dir); err != nil {
		return in, err
	}
	if in.Seconds, err = readRows[stats.Second](dir, report.SeriesFile); err != nil {
		return in, err
	}
	if in.Result.Drive == nil && in.Seconds == nil { // it was cut off
		in.Seconds, in.Plots, err = recomputed(dir, in.Result)
	} else {
		var errs [3]error
		in.Plots.Around, errs[0] = readRows[report.AroundRow](dir, report.AroundFile)
		in.Plots.Kinds, errs[1] = readRows[report.KindRow](dir, report.KindsFile)
		in.Plots.Heat, errs[2] = readRows[report.HeatCell](dir, report.HeatFile)
		err = errors.Join(errs[:]...)
	}
	if err != nil {
		return in, err
	}
	if in.Resources, err = readRows[report.Resource](dir, report.ResourcesFile); err != nil {
		return in, err
	}
	if m := in.Result.ServerMetrics; m != nil {
		in.Server, err = readFile(dir, ServerFile, func(r io.Reader) ([]report.ServerRow, error) { return report.ReadServer(r, m.Columns) })
		if err != nil {
			return in, err
		}
	}
	return in, unchanged(dir, in.Result)
}

func readRows[Row any](dir, name string) ([]Row, error) {
	return readFile(dir, name, func(r io.Reader) ([]Row, error) { return report.ReadRows[Row](r, name) })
}

// readFile reads rows from a file of a directory. A missing file has none.
func readFile[Row any](dir, name string, read func(io.Reader) ([]Row, error)) ([]Row, error) {
	file, err := os.Open(filepath.Join(dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer file.Close()
	return read(file)
}

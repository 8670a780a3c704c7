package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// resourcesFile is what client and servers cost, in a run's directory.
const resourcesFile = "resources.csv"

// FileError says that a file of a run's directory does not hold what it should.
type FileError struct {
	Name string // within the directory
	Line int    // from 1; 0: it is not known
	Err  error
}

func (e *FileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("read %s: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("read line %d of %s: %v", e.Line, e.Name, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

// broken is a FileError of what a file of rows gave instead of a row.
func broken(name string, line int, err error) error {
	var parse *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		err = errors.New("it is empty")
	case errors.As(err, &parse):
		line, err = parse.Line, fmt.Errorf("it is no row of numbers with commas between them: %w", parse.Err)
	}
	return &FileError{Name: name, Line: line, Err: err}
}

// readRows reads a file of rows whose first line names the columns, those needed among
// them; set puts a field into a row.
func readRows[T any](r io.Reader, name string, needed []string, set func(row *T, column, text string) error) ([]T, error) {
	reader := csv.NewReader(r)
	reader.ReuseRecord = true
	head, err := reader.Read()
	if err != nil {
		return nil, broken(name, 0, err)
	}
	columns := slices.Clone(head)
	for _, column := range needed {
		if !slices.Contains(columns, column) {
			return nil, broken(name, 0, fmt.Errorf("its first line names no column %q: stroppy did not write it", column))
		}
	}
	var rows []T
	for line := 2; ; line++ {
		fields, err := reader.Read()
		switch {
		case errors.Is(err, io.EOF):
			return rows, nil
		case err != nil:
			return nil, broken(name, line, err)
		}
		var row T
		for i, column := range columns {
			if err := set(&row, column, fields[i]); err != nil {
				return nil, broken(name, line, fmt.Errorf("column %s: %w", column, err))
			}
		}
		rows = append(rows, row)
	}
}

// parseSecondNumber reads the number of a second of a run.
func parseSecondNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > mostSecond {
		return 0, fmt.Errorf("%q is no second of a run", text)
	}
	return n, nil
}

// parseUpTo reads a number from 0 to most.
func parseUpTo(text string, most float64, what string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= most) {
		return 0, fmt.Errorf("%q is no %s", text, what)
	}
	return v, nil
}

package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
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

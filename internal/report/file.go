package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ReadFile reads a file of at most so many bytes in a directory; what says what it is.
// Where there is none, the error is an fs.ErrNotExist.
func ReadFile[T any](dir, name, what string, most int64, parse func([]byte) (*T, error)) (*T, error) {
	file, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("read the %s in %s: %w", what, dir, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, fmt.Errorf("read the %s in %s: %w", what, dir, err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("read %s: it is larger than %d bytes: stroppy did not write it", file.Name(), most)
	}
	read, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file.Name(), err)
	}
	return read, nil
}

// WriteFile puts a file in place at once: nobody ever sees half of it.
func WriteFile(dir, name string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(dir, "."+name+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // after the rename there is none
	err = write(file)
	if err = errors.Join(err, file.Chmod(0o644), file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), filepath.Join(dir, name))
}

package report

import (
	"encoding/json"
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

// WriteJSON puts a value in place as JSON, as WriteFile does.
func WriteJSON(dir, name string, value any) error {
	return WriteFile(dir, name, func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	})
}

// NewerError says that a file has a schema that this program does not know: a
// newer one wrote it, and what that means by it is not known here.
type NewerError int

func (e NewerError) Error() string {
	return fmt.Sprintf("it has schema %d and this stroppy reads schema %d: take the newer stroppy that wrote it", int(e), Schema)
}

// Decode reads a JSON object that names its schema; what says what it is. Keys that it does
// not know are left out; a schema that it does not know is refused.
func Decode[T any](data []byte, what string) (*T, error) {
	var head struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("it is no %s of stroppy: %s", what, misread(err))
	}
	switch {
	case head.Schema > Schema:
		return nil, NewerError(head.Schema)
	case head.Schema < Schema:
		return nil, fmt.Errorf("it names no schema that stroppy ever wrote, so it is no %s of stroppy", what)
	}
	read := new(T)
	if err := json.Unmarshal(data, read); err != nil {
		return nil, fmt.Errorf("it does not fit schema %d: %s", Schema, misread(err))
	}
	return read, nil
}

// misread says for a person why text could not be read as JSON of a kind.
func misread(err error) string {
	var broken *json.SyntaxError
	var other *json.UnmarshalTypeError
	switch {
	case errors.As(err, &other) && other.Field == "":
		return fmt.Sprintf("it holds one JSON %s, and no object with names", other.Value)
	case errors.As(err, &other):
		return fmt.Sprintf("its %s is a JSON %s, which does not belong there", other.Field, other.Value)
	case errors.As(err, &broken):
		return fmt.Sprintf("it is not whole, or no JSON, from byte %d on", broken.Offset)
	}
	return "it is no JSON"
}

package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// ReadFile reads a file of at most so many bytes in a directory. what is its noun for errors. If there is no
// file, the error is an fs.ErrNotExist.
func ReadFile[T any](dir, name, what string, most int64, parse func([]byte) (*T, error)) (*T, error) {
	var data []byte
	file, err := os.Open(filepath.Join(dir, name))
	if err == nil {
		defer file.Close()
		data, err = io.ReadAll(io.LimitReader(file, most+1))
	}
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

// NewerError is the error of a file that a newer version wrote with a schema that this program does not know.
type NewerError int

func (e NewerError) Error() string {
	return fmt.Sprintf("it has schema %d and this stroppy reads schema %d: take the newer stroppy that wrote it", int(e), Schema)
}

// Decode reads a JSON object with a schema. what is its noun for errors. It ignores unknown keys and refuses
// an unknown schema.
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

// misread explains to a person why a text is not JSON of a kind.
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

// JSON returns the content of result.json. It first updates the derived measurements.
func (r *Result) JSON() ([]byte, error) {
	r.derive()
	r.Checksum = noChecksum
	text, err := r.encode()
	if err == nil {
		_, r.Checksum, err = checksumOf(text)
	}
	if err != nil {
		return nil, fmt.Errorf("write the result as JSON: %w", err)
	}
	copy(text[bytes.LastIndex(text, []byte(noChecksum)):], r.Checksum)
	return text, nil
}

// encode returns the result as JSON for people.
func (r *Result) encode() ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(r)
	return out.Bytes(), err
}

// Read reads the result in a run's directory. If there is none, the error is an fs.ErrNotExist.
func Read(dir string) (*Result, error) {
	r, err := ReadFile(dir, FileName, "result of the run", maxFile, Parse)
	if err == nil {
		r.derive()
	}
	return r, err
}

// Parse reads a result. It returns an error if the text is no result of a known schema, or is
// not as it was written.
func Parse(data []byte) (*Result, error) {
	r, err := Decode[Result](data, "result")
	if err == nil {
		err = verifyChecksum(data)
	}
	if err != nil {
		return nil, err
	}
	verdicts := []string{"valid", "invalid", "unknown"}
	if !slices.Contains(verdicts, r.Verdict) {
		return nil, fmt.Errorf("the verdict is %q, which is none of valid, invalid and unknown", r.Verdict)
	}
	for _, c := range r.Checks {
		if !slices.Contains(append(verdicts, notApplicable), c.Status) {
			return nil, fmt.Errorf("the status of the check %s is %q, which is none of valid, invalid, unknown and %s", c.Name, c.Status, notApplicable)
		}
	}
	return r, nil
}

// noChecksum stands where the checksum of a result belongs until it is known.
const noChecksum = "0000000000000000000000000000000000000000000000000000000000000000"

// checksumKey finds the checksum in a result as compact JSON, whose last key it is, even if its
// name or its value was altered.
var checksumKey = regexp.MustCompile(`"(?:checksum":"([^"]*)|[^"]*":"([0-9a-f]{64}))"}$`)

// maxChecksumKey is the length of the end of a result in which the checksum is looked for, in
// bytes. An altered key or value may be longer than those that are written.
const maxChecksumKey = 1024

// checksumOf returns the checksum that a result says it has, and the one that it has. Both are
// empty if it says none.
func checksumOf(result []byte) (stated, real string, err error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, result); err != nil {
		return "", "", err
	}
	text := bytes.TrimSpace(compact.Bytes())
	tail := max(0, len(text)-maxChecksumKey)
	at := checksumKey.FindSubmatchIndex(text[tail:])
	if at == nil {
		return "", "", nil
	}
	from, to := tail+max(at[2], at[4]), tail+max(at[3], at[5])
	stated = string(text[from:to])
	return stated, fmt.Sprintf("%x", sha256.Sum256(append(text[:from:from], text[to:]...))), nil
}

// verifyChecksum returns an error if a result is not as it was written.
func verifyChecksum(result []byte) error {
	stated, real, err := checksumOf(result)
	if err == nil && stated != real {
		err = errors.New("it was altered or damaged since it was written: its checksum is wrong")
	}
	return err
}

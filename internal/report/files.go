package report

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
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
	if err != nil {
		return nil, err
	}
	if stated, real, err := checksumOf(data); err != nil || stated != real {
		return nil, cmp.Or(err, errors.New("it was altered or damaged since it was written: its checksum is wrong"))
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

// noChecksum replaces the checksum of a result until it is known.
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

// The files of rows in the directory of a run that a page needs.
const (
	SeriesFile    = "series.csv"
	ResourcesFile = "resources.csv"
	AroundFile    = "around-faults.csv" // what committed around the faults in steps of stats.FineStep
	KindsFile     = "kinds.csv"         // what committed by kind of transaction and time
	HeatFile      = "heatmap.csv"       // how many transactions took how long, over time
	serverFile    = "server.csv"
)

// mostSecond is the last second of the longest run that a series is made of.
const mostSecond = 60 * 24 * 60 * 60

// FileError is the error of a file of a run's directory with wrong content.
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

// A column is a field of a row with the tag csv:"name". Files of earlier versions may lack a column whose
// tag ends in ",optional"; the field is zero then. A *float64 of processors and an *int64 of bytes are nil,
// and written as nothing, if they are not known.
type column struct {
	name     string
	optional bool
	field    int
}

func columnsOf[T any]() (list []column, names []string) {
	for i, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if name, option, _ := strings.Cut(f.Tag.Get("csv"), ","); name != "" {
			list, names = append(list, column{name, option != "", i}), append(names, name)
		}
	}
	return list, names
}

func cellText(cell any) string {
	switch x := cell.(type) {
	case *string:
		return *x
	case *int:
		return strconv.Itoa(*x)
	case *uint64:
		return strconv.FormatUint(*x, 10)
	case *time.Duration:
		return fmt.Sprintf("%.3f", float64(*x)/float64(time.Millisecond))
	case **float64:
		if *x != nil {
			return fmt.Sprintf("%.3f", **x)
		}
	case **int64:
		if *x != nil {
			return strconv.FormatInt(**x, 10)
		}
	}
	return ""
}

// readCell reads what cellText wrote.
func readCell(cell any, text string) error {
	what, valid := "", true
	switch x := cell.(type) {
	case *string:
		what, valid, *x = "name", text != "", text
	case *int:
		n, err := strconv.Atoi(text)
		what, valid, *x = "second of a run", err == nil && n >= 0 && n <= mostSecond, n
	case *uint64:
		n, err := strconv.ParseUint(text, 10, 64)
		what, valid, *x = "number of transactions", err == nil, n
	case *time.Duration:
		ms, err := strconv.ParseFloat(text, 64)
		what, valid, *x = "latency", err == nil && ms >= 0 && ms <= 1e12, time.Duration(math.Round(ms*float64(time.Millisecond)))
	case **float64:
		if text != "" {
			n, err := strconv.ParseFloat(text, 64)
			what, valid, *x = "number of processors", err == nil && n >= 0 && n <= 1e9, &n
		}
	case **int64:
		if text != "" {
			n, err := strconv.ParseInt(text, 10, 64)
			what, valid, *x = "number of bytes", err == nil && n >= 0, &n
		}
	}
	if !valid {
		return fmt.Errorf("%q is no %s", text, what)
	}
	return nil
}

// WriteRows writes rows as CSV (RFC 4180, but lines end in a single newline) with a header line.
// Latencies are in milliseconds.
func WriteRows[T any](w io.Writer, rows []T) error {
	out := csv.NewWriter(w)
	columns, cells := columnsOf[T]()
	_ = out.Write(cells) // Error returns every earlier error
	for i := range rows {
		row := reflect.ValueOf(&rows[i]).Elem()
		for n, c := range columns {
			cells[n] = cellText(row.Field(c.field).Addr().Interface())
		}
		_ = out.Write(cells)
	}
	out.Flush()
	return out.Error()
}

// ReadRows reads the rows that WriteRows wrote into the file of a name. It finds columns by their names and
// ignores unknown ones.
func ReadRows[T any](r io.Reader, name string) ([]T, error) {
	broken := func(line int, err error) error {
		if parse, wrong := errors.AsType[*csv.ParseError](err); wrong {
			line, err = parse.Line, fmt.Errorf("it is no row of numbers with commas between them: %w", parse.Err)
		}
		return &FileError{Name: name, Line: line, Err: err}
	}
	reader := csv.NewReader(r)
	reader.ReuseRecord = true
	fields, err := reader.Read()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty")
		}
		return nil, broken(0, err)
	}
	columns, _ := columnsOf[T]()
	at := make([]int, len(columns)) // by column: its place in the file
	for i, c := range columns {
		if at[i] = slices.Index(fields, c.name); at[i] < 0 && !c.optional {
			return nil, broken(0, fmt.Errorf("its first line names no column %q: stroppy did not write it", c.name))
		}
	}
	var rows []T
	for line := 2; ; line++ {
		fields, err := reader.Read()
		switch {
		case errors.Is(err, io.EOF):
			return rows, nil
		case err != nil:
			return nil, broken(line, err)
		}
		var row T
		value := reflect.ValueOf(&row).Elem()
		for i, c := range columns {
			if at[i] < 0 {
				continue
			}
			if err := readCell(value.Field(c.field).Addr().Interface(), fields[at[i]]); err != nil {
				return nil, broken(line, fmt.Errorf("column %s: %w", c.name, err))
			}
		}
		rows = append(rows, row)
	}
}

// ServerMetrics describe the database's own measurements during the load phase: the columns of server.csv,
// and the number of questions without an answer.
type ServerMetrics struct {
	Columns []ServerColumn `json:"columns"`
	Asked   int            `json:"asked"`
	Missed  int            `json:"missed"`          // of them without an answer in time
	Refused bool           `json:"refused"`         // it was not asked again after the error
	Error   string         `json:"error,omitempty"` // the first
}

// ServerColumn is a column of server.csv.
type ServerColumn struct {
	Name  string  `json:"name"`
	Label string  `json:"label"`           // for people
	Chart string  `json:"chart,omitempty"` // the title, with the unit, of the chart that has it; empty: none
	Scale float64 `json:"scale,omitempty"` // what is 1 in the chart; 0: as it is
}

// ServerRow is a row of server.csv.
type ServerRow struct {
	Second int       // in which it was asked
	Server string    // that answered; empty: all of them, or none
	Values []float64 // a column each, NaN if it is not known; nil: there was no answer
}

// leading are the columns before the measurements.
var leading = []string{"second", "server"}

// WriteServerHeader writes the first line of server.csv.
func WriteServerHeader(w io.Writer, columns []ServerColumn) {
	names := slices.Clone(leading)
	for _, c := range columns {
		names = append(names, c.Name)
	}
	_ = csv.NewWriter(w).WriteAll([][]string{names}) // the owner of w sees its errors
}

// WriteServerRow writes a row. A value that is not known is empty.
func WriteServerRow(w io.Writer, columns int, row ServerRow) {
	cells := append([]string{strconv.Itoa(row.Second), row.Server}, make([]string, columns)...)
	for i, x := range row.Values[:min(columns, len(row.Values))] {
		if !math.IsNaN(x) {
			cells[len(leading)+i] = strconv.FormatFloat(Rounded(x, 6), 'f', -1, 64)
		}
	}
	_ = csv.NewWriter(w).WriteAll([][]string{cells})
}

// ReadServer reads server.csv with these columns. It ignores a last line that the run did not finish.
func ReadServer(r io.Reader, columns []ServerColumn) ([]ServerRow, error) {
	broken := func(line int, format string, args ...any) error {
		return &FileError{Name: serverFile, Line: line, Err: fmt.Errorf(format, args...)}
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, broken(0, "%w", err)
	}
	reader := csv.NewReader(bytes.NewReader(data[:bytes.LastIndexByte(data, '\n')+1]))
	var rows []ServerRow
	for line := 1; ; line++ {
		cells, err := reader.Read()
		switch {
		case errors.Is(err, io.EOF):
			return rows, nil
		case err != nil:
			return nil, broken(line, "it is no row with commas between its cells: %w", err)
		case len(cells) != len(leading)+len(columns):
			return nil, broken(line, "it has %d columns, and the result names %d", len(cells), len(leading)+len(columns))
		case line == 1:
			continue
		}
		row := ServerRow{Server: cells[1]}
		if err := readCell(&row.Second, cells[0]); err != nil {
			return nil, broken(line, "column second: %w", err)
		}
		for i, text := range cells[len(leading):] {
			x := math.NaN()
			if text != "" {
				if x, err = strconv.ParseFloat(text, 64); err != nil {
					return nil, broken(line, "column %s: %q is no number", columns[i].Name, text)
				}
			}
			row.Values = append(row.Values, x)
		}
		rows = append(rows, row)
	}
}

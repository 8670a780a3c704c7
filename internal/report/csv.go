package report

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/stats"
)

// The files of rows in a run's directory: its series, and what client and servers cost.
const (
	seriesFile    = "series.csv"
	resourcesFile = "resources.csv"
)

// mostSecond is the last second of the longest run that a series is made of.
const mostSecond = 60 * 24 * 60 * 60

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

// column is one column of a file of rows.
type column[T any] struct {
	name  string
	write func(*T) string
	read  func(row *T, text string) error
}

var seriesColumns = []column[stats.Second]{
	secondColumn(func(s *stats.Second) *int { return &s.Second }),
	countColumn("committed", func(s *stats.Second) *uint64 { return &s.Committed }),
	countColumn("rejected", func(s *stats.Second) *uint64 { return &s.Rejected }),
	countColumn("aborted", func(s *stats.Second) *uint64 { return &s.Aborted }),
	countColumn("unknown", func(s *stats.Second) *uint64 { return &s.Unknown }),
	latencyColumn("p50_ms", func(s *stats.Second) *time.Duration { return &s.P50 }),
	latencyColumn("p99_ms", func(s *stats.Second) *time.Duration { return &s.P99 }),
	latencyColumn("max_ms", func(s *stats.Second) *time.Duration { return &s.Max }),
	countColumn("waiting", func(s *stats.Second) *uint64 { return &s.Waiting }),
}

var resourceColumns = []column[Resource]{
	secondColumn(func(r *Resource) *int { return &r.Second }),
	knownColumn("client_cpu", "%.3f", func(r *Resource) **float64 { return &r.ClientCPU }, parseProcessors),
	knownColumn("client_rss_bytes", "%d", func(r *Resource) **int64 { return &r.ClientRSS }, parseBytes),
	knownColumn("servers_cpu", "%.3f", func(r *Resource) **float64 { return &r.ServersCPU }, parseProcessors),
	knownColumn("servers_rss_bytes", "%d", func(r *Resource) **int64 { return &r.ServersRSS }, parseBytes),
}

// WriteSeries writes the seconds as CSV (RFC 4180, but lines end in a single
// newline) with a header line; latencies are in milliseconds.
func WriteSeries(w io.Writer, series []stats.Second) error {
	return writeRows(w, seriesColumns, series)
}

// ReadSeries reads what WriteSeries wrote. Columns are found by their names, and one
// other than the first two that is not there is zero.
func ReadSeries(r io.Reader) ([]stats.Second, error) {
	return readRows(r, seriesFile, seriesColumns, 2)
}

// WriteResources writes rows as CSV with a header line: processors kept busy and
// bytes. What is not known is empty.
func WriteResources(w io.Writer, rows []Resource) error { return writeRows(w, resourceColumns, rows) }

// ReadResources reads what WriteResources wrote.
func ReadResources(r io.Reader) ([]Resource, error) {
	return readRows(r, resourcesFile, resourceColumns, len(resourceColumns))
}

func secondColumn[T any](of func(*T) *int) column[T] {
	return column[T]{"second", func(row *T) string { return strconv.Itoa(*of(row)) }, func(row *T, text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > mostSecond {
			return fmt.Errorf("%q is no second of a run", text)
		}
		*of(row) = n
		return nil
	}}
}

func countColumn[T any](name string, of func(*T) *uint64) column[T] {
	return column[T]{name, func(row *T) string { return strconv.FormatUint(*of(row), 10) }, func(row *T, text string) (err error) {
		if *of(row), err = strconv.ParseUint(text, 10, 64); err != nil {
			return fmt.Errorf("%q is no number of transactions", text)
		}
		return nil
	}}
}

func latencyColumn[T any](name string, of func(*T) *time.Duration) column[T] {
	write := func(row *T) string { return fmt.Sprintf("%.3f", float64(*of(row))/float64(time.Millisecond)) }
	return column[T]{name, write, func(row *T, text string) error {
		ms, err := parseUpTo(text, 1e12, "latency")
		*of(row) = time.Duration(math.Round(ms * float64(time.Millisecond)))
		return err
	}}
}

// knownColumn is a column of numbers that may not be known; their text is empty then.
func knownColumn[T any, N int64 | float64](name, format string, of func(*T) **N, parse func(string) (N, error)) column[T] {
	write := func(row *T) string {
		if *of(row) == nil {
			return ""
		}
		return fmt.Sprintf(format, **of(row))
	}
	return column[T]{name, write, func(row *T, text string) error {
		if text == "" {
			return nil
		}
		v, err := parse(text)
		*of(row) = &v
		return err
	}}
}

func parseProcessors(text string) (float64, error) {
	return parseUpTo(text, 1e9, "number of processors")
}

func parseBytes(text string) (int64, error) {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%q is no number of bytes", text)
	}
	return v, nil
}

// parseUpTo reads a number from 0 to most.
func parseUpTo(text string, most float64, what string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= most) {
		return 0, fmt.Errorf("%q is no %s", text, what)
	}
	return v, nil
}

func header[T any](columns []column[T]) (names []string) {
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}

func writeRows[T any](w io.Writer, columns []column[T], rows []T) error {
	out := bufio.NewWriter(w) // whose Flush returns every earlier error
	_, _ = out.WriteString(strings.Join(header(columns), ",") + "\n")
	for i := range rows {
		for n, c := range columns {
			if n > 0 {
				_ = out.WriteByte(',')
			}
			_, _ = out.WriteString(c.write(&rows[i]))
		}
		_ = out.WriteByte('\n')
	}
	return out.Flush()
}

// readRows reads a file of rows whose first line names the columns, the first needed
// ones among them. Columns that it does not know are left out.
func readRows[T any](r io.Reader, name string, columns []column[T], needed int) ([]T, error) {
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
	at := make([]int, len(columns)) // by column: its field
	for i, c := range columns {
		if at[i] = slices.Index(fields, c.name); at[i] < 0 && i < needed {
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
		for i, c := range columns {
			if at[i] < 0 {
				continue
			}
			if err := c.read(&row, fields[at[i]]); err != nil {
				return nil, broken(line, fmt.Errorf("column %s: %w", c.name, err))
			}
		}
		rows = append(rows, row)
	}
}

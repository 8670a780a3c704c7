package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

const serverFile = "server.csv"

// ServerMetrics is what the database measured of itself during the load phase: the columns
// of server.csv, and how often there was no answer.
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
	Values []float64 // a column each, NaN where it is not known; nil: there was no answer
}

// leading are the columns before the measurements.
var leading = []string{"second", "server"}

// WriteServerHeader writes the first line of server.csv.
func WriteServerHeader(w io.Writer, columns []ServerColumn) {
	names := append([]string{}, leading...)
	for _, c := range columns {
		names = append(names, c.Name)
	}
	writeLine(w, names)
}

// WriteServerRow writes a row; what is not known is empty.
func WriteServerRow(w io.Writer, columns int, row ServerRow) {
	cells := []string{strconv.Itoa(row.Second), row.Server}
	for i := range columns {
		text := ""
		if i < len(row.Values) && !math.IsNaN(row.Values[i]) {
			text = strconv.FormatFloat(Rounded(row.Values[i], 6), 'f', -1, 64)
		}
		cells = append(cells, text)
	}
	writeLine(w, cells)
}

func writeLine(w io.Writer, cells []string) {
	out := csv.NewWriter(w)
	_ = out.Write(cells) // what w cannot take, whoever has w sees
	out.Flush()
}

// ReadServer reads server.csv, whose columns are these. A last line that the run did not
// finish is left out.
func ReadServer(r io.Reader, columns []ServerColumn) ([]ServerRow, error) {
	broken := func(line int, format string, args ...any) error {
		return &FileError{Name: serverFile, Line: line, Err: fmt.Errorf(format, args...)}
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, broken(0, "%w", err)
	}
	whole := data[:strings.LastIndexByte(string(data), '\n')+1]
	reader := csv.NewReader(strings.NewReader(string(whole)))
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

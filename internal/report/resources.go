package report

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
)

const resourcesHeader = "second,client_cpu,client_rss_bytes,servers_cpu,servers_rss_bytes"

// WriteResources writes rows as CSV with a header line: processors kept busy and
// bytes. What is not known is empty.
func WriteResources(w io.Writer, rows []Resource) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, resourcesHeader)
	for _, r := range rows {
		fmt.Fprintf(b, "%d,%s,%s,%s,%s\n", r.Second, decimal(r.ClientCPU), whole(r.ClientRSS), decimal(r.ServersCPU), whole(r.ServersRSS))
	}
	if err := b.Flush(); err != nil { // it returns every earlier error
		return fmt.Errorf("write what client and servers cost: %w", err)
	}
	return nil
}

func decimal(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', 3, 64)
}

func whole(v *int64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatInt(*v, 10)
}

// ReadResources reads what WriteResources wrote.
func ReadResources(r io.Reader) ([]Resource, error) {
	reader := csv.NewReader(r)
	reader.FieldsPerRecord = 5
	reader.ReuseRecord = true
	var rows []Resource
	for line := 1; ; line++ {
		fields, err := reader.Read()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return nil, broken(resourcesFile, line, err)
		}
		if line == 1 && fields[0] == "second" {
			continue
		}
		row, err := parseResource(fields)
		if err != nil {
			return nil, broken(resourcesFile, line, err)
		}
		rows = append(rows, row)
	}
}

func parseResource(fields []string) (row Resource, err error) {
	if row.Second, err = strconv.Atoi(fields[0]); err != nil || row.Second < 0 {
		return row, fmt.Errorf("%q is no second of a run", fields[0])
	}
	for i, to := range []**float64{&row.ClientCPU, &row.ServersCPU} {
		text := fields[1+2*i]
		if text == "" {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 0) || v > 1e9 {
			return row, fmt.Errorf("%q is no number of processors", text)
		}
		*to = &v
	}
	for i, to := range []**int64{&row.ClientRSS, &row.ServersRSS} {
		text := fields[2+2*i]
		if text == "" {
			continue
		}
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v < 0 {
			return row, fmt.Errorf("%q is no number of bytes", text)
		}
		*to = &v
	}
	return row, nil
}

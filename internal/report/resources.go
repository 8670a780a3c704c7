package report

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const resourcesHeader = "second,client_cpu,client_rss_bytes,servers_cpu,servers_rss_bytes"

// WriteResources writes rows as CSV with a header line: processors kept busy and
// bytes. What is not known is empty.
func WriteResources(w io.Writer, rows []Resource) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, resourcesHeader)
	for _, r := range rows {
		fmt.Fprintf(b, "%d,%s,%s,%s,%s\n", r.Second,
			orEmpty(r.ClientCPU, "%.3f"), orEmpty(r.ClientRSS, "%d"), orEmpty(r.ServersCPU, "%.3f"), orEmpty(r.ServersRSS, "%d"))
	}
	if err := b.Flush(); err != nil { // it returns every earlier error
		return fmt.Errorf("write what client and servers cost: %w", err)
	}
	return nil
}

// orEmpty writes what is known.
func orEmpty[N int64 | float64](v *N, format string) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf(format, *v)
}

// ReadResources reads what WriteResources wrote.
func ReadResources(r io.Reader) ([]Resource, error) {
	return readRows(r, resourcesFile, strings.Split(resourcesHeader, ","), setResource)
}

func setResource(row *Resource, column, text string) (err error) {
	busy := map[string]**float64{"client_cpu": &row.ClientCPU, "servers_cpu": &row.ServersCPU}
	memory := map[string]**int64{"client_rss_bytes": &row.ClientRSS, "servers_rss_bytes": &row.ServersRSS}
	switch {
	case column == "second":
		row.Second, err = parseSecondNumber(text)
	case text == "": // not known
	case busy[column] != nil:
		var v float64
		v, err = parseUpTo(text, 1e9, "number of processors")
		*busy[column] = &v
	case memory[column] != nil:
		v, wrong := strconv.ParseInt(text, 10, 64)
		if wrong != nil || v < 0 {
			return fmt.Errorf("%q is no number of bytes", text)
		}
		*memory[column] = &v
	}
	return err
}

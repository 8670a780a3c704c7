package live

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Options selects what a server shows.
type Options struct {
	Page    bool   // the report's page at / and its data beside it
	Metrics bool   // metrics for Prometheus at /metrics
	Version string // of this program
}

// Address converts a user's text to an address to listen on: HOST:PORT, or a port alone, which is opened on
// loopback only.
func Address(text string) (string, error) {
	host, port := "", text
	if strings.Contains(text, ":") {
		var err error
		if host, port, err = net.SplitHostPort(text); err != nil {
			return "", fmt.Errorf("%q is no address: give a port such as 8080, or HOST:PORT such as 127.0.0.1:8080", text)
		}
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || strings.ContainsAny(host, "/ ") {
		return "", fmt.Errorf("%q is no address: give a port from 0 to 65535, or HOST:PORT such as 127.0.0.1:8080", text)
	}
	return net.JoinHostPort(cmp.Or(host, "127.0.0.1"), strconv.FormatUint(n, 10)), nil
}

// Package cluster starts real database servers on this machine, for tests, for
// benchmarks and for the command that shows a cluster. One folder below it holds
// one kind of server. This package holds what they share: finding programs, a
// free port, and processes that leave nothing behind; a NodeSet, which every kind's
// cluster stands on; a Failover, for kinds in which a supervisor gives the lead of
// a lost primary to another node; a Standalone, for single servers. What every kind
// has to stand is in clustertest.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// MissingError says that a program that a server needs is not on this machine,
// and which Debian package brings it.
type MissingError struct {
	Program string // the file that was looked for, such as initdb
	Package string // the Debian package, such as postgresql
}

func (e MissingError) Error() string {
	return fmt.Sprintf("the program %s is not on this machine: install the Debian package %s", e.Program, e.Package)
}

// Find returns the path of a program: in the newest of the folders that match
// the patterns, which is where distributions keep several versions, or else on
// PATH. If there is none the error is a MissingError that names debianPackage.
func Find(program, debianPackage string, patterns ...string) (string, error) {
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(pattern, program))
		if err != nil {
			return "", fmt.Errorf("look for %s in %s: %w", program, pattern, err)
		}
		slices.SortFunc(found, compareVersions)
		for _, path := range slices.Backward(found) {
			if _, err := exec.LookPath(path); err == nil {
				return path, nil
			}
		}
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return "", MissingError{Program: program, Package: debianPackage}
	}
	return path, nil
}

// compareVersions orders paths that differ in a number, 9 before 15.
func compareVersions(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return slices.Compare([]byte(a), []byte(b))
}

// Ports are taken below 32768, where Linux begins to give out ephemeral ports
// (net.ipv4.ip_local_port_range), so that no outgoing connection takes the port
// of a server while it is down.
const firstPort, lastPort = 20000, 32767

// FreePort returns a TCP port of 127.0.0.1 on which nobody listens now.
func FreePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	for range 200 {
		port := firstPort + rand.N(lastPort-firstPort+1)
		l, err := lc.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		switch {
		case err == nil:
			return port, l.Close()
		case ctx.Err() != nil, !errors.Is(err, syscall.EADDRINUSE):
			return 0, fmt.Errorf("look for a free port of 127.0.0.1: %w", err)
		}
	}
	return 0, fmt.Errorf("look for a free port of 127.0.0.1: 200 ports between %d and %d were all taken", firstPort, lastPort)
}

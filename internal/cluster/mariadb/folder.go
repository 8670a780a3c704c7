package mariadb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"stroppy/internal/cluster"
)

func (s *Server) data() string { return filepath.Join(s.Dir(), "data") }

// scratch is the folder of temporary tables. A server that starts takes away all
// that it finds in its own, so that no two may share one.
func (s *Server) scratch() string { return filepath.Join(s.Dir(), "tmp") }

// mark is a file that says that the data were made to the end.
const mark = "made"

// prepare makes the data, and the flags of which the caller's settings come last.
func (s *Server) prepare(ctx context.Context, install string, settings map[string]string) error {
	s.flags = append(serverFlags(s.data(), s.scratch(), "127.0.0.1", s.Port()), "--innodb-log-file-size="+logFileSize)
	for name, value := range settings {
		s.flags = append(s.flags, "--"+strings.ReplaceAll(name, "_", "-")+"="+value)
	}
	if err := errors.Join(os.MkdirAll(s.scratch(), 0o700), s.User().Give(s.scratch())); err != nil || s.Made() {
		return err
	}
	cmd := s.User().Command(ctx, s.Dir(), install, installFlags(s.data(), s.scratch(), "--innodb-log-file-size="+logFileSize)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mariadb-install-db: %w: %s", err, complaints(out))
	}
	// What came before the script's last step may lack a table of rights.
	return os.WriteFile(filepath.Join(s.Dir(), mark), nil, 0o644)
}

// installFlags are those of mariadb-install-db, for a superuser without a
// password.
func installFlags(data, scratch string, more ...string) []string {
	return append([]string{
		"--no-defaults", "--datadir=" + data, "--tmpdir=" + scratch,
		"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve",
	}, more...)
}

// initialize makes the data of the first node, with the database and a superuser
// who can come from the cluster's own network, in which there is nobody else.
// The others get theirs when they join.
func (c *Cluster) initialize(ctx context.Context, n *node) error {
	from := "127.0.0.1"
	if c.Network().Loopback() == "" {
		from = "%"
	}
	// MariaDB takes one statement a line here, and none about users before it has
	// read their tables.
	statements := []string{
		"FLUSH PRIVILEGES",
		"CREATE USER IF NOT EXISTS " + Superuser + "@'" + from + "'",
		"GRANT ALL PRIVILEGES ON *.* TO " + Superuser + "@'" + from + "' WITH GRANT OPTION",
		"CREATE DATABASE " + Database,
	}
	file := filepath.Join(n.scratch, "first.sql")
	if err := os.WriteFile(file, []byte(strings.Join(statements, ";\n")+";\n"), 0o644); err != nil {
		return err
	}
	cmd := c.User.Command(ctx, c.Dir(), c.programs.install, installFlags(n.Dir(), n.scratch, "--extra-file="+file)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mariadb-install-db: %w: %s", err, complaints(out))
	}
	return os.Remove(file)
}

// logFileSize is the redo log's: enough for tests, and a sixth of the default.
const logFileSize = "16M"

// serverFlags are those that every server has at every start.
func serverFlags(data, scratch string, host string, port int) []string {
	return []string{
		"--no-defaults", "--datadir=" + data, "--tmpdir=" + scratch, "--bind-address=" + host, "--port=" + strconv.Itoa(port),
		"--socket=server.sock", // below datadir, where the server goes: a long path would not fit into a socket's name
		"--pid-file=server.pid",
		"--skip-name-resolve",
		"--max-connect-errors=4294967295", // faults break connections, and 100 of them would lock this machine out
	}
}

// complaints returns the lines of mariadb-install-db's output that say why it
// failed; its last lines only say where to ask.
func complaints(output []byte) string {
	var told []string
	for line := range strings.Lines(string(output)) {
		if l := strings.ToLower(line); strings.Contains(l, "error") || strings.Contains(l, "fail") || strings.Contains(l, "cannot") {
			told = append(told, strings.TrimSpace(line))
		}
	}
	if len(told) == 0 {
		return cluster.LastLines(output)
	}
	return strings.Join(told[:min(len(told), 10)], " | ")
}

package mariadb

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"stroppy/internal/cluster"
)

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

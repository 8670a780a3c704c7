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

func (s *Server) options() string { return filepath.Join(s.Dir(), "server.cnf") }

// scratch is the folder of temporary tables. A server that starts takes away all
// that it finds in its own, so that no two may share one.
func (s *Server) scratch() string { return filepath.Join(s.Dir(), "tmp") }

// mark is a file that says that the data were made to the end.
const mark = "made"

// prepare makes the option file and the data.
func (s *Server) prepare(ctx context.Context, install string, settings map[string]string) error {
	if err := os.MkdirAll(s.scratch(), 0o700); err != nil {
		return err
	}
	if err := errors.Join(s.User().Give(s.scratch()), s.configure(settings)); err != nil || s.Made() {
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

// configure writes the option file, the caller's settings over ours.
func (s *Server) configure(settings map[string]string) error {
	all := map[string]string{
		"datadir":              s.data(),
		"bind-address":         "127.0.0.1",
		"port":                 strconv.Itoa(s.Port()),
		"socket":               "server.sock", // below datadir, where the server goes: a long path would not fit into a socket's name
		"pid-file":             "server.pid",
		"tmpdir":               s.scratch(),
		"skip-name-resolve":    "ON",
		"innodb-log-file-size": logFileSize,
		"max-connect-errors":   "4294967295", // faults break connections, and 100 of them would lock this machine out
	}
	for name, value := range settings {
		all[strings.ReplaceAll(name, "_", "-")] = value
	}
	text := cluster.SettingLines(all, func(name, value string) string { return name + ` = "` + escapes.Replace(value) + `"` })
	return os.WriteFile(s.options(), []byte("[mariadbd]\n"+text), 0o644)
}

// escapes are those that an option file knows
// (https://mariadb.com/docs/server/server-management/install-and-upgrade-mariadb/configuring-mariadb/configuring-mariadb-with-option-files).
var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

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

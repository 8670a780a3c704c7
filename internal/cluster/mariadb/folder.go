package mariadb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// prepare makes the folder, the option file and the data.
func (s *Server) prepare(ctx context.Context, install string, settings map[string]string) error {
	if err := s.makeDir(); err != nil {
		return err
	}
	if err := s.configure(settings); err != nil {
		return err
	}
	if s.made() {
		return nil
	}
	cmd := s.command(ctx, install, installFlags(s.data(), s.scratch(), "--innodb-log-file-size="+logFileSize)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mariadb-install-db: %w: %s", err, complaints(out))
	}
	// What came before the script's last step may lack a table of rights.
	return os.WriteFile(s.mark(), nil, 0o644)
}

// installFlags are those of mariadb-install-db, for a superuser without a
// password.
func installFlags(data, scratch string, more ...string) []string {
	return append([]string{
		"--no-defaults", "--datadir=" + data, "--tmpdir=" + scratch,
		"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve",
	}, more...)
}

// scratch is the folder of temporary tables. A server that starts takes away all
// that it finds in its own, so that no two may share one.
func (s *Server) scratch() string { return filepath.Join(s.dir, "tmp") }

// mark is a file that says that the data were made to the end.
func (s *Server) mark() string { return filepath.Join(s.dir, "made") }

func (s *Server) made() bool {
	_, err := os.Stat(s.mark())
	return err == nil
}

// makeDir makes the folder and gives it to the server's user.
func (s *Server) makeDir() error {
	info, err := os.Stat(s.dir)
	switch {
	case s.dir == "", err == nil && info.Mode()&os.ModeSticky != 0:
		if s.dir, err = os.MkdirTemp(s.dir, "stroppy-mariadb-"); err != nil {
			return err
		}
		s.temporary = true
	default:
		if err = os.MkdirAll(s.dir, 0o755); err != nil {
			return err
		}
		entries, err := os.ReadDir(s.dir)
		if err != nil {
			return err
		}
		if len(entries) > 0 && !s.made() {
			return errors.New("the folder is not empty and holds no server: name another")
		}
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return err
	}
	if err := enterable(s.dir, s.attr); err != nil {
		return err
	}
	return s.own()
}

// enterable says which folder above dir the server's user cannot pass.
func enterable(dir string, attr *syscall.Credential) error {
	if attr == nil {
		return nil
	}
	for parent := filepath.Dir(dir); ; parent = filepath.Dir(parent) {
		info, err := os.Stat(parent)
		if err != nil {
			return err
		}
		// Only the last x counts, unless the folder is the user's own.
		if stat, ok := info.Sys().(*syscall.Stat_t); info.Mode()&0o001 == 0 && !(ok && stat.Uid == attr.Uid) {
			return fmt.Errorf("MariaDB refuses to run as root, and its user cannot enter %s: "+
				"name another folder, or run chmod o+x %s", parent, parent)
		}
		if parent == filepath.Dir(parent) {
			return nil
		}
	}
}

// own makes the folder of temporary tables and gives it and the server's to its
// user.
func (s *Server) own() error {
	if err := os.MkdirAll(s.scratch(), 0o700); err != nil || s.attr == nil {
		return err
	}
	for _, dir := range []string{s.dir, s.scratch()} {
		if err := os.Chown(dir, int(s.attr.Uid), int(s.attr.Gid)); err != nil {
			return err
		}
	}
	return nil
}

// logFileSize is the redo log's: enough for tests, and a sixth of the default.
const logFileSize = "16M"

// configure writes the option file, the caller's settings over ours.
func (s *Server) configure(settings map[string]string) error {
	all := map[string]string{
		"datadir":              s.data(),
		"bind-address":         "127.0.0.1",
		"port":                 strconv.Itoa(s.port),
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
	var text bytes.Buffer
	fmt.Fprintln(&text, "[mariadbd]")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "%s = \"%s\"\n", name, escapes.Replace(all[name]))
	}
	return os.WriteFile(s.options(), text.Bytes(), 0o644)
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
		return lastLines(output)
	}
	return strings.Join(told[:min(len(told), 10)], " | ")
}

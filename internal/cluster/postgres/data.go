package postgres

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// initialize makes the data folder of a new server. attr is whom the server runs
// as, nil for the caller.
func initialize(ctx context.Context, initdb, data string, attr *syscall.Credential) error {
	cmd := exec.CommandContext(ctx, initdb, "-D", data, "-U", Superuser, "-A", "trust",
		"--no-sync", "--data-checksums", "--locale=C", "--encoding=UTF8")
	cmd.Dir = filepath.Dir(data)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: attr}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, lastLines(out))
	}
	return nil
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
			return fmt.Errorf("PostgreSQL refuses to run as root, and its user cannot enter %s: "+
				"name another folder, or run chmod o+x %s", parent, parent)
		}
		if parent == filepath.Dir(parent) {
			return nil
		}
	}
}

// settingsText writes settings as postgresql.conf has them.
func settingsText(settings map[string]string) []byte {
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&text, "%s = %s\n", name, quoted(settings[name]))
	}
	return text.Bytes()
}

// quoted is a value of postgresql.conf.
func quoted(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }

// lastLines returns the end of a program's output, enough to see why it failed.
func lastLines(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}

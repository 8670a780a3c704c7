package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"stroppy/internal/cluster"
)

// initialize makes the data folder of a new server for a user.
func initialize(ctx context.Context, initdb, data string, user cluster.User) error {
	cmd := user.Command(ctx, filepath.Dir(data), initdb, "-D", data, "-U", Superuser, "-A", "trust",
		"--no-sync", "--data-checksums", "--locale=C", "--encoding=UTF8")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, cluster.LastLines(out))
	}
	return nil
}

// settingsText writes settings as postgresql.conf has them.
func settingsText(settings map[string]string) string {
	return cluster.SettingLines(settings, func(name, value string) string { return name + " = " + quoted(value) })
}

// quoted is a value of postgresql.conf.
func quoted(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }

// prepare makes the data and the configuration.
func (s *Server) prepare(ctx context.Context, initdb string, settings map[string]string) error {
	if _, err := os.Stat(filepath.Join(s.data(), "PG_VERSION")); err != nil {
		if err := initialize(ctx, initdb, s.data(), s.User()); err != nil {
			return err
		}
	}
	return s.configure(settings)
}

// configure writes the settings, ours first, into a file that postgresql.conf
// includes, so that ALTER SYSTEM and a reload still work.
func (s *Server) configure(settings map[string]string) error {
	all := map[string]string{
		"listen_addresses":            "127.0.0.1",
		"port":                        strconv.Itoa(s.Port()),
		"unix_socket_directories":     s.data(),
		"wal_receiver_timeout":        "3s",
		"wal_sender_timeout":          "3s",
		"wal_retrieve_retry_interval": "100ms",
		"dynamic_shared_memory_type":  "mmap", // files of the data folder, which a kill does not leave elsewhere
	}
	if len(s.data()) > maxSocketPath {
		all["unix_socket_directories"] = ""
	}
	maps.Copy(all, settings)
	if err := os.WriteFile(filepath.Join(s.data(), "stroppy.conf"), []byte(settingsText(all)), 0o644); err != nil {
		return err
	}
	main := filepath.Join(s.data(), "postgresql.conf")
	conf, err := os.ReadFile(main)
	if err != nil {
		return err
	}
	const include = "include 'stroppy.conf'\n"
	if bytes.Contains(conf, []byte(include)) {
		return nil
	}
	return os.WriteFile(main, append(conf, include...), 0o600)
}

func (s *Server) data() string { return filepath.Join(s.Dir(), "data") }

// ready waits until the postmaster says that it is ready, in the way of pg_ctl: by
// postmaster.pid, whose lines are those of PostgreSQL's
// src/include/utils/pidfile.h: the first is the process, the eighth its state.
func (s *Server) ready(ctx context.Context) error {
	return cluster.Retry(ctx, func() error {
		text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
		if err != nil {
			return err
		}
		lines := strings.Split(string(text), "\n")
		if len(lines) < 8 || lines[0] != strconv.Itoa(s.postmaster.Process.Pid) || strings.TrimSpace(lines[7]) != "ready" {
			return errors.New("it does not say that it is ready")
		}
		return nil
	})
}

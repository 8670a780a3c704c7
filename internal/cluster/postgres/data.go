package postgres

import (
	"context"
	"fmt"
	"path/filepath"
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

// Package mysql starts real servers of MySQL, MariaDB, and MariaDB with Galera on this machine.
package mysql

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
)

// Superuser is the superuser of every server, who needs no password and can connect only from this machine.
const Superuser = "root"

const (
	product       = "MariaDB"
	debianPackage = "mariadb-server"
)

// Server is a single server with a database named test.
type Server struct {
	*cluster.Single
	user host.User
}

// Start starts a server with any settings.
func Start(ctx context.Context, o cluster.Options) (*Server, error) {
	p := params{flags: []string{"--innodb-log-file-size=16M"}} // enough for tests, and a sixth of the default
	for name := range o.Params {
		if name == "bin" {
			continue
		}
		setting := strings.ReplaceAll(strings.TrimPrefix(name, "set."), "_", "-")
		p.flags = append(p.flags, "--"+setting+"="+o.Params.Get(name))
	}
	programs, lacks := findMariaDB(ctx, o)
	c, err := mariaDB.launch(ctx, o, p, programs, lacks)
	if err != nil {
		return nil, err
	}
	single, err := cluster.NewSingle(c, "test")
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	s := &Server{single, c.User}
	if _, err := s.SQL(ctx, "CREATE DATABASE test"); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// SQL runs statements as the superuser through MariaDB's own client. It returns the output, one row per line with
// tabs between the columns.
func (s *Server) SQL(ctx context.Context, statements string) (string, error) {
	program, err := Bin("mariadb")
	if err != nil {
		return "", err
	}
	cmd := s.user.Command(ctx, s.Dir(), program, "--no-defaults", "--batch", "--skip-column-names", "--protocol=tcp",
		"--host=127.0.0.1", "--port="+strconv.Itoa(s.Port()), "--user="+Superuser, "--execute="+statements)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("run SQL on MariaDB in %s: %w: %s", s.Dir(), err, host.LastLines(out))
	}
	return strings.TrimSpace(string(out)), nil
}

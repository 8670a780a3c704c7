package mysql

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
)

// mySQLPackage contains only the server, without a service that starts it with the machine.
const mySQLPackage = "mysql-server-core"

// mySQLFlags are flags of every server. A second protocol would need its own port, and the folder for the server's
// files may not exist.
var mySQLFlags = []string{"--mysqlx=OFF", "--secure-file-priv=NULL"}

// findMySQL finds mysqld, and refuses MariaDB's program of this name.
func findMySQL(ctx context.Context, o cluster.Options) (p programs, err error) {
	if p.server, err = o.Find("mysqld", mySQLPackage, systemFolders...); err != nil {
		return p, err
	}
	version, err := host.VersionOf(ctx, p.server, "--no-defaults", "--version")
	if err != nil {
		return p, fmt.Errorf("%w: name the folder of a working mysqld with bin=DIR", err)
	}
	real, err := filepath.EvalSymlinks(p.server)
	switch maria := strings.Contains(version, product); {
	case err != nil:
		return p, err
	case maria && o.Params.Has("bin"):
		return p, &cluster.ParamError{Param: "bin", Reason: p.server + " belongs to MariaDB: name a folder with MySQL's mysqld, or use mariadb:1"}
	case maria:
		return p, host.MissingError{Program: "mysqld of MySQL", Hint: p.server + " belongs to MariaDB: name the folder of MySQL's with bin=DIR, or use mariadb:1"}
	}
	if p.prefix = filepath.Dir(filepath.Dir(real)); slices.Contains(systemFolders, filepath.Join(p.prefix, "bin")) {
		p.prefix = ""
	}
	return p, nil
}

// initializeMySQL makes the data of a MySQL server in a folder
// (https://dev.mysql.com/doc/refman/8.4/en/data-directory-initialization.html) by statements, one per line. They are
// in no binary log.
func initializeMySQL(ctx context.Context, user host.User, programs programs, dir, scratch string, statements []string) error {
	file := filepath.Join(scratch, "first.sql")
	if err := os.WriteFile(file, []byte(strings.Join(statements, ";\n")+";\n"), 0o644); err != nil {
		return err
	}
	cmd := user.Command(ctx, scratch, programs.server, slices.Concat(
		[]string{"--no-defaults", "--initialize-insecure", "--datadir=" + dir, "--tmpdir=" + scratch, "--init-file=" + file,
			"--secure-file-priv=NULL", "--skip-log-bin", "--innodb-flush-method=nosync"},
		programs.basedir())...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mysqld --initialize-insecure: %w: %s", err, host.LastLines(out))
	}
	return os.Remove(file)
}

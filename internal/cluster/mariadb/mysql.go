package mariadb

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

// mySQL is the kind of a MySQL server. It has MariaDB's flags, except those that make its data.
const mySQL = "mysql"

// mySQLPackage contains only the server, without a service that starts it with the machine.
const mySQLPackage = "mysql-server-core"

// StartMySQL starts one MySQL server, or several as a group of Group Replication. An error leaves nothing behind. It
// is a host.MissingError if MySQL is not installed, and a *cluster.ParamError for a wrong parameter. The
// parameters are:
//
//	flush=0|1|2         MySQL's innodb_flush_log_at_trx_commit
//	set.NAME=VALUE      any other setting
//
// A group has these parameters too:
//
//	multi-primary=on    all members accept writes, not only one primary
//	consistency=LEVEL   group_replication_consistency: EVENTUAL, BEFORE_ON_PRIMARY_FAILOVER,
//	                    BEFORE, AFTER or BEFORE_AND_AFTER; default: MySQL's
//	expel=0s            time to wait for a member that was silent for 5 s, MySQL's
//	                    group_replication_member_expel_timeout; its default is 5s
func StartMySQL(ctx context.Context, o cluster.Options) (cluster.Local, error) {
	if o.Nodes > 1 {
		return startGroup(ctx, o)
	}
	params, err := parseParams(o.Params, mySQL)
	if err != nil {
		return nil, err
	}
	programs, lacks := findMySQL(ctx, o)
	params.flags = append(slices.Clone(mySQLFlags), params.flags...)
	c, err := launch(ctx, o, mySQL, params, programs, lacks)
	if err != nil {
		return nil, err
	}
	return c, nil
}

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

package mysql

import (
	"context"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"sync/atomic"

	client "github.com/go-sql-driver/mysql"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
	"stroppy/internal/money"
)

// BulkLoad loads rows in one transaction, with LOAD DATA LOCAL INFILE or, if the server does not allow that,
// with long INSERTs.
//
// DDL ends a transaction and cannot be undone (https://dev.mysql.com/doc/refman/8.4/en/implicit-commit.html),
// so Before and After are outside of it. To load all or nothing, a failure drops the table if it did not
// exist before. The table may remain only if this program or the server dies, or if the outcome of the COMMIT
// is unknown.
func (d *Database) BulkLoad(ctx context.Context, load db.BulkLoad) (rows int64, err error) {
	op := d.op("load the table " + load.Table)
	if len(load.Columns) != len(load.Types) {
		return 0, db.Fatalf(op, "%d columns but %d types", len(load.Columns), len(load.Types))
	}
	made := false
	err = d.control(ctx, op, func(ctx context.Context, c *link) error {
		was, err := c.has(load.Table)
		if err != nil {
			return err
		}
		made = !was
		if err := d.run(ctx, c, wire.Before, load.Before...); err != nil {
			return err
		}
		if rows, err = d.fill(ctx, c, op, &load); err != nil {
			return err
		}
		return d.run(ctx, c, wire.Before, load.After...)
	})
	if err == nil {
		return rows, nil
	}
	if made && db.ClassOf(err) != db.Unknown {
		if e := d.Exec(context.WithoutCancel(ctx), "DROP TABLE IF EXISTS "+load.Table); e != nil {
			err = errors.Join(err, e)
		}
	}
	return 0, err
}

func (c *link) has(table string) (bool, error) {
	query := "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = "
	row, err := c.row(string(appendLiteral([]byte(query), db.Text, &db.Value{Text: []byte(table)})))
	return err == nil && row[0] != "0", err
}

// run runs statements one by one. Errors name the statement.
func (d *Database) run(ctx context.Context, c *link, at wire.Phase, statements ...string) error {
	for _, statement := range statements {
		sent := c.out
		if _, err := c.exec(statement); err != nil {
			return c.failure(ctx, d.op("execute "+db.Shorten(statement)), err, at, sent)
		}
	}
	return nil
}

// fill loads the rows in one transaction.
func (d *Database) fill(ctx context.Context, c *link, op string, load *db.BulkLoad) (int64, error) {
	if err := d.run(ctx, c, wire.Before, "START TRANSACTION READ WRITE"); err != nil {
		return 0, err
	}
	source := &wire.Rows{Load: load, Append: appendRow(load.Types)}
	var taken int64
	var err error
	if d.server.on("local_infile") {
		taken, err = c.loadData(op, load, source)
	} else {
		taken, err = c.insert(source)
	}
	switch {
	case err != nil:
		return 0, err
	case taken != source.Count:
		return 0, db.Fatalf(op, "the server took %d of %d rows", taken, source.Count)
	}
	sent := c.out
	if _, err := c.exec("COMMIT"); err != nil {
		return 0, c.failure(ctx, op, err, wire.Committing, sent)
	}
	return taken, nil
}

// loads numbers the loads of this process, because the library registers row sources by name.
var loads atomic.Int64

// loadData sends the rows as a file. For such a file, the server turns errors into warnings, so no warning is
// accepted (https://dev.mysql.com/doc/refman/8.4/en/load-data.html#load-data-error-handling).
func (c *link) loadData(op string, load *db.BulkLoad, source *wire.Rows) (int64, error) {
	name := "stroppy" + strconv.FormatInt(loads.Add(1), 10)
	client.RegisterReaderHandler(name, func() io.Reader { return source })
	defer client.DeregisterReaderHandler(name)
	done, err := c.exec("LOAD DATA LOCAL INFILE 'Reader::" + name + "' INTO TABLE " + load.Table +
		` CHARACTER SET ascii FIELDS TERMINATED BY '\t' ESCAPED BY '\\' LINES TERMINATED BY '\n' (` + strings.Join(load.Columns, ", ") + ")")
	if err != nil {
		return 0, err
	}
	taken, err := done.RowsAffected()
	if err != nil {
		return 0, err
	}
	warnings, err := c.table("SHOW WARNINGS LIMIT 1")
	if err == nil && len(warnings) > 0 {
		err = warned(op, c.product, warnings[0])
	}
	return taken, err
}

// warned returns the error for a warning, which consists of level, number and text.
func warned(op string, maker product, warning []string) error {
	if len(warning) != 3 {
		return db.Fatalf(op, "the server warns: %s", strings.Join(warning, " "))
	}
	number, _ := strconv.ParseUint(warning[1], 10, 16) // 0 is in no table
	err := reported(op, maker, &client.MySQLError{Number: uint16(number), Message: warning[2]}, wire.Before)
	if err.Class != db.Constraint {
		err.Class = db.Fatal
	}
	return err
}

// insert sends the rows as INSERTs.
func (l *link) insert(source *wire.Rows) (taken int64, err error) {
	err = source.Inserts(math.MaxInt, appendLiteral, func(_ []db.Value, statement string) error {
		done, err := l.exec(statement)
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		taken += n
		return err
	})
	return taken, err
}

// appendRow returns a function that writes a row for LOAD DATA. Columns are separated by tabs and rows end
// with a line feed; these characters and backslashes are escaped with a backslash, and NULL is \N.
func appendRow(types []db.Type) func([]byte, []db.Value) ([]byte, error) {
	return func(dst []byte, row []db.Value) ([]byte, error) {
		for i, t := range types {
			if i > 0 {
				dst = append(dst, '\t')
			}
			switch v := &row[i]; {
			case v.Null:
				dst = append(dst, `\N`...)
			case t == db.Integer:
				dst = strconv.AppendInt(dst, v.Int, 10)
			case t == db.Decimal:
				dst = money.Append(dst, v.Int)
			default:
				for _, c := range v.Text {
					switch c {
					case '\\', '\t', '\n', 0:
						dst = append(dst, '\\')
						if c == 0 {
							c = '0'
						}
					}
					dst = append(dst, c)
				}
			}
		}
		return append(dst, '\n'), nil
	}
}

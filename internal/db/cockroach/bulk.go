package cockroach

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"stroppy/internal/db"
	"stroppy/internal/db/pgwire"
	"stroppy/internal/db/wire"
	"stroppy/internal/money"
)

const (
	// loaders is the number of connections that insert concurrently. Four were three times as fast as one COPY.
	loaders = 4
	// insertRows is the number of rows of one INSERT. More rows cost less each.
	insertRows = 5000
	// splitRows is the approximate number of rows between two splits of a table that is loaded in key order.
	splitRows = 100_000
	// dropLimit limits the removal of a table after a failed load, because a cluster without a majority does not
	// answer.
	dropLimit = 15 * time.Second
)

// BulkLoad loads rows with large INSERTs on several connections. It uses no single transaction, because a large one
// costs more than its parts, and no transaction contains DDL
// (https://www.cockroachlabs.com/docs/stable/online-schema-changes, "Limitations"). To load all or nothing, a failure
// drops the table if it did not exist before. The table may remain only if this program or the cluster dies.
func (d *Database) BulkLoad(ctx context.Context, load db.BulkLoad) (rows int64, err error) {
	op := "load the table " + load.Table + " on " + d.Location()
	if len(load.Columns) != len(load.Types) {
		return 0, db.Fatalf(op, "%d columns but %d types", len(load.Columns), len(load.Types))
	}
	made := false
	err = d.Control(ctx, op, func(ctx context.Context, c *pgwire.Control) error {
		found, err := names(ctx, c, "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = "+quoted(load.Table))
		if err != nil {
			return err
		}
		made = len(found) == 0
		if err := c.Run(ctx, load.Before...); err != nil {
			return err
		}
		if rows, err = d.fill(ctx, c, op, &load); err != nil {
			return err
		}
		return c.Run(ctx, load.After...)
	})
	if err == nil {
		return rows, nil
	}
	if made {
		dropping, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropLimit)
		defer cancel()
		if e := d.Exec(dropping, "DROP TABLE IF EXISTS "+load.Table); e != nil {
			err = errors.Join(err, e)
		}
	}
	return 0, err
}

// fill inserts the rows and returns the number that the server accepted.
func (d *Database) fill(ctx context.Context, c *pgwire.Control, op string, load *db.BulkLoad) (int64, error) {
	s, err := newSplitter(ctx, c, load)
	if err != nil {
		return 0, err
	}
	source := &wire.Rows{Load: load}
	statements := make(chan string)
	var taken atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range loaders {
		group.Go(func() error {
			return d.Control(ctx, op, func(ctx context.Context, c *pgwire.Control) error {
				for statement := range statements {
					results, err := c.Conn.Exec(ctx, statement).ReadAll()
					if err != nil {
						return err
					}
					taken.Add(results[0].CommandTag.RowsAffected())
				}
				return nil
			})
		})
	}
	group.Go(func() error {
		defer close(statements)
		return source.Inserts(insertRows, appendLiteral, func(first []db.Value, statement string) error {
			if err := s.before(ctx, c, first); err != nil {
				return err
			}
			select {
			case statements <- statement:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	})
	if err := group.Wait(); err != nil {
		return 0, err
	}
	if taken.Load() != source.Count {
		return 0, db.Fatalf(op, "the server took %d of %d rows", taken.Load(), source.Count)
	}
	return source.Count, nil
}

// appendLiteral appends a value as an SQL literal.
func appendLiteral(dst []byte, t db.Type, v *db.Value) []byte {
	switch {
	case v.Null:
		return append(dst, "NULL"...)
	case t == db.Integer:
		return strconv.AppendInt(dst, v.Int, 10)
	case t == db.Decimal:
		return money.Append(dst, v.Int)
	}
	return append(dst, quoted(string(v.Text))...)
}

// quoted returns a text as an SQL literal.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// names runs a query and returns the first column of its rows.
func names(ctx context.Context, c *pgwire.Control, query string) (list []string, err error) {
	results, err := c.Conn.Exec(ctx, query).ReadAll()
	if err != nil {
		return nil, err
	}
	for _, row := range results[0].Rows {
		list = append(list, string(row[0]))
	}
	return list, nil
}

// splitter splits a table during the load, so that its rows are in several ranges, which several nodes can serve.
// Rows must arrive in key order.
type splitter struct {
	load  *db.BulkLoad
	key   []int // the places of the key's columns in a row; none: no splits
	types []db.Type
	rows  int // that came since the last split, about
}

// newSplitter finds the primary key of the table.
func newSplitter(ctx context.Context, c *pgwire.Control, load *db.BulkLoad) (*splitter, error) {
	s := &splitter{load: load}
	columns, err := names(ctx, c, `SELECT k.column_name FROM information_schema.key_column_usage k
		JOIN information_schema.table_constraints t USING (table_schema, table_name, constraint_name)
		WHERE t.constraint_type = 'PRIMARY KEY' AND t.table_schema = current_schema() AND t.table_name = `+quoted(load.Table)+`
		ORDER BY k.ordinal_position`)
	if err != nil && !pgwire.Refused(err) {
		return nil, err
	}
	for _, column := range columns {
		at := slices.Index(load.Columns, column)
		if at < 0 {
			s.key = nil
			break
		}
		s.key, s.types = append(s.key, at), append(s.types, load.Types[at])
	}
	return s, nil
}

// before splits the table at the first row of an INSERT if enough rows came since the last split. If the server
// refuses a split, because of a missing privilege or automatic merging, it is not asked again.
func (s *splitter) before(ctx context.Context, c *pgwire.Control, first []db.Value) error {
	if s.rows += insertRows; len(s.key) == 0 || s.rows <= splitRows {
		return nil
	}
	s.rows = insertRows
	var at []db.Value
	for _, i := range s.key {
		at = append(at, first[i])
	}
	_, err := c.Conn.Exec(ctx, "ALTER TABLE "+s.load.Table+" SPLIT AT VALUES "+string(wire.AppendList(nil, s.types, at, appendLiteral))).ReadAll()
	if pgwire.Refused(err) {
		s.key, err = nil, nil
	}
	return err
}

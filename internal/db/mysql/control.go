package mysql

import (
	"context"
	"errors"
	"fmt"
	"strings"

	client "github.com/go-sql-driver/mysql"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// control opens a connection for a single call, passes it to do, closes it, and converts the error to a *db.Error.
// Statements on it are not limited in time. The context of do ends when the server stops answering.
func (d *Database) control(ctx context.Context, op string, do func(context.Context, *link) error) error {
	l, err := d.connect(ctx, op, "", d.first())
	if err != nil {
		return err
	}
	defer l.end()
	d.worked(l.host)
	guarded, release := d.guard(ctx, l.host)
	defer release()
	if err := l.arm(guarded, false); err != nil {
		return wire.Lost(op, err, wire.Before)
	}
	out := l.out
	if err := do(guarded, l); err != nil {
		if own, ok := errors.AsType[*db.Error](err); ok {
			return own
		}
		return l.failure(guarded, op, err, wire.Before, out)
	}
	return nil
}

// pairs runs a query with two columns, a name, here in lower case, and a value.
func (c *link) pairs(text string) (map[string]string, error) {
	rows, err := c.table(text)
	if err != nil {
		return nil, err
	}
	pairs := make(map[string]string, len(rows))
	for _, row := range rows {
		if len(row) != 2 {
			return nil, fmt.Errorf("%s returned %d columns", text, len(row))
		}
		pairs[strings.ToLower(row[0])] = row[1]
	}
	return pairs, nil
}

// guard returns a context that ends when the server stops answering. It opens another connection, for which
// any answer counts.
func (d *Database) guard(ctx context.Context, host int) (context.Context, func()) {
	return wire.Guard(ctx, d.limit, func(ctx context.Context) error {
		l, err := d.dial(ctx, "probe", host)
		if err == nil {
			l.end()
			return nil
		}
		if _, answered := errors.AsType[*client.MySQLError](err); answered {
			return nil
		}
		return err.Err
	})
}

// first returns the host with which a connection starts: the last one that worked or, with spread, the next
// one in turn.
func (d *Database) first() int {
	if d.address.spread {
		return int((d.host.Add(1) - 1) % int64(len(d.address.hosts)))
	}
	return int(d.host.Load())
}

func (d *Database) worked(host int) {
	if !d.address.spread {
		d.host.Store(int64(host))
	}
}

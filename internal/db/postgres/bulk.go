package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"stroppy/internal/db"
	"stroppy/internal/db/pgwire"
	"stroppy/internal/db/wire"
)

// roomToSort lets the rest of the transaction build indexes in memory. The default of 64 MB is too small for
// a million keys; sorting them in files took a third longer. A larger value is kept.
const roomToSort = "SELECT set_config('maintenance_work_mem', '256MB', true) " +
	"WHERE pg_size_bytes(current_setting('maintenance_work_mem')) < pg_size_bytes('256MB')"

// BulkLoad loads rows with COPY in binary format, in one transaction. If that transaction creates the table,
// the rows are written frozen (PostgreSQL documentation, COPY, FREEZE), which saves a vacuum of the whole
// table.
func (d *Database) BulkLoad(ctx context.Context, load db.BulkLoad) (rows int64, err error) {
	op := "load the table " + load.Table + " on PostgreSQL"
	err = d.Control(ctx, op, func(ctx context.Context, c *pgwire.Control) error {
		if err := d.EnableNotices(ctx, c.Conn); err != nil {
			return err
		}
		if err := c.Run(ctx, append([]string{"BEGIN"}, load.Before...)...); err != nil {
			return err
		}
		options, err := freeze(ctx, c, &load)
		if err != nil {
			return err
		}
		source, err := rowsOf(ctx, c, &load)
		if err != nil {
			return err
		}
		tag, err := c.Conn.CopyFrom(ctx, source, copyStatement(&load, options))
		source.Stop()
		if source.Err != nil {
			return db.Fatalf(op, "%w", source.Err)
		}
		if err != nil {
			return err
		}
		if rows = tag.RowsAffected(); rows != source.Count {
			return db.Fatalf(op, "the server took %d of %d rows", rows, source.Count)
		}
		if err := c.Run(ctx, append([]string{roomToSort}, load.After...)...); err != nil {
			return err
		}
		return c.Commit(ctx)
	})
	if err != nil {
		return 0, err
	}
	return rows, nil
}

func copyStatement(load *db.BulkLoad, options string) string {
	return fmt.Sprintf("COPY %s (%s) FROM STDIN (%s)", load.Table, strings.Join(load.Columns, ", "), options)
}

// freeze determines, with a COPY of no rows, whether the rows may be written frozen, and returns the options
// of COPY. The server refuses that for a table older than the transaction, among other version-dependent
// reasons; then the transaction begins again.
func freeze(ctx context.Context, c *pgwire.Control, load *db.BulkLoad) (string, error) {
	const plain, frozen = "FORMAT binary", "FORMAT binary, FREEZE"
	if len(load.Before) == 0 {
		return plain, nil
	}
	_, err := c.Conn.CopyFrom(ctx, strings.NewReader(copyHeader+copyTrailer), copyStatement(load, frozen))
	if !pgwire.Refused(err) {
		return frozen, err
	}
	return plain, c.Run(ctx, append([]string{"ROLLBACK", "BEGIN"}, load.Before...)...)
}

// These constants are the binary format of COPY (PostgreSQL documentation, COPY, "Binary Format").
const (
	copyHeader  = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" // signature, flags, no extension
	copyTrailer = "\xff\xff"
)

// rowsOf returns the rows in COPY's format. COPY converts nothing in binary format, so the types of the
// columns are needed.
func rowsOf(ctx context.Context, c *pgwire.Control, load *db.BulkLoad) (*wire.Rows, error) {
	if len(load.Columns) != len(load.Types) {
		return nil, fmt.Errorf("%d columns but %d types", len(load.Columns), len(load.Types))
	}
	query := "SELECT " + strings.Join(load.Columns, ", ") + " FROM " + load.Table
	described, err := c.Conn.Prepare(ctx, "", query, nil)
	if err != nil {
		return nil, err
	}
	columns := make([]column, len(load.Types))
	for i, f := range described.Fields {
		columns[i] = column{name: load.Columns[i], wire: load.Types[i]}
		if !columns[i].fits(f.DataTypeOID) {
			return nil, db.Fatalf("load the table "+load.Table, "the column %s has the type with OID %d, which its values do not fit",
				load.Columns[i], f.DataTypeOID)
		}
	}
	return &wire.Rows{Load: load, Header: copyHeader, Trailer: copyTrailer, Append: func(dst []byte, row []db.Value) ([]byte, error) {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(columns)))
		for i := range columns {
			var err error
			if dst, err = columns[i].append(dst, &row[i]); err != nil {
				return dst, err
			}
		}
		return dst, nil
	}}, nil
}

type column struct {
	name string
	wire db.Type
	size int // bytes of an Integer: 2, 4 or 8
}

func (c *column) fits(oid uint32) bool {
	switch c.wire {
	case db.Integer:
		c.size = map[uint32]int{pgwire.OIDInt2: 2, pgwire.OIDInt4: 4, pgwire.OIDInt8: 8}[oid]
		return c.size > 0
	case db.Decimal:
		return oid == pgwire.OIDNumeric
	case db.Text:
		return oid == pgwire.OIDText || oid == pgwire.OIDVarchar || oid == pgwire.OIDBPChar
	}
	return false
}

// append appends a value after its length.
func (c *column) append(dst []byte, v *db.Value) ([]byte, error) {
	switch {
	case v.Null || c.wire != db.Integer || c.size == 8:
		return pgwire.AppendValue(dst, c.wire, v), nil
	case c.size == 4 && v.Int >= math.MinInt32 && v.Int <= math.MaxInt32:
		return binary.BigEndian.AppendUint32(append(dst, 0, 0, 0, 4), uint32(v.Int)), nil
	case c.size == 2 && v.Int >= math.MinInt16 && v.Int <= math.MaxInt16:
		return binary.BigEndian.AppendUint16(append(dst, 0, 0, 0, 2), uint16(v.Int)), nil
	}
	return dst, fmt.Errorf("%d does not fit the column %s of %d bytes", v.Int, c.name, c.size)
}

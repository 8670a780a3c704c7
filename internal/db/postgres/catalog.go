package postgres

import "stroppy/internal/db"

var _ db.Cataloged = (*Database)(nil)

// Catalog implements db.Cataloged.
func (d *Database) Catalog() *db.Catalog { return catalog }

// ownTables selects the tables of the first schema in search_path, with partitioned tables and without partitions.
const ownTables = ` c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND c.relkind IN ('r', 'p') AND NOT c.relispartition`

var catalog = &db.Catalog{
	Quote: '"',
	Columns: `SELECT c.relname::text, a.attname::text, CASE WHEN a.atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype) THEN 'yes' ELSE 'no' END
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE` + ownTables + ` ORDER BY c.relname, a.attnum`,
	Keys: `SELECT c.relname::text, k.conname::text, k.contype::text, a.attname::text, coalesce(f.relname::text, ''), coalesce(b.attname::text, '')
		FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid CROSS JOIN LATERAL generate_subscripts(k.conkey, 1) AS i
		JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[i]
		LEFT JOIN pg_class f ON f.oid = k.confrelid AND f.relnamespace = c.relnamespace
		LEFT JOIN pg_attribute b ON b.attrelid = f.oid AND b.attnum = k.confkey[i]
		WHERE k.contype IN ('p', 'u', 'f') AND (k.contype <> 'f' OR f.oid IS NOT NULL) AND` + ownTables + ` ORDER BY c.relname, k.conname, i`,
	Checks: `SELECT c.relname::text, k.conname::text, pg_get_expr(k.conbin, k.conrelid)
		FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid WHERE k.contype = 'c' AND` + ownTables + ` ORDER BY c.relname, k.conname`,
}

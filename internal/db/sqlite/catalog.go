package sqlite

import "stroppy/internal/db"

var _ db.Cataloged = (*Database)(nil)

// Catalog implements db.Cataloged.
func (d *Database) Catalog() *db.Catalog { return catalog }

// ownTables selects the tables of the user.
const ownTables = ` m.type = 'table' AND m.name NOT LIKE 'sqlite\_%' ESCAPE '\' AND m.sql NOT LIKE 'CREATE VIRTUAL%'`

var catalog = &db.Catalog{
	Quote: '"', CreateText: true,
	Columns: `SELECT m.name, t.name, CASE WHEN upper(t.type) LIKE '%INT%' THEN 'yes' ELSE 'no' END
		FROM sqlite_master m JOIN pragma_table_info(m.name) t WHERE` + ownTables + ` ORDER BY m.name, t.cid`,
	Keys: `SELECT tab, con, kind, col, other, key FROM (
		SELECT m.name AS tab, 'primary key' AS con, 'p' AS kind, t.name AS col, '' AS other, '' AS key, t.pk AS place
			FROM sqlite_master m JOIN pragma_table_info(m.name) t WHERE t.pk > 0 AND` + ownTables + `
		UNION ALL SELECT m.name, i.name, 'u', x.name, '', '', x.seqno
			FROM sqlite_master m JOIN pragma_index_list(m.name) i JOIN pragma_index_info(i.name) x
			WHERE i."unique" = 1 AND i.partial = 0 AND i.origin <> 'pk' AND x.name IS NOT NULL AND` + ownTables + `
		UNION ALL SELECT m.name, 'foreign key ' || f.id, 'f', f."from", f."table",
			coalesce(f."to", (SELECT p.name FROM pragma_table_info(f."table") p WHERE p.pk = f.seq + 1)), f.seq
			FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f WHERE` + ownTables + `
	) ORDER BY tab, con, place`,
	Checks: `SELECT m.name, '', m.sql FROM sqlite_master m WHERE` + ownTables + ` ORDER BY m.name`,
}

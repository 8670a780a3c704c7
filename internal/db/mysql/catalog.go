package mysql

import "stroppy/internal/db"

var _ db.Cataloged = (*Database)(nil)

// checksOfMariaDB also compares the tables, because the names of constraints are unique within a table there.
const (
	checksOfMySQL = `SELECT t.TABLE_NAME, c.CONSTRAINT_NAME, c.CHECK_CLAUSE
		FROM information_schema.CHECK_CONSTRAINTS c JOIN information_schema.TABLE_CONSTRAINTS t
		ON t.CONSTRAINT_SCHEMA = c.CONSTRAINT_SCHEMA AND t.CONSTRAINT_NAME = c.CONSTRAINT_NAME AND t.CONSTRAINT_TYPE = 'CHECK'
		WHERE c.CONSTRAINT_SCHEMA = DATABASE() ORDER BY t.TABLE_NAME, c.CONSTRAINT_NAME`
	checksOfMariaDB = `SELECT c.TABLE_NAME, c.CONSTRAINT_NAME, c.CHECK_CLAUSE
		FROM information_schema.CHECK_CONSTRAINTS c WHERE c.CONSTRAINT_SCHEMA = DATABASE() ORDER BY c.TABLE_NAME, c.CONSTRAINT_NAME`
)

// Catalog implements db.Cataloged.
func (d *Database) Catalog() *db.Catalog {
	checks := checksOfMySQL
	if d.server.product == mariaDB {
		checks = checksOfMariaDB
	}
	return &db.Catalog{
		Quote: '`', Checks: checks,
		Columns: `SELECT c.TABLE_NAME, c.COLUMN_NAME, CASE WHEN c.DATA_TYPE IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint') THEN 'yes' ELSE 'no' END
			FROM information_schema.COLUMNS c JOIN information_schema.TABLES t ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME
			WHERE c.TABLE_SCHEMA = DATABASE() AND t.TABLE_TYPE = 'BASE TABLE' ORDER BY c.TABLE_NAME, c.ORDINAL_POSITION`,
		Keys: `SELECT k.TABLE_NAME, k.CONSTRAINT_NAME,
				CASE t.CONSTRAINT_TYPE WHEN 'PRIMARY KEY' THEN 'p' WHEN 'UNIQUE' THEN 'u' ELSE 'f' END, k.COLUMN_NAME,
				COALESCE(k.REFERENCED_TABLE_NAME, ''), COALESCE(k.REFERENCED_COLUMN_NAME, '')
			FROM information_schema.KEY_COLUMN_USAGE k JOIN information_schema.TABLE_CONSTRAINTS t
			ON t.CONSTRAINT_SCHEMA = k.CONSTRAINT_SCHEMA AND t.TABLE_NAME = k.TABLE_NAME AND t.CONSTRAINT_NAME = k.CONSTRAINT_NAME
			WHERE k.TABLE_SCHEMA = DATABASE() AND t.CONSTRAINT_TYPE IN ('PRIMARY KEY', 'UNIQUE', 'FOREIGN KEY')
				AND COALESCE(k.REFERENCED_TABLE_SCHEMA, DATABASE()) = DATABASE()
			ORDER BY k.TABLE_NAME, k.CONSTRAINT_NAME, k.ORDINAL_POSITION`,
	}
}

package db

// Cataloged is implemented by an SQL database whose tables can be listed.
type Cataloged interface {
	Catalog() *Catalog
}

// Catalog holds queries about the tables of the current schema. All columns are texts.
type Catalog struct {
	// Columns returns the table, the column, and yes for an integer, in the order of the columns.
	Columns string
	// Keys returns six columns: the table, the name of the constraint, its kind, a column, and for a foreign key the
	// other table and its column. The columns of a constraint are in order. A kind is p (primary), u (unique) or f
	// (foreign).
	Keys string
	// Checks returns the table, the name and the condition of each CHECK. If CreateText is set, it returns the table, an
	// empty text and the statement that made the table.
	Checks     string
	CreateText bool
	Quote      byte // around a name; it is doubled inside of one
}

package appends

import (
	"cmp"
	"context"
	"errors"

	"stroppy/internal/check/lists"
	"stroppy/internal/db"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// The tables, of which a run uses the one that its access says. The columns are named so
// that no dialect has to quote them.
const (
	table        = "stroppy_append"         // a list by its primary key
	tableIndexed = "stroppy_append_indexed" // the same by another index
	tableRows    = "stroppy_append_rows"    // a row an element
	tableRanges  = "stroppy_append_ranges"  // a row an element, and one behind the last, in one range for each list
)

// placeBits is the width of a place in a list as a part of a row's key. The last place belongs to the row behind the
// last element, which each append replaces.
const (
	placeBits = 12
	lastPlace = 1<<placeBits - 1
)

// placeIn returns a place in a list in the form of the tables of ranges.
func placeIn(object, place uint64) db.Value { return db.Value{Int: int64(object<<placeBits | place)} }

// sqlModel is the workload on a SQL database.
type sqlModel struct {
	*dataset.SQL
	config *Config

	read   *db.Statement   // of a list, or of a range of them
	append []*db.Statement // one behind the other
	make   *db.Statement   // empty lists, makeRows at once; nil where they need not be there
	all    [4]*db.Statement
}

var errNoUpsert = errors.New("access is upsert, and this database has no INSERT that changes the row which is there already: take primary, secondary, rows or predicate")

// newSQLModel fills in what the configuration leaves to the data model.
func newSQLModel(database db.SQL, c *Config) (model, error) {
	if c.Mode = cmp.Or(c.Mode, workload.Pipelined); c.Mode == workload.Procedure {
		return nil, errNoProcedure
	}
	d := database.Dialect()
	switch {
	case c.Access == "" && d.Upsert != nil:
		c.Access = Upsert
	case c.Access == "":
		c.Access = Primary
	case c.Access == Upsert && d.Upsert == nil:
		return nil, errNoUpsert
	}
	m := &sqlModel{SQL: dataset.NewSQL(kind, database, table), config: c}
	m.Tables = []string{table, tableIndexed, tableRows, tableRanges}
	list, rows := []db.Type{db.Integer, db.Text}, []db.Type{db.Integer, db.Integer, db.Integer}
	m.Listings = []dataset.Listing{
		{Table: table, Columns: []string{"list", "elements"}, Types: list, Key: "list DESC"},
		{Table: tableIndexed, Columns: []string{"list", "elements", "place"}, Types: append(list, db.Integer), Key: "list DESC"},
		{Table: tableRows, Columns: []string{"list", "place", "element"}, Types: rows, Key: "list DESC, place DESC"},
		{Table: tableRanges, Columns: []string{"place", "element"}, Types: rows[:2], Key: "place DESC"},
	}
	m.statements(d)
	return m, nil
}

// storage returns how lists are kept.
func (m *sqlModel) storage() lists.Storage {
	if m.config.Access == Rows || m.config.Access == Predicate {
		return lists.Pieces
	}
	return lists.Objects
}

// statements makes the statements of the access.
func (m *sqlModel) statements(d *db.Dialect) {
	text, update := []db.Type{db.Text}, d.Counted
	if d.CountsApart && m.config.Mode != workload.Interactive {
		update = func(sql string) *db.Statement { return d.Statement(sql) }
	}
	switch m.config.Access {
	case Primary, Upsert:
		m.read = d.Statement("SELECT elements FROM "+table+" WHERE list = {integer}", text...)
		m.append = []*db.Statement{update("UPDATE " + table + " SET elements = " + d.Concat("elements", "{text}") + " WHERE list = {integer}")}
	case Secondary:
		m.read = d.Statement("SELECT elements FROM "+tableIndexed+" WHERE place = {integer}", text...)
		m.append = []*db.Statement{update("UPDATE " + tableIndexed + " SET elements = " + d.Concat("elements", "{text}") + " WHERE place = {integer}")}
	case Rows:
		m.read = d.Statement("SELECT place, element FROM "+tableRows+" WHERE list = {integer} ORDER BY place", db.Integer, db.Integer)
		m.append = []*db.Statement{d.Statement("INSERT INTO " + tableRows + " (list, place, element) SELECT {integer}, COALESCE(MAX(place), 0) + 1, {integer} FROM " + tableRows + " WHERE list = {integer}")}
	case Predicate:
		const within = " WHERE place >= {integer} AND place < {integer}"
		m.read = d.Statement("SELECT place, element FROM "+tableRanges+within+" ORDER BY place", db.Integer, db.Integer)
		m.append = []*db.Statement{
			d.Statement("DELETE FROM " + tableRanges + within),
			d.Statement("INSERT INTO " + tableRanges + " (place, element) SELECT COALESCE(MAX(place), {integer}) + 1, {integer} FROM " + tableRanges + within),
			d.Statement("INSERT INTO " + tableRanges + " (place, element) VALUES ({integer}, {integer})"),
		}
	}
	if m.config.Access == Upsert {
		m.append[0] = d.Statement("INSERT INTO " + table + " (list, elements) VALUES ({integer}, {text})" +
			d.Upsert.Conflict("list") + "elements = " + d.Concat(table+".elements", d.Upsert.New("elements")))
	}
	m.makers(d)
	m.all = [...]*db.Statement{
		d.Statement("SELECT list, elements FROM "+table, db.Integer, db.Text),
		d.Statement("SELECT list, elements FROM "+tableIndexed, db.Integer, db.Text),
		d.Statement("SELECT place, element FROM "+tableRanges+" ORDER BY place", db.Integer, db.Integer),
		d.Statement("SELECT list, place, element FROM "+tableRows+" ORDER BY list, place", db.Integer, db.Integer, db.Integer),
	}
}

// makeRows is the number of lists that one statement makes, and makeLists the number of lists made together.
const (
	makeRows  = 32
	makeLists = 16 * makeRows
)

// makers makes the statements that make lists.
func (m *sqlModel) makers(d *db.Dialect) {
	var columns, row string
	switch m.config.Access {
	case Primary:
		columns, row = table+" (list, elements)", "({integer}, '')"
	case Secondary:
		columns, row = tableIndexed+" (list, place, elements)", "({integer}, {integer}, '')"
	default:
		return
	}
	insert := "INSERT INTO " + columns + " VALUES " + row
	for range makeRows - 1 {
		insert += ", " + row
	}
	m.make = d.Statement(insert)
}

// Fill implements dataset.Store. It makes the tables. No list is there.
func (m *sqlModel) Fill(ctx context.Context, _ dataset.Metadata, progress func(done uint64)) error {
	d := m.Dialect
	number := " " + d.IntegerType + " NOT NULL"
	elements := "elements " + d.TextType(m.longest()) + " NOT NULL"
	statements := append(m.Drops(),
		d.CreateTable(table, "list"+number+" PRIMARY KEY", elements),
		d.CreateTable(tableIndexed, "list"+number+" PRIMARY KEY", "place"+number, elements),
		"CREATE INDEX stroppy_append_places ON "+tableIndexed+" (place)",
		d.CreateTable(tableRows, "list"+number, "place"+number, "element"+number, "PRIMARY KEY (list, place)"),
		d.CreateTable(tableRanges, "place"+number+" PRIMARY KEY", "element"+number))
	if err := m.Each(ctx, statements...); err != nil {
		return err
	}
	progress(1)
	return nil
}

// longest returns the most bytes of a list's text. It is far more than transactions append before all clients have
// seen that the list is full.
func (m *sqlModel) longest() int {
	if most := m.Database.Limits().Value; most > 0 {
		return min(most, longestText)
	}
	return longestText
}

func (m *sqlModel) client(ctx context.Context, h *chooser) (load.Client, error) {
	s, err := m.Database.Session(ctx, m.config.SessionOptions())
	return &sqlClient{chooser: h, SQLSession: s, model: m, args: make([]db.Value, 0, 8)}, err
}

func (m *sqlModel) endState(ctx context.Context, end *endLists) error {
	return m.With(ctx, func(s db.SQLSession) error {
		for i, take := range []func(row []db.Value) error{
			func(row []db.Value) error { return end.text(uint64(row[0].Int), row[1].Text) },
			func(row []db.Value) error { return end.text(uint64(row[0].Int), row[1].Text) },
			func(row []db.Value) error {
				place := uint64(row[0].Int)
				if place&lastPlace == lastPlace {
					return nil
				}
				return end.element(place>>placeBits, int64(place&lastPlace), row[1].Int)
			},
			func(row []db.Value) error { return end.element(uint64(row[0].Int), row[1].Int, row[2].Int) },
		} {
			if err := s.Query(ctx, m.all[i], nil, take); err != nil {
				return err
			}
		}
		return nil
	})
}

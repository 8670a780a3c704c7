package tpcb

import (
	"cmp"
	"math"
	"strconv"

	"stroppy/internal/db"
)

// tables are the names of the tables of one form of the data.
type tables struct{ branches, tellers, accounts, history string }

// pgbench's own tables, and ours whose rows have versions.
var (
	plainTables     = tables{"pgbench_branches", "pgbench_tellers", "pgbench_accounts", "pgbench_history"}
	versionedTables = tables{"stroppy_tpcb_branches", "stroppy_tpcb_tellers", "stroppy_tpcb_accounts", "stroppy_tpcb_history"}
)

// tableOpening holds what rows held before they were first driven, beyond what the
// history tells; and for each run that kept no history a row whose place is its
// number below zero.
const tableOpening = "stroppy_tpcb_opening"

// statements are those of a transaction in the order in which pgbench has them.
type statements struct {
	updateAccount *db.Statement
	readAccount   *db.Statement
	updateTeller  *db.Statement
	readTeller    *db.Statement // with versions, where UPDATE does not return what it made; else nil
	updateBranch  *db.Statement
	readBranch    *db.Statement
	insert        *db.Statement // the row of the history
}

// texts are the SQL of one form of the data in one dialect, made once.
type texts struct {
	tables   tables
	versions bool

	create  [noKind]string // with the primary key, unless addKey is there
	addKey  [noKind]string // ALTER TABLE … ADD, after the load; empty where a key cannot be added
	history string         // CREATE TABLE
	opening string         // CREATE TABLE IF NOT EXISTS

	statements
	tombstone *db.Statement // with versions
	find      *db.Statement // with versions: teller ids under an id of the history; NULL is a tombstone

	load     [noKind]*db.Statement // one row
	count    *db.Statement         // rows of all three tables
	rows     [noKind]*db.Statement // id, balance and, with versions, version and last transaction
	postings *db.Statement
	openings *db.Statement
	bare     *db.Statement // marks a run that keeps no history
}

// columns of the three tables: the id, the branch where there is one, the balance,
// and the width of what fills the row up to 100 bytes (TPC-B, clause 3.2).
var columns = [noKind]struct {
	id, bid, balance string
	filler           int
}{
	branch:  {"bid", "", "bbalance", 88},
	teller:  {"tid", "bid", "tbalance", 84},
	account: {"aid", "bid", "abalance", 84},
}

func (t *tables) of(k kind) string { return [...]string{t.branches, t.tellers, t.accounts}[k] }

// smallInteger is a signed integer of four bytes in every dialect.
const smallInteger = "INTEGER"

func newTexts(d *db.Dialect, versions bool) *texts {
	t := &texts{tables: plainTables, versions: versions}
	if versions {
		t.tables = versionedTables
	}
	t.creates(d, smallInteger)
	t.transaction(d)
	t.histories(d)
	t.whole(d)
	return t
}

// fit chooses the type of the ids of accounts, as pgbench does.
func (t *texts) fit(d *db.Dialect, s size) {
	integer := smallInteger
	if s.accounts > math.MaxInt32 {
		integer = d.IntegerType
	}
	t.creates(d, integer)
}

func (t *texts) creates(d *db.Dialect, aid string) {
	fixed, moment := func(length int) string { return "CHAR(" + strconv.Itoa(length) + ")" }, cmp.Or(d.TimestampType, "TIMESTAMP")
	if d.CharType != nil {
		fixed = d.CharType
	}
	for k := branch; k < noKind; k++ {
		c, table := columns[k], t.tables.of(k)
		integer := smallInteger
		if k == account {
			integer = aid
		}
		text := "CREATE TABLE " + table + " (\n\t" + c.id + " " + integer + " NOT NULL"
		key := "PRIMARY KEY (" + c.id + ")"
		t.addKey[k] = ""
		if d.AddConstraint {
			t.addKey[k] = "ALTER TABLE " + table + " ADD " + key
		} else {
			text += " PRIMARY KEY"
		}
		if c.bid != "" {
			text += ",\n\tbid " + smallInteger
		}
		text += ",\n\t" + c.balance + " " + smallInteger
		if t.versions {
			for _, name := range []string{"version", "last_transfer", "previous_transfer"} {
				text += ",\n\t" + name + " " + d.IntegerType + " DEFAULT 0 NOT NULL"
			}
		}
		t.create[k] = text + ",\n\tfiller " + fixed(c.filler) + "\n)" + d.TableOptions
	}
	ids := "tid " + smallInteger + ",\n\tbid " + smallInteger + ",\n\taid " + aid + ",\n\tdelta " + smallInteger + ",\n\tmtime " + moment + " NULL"
	if t.versions {
		ids = "transfer " + d.IntegerType + " NOT NULL PRIMARY KEY,\n\t" + ids
		for _, name := range []string{"aversion", "tversion", "bversion"} {
			ids += ",\n\t" + name + " " + d.IntegerType + " DEFAULT 0 NOT NULL"
		}
	} else {
		ids += ",\n\tfiller " + fixed(historyFiller)
	}
	t.history = "CREATE TABLE " + t.tables.history + " (\n\t" + ids + "\n)" + d.TableOptions
	t.opening = "CREATE TABLE IF NOT EXISTS " + tableOpening + " (\n\tplace " + d.IntegerType + " NOT NULL PRIMARY KEY,\n\tbalance " + d.IntegerType + " NOT NULL\n)" + d.TableOptions
}

// historyFiller is the width of the history's filler.
const historyFiller = 22

// transaction makes pgbench's statements; with versions each also counts.
func (t *texts) transaction(d *db.Dialect) {
	update := func(k kind) *db.StatementWriter {
		c := columns[k]
		w := d.Write("UPDATE ", t.tables.of(k), " SET ", c.balance, " = ", c.balance, " + ").Param(db.Integer)
		if t.versions {
			w.Text(", version = version + 1, previous_transfer = last_transfer, last_transfer = ").Param(db.Integer)
		}
		return w.Text(" WHERE ", c.id, " = ").Param(db.Integer)
	}
	seen := []db.Type{db.Integer}
	if t.versions {
		seen = []db.Type{db.Integer, db.Integer, db.Integer}
	}
	made := func(k kind) string {
		if t.versions {
			return columns[k].balance + ", version, previous_transfer"
		}
		return columns[k].balance
	}
	read := func(k kind) *db.Statement {
		return d.Write("SELECT ", made(k), " FROM ", t.tables.of(k), " WHERE ", columns[k].id, " = ").Param(db.Integer).End(seen...)
	}
	both := func(k kind) (change, after *db.Statement) {
		switch {
		case !t.versions:
			return update(k).End(), nil
		case d.Returning:
			return update(k).Text(" RETURNING ", made(k)).End(seen...), nil
		}
		return update(k).End(), read(k)
	}
	t.updateAccount, t.readAccount = update(account).End(), read(account)
	t.updateTeller, t.readTeller = both(teller)
	t.updateBranch, t.readBranch = both(branch)
}

// histories makes the statements on the history.
func (t *texts) histories(d *db.Dialect) {
	insert := "INSERT INTO " + t.tables.history
	if !t.versions {
		t.insert = d.Write(insert, " (tid, bid, aid, delta, mtime, filler) VALUES (").
			Params(db.Integer, db.Integer, db.Integer, db.Integer).Text(", CURRENT_TIMESTAMP, ").Param(db.Text).Text(")").End()
		t.postings = &db.Statement{
			SQL:     "SELECT aid, tid, bid, delta, filler FROM " + t.tables.history,
			Columns: []db.Type{db.Integer, db.Integer, db.Integer, db.Integer, db.Text},
		}
		return
	}
	version := func(w *db.StatementWriter, k kind) *db.StatementWriter {
		return w.Text(", (SELECT version FROM ", t.tables.of(k), " WHERE ", columns[k].id, " = ").Param(db.Integer).Text(")")
	}
	w := d.Write(insert, " (transfer, tid, bid, aid, delta, mtime, aversion, tversion, bversion) VALUES (").
		Params(db.Integer, db.Integer, db.Integer, db.Integer, db.Integer).Text(", CURRENT_TIMESTAMP")
	t.insert = version(version(version(w, account), teller), branch).Text(")").End()
	t.tombstone = d.Write(insert, " (transfer) VALUES (").Param(db.Integer).Text(")", d.DoNothing).End()
	t.find = d.Write("SELECT tid FROM ", t.tables.history, " WHERE transfer = ").Param(db.Integer).End(db.Integer)
	t.postings = &db.Statement{
		SQL:     "SELECT aid, tid, bid, delta, transfer, aversion, tversion, bversion FROM " + t.tables.history,
		Columns: []db.Type{db.Integer, db.Integer, db.Integer, db.Integer, db.Integer, db.Integer, db.Integer, db.Integer},
	}
}

// whole makes the statements of the load and of the download.
func (t *texts) whole(d *db.Dialect) {
	all := "SELECT 0"
	for k := branch; k < noKind; k++ {
		c, table := columns[k], t.tables.of(k)
		w := d.Write("INSERT INTO ", table, " (", c.id)
		if c.bid != "" {
			w.Text(", bid")
		}
		w.Text(", ", c.balance, ", filler) VALUES (").Param(db.Integer)
		if c.bid != "" {
			w.Text(", ").Param(db.Integer)
		}
		t.load[k] = w.Text(", 0, ").Param(db.Text).Text(")").End()
		list, types := c.id+", "+c.balance, []db.Type{db.Integer, db.Integer}
		if t.versions {
			list, types = list+", version, last_transfer", append(types, db.Integer, db.Integer)
		}
		t.rows[k] = &db.Statement{SQL: "SELECT " + list + " FROM " + table, Columns: types}
		all += " + (SELECT COUNT(*) FROM " + table + ")"
	}
	t.count = &db.Statement{SQL: all, Columns: []db.Type{db.Integer}}
	t.openings = &db.Statement{SQL: "SELECT place, balance FROM " + tableOpening, Columns: []db.Type{db.Integer, db.Integer}}
	t.bare = d.Write("INSERT INTO ", tableOpening, " (place, balance) VALUES (").Param(db.Integer).Text(", 0)").End()
}

// drops are the statements that remove the tables of this form.
func (t *texts) drops() []string {
	var list []string
	for _, table := range []string{t.tables.history, t.tables.accounts, t.tables.tellers, t.tables.branches} {
		list = append(list, "DROP TABLE IF EXISTS "+table)
	}
	return list
}

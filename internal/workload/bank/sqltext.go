package bank

import (
	"strings"

	"stroppy/internal/db"
)

// The tables of the bank.
const (
	tableAccount = "stroppy_account"
	tableLedger  = "stroppy_ledger"
	tableMeta    = "stroppy_meta"
)

// texts are the SQL of the bank in one dialect, made once.
type texts struct {
	createAccount string // with its primary key
	createKeyless string // without, to be loaded in bulk; the same where a key cannot be added
	primaryKey    string // ALTER TABLE … ADD; empty where a key cannot be added
	createLedger  string
	createMeta    string
	dropAccount   string
	dropLedger    string

	// The parts of a transfer.
	update         *db.Statement // relative, returning what it made if the dialect can
	readBack       *db.Statement // what update made; nil if update returns it
	ledgerRelative *db.Statement // with the account's own version; NULL, and so refused, if there is none
	read           *db.Statement
	readLocking    *db.Statement
	readPair       *db.Statement // two accounts in one statement
	write          *db.Statement // absolute
	ledgerAbsolute *db.Statement

	tombstone *db.Statement
	legsOf    *db.Statement

	// Whole tables.
	readKeys    *db.Statement // auditChunk accounts in one statement
	allAccounts *db.Statement
	inKeyOrder  *db.Statement // the same, sorted
	allLegs     *db.Statement
	countLegs   *db.Statement
	countRows   *db.Statement
	probe       *db.Statement // fails if there is no table of accounts

	insert     *db.Statement // one account
	insertMany *db.Statement // insertRows accounts
	readMeta   *db.Statement
	clearMeta  *db.Statement
	insertMeta *db.Statement
	setMeta    *db.Statement
	casMeta    *db.Statement // sets a value if it is still the one given
}

const (
	// auditChunk is how many accounts a sampled audit reads with one statement.
	auditChunk = 100
	// insertRows is how many accounts one INSERT takes where there is no bulk load.
	insertRows = 100
)

// writer builds one statement: every parameter gets the next placeholder, so
// that one used twice is given twice, as dialects without numbers need it.
type writer struct {
	d    *db.Dialect
	sql  strings.Builder
	args []db.Type
}

func (w *writer) text(parts ...string) *writer {
	for _, p := range parts {
		w.sql.WriteString(p)
	}
	return w
}

func (w *writer) param(t db.Type) *writer {
	w.args = append(w.args, t)
	w.sql.WriteString(w.d.Placeholder(len(w.args)))
	return w
}

// key writes the condition that picks one account.
func (w *writer) key() *writer {
	return w.text("bic = ").param(db.Text).text(" AND ban = ").param(db.Integer)
}

func (w *writer) end(columns ...db.Type) *db.Statement {
	return &db.Statement{SQL: w.sql.String(), Params: w.args, Columns: columns}
}

// The columns that most statements return.
var (
	stateColumns = []db.Type{db.Decimal, db.Integer, db.Integer}
	rowColumns   = []db.Type{db.Text, db.Integer, db.Decimal, db.Integer, db.Integer}
)

const rowList = "bic, ban, balance, version, last_transfer"

func newTexts(d *db.Dialect) *texts {
	t := &texts{}
	t.tables(d)
	t.transfers(d)
	t.ledger(d)
	t.whole(d)
	t.loading(d)
	return t
}

func (t *texts) tables(d *db.Dialect) {
	// The number before the bank: it tells nearly all accounts apart, and whole
	// numbers compare faster than text, in the index and while it is built.
	const key = "PRIMARY KEY (ban, bic)"
	integer, decimal, bic := d.IntegerType, d.DecimalType, d.TextType(bicLength)
	// The columns of one width come first: where a database aligns them, none
	// then pads the next (84 bytes a row were seen, not 92).
	columns := "CREATE TABLE " + tableAccount + " (\n" +
		"\tban " + integer + " NOT NULL,\n" +
		"\tversion " + integer + " DEFAULT 0 NOT NULL,\n" +
		"\tlast_transfer " + integer + " DEFAULT 0 NOT NULL,\n" +
		"\tprevious_transfer " + integer + " DEFAULT 0 NOT NULL,\n" +
		"\tbic " + bic + " NOT NULL,\n" +
		"\tbalance " + decimal + " NOT NULL CHECK (balance >= 0)"
	t.createAccount = columns + ",\n\t" + key + "\n)" + d.TableOptions
	t.createKeyless = t.createAccount
	if d.AddConstraint {
		t.createKeyless = columns + "\n)" + d.TableOptions
		t.primaryKey = "ALTER TABLE " + tableAccount + " ADD " + key
	}
	t.createLedger = "CREATE TABLE " + tableLedger + " (\n" +
		"\ttransfer " + integer + " NOT NULL,\n" +
		"\tleg " + integer + " NOT NULL,\n" +
		"\tversion " + integer + " NOT NULL,\n" +
		"\tban " + integer + ",\n" +
		"\tbic " + bic + ",\n" +
		"\tamount " + decimal + " NOT NULL,\n" +
		"\tPRIMARY KEY (transfer, leg),\n" +
		"\tFOREIGN KEY (ban, bic) REFERENCES " + tableAccount + " (ban, bic)\n)" + d.TableOptions
	t.createMeta = "CREATE TABLE IF NOT EXISTS " + tableMeta + " (\n" +
		"\tname " + d.TextType(16) + " NOT NULL PRIMARY KEY,\n" +
		"\tvalue " + d.TextType(32) + " NOT NULL\n)" + d.TableOptions
	t.dropAccount = "DROP TABLE IF EXISTS " + tableAccount
	t.dropLedger = "DROP TABLE IF EXISTS " + tableLedger
}

func (t *texts) transfers(d *db.Dialect) {
	start := func() *writer { return &writer{d: d} }

	w := start().text("UPDATE ", tableAccount, " SET balance = balance + ").param(db.Decimal).
		text(", version = version + 1, previous_transfer = last_transfer, last_transfer = ").param(db.Integer).
		text(" WHERE ").key()
	if d.Returning {
		t.update = w.text(" RETURNING balance, version, previous_transfer").end(stateColumns...)
	} else {
		t.update = w.end()
		t.readBack = start().text("SELECT balance, version, previous_transfer FROM ", tableAccount, " WHERE ").
			key().end(stateColumns...)
	}

	into := "INSERT INTO " + tableLedger + " (transfer, leg, bic, ban, amount, version) VALUES ("
	row := func() *writer {
		return start().text(into).param(db.Integer).text(", ").param(db.Integer).text(", ").
			param(db.Text).text(", ").param(db.Integer).text(", ").param(db.Decimal).text(", ")
	}
	t.ledgerRelative = row().text("(SELECT version FROM ", tableAccount, " WHERE ").key().text("))").end()
	t.ledgerAbsolute = row().param(db.Integer).text(")").end()

	state := "SELECT balance, version, last_transfer FROM " + tableAccount + " WHERE "
	t.read = start().text(state).key().end(stateColumns...)
	t.readLocking = start().text(state).key().text(d.ForUpdate).end(stateColumns...)
	t.readPair = t.keys(d, 2)
	t.write = start().text("UPDATE ", tableAccount, " SET balance = ").param(db.Decimal).
		text(", version = ").param(db.Integer).text(", previous_transfer = ").param(db.Integer).
		text(", last_transfer = ").param(db.Integer).text(" WHERE ").key().end()
}

// keys reads n accounts by their keys in one statement.
func (t *texts) keys(d *db.Dialect, n int) *db.Statement {
	w := (&writer{d: d}).text("SELECT ", rowList, " FROM ", tableAccount, " WHERE ")
	for i := range n {
		if i > 0 {
			w.text(" OR ")
		}
		w.text("(").key().text(")")
	}
	return w.end(rowColumns...)
}

func (t *texts) ledger(d *db.Dialect) {
	t.tombstone = (&writer{d: d}).text("INSERT INTO ", tableLedger,
		" (transfer, leg, bic, ban, amount, version) VALUES (").param(db.Integer).
		text(", 0, NULL, NULL, 0, 0)", d.DoNothing).end()
	t.legsOf = (&writer{d: d}).text("SELECT leg, bic FROM ", tableLedger, " WHERE transfer = ").
		param(db.Integer).end(db.Integer, db.Text)
}

func (t *texts) whole(d *db.Dialect) {
	all := "SELECT " + rowList + " FROM " + tableAccount
	t.readKeys = t.keys(d, auditChunk)
	t.allAccounts = &db.Statement{SQL: all, Columns: rowColumns}
	t.inKeyOrder = &db.Statement{SQL: all + " ORDER BY ban, bic", Columns: rowColumns}
	t.allLegs = &db.Statement{
		SQL:     "SELECT transfer, leg, bic, ban, amount, version FROM " + tableLedger,
		Columns: []db.Type{db.Integer, db.Integer, db.Text, db.Integer, db.Decimal, db.Integer},
	}
	t.countLegs = &db.Statement{SQL: "SELECT COUNT(*) FROM " + tableLedger, Columns: []db.Type{db.Integer}}
	t.countRows = &db.Statement{SQL: "SELECT COUNT(*) FROM " + tableAccount, Columns: []db.Type{db.Integer}}
	t.probe = &db.Statement{SQL: "SELECT COUNT(*) FROM " + tableAccount + " WHERE 1 = 0", Columns: []db.Type{db.Integer}}
}

func (t *texts) loading(d *db.Dialect) {
	start := func() *writer { return &writer{d: d} }
	rows := func(n int) *db.Statement {
		w := start().text("INSERT INTO ", tableAccount, " (bic, ban, balance) VALUES ")
		for i := range n {
			if i > 0 {
				w.text(", ")
			}
			w.text("(").param(db.Text).text(", ").param(db.Integer).text(", ").param(db.Decimal).text(")")
		}
		return w.end()
	}
	t.insert, t.insertMany = rows(1), rows(insertRows)
	t.readMeta = start().text("SELECT name, value FROM ", tableMeta).end(db.Text, db.Text)
	t.clearMeta = start().text("DELETE FROM ", tableMeta).end()
	t.insertMeta = start().text("INSERT INTO ", tableMeta, " (name, value) VALUES (").
		param(db.Text).text(", ").param(db.Text).text(")").end()
	set := func() *writer {
		return start().text("UPDATE ", tableMeta, " SET value = ").param(db.Text).
			text(" WHERE name = ").param(db.Text)
	}
	t.setMeta = set().end()
	t.casMeta = set().text(" AND value = ").param(db.Text).end()
}

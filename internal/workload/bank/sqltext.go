package bank

import (
	"strings"

	"stroppy/internal/db"
	"stroppy/internal/workload/dataset"
)

// The tables of the bank.
const (
	tableAccount = "stroppy_account"
	tableLedger  = "stroppy_ledger"
)

// texts are the SQL of the bank in one dialect, made once.
type texts struct {
	createAccount string   // with its primary key
	createBare    string   // as it is loaded in bulk: without what completes adds
	completes     []string // ALTER TABLE … ADD what the database can add to a filled table
	createLedger  string
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

	insert dataset.Insert // accounts
}

const (
	// auditChunk is how many accounts a sampled audit reads with one statement.
	auditChunk = 100
	// insertRows is how many accounts one INSERT takes where there is no bulk load.
	insertRows = 100
)

// key writes the condition that picks one account.
func key(w *db.StatementWriter) *db.StatementWriter {
	return w.Text("bic = ").Param(db.Text).Text(" AND ban = ").Param(db.Integer)
}

// The columns that most statements return.
var (
	stateColumns = []db.Type{db.Decimal, db.Integer, db.Integer}
	rowColumns   = []db.Type{db.Text, db.Integer, db.Decimal, db.Integer, db.Integer}
)

// accountColumns are those that a load fills in.
func accountColumns() []string { return []string{"bic", "ban", "balance"} }

func accountTypes() []db.Type { return []db.Type{db.Text, db.Integer, db.Decimal} }

const rowList = "bic, ban, balance, version, last_transfer"

func newTexts(d *db.Dialect) *texts {
	t := &texts{}
	t.tables(d)
	t.transfers(d)
	t.ledger(d)
	t.whole(d)
	t.insert = dataset.NewInsert(d, tableAccount, strings.Join(accountColumns(), ", "), accountTypes(), insertRows)
	return t
}

func (t *texts) tables(d *db.Dialect) {
	// The number before the bank: it tells nearly all accounts apart, and whole
	// numbers compare faster than text, in the index and while it is built.
	const key = "PRIMARY KEY (ban, bic)"
	integer, decimal, bic := d.IntegerType, d.DecimalType, d.TextType(bicLength)
	// The columns of one width come last, so that none of them pads the next where a
	// database aligns them. They are the ones that a load leaves at their defaults.
	start := "CREATE TABLE " + tableAccount + " (\n" +
		"\tban " + integer + " NOT NULL,\n" +
		"\tbic " + bic + " NOT NULL,\n" +
		"\tbalance " + decimal + " NOT NULL CHECK (balance >= 0)"
	add, bare := "", start
	for _, name := range []string{"version", "last_transfer", "previous_transfer"} {
		column := name + " " + integer + " DEFAULT 0 NOT NULL"
		start += ",\n\t" + column
		add += ", ADD " + column
	}
	t.createAccount = start + ",\n\t" + key + "\n)" + d.TableOptions
	alter := "ALTER TABLE " + tableAccount
	switch {
	case d.AddConstraint && d.AddColumn:
		t.createBare = bare + "\n)" + d.TableOptions
		t.completes = []string{alter + " ADD " + key, alter + add[1:]}
	case d.AddConstraint:
		t.createBare = start + "\n)" + d.TableOptions
		t.completes = []string{alter + " ADD " + key}
	default:
		t.createBare = t.createAccount
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
	t.dropAccount = "DROP TABLE IF EXISTS " + tableAccount
	t.dropLedger = "DROP TABLE IF EXISTS " + tableLedger
}

func (t *texts) transfers(d *db.Dialect) {
	w := d.Write("UPDATE ", tableAccount, " SET balance = balance + ").Param(db.Decimal).
		Text(", version = version + 1, previous_transfer = last_transfer, last_transfer = ").Param(db.Integer).
		Text(" WHERE ")
	if key(w); d.Returning {
		t.update = w.Text(" RETURNING balance, version, previous_transfer").End(stateColumns...)
	} else {
		t.update = w.End()
		t.readBack = key(d.Write("SELECT balance, version, previous_transfer FROM ", tableAccount, " WHERE ")).End(stateColumns...)
	}

	row := func() *db.StatementWriter {
		return d.Write("INSERT INTO ", tableLedger, " (transfer, leg, bic, ban, amount, version) VALUES (").
			Params(db.Integer, db.Integer, db.Text, db.Integer, db.Decimal).Text(", ")
	}
	t.ledgerRelative = key(row().Text("(SELECT version FROM ", tableAccount, " WHERE ")).Text("))").End()
	t.ledgerAbsolute = row().Param(db.Integer).Text(")").End()

	state := "SELECT balance, version, last_transfer FROM " + tableAccount + " WHERE "
	t.read = key(d.Write(state)).End(stateColumns...)
	t.readLocking = key(d.Write(state)).Text(d.ForUpdate).End(stateColumns...)
	t.readPair = t.keys(d, 2)
	t.write = key(d.Write("UPDATE ", tableAccount, " SET balance = ").Param(db.Decimal).
		Text(", version = ").Param(db.Integer).Text(", previous_transfer = ").Param(db.Integer).
		Text(", last_transfer = ").Param(db.Integer).Text(" WHERE ")).End()
}

// keys reads n accounts by their keys in one statement.
func (t *texts) keys(d *db.Dialect, n int) *db.Statement {
	w := d.Write("SELECT ", rowList, " FROM ", tableAccount, " WHERE ")
	for i := range n {
		if i > 0 {
			w.Text(" OR ")
		}
		key(w.Text("(")).Text(")")
	}
	return w.End(rowColumns...)
}

func (t *texts) ledger(d *db.Dialect) {
	t.tombstone = d.Write("INSERT INTO ", tableLedger,
		" (transfer, leg, bic, ban, amount, version) VALUES (").Param(db.Integer).
		Text(", 0, NULL, NULL, 0, 0)", d.DoNothing).End()
	t.legsOf = d.Write("SELECT leg, bic FROM ", tableLedger, " WHERE transfer = ").
		Param(db.Integer).End(db.Integer, db.Text)
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
	t.countLegs = dataset.CountRows(tableLedger)
}

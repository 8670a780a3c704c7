package bank

import (
	"strings"

	"stroppy/internal/db"
)

// The tables of the bank.
const (
	tableAccount = "stroppy_account"
	tableLedger  = "stroppy_ledger"
)

// texts holds the SQL of the bank in one dialect, made once.
type texts struct {
	createBare string   // the accounts as they are loaded: without what completes adds
	completes  []string // ALTER TABLE … ADD what the database can add to a filled table
	createLast []string // the ledger and, of a bank with openings, indexes

	openings openingTexts

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
}

// auditChunk is the number of accounts that a sampled audit reads with one statement.
const auditChunk = 100

// The columns that most statements return.
var (
	stateColumns = []db.Type{db.Decimal, db.Integer, db.Integer}
	rowColumns   = []db.Type{db.Text, db.Integer, db.Decimal, db.Integer, db.Integer}
)

// The parts that statements have in common.
const (
	byKey    = " WHERE bic = {text} AND ban = {integer}"
	allRows  = "SELECT bic, ban, balance, version, last_transfer FROM " + tableAccount
	oneState = "SELECT balance, version, last_transfer FROM " + tableAccount + byKey
	made     = "balance, version, previous_transfer"
	newLeg   = "INSERT INTO " + tableLedger + " (transfer, leg, bic, ban, amount, version) VALUES ({integer}, "
	legOfKey = newLeg + "{integer}, {text}, {integer}, {decimal}, "
)

// newTexts makes the statements; past stands behind the table that a whole audit reads.
// With openings clients open and close accounts, with low they read by balance.
func newTexts(d *db.Dialect, past string, openings, low bool) *texts {
	t := &texts{
		ledgerRelative: d.Statement(legOfKey + "(SELECT version FROM " + tableAccount + byKey + "))"),
		ledgerAbsolute: d.Statement(legOfKey + "{integer})"),
		read:           d.Statement(oneState, stateColumns...),
		readLocking:    d.Statement(oneState+d.ForUpdate, stateColumns...),
		readPair:       readAccounts(d, 2),
		write: d.Statement("UPDATE " + tableAccount + " SET balance = {decimal}, version = {integer}," +
			" previous_transfer = {integer}, last_transfer = {integer}" + byKey),

		tombstone: d.Statement(newLeg + "0, NULL, NULL, 0, 0)" + d.DoNothing),
		legsOf:    d.Statement("SELECT leg, bic FROM "+tableLedger+" WHERE transfer = {integer}", db.Integer, db.Text),

		readKeys:    readAccounts(d, auditChunk),
		allAccounts: d.Statement(allRows, rowColumns...),
		inKeyOrder:  d.Statement(allRows+past+" ORDER BY ban, bic", rowColumns...),
		allLegs: d.Statement("SELECT transfer, leg, bic, ban, amount, version FROM "+tableLedger,
			db.Integer, db.Integer, db.Text, db.Integer, db.Decimal, db.Integer),
	}
	update := "UPDATE " + tableAccount + " SET balance = balance + {decimal}, version = version + 1," +
		" previous_transfer = last_transfer, last_transfer = {integer}" + byKey
	if d.Returning {
		t.update = d.Statement(update+" RETURNING "+made, stateColumns...)
	} else {
		t.update = d.Statement(update)
		t.readBack = d.Statement("SELECT "+made+" FROM "+tableAccount+byKey, stateColumns...)
	}
	if openings {
		t.openings = newOpeningTexts(d)
	}
	t.tables(d, openings, low)
	return t
}

// readAccounts reads n accounts by their keys in one statement.
func readAccounts(d *db.Dialect, n int) *db.Statement {
	const one = "(bic = {text} AND ban = {integer})"
	return d.Statement(allRows+" WHERE "+one+strings.Repeat(" OR "+one, n-1), rowColumns...)
}

func (t *texts) tables(d *db.Dialect, openings, low bool) {
	types := strings.NewReplacer("INTEGER_TYPE", d.IntegerType, "DECIMAL_TYPE", d.DecimalType, "BIC_TYPE", d.TextType(bicLength))
	table := func(name string, lines ...string) string {
		return types.Replace(d.CreateTable(name, lines...))
	}
	// The number before the bank: it distinguishes nearly all accounts, and whole
	// numbers compare faster than text, in the index and while it is built.
	const key = "PRIMARY KEY (ban, bic)"
	loaded := []string{"ban INTEGER_TYPE NOT NULL", "bic BIC_TYPE NOT NULL", "balance DECIMAL_TYPE NOT NULL CHECK (balance >= 0)"}
	// The columns of one width come last, so that none of them pads the next where a
	// database aligns them. They are the ones that a load leaves at their defaults.
	const starting = " INTEGER_TYPE DEFAULT 0 NOT NULL"
	later := []string{"version" + starting, "last_transfer" + starting, "previous_transfer" + starting}
	columns := append(loaded, later...)
	alter := "ALTER TABLE " + tableAccount + " ADD "
	switch {
	case d.AddConstraint && d.AddColumn:
		t.createBare = table(tableAccount, loaded...)
		t.completes = []string{alter + key, types.Replace(alter + strings.Join(later, ", ADD "))}
	case d.AddConstraint:
		t.createBare = table(tableAccount, columns...)
		t.completes = []string{alter + key}
	default:
		t.createBare = table(tableAccount, append(columns, key)...)
	}
	ledger := []string{
		"transfer INTEGER_TYPE NOT NULL", "leg INTEGER_TYPE NOT NULL", "version INTEGER_TYPE NOT NULL",
		"ban INTEGER_TYPE", "bic BIC_TYPE", "amount DECIMAL_TYPE NOT NULL",
		"PRIMARY KEY (transfer, leg)",
	}
	if openings {
		t.createLast = []string{table(tableLedger, ledger...), indexByCode}
		if low {
			t.createLast = append(t.createLast, indexByBalance)
		}
		return
	}
	t.createLast = []string{table(tableLedger, append(ledger, "FOREIGN KEY (ban, bic) REFERENCES "+tableAccount+" (ban, bic)")...)}
}

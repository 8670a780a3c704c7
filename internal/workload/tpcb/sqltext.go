package tpcb

import (
	"cmp"
	"embed"
	"fmt"
	"math"
	"slices"
	"strings"

	"stroppy/internal/db"
	"stroppy/internal/workload/dataset"
)

// Before the names of the tables: pgbench's own, and ours whose rows have versions.
const (
	plainPrefix     = "pgbench_"
	versionedPrefix = "stroppy_tpcb_"
)

// tableOpening holds the balances before the first run that the history does not explain. Each run that kept no
// history also has a row there, whose place is its negative number.
const tableOpening = "stroppy_tpcb_opening"

// texts are the SQL of one form of the data in one dialect, made once.
type texts struct {
	dialect  *db.Dialect
	versions bool
	of       [noKind]tableTexts

	history   string // the table
	insert    *db.Statement
	postings  *db.Statement
	tombstone *db.Statement // with versions
	find      *db.Statement // with versions: teller ids under an id of the history; NULL is a tombstone

	openings *db.Statement
	bare     *db.Statement // marks a run that keeps no history
}

// tableTexts holds the texts of one of the three tables.
type tableTexts struct {
	name         string
	update, read *db.Statement // of a transaction; read is nil where it needs none
	rows         *db.Statement // id, balance and, with versions, version and last transaction
}

// columns of the three tables: the id, the branch where there is one, the balance,
// and the width of what fills the row up to 100 bytes (TPC-B, clause 3.2).
var columns = [noKind]struct {
	table, id, bid, balance string
	filler                  int
}{
	branch:  {"branches", "bid", "", "bbalance", 88},
	teller:  {"tellers", "tid", "bid", "tbalance", 84},
	account: {"accounts", "aid", "bid", "abalance", 84},
}

// newTexts makes the statements; if counted is set, each shows whether it has found its row.
func newTexts(d *db.Dialect, versions, counted bool) *texts {
	prefix := plainPrefix
	if versions {
		prefix = versionedPrefix
	}
	t := &texts{
		dialect: d, versions: versions, history: prefix + "history",
		openings: d.Statement("SELECT place, balance FROM "+tableOpening, db.Integer, db.Integer),
		bare:     d.Statement("INSERT INTO " + tableOpening + " (place, balance) VALUES ({integer}, 0)"),
	}
	for k := branch; k < noKind; k++ {
		t.of[k] = t.table(k, prefix+columns[k].table, counted)
	}
	t.histories()
	return t
}

// table makes pgbench's statements of one table; with versions each also counts the
// transactions of its row.
func (t *texts) table(k kind, name string, counted bool) tableTexts {
	c, d := columns[k], t.dialect
	made, kept := []string{c.balance}, []string{c.id, c.balance}
	update := fmt.Sprintf("UPDATE %s SET %s = %s + {integer}", name, c.balance, c.balance)
	if t.versions {
		made, kept = append(made, "version", "previous_transfer"), append(kept, "version", "last_transfer")
		update += ", version = version + 1, previous_transfer = last_transfer, last_transfer = {integer}"
	}
	list := func(names []string) string { return strings.Join(names, ", ") }
	types := func(names []string) []db.Type { // all of them are whole numbers
		return []db.Type{db.Integer, db.Integer, db.Integer, db.Integer}[:len(names)]
	}
	byID := " WHERE " + c.id + " = {integer}"
	texts := tableTexts{
		name:   name,
		update: d.Statement(update + byID),
		read:   d.Statement("SELECT "+list(made)+" FROM "+name+byID, types(made)...),
		rows:   d.Statement("SELECT "+list(kept)+" FROM "+name, types(kept)...),
	}
	switch {
	case k == account:
	case !t.versions:
		texts.read = nil
		if counted {
			texts.update = d.Counted(update + byID)
		}
	case d.Returning:
		texts.update, texts.read = d.Statement(update+byID+" RETURNING "+list(made), types(made)...), nil
	}
	return texts
}

func (t *texts) histories() {
	const integer = db.Integer
	d, insert, from := t.dialect, "INSERT INTO "+t.history, " FROM "+t.history
	if !t.versions {
		t.insert = d.Statement(insert + " (tid, bid, aid, delta, mtime, filler) VALUES" +
			" ({integer}, {integer}, {integer}, {integer}, CURRENT_TIMESTAMP, {text})")
		t.postings = d.Statement("SELECT aid, tid, bid, delta, filler"+from, integer, integer, integer, integer, db.Text)
		return
	}
	versions := ""
	for _, k := range []kind{account, teller, branch} {
		versions += ", (SELECT version FROM " + t.of[k].name + " WHERE " + columns[k].id + " = {integer})"
	}
	t.insert = d.Statement(insert + " (transfer, tid, bid, aid, delta, mtime, aversion, tversion, bversion) VALUES" +
		" ({integer}, {integer}, {integer}, {integer}, {integer}, CURRENT_TIMESTAMP" + versions + ")")
	t.tombstone = d.Statement(insert + " (transfer) VALUES ({integer})" + d.DoNothing)
	t.find = d.Statement("SELECT tid"+from+" WHERE transfer = {integer}", integer)
	t.postings = d.Statement("SELECT aid, tid, bid, delta, transfer, aversion, tversion, bversion"+from,
		integer, integer, integer, integer, integer, integer, integer, integer)
}

// smallInteger is a signed integer of four bytes in every dialect.
const smallInteger = "INTEGER"

// historyFiller is the width of the history's filler.
const historyFiller = 22

// accountID is the type of the ids of so many accounts, as pgbench chooses it.
func (t *texts) accountID(accounts uint64) string {
	if accounts > math.MaxInt32 {
		return t.dialect.IntegerType
	}
	return smallInteger
}

func (t *texts) fixed(length int) string {
	if t.dialect.CharType != nil {
		return t.dialect.CharType(length)
	}
	return fmt.Sprintf("CHAR(%d)", length)
}

// started are columns of numbers that begin with 0.
func (t *texts) started(names ...string) (list []string) {
	for _, name := range names {
		list = append(list, name+" "+t.dialect.IntegerType+" DEFAULT 0 NOT NULL")
	}
	return list
}

// create makes one of the three tables for data of a size: with its primary key, unless
// addKey adds it.
func (t *texts) create(k kind, s size) string {
	c, integer, key := columns[k], smallInteger, ""
	if k == account {
		integer = t.accountID(s[account])
	}
	if t.addKey(k) == nil {
		key = " PRIMARY KEY"
	}
	list := []string{c.id + " " + integer + " NOT NULL" + key}
	if c.bid != "" {
		list = append(list, c.bid+" "+smallInteger)
	}
	list = append(list, c.balance+" "+smallInteger)
	if t.versions {
		list = append(list, t.started("version", "last_transfer", "previous_transfer")...)
	}
	return t.dialect.CreateTable(t.of[k].name, append(list, "filler "+t.fixed(c.filler))...)
}

// addKey adds the primary key after the load; nil where a key cannot be added.
func (t *texts) addKey(k kind) []string {
	if !t.dialect.AddConstraint {
		return nil
	}
	return []string{"ALTER TABLE " + t.of[k].name + " ADD PRIMARY KEY (" + columns[k].id + ")"}
}

func (t *texts) createHistory(s size) string {
	list := []string{
		"tid " + smallInteger, "bid " + smallInteger, "aid " + t.accountID(s[account]), "delta " + smallInteger,
		"mtime " + cmp.Or(t.dialect.TimestampType, "TIMESTAMP") + " NULL",
	}
	if !t.versions {
		if key := t.dialect.KeyColumn; key != "" { // pgbench's history has none
			list = append([]string{key}, list...)
		}
		return t.dialect.CreateTable(t.history, append(list, "filler "+t.fixed(historyFiller))...)
	}
	list = append([]string{"transfer " + t.dialect.IntegerType + " NOT NULL PRIMARY KEY"}, list...)
	return t.dialect.CreateTable(t.history, append(list, t.started("aversion", "tversion", "bversion")...)...)
}

// createOpening makes the table of the openings, if it is not there.
func (t *texts) createOpening() string {
	integer := t.dialect.IntegerType
	return t.dialect.CreateTable("IF NOT EXISTS "+tableOpening,
		"place "+integer+" NOT NULL PRIMARY KEY", "balance "+integer+" NOT NULL")
}

// tables returns the tables of this form, in the order in which they are removed.
func (t *texts) tables() []string {
	return []string{t.history, t.of[account].name, t.of[teller].name, t.of[branch].name}
}

// listings are the tables as a census reads them.
func (t *texts) listings() (list []dataset.Listing) {
	for k := branch; k < noKind; k++ {
		l := dataset.Listing{Table: t.of[k].name, Columns: []string{columns[k].id, columns[k].balance}, Key: columns[k].id}
		if t.versions {
			l.Columns = append(l.Columns, "version", "last_transfer")
		}
		l.Types = slices.Repeat([]db.Type{db.Integer}, len(l.Columns))
		list = append(list, l)
	}
	posting := dataset.Listing{Table: t.history, Columns: []string{"tid", "bid", "aid", columnDelta, "filler"}}
	posting.Types = []db.Type{db.Integer, db.Integer, db.Integer, db.Integer, db.Text}
	if t.versions {
		posting.Key, posting.Columns[4], posting.Types[4] = "transfer DESC", "transfer", db.Integer
	}
	return append(list, posting, dataset.Listing{
		Table: tableOpening, Columns: []string{"place", columnBalance, columnBare}, Types: slices.Repeat([]db.Type{db.Integer}, 3), Key: "place", Optional: true,
	})
}

//go:embed profile.*.sql
var profileTexts embed.FS

// newProcedure returns the procedure that is the transaction, with its row of the
// history or without.
func newProcedure(d *db.Dialect, keeps bool) *db.Procedure {
	variant := ""
	if keeps {
		variant = "history"
	}
	return db.ReadProcedure(profileTexts, "profile", "stroppy_tpcb", d, variant,
		[]db.Type{db.Integer, db.Integer, db.Integer, db.Integer, db.Text}, []db.Type{db.Integer})
}

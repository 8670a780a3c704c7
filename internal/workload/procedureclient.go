package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
)

// StateTables are the tables of objects that transactions add amounts to, and their ledger,
// in a database of procedures alone. An object's key is a number and a text. The number
// parts both tables among the partitions, so that a leg of the ledger is made where the
// version is that it keeps.
//
// A procedure without Java has no conditions, so a rule that is broken is something that
// cannot be computed, which ends the transaction: a sum out of range where an account has
// too little, a division by the rows that were found where there are none.
type StateTables struct {
	Objects, Number, Text string // the table, and the columns of its key
	Ledger                string // the table; empty: none is kept
	Amount                db.Type
	NonNegative           bool // no balance may be below zero
}

// textLength is that of the texts in keys.
const textLength = 16

var amountTypes = map[db.Type]string{db.Integer: "BIGINT", db.Decimal: "DECIMAL"}

// ObjectColumns are the columns of the objects' table.
func (t *StateTables) ObjectColumns() string {
	return fmt.Sprintf("%s BIGINT NOT NULL, %s VARCHAR(%d BYTES) NOT NULL, balance %s NOT NULL,"+
		" version BIGINT DEFAULT 0 NOT NULL, last_transfer BIGINT DEFAULT 0 NOT NULL, PRIMARY KEY (%[1]s, %[2]s)",
		t.Number, t.Text, textLength, amountTypes[t.Amount])
}

// LedgerColumns are the columns of the ledger. A tombstone has no text, and takes the key
// of the transaction's first leg.
func (t *StateTables) LedgerColumns() string {
	return fmt.Sprintf("%s BIGINT NOT NULL, transfer BIGINT NOT NULL, leg BIGINT NOT NULL, %s VARCHAR(%d BYTES),"+
		" amount %s NOT NULL, version BIGINT NOT NULL, PRIMARY KEY (%[1]s, transfer, leg)",
		t.Number, t.Text, textLength, amountTypes[t.Amount])
}

// StateProcedures are the procedures of the clients of StateTables.
type StateProcedures struct {
	*StateTables
	insert          *db.Procedure
	tombstone, find *db.Procedure // nil without a ledger
	transactions    map[shape]*db.Procedure
}

// shape is what a transaction consists of.
type shape struct {
	legs, reads int
	floor       bool // the first leg and what is read must keep so much together
}

// NewStateProcedures makes procedures for transactions of so many legs, for one of a leg
// that is allowed by a rule over two objects, and for one that reads two.
func NewStateProcedures(t *StateTables, legs ...int) *StateProcedures {
	p := &StateProcedures{StateTables: t, transactions: map[shape]*db.Procedure{}}
	key := []db.Type{db.Integer, db.Text}
	p.insert = p.new("insert", append(key, t.Amount), nil, t.Objects,
		fmt.Sprintf("INSERT INTO %s (%s, %s, balance) VALUES (?, ?, ?)", t.Objects, t.Number, t.Text))
	for _, n := range legs {
		p.add(shape{legs: n})
	}
	if t.NonNegative {
		p.add(shape{legs: 2, reads: 1, floor: true})
		p.add(shape{reads: 2})
	}
	if t.Ledger == "" {
		return p
	}
	id := []db.Type{db.Integer, db.Integer}
	p.tombstone = p.new("tombstone", id, nil, t.Ledger,
		fmt.Sprintf("INSERT INTO %s (%s, transfer, leg, amount, version) VALUES (?, ?, 0, 0, 0)", t.Ledger, t.Number))
	p.find = p.new("find", id, id, t.Ledger,
		fmt.Sprintf("SELECT COUNT(*), COUNT(%s) FROM %s WHERE %s = ? AND transfer = ?", t.Text, t.Ledger, t.Number))
	return p
}

// new makes a procedure of one partition, that of its first argument in the table, or of
// all where there is no table.
func (p *StateProcedures) new(name string, params, columns []db.Type, table, body string) *db.Procedure {
	if table != "" {
		table += " COLUMN " + p.Number
	}
	return NewProcedure(p.Objects+"_"+name, params, columns, table, body)
}

// NewProcedure makes a procedure of statements, whose parameters come one after the other.
// It runs in the one partition of its first argument as the value of a column, TABLE COLUMN
// NAME, or of another argument with PARAMETER n behind it; in all where partition is empty.
func NewProcedure(prefix string, params, columns []db.Type, partition, body string) *db.Procedure {
	text := "CREATE PROCEDURE PROCEDURE_NAME"
	if partition != "" {
		text += " PARTITION ON TABLE " + partition
	}
	return db.NewProcedure(prefix, params, columns, map[db.Language]string{db.VoltSQL: text + " AS " + body})
}

// rule is a column that cannot be computed where a condition is broken.
func rule(broken string) string {
	return "9223372036854775807 + CASE WHEN " + broken + " THEN 1 ELSE 0 END"
}

// add makes the procedure of transactions of a shape. It returns a row for each leg and
// each read, in this order: balance, version and last transfer as they were before.
func (p *StateProcedures) add(s shape) {
	amount := amountTypes[p.Amount]
	amountOf := "CAST(? AS " + amount + ")"
	one := fmt.Sprintf("%s = ? AND %s = ?", p.Number, p.Text)
	seen := fmt.Sprintf("SELECT MAX(balance), MAX(version), MAX(last_transfer), 1 / COUNT(*), %%s FROM %s WHERE ", p.Objects)
	key := []db.Type{db.Integer, db.Text}
	var body []string
	var params []db.Type
	statement := func(text string, types ...[]db.Type) {
		body = append(body, text)
		for _, t := range types {
			params = append(params, t...)
		}
	}
	just := []db.Type{p.Amount}
	for i := range s.legs + s.reads {
		if i < s.legs && p.NonNegative {
			statement(fmt.Sprintf(seen, rule("MAX(balance) + "+amountOf+" < 0"))+one, just, key)
		} else {
			statement(fmt.Sprintf(seen, "0")+one, key)
		}
	}
	if s.floor {
		statement(fmt.Sprintf("SELECT SUM(balance), 0, 0, 0, %s FROM %s WHERE (%s) OR (%s)",
			rule("SUM(balance) + "+amountOf+" < "+amountOf), p.Objects, one, one), just, just, key, key)
	}
	for leg := range s.legs {
		statement(fmt.Sprintf("UPDATE %s SET balance = balance + %s, version = version + 1, last_transfer = ? WHERE ", p.Objects, amountOf)+one,
			just, []db.Type{db.Integer}, key)
		if p.Ledger != "" {
			statement(fmt.Sprintf("INSERT INTO %s (%s, transfer, leg, %s, amount, version) SELECT %[2]s, CAST(? AS BIGINT), %[4]d, %[3]s, %[5]s, version FROM %[6]s WHERE ",
				p.Ledger, p.Number, p.Text, leg, amountOf, p.Objects)+one, []db.Type{db.Integer}, just, key)
		}
	}
	columns := []db.Type{p.Amount, db.Integer, db.Integer, db.Integer, db.Integer}
	p.transactions[s] = p.new(fmt.Sprintf("transact_%d_%d", s.legs, s.reads), params, columns, "", "BEGIN "+strings.Join(body, "; ")+"; END")
}

// All are all procedures.
func (p *StateProcedures) All() []*db.Procedure {
	list := []*db.Procedure{p.insert}
	for _, t := range p.transactions {
		list = append(list, t)
	}
	if p.tombstone != nil {
		list = append(list, p.tombstone, p.find)
	}
	return list
}

// Insert is what a load calls with an object's key and its balance.
func (p *StateProcedures) Insert() *db.Procedure { return p.insert }

// ProcedureLogic is what a workload's transactions are on StateTables.
type ProcedureLogic interface {
	Next(tx *history.Transaction)
	// ObjectKey returns an object's key, whose text is appended to dst.
	ObjectKey(dst []byte, object uint64) (number int64, text []byte)
	// Floor is what the first leg's object and the one that is read must keep together;
	// false if there is no such rule for a transaction.
	Floor(tx *history.Transaction) (least int64, ruled bool)
}

// ProcedureClient runs one client's transactions on a session of its own, each as one call.
type ProcedureClient struct {
	ProcedureLogic
	db.ProcedureSession
	procedures *StateProcedures
	rules      Rules

	keys  []objectKey // of the operations
	order []int       // the operations in the order of the procedure
	args  []db.Value
}

type objectKey struct {
	number int64
	text   []byte
	room   [textLength]byte
}

// NewProcedureClient returns the client of a session.
func NewProcedureClient(s db.ProcedureSession, logic ProcedureLogic, procedures *StateProcedures, rules Rules) *ProcedureClient {
	return &ProcedureClient{ProcedureSession: s, ProcedureLogic: logic, procedures: procedures, rules: rules}
}

// Attempt implements load.Client.
func (c *ProcedureClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	Forget(tx)
	err := c.attempt(ctx, tx)
	if db.ConstraintOf(err) == db.UniqueKey {
		// Only the ledger's key can be there already: the transfer is applied, or a
		// look-up has closed its id.
		err = load.ErrAlreadyApplied
	}
	return Ended(tx, err, c.rules)
}

// errAnswer says that a procedure returned something else than it is made to.
var errAnswer = &db.Error{
	Class: db.Unknown, Op: "call the stored procedure of the transaction",
	Err: errors.New("its answer is not one row an object: another program has replaced it"),
}

func (c *ProcedureClient) attempt(ctx context.Context, tx *history.Transaction) error {
	s := c.arrange(tx)
	procedure := c.procedures.transactions[s]
	if procedure == nil {
		return db.Fatalf("call a stored procedure", "there is none for a transaction of %d legs and %d reads", s.legs, s.reads)
	}
	r, err := c.Call(ctx, procedure, c.arguments(tx, s))
	if err != nil {
		return err
	}
	if r.Rows() < len(tx.Ops) || r.Columns < 3 {
		return errAnswer
	}
	for at, i := range c.order {
		row := r.Row(at)
		Observe(&tx.Ops[i], row[0].Int, row[1].Int, row[2].Int)
	}
	Decide(tx, 0)
	return nil
}

// arrange puts the legs before the reads, and the payer before the other legs where there
// is a rule, and finds the keys of all.
func (c *ProcedureClient) arrange(tx *history.Transaction) (s shape) {
	for len(c.keys) < len(tx.Ops) {
		c.keys = append(c.keys, objectKey{})
	}
	c.order = c.order[:0]
	for i := range tx.Ops {
		k := &c.keys[i]
		k.number, k.text = c.ObjectKey(k.room[:0], tx.Ops[i].Object)
		if tx.Ops[i].Write {
			c.order = append(c.order, i)
		}
	}
	s.legs = len(c.order)
	for i := range tx.Ops {
		if !tx.Ops[i].Write {
			c.order = append(c.order, i)
		}
	}
	s.reads = len(tx.Ops) - s.legs
	_, s.floor = c.Floor(tx)
	return s
}

// arguments are those of the statements that add has put together.
func (c *ProcedureClient) arguments(tx *history.Transaction, s shape) []db.Value {
	c.args = c.args[:0]
	for at, i := range c.order {
		if at < s.legs && c.procedures.NonNegative {
			c.add(tx.Ops[i].Amount)
		}
		c.addKey(i)
	}
	if s.floor {
		least, _ := c.Floor(tx)
		payer := c.order[0]
		for _, i := range c.order[:s.legs] {
			if tx.Ops[i].Amount < 0 {
				payer = i
			}
		}
		c.add(tx.Ops[payer].Amount, least)
		c.addKey(payer)
		c.addKey(c.order[s.legs])
	}
	for _, i := range c.order[:s.legs] {
		c.add(tx.Ops[i].Amount, int64(tx.ID))
		c.addKey(i)
		if c.procedures.Ledger != "" {
			c.add(int64(tx.ID), tx.Ops[i].Amount)
			c.addKey(i)
		}
	}
	return c.args
}

func (c *ProcedureClient) add(values ...int64) {
	for _, v := range values {
		c.args = append(c.args, db.Value{Int: v})
	}
}

func (c *ProcedureClient) addKey(i int) {
	c.args = append(c.args, db.Value{Int: c.keys[i].number}, db.Value{Text: c.keys[i].text})
}

// ResolveUnknown implements load.Client. The tombstone takes the key of the first leg in the
// ledger, so that only one of the two can be there. Without a ledger the outcome stays
// unknown.
func (c *ProcedureClient) ResolveUnknown(ctx context.Context, tx *history.Transaction) error {
	if ResolvedWithoutLookUp(tx) || c.procedures.Ledger == "" {
		return nil
	}
	c.arrange(tx)
	args := []db.Value{{Int: c.keys[c.order[0]].number}, {Int: int64(tx.ID)}}
	if _, err := c.Call(ctx, c.procedures.tombstone, args); err != nil && db.ConstraintOf(err) != db.UniqueKey {
		return err
	}
	r, err := c.Call(ctx, c.procedures.find, args)
	switch {
	case err != nil:
		return err
	case r.Rows() != 1 || r.Row(0)[0].Int == 0:
		return ErrNeither
	case r.Row(0)[1].Int == 0:
		tx.Outcome = history.Aborted
	default:
		tx.Outcome = history.Committed
	}
	return nil
}

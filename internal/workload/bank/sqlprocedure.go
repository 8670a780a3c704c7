package bank

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/money"
	"stroppy/internal/workload"
)

// What a procedure answers: the transfer is done, or a rule of the bank refused
// it and nothing was written.
const (
	verdictDone = iota
	verdictInsufficient
	verdictMissing
)

// The procedures take the keys and the amounts as lists with commas; an amount
// of 0 stands for an account that is only read. at_least is what the payer and
// that account must keep together, 0 if there is no such rule. They return one
// row an account in the order given: the verdict, and the account's balance,
// version and last transfer before; NULL where nothing was read.
//
// In the texts, INTEGER_TYPE and DECIMAL_TYPE are the dialect's, and LOCK is what
// makes a SELECT lock.
const (
	procedureHead = `CREATE OR REPLACE FUNCTION PROCEDURE_NAME(
	id INTEGER_TYPE, bics TEXT, bans TEXT, amounts TEXT, at_least DECIMAL_TYPE)
RETURNS TABLE (verdict INTEGER_TYPE, seen_balance DECIMAL_TYPE, seen_version INTEGER_TYPE, seen_last INTEGER_TYPE)
LANGUAGE plpgsql AS $body$
DECLARE
	bic_of TEXT[] := string_to_array(bics, ',');
	ban_of INTEGER_TYPE[] := string_to_array(bans, ',');
	amount_of DECIMAL_TYPE[] := string_to_array(amounts, ',');
	balances DECIMAL_TYPE[];
	versions INTEGER_TYPE[];
	lasts INTEGER_TYPE[];
	b DECIMAL_TYPE;
	v INTEGER_TYPE;
	l INTEGER_TYPE;
	payer INTEGER_TYPE := 1;
	sibling INTEGER_TYPE := 1;
	j INTEGER_TYPE;
	r RECORD;
	rows_read INTEGER_TYPE := 0;
	kept DECIMAL_TYPE := 0;
	answer INTEGER_TYPE := 0;
	leg_number INTEGER_TYPE := 0;
BEGIN
`

	// The atomic one reads nothing before it writes, unless the rule over two
	// accounts asks for both, which it reads in one statement. An overdraft is
	// refused by the CHECK; an account that is not there is reported as what it
	// is, a reference to nothing.
	procedureAtomic = `	IF at_least > 0 THEN
		FOR i IN 1 .. array_length(bic_of, 1) LOOP
			IF amount_of[i] < 0 THEN
				payer := i;
			ELSIF amount_of[i] = 0 THEN
				sibling := i;
			END IF;
		END LOOP;
		FOR r IN SELECT a.bic, a.ban, a.balance, a.version, a.last_transfer FROM stroppy_account a
			WHERE (a.bic = bic_of[payer] AND a.ban = ban_of[payer])
			OR (a.bic = bic_of[sibling] AND a.ban = ban_of[sibling])
		LOOP
			j := CASE WHEN r.bic = bic_of[payer] AND r.ban = ban_of[payer] THEN payer ELSE sibling END;
			balances[j] := r.balance;
			versions[j] := r.version;
			lasts[j] := r.last_transfer;
			kept := kept + r.balance;
			rows_read := rows_read + 1;
		END LOOP;
		IF rows_read < 2 THEN
			answer := 2;
		ELSIF kept + amount_of[payer] < at_least THEN
			answer := 1;
		END IF;
	END IF;
	IF answer = 0 THEN
		FOR i IN 1 .. array_length(bic_of, 1) LOOP
			CONTINUE WHEN amount_of[i] = 0;
			UPDATE stroppy_account a SET balance = a.balance + amount_of[i], version = a.version + 1,
				previous_transfer = a.last_transfer, last_transfer = id
				WHERE a.bic = bic_of[i] AND a.ban = ban_of[i]
				RETURNING a.balance, a.version, a.previous_transfer INTO b, v, l;
			IF NOT FOUND THEN
				RAISE EXCEPTION 'no such account' USING ERRCODE = 'foreign_key_violation';
			END IF;
			INSERT INTO stroppy_ledger (transfer, leg, bic, ban, amount, version)
				VALUES (id, leg_number, bic_of[i], ban_of[i], amount_of[i], v);
			leg_number := leg_number + 1;
			IF versions[i] IS NULL THEN
				balances[i] := b - amount_of[i];
				versions[i] := v - 1;
				lasts[i] := l;
			END IF;
		END LOOP;
	END IF;
`

	procedureReadWrite = `	FOR i IN 1 .. array_length(bic_of, 1) LOOP
		SELECT a.balance, a.version, a.last_transfer INTO b, v, l FROM stroppy_account a
			WHERE a.bic = bic_of[i] AND a.ban = ban_of[i]LOCK;
		IF NOT FOUND THEN
			answer := 2;
			EXIT;
		END IF;
		balances[i] := b;
		versions[i] := v;
		lasts[i] := l;
		IF amount_of[i] <= 0 THEN
			kept := kept + b + amount_of[i];
			IF b + amount_of[i] < 0 THEN
				answer := 1;
			END IF;
		END IF;
	END LOOP;
	IF answer = 0 AND at_least > 0 AND kept < at_least THEN
		answer := 1;
	END IF;
	IF answer = 0 THEN
		FOR i IN 1 .. array_length(bic_of, 1) LOOP
			CONTINUE WHEN amount_of[i] = 0;
			UPDATE stroppy_account a SET balance = balances[i] + amount_of[i], version = versions[i] + 1,
				previous_transfer = lasts[i], last_transfer = id
				WHERE a.bic = bic_of[i] AND a.ban = ban_of[i];
			INSERT INTO stroppy_ledger (transfer, leg, bic, ban, amount, version)
				VALUES (id, leg_number, bic_of[i], ban_of[i], amount_of[i], versions[i] + 1);
			leg_number := leg_number + 1;
		END LOOP;
	END IF;
`

	procedureTail = `	FOR i IN 1 .. array_length(bic_of, 1) LOOP
		verdict := answer;
		seen_balance := balances[i];
		seen_version := versions[i];
		seen_last := lasts[i];
		RETURN NEXT;
	END LOOP;
END
$body$`
)

// newProcedure returns the procedure of one style.
func newProcedure(d *db.Dialect, style string) *db.Procedure {
	body, psmBody, lock := procedureReadWrite, psmReadWrite, ""
	switch style {
	case Atomic:
		body, psmBody = procedureAtomic, psmAtomic
	case Locked:
		lock = d.ForUpdate
	}
	r := strings.NewReplacer("INTEGER_TYPE", d.IntegerType, "DECIMAL_TYPE", d.DecimalType, "BIC_TYPE", d.TextType(bicLength), "LOCK", lock)
	return db.NewProcedure("stroppy_transfer_"+style,
		[]db.Type{db.Integer, db.Text, db.Text, db.Text, db.Decimal}, append([]db.Type{db.Integer}, stateColumns...),
		map[db.Language]string{
			db.PLpgSQL: r.Replace(procedureHead + body + procedureTail),
			db.PSM:     r.Replace(psmLists().Replace(psmHead + psmBody + psmTail)),
		})
}

// errAnswer says that a procedure returned something else than it is made to.
var errAnswer = &db.Error{
	Class: db.Fatal, Op: "call the stored procedure of the transfer",
	Err: errors.New("its answer is not one row an account with a known verdict: another program has replaced it"),
}

// procedure runs the transaction as one call.
func (c *sqlClient) procedure(ctx context.Context, tx *history.Transaction) error {
	r, err := c.call(ctx, c.callArgs(tx))
	if err != nil {
		return err
	}
	if r.Rows() != len(tx.Ops) {
		return errAnswer
	}
	for i := range tx.Ops {
		if row := r.Row(i); !row[2].Null {
			workload.Observe(&tx.Ops[i], row[1].Int, row[2].Int, row[3].Int)
		}
	}
	switch r.Row(0)[0].Int {
	case verdictDone:
		tx.Outcome = history.Committed
	case verdictInsufficient:
		tx.Outcome, tx.Reason = history.Rejected, history.InsufficientFunds
	case verdictMissing:
		tx.Outcome, tx.Reason = history.Rejected, history.NoSuchAccount
	default:
		return errAnswer
	}
	return nil
}

// callArgs builds the arguments of a call.
func (c *sqlClient) callArgs(tx *history.Transaction) []db.Value {
	c.args = append(c.args[:0], integer(int64(tx.ID)))
	c.lists = c.lists[:0]
	list := func(add func(dst []byte, i int) []byte) {
		from := len(c.lists)
		for i := range tx.Ops {
			if i > 0 {
				c.lists = append(c.lists, ',')
			}
			c.lists = add(c.lists, i)
		}
		// Should the lists move later, the argument keeps what it had.
		c.args = append(c.args, db.Value{Text: c.lists[from:len(c.lists):len(c.lists)]})
	}
	list(func(dst []byte, i int) []byte { return append(dst, c.keys[i].bic[:]...) })
	list(func(dst []byte, i int) []byte { return strconv.AppendInt(dst, c.keys[i].ban, 10) })
	list(func(dst []byte, i int) []byte { return money.Append(dst, tx.Ops[i].Amount) })
	atLeast := int64(0)
	if payer, _ := jointOps(tx); tx.Kind == history.Joint && payer != nil {
		atLeast = c.formula.floor(payer.Object)
	}
	c.args = append(c.args, integer(atLeast))
	return c.args
}

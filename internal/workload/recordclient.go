package workload

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"stroppy/internal/db"
	"stroppy/internal/history"
)

// StateRecords are the collections of objects that transactions add amounts to, and of their ledger, in a database of
// records. The ledger has one record for each transaction. The record's id is the transaction's id. Its legs are a list
// in the order of the operations. A tombstone has no legs.
type StateRecords struct {
	Objects *db.Collection
	Ledger  *db.Collection // nil: none is kept

	debit  *db.Update // adds an amount if the object has at least so much
	credit *db.Update // adds an amount to any object
	lock   *db.Update // writes the transaction's id, so that no other transaction writes the object
	write  *db.Update // writes a whole state
}

// The places of the fields among the values of an object.
const (
	placeBalance = 1 + iota
	placeVersion
	placeLast
)

// The places of the fields of a leg.
const (
	legObject = iota
	legAmount
	legVersion
	legFields
)

// longestID bounds the bytes of the id of an object.
const longestID = 32

// NewStateRecords makes the collections. With an empty name there is no ledger.
func NewStateRecords(objects, ledger string, amount db.Type, nonNegative bool) *StateRecords {
	d := &StateRecords{Objects: &db.Collection{Name: objects, ID: db.Text, Length: longestID, Fields: []db.Field{
		{Name: "balance", Type: amount, Additive: true, NonNegative: nonNegative}, {Name: "version", Type: db.Integer, Additive: true},
		{Name: "last_transfer", Type: db.Integer},
	}}}
	if ledger != "" {
		d.Ledger = &db.Collection{Name: ledger, ID: db.Integer, List: "legs", Items: []db.Field{
			{Name: "object", Type: db.Text}, {Name: "amount", Type: amount}, {Name: "version", Type: db.Integer},
		}, From: d.Objects, Copied: placeVersion}
	}
	added, last := []int{placeBalance, placeVersion}, []int{placeLast}
	d.credit = &db.Update{Collection: d.Objects, Add: added, Set: last}
	d.debit = d.credit
	if nonNegative {
		d.debit = &db.Update{Collection: d.Objects, AtLeast: placeBalance, Add: added, Set: last}
	}
	d.lock = &db.Update{Collection: d.Objects, Set: last}
	d.write = &db.Update{Collection: d.Objects, Set: []int{placeBalance, placeVersion, placeLast}}
	return d
}

// ObjectValues returns the values of the record of an object with an id.
func ObjectValues(id []byte, s State) []db.Value {
	return []db.Value{{Text: id}, {Int: s.Balance}, {Int: s.Version}, {Int: s.Last}}
}

// StateOf reads the values of an object. It returns false if a value is missing.
func StateOf(values []db.Value) (s State, ok bool) {
	for _, v := range values {
		if v.Null {
			return State{}, false
		}
	}
	return State{Balance: values[placeBalance].Int, Version: values[placeVersion].Int, Last: values[placeLast].Int}, true
}

// Leg is one leg of a record of the ledger.
type Leg struct {
	Row    history.Row // without its object
	Object []byte      // the id of the object; valid as long as the values are
	Whole  bool        // no field is missing
}

// Legs calls leg for each leg of a ledger record. A tombstone has one leg without an object, whose row is marked.
func (d *StateRecords) Legs(values []db.Value, leg func(l Leg) error) error {
	id, rest := history.ID(values[db.ID].Int), values[d.Ledger.Width():]
	if len(rest) == 0 {
		return leg(Leg{Row: history.Row{Transaction: id, Mark: history.Tombstone}, Whole: true})
	}
	for n := uint32(0); len(rest) > 0; n++ {
		item := rest[:legFields]
		rest = rest[legFields:]
		err := leg(Leg{
			Row:    history.Row{Transaction: id, Number: n, Amount: item[legAmount].Int, Version: uint64(item[legVersion].Int)},
			Object: item[legObject].Text, Whole: !item[legObject].Null && !item[legAmount].Null && !item[legVersion].Null,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// RecordLogic defines a workload's transactions on StateRecords.
type RecordLogic interface {
	Next(tx *history.Transaction)
	// AppendID appends the id of an object's record.
	AppendID(dst []byte, object uint64) []byte
	// Refusal returns the reason why the states that were read forbid the transaction; 0: none. In the style
	// RecordsAdd, a debit's own condition can refuse the debit too.
	Refusal(tx *history.Transaction) history.Reason
}

// RecordStyle is the way in which a RecordClient changes its objects.
type RecordStyle uint8

// The styles.
const (
	RecordsAdd     RecordStyle = iota // adds to each object, and each change returns the state before
	RecordsLock                       // locks each object by a write, then writes all states
	RecordsWrite                      // reads all objects, then writes all states
	RecordsAddLate                    // RecordsAdd of a database with Limits.Deferred: the commit returns the states before
)

// RecordClient runs one client's transactions on a session of its own. Its buffers grow to the longest transaction and
// are used again.
type RecordClient struct {
	RecordLogic
	db.RecordSession
	records *StateRecords
	rules   Rules
	style   RecordStyle

	names []db.Value // the ids of the operations' objects
	made  []int64    // the versions that the operations make
	ids   []db.Value // the part of names that one call is about
	args  []db.Value // of a change of one object
	// Only those parts of states and entry are set that differ between transactions.
	states  []db.Value // the fields of the objects that are written
	entry   []db.Value // of the ledger
	entries [1][]db.Value
	found   []db.Record
}

// NewRecordClient returns the client of a session. The rules count as Logged.
func NewRecordClient(s db.RecordSession, logic RecordLogic, records *StateRecords, rules Rules, style RecordStyle) *RecordClient {
	rules.Logged = true
	return &RecordClient{RecordSession: s, RecordLogic: logic, records: records, rules: rules, style: style}
}

// errMeanwhile is the error if a record changed between two commands.
var errMeanwhile = &db.Error{
	Class: db.Aborted, Op: "change the objects of a transaction",
	Err: errors.New("another client has changed one of them since it was read"),
}

// Attempt implements load.Client.
func (c *RecordClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	Forget(tx)
	return Ended(tx, c.attempt(ctx, tx), c.rules)
}

func (c *RecordClient) attempt(ctx context.Context, tx *history.Transaction) error {
	if err := c.Start(ctx, tx); err != nil {
		return err
	}
	switch {
	case tx.Kind.ReadOnly():
		reason, err := c.read(ctx, tx, nil)
		return c.end(ctx, tx, reason, err)
	case c.style == RecordsAdd || c.style == RecordsAddLate:
		return c.add(ctx, tx)
	}
	var reason history.Reason
	var err error
	if c.style == RecordsLock {
		reason, err = c.lock(ctx, tx)
	} else {
		reason, err = c.read(ctx, tx, nil)
	}
	if err == nil && reason == 0 {
		reason = c.Refusal(tx)
	}
	if err == nil && (reason == 0 || c.style == RecordsLock) {
		err = c.write(ctx, tx, reason == 0)
	}
	if err == nil && reason == 0 {
		err = c.Log(ctx, tx)
	}
	return c.end(ctx, tx, reason, err)
}

// end commits a transaction, even a refused transaction. Its reads are sure only after the commit, and the refusal
// depends on them.
func (c *RecordClient) end(ctx context.Context, tx *history.Transaction, reason history.Reason, err error) error {
	if err == nil {
		err = c.Commit(ctx)
	}
	if err == nil {
		Decide(tx, reason)
	}
	return err
}

// Refuse gives up a transaction that has changed objects, and its observations.
func (c *RecordClient) Refuse(ctx context.Context, tx *history.Transaction, reason history.Reason) error {
	err := c.Rollback(ctx)
	if err == nil {
		Forget(tx)
		Decide(tx, reason)
	}
	return err
}

// uncredited reports whether a rule of the workload applies to an object.
func uncredited(op *history.Op) bool { return op.Amount <= 0 }

// Start begins a transaction, and announces its record in the ledger.
func (c *RecordClient) Start(ctx context.Context, tx *history.Transaction) error {
	for len(c.names) < len(tx.Ops) {
		c.names, c.made, c.found = append(c.names, db.Value{}), append(c.made, 0), append(c.found, db.Record{})
		c.states = append(c.states, make([]db.Value, stateFields)...)
	}
	for i := range tx.Ops {
		c.names[i].Text = c.AppendID(c.names[i].Text[:0], tx.Ops[i].Object)
	}
	if err := c.Begin(ctx, tx.Kind.ReadOnly()); err != nil {
		return err
	}
	if c.records.Ledger != nil && !tx.Kind.ReadOnly() {
		c.Reserve(c.records.Ledger, db.Value{Int: int64(tx.ID)})
	}
	return nil
}

// ReadObjects starts a transaction of the workload's own. It finds and observes the objects of the wanted operations.
// The reason is set if an object is not there.
func (c *RecordClient) ReadObjects(ctx context.Context, tx *history.Transaction, wanted func(*history.Op) bool) (reason history.Reason, err error) {
	if err := c.Start(ctx, tx); err != nil {
		return 0, err
	}
	return c.read(ctx, tx, wanted)
}

// WriteObjects writes the states of the wanted objects that ReadObjects has read, as the operations make them. The
// workload itself writes everything else of the transaction. WriteObjects then logs the transaction.
func (c *RecordClient) WriteObjects(ctx context.Context, tx *history.Transaction, wanted func(*history.Op) bool) error {
	c.ids = c.ids[:0]
	for i := range tx.Ops {
		op := &tx.Ops[i]
		if !op.Write {
			continue
		}
		c.made[i] = int64(op.Version) + 1
		if wanted(op) {
			c.change(i, State{op.Value + op.Amount, c.made[i], int64(tx.ID)})
		}
	}
	if err := c.update(ctx); err != nil {
		return err
	}
	return c.Log(ctx, tx)
}

// End commits a transaction of the workload's own, even a refused transaction.
func (c *RecordClient) End(ctx context.Context, tx *history.Transaction, reason history.Reason) error {
	return c.end(ctx, tx, reason, nil)
}

// read finds and observes the objects of the wanted operations in one round trip. If wanted is nil, it reads all
// objects. The reason is set if an object is not there.
func (c *RecordClient) read(ctx context.Context, tx *history.Transaction, wanted func(*history.Op) bool) (reason history.Reason, err error) {
	ids := c.names[:len(tx.Ops)]
	if wanted != nil {
		c.ids = c.ids[:0]
		for i := range tx.Ops {
			if wanted(&tx.Ops[i]) {
				c.ids = append(c.ids, c.names[i])
			}
		}
		ids = c.ids
	}
	if len(ids) == 0 {
		return 0, nil
	}
	found := c.found[:len(ids)]
	if err := c.Find(ctx, c.records.Objects, ids, found); err != nil {
		return 0, err
	}
	for i := range tx.Ops {
		if wanted != nil && !wanted(&tx.Ops[i]) {
			continue
		}
		there, err := c.observe(ctx, tx, i, &found[0])
		if err != nil {
			return 0, err
		}
		if !there {
			reason = c.rules.Missing
		}
		found = found[1:]
	}
	return reason, nil
}

// observe notes the state that was found of the object of operation i. It returns false if the object is not there.
// After an error the transaction has ended.
func (c *RecordClient) observe(ctx context.Context, tx *history.Transaction, i int, d *db.Record) (there bool, err error) {
	if !d.Found {
		return false, nil
	}
	s, ok := StateOf(d.Values)
	if !ok {
		return false, cmp.Or(c.Rollback(ctx), error(db.Fatalf("read "+string(c.names[i].Text), "one of its fields is missing, which no transaction takes away")))
	}
	Observe(&tx.Ops[i], s.Balance, s.Version, s.Last)
	return true, nil
}

// add changes each object by its amount, debits first, and observes the state before. A refusal before the first change
// can be committed. If a rule applies to an object that is only read, this object is read first. Its value is the
// observation of the transaction, even if the changes find another value later.
func (c *RecordClient) add(ctx context.Context, tx *history.Transaction) error {
	if slices.ContainsFunc(tx.Ops, func(op history.Op) bool { return !op.Write }) {
		reason, err := c.read(ctx, tx, uncredited)
		if err == nil && reason == 0 {
			reason = c.Refusal(tx)
		}
		if err != nil || reason != 0 {
			return c.end(ctx, tx, reason, err)
		}
	}
	changed := false
	for _, debits := range [...]bool{true, false} {
		for i := range tx.Ops {
			op := &tx.Ops[i]
			if !op.Write || op.Amount < 0 != debits {
				continue
			}
			reason, err := c.addTo(ctx, tx, i)
			switch {
			case err != nil:
				return err
			case reason != 0 && changed:
				return c.Refuse(ctx, tx, reason)
			case reason != 0:
				return c.end(ctx, tx, reason, nil)
			}
			changed = true
		}
	}
	err := c.end(ctx, tx, 0, c.Log(ctx, tx))
	if c.style == RecordsAddLate {
		for i := range tx.Ops {
			if op := &tx.Ops[i]; err == nil && op.Write && !op.Observed {
				_, err = c.observe(ctx, tx, i, &c.found[i])
			}
		}
	}
	return err
}

// addTo changes the object of operation i. If no object takes the change, addTo finds the reason.
func (c *RecordClient) addTo(ctx context.Context, tx *history.Transaction, i int) (reason history.Reason, err error) {
	op, update := &tx.Ops[i], c.records.credit
	c.args = c.args[:0]
	if op.Amount < 0 {
		if update = c.records.debit; update.AtLeast != 0 {
			c.args = append(c.args, db.Value{Int: -op.Amount})
		}
	}
	c.args = append(c.args, db.Value{Int: op.Amount}, db.Value{Int: 1}, db.Value{Int: int64(tx.ID)})
	before, err := c.FindAndUpdate(ctx, update, c.names[i], c.args)
	if err != nil {
		return 0, err
	}
	if before.Found && c.style == RecordsAddLate {
		c.found[i] = before
		return 0, nil
	}
	read := *op
	if there, err := c.observe(ctx, tx, i, &before); there || err != nil {
		if c.made[i] = int64(op.Version) + 1; read.Observed {
			*op = read
		}
		return 0, err
	}
	if update.AtLeast == 0 {
		return c.rules.Missing, nil
	}
	reason, err = c.read(ctx, tx, func(o *history.Op) bool { return o == op })
	switch {
	case err != nil || reason != 0:
		return reason, err
	case op.Value+op.Amount >= 0:
		return 0, cmp.Or(c.Rollback(ctx), error(errMeanwhile))
	}
	return c.rules.CheckFailed, nil
}

// lock writes each object, so that no other transaction changes it, and notes the state before. write then writes the
// right state.
func (c *RecordClient) lock(ctx context.Context, tx *history.Transaction) (reason history.Reason, err error) {
	for i := range tx.Ops {
		c.args = append(c.args[:0], db.Value{Int: int64(tx.ID)})
		before, err := c.FindAndUpdate(ctx, c.records.lock, c.names[i], c.args)
		if err != nil {
			return 0, err
		}
		there, err := c.observe(ctx, tx, i, &before)
		if err != nil {
			return 0, err
		}
		if !there {
			reason = c.rules.Missing
		}
	}
	return reason, nil
}

// write writes the states of the objects that were read, in one round trip: the new states if the transaction
// applies. An object that was locked and does not change gets its old state.
func (c *RecordClient) write(ctx context.Context, tx *history.Transaction, applies bool) error {
	c.ids = c.ids[:0]
	for i := range tx.Ops {
		op := &tx.Ops[i]
		changes := applies && op.Write
		if !op.Observed || !changes && c.style != RecordsLock {
			continue
		}
		s := State{op.Value, int64(op.Version), int64(op.Writer)}
		if changes {
			s = State{op.Value + op.Amount, int64(op.Version) + 1, int64(tx.ID)}
			c.made[i] = s.Version
		}
		c.change(i, s)
	}
	return c.update(ctx)
}

// stateFields is the number of fields of an object.
const stateFields = placeLast

// change adds the state for the object of operation i.
func (c *RecordClient) change(i int, s State) {
	fields := c.states[stateFields*len(c.ids):][:stateFields]
	fields[0].Int, fields[1].Int, fields[2].Int = s.Balance, s.Version, s.Last
	c.ids = append(c.ids, c.names[i])
}

// update writes the added states.
func (c *RecordClient) update(ctx context.Context) error {
	if len(c.ids) == 0 {
		return nil
	}
	found, err := c.Update(ctx, c.records.write, c.ids, c.states[:stateFields*len(c.ids)])
	if err == nil && found != len(c.ids) {
		err = cmp.Or(c.Rollback(ctx), error(errMeanwhile))
	}
	return err
}

// Log inserts the transaction's record into the ledger. Unless the client has written an object, the version of its leg
// is 0.
func (c *RecordClient) Log(ctx context.Context, tx *history.Transaction) error {
	if c.records.Ledger == nil {
		return nil
	}
	for len(c.entry) < 1+legFields*len(tx.Ops) {
		c.entry = append(c.entry, db.Value{})
	}
	c.entry[db.ID].Int = int64(tx.ID)
	n := 1
	for i := range tx.Ops {
		if op := &tx.Ops[i]; op.Write {
			leg := c.entry[n:][:legFields]
			leg[legObject].Text, leg[legAmount].Int, leg[legVersion].Int = c.names[i].Text, op.Amount, c.made[i]
			n += legFields
		}
	}
	c.entries[0] = c.entry[:n]
	return c.Insert(ctx, c.records.Ledger, c.entries[:]...)
}

// ResolveUnknown implements load.Client. The tombstone takes the transaction's id in the ledger, so that only one of
// the two can be there. Without a ledger the outcome stays unknown. The result counts only after the commit: until
// then a server that is no longer the primary could have answered.
func (c *RecordClient) ResolveUnknown(ctx context.Context, tx *history.Transaction) error {
	ledger := c.records.Ledger
	if ResolvedWithoutLookUp(tx) || ledger == nil {
		return nil
	}
	if err := c.Begin(ctx, false); err != nil {
		return err
	}
	var found [1]db.Record
	id := []db.Value{{Int: int64(tx.ID)}}
	if err := c.Find(ctx, ledger, id, found[:]); err != nil {
		return err
	}
	applied := found[0].Found && len(found[0].Values) > ledger.Width()
	if !found[0].Found {
		if err := c.Insert(ctx, ledger, id); err != nil {
			if db.ConstraintOf(err) == db.UniqueKey { // the next look-up finds it
				err = errMeanwhile
			}
			return err
		}
	}
	if err := c.Commit(ctx); err != nil {
		return err
	}
	tx.Outcome = history.Aborted
	if applied {
		tx.Outcome = history.Committed
	}
	return nil
}

// rehearsed is the logic of rehearsed transactions.
type rehearsed struct{}

func (rehearsed) Next(*history.Transaction) {}

func (rehearsed) AppendID(dst []byte, object uint64) []byte { return AppendDecimal(dst, object, 8) }

func (rehearsed) Refusal(*history.Transaction) history.Reason { return 0 }

// Rehearse rehearses a transaction. It reads some objects and adds amounts to others; the first amount is negative. If
// there are both kinds, it reads the first object of each before.
func (d *StateRecords) Rehearse(ctx context.Context, s db.RecordSession, style RecordStyle, reads, legs int) error {
	c := NewRecordClient(s, rehearsed{}, d, Rules{}, style)
	tx := history.Transaction{Kind: history.Numbered, ID: 1}
	if legs == 0 {
		tx.Kind |= history.ReadOnly
	}
	for i := range reads + legs {
		op := history.Op{Object: uint64(i), Write: i < legs}
		if op.Write {
			op.Amount = int64(min(i, 1))*2 - 1
		}
		tx.Ops = append(tx.Ops, op)
	}
	return c.Attempt(ctx, &tx)
}

package appends

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/check/lists"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// procedureModel is the workload on a database of procedures alone. There is a procedure
// for each number of operations that a transaction can have, whatever they are: each of its
// steps reads a list, and then appends a text to one, which changes nothing where the
// operation is a read.
type procedureModel struct {
	*dataset.Procedures
	config *Config

	insert *db.Procedure   // makes makeRows empty lists
	read   []*db.Procedure // by how many operations there are, all reads
	mixed  []*db.Procedure // the same of any operations
}

// mostSteps bounds the statements of a procedure, and how many procedures there are.
const mostSteps = 16

// newProcedureModel fills in what the configuration leaves to the data model.
func newProcedureModel(database db.ProcedureStore, c *Config) (model, error) {
	if err := c.textOnly("a database of stored procedures"); err != nil {
		return nil, err
	}
	if c.Operations > mostSteps {
		return nil, fmt.Errorf("operations is %d, and this database has a stored procedure for each number of operations up to %d: take fewer", c.Operations, mostSteps)
	}
	m := &procedureModel{config: c, read: make([]*db.Procedure, c.Operations+1), mixed: make([]*db.Procedure, c.Operations+1)}
	m.insert = workload.NewProcedure(table+"_insert", slices.Repeat([]db.Type{db.Integer}, makeRows), nil, "",
		"BEGIN "+strings.Repeat("INSERT INTO "+table+" (list, elements) VALUES (?, ''); ", makeRows)+"END")
	all := []*db.Procedure{m.insert}
	for n := 1; n <= int(c.Operations); n++ {
		m.read[n], m.mixed[n] = newReads(n), newSteps(n)
		all = append(all, m.read[n], m.mixed[n])
	}
	columns := fmt.Sprintf("list BIGINT NOT NULL, elements VARCHAR(%d BYTES) NOT NULL, PRIMARY KEY (list)", longestText)
	var err error
	m.Procedures, err = dataset.NewProcedures(kind, database, &c.Mode, []dataset.ProcedureTable{{Name: table, Columns: columns, Key: "list"}}, all)
	return m, err
}

// newReads makes the procedure of n reads. It returns a row for each: what the list was, NULL
// of one that is not there, and nothing else.
func newReads(n int) *db.Procedure {
	body := strings.Repeat("SELECT MAX(elements), 0 FROM "+table+" WHERE list = ?; ", n)
	return workload.NewProcedure(fmt.Sprintf("%s_read_%d", table, n), slices.Repeat([]db.Type{db.Integer}, n), []db.Type{db.Text, db.Integer}, "", "BEGIN "+body+"END")
}

// newSteps makes the procedure of n operations. It returns a row for each: what the list was
// before. A list that is appended to must be there, which a division by the rows that were
// found sees to: a read adds one to them.
func newSteps(n int) *db.Procedure {
	body := strings.Repeat("SELECT MAX(elements), 1 / (COUNT(*) + CAST(? AS BIGINT)) FROM "+table+" WHERE list = ?; "+
		"UPDATE "+table+" SET elements = elements || CAST(? AS VARCHAR) WHERE list = ?; ", n)
	params := slices.Repeat([]db.Type{db.Integer, db.Integer, db.Text, db.Integer}, n)
	return workload.NewProcedure(fmt.Sprintf("%s_mixed_%d", table, n), params, []db.Type{db.Text, db.Integer}, "", "BEGIN "+body+"END")
}

// Fill implements dataset.Store. No list is there.
func (m *procedureModel) Fill(_ context.Context, _ dataset.Metadata, progress func(done uint64)) error {
	progress(1)
	return nil
}

func (*procedureModel) storage() lists.Storage { return lists.Objects }

func (m *procedureModel) client(ctx context.Context, h *chooser) (load.Client, error) {
	s, err := m.Database.ProcedureSession(ctx, m.config.SessionOptions())
	return &procedureClient{chooser: h, ProcedureSession: s, model: m}, err
}

func (m *procedureModel) endState(ctx context.Context, end *endLists) error {
	return m.Download(ctx, table, []string{"list", "elements"}, []db.Type{db.Integer}, dataset.RowsOf(longestText), func(row []db.Value) error {
		return end.text(uint64(row[0].Int), row[1].Text)
	})
}

// procedureClient runs one client's transactions on a session of its own, each as one call.
type procedureClient struct {
	*chooser
	db.ProcedureSession
	model *procedureModel

	made uint64 // all lists below it are there, as far as this client needs them
	args []db.Value
	text []byte // of the elements that are appended
}

// Attempt implements load.Client.
func (c *procedureClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	forget(tx)
	err := c.prepare(ctx, tx)
	if err == nil {
		err = c.attempt(ctx, tx)
	}
	switch {
	case err == nil:
		tx.Outcome = history.Committed
		c.learn(tx)
	case db.ConstraintOf(err) == db.ForeignKey:
		// What this client has made, or found made, a cluster that was lost has lost.
		c.made, err = 0, nil
		forget(tx)
		workload.Decide(tx, noSuchList)
	}
	return err
}

// prepare makes the lists that a transaction appends to, together with those beside them.
// That is no part of the transaction: an empty list and none are the same. Lists that are
// made together are there together, so that one which is there already speaks for all.
func (c *procedureClient) prepare(ctx context.Context, tx *history.Transaction) error {
	for i := range tx.Ops {
		for key := keyOf(tx.Ops[i].Object); tx.Ops[i].Write && key >= c.made; c.made += makeRows {
			c.made = max(c.made, c.first/makeRows*makeRows)
			c.args = c.args[:0]
			for k := range uint64(makeRows) {
				c.args = append(c.args, db.Value{Int: int64(newObject(c.run, c.made+k))})
			}
			if _, err := c.Call(ctx, c.model.insert, c.args); taken(err) != nil {
				return unsent(err)
			}
		}
	}
	return nil
}

func (c *procedureClient) attempt(ctx context.Context, tx *history.Transaction) error {
	procedure := c.model.read[len(tx.Ops)]
	c.args = c.args[:0]
	if tx.Kind.ReadOnly() {
		for i := range tx.Ops {
			c.args = append(c.args, db.Value{Int: int64(tx.Ops[i].Object)})
		}
	} else {
		procedure = c.model.mixed[len(tx.Ops)]
		c.addSteps(tx)
	}
	r, err := c.Call(ctx, procedure, c.args)
	if err != nil {
		return err
	}
	if r.Rows() < len(tx.Ops) || r.Columns < 1 {
		return errAnswer
	}
	for i := range tx.Ops {
		if op := &tx.Ops[i]; !op.Write {
			observe(tx, op, r.Row(i)[0].Text)
		}
	}
	return nil
}

// errAnswer says that a procedure returned something else than it is made to.
var errAnswer = &db.Error{
	Class: db.Unknown, Op: "call the stored procedure of the transaction",
	Err: errors.New("its answer is not one row an operation: another program has replaced it"),
}

// addSteps adds the arguments of all steps. A read appends nothing to the list 0, which
// is in no run.
func (c *procedureClient) addSteps(tx *history.Transaction) {
	c.text = c.text[:0]
	appended := uint64(0)
	for i := range tx.Ops {
		list := db.Value{Int: int64(tx.Ops[i].Object)}
		if !tx.Ops[i].Write {
			c.args = append(c.args, db.Value{Int: 1}, list, db.Value{Text: []byte{}}, db.Value{})
			continue
		}
		from := len(c.text) // should the text move later, an element keeps what it had
		c.text = appendText(c.text, newElement(tx.ID, appended))
		appended++
		c.args = append(c.args, db.Value{}, list, db.Value{Text: c.text[from:]}, list)
	}
}

// ResolveUnknown implements load.Client, as the package's comment says.
func (c *procedureClient) ResolveUnknown(_ context.Context, tx *history.Transaction) error {
	workload.ResolvedWithoutLookUp(tx)
	return nil
}

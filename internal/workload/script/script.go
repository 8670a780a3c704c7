// Package script is the workload of a user: SQL in pgbench's script files, against tables of the user.
//
// # Receipts
//
// A transaction that writes also inserts its id into the table stroppy_receipt, in the same transaction. The table then
// shows for any SQL which transactions were applied. A look-up of a lost transaction inserts a tombstone under its id,
// so that the transaction can no longer be applied. Without receipts the run is a measurement, and nothing is checked.
//
// # Tracked tables
//
// Tracked rows count their versions in a column and name their last writer in another one. The statements of the scripts
// are rewritten when the workload is bound (see package track). Reads then see the version and its writer, and writes
// return the version that they made. So the history has the dependencies between transactions.
//
// # Objects
//
// The table of receipts is the only object that a run without tracked tables adds. It also numbers the runs: each run inserts a row with its identity, whose
// client and sequence number are 0.
package script

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"stroppy/internal/check/invariants"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/script"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// Name is the workload's name in commands, histories and results.
const Name = "script"

// The reasons of rejections.
const (
	rolledBack  history.Reason = iota + 1 // the script itself rolled back
	checkFailed                           // a CHECK
	notNull
	foreignKey
	uniqueKey
)

var reasons = []history.Declared{
	rolledBack.Named("rolled back by the script"), checkFailed.Named("a check constraint failed"),
	notNull.Named("a null value in a not-null column"), foreignKey.Named("a foreign key refused it"),
	uniqueKey.Named("a unique key refused it"),
}

// Script is the workload on one open database.
type Script struct {
	config   Config
	database db.SQL
	dialect  *db.Dialect
	program  *script.Program
	texts    []statements // of each script
	receipts *receipts    // nil: the run has none
	tracked  tables       // of the run; empty: none
	audits   *audits      // nil: there are no invariants
	summed   []int        // the slots of the variables that invariants sum
	damage   error        // of the header of a recording
	timings  *timings     // of statements; nil: they are not measured
	claim    db.Claim
	run      uint64 // the number that Attach has taken; 0 before
	joined   bool   // another process has attached to the data of the run
	recalled bool   // the run is recorded, and a new one would have the next number
	load     string // names the run, because the receipts of one run say nothing of another one
	seed     uint64
	scale    uint64
	report   func(what string)
	made     bool                    // Load has made the tables
	agree    func(what string) error // is asked before a table of the user is changed; nil: nobody is
}

// New binds the workload to a database.
func New(database db.Database, c Config) (*Script, error) {
	sql, ok := database.(db.SQL)
	if !ok {
		return nil, errors.New("the script workload runs SQL, which this database does not have: take another database")
	}
	w := &Script{config: c, database: sql, dialect: sql.Dialect(), report: func(string) {}}
	var err error
	if w.claim, err = database.Claim(c.Isolation); err != nil {
		return nil, err
	}
	if err := w.parse(); err != nil {
		return nil, err
	}
	return w, nil
}

// parse reads the scripts and makes the statements of the database from them.
func (w *Script) parse() (err error) {
	c := &w.config
	if w.program, err = c.program(); err != nil {
		return err
	}
	writes := false
	for _, s := range w.program.Scripts {
		texts, err := newStatements(s, w.dialect)
		if err != nil {
			return err
		}
		w.texts = append(w.texts, texts)
		writes = writes || texts.writes
	}
	if c.PerStatement {
		w.timings = new(timings)
	}
	if w.audits, err = newAudits(c.Invariants, w.dialect); err != nil {
		return err
	}
	if w.summed, err = c.sums(w.program); err != nil {
		return err
	}
	for i := range w.texts {
		if len(w.summed) > 0 && w.texts[i].parts > 1 {
			return fmt.Errorf("%s writes in %d transactions, and an invariant with sum() needs one in each script: "+
				"put BEGIN and COMMIT around them", w.program.Scripts[i].Name, w.texts[i].parts)
		}
	}
	if err := w.planTracking(); err != nil {
		return err
	}
	if c.Receipts == noReceipts || c.Receipts == "" && !writes {
		return nil
	}
	w.receipts = newReceipts(w.dialect)
	return nil
}

// Claim implements workload.Workload.
func (w *Script) Claim() db.Claim { return w.claim }

// Load implements workload.Workload: it runs the statements of the file of --init.
func (w *Script) Load(ctx context.Context, progress func(done, total uint64)) (loaded workload.Loaded, err error) {
	started := time.Now()
	list, err := w.config.initial()
	if err != nil {
		return loaded, &workload.UsageError{Err: err}
	}
	for i, statement := range list {
		if err := w.database.Exec(ctx, statement); err != nil {
			return loaded, fmt.Errorf("run statement %d of %s: %w", i+1, w.config.Init, err)
		}
		if progress != nil {
			progress(uint64(i+1), uint64(len(list)))
		}
	}
	loaded = workload.Loaded{Size: uint64(len(list)), Things: "statements"}
	if w.made = len(list) > 0; w.made {
		loaded.Took = time.Since(started)
	}
	return loaded, nil
}

// Attach implements workload.Workload. With receipts it makes their table, if it is missing, and takes a run number.
func (w *Script) Attach(ctx context.Context) (loaded workload.Loaded, err error) {
	loaded.Things = "statements"
	if w.run == 0 {
		w.load = rand.Text()
	}
	w.seed = w.config.Seed
	if w.seed == 0 { // all workers draw the same
		w.seed = uint64(identity(w.load)>>32) + 1
	}
	if err := w.findScale(ctx); err != nil || w.run != 0 {
		return loaded, err
	}
	if err := w.startInvariants(ctx); err != nil {
		return loaded, err
	}
	book := w.book()
	if book == nil {
		w.run = 1
		return loaded, nil
	}
	if err := w.columns().verify(ctx, w.tracked); err != nil {
		return loaded, err
	}
	there, err := book.exist(ctx, w.database)
	if err != nil {
		return loaded, err
	}
	if !there {
		w.report("The run adds the table " + receiptTable + " to the database. `stroppy cleanup` removes it.")
	}
	if err := w.track(ctx); err != nil {
		return loaded, err
	}
	for i, s := range w.program.Scripts {
		if w.receipts != nil && w.texts[i].parts > 1 {
			w.report(fmt.Sprintf("%s has up to %d transactions that write. Each has a receipt and counts by itself.", s.Name, w.texts[i].parts))
		}
	}
	if !there {
		if err := w.database.Exec(ctx, book.create); err != nil {
			return loaded, err
		}
	}
	w.run, err = book.takeRun(ctx, w.database, identity(w.load))
	return loaded, err
}

// book returns the statements about the table of receipts; nil: the run does not need it. A run that tracks rows takes
// its number from the table, even without receipts.
func (w *Script) book() *receipts {
	if w.receipts == nil && len(w.tracked) > 0 {
		return newReceipts(w.dialect)
	}
	return w.receipts
}

// findScale sets the scale as pgbench does: built-in scripts run on its own tables, which have a branch for each scale.
func (w *Script) findScale(ctx context.Context) error {
	if w.scale = w.config.Scale; w.scale != 0 {
		return nil
	}
	w.scale = 1
	if len(w.config.Builtins) == 0 {
		return nil
	}
	branches := &db.Statement{SQL: "SELECT count(*) FROM pgbench_branches", Columns: []db.Type{db.Integer}}
	err := query(ctx, w.database, branches, nil, func(row []db.Value) error {
		w.scale = max(uint64(row[0].Int), 1)
		return nil
	})
	if err != nil {
		return fmt.Errorf("find the scale of pgbench's tables: %w: make them with `pgbench -i`", err)
	}
	return nil
}

// Join implements workload.Workload.
func (w *Script) Join(loadID string, run uint64) { w.load, w.run, w.joined = loadID, run, true }

// Recall implements workload.Recalled.
func (w *Script) Recall(h history.Header) {
	w.load, w.run, w.seed, w.recalled = h.LoadID, h.Run, h.Seed, true
	w.receipts = nil
	if h.Keys[keyReceipts] == "true" {
		w.receipts = newReceipts(w.dialect)
	}
	w.tracked = trackedIn(h)
	list, err := invariantsOf(h)
	if err == nil {
		w.audits, err = newAudits(list, w.dialect)
	}
	w.damage = err
}

// AttachReadOnly implements workload.Workload. It needs the header of a recording.
func (w *Script) AttachReadOnly(ctx context.Context) (loaded workload.Loaded, err error) {
	loaded.Things = "statements"
	return loaded, w.CheckUnchanged(ctx)
}

// CheckUnchanged implements workload.Workload. It looks for the row of the run.
func (w *Script) CheckUnchanged(ctx context.Context) error {
	book := w.book()
	if book == nil || w.damage != nil {
		return w.damage
	}
	same, err := book.has(ctx, w.database, w.run, identity(w.load))
	if err == nil && !same {
		err = dataset.MismatchErrorf("the table %s of this database has no receipts of run %d: name the database of the run with --db; if the table was removed since, the receipts are gone", receiptTable, w.run)
	}
	return err
}

// identity returns the number that identifies a run in its row.
func identity(load string) int64 {
	sum := sha256.Sum256([]byte(load))
	return int64(binary.BigEndian.Uint64(sum[:]) >> 1)
}

// Leave implements workload.Workload.
func (w *Script) Leave(context.Context) error { return nil }

// OnAlter implements workload.Altering. The tables of --init are not the user's in a run that makes them.
func (w *Script) OnAlter(agree func(what string) error) { w.agree = agree }

// OnOverwrite implements workload.Workload.
func (w *Script) OnOverwrite(report func(what string)) { w.report = report }

// Header implements workload.Workload.
func (w *Script) Header() history.Header {
	h := history.Header{
		Workload: Name, LoadID: w.load, Run: w.run, Seed: w.seed, Clients: w.config.Clients, Objects: 1,
		Reasons: reasons, Object: "table of receipts", Unit: "number",
		Keys: map[string]string{keyReceipts: fmt.Sprint(w.receipts != nil), keyMode: w.config.mode()},
	}
	if w.recalled {
		h.Run++
	}
	if len(w.tracked) > 0 {
		h.Keys[keyTracked], h.Object = w.tracked.text(), "row"
	}
	if w.audits != nil {
		h.Keys[keyInvariants] = invariants.Lines(w.audits.list)
		if !w.joined { // the process that the run began in has read them
			h.Keys[keyStarts] = invariants.Starts(w.audits.list)
		}
	}
	for i, s := range w.program.Scripts {
		h.Kinds = append(h.Kinds, w.kind(i).Named(s.Name))
	}
	if w.config.BackgroundClients() > 0 {
		h.Kinds = append(h.Kinds, audit.Named("audit"))
	}
	return h
}

// Keys in the header of a history.
const (
	keyReceipts   = "receipts"
	keyTracked    = "tracked"
	keyMode       = "mode"
	keyInvariants = "invariants"       // as the user wrote them
	keyStarts     = "invariant_starts" // the answers before the first transaction
)

// kind returns the kind of the transactions of script i.
func (w *Script) kind(i int) history.Kind {
	k := history.Kind(i+1) * history.Numbered
	if !w.texts[i].writes {
		k |= history.ReadOnly
	}
	return k
}

// Client implements workload.Workload.
func (w *Script) Client(ctx context.Context, i int) (load.Client, error) {
	options := w.config.SessionOptions()
	options.Mode = db.Pipelined // statements wait for their results unless the script or the mode pipelines them
	if w.dialect.CountsApart && w.config.mode() == workload.Interactive {
		options.Mode = db.Interactive
	}
	session, err := w.database.Session(ctx, options)
	if err != nil {
		return nil, err
	}
	return newClient(w, session, uint64(i)), nil
}

// EndState implements workload.Workload: it downloads the receipts and the versions of tracked rows, and then reads the
// invariants. So what has a receipt counts in them.
func (w *Script) EndState(ctx context.Context, end *history.EndWriter, progress func(done, total uint64)) error {
	if w.receipts != nil {
		if err := w.receipts.download(ctx, w.database, w.run, end, progress); err != nil {
			return err
		}
	}
	if err := w.columns().download(ctx, w.tracked, end); err != nil || w.audits == nil {
		return err
	}
	return w.endInvariants(ctx, end)
}

// ForNode implements workload.Workload.
func (w *Script) ForNode(database db.Database) (workload.Workload, error) {
	node, err := New(database, w.config)
	if err != nil {
		return nil, err
	}
	node.run, node.seed, node.load, node.tracked = w.run, w.seed, w.load, w.tracked
	return node, nil
}

// Remove implements workload.Workload: it removes the table of receipts and the columns of tracked tables, and no table
// of the user.
func (w *Script) Remove(ctx context.Context) (removed workload.Removed, err error) {
	removed.Names, err = w.columns().remove(ctx)
	if err != nil {
		return removed, err
	}
	there, err := newReceipts(w.dialect).exist(ctx, w.database)
	if err == nil && there {
		removed.Names = append(removed.Names, "table "+receiptTable)
		err = w.database.Exec(ctx, "DROP TABLE "+receiptTable)
	}
	if len(removed.Names) > 0 {
		removed.What = "receipts of scripts"
	}
	return removed, err
}

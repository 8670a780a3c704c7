package schedule

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"stroppy/internal/db"
)

// level is how an executor keeps transactions apart.
type level int

const (
	chaos      level = iota // writes in place, and nobody waits
	dirtyReads              // the first writer of a row has it to its end; reads are of what is there
	committed               // and reads are of what is committed, each on its own
	updating                // and of one snapshot; a write or a locking read goes by what is committed
	snapshots               // and a write or a locking read of what changed since the snapshot is refused
	oneByOne                // one transaction at a time; a second waits for the end of the first
)

// executor is a table that keeps transactions apart at a level, small enough to be
// believed.
type executor struct {
	level level
	blind bool // a transaction does not read its own writes

	mu      sync.Mutex
	ended   *sync.Cond
	rows    map[int64]int64 // committed, and with chaos and dirtyReads what is not as well
	dirty   map[int64]*transactor
	version map[int64]int
	running *transactor // with oneByOne
}

func newExecutor(l level) *executor {
	e := &executor{level: l}
	e.ended = sync.NewCond(&e.mu)
	return e
}

func (*executor) Refuses(*Schedule) string { return "" }

func (e *executor) Fill(_ context.Context, rows []Row, _ bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rows, e.dirty, e.version = map[int64]int64{}, map[int64]*transactor{}, map[int64]int{}
	for _, r := range rows {
		e.rows[r.ID] = r.Amount
	}
	return nil
}

func (e *executor) Rows(context.Context) ([]Row, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return listed(e.rows), nil
}

func listed(rows map[int64]int64) (list []Row) {
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		list = append(list, Row{id, rows[id]})
	}
	return list
}

func (e *executor) Client(context.Context, string) (Client, error) { return &transactor{of: e}, nil }
func (*executor) Remove(context.Context) error                     { return nil }

// Replica is behind by a commit, whatever the database.
func (e *executor) Replica(db.Database) (Table, error) { return &behind{}, nil }

// behind is a replica that has what an executor began with, and no later commit.
type behind struct {
	Table
}

func (b *behind) Rows(context.Context) ([]Row, error) { return initial(), nil }

func (b *behind) Client(context.Context, string) (Client, error) {
	old := newExecutor(committed)
	return &transactor{of: old}, old.Fill(context.Background(), initial(), false)
}

// transactor is a session of an executor.
type transactor struct {
	of     *executor
	start  map[int64]int64 // its snapshot
	seen   map[int64]int   // versions when it began
	before map[int64]*int64
	writes map[int64]*int64 // nil: deleted
}

func (t *transactor) Begin(_ context.Context, readOnly bool) error {
	e := t.of
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.level == oneByOne && e.running != nil {
		e.ended.Wait()
	}
	if e.level == oneByOne {
		e.running = t
	}
	t.start, t.seen, t.before, t.writes = maps.Clone(e.rows), maps.Clone(e.version), map[int64]*int64{}, map[int64]*int64{}
	return nil
}

// view returns the rows that the transaction reads, or with current the rows that its writes see.
func (t *transactor) view(current bool) map[int64]int64 {
	e := t.of
	if e.level < committed || e.level == oneByOne {
		return e.rows
	}
	view := maps.Clone(e.rows)
	if e.level >= updating && !current {
		view = maps.Clone(t.start)
	}
	for id, amount := range t.writes {
		switch {
		case e.blind && !current:
		case amount == nil:
			delete(view, id)
		default:
			view[id] = *amount
		}
	}
	return view
}

// take waits until a row can be locked. It refuses a row that has changed since the snapshot.
func (t *transactor) take(id int64) error {
	e := t.of
	for e.level != chaos && e.dirty[id] != nil && e.dirty[id] != t {
		e.ended.Wait()
	}
	if e.level == snapshots && e.version[id] != t.seen[id] {
		t.end()
		return errConflict
	}
	return nil
}

// selected returns the rows that a write or a locking read goes by. Below snapshots it waits
// until no other transaction has locked the row, or with a predicate any row of the table.
func (t *transactor) selected(o Operation) []Row {
	e := t.of
	locked := func() bool {
		for id, owner := range e.dirty {
			if owner != t && (len(o.IDs) == 0 || o.IDs[0] == id) {
				return true
			}
		}
		return false
	}
	for e.level != chaos && e.level < snapshots && locked() {
		e.ended.Wait()
	}
	rows := listed(t.view(e.level < snapshots))
	switch o.Kind {
	case AddAll:
		return rows
	case Write, Add, Delete:
		return slices.DeleteFunc(rows, func(r Row) bool { return r.ID != o.IDs[0] })
	}
	return o.among(rows)
}

var errConflict = &db.Error{Class: db.Aborted, Op: "write", Code: "conflict", Err: errors.New("another transaction has written the row")}

// write sets a row, or with nil deletes it.
func (t *transactor) write(id int64, amount *int64) error {
	e := t.of
	if err := t.take(id); err != nil {
		return err
	}
	e.dirty[id] = t
	if e.level >= committed && e.level != oneByOne {
		t.writes[id] = amount
		return nil
	}
	if _, known := t.before[id]; !known {
		t.before[id] = nil
		if old, ok := e.rows[id]; ok {
			t.before[id] = &old
		}
	}
	e.put(id, amount)
	return nil
}

func (e *executor) put(id int64, amount *int64) {
	if amount == nil {
		delete(e.rows, id)
	} else {
		e.rows[id] = *amount
	}
}

func (t *transactor) Do(_ context.Context, o Operation) (r Result, err error) {
	e := t.of
	e.mu.Lock()
	defer e.mu.Unlock()
	switch o.Kind {
	case Read:
		view := t.view(false)
		for _, id := range o.IDs {
			if amount, ok := view[id]; ok {
				r.Rows = append(r.Rows, Row{id, amount})
			}
		}
		return r, nil
	case Find:
		r.Rows = o.among(listed(t.view(false)))
		return r, nil
	case Insert:
		return r, t.write(o.IDs[0], &o.Amount)
	}
	rows := t.selected(o)
	for _, row := range rows {
		amount := new(row.Amount + o.Amount)
		switch o.Kind {
		case FindUpdate, FindShare:
			err = errors.Join(err, t.take(row.ID))
			continue
		case Write:
			amount = &o.Amount
		case Delete, DeleteWhere:
			amount = nil
		}
		err = errors.Join(err, t.write(row.ID, amount))
	}
	if o.Kind.locks() {
		return Result{Rows: rows}, err
	}
	return affected(len(rows)), err
}

// end gives up what the transaction has.
func (t *transactor) end() {
	e := t.of
	for id, owner := range e.dirty {
		if owner == t {
			delete(e.dirty, id)
		}
	}
	if e.running == t {
		e.running = nil
	}
	e.ended.Broadcast()
}

func (t *transactor) Commit(context.Context) error {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	for id, amount := range t.writes {
		t.of.put(id, amount)
	}
	for id, owner := range t.of.dirty {
		if owner == t {
			t.of.version[id]++
		}
	}
	t.end()
	return nil
}

func (t *transactor) Rollback(context.Context) error {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	for id, amount := range t.before {
		t.of.put(id, amount)
	}
	t.end()
	return nil
}

func (*transactor) Reset(context.Context) error { return nil }
func (*transactor) Close() error                { return nil }

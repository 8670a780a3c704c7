package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stroppy/internal/db"
)

// Table holds the rows of the schedules in one data model.
type Table interface {
	// Refuses returns why the data model cannot express a schedule; empty if it can.
	Refuses(s *Schedule) string
	// Fill makes the table hold exactly these rows. With index, an index finds them by amount.
	Fill(ctx context.Context, rows []Row, index bool) error
	// Rows returns all rows, ascending by id.
	Rows(ctx context.Context) ([]Row, error)
	// Client opens a session.
	Client(ctx context.Context, isolation string) (Client, error)
	// Replica returns the same table on another database, which follows this one. It cannot be
	// filled, and its Remove removes no rows.
	Replica(database db.Database) (Table, error)
	// Remove removes the table, and closes its own session.
	Remove(ctx context.Context) error
}

// Client is one session on a table. Its errors are *db.Error, and an error ends the transaction.
type Client interface {
	Begin(ctx context.Context, readOnly bool) error
	// Do carries out an operation that is neither Commit nor Rollback.
	Do(ctx context.Context, o Operation) (Result, error)
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
	Reset(ctx context.Context) error
	Close() error
}

// Options selects how schedules are run. The zero value has defaults.
type Options struct {
	// Wait is the time after which a step counts as waiting, and the schedule goes on with the
	// other transactions; 0: DefaultWait.
	Wait time.Duration
	// Limit is the longest time of a schedule; 0: DefaultLimit.
	Limit time.Duration
	// Replicas take the transactions that only read, each schedule the next ones. Without
	// replicas the table takes all transactions.
	Replicas []Table
}

const (
	DefaultWait  = 60 * time.Millisecond
	DefaultLimit = 10 * time.Second
	// attempts is the number of runs of a schedule if a step was slow without a lock, or a session
	// was lost. The wait doubles each time.
	attempts = 4
	// confirm is the factor of the wait when a schedule is run again because a step waited and no
	// anomaly showed. One short wait does not prove that it was a lock.
	confirm = 4
)

// Runner runs schedules at one isolation.
type Runner struct {
	table     Table
	isolation string
	options   Options
	workers   []*worker
	replica   int // the next one
}

// NewRunner returns a runner, which opens sessions when it needs them.
func NewRunner(table Table, isolation string, options Options) *Runner {
	options.Wait, options.Limit = cmp.Or(options.Wait, DefaultWait), cmp.Or(options.Limit, DefaultLimit)
	return &Runner{table: table, isolation: isolation, options: options}
}

// Close closes the sessions.
func (r *Runner) Close() error {
	var errs []error
	for _, w := range r.workers {
		errs = append(errs, w.close())
	}
	r.workers = nil
	return errors.Join(errs...)
}

// Run runs one schedule. Only the end of ctx is an error. Every other problem leaves the outcome
// undecided.
func (r *Runner) Run(ctx context.Context, s *Schedule) (Outcome, error) {
	out := Outcome{Anomaly: s.Anomaly, Variant: s.Variant, Predicate: s.Predicate, Every: s.Every, Sampled: s.Rounds > 1}
	if why := r.table.Refuses(s); why != "" {
		out.State, out.How = NotApplicable, why
		return out, nil
	}
	count := max(s.Rounds, 1)
	if s.Rounds > 1 && len(r.options.Replicas) > 0 { // a replica may be behind for a moment
		count *= replicaRounds
	}
	for range count {
		o, err := r.attempt(ctx, s, r.options.Wait)
		if err == nil && s.Rounds <= 1 && o.restsOnWait() && s.seen(o) == "" {
			// A slow step that goes on just when another transaction ends looks like a step that
			// waited for a lock.
			o, err = r.attempt(ctx, s, r.options.Wait*confirm)
		}
		for wait := r.options.Wait * confirm; err == nil && s.Rounds > 1 && o.waited() && s.seen(o) != "" && wait < r.options.Limit; wait *= confirm {
			// If a step was slow, the transactions may have overlapped.
			o, err = r.attempt(ctx, s, wait)
		}
		switch {
		case ctx.Err() != nil:
			return out, context.Cause(ctx)
		case err != nil:
			out.State, out.How = Undecided, err.Error()
			return out, nil
		case s.Rounds > 1 && o.waited() && s.seen(o) != "":
			out.State, out.How = Undecided, "a step took so long that the next transaction did not begin after the commit"
			return out, nil
		}
		out.Steps = o.lines()
		if out.Witness = s.seen(o); out.Witness != "" {
			out.State, out.How = Seen, ""
			return out, nil
		}
		if how := o.prevention(); out.State != Prevented {
			out.State, out.How = Prevented, how
		}
	}
	if s.Rounds > 1 {
		out.How = fmt.Sprintf("in none of %d rounds", count)
	}
	return out, nil
}

// attempt runs the schedule until it is carried out as written.
func (r *Runner) attempt(ctx context.Context, s *Schedule, wait time.Duration) (o *observed, err error) {
	for range attempts {
		var again bool
		if o, again, err = r.once(ctx, s, wait); !again || ctx.Err() != nil {
			break
		}
		wait *= 2
	}
	return o, err
}

// once runs the schedule. It sets again if the schedule was not carried out as written.
func (r *Runner) once(ctx context.Context, s *Schedule, wait time.Duration) (o *observed, again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.Limit)
	defer cancel()
	if err := r.table.Fill(ctx, s.start(), s.Index); err != nil {
		return nil, true, fmt.Errorf("fill the table of the schedules: %w", err)
	}
	workers, err := r.assign(ctx, s)
	if err != nil {
		return nil, true, err
	}
	p := &play{schedule: s, workers: workers, wait: wait, observed: &observed{fate: make([]fate, s.transactions()+1)}}
	steps, stop := context.WithCancel(ctx)
	err = p.run(steps)
	if ended := r.endAll(context.WithoutCancel(ctx), stop); err == nil {
		err = ended
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, true, fmt.Errorf("it had not ended after %v: %w", r.options.Limit, err)
	case err != nil:
		return nil, true, err
	}
	if err := p.readFinal(ctx, r.table); err != nil {
		return nil, true, fmt.Errorf("read what the schedule left: %w", err)
	}
	return p.observed, p.slow, nil
}

// endAll makes the sessions ready for another schedule. It begins with sessions that do not wait,
// so that the others go on. stop ends the steps in progress. A session that stays broken is dropped.
func (r *Runner) endAll(ctx context.Context, stop func()) (err error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.Limit)
	defer cancel()
	for _, busy := range []bool{false, true} {
		if busy {
			stop()
		}
		over := func(w *worker) bool {
			if (w.busy != nil) != busy {
				return false
			}
			failed := w.end(ctx)
			if failed == nil {
				return false
			}
			err = errors.Join(err, failed)
			_ = w.close() // it stays broken
			return true
		}
		r.workers = slices.DeleteFunc(r.workers, over)
	}
	return err
}

// assign gives each transaction of a schedule a session, and opens missing ones. Transactions
// that only read get a session on a replica, if there are replicas. The replica then has the rows
// of the schedule's beginning.
func (r *Runner) assign(ctx context.Context, s *Schedule) (workers []*worker, err error) {
	taken := map[int]int{} // sessions of each replica, and of the table as -1
	session := func(where int, table Table) error {
		number := 0
		for _, w := range r.workers {
			if w.where != where {
				continue
			}
			if number++; number > taken[where] {
				taken[where]++
				workers = append(workers, w)
				return nil
			}
		}
		c, err := table.Client(ctx, r.isolation)
		if err != nil {
			return fmt.Errorf("open a session: %w", err)
		}
		taken[where]++
		w := newWorker(c, where)
		r.workers, workers = append(r.workers, w), append(workers, w)
		return nil
	}
	for t := range s.transactions() {
		where, table := -1, r.table
		if len(r.options.Replicas) > 0 && s.readOnly(t+1) {
			where = r.replica % len(r.options.Replicas)
			table = r.options.Replicas[where]
			r.replica++
			if err := caughtUp(ctx, table, s.start()); err != nil {
				return nil, err
			}
		}
		if err := session(where, table); err != nil {
			return nil, err
		}
	}
	return workers, nil
}

// caughtUp waits until a replica has these rows.
func caughtUp(ctx context.Context, replica Table, rows []Row) error {
	for {
		there, err := replica.Rows(ctx)
		if err == nil && slices.Equal(there, rows) {
			return nil
		}
		select {
		case <-time.After(replicaPoll):
		case <-ctx.Done():
			return fmt.Errorf("wait until a replica has the rows of the schedules: %w", errors.Join(err, context.Cause(ctx)))
		}
	}
}

const (
	replicaPoll  = 5 * time.Millisecond
	replicaLimit = time.Minute // to catch up before the first schedule
	// replicaRounds is the factor of the rounds on replicas.
	replicaRounds = 10
)

// Carries returns an error if a replica of an empty table has no transactions that read at
// an isolation. It waits until the table is there too.
func Carries(ctx context.Context, replica Table, isolation string) error {
	limited, cancel := context.WithTimeout(ctx, replicaLimit)
	defer cancel()
	if err := caughtUp(limited, replica, nil); err != nil {
		return err
	}
	c, err := replica.Client(ctx, isolation)
	if err != nil {
		return err
	}
	if err = c.Begin(ctx, true); err == nil {
		if _, err = c.Do(ctx, Operation{Kind: Read, IDs: []int64{1}}); err == nil {
			err = c.Commit(ctx)
		}
	}
	return errors.Join(err, c.Close())
}

// asError returns the error of a client as a db.Error, of class Unknown if it is another.
func asError(err error) *db.Error {
	if e, ok := errors.AsType[*db.Error](err); ok {
		return e
	}
	return &db.Error{Op: "run a step", Err: err}
}

// RunAll runs all schedules at one isolation and returns their outcomes, in their order. Schedules
// with an index are run last, so that the table is made only twice.
func RunAll(ctx context.Context, table Table, isolation string, options Options) (list []Outcome, err error) {
	r := NewRunner(table, isolation, options)
	defer func() { err = errors.Join(err, r.Close()) }()
	all := Schedules()
	list = make([]Outcome, len(all))
	for _, index := range []bool{false, true} {
		for i := range all {
			if all[i].Index != index {
				continue
			}
			if list[i], err = r.Run(ctx, &all[i]); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stroppy/internal/db"
)

// Table is the rows of the schedules in one data model.
type Table interface {
	// Refuses says why the data model cannot say a schedule; empty: it can.
	Refuses(s *Schedule) string
	// Fill makes the table hold exactly these rows, and where index says so, find them by
	// amount through an index.
	Fill(ctx context.Context, rows []Row, index bool) error
	// Rows are all of them now, ascending by id.
	Rows(ctx context.Context) ([]Row, error)
	// Client opens a session.
	Client(ctx context.Context, isolation string) (Client, error)
	// Replica is the same table on one more database, which is behind this one: Rows and
	// Client are of what is there. It has nothing to fill or to take away.
	Replica(database db.Database) (Table, error)
	// Remove takes the table away, and closes what it has open.
	Remove(ctx context.Context) error
}

// Client is one session on a table. Its errors are *db.Error, and after one the
// transaction is over, as in the data models.
type Client interface {
	Begin(ctx context.Context, readOnly bool) error
	// Do carries out an operation that is neither Commit nor Rollback.
	Do(ctx context.Context, o Operation) (Result, error)
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
	Reset(ctx context.Context) error
	Close() error
}

// Options are how schedules are run. The zero value has defaults.
type Options struct {
	// Wait is how long a step may take before it counts as waiting and the schedule goes
	// on with the other transactions; 0: DefaultWait.
	Wait time.Duration
	// Limit is how long a schedule may take; 0: DefaultLimit.
	Limit time.Duration
	// Replicas are where transactions that only read are carried out, each schedule's on
	// the next ones; none: where the others are.
	Replicas []Table
}

const (
	DefaultWait  = 60 * time.Millisecond
	DefaultLimit = 10 * time.Second
	// attempts is how often a schedule is begun again when a step was slow for another
	// reason than a lock, or a session was lost. The wait doubles each time.
	attempts = 4
	// confirm is by how much the wait is longer when a schedule is run again in which a step
	// waited and no anomaly showed: that it was a lock must not rest on one short wait.
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

// NewRunner makes a runner, which opens sessions as it needs them.
func NewRunner(table Table, isolation string, options Options) *Runner {
	if options.Wait == 0 {
		options.Wait = DefaultWait
	}
	if options.Limit == 0 {
		options.Limit = DefaultLimit
	}
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

// Run runs one schedule. Only the end of ctx is an error; what else goes wrong leaves the
// outcome undecided.
func (r *Runner) Run(ctx context.Context, s *Schedule) (Outcome, error) {
	out := Outcome{Anomaly: s.Anomaly, Variant: s.Variant, Predicate: s.Predicate, Every: s.Every, Sampled: s.Rounds > 1}
	if why := r.table.Refuses(s); why != "" {
		out.State, out.How = NotApplicable, why
		return out, nil
	}
	count := max(s.Rounds, 1)
	if s.Rounds > 1 && len(r.options.Replicas) > 0 { // each of which is behind for moments
		count *= replicaRounds
	}
	for range count {
		o, err := r.attempt(ctx, s, r.options.Wait)
		if err == nil && s.Rounds <= 1 && o.restsOnWait() && s.seen(o) == "" {
			// A step that was slow and went on just when another transaction ended looks like
			// one that waited for its lock.
			o, err = r.attempt(ctx, s, r.options.Wait*confirm)
		}
		for wait := r.options.Wait * confirm; err == nil && s.Rounds > 1 && o.waited() && s.seen(o) != "" && wait < r.options.Limit; wait *= confirm {
			// Transactions that follow each other did not where a step was slow.
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

// attempt runs the schedule until it went as it is written.
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

// once runs the schedule. again says that it did not go as it is written.
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

// endAll makes the sessions ready for another schedule, whatever state they are in: first
// those that wait for nobody, so that the others go on. stop ends the steps under way. A
// session that cannot be had back is dropped.
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
			_ = w.close() // it is of no use any more
			return true
		}
		r.workers = slices.DeleteFunc(r.workers, over)
	}
	return err
}

// assign gives each transaction of a schedule a session, and opens what is missing. Those
// that only read have one on a replica, if there are any, which has what the schedule
// begins with.
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

// caughtUp returns when a replica has these rows.
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
	// replicaRounds is by how much schedules with rounds have more of them on replicas.
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

// asError is the error of a client, or one of class Unknown.
func asError(err error) *db.Error {
	if e, ok := errors.AsType[*db.Error](err); ok {
		return e
	}
	return &db.Error{Op: "run a step", Err: err}
}

// RunAll runs all schedules at one isolation and returns what they came to, in their
// order. Those with an index come after those without, so that the table is made twice.
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

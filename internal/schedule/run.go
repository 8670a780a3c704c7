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

// worker carries out the steps of one session, one at a time, in a goroutine of its own. So a
// waiting step does not delay other sessions.
type worker struct {
	client Client
	where  int // the number of the replica that it is on; -1: on the table itself
	jobs   chan func()
	done   chan *executed
	// The play owns the following fields.
	busy    *executed // nil: idle
	begun   bool      // a transaction is open
	broken  bool      // it must be reset
	since   int       // how many transactions had ended when the step began
	pending []*Step   // steps that were due while the session was waiting
}

func newWorker(c Client, where int) *worker {
	w := &worker{client: c, where: where, jobs: make(chan func()), done: make(chan *executed, 1)}
	go func() {
		for job := range w.jobs {
			job()
		}
	}()
	return w
}

// end leaves the session ready for another transaction, or returns the reason why it cannot.
func (w *worker) end(ctx context.Context) error {
	if w.busy != nil {
		e := <-w.done // its context has ended
		w.broken = w.broken || e.err != nil && unusable(e.err)
	}
	open, broken := w.begun, w.broken
	w.busy, w.begun, w.broken, w.pending = nil, false, false, nil
	if open && !broken {
		broken = w.client.Rollback(ctx) != nil
	}
	if broken {
		return w.client.Reset(ctx)
	}
	return nil
}

// unusable reports whether an error leaves a session that must be reset.
func unusable(err error) bool {
	class := db.ClassOf(err)
	return class == db.Unknown || class == db.Unavailable
}

func (w *worker) close() error {
	close(w.jobs)
	return w.client.Close()
}

// play is one run of a schedule.
type play struct {
	schedule *Schedule
	workers  []*worker
	wait     time.Duration
	*observed
	ended   int  // transactions that have ended so far
	numbers int  // steps that have ended so far
	slow    bool // a step took long, and no lock was the reason
}

// run carries out all steps. If a step does not end within the wait, the schedule goes on with the
// other transactions. It returns errors that have nothing to do with isolation.
func (p *play) run(ctx context.Context) error {
	for i := range p.schedule.Steps {
		step := &p.schedule.Steps[i]
		w := p.workers[step.Transaction-1]
		w.pending = append(w.pending, step)
		if w.busy == nil { // else settle sees to it
			if err := p.advance(ctx, w, p.wait); err != nil {
				return err
			}
		}
		if err := p.settle(ctx); err != nil {
			return err
		}
	}
	for w := p.unfinished(); w != nil; w = p.unfinished() {
		if err := p.advance(ctx, w, p.wait); err != nil {
			return err
		}
		if err := p.settle(ctx); err != nil {
			return err
		}
	}
	return nil
}

// unfinished returns a session with a step in progress or to come; nil if there is none.
func (p *play) unfinished() *worker {
	for _, w := range p.workers[:len(p.fate)-1] {
		if w.busy != nil || len(w.pending) > 0 {
			return w
		}
	}
	return nil
}

// settle lets sessions go on whose step ended after steps of others.
func (p *play) settle(ctx context.Context) error {
	for _, w := range p.workers[:len(p.fate)-1] {
		if w.busy == nil {
			continue
		}
		limit := time.Duration(0)
		if p.ended > w.since { // the transaction that it waited for may have ended
			limit = p.wait
		}
		if err := p.advance(ctx, w, limit); err != nil {
			return err
		}
	}
	return nil
}

// advance waits for the current step of a session, and begins its next ones, unless one takes
// longer than the limit.
func (p *play) advance(ctx context.Context, w *worker, limit time.Duration) error {
	for {
		if w.busy == nil {
			if len(w.pending) == 0 {
				return nil
			}
			step := w.pending[0]
			w.pending = w.pending[1:]
			if p.fate[step.Transaction] != isOpen { // it was aborted
				continue
			}
			p.begin(ctx, w, step)
			limit = p.wait
		}
		e := await(w, limit)
		if e == nil {
			w.busy.waited = true
			return nil
		}
		if err := p.finish(w, e); err != nil {
			return err
		}
	}
}

func await(w *worker, limit time.Duration) *executed {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case e := <-w.done:
		return e
	default:
	}
	select {
	case e := <-w.done:
		return e
	case <-timer.C:
		return nil
	}
}

// begin hands a step to its session.
func (p *play) begin(ctx context.Context, w *worker, step *Step) {
	e := &executed{step: step}
	first := !w.begun
	readOnly := p.schedule.readOnly(step.Transaction)
	w.busy, w.begun, w.since = e, true, p.ended
	p.begun = append(p.begun, e)
	w.jobs <- func() {
		// The play reads e only after done, and waited is its own.
		result, err := carryOut(ctx, w.client, step, first, readOnly)
		w.done <- &executed{Result: result, err: err}
	}
}

func carryOut(ctx context.Context, c Client, step *Step, first, readOnly bool) (r Result, err error) {
	if first {
		if err := c.Begin(ctx, readOnly); err != nil {
			return r, err
		}
	}
	switch step.Kind {
	case Commit:
		return r, c.Commit(ctx)
	case Rollback:
		return r, c.Rollback(ctx)
	}
	return c.Do(ctx, step.Operation)
}

// finish stores the result of a step.
func (p *play) finish(w *worker, result *executed) error {
	e := w.busy
	w.busy = nil
	e.Result, e.err = result.Result, result.err
	p.numbers++
	e.number = p.numbers
	if e.waited && e.err == nil && p.ended == w.since {
		p.slow = true // no lock was given up meanwhile
	}
	t := e.step.Transaction
	if e.err != nil {
		switch err := asError(e.err); err.Class {
		case db.Aborted, db.Constraint:
			p.fate[t] = isAborted
		default:
			w.broken = unusable(e.err)
			return fmt.Errorf("step %s of T%d: %w", e.step, t, e.err)
		}
	}
	switch {
	case e.err != nil:
	case e.step.Kind == Commit:
		p.fate[t] = isCommitted
	case e.step.Kind == Rollback:
		p.fate[t] = isRolledBack
	}
	if p.fate[t] != isOpen {
		p.ended++
		w.begun = false
	}
	return nil
}

// readFinal reads the rows that the schedule left. An anomaly that shows must show again a little
// later: the first answer may come from a replica that is behind.
func (p *play) readFinal(ctx context.Context, table Table) (err error) {
	if p.final, err = table.Rows(ctx); err != nil || !p.schedule.Leaves || p.schedule.seen(p.observed) == "" {
		return err
	}
	select {
	case <-time.After(replicaDelay):
	case <-ctx.Done():
		return ctx.Err()
	}
	p.final, err = table.Rows(ctx)
	return err
}

// replicaDelay is the longest delay of a replica that answers for the rows left by a schedule.
const replicaDelay = 200 * time.Millisecond

package load

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/pace"
)

// standIn replaces a client of a workload. Its functions determine how tries, look-ups and new sessions end;
// a missing function means success.
type standIn struct {
	number   uint64
	kind     history.Kind // Transfer unless set
	made     uint64
	tries    int // of all transactions
	resolved int
	resets   int

	attempt func(ctx context.Context, tx *history.Transaction) error
	resolve func(ctx context.Context, tx *history.Transaction) error
	reset   func(ctx context.Context) error
}

func (c *standIn) Next(tx *history.Transaction) {
	c.made++
	tx.ID = history.NewID(1, c.number, c.made)
	if tx.Kind = c.kind; c.kind == 0 {
		tx.Kind = kindTransfer
	}
	payer := c.number*1000 + c.made%10*2
	tx.Ops = append(tx.Ops[:0],
		history.Op{Object: payer, Write: true, Amount: -100},
		history.Op{Object: payer + 1, Write: true, Amount: 100})
}

func (c *standIn) Attempt(ctx context.Context, tx *history.Transaction) error {
	c.tries++
	if c.attempt != nil {
		return c.attempt(ctx, tx)
	}
	tx.Outcome = history.Committed
	return nil
}

func (c *standIn) ResolveUnknown(ctx context.Context, tx *history.Transaction) error {
	c.resolved++
	if c.resolve != nil {
		return c.resolve(ctx, tx)
	}
	tx.Outcome = history.Committed
	return nil
}

func (c *standIn) Reset(ctx context.Context) error {
	c.resets++
	if c.reset != nil {
		return c.reset(ctx)
	}
	return nil
}

func (c *standIn) Close() error { return nil }

// These are the errors of the stand-ins' database.
var (
	errText     = errors.New("what happened")
	errAborted  = &db.Error{Class: db.Aborted, Code: "40001", Op: "commit", Err: errText}
	errAway     = &db.Error{Class: db.Unavailable, Op: "connect", Err: errText}
	errUnknown  = &db.Error{Class: db.Unknown, Op: "commit", Err: errText}
	errFinal    = &db.Error{Class: db.Unknown, Op: "commit", Final: true, Err: errText}
	errFatal    = &db.Error{Class: db.Fatal, Code: "42501", Op: "update", Err: errText}
	errCheck    = &db.Error{Class: db.Constraint, Constraint: db.CheckFailed, Code: "23514", Op: "update", Err: errText}
	errNoClass  = errors.New("a driver's own error")
	errApplied  = &db.Error{Class: db.Constraint, Constraint: db.UniqueKey, Op: "insert", Err: ErrAlreadyApplied}
	errLostDone = &db.Error{Class: db.Unknown, Op: "insert", Err: ErrAlreadyApplied}
)

// drill is a load phase of stand-ins with its own history folder.
type drill struct {
	t       *testing.T
	dir     string
	options Options
	driver  *Driver
}

// newDrill returns a drill that starts now, with numbered clients.
func newDrill(t *testing.T, o Options, clients ...*standIn) *drill {
	t.Helper()
	for i, c := range clients {
		c.number = uint64(i)
		o.Clients = append(o.Clients, c)
	}
	d := &drill{t: t, dir: t.TempDir(), options: o}
	var err error
	d.options.History, err = history.Create(d.dir, history.Header{Run: 1}, len(clients)+len(o.Background))
	if err != nil {
		t.Fatal(err)
	}
	d.options.Start = time.Now()
	d.driver = New(d.options)
	d.driver.precise = false // virtual time knows only the runtime's timers
	return d
}

// run runs the load phase. It also returns the recorded transactions in the order of Sent.
func (d *drill) run(ctx context.Context) (*Result, []history.Transaction, error) {
	d.t.Helper()
	result, err := d.driver.Run(ctx)
	if e := d.options.History.Close(); e != nil {
		d.t.Fatal(e)
	}
	return result, d.read(), err
}

func (d *drill) read() (list []history.Transaction) {
	d.t.Helper()
	r, err := history.Open(d.dir)
	if err != nil {
		d.t.Fatal(err)
	}
	defer r.Close()
	for record, err := range r.Transactions() {
		if err != nil {
			d.t.Fatal(err)
		}
		tx := *record.Transaction
		tx.Ops = slices.Clone(tx.Ops)
		list = append(list, tx)
		if tx.Due > tx.Sent || tx.Sent > tx.Try || tx.Try > tx.End || tx.Attempts < 1 {
			d.t.Errorf("transaction %s: due %d, sent %d, try %d, end %d, %d attempts", tx.ID, tx.Due, tx.Sent, tx.Try, tx.End, tx.Attempts)
		}
	}
	slices.SortStableFunc(list, func(a, b history.Transaction) int { return int(a.Sent - b.Sent) })
	return list
}

// script returns a function that returns the errors one by one, and then nil with the outcome ok.
func script(ok history.Outcome, errs ...error) func(context.Context, *history.Transaction) error {
	return func(_ context.Context, tx *history.Transaction) error {
		tx.Outcome = history.Committed // must count for nothing beside an error
		if len(errs) == 0 {
			tx.Outcome = ok
			return nil
		}
		err := errs[0]
		errs = errs[1:]
		return err
	}
}

// plan returns the parsed plan, which must be valid.
func plan(text string) pace.Plan {
	p, err := pace.Parse(text)
	if err != nil {
		panic(err)
	}
	return p
}

func constant(rate float64) pace.Plan {
	p, err := pace.Constant(rate)
	if err != nil {
		panic(err)
	}
	return p
}

func repeat(err error, n int) []error { return slices.Repeat([]error{err}, n) }

// These are the kinds of transactions in the tests.
const (
	kindTransfer = 1 * history.Numbered
	kindInquiry  = 2*history.Numbered | history.ReadOnly
	kindAudit    = 3*history.Numbered | history.ReadOnly | history.Background

	noFunds history.Reason = 1
)

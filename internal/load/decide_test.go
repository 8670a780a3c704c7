package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/history"
)

// resetScript is like script, for Reset.
func resetScript(errs ...error) func(context.Context) error {
	next := script(history.Unknown, errs...)
	return func(ctx context.Context) error { return next(ctx, new(history.Transaction)) }
}

const (
	unknown   = history.Unknown
	committed = history.Committed
	rejected  = history.Rejected
	aborted   = history.Aborted
)

// ending is a way in which one transaction ends.
type ending struct {
	name     string
	kind     history.Kind
	tries    []error // the errors of the first tries; then answer
	answer   history.Outcome
	lookUps  []error // the same of ResolveUnknown; then found
	found    history.Outcome
	sessions []error // the same of Reset
	errors   uint64  // that are counted
	want     ended
}

type ended struct {
	outcome    history.Outcome
	lookedUp   bool
	attempts   uint32
	resolved   int
	resets     int
	conflicts  uint64
	retries    uint64
	reconnects uint64
	err        error
}

// These endings have three retries.
var triedEndings = []ending{
	{name: "committed", answer: committed, want: ended{outcome: committed, attempts: 1}},
	{name: "rejected", answer: rejected, want: ended{outcome: rejected, attempts: 1}},
	{name: "a client that says nothing", answer: unknown, want: ended{outcome: unknown, attempts: 1}},

	{name: "conflict then committed", tries: repeat(errAborted, 2), answer: committed, errors: 2,
		want: ended{outcome: committed, attempts: 3, conflicts: 2, retries: 2}},
	{name: "as many conflicts as retries", tries: repeat(errAborted, 3), answer: committed, errors: 3,
		want: ended{outcome: committed, attempts: 4, conflicts: 3, retries: 3}},
	{name: "retries exhausted", tries: repeat(errAborted, 9), answer: committed, errors: 4,
		want: ended{outcome: aborted, attempts: 4, conflicts: 4, retries: 3}},

	{name: "server away", tries: repeat(errAway, 9), answer: committed, sessions: repeat(errAway, 5), errors: 14,
		want: ended{outcome: committed, attempts: 10, resets: 14, reconnects: 9}},
	{name: "server away then refuses us", tries: repeat(errAway, 1), sessions: []error{errAway, errFatal}, errors: 3,
		want: ended{outcome: aborted, attempts: 1, resets: 2, err: errFatal}},
	{name: "server away leaves the retries", tries: append(repeat(errAway, 5), repeat(errAborted, 3)...), answer: committed, errors: 8,
		want: ended{outcome: committed, attempts: 9, resets: 5, reconnects: 5, conflicts: 3, retries: 3}},

	{name: "fatal", tries: []error{errFatal}, errors: 1, want: ended{outcome: aborted, attempts: 1, err: errFatal}},
	{name: "unexpected constraint", tries: []error{errAborted, errCheck}, errors: 2,
		want: ended{outcome: aborted, attempts: 2, conflicts: 1, retries: 1, err: errCheck}},

	{name: "applied behind our back", tries: []error{errAborted, errApplied}, errors: 2,
		want: ended{outcome: aborted, attempts: 2, conflicts: 1, retries: 1}},
	{name: "applied behind our back, bare", tries: []error{ErrAlreadyApplied}, errors: 1,
		want: ended{outcome: aborted, attempts: 1}},
	{name: "applied behind our back, session lost", tries: []error{errLostDone}, errors: 1,
		want: ended{outcome: aborted, attempts: 1}},
}

var lookedUpEndings = []ending{
	{name: "unknown found", tries: repeat(errUnknown, 1), found: committed, errors: 1,
		want: ended{outcome: committed, lookedUp: true, attempts: 1, resolved: 1, resets: 1, reconnects: 1}},
	{name: "unknown not found", tries: repeat(errUnknown, 1), found: aborted, errors: 1,
		want: ended{outcome: aborted, lookedUp: true, attempts: 1, resolved: 1, resets: 1, reconnects: 1}},
	{name: "no class is unknown", tries: []error{errNoClass}, found: committed, errors: 1,
		want: ended{outcome: committed, lookedUp: true, attempts: 1, resolved: 1, resets: 1, reconnects: 1}},
	{name: "unknown after a conflict", tries: []error{errAborted, errUnknown}, found: aborted, errors: 2,
		want: ended{outcome: aborted, lookedUp: true, attempts: 2, resolved: 1, resets: 1, reconnects: 1, conflicts: 1, retries: 1}},
	{name: "look-up repeated", tries: repeat(errUnknown, 1), lookUps: []error{errAway, errAborted, errUnknown, errNoClass}, found: committed,
		sessions: []error{errAway}, errors: 6,
		want: ended{outcome: committed, lookedUp: true, attempts: 1, resolved: 5, resets: 5, reconnects: 4}},
	{name: "look-up without an answer", tries: repeat(errUnknown, 1), found: unknown, errors: 1,
		want: ended{outcome: unknown, attempts: 1, resolved: 1, resets: 1, reconnects: 1}},
	{name: "look-up is final", tries: repeat(errUnknown, 1), lookUps: []error{errFinal}, found: committed, errors: 2,
		want: ended{outcome: unknown, attempts: 1, resolved: 1, resets: 1, reconnects: 1}},
	{name: "look-up is fatal", tries: repeat(errUnknown, 1), lookUps: []error{errFatal}, found: committed, errors: 2,
		want: ended{outcome: unknown, attempts: 1, resolved: 1, resets: 1, reconnects: 1, err: errFatal}},
	{name: "final is not looked up", tries: []error{errFinal}, found: committed, errors: 1,
		want: ended{outcome: unknown, attempts: 1}},

	{name: "unknown inquiry", kind: kindInquiry, tries: repeat(errUnknown, 1), found: committed, errors: 1,
		want: ended{outcome: aborted, attempts: 1}},
	{name: "final audit", kind: kindAudit, tries: repeat(errFinal, 1), found: committed, errors: 1,
		want: ended{outcome: aborted, attempts: 1}},
}

func TestEveryWayATransactionEnds(t *testing.T) {
	for _, c := range slices.Concat(triedEndings, lookedUpEndings) {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, c.test)
		})
	}
}

func (c ending) test(t *testing.T) {
	client := &standIn{kind: c.kind, attempt: script(c.answer, c.tries...), resolve: script(c.found, c.lookUps...), reset: resetScript(c.sessions...)}
	d := newDrill(t, Options{Count: 1, Retries: 3}, client)
	r, list, err := d.run(t.Context())
	if len(list) != 1 {
		t.Fatalf("%d transactions recorded", len(list))
	}
	tx := list[0]
	got := ended{tx.Outcome, tx.LookedUp, tx.Attempts, client.resolved, client.resets, r.Conflicts, r.Retries, r.Reconnects, c.want.err}
	if got != c.want {
		t.Errorf("got  %+v\nwant %+v", got, c.want)
	}
	if !errors.Is(err, c.want.err) {
		t.Errorf("the drive ended with %v, want %v", err, c.want.err)
	}
	var counted uint64
	for _, e := range r.Errors {
		counted += e.Count
	}
	if counted != c.errors {
		t.Errorf("%d errors counted, want %d: %+v", counted, c.errors, r.Errors)
	}
	if live := d.driver.Live(); live.Done != 1 || (live.Unknown == 1) != (c.want.outcome == unknown) || r.Unresolved != live.Unknown {
		t.Errorf("live %+v, unresolved %d", live, r.Unresolved)
	}
}

func TestLostSessionIsReplacedBeforeTheNextTransaction(t *testing.T) {
	for _, lost := range []error{errFinal, errLostDone} {
		synctest.Test(t, func(t *testing.T) {
			client := &standIn{attempt: script(history.Committed, lost), reset: resetScript(errAway, errAway)}
			r, list, err := newDrill(t, Options{Count: 2}, client).run(t.Context())
			if err != nil || len(list) != 2 || client.resets != 3 || r.Reconnects != 1 || client.resolved != 0 {
				t.Fatalf("%d transactions, %d resets, %+v, %v", len(list), client.resets, r, err)
			}
			if next := list[1]; next.Due != list[0].End || next.Sent <= next.Due || next.Attempts != 1 {
				t.Errorf("after the loss: %+v", next)
			}
		})
	}
}

func TestRetriesForgetWhatWasObserved(t *testing.T) {
	client := &standIn{}
	client.attempt = func(_ context.Context, tx *history.Transaction) error {
		for i := range tx.Ops {
			if tx.Ops[i].Observed || tx.Ops[i].Value != 0 {
				t.Errorf("try %d begins with %+v", tx.Attempts, tx.Ops[i])
			}
			tx.Ops[i].Observed, tx.Ops[i].Value, tx.Ops[i].Version, tx.Ops[i].Writer = true, 7, 8, 9
		}
		if tx.Attempts < 3 {
			return errAborted
		}
		tx.Outcome = history.Committed
		return nil
	}
	_, list, err := newDrill(t, Options{Count: 1, Retries: 5}, client).run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if op := list[0].Ops[0]; !op.Observed || op.Amount != -100 || op.Writer != 9 {
		t.Errorf("recorded %+v", op)
	}
}

func TestTryIsTheDecidingOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &standIn{}
		client.attempt = func(_ context.Context, tx *history.Transaction) error {
			time.Sleep(time.Second)
			if tx.Attempts < 3 {
				return errAborted
			}
			tx.Outcome = history.Committed
			return nil
		}
		_, list, err := newDrill(t, Options{Count: 1, Retries: 5}, client).run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tx := list[0]
		if tx.Sent != 0 || tx.Try < 2e9 || tx.Try > 2e9+int64(conflictCap) || tx.End != tx.Try+1e9 {
			t.Errorf("sent %d, try %d, end %d", tx.Sent, tx.Try, tx.End)
		}
	})
}

func TestLookUpEndsAfterItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &standIn{attempt: script(history.Committed, errUnknown)}
		client.resolve = func(ctx context.Context, tx *history.Transaction) error {
			tx.Outcome = history.Committed
			return errAway
		}
		r, list, err := newDrill(t, Options{Count: 2}, client).run(t.Context())
		if err != nil || len(list) != 2 {
			t.Fatalf("%d transactions, %v", len(list), err)
		}
		if tx := list[0]; tx.Outcome != history.Unknown || tx.LookedUp || tx.End-tx.Try != int64(resolveLimit) {
			t.Errorf("the lost one: %+v", tx)
		}
		if list[1].Outcome != history.Committed || r.Unresolved != 1 {
			t.Errorf("the next one: %+v, %d unresolved", list[1], r.Unresolved)
		}
	})
}

func TestResolveEndsSoonAfterTheDrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &standIn{attempt: func(context.Context, *history.Transaction) error { return errUnknown }}
		client.reset = func(context.Context) error { return errAway }
		r, list, err := newDrill(t, Options{Duration: time.Second}, client).run(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("%d transactions, %v", len(list), err)
		}
		if tx := list[0]; tx.Outcome != history.Unknown || tx.End != int64(time.Second+grace) {
			t.Errorf("recorded %+v", tx)
		}
		if r.Interrupted || r.Elapsed != time.Second || r.Unresolved != 1 {
			t.Errorf("%+v", r)
		}
	})
}

func TestCallsThatHangAreCancelledAfterTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &standIn{attempt: func(ctx context.Context, _ *history.Transaction) error {
			<-ctx.Done()
			return &db.Error{Class: db.Unknown, Op: "commit", Err: ctx.Err()}
		}}
		_, list, err := newDrill(t, Options{Duration: time.Second}, client).run(t.Context())
		if err != nil || len(list) != 1 || list[0].Outcome != history.Unknown || list[0].End != int64(time.Second+grace) {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestFullJitterStaysInBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 100 {
		limit := outageCap
		if n < 10 {
			limit = outageBase << n
		}
		var largest time.Duration
		for range 1000 {
			d := fullJitter(r, outageBase, outageCap, n)
			if d <= 0 || d > limit {
				t.Fatalf("wait %d is %v, want at most %v", n, d, limit)
			}
			largest = max(largest, d)
		}
		if largest < limit/2 {
			t.Errorf("the longest of 1000 waits %d is %v: the jitter is not full up to %v", n, largest, limit)
		}
	}
}

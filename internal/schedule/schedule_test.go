package schedule

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/memory"
)

// seenOn runs all schedules on a table and returns the variants that were seen, by
// anomaly.
func seenOn(t *testing.T, table Table) map[Anomaly][]string {
	t.Helper()
	list, err := RunAll(t.Context(), table, "", Options{Wait: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[Anomaly][]string{}
	for _, o := range list {
		switch {
		case o.State == Undecided:
			t.Errorf("%s %s: %s", o.Anomaly, o.Variant, o.How)
		case o.State == Seen:
			seen[o.Anomaly] = append(seen[o.Anomaly], o.Variant)
		case o.State == Prevented && o.How == "":
			t.Errorf("%s %s is prevented, and nothing says how", o.Anomaly, o.Variant)
		}
	}
	return seen
}

// TestSchedulesFindWhatEachLevelAllows checks that executors of known isolation show each anomaly that they do not
// prevent, and no other.
func TestSchedulesFindWhatEachLevelAllows(t *testing.T) {
	skews := []Anomaly{G2Item, G2}
	unrepeated := slices.Concat([]Anomaly{Internal, PMP, P4, GSingle, LongFork}, skews)
	for _, c := range []struct {
		name  string
		level level
		seen  []Anomaly
	}{
		{"chaos", chaos, slices.Concat([]Anomaly{G0, G1a, G1b, G1c, OTV}, unrepeated)},
		{"dirty reads", dirtyReads, slices.Concat([]Anomaly{G1a, G1b, G1c, OTV}, unrepeated)},
		{"committed reads", committed, unrepeated},
		{"writes to the newest version", updating, slices.Concat([]Anomaly{OTV, Internal, PMP, P4, GSingle}, skews)},
		{"snapshots", snapshots, skews},
		{"one by one", oneByOne, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			seen := seenOn(t, newExecutor(c.level))
			for _, a := range Anomalies() {
				if want := slices.Contains(c.seen, a); want != (len(seen[a]) > 0) {
					t.Errorf("%s: seen %v in %q", a, !want, seen[a])
				}
			}
		})
	}
}

// TestEachScheduleShowsItsAnomaly checks that every schedule shows its anomaly on an executor that allows it. A
// form that every level forbids must not show on an executor with a level.
func TestEachScheduleShowsItsAnomaly(t *testing.T) {
	blind := newExecutor(snapshots)
	blind.blind = true
	seen := map[string]bool{}
	for _, e := range []*executor{newExecutor(chaos), newExecutor(committed), newExecutor(updating), newExecutor(snapshots), blind} {
		list, err := RunAll(t.Context(), e, "", Options{Wait: 10 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list {
			if o.State != Seen {
				continue
			}
			seen[o.Anomaly.String()+" "+o.Variant] = true
			if o.Every && e.level != chaos && !e.blind {
				t.Errorf("%s %s is seen where a transaction reads its own writes: %s", o.Anomaly, o.Variant, o.Witness)
			}
		}
	}
	for _, s := range Schedules() {
		if name := s.Anomaly.String() + " " + s.Variant; s.Rounds == 0 && !seen[name] {
			t.Errorf("no executor shows %s", name)
		}
	}
}

// TestStrictReferenceShowsNoAnomaly checks that the strictly serializable reference shows no anomaly.
func TestStrictReferenceShowsNoAnomaly(t *testing.T) {
	d, err := memory.Open("memory:")
	if err != nil {
		t.Fatal(err)
	}
	table, err := NewTable(d)
	if err != nil {
		t.Fatal(err)
	}
	if seen := seenOn(t, table); len(seen) > 0 {
		t.Errorf("seen on the reference: %v", seen)
	}
	if err := table.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rows, err := table.Rows(t.Context()); err != nil || len(rows) > 0 {
		t.Errorf("%v is left: %v", rows, err)
	}
}

// stuck is a table on which a second transaction waits for ever.
type stuck struct{ *executor }

type stuckClient struct{ *transactor }

func (s stuck) Client(context.Context, string) (Client, error) {
	return stuckClient{&transactor{of: s.executor}}, nil
}

func (c stuckClient) Do(ctx context.Context, o Operation) (Result, error) {
	if o.Kind == Write && o.Amount == 12 {
		<-ctx.Done()
		return Result{}, &db.Error{Class: db.Unknown, Op: "write", Err: ctx.Err()}
	}
	return c.transactor.Do(ctx, o)
}

// TestEndlessStepLeavesScheduleUndecided checks that a step that never ends leaves the schedule undecided, and is
// named.
func TestEndlessStepLeavesScheduleUndecided(t *testing.T) {
	r := NewRunner(stuck{newExecutor(chaos)}, "", Options{Wait: time.Millisecond, Limit: 20 * time.Millisecond})
	o, err := r.Run(t.Context(), &Schedules()[0])
	if err != nil || o.State != Undecided || !strings.Contains(o.How, "had not ended after 20ms: step write 1=12 of T2") {
		t.Errorf("%v %q: %v", o.State, o.How, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestSchedulesEndWithContext checks that the schedules end with the context of the call.
func TestSchedulesEndWithContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	if _, err := RunAll(ctx, newExecutor(chaos), "", Options{}); !errors.Is(err, cause) {
		t.Errorf("it ended with %v", err)
	}
}

// TestAnomaliesAndSchedulesHaveUniqueNames checks that each anomaly is found by its name, and that each schedule
// has a unique name.
func TestAnomaliesAndSchedulesHaveUniqueNames(t *testing.T) {
	for _, a := range Anomalies() {
		if back, ok := Parse(a.String()); !ok || back != a || a.Text() == "" {
			t.Errorf("%s is read as %s", a, back)
		}
	}
	if _, ok := Parse("G3"); ok {
		t.Error("G3 is an anomaly")
	}
	names := map[string]bool{}
	for _, s := range Schedules() {
		name := s.Anomaly.String() + " " + s.Variant
		if names[name] || s.seen == nil {
			t.Errorf("%s is there twice, or sees nothing", name)
		}
		names[name] = true
		if last := s.Steps[len(s.Steps)-1]; last.Kind != Commit {
			t.Errorf("%s ends with %s", name, last)
		}
	}
}

// TestSchedulesFindBrokenIsolation checks that each mutant of the reference that breaks isolation is found. A
// schedule cannot find stale-read, which hides changes of 200 commits ago and nothing newer; load does.
func TestSchedulesFindBrokenIsolation(t *testing.T) {
	for mutant, want := range map[string]Anomaly{
		"lost-update": P4, "dirty-read": G1a, "read-skew": GSingle, "write-skew": G2Item, "long-fork": LongFork, "phantom": G2, "stale-read": 0,
	} {
		d, err := memory.Open("memory:?rate=1&mutant=" + mutant)
		if err != nil {
			t.Fatal(err)
		}
		seen := seenOn(t, NewKV(d))
		if want != 0 && len(seen[want]) == 0 {
			t.Errorf("%s: no %s is seen", mutant, want)
		}
		for a := range seen {
			if a != want {
				t.Errorf("%s: %s is seen in %q", mutant, a, seen[a])
			}
		}
	}
}

// TestLaggingReplicaShowsStaleRead checks that a replica that lags shows a stale read, and that an up-to-date
// replica shows none. Only reads run on the replicas.
func TestLaggingReplicaShowsStaleRead(t *testing.T) {
	stale := func(table Table, replicas ...Table) Outcome {
		r := NewRunner(table, "", Options{Wait: 10 * time.Millisecond, Replicas: replicas})
		defer r.Close()
		s := staleRead()
		o, err := r.Run(t.Context(), &s)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	e := newExecutor(snapshots)
	old, _ := e.Replica(nil)
	if o := stale(e); o.State != Prevented {
		t.Errorf("without a replica: %+v", o)
	}
	if o := stale(e, old); o.State != Seen || !strings.Contains(o.Witness, "T2 began after T1 had committed") {
		t.Errorf("with a replica that is behind: %+v", o)
	}
	d, err := memory.Open("memory:")
	if err != nil {
		t.Fatal(err)
	}
	table := NewKV(d)
	same, err := table.Replica(d)
	if err != nil {
		t.Fatal(err)
	}
	if o := stale(table, same, same); o.State != Prevented || !o.Sampled {
		t.Errorf("with a replica that is not behind: %+v", o)
	}
	if err := errors.Join(same.Remove(t.Context()), table.Remove(t.Context())); err != nil {
		t.Error(err)
	}
}

// slowSteps is a table on which one kind of step takes effect only after a time: the write
// or the commit of a transaction that wrote.
type slowSteps struct {
	Table
	time time.Duration
	slow Kind
}

func (s slowSteps) Client(ctx context.Context, isolation string) (Client, error) {
	c, err := s.Table.Client(ctx, isolation)
	return &slowStep{Client: c, slowSteps: s}, err
}

type slowStep struct {
	Client
	slowSteps
	writes bool
}

func (c *slowStep) Begin(ctx context.Context, readOnly bool) error {
	c.writes = false
	return c.Client.Begin(ctx, readOnly)
}

func (c *slowStep) Do(ctx context.Context, o Operation) (Result, error) {
	c.writes = c.writes || o.Kind == Write
	if o.Kind == c.slow {
		time.Sleep(c.time)
	}
	return c.Client.Do(ctx, o)
}

func (c *slowStep) Commit(ctx context.Context) error {
	if c.writes && c.slow == Commit {
		time.Sleep(c.time)
	}
	return c.Client.Commit(ctx)
}

// TestSlowStepIsNoStaleRead checks that a read before the answer of an earlier commit is no stale read, because it
// did not follow the commit.
func TestSlowStepIsNoStaleRead(t *testing.T) {
	for _, slow := range []Kind{Write, Commit} {
		r := NewRunner(slowSteps{newExecutor(snapshots), 15 * time.Millisecond, slow}, "", Options{Wait: 5 * time.Millisecond})
		s := staleRead()
		s.Rounds = 3
		o, err := r.Run(t.Context(), &s)
		if err != nil || o.State != Prevented {
			t.Errorf("%v: %+v, %v", slow, o, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// emptyTable is a table whose sessions are on a node that has none of its rows yet.
type emptyTable struct{ Table }

func (e emptyTable) Fill(ctx context.Context, _ []Row, index bool) error {
	return e.Table.Fill(ctx, nil, index)
}

// TestTransactionWithoutRowsMissesNoWrite checks that a transaction that found no row to write is not accused of
// missing its own write.
func TestTransactionWithoutRowsMissesNoWrite(t *testing.T) {
	list, err := RunAll(t.Context(), emptyTable{newExecutor(snapshots)}, "", Options{Wait: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		if o.State == Seen && o.Anomaly != G2Item && o.Anomaly != G2 { // which need no rows
			t.Errorf("%s %s is seen: %s", o.Anomaly, o.Variant, o.Witness)
		}
	}
}

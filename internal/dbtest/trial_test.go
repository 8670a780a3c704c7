package dbtest

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/load"
	"stroppy/internal/scenario"
	"stroppy/internal/workload"
	"stroppy/internal/workload/bank"
	"stroppy/internal/workload/events"
	"stroppy/internal/workload/kv"
	"stroppy/internal/workload/tpcb"
)

// limit bounds one run of a test, so that one that hangs fails.
const limit = 5 * time.Minute

// epoch is the zero of the clock that all runs of a test program share.
var epoch = time.Now()

// trial is one run of a workload on a database without the command around it:
// load, attach, drive, download, check. Every step that fails ends the test.
type trial struct {
	database  db.Database
	workload  workload.Workload
	isolation string
	retries   int // of a transaction that was aborted
	dir       string

	loaded  workload.Loaded
	driver  *load.Driver
	ended   chan error
	stop    context.CancelFunc
	driven  *load.Result // after the drive
	results []checktest.Reported
}

// keep leaves a copy of a run's directory where the test fails, because a verdict that
// should not be is settled with the recording.
func keep(t *testing.T, dir string) string {
	t.Helper()
	t.Cleanup(func() {
		if _, err := os.Stat(dir); !t.Failed() || err != nil {
			return
		}
		kept, err := os.MkdirTemp("", "stroppy-failed-")
		if err == nil {
			err = os.CopyFS(kept, os.DirFS(dir))
		}
		t.Logf("the run of %s is kept in %s, %v", t.Name(), kept, err)
	})
	return dir
}

// runDir names a run's directory, which is there yet when the test has failed and is over.
func runDir(t *testing.T) string {
	t.Helper()
	return keep(t, filepath.Join(t.TempDir(), "run"))
}

// newTrial makes the directory of a run; isolation is the database's name for it.
func newTrial(t *testing.T, database db.Database, w workload.Workload, isolation string) *trial {
	t.Helper()
	return &trial{database: database, workload: w, isolation: isolation, retries: 1000, dir: keep(t, t.TempDir())}
}

// conduct carries out a whole run of so many transactions.
func conduct(t *testing.T, database db.Database, w workload.Workload, isolation string, count uint64) *trial {
	t.Helper()
	r := newTrial(t, database, w, isolation)
	r.load(t)
	r.attach(t)
	r.drive(t, count)
	r.download(t)
	r.leave(t)
	r.check(t)
	return r
}

// leave ends the run for those that attach later. A database of a test may refuse that.
func (r *trial) leave(t *testing.T) {
	t.Helper()
	if err := r.workload.Leave(t.Context()); err != nil {
		t.Logf("the data could not be described: %v", err)
	}
}

func (r *trial) load(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var err error
	if r.loaded, err = r.workload.Load(ctx, nil); err != nil {
		t.Fatal(err)
	}
}

func (r *trial) attach(t *testing.T) {
	t.Helper()
	if _, err := r.workload.Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// drive runs so many transactions and waits for their end.
func (r *trial) drive(t *testing.T, count uint64) {
	t.Helper()
	r.start(t, count)
	defer r.stop()
	if err := <-r.ended; err != nil {
		t.Fatal(err)
	}
}

// start opens the clients and begins to drive. The drive ends after so many
// transactions, or with finish.
func (r *trial) start(t *testing.T, count uint64) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), limit)
	r.stop = stop
	options := load.Options{Count: count, Retries: r.retries, Seed: 1, Start: time.Now()}
	header := r.workload.Header()
	header.Keys = maps.Clone(header.Keys)
	if header.Keys == nil {
		header.Keys = map[string]string{}
	}
	began := int64(options.Start.Sub(epoch))
	header.Keys[check.KeyClock] = check.Clock{ID: "test", From: began, To: began}.String()
	for i := range header.Clients {
		client, err := r.workload.Client(ctx, i)
		if err != nil {
			t.Fatal(err)
		}
		options.Clients = append(options.Clients, client)
	}
	var err error
	if options.Background, err = r.workload.Background(ctx); err != nil {
		t.Fatal(err)
	}
	options.History, err = history.Create(r.history(), header, len(options.Clients)+len(options.Background))
	if err != nil {
		t.Fatal(err)
	}
	r.driver, r.ended = load.New(options), make(chan error, 1)
	go func() {
		var err error
		r.driven, err = r.driver.Run(ctx)
		closed := closeAll(&options)
		if r.driven != nil && r.driven.Reconnects > 0 { // a session that was lost may close with an error
			closed = nil
		}
		r.ended <- errors.Join(err, closed, options.History.Close())
	}()
}

func closeAll(options *load.Options) (all error) {
	for _, c := range options.Clients {
		all = errors.Join(all, c.Close())
	}
	for _, b := range options.Background {
		all = errors.Join(all, b.Client.Close())
	}
	return all
}

// more waits until so many more transactions are committed.
func (r *trial) more(t *testing.T, n uint64) {
	t.Helper()
	for until := r.driver.Live().Committed + n; r.driver.Live().Committed < until; {
		select {
		case err := <-r.ended:
			r.ended <- err
			t.Fatalf("the drive ended with %d transactions committed, not %d: %v", r.driver.Live().Committed, until, err)
		case <-time.After(time.Millisecond):
		}
	}
}

// finish ends a drive that was started, downloads and checks.
func (r *trial) finish(t *testing.T) {
	t.Helper()
	r.stop()
	if err := <-r.ended; err != nil {
		t.Fatal(err)
	}
	r.download(t)
	r.check(t)
}

func (r *trial) history() string { return filepath.Join(r.dir, "history") }

func (r *trial) download(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	end, err := history.CreateEnd(r.history())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.workload.EndState(ctx, end, nil), end.Close()); err != nil {
		t.Fatal(err)
	}
}

// level is what the database claims at the isolation of the run.
func (r *trial) level(t *testing.T) isolation.Level {
	t.Helper()
	claim, err := r.database.Claim(r.isolation)
	if err != nil {
		t.Fatal(err)
	}
	return claim.Level
}

func (r *trial) check(t *testing.T) {
	t.Helper()
	r.checkWith(t)
}

// checkWith checks the run together with those before it.
func (r *trial) checkWith(t *testing.T, before ...string) {
	t.Helper()
	specs := scenario.Workloads{bank.Spec(), tpcb.Spec(), events.Spec(), kv.Spec()}
	spec, err := specs.Find(r.workload.Header().Workload)
	if err != nil {
		t.Fatal(err)
	}
	checked, err := spec.Check(t.Context(), append(before, r.dir), r.level(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.results = checktest.Worded(checked.Results, spec.Words)
}

// status returns what a check came to; Unknown if there is none of that name.
func (r *trial) status(name string) checktest.Reported {
	for _, result := range r.results {
		if result.Name == name {
			return result
		}
	}
	return checktest.Reported{Result: check.Result{Name: name}, Detail: "there is no such check"}
}

// names reports whether a check found an anomaly of that name.
func (r *trial) names(name, anomaly string) bool {
	return slices.ContainsFunc(r.status(name).Findings, func(f check.Finding) bool { return f.Anomaly == anomaly })
}

// wantValid fails the test unless something was committed, and every required check that had
// something to check is valid but for those named.
func (r *trial) wantValid(t *testing.T, but ...string) {
	t.Helper()
	r.wantChecks(t, func(result checktest.Reported) bool { return result.Required && !slices.Contains(but, result.Name) })
	if v := checktest.Verdict(r.results); len(but) == 0 && v != check.Valid {
		t.Errorf("the verdict is %v", v)
	}
}

// wantAllValid is wantValid of those checks too that the claim does not require.
func (r *trial) wantAllValid(t *testing.T) {
	t.Helper()
	r.wantValid(t)
	r.wantChecks(t, func(result checktest.Reported) bool { return !result.Required })
}

func (r *trial) wantChecks(t *testing.T, of func(checktest.Reported) bool) {
	t.Helper()
	for _, result := range r.results {
		if of(result) && result.Status != check.Valid && result.Status != check.NotApplicable {
			t.Errorf("%s is %v: %s", result.Name, result.Status, result.Detail)
		}
	}
	if r.driven != nil && r.driven.Measurements.Latency.Count == 0 {
		t.Error("nothing was committed")
	}
}

// each calls f with every recorded transaction, which f must not keep.
func (r *trial) each(t *testing.T, f func(tx *history.Transaction)) {
	t.Helper()
	h, err := history.Open(r.history())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for record, err := range h.Transactions() {
		if err != nil {
			t.Fatal(err)
		}
		f(record.Transaction)
	}
}

// outcomes counts the recorded transactions by outcome.
func (r *trial) outcomes(t *testing.T) map[history.Outcome]int {
	t.Helper()
	counts := map[history.Outcome]int{}
	r.each(t, func(tx *history.Transaction) { counts[tx.Outcome]++ })
	return counts
}

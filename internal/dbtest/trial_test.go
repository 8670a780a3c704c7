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
	"stroppy/internal/workload/script"
	"stroppy/internal/workload/tpcb"
)

// limit bounds one run of a test, so that a run that hangs fails.
const limit = 5 * time.Minute

// epoch is time zero for all runs of a test program.
var epoch = time.Now()

// trial is one run of a workload on a database, without the command: load, attach, drive, download, check. Every step
// that fails ends the test.
type trial struct {
	database  db.Database
	workload  workload.Workload
	isolation string
	retries   int // of an aborted transaction
	dir       string

	loaded  workload.Loaded
	driver  *load.Driver
	ended   chan error
	stop    context.CancelFunc
	driven  *load.Result // set after the load phase
	results []checktest.Reported
}

// keep copies the directory of a run if the test fails, so that the recording of a wrong verdict can be examined.
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

// runDir returns the directory of a run, which survives a failed test.
func runDir(t *testing.T) string {
	t.Helper()
	return keep(t, filepath.Join(t.TempDir(), "run"))
}

// newTrial creates the directory of a run. The isolation level has the name that the database uses.
func newTrial(t *testing.T, database db.Database, w workload.Workload, isolation string) *trial {
	t.Helper()
	return &trial{database: database, workload: w, isolation: isolation, retries: 1000, dir: keep(t, t.TempDir())}
}

// conduct runs a workload with the given number of transactions and checks the run.
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

// leave ends the run for later runs. A faulty database may refuse this.
func (r *trial) leave(t *testing.T) {
	t.Helper()
	if err := r.workload.Leave(t.Context()); err != nil {
		t.Logf("the data could not be described: %v", err)
	}
}

// load loads the data.
func (r *trial) load(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var err error
	if r.loaded, err = r.workload.Load(ctx, nil); err != nil {
		t.Fatal(err)
	}
}

// attach attaches to the data.
func (r *trial) attach(t *testing.T) {
	t.Helper()
	if _, err := r.workload.Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// drive runs the given number of transactions.
func (r *trial) drive(t *testing.T, count uint64) {
	t.Helper()
	r.start(t, count)
	defer r.stop()
	if err := <-r.ended; err != nil {
		t.Fatal(err)
	}
}

// start opens the clients and starts the load phase. It ends after the given number of transactions, or in finish.
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
		if r.driven != nil && r.driven.Reconnects > 0 { // a broken session may close with an error
			closed = nil
		}
		r.ended <- errors.Join(err, closed, options.History.Close())
	}()
}

// closeAll closes all clients and joins their errors.
func closeAll(options *load.Options) (all error) {
	for _, c := range options.Clients {
		all = errors.Join(all, c.Close())
	}
	for _, b := range options.Background {
		all = errors.Join(all, b.Client.Close())
	}
	return all
}

// more waits until the given number of further transactions is committed.
func (r *trial) more(t *testing.T, n uint64) {
	t.Helper()
	for until := r.driver.Live().Committed + n; r.driver.Live().Committed < until; {
		select {
		case err := <-r.ended:
			r.ended <- err
			t.Fatalf("the load phase ended with %d committed transactions, want %d: %v", r.driver.Live().Committed, until, err)
		case <-time.After(time.Millisecond):
		}
	}
}

// finish ends the load phase, then downloads and checks the run.
func (r *trial) finish(t *testing.T) {
	t.Helper()
	r.stop()
	if err := <-r.ended; err != nil {
		t.Fatal(err)
	}
	r.download(t)
	r.check(t)
}

// history returns the directory of the recording.
func (r *trial) history() string { return filepath.Join(r.dir, "history") }

// download downloads the end state.
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

// level returns the level that the database claims at the isolation level of the run.
func (r *trial) level(t *testing.T) isolation.Level {
	t.Helper()
	claim, err := r.database.Claim(r.isolation)
	if err != nil {
		t.Fatal(err)
	}
	return claim.Level
}

// check checks the run.
func (r *trial) check(t *testing.T) {
	t.Helper()
	r.checkWith(t)
}

// checkWith checks the run together with earlier runs.
func (r *trial) checkWith(t *testing.T, before ...string) {
	t.Helper()
	specs := scenario.Workloads{bank.Spec(), tpcb.Spec(), events.Spec(), kv.Spec(), script.Spec()}
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

// status returns the result of a check, or Unknown if there is no such check.
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

// wantValid fails the test unless a transaction is committed and each required check that applies is valid, except the
// named checks.
func (r *trial) wantValid(t *testing.T, but ...string) {
	t.Helper()
	r.wantChecks(t, func(result checktest.Reported) bool { return result.Required && !slices.Contains(but, result.Name) })
	if v := checktest.Verdict(r.results); len(but) == 0 && v != check.Valid {
		t.Errorf("the verdict is %v", v)
	}
}

// wantAllValid is wantValid for all checks, including checks that the claim does not require.
func (r *trial) wantAllValid(t *testing.T) {
	t.Helper()
	r.wantValid(t)
	r.wantChecks(t, func(result checktest.Reported) bool { return !result.Required })
}

// wantChecks fails the test unless a transaction is committed and each check that the function selects is valid.
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

// each calls f with every recorded transaction. f must not keep the transaction.
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

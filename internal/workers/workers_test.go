package workers

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/run"
)

// asWorker is the environment variable with the folder of a process that runs this test's program as a
// worker.
const asWorker = "TEST_WORKER_FOLDER"

// TestMain runs a worker if a test has started the process as one.
func TestMain(m *testing.M) {
	folder := os.Getenv(asWorker)
	if folder == "" {
		os.Exit(m.Run())
	}
	w := Worker{Version: "test", Clock: run.SharedClock, Folder: folder, Index: -1, Open: openStandIns}
	if err := w.Join(context.Background(), os.Getenv("TEST_ADDRESS"), os.Getenv("TEST_TOKEN")); err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Exit(0)
}

const kindTransfer = 1 * history.Numbered

// standIn replaces a client of a workload. It commits after a millisecond.
type standIn struct {
	number, made uint64
}

func (c *standIn) Next(tx *history.Transaction) {
	c.made++
	tx.ID, tx.Kind = history.NewID(7, c.number, c.made), kindTransfer
	tx.Ops = append(tx.Ops[:0], history.Op{Object: c.number, Write: true, Amount: 1})
}

func (c *standIn) Attempt(_ context.Context, tx *history.Transaction) error {
	time.Sleep(time.Millisecond)
	tx.Outcome = history.Committed
	return nil
}

func (c *standIn) ResolveUnknown(context.Context, *history.Transaction) error { return nil }
func (c *standIn) Reset(context.Context) error                                { return nil }
func (c *standIn) Close() error                                               { return nil }

// header returns the header of the test's run.
func header(clients int) history.Header {
	return history.Header{Workload: "test", LoadID: "L", Run: 7, Clients: clients, Kinds: []history.Declared{history.Kind(kindTransfer).Named("transfer")}}
}

// openStandIns opens a share of the clients. The settings state the total number of transactions (0: until
// stopped) and what fails.
func openStandIns(_ context.Context, a *Assignment) (*Opened, error) {
	o := load.Options{First: a.First, All: a.All, Kinds: header(0).Kinds, Count: 1000}
	part := &Opened{Header: header(a.All), Close: func() error { return nil }}
	switch string(a.Settings) {
	case "endless":
		o.Count, o.Duration = 0, time.Hour
	case "other data":
		part.Header.LoadID = "M"
	case "refused":
		return nil, errors.New("the database is closed on Sundays")
	}
	for i := range a.Clients {
		o.Clients = append(o.Clients, &standIn{number: uint64(a.First + i)})
		part.Servers = append(part.Servers, "h:"+string(rune('a'+a.First+i)))
	}
	part.Options = o
	return part, nil
}

// gathered starts workers with the settings.
func gathered(t *testing.T, count int, settings string) *Coordinator {
	t.Helper()
	return gatheredBy(t, count, settings, 0)
}

// gatheredBy starts workers that are lost after a silence; 0 is the default.
func gatheredBy(t *testing.T, count int, settings string, silence time.Duration) *Coordinator {
	t.Helper()
	dir, token := filepath.Join(t.TempDir(), "workers"), NewToken()
	c, err := Start(t.Context(), Options{
		Count: count, Version: "test", Clock: run.SharedClock, Folder: dir, Settings: []byte(settings), Token: token, silence: silence,
		Command: func(_ int, address, folder string) *exec.Cmd {
			worker := exec.Command(os.Args[0])
			worker.Env = append(os.Environ(), asWorker+"="+folder, "TEST_ADDRESS="+address, "TEST_TOKEN="+token)
			return worker
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		for _, pid := range c.PIDs() {
			if syscall.Kill(pid, 0) == nil {
				t.Errorf("worker %d is still there", pid)
			}
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the workers' folder is still there: %v", err)
		}
	})
	return c
}

// loadPhase connects clients and returns their load phase and its recording.
func loadPhase(t *testing.T, c *Coordinator, clients int, ended func()) (*Coordinator, string) {
	t.Helper()
	servers, err := c.Connect(t.Context(), header(clients))
	if err != nil {
		t.Fatal(err)
	}
	for i, server := range servers {
		if server != "h:"+string(rune('a'+i)) {
			t.Errorf("client %d is connected to %q", i, server)
		}
	}
	dir := filepath.Join(t.TempDir(), "history")
	writer, err := history.Create(dir, header(clients), clients+1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { writer.Close() })
	c.Prepare(load.Options{Start: time.Now(), History: writer, Ended: ended})
	return c, dir
}

// recorded returns the sequence numbers by client, and whether the recording is complete.
func recorded(t *testing.T, dir string) (map[uint64][]uint64, bool) {
	t.Helper()
	r, err := history.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all := map[uint64][]uint64{}
	for rec, err := range r.Transactions() {
		if err != nil {
			t.Fatal(err)
		}
		id := rec.Transaction.ID
		all[id.Client()] = append(all[id.Client()], id.Sequence())
	}
	return all, r.Complete()
}

// TestThreeProcessesShareOneLoadPhase checks that three processes do the work of one, and that their recordings
// are merged.
func TestThreeProcessesShareOneLoadPhase(t *testing.T) {
	const clients = 7
	var ended atomic.Int32
	g, dir := loadPhase(t, gathered(t, 3, ""), clients, func() { ended.Add(1) })
	result, err := g.Run(t.Context())
	if err := errors.Join(err, g.Collect(), g.phase.load.History.Close()); err != nil {
		t.Fatal(err)
	}
	if n := result.Measurements.Latency.Count; n != 1000 || result.Interrupted || result.Elapsed < 100*time.Millisecond {
		t.Errorf("%d transactions were measured: %+v", n, result)
	}
	if ended.Load() != 1 {
		t.Errorf("the end was reported %d times", ended.Load())
	}
	if live := g.Live(); live.Done != 1000 || live.Committed != 1000 || g.KindLatencies()["transfer"].Count() != 1000 || g.Kinds()[0].Committed != 1000 || len(g.Errors()) == 0 {
		t.Errorf("what was seen of it is %+v", live)
	}
	all, complete := recorded(t, dir)
	if !complete || len(all) != clients {
		t.Errorf("the recording has %d clients, complete %v", len(all), complete)
	}
	for client, list := range all {
		for i, sequence := range list {
			if sequence != uint64(i+1) {
				t.Fatalf("client %d has %v", client, list)
			}
		}
	}
	shares, pids := g.Shares(), g.PIDs()
	if len(shares) != 3 || shares[0].Clients+shares[1].Clients+shares[2].Clients != clients || pids[0] == pids[1] {
		t.Errorf("the workers %v were %+v", pids, shares)
	}
}

// TestStoppedLoadPhaseEndsSoon checks that a stopped or aborted load phase ends soon, reports it, and is
// recorded.
func TestStoppedLoadPhaseEndsSoon(t *testing.T) {
	for name, end := range map[string]func(g *Coordinator, cancel func()){
		"stopped": func(_ *Coordinator, cancel func()) { cancel() }, "aborted": func(g *Coordinator, _ func()) { g.Abort() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			g, dir := loadPhase(t, gathered(t, 2, "endless"), 4, nil)
			time.AfterFunc(1200*time.Millisecond, func() { end(g, cancel) })
			result, err := g.Run(ctx)
			if err := errors.Join(err, g.Collect(), g.phase.load.History.Close()); err != nil {
				t.Fatal(err)
			}
			if name == "stopped" && !result.Interrupted {
				t.Errorf("it was not interrupted: %+v", result)
			}
			if second, ok := g.Second(); !ok || second.Committed == 0 || len(g.Seconds(0)) == 0 {
				t.Errorf("of its first second is known %v %+v", ok, second)
			}
			if all, complete := recorded(t, dir); len(all) != 4 || !complete {
				t.Errorf("%d clients are recorded, complete %v", len(all), complete)
			}
		})
	}
}

// TestKilledWorkerEndsTheLoadPhase checks that the error names the killed worker, and that everything
// recorded is kept and counts as cut off.
func TestKilledWorkerEndsTheLoadPhase(t *testing.T) {
	c := gathered(t, 2, "endless")
	var ended atomic.Int32
	g, dir := loadPhase(t, c, 4, func() { ended.Add(1) })
	time.AfterFunc(2500*time.Millisecond, func() { _ = syscall.Kill(c.PIDs()[1], syscall.SIGKILL) })
	result, err := g.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "worker 2 is lost") || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the load phase ends with %v", err)
	}
	if result == nil || result.Measurements.Latency.Count == 0 || ended.Load() != 1 {
		t.Errorf("of the other worker there is %+v", result)
	}
	if err := g.Collect(); err == nil {
		t.Error("all is collected")
	}
	if err := g.phase.load.History.Close(); err == nil {
		t.Error("the recording is closed as if it were complete")
	}
	all, complete := recorded(t, dir)
	if len(all) != 4 || complete {
		t.Errorf("%d clients are recorded, complete %v", len(all), complete)
	}
}

// TestSilentWorkerIsLost checks that a worker that sends nothing is lost, and that it delays no other worker.
func TestSilentWorkerIsLost(t *testing.T) {
	c := gatheredBy(t, 2, "endless", 3*hereEvery)
	g, _ := loadPhase(t, c, 4, nil)
	time.AfterFunc(500*time.Millisecond, func() { _ = syscall.Kill(c.PIDs()[0], syscall.SIGSTOP) })
	_, err := g.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "worker 1 is lost (it has said nothing for 3s)") {
		t.Errorf("the load phase ends with %v", err)
	}
	if err := g.Collect(); err == nil {
		t.Error("all is collected")
	}
}

// TestRunReportsWorkersOpenError checks that the run reports the error of a worker that cannot open its
// clients.
func TestRunReportsWorkersOpenError(t *testing.T) {
	for settings, want := range map[string]string{"refused": "closed on Sundays", "other data": "it has found other data than the run"} {
		if _, err := gathered(t, 2, settings).Connect(t.Context(), header(4)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "worker ") {
			t.Errorf("%s: the clients are open, or %v", settings, err)
		}
	}
}

// TestWorkerThatEndsEarlyIsNamed checks that the error names a worker that ended before it joined, with its
// output.
func TestWorkerThatEndsEarlyIsNamed(t *testing.T) {
	o := Options{Count: 1, Clock: run.SharedClock, Folder: t.TempDir(), Token: NewToken(), Command: func(int, string, string) *exec.Cmd {
		return exec.Command("/bin/sh", "-c", "echo no money left >&2; exit 7")
	}}
	if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no money left (exit status 7)") {
		t.Errorf("it is started, or %v", err)
	}
	o.Clock = func(time.Time) (string, int64, bool) { return "", 0, false }
	if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "leave --workers out") {
		t.Errorf("without a clock that is shared: %v", err)
	}
}

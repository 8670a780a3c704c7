package workers

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/run"
)

// elsewhere is the clock of another machine, with its name and its lead.
type elsewhere struct {
	name  string
	ahead time.Duration
}

func (e elsewhere) clock(t time.Time) (string, int64, bool) {
	_, at, known := run.SharedClock(t)
	return e.name, at + int64(e.ahead), known
}

// joint is a coordinator with workers that join by themselves, and their results.
type joint struct {
	c       *Coordinator
	token   string
	address string
	ended   []chan error
}

// joining starts a worker; index -1 means any.
func (f *joint) joining(t *testing.T, e elsewhere, index int) {
	t.Helper()
	ended := make(chan error, 1)
	f.ended = append(f.ended, ended)
	w := Worker{Version: "test", Clock: e.clock, Folder: t.TempDir(), Host: e.name, Index: index, Wait: 5 * time.Second, Open: openStandIns}
	ctx := t.Context()
	go func() { ended <- w.Join(ctx, f.address, f.token) }()
}

// gathering lets workers join.
func gathering(t *testing.T, settings string, read func(time.Time) int64, clocks ...elsewhere) *joint {
	t.Helper()
	f := &joint{token: NewToken()}
	listening, started := make(chan string, 1), make(chan error, 1)
	go func() (err error) {
		defer func() { started <- err }()
		f.c, err = Start(t.Context(), Options{
			Count: len(clocks), Version: "test", Clock: run.SharedClock, Folder: filepath.Join(t.TempDir(), "workers"), Settings: []byte(settings), Token: f.token,
			Wait: 20 * time.Second, Listening: func(address string) { listening <- address }, read: read,
		})
		return err
	}()
	f.address = <-listening
	for _, e := range clocks {
		f.joining(t, e, -1)
	}
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.c.Close() })
	return f
}

// recordsOf returns the transactions of a history by client.
func recordsOf(t *testing.T, dir string) (map[uint64][]history.Transaction, history.Header) {
	t.Helper()
	r, err := history.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all := map[uint64][]history.Transaction{}
	for rec, err := range r.Transactions() {
		if err != nil {
			t.Fatal(err)
		}
		all[rec.ID.Client()] = append(all[rec.ID.Client()], *rec.Transaction)
	}
	return all, r.Header()
}

// TestTimesOfRemoteWorkersAreConverted checks that times of workers with other clocks are converted in order and within
// the stated error. Clocks are arbitrary, and drift is within its bound.
func TestTimesOfRemoteWorkersAreConverted(t *testing.T) {
	began := time.Now()
	drifting := func(t time.Time) int64 {
		since := int64(t.Sub(began))
		return 5_000_000_000 + since + since*400/1_000_000
	}
	own, _, _ := run.SharedClock(began)
	for name, c := range map[string]struct {
		read   func(time.Time) int64
		clocks []elsewhere
		want   []int // the clock of each worker
	}{
		"two machines, and this one": {nil, []elsewhere{{"east", 200 * time.Millisecond}, {own, 0}, {"west", -200 * time.Millisecond}}, []int{1, 0, 2}},
		"two of one machine":         {nil, []elsewhere{{"east", 200 * time.Millisecond}, {"east", 200 * time.Millisecond}}, []int{1, 1}},
		"a drift":                    {drifting, []elsewhere{{"east", 200 * time.Millisecond}, {"west", -200 * time.Millisecond}}, []int{1, 2}},
		"clocks without names":       {nil, []elsewhere{{"", 7 * time.Millisecond}, {"", 0}}, []int{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			f := gathering(t, "", c.read, c.clocks...)
			var started atomic.Int64
			g, dir := loadPhase(t, f.c, 6, nil)
			zero := g.phase.load.Start
			axis := f.c.read
			started.Store(axis(time.Now()) - axis(zero))
			_, err := g.Run(t.Context())
			ended := axis(time.Now()) - axis(zero)
			if err := errors.Join(err, g.Collect(), g.phase.load.History.Close()); err != nil {
				t.Fatal(err)
			}
			for i, ended := range f.ended {
				if err := <-ended; err != nil {
					t.Errorf("worker %d ends with %v", i, err)
				}
			}
			clocks := f.c.Clocks()
			byName := map[string]int{}
			for i, w := range f.c.members {
				byName[w.host] = clocks[i].Clock
				if apart := clocks[i].Clock != 0; apart != (clocks[i].Error > 0) || clocks[i].Error > 20_000_000 {
					t.Errorf("the clock of %v is known within %d ns", w, clocks[i].Error)
				}
				t.Logf("%v: %+v", w, clocks[i])
			}
			for i, e := range c.clocks {
				if (byName[e.name] == 0) != (c.want[i] == 0) {
					t.Errorf("the clock of worker %d has the number %d", i, byName[e.name])
				}
			}
			all, _ := recordsOf(t, dir)
			n := 0
			for client, list := range all {
				w := clocks[f.of(client)]
				for i, tx := range list {
					n++
					if i > 0 && tx.Try < list[i-1].End || tx.End < tx.Try || tx.Try < started.Load()-w.Error || tx.End > ended+w.Error {
						t.Fatalf("client %d: %v is from %d to %d, after %d, of a run from %d to %d", client, tx.ID, tx.Try, tx.End, list[max(0, i-1)].End, started.Load(), ended)
					}
				}
			}
			if n != 1000 {
				t.Errorf("%d transactions are recorded", n)
			}
		})
	}
}

// of returns the worker of a client.
func (f *joint) of(client uint64) int {
	for i, w := range f.c.members {
		if int(client) >= w.first && int(client) < w.first+w.clients {
			return i
		}
	}
	return 0
}

// TestRefusedWorkersLearnWhy checks that a refused process gets the reason, and that the run waits for
// others.
func TestRefusedWorkersLearnWhy(t *testing.T) {
	f := &joint{token: NewToken()}
	listening, started := make(chan string, 1), make(chan error, 1)
	joined := make(chan string, 4)
	go func() {
		c, err := Start(t.Context(), Options{
			Count: 2, Version: "test", Clock: run.SharedClock, Folder: filepath.Join(t.TempDir(), "workers"), Token: f.token, Wait: 20 * time.Second,
			Listening: func(address string) { listening <- address }, Joined: func(w string) { joined <- w },
		})
		f.c = c
		started <- err
	}()
	f.address = <-listening
	try := func(change func(w *Worker), token string) error {
		w := Worker{Version: "test", Clock: elsewhere{"far", 0}.clock, Folder: t.TempDir(), Host: "far", Index: -1, Open: openStandIns}
		change(&w)
		return w.Join(t.Context(), f.address, token)
	}
	f.joining(t, elsewhere{"east", 0}, 1)
	if w := <-joined; w != "worker 2 (east) has joined, 1 of 2" {
		t.Errorf("who has joined is %q", w)
	}
	for want, err := range map[string]error{
		"the run at that address has another token": try(func(*Worker) {}, NewToken()),
		"use the same program":                      try(func(w *Worker) { w.Version = "old" }, f.token),
		"another worker has that":                   try(func(w *Worker) { w.Index = 1 }, f.token),
		"the last one is 1":                         try(func(w *Worker) { w.Index = 2 }, f.token),
		"characters":                                try(func(*Worker) {}, "short"),
	} {
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "join the run at "+f.address) {
			t.Errorf("%s: %v", want, err)
		}
	}
	f.joining(t, elsewhere{"west", 0}, -1)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	if f.c.members[0].host != "west" || f.c.members[1].host != "east" {
		t.Errorf("the workers are %v and %v", f.c.members[0], f.c.members[1])
	}
	if err := try(func(*Worker) {}, f.token); err == nil || !strings.Contains(err.Error(), "has all its workers") {
		t.Errorf("one too many: %v", err)
	}
	_ = f.c.Close()
	for i, ended := range f.ended {
		if err := <-ended; !errors.Is(err, errEnded) {
			t.Errorf("worker %d of a run that has ended ends with %v", i, err)
		}
	}
}

// TestMissingWorkersFailTheStart checks that the error contains the number of workers that joined, and advice, if
// too few join.
func TestMissingWorkersFailTheStart(t *testing.T) {
	_, err := Start(t.Context(), Options{Count: 2, Version: "test", Clock: run.SharedClock, Folder: t.TempDir(), Token: NewToken(), Wait: 100 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "0 of 2 workers have joined: waited 100ms") || !strings.Contains(err.Error(), "--workers-wait") {
		t.Errorf("it ends with %v", err)
	}
	w := Worker{Version: "test", Clock: run.SharedClock, Index: -1}
	began := time.Now()
	w.Wait = 500 * time.Millisecond
	if err := w.Join(t.Context(), "127.0.0.1:1", NewToken()); err == nil || time.Since(began) < 400*time.Millisecond {
		t.Errorf("without a run it ends after %v with %v", time.Since(began), err)
	}
}

// relay forwards connections and can cut them all.
type relay struct {
	l    net.Listener
	to   string
	mu   sync.Mutex
	live []net.Conn
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{l: l, to: to}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", r.to)
			if err != nil {
				_ = near.Close()
				continue
			}
			r.mu.Lock()
			r.live = append(r.live, near, far)
			r.mu.Unlock()
			for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
				go func() {
					buffer := make([]byte, 4096)
					for {
						n, err := pair[0].Read(buffer)
						if err == nil {
							_, err = pair[1].Write(buffer[:n])
						}
						if err != nil {
							_ = pair[1].Close()
							return
						}
					}
				}()
			}
		}
	}()
	return r
}

func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.live {
		_ = c.Close()
	}
	r.live = nil
}

// TestWorkerRejoinsDuringCollection checks that a worker whose connections end during the collection joins again, and
// that nothing is missing.
func TestWorkerRejoinsDuringCollection(t *testing.T) {
	f := &joint{token: NewToken()}
	listening, started := make(chan string, 1), make(chan error, 1)
	go func() {
		c, err := Start(t.Context(), Options{
			Count: 1, Version: "test", Clock: run.SharedClock, Folder: filepath.Join(t.TempDir(), "workers"), Token: f.token, Wait: 20 * time.Second,
			Listening: func(address string) { listening <- address },
		})
		f.c = c
		started <- err
	}()
	r := newRelay(t, <-listening)
	f.address = r.l.Addr().String()
	f.joining(t, elsewhere{"east", time.Second}, -1)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	defer f.c.Close()
	g, dir := loadPhase(t, f.c, 4, func() {})
	if _, err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.cut()
	if err := errors.Join(g.Collect(), g.phase.load.History.Close()); err != nil {
		t.Fatal(err)
	}
	if err := <-f.ended[0]; err != nil {
		t.Errorf("the worker ends with %v", err)
	}
	if all, complete := recorded(t, dir); len(all) != 4 || !complete {
		t.Errorf("%d clients are recorded, complete %v", len(all), complete)
	}
}

// TestLostWorkerLeavesMostRecords checks that most records of a worker lost during the load phase exist, and that
// the run names the worker.
func TestLostWorkerLeavesMostRecords(t *testing.T) {
	f := gathering(t, "endless", nil, elsewhere{"east", 0}, elsewhere{"west", 0})
	g, dir := loadPhase(t, f.c, 4, nil)
	lost := f.c.members[1]
	go func() {
		grown(t, lost.upload.path)
		_ = lost.channel.Close()
	}()
	result, err := g.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "worker 2 (") || !strings.Contains(err.Error(), "is lost") {
		t.Errorf("the load phase ends with %v", err)
	}
	if result == nil || g.Collect() == nil {
		t.Error("all is collected")
	}
	_ = g.phase.load.History.Close()
	all, complete := recorded(t, dir)
	if len(all) != 4 || complete || len(all[2])+len(all[3]) < 1000 {
		t.Errorf("%d clients are recorded, complete %v; of the lost ones %d transactions", len(all), complete, len(all[2])+len(all[3]))
	}
}

// TestAllowedWorkerLossesDoNotEndRun checks that worker losses within the limit do not end the run. The recording
// marks the losses and is complete otherwise.
func TestAllowedWorkerLossesDoNotEndRun(t *testing.T) {
	c := gathered(t, 3, "endless")
	c.options.Lost = 1
	var lost []error
	gone := make(chan struct{})
	c.options.OnLost = func(why error) {
		lost = append(lost, why)
		close(gone)
	}
	g, dir := loadPhase(t, c, 6, nil)
	if before := c.Clocks(); len(before) != 3 || !before[0].Cut || !before[2].Cut {
		t.Errorf("before it is known, the recordings are %+v", before)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		defer cancel()
		grown(t, filepath.Join(c.folder(c.members[1].number), OwnFolder, history.FileName))
		_ = syscall.Kill(c.PIDs()[1], syscall.SIGKILL)
		select {
		case <-gone:
		case <-t.Context().Done():
		}
		for enough := g.Live().Done + 1000; g.Live().Done < enough && t.Context().Err() == nil; {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	result, err := g.Run(ctx)
	if err := errors.Join(err, g.Collect(), g.phase.load.History.Close()); err != nil || len(lost) != 1 || !strings.Contains(lost[0].Error(), "worker 2 is lost") {
		t.Fatalf("it ends with %v, and lost %v", err, lost)
	}
	clocks := c.Clocks()
	if len(clocks) != 3 || clocks[0].Cut || !clocks[1].Cut || clocks[2].Cut || clocks[1].First != 2 {
		t.Errorf("the recordings are %+v", clocks)
	}
	all, _ := recordsOf(t, dir)
	_, complete := recorded(t, dir)
	if !complete || len(all) != 6 || len(all[2])+len(all[3]) < 1000 || result.Measurements.Latency.Count == 0 {
		t.Errorf("of the lost clients %d transactions are recorded, of another one %d, complete %v", len(all[2])+len(all[3]), len(all[0]), complete)
	}
	last := func(client uint64) int64 { return all[client][len(all[client])-1].End }
	if max(last(0), last(1), last(4), last(5)) <= max(last(2), last(3)) {
		t.Error("no client went on after the loss")
	}
}

// grown waits until a recording of two clients has at least 1,000 complete transactions.
func grown(t *testing.T, path string) {
	const size = 64 << 10
	for t.Context().Err() == nil {
		if info, err := os.Stat(path); err == nil && info.Size() >= size {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

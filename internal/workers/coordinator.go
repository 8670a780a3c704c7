package workers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/load"
)

// startLimit limits the time for workers on this machine to join.
const startLimit = 30 * time.Second

// Options describes the workers of one run.
type Options struct {
	Count   int
	Version string // of the program, which the workers' has to be
	Clock   Clock
	// Folder holds the workers' recordings until they are copied to the run's. It is created, and removed at
	// the end.
	Folder string
	// Settings is the configuration of the run for the workers.
	Settings []byte
	// Token is the secret for joining.
	Token string
	// Lost is the number of workers that may be lost during the load phase without ending it.
	Lost int
	// OnLost, if not nil, is called for each lost worker with the reason.
	OnLost func(why error)

	// Command returns the command of a worker on this machine, which joins the run at the address and records
	// in the folder. If it is nil, workers join by themselves.
	Command func(number int, address, folder string) *exec.Cmd

	// These fields are for workers that join by themselves.
	Listen    string               // where; port 0 is any
	Wait      time.Duration        // for all of them
	Listening func(address string) // called once where they can join
	Joined    func(worker string)  // called with each that has

	// These fields are for tests: the coordinator's clock, and the silence after which a worker is lost.
	read    func(t time.Time) int64
	silence time.Duration
}

// Coordinator is the run's process as its workers see it. It generates the load by them, like load.Driver in one
// process.
type Coordinator struct {
	options  Options
	identity *identity
	listener net.Listener
	clock    ownClock
	read     func(t time.Time) int64 // of clock
	members  []*member
	events   chan event
	silence  time.Duration // after which a worker is lost
	resume   time.Duration // within which one has to go on with its upload
	gathered chan struct{} // closed when no more workers may join
	done     chan struct{} // closed when no more events are read
	whole    bool          // all is collected
	closed   sync.Once
	phase    *phase // nil before Prepare

	mu   sync.Mutex
	keys map[string]*member
}

// member is a worker as the coordinator sees it.
type member struct {
	number  int
	first   int // of its clients
	clients int
	process *process // nil: it has joined by itself
	channel *channel // nil until it has joined
	host    string

	cut    bool        // it was lost, and that may be
	clock  string      // its name; empty: no other worker has it
	apart  *comparison // nil: its clock is the coordinator's
	zero   int64       // of the history, on its clock
	upload upload

	mu     sync.Mutex
	status load.Snapshot
	result *load.Result
}

// String returns the name of a worker for messages.
func (w *member) String() string {
	if w.host != "" && w.process == nil {
		return fmt.Sprintf("worker %d (%s)", w.number+1, w.host)
	}
	return fmt.Sprintf("worker %d", w.number+1)
}

// event is a message of a worker, or its loss.
type event struct {
	from *member
	message
	lost error
}

// Start starts the workers, or lets them join, and returns when all have joined.
func Start(ctx context.Context, o Options) (_ *Coordinator, err error) {
	c := &Coordinator{
		options: o, events: make(chan event), gathered: make(chan struct{}), done: make(chan struct{}), silence: cmp.Or(o.silence, silence), resume: resumeLimit,
		clock: o.Clock.own(), keys: map[string]*member{},
	}
	if c.read = o.read; c.read == nil {
		c.read = c.clock.read
	}
	if c.clock.name == "" && o.Command != nil {
		return nil, errors.New("start the workers: this system does not name its clock, so that the times of several processes could not be compared: leave --workers out")
	}
	if c.identity, err = identityOf(o.Token); err != nil {
		return nil, err
	}
	if c.listener, err = net.Listen("tcp", cmp.Or(o.Listen, "127.0.0.1:0")); err != nil {
		return nil, fmt.Errorf("listen for the workers: %w", err)
	}
	defer func() { // what was started
		if err != nil {
			c.Close()
		}
	}()
	joined := make(chan joiner)
	go c.accept(joined)
	defer close(c.gathered)
	if o.Command != nil {
		return c, c.startAll(ctx, joined)
	}
	if o.Listening != nil {
		o.Listening(c.listener.Addr().String())
	}
	return c, c.awaitAll(ctx, joined)
}

// startAll starts the workers on this machine.
func (c *Coordinator) startAll(ctx context.Context, joined <-chan joiner) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not all of them have joined after %v", startLimit))
	defer cancel()
	failed := make(chan error, c.options.Count)
	for n := range c.options.Count {
		p, err := startProcess(c.options.Command(n, c.listener.Addr().String(), c.folder(n)))
		if err != nil {
			return fmt.Errorf("start worker %d: %w", n+1, err)
		}
		c.members = append(c.members, c.newMember(n, p))
		go func() {
			<-p.ended
			failed <- fmt.Errorf("worker %d has ended: %s", n+1, p.said())
		}()
	}
	for range c.options.Count {
		select {
		case j := <-joined:
			if err := c.admit(j); err != nil {
				return fmt.Errorf("take in worker with process id %d: %w", j.PID, err)
			}
		case err := <-failed:
			return fmt.Errorf("start the workers: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("start the workers: %w", context.Cause(ctx))
		}
	}
	return nil
}

func (c *Coordinator) newMember(number int, p *process) *member {
	w := &member{number: number, process: p}
	w.upload.path = filepath.Join(c.folder(number), "sent", history.FileName)
	return w
}

func (c *Coordinator) folder(n int) string { return filepath.Join(c.options.Folder, strconv.Itoa(n)) }

// Connect lets each worker open its share of header's clients on the described data. It returns the clients'
// servers (HOST:PORT; empty: not known).
func (c *Coordinator) Connect(ctx context.Context, header history.Header) ([]string, error) {
	share, more := header.Clients/len(c.members), header.Clients%len(c.members)
	first := 0
	for _, w := range c.members {
		w.first, w.clients = first, share
		if w.number < more {
			w.clients++
		}
		first += w.clients
		err := w.channel.send(&message{Assign: &Assignment{
			First: w.first, Clients: w.clients, All: header.Clients,
			Background: w.number == 0, Settings: c.options.Settings, LoadID: header.LoadID, Run: header.Run,
		}})
		if err != nil {
			return nil, w.lost(err)
		}
	}
	servers := make([]string, header.Clients)
	for range c.members {
		select {
		case e := <-c.events:
			if err := e.refused(); err != nil {
				return nil, err
			}
			if err := sameRun(header, e.Ready.Header); err != nil {
				return nil, fmt.Errorf("%v: %w", e.from, err)
			}
			copy(servers[e.from.first:], e.Ready.Servers)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return servers, c.compareClocks(ctx)
}

// compareClocks waits until the offsets of all clocks are known.
func (c *Coordinator) compareClocks(ctx context.Context) error {
	for _, w := range c.members {
		if w.apart == nil {
			continue
		}
		select {
		case <-w.apart.some:
		case <-time.After(joinLimit):
			return fmt.Errorf("compare the clock of %v: no answer within %v: check the network between the machines", w, joinLimit)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// refused returns the reason why a worker has not opened its clients, or nil.
func (e *event) refused() error {
	switch {
	case e.lost != nil:
		return e.lost
	case e.Failed != "":
		return fmt.Errorf("%v: %s", e.from, e.Failed)
	case e.Ready == nil:
		return fmt.Errorf("%v did not report that it is ready", e.from)
	}
	return nil
}

// sameRun returns an error if a worker has found other data than the run. A worker may leave out a key.
func sameRun(ours, theirs history.Header) error {
	ours.Started, theirs.Started, ours.Database, theirs.Database = 0, 0, "", ""
	ours.Keys = maps.Clone(ours.Keys)
	maps.DeleteFunc(ours.Keys, func(name, _ string) bool {
		_, known := theirs.Keys[name]
		return !known
	})
	a, failed := json.Marshal(ours)
	b, err := json.Marshal(theirs)
	if err := cmp.Or(failed, err); err != nil {
		return err
	}
	if string(a) != string(b) {
		return fmt.Errorf("it has found other data than the run: %s, and not %s", b, a)
	}
	return nil
}

// listen passes on a worker's messages until the worker is lost.
func (c *Coordinator) listen(w *member, ch *channel) {
	for {
		_ = ch.SetReadDeadline(time.Now().Add(c.silence))
		m, err := ch.receive()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = fmt.Errorf("it has said nothing for %v", c.silence)
		}
		if err != nil {
			c.deliver(event{from: w, lost: w.lost(err)})
			return
		}
		switch {
		case *m == (message{}): // it is there
		case m.Status != nil:
			w.mu.Lock()
			w.status = *m.Status
			w.mu.Unlock()
		default:
			c.deliver(event{from: w, message: *m})
		}
	}
}

func (c *Coordinator) deliver(e event) {
	select {
	case c.events <- e:
	case <-c.done:
	}
}

// lost returns the error for a lost worker, with its last output.
func (w *member) lost(err error) error {
	said := ""
	if w.process != nil {
		select {
		case <-w.process.ended:
			said = ": " + w.process.said()
		case <-time.After(time.Second):
		}
	}
	return fmt.Errorf("%v is lost (%w)%s: the last transactions of its clients are not recorded", w, err, said)
}

// PIDs returns the processes of the workers that this program has started.
func (c *Coordinator) PIDs() (list []int) {
	for _, w := range c.members {
		if w.process != nil {
			list = append(list, w.process.pid())
		}
	}
	return list
}

// Close ends the remaining workers and removes their recordings. When it returns, nothing of them is left on
// this machine.
func (c *Coordinator) Close() error {
	var err error
	c.closed.Do(func() {
		_ = c.listener.Close()
		close(c.done)
		c.mu.Lock()
		for _, w := range c.members {
			if w.channel != nil {
				_ = w.channel.Close()
			}
			w.upload.close()
		}
		c.mu.Unlock()
		for _, w := range c.members {
			if w.process != nil {
				w.process.end()
			}
		}
		if c.options.Folder != "" {
			err = os.RemoveAll(c.options.Folder)
		}
	})
	return err
}

// byNumber sorts the workers by number.
func (c *Coordinator) byNumber() {
	slices.SortFunc(c.members, func(a, b *member) int { return a.number - b.number })
}

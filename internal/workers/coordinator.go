package workers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/load"
)

// startLimit bounds how long workers on this machine take to join.
const startLimit = 30 * time.Second

// Options are the workers of one run.
type Options struct {
	Count   int
	Version string // of the program, which the workers' has to be
	Clock   Clock
	// Folder has the workers' recordings until they are in that of the run. It is made, and
	// removed in the end.
	Folder string
	// Settings are those of the run, for the workers.
	Settings []byte
	// Command is that of a worker with this number on this machine: it joins the run at the
	// address with the secret, and records in the folder.
	Command func(number int, address, secret, folder string) Command
}

// Coordinator is the process of the run as its workers know it.
type Coordinator struct {
	options  Options
	identity *identity
	listener net.Listener
	members  []*member
	events   chan event
	silence  time.Duration // after which a worker is lost
	done     chan struct{} // closed when nobody asks for events any more
	closed   sync.Once
}

// member is a worker as the coordinator knows it.
type member struct {
	number  int
	first   int // of its clients
	clients int
	process *process
	channel *channel // nil until it has joined

	mu        sync.Mutex
	status    load.Snapshot
	result    *load.Result
	recording *collected
}

// event is a message of a worker, or that it is lost.
type event struct {
	from *member
	message
	lost error
}

// Start starts the workers and returns when all have joined.
func Start(ctx context.Context, o Options) (_ *Coordinator, err error) {
	c := &Coordinator{options: o, events: make(chan event), done: make(chan struct{}), silence: silence}
	if _, _, known := o.Clock(time.Now()); !known {
		return nil, errors.New("start the workers: this system does not name its clock, so that the times of several processes could not be compared: leave --workers out")
	}
	if c.identity, err = newIdentity(); err != nil {
		return nil, err
	}
	if c.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("listen for the workers: %w", err)
	}
	defer func() { // what was started
		if err != nil {
			c.Close()
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not all of them have joined after %v", startLimit))
	defer cancel()
	failed := make(chan error, o.Count)
	for n := range o.Count {
		p, err := startProcess(o.Command(n, c.listener.Addr().String(), c.identity.secret, c.folder(n)))
		if err != nil {
			return nil, fmt.Errorf("start worker %d: %w", n+1, err)
		}
		c.members = append(c.members, &member{number: n, process: p})
		go func() {
			<-p.ended
			failed <- fmt.Errorf("worker %d has ended: %s", n+1, p.said())
		}()
	}
	joined := make(chan *channel)
	go c.accept(ctx, joined)
	for range o.Count {
		select {
		case ch := <-joined:
			if err := c.admit(ch); err != nil {
				return nil, err
			}
		case err := <-failed:
			return nil, fmt.Errorf("start the workers: %w", err)
		case <-ctx.Done():
			return nil, fmt.Errorf("start the workers: %w", context.Cause(ctx))
		}
	}
	_ = c.listener.Close() // nobody else joins
	return c, nil
}

func (c *Coordinator) folder(n int) string { return filepath.Join(c.options.Folder, strconv.Itoa(n)) }

// accept takes connections until the listener is closed. One that does not prove itself is
// closed, and keeps nobody waiting.
func (c *Coordinator) accept(ctx context.Context, joined chan<- *channel) {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return
		}
		go func() {
			ch, err := c.identity.admit(conn)
			if err != nil {
				return
			}
			select {
			case joined <- ch:
			case <-ctx.Done():
				_ = ch.Close()
			}
		}()
	}
}

// admit takes a worker in by its first message.
func (c *Coordinator) admit(ch *channel) error {
	_ = ch.SetReadDeadline(time.Now().Add(joinLimit))
	m, err := ch.receive()
	_ = ch.SetReadDeadline(time.Time{})
	if err == nil && m.Hello == nil {
		err = errors.New("it did not say what it is")
	}
	if err != nil {
		_ = ch.Close()
		return fmt.Errorf("take in a worker: %w", err)
	}
	name, _, _ := c.options.Clock(time.Now())
	if m.Hello.Version != c.options.Version {
		err = fmt.Errorf("it is version %s and this is %s: use the same program", m.Hello.Version, c.options.Version)
	} else if m.Hello.Clock != name {
		err = errClock
	}
	i := slices.IndexFunc(c.members, func(w *member) bool { return w.process.pid() == m.Hello.PID && w.channel == nil })
	if err == nil && i < 0 {
		err = errors.New("this run did not start it")
	}
	if err != nil {
		_ = ch.Close()
		return fmt.Errorf("take in worker with process id %d: %w", m.Hello.PID, err)
	}
	c.members[i].channel = ch
	return nil
}

// Connect has each worker open its part of the clients, which are header's, on the data that
// it describes, and returns the clients' servers (HOST:PORT; empty: not known).
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
		go c.listen(w)
	}
	servers := make([]string, header.Clients)
	for range c.members {
		select {
		case e := <-c.events:
			if err := e.refused(); err != nil {
				return nil, err
			}
			if err := sameRun(header, e.Ready.Header); err != nil {
				return nil, fmt.Errorf("worker %d: %w", e.from.number+1, err)
			}
			copy(servers[e.from.first:], e.Ready.Servers)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return servers, nil
}

// refused is why a worker has not opened its clients; nil where it has.
func (e *event) refused() error {
	switch {
	case e.lost != nil:
		return e.lost
	case e.Failed != "":
		return fmt.Errorf("worker %d: %s", e.from.number+1, e.Failed)
	case e.Ready == nil:
		return fmt.Errorf("worker %d did not say that it is ready", e.from.number+1)
	}
	return nil
}

// sameRun refuses a worker that has found other data than the run.
func sameRun(ours, theirs history.Header) error {
	ours.Started, theirs.Started, ours.Database, theirs.Database = 0, 0, "", ""
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

// listen hands on what a worker says, until it is lost.
func (c *Coordinator) listen(w *member) {
	for {
		_ = w.channel.SetReadDeadline(time.Now().Add(c.silence))
		m, err := w.channel.receive()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = fmt.Errorf("it has said nothing for %v", c.silence)
		}
		if err != nil {
			c.tell(event{from: w, lost: w.lost(err)})
			return
		}
		switch {
		case *m == (message{}): // it is there
		case m.Status != nil:
			w.mu.Lock()
			w.status = *m.Status
			w.mu.Unlock()
		default:
			c.tell(event{from: w, message: *m})
		}
	}
}

func (c *Coordinator) tell(e event) {
	select {
	case c.events <- e:
	case <-c.done:
	}
}

// lost says that a worker is gone, and what it said last.
func (w *member) lost(err error) error {
	said := ""
	select {
	case <-w.process.ended:
		said = ": " + w.process.said()
	case <-time.After(time.Second):
	}
	return fmt.Errorf("worker %d is lost (%w)%s: what its clients did last is not recorded", w.number+1, err, said)
}

// PIDs are those of the workers, all of which run on this machine.
func (c *Coordinator) PIDs() (list []int) {
	for _, w := range c.members {
		list = append(list, w.process.pid())
	}
	return list
}

// Close ends the workers that are left and removes their recordings. It returns when nothing
// of them is left.
func (c *Coordinator) Close() error {
	var err error
	c.closed.Do(func() {
		_ = c.listener.Close()
		close(c.done)
		for _, w := range c.members {
			if w.channel != nil {
				_ = w.channel.Close()
			}
		}
		for _, w := range c.members {
			w.process.end()
		}
		if c.options.Folder != "" {
			err = os.RemoveAll(c.options.Folder)
		}
	})
	return err
}

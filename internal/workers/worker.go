package workers

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/load"
)

// statusEvery is how often a worker says what it has done.
const statusEvery = 100 * time.Millisecond

// hereEvery is how often a worker says that it is there.
const hereEvery = time.Second

// pieceSize is how much of a recording goes into one message.
const pieceSize = 1 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Worker is what a process needs to be a worker.
type Worker struct {
	Version string // of the program, which is the coordinator's too
	Clock   Clock
	Folder  string // for the recording, until the coordinator has it
	// Open opens a part of the clients.
	Open func(ctx context.Context, a *Assignment) (*Opened, error)
}

// errEnded ends a worker whose coordinator is gone, or ends it.
var errEnded = errors.New("the run has ended without this worker")

// Join takes part in the run at address, and returns when that has all that was done. An
// error was reported to the run, where it could be.
func (w *Worker) Join(ctx context.Context, address, secret string) error {
	c, err := join(ctx, address, secret)
	if err != nil {
		return err
	}
	defer c.Close()
	name, _, _ := w.Clock(time.Now())
	if err := c.send(&message{Hello: &hello{Version: w.Version, PID: os.Getpid(), Clock: name}}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	orders := make(chan *message, 8)
	go func() { // the end of the connection is the end of the run
		for {
			m, err := c.receive()
			if err != nil {
				cancel(fmt.Errorf("%w: %w", errEnded, err))
				return
			}
			select {
			case orders <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	go sayHere(ctx, c)
	if err := w.work(ctx, c, orders); err != nil {
		_ = c.send(&message{Failed: err.Error()})
		return err
	}
	return nil
}

// sayHere says that the worker is there until ctx ends: one that stands still, or whose
// machine does, is found by its silence.
func sayHere(ctx context.Context, c *channel) {
	ticker := time.NewTicker(hereEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = c.send(&message{}) // a lost connection ends the worker anyway
		}
	}
}

// next waits for the next order.
func next(ctx context.Context, orders <-chan *message) (*message, error) {
	select {
	case m := <-orders:
		if m.Abort || m.Stop {
			return nil, errEnded
		}
		return m, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (w *Worker) work(ctx context.Context, c *channel, orders <-chan *message) (err error) {
	m, err := next(ctx, orders)
	if err != nil {
		return err
	}
	if m.Assign == nil {
		return fmt.Errorf("take a part of the run: it gave none")
	}
	part, err := w.Open(ctx, m.Assign)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, part.Close()) }()
	o := &part.Options
	if o.History, err = history.Create(filepath.Join(w.Folder, OwnFolder), part.Header, o.All+len(o.Background)); err != nil {
		return err
	}
	if err := c.send(&message{Ready: &ready{part.Header, part.Servers}}); err != nil {
		return err
	}
	m, err = next(ctx, orders)
	if err == nil && m.Start == nil {
		err = errors.New("begin the load phase: the run did not say when")
	}
	if err != nil {
		return errors.Join(err, o.History.Close())
	}
	if err := w.generate(ctx, c, orders, part, m.Start); err != nil {
		return err
	}
	for { // an order to stop may cross the result
		select {
		case m := <-orders:
			switch {
			case m.Done:
				return nil
			case m.Collect:
				if err := w.upload(c); err != nil {
					return err
				}
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// generate is the worker's part of the load phase.
func (w *Worker) generate(ctx context.Context, c *channel, orders <-chan *message, part *Opened, begin *start) (err error) {
	now := time.Now()
	_, here, known := w.Clock(now)
	if !known {
		return errClock
	}
	o := part.Options
	o.Start = now.Add(time.Duration(begin.At - here))
	released, release := context.WithCancel(ctx)
	defer release()
	o.Connected = func(client int, at int64, server string) {
		_ = c.send(&message{Moved: &moved{client, at, server}}) // a lost connection ends the worker anyway
	}
	o.Ended = func() {
		_ = c.send(&message{Over: true})
		<-released.Done()
	}
	select {
	case <-time.After(time.Until(o.Start.Add(begin.In))):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	result, err := w.drive(ctx, c, orders, load.New(o), release)
	err = errors.Join(err, o.History.Close())
	if result == nil {
		return err
	}
	sent := &message{Result: result}
	if err != nil {
		sent.Failed = err.Error()
	}
	return c.send(sent)
}

// drive runs the driver, which the coordinator's orders end, and reports what it does.
func (w *Worker) drive(ctx context.Context, c *channel, orders <-chan *message, driver *load.Driver, release func()) (*load.Result, error) {
	driving, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(ctx, driver.Abort)()
	ended := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		ticker := time.NewTicker(statusEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case m := <-orders:
				switch {
				case m.Stop:
					stop()
				case m.Abort:
					driver.Abort()
				case m.Release:
					release()
				}
			case <-ticker.C:
				snapshot := driver.Snapshot()
				_ = c.send(&message{Status: &snapshot})
			}
		}
	}()
	result, err := driver.Run(driving)
	close(ended)
	<-watched
	last := driver.Snapshot()
	return result, errors.Join(err, c.send(&message{Status: &last}))
}

// upload sends the recording.
func (w *Worker) upload(c *channel) error {
	file, err := os.Open(filepath.Join(w.Folder, OwnFolder, history.FileName))
	if err != nil {
		return fmt.Errorf("send the recording: %w", err)
	}
	defer file.Close()
	p := piece{Data: make([]byte, pieceSize)}
	for !p.Last {
		n, err := io.ReadFull(file, p.Data[:pieceSize])
		p.Last = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !p.Last {
			return fmt.Errorf("send the recording: %w", err)
		}
		p.Data = p.Data[:n]
		p.Sum = crc32.Update(p.Sum, castagnoli, p.Data)
		if err := c.send(&message{Recording: &p}); err != nil {
			return fmt.Errorf("send the recording: %w", err)
		}
		p.Offset += int64(n)
	}
	return nil
}

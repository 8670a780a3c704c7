package workers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"stroppy/internal/history"
)

// joiner is a process that wants to join as a worker.
type joiner struct {
	*channel
	*hello
}

// accept accepts connections until the listener is closed. A connection that does not prove itself is closed
// and delays no other.
func (c *Coordinator) accept(joined chan<- joiner) {
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
			m, err := ch.greeting()
			switch {
			case err != nil || m.Hello == nil:
				_ = ch.Close()
			case m.Hello.For != orders:
				c.attach(ch, m.Hello)
			default:
				select {
				case joined <- joiner{ch, m.Hello}:
				case <-c.gathered:
					ch.refuse(errors.New("the run has all its workers, or has ended"))
				}
			}
		}()
	}
}

// refuse reports the reason and ends the connection.
func (c *channel) refuse(err error) {
	_ = c.send(&message{Refused: err.Error()}) // if the message is lost, the other side sees the end of the connection
	_ = c.Close()
}

// awaitAll lets workers join until there are enough. If one leaves, another may join; a refused one has no
// effect.
func (c *Coordinator) awaitAll(ctx context.Context, joined <-chan joiner) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.options.Wait, fmt.Errorf("waited %v for them", c.options.Wait))
	defer cancel()
	var refused error
	for len(c.members) < c.options.Count {
		select {
		case j := <-joined:
			if err := c.admit(j); err != nil {
				refused = err
				j.refuse(err)
			}
		case e := <-c.events:
			if e.lost != nil {
				c.drop(e.from)
			}
		case <-ctx.Done():
			said := ""
			if refused != nil {
				said = fmt.Sprintf(", and refused one: %v", refused)
			}
			return fmt.Errorf("%d of %d workers have joined: %w%s: start more of them with `stroppy worker --join`, or wait longer with --workers-wait",
				len(c.members), c.options.Count, context.Cause(ctx), said)
		}
	}
	c.byNumber()
	return nil
}

// drop removes a worker that had joined.
func (c *Coordinator) drop(w *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = slices.DeleteFunc(c.members, func(m *member) bool { return m == w })
	for key, m := range c.keys {
		if m == w {
			delete(c.keys, key)
		}
	}
}

// admit admits a worker.
func (c *Coordinator) admit(j joiner) error {
	if j.Version != c.options.Version {
		return fmt.Errorf("it has version %s and this is %s: use the same program", j.Version, c.options.Version)
	}
	apart := j.Clock == "" || j.Clock != c.clock.name
	w, err := c.seat(j.hello)
	if err == nil && apart && c.options.Command != nil {
		err = errClock
	}
	if err != nil {
		return err
	}
	key := rand.Text()
	c.mu.Lock()
	w.channel, w.host, w.clock = j.channel, j.Host, j.Clock
	if apart {
		w.apart = c.comparisonOf(w)
	}
	c.keys[key] = w
	c.mu.Unlock()
	if err := w.channel.send(&message{Welcome: &welcome{Number: w.number, Key: key, Apart: apart, Stream: w.process == nil}}); err != nil {
		return err
	}
	if w.process == nil {
		c.mu.Lock()
		c.members = append(c.members, w)
		c.mu.Unlock()
		if c.options.Joined != nil {
			c.options.Joined(fmt.Sprintf("%v has joined, %d of %d", w, len(c.members), c.options.Count))
		}
	}
	go c.listen(w, w.channel)
	return nil
}

// comparisonOf returns the comparison for a worker's clock. Workers on one clock share it.
func (c *Coordinator) comparisonOf(w *member) *comparison {
	for _, m := range c.members {
		if m != w && m.apart != nil && m.clock != "" && m.clock == w.clock {
			return m.apart
		}
	}
	return newComparison()
}

// seat returns the place of a worker: the place of a started process, the requested place, or the first free one.
func (c *Coordinator) seat(h *hello) (*member, error) {
	if c.options.Command != nil {
		i := slices.IndexFunc(c.members, func(w *member) bool { return w.process.pid() == h.PID && w.channel == nil })
		if i < 0 {
			return nil, errors.New("this run did not start it")
		}
		return c.members[i], nil
	}
	taken := func(n int) bool { return slices.ContainsFunc(c.members, func(w *member) bool { return w.number == n }) }
	number := h.Index
	switch {
	case number >= c.options.Count:
		return nil, fmt.Errorf("its index is %d, and of %d workers the last one is %d", number, c.options.Count, c.options.Count-1)
	case number >= 0 && taken(number):
		return nil, fmt.Errorf("its index is %d, and another worker has that", number)
	case number < 0:
		for number = 0; taken(number); number++ {
		}
	}
	return c.newMember(number, nil), nil
}

// attach adds a connection to a worker.
func (c *Coordinator) attach(ch *channel, h *hello) {
	c.mu.Lock()
	w := c.keys[h.Key]
	c.mu.Unlock()
	switch {
	case w == nil:
		ch.refuse(errors.New("it is not a worker of this run"))
	case h.For == clockReadings && w.apart != nil:
		_ = w.apart.ask(ch, func() int64 { return c.read(time.Now()) }, c.done) // without it the error grows
		_ = ch.Close()
	case h.For == uploads:
		if err := w.upload.take(ch); err != nil {
			c.deliver(event{from: w, lost: fmt.Errorf("collect the recording of %v: %w", w, err)})
		} else if w.upload.is().Whole {
			c.deliver(event{from: w, message: message{Ack: new(w.upload.is())}})
		}
	default:
		ch.refuse(errors.New("it is not asked for that"))
	}
}

// zeroOf returns the position of the history's zero t on a worker's clock, as far as it is known.
func (c *Coordinator) zeroOf(w *member, t time.Time) int64 {
	zero := c.read(t)
	if w.apart == nil {
		return zero
	}
	o := w.apart.offsets()
	return zero - o.offset[len(o.offset)-1]
}

// onAxis converts a worker's time to the run's clock, as far as it is known.
func (c *Coordinator) onAxis(w *member, at int64, zero time.Time) int64 {
	if w.apart == nil {
		return at
	}
	o := w.apart.offsets()
	return w.zero + at + o.of(w.zero+at) - c.read(zero)
}

// Clocks returns the clocks of the clients, or nil if there is one clock and no worker may be lost. Errors
// and losses are known only after everything was collected.
func (c *Coordinator) Clocks() (list []history.ClockError) {
	numbers, apart := map[*comparison]int{}, c.options.Lost > 0
	for _, w := range c.members {
		one := history.ClockError{First: w.first, Clients: w.clients, Cut: w.cut || !c.whole && c.options.Lost > 0}
		if w.apart != nil {
			apart = true
			if numbers[w.apart] == 0 {
				numbers[w.apart] = len(numbers) + 1
			}
			one.Clock, one.Error = numbers[w.apart], history.Unbounded
			if w.apart.settled != nil { // all is collected
				one.Error = w.apart.settled.worst
			}
		}
		list = append(list, one)
	}
	if !apart {
		return nil
	}
	return list
}

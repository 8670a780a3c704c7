package chains

import "math"

// event is the beginning or the end of a transaction; the zero one stands behind the last.
// Of the beginnings there are only those of transactions that do not overwrite all that
// they read.
type event struct {
	t     *transaction
	began bool
}

// merger puts the transactions of all clients in the order of their ends. One that does not
// overwrite all that it read is handed over twice: when nothing of its client stands before it any more, and when it is its
// turn. A client does one transaction after another, so that between the two stands the end
// of every transaction during which it may have run.
type merger struct {
	feed    *feed
	clients map[uint64]*client
	heap    heap[*client] // those that have a transaction, by its end
	lacking int           // clients without one that have more in the file
	begun   []*transaction
	top     *client // whose transaction was handed over last
}

// upcoming is when a transaction ends, in ns times two, and one more where it does not
// overwrite all that it read. What else there is of it takes more lines of a processor's
// cache.
type upcoming int64

func upcomingOf(t *transaction) upcoming {
	u := upcoming(t.end) << 1
	for i := range t.ops {
		if !t.ops[i].write() {
			return u | 1
		}
	}
	return u
}

// reads says that the transaction does not overwrite all that it read.
func (u upcoming) reads() bool { return u&1 != 0 }

// client is what of a client is decoded and not handed over.
type client struct {
	soon   []upcoming    // of now, from head on
	list   []transaction // the same
	now    *batch        // which is handed over; nil is none
	next   *batch        // that follows it in its block; nil is none
	blocks []*batch      // the first ones of its next blocks
	number uint64
	taken  counts // of the last batch that was not empty
}

func newMerger(f *feed) *merger {
	m := &merger{feed: f, clients: map[uint64]*client{}, lacking: len(f.left)}
	for number := range f.left {
		m.clients[number] = &client{number: number}
	}
	return m
}

// next fills events with the next ones. There are none left where it returns none.
func (m *merger) next(events []event) ([]event, error) {
	for i := range events {
		e, err := m.one()
		if err != nil {
			return nil, err
		}
		if e.t == nil {
			return events[:i], nil
		}
		events[i] = e
	}
	return events, nil
}

func (m *merger) one() (event, error) {
	if c := m.top; c != nil {
		m.top = nil
		if err := m.advance(c); err != nil {
			return event{}, err
		}
		if len(c.soon) > 0 {
			m.heap[0].key = int64(c.soon[0])
			m.heap.down()
		} else {
			m.heap.pop()
		}
	}
	for m.lacking > 0 {
		if err := m.fetch(); err != nil {
			return event{}, err
		}
	}
	if n := len(m.begun); n > 0 {
		t := m.begun[n-1]
		m.begun = m.begun[:n-1]
		return event{t, true}, nil
	}
	if len(m.heap) == 0 {
		return event{}, nil
	}
	m.top = m.heap[0].value
	return event{t: &m.top.list[0]}, nil
}

// firstTry is when the first transaction began that has not ended; the largest number where
// there is none.
func (m *merger) firstTry() int64 {
	first := int64(math.MaxInt64)
	for i := range m.heap {
		first = min(first, m.heap[i].value.list[0].try)
	}
	return first
}

// fetch takes the next block from the file.
func (m *merger) fetch() error {
	b := m.feed.next()
	c := m.clients[b.client]
	c.blocks = append(c.blocks, b)
	if len(c.soon) > 0 {
		return nil
	}
	m.lacking--
	if err := m.advance(c); err != nil {
		return err
	}
	if len(c.soon) > 0 {
		m.heap.push(int64(c.soon[0]), c)
	}
	return nil
}

// advance moves on to the client's next transaction; where none is there and there is one
// in the file, the client is lacking.
func (m *merger) advance(c *client) error {
	if len(c.soon) > 0 {
		c.soon, c.list = c.soon[1:], c.list[1:]
	}
	if len(c.soon) == 0 {
		if err := m.turn(c); err != nil || len(c.soon) == 0 {
			return err
		}
	}
	if c.soon[0].reads() {
		m.begun = append(m.begun, &c.list[0])
	}
	return nil
}

// turn moves on to the client's next batch that has a transaction.
func (m *merger) turn(c *client) error {
	for len(c.soon) == 0 {
		if c.now != nil {
			c.now.done() // from now on its memory may be another batch
		}
		switch c.now, c.next = c.next, nil; {
		case c.now != nil:
		case len(c.blocks) > 0:
			c.now, c.blocks = c.blocks[0], c.blocks[1:]
		case m.feed.left[c.number] > 0:
			m.lacking++
			return nil
		default:
			return nil
		}
		if err := m.feed.take(c.now, &c.taken); err != nil {
			return err
		}
		c.soon, c.list, c.next = c.now.soon, c.now.list, m.feed.after(c.now)
	}
	return nil
}

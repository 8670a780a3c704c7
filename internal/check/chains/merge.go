package chains

import "math"

// event is the beginning or the end of a transaction; the zero one stands behind the last.
type event struct {
	t     *transaction
	began bool
}

// merger puts the transactions of all clients in the order of their ends. Each is handed
// over twice: when nothing of its client stands before it any more, and when it is its
// turn. A client does one transaction after another, so that between the two stands the end
// of every transaction during which it may have run.
type merger struct {
	feed    *feed
	warm    func([]transaction) // is called for some that are handed over soon
	clients map[uint64]*client
	heap    heap[*client] // those that have a transaction, by its end
	lacking int           // clients without one that have more in the file
	begun   []*transaction
	top     *client // whose transaction was handed over last
	soon    int     // how many transactions of a client are handed over soon
}

// client is what of a client is decoded and not handed over.
type client struct {
	batches []*batch
	head    *transaction
}

func newMerger(f *feed, warm func([]transaction)) *merger {
	m := &merger{feed: f, warm: warm, clients: map[uint64]*client{}, lacking: len(f.left), soon: min(max(512/max(1, len(f.left)), 2), 16)}
	for number := range f.left {
		m.clients[number] = &client{}
	}
	return m
}

func (m *merger) next() (event, error) {
	if c := m.top; c != nil {
		m.top = nil
		if m.advance(c); c.head != nil {
			m.heap[0].key = c.head.end
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
	return event{t: m.top.head}, nil
}

// firstTry is when the first transaction began that has not ended; the largest number where
// there is none.
func (m *merger) firstTry() int64 {
	first := int64(math.MaxInt64)
	for i := range m.heap {
		first = min(first, m.heap[i].value.head.try)
	}
	return first
}

// fetch takes the next batch from the file.
func (m *merger) fetch() error {
	b, err := m.feed.next()
	if err != nil {
		return err
	}
	c := m.clients[b.client]
	had := c.head != nil
	c.batches = append(c.batches, b)
	if had {
		return nil
	}
	m.lacking--
	if m.advance(c); c.head != nil {
		m.heap.push(c.head.end, c)
	}
	return nil
}

// advance moves on to the client's next transaction, if it is decoded; if not and there is
// one in the file, the client is lacking.
func (m *merger) advance(c *client) {
	c.head = nil
	for len(c.batches) > 0 {
		b := c.batches[0]
		if b.next < len(b.list) {
			if b.next%m.soon == 0 {
				m.warm(b.list[b.next:min(b.next+m.soon, len(b.list))])
			}
			c.head = &b.list[b.next]
			b.next++
			m.begun = append(m.begun, c.head)
			return
		}
		if c.batches = c.batches[1:]; len(c.batches) == 0 && m.feed.left[b.client] > 0 {
			m.lacking++
		}
		b.done() // from now on its memory may be another batch
	}
}

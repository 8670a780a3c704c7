package chains

import (
	"math"

	"stroppy/internal/history"
)

// moment is when something happens in the order in which transactions are handed over: ns
// times two, and one more for the end of a transaction. What begins at a moment stands
// before what ends at it.
type moment int64

// never is after every moment.
const never moment = math.MaxInt64

// event is the beginning or the end of a transaction. Of the beginnings there are only those
// of transactions that do not overwrite all that they read.
type event struct {
	at moment
	t  *transaction
}

func (e event) began() bool { return e.at&1 == 0 }

// merger puts the transactions of all clients in the order of their ends. One that does not
// overwrite all that it read is handed over twice: when its client's one before it has
// ended, and when it is its turn. A client does one transaction after another, so that
// between the two stands the end of every transaction during which it may have run.
//
// It takes from one client after another what ends before a limit, and puts that in order.
// What is to be known of a client's next transaction is then read from memory while that of
// others is, which a heap of clients would read one after another.
type merger struct {
	feed    *feed
	numbers map[history.ID]int // of a client: its place in clients and due
	clients []client
	due     []moment // when the client's next transaction ends; never: it has none left
	limit   moment
	span    moment  // from the first transaction of a window to its limit
	wanted  int     // how many events are to be in a window
	window  []event // that were taken from their clients
	handed  int     // of window, in order
	spare   []event
}

// client is what of a client is decoded and not taken into a window.
type client struct {
	soon   []upcoming    // of now, from head on
	list   []transaction // the same
	now    *batch        // of which these are; nil is none
	next   *batch        // that follows it in its block; nil is none
	blocks []*batch      // the first ones of its next blocks
	number history.ID    // with no sequence number
	before moment        // the end of the one before the first of list
	taken  counts        // of the last batch that was not empty
}

// upcoming is when a transaction ends, in ns times two, and one more where it does not
// overwrite all that it read. What else there is of it takes more lines of a processor's
// cache.
type upcoming int64

func upcomingOf(t *transaction) upcoming {
	u := upcoming(t.end) << 1
	for _, op := range t.operations() {
		if !op.write() {
			return u | 1
		}
	}
	return u
}

// reads says that the transaction does not overwrite all that it read.
func (u upcoming) reads() bool { return u&1 != 0 }

func (u upcoming) ends() moment { return moment(u | 1) }

// A window has about two events of each client, within these bounds.
const (
	leastWindow = 1 << 10
	mostWindow  = 1 << 14
)

func newMerger(f *feed) *merger {
	m := &merger{feed: f, numbers: map[history.ID]int{}, span: 1, limit: math.MinInt64}
	for number := range f.left {
		m.numbers[number] = len(m.clients)
		m.clients = append(m.clients, client{number: number, before: math.MinInt64})
		m.due = append(m.due, math.MinInt64) // its first one is still to be looked at
	}
	m.wanted = max(leastWindow, min(mostWindow, 2*len(m.clients)))
	return m
}

// next returns the events of the next window, in order. There are none left where it returns
// none.
func (m *merger) next() ([]event, error) {
	m.window = m.window[:copy(m.window, m.window[m.handed:])]
	m.handed = 0
	for m.handed == 0 {
		first := never
		for _, at := range m.due {
			first = min(first, at)
		}
		if len(m.window) > 0 {
			first = min(first, m.window[0].at)
		}
		if first == never {
			return nil, nil
		}
		m.limit = first + min(m.span, never-max(first, 0))
		if err := m.fill(); err != nil {
			return nil, err
		}
		m.window, m.spare = sorted(m.window, m.spare)
		for m.handed < len(m.window) && m.window[m.handed].at < m.limit {
			m.handed++
		}
		switch {
		case m.handed < m.wanted/2 && m.span < 1<<60:
			m.span *= 2
		case m.handed > m.wanted:
			m.span = max(1, m.span/2)
		}
	}
	return m.window[:m.handed], nil
}

// fill takes from all clients what is before the limit. Where that is much more than a
// window is to have, the limit comes nearer; what was taken already stays for later ones.
func (m *merger) fill() error {
	most := len(m.window) + 4*m.wanted
	for i := range m.due {
		if m.due[i] >= m.limit {
			continue
		}
		c := &m.clients[i]
		if c.now == nil { // the first one of this client
			if err := m.turn(c); err != nil {
				return err
			}
		}
		for {
			if len(c.soon) == 0 {
				m.due[i] = never
				break
			}
			u, t := c.soon[0], &c.list[0]
			if t.has(unknown) {
				t = c.now.apart[0]
			}
			if u.reads() && !t.has(announced) {
				t.flags |= announced
				m.window = append(m.window, event{c.before &^ 1, t})
			}
			at := u.ends()
			if m.due[i] = at; at >= m.limit {
				break
			}
			m.window = append(m.window, event{at, t})
			if len(m.window) >= most {
				m.limit, most = at+1, most+m.wanted
			}
			c.before, c.soon, c.list = at, c.soon[1:], c.list[1:]
			if t.has(unknown) {
				c.now.apart = c.now.apart[1:]
			}
			if len(c.soon) == 0 {
				if err := m.turn(c); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// firstTry is when the first transaction began that was not handed over; the largest number
// where there is none.
func (m *merger) firstTry() int64 {
	first := int64(math.MaxInt64)
	for _, e := range m.window[m.handed:] {
		first = min(first, e.t.try)
	}
	for i := range m.clients {
		if c := &m.clients[i]; len(c.list) > 0 {
			first = min(first, c.list[0].try)
		}
	}
	return first
}

// turn moves on to the client's next batch that has a transaction; there is none where the
// client has no more.
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
			b := m.feed.next()
			of := &m.clients[m.numbers[b.client]]
			of.blocks = append(of.blocks, b)
			continue
		default:
			return nil
		}
		if err := m.feed.take(c.now, &c.taken); err != nil {
			return err
		}
		c.soon, c.list, c.next = c.now.soon, c.now.list, m.feed.after(c.now)
		if c.next == nil && len(c.blocks) > 0 {
			m.feed.prefetch(c.blocks[0])
		}
	}
	return nil
}

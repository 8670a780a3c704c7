package chains

import (
	"math"

	"stroppy/internal/history"
)

// moment is a point in the order in which transactions are passed on: twice the time in ns, plus one for the
// end of a transaction. So beginnings precede ends of the same time.
type moment int64

// never is after every other moment.
const never moment = math.MaxInt64

// event is the beginning or the end of a transaction. Beginnings exist only for transactions that do not
// overwrite everything they read.
type event struct {
	at moment
	t  *transaction
}

func (e event) began() bool { return e.at&1 == 0 }

// merger sorts the transactions of all clients by their ends. A transaction that does not overwrite
// everything it read is passed on twice: after the end of its client's previous transaction, and at its own
// end. A client runs one transaction at a time, so the end of every concurrent transaction lies between the
// two.
//
// The merger takes from each client what ends before a limit, and sorts it. So the data of several clients is
// loaded from memory at the same time; a heap of clients would load it one by one.
type merger struct {
	feed    *feed
	numbers map[history.ID]int // index of a client in clients and due
	clients []client
	due     []moment // the end of each client's next transaction; never: none left
	limit   moment
	span    moment  // time from the first transaction of a window to its limit
	wanted  int     // the desired number of events in a window
	window  []event // events taken from their clients
	handed  int     // number of events of window that were passed on
	spare   []event
}

// client holds the decoded transactions of a client that are not in a window yet.
type client struct {
	soon   []upcoming    // remaining transactions of now, from head on
	list   []transaction // likewise
	now    *batch        // the current batch; nil: none
	next   *batch        // the following batch of the same block; nil: none
	blocks []*batch      // the first batches of the following blocks
	number history.ID    // without a sequence number
	before moment        // end of the transaction before the first one in list
	taken  counts        // of the last batch that was not empty
}

// upcoming is the end of a transaction in ns times two, plus one if the transaction does not overwrite
// everything it read. The merger reads only this value, because the rest of a transaction takes more cache
// lines.
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

// reads reports whether the transaction reads something that it does not overwrite.
func (u upcoming) reads() bool { return u&1 != 0 }

func (u upcoming) ends() moment { return moment(u | 1) }

// These constants limit a window, which has about two events of each client.
const (
	leastWindow = 1 << 10
	mostWindow  = 1 << 14
)

func newMerger(f *feed) *merger {
	m := &merger{feed: f, numbers: map[history.ID]int{}, span: 1, limit: math.MinInt64}
	for number := range f.left {
		m.numbers[number] = len(m.clients)
		m.clients = append(m.clients, client{number: number, before: math.MinInt64})
		m.due = append(m.due, math.MinInt64) // its first transaction has not been read yet
	}
	m.wanted = max(leastWindow, min(mostWindow, 2*len(m.clients)))
	return m
}

// next returns the sorted events of the next window. The list is empty at the end.
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

// fill takes the events before the limit from all clients. If there are many more than wanted, it lowers the
// limit; the events already taken remain for later windows.
func (m *merger) fill() error {
	most := len(m.window) + 4*m.wanted
	for i := range m.due {
		if m.due[i] >= m.limit {
			continue
		}
		c := &m.clients[i]
		if c.now == nil { // the client's first batch
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

// firstTry returns the beginning of the earliest transaction that was not passed on, or the largest number if
// there is none.
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

// turn moves to the client's next non-empty batch. Afterwards, c.now is nil if the client has no more.
func (m *merger) turn(c *client) error {
	for len(c.soon) == 0 {
		if c.now != nil {
			c.now.done() // its memory may now be reused by another batch
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
	}
	return nil
}

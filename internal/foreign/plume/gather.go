package plume

import (
	"fmt"

	"stroppy/internal/check/sessions"
	"stroppy/internal/foreign"
)

// gather combines the parts of a file: operations by session, in the order of the file.
func gather(parts []part) (*sessions.History, error) {
	g := gathering{known: map[int64]uint32{}, history: &sessions.History{}}
	total := g.count(parts)
	if total == 0 && len(g.history.Aborted) == 0 {
		return nil, &foreign.InputError{What: "it has no operation of a transaction that was committed"}
	}
	return g.history, g.place(parts, total)
}

// gathering is the state of gather.
type gathering struct {
	history *sessions.History
	known   map[int64]uint32
	names   []int64
	numbers [][]uint32 // of each part and each of its sessions
	counts  []int      // of each session
}

// count numbers the sessions of all parts and counts their operations. It removes operations of aborted
// transactions, whose reads show nothing about committed ones.
func (g *gathering) count(parts []part) (total int) {
	base := uint32(0)
	for i := range parts {
		p := &parts[i]
		numbers := make([]uint32, len(p.sessions))
		for j, name := range p.sessions {
			n, ok := g.known[name]
			if !ok {
				n = uint32(len(g.names))
				g.known[name] = n
				g.names, g.counts = append(g.names, name), append(g.counts, 0)
			}
			numbers[j] = n
		}
		g.numbers = append(g.numbers, numbers)
		for j := range p.operations {
			switch o := &p.operations[j]; {
			case o.transaction != abortedTransaction:
				g.counts[numbers[o.session()]]++
				total++
			case o.write():
				g.history.Aborted = append(g.history.Aborted, sessions.Op{Key: o.key, Value: o.value, Line: base + o.line, Write: true})
			}
		}
		base += p.lines
	}
	return total
}

// place stores the operations at the positions of their sessions.
func (g *gathering) place(parts []part, total int) error {
	next := make([]int, len(g.names))
	at := 0
	for s, n := range g.counts {
		next[s] = at
		at += n
	}
	h := g.history
	h.Ops = make([]sessions.Op, total)
	transactions := make([]int64, total)
	base := uint32(0)
	for i := range parts {
		p := &parts[i]
		for j := range p.operations {
			o := &p.operations[j]
			if o.transaction == abortedTransaction {
				continue
			}
			n := &next[g.numbers[i][o.session()]]
			h.Ops[*n] = sessions.Op{Key: o.key, Value: o.value, Line: base + o.line, Write: o.write()}
			transactions[*n] = o.transaction
			*n++
		}
		base += p.lines
		p.operations = nil
	}
	h.Transactions = make([]sessions.Transaction, 0, g.transactions(transactions))
	h.Sessions = make([]sessions.Session, 0, len(g.names))
	seen := newNames(total)
	from := 0
	for s, n := range g.counts {
		if n == 0 {
			continue // its transactions were all aborted
		}
		for i := from; i < from+n; i++ {
			if name := transactions[i]; i == from || name != transactions[i-1] {
				if !seen.add(name) {
					return &foreign.InputError{Line: int(h.Ops[i].Line), What: fmt.Sprintf("transaction %d goes on after another transaction of its session, or in another session", name)}
				}
				if i > from {
					h.Transactions[len(h.Transactions)-1].End = i
				}
				h.Transactions = append(h.Transactions, sessions.Transaction{Name: name})
			}
		}
		from += n
		h.Transactions[len(h.Transactions)-1].End = from
		h.Sessions = append(h.Sessions, sessions.Session{Name: g.names[s], End: len(h.Transactions)})
	}
	return nil
}

// transactions counts the transactions, by the names of the operations' transactions.
func (g *gathering) transactions(names []int64) (count int) {
	for i, name := range names {
		if i == 0 || name != names[i-1] {
			count++
		}
	}
	return count
}

// names is a set of transaction names: a bit set for small ones, which are most.
type names struct {
	small []uint64
	large map[int64]bool
}

func newNames(operations int) *names {
	return &names{small: make([]uint64, operations/16+1), large: map[int64]bool{}}
}

// add adds a name and reports whether it is new.
func (n *names) add(name int64) bool {
	if at := uint64(name) / 64; at < uint64(len(n.small)) {
		if n.small[at]>>(name%64)&1 == 1 {
			return false
		}
		n.small[at] |= 1 << (name % 64)
		return true
	}
	if n.large[name] {
		return false
	}
	n.large[name] = true
	return true
}

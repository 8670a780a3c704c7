package lists

import (
	"cmp"
	"slices"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/graph"
)

// meeting is a list through which one transaction depends on another, with the versions involved.
type meeting struct {
	list     uint32
	from, to uint32 // the version that the first made or read, and the version that the second made
	op       uint32 // the read; None: there is none
	ok       bool
	range_   bool // the list was read or missed by a Range
	behind   bool // the second appended to the version of the first
	lost     bool // one overwrote the other without having read it
}

// edges returns the edges of a cycle with their reasons.
func (c *checker) edges(k cycle) []check.Edge {
	list := make([]check.Edge, len(k.steps))
	for i, s := range k.steps {
		list[i] = c.edge(s)
	}
	return list
}

func (c *checker) edge(s graph.Step) check.Edge {
	e := check.Edge{From: c.idOf(s.From), To: c.idOf(s.To)}
	pair := c.pair(s.From, s.To)
	switch s.Kind {
	case graph.Rt:
		e.Kind = check.RealTime
		by := time.Duration(c.begin[s.To] - c.end[s.From] - c.apart(s.From, s.To))
		if c.Lasted != nil {
			by, _ = c.Lasted(e.From, e.To)
		}
		e.Why = fact.ListEnded{ListPair: pair, By: by}
		return e
	case graph.Process:
		e.Kind, e.Why = check.ProcessOrder, fact.ListSession{ListPair: pair}
		return e
	case graph.Ww:
		e.Kind = check.WriteWrite
	case graph.Wr, graph.GuessWr:
		e.Kind = check.WriteRead
	default:
		e.Kind = check.ReadWrite
	}
	m := c.meet(s)
	if list, ok := c.unreadOfBoth(s); ok && !m.ok {
		e.Object = string(c.on(list))
		e.Why = fact.ListEither{ListPair: pair, On: c.on(list)}
		return e
	}
	if !m.ok {
		e.Why = fact.ListBefore{ListPair: pair}
		return e
	}
	on := c.on(m.list)
	e.Object = string(on)
	from, to := c.metElement(m, s.From, m.from), c.metElement(m, s.To, m.to)
	switch {
	case m.lost && s.Kind == graph.Ww:
		e.Why = fact.ListOverwritten{ListPair: pair, On: on, Element: from, End: c.version(m.list, m.to)}
	case m.to == nowhere && c.deleter(m.list) == s.To && !c.appendsTo(s.To, m.list):
		e.ToVersion = "deleted"
		e.Why = fact.ListDeleted{ListPair: pair, On: on, Wrote: from, Read: c.seen(m)}
		if m.op != check.None {
			e.Why = fact.ListDeleted{ListPair: pair, On: on, Read: c.seen(m)}
		}
	case s.Kind == graph.Ww || m.behind:
		e.FromVersion, e.ToVersion = string(from), string(to)
		e.Why = fact.ListBehind{ListPair: pair, On: on, Element: from, Next: to}
	case s.Kind == graph.Wr && c.misses(m.op, m.from):
		e.Why = fact.ListBefore{ListPair: pair} // shown by the elements before its own
	case s.Kind == graph.Wr:
		e.FromVersion, e.ToVersion = string(from), string(from)
		e.Why = fact.ListSaw{ListPair: pair, On: on, Read: c.seen(m), Element: from}
	case m.range_:
		e.ToVersion = string(to)
		e.Why = fact.ListRangeMissed{ListPair: pair, On: on}
	default:
		e.FromVersion, e.ToVersion = lastOf(c.seen(m)), string(to)
		e.Why = fact.ListMissed{ListPair: pair, On: on, Read: c.seen(m), Element: to}
	}
	return e
}

// unreadOfBoth returns a list to which two transactions appended unread elements.
func (c *checker) unreadOfBoth(s graph.Step) (list uint32, ok bool) {
	for _, h := range c.hubs {
		if s.Kind == graph.Ww && slices.Contains(h.to, s.From) && slices.Contains(h.to, s.To) {
			return h.list, true
		}
	}
	return 0, false
}

// seen returns the result of a meeting's read, as recorded by its transaction.
func (c *checker) seen(m meeting) fact.Elements {
	if m.op != check.None {
		return c.readAt(m.op, m.list)
	}
	if m.from == nowhere {
		return fact.Elements{}
	}
	return c.version(m.list, m.from)
}

// lastOf returns the last element of a list, and "[]" for an empty list.
func lastOf(list fact.Elements) string {
	if len(list.Last) == 0 {
		return "[]"
	}
	return string(list.Last[len(list.Last)-1])
}

// metElement returns the element that a transaction added in a version of a meeting. If the version was not
// read, it is the element that the transaction appended to the list.
func (c *checker) metElement(m meeting, t, version uint32) fact.Element {
	if version != nowhere && version > 0 {
		return c.elementAt(m.list, version)
	}
	for op := c.row[t]; op < c.row[t+1]; op++ {
		if c.opList[op] == opAppend|m.list && c.arg.at(op) == nowhere {
			return c.appendedBy(op)
		}
	}
	return ""
}

// meet finds the list of a dependency.
func (c *checker) meet(s graph.Step) meeting {
	switch s.Kind {
	case graph.Ww:
		return c.meetWrites(s.From, s.To)
	case graph.Wr:
		for op := c.row[s.To]; op < c.row[s.To+1]; op++ {
			l, length := c.opList[op]&^opKinds, c.arg.at(op)
			if c.opList[op]&opKinds > opRow || length == nowhere || length == 0 {
				continue
			}
			if writer, version := c.made(l, length); writer == s.From {
				return meeting{list: l, from: version, to: length, op: op, ok: true}
			}
		}
		m := c.meetWrites(s.From, s.To)
		m.behind = true
		return m
	case graph.Rw, graph.PredicateRw:
		if m := c.meetRange(s.From, s.To); m.ok && s.Kind == graph.PredicateRw {
			return m
		}
		for op := c.row[s.From]; op < c.row[s.From+1]; op++ {
			l, length := c.opList[op]&^opKinds, c.arg.at(op)
			if c.opList[op]&opKinds <= opRow && length != nowhere {
				if v, ok := c.wroteNext(l, length, s.To); ok {
					return meeting{list: l, from: length, to: v, op: op, ok: true}
				}
				if v := c.missed(op, l, s.To); v != 0 {
					return meeting{list: l, from: length, to: v, op: op, ok: true}
				}
			}
		}
		return c.meetFork(s.From, s.To)
	}
	return meeting{}
}

// missed returns the position in a list of rows at which a read did not find an append of t; 0 means none.
func (c *checker) missed(op, list, t uint32) uint32 {
	for i, e := range c.partial[op] {
		if e == Missing && c.effect(list, uint32(i+1)) == t {
			return uint32(i + 1)
		}
	}
	return 0
}

// meetFork finds the list in which two transactions overwrote the same value.
func (c *checker) meetFork(from, to uint32) meeting {
	for op := c.row[from]; op < c.row[from+1]; op++ {
		l := c.opList[op] &^ opKinds
		if c.opList[op]&opKinds != opAppend || c.trees[l] == nil {
			continue
		}
		for v := range c.length(l) {
			over := c.children(l, v)
			for _, a := range over {
				for _, b := range over {
					if c.effect(l, a) == from && c.effect(l, b) == to && a != b {
						return meeting{list: l, from: v, to: b, op: check.None, ok: true}
					}
				}
			}
		}
	}
	return meeting{}
}

// wroteNext reports whether a transaction made the version after a given one of a list, or then deleted it.
// It returns the version.
func (c *checker) wroteNext(list, version, t uint32) (uint32, bool) {
	if c.trees[list] != nil {
		for _, v := range c.children(list, version) {
			if c.effect(list, v) == t {
				return v, true
			}
		}
		return 0, false
	}
	for v := version; v < c.length(list); v++ {
		if w := c.writer[c.first[list]+v]; w != check.None && w&noEffect == 0 {
			return v + 1, w&writerMask == t
		}
	}
	if c.deleter(list) == t {
		return nowhere, true
	}
	for op := c.row[t]; op < c.row[t+1]; op++ {
		if c.opList[op] == opAppend|list && c.arg.at(op) == nowhere {
			return nowhere, true
		}
	}
	return 0, false
}

func (c *checker) meetWrites(from, to uint32) meeting {
	for op := c.row[from]; op < c.row[from+1]; op++ {
		if c.opList[op]&opKinds != opAppend {
			continue
		}
		l, place := c.opList[op]&^opKinds, c.arg.at(op)
		if place == nowhere {
			if c.kept[l] == Values && c.End != nil && c.effect(l, c.final[l]) == to {
				return meeting{list: l, from: nowhere, to: c.final[l], op: check.None, ok: true, lost: true}
			}
			if c.deleter(l) == to {
				return meeting{list: l, from: nowhere, to: nowhere, op: check.None, ok: true}
			}
			continue
		}
		if v, ok := c.wroteNext(l, place, to); ok {
			return meeting{list: l, from: place, to: v, op: check.None, ok: true}
		}
		if c.trees[l] != nil && c.End != nil && c.effect(l, c.final[l]) == to && !c.contains(l, c.final[l], place) {
			return meeting{list: l, from: place, to: c.final[l], op: check.None, ok: true, lost: true}
		}
	}
	return meeting{}
}

func (c *checker) meetRange(from, to uint32) meeting {
	for i := range c.ranges {
		r := &c.ranges[i]
		if r.t != from {
			continue
		}
		for op := c.row[to]; op < c.row[to+1]; op++ {
			l := c.opList[op] &^ opKinds
			key := c.keys.key[l]
			if c.opList[op]&opKinds != opAppend || key < r.low || key > r.high || c.matched(r, l) {
				continue
			}
			if v, ok := c.wroteNext(l, 0, to); ok {
				return meeting{list: l, from: 0, to: v, op: check.None, ok: true, range_: true}
			}
		}
	}
	return meeting{}
}

// spans returns the transactions of a cycle, sorted by their beginnings.
func (c *checker) spans(ids []uint32) []check.Span {
	ids = slices.Clone(ids)
	slices.SortFunc(ids, func(a, b uint32) int { return cmp.Or(cmp.Compare(c.begin[a], c.begin[b]), cmp.Compare(a, b)) })
	var list []check.Span
	for _, t := range slices.Compact(ids) {
		s := check.Span{ID: c.idOf(t), Kind: "transaction", Outcome: c.outcome(t), Begin: c.begin[t], End: c.end[t], Did: c.describe(t)}
		if s.End == graph.Never {
			s.End = 0
		}
		list = append(list, s)
	}
	return list
}

// mostOps limits the number of operations that are described for a transaction.
const mostOps = 16

// describe returns the operations of a transaction, as it recorded them.
func (c *checker) describe(t uint32) (did []fact.Fact) {
	for op := c.row[t]; op < c.row[t+1]; op++ {
		if len(did) == mostOps {
			return append(did, fact.ListMore{Operations: int(c.row[t+1] - op)})
		}
		l, arg := c.opList[op]&^opKinds, c.arg.at(op)
		switch kind := c.opList[op] & opKinds; {
		case kind == opAppend:
			did = append(did, fact.ListAppended{On: c.on(l), Element: c.appendedBy(op)})
		case kind == opDelete:
			did = append(did, fact.ListDelete{On: c.on(l)})
		case arg == nowhere:
			did = append(did, fact.ListOwnRead{On: c.on(l)})
		default:
			did = append(did, fact.ListOwnRead{On: c.on(l), Known: true, Read: c.readAt(op, l)})
		}
	}
	for i := range c.ranges {
		if r := &c.ranges[i]; r.t == t {
			did = append(did, fact.ListRange{Low: fact.Object(c.List(r.low)), High: fact.Object(c.List(r.high)), Found: int(r.last - r.first)})
		}
	}
	return did
}

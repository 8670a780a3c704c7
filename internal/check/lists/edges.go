package lists

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
)

// meeting is the list at which one transaction depends on another, and the versions that it
// is about.
type meeting struct {
	list     uint32
	from, to uint32 // lengths: of the version that the first made or read, and of that which the second did
	ok       bool
	range_   bool // the list was read, or missed, by a Range
	behind   bool // the second appended to what the first had made
	lost     bool // the second wrote over the first without having read it, or the first over the second
}

// edges describes a cycle.
func (c *checker) edges(k cycle) []check.Edge {
	list := make([]check.Edge, len(k.steps))
	for i, s := range k.steps {
		list[i] = c.edge(s)
	}
	return list
}

func (c *checker) edge(s graph.Step) check.Edge {
	e := check.Edge{From: c.id[s.From], To: c.id[s.To]}
	from, to := c.who(s.From), c.who(s.To)
	switch s.Kind {
	case graph.Rt:
		e.Kind = check.RealTime
		lasted, known := time.Duration(c.begin[s.To]-c.end[s.From]-c.apart(s.From, s.To)), true
		if c.Lasted != nil {
			lasted, known = c.Lasted(c.id[s.From], c.id[s.To])
		}
		if e.Text = fmt.Sprintf("%s had ended before %s began", from, to); known {
			e.Text = fmt.Sprintf("%s had ended %s before %s began", from, check.Lasted(lasted), to)
		}
		return e
	case graph.Process:
		e.Kind = check.ProcessOrder
		e.Text = fmt.Sprintf("the client of %s had its answer before it began %s", from, to)
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
		e.Object = c.listName(list)
		e.Text = fmt.Sprintf("%s and %s both appended to %s what nobody has read, so that one came first: if it was %s",
			from, to, e.Object, from)
		return e
	}
	if !m.ok {
		e.Text = fmt.Sprintf("%s comes before %s", from, to)
		return e
	}
	e.Object = c.listName(m.list)
	e.FromVersion, e.ToVersion = c.versionsOf(m, s)
	switch {
	case m.lost && s.Kind == graph.Ww:
		e.Text = fmt.Sprintf("%s wrote %s as %s, which %s overwrote: in the end it is %s", from, e.Object, e.FromVersion, to, e.ToVersion)
	case s.Kind == graph.Ww || m.behind:
		e.Text = fmt.Sprintf("%s appended to %s behind what %s had appended: %s became %s", to, e.Object, from, e.FromVersion, e.ToVersion)
	case s.Kind == graph.Wr:
		e.Text = fmt.Sprintf("%s read %s as %s, of which %s had appended the last element", to, e.Object, e.ToVersion, from)
	case m.range_:
		e.Text = fmt.Sprintf("%s read a range without %s, which %s then made", from, e.Object, to)
	case c.deleter(m.list) == s.To && !c.appendsTo(s.To, m.list):
		e.ToVersion = "deleted"
		e.Text = fmt.Sprintf("%s read %s as %s, and %s then deleted it", from, e.Object, e.FromVersion, to)
	default:
		e.Text = fmt.Sprintf("%s read %s as %s, and %s then appended to it: %s", from, e.Object, e.FromVersion, to, e.ToVersion)
	}
	return e
}

// unreadOfBoth returns a list to which two transactions appended what nobody has read.
func (c *checker) unreadOfBoth(s graph.Step) (list uint32, ok bool) {
	for _, h := range c.hubs {
		if s.Kind == graph.Ww && slices.Contains(h.to, s.From) && slices.Contains(h.to, s.To) {
			return h.list, true
		}
	}
	return 0, false
}

// versionsOf writes the versions of a meeting. Where the second transaction read what the first
// had made, they are one.
func (c *checker) versionsOf(m meeting, s graph.Step) (from, to string) {
	if m.from != nowhere && m.to != nowhere && m.from != m.to {
		return c.both(c.content(m.list, m.from), c.content(m.list, m.to))
	}
	return c.versionOrNext(m, s.From, m.from), c.versionOrNext(m, s.To, m.to)
}

// versionOrNext writes a version. One that nobody has read is what is known of the list, and
// then the element that a transaction appended.
func (c *checker) versionOrNext(m meeting, t, length uint32) string {
	if length != nowhere {
		return c.version(m.list, length)
	}
	for op := c.row[t]; op < c.row[t+1]; op++ {
		if c.opList[op] == opAppend|m.list && c.place[c.opArg[op]] == nowhere {
			return "[…, " + c.Element(c.element[c.opArg[op]]) + "]"
		}
	}
	return "deleted"
}

// meet finds the list of a dependency.
func (c *checker) meet(s graph.Step) meeting {
	switch s.Kind {
	case graph.Ww:
		return c.meetWrites(s.From, s.To)
	case graph.Wr:
		for op := c.row[s.To]; op < c.row[s.To+1]; op++ {
			l, length := c.opList[op]&^opKinds, c.opArg[op]
			if c.opList[op]&opKinds <= opRow && length != nowhere && length > 0 && c.made(l, length) == s.From {
				return meeting{list: l, from: length, to: length, ok: true}
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
			l, length := c.opList[op]&^opKinds, c.opArg[op]
			if c.opList[op]&opKinds <= opRow && length != nowhere {
				if v, ok := c.wroteNext(l, length, s.To); ok {
					return meeting{list: l, from: length, to: v, ok: true}
				}
				if v := c.missed(op, l, s.To); v != 0 {
					return meeting{list: l, from: length, to: v, ok: true}
				}
			}
		}
		return c.meetFork(s.From, s.To)
	}
	return meeting{}
}

// missed returns the place in a list of rows at which a read did not find what a transaction
// had appended; 0 is none.
func (c *checker) missed(op, list, t uint32) uint32 {
	for i, e := range c.partial[op] {
		if e == Missing && c.effect(list, uint32(i+1)) == t {
			return uint32(i + 1)
		}
	}
	return 0
}

// meetFork finds the list of which two transactions overwrote the same value.
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
						return meeting{list: l, from: v, to: b, ok: true}
					}
				}
			}
		}
	}
	return meeting{}
}

// wroteNext says that a transaction made the version after one of a list, or deleted it
// then, and which version that is.
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
		if c.opList[op] == opAppend|list && c.place[c.opArg[op]] == nowhere {
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
		l, place := c.opList[op]&^opKinds, c.place[c.opArg[op]]
		if place == nowhere {
			if c.kept[l] == Values && c.End != nil && c.effect(l, c.final[l]) == to {
				return meeting{list: l, from: nowhere, to: c.final[l], ok: true, lost: true}
			}
			if c.deleter(l) == to {
				return meeting{list: l, from: nowhere, to: nowhere, ok: true}
			}
			continue
		}
		if v, ok := c.wroteNext(l, place, to); ok {
			return meeting{list: l, from: place, to: v, ok: true}
		}
		if c.trees[l] != nil && c.End != nil && c.effect(l, c.final[l]) == to && !c.contains(l, c.final[l], place) {
			return meeting{list: l, from: place, to: c.final[l], ok: true, lost: true}
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
				return meeting{list: l, from: 0, to: v, ok: true, range_: true}
			}
		}
	}
	return meeting{}
}

// spans describes the transactions of a cycle, in the order of their beginnings.
func (c *checker) spans(ids []uint32) []check.Span {
	ids = slices.Clone(ids)
	slices.SortFunc(ids, func(a, b uint32) int { return cmp.Or(cmp.Compare(c.begin[a], c.begin[b]), cmp.Compare(a, b)) })
	var list []check.Span
	for _, t := range slices.Compact(ids) {
		s := check.Span{ID: c.id[t], Kind: "transaction", Outcome: history.Outcome(c.state[t] &^ observed), Begin: c.begin[t], End: c.end[t], Ops: c.describe(t)}
		if s.End == graph.Never {
			s.End = 0
		}
		list = append(list, s)
	}
	return list
}

// mostOps bounds what is said of one transaction.
const mostOps = 16

// describe says what a transaction did, a line each.
func (c *checker) describe(t uint32) []string {
	var lines []string
	for op := c.row[t]; op < c.row[t+1]; op++ {
		if len(lines) == mostOps {
			return append(lines, fmt.Sprintf("and %d more", c.row[t+1]-op))
		}
		l, arg := c.opList[op]&^opKinds, c.opArg[op]
		name := c.listName(l)
		switch kind := c.opList[op] & opKinds; {
		case kind == opAppend:
			lines = append(lines, fmt.Sprintf("append %s to %s", c.Element(c.element[arg]), name))
		case kind == opDelete:
			lines = append(lines, "delete "+name)
		case arg == nowhere:
			lines = append(lines, "read "+name)
		default:
			lines = append(lines, fmt.Sprintf("read %s: %s", name, c.version(l, arg)))
		}
	}
	for i := range c.ranges {
		if r := &c.ranges[i]; r.t == t {
			lines = append(lines, fmt.Sprintf("read all from %s to %s: found %s", c.List(r.low), c.List(r.high), check.Plural(r.last-r.first, "list")))
		}
	}
	return lines
}
